//! The instruction sets that the kernels use: the processor's, or fewer, as a processor of another kind has them.

use marquetry_kernels::cpu::{Level, hold_to, level};

/// Says how far the kernels may go: `portable`, `avx2` or `avx512`.
pub const VARIABLE: &str = "BENCH_LEVEL";

/// Holds the kernels of this process to what the environment says, and names the level that they are at.
///
/// # Errors
/// When there is no such level, or the processor has less.
pub fn hold() -> Result<&'static str, String> {
    if let Ok(wanted) = std::env::var(VARIABLE) {
        let all = [Level::Portable, Level::Avx2, Level::Avx512];
        let most = all.into_iter().find(|&level| name(level) == wanted);
        let most = most.ok_or_else(|| format!("{VARIABLE}={wanted}: not portable, avx2 or avx512"))?;
        hold_to(most);
        if level() != most {
            return Err(format!("{VARIABLE}={wanted}: this processor has no more than {}", name(level())));
        }
    }
    Ok(name(level()))
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Portable => "portable",
        Level::Avx2 => "avx2",
        Level::Avx512 => "avx512",
    }
}
