package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
)

type inner struct {
	A int32    `parquet:"a"`
	B *string  `parquet:"b,optional"`
	C []int64  `parquet:"c,list"`
	D []string `parquet:"d"`
}

type row struct {
	B      bool              `parquet:"b"`
	I      int32             `parquet:"i"`
	Io     *int32            `parquet:"io,optional"`
	L      int64             `parquet:"l"`
	F      float32           `parquet:"f"`
	D      float64           `parquet:"d"`
	I96    deprecated.Int96  `parquet:"i96"`
	I8     int8              `parquet:"i8"`
	U8     uint8             `parquet:"u8"`
	U32    uint32            `parquet:"u32"`
	U64    uint64            `parquet:"u64"`
	S      string            `parquet:"s"`
	So     *string           `parquet:"so,optional"`
	Enum   string            `parquet:"enum,enum"`
	Json   []byte            `parquet:"json,json"`
	Raw    []byte            `parquet:"raw"`
	Fix    [5]byte           `parquet:"fix"`
	Uuid   [16]byte          `parquet:"uuid,uuid"`
	Date   int32             `parquet:"date,date"`
	Ts     time.Time         `parquet:"ts,timestamp(microsecond)"`
	Dec    int64             `parquet:"dec,decimal(2:15)"`
	Many   []int32           `parquet:"many"`
	List   []string          `parquet:"list,list"`
	Inner  inner             `parquet:"inner"`
	Innero *inner            `parquet:"innero,optional"`
	Inners []inner           `parquet:"inners"`
	Map    map[string]int64  `parquet:"map"`
	Maps   map[int32][]inner `parquet:"maps"`
}

func random(r *rand.Rand) row {
	text := func() string {
		return []string{"", "a", "Grüße", "twelve bytes", "thirteen bytes", fmt.Sprint("text no. ", r.Intn(100000))}[r.Intn(6)]
	}
	in := func() inner {
		in := inner{A: int32(r.Uint32())}
		if r.Intn(3) > 0 {
			t := text()
			in.B = &t
		}
		for n := r.Intn(4); n > 0; n-- {
			in.C = append(in.C, int64(r.Uint64()))
			in.D = append(in.D, text())
		}
		return in
	}
	v := row{
		B: r.Intn(2) == 0, I: int32(r.Intn(5)), L: int64(r.Uint64()), F: []float32{float32(math.NaN()), -0.0, r.Float32()}[r.Intn(3)],
		D: r.NormFloat64(), I8: int8(r.Intn(256)), U8: uint8(r.Intn(256)), U32: r.Uint32(), U64: r.Uint64(),
		S: text(), Enum: []string{"ONE", "TWO"}[r.Intn(2)], Json: []byte(fmt.Sprintf("{\"a\": %d}", r.Intn(9))), Raw: []byte(text()),
		Date: int32(r.Intn(40000) - 20000), Ts: time.UnixMicro(r.Int63n(1 << 52)).UTC(), Dec: r.Int63n(1e15),
		Inner: in(), Map: map[string]int64{}, Maps: map[int32][]inner{},
	}
	v.I96 = deprecated.Int96{uint32(r.Intn(1 << 30)), uint32(r.Intn(10000)), uint32(2440588 + r.Intn(9999))}
	r.Read(v.Fix[:])
	r.Read(v.Uuid[:])
	if r.Intn(3) > 0 {
		i, t, in := int32(r.Intn(7)), text(), in()
		v.Io, v.So, v.Innero = &i, &t, &in
	}
	for n := r.Intn(4); n > 0; n-- {
		v.Many = append(v.Many, int32(r.Intn(100)))
		v.List = append(v.List, text())
		v.Inners = append(v.Inners, in())
		v.Map[fmt.Sprint("k", n)] = int64(n)
		v.Maps[int32(n)] = []inner{in(), in()}
	}
	return v
}

func write(path string, rows int, options ...parquet.WriterOption) {
	r := rand.New(rand.NewSource(7))
	file, err := os.Create(path)
	check(err)
	defer file.Close()
	writer := parquet.NewGenericWriter[row](file, options...)
	for range rows {
		_, err := writer.Write([]row{random(r)})
		check(err)
	}
	check(writer.Close())
}

