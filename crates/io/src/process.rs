//! What this process takes of the machine.

use std::time::Duration;

use marquetry_base::Result;

/// Lets all others go first: this thread, and those that it starts from now on, run when no other process wants a processor, and their reads
/// and writes come last among those of ordinary processes.
///
/// # Errors
///
/// `Io` if the system refuses; `Unsupported` where there are no such priorities.
pub fn lower_priority() -> Result<()> {
    #[cfg(unix)]
    {
        // The least there is.
        const LOWEST: i32 = 19;
        let lowered = rustix::process::nice(LOWEST);
        lowered.map(drop).map_err(|errno| crate::failed("given less priority", "this process", errno.into()))
    }
    #[cfg(not(unix))]
    Err(marquetry_base::Error::unsupported("priorities of processes on this system"))
}

/// How long processors have worked for this process, all its threads together. `None` if the system does not say.
pub fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(Duration::new(u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?))
    }
    #[cfg(not(unix))]
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = processor_time().unwrap();
        let mut sum = 0_u64;
        while processor_time().unwrap() == before {
            sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
        }
        assert!(processor_time().unwrap() > before);
    }
}
