//! Files named by a directory or a pattern.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf, is_separator};
use std::{fs, io};

use globset::GlobBuilder;
use marquetry_base::{Detail, Error, Result};
use walkdir::WalkDir;

use crate::failure::{about, failed, without_directory};
use crate::pattern::{SPECIAL, is_pattern};

/// The extensions of Parquet files, in any letter case: what is looked for in a directory.
pub const PARQUET_EXTENSIONS: [&str; 3] = ["parquet", "parq", "pq"];

/// The files that a path names: itself, those below a directory, or those that match a pattern.
///
/// * An existing path is taken literally, whatever characters it has.
/// * A directory means all files below it whose names end in one of `extensions`.
/// * Anything else with `*`, `?`, `[` or `{` in it is a pattern: `*` and `?` match within a name, `[a-z]` and
///   `[!a-z]` match one character, `{a,b}` matches one or the other within a name, and `**` as a complete name
///   matches any number of directories, including none. In brackets, as in `[*]`, a character is itself. A directory
///   that matches means the files below it.
/// * Names that begin with a dot are skipped, and names that begin with an underscore and have no `=` (`_SUCCESS`,
///   `_temporary`; but `_key=1` is a Hive partition), unless the pattern itself has that dot or underscore.
/// * Symbolic links are followed, except those that lead back to a directory above them.
///
/// The files are sorted by name, bytewise, directory by directory. A path that neither exists nor is a pattern is
/// returned as it is; opening it will report the error.
///
/// # Errors
///
/// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io): a directory that cannot be read, a directory or a pattern
/// without a file. [`Misuse`](marquetry_base::ErrorKind::Misuse): an invalid pattern.
pub fn find(path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let found = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let mut found = BTreeSet::new();
            below(path, extensions, &mut found)?;
            if found.is_empty() {
                return Err(nothing_below(&path.display().to_string(), extensions));
            }
            found
        }
        Err(_) if is_pattern(path) => {
            let found = matching(path.to_str().unwrap_or_default(), extensions)?;
            if found.is_empty() {
                let name = path.display().to_string();
                let what = format!("no file matches{}", without_directory(&name));
                return Err(about(&name, what).with(Detail::NotFound));
            }
            found
        }
        _ => return Ok(vec![path.to_path_buf()]),
    };
    Ok(found.into_iter().collect())
}

