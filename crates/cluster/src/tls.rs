//! Encrypted connections: the options. What does it is in `tls/config.rs`, which needs the feature `tls`.

use std::path::PathBuf;

#[cfg(feature = "tls")]
mod config;

#[cfg(feature = "tls")]
pub(crate) use config::{Identity, certificates, config, distrust, key};

/// How connections are encrypted.
///
/// The certificate of each node must be signed by one of the authorities, and be for the node: for its IP address, or for one of the host names
/// that the [address](crate::CqlAddress) has (of nodes that the cluster tells of, nothing but the IP address is known).
///
/// ```
/// use marquetry_cluster::{ConnectOptions, TlsOptions};
///
/// let mut tls = TlsOptions::default();
/// tls.authorities = Some("ca.pem".into());
/// let mut options = ConnectOptions::default();
/// options.tls = Some(tls);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// A PEM file with the certificates of the authorities that are trusted. `None`: those that the system trusts.
    pub authorities: Option<PathBuf>,
    /// A PEM file with the client's certificate, and those between it and its authority, for clusters that want one.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate, not encrypted.
    pub key: Option<PathBuf>,
    /// Whether a certificate must be for its node. Without it, any node that the authorities vouch for is believed to be any other: that is for
    /// authorities that sign nothing but the cluster's nodes.
    pub verify_hosts: bool,
}

impl Default for TlsOptions {
    fn default() -> TlsOptions {
        TlsOptions { authorities: None, certificate: None, key: None, verify_hosts: true }
    }
}

/// Nothing is encrypted, and nobody distrusted.
#[cfg(not(feature = "tls"))]
pub(crate) fn distrust(_: &std::io::Error) -> Option<&'static [&'static str]> {
    None
}
