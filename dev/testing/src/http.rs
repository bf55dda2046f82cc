//! HTTP, as far as tests need it: a request, a server of files, and a proxy that counts, delays and breaks.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// A request that a server or a proxy got.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `GET`, `PUT`, …
    pub method: String,
    /// The path, and the query if there is one.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Vec<u8>,
    /// How many requests there were before.
    pub number: usize,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// `200`, …
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What a proxy does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Passes it on, and the answer back.
    Pass,
    /// Answers with this status itself.
    Status(u16),
    /// Cuts the connection.
    Cut,
    /// Never answers.
    Silent,
    /// Passes the answer back up to its middle, and then cuts the connection.
    Half,
    /// Passes it on, and cuts the connection instead of passing the answer back.
    Lose,
}

/// A proxy before a server of HTTP, which runs as long as the process.
pub struct HttpProxy {
    /// `HOST:PORT`
    pub at: String,
    state: Arc<State>,
}

type Decide = dyn Fn(&Asked) -> Act + Send + Sync;

struct State {
    server: String,
    delay: Duration,
    decide: Box<Decide>,
    seen: Mutex<Seen>,
}

/// What a proxy saw.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// The requests, without their bodies.
    pub requests: Vec<Asked>,
    /// Bytes of bodies that were passed back.
    pub bytes: u64,
    /// The most requests of which each was made after the one before was answered.
    pub rounds: u64,
}

impl HttpProxy {
    /// A proxy before `server`, which answers no earlier than after a delay, and does with each request what is decided.
    ///
    /// # Panics
    ///
    /// When no port can be opened.
    pub fn start(
        server: &str,
        delay: Duration,
        decide: impl Fn(&Asked) -> Act + Send + Sync + 'static,
    ) -> HttpProxy {
        let state =
            State { server: server.to_owned(), delay, decide: Box::new(decide), seen: Mutex::default() };
        let state = Arc::new(state);
        let serving = Arc::clone(&state);
        let at = serve(move |client| serving.serve(client));
        HttpProxy { at, state }
    }

    /// What it saw until now.
    pub fn seen(&self) -> Seen {
        self.state.seen().clone()
    }
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn serve(&self, mut client: TcpStream) {
        let Ok(from) = client.try_clone() else { return };
        let mut from = BufReader::new(from);
        while let Some(mut asked) = read_request(&mut from) {
            let round = {
                let mut seen = self.seen();
                asked.number = seen.requests.len();
                seen.requests.push(Asked { body: Vec::new(), ..asked.clone() });
                seen.rounds + 1
            };
            let act = (self.decide)(&asked);
            let answer = match act {
                Act::Cut => break,
                Act::Silent => {
                    let _ = from.read_to_end(&mut Vec::new());
                    break;
                }
                Act::Status(status) => Response { status, headers: BTreeMap::new(), body: Vec::new() },
                Act::Pass | Act::Half | Act::Lose => {
                    let headers = asked.headers.iter().filter(|(name, _)| {
                        !matches!(&***name, "connection" | "content-length" | "transfer-encoding" | "expect")
                    });
                    let headers: Vec<_> = headers.map(|(name, value)| (&**name, &**value)).collect();
                    ask(&self.server, &asked.method, &asked.target, &headers, &asked.body)
                }
            };
            if act == Act::Lose {
                break;
            }
            thread::sleep(self.delay);
            {
                let mut seen = self.seen();
                seen.rounds = seen.rounds.max(round);
                seen.bytes += answer.body.len() as u64;
            }
            let half = (act == Act::Half).then_some(answer.body.len() / 2);
            if write_response(&mut client, &asked.method, &answer, half).is_err() || half.is_some() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    }
}

/// How a server of files answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranges {
    /// Ranges, with strong tags.
    Tagged,
    /// Ranges, without tags or dates.
    Untagged,
    /// Always all of it.
    None,
}

