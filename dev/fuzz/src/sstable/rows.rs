//! Partitions of Data.db, and what must be read of them.

use std::fmt::Write as _;

use crate::choices::Choices;
use crate::sstable::bytes::Bytes;

/// A type of columns: its class, the length of its values if that is fixed, and whether it has a cell for each element.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The class, without its package.
    pub class: &'static str,
    /// The length of values.
    pub fixed: Option<usize>,
    /// A collection that is not frozen.
    pub is_complex: bool,
}

const fn kind(class: &'static str, fixed: Option<usize>) -> Kind {
    Kind { class, fixed, is_complex: false }
}

/// Types whose values are single cells, which clustering columns may have, too.
const SIMPLE: [Kind; 8] = [
    kind("Int32Type", Some(4)),
    kind("UTF8Type", None),
    kind("LongType", Some(8)),
    kind("BooleanType", Some(1)),
    kind("UUIDType", Some(16)),
    kind("BytesType", None),
    kind("ReversedType(LongType)", Some(8)),
    kind("FrozenType(ListType(Int32Type))", None),
];
const COMPLEX: [Kind; 3] = [
    Kind { class: "MapType(Int32Type,UTF8Type)", fixed: None, is_complex: true },
    Kind { class: "SetType(UTF8Type)", fixed: None, is_complex: true },
    Kind { class: "ListType(LongType)", fixed: None, is_complex: true },
];

/// The columns of a table, and what its times are stored as differences from.
#[derive(Debug, Clone)]
pub struct Table {
    /// Of the clustering key.
    pub clustering: Vec<Kind>,
    /// Static columns, the simple ones first.
    pub statics: Vec<Kind>,
    /// The others, likewise.
    pub regulars: Vec<Kind>,
    /// The least write time, beyond the epoch of the format.
    pub timestamp_min: i64,
    /// The least local deletion time, likewise.
    pub local_deletion_min: u32,
    /// The least TTL.
    pub ttl_min: u32,
    /// Times are those of version `oa` and later.
    pub is_o: bool,
}

/// Seconds and microseconds that times are counted from.
const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
const DELETION_EPOCH: u32 = 1_442_880_000;

impl Table {
    /// Any columns.
    pub fn choose(is_o: bool, choices: &mut Choices<'_>) -> Table {
        let columns = |most: usize, choices: &mut Choices<'_>| -> Vec<Kind> {
            let mut columns: Vec<Kind> = (0..choices.below(most + 1))
                .map(|_| if choices.once_in(4) { choices.pick(&COMPLEX) } else { choices.pick(&SIMPLE) })
                .collect();
            columns.sort_by_key(|column| column.is_complex);
            columns
        };
        let clustering = (0..choices.below(3)).map(|_| choices.pick(&SIMPLE)).collect();
        let statics = columns(2, choices);
        let most = if choices.once_in(12) { 80 } else { 4 };
        Table {
            clustering,
            statics,
            regulars: columns(most, choices),
            timestamp_min: i64::from(choices.byte()) * 1_000_000,
            local_deletion_min: u32::from(choices.byte()),
            ttl_min: u32::from(choices.byte()),
            is_o,
        }
    }
}

/// Writes a partition, and tells in lines what is in it. At most so many rows.
pub fn partition(
    table: &Table,
    key: &[u8],
    rows: usize,
    choices: &mut Choices<'_>,
    data: &mut Bytes,
    told: &mut String,
) {
    let _ = writeln!(told, "partition {key:x?} at {}", data.0.len());
    data.short(key);
    let deleted = choices.once_in(5).then(|| (i64::from(choices.byte()), u32::from(choices.byte())));
    if let Some((timestamp, local)) = deleted {
        let _ = writeln!(told, "  deleted {timestamp} {local}");
    }
    match (deleted, table.is_o) {
        (Some((timestamp, local)), false) => data.u32(local).i64(timestamp),
        (Some((timestamp, local)), true) => data.i64(timestamp).u32(local),
        (None, false) => data.u32(0x7fff_ffff).i64(i64::MIN),
        (None, true) => data.u8(0x80),
    };
    if !table.statics.is_empty() && choices.once_in(3) {
        row(table, true, choices, data, told);
    }
    for _ in 0..rows {
        if !table.clustering.is_empty() && choices.once_in(8) {
            bound(table, choices, data, told);
        } else {
            row(table, false, choices, data, told);
        }
    }
    data.u8(0x01);
}