/// All files below a directory with their lengths, hidden ones too, sorted by name, bytewise, directory by directory. Symbolic links are
/// followed, except those that lead back to a directory above them; dangling ones are left out.
///
/// # Errors
///
/// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io): a directory that cannot be read.
pub fn list(directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(or_here(directory)).follow_links(true).min_depth(1) {
        let unreadable = |path: &Path, error: walkdir::Error| {
            let (name, message) = (path.display().to_string(), error.to_string());
            error.into_io_error().map_or_else(|| about(&name, message), |cause| failed("read", &name, cause))
        };
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                let bytes = entry.metadata().map_err(|error| unreadable(entry.path(), error))?.len();
                found.push((entry.into_path(), bytes));
            }
            Ok(_) => {}
            Err(error) if error.loop_ancestor().is_some() => {}
            Err(error) => {
                let path = error.path().unwrap_or(directory).to_path_buf();
                if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
                    return Err(unreadable(&path, error));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The error for a directory without a file that has one of these extensions.
pub(crate) fn nothing_below(directory: &str, extensions: &[&str]) -> Error {
    let is_parquet = |it: &&&str| PARQUET_EXTENSIONS.contains(*it);
    // That texts are compressed, too, need not be said.
    let is_other = |it: &&&str| !is_parquet(it) && !it.contains('.');
    let endings = |mut extensions: Vec<&&str>| {
        extensions.dedup();
        extensions.into_iter().map(|it| format!("*.{it}")).collect::<Vec<_>>().join(", ")
    };
    let parquet = endings(PARQUET_EXTENSIONS.iter().filter(|it| extensions.contains(it)).collect());
    let others = endings(extensions.iter().filter(is_other).collect());
    let what = match (parquet.is_empty(), others.is_empty()) {
        (false, true) => format!("a Parquet file ({parquet})"),
        (false, false) => format!("a Parquet file ({parquet}) or a text ({others})"),
        (true, _) => format!("a file of that kind ({others})"),
    };
    about(directory, format!("a directory without {what}")).with(Detail::NotFound)
}

/// Whether a path is a pattern or a directory, so that its files are not named one by one.
pub fn is_collective(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(metadata) => metadata.is_dir(),
        Err(_) => is_pattern(path),
    }
}

/// All files below a directory; an empty path is the current one.
fn below(directory: &Path, extensions: &[&str], found: &mut BTreeSet<PathBuf>) -> Result<()> {
    walk(directory, extensions, |path, is_dir| {
        if !is_dir && has_extension(&path, extensions) {
            found.insert(path);
        }
    })
}

/// All files that match a pattern: name by name, the directories that they may be in.
fn matching(pattern: &str, extensions: &[&str]) -> Result<BTreeSet<PathBuf>> {
    let wrong = |why: &str| {
        let error = Error::misuse(format!("no such file, and not a pattern either: {why}"));
        error.at(|place| place.object = Some(pattern.to_owned()))
    };
    let root = if pattern.starts_with(is_separator) { "/" } else { "" };
    let mut paths = BTreeSet::from([PathBuf::from(root)]);
    let mut names = pattern.split(is_separator).filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let mut next = BTreeSet::new();
        if name == "**" {
            if is_last {
                // All files below.
                break;
            }
            for path in paths {
                walk(&path, &[], |path, is_dir| {
                    if is_dir {
                        next.insert(path);
                    }
                })?;
                next.insert(path);
            }
        } else if !name.contains(SPECIAL) {
            next.extend(paths.iter().map(|path| path.join(name)).filter(|path| path.exists()));
        } else {
            if name.matches('{').count() != name.matches('}').count() {
                return Err(wrong("a brace that is not closed within the name"));
            }
            let glob = GlobBuilder::new(name).empty_alternates(true).build();
            let glob = glob.map_err(|error| wrong(&error.kind().to_string()))?.compile_matcher();
            let is_shown = name.starts_with(['.', '_']);
            for path in &paths {
                let names = names_in(path)?.into_iter();
                let matching = names.filter(|name| (is_shown || !is_hidden(name)) && glob.is_match(name));
                next.extend(matching.map(|name| path.join(name)));
            }
        }
        paths = next;
        if !is_last {
            paths.retain(|path| path.as_os_str().is_empty() || path.is_dir());
        }
    }
    let mut found = BTreeSet::new();
    for path in paths {
        if path.as_os_str().is_empty() || path.is_dir() {
            below(&path, extensions, &mut found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(found)
}

/// Visits everything below a directory that is not hidden, with whether it is a directory itself.
fn walk(directory: &Path, extensions: &[&str], mut each: impl FnMut(PathBuf, bool)) -> Result<()> {
    let mut entries = WalkDir::new(or_here(directory)).follow_links(true).min_depth(1).into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // A link back to a directory above it: everything below is found there.
            Err(error) if error.loop_ancestor().is_some() => continue,
            Err(error) => {
                let path = error.path().unwrap_or(directory);
                // A dangling link is not a file of the table, unless it is named like one.
                let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
                let name = path.file_name().unwrap_or_default();
                if is_link && (is_hidden(name) || !has_extension(path, extensions)) {
                    continue;
                }
                let name = path.display().to_string();
                let message = error.to_string();
                return Err(match error.into_io_error() {
                    Some(cause) => failed("read", &name, cause),
                    None => about(&name, message),
                });
            }
        };
        let is_dir = entry.file_type().is_dir();
        if is_hidden(entry.file_name()) {
            if is_dir {
                entries.skip_current_dir();
            }
            continue;
        }
        let path = entry.into_path();
        let path = if directory.as_os_str().is_empty() {
            path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path)
        } else {
            path
        };
        each(path, is_dir);
    }
    Ok(())
}

fn names_in(directory: &Path) -> Result<Vec<OsString>> {
    let cannot = |error: io::Error| failed("read", &or_here(directory).display().to_string(), error);
    let entries = fs::read_dir(or_here(directory)).map_err(cannot)?;
    entries.map(|entry| Ok(entry.map_err(cannot)?.file_name())).collect()
}

/// The path, or the current directory if it is empty.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

pub(crate) fn is_hidden(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") || (name.starts_with(b"_") && !name.contains(&b'='))
}

