//! The part of `docs/FEATURES.md` on writing is what the tests see.

use marquetry_conformance::canonical::FILE;
use marquetry_conformance::features::{self, Evidence};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::Layout;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::write::WriteOptions;

use crate::given::{self, Flavour};
use crate::rewritten::write;
use crate::{kept, others};

#[test]
fn the_feature_matrix_is_what_the_tests_see() {
    let (Some(made), Some(kept)) = (others::outcome(), kept::outcome()) else {
        return;
    };
    let mut evidence = Evidence::default();
    for of in [&made.evidence, &kept.evidence, &others::alp(), &sorted()] {
        evidence.merge(of);
    }
    let (document, faults) = features::written(&evidence);
    assert!(faults.is_empty(), "the matrix claims what was not seen:\n{}", faults.join("\n"));
    features::check(&document);
}

/// A table that is said to be sorted, and is.
fn sorted() -> Evidence {
    let Some(python) = files::python() else { return Evidence::default() };
    let folder = files::root().join("target/conformance/sorted");
    std::fs::create_dir_all(&folder).unwrap();
    let schema = given::schema(&[("int64", marquetry_conformance::craft::INT64)], &["required"]);
    let by = SortingColumn { column: 0, descending: false, nulls_first: false };
    let options = WriteOptions { sorting_columns: vec![by], ..WriteOptions::default() };
    let batch = given::batch(&schema, 1000, Flavour::Ascending, Layout::Spaced, 1);
    let path = folder.join("sorted.parquet");
    let written = write(&schema, &[batch], options, Manner::KIND).unwrap();
    std::fs::write(&path, written.object(FILE)).unwrap();
    let outcome = others::by_pyarrow(&python, &folder, &[path]);
    outcome.assert_right();
    outcome.evidence
}
