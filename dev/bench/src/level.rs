//! The instruction sets that the kernels use: the processor's, or fewer, as a processor of another kind has them.

use marquetry_kernels::cpu::{Level, hold_to, level, levels};

/// Says how far the kernels may go: `portable`, `neon`, `avx2` or `avx512`.
pub const VARIABLE: &str = "BENCH_LEVEL";

/// The levels that a comparison is made at: all that this processor has, the most first, or the one that the environment says.
///
/// # Errors
/// As those of [`hold`].
pub fn wanted() -> Result<Vec<&'static str>, String> {
    let mut known: Vec<&'static str> = levels().map(name).collect();
    known.reverse();
    match std::env::var(VARIABLE) {
        Ok(one) if !known.contains(&&*one) => Err(unknown(&one)),
        Ok(one) => Ok(known.into_iter().filter(|level| *level == one).collect()),
        Err(_) => Ok(known),
    }
}

/// Holds the kernels of this process to what the environment says, and names the level that they are at.
///
/// # Errors
/// When there is no such level, or the processor has less.
pub fn hold() -> Result<&'static str, String> {
    if let Ok(wanted) = std::env::var(VARIABLE) {
        let most = levels().find(|&level| name(level) == wanted).ok_or_else(|| unknown(&wanted))?;
        hold_to(most);
    }
    Ok(name(level()))
}

/// What a level is called here.
pub fn name(level: Level) -> &'static str {
    match level {
        Level::Portable => "portable",
        Level::Neon => "neon",
        Level::Avx2 => "avx2",
        Level::Avx512 => "avx512",
    }
}

fn unknown(wanted: &str) -> String {
    let known: Vec<&str> = levels().map(name).collect();
    format!("{VARIABLE}={wanted}: this processor's levels are {}", known.join(", "))
}
