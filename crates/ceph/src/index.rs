//! An index of a column's values, in the omap of the object: which rows may have a value, by its hash.
//!
//! ```text
//! marquetry.index              what it is of, how far it is, how many lists it has, and the parts that are in none of them
//! marquetry.index.list.LIST    256 parts, of a long index: what is said of them is written once, and not by each call
//! marquetry.index.PART.BUCKET  hashes of the values in a part that begin with these four bits, and their granules
//! ```
//!
//! A part has what a call indexed: up to 64 *granules* of some thousand rows. A bucket has its checksum (u32), and then a hash of 32 bits and a
//! granule (u8) for each value that a granule has, sorted. So a query that wants certain values of the column reads one bucket of each part for each of them, and tests the rows of
//! granules that have their hashes; that others have the same hash costs a little time.
//!
//! The index is of one state of the object, whose [mark](crate::cursor::Cursor::mark) it has. Of any other it is not used, and a new one takes its
//! place. Two objects whose lengths and footers are equal have the same mark: so who writes an object in place of another removes the omap. What
//! is damaged is not used either: its rows are searched as if there were no index.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{low_u32, u64_of, usize_of_u32};
use marquetry_base::{Error, Fields, Frame, Price, Result};
use marquetry_kernels::crc32::crc32;
use marquetry_parquet::batch::{RowSelection, Values};
use marquetry_parquet::bloom;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::BatchReader;
use marquetry_parquet::schema::{PhysicalType, Schema};

use crate::answer::Answer;
use crate::asked::leaves_of;
use crate::cursor::At;
use crate::host::{Driven, Host, OBJECT};
use crate::located::locate;
use crate::request::{Request, Step};

/// The key of the index in the omap; and how its keys begin.
const KEY: &str = "marquetry.index";
/// How the index begins: what it is, and the version of its encoding; and how one does that has lists, which the version before did not know.
const MAGIC: [u8; 4] = *b"MQI2";
const MAGIC_OF_LISTS: [u8; 4] = *b"MQI3";
const MARK: u16 = 1;
const LEAF: u16 = 2;
const NEXT: u16 = 3;
const PARTS: u16 = 4;
const LISTS: u16 = 5;

/// Parts of a list; and lists, at most: 65,536 parts are of more rows than an object has, unless calls index next to nothing.
const LIST_PARTS: usize = 256;
const LISTS_MAX: usize = 256;

/// Rows of a granule, at most, and granules of a part.
const GRANULE_ROWS: usize = 1024;
const GRANULES_MAX: usize = 64;
/// Granules that are searched at once where they follow each other; a call does not end in between.
const JOINED_MAX: usize = 4;
/// Granules that are looked up before it is said how many of them have a value, at least.
const GRANULES_MIN: usize = 4;
/// The part of its granules, as a divisor, beyond which a part is searched as if there were no index: to look for them one by one takes longer.
const MATCHES_MAX: usize = 4;
/// Buckets of a part: by the first four bits of a hash.
const BUCKETS: u64 = 16;
/// A hash, and a granule.
const ENTRY_BYTES: usize = 5;
/// What a bucket begins with.
const CHECKSUM_BYTES: usize = 4;
/// Values that a predicate may want of the column if they are looked up.
const VALUES_MAX: usize = 64;
/// What a value costs that is hashed and sorted.
const VALUE_PRICE: Price = Price::per_kilovalue(120 << 10);
/// What a byte of a text costs that is hashed; and the bytes of those of a granule, at most: many values may be one text of a dictionary.
const TEXT_PRICE: Price = Price::per_kib(400);
const TEXT_BYTES_MAX: usize = 32 << 20;
/// What a byte of a bucket costs whose checksum is computed; and what is known of a part of the index.
const CHECK_PRICE: Price = Price::per_kib(200);
const PART_PRICE: Price = Price::per_kilovalue(100 << 10);
/// The part of a share below which nothing more is begun.
const LEFT_MIN: u64 = 4;

