//! Objects named by a directory or a pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use globset::{GlobBuilder, GlobMatcher};
use marquetry_base::{Detail, Error, Result};
use object_store::path::Path as Key;

use super::connect::Remote;
use super::failure::failed;
use super::runtime::wait;
use crate::failure::about;
use crate::files::{has_extension, is_hidden, nothing_below};
use crate::pattern::SPECIAL;

/// All objects below a key, and their lengths, except those that stand for directories. The key itself is none of them.
///
/// # Errors
///
/// `Io`.
pub(super) fn list(below: &Remote) -> Result<Vec<(Key, u64)>> {
    let asked = below.clone();
    let listed = wait(&below.cancelled, async move {
        let found = asked.store.list(Some(&asked.key));
        found.map_ok(|meta| (meta.location, meta.size)).try_collect().await
    })?;
    let listed: Vec<(Key, u64)> = listed.map_err(|error| failed("listed", &below.address, &error))?;
    Ok(without_markers(&below.key, listed))
}

/// Whether there is an object below a key that does not stand for a directory.
///
/// # Errors
///
/// `Io`.
pub(super) fn has_any(below: &Remote) -> Result<bool> {
    let asked = below.clone();
    let first = wait(&below.cancelled, async move {
        let found = asked.store.list(Some(&asked.key));
        let key = asked.key.clone();
        // One that has objects below it is followed by these.
        let found =
            found.try_filter(move |meta| std::future::ready(!is_marker(&key, &meta.location, meta.size)));
        std::pin::pin!(found).try_next().await
    })?;
    first.map(|first| first.is_some()).map_err(|error| failed("listed", &below.address, &error))
}

/// Objects without those that stand for directories. Consoles and other programs create such objects: without bytes, and
/// with a slash at the end of the key, which is cut off here. So a key is that of a directory if it is the one that is
/// listed, if others are below it, or if its name is one of Hive's.
fn without_markers(listed: &Key, objects: Vec<(Key, u64)>) -> Vec<(Key, u64)> {
    let keys: BTreeSet<&str> = objects.iter().map(|(key, _)| key.as_ref()).collect();
    let has_below = |key: &Key| {
        let below = format!("{key}/");
        keys.range(&*below..).next().is_some_and(|next| next.starts_with(&*below))
    };
    let is_object =
        |(key, bytes): &(Key, u64)| !is_marker(listed, key, *bytes) && (*bytes > 0 || !has_below(key));
    let is_object: Vec<bool> = objects.iter().map(is_object).collect();
    objects.into_iter().zip(is_object).filter(|(_, is_object)| *is_object).map(|(object, _)| object).collect()
}

fn is_marker(listed: &Key, key: &Key, bytes: u64) -> bool {
    bytes == 0 && (key == listed || key.filename().is_some_and(is_hive_name))
}

/// Whether a directory has a name as Hive's: `year=2024`.
pub(super) fn is_hive_name(name: &str) -> bool {
    name.find('=').is_some_and(|at| at > 0)
}

/// Objects by their paths, with their lengths.
pub(super) type Listed = BTreeMap<PathBuf, u64>;

/// The objects below a directory whose names end in one of `extensions`.
///
/// # Errors
///
/// `Io`, also if there are none.
pub(super) fn below(directory: &Remote, extensions: &[&str]) -> Result<Listed> {
    let found = matching(directory, &[], extensions)?;
    if found.is_empty() {
        return Err(nothing_below(directory.name(), extensions));
    }
    Ok(found)
}

/// Whether a key is a pattern, unless there is such an object.
pub(super) fn is_pattern(key: &str) -> bool {
    key.contains(SPECIAL)
}

/// The key above all objects that match a pattern.
pub(super) fn fixed(pattern: &str) -> String {
    let names: Vec<&str> = pattern.split('/').take_while(|name| !name.contains(SPECIAL)).collect();
    names.join("/")
}

/// The objects that match a pattern; `root` is what is [fixed] of it.
///
/// # Errors
///
/// `Io`, also if there are none; `Misuse` for an invalid pattern.
pub(super) fn matches(root: &Remote, pattern: &str, extensions: &[&str]) -> Result<Listed> {
    let whole = root.address.with_key(pattern);
    let wrong = |why: &str| {
        let error = Error::misuse(format!("not a pattern: {why}"));
        error.at(|place| place.object = Some(whole.name.clone()))
    };
    let names = pattern.split('/').filter(|name| !name.is_empty());
    let names = names.skip(root.key.parts_count());
    let steps: Vec<Step> =
        names.map(|name| Step::parse(name).map_err(|why| wrong(&why))).collect::<Result<_>>()?;
    let mut found = matching(root, &steps, extensions)?;
    // What is there is meant.
    if let Some(it) = found.remove_entry(Path::new(&whole.name)) {
        return Ok(Listed::from([it]));
    }
    if found.is_empty() {
        return Err(about(&whole.name, "no object matches").with(Detail::NotFound));
    }
    Ok(found)
}

fn matching(root: &Remote, steps: &[Step], extensions: &[&str]) -> Result<Listed> {
    let mut found = Listed::new();
    for (key, bytes) in list(root)? {
        let names: Vec<&str> = key.as_ref().split('/').skip(root.key.parts_count()).collect();
        let literal = steps.iter().map(|step| step.spelled.as_str());
        if !names.is_empty() && (literal.eq(names.iter().copied()) || is_matched(steps, &names, extensions)) {
            found.insert(PathBuf::from(root.address.with_key(key.as_ref()).name), bytes);
        }
    }
    Ok(found)
}