fn value(fixed: Option<usize>, choices: &mut Choices<'_>) -> Vec<u8> {
    let length = match fixed {
        Some(length) => length,
        None if choices.once_in(40) => 4_000 + choices.below(3_000),
        None => choices.below(9),
    };
    let byte = choices.byte();
    (0..length).map(|at| byte.wrapping_add((at * at) as u8)).collect()
}

/// Values of the first clustering columns.
fn clustering(table: &Table, count: usize, choices: &mut Choices<'_>, data: &mut Bytes, told: &mut String) {
    let mut header = 0;
    let mut values = Bytes::default();
    for (at, column) in table.clustering[..count].iter().enumerate() {
        let value = value(column.fixed, choices);
        match column.fixed {
            None if value.is_empty() => header |= 1 << (2 * at),
            Some(_) if choices.once_in(9) => {
                header |= 1 << (2 * at);
                told.push_str(" none");
                continue;
            }
            Some(_) => {
                values.raw(&value);
            }
            None => {
                values.long(&value);
            }
        }
        let _ = write!(told, " {value:x?}");
    }
    if count > 0 {
        data.vint(header);
    }
    data.raw(&values.0);
}

fn bound(table: &Table, choices: &mut Choices<'_>, data: &mut Bytes, told: &mut String) {
    let kind = choices.pick(&[1_u8, 6, 0, 7, 2, 5]);
    let count = choices.below(table.clustering.len() + 1);
    let _ = write!(told, "  entry {kind} {count}");
    data.u8(0x02).u8(kind).u16(count as u16);
    clustering(table, count, choices, data, told);
    let mut body = Bytes::default();
    let times = if matches!(kind, 2 | 5) { 2 } else { 1 };
    for _ in 0..times {
        let (timestamp, local) = (choices.byte(), choices.byte());
        body.vint(timestamp.into()).vint(local.into());
        let _ = write!(told, " deleted {}", deletion(table, timestamp, local));
    }
    told.push('\n');
    data.vint(body.0.len() as u64 + 1).vint(0).raw(&body.0);
}

fn deletion(table: &Table, timestamp: u8, local: u8) -> String {
    let at = TIMESTAMP_EPOCH + table.timestamp_min + i64::from(timestamp);
    format!("{at} {}", DELETION_EPOCH + table.local_deletion_min + u32::from(local))
}

