//! The mappings to Parquet, of all SSTables.

use std::sync::Arc;

use marquetry_base::{Budget, Limits};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{
    MapStep, Mapper, MapperOptions, MutationMapping, Present, UnmapStep, Unmapper,
};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{Cells, Continues, EntryKind, Expiry, MutationBatch};

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

/// Makes writes again.
pub(crate) fn unmapped(
    unmapper: &mut Unmapper,
    batches: Vec<Batch>,
    budget_units: u64,
) -> Vec<MutationBatch> {
    let mut batches = batches.into_iter();
    let mut made = Vec::new();
    loop {
        match unmapper.step(&mut Budget::new(budget_units)).unwrap() {
            UnmapStep::Ready(batch) => made.push(batch),
            UnmapStep::Need => match batches.next() {
                Some(batch) => unmapper.feed(batch).unwrap(),
                None => unmapper.finish(),
            },
            UnmapStep::Yield => {}
            UnmapStep::Done => return made,
        }
    }
}

/// What is in batches, as lines, wherever they end.
pub(crate) fn lines(batches: &[MutationBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut row: Option<(String, Vec<String>)> = None;
    let mut was_open = false;
    for batch in batches {
        assert_eq!(batch.continues != Continues::Nothing, was_open, "{:?}", batch.continues);
        was_open = batch.is_open;
        for partition in 0..batch.partitions.ends.len() {
            if partition > 0 || batch.continues == Continues::Nothing {
                end_row(&mut row, &mut lines);
                let key = batch.partitions.keys.get(partition).unwrap();
                let deletion = batch.partitions.deletions.get(partition as u32);
                lines.push(format!("partition {key:02x?} {deletion:?}"));
            }
            for entry in batch.entries_of(partition) {
                if entry > 0 || batch.continues != Continues::Entry {
                    end_row(&mut row, &mut lines);
                    row = Some((head(batch, entry), vec![String::new(); batch.columns.len()]));
                }
                let (_, columns) = row.as_mut().unwrap();
                for (cells, line) in batch.columns.iter().zip(columns) {
                    add_cells(batch, cells, entry, line);
                }
            }
        }
    }
    end_row(&mut row, &mut lines);
    lines
}

fn end_row(row: &mut Option<(String, Vec<String>)>, lines: &mut Vec<String>) {
    if let Some((head, columns)) = row.take() {
        lines.push(head);
        let named = columns.into_iter().enumerate().filter(|(_, line)| !line.is_empty());
        lines.extend(named.map(|(column, line)| format!("  {column}:{line}")));
    }
}

fn head(batch: &MutationBatch, entry: usize) -> String {
    let (entries, at) = (&batch.entries, entry as u32);
    let mut clustering = Vec::new();
    let prefix = entries.prefixes.get(at).map_or(usize::MAX, |prefix| prefix as usize);
    if entries.kinds[entry] != EntryKind::Static {
        for (number, column) in entries.clustering.iter().enumerate().take(prefix) {
            let mut bytes = Vec::new();
            if column.nulls.contains(&at) {
                clustering.push(None);
                continue;
            }
            if !column.empties.contains(&at) {
                column.values.append_bytes(entry, &mut bytes);
            }
            assert!(number < prefix);
            clustering.push(Some(bytes));
        }
    }
    format!(
        "{:?} {clustering:02x?} {} {:?} {:?} {:?} {:?}",
        entries.kinds[entry],
        entries.timestamps[entry],
        entries.expiries.get(at),
        entries.deletions.get(at),
        entries.starts.get(at),
        entries.shadowables.get(at),
    )
}

fn add_cells(batch: &MutationBatch, cells: &Cells, entry: usize, line: &mut String) {
    let at = entry as u32;
    let add = |line: &mut String, text: String| line.push_str(&text);
    if let Some(deletion) = cells.deletions.get(at) {
        add(line, format!(" deleted {deletion:?}"));
    }
    let start = cells.entries.partition_point(|it| *it < at);
    for cell in (start..cells.len()).take_while(|cell| cells.entries[*cell] == at) {
        let number = cell as u32;
        let time = cells.timestamps.get(number).unwrap_or(batch.entries.timestamps[entry]);
        let of_row = batch.entries.expiries.get(at).unwrap_or(Expiry::NEVER);
        let path = cells.paths.get(cell).map(<[u8]>::to_vec);
        let value = match cells.tombstones.get(number) {
            Some(local) => format!("dead {local}"),
            None if cells.empties.contains(&number) => "empty".to_string(),
            None => {
                let mut value = Vec::new();
                cells.values.append_bytes(cell, &mut value);
                format!("{value:02x?} {:?}", cells.expiries.get(number).unwrap_or(of_row))
            }
        };
        add(line, format!(" [{path:02x?} {time} {value}]"));
    }
}

/// Maps batches, and back, and compares what comes out with them.
pub(crate) fn compare(
    columns: &Arc<TableColumns>,
    present: Present,
    batches: Vec<MutationBatch>,
    units: u64,
) -> Vec<Batch> {
    let mut options = MapperOptions::default();
    options.present = present;
    let mut mapper = Mapper::new(MutationMapping::Full, Arc::clone(columns), &options).unwrap();
    let expected = lines(&batches);
    let made = mapped(&mut mapper, batches, units);
    let mut unmapper = Unmapper::new(Arc::clone(columns), mapper.schema(), Limits::DEFAULT).unwrap();
    let found = lines(&unmapped(&mut unmapper, made.clone(), units));
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "line {at}");
    }
    assert_eq!(found.len(), expected.len());
    // Batches that end elsewhere bring the same.
    let slices = made.iter().flat_map(|batch| {
        let ends = (0..batch.rows).step_by(7).map(|start| start..batch.rows.min(start + 7));
        ends.map(|rows| batch.slice(rows)).collect::<Vec<_>>()
    });
    let mut unmapper = Unmapper::new(Arc::clone(columns), mapper.schema(), Limits::DEFAULT).unwrap();
    assert_eq!(lines(&unmapped(&mut unmapper, slices.collect(), units)), found);
    made
}

#[test]
fn every_sstable_is_the_same_after_a_full_mapping_and_back() {
    let Some(all) = fixtures() else { return };
    for path in all {
        println!("{}", name_of(&path));
        let (columns, present, batches) = read(&Files::open(&path));
        let columns = Arc::new(columns);
        let made = compare(&columns, present, batches.clone(), 150_000);
        let rows: usize = made.iter().map(|batch| batch.rows).sum();
        assert!(rows > 0 || batches.is_empty());
        assert_eq!(
            compare(&columns, Present::ALL, batches, 0).iter().map(|batch| batch.rows).sum::<usize>(),
            rows
        );
    }
}
