package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowparquet "github.com/apache/arrow-go/v18/parquet"
	arrowcompress "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func withArrowGo(in, out string) {
	type option = arrowparquet.WriterProperty
	ways := map[string][]option{
		"default": {},
		"v2_zstd": {arrowparquet.WithDataPageVersion(arrowparquet.DataPageV2), arrowparquet.WithCompression(arrowcompress.Codecs.Zstd)},
		"v1_brotli_plain": {arrowparquet.WithDictionaryDefault(false), arrowparquet.WithCompression(arrowcompress.Codecs.Brotli),
			arrowparquet.WithDataPageSize(100), arrowparquet.WithBatchSize(3)},
		"v2_lz4_pages": {arrowparquet.WithDataPageVersion(arrowparquet.DataPageV2), arrowparquet.WithCompression(arrowcompress.Codecs.Lz4Raw),
			arrowparquet.WithDataPageSize(64), arrowparquet.WithDictionaryPageSizeLimit(50), arrowparquet.WithBatchSize(2)},
		"v1_gzip_groups": {arrowparquet.WithMaxRowGroupLength(7), arrowparquet.WithCompression(arrowcompress.Codecs.Gzip),
			arrowparquet.WithPageIndexEnabled(true), arrowparquet.WithBloomFilterEnabled(true)},
		"v2_snappy_groups": {arrowparquet.WithMaxRowGroupLength(11), arrowparquet.WithCompression(arrowcompress.Codecs.Snappy),
			arrowparquet.WithDataPageVersion(arrowparquet.DataPageV2), arrowparquet.WithStats(false)},
		"v1_0": {arrowparquet.WithVersion(arrowparquet.V1_0), arrowparquet.WithStoreDecimalAsInteger(true)},
	}
	inputs, err := filepath.Glob(filepath.Join(in, "*.arrow"))
	check(err)
	for _, input := range inputs {
		for way, options := range ways {
			name := strings.TrimSuffix(filepath.Base(input), ".arrow") + "--" + way + ".parquet"
			if err := arrowGoFile(input, filepath.Join(out, name), options); err != nil {
				fmt.Println("not written:", name, err)
				os.Remove(filepath.Join(out, name))
			}
		}
	}
}

func arrowGoFile(input, output string, options []arrowparquet.WriterProperty) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	in, err := os.Open(input)
	if err != nil {
		return err
	}
	defer in.Close()
	reader, err := ipc.NewFileReader(in)
	if err != nil {
		return err
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	properties := arrowparquet.NewWriterProperties(options...)
	writer, err := pqarrow.NewFileWriter(reader.Schema(), out, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return err
	}
	for batch := range reader.NumRecords() {
		record, err := reader.RecordBatch(batch)
		if err != nil {
			return err
		}
		if err := writer.Write(record); err != nil {
			return err
		}
	}
	return writer.Close()
}
