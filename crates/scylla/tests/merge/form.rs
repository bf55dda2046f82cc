//! Partitions of the model as batches, cut anywhere, and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_scylla::sstable::batch::{
    Cells, ClusteringColumn, Continues, Deletion as BatchDeletion, EntryKind, Expiry, MutationBatch,
    NO_TIMESTAMP, Sparse, Strings, Values,
};
use marquetry_scylla::sstable::{TableColumns, murmur3_token};

use crate::craft;
use crate::model::{Cell, Deletion, Life, Marker, Partition, Position, Row, STATIC};

/// The partitions of an SSTable, by token and key.
pub(crate) type Sstable = BTreeMap<(i64, Vec<u8>), Partition>;

/// Two clustering columns, of which the first is descending; static columns and others of all forms.
pub(crate) fn table(is_counter: bool) -> Arc<TableColumns> {
    let clustering = ["ReversedType(org.apache.cassandra.db.marshal.Int32Type)", "Int32Type"];
    let package = "org.apache.cassandra.db.marshal";
    let map = format!("MapType({package}.UTF8Type,{package}.Int32Type)");
    let list = format!("ListType({package}.UTF8Type)");
    let set = format!("SetType({package}.Int32Type)");
    let user = format!("UserType(ks,75,61:{package}.Int32Type,62:{package}.UTF8Type)");
    let statistics = if is_counter {
        craft::statistics(
            "Int32Type",
            &clustering,
            &[("s", "CounterColumnType")],
            &[("c", "CounterColumnType")],
        )
    } else {
        let statics = [("s", "Int32Type"), ("sm", map.as_str())];
        let regulars =
            [("a", "Int32Type"), ("b", "UTF8Type"), ("l", &list), ("m", &map), ("n", &set), ("u", &user)];
        craft::statistics("Int32Type", &clustering, &statics, &regulars)
    };
    Arc::new(TableColumns::new(&[&statistics.header], None).expect("columns"))
}

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Int,
    Text,
    Map,
    List,
    Set,
    User,
}

pub(crate) const FORMS: [Form; 8] =
    [Form::Int, Form::Map, Form::Int, Form::Text, Form::List, Form::Map, Form::Set, Form::User];

pub(crate) fn form(column: usize, is_counter: bool) -> Form {
    if is_counter { Form::Text } else { FORMS[column] }
}

pub(crate) fn is_complex(form: Form) -> bool {
    !matches!(form, Form::Int | Form::Text)
}

/// The columns of the static row, or of others.
pub(crate) fn columns_of(is_static: bool, is_counter: bool) -> std::ops::Range<usize> {
    match (is_static, is_counter) {
        (true, true) => 0..1,
        (false, true) => 1..2,
        (true, false) => 0..2,
        (false, false) => 2..8,
    }
}

/// The bytes of the path with this number: in their order, paths are as their numbers.
fn path(form: Form, number: i64) -> Vec<u8> {
    match form {
        Form::Int | Form::Text => Vec::new(),
        Form::Map => format!("{number:+05}").replace('-', "!").into_bytes(),
        Form::Set => i32::try_from(number).expect("small").to_be_bytes().to_vec(),
        Form::User => u16::try_from(number).expect("small").to_be_bytes().to_vec(),
        Form::List => {
            // Times far from each other, so that their parts must be put together in the right order.
            let time = (u64::try_from(number + 100).expect("small")) << 30;
            let high = time << 32 | (time >> 16) & 0xffff_0000 | 0x1000 | time >> 48;
            let low = 0x8000_0000_0000_0000_u64.to_be_bytes();
            [high.to_be_bytes(), low].concat()
        }
    }
}

