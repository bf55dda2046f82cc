//! Encrypted connections: whom to trust, who the client is, and which names a node may have.

use std::io;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::TlsOptions;
use crate::address::CqlAddress;

/// Whether a connection failed because one side does not trust the other's certificate: then the options, the most fitting first, that another
/// value of may change it. It is so whenever it is tried.
pub(crate) fn distrust(failure: &io::Error) -> Option<&'static [&'static str]> {
    let cause = failure.get_ref()?;
    // That of an HTTP client is within another one.
    if let Some(within) = cause.downcast_ref::<io::Error>() {
        return distrust(within);
    }
    match cause.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => Some(&["tls_any_host", "ca"]),
        // That passes, with a clock that is set or a certificate that is renewed.
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => None,
        rustls::Error::InvalidCertificate(_) => Some(&["ca"]),
        rustls::Error::AlertReceived(
            AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate,
        ) => Some(&["cert"]),
        _ => None,
    }
}

/// A client's certificates, from its own to its authority's, and the key of its own.
pub(crate) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl TlsOptions {
    /// What the driver needs.
    ///
    /// # Errors
    ///
    /// `Misuse` for files that are not what they should be, for a certificate without a key and the other way round; `Io` for those that cannot
    /// be read.
    pub(crate) fn config(&self, address: &CqlAddress) -> Result<Arc<ClientConfig>> {
        let names = address.hosts().iter().filter_map(|host| ServerName::try_from(host.name.clone()).ok());
        config(self.roots()?, self.identity()?, names.collect(), self.verify_hosts)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(path) => {
                for certificate in read_certificates(path, "ca")? {
                    let added = roots.add(certificate);
                    added.map_err(|error| Error::option("ca", format!("{}: {error}", path.display())))?;
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                // Some of those that systems have are too odd for webpki.
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    return Err(Error::option(
                        "ca",
                        "the system has no certificates of authorities: name a file of them",
                    ));
                }
            }
        }
        Ok(roots)
    }

    /// The client's certificates and key.
    fn identity(&self) -> Result<Option<Identity>> {
        let (certificate, key) = match (&self.certificate, &self.key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            (Some(_), None) => {
                return Err(Error::option("cert", "a certificate of the client needs its key, too"));
            }
            (None, Some(_)) => {
                return Err(Error::option("key_file", "a key of the client needs its certificate, too"));
            }
        };
        let text = read(key)?;
        if is_encrypted(&text) {
            let name = key.display();
            return Err(Error::option(
                "key_file",
                format!(
                    "the private key in {name} is encrypted: decrypt it into a file that only you can read, and name that one: \
                     (umask 077; openssl pkey -in {name} -out key.pem)"
                ),
            ));
        }
        // What is in the file is not shown.
        let found = self::key(&text).ok_or_else(|| {
            Error::option(
                "key_file",
                format!("{} has no private key that is PEM and not encrypted", key.display()),
            )
        })?;
        Ok(Some((read_certificates(certificate, "cert")?, found)))
    }
}

/// What a connection needs: whom to trust, who we are, the names that nodes may have, and whether those matter.
///
/// # Errors
///
/// `Misuse`.
pub(crate) fn config(
    authorities: RootCertStore,
    identity: Option<Identity>,
    names: Vec<ServerName<'static>>,
    by_name: bool,
) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain =
        WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider)).build();
    let chain = chain.map_err(|error| Error::option("ca", format!("its authorities: {error}")))?;
    let verifier = Verifier { chain, provider: Arc::clone(&provider), names, by_name };
    let wrong = |error: rustls::Error| Error::option("tls", error.to_string());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            let wrong = |error: rustls::Error| {
                Error::option("cert", format!("the client's certificate and key: {error}"))
            };
            builder.with_client_auth_cert(certificates, key).map_err(wrong)?
        }
    };
    Ok(Arc::new(config))
}

/// Whether a key's PEM is encrypted: as PKCS #8 has it, or by headers as in older files (RFC 1421).
fn is_encrypted(text: &[u8]) -> bool {
    let is_so = |line: &[u8]| {
        line == b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
            || (line.starts_with(b"Proc-Type:") && line.ends_with(b",ENCRYPTED"))
    };
    text.split(|byte| *byte == b'\n').any(|line| is_so(line.trim_ascii()))
}

