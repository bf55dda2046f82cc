//! Partitions are found where they are: by keys, by tokens, and in pieces.

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, ErrorKind, Limits, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::Continues;
use marquetry_scylla::sstable::filter::FilterReader;
use marquetry_scylla::sstable::index::{
    ALL_TOKENS, IndexFiles, IndexedData, PartitionFinder, Piece, Query, SummaryReader,
};
use marquetry_scylla::sstable::statistics::Statistics;
use marquetry_scylla::sstable::{Component, DataOptions, murmur3_token};

use crate::craft::Craft;
use crate::driver::{self, Manner, Random};
use crate::files::{Files, OBJECT, next, one};
use crate::fixtures;

const INDEX: Object = Object(8);
const ROWS: Object = Object(9);

/// An SSTable with its index.
#[derive(Clone)]
struct Indexed {
    files: Files,
    statistics: Arc<Statistics>,
    index: Bytes,
    rows: Bytes,
    summary: Option<Bytes>,
    filter: Bytes,
}

/// A partition: its key, its token, and where it is.
#[derive(Debug, Clone)]
struct Partition {
    key: Vec<u8>,
    token: i64,
    data: Range<u64>,
}

impl Indexed {
    fn open(path: &Path) -> Indexed {
        let files = Files::open(path);
        let statistics = Arc::new(files.read_statistics().expect("statistics"));
        let folder = path.parent().expect("a folder");
        let read = |component: Component| {
            let path = folder.join(files.name.of(&component));
            path.exists().then(|| Bytes::from(std::fs::read(path).expect("a file")))
        };
        let filter = read(Component::Filter).expect("Filter.db");
        let (index, rows) = match read(Component::Index) {
            Some(index) => (index, Bytes::new()),
            None => {
                (read(Component::Partitions).expect("Partitions.db"), read(Component::Rows).expect("Rows.db"))
            }
        };
        let summary = read(Component::Summary);
        Indexed { statistics, index, rows, summary, filter, files }
    }

    fn is_trie(&self) -> bool {
        self.summary.is_none()
    }

    fn is_murmur3(&self) -> bool {
        self.statistics.partitioner.ends_with("Murmur3Partitioner")
    }

    fn indexed_data(&self) -> Result<IndexedData> {
        let index = match &self.summary {
            Some(summary) => {
                let summary = one(SummaryReader::new(OBJECT, Limits::DEFAULT), summary)?;
                IndexFiles::Big { index: INDEX, summary: Some(Arc::new(summary)) }
            }
            None => IndexFiles::Trie { partitions: INDEX, rows: ROWS },
        };
        Ok(IndexedData {
            index,
            data: OBJECT,
            packing: self.files.packing()?,
            codecs: Arc::new(StandardCodecs::default()),
            partitioner: self.statistics.partitioner.clone(),
            ends: self.statistics.stats.key_range.clone(),
        })
    }

    fn find_as(&self, query: Query, manner: Manner) -> Result<Vec<Piece>> {
        let mut finder = PartitionFinder::new(&self.indexed_data()?, query, Limits::DEFAULT)?;
        let objects =
            [(OBJECT, self.files.data.clone()), (INDEX, self.index.clone()), (ROWS, self.rows.clone())];
        let mut found = None;
        let report = driver::run_over(&mut finder, &objects, manner, |pieces| {
            assert!(found.is_none(), "a second product");
            found = Some(pieces);
            Ok(())
        })?;
        crate::hostile::check_units(report.units_max, manner);
        Ok(found.expect("a product"))
    }

    fn find(&self, query: Query) -> Result<Vec<Piece>> {
        self.find_as(query, Manner::KIND)
    }

    /// Whether the Bloom filter says that a key may be there.
    fn may_have(&self, key: &[u8]) -> bool {
        one(FilterReader::new(OBJECT, self.files.name.version, key, Limits::DEFAULT), &self.filter).unwrap()
    }

