//! The pages of a chunk: taken in, opened, and closed when all their entries are decoded.

use alloc::boxed::Box;
use alloc::format;

use marquetry_base::{Error, Result};

use super::super::data_page::{DataPage, Levels, RowsAhead};
use super::super::levels::part_of_v1;
use super::super::opening::{Opened, Opening, Part};
use super::super::values::ValueDecoder;
use super::super::work::Work;
use super::dictionary_page::DictionaryPage;
use super::{Column, ColumnReader, Expects};
use crate::encoding::delta_byte_array::Value;
use crate::encoding::hybrid::Hybrid;
use crate::encoding::stream::Stream;
use crate::format::{Encoding, PageKind};
use crate::going::{Going, done};

impl ColumnReader {
    /// Takes in a page: a dictionary or data.
    pub(super) fn open(&mut self, kind: PageKind, body: Stream) -> Result<()> {
        let (parts, encoding) = match &kind {
            PageKind::Dictionary(header) => {
                if self.dictionary.is_some() {
                    return Err(Error::corrupt("a second dictionary in a column chunk"));
                }
                ([Part::Absent; 2], header.encoding)
            }
            PageKind::Data(header) => {
                let entries = header.values as usize;
                let parts = match &self.nested {
                    Some(nested) => {
                        let (repetition, definition) =
                            (header.repetition_encoding, header.definition_encoding);
                        nested.parts_of_v1(entries, repetition, definition)?
                    }
                    None => {
                        let definition_max = u8::from(self.column.is_nullable);
                        let encoding = header.definition_encoding;
                        if !matches!(
                            (self.column.is_nullable, encoding),
                            (false, _) | (_, Encoding::Rle | Encoding::BitPacked)
                        ) {
                            return Err(Error::corrupt(format!("definition levels encoded as {encoding}")));
                        }
                        [Part::Absent, part_of_v1(definition_max, entries, encoding)?]
                    }
                };
                (parts, header.encoding)
            }
            PageKind::DataV2(header) => {
                if header.nulls > header.values {
                    return Err(Error::corrupt(format!(
                        "{} nulls among {} values",
                        header.nulls, header.values
                    )));
                }
                let bytes = [header.repetition_bytes, header.definition_bytes];
                (bytes.map(|bytes| Part::Bytes(bytes as usize)), header.encoding)
            }
            PageKind::Other(_) => return Ok(()),
        };
        let opening = Opening::new(kind, body, parts, encoding.has_streams());
        self.expects = Expects::Levels(Box::new(opening));
        Ok(())
    }

    /// Goes on with a page that is being opened. One that is held is all there: what is wrong at its end is found before its first
    /// rows leave.
    pub(super) fn open_on(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        let Expects::Levels(opening) = &mut self.expects else {
            return Err(Error::internal("no page to open"));
        };
        if !opening.step()? {
            return Ok(Going::Done(()));
        }
        if opening.holds_values() {
            done!(self.pages()?.finish(work)?);
        }
        if let Expects::Levels(opening) = core::mem::replace(&mut self.expects, Expects::Page) {
            self.decode_opened(opening.finish())?;
        }
        Ok(Going::Done(()))
    }

    /// Takes in the entries of a dictionary that is decoded.
    pub(super) fn end_dictionary(&mut self) {
        self.released.chunk(core::mem::take(&mut self.large));
        if let Expects::Entries(page) = core::mem::replace(&mut self.expects, Expects::Page) {
            self.dictionary = Some(page.finish(self.column.physical_type));
        }
    }

    /// Begins to decode a page that is open.
    fn decode_opened(&mut self, page: Opened) -> Result<()> {
        let Opened { kind, levels: [repetition, definition], values, held } = page;
        let segments = [&repetition, &definition, &values].map(|stream| stream.segments().cloned());
        let (entries, encoding, nulls, levels) = match kind {
            PageKind::Dictionary(header) => {
                let Column { physical_type, accept, limits, .. } = &self.column;
                let page = DictionaryPage::new(&header, values, (*physical_type, *accept), limits)?;
                self.expects = Expects::Entries(Box::new(page));
                return Ok(());
            }
            PageKind::Data(header) => {
                let encodings = [header.repetition_encoding, header.definition_encoding];
                let levels = match &self.nested {
                    Some(nested) => Levels::Nested(nested.levels([repetition, definition], encodings)),
                    None if !self.column.is_nullable => Levels::Required,
                    None if encodings[1] == Encoding::BitPacked => Levels::Bits(definition, 0),
                    None => Levels::Hybrid(Hybrid::new(definition, 1)),
                };
                (header.values, header.encoding, None, levels)
            }
            PageKind::DataV2(header) => {
                let levels = match &self.nested {
                    Some(nested) => {
                        Levels::Nested(nested.levels([repetition, definition], [Encoding::Rle; 2]))
                    }
                    None if self.column.is_nullable => Levels::Hybrid(Hybrid::new(definition, 1)),
                    None => Levels::Required,
                };
                // None at all is not believed: Arrow Go counts no nulls where it writes no statistics. The levels know.
                let is_counted = self.column.is_nullable && self.nested.is_none() && header.nulls > 0;
                (header.values, header.encoding, is_counted.then_some(header.nulls as usize), levels)
            }
            PageKind::Other(_) => return Ok(()),
        };
        self.chunk.entries_left = self.chunk.entries_left.checked_sub(entries.into()).ok_or_else(|| {
            Error::corrupt(format!(
                "a page of {entries} values in a column chunk that has {} left",
                self.chunk.entries_left
            ))
        })?;
        let dictionary = self.dictionary.as_ref();
        let values =
            ValueDecoder::new(encoding, self.column.physical_type, values, dictionary, self.column.accept)?;
        self.expects = Expects::Values(Box::new(DataPage {
            levels,
            values,
            is_prepared: false,
            entries: entries as usize,
            entries_left: entries as usize,
            ahead: RowsAhead::default(),
            behind: 0,
            is_used: false,
            nulls_left: nulls,
            held,
            segments,
        }));
        Ok(())
    }

    /// Releases a page whose entries are all decoded.
    pub(super) fn close(&mut self) {
        self.released.chunk(core::mem::take(&mut self.large));
        let Expects::Values(page) = core::mem::replace(&mut self.expects, Expects::Page) else { return };
        let DataPage { values, segments, .. } = *page;
        segments.into_iter().flatten().for_each(|segments| self.released.page(segments));
        if let ValueDecoder::DeltaByteArray(delta) = values {
            self.set_last_value(delta.into_last());
            if !self.column.prefixes_go_on {
                self.set_last_value(Value::default());
            }
        }
    }

    /// Keeps the last value of a page, and releases the one before.
    pub(super) fn set_last_value(&mut self, value: Value) {
        if let Value::Long(before) = core::mem::replace(&mut self.last_value, value) {
            self.released.chunk(before);
        }
    }

    pub(super) fn release_dictionary(&mut self) {
        if let Some(entries) = self.dictionary.take() {
            self.released.dictionary(entries);
        }
    }
}
