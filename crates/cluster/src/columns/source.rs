//! The file, read: ranges of bytes as the cells that hold them, fetched side by side and ahead.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Error, Limits, Result};
use marquetry_io::store::IsCancelled;
use marquetry_io::{ByteSource, ObjectVersion};

use super::head::Head;
use super::map::{self, Map, Segment};
use super::part::{Part, Version};
use super::run::{Cell, end_of};
use super::table::{Table, offset_max};

/// Bytes that one reader has asked for ahead, or was given and has not used.
const AHEAD_BYTES: u64 = 16 << 20;
/// Requests of one reader at a time that are ahead of what it needs.
const AHEAD_REQUESTS: usize = 16;
/// Requests of one read at a time. A range has as many parts as its map says.
const REQUESTS: usize = 32;
const _: () = assert!(AHEAD_REQUESTS <= REQUESTS);
/// Bytes of one reader's cells that are kept for what they have besides what was read: beyond it those far from what is read go first.
const KEPT_BYTES: u64 = 48 << 20;
/// How long to wait for an answer before checking whether the work was cancelled.
const LOOK_UP_AFTER: Duration = Duration::from_millis(50);
/// How often a version that is replaced just when it is opened is looked for.
const OPENINGS: u32 = 5;

/// What was asked of a table: by [`ColumnsTable::requested`](super::ColumnsTable::requested).
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// Cells that came.
    pub(super) cells: AtomicU64,
    /// Their bytes.
    pub(super) bytes: AtomicU64,
}

/// A version of the file.
pub(super) struct Opened {
    pub(super) table: Arc<Table>,
    pub(super) name: String,
    version: Version,
    map: Map,
    /// The last cell: the footer, or its end.
    tail: Option<Cell>,
    requested: Arc<Requested>,
}

impl Opened {
    /// Finds the version that is current, its map and its last cell. `None` of a table without a file.
    pub(super) async fn find(
        table: Arc<Table>,
        name: String,
        requested: Arc<Requested>,
        limits: Limits,
    ) -> Result<Option<Opened>> {
        let mut openings = 0;
        loop {
            openings += 1;
            let Some(head) = table.head().await? else { return Ok(None) };
            let Head { version, file_bytes, map_bytes } = head;
            map::check(&limits, map_bytes)?;
            let (map, tail) = tokio::try_join!(
                table.cells(version, Part::MAP, 0..map_bytes),
                table.cell_before(version, Part::FOOTER, offset_max())
            )?;
            let mut encoded = Vec::new();
            for (offset, bytes) in map {
                if offset == u64_of(encoded.len()) {
                    encoded.extend_from_slice(&bytes);
                }
            }
            let map = match u64_of(encoded.len()) == map_bytes {
                true => Map::decode(&encoded, file_bytes, &limits),
                false => Err(Error::corrupt(format!(
                    "cells of the map of version {version} are missing: it has {map_bytes} bytes, and {} are there",
                    encoded.len()
                ))),
            };
            let error = match map {
                Ok(map) => return Ok(Some(Opened { table, name, version, map, tail, requested })),
                Err(error) => error,
            };
            // It may have been replaced, and dropped, just now.
            if openings == OPENINGS || table.head().await? == Some(head) {
                return Err(error);
            }
        }
    }

    /// Its version, for stores.
    pub(super) fn object_version(&self) -> ObjectVersion {
        ObjectVersion::new(self.map.bytes(), self.version.to_string())
    }

    /// The cells that hold a range of a segment.
    async fn fetch(&self, segment: Segment, range: Range<u64>) -> Result<Vec<Cell>> {
        let cells = match self.table.holding(self.version, segment.part, range).await? {
            Ok(cells) => cells,
            Err(missing) => return Err(self.why_missing(segment.part, missing).await),
        };
        if let Some(offset) = beyond(&cells, &segment) {
            let Opened { version, .. } = self;
            let what = format!(
                "a cell of the file has bytes that are elsewhere by its map: version = {version}, {}",
                segment.part
            );
            return Err(Error::corrupt(what).at_offset(offset));
        }
        let bytes = cells.iter().map(|(_, bytes)| u64_of(bytes.len())).sum();
        self.requested.cells.fetch_add(u64_of(cells.len()), Ordering::Relaxed);
        self.requested.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(cells)
    }

    /// Why no cell has a byte.
    async fn why_missing(&self, part: Part, at: u64) -> Error {
        match self.table.head().await {
            Ok(Some(head)) if head.version == self.version => Error::corrupt(format!(
                "the table lacks a cell of the file: version = {}, {part}",
                self.version
            ))
            .at_offset(at),
            Ok(_) => Error::io("another version of it was written while it was read"),
            Err(error) => error,
        }
    }
}

