//! Runs a target on files: `replay TARGET FILE…`, or on all that is kept: `replay TARGET`. With `CANARY=bytes`, or another, a fault is
//! planted.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use marquetry_fuzz::{TARGETS, canary, harness, target};

fn main() -> ExitCode {
    canary::plant(std::env::var("CANARY").ok().and_then(|name| canary::Canary::of(&name)));
    let mut arguments = std::env::args().skip(1);
    let Some(target) = arguments.next().and_then(|name| target(&name)) else {
        eprintln!("replay TARGET [FILE…]; the targets are:");
        TARGETS.iter().for_each(|target| eprintln!("  {:<10} {}", target.name, target.about));
        return ExitCode::from(2);
    };
    let files: Vec<String> = arguments.collect();
    let inputs: Vec<(String, Vec<u8>)> = if files.is_empty() {
        harness::corpus(target)
    } else {
        files
            .into_iter()
            .map(|file| (file.clone(), std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"))))
            .collect()
    };
    let mut failed = 0;
    for (name, input) in &inputs {
        if let Err(message) = harness::run(target, input) {
            println!("{name}: {message}");
            failed += 1;
        }
    }
    println!("{} inputs, {failed} failed", inputs.len());
    ExitCode::from(u8::from(failed > 0))
}
