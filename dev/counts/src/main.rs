//! `marquetry-counts check | renew | show | run`: see the library. Exit code 3: not checked, for want of AVX2 or of a
//! baseline for this compiler; the reason is on standard output.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use marquetry_counts::baselines::{Baselines, Count, faults};
use marquetry_counts::{callgrind, cases};

const USAGE: &str = "usage: marquetry-counts check | renew | show | run";
const NOT_CHECKED: u8 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run"] => cases::run().map(|()| ExitCode::SUCCESS),
        ["check"] => check(),
        ["renew"] => renew(),
        ["show"] => count().map(|counts| {
            show(&counts);
            ExitCode::SUCCESS
        }),
        _ => Err(USAGE.to_owned()),
    };
    done.unwrap_or_else(|message| {
        eprintln!("marquetry-counts: {message}");
        ExitCode::FAILURE
    })
}

fn check() -> Result<ExitCode, String> {
    let Some(title) = title()? else {
        println!("a processor with AVX2");
        return Ok(ExitCode::from(NOT_CHECKED));
    };
    let baselines = read()?;
    let Some(section) = baselines.section(&title) else {
        let known: Vec<&str> = baselines.titles().collect();
        println!("baselines for {title} (there are some for {})", known.join("; "));
        return Ok(ExitCode::from(NOT_CHECKED));
    };
    let counts = count()?;
    let faults = faults(section, &counts);
    if faults.is_empty() {
        println!("Instruction counts: {} cases are as their baselines have them.", counts.len());
        return Ok(ExitCode::SUCCESS);
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    Err(format!(
        "{} of {} cases are not as their baselines have them; where that is meant, `dev/counts.sh renew` writes new ones",
        faults.len(),
        counts.len()
    ))
}

fn renew() -> Result<ExitCode, String> {
    let title = title()?.ok_or("baselines are those of a processor with AVX2")?;
    let mut baselines = read()?;
    let counts = count()?;
    for fault in faults(baselines.section(&title).unwrap_or_default(), &counts) {
        println!("{fault}");
    }
    baselines.put(&title, counts);
    let path = path();
    std::fs::write(&path, baselines.print()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn show(counts: &[Count]) {
    for Count { case, instructions, .. } in counts {
        println!("{instructions:>12}  {case}");
    }
}

/// The section of this compiler, or nothing if the processor lacks what is counted.
fn title() -> Result<Option<String>, String> {
    if !cases::hold() {
        return Ok(None);
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().map_err(|error| format!("rustc: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout);
    // Without the commit and the date.
    let version: Vec<&str> = version.split_whitespace().take(2).collect();
    if !output.status.success() || version.len() < 2 {
        return Err("rustc does not say its version".to_owned());
    }
    Ok(Some(format!("{}, {}, avx2", version.join(" "), std::env::consts::ARCH)))
}

fn count() -> Result<Vec<Count>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // A path of the same length everywhere: it is on the program's stack.
    let folder = std::env::temp_dir().join(format!("marquetry-counts-{:010}", std::process::id()));
    let counted = callgrind::run(&program, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let counted = counted?;
    let to_count = |(line, instructions): (String, u64)| {
        let (input, case) = line.split_once(' ').ok_or_else(|| format!("a case called {line:?}"))?;
        Ok(Count { case: case.to_owned(), input: input.to_owned(), instructions })
    };
    counted.into_iter().map(to_count).collect()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines.txt")
}

/// The baselines, or none where there is no file yet.
fn read() -> Result<Baselines, String> {
    let path = path();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Baselines::default()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    Baselines::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}
