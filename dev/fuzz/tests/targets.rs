//! Every target on its kept inputs, and on some thousands made of them; and the planted faults, which must be found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use marquetry_fuzz::harness::{self, Failure};
use marquetry_fuzz::{TARGETS, Target, canary, target};

/// What is allocated is counted for the whole process: one target at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kept(target: &Target) -> Vec<Vec<u8>> {
    harness::corpus(target).into_iter().map(|(_, input)| input).collect()
}

#[track_caller]
fn bears(name: &str, times: usize, seed: u64) {
    let _alone = alone();
    let target = target(name).expect("a target of that name");
    let corpus = kept(target);
    if let Err(failure) = harness::fuzz(target, &corpus, target.runs * times, seed) {
        let Failure { message, runs, .. } = &*failure;
        let hint = harness::keep(target, &failure).unwrap_or_else(|error| error.to_string());
        panic!("{name}, input {runs}: {message}\n{hint}");
    }
    println!("{name}: {} kept inputs, and {} made of them", corpus.len(), target.runs * times);
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                bears(stringify!($name), 1, 1);
            }
        )*

        #[test]
        fn every_target_is_run() {
            assert!(TARGETS.iter().map(|target| target.name).eq([$(stringify!($name)),*]));
        }
    };
}

targets!(
    footer, page, encoding, codec, file, find, operations, values, cql, write, shred, text, sstable, class,
    cost
);

/// A planted fault is found by each target within the inputs that a test makes: from nothing, without the corpus.
#[test]
fn every_canary_is_found() {
    let _alone = alone();
    for target in TARGETS {
        for &planted in target.canaries {
            canary::plant(Some(planted));
            let found = harness::fuzz(target, &[], target.runs, 2);
            canary::plant(None);
            match found {
                Err(failure) => println!(
                    "{}: {planted:?} found by input {}: {}",
                    target.name,
                    failure.runs,
                    failure.message.chars().take(100).collect::<String>()
                ),
                Ok(()) => panic!("{}: {planted:?} was not found in {} inputs", target.name, target.runs),
            }
        }
    }
}

/// Small files, and few: they are in everyone's checkout.
#[test]
fn the_corpus_is_small() {
    for target in TARGETS {
        let kept = kept(target);
        assert!(kept.len() >= 20, "{}: {} kept inputs", target.name, kept.len());
        assert!(kept.iter().all(|input| input.len() <= 4_096), "{}: a large input", target.name);
        assert!(kept.iter().map(Vec::len).sum::<usize>() < 350_000, "{}: too much is kept", target.name);
    }
}
