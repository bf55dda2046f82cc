//! How a table is read.

use std::ops::RangeInclusive;
use std::time::Duration;

use marquetry_base::Limits;
use marquetry_tables::{Cancel, TokenRange};

use crate::options::{ConnectOptions, Consistency, RETRY_FOR};
use crate::rate::Rate;

/// How a table is read.
///
/// ```
/// use marquetry_cluster::UnloadOptions;
///
/// let mut options = UnloadOptions::default();
/// options.with_metadata = true;
/// options.tokens = Some("0:".parse()?);
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnloadOptions {
    /// How to connect.
    pub connect: ConnectOptions,
    /// The consistency level: how many replicas are asked for each row.
    pub consistency: Consistency,
    /// How long a page is asked for again, when the cluster is overloaded or does not answer in time. The waits between grow from
    /// 0.1 s, doubling each time, to 5 s.
    pub retry_for: Duration,
    /// Only partitions with these tokens. `None`: all.
    pub tokens: Option<TokenRange>,
    /// Of these, partitions that were read before, and are not read again: ranges of tokens that ascend, in order.
    pub done: Vec<RangeInclusive<i64>>,
    /// The most rows and bytes a second, over all pieces.
    pub rate: Rate,
    /// Write times and times to live, too: rows are those of the `full` mapping of SSTables, otherwise those of the `logical` one.
    pub with_metadata: bool,
    /// Bytes that are worth a piece of their own, which is read beside the others, by the servers' estimates.
    pub piece_bytes: u64,
    /// Bytes of a page, about: rows are asked for by their number, which is chosen by the size of those that came.
    pub page_bytes: u64,
    /// Limits on sizes.
    pub limits: Limits,
    /// Cancels opening. A piece that is read ends with [`PieceOptions::cancel`](marquetry_tables::PieceOptions::cancel).
    pub cancel: Cancel,
}

/// Bytes that are worth a piece by default.
pub const PIECE_BYTES: u64 = 32 << 20;
/// Bytes of a page by default: as many as ScyllaDB sends at most.
pub const PAGE_BYTES: u64 = 1 << 20;

impl Default for UnloadOptions {
    fn default() -> UnloadOptions {
        UnloadOptions {
            connect: ConnectOptions::default(),
            consistency: Consistency::LocalQuorum,
            retry_for: RETRY_FOR,
            tokens: None,
            done: Vec::new(),
            rate: Rate::default(),
            with_metadata: false,
            piece_bytes: PIECE_BYTES,
            page_bytes: PAGE_BYTES,
            limits: Limits::DEFAULT,
            cancel: Cancel::new(),
        }
    }
}
