//! What this build lacks, as far as addresses need it. They are refused by the name of the feature: nothing looks for a file under the address of
//! an object, and nothing is called unknown that another build knows.

use marquetry_base::{Detail, Error};
use marquetry_tables::Address;

#[cfg(any(test, not(all(feature = "object-store", feature = "rados"))))]
mod store;

#[cfg(not(all(feature = "object-store", feature = "rados")))]
pub(crate) use store::Refusing;

/// The features that addresses need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Features {
    cluster: bool,
    object_store: bool,
    rados: bool,
}

/// Those of this build.
pub(crate) const COMPILED_IN: Features = Features {
    cluster: cfg!(feature = "cluster"),
    object_store: cfg!(feature = "object-store"),
    rados: cfg!(feature = "rados"),
};

impl Features {
    /// Why an address has no meaning, if that is so for want of a feature: `Unsupported`, with [`Detail::Feature`] and the address.
    pub(crate) fn refused(self, address: &Address) -> Option<Error> {
        let scheme = address.scheme()?;
        let (is_there, feature) = match scheme {
            "cql" => (self.cluster, "cluster"),
            "s3" | "gs" | "az" | "http" | "https" => (self.object_store, "object-store"),
            "rados" => (self.rados, "rados"),
            _ => return None,
        };
        if is_there {
            return None;
        }
        let what = format!("{scheme}:// is not supported by this build, which lacks the feature `{feature}`");
        let error = Error::unsupported(what).with(Detail::Feature(feature));
        Some(error.at(|place| place.object = Some(address.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const NONE: Features = Features { cluster: false, object_store: false, rados: false };

    /// An address is refused for want of its own feature, and of no other.
    #[test]
    fn an_address_is_refused_by_the_feature_that_it_needs() {
        const ALL: Features = Features { cluster: true, object_store: true, rados: true };
        let detail = |features: Features, address: &str| {
            features.refused(&Address::parse(address)).and_then(|error| error.detail())
        };
        for (address, feature, with) in [
            ("cql://h/k.t", "cluster", Features { cluster: true, ..NONE }),
            ("s3://b/k.parquet", "object-store", Features { object_store: true, ..NONE }),
            ("gs://b/d/", "object-store", Features { object_store: true, ..NONE }),
            ("az://b/k.csv", "object-store", Features { object_store: true, ..NONE }),
            ("https://h/a.parquet", "object-store", Features { object_store: true, ..NONE }),
            ("rados://p/a.parquet", "rados", Features { rados: true, ..NONE }),
        ] {
            assert_eq!(detail(NONE, address), Some(Detail::Feature(feature)), "{address}");
            assert_eq!((detail(with, address), detail(ALL, address)), (None, None), "{address}");
        }
        for address in ["a.parquet", "-", "sstable:data/ks/t", "ftp://h/a.parquet"] {
            assert_eq!(detail(NONE, address), None, "{address}");
        }
        let error = NONE.refused(&Address::parse("cql://me:tiger@h/k.t")).unwrap();
        assert_eq!(
            error.message(),
            "cql:// is not supported by this build, which lacks the feature `cluster`"
        );
        assert_eq!(error.place().object.as_deref(), Some("cql://me:***@h/k.t"));
    }
}
