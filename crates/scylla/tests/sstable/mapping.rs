//! The mappings to Parquet, of all SSTables.

use std::sync::Arc;

use marquetry_base::Budget;
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{MapStep, Mapper, MapperOptions, MutationMapping, Present};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::MutationBatch;

use crate::files::Files;
use crate::{fixtures, name_of};

/// Maps all batches.
pub(crate) fn mapped(mapper: &mut Mapper, batches: Vec<MutationBatch>, budget_units: u64) -> Vec<Batch> {
    let mut batches = batches.into_iter();
    let mut made = Vec::new();
    loop {
        match mapper.step(&mut Budget::new(budget_units)).unwrap() {
            MapStep::Ready(batch) => {
                batch.check(mapper.schema()).unwrap();
                made.push(batch);
            }
            MapStep::Need => match batches.next() {
                Some(batch) => mapper.feed(batch).unwrap(),
                None => mapper.finish(),
            },
            MapStep::Yield => {}
            MapStep::Done => return made,
        }
    }
}

/// What is in an SSTable.
pub(crate) fn read(files: &Files) -> (TableColumns, Present, Vec<MutationBatch>) {
    let statistics = files.read_statistics().unwrap();
    let columns = TableColumns::new(&[&statistics.header], None).unwrap();
    let mut batches = Vec::new();
    files.read(&statistics, |batch| batches.push(batch.clone())).unwrap();
    (columns, Present::of([&statistics.stats]), batches)
}

#[test]
fn every_sstable_has_a_full_mapping() {
    let Some(all) = fixtures() else { return };
    for path in all {
        let (columns, present, batches) = read(&Files::open(&path));
        let mut options = MapperOptions::default();
        options.present = present;
        let columns = Arc::new(columns);
        let mut mapper = Mapper::new(MutationMapping::Full, Arc::clone(&columns), &options)
            .unwrap_or_else(|error| panic!("{}: {error}", name_of(&path)));
        let rows: usize = mapped(&mut mapper, batches.clone(), 150_000).iter().map(|batch| batch.rows).sum();
        assert!(rows > 0 || batches.is_empty(), "{}", name_of(&path));
        // Any budget brings the same.
        let mut mapper = Mapper::new(MutationMapping::Full, columns, &options).unwrap();
        assert_eq!(mapped(&mut mapper, batches, 0).iter().map(|batch| batch.rows).sum::<usize>(), rows);
    }
}
