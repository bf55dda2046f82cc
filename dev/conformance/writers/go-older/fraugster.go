package main

import (
	"fmt"
	"os"
	"path/filepath"

	fraugster "github.com/fraugster/parquet-go"
	fraugsterparquet "github.com/fraugster/parquet-go/parquet"
	"github.com/fraugster/parquet-go/parquetschema"
)

func writeFraugster(path string, options ...fraugster.FileWriterOption) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Println("not written:", path, r)
			os.Remove(path)
		}
	}()
	sd, err := parquetschema.ParseSchemaDefinition(`message m { required int64 id; optional binary s (STRING); optional boolean b; required double d; optional int96 t; optional fixed_len_byte_array(3) f;
	 optional group l (LIST) { repeated group list { optional int32 element; } } optional group m (MAP) { repeated group key_value { required binary key (STRING); optional int64 value; } } repeated group g { required int32 x; repeated binary y; } }`)
	check(err)
	f, err := os.Create(path)
	check(err)
	w := fraugster.NewFileWriter(f, append(options, fraugster.WithSchemaDefinition(sd))...)
	for i := range 50 {
		r := map[string]interface{}{"id": int64(i), "d": float64(i) / 7}
		if i%3 > 0 {
			r["s"] = []byte(fmt.Sprint("text ", i%5))
			r["b"] = i%2 == 0
			r["f"] = []byte("abc")
			r["l"] = map[string]interface{}{"list": []map[string]interface{}{{"element": int32(i)}, {}}}
			r["m"] = map[string]interface{}{"key_value": []map[string]interface{}{{"key": []byte("k"), "value": int64(i)}, {"key": []byte("l")}}}
			r["g"] = []map[string]interface{}{{"x": int32(i), "y": [][]byte{[]byte("p"), []byte("q")}}, {"x": int32(1)}}
		}
		check(w.AddData(r))
		if i == 30 {
			check(w.FlushRowGroup())
		}
	}
	check(w.Close())
	f.Close()
}

// In V2 headers it counts rows one off wherever a page ends.
func withFraugster(out string) {
	for _, codec := range []fraugsterparquet.CompressionCodec{0, 1, 2} {
		writeFraugster(filepath.Join(out, codec.String()+".parquet"), fraugster.WithCompressionCodec(codec))
		writeFraugster(filepath.Join(out, codec.String()+"_v2.parquet"), fraugster.WithCompressionCodec(codec),
			fraugster.WithDataPageV2(), fraugster.WithCRC(true), fraugster.WithMaxPageSize(100))
	}
}
