//! A Parquet file made of Arrow's record batches: `cargo run --features arrow --example from_arrow -- fares.parquet`.

use std::env;
use std::error::Error;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).unwrap_or_else(|| "fares.parquet".into());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    let fares: ArrayRef = Arc::new(Float64Array::from_iter_values((0..1_000).map(f64::from)));
    let batch = RecordBatch::try_from_iter([("id", ids), ("fare", fares)])?;
    let mut writer = marquetry::create_arrow(path, &batch.schema())?;
    writer.write_arrow(&batch)?;
    println!("{} rows", writer.finish()?.rows);
    Ok(())
}
