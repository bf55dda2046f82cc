//! Tests of the workspace itself: what reviewers would otherwise have to remember.
//!
//! Each rule is a function from what it looks at to a list of faults, one sentence each, naming the place. The tests
//! in `tests/tidy.rs` run every rule on this workspace; the unit tests beside a rule run it on text that breaks it,
//! so that a rule which finds nothing any more is noticed.
//!
//! * [`rules::demo`]: that the first `make demo` compiles little.
//! * [`rules::dependencies`]: who may use whom (the table of the design), what is published.
//! * [`rules::manifests`]: names, licence, MSRV, lints, and the attributes at the root of every crate.
//! * [`rules::sources`]: length, unfinished code, ignored tests, relaxed lints, paths of one machine, scripts.
//! * [`rules::documents`]: links of Markdown files.
//! * [`rules::messages`]: that no code decides by the message of an error.
//! * [`rules::prices`]: that each price of a budget's units is measured.
//! * [`rules::rooms`]: which module may import which, and that no files import each other in a circle.
//! * [`rules::speed`]: that README's figures of speed are those of the last results.
//! * [`rules::words`]: phrases that comments and documents avoid.

#![forbid(unsafe_code)]

pub mod rust_text;
pub mod workspace;

/// The rules, by what they look at.
pub mod rules {
    pub mod demo;
    pub mod dependencies;
    pub mod documents;
    pub mod manifests;
    pub mod messages;
    pub mod prices;
    pub mod rooms;
    pub mod sources;
    pub mod speed;
    pub mod words;
}
