// Command files writes Parquet files with two Go writers that are kept up no more, into a folder each of OUT.
//
//	go run . OUT
package main

import (
	"os"
	"path/filepath"
)

func main() {
	out := os.Args[1]
	for _, folder := range []string{"xitongsys", "fraugster"} {
		check(os.MkdirAll(filepath.Join(out, folder), 0o755))
	}
	withXitongsys(filepath.Join(out, "xitongsys"))
	withFraugster(filepath.Join(out, "fraugster"))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