fn path_number(form: Form, bytes: &[u8]) -> i64 {
    match form {
        Form::Int | Form::Text => 0,
        Form::Map => std::str::from_utf8(bytes).expect("text").replace('!', "-").parse().expect("a number"),
        Form::Set => i64::from(i32::from_be_bytes(bytes.try_into().expect("four bytes"))),
        Form::User => i64::from(u16::from_be_bytes(bytes.try_into().expect("two bytes"))),
        Form::List => {
            let high = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
            let time = high >> 32 | (high << 16) & 0xffff_0000_0000 | (high & 0xfff) << 48;
            i64::try_from(time >> 30).expect("small") - 100
        }
    }
}

/// A batch with nothing in it.
fn blank(is_counter: bool) -> MutationBatch {
    let mut batch = MutationBatch::default();
    let new = || ClusteringColumn { values: Values::Four(Vec::new()), ..ClusteringColumn::default() };
    batch.entries.clustering = vec![new(), new()];
    let count = if is_counter { 2 } else { FORMS.len() };
    let strings = || Values::Strings(Strings::default());
    for column in 0..count {
        let values = if form(column, is_counter) == Form::Int { Values::Four(Vec::new()) } else { strings() };
        batch.columns.push(Cells { values, ..Cells::default() });
    }
    batch
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("small")
}

fn of(deletion: Deletion) -> BatchDeletion {
    BatchDeletion { timestamp: deletion.0, local_deletion: deletion.1 }
}

fn push_string(strings: &mut Strings, bytes: &[u8]) {
    strings.bytes.extend(bytes);
    strings.ends.push(number(strings.bytes.len()));
}

fn push_value(values: &mut Values, empties: &mut Vec<u32>, at: u32, is_dead: bool, value: &[u8]) {
    match values {
        Values::Four(values) => {
            if value.is_empty() && !is_dead {
                empties.push(at);
            }
            values.push(value.try_into().map_or(0, i32::from_be_bytes));
        }
        Values::Strings(strings) => push_string(strings, value),
        _ => panic!("not in the table"),
    }
}