/// What is known of an object's index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Index {
    mark: u32,
    /// The number of the column among the leaves: names may have dots, so a path may be that of another one.
    leaf: usize,
    /// Where it goes on; after the last row group if it is complete.
    next: At,
    /// Lists, and the parts after those that they have; or all parts, once they were [loaded](Index::load).
    lists: usize,
    parts: Vec<Part>,
}

/// Rows that were indexed by one call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    row_group: usize,
    first_row: u64,
    /// Rows of each granule.
    granules: Vec<u16>,
}

impl Part {
    fn end(&self) -> u64 {
        let rows: u64 = self.granules.iter().map(|rows| u64::from(*rows)).sum();
        // Whatever an omap says.
        self.first_row.saturating_add(rows)
    }
}

impl Index {
    /// The index of the object in its state, with all of its parts.
    fn load(host: &mut Host<'_>, metadata: &FileMetaData, mark: u32) -> Result<Option<Index>> {
        let Some(mut index) = Index::without_lists(host, mark)? else { return Ok(None) };
        let mut parts = Vec::new();
        for list in 0..index.lists {
            let key = list_key(list);
            let Some(bytes) = host.entry(&key)? else { return Ok(None) };
            host.charge(CHECK_PRICE.of(bytes.len(), 0) + PART_PRICE.of(0, LIST_PARTS));
            let listed = bytes.split_first_chunk::<CHECKSUM_BYTES>();
            let listed = listed.filter(|(checksum, parts)| **checksum == checksum_of(mark, &key, parts));
            let is_list = |parts: &Vec<Part>| {
                parts.len() == LIST_PARTS && parts.iter().all(|part| are_granules(&part.granules))
            };
            match listed.and_then(|(_, listed)| Index::parts_of(listed)).filter(is_list) {
                Some(mut listed) => parts.append(&mut listed),
                None => return Ok(None),
            }
        }
        parts.append(&mut index.parts);
        index.parts = parts;
        let first = first_with_rows(metadata, (0, 0));
        Ok(Some(index).filter(|index| index.is_of(metadata, first)))
    }

    /// The same, with the parts that are in no list.
    fn without_lists(host: &mut Host<'_>, mark: u32) -> Result<Option<Index>> {
        let Some(bytes) = host.entry(KEY)? else { return Ok(None) };
        let index = Index::parse(&bytes).ok().flatten();
        host.charge(PART_PRICE.of(0, index.as_ref().map_or(0, |index| index.parts.len())));
        Ok(index.filter(|index| index.mark == mark && index.lists <= LISTS_MAX))
    }

