//! What files tell beside their data, equal to what pyarrow, parquet-rs and DuckDB make of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use marquetry_base::Bytes;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::parquet_rs::{self, Compared};
use marquetry_parquet::batch::Values;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::geometry::write_wkt;
use marquetry_parquet::prune::{LeafOrder, Order};
use marquetry_parquet::read::{BatchReader, ChunkIndex, PageIndexReader, ReadOptions};
use marquetry_parquet::schema::LogicalType;
use serde_json::Value;

fn corpus() -> Vec<PathBuf> {
    let Some(corpus) = files::corpus() else { return Vec::new() };
    let folders = [
        "parquet-testing/data",
        "parquet-testing/data/geospatial",
        "parquet-testing/shredded_variant",
        "real",
    ];
    folders.iter().flat_map(|folder| files::parquet_files(&corpus.join(folder))).collect()
}

/// What pyarrow and DuckDB say of the corpus and of files that the script makes, once for all tests. `None` without them or the
/// corpus.
fn answers() -> Option<&'static [Value]> {
    static ANSWERS: OnceLock<Option<Vec<Value>>> = OnceLock::new();
    // Asked by every test, so that each is on record that does without.
    let (python, _) = files::python().zip(files::corpus())?;
    let make = || {
        let folder = files::root().join("target/conformance/metadata");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let out = folder.join("answers.json");
        let script = files::root().join("dev/conformance/expect_metadata.py");
        let status = Command::new(python).arg(script).arg(&out).arg(&folder).args(corpus()).status().unwrap();
        assert!(status.success(), "{status}");
        let all: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
        Some(all.as_array().unwrap().clone())
    };
    ANSWERS.get_or_init(make).as_deref()
}

fn indexes(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    manner: Manner,
) -> marquetry_base::Result<Vec<ChunkIndex>> {
    let mut reader = PageIndexReader::new(FILE, Arc::clone(metadata), &ReadOptions::default())?;
    let mut all = Vec::new();
    hostile::run(&mut reader, FILE, bytes, manner, |index| {
        all.push(index);
        Ok(())
    })?;
    Ok(all)
}

