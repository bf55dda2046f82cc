//! What of the format a file uses, and the matrix of what is read and written: `docs/FEATURES.md`.
//!
//! The rows are those of the implementation status page of the format's site, and some that it lacks. A row is ticked by
//! evidence alone: [`observe`] says what a file uses, [`Evidence`] collects it from the files that compared equal to another
//! reader or to what was put into them, and [`document`] fails for a row that wants more than was seen.

mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use marquetry_base::{Bytes, Codec, Limits, Result};
use marquetry_parquet::format::{
    ColumnChunk, ColumnOrder, Compression, Encoding, FileMetaData, PageHeader, PageKind,
};
use marquetry_parquet::read::PageScanner;
use marquetry_parquet::schema::{Leaf, LogicalType, Node, NodeKind, PhysicalType, Repetition, Schema};

use crate::blooms;
use crate::canonical::FILE;
use crate::hostile::{self, Manner};

pub use written::{check, document as written};

/// Where a feature was seen, in the order that the document names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A file of parquet-testing.
    Corpus,
    /// A file of `writers/files`, by one of many more writers.
    Kept,
    /// A file of `craft`.
    Crafted,
    /// A file by pyarrow.
    Pyarrow,
    /// A file by parquet-rs.
    ParquetRs,
    /// A file by DuckDB.
    DuckDb,
    /// A file by Polars.
    Polars,
    /// A file by fastparquet.
    Fastparquet,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Source::Corpus => "parquet-testing",
            Source::Kept => "kept",
            Source::Crafted => "crafted",
            Source::Pyarrow => "pyarrow",
            Source::ParquetRs => "parquet-rs",
            Source::DuckDb => "DuckDB",
            Source::Polars => "Polars",
            Source::Fastparquet => "fastparquet",
        }
    }
}

/// Rows of the matrix with what was seen of them, and what was refused.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    seen: BTreeMap<&'static str, Seen>,
    /// The errors that files got.
    refused: BTreeMap<&'static str, BTreeSet<String>>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    /// What it was seen with: of a type its encodings, of an encoding its types.
    details: BTreeSet<String>,
    /// Of each source, the file whose name comes first.
    files: BTreeMap<Source, String>,
}

