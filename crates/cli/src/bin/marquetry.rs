//! The command `marquetry`.
#![forbid(unsafe_code)]

// With mimalloc, from which the package for Python has its memory, copies took up to twice the CPU time and twice the memory: what is freed here is
// small, or used again.
fn main() -> std::process::ExitCode {
    marquetry_cli::main()
}
