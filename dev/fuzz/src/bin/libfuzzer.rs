//! The targets under libFuzzer, which is led by coverage: `dev/fuzz/run.sh` builds and runs it. `FUZZ_TARGET` names the target.
#![forbid(unsafe_code)]
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use marquetry_fuzz::{Target, canary, target};

static TARGET: OnceLock<&Target> = OnceLock::new();

fn chosen() -> &'static Target {
    TARGET.get_or_init(|| {
        canary::plant(std::env::var("CANARY").ok().and_then(|name| canary::Canary::of(&name)));
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name}: there is no such target"))
    })
}

fuzz_target!(|data: &[u8]| {
    (chosen().run)(data);
});
