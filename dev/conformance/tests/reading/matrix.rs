//! `docs/FEATURES.md` is what the tests see.

use marquetry_conformance::features::{self, Evidence};
use marquetry_conformance::files;

use crate::{corpus, crafted, crafted_types, nested, peers};

/// Set, it writes the document instead of comparing it.
const UPDATE: &str = "MARQUETRY_UPDATE";

#[test]
fn the_feature_matrix_is_what_the_tests_see() {
    let (Some(corpus), Some(peers), Some(legacy)) =
        (corpus::outcome(), peers::outcomes(), nested::legacy_outcome())
    else {
        return println!("skipped: the matrix needs the corpus and the peers");
    };
    let mut evidence = Evidence::default();
    for outcome in peers.values().chain([corpus, legacy, crafted::outcome(), crafted_types::outcome()]) {
        evidence.merge(&outcome.evidence);
    }
    let (document, faults) = features::document(&evidence);
    assert!(faults.is_empty(), "the matrix claims what was not seen:\n{}", faults.join("\n"));
    let path = files::root().join("docs/FEATURES.md");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = document.lines().zip(written.lines()).find(|(seen, written)| seen != written);
    assert!(
        document == written,
        "docs/FEATURES.md is not what the tests see ({UPDATE}=1 writes it); the first line: {differs:?}"
    );
}