#[test]
fn footers_and_indexes_are_those_of_parquet_rs() {
    let mut paths = corpus();
    if let Some(answers) = answers() {
        paths = answers.iter().map(|answer| PathBuf::from(answer["file"].as_str().unwrap())).collect();
    }
    let mut all = Compared::default();
    for path in &paths {
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
        match parquet_rs::compare(&bytes, &metadata) {
            Ok(compared) => all += compared,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    println!("{all:?}");
    if !paths.is_empty() {
        assert!(all.indexes > 100 && all.pages > 500 && all.sizes > 100 && all.boxes > 20);
    }
}

/// Columns whose bounds pyarrow trusts otherwise: file, end of the column's name, and why.
const OTHER_TRUST: &[(&str, &str, &str)] = &[
    (
        "fixed_length_decimal.parquet",
        "",
        "pyarrow takes deprecated bounds of decimals on bytes, which some writers got wrong",
    ),
    ("fixed_length_decimal_legacy.parquet", "", "the same"),
    ("floating_orders_nan_count.parquet", "_ieee754", "pyarrow 26 does not know this order"),
    ("nan_in_stats.parquet", "", "pyarrow hands a NaN on, which must be ignored"),
];

/// A bound whose zero, of either sign, is +0.
fn without_sign_of_zero(hex: &str) -> &str {
    match hex {
        "00000080" => "00000000",
        "0000000000000080" => "0000000000000000",
        "0080" => "0000",
        other => other,
    }
}

#[test]
fn counts_and_bounds_are_those_of_pyarrow() {
    let Some(answers) = answers() else { return };
    let (mut both, mut sorted, mut wrong) = (0, 0, Vec::new());
    let is_other = |what: &str| {
        OTHER_TRUST
            .iter()
            .any(|(file, column, _)| what.starts_with(&format!("{file},")) && what.ends_with(column))
    };
    for answer in answers {
        let path = Path::new(answer["file"].as_str().unwrap());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(groups) = answer["pyarrow"]["groups"].as_array() else {
            println!("{name}: {}", answer["pyarrow"]["error"]);
            continue;
        };
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        for (number, group) in groups.iter().enumerate() {
            let ours = &metadata.row_groups[number];
            let sorting: Vec<Value> = ours
                .sorting_columns
                .iter()
                .map(|it| serde_json::json!([it.column, it.descending, it.nulls_first]))
                .collect();
            assert_eq!(group["sorting"], Value::Array(sorting), "{name}");
            sorted += ours.sorting_columns.len();
            for (leaf, theirs) in group["columns"].as_array().unwrap().iter().enumerate() {
                let chunk = &ours.columns[leaf];
                let what = format!("{name}, row group {number}, {}", metadata.schema.leaf_path(leaf));
                if theirs["error"].is_string() || is_other(&what) {
                    continue;
                }
                assert_eq!(theirs["values"], chunk.values, "{what}");
                // Where pyarrow does not trust a writer, it shows nothing of its statistics.
                if let Some(statistics) = chunk.statistics.as_ref().filter(|_| !theirs["nulls"].is_null()) {
                    assert_eq!(theirs["nulls"].as_u64(), statistics.null_count, "{what}");
                    assert_eq!(theirs["distinct"].as_u64(), statistics.distinct_count, "{what}");
                }
                let order = LeafOrder::of(&metadata, leaf).unwrap();
                let known = order.of_chunk(chunk);
                let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                match (theirs["bounds"].as_array(), known.min.zip(known.max)) {
                    (None, None) => {}
                    (Some(theirs), Some((min, max))) => {
                        both += 1;
                        // A zero has the sign that reaches farther, whatever the writer gave it.
                        let is_float =
                            matches!(order.order(), Some(Order::Float | Order::Double | Order::Float16));
                        let same = |theirs: &Value, ours: &[u8]| match theirs.as_str() {
                            Some(theirs) if is_float => {
                                without_sign_of_zero(theirs) == without_sign_of_zero(&hex(ours))
                            }
                            theirs => theirs == Some(&hex(ours)),
                        };
                        if !(same(&theirs[0], min.value) && same(&theirs[1], max.value)) {
                            wrong.push(format!("{what}: {theirs:?}, not {known:?}"));
                        }
                    }
                    (theirs, _) => {
                        wrong.push(format!("{what}: {theirs:?}, not {known:?} of {:?}", chunk.statistics))
                    }
                }
            }
        }
    }
    println!("{both} bounds, {sorted} sorting columns");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(both > 500 && sorted > 5);
}

#[test]
fn nans_and_exactness_are_those_of_duckdb() {
    let Some(answers) = answers() else { return };
    let (mut nans, mut exact) = (0, 0);
    for answer in answers {
        let path = Path::new(answer["file"].as_str().unwrap());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(counts) = answer["duckdb"]["counts"].as_array() else { continue };
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        for count in counts {
            let at = |index: usize| usize::try_from(count[index].as_u64().unwrap()).unwrap();
            let chunk = &metadata.row_groups[at(0)].columns[at(1)];
            let statistics = chunk.statistics.clone().unwrap_or_default();
            assert_eq!(count[2].as_u64(), statistics.nan_count, "{name}");
            assert_eq!(count[3].as_bool(), statistics.is_min_value_exact, "{name}");
            assert_eq!(count[4].as_bool(), statistics.is_max_value_exact, "{name}");
            nans += usize::from(statistics.nan_count.is_some());
            exact += usize::from(statistics.is_min_value_exact.is_some());
        }
    }
    println!("{nans} counts of NaNs, {exact} exact bounds");
    assert!(nans > 20 && exact > 50);
}

/// The values of a column of bytes, as text where they are geometries.
fn texts(bytes: &Bytes, metadata: &Arc<FileMetaData>, leaf: usize) -> Vec<Option<String>> {
    let is_geometry = matches!(
        metadata.schema.node_of(&metadata.schema.leaves()[leaf]).logical_type,
        Some(LogicalType::Geometry { .. } | LogicalType::Geography { .. })
    );
    let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
    let options = ReadOptions { leaves: Some(vec![leaf]), ..ReadOptions::default() };
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options).unwrap();
    let mut texts = Vec::new();
    hostile::run(&mut reader, FILE, bytes, Manner::KIND, |batch| {
        let column = &batch.columns[0];
        let Values::ByteArray(values) = &column.values else { panic!("bytes") };
        for row in 0..batch.rows {
            let text = || {
                let mut out = Vec::new();
                match is_geometry {
                    true => write_wkt(values.get(row), &mut out).unwrap(),
                    false => out.extend_from_slice(values.get(row)),
                }
                String::from_utf8(out).unwrap()
            };
            texts.push((!column.is_null(row)).then(text));
        }
        Ok(())
    })
    .unwrap();
    texts
}

#[test]
fn geometries_are_the_text_beside_them() {
    let Some(corpus) = files::corpus() else { return };
    let bytes = Bytes::from(
        std::fs::read(corpus.join("parquet-testing/data/geospatial/geospatial.parquet")).unwrap(),
    );
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let (wkt, geometry) = (texts(&bytes, &metadata, 1), texts(&bytes, &metadata, 2));
    assert_eq!(wkt, geometry);
    assert_eq!((wkt.len(), wkt.iter().flatten().count()), (196, 164));
}

#[test]
fn geometries_are_the_text_of_duckdb() {
    let Some(answers) = answers() else { return };
    let mut compared = 0;
    for answer in answers {
        let path = Path::new(answer["file"].as_str().unwrap());
        let Some(geometries) = answer["duckdb"]["geometries"].as_object() else { continue };
        for (column, theirs) in geometries {
            let bytes = Bytes::from(std::fs::read(path).unwrap());
            let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
            let schema = &metadata.schema;
            let leaf = (0..schema.leaves().len()).find(|leaf| schema.leaf_path(*leaf) == *column).unwrap();
            let ours = texts(&bytes, &metadata, leaf);
            for (ours, theirs) in ours.iter().zip(theirs.as_array().unwrap()) {
                // DuckDB writes the points of a MULTIPOINT without brackets of their own, and NaN small.
                if ours.as_ref().is_some_and(|text| text.contains("MULTIPOINT")) {
                    continue;
                }
                let theirs = theirs.as_str().map(|text| text.replace("nan", "NaN"));
                assert_eq!(*ours, theirs, "{}", path.display());
                compared += 1;
            }
        }
    }
    println!("{compared} geometries");
    assert!(compared > 1000);
}

#[test]
fn page_indexes_are_read_the_same_by_every_host() {
    let mut seen = 0;
    for path in corpus() {
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
        let expected = indexes(&bytes, &metadata, Manner::KIND);
        seen += expected.as_ref().map_or(0, Vec::len);
        for manner in [Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
            if bytes.len() < 1 << 20 || manner.piece_bytes > 1 {
                assert_eq!(indexes(&bytes, &metadata, manner), expected, "{} as {manner:?}", path.display());
            }
        }
    }
    println!("{seen} indexes");
    assert!(seen > 100 || corpus().is_empty());
}
