//! All rows of a file, a directory, or a pattern: `cargo run --example read -- trips.parquet`.

use std::env;

fn main() -> marquetry::Result<()> {
    let path = env::args_os().nth(1).unwrap_or_else(|| "trips.parquet".into());
    let mut rows = 0;
    for batch in marquetry::open(path)?.batches()? {
        rows += batch?.rows;
    }
    println!("{rows} rows");
    Ok(())
}
