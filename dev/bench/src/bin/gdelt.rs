//! Writes events like GDELT's as tab-separated text, without a header: see `marquetry_bench::gdelt`.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use marquetry_bench::gdelt::{Model, Wanted, schema};

const USAGE: &str = "usage: bench-gdelt FILE [--rows 4037539] [--seed 1] [--from 19820102] [--to 19820103] [--every 10]
       bench-gdelt schema

--rows is the number of all events of the six years; --from, --to and --every take some of them. `schema` prints the columns as --schema takes them.";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-gdelt: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [path, options @ ..] = arguments else { return Err(USAGE.to_owned()) };
    if path == "schema" {
        println!("{}", schema());
        return Ok(());
    }
    let mut wanted = Wanted::default();
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err(USAGE.to_owned()) };
        let number = value.parse::<u64>().map_err(|_| format!("{value} is not a number"))?;
        let day = || u32::try_from(number).map_err(|_| format!("{value} is not a day"));
        match name.as_str() {
            "--rows" => wanted.rows = number,
            "--seed" => wanted.seed = number,
            "--from" => wanted.from = Some(day()?),
            "--to" => wanted.to = Some(day()?),
            "--every" => wanted.every = number.max(1),
            _ => return Err(format!("{name} {value}?\n{USAGE}")),
        }
    }
    let model = Model::read()?;
    let named = |error: std::io::Error| format!("{path}: {error}");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(named)?);
    let written = model.write(&wanted, &mut out).and_then(|written| out.flush().map(|()| written));
    eprintln!("{} events", written.map_err(named)?);
    Ok(())
}
