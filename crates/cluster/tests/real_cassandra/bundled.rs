//! A database behind a secure connect bundle: the metadata service and the SNI proxy are fakes, by what drivers do; the node is a real Cassandra.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use marquetry_base::{Error, ErrorKind};
use marquetry_cluster::{Cluster, ConnectOptions};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{Acceptor, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::encrypted::{data, rows_travel};
use crate::server::{KEYSPACE, Server};

/// What clients asked the proxy for.
type Asked = Arc<Mutex<BTreeSet<String>>>;

/// `server` is the node's, which is at this port of localhost and takes encrypted connections of clients with a certificate.
pub(crate) fn all(server: &Server, port: &str) {
    let node = server.value("SELECT host_id FROM system.local").unwrap().as_uuid().unwrap().to_string();
    let datacenter = server.value("SELECT data_center FROM system.local").unwrap().into_string().unwrap();
    let asked = Asked::default();
    let proxy = proxy(node.clone(), port.parse().unwrap(), Arc::clone(&asked));
    let said = |node: &str, datacenter: &str| {
        format!(
            r#"{{"version": 1, "region": "here", "contact_info": {{"type": "sni_proxy", "local_dc": "{datacenter}", "contact_points": ["{node}"],
             "sni_proxy_address": "localhost:{proxy}"}}}}"#
        )
    };
    let good = service(200, said(&node, &datacenter));
    let folder = tempfile::tempdir().unwrap();
    let at = |service: u16, authority: &str| options(bundle(folder.path(), service, authority));

    rows_travel("", &at(good, "authority.pem"));
    assert_eq!(*asked.lock().unwrap(), BTreeSet::from([node.clone()]));

    let refused = |options: &ConnectOptions, address: &str| {
        let connected = Cluster::connect(address.parse().unwrap(), options).map(drop);
        let error = Error::from(connected.unwrap_err());
        (error.kind(), error.to_string())
    };
    let address = format!("cql://cassandra:cassandra@/{KEYSPACE}.t");
    let in_vain = |service: u16, authority: &str| refused(&at(service, authority), &address);
    // A service that another authority signed, one that is away, one that has nothing to say, or something else.
    let (kind, told) = in_vain(good, "other.pem");
    assert!(kind == ErrorKind::Refused && told.contains("UnknownIssuer"), "{told}");
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (kind, told) = in_vain(away, "authority.pem");
    assert!(kind == ErrorKind::Io && told.contains("does not answer") && told.contains("paused"), "{told}");
    let (kind, told) = in_vain(service(503, String::new()), "authority.pem");
    assert!(kind == ErrorKind::Io && told.contains("says 503"), "{told}");
    let (kind, told) = in_vain(service(200, "{}".to_owned()), "authority.pem");
    assert!(kind == ErrorKind::Io && told.contains("does not answer as a metadata service does"), "{told}");
    // A node that the proxy does not have.
    let nobody = "00000000-0000-4000-8000-000000000000";
    let (kind, told) = in_vain(service(200, said(nobody, &datacenter)), "authority.pem");
    let by_way = format!("no connection to a node by way of the bundle's proxy, localhost:{proxy}: ");
    assert!(kind == ErrorKind::Io && told.contains(&by_way), "{told}");
    // The bundle's datacenter is the local one.
    let (kind, told) = in_vain(service(200, said(&node, "elsewhere")), "authority.pem");
    assert!(kind == ErrorKind::Misuse && told.contains("no datacenter \"elsewhere\""), "{told}");
    // A password is wanted all the same.
    let wrong = format!("cql://cassandra:tiger@/{KEYSPACE}.t");
    let (kind, told) = refused(&at(good, "authority.pem"), &wrong);
    assert!(kind == ErrorKind::Refused && told.contains("refuses the user or the password"), "{told}");
    assert!(!told.contains("tiger"), "{told}");
    // A bundle is for addresses without a host, and they need one.
    let (kind, told) = refused(&ConnectOptions::default(), &address);
    assert!(kind == ErrorKind::Misuse && told.contains("has no host"), "{told}");
    let (kind, told) = refused(&at(good, "authority.pem"), &format!("{address}?tls=no"));
    assert!(kind == ErrorKind::Misuse && told.contains("always encrypted"), "{told}");
}

fn options(bundle: PathBuf) -> ConnectOptions {
    ConnectOptions { bundle: Some(bundle), ..ConnectOptions::default() }
}

fn bundle(folder: &Path, service: u16, authority: &str) -> PathBuf {
    let path = folder.join(format!("{service}-{authority}.zip"));
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let config =
        format!(r#"{{"host": "localhost", "port": {service}, "keyspace": "k", "keyStorePassword": "p"}}"#);
    let read = |name: &str| std::fs::read(data(name)).unwrap();
    for (name, bytes) in [
        ("config.json", config.into_bytes()),
        ("identity.jks", b"of Java".to_vec()),
        ("ca.crt", read(authority)),
        ("cert", read("client.pem")),
        ("key", read("client-key.pem")),
    ] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&bytes).unwrap();
    }
    archive.finish().unwrap();
    path
}

/// Answers one question over and over, for clients with a certificate. Returns its port.
fn service(status: u16, said: String) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut authorities = RootCertStore::empty();
    authorities.add(CertificateDer::from_pem_file(data("authority.pem")).unwrap()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider));
    let certificate = CertificateDer::from_pem_file(data("node.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(data("node-key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_client_cert_verifier(clients.build().unwrap());
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for arrived in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, arrived.unwrap());
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                // Clients that do not trust it go away.
                match stream.read(&mut byte) {
                    Ok(1) => request.push(byte[0]),
                    _ => break,
                }
            }
            if request.starts_with(b"GET /metadata HTTP/1.1\r\n") {
                let length = said.len();
                let head =
                    format!("HTTP/1.1 {status} so\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(format!("{head}{said}").as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

/// Leads clients that ask for `node` to a port, as they are: it only reads the name of the handshake. Returns its own port.
fn proxy(node: String, to: u16, asked: Asked) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for arrived in listener.incoming() {
            let (node, asked) = (node.clone(), Arc::clone(&asked));
            std::thread::spawn(move || {
                let mut arrived = arrived.unwrap();
                let Some((name, read)) = name_of(&mut arrived) else { return };
                if name != node {
                    return;
                }
                asked.lock().unwrap().insert(name);
                let mut to = TcpStream::connect(("127.0.0.1", to)).unwrap();
                to.write_all(&read).unwrap();
                let (mut back, mut there) = (to.try_clone().unwrap(), arrived.try_clone().unwrap());
                let back = std::thread::spawn(move || {
                    let _ = std::io::copy(&mut back, &mut there);
                    let _ = there.shutdown(Shutdown::Both);
                });
                let _ = std::io::copy(&mut arrived, &mut to);
                let _ = to.shutdown(Shutdown::Both);
                back.join().unwrap();
            });
        }
    });
    port
}

/// The name that a client's handshake begins with, and the bytes that were read for it.
fn name_of(arrived: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut acceptor, mut read) = (Acceptor::default(), Vec::new());
    loop {
        let mut bytes = [0; 4096];
        let count = arrived.read(&mut bytes).ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&bytes[..count]);
        acceptor.read_tls(&mut &bytes[..count]).unwrap();
        if let Some(accepted) = acceptor.accept().unwrap() {
            return Some((accepted.client_hello().server_name().unwrap_or_default().to_owned(), read));
        }
    }
}