func withParquetGo(out string) {
	file := func(name string) string { return filepath.Join(out, name+".parquet") }
	codecs := map[string]compress.Codec{
		"uncompressed": &parquet.Uncompressed, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "brotli": &parquet.Brotli,
		"zstd": &parquet.Zstd, "lz4_raw": &parquet.Lz4Raw,
	}
	for name, codec := range codecs {
		write(file("v1_"+name), 15, parquet.Compression(codec), parquet.DataPageVersion(1))
		write(file("v2_"+name), 15, parquet.Compression(codec), parquet.DataPageVersion(2))
	}
	delta := parquet.WriterOption(&parquet.WriterConfig{Encodings: map[parquet.Kind]encoding.Encoding{
		parquet.Boolean: &parquet.RLE, parquet.Int32: &parquet.DeltaBinaryPacked, parquet.Int64: &parquet.DeltaBinaryPacked,
		parquet.ByteArray: &parquet.DeltaByteArray, parquet.FixedLenByteArray: &parquet.DeltaByteArray,
		parquet.Float: &parquet.ByteStreamSplit, parquet.Double: &parquet.ByteStreamSplit,
	}})
	lengths := parquet.WriterOption(&parquet.WriterConfig{Encodings: map[parquet.Kind]encoding.Encoding{
		parquet.ByteArray: &parquet.DeltaLengthByteArray, parquet.Int32: &parquet.ByteStreamSplit, parquet.Int64: &parquet.ByteStreamSplit,
		parquet.FixedLenByteArray: &parquet.ByteStreamSplit,
	}})
	dictionary := parquet.WriterOption(&parquet.WriterConfig{Encodings: map[parquet.Kind]encoding.Encoding{
		parquet.Int32: &parquet.RLEDictionary, parquet.Int64: &parquet.RLEDictionary, parquet.Float: &parquet.RLEDictionary,
		parquet.Double: &parquet.RLEDictionary, parquet.ByteArray: &parquet.RLEDictionary,
		parquet.FixedLenByteArray: &parquet.RLEDictionary, parquet.Int96: &parquet.RLEDictionary,
	}})
	plainDictionary := parquet.WriterOption(&parquet.WriterConfig{Encodings: map[parquet.Kind]encoding.Encoding{
		parquet.Int32: &parquet.PlainDictionary, parquet.ByteArray: &parquet.PlainDictionary,
	}})
	for name, encodings := range map[string]parquet.WriterOption{
		"delta": delta, "lengths": lengths, "dictionary": dictionary, "plain_dictionary": plainDictionary,
	} {
		for version := 1; version <= 2; version++ {
			write(file(fmt.Sprintf("%s_v%d", name, version)), 15, encodings, parquet.DataPageVersion(version))
			write(file(fmt.Sprintf("%s_v%d_small_pages", name, version)), 20, encodings, parquet.DataPageVersion(version),
				parquet.PageBufferSize(100), parquet.Compression(&parquet.Zstd), parquet.DictionaryMaxBytes(100))
		}
	}
	write(file("no_rows"), 0)
	write(file("one_row"), 1)
	write(file("row_groups"), 20, parquet.MaxRowsPerRowGroup(3), parquet.KeyValueMetadata("k", "v"))
	write(file("statistics"), 15, parquet.DataPageStatistics(true), parquet.DeprecatedDataPageStatistics(true),
		parquet.BloomFilters(parquet.SplitBlockFilter(10, "s"), parquet.SplitBlockFilter(10, "u64")),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("i"), parquet.Descending("s"))))
	group := parquet.Group{
		"interval": parquet.Optional(parquet.IntervalNode()), "bson": parquet.Optional(parquet.BSON()),
		"geo": parquet.Optional(parquet.Geometry("EPSG:4326")), "time": parquet.Time(parquet.Nanosecond),
		"null": parquet.Optional(parquet.Leaf(parquet.ByteArrayType)),
	}
	f, err := os.Create(file("odd_types"))
	check(err)
	writer := parquet.NewGenericWriter[any](f, parquet.NewSchema("odd", group))
	schema := parquet.NewSchema("odd", group)
	for n := range 10 {
		var r parquet.Row
		for column, path := range schema.Columns() {
			value := parquet.NullValue().Level(0, 0, column)
			switch path[0] {
			case "time":
				value = parquet.Int64Value(int64(n)).Level(0, 0, column)
			case "interval":
				value = parquet.FixedLenByteArrayValue([]byte("0123456789ab")).Level(0, 1, column)
			case "bson":
				if n%2 == 0 {
					value = parquet.ByteArrayValue([]byte{5, 0, 0, 0, 0}).Level(0, 1, column)
				}
			case "geo":
				point := []byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(n), 0, 0, 0, 0, 0, 0, 0, 0x40}
				value = parquet.ByteArrayValue(point).Level(0, 1, column)
			}
			r = append(r, value)
		}
		_, err := writer.WriteRows([]parquet.Row{r})
		check(err)
	}
	check(writer.Close())
	check(f.Close())
}