/// The bytes of a version of the file.
pub(super) struct TableFile {
    opened: Arc<Opened>,
    is_cancelled: IsCancelled,
    cells: Mutex<Cells>,
}

impl TableFile {
    pub(super) fn new(opened: Arc<Opened>, is_cancelled: IsCancelled) -> TableFile {
        let mut cells = Cells::default();
        cells.add(opened.tail.iter().cloned());
        TableFile { opened, is_cancelled, cells: Mutex::new(cells) }
    }

    fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a range of a segment.
    fn request(&self, segment: Segment, range: Range<u64>) -> Result<Flying> {
        let (send, answer) = mpsc::sync_channel(1);
        let (opened, asked) = (Arc::clone(&self.opened), range.clone());
        self.opened.table.cluster.runtime().spawn(async move {
            // Nobody may want it any more.
            let _ = send.send(opened.fetch(segment, asked).await);
        })?;
        Ok(Flying { range, answer })
    }

    /// What nobody has asked for of a range, by segments.
    fn unasked<'a>(
        &'a self,
        cells: &Cells,
        range: &Range<u64>,
    ) -> impl Iterator<Item = (Segment, Range<u64>)> + use<'a> {
        cells.holes(range).into_iter().flat_map(move |hole| self.opened.map.holding(hole))
    }

    fn wait(&self, flying: &Flying) -> Result<Vec<Cell>> {
        loop {
            if (self.is_cancelled)() {
                return Err(Error::cancelled());
            }
            match flying.answer.recv_timeout(LOOK_UP_AFTER) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::internal("a task panicked")),
            }
        }
    }

    fn read_cells(&self, range: &Range<u64>) -> Result<Bytes> {
        let mut cells = self.cells();
        let unasked = self.unasked(&cells, range);
        cells.get(
            range,
            unasked,
            |segment, range| self.request(segment, range),
            |flying| self.wait(flying),
        )?;
        cells.take(range)
    }
}

impl ByteSource for TableFile {
    fn name(&self) -> &str {
        &self.opened.name
    }

    fn length(&self) -> Result<u64> {
        Ok(self.opened.map.bytes())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let length = self.opened.map.bytes();
        let read = if range.start > range.end || range.end > length {
            Err(Error::io(format!(
                "bytes {} to {} could not be read: it has {length} bytes",
                range.start, range.end
            )))
        } else if range.is_empty() {
            Ok(Bytes::new())
        } else {
            self.read_cells(&range)
        };
        read.map_err(|error| error.at(|place| place.object = Some(self.opened.name.clone())))
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        let mut cells = self.cells();
        for range in ranges.take(AHEAD_REQUESTS) {
            let range = range.start..range.end.min(self.opened.map.bytes());
            let bytes = range.end.saturating_sub(range.start);
            let is_full = cells.flying.len() >= AHEAD_REQUESTS || cells.held() + bytes > AHEAD_BYTES;
            if bytes == 0 || is_full {
                return;
            }
            let unasked = self.unasked(&cells, &range);
            for (segment, range) in unasked {
                // What cannot be asked for is asked for, and said, when it is read.
                let Ok(flying) = self.request(segment, range) else { return };
                cells.flying.push(flying);
                if cells.flying.len() >= AHEAD_REQUESTS {
                    return;
                }
            }
        }
    }
}

/// Where the first cell begins that has bytes which are not a segment's: a cell is in one. What had more would be held as often as its map wants.
fn beyond(cells: &[Cell], segment: &Segment) -> Option<u64> {
    let is_beyond = |cell: &&Cell| cell.0 < segment.start || end_of(cell) > segment.end;
    cells.iter().find(is_beyond).map(|(offset, _)| *offset)
}

/// A request.
struct Flying {
    range: Range<u64>,
    answer: mpsc::Receiver<Result<Vec<Cell>>>,
}

/// Cells that came, and those that will.
#[derive(Default)]
struct Cells {
    /// By where they begin, with how much of them was read: most of their bytes are read once.
    here: BTreeMap<u64, (Bytes, u64)>,
    flying: Vec<Flying>,
}

impl Cells {
    fn add(&mut self, cells: impl Iterator<Item = Cell>) {
        for (offset, bytes) in cells {
            self.here.entry(offset).or_insert((bytes, 0));
        }
    }

