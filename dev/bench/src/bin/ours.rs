//! Marquetry's reader as a contestant: `bench-ours PRODUCT FILE`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use bytes::Bytes;
use marquetry_bench::protocol::{Product, refuse, serve};
use marquetry_bench::{level, ours};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [product, path] = &arguments[..] else {
        return refuse("usage: bench-ours PRODUCT FILE");
    };
    let Some(product) = Product::from_name(product) else {
        return refuse(&format!("no product is called {product}"));
    };
    let file = match std::fs::read(path) {
        Ok(file) => Bytes::from(file),
        Err(error) => return refuse(&format!("{path}: {error}")),
    };
    if let Err(message) = level::hold() {
        return refuse(&message);
    }
    serve(env!("CARGO_PKG_VERSION"), |check| ours::read(&file, product, check))
}
