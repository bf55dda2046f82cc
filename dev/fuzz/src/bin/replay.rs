//! Runs a target on files and folders: `replay TARGET FILE…`, or on all that is kept: `replay TARGET`. With `CANARY=bytes`, or another, a
//! fault is planted. `replay --timed …`, built with `--release`, also fails for calls that take longer than their units are worth.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use marquetry_fuzz::{TARGETS, Target, canary, harness, meter, target};

/// Of so many runs of an input, the shortest time of each call counts.
const REPLAYS: usize = 3;

fn main() -> ExitCode {
    canary::plant(std::env::var("CANARY").ok().and_then(|name| canary::Canary::of(&name)));
    let mut arguments = std::env::args().skip(1).peekable();
    let is_timed = arguments.next_if_eq("--timed").is_some();
    meter::time(is_timed);
    let Some(target) = arguments.next().and_then(|name| target(&name)) else {
        eprintln!("replay [--timed] TARGET [FILE…]; the targets are:");
        TARGETS.iter().for_each(|target| eprintln!("  {:<10} {}", target.name, target.about));
        return ExitCode::from(2);
    };
    let files: Vec<PathBuf> = arguments.flat_map(|path| files(Path::new(&path))).collect();
    let inputs: Vec<(String, Vec<u8>)> = if files.is_empty() {
        harness::corpus(target)
    } else {
        let read = |file: &Path| std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        files.into_iter().map(|file| (file.display().to_string(), read(&file))).collect()
    };
    let mut failed = 0;
    for (name, input) in &inputs {
        if let Err(message) = replay(target, input) {
            println!("{name}: {message}");
            failed += 1;
        }
    }
    println!("{} inputs, {failed} failed", inputs.len());
    ExitCode::from(u8::from(failed > 0))
}

/// The file, or those of the folder.
fn files(path: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(path) {
        Ok(folder) => folder.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![path.to_path_buf()],
    }
}

fn replay(target: &Target, input: &[u8]) -> Result<(), String> {
    meter::taken();
    harness::run(target, input)?;
    let mut costs = meter::taken();
    for _ in 1..REPLAYS {
        // Most inputs have no call that is too long even once.
        if costs.faults().next().is_none() {
            return Ok(());
        }
        harness::run(target, input)?;
        costs.replayed(&meter::taken());
    }
    let worst = costs.faults().max_by(|one, other| one.debt().total_cmp(&other.debt()));
    worst.map_or(Ok(()), |call| {
        let (what, units, time) = (call.what, call.units, call.time);
        Err(format!("{what}: {time:?} for {units} units, {:.1} times what they are worth", call.debt()))
    })
}
