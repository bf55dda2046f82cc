//! Just enough of CQL's protocol to run statements on a test's server, and to see values as it sends them.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
}

/// A row: null, or the value's bytes.
pub(crate) type Values = Vec<Option<Vec<u8>>>;

const VERSION: u8 = 4;
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const QUERY: u8 = 0x07;
const ROWS: i32 = 2;
const GLOBAL_TABLE: i32 = 1;

impl Connection {
    pub(crate) fn open(at: &str) -> Connection {
        let mut connection = Connection { stream: TcpStream::connect(at).expect("a server") };
        let mut body = 1_u16.to_be_bytes().to_vec();
        for text in ["CQL_VERSION", "3.0.0"] {
            body.extend(u16::try_from(text.len()).expect("short").to_be_bytes());
            body.extend(text.as_bytes());
        }
        connection.ask(STARTUP, &body);
        connection
    }

    /// Runs a statement.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub(crate) fn run(&mut self, statement: &str) -> Vec<Values> {
        let mut body = i32::try_from(statement.len()).expect("short").to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        // Of one node, and with nothing else.
        body.extend([0, 1, 0]);
        let (code, answer) = self.ask(QUERY, &body);
        assert_ne!(code, ERROR, "{statement}: {}", String::from_utf8_lossy(&answer));
        let mut answer = Answer { rest: &answer };
        if answer.int() == ROWS { answer.rows() } else { Vec::new() }
    }

    fn ask(&mut self, code: u8, body: &[u8]) -> (u8, Vec<u8>) {
        let mut frame = vec![VERSION, 0, 0, 0, code];
        frame.extend(u32::try_from(body.len()).expect("short").to_be_bytes());
        frame.extend(body);
        self.stream.write_all(&frame).expect("written");
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).expect("an answer");
        let length = u32::from_be_bytes(head[5..].try_into().expect("four bytes"));
        let mut answer = vec![0; length as usize];
        self.stream.read_exact(&mut answer).expect("an answer");
        (head[4], answer)
    }
}

struct Answer<'a> {
    rest: &'a [u8],
}

impl Answer<'_> {
    fn take(&mut self, count: usize) -> &[u8] {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn skip_text(&mut self) {
        let length = self.short();
        self.take(usize::from(length));
    }

    fn skip_type(&mut self) {
        match self.short() {
            0x00 => self.skip_text(),
            0x20 | 0x22 => self.skip_type(),
            0x21 => {
                self.skip_type();
                self.skip_type();
            }
            0x30 => {
                self.skip_text();
                self.skip_text();
                for _ in 0..self.short() {
                    self.skip_text();
                    self.skip_type();
                }
            }
            0x31 => (0..self.short()).for_each(|_| self.skip_type()),
            _ => {}
        }
    }

    fn rows(&mut self) -> Vec<Values> {
        let (flags, columns) = (self.int(), self.int());
        if flags & GLOBAL_TABLE != 0 {
            self.skip_text();
            self.skip_text();
        }
        for _ in 0..columns {
            if flags & GLOBAL_TABLE == 0 {
                self.skip_text();
                self.skip_text();
            }
            self.skip_text();
            self.skip_type();
        }
        let rows = self.int();
        (0..rows).map(|_| (0..columns).map(|_| self.value()).collect()).collect()
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.int()).ok()?;
        Some(self.take(length).to_vec())
    }
}
