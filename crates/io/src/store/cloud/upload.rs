//! Objects that are written: in parts, which appear together, or with one request if they are small.
//!
//! The answer to the last request may be lost, and then the client's next try is refused, because the object is there
//! already. So each object has a token of its own among its metadata, by which it is known.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Detail, Error, Result};
use object_store::{
    Attribute, Attributes, GetOptions, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutOptions, PutPayload,
};

use super::connect::Remote;
use super::failure::failed;
use super::runtime::{Cancelled, Pending, start, wait};
use crate::ByteSink;
use crate::store::NewObject;

/// Bytes of a part. Stores take at least 5 MiB and at most 10,000 parts.
const PART_BYTES: u64 = 8 << 20;
/// Parts of one length. After so many each is twice as long, so 10,000 parts hold 2.4 TiB.
const PARTS_ALIKE: u32 = 1250;
/// Bytes of parts that are sent at a time: their memory. A part may be longer.
const FLYING_BYTES: u64 = 32 << 20;
/// How long the removal of what was uploaded may take, of all uploads that are removed together.
const REMOVAL: Duration = Duration::from_secs(20);
/// Uploads that are removed at a time.
const REMOVALS_AT_A_TIME: usize = 8;
/// How long an upload that is cancelled while it begins is waited for: what has begun must be removed.
const BEGINNING: Duration = Duration::from_secs(5);
/// How long it may take to find out whether an object appeared.
const LOOKING: Duration = Duration::from_secs(20);
/// The name of the token among an object's metadata.
const TOKEN: &str = "marquetry";

type PartSent = Pending<object_store::Result<()>>;

/// An object that is being written. Dropped before it [appears](Upload::appear), it leaves nothing.
pub(super) struct Upload {
    remote: Remote,
    replaces: bool,
    /// What no other object has among its metadata.
    token: String,
    /// Of the next part.
    buffer: Vec<u8>,
    /// Once there is more than one part.
    multipart: Option<Box<dyn MultipartUpload>>,
    parts: u32,
    flying: VecDeque<(u64, PartSent)>,
    has_failed: bool,
    /// It was cancelled while it began, and no answer came: maybe nobody can remove it.
    is_lost: bool,
}

/// Why an object did not appear.
pub(super) struct Missed {
    pub(super) error: Error,
    /// It may have appeared: the store could not be asked.
    pub(super) may_be_there: bool,
}

impl From<Error> for Missed {
    fn from(error: Error) -> Missed {
        Missed { error, may_be_there: false }
    }
}

/// What has an object's key.
enum There {
    /// The object that was written.
    Ours,
    /// Another one, or nothing.
    Other,
    /// The store did not answer.
    Unknown,
}

