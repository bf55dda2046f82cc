//! Components that are short texts.

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Limit, Limits, Object, Release, Result};

use super::elements::{ComponentReader, Elements, Going, Parser};
use super::toc::Component;

/// The most bytes of such a text: Digest.crc32 has ten digits, and TOC.txt the names of some files.
const TEXT_BYTES_MAX: u64 = 64 << 10;

/// Reads TOC.txt or Digest.crc32: its product is their text, for [`parse_toc`](super::parse_toc) or
/// [`parse_digest`](super::checksums::parse_digest).
pub type TextReader = ComponentReader<TextParser>;

/// What a [`TextReader`] reads with.
#[derive(Debug)]
pub struct TextParser(());

impl TextReader {
    /// A reader of the component that `object` is.
    pub fn new(object: Object, component: &Component, limits: Limits) -> TextReader {
        let name = match component {
            Component::Toc => "TOC.txt",
            Component::Digest => "Digest.crc32",
            _ => "a text",
        };
        let limit = (Limit::StructureBytes, TEXT_BYTES_MAX.min(limits.structure_bytes));
        ComponentReader::of(Elements::new(object, name, limit, &limits), TextParser(()))
    }
}

impl Parser for TextParser {
    type Product = Bytes;

    fn next(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<Option<Bytes>>> {
        let Some(length) = usize_of(elements.left()).filter(|length| *length > 0) else {
            return Ok(Going::Done(Some(Bytes::new())));
        };
        let text = elements.next(budget, |cursor| Ok(Bytes::copy_from_slice(cursor.take(length)?)))?;
        Ok(text.map(Some))
    }
}

impl Release for TextParser {}
