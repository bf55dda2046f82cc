//! The workspace as the rules see it: the packages of `cargo metadata`, and the text of every file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// This workspace.
#[derive(Debug)]
pub struct Workspace {
    /// The folder of the root manifest.
    pub root: PathBuf,
    /// Its members.
    pub packages: Vec<Package>,
    /// Every file that is tracked, or would be if all were added; sorted by path.
    pub files: Vec<File>,
}

/// A member of the workspace.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// `marquetry-base`
    pub name: String,
    /// Its folder, relative to the root: `crates/base`
    pub folder: String,
    /// Its manifest's text.
    pub manifest: String,
    /// `description`, empty if there is none.
    pub description: String,
    /// `license`, empty if there is none.
    pub license: String,
    /// `rust-version`, empty if there is none.
    pub rust_version: String,
    /// Whether a registry may have it.
    pub published: bool,
    /// The names of its features, sorted.
    pub features: Vec<String>,
    /// All its dependencies, inside and outside, of every kind.
    pub dependencies: Vec<Dependency>,
    /// The root files, relative to the workspace, of its libraries and binaries: `crates/base/src/lib.rs`
    pub roots: Vec<String>,
}

/// An edge to another package.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The package it leads to.
    pub name: String,
    /// Whether only tests, examples and benchmarks have it.
    pub dev_only: bool,
    /// Whether a feature turns it on.
    pub optional: bool,
}

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Relative to the root, with `/`: `crates/base/src/lib.rs`
    pub path: String,
    /// Its text, `None` where it is not UTF-8.
    pub text: Option<String>,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Workspace {
    /// Reads the workspace this crate belongs to.
    ///
    /// # Errors
    /// What could not be run, read or understood, in a sentence.
    pub fn load() -> Result<Self, String> {
        // Asked when it runs: a cached build may come from another checkout.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("run it with `cargo test`")?;
        let root = Path::new(&manifest).join("../..");
        let root = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
        let packages = packages(&root)?;
        let files = paths(&root)?.into_iter().filter_map(|path| File::read(&root, path)).collect();
        Ok(Self { root, packages, files })
    }

    /// The text of a file, by its path from the root.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path)?.text.as_deref()
    }

    /// The Rust files of a folder, by path and text.
    pub fn rust_files<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(".rs") && file.path.starts_with(folder))
            .filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
    }
}

impl Package {
    /// What the tables call it: the name of its folder, `base`.
    pub fn short_name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is a development tool, which no user gets.
    pub fn is_dev(&self) -> bool {
        self.folder.starts_with("dev/")
    }
}

impl File {
    /// `None` where there is no such file (it is deleted, but the deletion is not committed).
    fn read(root: &Path, path: String) -> Option<Self> {
        let full = root.join(&path);
        let metadata = fs::metadata(&full).ok().filter(fs::Metadata::is_file)?;
        let text = String::from_utf8(fs::read(&full).ok()?).ok();
        Some(Self { path, text, executable: is_executable(&metadata) })
    }
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

/// What a command of Cargo's prints in `root`.
///
/// # Errors
///
/// If it fails, with what it says.
pub fn cargo(root: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let failed = |reason: String| format!("cargo {}: {reason}", arguments.join(" "));
    let output = Command::new(cargo).args(arguments).current_dir(root).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let printed = cargo(root, &["metadata", "--no-deps", "--format-version", "1", "--offline"])?;
    let metadata: Value = serde_json::from_slice(&printed).map_err(|e| format!("cargo metadata: {e}"))?;
    list(&metadata["packages"]).map(|package| read_package(root, package)).collect()
}

fn read_package(root: &Path, package: &Value) -> Result<Package, String> {
    let manifest_path = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let relative = |path: &Path| {
        path.strip_prefix(root)
            .map(|path| path.to_string_lossy().replace('\\', "/"))
            .map_err(|_| format!("{} is outside {}", path.display(), root.display()))
    };
    let is_root = |target: &&Value| {
        let library_or_binary = ["lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro", "bin"];
        list(&target["kind"]).any(|kind| library_or_binary.contains(&kind.as_str().unwrap_or_default()))
    };
    Ok(Package {
        name: text(&package["name"]),
        folder: relative(manifest_path.parent().unwrap_or(manifest_path))?,
        manifest: fs::read_to_string(manifest_path)
            .map_err(|e| format!("{}: {e}", manifest_path.display()))?,
        description: text(&package["description"]),
        license: text(&package["license"]),
        rust_version: text(&package["rust_version"]),
        published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        features: package["features"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect(),
        dependencies: list(&package["dependencies"])
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                dev_only: dependency["kind"] == "dev",
                optional: dependency["optional"] == true,
            })
            .collect(),
        roots: list(&package["targets"])
            .filter(is_root)
            .map(|target| relative(Path::new(target["src_path"].as_str().unwrap_or_default())))
            .collect::<Result<_, _>>()?,
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The paths git knows or would add; where there is no git (an unpacked archive), all but what is hidden or built.
fn paths(root: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let mut paths: Vec<String> = match command.output() {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8(output.stdout)
                .map_err(|_| "a file's name is not UTF-8".to_owned())?
                .split_terminator('\0')
                .map(str::to_owned)
                .collect()
        }
        _ => {
            let mut paths = Vec::new();
            walk(root, root, &mut paths).map_err(|e| format!("{}: {e}", root.display()))?;
            paths
        }
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if name != "target" && (name == ".ci" || !name.to_string_lossy().starts_with('.')) {
                walk(root, &entry.path(), paths)?;
            }
        } else if let Ok(path) = entry.path().strip_prefix(root) {
            paths.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}
