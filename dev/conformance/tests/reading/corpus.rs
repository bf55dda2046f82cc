//! Every file of the parquet-testing corpus, and how it is checked. A file that is in no list fails the tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use marquetry_base::{Bytes, Error, ErrorKind, Limits, Place};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE, Sum};
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records::{array_sums, check_batch, field_sums, read_all};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::PhysicalType;
use serde_json::Value;

use crate::{EXPECT, EXPECT_NESTED, Outcome, expect, file_name, folder, nested, peers, variants};

/// How a file is checked.
enum How {
    /// Every column, and all columns as records and arrays, whole and in parts, against pyarrow.
    AsPyarrow,
    /// The same, and against the values in a file of text beside it.
    AsText(&'static str),
    /// pyarrow does not read it, or otherwise; for the reason given. All rows of all columns, in clear, by who made the file.
    Instead(&'static [Rows], &'static str),
    /// It is refused, with this message; for the reason given.
    Refused(ErrorKind, &'static str, &'static str),
    /// Beyond the default limits, which the refusal names; for the reason given. Read with larger ones in the soak tests.
    Limited(&'static str, &'static str),
    /// Some columns are encrypted: these are refused, all others are as pyarrow reads them.
    PartlyEncrypted(&'static [&'static str]),
    /// It is no Parquet file: what it is.
    Beside(&'static str),
}

/// A column's name, and its rows.
type Rows = (&'static str, &'static [&'static str]);

use How::{AsPyarrow, AsText, Beside, Instead, Limited, PartlyEncrypted, Refused};

const FILES: &[(&str, How)] = &[
    // ---- Equal to pyarrow
    ("data/alltypes_dictionary.parquet", AsPyarrow),
    ("data/alltypes_plain.parquet", AsPyarrow),
    ("data/alltypes_plain.snappy.parquet", AsPyarrow),
    ("data/alltypes_tiny_pages.parquet", AsPyarrow),
    ("data/alltypes_tiny_pages_plain.parquet", AsPyarrow),
    ("data/binary.parquet", AsPyarrow),
    ("data/binary_truncated_min_max.parquet", AsPyarrow),
    ("data/byte_array_decimal.parquet", AsPyarrow),
    ("data/byte_stream_split.zstd.parquet", AsPyarrow),
    ("data/byte_stream_split_extended.gzip.parquet", AsPyarrow),
    ("data/column_chunk_key_value_metadata.parquet", AsPyarrow),
    ("data/concatenated_gzip_members.parquet", AsPyarrow),
    ("data/data_index_bloom_encoding_stats.parquet", AsPyarrow),
    ("data/data_index_bloom_encoding_with_length.parquet", AsPyarrow),
    ("data/datapage_v1-snappy-compressed-checksum.parquet", AsPyarrow),
    ("data/datapage_v1-uncompressed-checksum.parquet", AsPyarrow),
    ("data/datapage_v2.snappy.parquet", AsPyarrow),
    ("data/datapage_v2_empty_datapage.snappy.parquet", AsPyarrow),
    ("data/delta_length_byte_array.parquet", AsPyarrow),
    ("data/dict-page-offset-zero.parquet", AsPyarrow),
    ("data/fixed_length_byte_array.parquet", AsPyarrow),
    ("data/fixed_length_decimal.parquet", AsPyarrow),
    ("data/fixed_length_decimal_legacy.parquet", AsPyarrow),
    ("data/float16_nonzeros_and_nans.parquet", AsPyarrow),
    ("data/float16_zeros_and_nans.parquet", AsPyarrow),
    ("data/floating_orders_nan_count.parquet", AsPyarrow),
    ("data/hadoop_lz4_compressed.parquet", AsPyarrow),
    ("data/hadoop_lz4_compressed_larger.parquet", AsPyarrow),
    ("data/int32_decimal.parquet", AsPyarrow),
    ("data/int32_with_null_pages.parquet", AsPyarrow),
    ("data/int64_decimal.parquet", AsPyarrow),
    ("data/int96_from_spark.parquet", AsPyarrow),
    ("data/list_columns.parquet", AsPyarrow),
    ("data/lz4_raw_compressed.parquet", AsPyarrow),
    ("data/lz4_raw_compressed_larger.parquet", AsPyarrow),
    ("data/nan_in_stats.parquet", AsPyarrow),
    ("data/nation.dict-malformed.parquet", AsPyarrow),
    ("data/nested_lists.snappy.parquet", AsPyarrow),
    ("data/nested_maps.snappy.parquet", AsPyarrow),
    ("data/nested_structs.rust.parquet", AsPyarrow),
    ("data/non_hadoop_lz4_compressed.parquet", AsPyarrow),
    ("data/nonnullable.impala.parquet", AsPyarrow),
    ("data/null_list.parquet", AsPyarrow),
    ("data/nullable.impala.parquet", AsPyarrow),
    ("data/nulls.snappy.parquet", AsPyarrow),
    ("data/old_list_structure.parquet", AsPyarrow),
    ("data/overflow_i16_page_cnt.parquet", AsPyarrow),
    ("data/page_v2_empty_compressed.parquet", AsPyarrow),
    ("data/plain-dict-uncompressed-checksum.parquet", AsPyarrow),
    ("data/repeated_no_annotation.parquet", AsPyarrow),
    ("data/repeated_primitive_no_list.parquet", AsPyarrow),
    ("data/rle-dict-snappy-checksum.parquet", AsPyarrow),
    ("data/rle_boolean_encoding.parquet", AsPyarrow),
    ("data/single_nan.parquet", AsPyarrow),
    ("data/sort_columns.parquet", AsPyarrow),
    ("data/unknown-logical-type.parquet", AsPyarrow),
    ("data/geospatial/crs-arbitrary-value.parquet", AsPyarrow),
    ("data/geospatial/crs-default.parquet", AsPyarrow),
    ("data/geospatial/crs-geography.parquet", AsPyarrow),
    ("data/geospatial/crs-projjson.parquet", AsPyarrow),
    ("data/geospatial/crs-srid.parquet", AsPyarrow),
    ("data/geospatial/geography-lines.parquet", AsPyarrow),
    ("data/geospatial/geography-points.parquet", AsPyarrow),
    ("data/geospatial/geography-polygons.parquet", AsPyarrow),
    ("data/geospatial/geospatial-with-nan.parquet", AsPyarrow),
    ("data/geospatial/geospatial.parquet", AsPyarrow),
    ("data/delta_binary_packed.parquet", AsText("data/delta_binary_packed_expect.csv")),
    ("data/delta_byte_array.parquet", AsText("data/delta_byte_array_expect.csv")),
    ("data/delta_encoding_optional_column.parquet", AsText("data/delta_encoding_optional_column_expect.csv")),
    ("data/delta_encoding_required_column.parquet", AsText("data/delta_encoding_required_column_expect.csv")),
    // ---- Not as pyarrow
    (
        "data/incorrect_map_schema.parquet",
        Instead(
            &[("my_map", &["<706172656e74,616e6f74686572,6e616d65,7265706f7274,>"])],
            "pyarrow refuses map keys that may be null. DuckDB reads {parent=another, name=report}",
        ),
    ),
    (
        "data/map_no_value.parquet",
        Instead(
            &[
                (
                    "my_map",
                    &[
                        "<01000000,n,02000000,n,03000000,n,>",
                        "<04000000,n,05000000,n,06000000,n,>",
                        "<07000000,n,08000000,n,09000000,n,>",
                    ],
                ),
                (
                    "my_map_no_v",
                    &[
                        "<01000000,02000000,03000000,>",
                        "<04000000,05000000,06000000,>",
                        "<07000000,08000000,09000000,>",
                    ],
                ),
                (
                    "my_list",
                    &[
                        "[01000000,02000000,03000000,]",
                        "[04000000,05000000,06000000,]",
                        "[07000000,08000000,09000000,]",
                    ],
                ),
            ],
            "pyarrow reads a map without values as a list; map_no_value.md calls it a map whose values are all null",
        ),
    ),
    (
        "data/large_string_map.brotli.parquet",
        Limited("page_bytes", "two keys of 1 GiB each, which pyarrow does not take at all"),
    ),
    // ---- Refused
    (
        "data/datapage_v1-corrupt-checksum.parquet",
        Refused(ErrorKind::Corrupt, "CRC", "its README: the CRCs of pages are wrong"),
    ),
    (
        "data/rle-dict-uncompressed-corrupt-checksum.parquet",
        Refused(ErrorKind::Corrupt, "CRC", "its README: the CRC of the dictionary page is wrong"),
    ),
    // ---- Encrypted
    (
        "data/encrypt_columns_plaintext_footer.parquet.encrypted",
        PartlyEncrypted(&["double_field", "float_field"]),
    ),
    (
        "data/aes256/encrypt_columns_plaintext_footer.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "every column is encrypted"),
    ),
    (
        "data/aes256/encrypt_columns_and_footer.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/aes256/encrypt_columns_and_footer_ctr.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/aes256/encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/aes256/uniform_encryption.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/encrypt_columns_and_footer.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/encrypt_columns_and_footer_aad.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/encrypt_columns_and_footer_bloom_filter.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/encrypt_columns_and_footer_ctr.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/external_key_material_java.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    (
        "data/uniform_encryption.parquet.encrypted",
        Refused(ErrorKind::Unsupported, "encrypt", "the footer is encrypted"),
    ),
    // ---- Files that should not be
    (
        "bad_data/PARQUET-1481.parquet",
        Refused(ErrorKind::Corrupt, "the unknown physical type -7", "a schema value has been corrupted"),
    ),
    (
        "bad_data/ARROW-RS-GH-6229-DICTHEADER.parquet",
        Refused(
            ErrorKind::Corrupt,
            "a column chunk of 322 bytes that reaches into the footer",
            "a dictionary page of a negative number of values, in a chunk that does not fit the file",
        ),
    ),
    (
        "bad_data/ARROW-RS-GH-6229-LEVELS.parquet",
        Refused(
            ErrorKind::Corrupt,
            "a page of 21 values in a column chunk that has 1 left",
            "a page has too few repetition levels",
        ),
    ),
    (
        "bad_data/ARROW-GH-41321.parquet",
        Refused(
            ErrorKind::Corrupt,
            "dictionary indices of 254 bits",
            "fewer levels than the page has values",
        ),
    ),
    (
        "bad_data/ARROW-GH-41317.parquet",
        Refused(
            ErrorKind::Corrupt,
            "the footer: a list of another type",
            "columns of different numbers of rows; before that, encodings as numbers of 16 bits",
        ),
    ),
    (
        "bad_data/ARROW-GH-45185.parquet",
        Refused(
            ErrorKind::Corrupt,
            "a column chunk that begins in the middle of a row",
            "repetition levels that start with 1",
        ),
    ),
    (
        "bad_data/ARROW-GH-47662.parquet",
        Refused(
            ErrorKind::Corrupt,
            "the page ends before its last value",
            "a required column that contains nulls",
        ),
    ),
    // Indices of no bits, which a dictionary of one entry may have: pyarrow and DuckDB read it too.
    ("bad_data/ARROW-GH-43605.parquet", AsPyarrow),
    // ---- Beside
    ("LICENSE.txt", Beside("licence")),
    ("README.md", Beside("documentation")),
    ("bad_data/README.md", Beside("documentation")),
    ("data/README.md", Beside("documentation")),
    (
        "data/_KEY_MATERIAL_FOR_external_key_material_java.parquet.encrypted.json",
        Beside("keys of an encrypted file"),
    ),
    ("data/bloom_filter.bin", Beside("a Bloom filter of Murmur3, which the format does not have")),
    (
        "data/bloom_filter.xxhash.bin",
        Beside("a Bloom filter alone, which a test of those that are written asks"),
    ),
    ("data/geospatial/README.md", Beside("documentation")),
    ("data/geospatial/geospatial.yaml", Beside("the geometries of geospatial.parquet as text")),
    ("shredded_variant/README.md", Beside("documentation")),
    ("shredded_variant/cases.json", Beside("what the cases' files hold")),
    ("variant/README.md", Beside("documentation")),
    ("variant/data_dictionary.json", Beside("what the samples hold")),
    ("data/delta_binary_packed.md", Beside("documentation")),
    ("data/delta_byte_array.md", Beside("documentation")),
    ("data/delta_encoding_optional_column.md", Beside("documentation")),
    ("data/delta_encoding_required_column.md", Beside("documentation")),
    ("data/fixed_length_byte_array.md", Beside("documentation")),
    ("data/int32_with_null_pages.md", Beside("documentation")),
    ("data/int96_from_spark.md", Beside("documentation")),
    ("data/map_no_value.md", Beside("documentation")),
    ("data/old_list_structure.md", Beside("documentation")),
    ("data/delta_binary_packed_expect.csv", Beside("the values of a Parquet file as text")),
    ("data/delta_byte_array_expect.csv", Beside("the values of a Parquet file as text")),
    ("data/delta_encoding_optional_column_expect.csv", Beside("the values of a Parquet file as text")),
    ("data/delta_encoding_required_column_expect.csv", Beside("the values of a Parquet file as text")),
];

/// Compares the whole corpus, once. `None` without it or without pyarrow.
pub(crate) fn outcome() -> Option<&'static Outcome> {
    static OUTCOME: OnceLock<Option<Outcome>> = OnceLock::new();
    // Asked by every test, so that each is on record that does without.
    let (python, corpus) = files::python().zip(files::corpus())?;
    OUTCOME.get_or_init(|| Some(compare(&python, &corpus))).as_ref()
}

#[test]
fn the_corpus_reads_equal() {
    if let Some(outcome) = outcome() {
        outcome.assert_right("corpus");
    }
}

#[test]
fn every_file_of_the_corpus_is_in_the_list() {
    let Some(corpus) = files::corpus() else { return };
    let root = corpus.join("parquet-testing");
    let mut found = BTreeSet::new();
    walk(&root, &root, &mut found);
    let variants = variants::files(&root);
    let listed: BTreeSet<String> =
        FILES.iter().map(|(name, _)| (*name).to_owned()).chain(variants.iter().cloned()).collect();
    assert_eq!(listed.len(), FILES.len() + variants.len(), "a file is listed twice");
    let unlisted: Vec<&String> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "files of the corpus that nothing checks: {unlisted:?}");
    let gone: Vec<&String> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "files that are no longer there: {gone:?}");
    for (name, how) in FILES {
        let Beside(what) = how else { continue };
        let bytes = std::fs::read(root.join(name)).unwrap();
        assert!(!what.is_empty() && !bytes.starts_with(b"PAR"), "{name} is a Parquet file, not {what}");
    }
    // What is not read but for encryption: nothing.
    let unsupported = FILES.iter().filter(|(_, how)| matches!(how, Refused(ErrorKind::Unsupported, ..)));
    for (name, _) in unsupported {
        assert!(name.ends_with(".encrypted"), "{name} is not supported");
    }
}

