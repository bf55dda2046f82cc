//! Objects that are read: any range of them, several at once, and ahead of who reads.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Error, Result};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStoreExt};

use super::address::Scheme;
use super::allowance::{Asking, Held};
use super::connect::Remote;
use super::failure::{failed, is_answered};
use super::runtime::{Pending, start, wait};
use crate::source::beyond_end;
use crate::{ByteSource, ObjectVersion};

/// The most bytes of a request: what fails is asked for again, and a longer range takes several, side by side.
const PIECE_BYTES: u64 = 8 << 20;
/// Bytes that are fetched, or wait to be read, ahead of who reads an object. All objects together have an
/// [allowance](super::allowance).
const AHEAD_BYTES: u64 = 32 << 20;
/// Bytes that are held when what was fetched ahead gives way to what is needed at once.
const HELD_BYTES: u64 = 2 * AHEAD_BYTES;
/// Ranges that are planned. Whoever reads says later what comes after them.
const PLANNED: usize = 4096;
/// Requests at a time for one object.
const REQUESTS: usize = 8;
/// Bytes at an object's end that are fetched when it is opened: they hold most Parquet files' footers.
const TAIL_BYTES: u64 = 64 << 10;
/// Bytes of the first request of a stream. Each further one is twice as long, because many streams are only looked into.
const STREAM_BYTES: u64 = 1 << 20;

/// What is known of an object after one request.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) version: ObjectVersion,
    /// Its last bytes, maybe none.
    tail: Bytes,
}

/// A request for that.
pub(super) type Asked = Pending<object_store::Result<Opened>>;

impl Opened {
    /// An object that had this version before.
    pub(super) fn again(version: ObjectVersion) -> Opened {
        Opened { version, tail: Bytes::new() }
    }
}

/// Asks for what is known of an object.
///
/// # Errors
///
/// `Io` if there are no threads for requests.
pub(super) fn ask(remote: &Remote) -> Result<Asked> {
    let asked = remote.clone();
    start(async move { first_request(&asked).await })
}

/// What is known of an object. `None` if its server reads no ranges, only all of it.
///
/// # Errors
///
/// `Io`.
pub(super) fn opened(remote: &Remote, asked: &Asked) -> Result<Option<Opened>> {
    match asked.wait(&remote.cancelled)? {
        Ok(opened) => Ok(Some(opened)),
        Err(object_store::Error::NotSupported { .. }) => Ok(None),
        Err(error) => Err(failed("read", &remote.address, &error)),
    }
}

/// The error for an object of which ranges are needed and cannot be read.
pub(super) fn without_ranges(remote: &Remote) -> Error {
    remote.about(Error::io(
        "the server sends only all of it and no ranges of it, which are needed here: copy it to a file first",
    ))
}