/// A feature's row, and what it was seen with.
pub type Observation = (&'static str, String);

impl Evidence {
    /// Adds what a file uses that compared equal.
    pub fn add(&mut self, source: Source, file: &str, observations: impl IntoIterator<Item = Observation>) {
        for (row, detail) in observations {
            debug_assert!(is_row(row), "{row}");
            let seen = self.seen.entry(row).or_default();
            if !detail.is_empty() {
                seen.details.insert(detail);
            }
            let first = seen.files.entry(source).or_insert_with(|| file.to_owned());
            if file < first.as_str() {
                file.clone_into(first);
            }
        }
    }

    /// Adds what a file was refused with that uses a feature.
    pub fn refuse(&mut self, row: &'static str, message: &str) {
        debug_assert!(is_row(row), "{row}");
        self.refused.entry(row).or_default().insert(message.to_owned());
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Evidence) {
        for (row, seen) in &other.seen {
            for (&source, file) in &seen.files {
                self.add(source, file, seen.details.iter().map(|detail| (*row, detail.clone())));
                self.add(source, file, [(*row, String::new())]);
            }
        }
        for (row, messages) in &other.refused {
            self.refused.entry(row).or_default().extend(messages.iter().cloned());
        }
    }
}

// -----------------------------------------------------------------------------------------------------------------------
// The rows

/// What is claimed of a row.
enum Claim {
    /// Read: it was seen, with all of these at least.
    Read(&'static [&'static str]),
    /// Refused: there is a file for which reading said so.
    Refused,
    /// Files that have it are read, it is not used; with the reason.
    PassedOver(&'static str),
    /// Not there yet; with the reason.
    NotYet(&'static str),
    /// Used by another machine than the reader, which other tests prove: which one, and what it does.
    Elsewhere(&'static str),
}

struct Row(&'static str, Claim);

const PLAIN: &str = "PLAIN";
const DICTIONARY: &str = "RLE_DICTIONARY";
const SPLIT: &str = "BYTE_STREAM_SPLIT";
const DELTA: &str = "DELTA_BINARY_PACKED";
const DELTA_BYTES: &str = "DELTA_BYTE_ARRAY";
const DELTA_LENGTH: &str = "DELTA_LENGTH_BYTE_ARRAY";
const ALP: &str = "ALP";

const INTEGERS: Claim = Claim::Read(&[PLAIN, DICTIONARY, DELTA, SPLIT]);
const FLOATS: Claim = Claim::Read(&[PLAIN, DICTIONARY, SPLIT, ALP]);
const BYTES: Claim = Claim::Read(&[PLAIN, DICTIONARY, DELTA_LENGTH, DELTA_BYTES]);
const FIXED: Claim = Claim::Read(&[PLAIN, DICTIONARY, DELTA_BYTES, SPLIT]);
const BOTH_VERSIONS: Claim = Claim::Read(&["V1 pages", "V2 pages"]);
const ANY: Claim = Claim::Read(&[]);

const MIN_MAX: &str = "Statistics min_value, max_value";
const INTS: &str = "8, 16, 32, 64 bit signed and unsigned INT";
const SPLIT_MORE: &str = "BYTE_STREAM_SPLIT (additional types)";
const BLOOM: &str = "xxHash-based bloom filters";
const NAN_COUNTS: &str = "IEEE 754 total order and NaN counts";
/// A row that the comparison of projections is the evidence of.
pub const SELECT: &str = "Reading select columns only";
/// A row of what is refused.
pub const EXTERNAL: &str = "External column data";
const SORTING: &str = "Row group \"Sorting column\" metadata";
/// See [`EXTERNAL`].
pub const ENCRYPTION: &str = "Modular encryption";
/// A row that a footer alone does not show.
pub const CONVERTED: &str = "Types annotated with ConvertedType alone";
/// See [`CONVERTED`].
pub const EXTENSIONS: &str = "Binary protocol extensions";
const REPEATED: &str = "Repeated fields without annotation";
const GROUPS: &str = "Groups (structs)";
const MIXED: &str = "Dictionary and other pages in one column chunk";

/// The matrix: titles, and the rows below each. The first five tables are those of the implementation status page.
const TABLES: [(&str, &[Row]); 7] = [
    (
        "Physical types",
        &[
            Row("BOOLEAN", Claim::Read(&[PLAIN, "RLE"])),
            Row("INT32", INTEGERS),
            Row("INT64", INTEGERS),
            Row("INT96 (deprecated)", Claim::Read(&[PLAIN, DICTIONARY])),
            Row("FLOAT", FLOATS),
            Row("DOUBLE", FLOATS),
            Row("BYTE_ARRAY", BYTES),
            Row("FIXED_LEN_BYTE_ARRAY", FIXED),
        ],
    ),
    (
        "Logical types",
        &[
            Row("STRING", BYTES),
            Row("ENUM", BYTES),
            Row("UUID", FIXED),
            Row(
                INTS,
                Claim::Read(&[
                    "INT(8)", "INT(16)", "INT(32)", "INT(64)", "UINT(8)", "UINT(16)", "UINT(32)", "UINT(64)",
                ]),
            ),
            Row("DECIMAL (INT32)", INTEGERS),
            Row("DECIMAL (INT64)", INTEGERS),
            Row("DECIMAL (BYTE_ARRAY)", BYTES),
            Row("DECIMAL (FIXED_LEN_BYTE_ARRAY)", FIXED),
            Row("FLOAT16", FIXED),
            Row("DATE", INTEGERS),
            Row("TIME (INT32)", INTEGERS),
            Row("TIME (INT64)", INTEGERS),
            Row("TIMESTAMP (INT64)", INTEGERS),
            Row("INTERVAL", FIXED),
            Row("JSON", BYTES),
            Row("BSON", BYTES),
            Row("VARIANT", Claim::Read(&["shredded", "unshredded"])),
            Row("GEOMETRY", ANY),
            Row("GEOGRAPHY", ANY),
            Row("FILE", ANY),
            Row("LIST", Claim::Read(&["three levels", "two levels"])),
            Row("MAP", Claim::Read(&["keys alone", "keys and values", "MAP_KEY_VALUE"])),
            Row("UNKNOWN (always null)", ANY),
        ],
    ),
    (
        "Encodings",
        &[
            Row(PLAIN, Claim::Read(&ALL_TYPES)),
            Row("PLAIN_DICTIONARY", ANY),
            Row(DICTIONARY, Claim::Read(&DICTIONARY_TYPES)),
            Row("RLE", Claim::Read(&["BOOLEAN", "levels"])),
            Row("BIT_PACKED (deprecated)", Claim::Read(&["levels"])),
            Row(DELTA, Claim::Read(&["INT32", "INT64"])),
            Row(DELTA_LENGTH, Claim::Read(&["BYTE_ARRAY"])),
            Row(DELTA_BYTES, Claim::Read(&["BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"])),
            Row(SPLIT, Claim::Read(&["DOUBLE", "FLOAT"])),
            Row(SPLIT_MORE, Claim::Read(&["FIXED_LEN_BYTE_ARRAY", "INT32", "INT64"])),
            Row(ALP, Claim::Read(&["DOUBLE", "FLOAT"])),
        ],
    ),
    (
        "Compressions",
        &[
            Row("UNCOMPRESSED", BOTH_VERSIONS),
            Row("BROTLI", BOTH_VERSIONS),
            Row("GZIP", BOTH_VERSIONS),
            Row("LZ4 (deprecated)", BOTH_VERSIONS),
            Row("LZ4_RAW", BOTH_VERSIONS),
            Row("LZO", BOTH_VERSIONS),
            Row("SNAPPY", BOTH_VERSIONS),
            Row("ZSTD", BOTH_VERSIONS),
        ],
    ),
    (
        "Other format level features",
        &[
            Row(BLOOM, Claim::Read(&BLOOM_TYPES)),
            Row("Bloom filter length", ANY),
            Row(MIN_MAX, ANY),
            Row("Page index", Claim::Read(&["column index", "offset index"])),
            Row("Page CRC32 checksum", BOTH_VERSIONS),
            Row(ENCRYPTION, Claim::Refused),
            Row("Size statistics", ANY),
            Row("Data Page V1", ANY),
            Row("Data Page V2", Claim::Read(&["compressed", "not compressed in a compressed chunk"])),
            Row("Geospatial statistics", Claim::Read(&["bounding box", "types"])),
            Row(EXTENSIONS, Claim::PassedOver("nobody has defined any")),
            Row(NAN_COUNTS, ANY),
        ],
    ),
    (
        "High level data APIs for Parquet feature usage",
        &[
            Row(EXTERNAL, Claim::Refused),
            Row(SORTING, ANY),
            Row(
                "Row group pruning using statistics",
                Claim::Elsewhere("`RowFinder` finds rows by a predicate"),
            ),
            Row("Row group pruning using bloom filter", Claim::Elsewhere("likewise")),
            Row(SELECT, Claim::Read(&["columns", "fields of nested columns"])),
            Row("Page pruning using statistics", Claim::Elsewhere("likewise")),
        ],
    ),
    (
        "Beyond that page",
        &[
            Row(GROUPS, Claim::Read(&["nullable", "required"])),
            Row(REPEATED, Claim::Read(&["group", "leaf"])),
            Row(CONVERTED, ANY),
            Row(MIXED, ANY),
            Row("Row groups without rows", ANY),
            Row("Data pages without values", ANY),
            Row("Columns of one name", ANY),
        ],
    ),
];

const ALL_TYPES: [&str; 8] = [
    "BOOLEAN",
    "BYTE_ARRAY",
    "DOUBLE",
    "FIXED_LEN_BYTE_ARRAY",
    "FLOAT",
    "INT32",
    "INT64",
    "INT96 (deprecated)",
];
/// Those of which some writer makes filters.
const BLOOM_TYPES: [&str; 6] = ["BYTE_ARRAY", "DOUBLE", "FIXED_LEN_BYTE_ARRAY", "FLOAT", "INT32", "INT64"];
const DICTIONARY_TYPES: [&str; 7] =
    ["BYTE_ARRAY", "DOUBLE", "FIXED_LEN_BYTE_ARRAY", "FLOAT", "INT32", "INT64", "INT96 (deprecated)"];

/// Whether a row is of values and their pages, so that any column that has it shows it.
pub fn is_of_values(row: &str) -> bool {
    let titles = ["Physical types", "Encodings", "Compressions"];
    TABLES.iter().any(|(title, rows)| titles.contains(title) && rows.iter().any(|known| known.0 == row))
}

fn is_row(name: &str) -> bool {
    TABLES.iter().any(|(_, rows)| rows.iter().any(|row| row.0 == name))
}

/// The document's part on reading; with it, each claim that the evidence does not bear.
pub fn document(evidence: &Evidence) -> (String, Vec<String>) {
    part(HEAD, &TABLES, ["read", "files"], evidence)
}

/// A part of the document: tables whose columns are of these names.
fn part(
    head: &str,
    tables: &[(&str, &[Row])],
    [done, whence]: [&str; 2],
    evidence: &Evidence,
) -> (String, Vec<String>) {
    let mut text = head.to_owned();
    let mut faults = Vec::new();
    for (title, rows) in tables {
        let _ = write!(text, "\n## {title}\n\n| | {done} | with | {whence} |\n|---|---|---|---|\n");
        for Row(name, claim) in *rows {
            let seen = evidence.seen.get(name);
            let refused = evidence.refused.get(name);
            let lacks = |needs: &[&str]| match seen {
                None => vec!["any file".to_owned()],
                Some(seen) => {
                    let missing = needs.iter().filter(|need| !seen.details.contains(**need));
                    missing.map(|need| (*need).to_owned()).collect()
                }
            };
            let (mark, missing) = match claim {
                Claim::Read(needs) => ("✅".to_owned(), lacks(needs)),
                Claim::PassedOver(why) => (format!("passed over: {why}"), lacks(&[])),
                Claim::NotYet(why) => (format!("not yet: {why}"), Vec::new()),
                Claim::Elsewhere(what) => (format!("✅ {what}"), Vec::new()),
                Claim::Refused => {
                    let messages = refused.map(|messages| join(messages, "`, `")).unwrap_or_default();
                    let missing = refused.is_none().then(|| "a file that is refused".to_owned());
                    (format!("❌ `{messages}`"), missing.into_iter().collect())
                }
            };
            faults.extend(missing.iter().map(|missing| format!("{name}: {missing} is missing")));
            let is_not_read = matches!(claim, Claim::Refused | Claim::NotYet(_) | Claim::Elsewhere(_));
            if !is_not_read && let Some(messages) = refused {
                faults.push(format!("{name}: refused with {messages:?}"));
            }
            let (with, files) = match seen {
                Some(seen) if !is_not_read => (join(&seen.details, ", "), seen_in(seen)),
                _ => Default::default(),
            };
            let _ = writeln!(text, "| {name} | {mark} | {with} | {files} |");
        }
    }
    (text, faults)
}

const HEAD: &str = "\
# What is read

Every row is one of the implementation status page of the Parquet format, or of its latest `parquet.thrift`. This page is
written by the tests: ✅ stands where files that use the feature were read, and each of their columns was equal to what pyarrow
(where it cannot, DuckDB, or who made the file) says it holds; nested ones as arrays and as records. What footers say was equal to
what parquet-rs finds in them. \"With\" and \"files\" say what these files were: of each source one, and whatever else they used;
kept ones stand in `dev/conformance/writers/files`, crafted ones are made by the tests byte by byte. ❌ has the errors that such
files get.

`MARQUETRY_UPDATE=1 cargo test -p marquetry-conformance --test reading` writes it anew; without, a page that is not what the
tests see fails them. What is written is below.
";

fn seen_in(seen: &Seen) -> String {
    let names = seen.files.iter().map(|(source, file)| match source {
        Source::Corpus | Source::Kept | Source::Crafted => format!("{} `{file}`", source.name()),
        _ => source.name().to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn join(parts: &BTreeSet<String>, separator: &str) -> String {
    parts.iter().map(String::as_str).collect::<Vec<_>>().join(separator)
}

// -----------------------------------------------------------------------------------------------------------------------
// Seeing

/// What a file uses.
///
/// # Errors
///
/// The page scanner's; a Bloom filter that does not find a value of its chunk.
pub fn observe(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<BTreeSet<Observation>> {
    let mut seen = Seeing::default();
    let schema = &metadata.schema;
    for node in 1..schema.nodes().len() {
        seen.node(schema, node);
    }
    let mut names = BTreeSet::new();
    if schema.children(0).any(|child| !names.insert(&schema.nodes()[child].name)) {
        seen.row("Columns of one name");
    }
    for order in &metadata.column_orders {
        if *order == ColumnOrder::Ieee754Total {
            seen.row(NAN_COUNTS);
        }
    }
    for (number, group) in metadata.row_groups.iter().enumerate() {
        if group.rows == 0 {
            seen.row("Row groups without rows");
        }
        if !group.sorting_columns.is_empty() {
            seen.row(SORTING);
        }
        for (leaf, chunk) in group.columns.iter().enumerate() {
            let mut scanner = PageScanner::new(FILE, metadata, number, leaf, Limits::DEFAULT)?;
            let leaf = &schema.leaves()[leaf];
            seen.chunk(leaf, chunk);
            let mut encodings = BTreeSet::new();
            hostile::run(&mut scanner, FILE, bytes, Manner::KIND, |page| {
                seen.page(schema, leaf, chunk, &page.header);
                if let Some(encoding) = data_encoding(&page.header) {
                    encodings.insert(is_dictionary(encoding));
                }
                Ok(())
            })?;
            if encodings.len() > 1 {
                seen.row(MIXED);
            }
        }
    }
    for (_, leaf, _) in blooms::check(bytes, metadata)? {
        seen.with(BLOOM, physical(schema.leaves()[leaf].physical_type));
    }
    Ok(seen.0)
}

#[derive(Default)]
struct Seeing(BTreeSet<Observation>);

impl Seeing {
    fn row(&mut self, row: &'static str) {
        self.with(row, "");
    }

    fn with(&mut self, row: &'static str, detail: impl Into<String>) {
        self.0.insert((row, detail.into()));
    }

    /// What a field's place in the tree says. Leaves' logical types are seen with their pages.
    fn node(&mut self, schema: &Schema, number: usize) {
        let node = &schema.nodes()[number];
        let parent = &schema.nodes()[node.parent];
        let is_group = matches!(node.kind, NodeKind::Group { .. });
        let child_named = |name: &str| schema.children(number).any(|at| schema.nodes()[at].name == name);
        match &node.logical_type {
            Some(LogicalType::List) => self.with("LIST", list_levels(schema, number)),
            Some(LogicalType::Map) => {
                let entries = schema.children(number).next();
                let fields = entries.map_or(0, |entries| schema.children(entries).count());
                self.with("MAP", if fields == 1 { "keys alone" } else { "keys and values" });
            }
            Some(LogicalType::MapKeyValue) => self.with("MAP", "MAP_KEY_VALUE"),
            Some(LogicalType::Variant { .. }) => {
                let is_shredded = child_named("typed_value");
                self.with("VARIANT", if is_shredded { "shredded" } else { "unshredded" });
            }
            Some(LogicalType::File) => self.row("FILE"),
            None if is_group && node.repetition == Repetition::Optional => self.with(GROUPS, "nullable"),
            None if is_group && node.repetition == Repetition::Required => self.with(GROUPS, "required"),
            _ => {}
        }
        let is_of_list_or_map = matches!(
            parent.logical_type,
            Some(LogicalType::List | LogicalType::Map | LogicalType::MapKeyValue)
        );
        if node.repetition == Repetition::Repeated && !is_of_list_or_map {
            self.with(REPEATED, if is_group { "group" } else { "leaf" });
        }
    }

    fn chunk(&mut self, leaf: &Leaf, chunk: &ColumnChunk) {
        if let Some((_, Some(_))) = chunk.bloom_filter {
            self.row("Bloom filter length");
        }
        let indexes = [("column index", chunk.column_index), ("offset index", chunk.offset_index)];
        for (name, place) in indexes {
            if place.is_some() {
                self.with("Page index", name);
            }
        }
        if chunk.size_statistics.is_some() {
            self.with("Size statistics", physical(leaf.physical_type));
        }
        if let Some(places) = &chunk.geospatial_statistics {
            if places.bounding_box.is_some() {
                self.with("Geospatial statistics", "bounding box");
            }
            if !places.geospatial_types.is_empty() {
                self.with("Geospatial statistics", "types");
            }
        }
        if let Some(statistics) = &chunk.statistics {
            if statistics.min_value.is_some() && statistics.max_value.is_some() {
                self.with(MIN_MAX, physical(leaf.physical_type));
            }
            if statistics.nan_count.is_some() {
                self.with(NAN_COUNTS, physical(leaf.physical_type));
            }
        }
    }

    fn page(&mut self, schema: &Schema, leaf: &Leaf, chunk: &ColumnChunk, header: &PageHeader) {
        let version = match &header.kind {
            PageKind::Data(page) => {
                self.row("Data Page V1");
                let levels = [
                    (leaf.definition_max, page.definition_encoding),
                    (leaf.repetition_max, page.repetition_encoding),
                ];
                for (max, encoding) in levels {
                    if max > 0 && page.values > 0 {
                        self.levels(encoding);
                    }
                }
                "V1 pages"
            }
            PageKind::DataV2(page) => {
                let is_bare = !page.is_compressed && chunk.compression != Compression::Uncompressed;
                self.with(
                    "Data Page V2",
                    if is_bare { "not compressed in a compressed chunk" } else { "compressed" },
                );
                if leaf.definition_max > 0 && page.values > 0 {
                    self.levels(Encoding::Rle);
                }
                if is_bare {
                    return self.values(schema, leaf, header);
                }
                "V2 pages"
            }
            PageKind::Dictionary(page) => {
                if page.encoding == Encoding::PlainDictionary {
                    self.with("PLAIN_DICTIONARY", "dictionary pages");
                }
                return;
            }
            PageKind::Other(_) => return,
        };
        if header.crc.is_some() {
            self.with("Page CRC32 checksum", version);
        }
        if header.values() == 0 {
            self.row("Data pages without values");
        }
        if let Some(codec) = compression(chunk.compression) {
            self.with(codec, version);
        }
        self.values(schema, leaf, header);
    }

    fn levels(&mut self, encoding: Encoding) {
        match encoding {
            Encoding::Rle => self.with("RLE", "levels"),
            Encoding::BitPacked => self.with("BIT_PACKED (deprecated)", "levels"),
            _ => {}
        }
    }

    /// A data page's encoding of a leaf's types.
    fn values(&mut self, schema: &Schema, leaf: &Leaf, header: &PageHeader) {
        let Some(encoding) = data_encoding(header).filter(|_| header.values() > 0) else { return };
        let physical = physical(leaf.physical_type);
        // Of a type it does not matter by which of its two names a dictionary's indices go.
        let name = if is_dictionary(encoding) { DICTIONARY.to_owned() } else { encoding.to_string() };
        self.with(physical, &*name);
        if let Some(row) = logical(schema.node_of(leaf), leaf.physical_type) {
            self.with(row, &*name);
            if row == INTS
                && let Some(logical_type) = &schema.node_of(leaf).logical_type
            {
                self.with(row, logical_type.to_string());
            }
        }
        match encoding {
            Encoding::Plain => self.with(PLAIN, physical),
            Encoding::PlainDictionary => self.with("PLAIN_DICTIONARY", physical),
            Encoding::RleDictionary => self.with(DICTIONARY, physical),
            Encoding::Rle => self.with("RLE", physical),
            Encoding::DeltaBinaryPacked => self.with(DELTA, physical),
            Encoding::DeltaLengthByteArray => self.with(DELTA_LENGTH, physical),
            Encoding::DeltaByteArray => self.with(DELTA_BYTES, physical),
            Encoding::ByteStreamSplit => match leaf.physical_type {
                PhysicalType::Float | PhysicalType::Double => self.with(SPLIT, physical),
                _ => self.with(SPLIT_MORE, physical),
            },
            Encoding::Alp => self.with(ALP, physical),
            Encoding::BitPacked | Encoding::Unknown(_) => {}
        }
    }
}

/// Whether a list has its own group for elements, by the format's backward-compatibility rules.
fn list_levels(schema: &Schema, list: usize) -> &'static str {
    let Some(repeated) = schema.children(list).next() else { return "" };
    let node = &schema.nodes()[repeated];
    let is_tuple = node.name == "array" || node.name == format!("{}_tuple", schema.nodes()[list].name);
    if schema.children(repeated).count() == 1 && !is_tuple { "three levels" } else { "two levels" }
}

fn data_encoding(header: &PageHeader) -> Option<Encoding> {
    match &header.kind {
        PageKind::Data(page) => Some(page.encoding),
        PageKind::DataV2(page) => Some(page.encoding),
        PageKind::Dictionary(_) | PageKind::Other(_) => None,
    }
}

fn is_dictionary(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary)
}

fn physical(physical_type: PhysicalType) -> &'static str {
    match physical_type {
        PhysicalType::Boolean => "BOOLEAN",
        PhysicalType::Int32 => "INT32",
        PhysicalType::Int64 => "INT64",
        PhysicalType::Int96 => "INT96 (deprecated)",
        PhysicalType::Float => "FLOAT",
        PhysicalType::Double => "DOUBLE",
        PhysicalType::ByteArray => "BYTE_ARRAY",
        PhysicalType::FixedLenByteArray(_) => "FIXED_LEN_BYTE_ARRAY",
    }
}

fn logical(node: &Node, physical_type: PhysicalType) -> Option<&'static str> {
    Some(match (node.logical_type.as_ref()?, physical_type) {
        (LogicalType::String, _) => "STRING",
        (LogicalType::Enum, _) => "ENUM",
        (LogicalType::Uuid, _) => "UUID",
        (LogicalType::Integer { .. }, _) => INTS,
        (LogicalType::Decimal { .. }, PhysicalType::Int32) => "DECIMAL (INT32)",
        (LogicalType::Decimal { .. }, PhysicalType::Int64) => "DECIMAL (INT64)",
        (LogicalType::Decimal { .. }, PhysicalType::ByteArray) => "DECIMAL (BYTE_ARRAY)",
        (LogicalType::Decimal { .. }, _) => "DECIMAL (FIXED_LEN_BYTE_ARRAY)",
        (LogicalType::Float16, _) => "FLOAT16",
        (LogicalType::Date, _) => "DATE",
        (LogicalType::Time { .. }, PhysicalType::Int32) => "TIME (INT32)",
        (LogicalType::Time { .. }, _) => "TIME (INT64)",
        (LogicalType::Timestamp { .. }, _) => "TIMESTAMP (INT64)",
        (LogicalType::Interval, _) => "INTERVAL",
        (LogicalType::Json, _) => "JSON",
        (LogicalType::Bson, _) => "BSON",
        (LogicalType::Geometry { .. }, _) => "GEOMETRY",
        (LogicalType::Geography { .. }, _) => "GEOGRAPHY",
        (LogicalType::Unknown, _) => "UNKNOWN (always null)",
        _ => return None,
    })
}

fn compression(compression: Compression) -> Option<&'static str> {
    Some(match compression {
        Compression::Uncompressed => "UNCOMPRESSED",
        Compression::Codec(Codec::Brotli) => "BROTLI",
        Compression::Codec(Codec::Gzip) => "GZIP",
        Compression::Codec(Codec::Lz4) => "LZ4 (deprecated)",
        Compression::Codec(Codec::Lz4Raw) => "LZ4_RAW",
        Compression::Codec(Codec::Lzo) => "LZO",
        Compression::Codec(Codec::Snappy) => "SNAPPY",
        Compression::Codec(Codec::Zstd) => "ZSTD",
        // Of SSTables, not of Parquet.
        Compression::Codec(Codec::Zlib) => return None,
        Compression::Unknown(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Evidence {
        let mut evidence = Evidence::default();
        for Row(name, claim) in TABLES.iter().flat_map(|(_, rows)| *rows) {
            match claim {
                Claim::Read(needs) => {
                    let details = needs.iter().map(|need| (*name, (*need).to_owned()));
                    evidence.add(Source::Crafted, "a", details.chain([(*name, String::new())]));
                }
                Claim::PassedOver(_) => evidence.add(Source::Crafted, "a", [(*name, String::new())]),
                Claim::Refused => evidence.refuse(name, "an error"),
                Claim::NotYet(_) | Claim::Elsewhere(_) => {}
            }
        }
        evidence
    }

    #[test]
    fn rows_differ() {
        let names: Vec<_> = TABLES.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.0)).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn a_claim_without_evidence_is_a_fault() {
        assert_eq!(document(&everything()).1, [""; 0]);
        let claims = TABLES.iter().flat_map(|(_, rows)| *rows);
        let claims = claims.filter(|row| !matches!(row.1, Claim::NotYet(_) | Claim::Elsewhere(_))).count();
        assert_eq!(document(&Evidence::default()).1.len(), claims);
        let mut evidence = everything();
        evidence.seen.get_mut("FLOAT").unwrap().details.remove(ALP);
        assert_eq!(document(&evidence).1, ["FLOAT: ALP is missing"]);
        let mut evidence = everything();
        evidence.refuse("FLOAT", "no");
        assert_eq!(document(&evidence).1.len(), 1);
    }

    #[test]
    fn of_each_source_the_first_file_stands() {
        let mut evidence = Evidence::default();
        for file in ["b", "a", "c"] {
            evidence.add(Source::Corpus, file, [("FILE", String::new())]);
        }
        evidence.add(Source::DuckDb, "z", [("FILE", "detail".to_owned())]);
        let text = document(&evidence).0;
        assert!(text.contains("| FILE | ✅ | detail | parquet-testing `a`, DuckDB |"), "{text}");
    }
}