/// The certificates of a PEM file, of which there must be one.
fn read_certificates(path: &Path, option: &'static str) -> Result<Vec<CertificateDer<'static>>> {
    certificates(&read(path)?)
        .ok_or_else(|| Error::option(option, format!("{} has no certificates in PEM", path.display())))
}

/// The certificates of a text in PEM. `None`: there are none, or what is there is damaged.
pub(crate) fn certificates(text: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    found.ok().filter(|found| !found.is_empty())
}

/// The first private key of a text in PEM.
pub(crate) fn key(text: &[u8]) -> Option<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(text).ok()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|cause| marquetry_io::failed("read", &path.display().to_string(), cause))
}

/// Verifies certificates, by the names that their nodes may have.
#[derive(Debug)]
struct Verifier {
    chain: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
    /// The hosts of the address.
    names: Vec<ServerName<'static>>,
    by_name: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        // The driver connects to IP addresses, and knows no other name.
        node: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let verify =
            |name: &ServerName<'_>| self.chain.verify_server_cert(certificate, between, name, ocsp, now);
        let refused = match verify(node) {
            Ok(verified) => return Ok(verified),
            Err(refused) if is_about_the_name(&refused) => refused,
            Err(refused) => return Err(refused),
        };
        // All but the name was right.
        if !self.by_name {
            return Ok(ServerCertVerified::assertion());
        }
        match self.names.iter().any(|name| verify(name).is_ok()) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(refused),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a certificate is refused for its name alone, which is looked at last.
fn is_about_the_name(refused: &rustls::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(refused, rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::{Detail, ErrorKind};

    #[test]
    fn files_are_what_they_should_be() {
        let folder = tempfile::tempdir().unwrap();
        let junk = folder.path().join("junk.pem");
        std::fs::write(&junk, "tiger").unwrap();
        let address = "cql://db1/k.t".parse().unwrap();
        let of = |change: &dyn Fn(&mut TlsOptions)| {
            let mut options = TlsOptions::default();
            change(&mut options);
            options.config(&address).map(drop).unwrap_err()
        };
        let missing = of(&|it| it.authorities = Some(folder.path().join("none.pem")));
        assert_eq!(missing.kind(), ErrorKind::Io);
        let wrong = of(&|it| it.authorities = Some(junk.clone()));
        assert_eq!(wrong.detail(), Some(Detail::Option("ca")));
        assert!(wrong.to_string().contains("junk.pem has no certificates in PEM"), "{wrong}");
    }

    #[test]
    fn encrypted_keys_are_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        let options =
            TlsOptions { certificate: Some(path.clone()), key: Some(path.clone()), ..TlsOptions::default() };
        for (text, is_so) in [
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIG\n-----END ENCRYPTED PRIVATE KEY-----\n", true),
            (
                "-----BEGIN EC PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-256-CBC,00\r\n\r\nMIG\r\n\
                 -----END EC PRIVATE KEY-----\r\n",
                true,
            ),
            ("-----BEGIN PRIVATE KEY-----\nENCRYPTED\n-----END PRIVATE KEY-----\n", false),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = options.identity().unwrap_err();
            assert_eq!(error.detail(), Some(Detail::Option("key_file")));
            let said = error.to_string();
            assert_eq!(said.contains("is encrypted") && said.contains("openssl pkey -in "), is_so, "{said}");
        }
    }

    #[test]
    fn a_certificate_has_a_key() {
        let mut options = TlsOptions { certificate: Some("c.pem".into()), ..TlsOptions::default() };
        assert_eq!(options.identity().unwrap_err().detail(), Some(Detail::Option("cert")));
        options.key = options.certificate.take();
        assert_eq!(options.identity().unwrap_err().detail(), Some(Detail::Option("key_file")));
        let folder = tempfile::tempdir().unwrap();
        let junk = folder.path().join("junk.pem");
        std::fs::write(&junk, "tiger").unwrap();
        (options.certificate, options.key) = (Some(junk.clone()), Some(junk));
        let error = options.identity().unwrap_err();
        assert!(
            !error.to_string().contains("tiger") && error.detail() == Some(Detail::Option("key_file")),
            "{error}"
        );
    }
}