/// A server of files that are in memory, which runs as long as the process.
pub struct FileServer {
    /// `HOST:PORT`
    pub at: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl FileServer {
    /// A server without files.
    ///
    /// # Panics
    ///
    /// When no port can be opened.
    pub fn start(ranges: Ranges) -> FileServer {
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let serving = Arc::clone(&files);
        let at = serve(move |mut client| {
            let Ok(from) = client.try_clone() else { return };
            let mut from = BufReader::new(from);
            while let Some(asked) = read_request(&mut from) {
                let path = asked.target.split('?').next().unwrap_or_default();
                let found =
                    serving.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(path).cloned();
                let answer = file(found, ranges, &asked);
                if write_response(&mut client, &asked.method, &answer, None).is_err() {
                    break;
                }
            }
        });
        FileServer { at, files }
    }

    /// Puts a file at a path, which begins with a slash.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        self.files.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(path.to_owned(), bytes);
    }
}

/// The answer of a server of files.
fn file(found: Option<Vec<u8>>, ranges: Ranges, asked: &Asked) -> Response {
    let mut headers = BTreeMap::new();
    let Some(body) = found else { return Response { status: 404, headers, body: b"gone".to_vec() } };
    if ranges == Ranges::Tagged {
        // FNV: a tag, and no more.
        let hash = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let tag = format!("\"{hash:x}\"");
        if asked.headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
            return Response { status: 412, headers, body: Vec::new() };
        }
        headers.insert("etag".to_owned(), tag);
    }
    let range = asked.headers.get("range").filter(|_| ranges != Ranges::None);
    let Some((start, end)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) else {
        return Response { status: 200, headers, body };
    };
    let (start, end) = match (start.parse::<usize>(), end.parse::<usize>()) {
        (Ok(start), Ok(end)) => (start, body.len().min(end + 1)),
        (Ok(start), Err(_)) => (start, body.len()),
        (Err(_), Ok(last)) => (body.len().saturating_sub(last), body.len()),
        _ => (0, 0),
    };
    if start >= end {
        return Response { status: 416, headers, body: Vec::new() };
    }
    headers.insert("content-range".to_owned(), format!("bytes {start}-{}/{}", end - 1, body.len()));
    Response { status: 206, headers, body: body[start..end].to_vec() }
}

/// Asks a server.
///
/// # Panics
///
/// When there is no answer.
pub fn ask(server: &str, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("host: {server}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream.write_all(body).expect("the server reads");
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    from.read_line(&mut line).expect("the server answers");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer, but {line:?}"));
    let headers = read_headers(&mut from).expect("the server answers");
    let body = match method == "HEAD" || status == 204 || status == 304 {
        true => Vec::new(),
        false => read_body(&mut from, &headers, true).expect("the server answers"),
    };
    Response { status, headers, body }
}

/// Accepts connections, each on a thread.
fn serve(each: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("a bound address").to_string();
    let each = Arc::new(each);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let each = Arc::clone(&each);
            thread::spawn(move || each(client));
        }
    });
    at
}

fn read_request(from: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers = read_headers(from)?;
    let body = read_body(from, &headers, false)?;
    Some(Asked { method, target, headers, body, number: 0 })
}

fn read_headers(from: &mut impl BufRead) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => return Some(headers),
        };
    }
}

fn read_body(from: &mut impl BufRead, headers: &BTreeMap<String, String>, to_end: bool) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok()?;
            let length = u64::from_str_radix(line.trim().split(';').next()?, 16).ok()?;
            from.by_ref().take(length).read_to_end(&mut body).ok()?;
            from.read_line(&mut line).ok()?;
            if length == 0 {
                return Some(body);
            }
        }
    }
    match headers.get("content-length").and_then(|length| length.parse::<u64>().ok()) {
        Some(length) => from.by_ref().take(length).read_to_end(&mut body).ok(),
        None if to_end => from.read_to_end(&mut body).ok(),
        None => Some(0),
    }?;
    Some(body)
}

/// Writes an answer, or a part of its body.
fn write_response(
    to: &mut TcpStream,
    method: &str,
    answer: &Response,
    half: Option<usize>,
) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Answer\r\n", answer.status);
    for (name, value) in &answer.headers {
        let is_kept = method == "HEAD" && name == "content-length";
        if is_kept || !matches!(&**name, "connection" | "content-length" | "transfer-encoding") {
            head += &format!("{name}: {value}\r\n");
        }
    }
    if method != "HEAD" || !answer.headers.contains_key("content-length") {
        head += &format!("content-length: {}\r\n", answer.body.len());
    }
    to.write_all(format!("{head}\r\n").as_bytes())?;
    if method != "HEAD" {
        to.write_all(&answer.body[..half.unwrap_or(answer.body.len())])?;
    }
    to.flush()
}
