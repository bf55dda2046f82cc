//! Statements with their values, as text.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::ErrorKind;

use super::texts::Kind;
use super::*;
use crate::cql::TableName;
use crate::sstable::batch::{
    Cells, ClusteringColumn, Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_DELETION_TIME,
    NO_TIMESTAMP, Strings, Values, number_of,
};
use crate::sstable::marshal::MarshalType;
use crate::sstable::statistics::HeaderColumn;
use crate::sstable::{KeyColumn, TableColumns};

const AT: u32 = 1000;

fn columns(clustering: &[(&str, &str)], statics: &[(&str, &str)], all: &[(&str, &str)]) -> Arc<TableColumns> {
    let kind = |text: &str| MarshalType::parse(text, 64).unwrap();
    let key = |(name, text): &(&str, &str)| KeyColumn { name: (*name).into(), kind: kind(text) };
    let cell = |(name, text): &(&str, &str)| HeaderColumn { name: (*name).into(), kind: kind(text) };
    Arc::new(TableColumns::of(
        alloc::vec![key(&("p", "Int32Type"))],
        clustering.iter().map(key).collect(),
        statics.iter().map(cell).collect(),
        all.iter().map(cell).collect(),
    ))
}

fn table() -> Arc<TableColumns> {
    columns(
        &[("c", "Int32Type")],
        &[("s", "UTF8Type")],
        &[
            ("a", "Int32Type"),
            ("B", "UTF8Type"),
            ("l", "ListType(Int32Type)"),
            ("m", "MapType(UTF8Type,Int32Type)"),
            ("t", "SetType(UTF8Type)"),
            ("u", "UserType(k,75,78:Int32Type,79:UTF8Type)"),
        ],
    )
}

/// Numbers of the columns of [`table`].
const S: usize = 0;
const A: usize = 1;
const B: usize = 2;
const L: usize = 3;
const M: usize = 4;
const T: usize = 5;
const U: usize = 6;

/// A batch that is made entry by entry.
struct Build(MutationBatch);

impl Build {
    fn new(columns: &TableColumns) -> Build {
        let mut batch = MutationBatch::default();
        let values = |kind: &MarshalType| Values::of(kind.fixed_bytes());
        let clustering =
            |key: &KeyColumn| ClusteringColumn { values: values(&key.kind), ..ClusteringColumn::default() };
        batch.entries.clustering = columns.clustering.iter().map(clustering).collect();
        batch.columns = columns
            .cells()
            .map(|column| Cells { values: values(&column.kind), ..Cells::default() })
            .collect();
        Build(batch)
    }

    fn partition(&mut self, key: i32, deleted: Option<i64>) {
        let partitions = &mut self.0.partitions;
        push_string(&mut partitions.keys, &key.to_be_bytes());
        partitions.offsets.push(0);
        if let Some(timestamp) = deleted {
            let deletion = Deletion { timestamp, local_deletion: 7 };
            partitions.deletions.push(number_of(partitions.ends.len()), deletion);
        }
        partitions.ends.push(number_of(self.0.entries.kinds.len()));
    }

    fn entry(&mut self, kind: EntryKind, clustering: &[i32], time: i64) -> u32 {
        let entries = &mut self.0.entries;
        let number = number_of(entries.kinds.len());
        entries.kinds.push(kind);
        entries.timestamps.push(time);
        if clustering.len() < entries.clustering.len() && !kind.is_row() {
            entries.prefixes.push(number, number_of(clustering.len()));
        }
        for (at, column) in entries.clustering.iter_mut().enumerate() {
            push(&mut column.values, &clustering.get(at).copied().unwrap_or(0).to_be_bytes());
        }
        *self.0.partitions.ends.last_mut().unwrap() = number + 1;
        number
    }

    fn row(&mut self, clustering: i32, time: i64) -> u32 {
        self.entry(EntryKind::Row, &[clustering], time)
    }

    fn bound(&mut self, kind: EntryKind, clustering: &[i32], timestamp: i64) {
        let number = self.entry(kind, clustering, NO_TIMESTAMP);
        self.0.entries.deletions.push(number, Deletion { timestamp, local_deletion: 7 });
    }

