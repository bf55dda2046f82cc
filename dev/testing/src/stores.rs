//! Servers of object stores, on loopback, for as long as the process that tests.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{Response, ask};
use crate::{Need, recorded, variable};

/// How long a server may take to start: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server of S3: moto.
pub struct S3 {
    /// `HOST:PORT`
    pub at: String,
    _process: Process,
}

/// A server of Azure's blobs: Azurite.
pub struct Azure {
    /// `HOST:PORT`
    pub at: String,
    _process: Process,
}

/// The server of S3 of this process. `None`, put on record, without moto: `MARQUETRY_MOTO` is a Python that has it.
///
/// # Panics
///
/// When it does not start.
pub fn s3() -> Option<&'static S3> {
    static SERVER: OnceLock<Option<S3>> = OnceLock::new();
    let python = recorded(variable("MARQUETRY_MOTO"), Need::S3)?;
    SERVER
        .get_or_init(|| {
            let (host, port) = free_port();
            let mut command = Command::new(python);
            command.args(["-c", MOTO, &host, &port]);
            Some(S3 { _process: Process::start(command, &host, &port), at: format!("{host}:{port}") })
        })
        .as_ref()
}

/// A server of S3 that speaks TLS, and the file with the certificate of who signed its own.
///
/// # Panics
///
/// When it does not start.
pub fn s3_with_tls(folder: &std::path::Path) -> Option<(S3, PathBuf)> {
    let python = recorded(variable("MARQUETRY_MOTO"), Need::S3)?;
    let (host, port) = free_port();
    let made = Command::new(&python).args(["-c", CERTIFICATE]).arg(folder).status();
    assert!(made.expect("Python runs").success(), "no certificate was made");
    let mut command = Command::new(python);
    command.args(["-c", MOTO, &host, &port, "-c"]).arg(folder.join("server.pem"));
    command.arg("-k").arg(folder.join("server.key"));
    let process = Process::start(command, &host, &port);
    Some((S3 { at: format!("{host}:{port}"), _process: process }, folder.join("server.pem")))
}

/// The server of Azure's blobs of this process. `None`, put on record, without Azurite: `MARQUETRY_AZURITE` is its `main.js`.
///
/// # Panics
///
/// When it does not start.
pub fn azure() -> Option<&'static Azure> {
    static SERVER: OnceLock<Option<Azure>> = OnceLock::new();
    let main = recorded(variable("MARQUETRY_AZURITE"), Need::Azure)?;
    SERVER
        .get_or_init(|| {
            let (host, port) = free_port();
            let mut command = Command::new("node");
            command.args(["-e", AZURITE, "--", &main, "--blobHost", &host, "--blobPort", &port]);
            command.args([
                "--inMemoryPersistence",
                "--skipApiVersionCheck",
                "--silent",
                "--disableTelemetry",
            ]);
            Some(Azure { _process: Process::start(command, &host, &port), at: format!("{host}:{port}") })
        })
        .as_ref()
}

impl S3 {
    /// Asks for something that the command has no word for: moto checks no signature, but that there is one.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn ask(&self, method: &str, target: &str, body: &[u8]) -> Response {
        ask(
            &self.at,
            method,
            target,
            &[("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request")],
            body,
        )
    }

    /// Creates a bucket.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn create_bucket(&self, name: &str) {
        assert_eq!(self.ask("PUT", &format!("/{name}"), b"").status, 200);
    }

    /// The keys of a bucket's objects, in order.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        tagged(&self.ask("GET", &format!("/{bucket}?list-type=2"), b"").text(), "Key")
    }

    /// The keys of a bucket's uploads that are neither complete nor removed.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn uploads(&self, bucket: &str) -> Vec<String> {
        tagged(&self.ask("GET", &format!("/{bucket}?uploads"), b"").text(), "Key")
    }
}

