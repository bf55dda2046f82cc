//! The messages of an Arrow IPC stream: nothing that they say of themselves is believed before it is known to fit.
//!
//! ```text
//! stream    schema · (dictionary | record batch) … · end
//! message   FF FF FF FF · length of the metadata (u32) · metadata (a flatbuffer, padded) · body
//! end       FF FF FF FF · 00 00 00 00, or the object's end
//! file      "ARROW1" · 00 00 · stream · footer
//! ```
//!
//! Source: "Serialization and Interprocess Communication (IPC)" of Arrow's columnar format.

use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Endianness, MessageHeader, MetadataVersion, root_as_message_with_opts};
use arrow_schema::{Schema, SchemaRef};
use flatbuffers::VerifierOptions;
use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Price, Result};

use crate::host::Host;

/// How a message begins, and a file.
const MARK: [u8; 4] = [0xff; 4];
const FILE_HEAD: [u8; 8] = *b"ARROW1\0\0";
/// The mark, and the length of the metadata.
const HEAD_BYTES: u64 = 8;
/// Bytes that are read of a message at first: the metadata of some thirty columns.
const FIRST_BYTES: u64 = 4 << 10;
/// Bytes of a message's metadata, at most: that of some ten thousand columns.
const METADATA_BYTES_MAX: u64 = 1 << 20;
/// Tables that metadata may have, each counted as often as it is referred to: of a schema, one for each field and its type.
const TABLES_MAX: usize = 1 << 16;
/// What it costs to verify metadata, and what is made of it.
const METADATA_PRICE: Price = Price::per_kib(20 << 10);

/// Whether an object has an Arrow IPC stream, or a file.
pub(crate) fn is_of_arrow(host: &mut Host<'_>) -> Result<bool> {
    if host.length()? < HEAD_BYTES {
        return Ok(false);
    }
    let head = host.read(&(0..HEAD_BYTES))?;
    Ok(head[..4] == MARK || head[..] == FILE_HEAD)
}

/// A message, of which the body has not been read.
pub(super) struct Message {
    at: u64,
    metadata: Bytes,
    /// Where the body begins.
    body: u64,
}

impl Message {
    /// The message at a place of an object of that length; `None` at the stream's end.
    pub(super) fn read(host: &mut Host<'_>, at: u64, length: u64) -> Result<Option<Message>> {
        if at == length {
            return Ok(None);
        }
        let ends_early = || Error::corrupt("an Arrow IPC message that ends early").at_offset(at);
        let first = host.read(&(at..length.min(at.saturating_add(FIRST_BYTES))))?;
        let (mark, size) = (first.first_chunk::<4>(), first.get(4..8).and_then(<[u8]>::first_chunk::<4>));
        let (Some(mark), Some(size)) = (mark, size) else { return Err(ends_early()) };
        if *mark != MARK {
            let message = "an Arrow IPC message without the mark that they have since Arrow 0.15";
            return Err(Error::unsupported(message).at_offset(at));
        }
        let size = u64::from(u32::from_le_bytes(*size));
        if size == 0 {
            return Ok(None);
        }
        if size > METADATA_BYTES_MAX {
            let message = format!("metadata of {size} bytes in an Arrow IPC message");
            return Err(Error::too_large(message).at_offset(at));
        }
        let start = at + HEAD_BYTES;
        let body = start.checked_add(size).filter(|end| *end <= length).ok_or_else(ends_early)?;
        let metadata = match usize::try_from(HEAD_BYTES + size) {
            Ok(end) if end <= first.len() => first.slice(8..end),
            _ => host.read(&(start..body))?,
        };
        host.charge(METADATA_PRICE.of(metadata.len(), 0));
        Ok(Some(Message { at, metadata, body }))
    }

    /// What it is, and the range of its body in an object of that length.
    pub(super) fn parsed(&self, length: u64) -> Result<(arrow_ipc::Message<'_>, Range<u64>)> {
        let options = VerifierOptions {
            max_tables: TABLES_MAX,
            max_apparent_size: 8 << 20,
            ..VerifierOptions::default()
        };
        let parsed = root_as_message_with_opts(&options, &self.metadata)
            .map_err(|error| Error::corrupt(format!("an Arrow IPC message: {error}")).at_offset(self.at))?;
        if !matches!(parsed.version(), MetadataVersion::V4 | MetadataVersion::V5) {
            let message = "an Arrow IPC message of another version than 4 and 5";
            return Err(Error::unsupported(message).at_offset(self.at));
        }
        let end = u64::try_from(parsed.bodyLength()).ok().and_then(|bytes| self.body.checked_add(bytes));
        let end = end
            .filter(|end| *end <= length)
            .ok_or_else(|| Error::corrupt("an Arrow IPC message that ends early").at_offset(self.at))?;
        Ok((parsed, self.body..end))
    }
}

/// The columns of an object of that length, and where the message after its schema begins.
pub(super) fn schema(host: &mut Host<'_>, length: u64) -> Result<(SchemaRef, u64)> {
    let head = host.read(&(0..HEAD_BYTES.min(length)))?;
    let start = if head[..] == FILE_HEAD { u64_of(FILE_HEAD.len()) } else { 0 };
    let none = || Error::corrupt("an Arrow IPC stream without a schema");
    let message = Message::read(host, start, length)?.ok_or_else(none)?;
    let (parsed, body) = message.parsed(length)?;
    let schema = parsed.header_as_schema().ok_or_else(none)?;
    if schema.endianness() != Endianness::Little {
        return Err(Error::unsupported("an Arrow IPC stream of big-endian values"));
    }
    let schema = try_fb_to_schema(schema)
        .map_err(|error| Error::corrupt(format!("the schema of an Arrow IPC stream: {error}")))?;
    // What its writer says of the table is not said of a part of it.
    Ok((Arc::new(Schema::new(schema.fields)), body.end))
}

/// Whether a message has a dictionary, of which only columns of that type know.
pub(super) fn is_dictionary(parsed: &arrow_ipc::Message<'_>) -> bool {
    parsed.header_type() == MessageHeader::DictionaryBatch
}
