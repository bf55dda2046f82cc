//! Where partitions are in the data: by their key, by their tokens, and in parts of about the same size.
//!
//! ```text
//!  Summary.db ──► Index.db ────────────────┐                       the partition's key
//!                                          ├──► a place in the data ─────────────────────► Pieces
//!  Partitions.db ──► perhaps Rows.db ──────┘                            in Data.db
//! ```
//!
//! Everything here is one search: for the first partition whose token is not less than another. The start and the end of a token range are
//! found by it; and SSTables are split at tokens, as those of a table must be to be merged piece by piece. Only what the search needs is
//! asked for: some blocks of 4 KiB, and the chunk of Data.db that an answer begins in.
//!
//! **Indexes have no checksums** (apart from digests in ScyllaDB's Scylla.db, which are of whole files). So no answer is given before the
//! key that is there in the data has been compared with what the index says; and where an index ends, or begins, the first and the last
//! key must do so, too, which other places have. A partition that a corrupt index has lost between those is not noticed here: who reads
//! a piece finds it there, with a token that is not the piece's.

mod big;
mod key;
mod node;
mod search;
mod summary;
mod trie;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use marquetry_base::cast::low_u8;
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Failed, Limits, Machine, Object, Release, Result, Step,
};

use self::big::BigSearch;
use self::key::{KeyReader, Read};
use self::search::{Candidate, Expected, Move, Target};
use self::trie::{TrieSearch, has_prefix};
use super::chunks::{Packing, of_data};
use super::elements::{Elements, Going};
use super::token::{murmur3_hash, murmur3_token, token_of};

pub use summary::{Sample, Summary, SummaryParser, SummaryReader};

/// The files that a [`PartitionFinder`] reads. Each is an object of its own.
#[derive(Debug, Clone)]
pub enum IndexFiles {
    /// Of an SSTable with [`IndexKind::Big`](super::IndexKind::Big).
    Big {
        /// Index.db.
        index: Object,
        /// What Summary.db has. Without it Index.db is read from its start.
        summary: Option<Arc<Summary>>,
    },
    /// Of an SSTable with [`IndexKind::Trie`](super::IndexKind::Trie).
    Trie {
        /// Partitions.db.
        partitions: Object,
        /// Rows.db.
        rows: Object,
    },
}

/// An SSTable whose partitions can be found.
#[derive(Clone)]
pub struct IndexedData {
    /// Its index.
    pub index: IndexFiles,
    /// Its Data.db, of which keys are read.
    pub data: Object,
    /// How that is compressed.
    pub packing: Packing,
    /// Codecs for it.
    pub codecs: Arc<dyn Codecs>,
    /// The class of its partitioner, as [`Statistics`](super::statistics::Statistics) say it. Without Murmur3Partitioner there are no
    /// tokens: then only keys are found, by reading all of Index.db.
    pub partitioner: String,
    /// The keys of its first and its last partition, where the [statistics](super::statistics::Stats::key_range) have them: an index that
    /// has others is corrupt. (Summary.db and Partitions.db have them, too.)
    pub ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl core::fmt::Debug for IndexedData {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IndexedData").field("index", &self.index).finish_non_exhaustive()
    }
}

/// What is to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// A partition, by its serialized key: one piece, or none if it is not there.
    Key(Vec<u8>),
    /// The partitions whose tokens are in a range: one piece, perhaps of no bytes. (What Cassandra calls the range `(a, b]` is `a + 1..=b`.)
    Tokens(RangeInclusive<i64>),
    /// Everything, in at most so many pieces of about the same size, none of them without bytes. Pieces end where partitions do; so there
    /// are fewer, and they are less alike, if there are few partitions or large ones.
    Split(u32),
    /// The last partition that an Index.db has: one piece, up to the end of the data. Where neither Summary.db nor statistics say which one
    /// that must be, reading the piece does: it has other partitions, too, if the index was cut.
    Last,
}

/// A part of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The tokens of its partitions. All partitions of the SSTable that have such a token are in it.
    pub tokens: RangeInclusive<i64>,
    /// Its bytes, uncompressed: for [`DataOptions::range`](super::DataOptions::range).
    pub data: Range<u64>,
}

/// All tokens.
pub const ALL_TOKENS: RangeInclusive<i64> = i64::MIN..=i64::MAX;

