//! What a metadata service says of a database.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use rustls::ClientConfig;
use serde_json::Value;

use crate::tls;

/// The bytes of what a service says, or of a file in a bundle, at most. They have a few thousand.
pub(super) const BYTES_MAX: u64 = 1 << 20;

/// Where a database's nodes are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// The host and the port of the proxy before all nodes.
    pub(super) proxy: (String, u16),
    /// The host IDs of some of them, at least one.
    pub(super) nodes: Vec<String>,
    pub(super) datacenter: Option<String>,
}

impl Metadata {
    /// Asks the service at this host and port.
    ///
    /// # Errors
    ///
    /// `Refused` if it and we do not trust each other, `Io` otherwise.
    pub(super) async fn ask((host, port): &(String, u16), config: Arc<ClientConfig>) -> Result<Metadata> {
        let url = format!("https://{host}:{port}/metadata");
        let failed = |reason: &reqwest::Error| {
            let mut said =
                format!("the metadata service of the secure connect bundle, {url}, does not answer");
            // Its own words repeat the address, and leave out why.
            let mut cause = std::error::Error::source(reason);
            while let Some(why) = cause {
                let _ = write!(said, ": {why}");
                if why.downcast_ref::<io::Error>().and_then(tls::distrust).is_some() {
                    return Error::refused(said);
                }
                cause = why.source();
            }
            said.push_str("; a database that is paused or was deleted has none");
            Error::io(said)
        };
        // Nodes are not reached by way of an HTTP proxy, either.
        let client =
            reqwest::Client::builder().tls_backend_preconfigured((*config).clone()).no_proxy().build();
        let client = client.map_err(|error| failed(&error))?;
        let mut answer = client.get(&url).send().await.map_err(|error| failed(&error))?;
        if !answer.status().is_success() {
            let status = answer.status();
            return Err(Error::io(format!(
                "the metadata service of the secure connect bundle, {url}, says {status}"
            )));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > BYTES_MAX {
                break;
            }
        }
        Metadata::parse(&bytes).ok_or_else(|| {
            Error::io(format!(
                "{url}, of the secure connect bundle, does not answer as a metadata service does"
            ))
        })
    }

    fn parse(bytes: &[u8]) -> Option<Metadata> {
        let metadata: Value = serde_json::from_slice(bytes).ok()?;
        let contact = metadata.get("contact_info")?;
        let (host, port) = contact.get("sni_proxy_address")?.as_str()?.rsplit_once(':')?;
        let nodes = contact.get("contact_points")?.as_array()?;
        let nodes: Vec<String> =
            nodes.iter().map(|node| node.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        let datacenter = contact.get("local_dc").and_then(Value::as_str).map(str::to_owned);
        let proxy = (host.to_owned(), port.parse().ok()?);
        (!nodes.is_empty()).then_some(Metadata { proxy, nodes, datacenter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_says() {
        let said = r#"{"version": 1, "region": "local", "contact_info": {"type": "sni_proxy", "local_dc": "dc1",
            "contact_points": ["b1f0cb19-15ff-4b56-b1b0-1d9d3d7b8d2a", "2"], "sni_proxy_address": "proxy.example:29042"}}"#;
        let read = Metadata::parse(said.as_bytes()).unwrap();
        assert_eq!(read.proxy, ("proxy.example".to_owned(), 29042));
        assert_eq!(read.nodes, ["b1f0cb19-15ff-4b56-b1b0-1d9d3d7b8d2a", "2"]);
        assert_eq!(read.datacenter.as_deref(), Some("dc1"));
        for wrong in [
            said.replace("proxy.example:29042", "proxy.example"),
            said.replace(":29042", ":290420"),
            said.replace(r#""2""#, "2"),
            said.replace("contact_points", "points"),
            said.replace("contact_info", "info"),
            said[..50].to_owned(),
        ] {
            assert_eq!(Metadata::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
