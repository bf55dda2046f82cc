//! What glibc's allocator is told while our own calls are timed: mallopt(3), and "Memory Allocation Tunables" in its manual.

use std::process::{Command, ExitCode};

/// Memory of 128 KiB and more comes fresh from the system, and goes back, however often it was used before. So the shortest of a call's times has
/// the page faults in it.
pub const FRESH: [(&str, &str); 1] = [("MALLOC_MMAP_THRESHOLD_", "131072")];

/// The same; and what was freed is neither merged nor given back all at once, in a call that happens to free or to ask for a little. Where a
/// hundred thousand columns were freed, that is 3 to 5 ms of glibc's own ([`marquetry_base::Release`] says what a host does about it).
pub const STEADY: [(&str, &str); 2] =
    [FRESH[0], ("GLIBC_TUNABLES", "glibc.malloc.mxfast=0:glibc.malloc.trim_threshold=68719476736")];

/// Runs this program again with `settings`, which a process reads when it begins. `None` if they hold already.
pub fn again(settings: &[(&str, &str)]) -> Option<ExitCode> {
    let holds = |&(name, value): &(&str, &str)| std::env::var(name).is_ok_and(|found| found == value);
    if settings.iter().all(holds) {
        return None;
    }
    let ended = std::env::current_exe().and_then(|program| {
        Command::new(program).args(std::env::args_os().skip(1)).envs(settings.iter().copied()).status()
    });
    Some(if ended.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