    /// Gets all of a range: waits for what is on its way, and asks for what nobody has asked for, not for all of it at a time.
    fn get(
        &mut self,
        range: &Range<u64>,
        mut unasked: impl Iterator<Item = (Segment, Range<u64>)>,
        mut request: impl FnMut(Segment, Range<u64>) -> Result<Flying>,
        mut wait: impl FnMut(&Flying) -> Result<Vec<Cell>>,
    ) -> Result<()> {
        let is_of = |it: &Flying| it.range.start < range.end && range.start < it.range.end;
        let mut on_their_way = self.flying.iter().filter(|it| is_of(it)).count();
        loop {
            while on_their_way < REQUESTS
                && let Some((segment, range)) = unasked.next()
            {
                self.flying.push(request(segment, range)?);
                on_their_way += 1;
            }
            let Some(at) = self.flying.iter().position(is_of) else { return Ok(()) };
            let flying = self.flying.swap_remove(at);
            on_their_way -= 1;
            self.add(wait(&flying)?.into_iter());
        }
    }

    /// Bytes that are here, or come.
    fn held(&self) -> u64 {
        let here: u64 = self.here.values().map(|(bytes, _)| u64_of(bytes.len())).sum();
        here + self.flying.iter().map(|it| it.range.end - it.range.start).sum::<u64>()
    }

    /// What is neither here nor coming of a range.
    fn holes(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let before = self.here.range(..=range.start).next_back();
        let here = before.into_iter().chain(self.here.range(range.start.saturating_add(1)..range.end));
        let here = here.map(|(offset, (bytes, _))| *offset..offset + u64_of(bytes.len()));
        let mut known: Vec<Range<u64>> = here.chain(self.flying.iter().map(|it| it.range.clone())).collect();
        known.retain(|it| it.start < range.end && range.start < it.end);
        known.sort_unstable_by_key(|it| it.start);
        let (mut holes, mut at) = (Vec::new(), range.start);
        for it in known {
            if at < it.start {
                holes.push(at..it.start);
            }
            at = at.max(it.end);
        }
        if at < range.end {
            holes.push(at..range.end);
        }
        holes
    }

    /// The bytes of a range that is here.
    fn take(&mut self, range: &Range<u64>) -> Result<Bytes> {
        let first = self.here.range(..=range.start).next_back().map_or(range.start, |(offset, _)| *offset);
        let (mut parts, mut done, mut at) = (Vec::new(), Vec::new(), range.start);
        for (offset, (bytes, used)) in self.here.range_mut(first..range.end) {
            let end = offset + u64_of(bytes.len());
            // What a table has twice, though no writer writes it so, is taken once.
            let (from, to) = (at.max(*offset), range.end.min(end));
            if from >= to {
                continue;
            }
            if from > at {
                break;
            }
            at = to;
            let index = |at: u64| usize_of(at - offset).unwrap_or(usize::MAX).min(bytes.len());
            parts.push(bytes.slice(index(from)..index(to)));
            *used += to - from;
            if *used >= u64_of(bytes.len()) {
                done.push(*offset);
            }
        }
        done.iter().for_each(|offset| drop(self.here.remove(offset)));
        self.make_room(range);
        if at < range.end {
            return Err(Error::internal("cells that were fetched are not there"));
        }
        if let [only] = &*parts {
            return Ok(only.clone());
        }
        let length = usize_of(range.end - range.start).unwrap_or(usize::MAX);
        let mut joined = Vec::new();
        joined.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        parts.iter().for_each(|part| joined.extend_from_slice(part));
        Ok(Bytes::from(joined))
    }

