//! Partitions of the model as batches, cut anywhere, and back.

use std::sync::Arc;

use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{
    Cells, ClusteringColumn, Continues, Deletion as BatchDeletion, EntryKind, Expiry, MutationBatch,
    NO_TIMESTAMP, Strings, Values,
};

use crate::craft;
use crate::model::{self, Cell, Deletion, Life, Place};
use crate::read::{self, Shape};

/// Rows are at numbers that are divisible by four, bounds beside them.
pub(crate) type Position = (i64, i64);

/// Where the static row is.
pub(crate) const STATIC: Position = (i64::MIN, i64::MIN);

impl Place for Position {
    fn is_static(&self) -> bool {
        *self == STATIC
    }
}

pub(crate) type Sstable = model::Sstable<Position, i64>;
type Partition = model::Partition<Position, i64>;
type Row = model::Row<i64>;

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

/// How partitions of these tables are read.
struct Tables {
    is_counter: bool,
}

impl Shape for Tables {
    type Place = Position;
    type Name = i64;

    fn place(&self, batch: &MutationBatch, entry: usize) -> Position {
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

    fn name(&self, column: usize, path: &[u8]) -> i64 {
        path_number(form(column, self.is_counter), path)
    }

    fn columns_of(&self, is_static: bool) -> std::ops::Range<usize> {
        columns_of(is_static, self.is_counter)
    }

    fn is_complex(&self, column: usize) -> bool {
        is_complex(form(column, self.is_counter))
    }
}

/// The partitions that batches have.
pub(crate) fn read(batches: &[MutationBatch], is_counter: bool) -> Sstable {
    read::read(batches, &Tables { is_counter })
}
