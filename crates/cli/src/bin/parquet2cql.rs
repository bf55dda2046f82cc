//! The command `parquet2cql`: the same program, which looks at the name it was started by.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    marquetry_cli::main()
}
