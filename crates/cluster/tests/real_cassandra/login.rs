//! What is said when nobody logs in, or the wrong one: against a fake of the few frames of the native protocol that come before any query.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use marquetry_base::{Detail, ErrorKind};
use marquetry_cluster::{Cluster, ConnectOptions};

/// Frames' opcodes (`native_protocol_v4.spec`, section 2.4).
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const AUTHENTICATE: u8 = 0x03;
const OPTIONS: u8 = 0x05;
const SUPPORTED: u8 = 0x06;
const AUTH_RESPONSE: u8 = 0x0f;
/// The header: version, flags, stream, opcode, length.
const HEADER_BYTES: usize = 9;

/// A node that asks for a password, and takes none.
fn serve(mut client: TcpStream) -> std::io::Result<()> {
    loop {
        let mut header = [0; HEADER_BYTES];
        client.read_exact(&mut header)?;
        let [_, _, stream_high, stream_low, opcode, length @ ..] = header;
        let length = u64::from(u32::from_be_bytes(length));
        std::io::copy(&mut Read::by_ref(&mut client).take(length), &mut std::io::sink())?;
        let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
        let (opcode, body) = match opcode {
            OPTIONS => (SUPPORTED, vec![0, 0]),
            STARTUP => (AUTHENTICATE, text("org.apache.cassandra.auth.PasswordAuthenticator")),
            AUTH_RESPONSE => (
                ERROR,
                [&[0, 0, 1, 0], &*text("Provided username me and/or password are incorrect")].concat(),
            ),
            other => panic!("opcode {other}"),
        };
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        client.write_all(&[&[0x84, 0, stream_high, stream_low, opcode], &length[..], &body].concat())?;
    }
}

#[test]
fn who_may_not_log_in_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // Until the driver goes away.
            std::thread::spawn(move || drop(serve(client.unwrap())));
        }
    });
    let options = ConnectOptions { timeout: Duration::from_secs(10), ..ConnectOptions::default() };
    let error = |login: &str| {
        let address = format!("cql://{login}{at}/k.t").parse().unwrap();
        marquetry_base::Error::from(Cluster::connect(address, &options).unwrap_err())
    };
    let nobody = error("");
    assert_eq!(
        nobody.to_string(),
        format!(
            "cql://{at}/k.t asks for a user and a password: name the user in the address, cql://USER@HOST/…"
        )
    );
    let wrong = error("me:tiger@");
    assert_eq!(wrong.to_string(), format!("cql://me@{at}/k.t refuses the user or the password"));
    for error in [nobody, wrong] {
        // To try it again makes no sense.
        assert_eq!(
            (error.kind(), error.detail()),
            (ErrorKind::Refused, Some(Detail::AdmittedBy(&["password_file"])))
        );
    }
}
