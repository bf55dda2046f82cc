//! Some columns by name, and the first rows: `cargo run --example project -- trips.parquet id,place.lat`.

use std::env;

use marquetry::batch::Values;

fn main() -> marquetry::Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "trips.parquet".into());
    let names = arguments.next().unwrap_or_else(|| "id".into());
    let trips = marquetry::open(path)?.columns(names.split(','))?.limit(3);
    println!("{} of {} rows", trips.names().join(", "), trips.rows().unwrap_or(0));
    for batch in trips.batches()? {
        for column in &batch?.columns {
            let path = trips.schema().leaf_path(column.leaf);
            match &column.values {
                Values::Int64(numbers) => println!("{path}: {:?}", &numbers[..]),
                Values::Double(numbers) => println!("{path}: {:?}", &numbers[..]),
                other => println!("{path}: {} values", other.len()),
            }
        }
    }
    Ok(())
}