    /// A cell of the last entry; its number.
    fn cell(&mut self, column: usize, path: &[u8], value: &[u8], time: Option<i64>) -> u32 {
        let entry = number_of(self.0.entries.kinds.len() - 1);
        let cells = &mut self.0.columns[column];
        let number = number_of(cells.entries.len());
        cells.entries.push(entry);
        push(&mut cells.values, value);
        push_string(&mut cells.paths, path);
        if let Some(time) = time {
            cells.timestamps.push(number, time);
        }
        number
    }

    fn dead(&mut self, column: usize, path: &[u8], time: i64) {
        let number = self.cell(column, path, &[0; 4], Some(time));
        self.0.columns[column].tombstones.push(number, 7);
    }

    fn expiring(&mut self, column: usize, path: &[u8], value: &[u8], time: i64, local_deletion: u32) {
        let number = self.cell(column, path, value, Some(time));
        self.0.columns[column].expiries.push(number, Expiry { ttl: 500, local_deletion });
    }

    fn deleted(&mut self, column: usize, timestamp: i64) {
        let entry = number_of(self.0.entries.kinds.len() - 1);
        self.0.columns[column].deletions.push(entry, Deletion { timestamp, local_deletion: 7 });
    }

    fn said(self, columns: &Arc<TableColumns>) -> Vec<String> {
        self.said_by(Statements::new(columns, &TableName::parse("k.t").unwrap()).unwrap())
    }

    fn said_by(self, mut statements: Statements) -> Vec<String> {
        statements.feed(self.0).unwrap();
        let said = said(&mut statements);
        statements.finish().unwrap();
        said
    }
}

fn push(values: &mut Values, value: &[u8]) {
    match values {
        Values::Four(values) => values.push(i32::from_be_bytes(value.try_into().unwrap())),
        Values::Strings(strings) => push_string(strings, value),
        other => panic!("{other:?}"),
    }
}

fn push_string(strings: &mut Strings, string: &[u8]) {
    strings.bytes.extend_from_slice(string);
    strings.ends.push(number_of(strings.bytes.len()));
}

/// The statements of a batch: number of the row, text with values in place of its marks, write time.
fn said(statements: &mut Statements) -> Vec<String> {
    let (mut all, mut out) = (Vec::new(), RowStatements::default());
    while statements.next(AT, &mut out).unwrap() {
        for statement in &out.statements {
            let mut values = &out.values[statement.values.clone()];
            let text = statements.texts().text(statement.id).unwrap();
            let mut parts = text.split('?');
            let mut line = format!("{}: {}", out.row, parts.next().unwrap());
            for part in parts {
                let (length, rest) = values.split_first_chunk::<4>().unwrap();
                values = rest;
                match i32::from_be_bytes(*length) {
                    -1 => line.push_str("null"),
                    -2 => line.push('-'),
                    length => {
                        let (value, rest) = values.split_at(usize::try_from(length).unwrap());
                        values = rest;
                        line.push_str(&shown(value));
                    }
                }
                line.push_str(part);
            }
            assert_eq!(values, b"", "{line}");
            all.push(format!("{line} @{}", statement.write_time));
        }
    }
    all
}

/// Numbers of four bytes as such; letters; what else there is, in brackets.
fn shown(value: &[u8]) -> String {
    match value {
        [b'a'..=b'z', ..] => String::from_utf8(value.to_vec()).unwrap(),
        _ => match <[u8; 4]>::try_from(value) {
            Ok(number) => i32::from_be_bytes(number).to_string(),
            Err(_) => {
                let mut parts = Vec::new();
                let mut rest = value;
                while let Some((word, more)) = rest.split_first_chunk::<4>() {
                    let length = usize::try_from(i32::from_be_bytes(*word)).unwrap_or(usize::MAX);
                    let is_string = more.get(..length).is_some_and(|it| it.first() >= Some(&b'a'));
                    parts.push(match is_string {
                        true => shown(&more[..length]),
                        false => i32::from_be_bytes(*word).to_string(),
                    });
                    rest = if is_string { &more[length..] } else { more };
                }
                format!("[{}]", parts.join(" "))
            }
        },
    }
}

