//! What a copy will replace, which is no part of what it reads.

use std::path::{Path, PathBuf};

use crate::Address;

/// What is at the address of a destination.
pub(super) enum Replaced {
    /// A file or directory of the local file system, without links.
    Local(PathBuf),
    /// An object, or all objects of a directory, which ends in a slash.
    Object(String),
}

impl Replaced {
    /// `None` of what no file or object is written to.
    pub(super) fn at(destination: &Address) -> Option<Replaced> {
        match destination {
            Address::Path(path) => Some(Replaced::Local(resolved(path))),
            Address::Url { .. } => {
                let mut spelled = spelled(destination.object()?)?;
                // A bucket may be spelled without.
                if destination.is_directory() && !spelled.ends_with('/') {
                    spelled.push('/');
                }
                Some(Replaced::Object(spelled))
            }
            Address::Standard => None,
        }
    }

    /// Whether a path is that of something replaced.
    pub(super) fn has(&self, path: &Path) -> bool {
        match self {
            Replaced::Local(replaced) => spelled(path).is_none() && resolved(path).starts_with(replaced),
            // Keys are compared as they are: a slash more makes another object.
            Replaced::Object(replaced) => {
                spelled(path).is_some_and(|path| match replaced.strip_suffix('/') {
                    Some(directory) => path
                        .strip_prefix(directory)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
                    None => path == *replaced,
                })
            }
        }
    }
}

/// The address of an object, with the scheme in lower case. `None` of local paths.
fn spelled(path: &Path) -> Option<String> {
    let address = Address::parse(path);
    address.object()?;
    let Address::Url { scheme, text } = address else { return None };
    text.split_once(':').map(|(_, rest)| format!("{scheme}:{rest}"))
}

/// A path without links, `.` and `..`, as far as it leads to something in the local file system.
fn resolved(path: &Path) -> PathBuf {
    let of_parent = || {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_replaced_by_their_keys() {
        let is_replaced = |destination: &str, path: &str| {
            Replaced::at(&Address::parse(destination)).is_some_and(|replaced| replaced.has(path.as_ref()))
        };
        for (destination, path) in [
            ("s3://b/t/all.parquet", "s3://b/t/all.parquet"),
            ("S3://b/t/all.parquet", "s3://b/t/all.parquet"),
            ("s3://b/t/", "s3://b/t/x=1/a.parquet"),
            ("s3://b/t/", "s3://b/t"),
            ("gs://b", "gs://b/a.parquet"),
        ] {
            assert!(is_replaced(destination, path), "{destination} {path}");
        }
        for (destination, path) in [
            ("s3://b/t/all.parquet", "s3://b/t//all.parquet"),
            ("s3://b/t/all.parquet", "s3://b/t/all.parquet/a.parquet"),
            ("s3://b/t/all.parquet", "s3://b/t/"),
            ("s3://b/t/", "s3://b/tt/a.parquet"),
            ("s3://b/t/", "gs://b/t/a.parquet"),
            ("s3://b/t/", "b/t/a.parquet"),
            ("cql://h/k.t", "cql://h/k.t"),
            ("-", "-"),
        ] {
            assert!(!is_replaced(destination, path), "{destination} {path}");
        }
    }
}
