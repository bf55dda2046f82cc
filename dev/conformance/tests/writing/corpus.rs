//! Every file of the corpus that is read is written, and read again, the same: by us and by parquet-rs.

use marquetry_base::Bytes;
use marquetry_base::{Codec, ErrorKind};
use marquetry_conformance::canonical;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::parquet_rs;
use marquetry_parquet::batch::Layout;
use marquetry_parquet::format::Compression;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::write::{ColumnOptions, PageVersion, WriteOptions};

use crate::rewritten::rewrite;

/// Files up to this size are written in the hardest manner, too.
const DISORDERLY_FILE_BYTES_MAX: u64 = 20_000;

#[test]
fn files_of_the_corpus() {
    let Some(corpus) = files::corpus() else { return };
    let folders = [
        "parquet-testing/data",
        "parquet-testing/data/geospatial",
        "parquet-testing/shredded_variant",
        "real",
    ];
    let (mut count, mut before, mut after, mut columns) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for path in folders.iter().flat_map(|folder| files::parquet_files(&corpus.join(folder))) {
        let length = std::fs::metadata(&path).unwrap().len();
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
        let zstd = ColumnOptions { compression: Compression::Codec(Codec::Zstd), ..ColumnOptions::default() };
        let ways = [
            (ReadOptions { layout: Layout::Dense, ..ReadOptions::default() }, WriteOptions::default()),
            (
                ReadOptions { keep_dictionaries: true, ..ReadOptions::default() },
                WriteOptions { column: zstd, page_version: PageVersion::V2, ..WriteOptions::default() },
            ),
        ];
        for (number, (read, write)) in ways.into_iter().enumerate() {
            let is_small = length <= DISORDERLY_FILE_BYTES_MAX && number == 1;
            let manner = if is_small { Manner::DISORDERLY } else { Manner::KIND };
            match rewrite(&bytes, read, write, manner) {
                Ok(file) => {
                    let again = canonical::metadata(&file, Manner::KIND).unwrap();
                    match parquet_rs::values::compare(&file, &again) {
                        Ok(read) => columns += read,
                        Err(error) => wrong.push(format!("{}: {error}", path.display())),
                    }
                    if number == 0 {
                        (count, before, after) = (count + 1, before + bytes.len(), after + file.len());
                    }
                }
                // What is not read, or has a logical type that is not known, is another test's matter.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Unsupported | ErrorKind::Corrupt | ErrorKind::LimitExceeded
                    ) =>
                {
                    println!("{}: {error}", path.display());
                }
                Err(error) => panic!("{}, of {} rows: {error:?}", path.display(), metadata.rows),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{count} files of {before} bytes, by us {after}; {columns} columns as parquet-rs reads them");
    assert!(count > 90 && columns > 1000, "{count} files, {columns} columns");
}
