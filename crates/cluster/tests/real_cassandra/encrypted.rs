//! A server that takes encrypted connections of clients with a certificate and a password; and that owns the least of all tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use marquetry_base::{Detail, ErrorKind};
use marquetry_cluster::{
    Cluster, ConnectOptions, CqlOptions, CqlSource, CqlTable, TlsOptions, UnloadOptions,
};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::KeySpec;
use marquetry_tables::{Reading, ReadingOptions, Source};

use crate::made::{Made, int};
use crate::server::{KEYSPACE, Server};

/// A file of the tests' certificates, which `make.sh` beside them made.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// An option of the server's Java: its first user is there from the beginning.
pub(crate) const AT_ONCE: &str = "-Dcassandra.superuser_setup_delay_ms=0";

/// What the server is told besides.
pub(crate) fn yaml() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encrypted.yaml");
    let of = |name: &str| data(name).display().to_string();
    let text = format!(
        "initial_token: {}\nauthenticator: PasswordAuthenticator\nclient_encryption_options:\n  enabled: true\n  optional: true\n  require_client_auth: true\n  \
         keystore: {}\n  keystore_password: marquetry\n  truststore: {}\n  truststore_password: marquetry\n  store_type: PKCS12\n",
        i64::MIN,
        of("node.p12"),
        of("trusted.p12")
    );
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn all(at: &str) {
    let port = at.rsplit_once(':').unwrap().1;
    // The node's certificate is for the name and for no address.
    let (by_name, by_address) = (format!("localhost:{port}"), format!("127.0.0.1:{port}"));
    // It takes plain ones as well, so that the keyspace can be made.
    let server = Server::connect(&by_address);
    whom_to_trust(&by_name, &by_address);
    who_may_log_in(&by_name);
    rows_travel(&by_name, &options("authority.pem"));
    crate::bundled::all(&server, port);
}

/// Of a client with a certificate, that trusts this authority.
fn options(authority: &str) -> ConnectOptions {
    let mut tls = TlsOptions::default();
    tls.authorities = Some(data(authority));
    (tls.certificate, tls.key) = (Some(data("client.pem")), Some(data("client-key.pem")));
    ConnectOptions { tls: Some(tls), timeout: Duration::from_secs(20), ..ConnectOptions::default() }
}

fn whom_to_trust(by_name: &str, by_address: &str) {
    let connect = |at: &str, options: &ConnectOptions| {
        let address = format!("cql://cassandra:cassandra@{at}/{KEYSPACE}.t");
        Cluster::connect(address.parse().unwrap(), options).map(drop)
    };
    // Who tries again tries in vain.
    let refused = |at: &str, options: &ConnectOptions, option: &str| {
        let error = marquetry_base::Error::from(connect(at, options).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(
            matches!(error.detail(), Some(Detail::AdmittedBy([first, ..])) if *first == option),
            "{:?}",
            error.detail()
        );
        error.to_string()
    };
    connect(by_name, &options("authority.pem")).unwrap();
    // Another authority.
    let told = refused(by_name, &options("other.pem"), "ca");
    assert!(told.contains("UnknownIssuer"), "{told}");
    // Another host, if that matters.
    let told = refused(by_address, &options("authority.pem"), "tls_any_host");
    assert!(told.contains("not valid for name") && told.contains("localhost"), "{told}");
    let mut any_host = options("authority.pem");
    any_host.tls.as_mut().unwrap().verify_hosts = false;
    connect(by_address, &any_host).unwrap();
    // Whatever host, but not whatever authority.
    any_host.tls.as_mut().unwrap().authorities = Some(data("other.pem"));
    let told = refused(by_address, &any_host, "ca");
    assert!(told.contains("UnknownIssuer"), "{told}");
    // No certificate of the client.
    let mut nobody = options("authority.pem");
    let tls = nobody.tls.as_mut().unwrap();
    (tls.certificate, tls.key) = (None, None);
    nobody.timeout = Duration::from_secs(5);
    let told = marquetry_base::Error::from(connect(by_name, &nobody).unwrap_err());
    // What it says may be lost when it closes the connection.
    assert!(matches!(told.kind(), ErrorKind::Io | ErrorKind::Refused), "{told}");
}

fn who_may_log_in(at: &str) {
    let connect = |login: &str| {
        let address = format!("cql://{login}{at}/{KEYSPACE}.t");
        Cluster::connect(address.parse().unwrap(), &options("authority.pem")).map(drop)
    };
    connect("cassandra:cassandra@").unwrap();
    for (login, said) in [
        ("", "asks for a user and a password: name the user in the address"),
        ("cassandra:tiger@", "refuses the user or the password"),
        ("tiger:cassandra@", "refuses the user or the password"),
    ] {
        let error = marquetry_base::Error::from(connect(login).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.message().contains(said) && !error.message().contains(":tiger"), "{error}");
    }
}

/// Rows go there and back. The node owns the least token, which no partition has: a range that ended with it would be all of the ring.
pub(crate) fn rows_travel(at: &str, connect: &ConnectOptions) {
    const ROWS: i32 = 3000;
    let address = || format!("cql://cassandra:cassandra@{at}/{KEYSPACE}.t").parse().unwrap();
    let mapping = MappingOptions { key: Some(KeySpec::parse("k").unwrap()), ..MappingOptions::default() };
    let mut loading = CqlOptions::create(mapping);
    loading.connect = connect.clone();
    let rows = (0..ROWS).map(|row| vec![int(row), int(row)]);
    let mut table = CqlTable::new(address(), loading);
    assert_eq!(Made::new(&[("k", "int"), ("v", "int")], rows).load(&mut table).1, Ok(3000));
    let mut unloading = UnloadOptions::default();
    unloading.connect = connect.clone();
    let source: Arc<dyn Source> = Arc::new(CqlSource::open(address(), &unloading).unwrap());
    let mut reading = Reading::new(source, ReadingOptions::default()).unwrap();
    let mut found = 0;
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        found += batch.rows;
        assert!(found <= 3000, "a piece is all of the ring");
    }
    assert_eq!(found, 3000);
}