    /// Drops cells if they are too many: the farthest from what was read first.
    fn make_room(&mut self, read: &Range<u64>) {
        let mut held: u64 = self.here.values().map(|(bytes, _)| u64_of(bytes.len())).sum();
        while held > KEPT_BYTES {
            let distance = |offset: &u64| offset.abs_diff(read.end);
            let ends = [self.here.keys().next(), self.here.keys().next_back()];
            let Some(farthest) = ends.into_iter().flatten().copied().max_by_key(distance) else { return };
            let dropped = self.here.remove(&farthest);
            held -= dropped.map_or(0, |(bytes, _)| u64_of(bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(offset: u64, length: usize) -> Cell {
        let bytes: Vec<u8> = (0..length).map(|at| (offset + u64_of(at)).to_le_bytes()[0]).collect();
        (offset, Bytes::from(bytes))
    }

    fn coming(range: Range<u64>) -> Flying {
        Flying { range, answer: mpsc::sync_channel(1).1 }
    }

    #[test]
    fn holes_are_what_is_neither_here_nor_coming() {
        let mut cells = Cells::default();
        cells.add([cell(10, 10), cell(30, 10)].into_iter());
        cells.flying.push(coming(40..50));
        assert_eq!(cells.holes(&(0..60)), [0..10, 20..30, 50..60]);
        assert!(cells.holes(&(12..18)).is_empty());
        let hole = 20..25;
        assert_eq!(cells.holes(&(15..25)), [hole]);
        assert!(cells.holes(&(35..45)).is_empty());
        assert_eq!(cells.held(), 30);
    }

    #[test]
    fn what_was_read_goes_and_what_was_not_stays() {
        let mut cells = Cells::default();
        cells.add([cell(0, 10), cell(10, 10), cell(20, 10)].into_iter());
        let expected: Vec<u8> = (5..25).collect();
        assert_eq!(cells.take(&(5..25)).unwrap(), expected);
        assert_eq!(cells.here.keys().copied().collect::<Vec<_>>(), [0, 20]);
        assert_eq!(cells.take(&(25..30)).unwrap(), vec![25, 26, 27, 28, 29]);
        assert_eq!(cells.here.keys().copied().collect::<Vec<_>>(), [0]);
        // The same cell comes a second time.
        cells.add([cell(0, 10)].into_iter());
        assert_eq!(cells.take(&(0..5)).unwrap(), vec![0, 1, 2, 3, 4]);
        assert!(cells.here.is_empty());
    }

    #[test]
    fn what_overlaps_is_taken_once() {
        let mut cells = Cells::default();
        cells.add([cell(0, 10), cell(5, 15)].into_iter());
        let expected: Vec<u8> = (2..20).collect();
        assert_eq!(cells.take(&(2..20)).unwrap(), expected);
        let mut cells = Cells::default();
        cells.add([cell(0, 10)].into_iter());
        assert!(cells.take(&(5..11)).is_err());
    }

    #[test]
    fn cells_have_bytes_of_their_segment_only() {
        let segment = Segment { part: Part::FOOTER, start: 10, end: 30 };
        let beyond = |cells: &[Cell]| beyond(cells, &segment);
        assert_eq!(beyond(&[cell(10, 10), cell(20, 10)]), None);
        assert_eq!(beyond(&[cell(9, 11), cell(20, 10)]), Some(9));
        assert_eq!(beyond(&[cell(10, 10), cell(20, 11)]), Some(20));
    }

    /// A range of as many parts as bytes: some are asked for at a time, all of them in the end.
    #[test]
    fn requests_are_bounded() {
        const PARTS: u64 = 1000;
        let mut map = Map::default();
        for nth in 0..PARTS {
            map.push(Part { column: i32::from(nth % 2 == 0), row_group: 0, shard: 0 }, 1);
        }
        let mut cells = Cells::default();
        // Some of it is on its way, and something else, too.
        cells.flying.extend([coming(0..1), coming(PARTS..PARTS + 1)]);
        let (asked, most) = (std::cell::Cell::new(1_usize), std::cell::Cell::new(0));
        let holes = cells.holes(&(0..PARTS)).into_iter();
        let unasked: Vec<_> = holes.flat_map(|hole| map.holding(hole)).collect();
        assert_eq!(unasked.len(), 999);
        let request = |segment: Segment, range: Range<u64>| {
            assert_eq!(segment.start..segment.end, range);
            asked.set(asked.get() + 1);
            most.set(most.get().max(asked.get()));
            Ok(coming(range))
        };
        let wait = |flying: &Flying| {
            asked.set(asked.get() - 1);
            Ok(vec![cell(flying.range.start, 1)])
        };
        cells.get(&(0..PARTS), unasked.into_iter(), request, wait).unwrap();
        assert_eq!(most.get(), REQUESTS);
        let expected: Vec<u8> = (0..PARTS).map(|at| at.to_le_bytes()[0]).collect();
        assert_eq!(cells.take(&(0..PARTS)).unwrap(), expected);
        assert_eq!(cells.flying.len(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut cells = Cells::default();
        let mib = 1_u64 << 20;
        cells.add((0..60).map(|nth| (nth * mib, Bytes::from(vec![0; 1 << 20]))));
        cells.take(&(59 * mib..59 * mib + 1)).unwrap();
        assert!(cells.held() <= KEPT_BYTES);
        assert!(cells.here.contains_key(&(59 * mib)) && !cells.here.contains_key(&0));
    }
}