    /// The keys of a part of the data, read from start to end.
    fn keys(&self, range: Option<Range<u64>>) -> Vec<Vec<u8>> {
        let mut options = DataOptions::default();
        options.range = range;
        let mut reader = self.files.reader(&self.statistics, options).unwrap();
        let mut keys = Vec::new();
        while let Some(batch) = next(&mut reader, &self.files.data).unwrap() {
            let goes_on = usize::from(batch.continues != Continues::Nothing);
            let of = &batch.partitions.keys;
            keys.extend((goes_on..of.len()).map(|at| of.get(at).unwrap().to_vec()));
        }
        keys
    }

    /// All partitions, each found by its key: together they are all data, one after the other, and each is what is read there.
    fn partitions(&self) -> Vec<Partition> {
        let mut at = 0;
        let mut partitions = Vec::new();
        for key in self.keys(None) {
            assert!(self.may_have(&key), "{key:?} is not in the filter");
            let found = self.find(Query::Key(key.clone())).unwrap();
            let [piece] = &found[..] else { panic!("{key:?}: {found:?}") };
            assert_eq!(piece.data.start, at, "{key:?}");
            at = piece.data.end;
            let token = murmur3_token(&key);
            if self.is_murmur3() {
                assert_eq!(piece.tokens, token..=token);
            }
            partitions.push(Partition { key, token, data: piece.data.clone() });
        }
        assert_eq!(at, self.data_bytes());
        partitions
    }

    fn data_bytes(&self) -> u64 {
        match self.files.packing().unwrap() {
            marquetry_scylla::sstable::Packing::Compressed(info) => info.data_bytes,
            marquetry_scylla::sstable::Packing::Plain(_) => self.files.data.len() as u64,
        }
    }
}

/// Every partition of an SSTable is found by its key and by its token, and pieces of it have all of them.
pub(crate) fn check_all(path: &Path) {
    let indexed = Indexed::open(path);
    let partitions = indexed.partitions();
    for partition in &partitions {
        let found = indexed.find(Query::Tokens(partition.token..=partition.token)).unwrap();
        assert_eq!(found[0].data, partition.data);
    }
    for count in [2, 5] {
        check_split(&indexed.find(Query::Split(count)).unwrap(), &partitions, count, true);
    }
}

/// Where partitions of these tokens are.
fn expected(partitions: &[Partition], tokens: &RangeInclusive<i64>) -> Range<u64> {
    let end = partitions.last().map_or(0, |last| last.data.end);
    let from = |at: usize| partitions.get(at).map_or(end, |partition| partition.data.start);
    let first = partitions.partition_point(|partition| partition.token < *tokens.start());
    let last = partitions.partition_point(|partition| partition.token <= *tokens.end());
    from(first)..from(last)
}

fn check_split(pieces: &[Piece], partitions: &[Partition], count: u32, is_sound: bool) {
    let data_bytes = partitions.last().map_or(0, |last| last.data.end);
    assert!(pieces.len() <= count as usize && !pieces.is_empty());
    assert_eq!((pieces[0].data.start, *pieces[0].tokens.start()), (0, i64::MIN));
    let last = pieces.last().unwrap();
    assert_eq!((last.data.end, *last.tokens.end()), (data_bytes, i64::MAX));
    for pair in pieces.windows(2) {
        assert_eq!(pair[0].data.end, pair[1].data.start);
        assert_eq!(pair[0].tokens.end() + 1, *pair[1].tokens.start());
    }
    for piece in pieces {
        assert!(!piece.data.is_empty());
        let is_start = partitions.iter().any(|partition| partition.data.start == piece.data.start);
        assert!(is_start, "{piece:?} begins inside of a partition");
        if is_sound {
            assert_eq!(piece.data, expected(partitions, &piece.tokens));
        }
    }
    if !is_sound {
        return;
    }
    // Each is as large as it should be, give or take half of the largest partition.
    let largest = partitions.iter().map(|partition| partition.data.end - partition.data.start).max().unwrap();
    let wanted = data_bytes / u64::from(count);
    for piece in pieces {
        let bytes = piece.data.end - piece.data.start;
        assert!(bytes <= wanted + wanted / 8 + largest + 1, "{bytes} of {wanted}, {largest}: {pieces:?}");
    }
}

