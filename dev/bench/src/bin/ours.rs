//! Marquetry's reader as a contestant: `bench-ours PRODUCT FILE [BATCH_ROWS]`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use bytes::Bytes;
use marquetry_bench::protocol::{Product, refuse, serve};
use marquetry_bench::{level, ours};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (product, path, batch_rows) = match &arguments[..] {
        [product, path] => (product, path, None),
        [product, path, batch_rows] => (product, path, Some(batch_rows.parse::<usize>())),
        _ => return refuse("usage: bench-ours PRODUCT FILE [BATCH_ROWS]"),
    };
    let Some(product) = Product::from_name(product) else {
        return refuse(&format!("no product is called {product}"));
    };
    let batch_rows = match batch_rows.transpose() {
        Ok(batch_rows) => batch_rows,
        Err(error) => return refuse(&format!("BATCH_ROWS: {error}")),
    };
    let file = match std::fs::read(path) {
        Ok(file) => Bytes::from(file),
        Err(error) => return refuse(&format!("{path}: {error}")),
    };
    if let Err(message) = level::hold() {
        return refuse(&message);
    }
    serve(env!("CARGO_PKG_VERSION"), |check| ours::read(&file, product, batch_rows, check))
}