impl Upload {
    /// An object that will be written. No request is made yet.
    pub(super) fn new(remote: Remote, replaces: bool) -> Upload {
        Upload {
            remote,
            replaces,
            token: token(),
            buffer: Vec::new(),
            multipart: None,
            parts: 0,
            flying: VecDeque::new(),
            has_failed: false,
            is_lost: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.remote.name()
    }

    /// Bytes that are held: those of an object that will take one request.
    pub(super) fn held(&self) -> u64 {
        u64_of(self.buffer.len())
    }

    /// Adds bytes to its end.
    ///
    /// # Errors
    ///
    /// `Io`; nothing of it is left then, as far as the store could be told.
    pub(super) fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.has_failed {
            return Err(Error::misuse("an object that could not be written"));
        }
        while !bytes.is_empty() {
            let part_bytes = usize_of(part_bytes(self.parts)).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(bytes.len().min(part_bytes - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() >= part_bytes {
                self.or_abort(Upload::send_part)?;
            }
        }
        Ok(())
    }

    /// Sends what is held, and waits until all parts have arrived: what is left is to let them appear.
    ///
    /// # Errors
    ///
    /// As [`Upload::append`].
    pub(super) fn complete_parts(&mut self) -> Result<()> {
        self.or_abort(|upload| {
            if !upload.buffer.is_empty() {
                upload.send_part()?;
            }
            upload.wait_for_parts(0)
        })
    }

    /// Whether it takes more than one request.
    pub(super) fn is_multipart(&self) -> bool {
        self.multipart.is_some()
    }

    /// Makes it appear. (Nothing cancels this: whether it did must be known.)
    ///
    /// # Errors
    ///
    /// `Io`, with [`Detail::AlreadyExists`] if another object is there by now and it does not replace that.
    pub(super) fn appear(mut self) -> Result<(), Missed> {
        if self.is_multipart() {
            self.complete_parts()?;
        }
        let mut may_be_there = false;
        self.or_abort(|upload| {
            let Err(error) = upload.last_request()? else { return Ok(()) };
            let failed = failed("written", &upload.remote.address, &error);
            match upload.there() {
                There::Ours => {
                    // The answer was lost. Nothing is left to be removed.
                    upload.multipart = None;
                    Ok(())
                }
                There::Unknown if !is_refused(&error) => {
                    may_be_there = true;
                    let left = "whether it is there could not be found out, so it may be";
                    let message = format!("{}; {left}", failed.message());
                    Err(failed.reworded(message))
                }
                There::Other | There::Unknown => Err(failed),
            }
        })
        .map_err(|error| Missed { error, may_be_there })
    }

    /// Makes the request with which it appears.
    fn last_request(&mut self) -> Result<object_store::Result<()>> {
        let Some(mut multipart) = self.multipart.take() else {
            let payload = PutPayload::from(std::mem::take(&mut self.buffer));
            return self.put(payload);
        };
        // Stores have no condition for this request, so it is looked for right before.
        if !self.replaces
            && let Err(error) = expect_nothing(&self.remote)
        {
            self.multipart = Some(multipart);
            return Err(error);
        }
        let (done, multipart) = wait(&Cancelled::never(), async move {
            let done = multipart.complete().await.map(drop);
            (done, multipart)
        })?;
        // What failed is removed.
        self.multipart = done.is_err().then_some(multipart);
        Ok(done)
    }

    /// Writes it by one request.
    fn put(&self, payload: PutPayload) -> Result<object_store::Result<()>> {
        let once = |payload: PutPayload, mode: PutMode| {
            let (asked, attributes) = (self.remote.clone(), self.attributes());
            wait(&Cancelled::never(), async move {
                let options = PutOptions { mode, attributes, ..PutOptions::default() };
                asked.store.put_opts(&asked.key, payload, options).await.map(drop)
            })
        };
        let mode = if self.replaces { PutMode::Overwrite } else { PutMode::Create };
        match once(payload.clone(), mode)? {
            // A store without conditions (AWS_CONDITIONAL_PUT=disabled).
            Err(object_store::Error::NotImplemented { .. }) => {
                expect_nothing(&self.remote)?;
                once(payload, PutMode::Overwrite)
            }
            done => Ok(done),
        }
    }

    /// What has its key by now.
    fn there(&self) -> There {
        let (asked, token) = (self.remote.clone(), self.token.clone());
        let looked = wait(&Cancelled::never(), async move {
            let options = GetOptions { head: true, ..GetOptions::default() };
            let got = tokio::time::timeout(LOOKING, asked.store.get_opts(&asked.key, options)).await;
            match got {
                Ok(Ok(got)) => match got.attributes.get(&Attribute::Metadata(TOKEN.into())) {
                    Some(found) if **found == *token => There::Ours,
                    _ => There::Other,
                },
                Ok(Err(object_store::Error::NotFound { .. })) => There::Other,
                Ok(Err(_)) | Err(_) => There::Unknown,
            }
        });
        looked.unwrap_or(There::Unknown)
    }

    fn attributes(&self) -> Attributes {
        Attributes::from_iter([(Attribute::Metadata(TOKEN.into()), self.token.clone())])
    }

    /// Sends what is held as a part, once there is room for it.
    fn send_part(&mut self) -> Result<()> {
        let bytes = self.held();
        self.wait_for_parts(FLYING_BYTES.saturating_sub(bytes))?;
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            None => {
                let begun = self.begin()?;
                self.multipart.insert(begun)
            }
        };
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        self.flying.push_back((bytes, start(multipart.put_part(payload))?));
        self.parts += 1;
        Ok(())
    }

    /// Begins an upload of parts. Cancelled, it still waits for the answer, for a short time: without it nobody could
    /// remove what has begun.
    fn begin(&mut self) -> Result<Box<dyn MultipartUpload>> {
        let (asked, attributes) = (self.remote.clone(), self.attributes());
        let begun = start(async move {
            let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
            asked.store.put_multipart_opts(&asked.key, options).await
        })?;
        match begun.wait(&self.remote.cancelled) {
            Ok(begun) => begun.map_err(|error| failed("written", &self.remote.address, &error)),
            Err(cancelled) => {
                match begun.wait_at_most(BEGINNING) {
                    Some(begun) => self.multipart = begun.ok(),
                    None => self.is_lost = true,
                }
                Err(cancelled)
            }
        }
    }

    /// Waits until at most so many bytes are being sent.
    fn wait_for_parts(&mut self, bytes: u64) -> Result<()> {
        while let Some((_, part)) = self.flying.front() {
            let flying: u64 = self.flying.iter().map(|(bytes, _)| bytes).sum();
            let sent = match flying > bytes {
                true => part.wait(&self.remote.cancelled)?,
                // One that failed meanwhile is reported now.
                false => match part.try_get() {
                    Some(sent) => sent,
                    None => break,
                },
            };
            self.flying.pop_front();
            sent.map_err(|error| failed("written", &self.remote.address, &error))?;
        }
        Ok(())
    }

    /// Does something, and removes what was uploaded if that fails.
    fn or_abort(&mut self, act: impl FnOnce(&mut Upload) -> Result<()>) -> Result<()> {
        act(self).map_err(|error| {
            self.has_failed = true;
            match self.abort() {
                true => error,
                false => {
                    let left = "parts of it could not be removed, and are left as an incomplete upload";
                    let message = format!("{}; {left}", error.message());
                    error.reworded(message)
                }
            }
        })
    }

    /// Removes what was uploaded. False if that may be left.
    fn abort(&mut self) -> bool {
        remove(self.give_up()) == 0 && !self.is_lost
    }

    /// Gives it up, and hands out what must be [removed](remove) of it.
    pub(super) fn give_up(&mut self) -> Option<Box<dyn MultipartUpload>> {
        // What is being sent is not sent on.
        self.flying.clear();
        self.buffer = Vec::new();
        self.multipart.take()
    }
}

/// Removes uploads, several at a time. Returns how many may be left.
pub(super) fn remove(uploads: impl IntoIterator<Item = Box<dyn MultipartUpload>>) -> usize {
    let uploads: Vec<_> = uploads.into_iter().collect();
    let all = uploads.len();
    if all == 0 {
        return 0;
    }
    let removed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&removed);
    let work = stream::iter(uploads).for_each_concurrent(REMOVALS_AT_A_TIME, move |mut upload| {
        let counted = Arc::clone(&counted);
        async move {
            // What is not there need not be removed.
            if let Ok(()) | Err(object_store::Error::NotFound { .. }) = upload.abort().await {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    // What is left is counted.
    let _ = wait(&Cancelled::never(), async move { tokio::time::timeout(REMOVAL, work).await });
    all - removed.load(Ordering::Relaxed)
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.abort();
    }
}

/// The length of a part, given how many there are before it.
fn part_bytes(before: u32) -> u64 {
    PART_BYTES << (before / PARTS_ALIKE).min(8)
}

/// 128 bits that no other object has.
fn token() -> String {
    // The keys of each hasher are random.
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

/// Whether a store refused a request, whatever came before.
fn is_refused(error: &object_store::Error) -> bool {
    use object_store::Error as Store;
    matches!(
        error,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } | Store::AlreadyExists { .. }
    )
}

/// Fails if there is an object.
fn expect_nothing(remote: &Remote) -> Result<()> {
    let asked = remote.clone();
    match wait(&Cancelled::never(), async move { asked.store.head(&asked.key).await })? {
        Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(failed("looked for", &remote.address, &error)),
        Ok(_) => Err(remote.about(already_exists())),
    }
}

/// The error for an object where none may be.
pub(super) fn already_exists() -> Error {
    Error::io("it already exists").with(Detail::AlreadyExists)
}

/// One object, which appears by itself.
pub(super) struct NewRemoteObject(Upload);

impl NewRemoteObject {
    /// An object that will be written.
    pub(super) fn new(remote: Remote, replaces: bool) -> NewRemoteObject {
        NewRemoteObject(Upload::new(remote, replaces))
    }
}

impl ByteSink for NewRemoteObject {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }

    fn read(&mut self, _: Range<u64>) -> Result<Bytes> {
        Err(not_readable(self.0.name()))
    }
}

impl NewObject for NewRemoteObject {
    fn readable(&self) -> Option<PathBuf> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.0.appear().map_err(|missed| missed.error)
    }
}

/// The error for an object that is read before it appears.
pub(super) fn not_readable(name: &str) -> Error {
    let error = Error::misuse("an object of a store cannot be read before it appears");
    error.at(|place| place.object = Some(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ() {
        let tokens: std::collections::BTreeSet<String> = (0..100).map(|_| token()).collect();
        assert!(tokens.len() == 100 && tokens.iter().all(|token| token.len() == 32));
    }

    #[test]
    fn ten_thousand_parts_suffice() {
        assert_eq!((part_bytes(0), part_bytes(1249), part_bytes(1250)), (8 << 20, 8 << 20, 16 << 20));
        let all: u64 = (0..10_000).map(part_bytes).sum();
        assert!(all > 2 << 40, "{all}");
        // S3 takes parts of at most 5 GiB.
        assert!(part_bytes(u32::MAX) <= 5 << 30);
    }
}
