//! A host for tests: a whole file in memory, and no codecs.

use marquetry_base::{Budget, Bytes, Codec, Codecs, Decompressor, Error, Machine, Result, Step, Want};

/// For files that are not compressed.
pub(crate) struct NoCodecs;

impl Codecs for NoCodecs {
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>> {
        Err(Error::unsupported(codec.name()))
    }
}

/// All that a machine makes of a file, in steps of so many units.
pub(crate) fn products<M: Machine>(machine: &mut M, file: &Bytes, units: u64) -> Result<Vec<M::Product>> {
    let mut products = Vec::new();
    loop {
        match machine.step(&mut Budget::new(units))? {
            Step::Ready(product) => products.push(product),
            Step::Done => return Ok(products),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => machine.supply_length(object, file.len() as u64)?,
                        Want::Range(object, range, _) => {
                            let at = |offset| usize::try_from(offset).unwrap();
                            let bytes = file.slice(at(range.start)..at(range.end));
                            machine.supply(object, range, bytes)?;
                        }
                    }
                }
            }
            Step::Append(..) | Step::Yield => {}
        }
    }
}
