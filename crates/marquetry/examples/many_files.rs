//! Files with different columns as one table, into a directory for each value of a column:
//! `cargo run --example many_files -- 'trips/**/*.parquet' by-city/ city`.

use std::env;

use marquetry::Reader;
use marquetry::tables::files::{Files, FilesOptions};
use marquetry::tables::parquet::{DirectoryOptions, NewParquetDirectory};
use marquetry::tables::{ColumnPath, CopyOptions, copy};

fn main() -> marquetry::Result<()> {
    let mut arguments = env::args().skip(1);
    let from = arguments.next().unwrap_or_else(|| "trips/".into());
    let to = arguments.next().unwrap_or_else(|| "by-city/".into());
    let by = arguments.next().unwrap_or_else(|| "city".into());

    let mut options = FilesOptions::default();
    options.union = true;
    let files = Files::open([from], &options)?;
    for file in files.files() {
        println!("{}: {} rows", file.name(), file.rows().unwrap_or(0));
    }
    let mut options = DirectoryOptions::default();
    options.partition_by = ColumnPath::parse_list(&by)?;
    let mut directory = NewParquetDirectory::new(to, options)?;
    let copied = copy(Reader::of(files).source(), &mut directory, &CopyOptions::default(), &mut |_| {})?;
    println!("{} rows in {} files", copied.rows, copied.written.files);
    Ok(())
}