#[test]
fn every_partition_is_found_by_its_key_and_no_other_is() {
    let Some(all) = fixtures() else { return };
    let mut random = Random(5);
    for path in all {
        let indexed = Indexed::open(&path);
        let partitions = indexed.partitions();
        for partition in partitions.iter().take(20) {
            assert_eq!(
                indexed.keys(Some(partition.data.clone())),
                [&partition.key[..]],
                "{}",
                path.display()
            );
        }
        let (mut absent, mut false_positives) = (0, 0);
        for partition in partitions.iter().take(60) {
            let mut others = vec![[&partition.key[..], b"x"].concat(), partition.key[1..].to_vec()];
            for _ in 0..10 {
                let mut other = partition.key.clone();
                let at = random.index(other.len());
                other[at] ^= random.byte() | 1;
                others.push(other);
            }
            for other in others {
                if partitions.iter().any(|partition| partition.key == other) {
                    continue;
                }
                absent += 1;
                false_positives += usize::from(indexed.may_have(&other));
                assert_eq!(
                    indexed.find(Query::Key(other.clone())).unwrap(),
                    [],
                    "{}: {other:?}",
                    path.display()
                );
            }
        }
        let stored = indexed.statistics.bloom_false_positives;
        assert!(
            false_positives as f64 <= stored * absent as f64 * 3.0 + 3.0,
            "{false_positives} of {absent}"
        );
    }
}

#[test]
fn token_ranges_have_their_partitions_and_no_others() {
    let Some(all) = fixtures() else { return };
    let mut random = Random(9);
    for path in all {
        let indexed = Indexed::open(&path);
        if !indexed.is_murmur3() {
            let error = indexed.find(Query::Tokens(ALL_TOKENS)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            continue;
        }
        let partitions = indexed.partitions();
        let mut borders = vec![i64::MIN, i64::MIN + 1, 0, i64::MAX - 1, i64::MAX];
        for _ in 0..20 {
            let token = partitions[random.index(partitions.len())].token;
            borders.extend([token - 1, token, token + 1, random.number().cast_signed()]);
        }
        for _ in 0..200 {
            let pair = [0, 1].map(|_| borders[random.index(borders.len())]);
            let tokens = pair[0].min(pair[1])..=pair[0].max(pair[1]);
            let found = indexed.find(Query::Tokens(tokens.clone())).unwrap();
            let data = expected(&partitions, &tokens);
            assert_eq!(found, [Piece { tokens, data }], "{}", path.display());
        }
        let none = RangeInclusive::new(5, 4);
        assert!(indexed.find(Query::Tokens(none)).unwrap()[0].data.is_empty());
    }
}

#[test]
fn splits_cover_everything_once() {
    let Some(all) = fixtures() else { return };
    for path in all {
        let indexed = Indexed::open(&path);
        if !indexed.is_murmur3() {
            continue;
        }
        let partitions = indexed.partitions();
        for count in [1, 2, 3, 7, 100] {
            let pieces = indexed.find(Query::Split(count)).unwrap();
            check_split(&pieces, &partitions, count, true);
        }
        assert_eq!(indexed.find(Query::Split(0)).unwrap_err().kind(), ErrorKind::Misuse);
    }
}

#[test]
fn what_is_found_does_not_depend_on_the_host() {
    let Some(all) = fixtures() else { return };
    let names = ["/simple/", "5.0.9-da-lz4/wide/", "3.11.10-md-lz4/mix/", "/cnt/"];
    for path in all.iter().filter(|path| names.iter().any(|name| path.to_string_lossy().contains(name))) {
        let indexed = Indexed::open(path);
        let partitions = indexed.partitions();
        let some = &partitions[partitions.len() / 3];
        let queries = [
            Query::Key(some.key.clone()),
            Query::Key(b"absent".to_vec()),
            Query::Tokens(some.token - 5..=some.token + (1 << 61)),
            Query::Split(5),
        ];
        for query in queries {
            let expected = indexed.find(query.clone()).unwrap();
            for manner in [Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
                let found = indexed.find_as(query.clone(), manner).unwrap();
                assert_eq!(found, expected, "{}: {query:?} {manner:?}", path.display());
            }
        }
        for manner in [Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
            let version = indexed.files.name.version;
            let mut may = None;
            let mut reader = FilterReader::new(OBJECT, version, &some.key, Limits::DEFAULT);
            driver::run(&mut reader, OBJECT, &indexed.filter, manner, |it| {
                may = Some(it);
                Ok(())
            })
            .unwrap();
            assert_eq!(may, Some(true));
        }
    }
}

/// Asks for little: a look-up in 2,000 partitions reads some blocks of the index.
#[test]
fn a_search_asks_for_some_blocks_only() {
    let Some(all) = fixtures() else { return };
    for path in all.iter().filter(|path| path.to_string_lossy().contains("/simple/")) {
        let indexed = Indexed::open(path);
        let mut finder = PartitionFinder::new(
            &indexed.indexed_data().unwrap(),
            Query::Key(indexed.keys(None)[700].clone()),
            Limits::DEFAULT,
        )
        .unwrap();
        let objects = [
            (OBJECT, indexed.files.data.clone()),
            (INDEX, indexed.index.clone()),
            (ROWS, indexed.rows.clone()),
        ];
        let mut asked = [0, 0];
        let product = crate::files::next_over(&mut finder, &objects, |object, range| {
            asked[usize::from(object == INDEX)] += range.end - range.start;
        });
        assert_eq!(product.unwrap().unwrap().len(), 1);
        assert!(asked[1] <= 16 << 10, "{} bytes of the index of {}", asked[1], path.display());
        assert!(asked[0] <= 68 << 10, "{} bytes of the data of {}", asked[0], path.display());
    }
}

/// Every end, and three changes of every byte.
fn faults(bytes: &Bytes, step: usize) -> impl Iterator<Item = Bytes> + '_ {
    let cut = (0..bytes.len()).step_by(step).map(|end| bytes.slice(..end));
    let changed = (0..bytes.len()).step_by(step).flat_map(|at| {
        [0x01, 0x80, 0xff].map(|flip| {
            let mut changed = bytes.to_vec();
            changed[at] ^= flip;
            Bytes::from(changed)
        })
    });
    cut.chain(changed)
}