    fn parse(bytes: &[u8]) -> Result<Option<Index>> {
        let mut index = Index { mark: 0, leaf: usize::MAX, next: (0, 0), lists: 0, parts: Vec::new() };
        let magic = if bytes.starts_with(&MAGIC_OF_LISTS) { MAGIC_OF_LISTS } else { MAGIC };
        for field in Fields::of(bytes, magic)? {
            let field = field?;
            match field.number {
                MARK => index.mark = u32::try_from(field.u64()?).unwrap_or(0),
                LEAF => index.leaf = usize::try_from(field.u64()?).unwrap_or(usize::MAX),
                LISTS => index.lists = usize::try_from(field.u64()?).unwrap_or(usize::MAX),
                NEXT | PARTS => {
                    let Some(mut parts) = Index::parts_of(field.bytes) else { return Ok(None) };
                    if field.number == PARTS {
                        index.parts.append(&mut parts);
                    } else if let Some(next) = parts.last() {
                        index.next = (next.row_group, next.first_row);
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(index))
    }

    /// Parts, one after the other.
    fn parts_of(mut bytes: &[u8]) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let (part, rest) = Index::part(bytes)?;
            parts.push(part);
            bytes = rest;
        }
        Some(parts)
    }

    /// A part, and the bytes after it: row group (u32), first row (u64), number of granules (u16), rows of each (u16).
    fn part(bytes: &[u8]) -> Option<(Part, &[u8])> {
        let (row_group, bytes) = bytes.split_first_chunk::<4>()?;
        let (first_row, bytes) = bytes.split_first_chunk::<8>()?;
        let (count, bytes) = bytes.split_first_chunk::<2>()?;
        let (granules, rest) = bytes.split_at_checked(2 * usize::from(u16::from_le_bytes(*count)))?;
        let granules = granules.as_chunks::<2>().0.iter().map(|rows| u16::from_le_bytes(*rows)).collect();
        let row_group = usize_of_u32(u32::from_le_bytes(*row_group));
        Some((Part { row_group, first_row: u64::from_le_bytes(*first_row), granules }, rest))
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let mut parts = Vec::new();
        for part in &self.parts {
            write_part(part, &mut parts)?;
        }
        let mut next = Vec::new();
        let (row_group, first_row) = self.next;
        write_part(&Part { row_group, first_row, granules: Vec::new() }, &mut next)?;
        let mut frame = Frame::new(if self.lists > 0 { MAGIC_OF_LISTS } else { MAGIC });
        frame.push_u64(MARK, self.mark.into());
        frame.push_u64(LEAF, u64_of(self.leaf));
        if self.lists > 0 {
            frame.push_u64(LISTS, u64_of(self.lists));
        }
        frame.push(NEXT, &next).push(PARTS, &parts);
        Ok(frame.into_bytes())
    }

    /// Adds a part, and writes what is said of it.
    fn add(&mut self, part: Part, host: &mut Host<'_>) -> Result<()> {
        self.parts.push(part);
        while self.parts.len() >= LIST_PARTS {
            let key = list_key(self.lists);
            let mut listed = vec![0; CHECKSUM_BYTES];
            self.parts.drain(..LIST_PARTS).try_for_each(|part| write_part(&part, &mut listed))?;
            let (checksum, parts) = listed.split_at_mut(CHECKSUM_BYTES);
            checksum.copy_from_slice(&checksum_of(self.mark, &key, parts));
            host.set_entry(&key, &listed)?;
            self.lists += 1;
        }
        if self.lists > LISTS_MAX {
            return Err(Error::too_large("an index of so many parts"));
        }
        host.set_entry(KEY, &self.bytes()?)
    }

    /// Whether its parts are all rows of the object from `first` up to where it goes on, and their granules have as many rows as they may have.
    fn is_of(&self, metadata: &FileMetaData, first: At) -> bool {
        let rows = |group: usize| metadata.row_groups.get(group).map(|group| group.rows);
        let mut at = first;
        for part in &self.parts {
            let is_next = (part.row_group, part.first_row) == at;
            if !are_granules(&part.granules) || !is_next || Some(part.end()) > rows(part.row_group) {
                return false;
            }
            at = first_with_rows(metadata, (part.row_group, part.end()));
        }
        at == self.next
    }
}

/// Whether a part may have granules of so many rows each.
fn are_granules(rows: &[u16]) -> bool {
    let is_granule = |rows: &u16| (1..=GRANULE_ROWS).contains(&usize::from(*rows));
    (1..=GRANULES_MAX).contains(&rows.len()) && rows.iter().all(is_granule)
}

fn write_part(part: &Part, bytes: &mut Vec<u8>) -> Result<()> {
    let too_many = |_| Error::too_large("an index of so many rows");
    bytes.extend_from_slice(&u32::try_from(part.row_group).map_err(too_many)?.to_le_bytes());
    bytes.extend_from_slice(&part.first_row.to_le_bytes());
    bytes.extend_from_slice(&u16::try_from(part.granules.len()).map_err(too_many)?.to_le_bytes());
    for rows in &part.granules {
        bytes.extend_from_slice(&rows.to_le_bytes());
    }
    Ok(())
}

/// The first row from a place on.
fn first_with_rows(metadata: &FileMetaData, (mut group, mut row): At) -> At {
    while metadata.row_groups.get(group).is_some_and(|group| row >= group.rows) {
        (group, row) = (group + 1, 0);
    }
    (group, row)
}

fn key_of(part: usize, bucket: u64) -> String {
    format!("{KEY}.{part:08x}.{bucket:x}")
}

fn list_key(list: usize) -> String {
    format!("{KEY}.list.{list:08x}")
}

/// The checksum of a bucket's entries, or of a list, in the index of an object with this mark.
fn checksum_of(mark: u32, key: &str, entries: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32(crc32(mark, key.as_bytes()), entries).to_le_bytes()
}

/// Indexes more rows of the column; an answer without having written anything says that there are no more.
pub(crate) fn build(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let (metadata, mark) = host.footer()?;
    let [column] = request.columns.as_slice() else {
        return Err(Error::misuse("an index is of one column"));
    };
    let leaves = leaves_of(&metadata.schema, column, host)?;
    let leaf = leaves.start;
    let physical_type = metadata.schema.leaves().get(leaf).map(|leaf| leaf.physical_type);
    if leaves.len() != 1 || matches!(physical_type, Some(PhysicalType::Boolean | PhysicalType::Int96)) {
        return Err(Error::unsupported(format!("an index of {column}")));
    }
    let mut index = if request.step == Step::GoOn {
        // What is in lists does not matter for what comes after it.
        let known = Index::without_lists(host, mark)?.filter(|index| {
            let first = index.parts.first().map_or(index.next, |part| (part.row_group, part.first_row));
            index.leaf == leaf && first == first_with_rows(&metadata, first) && index.is_of(&metadata, first)
        });
        known.ok_or_else(|| Error::io("the object was changed meanwhile, or another index was begun"))?
    } else {
        // Also if there is one: it may be of other bytes that had the same end.
        Index { mark, leaf, next: first_with_rows(&metadata, (0, 0)), lists: 0, parts: Vec::new() }
    };
    if index.next.0 < metadata.row_groups.len() {
        let (part, mut entries) = read(host, &metadata, leaf, index.next)?;
        host.charge(VALUE_PRICE.of(0, entries.len()));
        entries.sort_unstable();
        entries.dedup();
        let number = index.lists * LIST_PARTS + index.parts.len();
        let mut rest = entries.as_slice();
        for bucket in 0..BUCKETS {
            let (own, after) = rest.split_at(rest.partition_point(|(hash, _)| bucket_of(*hash) <= bucket));
            rest = after;
            let mut bytes = Vec::with_capacity(CHECKSUM_BYTES + own.len() * ENTRY_BYTES);
            bytes.extend_from_slice(&[0; CHECKSUM_BYTES]);
            for (hash, granule) in own {
                bytes.extend_from_slice(&stored(*hash));
                bytes.push(*granule);
            }
            // Also one without a value, in place of what an older index has there.
            let key = key_of(number, bucket);
            let (checksum, entries) = bytes.split_at_mut(CHECKSUM_BYTES);
            checksum.copy_from_slice(&checksum_of(mark, &key, entries));
            host.set_entry(&key, &bytes)?;
        }
        index.next = first_with_rows(&metadata, (part.row_group, part.end()));
        index.add(part, host)?;
    }
    Ok(Answer { rows: metadata.rows, ..Answer::default() })
}

/// Reads rows from a place on, as many as the share pays for: the hashes of their values, with their granules.
fn read(
    host: &mut Host<'_>,
    metadata: &Arc<FileMetaData>,
    leaf: usize,
    (row_group, row): At,
) -> Result<(Part, Vec<(u64, u8)>)> {
    let mut options = Host::read_options();
    (options.leaves, options.row_groups) = (Some(vec![leaf]), Some(row_group..row_group + 1));
    (options.batch_rows, options.keep_dictionaries) = (GRANULE_ROWS, false);
    let mut reader = BatchReader::new(OBJECT, Arc::clone(metadata), Host::codecs(), options)?;
    if row > 0 {
        let mut located = Vec::new();
        locate(metadata, &[leaf], row_group, &mut located, host)?;
        reader.select(row_group, RowSelection::of(row..metadata.row_groups[row_group].rows)?)?;
        for (leaf, pages) in located {
            reader.locate(row_group, leaf, pages)?;
        }
    }
    let mut part = Part { row_group, first_row: row, granules: Vec::new() };
    let mut entries = Vec::new();
    let least = host.share().units / LEFT_MIN;
    for granule in 0..u8::try_from(GRANULES_MAX).unwrap_or(u8::MAX) {
        let price = VALUE_PRICE.of(0, entries.len());
        if granule > 0 && host.left() <= least.saturating_add(price) {
            break;
        }
        let until = host.work().units + host.left();
        match host.drive_until(&mut reader, until, |_| granule > 0)? {
            Driven::Ready(batch) => {
                let rows = u16::try_from(batch.rows).map_err(|_| Error::internal("too many rows"))?;
                part.granules.push(rows);
                for column in &batch.columns {
                    let bytes = text_bytes(&column.values);
                    host.charge(TEXT_PRICE.of(bytes, 0));
                    if bytes > TEXT_BYTES_MAX {
                        return Err(Error::too_large(format!("{bytes} bytes of text in rows to be indexed")));
                    }
                    each_hash(&column.values, &mut |hash| entries.push((hash, granule)));
                }
            }
            Driven::Done | Driven::Spent => break,
        }
    }
    if part.granules.is_empty() {
        return Err(Error::internal("a row group that ends before its rows"));
    }
    Ok((part, entries))
}

/// The hashes of values, by their PLAIN bytes. What stands in place of a null is hashed, too, which does no harm.
fn each_hash(values: &Values, take: &mut dyn FnMut(u64)) {
    match values {
        Values::Int32(values) => values.iter().for_each(|value| take(bloom::hash(&value.to_le_bytes()))),
        Values::Int64(values) => values.iter().for_each(|value| take(bloom::hash(&value.to_le_bytes()))),
        Values::Float(values) => values.iter().for_each(|value| take(bloom::hash(&value.to_le_bytes()))),
        Values::Double(values) => values.iter().for_each(|value| take(bloom::hash(&value.to_le_bytes()))),
        Values::ByteArray(values) => values.iter().for_each(|value| take(bloom::hash(value))),
        Values::Int96(values) | Values::FixedLenByteArray(values) => {
            (0..values.len()).for_each(|at| take(bloom::hash(values.get(at))));
        }
        Values::Boolean(_) => {}
        Values::Dictionary(_, values) => each_hash(values, take),
    }
}

/// Bytes of texts, each counted as often as it is there.
fn text_bytes(values: &Values) -> usize {
    match values {
        Values::ByteArray(values) => values.iter().map(<[u8]>::len).fold(0, usize::saturating_add),
        _ => 0,
    }
}

fn bucket_of(hash: u64) -> u64 {
    hash >> 60
}

/// The 32 bits of a hash after those of its bucket, in the order of the hashes.
fn stored(hash: u64) -> [u8; 4] {
    low_u32(hash << 4 >> 32).to_be_bytes()
}

/// Where rows may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// From a place on to a row of the same row group.
    Rows(At, u64),
    /// Nowhere before this place.
    None(At),
    /// From this place on nothing is known, up to a row of the same row group; or to the object's end.
    Unknown(At, Option<u64>),
}

