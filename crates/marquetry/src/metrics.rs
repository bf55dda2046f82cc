//! How far a copy is, for Prometheus: a page of text over HTTP.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use marquetry_base::{Error, Result};
use marquetry_tables::{Copied, Watch, Written};

/// A page that says how far a copy is, in the text format of Prometheus, and the thread that serves it until the process ends.
///
/// ```no_run
/// use marquetry::Metrics;
///
/// # fn main() -> marquetry::Result<()> {
/// // http://127.0.0.1:9600/metrics
/// let metrics = Metrics::serve(Metrics::address("9600")?, None)?;
/// // In the `report` of a copy:
/// metrics.copied(&marquetry::tables::Copied::default());
/// # Ok(())
/// # }
/// ```
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    started: Instant,
    copied: Mutex<Copied>,
    /// What the destination does right now, if it tells.
    watch: Option<Watch>,
}

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The time that a client has to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time until the next client is accepted when one could not be.
const REST: Duration = Duration::from_millis(100);

impl Metrics {
    /// Parses an IP address and a port, or a port alone, which only this machine can reach.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `metrics`.
    pub fn address(text: &str) -> Result<SocketAddr> {
        let with_host = if text.contains(':') { text.to_owned() } else { format!("127.0.0.1:{text}") };
        with_host.parse().map_err(|_| {
            let what =
                format!("{text:?} is neither an IP address and a port, such as 127.0.0.1:9600, nor a port");
            Error::option("metrics", what)
        })
    }

    /// Begins to serve. `watch` is [that](marquetry_tables::Destination::watch) of the destination.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `metrics`: the address cannot be listened on.
    pub fn serve(at: SocketAddr, watch: Option<Watch>) -> Result<Metrics> {
        let wrong = |error: io::Error| {
            Error::option("metrics", format!("{at} cannot be listened on: {}", marquetry_io::said(&error)))
        };
        let listener = TcpListener::bind(at).map_err(wrong)?;
        let shared = Arc::new(Shared { started: Instant::now(), copied: Mutex::default(), watch });
        let metrics = Metrics { shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new().name("marquetry-metrics".to_owned());
        thread
            .spawn(move || {
                for client in listener.incoming() {
                    match client {
                        // One at a time: whoever asks slowly is not waited for.
                        Ok(client) => drop(answer(client, &shared)),
                        // Such as too many open files: that may pass.
                        Err(_) => std::thread::sleep(REST),
                    }
                }
            })
            .map_err(wrong)?;
        Ok(metrics)
    }

    /// How far the copy is.
    pub fn copied(&self, copied: &Copied) {
        *self.shared.copied.lock().unwrap_or_else(PoisonError::into_inner) = *copied;
    }
}

fn answer(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let (mut head, mut some, asked) = (Vec::new(), [0; 1024], Instant::now());
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = client.read(&mut some)?;
        if read == 0 || head.len() + read > HEAD_BYTES_MAX || asked.elapsed() > PATIENCE {
            return Ok(());
        }
        head.extend_from_slice(&some[..read]);
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => ("200 OK", shared.page()),
        (Some("GET"), _) => ("404 Not Found", "/metrics is the only page\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET is the only method\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

impl Shared {
    /// The text format of Prometheus (<https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4).
    fn page(&self) -> String {
        let copied = *self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = self.watch.as_ref().map(|watch| watch());
        let written: Written = doing.map_or(copied.written, |doing| doing.written);
        let mut page = String::new();
        let mut add = |name: &str, kind: &str, help: &str, value: String| {
            let _ = write!(
                page,
                "# HELP marquetry_{name} {help}\n# TYPE marquetry_{name} {kind}\nmarquetry_{name} {value}\n"
            );
        };
        let mut count = |name: &str, help: &str, value: u64| add(name, "counter", help, value.to_string());
        count("rows_read_total", "Rows that were read.", copied.rows);
        count(
            "bytes_read_total",
            "Bytes of the input that were read, as far as they are counted.",
            copied.bytes_read,
        );
        count("rows_written_total", "Rows that were written; of a live table, acknowledged.", written.rows);
        count("bytes_written_total", "Bytes that were written.", written.bytes);
        count("retries_total", "Requests that were sent again.", written.retries);
        count("rows_rejected_total", "Rows that could not be loaded.", written.rejected);
        let mut gauge = |name: &str, help: &str, value: u64| add(name, "gauge", help, value.to_string());
        if let Some(doing) = doing {
            gauge("rows_in_flight", "Rows that were sent and not yet answered.", doing.in_flight);
            gauge("rows_in_flight_max", "Rows that may be in flight now.", doing.in_flight_max);
        }
        if let Some(rows) = copied.rows_total {
            gauge("rows", "Rows to be read.", rows);
        }
        let seconds = self.started.elapsed().as_secs_f64();
        add("seconds", "gauge", "Seconds since the copy began.", format!("{seconds:.3}"));
        page
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_tables::Doing;

    fn asked(at: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_page_says_how_far_it_is() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let watch: Watch = Arc::new(|| {
            let mut doing = Doing::default();
            (doing.written.rows, doing.in_flight, doing.in_flight_max) = (5, 2, 256);
            doing
        });
        let metrics = Metrics::serve(free, Some(watch)).unwrap();
        let mut copied = Copied::default();
        (copied.rows, copied.rows_total) = (7, Some(9));
        metrics.copied(&copied);
        let page = asked(free, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        for line in [
            "# TYPE marquetry_rows_read_total counter",
            "marquetry_rows_read_total 7",
            "marquetry_rows_written_total 5",
            "# TYPE marquetry_rows_in_flight gauge",
            "marquetry_rows_in_flight 2",
            "marquetry_rows 9",
        ] {
            assert!(page.lines().any(|found| found == line), "no {line} in {page}");
        }
        assert!(asked(free, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(asked(free, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        // It is taken.
        assert!(Metrics::serve(free, None).is_err());
    }

    #[test]
    fn addresses() {
        assert_eq!(Metrics::address("9600").unwrap().to_string(), "127.0.0.1:9600");
        assert_eq!(Metrics::address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert!(Metrics::address("localhost").is_err() && Metrics::address("1.2.3.4").is_err());
    }
}
