//! Names of objects, and their addresses.

use std::path::PathBuf;

use marquetry_base::{Error, Result};

/// How addresses of objects begin.
const SCHEME: &str = "rados://";
/// The configuration of a cluster, unless `CEPH_CONF` names another.
const CONFIGURATION: &str = "/etc/ceph/ceph.conf";

/// The configuration of the cluster that addresses are of.
pub(crate) fn configuration() -> String {
    std::env::var("CEPH_CONF").unwrap_or_else(|_| CONFIGURATION.to_owned())
}

/// The pool and the name of an address; `None` for another store's.
pub(crate) fn parts_of(address: &str) -> Result<Option<(&str, &str)>> {
    let Some(rest) = address.strip_prefix(SCHEME) else { return Ok(None) };
    match rest.split_once('/').unwrap_or((rest, "")) {
        ("", _) => Err(no_address()),
        parts => Ok(Some(parts)),
    }
}

pub(crate) fn no_address() -> Error {
    Error::misuse("an address is rados://pool/name")
}

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

/// Whether an object is one of a table's: by its name after that of the directory. Names that begin with a dot or an underscore are left out.
pub(crate) fn is_of_table(below: &str, extensions: &[&str]) -> bool {
    let is_hidden = |part: &str| part.starts_with('.') || part.starts_with('_') && !part.contains('=');
    !below.split('/').any(is_hidden) && has_extension(below, extensions)
}

/// The address of an object.
pub(crate) fn path_of(pool: &str, name: &str) -> PathBuf {
    PathBuf::from(format!("{SCHEME}{pool}/{name}"))
}
