//! Objects that are written: in parts, which appear together, or with one request if they are small.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Detail, Error, Result};
use object_store::{MultipartUpload, ObjectStoreExt, PutMode, PutPayload};

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
/// How long the removal of what was uploaded may take.
const REMOVAL: Duration = Duration::from_secs(20);

type PartSent = Pending<object_store::Result<()>>;

/// An object that is being written. Dropped before it [appears](Upload::appear), it leaves nothing.
pub(super) struct Upload {
    remote: Remote,
    replaces: bool,
    /// Of the next part.
    buffer: Vec<u8>,
    /// Once there is more than one part.
    multipart: Option<Box<dyn MultipartUpload>>,
    parts: u32,
    flying: VecDeque<(u64, PartSent)>,
    has_failed: bool,
}

impl Upload {
    /// An object that will be written. No request is made yet.
    pub(super) fn new(remote: Remote, replaces: bool) -> Upload {
        Upload {
            remote,
            replaces,
            buffer: Vec::new(),
            multipart: None,
            parts: 0,
            flying: VecDeque::new(),
            has_failed: false,
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
    pub(super) fn appear(mut self) -> Result<()> {
        if self.is_multipart() {
            self.complete_parts()?;
        }
        self.or_abort(|upload| {
            let (remote, mode) = (upload.remote.clone(), upload.mode());
            let done = match upload.multipart.take() {
                None => {
                    let payload = PutPayload::from(std::mem::take(&mut upload.buffer));
                    put(&remote, payload, mode)?
                }
                Some(mut multipart) => {
                    // Stores have no condition for this request, so it is looked for right before.
                    if mode == PutMode::Create
                        && let Err(error) = expect_nothing(&remote)
                    {
                        upload.multipart = Some(multipart);
                        return Err(error);
                    }
                    let (done, multipart) = wait(&Cancelled::never(), async move {
                        let done = multipart.complete().await.map(drop);
                        (done, multipart)
                    })?;
                    // What failed is removed.
                    upload.multipart = done.is_err().then_some(multipart);
                    done
                }
            };
            done.map_err(|error| failed("written", &upload.remote.address, &error))
        })
    }

    fn mode(&self) -> PutMode {
        if self.replaces { PutMode::Overwrite } else { PutMode::Create }
    }

    /// Sends what is held as a part, once there is room for it.
    fn send_part(&mut self) -> Result<()> {
        let remote = self.remote.clone();
        let cannot = |error| failed("written", &remote.address, &error);
        let bytes = self.held();
        self.wait_for_parts(FLYING_BYTES.saturating_sub(bytes))?;
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            None => {
                let asked = remote.clone();
                let begun =
                    wait(&remote.cancelled, async move { asked.store.put_multipart(&asked.key).await })?;
                self.multipart.insert(begun.map_err(cannot)?)
            }
        };
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        self.flying.push_back((bytes, start(multipart.put_part(payload))?));
        self.parts += 1;
        Ok(())
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
        // What is being sent is not sent on.
        self.flying.clear();
        self.buffer = Vec::new();
        let Some(mut multipart) = self.multipart.take() else { return true };
        let removed =
            wait(&Cancelled::never(), async move { tokio::time::timeout(REMOVAL, multipart.abort()).await });
        // What is not there need not be removed.
        matches!(removed, Ok(Ok(Ok(()) | Err(object_store::Error::NotFound { .. }))))
    }
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

/// Writes an object by one request.
fn put(remote: &Remote, payload: PutPayload, mode: PutMode) -> Result<object_store::Result<()>> {
    let once = |payload: PutPayload, mode: PutMode| {
        let asked = remote.clone();
        wait(&Cancelled::never(), async move {
            asked.store.put_opts(&asked.key, payload, mode.into()).await.map(drop)
        })
    };
    match once(payload.clone(), mode)? {
        // A store without conditions (AWS_CONDITIONAL_PUT=disabled).
        Err(object_store::Error::NotImplemented { .. }) => {
            expect_nothing(remote)?;
            once(payload, PutMode::Overwrite)
        }
        done => Ok(done),
    }
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
        self.0.appear()
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
    fn ten_thousand_parts_suffice() {
        assert_eq!((part_bytes(0), part_bytes(1249), part_bytes(1250)), (8 << 20, 8 << 20, 16 << 20));
        let all: u64 = (0..10_000).map(part_bytes).sum();
        assert!(all > 2 << 40, "{all}");
        // S3 takes parts of at most 5 GiB.
        assert!(part_bytes(u32::MAX) <= 5 << 30);
    }
}