/// Makes batches, which `cut` ends.
pub(crate) struct Writer<'a> {
    is_counter: bool,
    batch: MutationBatch,
    done: Vec<MutationBatch>,
    /// Whether to cut here.
    cut: &'a mut dyn FnMut() -> bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn write(
        sstable: &Sstable,
        is_counter: bool,
        cut: &'a mut dyn FnMut() -> bool,
    ) -> Vec<MutationBatch> {
        let mut writer = Writer { is_counter, batch: blank(is_counter), done: Vec::new(), cut };
        for ((_, key), partition) in sstable {
            writer.partition(key, partition);
        }
        if !writer.batch.partitions.ends.is_empty() {
            writer.end_batch(false);
        }
        writer.done
    }

    fn end_batch(&mut self, is_open: bool) {
        self.batch.is_open = is_open;
        self.done.push(std::mem::replace(&mut self.batch, blank(self.is_counter)));
    }

    fn head(&mut self, key: &[u8], partition: &Partition) {
        let partitions = &mut self.batch.partitions;
        if let Some(deletion) = partition.deletion {
            partitions.deletions.push(number(partitions.ends.len()), of(deletion));
        }
        push_string(&mut partitions.keys, key);
        partitions.offsets.push(7);
        partitions.ends.push(number(self.batch.entries.kinds.len()));
    }

    fn go_on(&mut self, key: &[u8], partition: &Partition) {
        self.end_batch(true);
        self.batch.continues = Continues::Partition;
        self.head(key, partition);
    }

    fn partition(&mut self, key: &[u8], partition: &Partition) {
        self.head(key, partition);
        // Rows, and where ranges start and end.
        let mut places: Vec<Position> = partition.rows.keys().copied().collect();
        places.extend(partition.ranges.iter().flat_map(|(start, end, _)| [*start, *end]));
        places.sort_unstable();
        places.dedup();
        for place in places {
            match partition.rows.get(&place) {
                Some(row) => self.row(key, partition, place, row),
                None => {
                    let starts = partition.ranges.iter().find(|(start, _, _)| *start == place).map(|it| it.2);
                    let ends = partition.ranges.iter().find(|(_, end, _)| *end == place).map(|it| it.2);
                    self.bound(place, ends, starts);
                }
            }
            if (self.cut)() {
                self.go_on(key, partition);
            }
        }
        if (self.cut)() {
            self.end_batch(false);
        }
    }

    fn entry(&mut self, kind: EntryKind, place: Position, prefix: usize) -> u32 {
        let entries = &mut self.batch.entries;
        let at = number(entries.kinds.len());
        entries.kinds.push(kind);
        entries.timestamps.push(NO_TIMESTAMP);
        let small = |number: i64| i32::try_from(number).expect("small");
        let round = |number: i64| (number + 1).div_euclid(4);
        let values = [
            if prefix > 0 { small(-round(place.0)) } else { 0 },
            if prefix > 1 { small(round(place.1)) } else { 0 },
        ];
        for (column, value) in entries.clustering.iter_mut().zip(values) {
            let Values::Four(values) = &mut column.values else { panic!() };
            values.push(value);
        }
        *self.batch.partitions.ends.last_mut().expect("a partition") = at + 1;
        at
    }

    fn bound(&mut self, place: Position, ends: Option<Deletion>, starts: Option<Deletion>) {
        // Positions with all rows on one side have no values, or only one.
        let (prefix, is_before) = match place {
            (i64::MIN, _) => (0, true),
            (i64::MAX, _) => (0, false),
            (_, i64::MIN) => (1, true),
            (_, i64::MAX) => (1, false),
            (_, second) => (2, second.rem_euclid(4) == 3),
        };
        let kind = match (ends.is_some(), starts.is_some(), is_before) {
            (false, true, true) => EntryKind::InclusiveStart,
            (false, true, false) => EntryKind::ExclusiveStart,
            (true, false, true) => EntryKind::ExclusiveEnd,
            (true, false, false) => EntryKind::InclusiveEnd,
            (_, _, true) => EntryKind::ExclusiveEndInclusiveStart,
            (_, _, false) => EntryKind::InclusiveEndExclusiveStart,
        };
        let at = self.entry(kind, place, prefix);
        let entries = &mut self.batch.entries;
        if prefix < 2 {
            entries.prefixes.push(at, number(prefix));
        }
        entries.deletions.push(at, of(ends.or(starts).expect("a range")));
        if let (Some(_), Some(starts)) = (ends, starts) {
            entries.starts.push(at, of(starts));
        }
    }

    fn row_head(&mut self, place: Position, row: &Row) -> u32 {
        let kind = if place == STATIC { EntryKind::Static } else { EntryKind::Row };
        let at = self.entry(kind, place, if place == STATIC { 0 } else { 2 });
        let entries = &mut self.batch.entries;
        if let Some(marker) = row.marker {
            entries.timestamps[at as usize] = marker.timestamp;
            if let Some((ttl, local_deletion)) = marker.expiry {
                entries.expiries.push(at, Expiry { ttl, local_deletion });
            }
        }
        for (deletion, list) in
            [(row.deletion, &mut entries.deletions), (row.shadowable, &mut entries.shadowables)]
        {
            if let Some(deletion) = deletion {
                list.push(at, of(deletion));
            }
        }
        at
    }

    fn row(&mut self, key: &[u8], partition: &Partition, place: Position, row: &Row) {
        let mut at = self.row_head(place, row);
        for column in columns_of(place == STATIC, self.is_counter) {
            if let Some(deletion) = row.complex.get(&column) {
                at = self.maybe_cut(at, key, partition, place, row);
                self.batch.columns[column].deletions.push(at, of(*deletion));
            }
            for ((_, path), cell) in row.cells.range((column, i64::MIN)..=(column, i64::MAX)) {
                at = self.maybe_cut(at, key, partition, place, row);
                self.cell(at, column, *path, row, cell);
            }
        }
        self.maybe_cut(at, key, partition, place, row);
    }

    fn maybe_cut(&mut self, at: u32, key: &[u8], partition: &Partition, place: Position, row: &Row) -> u32 {
        if !(self.cut)() {
            return at;
        }
        self.go_on(key, partition);
        self.batch.continues = Continues::Entry;
        self.row_head(place, row)
    }

    fn cell(&mut self, at: u32, column: usize, path_number: i64, row: &Row, cell: &Cell) {
        let form = form(column, self.is_counter);
        let cells = &mut self.batch.columns[column];
        let cell_at = number(cells.entries.len());
        cells.entries.push(at);
        if is_complex(form) {
            push_string(&mut cells.paths, &path(form, path_number));
        }
        if row.marker.is_none_or(|marker| marker.timestamp != cell.timestamp) {
            cells.timestamps.push(cell_at, cell.timestamp);
        }
        let like_row = row.marker.and_then(|marker| marker.expiry);
        match cell.life {
            Life::Dead(local) => cells.tombstones.push(cell_at, local),
            Life::Expiring(ttl, local) if like_row != Some((ttl, local)) => {
                cells.expiries.push(cell_at, Expiry { ttl, local_deletion: local });
            }
            Life::Live if like_row.is_some() => cells.expiries.push(cell_at, Expiry::NEVER),
            _ => {}
        }
        let is_dead = matches!(cell.life, Life::Dead(_));
        push_value(&mut cells.values, &mut cells.empties, cell_at, is_dead, &cell.value);
    }
}

