//! Writes the structures of `parquet.thrift`, from the same types that they are read into.

mod bloom;
mod chunk;
mod footer;
mod index;
mod page;
mod schema;

pub(crate) use bloom::write_bloom_header;
pub(crate) use chunk::{ChunkPlaces, write_chunk, write_chunk_metadata};
pub(super) use chunk::{number_of, path};
pub(crate) use footer::{FooterSource, FooterSteps, GroupHead};
pub(crate) use index::{IndexSteps, PageBounds, PageSource};
pub(crate) use page::write_page_header;
pub(crate) use schema::write_element;