fn int(value: i32) -> [u8; 4] {
    value.to_be_bytes()
}

#[test]
fn cells_of_one_time_and_ttl_are_one_statement() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    let row = batch.row(2, 50);
    batch.0.entries.expiries.push(row, Expiry { ttl: 100, local_deletion: AT + 60 });
    batch.cell(A, &[], &int(3), None);
    let b = batch.cell(B, &[], b"b", Some(40));
    batch.0.columns[B].expiries.push(b, Expiry::NEVER);
    // Without a marker; with one of another time.
    batch.row(3, NO_TIMESTAMP);
    batch.cell(A, &[], &int(4), Some(60));
    batch.dead(B, &[], 60);
    batch.row(4, 70);
    batch.dead(A, &[], 71);
    batch.cell(B, &[], b"", None);
    assert_eq!(
        batch.said(&columns),
        [
            "0: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 2, 3, -, -, -, -, -) USING TTL 60 @50",
            "0: UPDATE k.t USING TTL 0 SET a = -, \"B\" = b, l = -, m = -, t = -, u = - WHERE p = 1 AND c = 2 @40",
            "1: UPDATE k.t USING TTL 0 SET a = 4, \"B\" = null, l = -, m = -, t = -, u = - WHERE p = 1 AND c = 3 @60",
            "2: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 4, -, [], -, -, -, -) USING TTL 0 @70",
            "2: UPDATE k.t USING TTL 0 SET a = null, \"B\" = -, l = -, m = -, t = -, u = - WHERE p = 1 AND c = 4 @71",
        ]
    );
}

#[test]
fn what_has_expired_is_deleted() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    let row = batch.row(2, 50);
    batch.0.entries.expiries.push(row, Expiry { ttl: 100, local_deletion: AT });
    batch.cell(A, &[], &int(3), None);
    batch.expiring(B, &[], b"b", 51, AT + 1);
    batch.expiring(T, b"x", b"", 52, AT - 1);
    batch.expiring(T, b"y", b"", 52, NO_DELETION_TIME - 1);
    assert_eq!(
        batch.said(&columns),
        [
            "0: UPDATE k.t SET t = t - [1 x] WHERE p = 1 AND c = 2 @52",
            "0: UPDATE k.t USING TTL 630720000 SET t = t + [1 y] WHERE p = 1 AND c = 2 @52",
            "0: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 2, null, -, -, -, -, -) USING TTL 1 @50",
            "0: UPDATE k.t USING TTL 1 SET a = -, \"B\" = b, l = -, m = -, t = -, u = - WHERE p = 1 AND c = 2 @51",
        ]
    );
}

#[test]
fn collections_are_replaced_or_changed() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    // As an INSERT makes them, and an element that was added later.
    batch.row(2, 50);
    batch.deleted(M, 49);
    batch.cell(M, b"k", &int(5), None);
    batch.cell(M, b"l", &int(6), Some(55));
    batch.deleted(T, 49);
    batch.deleted(U, 49);
    batch.cell(U, &[0, 1], b"y", None);
    // As UPDATEs of elements do.
    batch.row(3, NO_TIMESTAMP);
    batch.deleted(M, 30);
    batch.cell(M, b"k", &int(7), Some(60));
    batch.dead(M, b"l", 60);
    batch.cell(M, b"m", &int(8), Some(60));
    batch.cell(T, b"x", b"", Some(61));
    batch.cell(U, &[0, 0], &int(9), Some(62));
    batch.dead(U, &[0, 1], 62);
    assert_eq!(
        batch.said(&columns),
        [
            "0: UPDATE k.t USING TTL 0 SET m = m + [1 l 4 6] WHERE p = 1 AND c = 2 @55",
            "0: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 2, -, -, -, [1 k 4 5], null, [-1 y]) USING TTL 0 @50",
            "1: DELETE m FROM k.t WHERE p = 1 AND c = 3 @30",
            "1: UPDATE k.t USING TTL 0 SET m = m + [2 k 4 7 m 4 8] WHERE p = 1 AND c = 3 @60",
            "1: UPDATE k.t SET m = m - [1 l] WHERE p = 1 AND c = 3 @60",
            "1: UPDATE k.t USING TTL 0 SET t = t + [1 x] WHERE p = 1 AND c = 3 @61",
            "1: UPDATE k.t USING TTL 0 SET u.x = 9, u.y = - WHERE p = 1 AND c = 3 @62",
            "1: UPDATE k.t USING TTL 0 SET u.x = -, u.y = null WHERE p = 1 AND c = 3 @62",
        ]
    );
}

