//! Random writes of every type, in every state, valid or not: a full mapping and back brings the same.
#![allow(clippy::cast_possible_wrap, reason = "numbers here are small, or random")]

use std::sync::Arc;

use marquetry_scylla::bridge::mutations::Present;
use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{
    Cells, ClusteringColumn, Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Values,
};
use marquetry_scylla::sstable::marshal::MarshalType;

use crate::{craft, mapping};

/// A linear congruential generator: the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end.max(1)
    }

    pub(crate) fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

const SCALARS: [&str; 21] = [
    "AsciiType",
    "BooleanType",
    "BytesType",
    "ByteType",
    "DecimalType",
    "DoubleType",
    "DurationType",
    "FloatType",
    "InetAddressType",
    "Int32Type",
    "IntegerType",
    "LongType",
    "ShortType",
    "SimpleDateType",
    "TimestampType",
    "TimeType",
    "TimeUUIDType",
    "UTF8Type",
    "UUIDType",
    "EmptyType",
    "CounterColumnType",
];

/// The text of a type nested so deep; a key of a map is no counter.
fn kind(random: &mut Random, depth: usize) -> String {
    let inner = |random: &mut Random| kind(random, depth - 1);
    match if depth == 0 { 9 } else { random.below(9) } {
        0 => format!("FrozenType(ListType({}))", inner(random)),
        1 => format!("FrozenType(SetType({}))", inner(random)),
        2 => format!("FrozenType(MapType({},{}))", inner(random), inner(random)),
        3 => format!("TupleType({},{})", inner(random), inner(random)),
        4 => format!("FrozenType(UserType(k,75,66:{},67:{}))", inner(random), inner(random)),
        5 => format!("VectorType({},3)", inner(random)),
        _ => SCALARS[random.below(SCALARS.len() - 1)].to_string(),
    }
}

/// A value, mostly a valid one.
fn value(random: &mut Random, of: &MarshalType) -> Vec<u8> {
    if random.percent(4) && of.fixed_bytes().is_none() {
        let length = random.below(20);
        return random.bytes(length);
    }
    if random.percent(3) && of.fixed_bytes().is_none() {
        return Vec::new();
    }
    let mut made = Vec::new();
    let item = |random: &mut Random, made: &mut Vec<u8>, of: &MarshalType, nullable: bool| {
        if nullable && random.percent(10) {
            made.extend(if random.percent(80) { -1_i32 } else { -2 }.to_be_bytes());
            return;
        }
        let value = value(random, of);
        made.extend((value.len() as i32).to_be_bytes());
        made.extend(value);
    };
    match of {
        MarshalType::Native(native) => match native {
            CqlType::Boolean => made.push(random.below(2) as u8 + 2 * u8::from(random.percent(5))),
            CqlType::Tinyint => made.extend(random.bytes(1)),
            CqlType::Smallint => made.extend(random.bytes(2)),
            CqlType::Int | CqlType::Float | CqlType::Date => made.extend(random.bytes(4)),
            CqlType::Bigint | CqlType::Double | CqlType::Timestamp => made.extend(random.bytes(8)),
            CqlType::Time => made.extend((random.next() as i64 * 20_000).to_be_bytes()),
            CqlType::Uuid | CqlType::Timeuuid => made.extend(random.bytes(16)),
            CqlType::Text | CqlType::Ascii => {
                let length = random.below(30);
                let letters = ['a', 'é', '字', '\u{1f600}', ' '];
                let text: String = (0..length).map(|_| letters[random.below(5)]).collect();
                made.extend(text.bytes());
            }
            CqlType::Inet => {
                let length = if random.percent(50) { 4 } else { 16 };
                made.extend(random.bytes(length));
            }
            CqlType::Varint => {
                let length = 1 + random.below(20);
                made.extend(random.bytes(length));
            }
            CqlType::Decimal => {
                made.extend((random.below(90) as i32 - 45).to_be_bytes());
                let length = 1 + random.below(20);
                made.extend(random.bytes(length));
            }
            CqlType::Duration => {
                made.extend([random.below(128) as u8, random.below(128) as u8, random.below(128) as u8])
            }
            CqlType::Counter => {
                made.extend([0, 1, 0x80, 0]);
                made.extend(random.bytes(32));
            }
            _ => {
                let length = random.below(40);
                made.extend(random.bytes(length));
            }
        },
        MarshalType::List(element) | MarshalType::Set(element) => {
            let count = random.below(4);
            made.extend((count as i32).to_be_bytes());
            (0..count).for_each(|_| item(random, &mut made, element, true));
        }
        MarshalType::Map(key, value) => {
            let count = random.below(4);
            made.extend((count as i32).to_be_bytes());
            for _ in 0..count {
                let nullable = random.percent(2);
                item(random, &mut made, key, nullable);
                item(random, &mut made, value, true);
            }
        }
        MarshalType::Tuple(members) => {
            let count = members.len() - usize::from(random.percent(10));
            members[..count].iter().for_each(|member| item(random, &mut made, member, true));
        }
        MarshalType::User { fields, .. } => {
            let count = fields.len() - usize::from(random.percent(10));
            fields[..count].iter().for_each(|(_, field)| item(random, &mut made, field, true));
        }
        MarshalType::Vector(element, count) => {
            for _ in 0..count.get() {
                let value = value(random, element);
                if element.fixed_bytes().is_none() {
                    // Lengths below 128 take a byte.
                    made.push(value.len().min(127) as u8);
                }
                made.extend(&value[..value.len().min(127)]);
            }
        }
        MarshalType::Frozen(inner) | MarshalType::Reversed(inner) => return value(random, inner),
        _ => {}
    }
    made
}