/// The files below a folder, by their paths from `root`.
fn walk(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // A checkout's own.
            if file_name(&path) != ".git" {
                walk(root, &path, found);
            }
        } else if !file_name(&path).starts_with(".") && path.extension().is_none_or(|it| it != "py") {
            found.insert(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

fn compare(python: &Path, corpus: &Path) -> Outcome {
    let root = corpus.join("parquet-testing");
    let folder = folder("corpus");
    let is_pyarrows = |how: &How| matches!(how, AsPyarrow | AsText(_));
    let as_pyarrow = FILES.iter().filter(|(_, how)| is_pyarrows(how));
    let mut listed: Vec<PathBuf> = as_pyarrow.map(|(name, _)| root.join(name)).collect();
    listed.extend(variants::parquet_files(&root));
    let mut all = Outcome::default();
    let published = files::parquet_files(&corpus.join("real"));
    for (what, is_listed, paths) in [("listed", true, listed), ("real", false, published)] {
        if paths.is_empty() {
            continue;
        }
        let (mut flat, mut nested) = (peers::Tally::new(Source::Corpus), nested::Tally::new(Source::Corpus));
        for (path, expected) in paths.iter().zip(&expect(python, EXPECT, &folder, &paths)) {
            flat.compare(path, expected, None);
        }
        for (path, expected) in paths.iter().zip(&expect(python, EXPECT_NESTED, &folder, &paths)) {
            nested.compare(path, expected);
        }
        for (how, mut outcome) in [("columns", flat.outcome()), ("records", nested.outcome())] {
            if !is_listed {
                // The matrix must not differ by what real files a machine has.
                outcome.evidence = Evidence::default();
            }
            all.add(&format!("{what}, {how}"), outcome);
        }
    }
    let partly: Vec<PathBuf> = FILES
        .iter()
        .filter(|(_, how)| matches!(how, PartlyEncrypted(_)))
        .map(|(name, _)| root.join(name))
        .collect();
    let mut partly = expect(python, EXPECT_NESTED, &folder, &partly).into_iter();
    for (name, how) in FILES {
        let bytes = Bytes::from(std::fs::read(root.join(name)).unwrap());
        let checked = match how {
            AsPyarrow | Beside(_) => Ok(()),
            AsText(text) => as_text(&bytes, &std::fs::read_to_string(root.join(text)).unwrap()),
            Instead(rows, why) => {
                instead(&bytes, rows).map_err(|error| format!("{error} ({why})")).map(|()| {
                    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
                    let seen = features::observe(&bytes, &metadata).unwrap();
                    all.evidence.add(Source::Corpus, &file_name(Path::new(name)), seen);
                })
            }
            Refused(kind, message, why) => refused(&bytes, *kind, message)
                .map(|error| {
                    if *kind == ErrorKind::Unsupported {
                        all.evidence.refuse(features::ENCRYPTION, error.message());
                    }
                })
                .map_err(|error| format!("{error} ({why})")),
            Limited(limit, why) => {
                let named = format!("limit {limit}");
                refused(&bytes, ErrorKind::LimitExceeded, &named)
                    .map(drop)
                    .map_err(|error| format!("{error} ({why})"))
            }
            PartlyEncrypted(columns) => partly_encrypted(&bytes, columns, &partly.next().unwrap())
                .map(|error| all.evidence.refuse(features::ENCRYPTION, error.message())),
        };
        all.wrong.extend(checked.err().map(|error| format!("{name}: {error}")));
    }
    all.add("variants", variants::compare(&root));
    all
}

/// Checks that a file is refused so, in every manner of reading, with its place.
fn refused(bytes: &Bytes, kind: ErrorKind, message: &str) -> Result<Error, String> {
    let mut errors = Vec::new();
    for manner in [Manner::KIND, Manner::USUAL] {
        let metadata = match canonical::metadata(bytes, manner) {
            Ok(metadata) => metadata,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        let options = ReadOptions { batch_rows: 1000, ..ReadOptions::default() };
        let readings = [
            read_all(bytes, options.clone(), manner).map(drop),
            array_sums(bytes, &metadata, options.clone(), manner).map(drop),
            columns(bytes, &metadata, options, manner),
        ];
        if readings.iter().any(Result::is_ok) {
            return Err(format!("it is read as records, arrays or columns: {readings:?}"));
        }
        errors.extend(readings.into_iter().filter_map(Result::err));
    }
    let is_other = |error: &Error| {
        let has_place = *error.place() != Place::default();
        error.kind() != kind || !error.message().contains(message) || !has_place
    };
    match errors.iter().find(|error| is_other(error)) {
        Some(error) => Err(format!("{error:?}, where {kind:?} with {message:?} and a place is expected")),
        None => Ok(errors.swap_remove(0)),
    }
}

/// Reads all columns, and looks at nothing but that they are what they say.
fn columns(
    bytes: &Bytes,
    metadata: &Arc<marquetry_parquet::format::FileMetaData>,
    options: ReadOptions,
    manner: Manner,
) -> marquetry_base::Result<()> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    canonical::read(&mut reader, bytes, manner, |batch| check_batch(&metadata.schema, &batch)).map(drop)
}

/// Checks all rows of all columns, in clear.
fn instead(bytes: &Bytes, expected: &[Rows]) -> Result<(), String> {
    for (batch_rows, layout, manner) in [
        (8192, Layout::Spaced, Manner::KIND),
        (1, Layout::Dense, Manner::USUAL),
        (2, Layout::Spaced, Manner::ONE_BYTE),
    ] {
        let options = ReadOptions { batch_rows, layout, ..ReadOptions::default() };
        let metadata = canonical::metadata(bytes, manner).map_err(|error| format!("{error:?}"))?;
        for found in [
            field_sums(bytes, &metadata, options.clone(), manner),
            array_sums(bytes, &metadata, options.clone(), manner),
        ] {
            let found = found.map_err(|error| format!("{error:?}"))?;
            let same = found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, (name, rows))| {
                    found.name == *name && found.head.len() as u64 == metadata.rows && found.head == *rows
                });
            if !same {
                return Err(format!("{found:?}, where {expected:?} is expected"));
            }
        }
    }
    Ok(())
}