#[test]
fn lists_are_replaced_and_then_added_to() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    batch.row(2, 50);
    batch.deleted(L, 49);
    batch.cell(L, b"1", &int(5), None);
    batch.cell(L, b"2", &int(6), None);
    batch.dead(L, b"3", 52);
    batch.expiring(L, b"4", &int(7), 51, AT + 9);
    // Of which nothing is left; which was never replaced.
    batch.row(3, 50);
    batch.deleted(L, 49);
    batch.row(4, 50);
    batch.deleted(L, 40);
    batch.cell(L, b"1", &int(8), Some(45));
    batch.cell(L, b"2", &int(9), Some(44));
    assert_eq!(
        batch.said(&columns),
        [
            "0: UPDATE k.t USING TTL 0 SET l = [2 4 5 4 6] WHERE p = 1 AND c = 2 @50",
            "0: UPDATE k.t USING TTL 9 SET l = l + [1 4 7] WHERE p = 1 AND c = 2 @51",
            "0: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 2, -, -, -, -, -, -) USING TTL 0 @50",
            "1: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 3, -, -, null, -, -, -) USING TTL 0 @50",
            "2: DELETE l FROM k.t WHERE p = 1 AND c = 4 @40",
            "2: UPDATE k.t USING TTL 0 SET l = l + [1 4 8] WHERE p = 1 AND c = 4 @45",
            "2: UPDATE k.t USING TTL 0 SET l = l + [1 4 9] WHERE p = 1 AND c = 4 @44",
            "2: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 4, -, -, -, -, -, -) USING TTL 0 @50",
        ]
    );
    let texts = Statements::new(&columns, &TableName::parse("k.t").unwrap()).unwrap().texts().clone();
    let [of_list, of_map] = [L, M].map(|column| Kind::Add(number_of(column)).id());
    assert_eq!([of_list, of_map, texts.usual()].map(|id| texts.is_idempotent(id)), [false, true, true]);
    assert!(texts.is_replacing(Kind::Whole(number_of(L)).id()) && !texts.is_replacing(of_list));
    assert_eq!(texts.lists().len(), 1);
}

/// By ScyllaDB's documents and its grammar; no server of it is here.
#[test]
fn elements_of_lists_keep_their_keys() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    batch.row(2, 50);
    batch.deleted(L, 49);
    batch.cell(L, b"x", &int(5), None);
    batch.dead(L, b"y", 52);
    batch.expiring(L, b"z", &int(7), 51, AT + 9);
    batch.row(3, NO_TIMESTAMP);
    batch.deleted(L, 40);
    batch.cell(L, b"x", &int(8), Some(45));
    let statements = Statements::new(&columns, &TableName::parse("k.t").unwrap()).unwrap().with_list_keys();
    let texts = statements.texts().clone();
    let set = "SET l[SCYLLA_TIMEUUID_LIST_INDEX";
    assert_eq!(
        batch.said_by(statements),
        [
            format!("0: UPDATE k.t USING TTL 0 {set}(x)] = 5 WHERE p = 1 AND c = 2 @50"),
            format!("0: UPDATE k.t USING TTL 0 {set}(y)] = null WHERE p = 1 AND c = 2 @52"),
            format!("0: UPDATE k.t USING TTL 9 {set}(z)] = 7 WHERE p = 1 AND c = 2 @51"),
            "0: INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES (1, 2, -, -, null, -, -, -) USING TTL 0 @50".into(),
            "1: DELETE l FROM k.t WHERE p = 1 AND c = 3 @40".into(),
            format!("1: UPDATE k.t USING TTL 0 {set}(x)] = 8 WHERE p = 1 AND c = 3 @45"),
        ]
    );
    assert!(texts.is_idempotent(Kind::Element(number_of(L)).id()));
}

