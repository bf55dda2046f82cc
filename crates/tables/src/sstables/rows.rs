//! The rows of some partitions, out of all SSTables that have them; or of all that is made of SSTables.

use std::ops::RangeInclusive;
use std::sync::Arc;

use marquetry_base::{Budget, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{MapStep, Mapper, MapperOptions, MutationMapping, Present};
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::merge::{Liveness, MergeOptions, MergeStep, Merger, Partitioner, Ties};
use marquetry_scylla::sstable::{ColumnMap, TableColumns};

use super::SstablesOf;
use super::scan::Scan;
use crate::subject::named;
use crate::{Batches, Cancel, LostValues, PieceOptions, Portions, spaced};

/// How writes become rows: the same for all pieces.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    pub(super) kind: MutationMapping,
    pub(super) columns: Arc<TableColumns>,
    pub(super) options: MapperOptions,
    /// Seconds since 1970, for the logical mapping.
    pub(super) at: u32,
}

/// The writes of an SSTable, or of what was made of one, in their order; of the table that they are read as.
pub(super) trait Writes: Send {
    /// The next batch.
    ///
    /// # Errors
    ///
    /// Why there is none, with the object that they are read from.
    fn next(&mut self) -> Result<Option<MutationBatch>>;

    /// Gives a batch back, to be filled again.
    fn recycle(&mut self, batch: MutationBatch);

    /// The object.
    fn name(&self) -> &str;
}

impl Mapping {
    pub(super) fn new(kind: MutationMapping, of: &SstablesOf, at: u32) -> Mapping {
        let mut options = MapperOptions::default();
        options.present = Present::of(of.sstables.iter().map(|sstable| &sstable.statistics.stats));
        options.limits = of.limits;
        Mapping { kind, columns: Arc::new(of.defined.columns.clone()), options, at }
    }

    pub(super) fn mapper(&self) -> Result<Mapper> {
        Mapper::new(self.kind, Arc::clone(&self.columns), &self.options)
    }
}

/// The rows of a piece.
pub(super) struct Rows {
    name: String,
    inputs: Vec<Box<dyn Writes>>,
    merger: Option<Merger>,
    mapper: Mapper,
    /// Taken while the next rows are made; not there any more after an error.
    portions: Option<Portions>,
    cancel: Cancel,
    lost: LostValues,
}

/// An SSTable.
struct Input {
    scan: Scan,
    map: ColumnMap,
}

impl Rows {
    /// Opens those SSTables that have partitions with these tokens.
    pub(super) fn open(
        of: &SstablesOf,
        name: &str,
        mapping: &Mapping,
        tokens: Option<&RangeInclusive<i64>>,
        options: &PieceOptions,
    ) -> Result<Rows> {
        let mut inputs: Vec<Box<dyn Writes>> = Vec::new();
        for sstable in &of.sstables {
            options.cancel.check()?;
            let places = (&options.cancel, &options.bytes_read);
            if let Some(scan) = Scan::open(&of.store, sstable, of.limits, tokens, places)? {
                let map = mapping.columns.index_of(&sstable.statistics.header);
                inputs.push(Box::new(Input { map: map.map_err(|error| scan.named(error))?, scan }));
            }
        }
        let is_logical = mapping.kind == MutationMapping::Logical;
        let merging = if inputs.len() > 1 || is_logical {
            let mut merging = MergeOptions::default();
            merging.live_at = is_logical.then_some(mapping.at);
            merging.limits = of.limits;
            merging.liveness = of.defined.liveness.unwrap_or(match of.is_of_scylla() {
                true => Liveness::Anything,
                false => Liveness::NotMoved,
            });
            merging.ties = match of.is_of_scylla() {
                true => Ties::LowerTtl,
                false => Ties::GreaterValue,
            };
            let class = of.sstables.first().map_or("", |sstable| &sstable.statistics.partitioner);
            merging.partitioner = match inputs.len() {
                // What only one SSTable has need not be compared.
                0 | 1 => Partitioner::of_class(class).unwrap_or(Partitioner::Other),
                _ => Partitioner::of_class(class).map_err(|error| named(error, name))?,
            };
            Some(merging)
        } else {
            None
        };
        Rows::of(name, mapping, inputs, merging, options)
    }

