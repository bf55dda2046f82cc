package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/writer"
)

type Sub struct {
	A int32    `parquet:"name=a, type=INT32"`
	B *string  `parquet:"name=b, type=BYTE_ARRAY, convertedtype=UTF8"`
	C []*int64 `parquet:"name=c, type=MAP, convertedtype=LIST, valuetype=INT64"`
}
type Row struct {
	Name  string           `parquet:"name=name, type=BYTE_ARRAY, convertedtype=UTF8, encoding=PLAIN_DICTIONARY"`
	Delta string           `parquet:"name=delta, type=BYTE_ARRAY, convertedtype=UTF8, encoding=DELTA_BYTE_ARRAY"`
	DLen  string           `parquet:"name=dlen, type=BYTE_ARRAY, convertedtype=UTF8, encoding=DELTA_LENGTH_BYTE_ARRAY"`
	Age   int32            `parquet:"name=age, type=INT32, encoding=DELTA_BINARY_PACKED"`
	Id    int64            `parquet:"name=id, type=INT64, encoding=DELTA_BINARY_PACKED"`
	Opt   *int32           `parquet:"name=opt, type=INT32"`
	F     float32          `parquet:"name=f, type=FLOAT"`
	D     *float64         `parquet:"name=d, type=DOUBLE"`
	B     bool             `parquet:"name=b, type=BOOLEAN"`
	Day   int32            `parquet:"name=day, type=INT32, convertedtype=DATE"`
	Ts    int64            `parquet:"name=ts, type=INT64, convertedtype=TIMESTAMP_MILLIS"`
	U8    int32            `parquet:"name=u8, type=INT32, convertedtype=UINT_8"`
	Dec   int32            `parquet:"name=dec, type=INT32, convertedtype=DECIMAL, scale=2, precision=9"`
	DecB  string           `parquet:"name=decb, type=BYTE_ARRAY, convertedtype=DECIMAL, scale=2, precision=20"`
	Fix   string           `parquet:"name=fix, type=FIXED_LEN_BYTE_ARRAY, length=4"`
	I96   string           `parquet:"name=i96, type=INT96"`
	List  []string         `parquet:"name=list, type=MAP, convertedtype=LIST, valuetype=BYTE_ARRAY, valueconvertedtype=UTF8"`
	Rep   []int32          `parquet:"name=rep, type=INT32, repetitiontype=REPEATED"`
	Map   map[string]int32 `parquet:"name=map, type=MAP, convertedtype=MAP, keytype=BYTE_ARRAY, keyconvertedtype=UTF8, valuetype=INT32"`
	Sub   Sub              `parquet:"name=sub"`
	Subs  []Sub            `parquet:"name=subs, type=LIST, repetitiontype=REPEATED"`
	SubsL *[]*Sub          `parquet:"name=subsl, type=MAP, convertedtype=LIST"`
}

func xitong(path string, codec parquet.CompressionCodec, page int64, group int64) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Println("not written:", path, r)
			os.Remove(path)
		}
	}()
	f, err := os.Create(path)
	check(err)
	w, err := writer.NewParquetWriterFromWriter(f, new(Row), 2)
	check(err)
	w.CompressionType = codec
	w.PageSize = page
	w.RowGroupSize = group
	for i := range 60 {
		s := fmt.Sprint("text ", i%9)
		o := int32(i)
		d := float64(i) / 3
		l := int64(i)
		sub := Sub{A: int32(i), B: &s, C: []*int64{&l, nil}}
		r := Row{Name: s, Delta: "prefix " + s, DLen: s, Age: int32(i*i - 100), Id: int64(i) << 33, F: float32(i), B: i%3 == 0, Day: int32(i * 100), Ts: int64(i) * 1e9, U8: int32(i), Dec: int32(i), DecB: string([]byte{1, byte(i)}),
			Fix: "abcd", I96: "0123456789ab", Sub: sub, Map: map[string]int32{}}
		if i%3 > 0 {
			r.Opt, r.D = &o, &d
			r.Subs = []Sub{sub, {A: 1}}
			subs := []*Sub{&sub, nil}
			r.SubsL = &subs
		}
		for n := range i % 4 {
			r.List = append(r.List, fmt.Sprint(n))
			r.Rep = append(r.Rep, int32(n))
			// One entry: Go's maps have no order.
			r.Map = map[string]int32{fmt.Sprint("k", n): int32(n)}
		}
		check(w.Write(r))
	}
	check(w.WriteStop())
	f.Close()
}

// It writes pages of no bytes for the codecs that it does not have: those files nobody can read.
func withXitongsys(out string) {
	for _, codec := range []parquet.CompressionCodec{0, 1, 2, 5, 6} {
		xitong(filepath.Join(out, codec.String()+".parquet"), codec, 8192, 128<<20)
		xitong(filepath.Join(out, codec.String()+"_small.parquet"), codec, 64, 2000)
	}
	// Its LZ4 is LZ4's own frame, which other readers refuse.
	twins := "LZ4.parquet UNCOMPRESSED.parquet\nLZ4_small.parquet UNCOMPRESSED.parquet\n"
	check(os.WriteFile(filepath.Join(out, "twins.txt"), []byte(twins), 0o644))
}
