//! Fuzzing that knows the format.
//!
//! A *target* is a function of bytes. It takes them as [choices](choices::Choices): what schema, which values, how they are encoded, cut into
//! pages and compressed, what of all that is a lie, and how the host behaves. So nearly every input is a file that is almost
//! right, and what must come out of it is known:
//!
//! * nothing panics, and no error is `Internal`;
//! * a file without a lie gives exactly the values it was made of;
//! * whatever the file, the result does not depend on the host's manner, no call [costs](meter) more than it may, and memory stays within
//!   its bounds.
//!
//! One target looks at nothing but costs: of files and texts at the [extremes] of their formats.
//!
//! The same targets run in two ways. `cargo test` replays the kept inputs (`corpus/`) and then some thousands that a seeded
//! [mutator](harness) makes of them: the same ones in every run. `dev/fuzz/run.sh` hands them to libFuzzer, which is led by coverage, for as
//! long as one likes, and by cost: an input with a dearer call than any before is kept. What calls take in time is not for tests to say:
//! `run.sh` replays all that was kept, timed, at its end.
//!
//! A [`canary`] is a fault planted between a target and what it tests. A test sees to it that each is found: a harness that
//! checks nothing would be noticed.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "what is made here is made of arbitrary bits: any will do"
)]

pub mod canary;
pub mod choices;
pub mod compress;
pub mod edit;
pub mod encode;
pub mod extremes;
pub mod harness;
pub mod host;
pub mod meter;
pub mod plan;
pub mod sstable;
pub mod tree;

mod targets {
    pub(crate) mod class;
    pub(crate) mod codec;
    pub(crate) mod cost;
    pub(crate) mod cql;
    pub(crate) mod encoding;
    pub(crate) mod file;
    pub(crate) mod find;
    pub(crate) mod footer;
    pub(crate) mod operations;
    pub(crate) mod page;
    pub(crate) mod shred;
    pub(crate) mod sstable;
    pub(crate) mod text;
    pub(crate) mod values;
    pub(crate) mod write;

    /// Where writers put what they cannot hold.
    pub(crate) const SPILL: marquetry_base::Object = marquetry_base::Object(7);
}

use canary::Canary;
use marquetry_testing::memory::Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// A function that must bear any input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What it is called, and its folder in the corpus.
    pub name: &'static str,
    /// What it looks at.
    pub about: &'static str,
    /// Panics where something is wrong.
    pub run: fn(&[u8]),
    /// Inputs that a test makes, of a few seconds in all.
    pub runs: usize,
    /// The faults that it must find.
    pub canaries: &'static [Canary],
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "footer",
        about: "footers, schemas and what is made of them, page indexes, statistics",
        run: targets::footer::run,
        runs: 12_000,
        canaries: Canary::OF_MACHINES,
    },
    Target {
        name: "page",
        about: "pages of one column: kinds, levels, dictionaries, codecs, headers",
        run: targets::page::run,
        runs: 4_000,
        canaries: Canary::OF_MACHINES,
    },
    Target {
        name: "encoding",
        about: "the values of one page, byte by byte",
        run: targets::encoding::run,
        runs: 12_000,
        canaries: Canary::OF_MACHINES,
    },
    Target {
        name: "codec",
        about: "decompressors and compressors, split anywhere, beside the one-shot crates",
        run: targets::codec::run,
        runs: 5_000,
        canaries: &[Canary::Bytes, Canary::Units],
    },
    Target {
        name: "file",
        about: "whole files, right or not, before a hostile host",
        run: targets::file::run,
        runs: 1_500,
        canaries: Canary::OF_MACHINES,
    },
    Target {
        name: "find",
        about: "predicates, and the rows that they find in files, right or not",
        run: targets::find::run,
        runs: 2_000,
        canaries: &[Canary::Units],
    },
    Target {
        name: "operations",
        about: "any order of calls, projections, other schemas",
        run: targets::operations::run,
        runs: 1_500,
        canaries: &[Canary::Bytes, Canary::Units],
    },
    Target {
        name: "values",
        about: "VARIANT, WKB, names of directories, CQL's types and names",
        run: targets::values::run,
        runs: 60_000,
        canaries: &[Canary::Bytes],
    },
    Target {
        name: "cql",
        about: "files as statements and cells of CQL, and their records as packed cells",
        run: targets::cql::run,
        runs: 1_200,
        canaries: &[Canary::Bytes],
    },
    Target {
        name: "write",
        about: "tables, written in any way and read again",
        run: targets::write::run,
        runs: 500,
        canaries: Canary::OF_MACHINES,
    },
    Target {
        name: "shred",
        about: "records as events, right and wrong, made columns",
        run: targets::shred::run,
        runs: 3_000,
        canaries: &[Canary::Bytes],
    },
    Target {
        name: "text",
        about: "delimited text, cut anywhere",
        run: targets::text::run,
        runs: 40_000,
        canaries: &[Canary::Bytes],
    },
    Target {
        name: "sstable",
        about: "SSTables of every version, their indexes, and lies in all components",
        run: targets::sstable::run,
        runs: 1_500,
        canaries: Canary::OF_MACHINES,
    },
    Target {
        name: "class",
        about: "calls of the object class for Ceph, of objects right or not",
        run: targets::class::run,
        runs: 1_500,
        canaries: &[],
    },
    Target {
        name: "cost",
        about: "files and texts at the extremes of their formats: what every call costs",
        run: targets::cost::run,
        runs: 300,
        canaries: &[Canary::Units, Canary::Price, Canary::Memory],
    },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
