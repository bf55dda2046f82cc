//! Addresses of objects: `s3://bucket/key`, and URLs of HTTP servers.

use std::fmt;
use std::path::Path;

use marquetry_base::{Error, Result};

use crate::shown::shown;

/// The kinds of stores, by the schemes of their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Scheme {
    S3,
    Gcs,
    Azure,
    /// `http://` and `https://`: only read.
    Http,
}

impl Scheme {
    pub(super) fn parse(scheme: &str) -> Option<Scheme> {
        match &*scheme.to_ascii_lowercase() {
            "s3" => Some(Scheme::S3),
            "gs" => Some(Scheme::Gcs),
            "az" => Some(Scheme::Azure),
            "http" | "https" => Some(Scheme::Http),
            _ => None,
        }
    }

    /// What its users call what objects are in.
    pub(super) fn container(self) -> &'static str {
        match self {
            Scheme::S3 | Scheme::Gcs => "bucket",
            Scheme::Azure => "container",
            Scheme::Http => "server",
        }
    }
}

/// The address of an object or of a directory of them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ObjectAddress {
    pub(super) scheme: Scheme,
    /// What a client connects to: a bucket, or, of an HTTP server, all of the URL.
    pub(super) container: String,
    /// The object's key, as the store has it: nothing in it is decoded. Empty for URLs of HTTP servers.
    pub(super) key: String,
    /// As it was written, but for what nobody may see.
    pub(super) name: String,
}

impl ObjectAddress {
    /// The address that a path spells. `None` for a path of the local file system.
    ///
    /// # Errors
    ///
    /// `Misuse` for an address without a bucket, and one that is not UTF-8.
    pub(super) fn parse(path: &Path) -> Result<Option<ObjectAddress>> {
        let spelled = path.to_string_lossy();
        let Some((scheme, rest)) = spelled.split_once("://") else { return Ok(None) };
        let Some(scheme) = Scheme::parse(scheme) else { return Ok(None) };
        let wrong = |why: String| Error::misuse(why).at(|place| place.object = Some(shown(&spelled)));
        if path.to_str().is_none() {
            return Err(wrong("an address that is not UTF-8".to_owned()));
        }
        let (container, key) = rest.split_once('/').unwrap_or((rest, ""));
        if container.is_empty() {
            return Err(wrong(format!("an address without the name of a {}", scheme.container())));
        }
        if container.contains('@') {
            let why = "an address with a user or a password, which object stores take from the environment";
            return Err(wrong(why.to_owned()));
        }
        let name = shown(&spelled);
        Ok(Some(match scheme {
            Scheme::Http => {
                ObjectAddress { scheme, container: spelled.into_owned(), key: String::new(), name }
            }
            _ => ObjectAddress { scheme, container: container.to_owned(), key: key.to_owned(), name },
        }))
    }

    /// Whether it can only mean a directory: a bucket, or what ends in a slash.
    pub(super) fn is_directory(&self) -> bool {
        self.scheme != Scheme::Http && (self.key.is_empty() || self.key.ends_with('/'))
    }

    /// The address of a key in the same bucket.
    pub(super) fn with_key(&self, key: &str) -> ObjectAddress {
        let root = self.name.strip_suffix(&self.key).unwrap_or(&self.name);
        let slash = if root.ends_with('/') { "" } else { "/" };
        ObjectAddress { key: key.to_owned(), name: format!("{root}{slash}{key}"), ..self.clone() }
    }
}

/// As it is shown.
impl fmt::Debug for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether a path spells the address of an object, rather than a path of the local file system.
pub(super) fn is_remote(path: &Path) -> bool {
    let spelled = path.to_string_lossy();
    spelled.split_once("://").is_some_and(|(scheme, _)| Scheme::parse(scheme).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str) -> ObjectAddress {
        ObjectAddress::parse(Path::new(address)).unwrap().unwrap()
    }

    #[test]
    fn keys_are_taken_as_they_are_written() {
        let found = parsed("s3://bucket/a b/%20/c=1/d.parquet");
        assert_eq!((found.scheme, &*found.container), (Scheme::S3, "bucket"));
        assert_eq!(found.key, "a b/%20/c=1/d.parquet");
        assert_eq!(found.with_key("x/y").name, "s3://bucket/x/y");
        assert_eq!(parsed("gs://bucket").with_key("y").name, "gs://bucket/y");
        assert_eq!(parsed("AZ://box/").with_key("y").name, "AZ://box/y");
        for directory in ["s3://bucket", "s3://bucket/", "s3://bucket/a/"] {
            assert!(parsed(directory).is_directory(), "{directory}");
        }
        assert!(!parsed("s3://bucket/a").is_directory() && !parsed("https://host/a/").is_directory());
    }

    #[test]
    fn paths_are_no_addresses() {
        for path in ["a.parquet", "s3:/bucket", "ftp://host/a", "cql://host/k.t", "-"] {
            assert!(ObjectAddress::parse(Path::new(path)).unwrap().is_none(), "{path}");
            assert!(!is_remote(Path::new(path)));
        }
    }

    #[test]
    fn an_address_names_a_bucket_and_no_user() {
        let refused = |address: &str| {
            let error = ObjectAddress::parse(Path::new(address)).unwrap_err();
            format!("{}: {}", error.place().object.clone().unwrap(), error.message())
        };
        assert_eq!(refused("s3:///key"), "s3:///key: an address without the name of a bucket");
        let said = refused("https://me:secret@host/a?b=c");
        assert!(said.starts_with("https://***@host/a?…: an address with a user"), "{said}");
    }
}