/// Checks that the encrypted columns are refused, and the others are as the oracle has them; says the error.
fn partly_encrypted(bytes: &Bytes, encrypted: &[&str], expected: &Value) -> Result<Error, String> {
    let metadata = canonical::metadata(bytes, Manner::KIND).map_err(|error| format!("{error:?}"))?;
    let is_encrypted = |path: &str| encrypted.contains(&path);
    let (mut wanted, mut refusal) = (Vec::new(), None);
    for (number, leaf) in metadata.schema.leaves().iter().enumerate() {
        let options = ReadOptions { leaves: Some(vec![number]), ..ReadOptions::default() };
        let path = metadata.schema.path(leaf.node);
        if !is_encrypted(&path) {
            wanted.push(number);
            continue;
        }
        match field_sums(bytes, &metadata, options, Manner::KIND) {
            Err(error)
                if error.kind() == ErrorKind::Unsupported
                    && error.place().column.as_deref() == Some(&path) =>
            {
                refusal = Some(error);
            }
            other => return Err(format!("{path}: {other:?}")),
        }
    }
    let options = ReadOptions { leaves: Some(wanted), ..ReadOptions::default() };
    let ours =
        field_sums(bytes, &metadata, options.clone(), Manner::USUAL).map_err(|error| format!("{error:?}"))?;
    let arrays = array_sums(bytes, &metadata, options, Manner::KIND).map_err(|error| format!("{error:?}"))?;
    let fields = expected["fields"].as_array().ok_or_else(|| format!("pyarrow: {expected}"))?;
    let theirs: Vec<(&str, u64)> =
        fields.iter().filter_map(|field| Some((field["name"].as_str()?, field["crc32"].as_u64()?))).collect();
    let sums = |ours: &[marquetry_conformance::records::FieldSum]| -> bool {
        ours.iter().map(|field| (&*field.name, u64::from(field.crc32))).eq(theirs.iter().copied())
    };
    let is_all = theirs.len() + encrypted.len() == fields.len();
    let is_same = is_all && sums(&ours) && sums(&arrays);
    refusal.filter(|_| is_same).ok_or_else(|| format!("{ours:?}, pyarrow has {expected}"))
}