/// The partitions that batches have. Fails if they are not in order, or do not go on as they say.
pub(crate) fn read(batches: &[MutationBatch], is_counter: bool) -> Sstable {
    let mut sstable = Sstable::new();
    // The partition, the entry, and the start of the range that were read last.
    let mut last: Option<((i64, Vec<u8>), Position)> = None;
    let mut open: Option<(Position, Deletion)> = None;
    let mut is_open = false;
    for batch in batches {
        assert!(batch.continues == Continues::Nothing || is_open, "a batch that goes on with nothing");
        is_open = batch.is_open;
        let mut seen = vec![0_usize; batch.columns.len()];
        for number_of_partition in 0..batch.partitions.ends.len() {
            let key = batch.partitions.keys.get(number_of_partition).expect("a key").to_vec();
            let key = (murmur3_token(&key), key);
            let at = number(number_of_partition);
            let deletion = batch.partitions.deletions.get(at).map(|it| (it.timestamp, it.local_deletion));
            if number_of_partition == 0 && batch.continues != Continues::Nothing {
                assert_eq!(last.as_ref().map(|last| &last.0), Some(&key), "the same partition");
                assert_eq!(sstable[&key].deletion, deletion);
            } else {
                assert!(last.as_ref().is_none_or(|last| last.0 < key), "partitions in order");
                assert_eq!(open, None, "a range that ends");
                sstable.insert(key.clone(), Partition { deletion, ..Partition::default() });
                last = Some((key.clone(), (i64::MIN, i64::MIN)));
            }
            let partition = sstable.get_mut(&key).expect("a partition");
            for entry in batch.entries_of(number_of_partition) {
                let place = place(batch, entry);
                let goes_on = entry == 0 && batch.continues == Continues::Entry;
                let before = last.as_ref().expect("a partition").1;
                assert!(
                    if goes_on { before == place } else { before < place || place == STATIC },
                    "rows in order: {before:?}, {place:?} {:?} ({goes_on}, entry {entry})",
                    batch.entries.kinds[entry]
                );
                last = Some((key.clone(), place));
                if batch.entries.kinds[entry].is_row() {
                    read_row(batch, entry, &mut seen, partition.rows.entry(place).or_default(), is_counter);
                } else {
                    read_bound(batch, entry, place, &mut open, &mut partition.ranges);
                }
            }
        }
        for (cells, seen) in batch.columns.iter().zip(seen) {
            assert_eq!(cells.entries.len(), seen, "cells that are of no row");
        }
    }
    assert_eq!(open, None, "a range that ends");
    sstable
}