fn push(values: &mut Values, bytes: &[u8]) {
    match values {
        Values::None(count) => *count += 1,
        Values::One(values) => values.push(bytes.first().copied().unwrap_or(0)),
        Values::Four(values) => values.push(bytes.try_into().map_or(0, i32::from_be_bytes)),
        Values::Eight(values) => values.push(bytes.try_into().map_or(0, i64::from_be_bytes)),
        Values::Sixteen(values) => values.push(bytes.try_into().unwrap_or([0; 16])),
        Values::Strings(strings) => {
            strings.bytes.extend_from_slice(bytes);
            strings.ends.push(strings.bytes.len() as u32);
        }
    }
}

/// Batches that are being filled.
struct Out<'a> {
    columns: &'a TableColumns,
    batches: Vec<MutationBatch>,
    batch: MutationBatch,
    partition: (Vec<u8>, Option<Deletion>),
    /// The last row, to be repeated in a batch that goes on with it.
    row: Option<Row>,
}

#[derive(Clone)]
struct Row {
    kind: EntryKind,
    /// Values; what is null; none beyond a bound's end.
    clustering: Vec<Option<Vec<u8>>>,
    time: i64,
    expiry: Option<Expiry>,
    deletion: Option<Deletion>,
    start: Option<Deletion>,
    shadowable: Option<Deletion>,
}

impl Out<'_> {
    fn empty(columns: &TableColumns) -> MutationBatch {
        let mut batch = MutationBatch::default();
        let clustering = columns.clustering.iter().map(|column| ClusteringColumn {
            values: Values::of(column.kind.fixed_bytes()),
            ..ClusteringColumn::default()
        });
        batch.entries.clustering = clustering.collect();
        let cells = columns
            .cells()
            .map(|column| Cells { values: Values::of(column.kind.fixed_bytes()), ..Cells::default() });
        batch.columns = cells.collect();
        batch
    }

    /// Begins another batch, which goes on with the partition or with its last row.
    fn cut(&mut self, continues: Continues) {
        let next = MutationBatch { continues, ..Out::empty(self.columns) };
        let mut batch = std::mem::replace(&mut self.batch, next);
        batch.is_open = continues != Continues::Nothing;
        self.batches.push(batch);
        if continues != Continues::Nothing {
            self.push_partition();
        }
        if continues == Continues::Entry {
            let row = self.row.clone().unwrap();
            self.push_row(row);
        }
    }

    fn push_partition(&mut self) {
        let partitions = &mut self.batch.partitions;
        partitions.keys.bytes.extend_from_slice(&self.partition.0);
        partitions.keys.ends.push(partitions.keys.bytes.len() as u32);
        partitions.offsets.push(0);
        if let Some(deletion) = self.partition.1 {
            partitions.deletions.push(partitions.ends.len() as u32, deletion);
        }
        partitions.ends.push(self.batch.entries.kinds.len() as u32);
    }

    fn push_row(&mut self, row: Row) {
        let entries = &mut self.batch.entries;
        let entry = entries.kinds.len() as u32;
        entries.kinds.push(row.kind);
        entries.timestamps.push(row.time);
        if row.kind != EntryKind::Static && row.clustering.len() < entries.clustering.len() {
            entries.prefixes.push(entry, row.clustering.len() as u32);
        }
        for (number, column) in entries.clustering.iter_mut().enumerate() {
            match row.clustering.get(number) {
                Some(Some(value)) => {
                    if value.is_empty() && !matches!(column.values, Values::Strings(_) | Values::None(_)) {
                        column.empties.push(entry);
                    }
                    push(&mut column.values, value);
                }
                Some(None) => {
                    column.nulls.push(entry);
                    push(&mut column.values, &[]);
                }
                None => push(&mut column.values, &[]),
            }
        }
        let lists = [
            (&mut entries.deletions, row.deletion),
            (&mut entries.starts, row.start),
            (&mut entries.shadowables, row.shadowable),
        ];
        for (list, deletion) in lists {
            if let Some(deletion) = deletion {
                list.push(entry, deletion);
            }
        }
        if let Some(expiry) = row.expiry {
            entries.expiries.push(entry, expiry);
        }
        *self.batch.partitions.ends.last_mut().unwrap() = entry + 1;
        self.row = Some(row);
    }
}

