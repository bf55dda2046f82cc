//! Marquetry as a contestant of the stall benchmark: `bench-stall-ours FILE [--memory]`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use marquetry_bench::level;
use marquetry_bench::protocol::refuse;
use marquetry_bench::stall::{ours, serve};
use marquetry_testing::counting::Counting;

/// Counts where memory is what is asked for; while calls are timed, it does not.
#[global_allocator]
static MEMORY: Counting = Counting;

fn main() -> ExitCode {
    let kernels = match level::hold() {
        Ok(kernels) => kernels,
        Err(message) => return refuse(&message),
    };
    let version = format!("{} (kernels: {kernels})", env!("CARGO_PKG_VERSION"));
    serve(&version, ours::read)
}