/// An index that a predicate is looked up in.
pub(crate) struct Lookup {
    index: Index,
    /// Of the values, one of which a row must have.
    hashes: Vec<u64>,
    /// What was looked up last.
    known: Option<Known>,
    /// The parts of which nothing is known, of those that were come to since something was: as many after them are not looked up. So a part that
    /// helps is not passed for long, and looking up others that do not costs little.
    unknown: usize,
}

/// Parts that follow each other in a row group.
struct Known {
    parts: Range<usize>,
    /// The rows of their granules, and whether they have one of the values; `None` if that is not known, or too many have one.
    granules: Option<Vec<(Range<u64>, bool)>>,
}

impl Lookup {
    /// The index, if there is one of a column of which the predicate wants certain values.
    pub(crate) fn of(
        host: &mut Host<'_>,
        metadata: &FileMetaData,
        mark: u32,
        predicate: &Predicate,
    ) -> Result<Option<Lookup>> {
        let schema = &metadata.schema;
        if !predicate.leaves().into_iter().any(|leaf| values_of(predicate, schema, leaf).is_some()) {
            return Ok(None);
        }
        let Some(index) = Index::load(host, metadata, mark)? else { return Ok(None) };
        let leaf = predicate.leaves().into_iter().find(|leaf| *leaf == index.leaf);
        let values = leaf.and_then(|leaf| values_of(predicate, schema, leaf));
        Ok(values.map(|values| {
            let mut hashes: Vec<u64> = values.iter().map(|value| bloom::hash(value)).collect();
            hashes.sort_unstable();
            Lookup { index, hashes, known: None, unknown: 0 }
        }))
    }