fn deletion(random: &mut Random) -> Deletion {
    Deletion { timestamp: random.next() as i64, local_deletion: random.next() as u32 }
}

fn time(random: &mut Random) -> i64 {
    1000 + random.below(3) as i64
}

fn expiry(random: &mut Random) -> Expiry {
    if random.percent(40) {
        return Expiry::NEVER;
    }
    Expiry { ttl: 1 + random.below(2) as u32, local_deletion: 5 + random.below(2) as u32 }
}

/// The cells of a row in a column.
fn cells(random: &mut Random, out: &mut Out<'_>, number: usize, of: &MarshalType) {
    let mut paths: Vec<Vec<u8>> = Vec::new();
    let count = if of.is_multi_cell() { random.below(5) } else { random.below(2) };
    for at in 0..count {
        match of {
            MarshalType::List(_) => paths.push(random.bytes(16)),
            MarshalType::Set(element) => paths.push(value(random, element)),
            MarshalType::Map(key, _) => paths.push(value(random, key)),
            MarshalType::User { .. } => {
                paths.push((at as u16 + random.below(2) as u16).to_be_bytes().to_vec())
            }
            _ => paths.push(Vec::new()),
        }
    }
    paths.sort();
    paths.dedup();
    if of.is_multi_cell() && random.percent(20) {
        let entry = out.batch.entries.kinds.len() as u32 - 1;
        let deletion = deletion(random);
        out.batch.columns[number].deletions.push(entry, deletion);
    }
    for path in paths {
        if random.percent(3) {
            out.cut(Continues::Entry);
        }
        let entry = out.batch.entries.kinds.len() as u32 - 1;
        let row_time = out.batch.entries.timestamps[entry as usize];
        let of_value = match of {
            MarshalType::User { fields, .. } => {
                let field = usize::from(u16::from_be_bytes(path.as_slice().try_into().unwrap()));
                fields.get(field).map_or(MarshalType::Native(CqlType::Blob), |(_, kind)| kind.clone())
            }
            other => other.cell_value().unwrap().clone(),
        };
        let column = &mut out.batch.columns[number];
        let cell = column.entries.len() as u32;
        column.entries.push(entry);
        if of.is_multi_cell() {
            column.paths.bytes.extend_from_slice(&path);
            column.paths.ends.push(column.paths.bytes.len() as u32);
        }
        if row_time == NO_TIMESTAMP || random.percent(20) {
            column.timestamps.push(cell, time(random));
        }
        if random.percent(15) {
            column.tombstones.push(cell, random.next() as u32);
            push(&mut column.values, &[]);
            continue;
        }
        if random.percent(20) {
            column.expiries.push(cell, expiry(random));
        }
        let mut bytes = value(random, &of_value);
        if !matches!(column.values, Values::Strings(_) | Values::None(_)) && random.percent(10) {
            bytes.clear();
            column.empties.push(cell);
        }
        push(&mut column.values, &bytes);
    }
}

