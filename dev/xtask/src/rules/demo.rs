//! The demo: what its first run compiles is little, because somebody waits for it.

/// The packages of what the demo builds, at most. There are some 160; with all features there are 240.
pub const PACKAGES_MAX: usize = 165;

/// What takes long to compile, and nothing of the demo runs: libraries of cryptography and HTTP, which features bring.
pub const NOT_COMPILED: &[&str] = &["aws-lc-sys", "object_store", "openssl-sys", "reqwest", "ring"];

/// The arguments of `cargo tree` for what `dev/demo.sh` builds: the features and packages that it names.
///
/// # Errors
///
/// If the script builds nothing.
pub fn arguments(script: &str) -> Result<Vec<&str>, String> {
    let build = script.lines().map(str::trim).find_map(|line| line.strip_prefix("cargo build "));
    let mut words = build.ok_or("dev/demo.sh has no line that begins with `cargo build`")?.split_whitespace();
    let mut arguments = vec!["tree", "--offline", "--prefix", "none", "--edges", "normal,build"];
    while let Some(word) = words.next() {
        match word {
            "-p" | "--features" => arguments.extend([word].into_iter().chain(words.next())),
            "--no-default-features" | "--all-features" => arguments.push(word),
            _ => {}
        }
    }
    Ok(arguments)
}

/// Faults of a list of packages, one a line, its name first, as `cargo tree` prints them.
pub fn faults(tree: &str) -> Vec<String> {
    let mut packages: Vec<String> = tree
        .lines()
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        .filter(|package| !package.is_empty())
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let name = |package: &String| package.split(' ').next().unwrap_or_default().to_owned();
    let mut faults: Vec<String> = packages
        .iter()
        .map(name)
        .filter(|name| NOT_COMPILED.contains(&name.as_str()))
        .map(|name| format!("the demo compiles {name}, which takes long and is of no use to it"))
        .collect();
    if packages.len() > PACKAGES_MAX {
        faults.push(format!("the demo compiles {} packages, more than {PACKAGES_MAX}", packages.len()));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_listed() {
        let script = "set -e\n  # cargo build\n  cargo build --quiet --profile quick --no-default-features -p a -p b --bin c --features d\n";
        let listed = arguments(script).unwrap();
        assert_eq!(listed[6..], ["--no-default-features", "-p", "a", "-p", "b", "--features", "d"]);
        assert!(arguments("make\n").is_err());
    }

    #[test]
    fn what_takes_long_is_found() {
        let few = "marquetry-cli v0.1.0 (crates/cli)\nlibc v0.2.1\nlibc v0.2.1 (*)\n\nstring v1.0.0\n";
        assert_eq!(faults(few), [""; 0]);
        assert_eq!(faults("ring v0.17.1\nlibc v0.2.1\nring v0.17.1 (*)\n").len(), 1);
        let many: String = (0..=PACKAGES_MAX).map(|nth| format!("a{nth} v1.0.0\n")).collect();
        assert_eq!(faults(&many).len(), 1);
        assert_eq!(faults(&many.replacen("a0 v1.0.0\n", "", 1)), [""; 0]);
    }
}