    /// The rows of these writes, merged if that is said. Of several inputs it must be.
    pub(super) fn of(
        name: &str,
        mapping: &Mapping,
        inputs: Vec<Box<dyn Writes>>,
        merging: Option<MergeOptions>,
        options: &PieceOptions,
    ) -> Result<Rows> {
        let merger = |merging| Merger::new(Arc::clone(&mapping.columns), inputs.len(), merging);
        let merger = merging.map(merger).transpose().map_err(|error| named(error, name))?;
        Ok(Rows {
            name: name.to_owned(),
            inputs,
            merger,
            mapper: mapping.mapper()?,
            portions: Some(Portions::new(options)),
            cancel: options.cancel.clone(),
            lost: options.lost.clone(),
        })
    }

    /// The next rows of Parquet.
    fn next_mapped(&mut self) -> Result<Option<Batch>> {
        loop {
            self.cancel.check()?;
            let step = self.mapper.step(&mut Budget::unlimited());
            match step.map_err(|error| self.named(error))? {
                MapStep::Ready(batch) => {
                    self.lost.add_all(self.mapper.take_lost());
                    return Ok(Some(spaced(batch)));
                }
                MapStep::Need => {
                    self.recycle();
                    match self.next_mutations()? {
                        Some(batch) => self.mapper.feed(batch).map_err(|error| self.named(error))?,
                        None => self.mapper.finish(),
                    }
                }
                MapStep::Yield => {}
                MapStep::Done => return Ok(None),
            }
        }
    }

    /// The next writes, of all SSTables.
    fn next_mutations(&mut self) -> Result<Option<MutationBatch>> {
        let Rows { inputs, merger, name, .. } = self;
        let Some(merger) = merger else {
            return inputs.first_mut().map_or(Ok(None), |only| only.next());
        };
        loop {
            match merger.step(&mut Budget::unlimited()).map_err(|error| named(error, name))? {
                MergeStep::Ready(batch) => return Ok(Some(batch)),
                MergeStep::Need(number) => {
                    let Some(input) = inputs.get_mut(number) else {
                        return Err(Error::internal("a merger asks for an SSTable that it was not told of"));
                    };
                    if let Some(spent) = merger.take_spent() {
                        input.recycle(spent);
                    }
                    match input.next()? {
                        Some(batch) => merger.feed(number, batch).map_err(|error| named(error, name))?,
                        None => merger.finish(number),
                    }
                }
                MergeStep::Yield => {}
                MergeStep::Done => return Ok(None),
            }
        }
    }

    /// Gives the arrays that were mapped back to where they are filled again.
    fn recycle(&mut self) {
        let Some(batch) = self.mapper.recycle() else { return };
        match (&mut self.merger, self.inputs.first_mut()) {
            (Some(merger), _) => merger.recycle(batch),
            (None, Some(input)) => input.recycle(batch),
            (None, None) => {}
        }
    }

    /// An error of what is in the SSTables: of the only one, or of all.
    fn named(&self, error: Error) -> Error {
        match &*self.inputs {
            [only] => named(error, only.name()),
            _ => named(error, &self.name),
        }
    }
}

impl Batches for Rows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(mut portions) = self.portions.take() else { return Ok(None) };
        let next = portions.next(|| self.next_mapped())?;
        self.portions = Some(portions);
        Ok(next)
    }
}

impl Writes for Input {
    fn next(&mut self) -> Result<Option<MutationBatch>> {
        let Some(batch) = self.scan.next()? else { return Ok(None) };
        self.map.apply(batch).map(Some).map_err(|error| self.scan.named(error))
    }

    fn recycle(&mut self, batch: MutationBatch) {
        if self.map.is_same() {
            self.scan.recycle(batch);
        }
    }

    fn name(&self) -> &str {
        self.scan.name()
    }
}
