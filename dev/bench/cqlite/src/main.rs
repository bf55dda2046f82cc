//! cqlite-core's own scan of an SSTable: `bench-sstable-cqlite DATA.DB SCHEMA.CQL ROUNDS THREADS` prints rows, and the seconds of each round.
//!
//! Of its ways to read all rows this is the fastest that was found: its stream of batches, on a runtime that has as many threads as it may use.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cqlite_core::storage::sstable::reader::open_sstable_reader;
use cqlite_core::types::TableId;
use cqlite_core::{Config, Platform};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, schema, rounds, threads] = arguments.as_slice() else {
        return Err("DATA.DB SCHEMA.CQL ROUNDS THREADS".into());
    };
    let schema = cqlite_core::schema::cql_parser::parse_cql_schema(&std::fs::read_to_string(schema)?)?;
    let (rounds, threads): (u32, usize) = (rounds.parse()?, threads.parse()?);
    let runtime = if threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?
    };
    runtime.block_on(async {
        let mut count = 0;
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            let config = Config::default();
            let platform = Arc::new(Platform::new(&config).await?);
            let reader = Arc::new(open_sstable_reader(Path::new(data), &config, platform).await?);
            let table = TableId::from(format!("{}.{}", schema.keyspace, schema.table).as_str());
            let mut batches = reader.scan_stream_batched(table, None, None, Some(schema.clone()), 4096);
            count = 0;
            while let Some(batch) = batches.recv().await {
                count += batch?.len();
            }
            seconds.push(start.elapsed().as_secs_f64().to_string());
        }
        println!("{count} {}", seconds.join(" "));
        Ok(())
    })
}
