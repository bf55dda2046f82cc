//! The command `marquetry`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    marquetry_cli::main()
}
