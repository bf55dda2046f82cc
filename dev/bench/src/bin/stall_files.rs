//! Writes the adversarial set of `dev/conformance` for the stall benchmark: `bench-stall-files DIR --mib … --scale … (--list | --case NAME)`, as
//! `make_stall.py` does. `--mib` is the size of a page; all else is as large as it is beside a page of a gibibyte.
#![forbid(unsafe_code)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use marquetry_conformance::adversarial::{self, Scale};
use serde_json::{Value, json};

/// A file that other code made has another name.
const MAKERS: [&str; 6] = [
    include_str!("../../../conformance/src/adversarial/costly.rs"),
    include_str!("../../../../crates/codecs/tests/pages/encoders/brotli_bits.rs"),
    include_str!("../../../../crates/codecs/tests/pages/encoders/zstd_bits.rs"),
    include_str!("../../../conformance/src/adversarial/files.rs"),
    include_str!("../../../conformance/src/adversarial/streams.rs"),
    include_str!("../../../conformance/src/craft.rs"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [_, "--mib", mib, "--scale", _, "--list"] => list(mib),
        [out, "--mib", mib, "--scale", _, "--case", name] => write(Path::new(out), mib, name),
        _ => {
            Err("usage: bench-stall-files DIR --mib NUMBER --scale NUMBER (--list | --case NAME)".to_owned())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-stall-files: {message}");
            ExitCode::FAILURE
        }
    }
}

fn list(mib: &str) -> Result<(), String> {
    let case = |name: &String| {
        let why = adversarial::in_one_piece(name);
        json!({ "name": name, "group": "computed", "file": file_name(mib, name), "in_one_piece": why })
    };
    let cases: Vec<Value> = adversarial::names().iter().map(case).collect();
    println!("{}", Value::from(cases));
    Ok(())
}

fn file_name(mib: &str, name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (MAKERS, mib).hash(&mut hasher);
    format!("computed-{}-{:08x}.parquet", name.replace(['/', '_'], "-"), hasher.finish() >> 32)
}

fn write(out: &Path, mib: &str, name: &str) -> Result<(), String> {
    let scale = Scale::of_pages(mib.parse().map_err(|_| format!("{mib} is not a number"))?);
    let made = adversarial::make(name, &scale).ok_or_else(|| format!("no case is called {name}"))?;
    let path = out.join(file_name(mib, name));
    // What has its name is whole.
    let unfinished = path.with_extension("unfinished");
    let written = || {
        std::fs::create_dir_all(out)?;
        let mut file = BufWriter::new(std::fs::File::create(&unfinished)?);
        let mut result = Ok(());
        made.file.each(|piece| {
            if result.is_ok() {
                result = file.write_all(piece);
            }
        });
        result.and_then(|()| file.flush())?;
        std::fs::rename(&unfinished, &path)
    };
    written().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