/// Batches of a table of random columns.
pub(crate) fn batches(random: &mut Random) -> (TableColumns, Vec<MutationBatch>) {
    let parts = 1 + random.below(2);
    let keys: Vec<String> = (0..parts).map(|_| kind(random, 1)).collect();
    let key = if parts == 1 { keys[0].clone() } else { format!("CompositeType({})", keys.join(",")) };
    let clustering: Vec<String> = (0..random.below(3)).map(|_| kind(random, 1)).collect();
    let mut columns = Vec::new();
    for number in 0..2 + random.below(6) {
        let of = match random.below(7) {
            0 => format!("ListType({})", kind(random, 1)),
            1 => format!("SetType({})", kind(random, 1)),
            2 => format!("MapType({},{})", kind(random, 1), kind(random, 1)),
            3 => {
                format!("UserType(k,75,66:{},67:{},68:{})", kind(random, 1), kind(random, 1), kind(random, 0))
            }
            4 => SCALARS[random.below(SCALARS.len())].to_string(),
            _ => kind(random, 2),
        };
        columns.push((format!("c{number}"), of));
    }
    let borrowed = |columns: &[(String, String)]| -> Vec<(String, String)> { columns.to_vec() };
    let all = borrowed(&columns);
    let all: Vec<(&str, &str)> = all.iter().map(|(name, of)| (name.as_str(), of.as_str())).collect();
    let statics = random.below(2);
    let clustering: Vec<&str> = clustering.iter().map(String::as_str).collect();
    let statistics = craft::statistics(&key, &clustering, &all[..statics], &all[statics..]);
    let table = TableColumns::new(&[&statistics.header], None).unwrap();
    let of_cells: Vec<MarshalType> = table.cells().map(|column| column.kind.clone()).collect();

    let mut out = Out {
        columns: &table,
        batches: Vec::new(),
        batch: Out::empty(&table),
        partition: (Vec::new(), None),
        row: None,
    };
    for number in 0..1 + random.below(6) {
        let mut key = Vec::new();
        for (at, column) in table.partition_key.iter().enumerate() {
            let mut part = value(random, &column.kind);
            if at == 0 && part.len() > 1 && column.kind.fixed_bytes().is_none() {
                part.truncate(100);
            }
            match table.partition_key.len() {
                1 => key = part,
                _ => {
                    key.extend((part.len() as u16).to_be_bytes());
                    key.extend(part);
                    key.push(0);
                }
            }
        }
        if number > 0 && key == out.partition.0 {
            continue;
        }
        if random.percent(20) && !out.batch.partitions.ends.is_empty() {
            out.cut(Continues::Nothing);
        }
        out.partition = (key, random.percent(30).then(|| deletion(random)));
        out.push_partition();
        for at in 0..random.below(12) {
            if at > 0 && random.percent(10) {
                out.cut(Continues::Partition);
            }
            let is_static = at == 0 && statics > 0 && random.percent(60);
            let values = |random: &mut Random, count: usize| -> Vec<Option<Vec<u8>>> {
                let of = table.clustering.iter().take(count);
                of.map(|column| {
                    let value = value(random, &column.kind);
                    let is_empty = random.percent(3);
                    (!random.percent(3)).then(|| if is_empty { Vec::new() } else { value })
                })
                .collect()
            };
            let mut row = Row {
                kind: if is_static { EntryKind::Static } else { EntryKind::Row },
                clustering: Vec::new(),
                time: NO_TIMESTAMP,
                expiry: None,
                deletion: None,
                start: None,
                shadowable: None,
            };
            if !is_static && !table.clustering.is_empty() && random.percent(25) {
                let bound = [0, 1, 2, 5, 6, 7][random.below(6)];
                row.kind = EntryKind::bound(bound).unwrap();
                let prefix = 1 + random.below(table.clustering.len());
                row.clustering = values(random, prefix);
                row.deletion = Some(deletion(random));
                row.start = row.kind.is_boundary().then(|| deletion(random));
                let is_end = |kind| matches!(kind, EntryKind::ExclusiveEnd | EntryKind::InclusiveEnd);
                let is_start = matches!(row.kind, EntryKind::ExclusiveStart | EntryKind::InclusiveStart);
                // An end right before a start at the same place is a boundary, and no server writes them apart.
                if !is_start || !out.row.as_ref().is_some_and(|last| is_end(last.kind)) {
                    out.push_row(row);
                }
                continue;
            }
            if !is_static {
                row.clustering = values(random, table.clustering.len());
                row.deletion = random.percent(15).then(|| deletion(random));
                row.shadowable = random.percent(5).then(|| deletion(random));
                if random.percent(60) {
                    row.time = time(random);
                    row.expiry = Some(expiry(random)).filter(|expiry| *expiry != Expiry::NEVER);
                }
            }
            out.push_row(row);
            let range = if is_static { 0..statics } else { statics..of_cells.len() };
            for number in range {
                cells(random, &mut out, number, &of_cells[number]);
            }
        }
    }
    if !out.batch.partitions.ends.is_empty() {
        out.cut(Continues::Nothing);
    }
    let made = out.batches;
    (table, made)
}

fn compare(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        println!("seed {seed}");
        let (table, batches) = batches(&mut Random(seed));
        let units = [0, 150_000, 1_000][seed as usize % 3];
        mapping::compare(&Arc::new(table), Present::ALL, batches, units);
    }
}

#[test]
fn random_writes_are_the_same_after_a_full_mapping_and_back() {
    compare(0..300);
}

#[test]
#[ignore = "soak: as above, of more tables"]
fn many_random_writes_are_the_same_after_a_full_mapping_and_back() {
    compare(300..10_000);
}
