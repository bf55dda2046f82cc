//! What a merge must come to, said as plainly as possible: a model of partitions as objects, and the rules over all writes at once.

use std::collections::{BTreeMap, BTreeSet};

use marquetry_scylla::sstable::counter;

/// A place in a partition: rows are at numbers that are divisible by four, bounds beside them.
pub(crate) type Position = (i64, i64);

/// Where the static row is.
pub(crate) const STATIC: Position = (i64::MIN, i64::MIN);

/// A write time, and a local deletion time: the greater one counts.
pub(crate) type Deletion = (i64, u32);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) deletion: Option<Deletion>,
    pub(crate) rows: BTreeMap<Position, Row>,
    /// Disjoint, in order.
    pub(crate) ranges: Vec<(Position, Position, Deletion)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) marker: Option<Marker>,
    pub(crate) deletion: Option<Deletion>,
    pub(crate) shadowable: Option<Deletion>,
    pub(crate) complex: BTreeMap<usize, Deletion>,
    /// By column and number of the path.
    pub(crate) cells: BTreeMap<(usize, i64), Cell>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) timestamp: i64,
    /// TTL, and when it expires.
    pub(crate) expiry: Option<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) timestamp: i64,
    pub(crate) life: Life,
    pub(crate) value: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Live,
    Expiring(u32, u32),
    Dead(u32),
}

impl Row {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Row::default()
    }
}

/// What several versions of a partition come to.
pub(crate) fn merge(versions: &[Partition], is_counter: bool) -> Partition {
    let deletion = versions.iter().filter_map(|version| version.deletion).max();
    let all: Vec<_> = versions.iter().flat_map(|version| version.ranges.iter().copied()).collect();
    let points: BTreeSet<Position> = all.iter().flat_map(|(start, end, _)| [*start, *end]).collect();
    let points: Vec<Position> = points.into_iter().collect();
    let mut ranges: Vec<(Position, Position, Deletion)> = Vec::new();
    for pair in points.windows(2) {
        let covering = all.iter().filter(|(start, end, _)| *start <= pair[0] && pair[1] <= *end);
        let Some(range) = covering.map(|(_, _, deletion)| *deletion).max() else { continue };
        if deletion > Some(range) {
            continue;
        }
        match ranges.last_mut() {
            Some((_, end, last)) if *end == pair[0] && *last == range => *end = pair[1],
            _ => ranges.push((pair[0], pair[1], range)),
        }
    }
    let places: BTreeSet<Position> =
        versions.iter().flat_map(|version| version.rows.keys().copied()).collect();
    let mut rows = BTreeMap::new();
    for place in places {
        let range = ranges.iter().find(|(start, end, _)| *start < place && place < *end);
        let active = deletion.max(range.map(|(_, _, deletion)| *deletion));
        let of_row: Vec<&Row> = versions.iter().filter_map(|version| version.rows.get(&place)).collect();
        let row = merge_rows(&of_row, active, is_counter);
        if !row.is_empty() {
            rows.insert(place, row);
        }
    }
    Partition { deletion, rows, ranges }
}

fn merge_rows(versions: &[&Row], outer: Option<Deletion>, is_counter: bool) -> Row {
    let marker = versions.iter().filter_map(|row| row.marker).max_by_key(marker_rank);
    let deletion = versions.iter().filter_map(|row| row.deletion).max().filter(|it| Some(*it) > outer);
    let shadowable = versions.iter().filter_map(|row| row.shadowable).max();
    let shadowable = shadowable
        .filter(|it| marker.is_none_or(|marker| marker.timestamp <= it.0))
        .filter(|it| Some(*it) > outer && Some(*it) > deletion);
    let active = outer.max(deletion).max(shadowable);
    let is_alive = |timestamp: i64, active: Option<Deletion>| active.is_none_or(|it| timestamp > it.0);
    let columns: BTreeSet<usize> = versions.iter().flat_map(|row| row.complex.keys().copied()).collect();
    let mut complex = BTreeMap::new();
    for column in columns {
        let deletion = versions.iter().filter_map(|row| row.complex.get(&column).copied()).max();
        complex.extend(deletion.filter(|it| Some(*it) > active).map(|it| (column, it)));
    }
    let names: BTreeSet<(usize, i64)> = versions.iter().flat_map(|row| row.cells.keys().copied()).collect();
    let mut cells = BTreeMap::new();
    for name in names {
        let active = active.max(complex.get(&name.0).copied());
        let all = versions.iter().filter_map(|row| row.cells.get(&name));
        let all: Vec<&Cell> = all.filter(|cell| is_alive(cell.timestamp, active)).collect();
        cells.extend(best(&all, is_counter).map(|cell| (name, cell)));
    }
    Row { marker: marker.filter(|it| is_alive(it.timestamp, active)), deletion, shadowable, complex, cells }
}

fn best(cells: &[&Cell], is_counter: bool) -> Option<Cell> {
    if !is_counter {
        return cells.iter().max_by_key(|cell| rank(cell)).map(|cell| (*cell).clone());
    }
    let dead = cells.iter().filter(|cell| matches!(cell.life, Life::Dead(_)));
    if let Some(dead) = dead.max_by_key(|cell| rank(cell)) {
        return Some((*dead).clone());
    }
    let mut cells = cells.iter().copied().cloned();
    let mut sum = cells.next()?;
    for cell in cells {
        sum.value = counter::merge(&sum.value, &cell.value).expect("counters");
        sum.timestamp = sum.timestamp.max(cell.timestamp);
    }
    Some(sum)
}

/// Of cells: write time, kind, local deletion time, the lower TTL, value.
fn rank(cell: &Cell) -> (i64, u32, u32, i64, Vec<u8>) {
    let value = cell.value.clone();
    match cell.life {
        Life::Live => (cell.timestamp, 0, 0, 0, value),
        Life::Expiring(ttl, local) => (cell.timestamp, 1, local, -i64::from(ttl), value),
        Life::Dead(local) => (cell.timestamp, 2, local, 0, value),
    }
}

fn marker_rank(marker: &Marker) -> (i64, u32, u32, i64) {
    match marker.expiry {
        None => (marker.timestamp, 0, 0, 0),
        Some((ttl, local)) => (marker.timestamp, 1, local, -i64::from(ttl)),
    }
}

/// What a SELECT returns of a merged partition.
pub(crate) fn live(partition: &Partition, now: u32) -> Partition {
    let mut live = Partition::default();
    for (place, row) in &partition.rows {
        let is_live = |life: Life| match life {
            Life::Live => true,
            Life::Expiring(_, local) => now < local,
            Life::Dead(_) => false,
        };
        let marker = row.marker.filter(|it| it.expiry.is_none_or(|(_, local)| now < local));
        let cells: BTreeMap<_, _> = row
            .cells
            .iter()
            .filter(|(_, cell)| is_live(cell.life))
            .map(|(name, cell)| (*name, cell.clone()))
            .collect();
        let is_static = *place == STATIC;
        if !cells.is_empty() || marker.is_some() && !is_static {
            live.rows.insert(*place, Row { marker, cells, ..Row::default() });
        }
    }
    live
}
