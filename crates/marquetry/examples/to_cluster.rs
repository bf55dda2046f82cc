//! Files into a table of a live cluster, which is made:
//! `cargo run --example to_cluster --features cluster -- trips/ cql://localhost/ks.trips 'city, id'`.

use std::env;
use std::error::Error;

use marquetry::cluster::{CqlOptions, CqlTable};
use marquetry::scylla::bridge::MappingOptions;
use marquetry::scylla::cql::KeySpec;
use marquetry::tables::{CopyOptions, Destination, copy};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let from = arguments.next().unwrap_or_else(|| "trips/".into());
    let to = arguments.next().unwrap_or_else(|| "cql://localhost/ks.trips".into());
    let key = arguments.next().unwrap_or_else(|| "id".into());

    let trips = marquetry::open(from)?;
    // Partitions by the first column, rows in the order of the others; each column has the CQL type that holds its values.
    let mapping = MappingOptions { key: Some(KeySpec::parse(&key)?), ..MappingOptions::default() };
    let mut table = CqlTable::new(to.parse()?, CqlOptions::create(mapping));
    let copied = copy(trips.source(), &mut table, &CopyOptions::default(), &mut |copied| {
        eprint!("\r{} rows", copied.written.rows);
    });
    // Rows of a live table cannot be taken back: after an error, these are there.
    let loaded = table.progress().unwrap_or_default();
    eprintln!("\r{} rows are in {}, {} were sent again", loaded.rows, table.address(), loaded.retries);
    copied?;
    Ok(())
}