/// Finds partitions: its one product is the pieces of the data that a [`Query`] asks for, in their order.
///
/// Asks for the objects' lengths, and then for what it needs of them.
#[derive(Debug)]
pub struct PartitionFinder {
    search: Search,
    keys: KeyReader,
    is_murmur3: bool,
    /// The tokens of the first and of the last partition, as the statistics have them.
    ends: Option<(i64, i64)>,
    query: Query,
    task: Task,
    /// What the search has found, while its key is read.
    candidate: Option<Candidate>,
    split: Split,
    /// The token of what was found last.
    last: i64,
    pieces: Vec<Piece>,
    failed: Failed,
}

#[derive(Debug)]
enum Search {
    Big(Box<BigSearch>),
    Trie(Box<TrieSearch>),
}

/// What the search is for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    /// The length of the data is not known yet.
    Begin,
    /// The partition, or the first of a range.
    Start,
    /// What follows it.
    End {
        start: u64,
    },
    /// A token to split at: tried, or taken.
    Try {
        token: i64,
    },
    Border {
        token: i64,
    },
    Done,
}

/// How far an SSTable has been split.
#[derive(Debug, Default)]
struct Split {
    /// The next border, of `pieces - 1`.
    next: u32,
    /// Where it should be; a border before that and one after it, by their tokens and places.
    wanted: u64,
    low: (i128, u64),
    high: (i128, u64),
    tries: u32,
    /// Tries that found no other places than those.
    vain: u32,
    /// The border that is nearest so far.
    best: Option<(i64, u64)>,
}

/// The most tokens that are tried for one border. Tokens are spread evenly, so most borders take one or two; where a partition is as large
/// as a piece, every second try halves what is left.
const TRIES_MAX: u32 = 64;
/// The most tries in vain: few partitions have tokens in a thousandth of those that are left.
const VAIN_MAX: u32 = 20;
/// A border may be off by this part of a piece.
const TOLERANCE: u64 = 32;
/// The most pieces: they are one list.
const PIECES_MAX: u32 = 16 << 10;

