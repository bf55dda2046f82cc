//! Callgrind: one run counts all cases.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// The program, beside what it counts.
const COPY: &str = "program";

/// The environment of a run: how glibc copies memory depends on the size of the processor's caches, and `rep movsb`
/// would be counted byte by byte.
const TUNABLES: &str = "glibc.cpu.x86_rep_movsb_threshold=0x40000000:glibc.cpu.x86_rep_stosb_threshold=0x40000000:\
                        glibc.cpu.x86_non_temporal_threshold=0x40000000";

/// The name of [`counted_from_here`].
const COUNTED: &str = "counted_from_here";

/// Does the work that is counted: callgrind collects only within this function, which it finds by its name.
#[inline(never)]
pub fn counted_from_here(work: &mut dyn FnMut()) {
    work();
    // Without it the call above would be a jump, and callgrind would not see where it ends.
    black_box(());
}

/// What one run counted: the cases' names and inputs, as the program printed them, and their instructions.
///
/// # Errors
/// A sentence, where valgrind fails or counts something else than as many cases as were run.
pub fn run(program: &Path, folder: &Path) -> Result<Vec<(String, u64)>, String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let near = folder.join(COPY);
    fs::copy(program, &near).map_err(|error| format!("{}: {error}", near.display()))?;
    // The environment and the program's path are on the stack, whose place decides how what is there is aligned: up to
    // 1 % of a count.
    let output = Command::new("valgrind")
        .current_dir(folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .arg("--tool=callgrind")
        .arg("--callgrind-out-file=counts")
        .arg(format!("--toggle-collect=*{COUNTED}"))
        // A pattern here, and valgrind 3.19 forgets the toggle's.
        .arg(format!("--dump-before=marquetry_counts::callgrind::{COUNTED}"))
        .arg("--log-file=log")
        .arg(format!("./{COPY}"))
        .arg("run")
        .env("GLIBC_TUNABLES", TUNABLES)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !output.status.success() {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        return Err(format!(
            "valgrind ended with {}: {}{log}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    let names: Vec<&str> = names.lines().collect();
    let counts = parts(folder)?;
    if names.len() != counts.len() {
        return Err(format!("{} cases were run, and {} were counted", names.len(), counts.len()));
    }
    Ok(names.into_iter().map(str::to_owned).zip(counts).collect())
}

/// The counts of the parts that a run left, in order; what was collected before the first case is nothing, and no part.
fn parts(folder: &Path) -> Result<Vec<u64>, String> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.file_name().is_none_or(|name| name == "log" || name == COPY) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        parts.push(part(&text).ok_or_else(|| format!("{}: no part of callgrind's", path.display()))?);
    }
    parts.sort_unstable();
    Ok(parts.into_iter().map(|(_, count)| count).filter(|count| *count > 0).collect())
}

/// The number of a part, and the instructions that it counted.
fn part(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((field("part:")?, field("totals:").or_else(|| field("summary:"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_a_number_and_a_count() {
        let text = "version: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: x\npart: 3\n\nevents: Ir\nsummary: 41\n\nfn=(1) f\n1 41\ntotals: 42\n";
        assert_eq!(part(text), Some((3, 42)));
        assert_eq!(part(&text.replace("totals: 42\n", "")), Some((3, 41)));
        assert_eq!(part(&text.replace("part: 3", "")), None, "a file of something else");
        assert_eq!(part("part: 3\nsummary: many"), None);
    }
}