impl Azure {
    /// Asks for something that the command has no word for.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn ask(&self, method: &str, target: &str) -> String {
        let url = format!("http://{}/devstoreaccount1{target}", self.at);
        let asked = Command::new("node").args(["-e", AZURE_REQUEST, "--", method, &url]).output();
        let asked = asked.expect("node runs");
        let said = String::from_utf8_lossy(&asked.stderr);
        assert!(asked.status.success(), "{method} {url}: {said}");
        String::from_utf8_lossy(&asked.stdout).into_owned()
    }

    /// Creates a container.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn create_container(&self, name: &str) {
        self.ask("PUT", &format!("/{name}?restype=container"));
    }

    /// The names of a container's blobs, in order, those that are only begun included.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn blobs(&self, container: &str) -> Vec<String> {
        tagged(
            &self.ask("GET", &format!("/{container}?comp=list&include=uncommittedblobs&restype=container")),
            "Name",
        )
    }
}

/// What is between tags of XML.
fn tagged(xml: &str, tag: &str) -> Vec<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    xml.split(&open).skip(1).filter_map(|rest| rest.split(&close).next()).map(str::to_owned).collect()
}

fn free_port() -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("a bound address");
    (at.ip().to_string(), at.port().to_string())
}

/// A server that ends when its standard input does: with this process, however that ends.
struct Process(Child);

impl Process {
    fn start(mut command: Command, host: &str, port: &str) -> Process {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process(command.spawn().expect("the server's program runs"));
        let begun = Instant::now();
        while TcpStream::connect(format!("{host}:{port}")).is_err() {
            let ended = process.0.try_wait().expect("the server can be looked at");
            assert!(ended.is_none(), "the server ended: {command:?}");
            assert!(begun.elapsed() < PATIENCE, "the server does not listen: {command:?}");
            thread::sleep(Duration::from_millis(50));
        }
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            let _ = stdin.flush();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const MOTO: &str = "
import os, sys, threading
def end():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=end, daemon=True).start()
from moto.server import main
tls = ['-s', *sys.argv[3:]] if len(sys.argv) > 3 else []
main(['-H', sys.argv[1], '-p', sys.argv[2], *tls])
";

const AZURITE: &str = "
process.stdin.on('end', () => process.exit(0)).resume();
process.argv.splice(1, 0, 'azurite-blob');
require(process.argv.splice(2, 1)[0]);
";

/// A request, signed as the account that emulators have. (The key is no secret: Microsoft publishes it.)
const AZURE_REQUEST: &str = "
const crypto = require('crypto');
const [method, address] = process.argv.slice(1);
const account = 'devstoreaccount1';
const key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const url = new URL(address);
const headers = { 'x-ms-date': new Date().toUTCString(), 'x-ms-version': '2021-12-02' };
const query = [...url.searchParams].sort().map(([name, value]) => `\\n${name}:${value}`).join('');
const signed = [method, '', '', '', '', '', '', '', '', '', '', '',
  `x-ms-date:${headers['x-ms-date']}`, `x-ms-version:${headers['x-ms-version']}`,
  `/${account}${url.pathname}${query}`].join('\\n');
const signature = crypto.createHmac('sha256', Buffer.from(key, 'base64')).update(signed).digest('base64');
headers.Authorization = `SharedKey ${account}:${signature}`;
fetch(url, { method, headers }).then(async (answer) => {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  process.stdout.write(text);
}).catch((error) => { console.error(String(error)); process.exit(1); });
";

/// A certificate for 127.0.0.1 that is signed by itself.
const CERTIFICATE: &str = "
import datetime, ipaddress, pathlib, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'a test')])
now = datetime.datetime.now(datetime.timezone.utc)
day = datetime.timedelta(days=1)
names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))])
certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
  .serial_number(1).not_valid_before(now - day).not_valid_after(now + day).add_extension(names, False)
  .sign(key, hashes.SHA256()))
folder = pathlib.Path(sys.argv[1])
pem = serialization.Encoding.PEM
(folder / 'server.pem').write_bytes(certificate.public_bytes(pem))
(folder / 'server.key').write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
";