    /// Where the next rows may be, from a place on.
    pub(crate) fn next(
        &mut self,
        mut at: At,
        metadata: &FileMetaData,
        host: &mut Host<'_>,
    ) -> Result<Candidate> {
        let mut number = self.index.parts.partition_point(|part| (part.row_group, part.end()) <= at);
        while let Some(part) = self.index.parts.get(number) {
            let (row_group, first_row) = (part.row_group, part.first_row);
            let Some(granules) = &self.known(number, host)?.granules else {
                let end = self.unknown_end(number);
                return Ok(Candidate::Unknown(at.max((row_group, first_row)), Some(end)));
            };
            // The first of them that are left, and those that follow it.
            let is_left = |(rows, has_some): &&(Range<u64>, bool)| *has_some && (row_group, rows.end) > at;
            let left = granules.iter().skip_while(|granule| !is_left(granule));
            let mut wanted = left.map_while(|(rows, has_some)| has_some.then_some(rows)).take(JOINED_MAX);
            if let Some(rows) = wanted.next() {
                let from = if at.0 == row_group { rows.start.max(at.1) } else { rows.start };
                let end = wanted.last().unwrap_or(rows).end;
                self.unknown = 0;
                return Ok(Candidate::Rows((row_group, from), end));
            }
            let looked_up = self.known.as_ref().map_or(number + 1, |known| known.parts.end);
            (number, self.unknown) = (looked_up, 0);
            at = first_with_rows(metadata, (row_group, self.index.parts[number - 1].end()));
            if host.left() <= host.share().units / LEFT_MIN {
                return Ok(Candidate::None(at));
            }
        }
        let at = at.max(self.index.next);
        let is_within = at.0 < metadata.row_groups.len();
        Ok(if is_within { Candidate::Unknown(at, None) } else { Candidate::None(at) })
    }

