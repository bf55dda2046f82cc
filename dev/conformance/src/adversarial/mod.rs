//! Files that are as hard as can be on a reader that must never stall, at any scale: huge pages, values, dictionaries, footers; too
//! many of everything; structures that are legal, and nearly so.
//!
//! Their bytes are computed where they are read, so a page of a gibibyte takes no memory but the reader's. What each holds, or why it
//! is refused, is known by construction.

mod computed;
mod costly;
mod files;
mod streams;

use std::ops::Range;

use marquetry_base::{Bytes, ErrorKind, Limits, Result};
use marquetry_io::ByteSource;

pub use computed::Computed;
pub use streams::{CODECS, ENCODINGS, Make, ValueOf, Values, compress, lz4_sequence};

/// A file.
#[derive(Debug, Clone)]
pub struct Adversary {
    /// What it is called.
    pub name: String,
    /// Its bytes.
    pub file: Computed,
    /// What reading it must give.
    pub expected: Expected,
    /// The limits that it is read with.
    pub limits: Limits,
    /// Whether it is read with a slot for each null.
    pub has_slots: bool,
    /// Bytes that a reader may hold of it at once, beside what it holds of any file: of a page that has to be held whole, the page.
    pub held_bytes: u64,
}

/// What reading a file must give.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// So many rows; each value of the only column, unless it has none.
    Rows(u64, Option<ValueOf>),
    /// An error of this kind, whose message has this part.
    Error(ErrorKind, &'static str),
}

/// How large the files are.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a dictionary.
    pub dictionary_bytes: u64,
    /// Bytes of a string, and of the value of a key.
    pub string_bytes: u64,
    /// Columns of a footer.
    pub columns: u64,
    /// Pages of one value each.
    pub pages: u64,
    /// Row groups without rows.
    pub row_groups: u64,
    /// Entries of a row, members of a gzip.
    pub entries: u64,
    /// Elements of a large row.
    pub elements: u64,
}

impl Scale {
    /// As large as reads in seconds.
    pub const SMALL: Scale = Scale {
        page_bytes: 1 << 20,
        dictionary_bytes: 2 << 20,
        string_bytes: 3 << 20,
        columns: 2_000,
        pages: 20_000,
        row_groups: 20_000,
        entries: 50_000,
        elements: 600_000,
    };

    /// As large as anything that is promised.
    pub const FULL: Scale = Scale {
        page_bytes: 1 << 30,
        dictionary_bytes: 200_000_000,
        string_bytes: 500_000_000,
        columns: 100_000,
        pages: 10_000_000,
        row_groups: 1_000_000,
        entries: 1_000_000,
        elements: 50_000_000,
    };

    /// Pages of so many MiB, and all else as large as it is at full scale beside pages of a gibibyte.
    pub fn of_pages(mib: u64) -> Scale {
        let part = |whole: u64| (whole * mib).div_ceil(1 << 10);
        let Scale {
            page_bytes,
            dictionary_bytes,
            string_bytes,
            columns,
            pages,
            row_groups,
            entries,
            elements,
        } = Scale::FULL;
        Scale {
            page_bytes: part(page_bytes),
            dictionary_bytes: part(dictionary_bytes),
            string_bytes: part(string_bytes),
            columns: part(columns),
            pages: part(pages),
            row_groups: part(row_groups),
            entries: part(entries),
            elements: part(elements),
        }
    }
}

/// The names of all files.
pub fn names() -> Vec<String> {
    let pages = CODECS
        .iter()
        .flat_map(|(codec, _)| ENCODINGS.iter().map(move |(encoding, _)| format!("page/{codec}/{encoding}")));
    pages.chain(others().map(|(name, _)| (*name).to_owned())).collect()
}

/// Files of which something is larger than 1 MiB in one piece by need: a part of the name, and what it is. The list should become
/// shorter.
pub const IN_ONE_PIECE: &[(&str, &str)] = &[
    ("page/brotli/", "a window that copies refer back in, by 16 MiB at most"),
    ("brotli/far_copies", "a window that copies refer back in, by 16 MiB at most"),
    ("zstd/far_matches", "a window that matches refer back in, by 128 MiB at most"),
    ("zstd/largest_window", "the library's window, of 2 MiB and two blocks at most"),
    ("string/", "a value, which is one slice"),
    ("fixed/", "a value, which is one slice"),
    ("dictionary/one_string", "a value, which is one slice"),
    ("row/", "an array of a batch, which is one slice"),
    ("levels/one_row", "an array of a batch, which is one slice"),
    ("footer/key_value", "a string of the metadata"),
    ("footer/statistics", "a bound, which is one string"),
];

/// What of a file is larger than 1 MiB in one piece, by need.
pub fn in_one_piece(name: &str) -> Option<&'static str> {
    IN_ONE_PIECE.iter().find(|(part, _)| name.contains(part)).map(|(_, what)| *what)
}

/// All but the large pages.
fn others() -> impl Iterator<Item = &'static (&'static str, files::Make)> {
    files::FILES.iter().chain(costly::FILES)
}

/// A file by its name.
pub fn make(name: &str, scale: &Scale) -> Option<Adversary> {
    let made = match name.strip_prefix("page/") {
        Some(rest) => {
            let (codec, encoding) = rest.split_once('/')?;
            let (_, codec) = CODECS.iter().find(|(name, _)| *name == codec)?;
            let (_, values) = ENCODINGS.iter().find(|(name, _)| *name == encoding)?;
            files::one_page(&values(scale.page_bytes), *codec)
        }
        None => others().find(|(known, _)| *known == name)?.1(scale),
    };
    Some(Adversary { name: name.to_owned(), ..made })
}

impl Adversary {
    fn new(file: Computed, expected: Expected) -> Adversary {
        let (name, limits) = (String::new(), Limits::DEFAULT);
        Adversary { name, file, expected, limits, has_slots: false, held_bytes: 0 }
    }

    fn holding(self, held_bytes: u64) -> Adversary {
        Adversary { held_bytes, ..self }
    }

    fn within(self, limits: Limits) -> Adversary {
        Adversary { limits, ..self }
    }
}

impl ByteSource for Adversary {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> Result<u64> {
        Ok(self.file.len())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.file.read(range))
    }
}