/// Compares flat columns of integers and text with text: a line a row, in which an empty field without quotes is null.
fn as_text(bytes: &Bytes, text: &str) -> Result<(), String> {
    let metadata = canonical::metadata(bytes, Manner::KIND).map_err(|error| format!("{error:?}"))?;
    let leaves = metadata.schema.leaves();
    let mut expected: Vec<Sum> =
        (0..leaves.len()).map(|number| Sum::new(&metadata.schema, number, None)).collect();
    for line in text.lines().skip(1) {
        let fields = fields(line);
        if fields.len() != leaves.len() {
            return Err(format!("{} fields of {} columns in {line}", fields.len(), leaves.len()));
        }
        for ((sum, leaf), field) in expected.iter_mut().zip(leaves).zip(fields) {
            let path = metadata.schema.path(leaf.node);
            let number = |error: std::num::ParseIntError| format!("{path}: {error}");
            let value = match (field, leaf.physical_type) {
                (None, _) => None,
                (Some(field), PhysicalType::Int32) => {
                    Some(field.parse::<i32>().map_err(number)?.to_le_bytes().to_vec())
                }
                (Some(field), PhysicalType::Int64) => {
                    Some(field.parse::<i64>().map_err(number)?.to_le_bytes().to_vec())
                }
                (Some(field), PhysicalType::ByteArray) => Some(field.into_bytes()),
                (Some(_), other) => return Err(format!("a column of {other}")),
            };
            sum.add_row(value.as_deref());
        }
    }
    let (found, _) = canonical::sums(bytes, &metadata, ReadOptions::default(), Manner::USUAL)
        .map_err(|error| format!("{error:?}"))?;
    for (found, expected) in found.iter().zip(expected) {
        let expected = expected.finish();
        if (found.rows, found.nulls, found.crc32) != (expected.rows, expected.nulls, expected.crc32) {
            return Err(format!("{}: {:?}, the text has {:?}", found.path, found.head, expected.head));
        }
    }
    Ok(())
}

