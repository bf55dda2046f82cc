//! `docs/FEATURES.md` is what the tests see.

use marquetry_conformance::features::{self, Evidence};

use crate::{corpus, crafted, crafted_types, nested, peers, writers};

#[test]
fn the_feature_matrix_is_what_the_tests_see() {
    // Those of the peers first: they take longest, and no other test is about to make them.
    let (Some(peers), Some(legacy), Some(corpus)) =
        (peers::outcomes(), nested::legacy_outcome(), corpus::outcome())
    else {
        return;
    };
    let mut evidence = Evidence::default();
    let without_peers = [crafted::outcome(), crafted_types::outcome(), writers::outcome()];
    for outcome in peers.into_iter().chain([corpus, legacy]).chain(without_peers) {
        evidence.merge(&outcome.evidence);
    }
    let (document, faults) = features::document(&evidence);
    assert!(faults.is_empty(), "the matrix claims what was not seen:\n{}", faults.join("\n"));
    features::check(&document);
}
