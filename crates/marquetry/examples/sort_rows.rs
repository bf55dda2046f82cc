//! More rows than memory holds, in order, verified: `cargo run --example sort_rows -- trips/ sorted.parquet 'fare desc'`.

use std::env;

use marquetry::tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry::tables::{CopyOptions, SortBy, copy};

fn main() -> marquetry::Result<()> {
    let mut arguments = env::args().skip(1);
    let from = arguments.next().unwrap_or_else(|| "trips/".into());
    let to = arguments.next().unwrap_or_else(|| "sorted.parquet".into());
    let by = arguments.next().unwrap_or_else(|| "fare desc, id".into());

    let trips = marquetry::open(from)?;
    let mut options = CopyOptions::default();
    options.sort = SortBy::resolve(&SortBy::parse_list(&by)?, trips.schema())?;
    options.memory_bytes = 64 << 20;
    options.verify = true;
    let mut file = NewParquetFile::new(to, ParquetOptions::default())?;
    let copied = copy(trips.source(), &mut file, &options, &mut |_| {})?;
    println!("{} rows sorted by {by}", copied.rows);
    Ok(())
}