fn row(table: &Table, is_static: bool, choices: &mut Choices<'_>, data: &mut Bytes, told: &mut String) {
    let columns = if is_static { &table.statics } else { &table.regulars };
    let first = if is_static { 0 } else { table.statics.len() };
    // (A static row that says nothing is none.)
    let has_timestamp = is_static || !choices.once_in(4);
    let (has_ttl, has_deletion) = (has_timestamp && choices.once_in(4), choices.once_in(6));
    let has_complex_deletion = columns.iter().any(|column| column.is_complex) && choices.once_in(3);
    let present: Vec<bool> = columns.iter().map(|_| !choices.once_in(3)).collect();
    let is_complete = present.iter().all(|is_there| *is_there);
    let mut flags = 0;
    for (is_set, flag) in [
        (has_timestamp, 0x04),
        (has_ttl, 0x08),
        (has_deletion, 0x10),
        (is_complete, 0x20),
        (has_complex_deletion, 0x40),
        (is_static, 0x80),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    let _ = write!(told, "  entry {}", if is_static { 3 } else { 4 });
    data.u8(flags);
    match is_static {
        true => {
            data.u8(0x01);
        }
        false => clustering(table, table.clustering.len(), choices, data, told),
    }
    let mut body = Bytes::default();
    if has_timestamp {
        let timestamp = choices.byte();
        body.vint(timestamp.into());
        let _ = write!(told, " at {}", TIMESTAMP_EPOCH + table.timestamp_min + i64::from(timestamp));
        if has_ttl {
            let (ttl, local) = (choices.byte(), choices.byte());
            body.vint(ttl.into()).vint(local.into());
            let _ = write!(told, " {}", expiry(table, ttl, local));
        }
    }
    if has_deletion {
        let (timestamp, local) = (choices.byte(), choices.byte());
        body.vint(timestamp.into()).vint(local.into());
        let _ = write!(told, " deleted {}", deletion(table, timestamp, local));
    }
    told.push('\n');
    if !is_complete {
        missing(&present, &mut body);
    }
    for (number, column) in columns.iter().enumerate().filter(|(number, _)| present[*number]) {
        let mut count = 1;
        if column.is_complex {
            if has_complex_deletion {
                let (timestamp, local) = (choices.byte(), choices.byte());
                body.vint(timestamp.into()).vint(local.into());
                let _ =
                    writeln!(told, "    {} deleted {}", first + number, deletion(table, timestamp, local));
            }
            count = choices.below(4);
            body.vint(count as u64);
        }
        for _ in 0..count {
            let _ = write!(told, "    {}", first + number);
            cell(table, column, (has_timestamp, has_ttl), choices, &mut body, told);
        }
    }
    data.vint(body.0.len() as u64 + 1).vint(0).raw(&body.0);
}

fn expiry(table: &Table, ttl: u8, local: u8) -> String {
    let at = DELETION_EPOCH + table.local_deletion_min + u32::from(local);
    format!("ttl {} until {at}", table.ttl_min + u32::from(ttl))
}

/// The columns that a row lacks: bits, or, of more than 63 columns, numbers.
fn missing(present: &[bool], body: &mut Bytes) {
    let numbers = |of: bool| -> Vec<u64> {
        (0..).zip(present).filter(|(_, is)| **is == of).map(|(at, _)| at).collect()
    };
    if present.len() < 64 {
        body.vint(numbers(false).iter().fold(0, |bits, at| bits | 1 << at));
        return;
    }
    let (lacking, having) = (numbers(false), numbers(true));
    body.vint(lacking.len() as u64);
    let listed = if having.len() < present.len() / 2 { having } else { lacking };
    for at in listed {
        body.vint(at);
    }
}

fn cell(
    table: &Table,
    column: &Kind,
    (has_timestamp, has_ttl): (bool, bool),
    choices: &mut Choices<'_>,
    body: &mut Bytes,
    told: &mut String,
) {
    let is_set = column.class.starts_with("SetType");
    let value = if is_set { Vec::new() } else { value(column.fixed, choices) };
    let is_deleted = choices.once_in(6);
    let as_row = has_timestamp && !choices.once_in(4);
    let expires = !is_deleted && choices.once_in(4);
    let expires_as_row = expires && as_row && has_ttl && choices.once_in(2);
    let is_empty = is_deleted || is_set || value.is_empty() || choices.once_in(9);
    let mut flags = 0;
    for (is_set, flag) in
        [(is_deleted, 0x01), (expires, 0x02), (is_empty, 0x04), (as_row, 0x08), (expires_as_row, 0x10)]
    {
        flags |= if is_set { flag } else { 0 };
    }
    body.u8(flags);
    if !as_row {
        let timestamp = choices.byte();
        body.vint(timestamp.into());
        let _ = write!(told, " at {}", TIMESTAMP_EPOCH + table.timestamp_min + i64::from(timestamp));
    }
    let mut life = String::new();
    if is_deleted || (expires && !expires_as_row) {
        let local = choices.byte();
        body.vint(local.into());
        if is_deleted {
            let at = DELETION_EPOCH + table.local_deletion_min + u32::from(local);
            life = format!(" deleted {at}");
        } else {
            let ttl = choices.byte();
            body.vint(ttl.into());
            life = format!(" {}", expiry(table, ttl, local));
        }
    } else if !expires && has_ttl {
        life = " never".to_string();
    }
    told.push_str(&life);
    if column.is_complex {
        let path = self::value(None, choices);
        body.vint(path.len() as u64).raw(&path);
        let _ = write!(told, " of {path:x?}");
    }
    if is_empty {
        told.push_str(" empty\n");
        return;
    }
    if column.fixed.is_none() {
        body.vint(value.len() as u64);
    }
    body.raw(&value);
    let _ = writeln!(told, " {value:x?}");
}
