//! Secure connect bundles: how DataStax Astra, and services like it, say where a database is and whom it trusts.
//!
//! A bundle is a ZIP archive with `config.json`, which names a *metadata service*, and three files in PEM: `ca.crt`, `cert` and `key`. The service
//! says (`/metadata`) which nodes there are, each by its host ID, and which *SNI proxy* is before them: a client asks the proxy for a node by the
//! name in its TLS handshake (RFC 6066, section 3). The format is described by nothing but the drivers' sources; this is after the Java driver's
//! (`CloudConfigFactory`, `SniSslEngineFactory`).

mod metadata;
mod tunnels;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::tls;
use metadata::{BYTES_MAX, Metadata};
pub(crate) use tunnels::Tunnels;

/// What a bundle says.
pub(crate) struct Bundle {
    /// The host and the port of the metadata service.
    service: (String, u16),
    authorities: RootCertStore,
    identity: tls::Identity,
}

/// A database that a bundle led to.
pub(crate) struct Opened {
    /// The datacenter that the bundle is for.
    pub(crate) datacenter: Option<String>,
    /// Where each node is reached.
    pub(crate) tunnels: Arc<Tunnels>,
    /// The tunnels to some nodes, to begin with.
    pub(crate) nodes: Vec<String>,
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    ///
    /// `Io` if the file cannot be read, `Misuse` if it is no bundle.
    pub(crate) fn read(path: &Path) -> Result<Bundle> {
        let shown = path.display();
        let wrong =
            |what: String| Error::option("bundle", format!("{shown} is no secure connect bundle: {what}"));
        let file = std::fs::File::open(path)
            .map_err(|cause| marquetry_io::failed("opened", &shown.to_string(), cause))?;
        let mut archive = zip::ZipArchive::new(file).map_err(|error| wrong(error.to_string()))?;
        let mut part = |name: &str| {
            let mut found = archive.by_name(name).map_err(|error| wrong(format!("{name}: {error}")))?;
            let mut bytes = Vec::new();
            let read = found.by_ref().take(BYTES_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|error| wrong(format!("{name}: {error}")))?;
            match bytes.len() as u64 > BYTES_MAX {
                true => Err(wrong(format!("{name} has more than a MiB"))),
                false => Ok(bytes),
            }
        };
        let config = part("config.json")?;
        let (authorities, certificate, key) = (part("ca.crt")?, part("cert")?, part("key")?);
        let service = service(&config).ok_or_else(|| wrong("config.json has no host and port".to_owned()))?;
        let certificates = |bytes: &[u8], name| {
            tls::certificates(bytes).ok_or_else(|| wrong(format!("{name} has no certificates in PEM")))
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&authorities, "ca.crt")? {
            roots.add(certificate).map_err(|error| wrong(format!("ca.crt: {error}")))?;
        }
        // What is in it is not shown.
        let key = tls::key(&key).ok_or_else(|| wrong("key has no private key in PEM".to_owned()))?;
        Ok(Bundle { service, authorities: roots, identity: (certificates(&certificate, "cert")?, key) })
    }

    /// Asks the service, and gets ready to reach nodes. It is for a runtime that lives as long as the tunnels must.
    ///
    /// # Errors
    ///
    /// `Io` if the service does not answer, or not as one; `Misuse` for certificates that do not belong together.
    pub(crate) async fn open(self) -> Result<Opened> {
        let metadata = Metadata::ask(&self.service, self.config(&self.service.0)?).await?;
        let tunnels = Arc::new(Tunnels::new(self.config(&metadata.proxy.0)?, metadata.proxy));
        let mut nodes = Vec::new();
        for node in metadata.nodes {
            let address = tunnels.to(&node).await;
            let address =
                address.map_err(|cause| marquetry_io::failed("opened", "a port of loopback", cause))?;
            nodes.push(address.to_string());
        }
        Ok(Opened { datacenter: metadata.datacenter, tunnels, nodes })
    }

    /// Who we are, for a server whose certificate is for `host`, whatever node it stands for.
    fn config(&self, host: &str) -> Result<Arc<ClientConfig>> {
        let name = ServerName::try_from(host.to_owned());
        let name =
            name.map_err(|_| Error::io(format!("{host:?}, of a secure connect bundle, is no host")))?;
        let (certificates, key) = &self.identity;
        tls::config(self.authorities.clone(), Some((certificates.clone(), key.clone_key())), vec![name], true)
    }
}

/// The host and the port that a bundle's configuration has.
fn service(config: &[u8]) -> Option<(String, u16)> {
    let config: Value = serde_json::from_slice(config).ok()?;
    let host = config.get("host")?.as_str().filter(|host| !host.is_empty())?;
    let port = config.get("port")?.as_u64().and_then(|port| u16::try_from(port).ok())?;
    Some((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;

    use marquetry_base::{Detail, ErrorKind};

    fn data(name: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)).unwrap()
    }

    type Parts = Vec<(&'static str, Vec<u8>)>;

    fn parts() -> Parts {
        vec![
            ("config.json", br#"{"host": "db.example", "port": 29080, "keyspace": "k"}"#.to_vec()),
            ("ca.crt", data("authority.pem")),
            ("cert", data("client.pem")),
            ("key", data("client-key.pem")),
        ]
    }

    fn archive(folder: &Path, parts: &[(&str, Vec<u8>)]) -> PathBuf {
        let path = folder.join("bundle.zip");
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, bytes) in parts {
            archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap();
        path
    }

    #[test]
    fn a_bundle_says_whom_to_ask() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = Bundle::read(&archive(folder.path(), &parts())).unwrap();
        assert_eq!(bundle.service, ("db.example".to_owned(), 29080));
        assert_eq!((bundle.authorities.len(), bundle.identity.0.len()), (1, 1));
        bundle.config("db.example").unwrap();
    }

    #[test]
    fn what_is_no_bundle_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let of = |change: &dyn Fn(&mut Parts)| {
            let mut parts = parts();
            change(&mut parts);
            let error = Bundle::read(&archive(folder.path(), &parts)).map(drop).unwrap_err();
            assert_eq!(error.detail(), Some(Detail::Option("bundle")), "{error}");
            assert!(error.to_string().contains("bundle.zip is no secure connect bundle: "), "{error}");
            error.to_string()
        };
        for (nth, name) in ["config.json", "ca.crt", "cert", "key"].into_iter().enumerate() {
            let said = of(&|parts| drop(parts.remove(nth)));
            assert!(said.contains(&format!("{name}: ")), "{said}");
            let said = of(&|parts| parts[nth].1 = b"tiger".to_vec());
            assert!(said.contains(name) && !said.contains("tiger"), "{said}");
            let said = of(&|parts| parts[nth].1 = vec![b' '; (1 << 20) + 1]);
            assert!(said.contains(&format!("{name} has more than a MiB")), "{said}");
        }
        for config in
            [r#"{"host": "h"}"#, r#"{"host": "", "port": 1}"#, r#"{"host": "h", "port": 65536}"#, "[]"]
        {
            let said = of(&|parts| parts[0].1 = config.as_bytes().to_vec());
            assert!(said.contains("config.json has no host and port"), "{said}");
        }
        let path = folder.path().join("text.zip");
        std::fs::write(&path, "no archive").unwrap();
        assert!(Bundle::read(&path).is_err());
        let missing = Bundle::read(&folder.path().join("none.zip")).map(drop).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Io);
    }
}
