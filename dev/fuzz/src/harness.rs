//! Runs of targets without a fuzzer: kept inputs, and what a seeded mutator makes of them.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use marquetry_conformance::hostile::Random;

use crate::Target;

/// An input that a target did not bear.
#[derive(Debug)]
pub struct Failure {
    /// The input.
    pub input: Vec<u8>,
    /// What the panic said.
    pub message: String,
    /// How many inputs were run before.
    pub runs: usize,
}

/// The longest input that is made. Longer ones are only a slower way to say the same.
const INPUT_BYTES_MAX: usize = 2_000;

/// Where the kept inputs of a target are.
pub fn corpus_folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The kept inputs of a target, by name.
pub fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = fs::read_dir(corpus_folder(target))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_string_lossy().into_owned(), fs::read(&path).ok()?))
        })
        .collect();
    found.sort();
    found
}

/// Runs a target on one input.
///
/// # Errors
///
/// What its panic said.
pub fn run(target: &Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message.clone(),
        (_, Some(message)) => (*message).to_string(),
        _ => "a panic without a message".to_string(),
    }
}

/// Runs a target on its kept inputs, then on `runs` that are made of them and of nothing.
///
/// # Errors
///
/// The first input that it does not bear.
pub fn fuzz(target: &Target, corpus: &[Vec<u8>], runs: usize, seed: u64) -> Result<(), Box<Failure>> {
    let mut random = Random(seed << 1 | 1);
    for number in 0..corpus.len() + runs {
        let input = match corpus.get(number) {
            Some(kept) => kept.clone(),
            None => mutated(corpus, &mut random),
        };
        run(target, &input).map_err(|message| Box::new(Failure { input, message, runs: number }))?;
    }
    Ok(())
}

/// An input made of nothing: always the same of a seed.
pub fn invented(seed: u64) -> Vec<u8> {
    mutated(&[], &mut Random(seed << 1 | 1))
}

/// An input made of nothing, or of a kept one.
fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| -> Vec<u8> {
        if corpus.is_empty() { Vec::new() } else { corpus[random.index(corpus.len())].clone() }
    };
    let noise = |random: &mut Random, most: u64| -> Vec<u8> {
        // Small numbers are the plainer choices, and let an input come further.
        let is_small = random.below(2) == 0;
        (0..1 + random.below(most))
            .map(|_| if is_small { random.byte() % 24 } else { random.byte() })
            .collect()
    };
    let mut input = pick(random);
    if input.is_empty() || random.below(4) == 0 {
        input = noise(random, 400);
    }
    for _ in 0..random.below(5) {
        let at = random.index(input.len());
        match random.below(7) {
            _ if input.is_empty() => input = noise(random, 50),
            0 => input[at] = random.byte(),
            1 => input[at] ^= 1 << random.below(8),
            2 => input[at] = input[at].wrapping_add(1),
            3 => drop(input.splice(at..at, noise(random, 8))),
            4 => drop(input.drain(at..(at + 1 + random.index(8)).min(input.len()))),
            5 => {
                let other = pick(random);
                let from = random.index(other.len());
                input.truncate(at);
                input.extend(&other[from..]);
            }
            _ => input.truncate(at),
        }
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// Keeps a failing input beside the corpus, and says how to see it again.
///
/// # Errors
///
/// When it cannot be written.
pub fn keep(target: &Target, failure: &Failure) -> std::io::Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crashes").join(target.name);
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{:08x}", crc32fast::hash(&failure.input)));
    fs::write(&path, &failure.input)?;
    let (name, path) = (target.name, path.display());
    Ok(format!("see it again: cargo run -p marquetry-fuzz --bin replay {name} {path}"))
}