/// The request for an object's end, which returns its length and version, too.
async fn first_request(remote: &Remote) -> object_store::Result<Opened> {
    // Azure knows no ranges from the end.
    if remote.address.scheme == Scheme::Azure {
        let meta = remote.store.head(&remote.key).await?;
        return Ok(Opened::again(version_of(&meta)));
    }
    let options = GetOptions { range: Some(GetRange::Suffix(TAIL_BYTES)), ..GetOptions::default() };
    let got = match remote.store.get_opts(&remote.key, options).await {
        Ok(got) => got,
        // An object without bytes has no last ones.
        Err(error @ object_store::Error::Generic { .. }) if is_answered(&error) => {
            return match remote.store.head(&remote.key).await {
                Ok(meta) if meta.size == 0 => Ok(Opened::again(version_of(&meta))),
                _ => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    let version = version_of(&got.meta);
    Ok(Opened { version, tail: got.bytes().await? })
}

/// An ETag, or, of servers that send none, the time of the last change.
fn version_of(meta: &ObjectMeta) -> ObjectVersion {
    let tag = meta.e_tag.clone().unwrap_or_else(|| meta.last_modified.timestamp().to_string());
    ObjectVersion::new(meta.size, tag)
}

/// An object, of which any range is read. Whatever was changed since it was opened is an error.
pub(super) struct RemoteSource {
    remote: Remote,
    version: ObjectVersion,
    fetches: Mutex<Fetches>,
}

impl RemoteSource {
    pub(super) fn new(remote: Remote, opened: Opened) -> RemoteSource {
        let Opened { version, tail } = opened;
        let mut fetches = Fetches::default();
        if !tail.is_empty() {
            let range = version.bytes().saturating_sub(u64_of(tail.len()))..version.bytes();
            fetches.pieces.push(Piece { range, state: State::Here(tail), used: 0, _held: None });
        }
        RemoteSource { remote, version, fetches: Mutex::new(fetches) }
    }

    fn fetches(&self) -> MutexGuard<'_, Fetches> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a request.
    fn request(&self, range: Range<u64>, (held, asking): (Held, Asking)) -> Result<Piece> {
        let (remote, version, asked) = (self.remote.clone(), self.version.clone(), range.clone());
        let pending = start(async move {
            let _asking = asking;
            fetch(&remote, &version, asked).await
        })?;
        Ok(Piece { range, state: State::Flying(pending), used: 0, _held: Some(held) })
    }

    /// Starts requests for what will be read, as long as this object and all together may have more.
    fn request_ahead(&self, fetches: &mut Fetches) -> Result<()> {
        while let Some(range) = fetches.plan.front()
            && fetches.flying() < REQUESTS
            && fetches.held() + (range.end - range.start) <= AHEAD_BYTES
            && let Some(taken) = self.remote.allowance.take_ahead(range.end - range.start)
        {
            let piece = self.request(range.clone(), taken)?;
            fetches.plan.pop_front();
            fetches.pieces.push(piece);
        }
        Ok(())
    }

    /// Starts requests for the parts of a range that are missing and needed at once, whatever else is fetched.
    fn request_now(&self, fetches: &mut Fetches, range: &Range<u64>) -> Result<()> {
        for hole in holes(range, fetches.pieces.iter().map(|piece| &piece.range)) {
            fetches.make_room(range, hole.end - hole.start);
            for range in pieces_of(hole) {
                fetches.forget_plan(&range);
                let taken = self.remote.allowance.take_now(range.end - range.start);
                fetches.pieces.push(self.request(range, taken)?);
            }
        }
        Ok(())
    }
}

impl ByteSource for RemoteSource {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn length(&self) -> Result<u64> {
        Ok(self.version.bytes())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.version.bytes() {
            return Err(beyond_end(self.remote.name(), &range, self.version.bytes()));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let mut fetches = self.fetches();
        self.request_now(&mut fetches, &range)?;
        self.request_ahead(&mut fetches)?;
        let bytes = fetches.take(&range, &self.remote);
        self.request_ahead(&mut fetches)?;
        bytes
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        let mut fetches = self.fetches();
        fetches.foresee(ranges, self.version.bytes());
        // What cannot be started is started, and reported, when it is read.
        let _ = self.request_ahead(&mut fetches);
    }
}

/// What was requested of an object and not read yet, and what will be requested.
#[derive(Default)]
struct Fetches {
    /// None overlaps another. The oldest first.
    pieces: Vec<Piece>,
    /// The most urgent first. None overlaps another, or a piece.
    plan: VecDeque<Range<u64>>,
}

struct Piece {
    range: Range<u64>,
    state: State,
    /// Bytes that were read: each is, once, with few exceptions.
    used: u64,
    /// What it takes of the bytes that all objects share.
    _held: Option<Held>,
}

enum State {
    Flying(Pending<Result<Bytes>>),
    Here(Bytes),
}

impl Fetches {
    fn flying(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece.state, State::Flying(_))).count()
    }

    fn held(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.range.end - piece.range.start).sum()
    }

    /// Plans what will be read, before what was planned.
    fn foresee(&mut self, ranges: &mut dyn Iterator<Item = Range<u64>>, length: u64) {
        // Neighbours take one request.
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges.take(PLANNED) {
            let range = range.start..range.end.min(length);
            match joined.last_mut() {
                _ if range.is_empty() => {}
                Some(last) if range.start == last.end => last.end = range.end,
                _ => joined.push(range),
            }
        }
        let mut planned = VecDeque::new();
        for range in joined {
            self.forget_plan(&range);
            let known = self.pieces.iter().map(|piece| &piece.range).chain(&planned);
            let new: Vec<_> = holes(&range, known).into_iter().flat_map(pieces_of).collect();
            planned.extend(new);
        }
        planned.append(&mut self.plan);
        planned.truncate(PLANNED);
        self.plan = planned;
    }

    /// Cuts a range that is requested by now out of what is planned.
    fn forget_plan(&mut self, range: &Range<u64>) {
        if self.plan.iter().any(|planned| planned.start < range.end && range.start < planned.end) {
            let plan = std::mem::take(&mut self.plan);
            self.plan = plan.into_iter().flat_map(|planned| holes(&planned, [range].into_iter())).collect();
        }
    }

    /// Drops what was fetched ahead, the latest first, if `bytes` more would be too much.
    fn make_room(&mut self, wanted: &Range<u64>, bytes: u64) {
        let mut held = self.held().saturating_add(bytes);
        let mut at = self.pieces.len();
        while held > HELD_BYTES && at > 0 {
            at -= 1;
            let range = self.pieces[at].range.clone();
            if range.end <= wanted.start || wanted.end <= range.start {
                self.pieces.remove(at);
                held -= range.end - range.start;
            }
        }
    }

    /// The bytes of a range of which all was requested.
    fn take(&mut self, range: &Range<u64>, remote: &Remote) -> Result<Bytes> {
        let mut parts: Vec<(u64, Bytes)> = Vec::new();
        for at in 0..self.pieces.len() {
            let Some(piece) = self.pieces.get_mut(at) else { break };
            let (start, end) = (range.start.max(piece.range.start), range.end.min(piece.range.end));
            if start >= end {
                continue;
            }
            let bytes = match &piece.state {
                State::Here(bytes) => bytes.clone(),
                State::Flying(pending) => match pending.wait(&remote.cancelled).and_then(|got| got) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        self.pieces.remove(at);
                        return Err(error);
                    }
                },
            };
            piece.used += end - start;
            let index = |at: u64| usize_of(at - piece.range.start).unwrap_or(usize::MAX).min(bytes.len());
            parts.push((start, bytes.slice(index(start)..index(end))));
            piece.state = State::Here(bytes);
        }
        self.pieces.retain(|piece| piece.used < piece.range.end - piece.range.start);
        parts.sort_unstable_by_key(|(start, _)| *start);
        if let [(_, only)] = &*parts {
            return Ok(only.clone());
        }
        let length = usize_of(range.end - range.start).unwrap_or(usize::MAX);
        let mut joined = Vec::new();
        joined.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        for (_, part) in parts {
            joined.extend_from_slice(&part);
        }
        Ok(Bytes::from(joined))
    }
}

