//! What the object class is asked for: requests, as `docs/ceph.md` describes them.

use marquetry_base::Frame;

/// How a request begins.
pub(crate) const REQUEST: [u8; 4] = *b"MQQ1";

/// The numbers of a request's fields.
const COLUMN: u16 = 1;
const WHERE: u16 = 2;
const AGGREGATE: u16 = 3;
const LIMIT: u16 = 4;
const CURSOR: u16 = 5;
const UNITS: u16 = 6;
const ANSWER_BYTES: u16 = 7;
const GROUP_BY: u16 = 8;
const LEAF: u16 = 9;
const FORMAT: u16 = 10;
const FILE: u16 = 11;

/// The forms of rows, besides an Arrow IPC stream.
const PARQUET: u8 = 2;
const COUNT: u8 = 3;

/// A query of an object: all its rows, unless something else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    columns: Vec<String>,
    predicate: Option<String>,
    aggregates: Vec<String>,
    groups: Vec<String>,
    leaves: Vec<String>,
    format: Option<u8>,
    limit: Option<u64>,
    units: Option<u64>,
    answer_bytes: Option<u64>,
}

impl Asked {
    /// All columns of all rows.
    pub fn new() -> Asked {
        Asked::default()
    }

    /// This column, or this field of one, beside others that are named: `id`, `place.lat`.
    #[must_use]
    pub fn column(mut self, path: impl Into<String>) -> Asked {
        self.columns.push(path.into());
        self
    }

    /// This leaf of the object's schema, by the names on the way to it as the object has them, beside others that are named so. Leaves take the
    /// place of columns, and come in the object's order.
    #[must_use]
    pub fn leaf<S: AsRef<str>>(mut self, names: &[S]) -> Asked {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.leaves.push(names.join("\0"));
        self
    }

    /// Rows, or aggregates, as a Parquet file in each answer, instead of an Arrow IPC stream: rows of the object's own types.
    #[must_use]
    pub fn as_parquet(mut self) -> Asked {
        self.format = Some(PARQUET);
        self
    }

    /// No rows, only how many there are.
    #[must_use]
    pub fn counted(mut self) -> Asked {
        self.format = Some(COUNT);
        self
    }

    /// Only rows for which this is true. The words are those of `find`.
    #[must_use]
    pub fn predicate(mut self, text: impl Into<String>) -> Asked {
        self.predicate = Some(text.into());
        self
    }

    /// An aggregate instead of rows: `count(*)`, or `count`, `sum`, `min` or `max` of a column. Each answer has those of a part
    /// of the rows, which are put together by who asks.
    #[must_use]
    pub fn aggregate(mut self, text: impl Into<String>) -> Asked {
        self.aggregates.push(text.into());
        self
    }

    /// Aggregates for each group of rows that have the same value in this column, and in others that are named so. A group of several answers
    /// is put together by who asks.
    #[must_use]
    pub fn group_by(mut self, path: impl Into<String>) -> Asked {
        self.groups.push(path.into());
        self
    }

    /// As many rows at most.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Asked {
        self.limit = Some(rows);
        self
    }

    /// What a call may do before it ends: units of about a nanosecond of work in the OSD, and bytes of rows.
    #[must_use]
    pub fn share(mut self, units: u64, answer_bytes: u64) -> Asked {
        (self.units, self.answer_bytes) = (Some(units), Some(answer_bytes));
        self
    }

    /// Whether aggregates are asked for.
    pub(crate) fn is_aggregated(&self) -> bool {
        !self.aggregates.is_empty()
    }

    /// The rows that are wanted in all.
    pub(crate) fn rows_wanted(&self) -> Option<u64> {
        self.limit
    }

    /// The request of a call: the first one, or the one that goes on at a cursor, with as many rows still wanted.
    pub(crate) fn request(&self, cursor: Option<&[u8]>, wanted: Option<u64>) -> Vec<u8> {
        let mut frame = Frame::new(REQUEST);
        for column in &self.columns {
            frame.push(COLUMN, column.as_bytes());
        }
        for leaf in &self.leaves {
            frame.push(LEAF, leaf.as_bytes());
        }
        if let Some(format) = self.format {
            frame.push(FORMAT, &[format]);
        }
        for aggregate in &self.aggregates {
            frame.push(AGGREGATE, aggregate.as_bytes());
        }
        for group in &self.groups {
            frame.push(GROUP_BY, group.as_bytes());
        }
        if let Some(predicate) = &self.predicate {
            frame.push(WHERE, predicate.as_bytes());
        }
        if let Some(cursor) = cursor {
            frame.push(CURSOR, cursor);
        }
        for (number, value) in [(LIMIT, wanted), (UNITS, self.units), (ANSWER_BYTES, self.answer_bytes)] {
            if let Some(value) = value {
                frame.push_u64(number, value);
            }
        }
        frame.into_bytes()
    }
}

/// The request that adds the rows of a file to an object.
pub(crate) fn merge_request(file: &[u8]) -> Vec<u8> {
    let mut frame = Frame::new(REQUEST);
    frame.push(FILE, file);
    frame.into_bytes()
}
