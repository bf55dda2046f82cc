//! How nodes are reached: at the hosts of the address, plainly or encrypted, or as a secure connect bundle has it. The latter two need the
//! feature `tls`.

use std::path::Path;
#[cfg(feature = "tls")]
use std::sync::Arc;

use scylla::client::session_builder::SessionBuilder;

use crate::address::CqlAddress;
#[cfg(feature = "tls")]
use crate::bundle::{self, Bundle};
use crate::error::{Error, Result};
use crate::options::ConnectOptions;
use crate::tls::TlsOptions;

/// What an address and its options say of it.
pub(crate) enum Reach {
    Plain,
    #[cfg(feature = "tls")]
    Encrypted(Arc<rustls::ClientConfig>),
    #[cfg(feature = "tls")]
    Bundled(Bundle),
}

/// The same, once a bundle's database has said where it is.
pub(crate) enum Reached {
    Plain,
    #[cfg(feature = "tls")]
    Encrypted(Arc<rustls::ClientConfig>),
    #[cfg(feature = "tls")]
    Bundled(bundle::Opened),
}

impl Reach {
    /// Reads the files that the options name.
    ///
    /// # Errors
    ///
    /// [`Error::NoHost`], [`Error::Bundle`], [`Error::Tls`].
    pub(crate) fn of(address: &CqlAddress, options: &ConnectOptions) -> Result<Reach> {
        match (address.hosts(), &options.bundle) {
            ([], Some(_)) if address.wants_tls() == Some(false) => {
                let said = "what a secure connect bundle leads to is always encrypted: leave out ?tls=no";
                return Err(Error::Bundle(marquetry_base::Error::option("bundle", said)));
            }
            // Its connections are encrypted, and by what it says only.
            ([], Some(path)) => return Reach::bundled(path),
            ([], None) => return Err(Error::NoHost),
            _ => {}
        }
        match (&options.tls, address.wants_tls()) {
            // The options are for all clusters of a command, the address for this one.
            (_, Some(false)) | (None, None) => Ok(Reach::Plain),
            (Some(tls), _) => Reach::encrypted(tls, address),
            (None, Some(true)) => Reach::encrypted(&TlsOptions::default(), address),
        }
    }

    #[cfg(feature = "tls")]
    fn bundled(path: &Path) -> Result<Reach> {
        Bundle::read(path).map(Reach::Bundled).map_err(Error::Bundle)
    }

    #[cfg(feature = "tls")]
    fn encrypted(options: &TlsOptions, address: &CqlAddress) -> Result<Reach> {
        options.config(address).map(Reach::Encrypted).map_err(Error::Tls)
    }

    #[cfg(not(feature = "tls"))]
    fn bundled(_: &Path) -> Result<Reach> {
        Err(Error::Bundle(left_out("secure connect bundles are")))
    }

    #[cfg(not(feature = "tls"))]
    fn encrypted(_: &TlsOptions, _: &CqlAddress) -> Result<Reach> {
        Err(Error::Tls(left_out("encrypted connections are")))
    }

    /// Asks the service of a bundle, if there is one, and gets ready to reach nodes. It is for a runtime that lives as long as connections.
    ///
    /// # Errors
    ///
    /// [`Error::Bundle`].
    pub(crate) async fn open(self) -> Result<Reached> {
        match self {
            Reach::Plain => Ok(Reached::Plain),
            #[cfg(feature = "tls")]
            Reach::Encrypted(config) => Ok(Reached::Encrypted(config)),
            #[cfg(feature = "tls")]
            Reach::Bundled(bundle) => bundle.open().await.map(Reached::Bundled).map_err(Error::Bundle),
        }
    }
}

impl Reached {
    /// A session that reaches nodes so.
    pub(crate) fn prepare(&self, builder: SessionBuilder) -> SessionBuilder {
        match self {
            Reached::Plain => builder,
            #[cfg(feature = "tls")]
            Reached::Encrypted(config) => builder.tls_context(Some(Arc::clone(config))),
            #[cfg(feature = "tls")]
            Reached::Bundled(opened) => {
                builder.known_nodes(&opened.nodes).address_translator(opened.tunnels.clone())
            }
        }
    }

    /// The datacenter that a bundle is for.
    pub(crate) fn datacenter(&self) -> Option<String> {
        match self {
            Reached::Plain => None,
            #[cfg(feature = "tls")]
            Reached::Encrypted(_) => None,
            #[cfg(feature = "tls")]
            Reached::Bundled(opened) => opened.datacenter.clone(),
        }
    }

    /// Why the last connection by way of a bundle's proxy could not be made: what the driver sees is that it is closed.
    pub(crate) fn failure(&self) -> Option<marquetry_base::Error> {
        match self {
            Reached::Plain => None,
            #[cfg(feature = "tls")]
            Reached::Encrypted(_) => None,
            #[cfg(feature = "tls")]
            Reached::Bundled(opened) => opened.tunnels.failure(),
        }
    }
}

/// What is not compiled in.
#[cfg(not(feature = "tls"))]
fn left_out(what: &str) -> marquetry_base::Error {
    let said = format!("{what} not supported by this build, which lacks the feature `tls`");
    marquetry_base::Error::unsupported(said).with(marquetry_base::Detail::Feature("tls"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address, and a change of the options.
    type Asked<'a> = (&'a str, &'a dyn Fn(&mut ConnectOptions));

    /// Without TLS, nothing that asks for it connects in the clear.
    #[test]
    fn what_is_asked_for_is_encrypted_or_refused() {
        let reach = |address: &str, change: &dyn Fn(&mut ConnectOptions)| {
            let mut options = ConnectOptions::default();
            change(&mut options);
            Reach::of(&address.parse().unwrap(), &options)
        };
        let plain: [Asked<'_>; 3] = [
            ("cql://h/k.t", &|_| ()),
            ("cql://h/k.t?tls=no", &|_| ()),
            ("cql://h/k.t?tls=no", &|it| it.tls = Some(TlsOptions::default())),
        ];
        for (address, change) in plain {
            assert!(matches!(reach(address, change), Ok(Reach::Plain)), "{address}");
        }
        let asked: [Asked<'_>; 4] = [
            ("cql://h/k.t?tls=yes", &|_| ()),
            ("cql://h/k.t", &|it| it.tls = Some(TlsOptions::default())),
            ("cql:///k.t", &|it| it.bundle = Some("none.zip".into())),
            ("cql:///k.t?tls=yes", &|it| it.bundle = Some("none.zip".into())),
        ];
        for (address, change) in asked {
            let reached = reach(address, change);
            assert!(!matches!(reached, Ok(Reach::Plain)), "{address}");
            if cfg!(not(feature = "tls")) {
                let refused = reached.map(drop).unwrap_err();
                let reason = marquetry_base::Error::from(refused);
                assert_eq!(reason.detail(), Some(marquetry_base::Detail::Feature("tls")));
                assert!(reason.to_string().contains("lacks the feature `tls`"), "{reason}");
            }
        }
        assert!(matches!(reach("cql:///k.t", &|_| ()), Err(Error::NoHost)));
    }
}