impl PartitionFinder {
    /// A finder in an SSTable.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for tokens of an SSTable whose partitioner is not
    /// Murmur3Partitioner, and for keys in a trie of one; [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for no pieces, or more
    /// than 16,384.
    pub fn new(of: &IndexedData, query: Query, limits: Limits) -> Result<PartitionFinder> {
        let is_murmur3 = of.partitioner.rsplit('.').next() == Some("Murmur3Partitioner");
        let is_trie = matches!(of.index, IndexFiles::Trie { .. });
        if !is_murmur3 && (is_trie || !matches!(query, Query::Key(_))) {
            return Err(Error::unsupported(format!("tokens of {}", of.partitioner)));
        }
        if is_trie && query == Query::Last {
            return Err(Error::unsupported("the last partition by a trie: Partitions.db says its key"));
        }
        if let Query::Split(pieces) = query
            && (pieces == 0 || pieces > PIECES_MAX)
        {
            return Err(Error::option("Query::Split", format!("{pieces} pieces")));
        }
        let search = match &of.index {
            IndexFiles::Big { index, summary } => {
                Search::Big(Box::new(BigSearch::new(*index, summary.clone(), is_murmur3, &limits)))
            }
            IndexFiles::Trie { partitions, rows } => {
                Search::Trie(Box::new(TrieSearch::new(*partitions, *rows, &limits)))
            }
        };
        Ok(PartitionFinder {
            search,
            keys: KeyReader::new(of.data, of.packing.clone(), of.codecs.clone(), limits),
            is_murmur3,
            ends: of.ends.as_ref().map(|(first, last)| (murmur3_token(first), murmur3_token(last))),
            query,
            task: Task::Begin,
            candidate: None,
            split: Split::default(),
            last: i64::MAX,
            pieces: Vec::new(),
            failed: Failed::default(),
        })
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Vec<Piece>>> {
        loop {
            let data_bytes = match self.keys.data_bytes() {
                Ok(bytes) => bytes,
                Err(demand) => return Ok(Step::Need(demand)),
            };
            match self.task {
                Task::Begin => {
                    self.begin(data_bytes);
                    if self.task == Task::Done {
                        return Ok(Step::Ready(core::mem::take(&mut self.pieces)));
                    }
                }
                Task::Done => return Ok(Step::Done),
                _ => match self.go_on(data_bytes, budget)? {
                    Turn::More => {}
                    Turn::Found(place) => {
                        self.found(place, data_bytes)?;
                        if self.task == Task::Done {
                            return Ok(Step::Ready(core::mem::take(&mut self.pieces)));
                        }
                    }
                    Turn::Need(demand) => return Ok(Step::Need(demand)),
                    Turn::Yield => return Ok(Step::Yield),
                },
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    fn begin(&mut self, data_bytes: u64) {
        match &self.query {
            _ if data_bytes == 0 => {
                if let Query::Tokens(tokens) = &self.query {
                    self.pieces.push(Piece { tokens: tokens.clone(), data: 0..0 });
                }
                self.task = Task::Done;
            }
            Query::Key(key) => {
                let hash = murmur3_hash(key);
                let token = if key.is_empty() { i64::MIN } else { token_of(hash) };
                let target = Target::Key { key: key.clone(), token, hash: low_u8(hash[1]) };
                self.search_for(target, Task::Start);
            }
            Query::Tokens(tokens) if tokens.is_empty() => {
                self.pieces.push(Piece { tokens: tokens.clone(), data: 0..0 });
                self.task = Task::Done;
            }
            Query::Tokens(tokens) => {
                let target = Target::Token(*tokens.start());
                self.search_for(target, Task::Start);
            }
            Query::Last => self.search_for(Target::Last, Task::Start),
            Query::Split(_) => {
                self.pieces.push(Piece { tokens: ALL_TOKENS, data: 0..data_bytes });
                self.next_border(data_bytes);
            }
        }
    }

    fn search_for(&mut self, target: Target, task: Task) {
        self.task = task;
        self.candidate = None;
        match &mut self.search {
            Search::Big(search) => search.begin(target),
            Search::Trie(search) => search.begin(target),
        }
    }

    /// Goes on with the search, or with reading the key of what it found.
    fn go_on(&mut self, data_bytes: u64, budget: &mut Budget<'_>) -> Result<Turn> {
        if self.candidate.is_some() {
            return self.judge(budget);
        }
        let going = match &mut self.search {
            Search::Big(search) => search.advance(budget)?,
            Search::Trie(search) => search.advance(budget)?,
        };
        let candidate = match going {
            Going::Need(demand) => return Ok(Turn::Need(demand)),
            Going::Done(Move::On) => return Ok(Turn::More),
            Going::Done(Move::End) => {
                self.check_ends(None)?;
                return Ok(Turn::Found(None));
            }
            Going::Done(Move::To(candidate)) => candidate,
        };
        if candidate.position >= data_bytes {
            let message = format!("a partition at byte {} of {data_bytes} of the data", candidate.position);
            return Err(self.index().fault(Error::corrupt(message)));
        }
        // Where a border is only tried, its place is all that is needed of it.
        if candidate.is_answer
            && let Task::Try { .. } = self.task
        {
            self.check_ends(Some(candidate.position))?;
            return Ok(Turn::Found(Some(candidate.position)));
        }
        self.keys.begin(candidate.position);
        self.candidate = Some(candidate);
        Ok(Turn::More)
    }

    /// Reads the key where the index says a partition is, and compares it with what it should be.
    fn judge(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let key = match self.keys.advance(budget)? {
            Read::Key(key) => key,
            Read::Need(demand) => return Ok(Turn::Need(demand)),
            Read::Yield => return Ok(Turn::Yield),
        };
        let Some(candidate) = self.candidate.take() else {
            return Err(Error::internal("a key of nothing that was found"));
        };
        budget.charge(super::elements::ELEMENT_PRICE, key.len(), 1);
        let token = if self.is_murmur3 { murmur3_token(&key) } else { 0 };
        let is_right = match &candidate.expected {
            Expected::Key(expected) => *expected == key,
            Expected::Prefix(prefix) => has_prefix(token, prefix),
        };
        if !is_right {
            let position = candidate.position;
            let message = format!(
                "another partition is at byte {position} of the uncompressed data than the index says"
            );
            let offset = self.keys.file_offset(position);
            return Err(of_data(Error::corrupt(message).at_offset(offset)));
        }
        let is_answer = match (&self.query, self.task) {
            (Query::Key(wanted), Task::Start) => *wanted == key,
            _ => candidate.is_answer || token >= self.token_wanted(),
        };
        if is_answer {
            self.last = token;
            self.check_ends(Some(candidate.position))?;
            return Ok(Turn::Found(Some(candidate.position)));
        }
        match &mut self.search {
            Search::Trie(search) if matches!(self.query, Query::Key(_)) => search.go_on_among_equals(),
            Search::Trie(search) => search.go_on(),
            Search::Big(_) => return Err(Error::internal("an entry that has another key than it has")),
        }
        Ok(Turn::More)
    }

    /// Compares what was found, or that there is nothing, with the first and the last partition: their keys are known from elsewhere.
    fn check_ends(&mut self, place: Option<u64>) -> Result<()> {
        if !self.is_murmur3 {
            return Ok(());
        }
        let of_index = match &self.search {
            Search::Big(search) => search.ends(),
            Search::Trie(search) => search.ends(),
        };
        // After a key comes the next one, whatever its token.
        let last_of_query = match (&self.query, self.task) {
            (Query::Key(key), Task::End { .. }) => Some(murmur3_token(key)),
            (Query::Key(_) | Query::Last, _) => return Ok(()),
            _ => None,
        };
        let wanted = self.token_wanted();
        for (first, last) in self.ends.into_iter().chain(of_index) {
            let is_right = match (place, last_of_query) {
                (None, Some(token)) => token == last,
                (Some(_), Some(_)) => true,
                (None, None) => last < wanted,
                (Some(place), None) => wanted > first || place == 0,
            };
            if !is_right {
                let message = match place {
                    None => "it ends before the SSTable's last partition",
                    Some(_) => "it does not begin with the SSTable's first partition",
                };
                return Err(self.index().fault(Error::corrupt(message)));
            }
        }
        Ok(())
    }

    /// The least token of what is searched for.
    fn token_wanted(&self) -> i64 {
        match (&self.query, self.task) {
            (_, Task::Try { token } | Task::Border { token }) => token,
            (Query::Tokens(tokens), Task::Start) => *tokens.start(),
            // (Only if there is one greater.)
            (Query::Tokens(tokens), _) => tokens.end().saturating_add(1),
            _ => i64::MIN,
        }
    }

    /// What was searched for is at this place; or nowhere.
    fn found(&mut self, place: Option<u64>, data_bytes: u64) -> Result<()> {
        match (&self.query, self.task) {
            (Query::Key(_), Task::Start) => match place {
                None => self.task = Task::Done,
                Some(start) => {
                    self.task = Task::End { start };
                    match &mut self.search {
                        Search::Big(search) => search.go_on(),
                        Search::Trie(search) => search.go_on(),
                    }
                }
            },
            (Query::Tokens(tokens), Task::Start) => {
                let (start, end) = (place.unwrap_or(data_bytes), *tokens.end());
                match end.checked_add(1).filter(|_| start < data_bytes) {
                    Some(after) => self.search_for(Target::Token(after), Task::End { start }),
                    None => self.end(start, data_bytes)?,
                }
            }
            (Query::Last, Task::Start) => self.end(place.unwrap_or(data_bytes), data_bytes)?,
            (_, Task::End { start }) => self.end(start, place.unwrap_or(data_bytes))?,
            (Query::Split(_), Task::Try { token }) => {
                self.tried(token, place.unwrap_or(data_bytes), data_bytes);
            }
            (Query::Split(_), Task::Border { token }) => {
                let place = place.unwrap_or(data_bytes);
                // What was tried was taken for the border without a look at its key.
                if let Some(last) = self.pieces.last_mut()
                    && place > last.data.start
                    && place < data_bytes
                    && token > *last.tokens.start()
                {
                    let (tokens, data) = (last.tokens.clone(), last.data.clone());
                    (last.tokens, last.data) = (*tokens.start()..=token - 1, data.start..place);
                    self.pieces.push(Piece { tokens: token..=*tokens.end(), data: place..data.end });
                }
                self.next_border(data_bytes);
            }
            _ => return Err(Error::internal("something was found that nothing searched for")),
        }
        Ok(())
    }

    /// The end of what is searched for was found.
    fn end(&mut self, start: u64, end: u64) -> Result<()> {
        if end < start || (end == start && matches!(self.query, Query::Key(_))) {
            let message = format!("partitions that end at byte {end} of the data, but begin at {start}");
            return Err(self.index().fault(Error::corrupt(message)));
        }
        let tokens = match &self.query {
            Query::Key(key) if self.is_murmur3 => {
                let token = murmur3_token(key);
                token..=token
            }
            Query::Tokens(tokens) => tokens.clone(),
            Query::Last => self.last..=self.last,
            _ => ALL_TOKENS,
        };
        self.pieces.push(Piece { tokens, data: start..end });
        self.task = Task::Done;
        Ok(())
    }

    /// Begins to search for the next border, or ends.
    fn next_border(&mut self, data_bytes: u64) {
        let Query::Split(pieces) = self.query else { return };
        let split = &mut self.split;
        split.next += 1;
        let Some(last) = self.pieces.last().filter(|_| split.next < pieces) else {
            self.task = Task::Done;
            return;
        };
        let wanted = u128::from(data_bytes) * u128::from(split.next) / u128::from(pieces);
        split.wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        split.low = (i128::from(*last.tokens.start()), last.data.start);
        split.high = (i128::from(i64::MAX) + 1, data_bytes);
        (split.tries, split.vain, split.best) = (0, 0, None);
        self.try_another(data_bytes);
    }

    /// A border that was tried is at this place.
    fn tried(&mut self, token: i64, place: u64, data_bytes: u64) {
        let Query::Split(pieces) = self.query else { return };
        let split = &mut self.split;
        let off = |at: u64| at.abs_diff(split.wanted);
        if split.best.is_none_or(|(_, best)| off(place) < off(best)) {
            split.best = Some((token, place));
        }
        split.vain = if place == split.low.1 || place == split.high.1 { split.vain + 1 } else { 0 };
        match place < split.wanted {
            true => split.low = (i128::from(token), place.max(split.low.1)),
            false => split.high = (i128::from(token), place.min(split.high.1)),
        }
        let tolerance = data_bytes / (u64::from(pieces) * TOLERANCE);
        match split.best {
            Some((token, best)) if off(best) <= tolerance => {
                self.search_for(Target::Token(token), Task::Border { token })
            }
            _ => self.try_another(data_bytes),
        }
    }

    /// Tries another token between the two that are too small and too great; or takes the best one.
    fn try_another(&mut self, data_bytes: u64) {
        let split = &mut self.split;
        let ((low, low_at), (high, high_at)) = (split.low, split.high);
        let is_enough = split.tries >= TRIES_MAX || split.vain >= VAIN_MAX;
        if is_enough || high - low <= 1 || low_at >= split.wanted {
            return match split.best {
                Some((token, _)) => self.search_for(Target::Token(token), Task::Border { token }),
                None => self.next_border(data_bytes),
            };
        }
        split.tries += 1;
        let (part, all) = match split.tries % 2 {
            1 => (i128::from(split.wanted - low_at), i128::from((high_at - low_at).max(1))),
            _ => (1, 2),
        };
        let token = (low + (high - low) * part / all).clamp(low + 1, high - 1);
        let token = i64::try_from(token).unwrap_or(i64::MAX);
        self.search_for(Target::Token(token), Task::Try { token });
    }

    /// The file of the index that errors name.
    fn index(&mut self) -> &mut Elements {
        match &mut self.search {
            Search::Big(search) => search.elements(),
            Search::Trie(search) => {
                let [partitions, _] = search.elements();
                partitions
            }
        }
    }

    /// The file that an object is; `None` if it is the data.
    fn file(&mut self, object: Object) -> Result<Option<&mut Elements>> {
        if object == self.keys.object() {
            return Ok(None);
        }
        let of_object = |elements: &Elements| elements.check_object(object).is_ok();
        let found = match &mut self.search {
            Search::Big(search) => Some(search.elements()).filter(|elements| of_object(elements)),
            Search::Trie(search) => search.elements().into_iter().find(|elements| of_object(elements)),
        };
        found.map(Some).ok_or_else(|| Error::misuse("an object that is not this machine's"))
    }
}

/// What a turn of the search came to.
enum Turn {
    More,
    Found(Option<u64>),
    Need(Demand),
    Yield,
}

impl Machine for PartitionFinder {
    type Product = Vec<Piece>;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Vec<Piece>>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        let is_over = self.task == Task::Done || self.failed.is_set();
        match self.file(object)? {
            _ if is_over => Ok(()),
            Some(elements) => elements.supply(object, &range, bytes),
            None => self.keys.supply(&range, bytes),
        }
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        let failure = match self.file(object)? {
            Some(elements) => elements.supply_length(object, length)?,
            None => return self.keys.supply_length(length),
        };
        if let Err(error) = failure {
            self.failed.set(error);
        }
        Ok(())
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if self.file(object).is_ok() {
            self.failed.set(reason);
        }
    }
}

/// For a finder that is no longer wanted, or has failed.
impl Release for PartitionFinder {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let search: &mut dyn Release = match &mut self.search {
            Search::Big(search) => search.as_mut(),
            Search::Trie(search) => &mut **search,
        };
        search.release(budget) && self.keys.release(budget)
    }
}
