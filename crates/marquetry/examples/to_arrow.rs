//! Two columns as Arrow's record batches: `cargo run --features arrow --example to_arrow -- trips.parquet`.

use std::env;
use std::error::Error;

use arrow_array::RecordBatchReader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).unwrap_or_else(|| "trips.parquet".into());
    let batches = marquetry::open(path)?.columns(["id", "fare"])?.record_batches()?;
    println!("{}", batches.schema());
    for batch in batches {
        println!("{} rows", batch?.num_rows());
    }
    Ok(())
}
