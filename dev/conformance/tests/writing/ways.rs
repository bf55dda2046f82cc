//! The ways to write that others are asked about: types, encodings, codecs, page versions, nestings.

use marquetry_base::Codec;
use marquetry_conformance::craft;
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, PageBloomOptions, PageVersion, WriteOptions};

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::plain;

const ROWS: [usize; 3] = [300, 1, 500];
const FLAVOURS: [Flavour; 3] = [Flavour::Few, Flavour::Ascending, Flavour::Random];

/// The encodings that a type may have.
fn encodings(number: i32) -> Vec<Encoding> {
    let mut all = vec![Encoding::Plain];
    if number != craft::BOOLEAN {
        all.push(Encoding::RleDictionary);
    }
    all.extend(match number {
        craft::BOOLEAN => &[Encoding::Rle][..],
        craft::INT32 | craft::INT64 => &[Encoding::DeltaBinaryPacked, Encoding::ByteStreamSplit],
        craft::BYTE_ARRAY => &[Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray],
        craft::FIXED_LEN_BYTE_ARRAY => &[Encoding::DeltaByteArray, Encoding::ByteStreamSplit],
        craft::INT96 => &[],
        _ => &[Encoding::ByteStreamSplit],
    });
    all
}

/// A way to write.
pub(crate) struct Way {
    /// What it is called: `what-codec-version`, or of one type `type-encoding-version`.
    pub(crate) name: String,
    pub(crate) types: Vec<(&'static str, i32)>,
    pub(crate) shapes: Vec<String>,
    pub(crate) flavours: &'static [Flavour],
    /// Rows of the batches.
    pub(crate) rows: [usize; 3],
    pub(crate) options: WriteOptions,
}

/// What `make test` writes.
pub(crate) fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for page_version in [PageVersion::V1, PageVersion::V2] {
        for (name, number) in TYPES {
            for encoding in encodings(number) {
                let column = ColumnOptions { encoding: Some(encoding), ..plain() };
                // Several pages, and several row groups.
                let options = WriteOptions {
                    column,
                    page_version,
                    page_rows: 100,
                    row_group_rows: 600,
                    ..WriteOptions::default()
                };
                let types = vec![(name, number)];
                let name = format!("{name}-{encoding}-{page_version:?}");
                ways.push(Way {
                    name,
                    types,
                    shapes: texts(&SHAPES),
                    flavours: &FLAVOURS,
                    rows: ROWS,
                    options,
                });
            }
        }
        for codec in codecs() {
            let column = ColumnOptions { compression: codec, ..ColumnOptions::default() };
            let options = WriteOptions { column, page_version, ..WriteOptions::default() };
            for (name, shapes) in [("all", &SHAPES[..]), ("flat", &SHAPES[..2])] {
                let name = format!("{name}-{codec}-{page_version:?}");
                ways.push(Way {
                    name,
                    types: TYPES.to_vec(),
                    shapes: texts(shapes),
                    flavours: &FLAVOURS,
                    rows: ROWS,
                    options: options.clone(),
                });
            }
        }
        // A dictionary that is left between two pages.
        let column = ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() };
        let options = WriteOptions {
            column,
            page_version,
            page_rows: 100,
            dictionary_bytes: 1000,
            ..WriteOptions::default()
        };
        let (name, types) = (format!("int64-left-{page_version:?}"), vec![("int64", craft::INT64)]);
        ways.push(Way { name, types, shapes: texts(&SHAPES), flavours: &FLAVOURS, rows: ROWS, options });
        let column = ColumnOptions {
            bloom: Some(BloomOptions::default()),
            page_bloom: Some(PageBloomOptions::default()),
            ..ColumnOptions::default()
        };
        let types: Vec<_> = TYPES.into_iter().filter(|(_, number)| *number != craft::BOOLEAN).collect();
        for (name, shapes, row_group_rows) in [("all", &SHAPES[..], 1 << 20), ("flat", &SHAPES[..2], 600)] {
            let options = WriteOptions {
                column: column.clone(),
                page_version,
                row_group_rows,
                ..WriteOptions::default()
            };
            let name = format!("{name}-bloom-{page_version:?}");
            ways.push(Way {
                name,
                types: types.clone(),
                shapes: texts(shapes),
                flavours: &FLAVOURS,
                rows: ROWS,
                options,
            });
        }
    }
    ways.extend(spanning());
    ways
}

/// Every type in every encoding in every nesting, each in one of the codecs and page versions, of which each pair occurs.
fn spanning() -> Vec<Way> {
    let codecs = codecs();
    let all =
        TYPES.into_iter().flat_map(|of| encodings(of.1).into_iter().map(move |encoding| (of, encoding)));
    let way = |(at, (of, encoding))| {
        let version = if at % 2 == 0 { PageVersion::V1 } else { PageVersion::V2 };
        let shapes = given::deep_shapes(|shape| shape * 5 + at);
        let way = nested(of, encoding, codecs[at % codecs.len()], version, shapes);
        Way { flavours: &FLAVOURS[at % 3..][..1], ..way }
    };
    all.enumerate().map(way).collect()
}

/// Every type in every encoding, page version and nesting, in one codec: all is optional, and any part required.
pub(crate) fn product(codec: Compression) -> Vec<Way> {
    let mut ways = Vec::new();
    for version in [PageVersion::V1, PageVersion::V2] {
        for of in TYPES {
            for (at, encoding) in encodings(of.1).into_iter().enumerate() {
                let mut shapes = given::deep_shapes(|_| 0);
                shapes.extend(given::deep_shapes(|shape| 1 + (shape * 4 + at) % 15));
                ways.push(nested(of, encoding, codec, version, shapes));
            }
        }
    }
    ways
}

fn nested(
    of: (&'static str, i32),
    encoding: Encoding,
    compression: Compression,
    page_version: PageVersion,
    shapes: Vec<String>,
) -> Way {
    let column = ColumnOptions { encoding: Some(encoding), compression, ..ColumnOptions::default() };
    let options =
        WriteOptions { column, page_version, page_rows: 40, row_group_rows: 180, ..WriteOptions::default() };
    let name = format!("nested-{compression}-{page_version:?}-{}-{encoding}", of.0);
    Way { name, types: vec![of], shapes, flavours: &FLAVOURS, rows: [90, 1, 150], options }
}

fn texts(shapes: &[&str]) -> Vec<String> {
    shapes.iter().map(|shape| (*shape).to_owned()).collect()
}

/// The codecs that are there to write.
pub(crate) fn codecs() -> Vec<Compression> {
    use marquetry_base::Codecs;
    let all = [Codec::Snappy, Codec::Gzip, Codec::Brotli, Codec::Lz4, Codec::Zstd, Codec::Lz4Raw];
    let there = marquetry_codecs::StandardCodecs::default();
    let there = all.into_iter().filter(|codec| there.compressor(*codec, None).is_ok());
    std::iter::once(Compression::Uncompressed).chain(there.map(Compression::Codec)).collect()
}