    /// A search has come to the row up to which it was said that nothing is [known](Candidate::Unknown): up to which row that is so from there on,
    /// in the same row group. `None`: something is known there, or there are no more parts of it.
    pub(crate) fn unknown_from(&mut self, at: At, host: &mut Host<'_>) -> Result<Option<u64>> {
        let number = self.index.parts.partition_point(|part| (part.row_group, part.end()) <= at);
        if self.index.parts.get(number).is_none_or(|part| part.row_group != at.0) {
            return Ok(None);
        }
        let is_known = self.known(number, host)?.granules.is_some();
        Ok((!is_known).then(|| self.unknown_end(number)))
    }

    /// The row up to which a search goes on without the index from a part on of which nothing is known.
    fn unknown_end(&mut self, number: usize) -> u64 {
        let parts = &self.index.parts;
        let row_group = parts.get(number).map_or(0, |part| part.row_group);
        let of_group = parts.partition_point(|part| part.row_group <= row_group);
        let looked_up = self.known.as_ref().map_or(number, |known| known.parts.end).max(number + 1);
        let end = looked_up.saturating_add(self.unknown).min(of_group.max(number + 1));
        let last_row = parts.get(end - 1).map_or(u64::MAX, Part::end);
        self.unknown = self.unknown.saturating_add(end - number);
        last_row
    }

    /// What is known of a part, and of those after it if it is short: of few granules it would not be seen that too many have one.
    fn known(&mut self, number: usize, host: &mut Host<'_>) -> Result<&Known> {
        let known = self.known.take().filter(|known| known.parts.contains(&number));
        let known = match known {
            Some(known) => known,
            None => self.look_up(number, host)?,
        };
        Ok(self.known.insert(known))
    }

