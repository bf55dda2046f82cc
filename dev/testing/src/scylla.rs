//! **A fake of ScyllaDB**, as there is none where tests run: a real Cassandra behind a proxy that says it has shards.
//!
//! It does what drivers see of shards (ScyllaDB's `docs/dev/protocol-extensions.md`): what is SUPPORTED says how many there are and which one a
//! connection is of, and at a second port the client's port chooses that. Statements are passed on without what Cassandra does not know, and
//! `system.tablets` is another table. Everything else is Cassandra's. It shows what is sent, and to which shard; not what ScyllaDB does with it.
//!
//! Without shards ([`Scylla::without_shards`]) it is Cassandra to its clients. Either loses the answer to a statement, if it is told to: the
//! server has executed it, and the client does not hear of that.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The fake, which runs as long as the test does.
pub struct Scylla {
    /// HOST:PORT
    pub at: String,
    state: Arc<State>,
}

/// A prepared statement that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The shard whose connection it came by.
    pub shard: u16,
    /// The bound values; `None` for null and what is unset.
    pub values: Vec<Option<Vec<u8>>>,
}

struct State {
    server: String,
    shards: u16,
    shard_aware_port: u16,
    tablets: String,
    next: AtomicU16,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    statements: Vec<String>,
    executed: Vec<Executed>,
    by_port: Vec<u16>,
    /// A bound value: the answer to the first statement that has it is lost.
    to_lose: Option<Vec<u8>>,
    lost: usize,
}

/// The streams of a connection whose answers are lost.
type Lost = Arc<Mutex<HashSet<[u8; 2]>>>;

/// Frames' opcodes (`native_protocol_v4.spec`, section 2.4), and the bytes of a header.
const SUPPORTED: u8 = 0x06;
const QUERY: u8 = 0x07;
const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0a;
const HEADER_BYTES: usize = 9;

impl Scylla {
    /// A fake before a Cassandra, with so many shards. What is asked of `system.tablets` is asked of the table `tablets`.
    ///
    /// # Panics
    ///
    /// When no ports can be opened.
    pub fn before(cassandra: &str, shards: u16, tablets: &str) -> Scylla {
        let host = cassandra.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
        let [plain, shard_aware] = [0, 0].map(|port| TcpListener::bind((host, port)).expect("a free port"));
        let at = plain.local_addr().expect("a bound address").to_string();
        let state = Arc::new(State {
            server: cassandra.to_owned(),
            shards,
            shard_aware_port: shard_aware.local_addr().expect("a bound address").port(),
            tablets: tablets.to_owned(),
            next: AtomicU16::new(0),
            seen: Mutex::default(),
        });
        for (listener, is_shard_aware) in [(plain, false), (shard_aware, true)] {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    state.join(client, is_shard_aware);
                }
            });
        }
        Scylla { at, state }
    }

    /// A Cassandra as it is.
    ///
    /// # Panics
    ///
    /// When no ports can be opened.
    pub fn without_shards(cassandra: &str) -> Scylla {
        Scylla::before(cassandra, 0, "system.tablets")
    }

    /// Of the next statement that is executed with this bound value, the answer is lost, and its connection with it.
    pub fn lose_answer_of(&self, value: Vec<u8>) {
        self.state.seen().to_lose = Some(value);
    }

    /// How many answers were lost.
    pub fn lost(&self) -> usize {
        self.state.seen().lost
    }

    /// The texts of statements, as they came.
    pub fn statements(&self) -> Vec<String> {
        self.state.seen().statements.clone()
    }

    /// What was executed, in the order in which it came.
    pub fn executed(&self) -> Vec<Executed> {
        self.state.seen().executed.clone()
    }

    /// The shards of connections whose clients chose them by their port.
    pub fn chosen_by_port(&self) -> Vec<u16> {
        self.state.seen().by_port.clone()
    }

    /// The shard that a token belongs to: the ring in equal parts, one a shard.
    pub fn shard_of(&self, token: i64) -> u16 {
        let biased = u128::from(token.cast_unsigned() ^ 1 << 63);
        u16::try_from((biased * u128::from(self.state.shards)) >> 64).expect("less than the shards")
    }
}

