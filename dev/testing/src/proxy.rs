//! A network that breaks: a proxy before a server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// A proxy before a server, which runs as long as the test does.
pub struct Proxy {
    /// HOST:PORT
    pub at: String,
    state: Arc<State>,
}

/// What happens to the network after some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// All connections are cut, once; new ones work.
    Cut,
    /// All connections are cut, and new ones at once, too.
    Gone,
    /// The same for so long, as with a server that starts again.
    Away(Duration),
    /// Nothing passes any more; connections stay open, and new ones can be made.
    Silent,
}

struct State {
    server: String,
    after: u64,
    kind: Break,
    sent: AtomicU64,
    breaks: AtomicU64,
    /// When the network broke.
    broken: OnceLock<Instant>,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy before `server`, whose network breaks when `after` bytes were sent to the server.
    ///
    /// # Panics
    ///
    /// When no port can be opened.
    pub fn start(server: &str, after: u64, kind: Break) -> Proxy {
        // Drivers expect a node at the address that it tells, and at the port that they know: the server's host, and this one.
        let host = server.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
        let listener = TcpListener::bind((host, 0)).expect("a free port");
        let at = listener.local_addr().expect("a bound address").to_string();
        let state = Arc::new(State {
            server: server.to_owned(),
            after,
            kind,
            sent: AtomicU64::new(0),
            breaks: AtomicU64::new(0),
            broken: OnceLock::new(),
            open: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accepting.join(client);
            }
        });
        Proxy { at, state }
    }

    /// How often the network broke: 0 or 1.
    pub fn breaks(&self) -> u64 {
        self.state.breaks.load(Ordering::SeqCst)
    }
}

impl State {
    fn join(self: &Arc<State>, client: TcpStream) {
        let is_away = match (self.broken.get(), self.kind) {
            (Some(_), Break::Gone) => true,
            (Some(broken), Break::Away(time)) => broken.elapsed() < time,
            _ => false,
        };
        if is_away {
            return;
        }
        let server = TcpStream::connect(&self.server).expect("the server listens");
        let clones = [client.try_clone(), server.try_clone(), client.try_clone(), server.try_clone()];
        let [from, to, client_too, server_too] = clones.map(|clone| clone.expect("a stream can be cloned"));
        self.open.lock().expect("nobody panicked").extend([client_too, server_too]);
        let (there, back) = (Arc::clone(self), Arc::clone(self));
        thread::spawn(move || there.pass(from, to, true));
        thread::spawn(move || back.pass(server, client, false));
    }

    /// Passes bytes on until either end is gone.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, is_counted: bool) {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if self.has_broken() && self.kind == Break::Silent {
                continue;
            }
            if to.write_all(&bytes[..read]).is_err() {
                break;
            }
            if is_counted {
                self.count(read);
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    fn has_broken(&self) -> bool {
        self.breaks.load(Ordering::SeqCst) > 0
    }

    fn count(&self, bytes: usize) {
        let before = self.sent.fetch_add(bytes as u64, Ordering::SeqCst);
        if before < self.after && before + bytes as u64 >= self.after {
            self.broken.get_or_init(Instant::now);
            self.breaks.fetch_add(1, Ordering::SeqCst);
            if self.kind != Break::Silent {
                for stream in self.open.lock().expect("nobody panicked").drain(..) {
                    let _ = stream.shutdown(Shutdown::Both);
                }
            }
        }
    }
}