fn place(batch: &MutationBatch, entry: usize) -> Position {
    let kind = batch.entries.kinds[entry];
    if kind == EntryKind::Static {
        return STATIC;
    }
    let value = |column: usize| match &batch.entries.clustering[column].values {
        Values::Four(values) => i64::from(values[entry]),
        _ => panic!("not in the table"),
    };
    let side = match kind {
        EntryKind::Row => 0,
        EntryKind::ExclusiveEnd | EntryKind::InclusiveStart | EntryKind::ExclusiveEndInclusiveStart => -1,
        _ => 1,
    };
    let end = if side < 0 { i64::MIN } else { i64::MAX };
    match batch.entries.prefixes.get(number(entry)) {
        Some(0) => (end, 0),
        Some(1) => (-4 * value(0), end),
        _ => (-4 * value(0), 4 * value(1) + side),
    }
}

fn read_bound(
    batch: &MutationBatch,
    entry: usize,
    place: Position,
    open: &mut Option<(Position, Deletion)>,
    ranges: &mut Vec<(Position, Position, Deletion)>,
) {
    let at = number(entry);
    let times = |list: &Sparse<BatchDeletion>| list.get(at).map(|it| (it.timestamp, it.local_deletion));
    let first = times(&batch.entries.deletions).expect("a deletion");
    let kind = batch.entries.kinds[entry];
    let starts = match kind {
        EntryKind::InclusiveStart | EntryKind::ExclusiveStart => {
            assert_eq!(*open, None);
            Some(first)
        }
        _ => {
            let (start, deletion) = open.take().expect("an open range");
            assert_eq!(deletion, first);
            ranges.push((start, place, deletion));
            times(&batch.entries.starts)
        }
    };
    assert_eq!(times(&batch.entries.starts).is_some(), kind.is_boundary());
    *open = starts.map(|deletion| (place, deletion));
}

fn read_row(batch: &MutationBatch, entry: usize, seen: &mut [usize], row: &mut Row, is_counter: bool) {
    let at = number(entry);
    let times = |list: &Sparse<BatchDeletion>| list.get(at).map(|it| (it.timestamp, it.local_deletion));
    let timestamp = batch.entries.timestamps[entry];
    let expiry = batch.entries.expiries.get(at).map(|expiry| (expiry.ttl, expiry.local_deletion));
    row.marker = (timestamp != NO_TIMESTAMP).then_some(Marker { timestamp, expiry });
    (row.deletion, row.shadowable) = (times(&batch.entries.deletions), times(&batch.entries.shadowables));
    let is_static = batch.entries.kinds[entry] == EntryKind::Static;
    for column in columns_of(is_static, is_counter) {
        let cells = &batch.columns[column];
        if let Some(deletion) = times(&cells.deletions) {
            assert_eq!(row.complex.insert(column, deletion), None);
        }
        while cells.entries.get(seen[column]) == Some(&at) {
            let cell_at = number(seen[column]);
            let mut value = Vec::new();
            cells.values.append_bytes(seen[column], &mut value);
            if cells.empties.contains(&cell_at) {
                value.clear();
            }
            let mut life = match cells.expiries.get(cell_at) {
                Some(Expiry::NEVER) => Life::Live,
                Some(expiry) => Life::Expiring(expiry.ttl, expiry.local_deletion),
                None => expiry.map_or(Life::Live, |(ttl, local)| Life::Expiring(ttl, local)),
            };
            if let Some(local) = cells.tombstones.get(cell_at) {
                life = Life::Dead(local);
                value.clear();
            }
            let form = form(column, is_counter);
            let path = if is_complex(form) { cells.paths.get(seen[column]).expect("a path") } else { &[] };
            let timestamp = cells.timestamps.get(cell_at).unwrap_or(timestamp);
            let name = (column, path_number(form, path));
            let is_last = row.cells.range(name..=(column, i64::MAX)).next().is_none();
            assert!(is_last, "cells in order");
            row.cells.insert(name, Cell { timestamp, life, value });
            seen[column] += 1;
        }
    }
}