/// One request for a range.
async fn fetch(remote: &Remote, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
    let options = GetOptions {
        range: Some(GetRange::Bounded(range.clone())),
        // Servers compare only strong tags; all are compared below.
        if_match: Some(version.tag().to_owned()).filter(|tag| tag.starts_with('"')),
        ..GetOptions::default()
    };
    let cannot = |error| failed("read", &remote.address, &error);
    let got = remote.store.get_opts(&remote.key, options).await.map_err(cannot)?;
    version.expect(&version_of(&got.meta)).map_err(|error| remote.about(error))?;
    let bytes = got.bytes().await.map_err(cannot)?;
    if u64_of(bytes.len()) != range.end - range.start {
        let message = format!("the server gave {} bytes for {range:?}", bytes.len());
        return Err(remote.about(Error::io(message)));
    }
    Ok(bytes)
}

/// A range, cut into requests.
fn pieces_of(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let start = at;
        at = at.saturating_add(PIECE_BYTES).min(range.end);
        (start < at).then_some(start..at)
    })
}

/// The parts of a range that are in none of the others.
fn holes<'a>(range: &Range<u64>, others: impl Iterator<Item = &'a Range<u64>>) -> Vec<Range<u64>> {
    let mut others: Vec<_> =
        others.filter(|other| other.start < range.end && range.start < other.end).collect();
    others.sort_unstable_by_key(|other| other.start);
    let mut holes = Vec::new();
    let mut at = range.start;
    for other in others {
        if at < other.start {
            holes.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < range.end {
        holes.push(at..range.end);
    }
    holes
}

/// An object that is read from its start to its end, range by range.
pub(super) struct RemoteStream {
    source: RemoteSource,
    at: u64,
    step: u64,
    unread: Bytes,
}

impl RemoteStream {
    pub(super) fn new(source: RemoteSource) -> RemoteStream {
        RemoteStream { source, at: 0, step: STREAM_BYTES, unread: Bytes::new() }
    }
}

impl Read for RemoteStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() {
            let next = |at: u64, step: u64| at..at.saturating_add(step).min(self.source.version.bytes());
            let range = next(self.at, self.step);
            if self.step > STREAM_BYTES {
                self.source.will_read(&mut [range.clone(), next(range.end, 2 * self.step)].into_iter());
            }
            self.unread = self.source.read(range.clone()).map_err(io::Error::other)?;
            (self.at, self.step) = (range.end, (2 * self.step).min(PIECE_BYTES));
        }
        Ok(pass(&mut self.unread, out))
    }
}

/// An object of a server that reads no ranges: one request for all of it.
pub(super) struct WholeStream {
    remote: Remote,
    body: Option<BoxStream<'static, object_store::Result<Bytes>>>,
    unread: Bytes,
    /// Why it cannot be read on: then it does not end as if it was complete.
    error: Option<Error>,
}

impl WholeStream {
    /// Begins the request.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn open(remote: Remote) -> Result<WholeStream> {
        let asked = remote.clone();
        let got =
            wait(
                &remote.cancelled,
                async move { asked.store.get_opts(&asked.key, GetOptions::default()).await },
            )?;
        let got = got.map_err(|error| failed("read", &remote.address, &error))?;
        Ok(WholeStream { remote, body: Some(got.into_stream()), unread: Bytes::new(), error: None })
    }
}

impl Read for WholeStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.unread.is_empty() {
            if let Some(error) = &self.error {
                return Err(io::Error::other(error.clone()));
            }
            let Some(mut body) = self.body.take() else { return Ok(0) };
            match wait(&self.remote.cancelled, async move { (body.next().await, body) }) {
                Ok((Some(Ok(bytes)), body)) => (self.unread, self.body) = (bytes, Some(body)),
                Ok((Some(Err(error)), _)) => self.error = Some(failed("read", &self.remote.address, &error)),
                Ok((None, _)) => {}
                Err(error) => self.error = Some(error),
            }
        }
        Ok(pass(&mut self.unread, out))
    }
}

/// Passes on what fits.
fn pass(unread: &mut Bytes, out: &mut [u8]) -> usize {
    let length = unread.len().min(out.len());
    out[..length].copy_from_slice(&unread.split_to(length));
    length
}

#[cfg(test)]
mod tests;
