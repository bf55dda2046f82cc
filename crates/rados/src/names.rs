//! Names of objects, and their addresses.

use std::path::PathBuf;

use crate::pool::Pool;

/// How addresses of objects begin.
pub(crate) const SCHEME: &str = "rados://";

/// What the names of the objects in a directory begin with.
pub(crate) fn directory(name: &str) -> String {
    match name.trim_end_matches('/') {
        "" => String::new(),
        name => format!("{name}/"),
    }
}

/// Whether a name ends in one of the extensions, in any case.
pub(crate) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    extensions.iter().any(|known| {
        let Some(dot) = name.len().checked_sub(known.len() + 1).filter(|dot| *dot > 0) else { return false };
        name.as_bytes()[dot] == b'.' && name.get(dot + 1..).is_some_and(|end| end.eq_ignore_ascii_case(known))
    })
}

/// The address of an object.
pub(crate) fn path_of(pool: &Pool, name: &str) -> PathBuf {
    PathBuf::from(format!("{SCHEME}{}/{name}", pool.name()))
}
