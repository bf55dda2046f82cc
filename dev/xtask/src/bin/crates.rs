//! Prints the published crates, one a line: the name, and then its features but for `default`. For `dev/builds.sh`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use marquetry_xtask::workspace::Workspace;

fn main() -> ExitCode {
    match Workspace::load() {
        Ok(workspace) => {
            for package in workspace.packages.iter().filter(|package| package.published) {
                let features = package.features.iter().filter(|name| *name != "default");
                let line: Vec<&str> =
                    std::iter::once(&package.name).chain(features).map(String::as_str).collect();
                println!("{}", line.join(" "));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
