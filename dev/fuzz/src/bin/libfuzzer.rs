//! The targets under libFuzzer, which is led by coverage, and by [cost](features): `dev/fuzz/run.sh` builds and runs it. `FUZZ_TARGET`
//! names the target.
#![deny(unsafe_code)]
#![no_main]

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use marquetry_fuzz::meter::Costs;
use marquetry_fuzz::{Target, canary, harness, meter, target};

static TARGET: OnceLock<&Target> = OnceLock::new();

fn chosen() -> &'static Target {
    TARGET.get_or_init(|| {
        canary::plant(std::env::var("CANARY").ok().and_then(|name| canary::Canary::of(&name)));
        meter::time(true);
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name}: there is no such target"))
    })
}

/// Counters, and so features.
const FEATURES: usize = 1 << 13;

/// What libFuzzer takes for coverage beside what the compiler counts, and clears before each run: an input that sets one which none has
/// set before is kept.
#[expect(
    unsafe_code,
    reason = "libFuzzer finds them in a section of this name, whose every byte is a counter: so are these"
)]
#[unsafe(link_section = "__libfuzzer_extra_counters")]
static COUNTERS: [AtomicU8; FEATURES] = [const { AtomicU8::new(0) }; FEATURES];

fuzz_target!(|data: &[u8]| {
    let run = || {
        (chosen().run)(data);
        meter::taken()
    };
    let mut costs = run();
    // A time is as long as the shortest of three, if it is of interest.
    if features(&costs).iter().any(|feature| !is_known(*feature)) {
        (0..2).for_each(|_| costs.replayed(&run()));
    }
    for feature in features(&costs) {
        COUNTERS[feature].store(1, Ordering::Relaxed);
    }
});

/// Of so many inputs, one is made of nothing: a corpus that is empty, or has only short inputs, is left sooner.
const INVENTED: u32 = 4;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if !seed.is_multiple_of(INVENTED) {
        return fuzzer_mutate(data, size, max_size);
    }
    let input = harness::invented(seed.into());
    let size = input.len().min(max_size);
    data[..size].copy_from_slice(&input[..size]);
    size
});

/// Whether an input had this feature before; it has now.
fn is_known(feature: usize) -> bool {
    static KNOWN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    !KNOWN.lock().is_ok_and(|mut known| known.insert(feature))
}

/// What an input cost, each amount to an eighth of its magnitude: so the dearest inputs of each kind of call are kept.
fn features(costs: &Costs) -> Vec<usize> {
    let feature = |what: &str, measure: u8, amount: f64| {
        let mut hasher = DefaultHasher::new();
        (what, measure, (amount.max(1.0).log2() * 8.0) as u64).hash(&mut hasher);
        hasher.finish() as usize % FEATURES
    };
    let mut all = vec![feature("", 0, costs.peak_bytes as f64)];
    for (what, (units, allocations)) in &costs.most {
        all.push(feature(what, 1, *units as f64));
        all.push(feature(what, 2, *allocations as f64));
    }
    // Instrumented, all is slower: how much, does not matter here.
    let debts = costs.long.values().map(|call| feature(call.what, 3, call.debt() * 16.0));
    all.extend(debts);
    all
}