#[test]
fn keys_that_a_server_would_refuse() {
    let name = TableName::parse("k.t").unwrap();
    let columns = columns(&[("c", "ReversedType(AsciiType)"), ("d", "TimeUUIDType")], &[], &[]);
    let refused = |ascii: &[u8], version: u8| {
        let mut batch = Build::new(&columns);
        batch.partition(1, None);
        batch.0.entries.kinds.push(EntryKind::Row);
        batch.0.entries.timestamps.push(5);
        push(&mut batch.0.entries.clustering[0].values, ascii);
        let uuid = u128::from(version) << 76;
        match &mut batch.0.entries.clustering[1].values {
            Values::Sixteen(values) => values.push(uuid.to_be_bytes()),
            other => panic!("{other:?}"),
        }
        *batch.0.partitions.ends.last_mut().unwrap() = 1;
        let mut statements = Statements::new(&columns, &name).unwrap();
        statements.feed(batch.0).unwrap();
        statements.next(AT, &mut RowStatements::default()).map_err(|error| error.to_string())
    };
    assert_eq!(refused(b"a", 1), Ok(true));
    let told = refused("é".as_bytes(), 1).unwrap_err();
    assert_eq!(told, "a key that is not ASCII, of a column of the type ascii (row 0)");
    let told = refused(b"a", 4).unwrap_err();
    assert!(told.contains("another version than 1"), "{told}");
}

#[test]
fn deletions_are_of_partitions_rows_and_ranges() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, Some(10));
    batch.entry(EntryKind::Static, &[0], NO_TIMESTAMP);
    batch.cell(S, &[], b"s", Some(11));
    let deletion = |timestamp| Deletion { timestamp, local_deletion: 7 };
    let row = batch.row(2, NO_TIMESTAMP);
    batch.0.entries.deletions.push(row, deletion(12));
    batch.bound(EntryKind::ExclusiveStart, &[3], 13);
    batch.bound(EntryKind::InclusiveEndExclusiveStart, &[5], 13);
    batch.0.entries.starts.push(3, deletion(14));
    batch.row(6, 20);
    batch.bound(EntryKind::InclusiveEnd, &[], 14);
    batch.partition(2, None);
    // A deletion that counts, and one that the marker has outlived.
    for (clustering, time) in [(1, 15), (2, 16)] {
        let row = batch.row(clustering, time);
        batch.0.entries.shadowables.push(row, deletion(15));
    }
    batch.partition(3, None);
    batch.partition(4, Some(17));
    let insert = "INSERT INTO k.t (p, c, a, \"B\", l, m, t, u) VALUES";
    assert_eq!(
        batch.said(&columns),
        [
            "0: DELETE FROM k.t WHERE p = 1 @10".to_string(),
            "1: UPDATE k.t USING TTL 0 SET s = s WHERE p = 1 @11".to_string(),
            "2: DELETE FROM k.t WHERE p = 1 AND c = 2 @12".to_string(),
            "4: DELETE FROM k.t WHERE p = 1 AND c > 3 AND c <= 5 @13".to_string(),
            format!("6: {insert} (1, 6, -, -, -, -, -, -) USING TTL 0 @20"),
            "7: DELETE FROM k.t WHERE p = 1 AND c > 5 @14".to_string(),
            "8: DELETE FROM k.t WHERE p = 2 AND c = 1 @15".to_string(),
            format!("8: {insert} (2, 1, -, -, -, -, -, -) USING TTL 0 @15"),
            format!("9: {insert} (2, 2, -, -, -, -, -, -) USING TTL 0 @16"),
            "11: DELETE FROM k.t WHERE p = 4 @17".to_string(),
        ]
    );
}

