//! Writing a footer that was read.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Detail, Error, Failed, Limit, Limits, Machine, Object, Result, Segmented, Step,
};

use super::options::WriteOptions;
use crate::format::write::{
    ChunkPlaces, FooterSource, FooterSteps, GroupHead, write_chunk, write_chunk_metadata,
};
use crate::format::{ColumnOrder, FileMetaData, KeyValue, MAGIC};
use crate::schema::Schema;
use crate::thrift::Writer;

/// Writes a footer, followed by its length and the magic, to the end of an object: to change the metadata of a file
/// and keep its pages.
///
/// Parts of a footer that this version does not know are not in [`FileMetaData`], and are not written.
#[derive(Debug)]
pub struct FooterWriter {
    object: Object,
    source: Metadata,
    tail: Tail,
    failed: Failed,
}

impl FooterWriter {
    /// A writer of `metadata` to `object`.
    ///
    /// # Errors
    ///
    /// `Unsupported` if some columns are encrypted: `metadata` lacks what is needed to read them.
    pub fn new(object: Object, metadata: Arc<FileMetaData>) -> Result<FooterWriter> {
        if metadata.encryption.is_some() {
            return Err(Error::encrypted("writing the footer of a file that is encrypted in part"));
        }
        Ok(FooterWriter {
            object,
            source: Metadata(metadata),
            tail: Tail::new(FooterRoom { limits: Limits::TRUSTED, most: u64::MAX }),
            failed: Failed::default(),
        })
    }
}

impl Machine for FooterWriter {
    type Product = ();

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        let written = |machine: &mut FooterWriter| machine.tail.step(&mut machine.source, budget);
        Ok(match Failed::run(self, |machine| &mut machine.failed, written)? {
            Some(bytes) => Step::Append(self.object, bytes),
            None if self.tail.is_done() => Step::Done,
            None => Step::Yield,
        })
    }

    fn supply(&mut self, _object: Object, _range: Range<u64>, _bytes: Bytes) -> Result<()> {
        Err(Error::misuse("bytes for a machine that reads nothing"))
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Err(Error::misuse("a length for a machine that reads nothing"))
    }

    fn fail(&mut self, _object: Object, _range: Range<u64>, reason: Error) {
        self.failed.set(reason);
    }
}

/// How long a footer may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct FooterRoom {
    limits: Limits,
    /// See [`WriteOptions::footer_bytes_max`].
    most: u64,
}

impl FooterRoom {
    pub(super) fn of(options: &WriteOptions) -> FooterRoom {
        FooterRoom { limits: options.limits, most: options.footer_bytes_max }
    }

    /// Fails if a footer is, or will be, of more bytes than its readers take.
    pub(super) fn check(&self, bytes: u64) -> Result<()> {
        self.limits.check(Limit::FooterBytes, bytes)?;
        if bytes <= self.most {
            return Ok(());
        }
        let message = alloc::format!(
            "a footer of more than {} bytes, which few readers take; fewer and larger row groups make it smaller",
            self.most
        );
        Err(Error::too_large(message).with(Detail::AdmittedBy(&["footer_bytes_max"])))
    }
}

/// The end of a file: the footer, its length, and the magic.
#[derive(Debug)]
pub(super) struct Tail {
    room: FooterRoom,
    steps: FooterSteps,
    writer: Writer,
    is_written: bool,
}

impl Tail {
    /// Of a file that has so much room for its footer.
    pub(super) fn new(room: FooterRoom) -> Tail {
        Tail { room, steps: FooterSteps::new(), writer: Writer::new(), is_written: false }
    }

    /// True when all pieces were taken.
    pub(super) fn is_done(&self) -> bool {
        self.is_written && !self.writer.has_whole()
    }

    /// The next bytes. `None` when the budget is spent, or nothing is left.
    pub(super) fn step(
        &mut self,
        source: &mut impl FooterSource,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Bytes>> {
        if !self.is_written && self.steps.step(source, &mut self.writer, budget)? {
            self.room.check(self.writer.length())?;
            let length = i32::try_from(self.writer.length())
                .map_err(|_| Error::too_large("a footer of 2 GiB or more, which no reader could read"))?;
            self.writer.raw(&length.to_le_bytes());
            self.writer.raw(&MAGIC);
            self.writer.finish();
            self.is_written = true;
        }
        Ok(self.writer.take())
    }
}

/// A footer that was read.
#[derive(Debug)]
struct Metadata(Arc<FileMetaData>);

impl FooterSource for Metadata {
    fn version(&self) -> i32 {
        self.0.version
    }

    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn completes_types(&self) -> bool {
        false
    }

    fn rows(&self) -> u64 {
        self.0.rows
    }

    fn groups(&self) -> usize {
        self.0.row_groups.len()
    }

    fn group(&self, group: usize) -> GroupHead<'_> {
        let group = &self.0.row_groups[group];
        GroupHead {
            rows: group.rows,
            uncompressed_bytes: group.uncompressed_bytes,
            sorting_columns: &group.sorting_columns,
            file_offset: group.file_offset,
            compressed_bytes: group.compressed_bytes,
            ordinal: group.ordinal,
        }
    }

    fn write_chunk(&mut self, group: usize, leaf: usize, writer: &mut Writer) -> Result<()> {
        let chunk = &self.0.row_groups[group].columns[leaf];
        let leaf = &self.0.schema.leaves()[leaf];
        if chunk.encrypted {
            return Err(Error::encrypted("writing the metadata of an encrypted column chunk").at(|place| {
                place.row_group = Some(u64_of(group));
                place.column = Some(self.0.schema.path(leaf.node));
            }));
        }
        let places = ChunkPlaces { offset_index: chunk.offset_index, column_index: chunk.column_index };
        write_chunk(writer, chunk.file_path.as_deref(), places, |writer| {
            write_chunk_metadata(writer, &self.0.schema, leaf, chunk);
        });
        Ok(())
    }

    fn key_values(&self) -> usize {
        self.0.key_values.len()
    }

    fn key_value(&self, pair: usize) -> Option<&KeyValue> {
        self.0.key_values.get(pair)
    }

    fn created_by(&self) -> Option<&str> {
        self.0.created_by.as_deref()
    }

    fn column_orders(&self) -> &Segmented<ColumnOrder> {
        &self.0.column_orders
    }

    fn extension(&self, _before: &[u8], _length: u64) -> Option<Vec<u8>> {
        None
    }
}