    fn look_up(&self, number: usize, host: &mut Host<'_>) -> Result<Known> {
        let row_group = self.index.parts[number].row_group;
        let (mut parts, mut granules) = (number..number, Vec::new());
        while granules.len() < GRANULES_MIN
            && (granules.is_empty() || host.left() > 0)
            && let Some(part) = self.index.parts.get(parts.end).filter(|part| part.row_group == row_group)
        {
            parts.end += 1;
            let Some(have_some) = self.looked_up(parts.end - 1, host)? else {
                return Ok(Known { parts, granules: None });
            };
            let mut start = part.first_row;
            granules.extend(part.granules.iter().zip(have_some).map(|(rows, has_some)| {
                let rows = start..start + u64::from(*rows);
                start = rows.end;
                (rows, has_some)
            }));
        }
        let matches = granules.iter().filter(|(_, has_some)| *has_some).count();
        let runs = granules.chunk_by(|one, other| one.1 == other.1).filter(|run| run[0].1);
        let searches: usize = runs.map(|run| run.len().div_ceil(JOINED_MAX)).sum();
        // Of few granules, one search alone may be of more than that.
        let is_single = searches <= 1 && (matches <= 1 || matches < granules.len());
        let is_few = is_single || matches * MATCHES_MAX <= granules.len();
        Ok(Known { parts, granules: is_few.then_some(granules) })
    }

    /// Which granules of a part have one of the values; `None` if what the index has of it is missing, or damaged.
    fn looked_up(&self, number: usize, host: &mut Host<'_>) -> Result<Option<Vec<bool>>> {
        let mut granules = vec![false; self.index.parts[number].granules.len()];
        for (at, hash) in self.hashes.iter().enumerate() {
            let is_same = |before: &u64| bucket_of(*before) == bucket_of(*hash);
            if at > 0 && self.hashes.get(at - 1).is_some_and(is_same) {
                // Its bucket was looked at for all of its hashes.
                continue;
            }
            let own: Vec<[u8; 4]> =
                self.hashes.iter().filter(|other| is_same(other)).map(|hash| stored(*hash)).collect();
            let key = key_of(number, bucket_of(*hash));
            let Some(bytes) = host.entry(&key)? else { return Ok(None) };
            let Some((checksum, entries)) = bytes.split_first_chunk::<CHECKSUM_BYTES>() else {
                return Ok(None);
            };
            host.charge(CHECK_PRICE.of(bytes.len(), 0));
            if *checksum != checksum_of(self.index.mark, &key, entries) {
                return Ok(None);
            }
            let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
            for hash in own {
                let first = entries.partition_point(|[hash_bytes @ .., _]| *hash_bytes < hash);
                for [_, _, _, _, granule] in entries[first..].iter().take_while(|[of @ .., _]| *of == hash) {
                    if let Some(has_some) = granules.get_mut(usize::from(*granule)) {
                        *has_some = true;
                    }
                }
            }
        }
        Ok(Some(granules))
    }
}

/// The values of a leaf of which a row must have one, as PLAIN bytes.
fn values_of(predicate: &Predicate, schema: &Schema, leaf: usize) -> Option<Vec<Vec<u8>>> {
    match predicate {
        Predicate::Test(test) if test.leaf == leaf => test.plain_values(schema, VALUES_MAX),
        Predicate::And(all) => all.iter().find_map(|one| values_of(one, schema, leaf)),
        Predicate::Test(_) | Predicate::Or(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granules_that_no_call_makes_are_not_believed() {
        assert!(are_granules(&[1024, 1, 1023]) && are_granules(&[7; GRANULES_MAX]));
        for wrong in [&[][..], &[0, 100], &[1025], &[u16::MAX; 4], &[7; GRANULES_MAX + 1]] {
            assert!(!are_granules(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn hashes_are_stored_in_their_order() {
        let mut hashes: Vec<u64> = (0..1000_u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .filter(|hash| bucket_of(*hash) == 7)
            .collect();
        hashes.sort_unstable();
        assert!(hashes.is_sorted_by_key(|hash| stored(*hash)) && hashes.len() > 10);
        assert_eq!(stored(0xf123_4567_89ab_cdef), [0x12, 0x34, 0x56, 0x78]);
    }
}
