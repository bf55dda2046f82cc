//! What is told of geometries is what others tell of the same.

use marquetry_base::Bytes;
use marquetry_conformance::canonical;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::Layout;
use marquetry_parquet::format::{BoundingBox, GeospatialStatistics};
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::{Leaf, LogicalType};
use marquetry_parquet::write::{ColumnOptions, WriteOptions};

use crate::rewritten::rewrite;

/// A column of geometries, whether they are on a globe, and what is told of all row groups together: nothing, where nothing is told of one.
#[derive(Debug, PartialEq)]
struct Told {
    path: String,
    is_globe: bool,
    statistics: Option<GeospatialStatistics>,
}

fn told(bytes: &Bytes) -> Vec<Told> {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    let leaves = metadata.schema.leaves().iter().enumerate();
    let geometries = leaves.filter(|(_, leaf)| {
        matches!(
            metadata.schema.node_of(leaf).logical_type,
            Some(LogicalType::Geometry { .. } | LogicalType::Geography { .. })
        )
    });
    let of = |(number, leaf): (usize, &Leaf)| {
        let chunks =
            metadata.row_groups.iter().map(|group| group.columns[number].geospatial_statistics.as_deref());
        let all: Option<Vec<_>> = chunks.map(|told| told.cloned()).collect();
        let is_globe =
            matches!(metadata.schema.node_of(leaf).logical_type, Some(LogicalType::Geography { .. }));
        let statistics = all.and_then(|all| all.into_iter().reduce(joined));
        Told { path: metadata.schema.path(leaf.node), is_globe, statistics }
    };
    geometries.map(of).collect()
}

fn joined(left: GeospatialStatistics, right: GeospatialStatistics) -> GeospatialStatistics {
    let side = |left: (f64, f64), right: (f64, f64)| (left.0.min(right.0), left.1.max(right.1));
    let either = |left: Option<(f64, f64)>, right: Option<(f64, f64)>| match (left, right) {
        (Some(left), Some(right)) => Some(side(left, right)),
        (left, right) => left.or(right),
    };
    let bounding_box = match (left.bounding_box, right.bounding_box) {
        (Some(left), Some(right)) => Some(BoundingBox {
            x: side(left.x, right.x),
            y: side(left.y, right.y),
            z: either(left.z, right.z),
            m: either(left.m, right.m),
        }),
        (left, right) => left.or(right),
    };
    let mut geospatial_types = [left.geospatial_types, right.geospatial_types].concat();
    geospatial_types.sort_unstable();
    geospatial_types.dedup();
    GeospatialStatistics { bounding_box, geospatial_types }
}

/// Files of geometries that others made, written again. On a globe, some tell nothing, and others boxes around edges, which may cross the
/// antimeridian; there the types are compared.
#[test]
fn as_others_tell_it() {
    let Some(corpus) = files::corpus() else { return };
    let mut folders = vec![corpus.join("parquet-testing/data/geospatial")];
    folders.extend(
        ["parquet-java", "parquet-go", "clickhouse"]
            .map(|writer| files::root().join("dev/conformance/writers/files").join(writer)),
    );
    let (mut same, mut others) = (0, Vec::new());
    for path in folders.iter().flat_map(|folder| files::parquet_files(folder)) {
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        if canonical::metadata(&bytes, Manner::KIND).is_err() {
            continue;
        }
        let before = told(&bytes);
        for dictionary in
            [true, false].into_iter().filter(|_| before.iter().any(|it| it.statistics.is_some()))
        {
            let column = ColumnOptions { dictionary, ..ColumnOptions::default() };
            let options = WriteOptions { row_group_rows: 7, column, ..WriteOptions::default() };
            let read = ReadOptions { layout: Layout::Dense, ..ReadOptions::default() };
            let after = told(&rewrite(&bytes, read, options, Manner::USUAL).unwrap());
            for (theirs, ours) in before.iter().zip(&after) {
                let types = |told: &Told| told.statistics.as_ref().map(|it| it.geospatial_types.clone());
                let has_box =
                    |told: &Told| told.statistics.as_ref().is_some_and(|it| it.bounding_box.is_some());
                let is_same = match ours.is_globe {
                    false => theirs == ours,
                    true => {
                        let is_points = types(ours).is_some_and(|types| types == [1]);
                        (theirs.statistics.is_none() || types(theirs) == types(ours))
                            && has_box(ours) == is_points
                    }
                };
                match is_same {
                    true => same += 1,
                    false => others.push(format!("{}: {theirs:?}, ours {ours:?}", path.display())),
                }
            }
        }
    }
    println!("{same} the same");
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(same > 10, "{same}");
}
