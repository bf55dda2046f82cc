//! What the texts of options mean.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use marquetry_base::{Codec, Error, Result};
#[cfg(feature = "cluster")]
use marquetry_cluster::TableLayout;
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_scylla::bridge::{DuplicateKeys, InvalidUtf8, NullElements, Nulls};
use marquetry_tables::ColumnPath;
use marquetry_tables::files::Hive;
use marquetry_tables::sstables::MutationMapping;
use marquetry_tables::text::{self, Format, Header};

use crate::OutputFormat;

/// Text that is read, or Parquet whatever its name is.
#[derive(Debug, Clone, Copy)]
pub(super) enum InputFormat {
    Parquet,
    Text(Format),
}

pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| Error::misuse(format!("{text}: {error}")))
}

pub(super) fn positive(text: &str) -> Result<u64> {
    parsed::<NonZeroU64>(text).map(NonZeroU64::get)
}

pub(super) fn count(text: &str) -> Result<usize> {
    parsed::<NonZeroUsize>(text).map(NonZeroUsize::get)
}

/// One of several words.
fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T> {
    let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
    found.map(|(_, meant)| *meant).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Error::misuse(format!("{text:?} is none of {}", known.join(", ")))
    })
}

pub(super) fn hive(text: &str) -> Result<Hive> {
    word(text, &[("auto", Hive::Auto), ("text", Hive::Text), ("off", Hive::Off)])
}

/// What a table of a cluster has instead of rows, if anything, by the name of its layout.
#[cfg(feature = "cluster")]
pub(super) fn layout(text: &str) -> Result<Option<OutputFormat>> {
    match text {
        "columns" => Ok(Some(OutputFormat::Columns)),
        _ if TableLayout::by_name(text).is_some() => Ok(None),
        _ => Err(Error::misuse(format!("{text}: layouts of a table are rows, wide, blob and columns"))),
    }
}

pub(super) fn format(text: &str) -> Result<OutputFormat> {
    let words = [
        ("parquet", OutputFormat::Parquet),
        ("csv", OutputFormat::Csv),
        ("tsv", OutputFormat::Tsv),
        ("jsonl", OutputFormat::JsonLines),
        ("cql", OutputFormat::Cql),
    ];
    word(text, &words)
}

pub(super) fn input_format(text: &str) -> Result<InputFormat> {
    let words = [
        ("parquet", InputFormat::Parquet),
        ("csv", InputFormat::Text(Format::Csv)),
        ("tsv", InputFormat::Text(Format::Tsv)),
        ("jsonl", InputFormat::Text(Format::JsonLines)),
    ];
    word(text, &words)
}

pub(super) fn header(text: &str) -> Result<Header> {
    word(text, &[("auto", Header::Auto), ("yes", Header::Yes), ("no", Header::No)])
}

pub(super) fn short_rows(text: &str) -> Result<bool> {
    word(text, &[("error", false), ("null", true)])
}

pub(super) fn mapping(text: &str) -> Result<MutationMapping> {
    let words = [
        ("full", MutationMapping::Full),
        ("logical", MutationMapping::Logical),
        ("verbatim", MutationMapping::Verbatim),
    ];
    word(text, &words)
}

pub(super) fn nulls(text: &str) -> Result<Nulls> {
    word(text, &[("unset", Nulls::Unset), ("null", Nulls::Null)])
}

pub(super) fn character(text: &str) -> Result<u8> {
    text::character(text)
}

/// What is not nothing.
pub(super) fn name(text: &str) -> Result<String> {
    if text.is_empty() { Err(Error::misuse("this is empty")) } else { Ok(text.to_owned()) }
}

pub(super) fn path(text: &str) -> Result<PathBuf> {
    name(text).map(PathBuf::from)
}

pub(super) fn codec(text: &str) -> Result<Compression> {
    let words = [
        ("uncompressed", Compression::Uncompressed),
        ("none", Compression::Uncompressed),
        ("snappy", Compression::Codec(Codec::Snappy)),
        ("gzip", Compression::Codec(Codec::Gzip)),
        ("deflate", Compression::Codec(Codec::Gzip)),
        ("zstd", Compression::Codec(Codec::Zstd)),
        ("lz4_raw", Compression::Codec(Codec::Lz4Raw)),
        ("lz4", Compression::Codec(Codec::Lz4Raw)),
        ("brotli", Compression::Codec(Codec::Brotli)),
    ];
    word(text, &words)
}

/// Whether timestamps with more digits are cut to milliseconds.
pub(super) fn are_millis(text: &str) -> Result<bool> {
    word(text, &[("bigint", false), ("millis", true)])
}

pub(super) fn invalid_utf8(text: &str) -> Result<InvalidUtf8> {
    let words =
        [("error", InvalidUtf8::Error), ("replace", InvalidUtf8::Replace), ("blob", InvalidUtf8::Blob)];
    word(text, &words)
}

pub(super) fn null_elements(text: &str) -> Result<NullElements> {
    word(text, &[("error", NullElements::Error), ("drop", NullElements::Drop)])
}

pub(super) fn duplicate_keys(text: &str) -> Result<DuplicateKeys> {
    word(text, &[("error", DuplicateKeys::Error), ("last", DuplicateKeys::Last)])
}

/// Columns and their encodings: `id=DELTA_BINARY_PACKED,fare=BYTE_STREAM_SPLIT`.
pub(super) fn encodings(text: &str) -> Result<Vec<(ColumnPath, Encoding)>> {
    let known = [
        Encoding::Plain,
        Encoding::RleDictionary,
        Encoding::DeltaBinaryPacked,
        Encoding::DeltaLengthByteArray,
        Encoding::DeltaByteArray,
        Encoding::ByteStreamSplit,
        Encoding::Rle,
        Encoding::Alp,
    ];
    let known = known.map(|encoding| (encoding.to_string(), encoding));
    let known: Vec<(&str, Encoding)> = known.iter().map(|(name, encoding)| (&**name, *encoding)).collect();
    let of_column = |item: &str| {
        let Some((column, name)) = item.rsplit_once('=') else {
            return Err(Error::misuse(format!("{item:?} is not a column, '=', and an encoding: id=PLAIN")));
        };
        Ok((ColumnPath::parse(column)?, word(name, &known)?))
    };
    items(text).map(of_column).collect()
}

/// The items of a list. A comma within double quotes is one of a name.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    })
}
