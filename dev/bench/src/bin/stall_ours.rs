//! Marquetry as a contestant of the stall benchmark: `bench-stall-ours FILE [--memory]`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use marquetry_bench::stall::{ours, serve};

fn main() -> ExitCode {
    serve(env!("CARGO_PKG_VERSION"), ours::read)
}
