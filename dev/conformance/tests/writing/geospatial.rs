//! What is told of geometries is what others tell of the same.

use marquetry_base::Bytes;
use marquetry_conformance::canonical;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::format::GeospatialStatistics;
use marquetry_parquet::read::{Layout, ReadOptions};
use marquetry_parquet::schema::LogicalType;
use marquetry_parquet::write::{ColumnOptions, WriteOptions};

use crate::rewritten::rewrite;

/// What is told of each column of geometries, by row group.
fn told(bytes: &Bytes) -> Vec<(String, Vec<Option<GeospatialStatistics>>)> {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    let leaves = metadata.schema.leaves().iter().enumerate();
    let geometries = leaves.filter(|(_, leaf)| {
        matches!(
            metadata.schema.node_of(leaf).logical_type,
            Some(LogicalType::Geometry { .. } | LogicalType::Geography { .. })
        )
    });
    let of = |(number, leaf): (usize, &marquetry_parquet::schema::Leaf)| {
        let chunks = metadata.row_groups.iter().map(|group| &group.columns[number]);
        (leaf.path.clone(), chunks.map(|chunk| chunk.geospatial_statistics.as_deref().cloned()).collect())
    };
    geometries.map(of).collect()
}

/// Files of geometries that others made, one with as many rows in each row group as the first one has.
#[test]
fn as_others_tell_it() {
    let Some(corpus) = files::corpus() else { return };
    let folders = [
        corpus.join("parquet-testing/data/geospatial"),
        files::root().join("dev/conformance/writers/files/parquet-java"),
        files::root().join("dev/conformance/writers/files/parquet-go"),
        files::root().join("dev/conformance/writers/files/clickhouse"),
    ];
    let (mut same, mut more) = (0, Vec::new());
    for path in folders.iter().flat_map(|folder| files::parquet_files(folder)) {
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
        let before = told(&bytes);
        if before.iter().all(|(_, told)| told.iter().all(Option::is_none)) {
            continue;
        }
        let rows = metadata.row_groups.first().map_or(1, |group| group.rows);
        for dictionary in [true, false] {
            let column = ColumnOptions { dictionary, ..ColumnOptions::default() };
            let options = WriteOptions { row_group_rows: rows, column, ..WriteOptions::default() };
            let read = ReadOptions { layout: Layout::Dense, ..ReadOptions::default() };
            let after = told(&rewrite(&bytes, read, options, Manner::USUAL).unwrap());
            let pairs = before.iter().zip(&after).flat_map(|(before, after)| {
                assert_eq!((&before.0, before.1.len()), (&after.0, after.1.len()));
                before.1.iter().zip(&after.1)
            });
            for (before, after) in pairs {
                if before == after {
                    same += 1;
                } else {
                    more.push(format!("{}: {before:?}, ours {after:?}", path.display()));
                }
            }
        }
    }
    println!("{same} the same");
    assert!(more.is_empty(), "{}", more.join("\n"));
    assert!(same > 10, "{same}");
}
