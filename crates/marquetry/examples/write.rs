//! A Parquet file made of numbers and text: `cargo run --example write -- trips.parquet`.

use std::env;

use marquetry::batch::Batch;
use marquetry::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};

fn main() -> marquetry::Result<()> {
    let path = env::args_os().nth(1).unwrap_or_else(|| "trips.parquet".into());
    let column = |name, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical)).required();
    let schema = Schema::of_fields(&[
        column("id", PhysicalType::Int64, None),
        column("fare", PhysicalType::Double, None),
        column("city", PhysicalType::ByteArray, Some(LogicalType::String)),
    ])?;
    let mut writer = marquetry::create(path, schema)?;
    for day in 0..10 {
        let ids = (0..1_000).map(|trip| day * 1_000 + trip);
        let fares = ids.clone().map(|id| (id % 97) as f64 / 4.0);
        let cities = ids.clone().map(|id| if id % 3 == 0 { "Antwerpen" } else { "Gent" });
        writer.write(Batch::of_values([
            ids.clone().collect::<Vec<i64>>().into(),
            fares.collect::<Vec<f64>>().into(),
            cities.collect(),
        ])?)?;
    }
    let written = writer.finish()?;
    println!("{} rows in {} bytes", written.rows, written.bytes);
    Ok(())
}
