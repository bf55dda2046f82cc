//! Batches as sstabledump prints what is in an SSTable, with times as numbers.

use marquetry_scylla::sstable::batch::{
    Cells, Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Values,
};
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::statistics::SerializationHeader;

use crate::json::Json;
use crate::values;

/// What is built of batches.
pub(crate) struct Dump<'a> {
    header: &'a SerializationHeader,
    partitions: Vec<Partition>,
}

struct Partition {
    start: Vec<(String, Json)>,
    rows: Vec<Row>,
}

struct Row {
    head: Vec<(String, Json)>,
    /// Of a row; a bound has none.
    cells: Option<Vec<Json>>,
}

fn member(name: &str, value: Json) -> (String, Json) {
    (name.to_string(), value)
}

fn quoted(number: impl ToString) -> Json {
    Json::String(number.to_string())
}

impl<'a> Dump<'a> {
    pub(crate) fn new(header: &'a SerializationHeader) -> Dump<'a> {
        Dump { header, partitions: Vec::new() }
    }

    pub(crate) fn into_json(self) -> Json {
        let partition = |partition: Partition| {
            let rows = partition.rows.into_iter().map(|row| {
                let mut members = row.head;
                members.extend(row.cells.map(|cells| member("cells", Json::Array(cells))));
                Json::Object(members)
            });
            Json::Object(vec![
                member("partition", Json::Object(partition.start)),
                member("rows", Json::Array(rows.collect())),
            ])
        };
        Json::Array(self.partitions.into_iter().map(partition).collect())
    }

    /// Adds a batch.
    pub(crate) fn add(&mut self, batch: &MutationBatch) {
        check(batch);
        // The next cell of each column, and the next of its lists.
        let mut at = vec![0; batch.columns.len()];
        for number in 0..batch.partitions.ends.len() {
            if number > 0 || batch.continues == Continues::Nothing {
                let start = self.partition(batch, number);
                self.partitions.push(Partition { start, rows: Vec::new() });
            }
            for entry in batch.entries_of(number) {
                let continues = entry == 0 && batch.continues == Continues::Entry;
                let row = if continues { None } else { Some(self.entry(batch, entry)) };
                let partition = self.partitions.last_mut().expect("a partition");
                partition.rows.extend(row);
                let row = partition.rows.last_mut().expect("a row");
                if let Some(cells) = &mut row.cells {
                    for (column, at) in at.iter_mut().enumerate() {
                        row_cells(self.header, batch, column, entry, at, cells);
                    }
                }
            }
        }
    }

    fn partition(&self, batch: &MutationBatch, number: usize) -> Vec<(String, Json)> {
        let key = batch.partitions.keys.get(number).expect("a key");
        let key = match &self.header.key {
            MarshalType::Composite(members) => {
                let mut rest = key;
                let parts = members.iter().map(|kind| {
                    let (length, after) = rest.split_first_chunk::<2>().expect("a length");
                    let (value, after) = after.split_at(usize::from(u16::from_be_bytes(*length)));
                    rest = &after[1..];
                    quoted(values::text(kind, value))
                });
                parts.collect()
            }
            kind => vec![quoted(values::text(kind, key))],
        };
        let mut start = vec![member("key", Json::Array(key))];
        let deletion = batch.partitions.deletions.get(u32::try_from(number).expect("small"));
        start.extend(deletion.map(deletion_info));
        start
    }

    fn entry(&self, batch: &MutationBatch, number: usize) -> Row {
        let entries = &batch.entries;
        let entry = u32::try_from(number).expect("small");
        let kind = entries.kinds[number];
        let bound = |name: &str, is_inclusive: bool, deletion: Option<Deletion>| {
            let kind = if is_inclusive { "inclusive" } else { "exclusive" };
            let mut members = vec![member("type", quoted(kind))];
            members.extend(self.clustering(batch, number));
            members.push(deletion_info(deletion.expect("a deletion")));
            member(name, Json::Object(members))
        };
        let (closes, opens) = (entries.deletions.get(entry), entries.starts.get(entry));
        let bounds = match kind {
            EntryKind::Static | EntryKind::Row => None,
            EntryKind::InclusiveStart => Some(vec![bound("start", true, closes)]),
            EntryKind::ExclusiveStart => Some(vec![bound("start", false, closes)]),
            EntryKind::InclusiveEnd => Some(vec![bound("end", true, closes)]),
            EntryKind::ExclusiveEnd => Some(vec![bound("end", false, closes)]),
            EntryKind::ExclusiveEndInclusiveStart => {
                Some(vec![bound("start", true, opens), bound("end", false, closes)])
            }
            EntryKind::InclusiveEndExclusiveStart => {
                Some(vec![bound("start", false, opens), bound("end", true, closes)])
            }
        };
        if let Some(bounds) = bounds {
            let name = if kind.is_boundary() { "range_tombstone_boundary" } else { "range_tombstone_bound" };
            let mut head = vec![member("type", quoted(name))];
            head.extend(bounds);
            return Row { head, cells: None };
        }
        let name = if kind == EntryKind::Static { "static_block" } else { "row" };
        let mut head = vec![member("type", quoted(name))];
        if kind == EntryKind::Row {
            head.extend(self.clustering(batch, number));
        }
        let timestamp = entries.timestamps[number];
        if timestamp != NO_TIMESTAMP {
            let mut members = vec![member("tstamp", quoted(timestamp))];
            members.extend(entries.expiries.get(entry).into_iter().flat_map(expiry));
            head.push(member("liveness_info", Json::Object(members)));
        }
        head.extend(entries.deletions.get(entry).or(entries.shadowables.get(entry)).map(deletion_info));
        Row { head, cells: Some(Vec::new()) }
    }

    fn clustering(&self, batch: &MutationBatch, number: usize) -> Option<(String, Json)> {
        let entry = u32::try_from(number).expect("small");
        let entries = &batch.entries;
        let count = entries.prefixes.get(entry).map_or(entries.clustering.len(), |count| count as usize);
        if count == 0 {
            return None;
        }
        let columns = entries.clustering.iter().zip(&self.header.clustering).enumerate();
        let values = columns.map(|(at, (column, kind))| {
            if at >= count {
                return quoted("*");
            }
            assert!(!column.nulls.contains(&entry));
            let mut bytes = Vec::new();
            if !column.empties.contains(&entry) {
                column.values.append_bytes(number, &mut bytes);
            }
            values::json(kind, &bytes)
        });
        Some(member("clustering", Json::Array(values.collect())))
    }
}

fn deletion_info(deletion: Deletion) -> (String, Json) {
    let members = vec![
        member("marked_deleted", quoted(deletion.timestamp)),
        member("local_delete_time", quoted(deletion.local_deletion)),
    ];
    member("deletion_info", Json::Object(members))
}

fn expiry(expiry: Expiry) -> [(String, Json); 2] {
    [member("ttl", Json::Number(expiry.ttl.to_string())), member("expires_at", quoted(expiry.local_deletion))]
}

/// The cells of a column in an entry; `next` is the column's next cell.
fn row_cells(
    header: &SerializationHeader,
    batch: &MutationBatch,
    column: usize,
    entry: usize,
    next: &mut usize,
    json: &mut Vec<Json>,
) {
    let columns = header.statics.iter().chain(&header.regulars);
    let of = columns.clone().nth(column).expect("a column");
    let name = member("name", quoted(String::from_utf8(of.name.clone()).expect("a name")));
    let cells = &batch.columns[column];
    let entry = u32::try_from(entry).expect("small");
    if let Some(deletion) = cells.deletions.get(entry) {
        json.push(Json::Object(vec![name.clone(), deletion_info(deletion)]));
    }
    let row_timestamp = batch.entries.timestamps[entry as usize];
    let row_expiry = batch.entries.expiries.get(entry);
    while cells.entries.get(*next) == Some(&entry) {
        let number = *next;
        let cell = u32::try_from(number).expect("small");
        *next += 1;
        let mut members = vec![name.clone()];
        let path = cells.paths.get(number).unwrap_or_default();
        let value_kind = match &of.kind {
            MarshalType::List(value) => {
                members
                    .push(path_member(&MarshalType::Native(marquetry_scylla::cql::CqlType::Timeuuid), path));
                &**value
            }
            MarshalType::Set(element) => {
                members.push(path_member(element, path));
                &MarshalType::Native(marquetry_scylla::cql::CqlType::Text)
            }
            MarshalType::Map(key, value) => {
                members.push(path_member(key, path));
                &**value
            }
            MarshalType::User { fields, .. } => {
                let field = u16::from_be_bytes(path.try_into().expect("two bytes"));
                let (name, kind) = &fields[usize::from(field)];
                members.push(member("path", Json::Array(vec![quoted(name)])));
                kind
            }
            simple => simple,
        };
        if let Some(local) = cells.tombstones.get(cell) {
            let local = member("local_delete_time", quoted(local));
            members.push(member("deletion_info", Json::Object(vec![local])));
        } else {
            let mut bytes = Vec::new();
            if !cells.empties.contains(&cell) {
                cells.values.append_bytes(number, &mut bytes);
            }
            members.push(member("value", values::json(value_kind, &bytes)));
        }
        let timestamp = cells.timestamps.get(cell).unwrap_or(row_timestamp);
        if timestamp != row_timestamp {
            members.push(member("tstamp", quoted(timestamp)));
        }
        let own = cells.expiries.get(cell).or(row_expiry.filter(|_| cells.tombstones.get(cell).is_none()));
        if let Some(own) = own.filter(|own| *own != Expiry::NEVER)
            && row_expiry.is_none_or(|row| row.ttl != own.ttl)
        {
            members.extend(expiry(own));
        }
        json.push(Json::Object(members));
    }
}

fn path_member(kind: &MarshalType, path: &[u8]) -> (String, Json) {
    member("path", Json::Array(vec![quoted(values::text(kind, path))]))
}

/// What holds for every batch: arrays are as long as they must be, and numbers ascend.
fn check(batch: &MutationBatch) {
    let (partitions, entries) = (&batch.partitions, &batch.entries);
    let count = partitions.ends.len();
    assert_eq!((partitions.keys.len(), partitions.offsets.len()), (count, count));
    assert!(partitions.ends.is_sorted() && partitions.deletions.at.is_sorted());
    let count = entries.kinds.len();
    assert_eq!(entries.timestamps.len(), count);
    assert_eq!(partitions.ends.last().map_or(0, |end| *end as usize), count);
    for column in &entries.clustering {
        assert_eq!(column.values.len(), count);
        assert!(column.nulls.is_sorted() && column.empties.is_sorted());
    }
    for cells in &batch.columns {
        let Cells { values, paths, entries, .. } = cells;
        assert_eq!(values.len(), cells.len());
        assert!(paths.is_empty() || paths.len() == cells.len());
        assert!(entries.is_sorted() && entries.iter().all(|entry| (*entry as usize) < count));
        assert!(cells.empties.is_empty() || !matches!(values, Values::Strings(_)));
        for list in [&cells.timestamps.at, &cells.expiries.at, &cells.tombstones.at, &cells.empties] {
            assert!(list.is_sorted_by(|a, b| a < b) && list.iter().all(|at| (*at as usize) < cells.len()));
        }
    }
}
