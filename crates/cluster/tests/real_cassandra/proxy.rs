//! A network that breaks: a proxy before the server that cuts all connections once, and takes new ones after it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A proxy that runs as long as the test does.
pub(crate) struct Proxy {
    /// HOST:PORT
    pub(crate) at: String,
    state: Arc<State>,
}

struct State {
    server: String,
    cut_after: u64,
    sent: AtomicU64,
    cuts: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy before `server`, which cuts all connections when they have sent `cut_after` bytes to it.
    pub(crate) fn start(server: &str, cut_after: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            server: server.to_owned(),
            cut_after,
            sent: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
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

    /// How often connections were cut: 0 or 1.
    pub(crate) fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

impl State {
    fn join(self: &Arc<State>, client: TcpStream) {
        let server = TcpStream::connect(&self.server).unwrap();
        self.open.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let state = Arc::clone(self);
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || pass(from, to, |bytes| state.count(bytes)));
        thread::spawn(move || pass(server, client, |_| ()));
    }

    fn count(&self, bytes: usize) {
        let before = self.sent.fetch_add(bytes as u64, Ordering::SeqCst);
        if before < self.cut_after && before + bytes as u64 >= self.cut_after {
            self.cuts.fetch_add(1, Ordering::SeqCst);
            for stream in self.open.lock().unwrap().drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// Passes bytes on until either end is gone.
fn pass(mut from: TcpStream, mut to: TcpStream, count: impl Fn(usize)) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
        count(read);
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