/// Rows and their deletions; nothing else is a write of one row.
#[test]
fn rows_have_keys() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, Some(10));
    batch.entry(EntryKind::Static, &[0], NO_TIMESTAMP);
    batch.cell(S, &[], b"s", Some(11));
    let row = batch.row(2, NO_TIMESTAMP);
    batch.0.entries.deletions.push(row, Deletion { timestamp: 12, local_deletion: 7 });
    batch.bound(EntryKind::InclusiveStart, &[3], 13);
    batch.bound(EntryKind::InclusiveEnd, &[3], 13);
    batch.row(2, 20);
    let mut statements = Statements::new(&columns, &TableName::parse("k.t").unwrap()).unwrap();
    statements.feed(batch.0).unwrap();
    let (mut keys, mut out) = (Vec::new(), RowStatements::default());
    while statements.next(AT, &mut out).unwrap() {
        keys.push((out.row, out.key.clone()));
    }
    let key = [0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2];
    let none = Vec::new;
    assert_eq!(keys, [(0, none()), (1, none()), (2, key.to_vec()), (4, none()), (5, key.to_vec())]);
}

/// The deletion of a partition would be of its static columns, too.
#[test]
fn all_rows_are_deleted_in_two_parts() {
    let columns = table();
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    batch.bound(EntryKind::InclusiveStart, &[], 13);
    batch.bound(EntryKind::InclusiveEnd, &[], 13);
    assert_eq!(
        batch.said(&columns),
        ["1: DELETE FROM k.t WHERE p = 1 AND c < 0 @13", "1: DELETE FROM k.t WHERE p = 1 AND c >= 0 @13",]
    );
}

#[test]
fn a_partition_goes_on_in_the_next_batch() {
    let columns = table();
    let mut statements = Statements::new(&columns, &TableName::parse("k.t").unwrap()).unwrap();
    let mut first = Build::new(&columns);
    first.partition(1, Some(10));
    first.bound(EntryKind::InclusiveStart, &[3], 13);
    first.0.is_open = true;
    statements.feed(first.0).unwrap();
    assert_eq!(said(&mut statements), ["0: DELETE FROM k.t WHERE p = 1 @10"]);
    let mut second = Build::new(&columns);
    second.0.continues = Continues::Partition;
    second.partition(1, Some(10));
    second.bound(EntryKind::ExclusiveEnd, &[4], 13);
    statements.feed(second.0.clone()).unwrap();
    assert_eq!(said(&mut statements), ["2: DELETE FROM k.t WHERE p = 1 AND c >= 3 AND c < 4 @13"]);
    // What is not there: the start, the end.
    statements.feed(second.0).unwrap();
    let error = statements.next(AT, &mut RowStatements::default()).unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Corrupt, Some(3)));
    let mut statements = Statements::new(&columns, &TableName::parse("k.t").unwrap()).unwrap();
    let mut first = Build::new(&columns);
    first.partition(1, None);
    first.bound(EntryKind::InclusiveStart, &[3], 13);
    statements.feed(first.0).unwrap();
    assert!(!statements.next(AT, &mut RowStatements::default()).unwrap());
    assert_eq!(statements.finish().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn what_cql_cannot_say() {
    let name = TableName::parse("k.t").unwrap();
    let counters = columns(&[], &[], &[("n", "CounterColumnType")]);
    let error = Statements::new(&counters, &name).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.message().contains("\"n\""), "{error}");
    let columns = table();
    // A cell of a row that is not there.
    let mut batch = Build::new(&columns);
    batch.partition(1, None);
    batch.row(2, 50);
    batch.cell(A, &[], &int(3), None);
    batch.0.columns[A].entries[0] = 9;
    let mut statements = Statements::new(&columns, &name).unwrap();
    statements.feed(batch.0).unwrap();
    let mut out = RowStatements::default();
    assert!(statements.next(AT, &mut out).unwrap());
    assert_eq!(statements.next(AT, &mut out).unwrap_err().kind(), ErrorKind::Corrupt);
}
