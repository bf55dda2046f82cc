//! Files described: what their statistics and Bloom filters say of a column's values, pictures of files, and their columns in words.

mod bloom;
mod bounds;
mod declaration;
mod footer;
mod picture;
mod sstables;

pub use bloom::{BloomAnswer, BloomQuestion, FilterAnswer, PagesAnswer};
pub use bounds::{ColumnStatistics, ValueText};
pub use declaration::{Declaration, declaration};
pub use footer::{
    NodeJson, StatisticsJson, encryption_name, footer_json, geometry_name, order_name, schema_json, to_hex,
};
pub use picture::{Picture, picture};
pub use sstables::sstables_json;

use marquetry_parquet::format::Encoding;

/// The order in which encodings of a chunk are named: what says most of it comes first. Levels have theirs in every column, and
/// dictionaries are PLAIN.
pub fn encoding_rank(encoding: Encoding) -> (u8, Encoding) {
    let rank = match encoding {
        Encoding::Rle | Encoding::BitPacked => 2,
        Encoding::Plain => 1,
        _ => 0,
    };
    (rank, encoding)
}
