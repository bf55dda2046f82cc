//! What a merge must come to, said as plainly as possible: a model of partitions as objects, and the rules over all writes at once.

use std::collections::{BTreeMap, BTreeSet};

use marquetry_scylla::sstable::counter;

/// A place in a partition, in the order of rows and bounds.
pub(crate) trait Place: Ord + Clone + std::fmt::Debug {
    /// Whether it is the static row's, which comes first.
    fn is_static(&self) -> bool;
}

/// A write time, and a local deletion time: the greater one counts.
pub(crate) type Deletion = (i64, u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition<P: Ord, N: Ord> {
    pub(crate) deletion: Option<Deletion>,
    pub(crate) rows: BTreeMap<P, Row<N>>,
    /// Disjoint, in order.
    pub(crate) ranges: Vec<(P, P, Deletion)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row<N: Ord> {
    pub(crate) marker: Option<Marker>,
    pub(crate) deletion: Option<Deletion>,
    pub(crate) shadowable: Option<Deletion>,
    pub(crate) complex: BTreeMap<usize, Deletion>,
    /// By column and path.
    pub(crate) cells: BTreeMap<(usize, N), Cell>,
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

impl<P: Ord, N: Ord> Default for Partition<P, N> {
    fn default() -> Partition<P, N> {
        Partition { deletion: None, rows: BTreeMap::new(), ranges: Vec::new() }
    }
}

impl<N: Ord> Default for Row<N> {
    fn default() -> Row<N> {
        Row {
            marker: None,
            deletion: None,
            shadowable: None,
            complex: BTreeMap::new(),
            cells: BTreeMap::new(),
        }
    }
}

impl<P: Ord, N: Ord> Partition<P, N> {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Partition::default()
    }
}

impl<N: Ord> Row<N> {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Row::default()
    }
}

/// What several versions of a partition come to.
pub(crate) fn merge<P: Place, N: Ord + Clone>(
    versions: &[Partition<P, N>],
    is_counter: bool,
) -> Partition<P, N> {
    let deletion = versions.iter().filter_map(|version| version.deletion).max();
    let all: Vec<_> = versions.iter().flat_map(|version| version.ranges.iter().cloned()).collect();
    let points: BTreeSet<P> = all.iter().flat_map(|(start, end, _)| [start.clone(), end.clone()]).collect();
    let points: Vec<P> = points.into_iter().collect();
    let mut ranges: Vec<(P, P, Deletion)> = Vec::new();
    for pair in points.windows(2) {
        let covering = all.iter().filter(|(start, end, _)| *start <= pair[0] && pair[1] <= *end);
        let Some(range) = covering.map(|(_, _, deletion)| *deletion).max() else { continue };
        if deletion > Some(range) {
            continue;
        }
        match ranges.last_mut() {
            Some((_, end, last)) if *end == pair[0] && *last == range => *end = pair[1].clone(),
            _ => ranges.push((pair[0].clone(), pair[1].clone(), range)),
        }
    }
    let places: BTreeSet<P> = versions.iter().flat_map(|version| version.rows.keys().cloned()).collect();
    let mut rows = BTreeMap::new();
    for place in places {
        let range = ranges.iter().find(|(start, end, _)| *start < place && place < *end);
        let active = deletion.max(range.map(|(_, _, deletion)| *deletion));
        let of_row: Vec<&Row<N>> = versions.iter().filter_map(|version| version.rows.get(&place)).collect();
        let row = merge_rows(&of_row, active, is_counter);
        if !row.is_empty() {
            rows.insert(place, row);
        }
    }
    Partition { deletion, rows, ranges }
}

fn merge_rows<N: Ord + Clone>(versions: &[&Row<N>], outer: Option<Deletion>, is_counter: bool) -> Row<N> {
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
    let names: BTreeSet<(usize, N)> = versions.iter().flat_map(|row| row.cells.keys().cloned()).collect();
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
pub(crate) fn live<P: Place, N: Ord + Clone>(partition: &Partition<P, N>, now: u32) -> Partition<P, N> {
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
            .map(|(name, cell)| (name.clone(), cell.clone()))
            .collect();
        if !cells.is_empty() || marker.is_some() && !place.is_static() {
            live.rows.insert(place.clone(), Row { marker, cells, ..Row::default() });
        }
    }
    live
}

/// The partitions of an SSTable, by token and key.
pub(crate) type Sstable<P, N> = BTreeMap<(i64, Vec<u8>), Partition<P, N>>;

/// What SSTables come to.
pub(crate) fn merge_all<P: Place, N: Ord + Clone>(
    inputs: &[Sstable<P, N>],
    is_counter: bool,
) -> Sstable<P, N> {
    let mut by_key: BTreeMap<(i64, Vec<u8>), Vec<Partition<P, N>>> = BTreeMap::new();
    for (key, partition) in inputs.iter().flatten() {
        by_key.entry(key.clone()).or_default().push(partition.clone());
    }
    let merged = by_key.into_iter().map(|(key, versions)| (key, merge(&versions, is_counter)));
    merged.filter(|(_, partition)| !partition.is_empty()).collect()
}

/// What a SELECT returns of a merged table.
pub(crate) fn live_of_all<P: Place, N: Ord + Clone>(table: &Sstable<P, N>, now: u32) -> Sstable<P, N> {
    let live = table.iter().map(|(key, partition)| (key.clone(), live(partition, now)));
    live.filter(|(_, partition)| !partition.is_empty()).collect()
}
