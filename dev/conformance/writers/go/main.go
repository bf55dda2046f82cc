// Command files writes Parquet files with parquet-go and Arrow Go, into a folder each of OUT. Arrow Go writes the tables of the
// *.arrow files in IN, in several ways each; python/arrow_tables.py makes some.
//
//	go run . OUT IN
package main

import (
	"os"
	"path/filepath"
)

func main() {
	out, in := os.Args[1], os.Args[2]
	for _, folder := range []string{"parquet-go", "arrow-go"} {
		check(os.MkdirAll(filepath.Join(out, folder), 0o755))
	}
	withParquetGo(filepath.Join(out, "parquet-go"))
	withArrowGo(in, filepath.Join(out, "arrow-go"))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
