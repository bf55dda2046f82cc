//! Text that is gathered, and written in large pieces.

use std::fmt;
use std::io::Write;

use marquetry_base::{Error, Result};

/// Bytes that are gathered before they are written. At 64 KiB the system calls cost less than one percent; more only costs cache.
pub(crate) const GATHERED_BYTES: usize = 128 << 10;

/// Gathers complete units of text (statements, lines), and writes them to a writer.
///
/// Every piece that is written ends with a complete unit. Dropping it writes what was gathered; so after an error, the
/// output is all units before it, unless the writer itself failed within one.
pub(crate) struct Gather<W: Write> {
    gathered: Vec<u8>,
    /// `None` after [`Gather::into_writer`].
    writer: Option<W>,
    /// The writer has failed: how much of a unit it has is unknown.
    has_failed: bool,
}

impl<W: Write> Gather<W> {
    pub(crate) fn new(writer: W) -> Gather<W> {
        Gather { gathered: Vec::new(), writer: Some(writer), has_failed: false }
    }

    /// Where to append. Call [`Gather::end_unit`] after complete units.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.gathered
    }

    /// Writes what was gathered, if it is enough.
    ///
    /// # Errors
    ///
    /// `Io` if the writer fails, with its [`std::io::Error`] as the cause.
    pub(crate) fn end_unit(&mut self) -> Result<()> {
        if self.gathered.len() < GATHERED_BYTES { Ok(()) } else { self.flush() }
    }

    /// Appends complete units; what is large is not copied first.
    ///
    /// # Errors
    ///
    /// As [`Gather::end_unit`].
    pub(crate) fn units(&mut self, text: &[u8]) -> Result<()> {
        if text.len() < GATHERED_BYTES / 2 {
            self.gathered.extend_from_slice(text);
            return self.end_unit();
        }
        self.flush()?;
        self.write(|writer| writer.write_all(text))
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    ///
    /// As [`Gather::end_unit`].
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        let written = self.write(|writer| writer.write_all(&gathered));
        self.gathered = gathered;
        self.gathered.clear();
        written
    }

    /// Writes, unless it has failed before.
    fn write(&mut self, write: impl FnOnce(&mut W) -> std::io::Result<()>) -> Result<()> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.has_failed) else { return Ok(()) };
        write(writer).and_then(|()| writer.flush()).map_err(|error| {
            self.has_failed = true;
            not_written(error)
        })
    }

    /// Writes what was gathered, and returns the writer.
    ///
    /// # Errors
    ///
    /// As [`Gather::end_unit`].
    pub(crate) fn into_writer(mut self) -> Result<W> {
        self.flush()?;
        self.writer.take().ok_or_else(|| Error::internal("a writer that is taken twice"))
    }
}

impl<W: Write> Drop for Gather<W> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl<W: Write> fmt::Debug for Gather<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").field("gathered_bytes", &self.gathered.len()).finish_non_exhaustive()
    }
}

/// The error that a writer's failure is: an object's own, or the system's. [`copy`](crate::copy) adds the
/// destination's name.
pub(crate) fn not_written(error: std::io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(own) => own,
        Err(error) => {
            Error::io(format!("it could not be written: {}", marquetry_io::said(&error))).caused_by(error)
        }
    }
}