/// A name of a pattern.
struct Step {
    spelled: String,
    kind: StepKind,
}

enum StepKind {
    Name,
    Glob {
        glob: GlobMatcher,
        is_shown: bool,
    },
    /// `**`
    Directories,
}

impl Step {
    fn parse(name: &str) -> Result<Step, String> {
        let kind = match name {
            "**" => StepKind::Directories,
            _ if !name.contains(SPECIAL) => StepKind::Name,
            _ if name.matches('{').count() != name.matches('}').count() => {
                return Err("a brace that is not closed within the name".to_owned());
            }
            _ => {
                let glob = GlobBuilder::new(name)
                    .empty_alternates(true)
                    .build()
                    .map_err(|error| error.kind().to_string())?;
                StepKind::Glob { glob: glob.compile_matcher(), is_shown: name.starts_with(['.', '_']) }
            }
        };
        Ok(Step { spelled: name.to_owned(), kind })
    }
}

/// Whether the names of a key match those of a pattern, or lead to below what matches.
fn is_matched(steps: &[Step], names: &[&str], extensions: &[&str]) -> bool {
    let is_below = || {
        names.iter().all(|name| !is_hidden(name.as_ref()))
            && names.last().is_some_and(|last| has_extension(last.as_ref(), extensions))
    };
    let Some((step, steps)) = steps.split_first() else { return names.is_empty() || is_below() };
    let Some((name, rest)) = names.split_first() else { return false };
    match &step.kind {
        StepKind::Directories if steps.is_empty() => is_below(),
        StepKind::Directories => {
            is_matched(steps, names, extensions)
                || (!is_hidden(name.as_ref()) && is_directories_matched(steps, rest, extensions))
        }
        StepKind::Name => step.spelled == *name && is_matched(steps, rest, extensions),
        StepKind::Glob { glob, is_shown } => {
            (*is_shown || !is_hidden(name.as_ref()))
                && glob.is_match(name)
                && is_matched(steps, rest, extensions)
        }
    }
}

/// The same after `**`, which may match further directories.
fn is_directories_matched(steps: &[Step], names: &[&str], extensions: &[&str]) -> bool {
    (0..names.len()).any(|more| {
        names[..more].iter().all(|name| !is_hidden(name.as_ref()))
            && is_matched(steps, &names[more..], extensions)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::PARQUET_EXTENSIONS;

    const KEYS: &[&str] = &[
        "y=1/m=1/a.parquet",
        "y=1/m=2/b.parquet",
        "y=2/m=1/c.parquet",
        "y=2/m=1/c.txt",
        "y=2/_tmp/d.parquet",
        "y=2/.e.parquet",
        "_SUCCESS",
        "_k=1/f.pq",
        "q1.parquet",
    ];

    fn find(pattern: &str) -> String {
        let names = pattern.split('/').filter(|name| !name.is_empty());
        let steps: Vec<Step> = names.map(|name| Step::parse(name).unwrap()).collect();
        let keys = KEYS.iter().filter(|key| {
            let names: Vec<&str> = key.split('/').collect();
            is_matched(&steps, &names, &PARQUET_EXTENSIONS)
        });
        keys.copied().collect::<Vec<_>>().join(" ")
    }

    /// As those of files do: see `files`.
    #[test]
    fn patterns() {
        let all = "y=1/m=1/a.parquet y=1/m=2/b.parquet y=2/m=1/c.parquet";
        assert_eq!(find(""), format!("{all} _k=1/f.pq q1.parquet"));
        assert_eq!(find("y=*/m=*/*.parquet"), all);
        assert_eq!(find("y=*"), all);
        assert_eq!(find("y=[1-2]/**"), all);
        assert_eq!(find("**/?.parquet"), all);
        assert_eq!(find("**/*.pq"), "_k=1/f.pq");
        assert_eq!(find("y=*/**/c.*"), "y=2/m=1/c.parquet y=2/m=1/c.txt");
        assert_eq!(find("y={1,3}/m=2/{b,c}.parquet"), "y=1/m=2/b.parquet");
        assert_eq!(find("y=2/.*.parquet"), "y=2/.e.parquet");
        assert_eq!(find("y=2/_*/*"), "y=2/_tmp/d.parquet");
        assert_eq!(find("q?.parquet"), "q1.parquet");
        assert_eq!(find("z*"), "");
        assert!(Step::parse("{a").is_err() && Step::parse("[z-a]").is_err());
    }

    #[test]
    fn objects_that_stand_for_directories() {
        let objects = ["t", "t/y=1", "t/sub", "t/sub/a.parquet", "t/sub-b", "t/_SUCCESS"];
        let left = |bytes: u64| {
            let objects = objects.iter().map(|key| (Key::from(*key), bytes)).collect();
            let left = without_markers(&Key::from("t"), objects);
            left.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(left(0), "t/sub/a.parquet t/sub-b t/_SUCCESS");
        assert_eq!(left(1), objects.join(" "));
    }

    #[test]
    fn what_is_fixed_is_listed() {
        assert_eq!(fixed("a/b/y=*/c.parquet"), "a/b");
        assert_eq!((&*fixed("*.parquet"), &*fixed("a/**")), ("", "a"));
    }
}