/// The fields of a line: text, in quotes or not, or `None` for nothing at all.
fn fields(line: &str) -> Vec<Option<String>> {
    let (mut fields, mut field, mut is_quoted, mut in_quotes) = (Vec::new(), String::new(), false, false);
    for character in line.chars().chain([',']) {
        match character {
            '"' => {
                in_quotes = !in_quotes;
                is_quoted = true;
            }
            ',' if !in_quotes => {
                let text = std::mem::take(&mut field);
                fields.push((is_quoted || !text.is_empty()).then_some(text));
                is_quoted = false;
            }
            other => field.push(other),
        }
    }
    fields
}

/// Two keys of 1 GiB each, all `a`; README of parquet-testing.
#[test]
#[ignore = "soak: 2 GiB of strings"]
fn keys_of_a_gibibyte() {
    const KEY_BYTES: usize = 1 << 30;
    let Some(corpus) = files::corpus() else { return };
    let bytes = std::fs::read(corpus.join("parquet-testing/data/large_string_map.brotli.parquet")).unwrap();
    let bytes = Bytes::from(bytes);
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let options = ReadOptions { limits: Limits::TRUSTED, ..ReadOptions::default() };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options).unwrap();
    let mut keys = 0;
    hostile::run(&mut reader, FILE, &bytes, Manner::USUAL, |batch| {
        check_batch(&metadata.schema, &batch);
        for index in 0..batch.columns[0].values.len() {
            canonical::with_bytes(&batch.columns[0].values, index, |key| {
                assert!(key.len() == KEY_BYTES && key.iter().all(|&byte| byte == b'a'));
                keys += 1;
            });
            canonical::with_bytes(&batch.columns[1].values, index, |value| assert_eq!(value, [1, 0, 0, 0]));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(keys, 2);
}