impl State {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panicked")
    }

    fn join(self: &Arc<State>, client: TcpStream, is_shard_aware: bool) {
        let shard = match is_shard_aware {
            true => client.peer_addr().expect("a connected client").port() % self.shards.max(1),
            false => self.next.fetch_add(1, Ordering::SeqCst) % self.shards.max(1),
        };
        if is_shard_aware {
            self.seen().by_port.push(shard);
        }
        let server = TcpStream::connect(&self.server).expect("the server listens");
        let [from, to] =
            [client.try_clone(), server.try_clone()].map(|clone| clone.expect("a stream can be cloned"));
        let (there, back, lost) = (Arc::clone(self), Arc::clone(self), Lost::default());
        let losing = Arc::clone(&lost);
        thread::spawn(move || {
            pass(from, to, |stream, opcode, body| {
                if opcode == EXECUTE && there.is_to_be_lost(&body) {
                    losing.lock().expect("nobody panicked").insert(stream);
                }
                Some(there.request(shard, opcode, body))
            });
        });
        thread::spawn(move || {
            pass(server, client, |stream, opcode, body| {
                if lost.lock().expect("nobody panicked").remove(&stream) {
                    back.seen().lost += 1;
                    return None;
                }
                let is_told = opcode == SUPPORTED && back.shards > 0;
                Some(if is_told { back.supported(shard, body) } else { body })
            });
        });
    }

    fn is_to_be_lost(&self, body: &[u8]) -> bool {
        let mut seen = self.seen();
        let Some(wanted) = &seen.to_lose else { return false };
        let is_it = bound(body).unwrap_or_default().iter().flatten().any(|value| value == wanted);
        if is_it {
            seen.to_lose = None;
        }
        is_it
    }

    /// Notes what a client asks, and takes out what Cassandra does not know.
    fn request(&self, shard: u16, opcode: u8, body: Vec<u8>) -> Vec<u8> {
        if opcode == EXECUTE {
            let values = bound(&body).unwrap_or_default();
            self.seen().executed.push(Executed { shard, values });
            return body;
        }
        if opcode != QUERY && opcode != PREPARE {
            return body;
        }
        let (length, rest) = body.split_first_chunk::<4>().expect("the length of a text");
        let (text, rest) = rest.split_at(usize::try_from(u32::from_be_bytes(*length)).expect("a length"));
        let text = String::from_utf8(text.to_vec()).expect("statements are text");
        let mut plain = text.replace(" BYPASS CACHE", "").replace("system.tablets", &self.tablets);
        if let Some(at) = plain.find(" USING TIMEOUT ") {
            plain.truncate(at);
        }
        self.seen().statements.push(text);
        let length = u32::try_from(plain.len()).expect("a short statement").to_be_bytes();
        [&length[..], plain.as_bytes(), rest].concat()
    }

    /// Adds what only ScyllaDB supports.
    fn supported(&self, shard: u16, body: Vec<u8>) -> Vec<u8> {
        let (count, rest) = body.split_first_chunk::<2>().expect("a number of options");
        let options = [
            ("SCYLLA_SHARD", shard.to_string()),
            ("SCYLLA_NR_SHARDS", self.shards.to_string()),
            ("SCYLLA_SHARDING_IGNORE_MSB", "0".to_owned()),
            ("SCYLLA_SHARDING_ALGORITHM", "biased-token-round-robin".to_owned()),
            ("SCYLLA_PARTITIONER", "org.apache.cassandra.dht.Murmur3Partitioner".to_owned()),
            ("SCYLLA_SHARD_AWARE_PORT", self.shard_aware_port.to_string()),
        ];
        let count = u16::from_be_bytes(*count) + u16::try_from(options.len()).expect("few options");
        let mut made = [&count.to_be_bytes()[..], rest].concat();
        let string = |text: &str| {
            [&u16::try_from(text.len()).expect("short").to_be_bytes()[..], text.as_bytes()].concat()
        };
        for (name, value) in options {
            made.extend(string(name));
            made.extend([0, 1]);
            made.extend(string(&value));
        }
        made
    }
}

/// Passes frames on until either end is gone, or `change` returns none.
fn pass(mut from: TcpStream, mut to: TcpStream, change: impl Fn([u8; 2], u8, Vec<u8>) -> Option<Vec<u8>>) {
    let mut one = || -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        from.read_exact(&mut header)?;
        let [version, flags, high, low, opcode, length @ ..] = header;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).expect("a length")];
        from.read_exact(&mut body)?;
        let body = change([high, low], opcode, body).ok_or(io::ErrorKind::ConnectionAborted)?;
        let length = u32::try_from(body.len()).expect("a length").to_be_bytes();
        to.write_all(&[&[version, flags, high, low, opcode], &length[..], &body].concat())
    };
    while one().is_ok() {}
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The values of an EXECUTE, of version 4 of the protocol.
fn bound(body: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    const HAS_VALUES: u8 = 0x01;
    let (length, rest) = body.split_first_chunk::<2>()?;
    let rest = rest.get(usize::from(u16::from_be_bytes(*length))..)?;
    // After the identifier: the consistency level, flags, and the number of values.
    let ([_, _, flags], rest) = rest.split_first_chunk::<3>()?;
    if flags & HAS_VALUES == 0 {
        return Some(Vec::new());
    }
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, more) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        values.push(length.map(|length| more.get(..length).unwrap_or_default().to_vec()));
        rest = more.get(length.unwrap_or(0)..)?;
    }
    Some(values)
}