/// Whether a name ends in a dot and one of these extensions (which may contain dots), with something before it.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    extensions.iter().any(|known| {
        let Some((stem, ending)) = name.len().checked_sub(known.len()).map(|at| name.split_at(at)) else {
            return false;
        };
        matches!(stem, [_, .., b'.']) && ending.eq_ignore_ascii_case(known.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with these files and links (`name -> target`), and what paths below it find.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(names: &[&str]) -> Tree {
            let folder = tempfile::tempdir().unwrap();
            for name in names {
                let (name, target) = name.split_once(" -> ").unwrap_or((name, ""));
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                if target.is_empty() {
                    fs::write(path, "").unwrap();
                } else {
                    #[cfg(unix)]
                    std::os::unix::fs::symlink(target, path).unwrap();
                }
            }
            Tree(folder)
        }

        fn find(&self, path: &str) -> String {
            match find(&self.0.path().join(path), &PARQUET_EXTENSIONS) {
                Ok(found) => {
                    let names = found.iter().map(|path| path.strip_prefix(self.0.path()).unwrap());
                    names.map(|name| name.to_str().unwrap()).collect::<Vec<_>>().join(" ")
                }
                Err(error) => {
                    let object = error.place().object.clone().unwrap_or_default();
                    let object = object.replace(self.0.path().to_str().unwrap(), "TREE");
                    format!("{object}: {}", error.message())
                }
            }
        }
    }

    #[test]
    fn directories_have_all_files_below_them() {
        let tree = Tree::new(&[
            "t/b.parquet",
            "t/a/z.PARQUET",
            "t/a/c.pq",
            "t/a.parquet",
            "t/_SUCCESS",
            "t/_temporary/x.parquet",
            "t/.hidden.parquet",
            "t/.git/x.parquet",
            "t/_k=1/d.parq",
            "t/readme.txt",
            "empty/readme.txt",
            "t/_metadata",
        ]);
        assert_eq!(tree.find("t"), "t/_k=1/d.parq t/a/c.pq t/a/z.PARQUET t/a.parquet t/b.parquet");
        assert_eq!(tree.find("t/"), tree.find("t"));
        assert_eq!(
            tree.find("empty"),
            "TREE/empty: a directory without a Parquet file (*.parquet, *.parq, *.pq)"
        );
        assert_eq!(tree.find("t/_temporary"), "t/_temporary/x.parquet", "what is named is not hidden");
    }

    #[test]
    #[cfg(unix)]
    fn everything_below_is_listed() {
        let tree =
            Tree::new(&["t/b.db", "t/a/.hidden/c", "t/a/_d", "t/loop -> ../t", "t/lost -> nowhere", "e"]);
        std::fs::write(tree.0.path().join("t/b.db"), "four").unwrap();
        let listed = list(&tree.0.path().join("t")).unwrap().into_iter();
        let listed: Vec<(String, u64)> = listed
            .map(|(path, bytes)| (path.strip_prefix(tree.0.path()).unwrap().display().to_string(), bytes))
            .collect();
        let expected = [("t/a/.hidden/c", 0), ("t/a/_d", 0), ("t/b.db", 4)];
        assert_eq!(listed, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
        assert!(list(&tree.0.path().join("nowhere")).is_err());
    }

    #[test]
    fn patterns() {
        let tree = Tree::new(&[
            "y=1/m=1/a.parquet",
            "y=1/m=2/b.parquet",
            "y=2/m=1/c.parquet",
            "y=2/m=1/c.txt",
            "y=2/_tmp/d.parquet",
            "y=2/.e.parquet",
            "q[1].parquet",
            "q1.parquet",
            "*.parquet",
        ]);
        let all = "y=1/m=1/a.parquet y=1/m=2/b.parquet y=2/m=1/c.parquet";
        assert_eq!(tree.find("y=*/m=*/*.parquet"), all);
        assert_eq!(tree.find("y=*"), all, "a directory stands for the files below it");
        assert_eq!(tree.find("y=[1-2]/**"), all);
        assert_eq!(tree.find("**/?.parquet"), format!("*.parquet {all}"));
        assert_eq!(tree.find("y=*/**/c.*"), "y=2/m=1/c.parquet y=2/m=1/c.txt");
        assert_eq!(tree.find("y={1,3}/m=2/{b,c}.parquet"), "y=1/m=2/b.parquet");
        assert_eq!(tree.find("y=[!1]/m=1/*.parquet"), "y=2/m=1/c.parquet");
        assert_eq!(tree.find("y=2/.*.parquet"), "y=2/.e.parquet");
        assert_eq!(tree.find("y=2/_*/*"), "y=2/_tmp/d.parquet");
        assert_eq!(tree.find("q[1].parquet"), "q[1].parquet", "a path that is there is no pattern");
        assert_eq!(tree.find("*.parquet"), "*.parquet");
        assert_eq!(tree.find("q?.parquet"), "q1.parquet");
        assert_eq!(tree.find("z*/x"), "TREE/z*/x: no file matches");
        assert!(tree.find("y={1/m=1,2}/*").contains("a brace that is not closed"));
        assert!(tree.find("[z-a]").contains("not a pattern"), "{}", tree.find("[z-a]"));
        assert_eq!(tree.find("nothing.parquet"), "nothing.parquet");
    }

    #[cfg(unix)]
    #[test]
    fn links() {
        let tree = Tree::new(&[
            "t/a.parquet",
            "t/loop -> ../t",
            "t/other -> ../elsewhere",
            "elsewhere/b.parquet",
            "t/gone.txt -> nowhere",
            "u/gone.parquet -> nowhere",
        ]);
        assert_eq!(tree.find("t"), "t/a.parquet t/other/b.parquet");
        assert!(tree.find("u").starts_with("TREE/u/gone.parquet: "), "{}", tree.find("u"));
        assert_eq!(tree.find("t/**/*.parquet"), tree.find("t"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OsStr::from_bytes(b"a\xff.parquet"));
        fs::write(&path, "").unwrap();
        let only = std::slice::from_ref(&path);
        assert_eq!(find(folder.path(), &PARQUET_EXTENSIONS).unwrap(), only);
        assert_eq!(find(&folder.path().join("a*.parquet"), &PARQUET_EXTENSIONS).unwrap(), only);
        assert_eq!(find(&path, &PARQUET_EXTENSIONS).unwrap(), only);
    }
}
