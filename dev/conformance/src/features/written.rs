//! The matrix of what is written, and where its part of the document stands.

use super::{
    ALP, ANY, BLOOM, BLOOM_TYPES, BOTH_VERSIONS, BYTES, Claim, DELTA, DELTA_BYTES, DELTA_LENGTH, DICTIONARY,
    DICTIONARY_TYPES, ENCRYPTION, Evidence, FIXED, GROUPS, INTEGERS, INTS, MIN_MAX, MIXED, NAN_COUNTS, PLAIN,
    REPEATED, Row, SORTING, SPLIT, SPLIT_MORE,
};
use crate::files;

/// The rows, as those of what is read. What is not written at all is refused, or left to who writes.
const TABLES: [(&str, &[Row]); 7] = [
    (
        "Physical types, written",
        &[
            Row("BOOLEAN", Claim::Read(&[PLAIN, "RLE"])),
            Row("INT32", INTEGERS),
            Row("INT64", INTEGERS),
            Row("INT96 (deprecated)", Claim::Read(&[PLAIN, DICTIONARY])),
            Row("FLOAT", Claim::Read(&[PLAIN, DICTIONARY, SPLIT])),
            Row("DOUBLE", Claim::Read(&[PLAIN, DICTIONARY, SPLIT])),
            Row("BYTE_ARRAY", BYTES),
            Row("FIXED_LEN_BYTE_ARRAY", FIXED),
        ],
    ),
    (
        "Logical types, written",
        &[
            Row("STRING", ANY),
            Row("ENUM", ANY),
            Row("UUID", ANY),
            Row(
                INTS,
                Claim::Read(&["INT(8)", "INT(16)", "INT(32)", "UINT(8)", "UINT(16)", "UINT(32)", "UINT(64)"]),
            ),
            Row("DECIMAL (INT32)", ANY),
            Row("DECIMAL (INT64)", ANY),
            Row("DECIMAL (BYTE_ARRAY)", ANY),
            Row("DECIMAL (FIXED_LEN_BYTE_ARRAY)", ANY),
            Row("FLOAT16", ANY),
            Row("DATE", ANY),
            Row("TIME (INT32)", ANY),
            Row("TIME (INT64)", ANY),
            Row("TIMESTAMP (INT64)", ANY),
            Row("INTERVAL", ANY),
            Row("JSON", ANY),
            Row("BSON", ANY),
            Row("VARIANT", Claim::Read(&["shredded", "unshredded"])),
            Row("GEOMETRY", ANY),
            Row("GEOGRAPHY", ANY),
            Row("LIST", Claim::Read(&["three levels", "two levels"])),
            Row("MAP", Claim::Read(&["keys and values"])),
            Row("UNKNOWN (always null)", ANY),
        ],
    ),
    (
        "Encodings, written",
        &[
            Row(PLAIN, Claim::Read(&super::ALL_TYPES)),
            Row(DICTIONARY, Claim::Read(&DICTIONARY_TYPES)),
            Row("RLE", Claim::Read(&["BOOLEAN", "levels"])),
            Row(DELTA, Claim::Read(&["INT32", "INT64"])),
            Row(DELTA_LENGTH, Claim::Read(&["BYTE_ARRAY"])),
            Row(DELTA_BYTES, Claim::Read(&["BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"])),
            Row(SPLIT, Claim::Read(&["DOUBLE", "FLOAT"])),
            Row(SPLIT_MORE, Claim::Read(&["FIXED_LEN_BYTE_ARRAY", "INT32", "INT64"])),
            Row(ALP, Claim::Read(&["DOUBLE", "FLOAT"])),
        ],
    ),
    (
        "Compressions, written",
        &[
            Row("UNCOMPRESSED", BOTH_VERSIONS),
            Row("BROTLI", BOTH_VERSIONS),
            Row("GZIP", BOTH_VERSIONS),
            Row("LZ4 (deprecated)", BOTH_VERSIONS),
            Row("LZ4_RAW", BOTH_VERSIONS),
            Row("LZO", Claim::NotYet("it is only read")),
            Row("SNAPPY", BOTH_VERSIONS),
            Row("ZSTD", BOTH_VERSIONS),
        ],
    ),
    (
        "Other format level features, written",
        &[
            Row(BLOOM, Claim::Read(&BLOOM_TYPES)),
            Row("Bloom filter length", ANY),
            Row(MIN_MAX, Claim::Read(&["BOOLEAN", "BYTE_ARRAY", "DOUBLE", "FLOAT", "INT32", "INT64"])),
            Row("Page index", Claim::Read(&["column index", "offset index"])),
            Row("Page CRC32 checksum", BOTH_VERSIONS),
            Row(ENCRYPTION, Claim::NotYet("files are written in clear")),
            Row("Size statistics", ANY),
            Row("Data Page V1", ANY),
            Row("Data Page V2", Claim::Read(&["compressed", "not compressed in a compressed chunk"])),
            Row("Geospatial statistics", Claim::Read(&["bounding box", "types"])),
            Row(NAN_COUNTS, Claim::Read(&["DOUBLE", "FLOAT"])),
        ],
    ),
    ("High level data APIs for Parquet feature usage, written", &[Row(SORTING, ANY)]),
    (
        "Beyond that page, written",
        &[
            Row(GROUPS, Claim::Read(&["nullable", "required"])),
            Row(REPEATED, Claim::Read(&["group", "leaf"])),
            Row(MIXED, ANY),
        ],
    ),
];

const HEAD: &str = "\
# What is written

The same for writing. ✅ stands where files were written that use the feature, and each of their columns was equal to what pyarrow (where it
cannot, DuckDB) reads from them: tables of all types, shapes, encodings and codecs, and the files of others, read and written again. \"Read by\"
names others that read such columns equal, too. What footers and page indexes say was equal to what parquet-rs finds in them, and Bloom
filters had every value of their chunks.

`MARQUETRY_UPDATE=1 cargo test -p marquetry-conformance --test writing` writes this part anew.
";

/// The document's part on writing; with it, each claim that the evidence does not bear. A source of the evidence is who read it.
pub fn document(evidence: &Evidence) -> (String, Vec<String>) {
    super::part(HEAD, &TABLES, ["written", "read by"], evidence)
}

/// Compares one of the two parts with that of `docs/FEATURES.md`, or writes it there if the environment says so.
///
/// # Panics
///
/// When they differ.
pub fn check(part: &str) {
    let path = files::root().join("docs/FEATURES.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let start = HEAD.lines().next().unwrap_or_default();
    let is_written = part.starts_with(start);
    let (read, written) = match text.find(&format!("\n{start}\n")) {
        Some(at) => (text[..at].to_owned(), text[at + 1..].to_owned()),
        None => (text, String::new()),
    };
    let found = if is_written { &written } else { &read };
    if std::env::var_os(UPDATE).is_some() {
        let whole = if is_written { format!("{read}\n{part}") } else { format!("{part}\n{written}") };
        return std::fs::write(&path, whole).expect("docs/FEATURES.md can be written");
    }
    let differs = part.lines().zip(found.lines()).find(|(seen, written)| seen != written);
    assert!(
        part == found,
        "docs/FEATURES.md is not what the tests see ({UPDATE}=1 writes it); the first line: {differs:?}"
    );
}

/// Set, it writes the document instead of comparing it.
const UPDATE: &str = "MARQUETRY_UPDATE";