/// A trie in which every node has the same child twice has a million million paths; it is left at the second visit to a leaf.
#[test]
fn a_trie_whose_leaves_are_shared_is_refused_at_once() {
    let Some(all) = fixtures() else { return };
    let path = all.iter().find(|path| path.to_string_lossy().contains("5.0.9-da-none/mix/da-2")).unwrap();
    let indexed = Indexed::open(path);
    let key = indexed.partitions()[0].key.clone();
    // Of a place in the data, or in Rows.db. One of the two hashes is not the key's.
    for (leaf, is_rows) in [(0xfe, false), (0x01, true)]
        .into_iter()
        .flat_map(|(place, is_rows)| [0x55, 0xaa].map(|hash| ([0x08, hash, place], is_rows)))
    {
        // A leaf of another hash; nodes of two children; and the token, a byte a node.
        let mut trie = leaf.to_vec();
        let mut distance = 3;
        for _ in 0..40 {
            trie.extend([0x50, 2, 1, 2, distance, distance]);
            distance = 6;
        }
        let token = (marquetry_base::cast::bits_u64(murmur3_token(&key)) ^ 1 << 63).to_be_bytes();
        for byte in token.iter().rev().chain(&[0x40]) {
            trie.extend([0x20, *byte, distance]);
            distance = 3;
        }
        let (end, root) = (trie.len() as u64, trie.len() as u64 - 3);
        for _ in 0..2 {
            trie.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
            trie.extend(&key);
        }
        for number in [end, 1, root] {
            trie.extend(number.to_be_bytes());
        }
        let faulty = Indexed { index: Bytes::from(trie), ..indexed.clone() };
        let error = faulty.find(Query::Key(key.clone())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{is_rows}: {error}");
        assert!(error.to_string().contains("follow each other"), "{is_rows}: {error}");
    }
}

/// An index that was cut where an entry ends has no byte that is wrong; but it does not end where the data do.
#[test]
fn an_index_that_was_cut_is_noticed() {
    let Some(all) = fixtures() else { return };
    let names =
        ["4.1.10-nb-snappy/cnt/", "3.11.19-me-none/mix/", "5.0.9-oa-none/mix/oa-2", "5.0.9-da-none/mix/da-2"];
    let mut seen = 0;
    for path in &all {
        if !names.iter().any(|name| path.to_string_lossy().contains(name)) {
            continue;
        }
        seen += 1;
        let indexed = Indexed::open(path);
        let partitions = indexed.partitions();
        let last = partitions.last().unwrap().token;
        for end in 0..indexed.index.len() {
            let faulty = Indexed { index: indexed.index.slice(..end), ..indexed.clone() };
            let ranges =
                [i64::MIN..=last - 1, last..=last, last + 1..=i64::MAX, i64::MIN..=partitions[0].token];
            for tokens in ranges {
                match faulty.find(Query::Tokens(tokens.clone())) {
                    Ok(found) => {
                        assert_eq!(found[0].data, expected(&partitions, &tokens), "{tokens:?} of {end}")
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                        assert!(error.place().object.is_some(), "{error}");
                    }
                }
            }
            for query in [Query::Tokens(last..=last), Query::Key(partitions.last().unwrap().key.clone())] {
                let is_lost = faulty
                    .find(query.clone())
                    .is_ok_and(|found| found.is_empty() || found[0].data.is_empty());
                assert!(!is_lost || matches!(query, Query::Key(_)), "{end}: {}", path.display());
            }
        }
        let empty = Indexed { index: Bytes::new(), ..indexed.clone() };
        for query in
            [Query::Tokens(ALL_TOKENS), Query::Tokens(last..=last), Query::Split(3), Query::Key(vec![1])]
        {
            let error = empty.find(query).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }
    assert!(seen >= names.len());
}

/// What a faulty index gives: an error that says where, or what is right. It may have lost partitions, because it has no checksum.
fn check_answers(faulty: &Indexed, partitions: &[Partition]) {
    let is_placed = |error: &Error| {
        let place = error.place().object.clone();
        assert!(place.is_some_and(|place| place.ends_with(".db")), "{error}");
    };
    let is_border = |at: u64| {
        let last = partitions.last().unwrap();
        at == last.data.end || partitions.iter().any(|partition| partition.data.start == at)
    };
    for partition in [&partitions[0], &partitions[partitions.len() / 2], partitions.last().unwrap()] {
        match faulty.find(Query::Key(partition.key.clone())) {
            Ok(found) => {
                // The end is the next partition that the index has.
                for piece in found {
                    assert_eq!(piece.data.start, partition.data.start);
                    assert!(is_border(piece.data.end), "{piece:?}");
                }
            }
            Err(error) => is_placed(&error),
        }
    }
    let middle = partitions[partitions.len() / 2].token;
    for tokens in [i64::MIN..=middle, middle..=i64::MAX] {
        match faulty.find(Query::Tokens(tokens)) {
            Ok(found) => assert!(is_border(found[0].data.start) && is_border(found[0].data.end), "{found:?}"),
            Err(error) => is_placed(&error),
        }
    }
    match faulty.find(Query::Split(3)) {
        Ok(found) => check_split(&found, partitions, 3, false),
        Err(error) => is_placed(&error),
    }
}

#[test]
fn faults_of_indexes_are_errors_or_lose_partitions() {
    let Some(all) = fixtures() else { return };
    // Small ones, at every byte; and larger ones here and there.
    let names = [
        ("4.1.10-nb-snappy/cnt/", 1),
        ("3.11.19-me-none/wide/me-1", 1),
        ("5.0.9-oa-none/mix/oa-2", 1),
        ("5.0.9-da-none/mix/da-2", 1),
        ("5.0.9-da-none/wide/da-1", 1),
        ("5.0.9-da-lz4/mix/da-1", 1),
        ("5.0.9-da-none/simple/", 509),
        ("4.1.10-nb-lz4/simple/", 1009),
    ];
    for path in &all {
        let Some((_, step)) = names.iter().find(|(name, _)| path.to_string_lossy().contains(name)) else {
            continue;
        };
        let indexed = Indexed::open(path);
        let partitions = indexed.partitions();
        for index in faults(&indexed.index, *step) {
            check_answers(&Indexed { index, ..indexed.clone() }, &partitions);
        }
        for rows in faults(&indexed.rows, *step) {
            check_answers(&Indexed { rows, ..indexed.clone() }, &partitions);
        }
        for summary in indexed.summary.iter().flat_map(|summary| faults(summary, *step)) {
            check_answers(&Indexed { summary: Some(summary), ..indexed.clone() }, &partitions);
        }
        for filter in faults(&indexed.filter, *step) {
            let faulty = Indexed { filter, ..indexed.clone() };
            let version = indexed.files.name.version;
            let reader = FilterReader::new(OBJECT, version, &partitions[0].key, Limits::DEFAULT);
            if let Err(error) = one(reader, &faulty.filter) {
                assert_eq!(error.place().object.as_deref(), Some("Filter.db"));
            }
        }
    }
}

/// Without a summary Index.db is read from its start; positions of a partitioner without tokens are found, too.
#[test]
fn an_index_without_a_summary_is_read_from_its_start() {
    let Some(all) = fixtures() else { return };
    for path in all.iter().filter(|path| path.to_string_lossy().contains("nb-lz4/simple/")) {
        let indexed = Indexed::open(path);
        assert!(!indexed.is_trie());
        let mut data = indexed.indexed_data().unwrap();
        data.index = IndexFiles::Big { index: INDEX, summary: None };
        let objects = [(OBJECT, indexed.files.data.clone()), (INDEX, indexed.index.clone())];
        let last = indexed.partitions().pop().unwrap();
        let found = indexed.find(Query::Last).unwrap();
        assert_eq!(found, [Piece { tokens: last.token..=last.token, data: last.data }]);
        for query in [Query::Key(indexed.keys(None)[1_500].clone()), Query::Split(4), Query::Last] {
            let mut finder = PartitionFinder::new(&data, query.clone(), Limits::DEFAULT).unwrap();
            let mut found = None;
            driver::run_over(&mut finder, &objects, Manner::USUAL, |pieces| {
                found = Some(pieces);
                Ok(())
            })
            .unwrap();
            assert_eq!(found, Some(indexed.find(query).unwrap()));
        }
    }
}

/// Scylla.db as ScyllaDB's documents describe it (no file of ScyllaDB was at hand).
#[test]
fn the_schema_in_a_scylla_db() {
    use marquetry_scylla::sstable::scylla_metadata::{ColumnKind, ScyllaMetadataReader};
    let string =
        |craft: Craft, text: &str| craft.raw(&(text.len() as u32).to_be_bytes()).raw(text.as_bytes());
    let mut schema =
        string(string(Craft::default().raw(&[7; 32]), "ks"), "readings").raw(&4_u32.to_be_bytes());
    for (kind, name) in [(1_u8, "sensor"), (2, "at"), (3, "place"), (4, "value")] {
        schema = string(string(schema.raw(&[kind]), name), "org.apache.cassandra.db.marshal.UTF8Type");
    }
    let origin = string(Craft::default(), "memtable").bytes;
    let mut file = Craft::default().raw(&4_u32.to_be_bytes());
    for (tag, bytes) in [(2_u32, &[0; 8][..]), (6, &origin), (11, &schema.bytes), (99, b"unknown")] {
        file = file.raw(&tag.to_be_bytes()).raw(&(bytes.len() as u32).to_be_bytes()).raw(bytes);
    }
    let bytes = Bytes::from(file.raw(&[1, 2, 3, 4]).bytes);
    let read = |bytes: &Bytes| one(ScyllaMetadataReader::new(OBJECT, Limits::DEFAULT), bytes);
    let made = read(&bytes).unwrap();
    assert_eq!(made.origin.as_deref(), Some("memtable"));
    let schema = made.schema.unwrap();
    assert_eq!((schema.keyspace.as_str(), schema.table.as_str()), ("ks", "readings"));
    let names = [ColumnKind::PartitionKey, ColumnKind::Clustering, ColumnKind::Static, ColumnKind::Regular];
    assert_eq!(
        names.map(|kind| schema.names(kind)),
        [["sensor"], ["at"], ["place"], ["value"]].map(|n| n.map(String::from).to_vec())
    );
    assert_eq!(schema.key_names().clustering, ["at"]);
    for bytes in faults(&bytes, 1) {
        if let Err(error) = read(&bytes) {
            assert_eq!(error.place().object.as_deref(), Some("Scylla.db"), "{error}");
        }
    }
}
