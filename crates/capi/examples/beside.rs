//! The same read in Rust as `read.c` does through the C interface: what `make bench-door` compares it with.
//!
//! Files are read range by range, as there, and batches become Arrow's structures, which are dropped.
#![forbid(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array as _, StructArray};
use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Error, Limits, Machine, Object, Priority, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};

/// Steps to a product; `None` at the end.
fn next<M: Machine>(machine: &mut M, file: &File) -> Result<Option<M::Product>> {
    let failed = |error: std::io::Error| Error::io(error.to_string());
    loop {
        match machine.step(&mut Budget::default())? {
            Step::Ready(product) => return Ok(Some(product)),
            Step::Done => return Ok(None),
            Step::Yield => {}
            Step::Append(..) => return Err(Error::internal("a reader that writes")),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => {
                            let length = file.metadata().map_err(failed)?.len();
                            machine.supply_length(object, length)?;
                        }
                        Want::Range(object, range, Priority::Now) => {
                            let length = usize_of(range.end - range.start).unwrap_or_default();
                            let mut bytes = vec![0; length];
                            file.read_exact_at(&mut bytes, range.start).map_err(failed)?;
                            machine.supply(object, range, Bytes::from(bytes))?;
                        }
                        Want::Range(_, _, Priority::Soon) => {}
                    }
                }
            }
        }
    }
}

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| Error::misuse("usage: beside FILE"))?;
    let file = File::open(path).map_err(|error| Error::io(error.to_string()))?;
    let nothing = || Error::internal("a footer of nothing");
    let metadata = next(&mut FooterReader::new(Object(0), Limits::DEFAULT), &file)?.ok_or_else(nothing)?;
    let mut to_arrow = ToArrow::of_file(&metadata, None, ArrowOptions::default())?;
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(Object(0), metadata, codecs, ReadOptions::default())?;
    let mut rows = 0;
    while let Some(batch) = next(&mut reader, &file)? {
        let batch = FFI_ArrowArray::new(&StructArray::from(to_arrow.record_batch(&batch)?).to_data());
        rows += batch.len();
    }
    println!("{rows} rows");
    Ok(())
}
