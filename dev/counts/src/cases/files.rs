//! Files of one column: each is written, and read.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Bitmap, Bytes, Codec, Error, Limits, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSink, ByteSinks, ByteSources, drive, drive_into};
use marquetry_parquet::batch::{Assembler, Batch, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, WriteOptions};

use super::{Cases, Random};

const FILE: Object = Object(0);

/// Two pages of the default size or more: what is done once per file weighs little.
const ROWS: usize = 40_000;
/// Rows of a batch that is written.
const BATCH_ROWS: usize = 20_000;
const DISTINCT: u64 = 1000;
const WIDTH: u32 = 16;

pub(super) fn all(cases: &mut Cases) -> std::result::Result<(), String> {
    for column in columns() {
        column.count(cases)?;
    }
    Ok(())
}

/// A column, and how it is written and read.
struct Column {
    name: &'static str,
    physical: PhysicalType,
    /// Values that are not null, in order.
    values: fn(&mut Random, usize) -> Values,
    nulls: Nulls,
    encoding: Encoding,
    compression: Compression,
    crc: bool,
    products: &'static [Product],
}

#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    None,
    /// One row in so many.
    OneIn(u64),
    /// Rows are lists of up to four elements; of the lists and the elements some are null.
    Lists,
}

#[derive(Clone, Copy)]
enum Product {
    Dense,
    Arrays,
    Dictionary,
}

use Product::{Arrays, Dense, Dictionary};

fn columns() -> Vec<Column> {
    let plain = |name, physical, values| Column {
        name,
        physical,
        values,
        nulls: Nulls::None,
        encoding: Encoding::Plain,
        compression: Compression::Uncompressed,
        crc: false,
        products: &[Dense],
    };
    let int32 = |name| plain(name, PhysicalType::Int32, some_int32);
    let int64 = |name| plain(name, PhysicalType::Int64, some_int64);
    let double = |name| plain(name, PhysicalType::Double, noise_double);
    let strings = |name| plain(name, PhysicalType::ByteArray, some_strings);
    let encoded = |encoding, column: Column| Column { encoding, ..column };
    let compressed = |codec, column: Column| Column { compression: Compression::Codec(codec), ..column };
    let both = |column: Column| Column { products: &[Dense, Arrays], ..column };
    let nulls = |nulls, column: Column| Column { nulls, products: &[Dense, Arrays], ..column };
    vec![
        int32("int32 PLAIN"),
        int64("int64 PLAIN"),
        Column { crc: true, ..int64("int64 PLAIN with CRC") },
        plain("boolean PLAIN", PhysicalType::Boolean, booleans),
        plain("fixed16 PLAIN", PhysicalType::FixedLenByteArray(WIDTH), noise_fixed),
        both(strings("string PLAIN")),
        compressed(Codec::Snappy, int64("int64 PLAIN SNAPPY")),
        compressed(Codec::Snappy, strings("string PLAIN SNAPPY")),
        compressed(Codec::Lz4Raw, int64("int64 PLAIN LZ4_RAW")),
        compressed(Codec::Gzip, int64("int64 PLAIN GZIP")),
        encoded(Encoding::RleDictionary, int32("int32 RLE_DICTIONARY")),
        encoded(Encoding::RleDictionary, int64("int64 RLE_DICTIONARY")),
        Column {
            products: &[Dense, Arrays, Dictionary],
            ..encoded(Encoding::RleDictionary, strings("string RLE_DICTIONARY"))
        },
        Column {
            values: rising_int32,
            ..encoded(Encoding::DeltaBinaryPacked, int32("int32 DELTA_BINARY_PACKED"))
        },
        Column {
            values: rising_int64,
            ..encoded(Encoding::DeltaBinaryPacked, int64("int64 DELTA_BINARY_PACKED"))
        },
        encoded(Encoding::DeltaLengthByteArray, both(strings("string DELTA_LENGTH_BYTE_ARRAY"))),
        encoded(Encoding::DeltaByteArray, both(strings("string DELTA_BYTE_ARRAY"))),
        encoded(Encoding::ByteStreamSplit, double("double BYTE_STREAM_SPLIT")),
        Column { values: decimal_double, ..encoded(Encoding::Alp, double("double ALP")) },
        nulls(Nulls::OneIn(10), int64("int64 PLAIN, 10 % nulls")),
        nulls(Nulls::OneIn(2), int64("int64 PLAIN, 50 % nulls")),
        nulls(Nulls::OneIn(10), encoded(Encoding::RleDictionary, int64("int64 RLE_DICTIONARY, 10 % nulls"))),
        nulls(Nulls::OneIn(2), strings("string PLAIN, 50 % nulls")),
        nulls(Nulls::Lists, int64("lists of int64 PLAIN")),
        nulls(Nulls::Lists, encoded(Encoding::RleDictionary, strings("lists of string RLE_DICTIONARY"))),
    ]
}

impl Column {
    fn count(&self, cases: &mut Cases) -> std::result::Result<(), String> {
        let prepared = (|| Ok((self.schema()?, self.batches())))();
        let (schema, batches) = prepared.map_err(|error: Error| format!("{}: {error}", self.name))?;
        let mut written = Vec::new();
        let what_is_written = self.bytes_of(&batches);
        cases.case(&format!("write {}", self.name), &what_is_written, || {
            written.clear();
            write(&schema, &batches, &self.options(), &mut written)
        })?;
        let file = Bytes::from(written);
        for product in self.products {
            let how = match product {
                Dense => "dense",
                Arrays => "arrays",
                Dictionary => "dictionary",
            };
            cases.case(&format!("read {}, {how}", self.name), &file, || {
                let rows = read(&file, *product)?;
                if rows == u64_of(ROWS) { Ok(()) } else { Err(Error::internal(format!("{rows} rows"))) }
            })?;
        }
        Ok(())
    }

    fn schema(&self) -> Result<Arc<Schema>> {
        let text = (self.physical == PhysicalType::ByteArray).then_some(LogicalType::String);
        let leaf = FieldType::Leaf(self.physical, text);
        let field = match self.nulls {
            Nulls::None => FieldDef::new("v", leaf).required(),
            Nulls::OneIn(_) => FieldDef::new("v", leaf),
            Nulls::Lists => FieldDef::new("v", FieldType::List(Box::new(FieldDef::new("element", leaf)))),
        };
        Ok(Arc::new(Schema::of_fields(&[field])?))
    }

    fn options(&self) -> WriteOptions {
        WriteOptions {
            column: ColumnOptions {
                encoding: Some(self.encoding),
                compression: self.compression,
                ..ColumnOptions::default()
            },
            crc: self.crc,
            page_index: false,
            ..WriteOptions::default()
        }
    }

    fn batches(&self) -> Vec<Batch> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        (0..ROWS / BATCH_ROWS).map(|_| self.batch(&mut random)).collect()
    }

    fn batch(&self, random: &mut Random) -> Batch {
        let whole = |values: Values| ColumnBatch {
            leaf: 0,
            rows: BATCH_ROWS,
            nulls: 0,
            validity: None,
            values,
            layout: Layout::Dense,
            levels: None,
            provisional: false,
        };
        let column = match self.nulls {
            Nulls::None => ColumnBatch { layout: Layout::Spaced, ..whole((self.values)(random, BATCH_ROWS)) },
            Nulls::OneIn(many) => {
                let present: Vec<bool> = (0..BATCH_ROWS).map(|_| random.below(many) > 0).collect();
                let there = present.iter().filter(|is_present| **is_present).count();
                ColumnBatch {
                    nulls: BATCH_ROWS - there,
                    validity: Some(present.into_iter().collect::<Bitmap>()),
                    ..whole((self.values)(random, there))
                }
            }
            Nulls::Lists => {
                let levels = lists(random);
                let there = levels.definition.iter().filter(|level| **level == 3).count();
                ColumnBatch {
                    nulls: levels.definition.len() - there,
                    levels: Some(levels),
                    ..whole((self.values)(random, there))
                }
            }
        };
        Batch { row_group: 0, first_row: 0, rows: BATCH_ROWS, columns: vec![column] }
    }

    /// What stands for the batches in their checksum: their shape, and the first values, as text.
    fn bytes_of(&self, batches: &[Batch]) -> Vec<u8> {
        let mut text = String::new();
        for column in batches.iter().flat_map(|batch| &batch.columns) {
            let few = column.values.slice(0..100.min(column.values.len()));
            text += &format!("{} {} {few:?}", column.rows, column.nulls);
        }
        text.into_bytes()
    }
}

/// Levels of lists: null, empty, or of elements of which one in ten is null.
fn lists(random: &mut Random) -> Levels {
    let (mut definition, mut repetition) = (Vec::new(), Vec::new());
    for _ in 0..BATCH_ROWS {
        let elements = random.below(5);
        if elements == 0 {
            definition.push(u8::from(random.below(2) > 0));
            repetition.push(0);
        }
        for at in 0..elements {
            definition.push(if random.below(10) > 0 { 3 } else { 2 });
            repetition.push(u8::from(at > 0));
        }
    }
    Levels { definition: definition.into(), repetition: Some(repetition.into()) }
}

fn some_int64(random: &mut Random, count: usize) -> Values {
    // Every second one is of 256, so that a codec finds something.
    let value = |random: &mut Random| random.below(1 << 20).cast_signed();
    let common: Vec<i64> = (0..256).map(|_| value(random)).collect();
    let values = (0..count).map(|_| match random.below(512) {
        at @ 0..256 => common.get(usize::try_from(at).unwrap_or_default()).copied().unwrap_or_default(),
        at => at.cast_signed() % 256 * 4099 + random.below(4).cast_signed(),
    });
    values.collect::<Vec<i64>>().into()
}

fn some_int32(random: &mut Random, count: usize) -> Values {
    narrow(&some_int64(random, count))
}

fn rising_int64(random: &mut Random, count: usize) -> Values {
    let mut last = 0;
    let values = (0..count).map(|_| {
        last += random.below(201).cast_signed() - 100;
        last
    });
    values.collect::<Vec<i64>>().into()
}

fn rising_int32(random: &mut Random, count: usize) -> Values {
    narrow(&rising_int64(random, count))
}

/// The same numbers, which are small.
fn narrow(values: &Values) -> Values {
    let Values::Int64(values) = values else { return Vec::<i32>::new().into() };
    values.iter().map(|value| i32::try_from(*value).unwrap_or_default()).collect::<Vec<i32>>().into()
}

fn noise_double(random: &mut Random, count: usize) -> Values {
    (0..count).map(|_| f64::from_bits(random.next() >> 2)).collect::<Vec<f64>>().into()
}

fn decimal_double(random: &mut Random, count: usize) -> Values {
    let cents = |random: &mut Random| u32::try_from(random.below(1_000_000)).unwrap_or_default();
    (0..count).map(|_| f64::from(cents(random)) / 100.0).collect::<Vec<f64>>().into()
}

fn booleans(random: &mut Random, count: usize) -> Values {
    Values::Boolean((0..count).map(|_| random.below(3) == 0).collect())
}

fn noise_fixed(random: &mut Random, count: usize) -> Values {
    let width = usize_of_u32(WIDTH);
    Values::FixedLenByteArray(FixedBytes::new(width, count, random.bytes(count * width).into()))
}

/// Words of 8 to 23 bytes, of which there are few enough for a dictionary.
fn some_strings(random: &mut Random, count: usize) -> Values {
    let word = |number: u64| {
        let tail = "abcdefghijklmnop".get(..usize::try_from(number % 16).unwrap_or_default());
        format!("w{:07}{}", number * 9973, tail.unwrap_or_default())
    };
    (0..count).map(|_| word(random.below(DISTINCT))).collect()
}

fn write(
    schema: &Arc<Schema>,
    batches: &[Batch],
    options: &WriteOptions,
    written: &mut Vec<u8>,
) -> Result<()> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, Arc::clone(schema), codecs, options.clone())?;
    let mut sinks = ByteSinks::new().with(FILE, Written(written));
    for batch in batches {
        drive_into(&mut writer, &mut sinks)?;
        if writer.feed(batch.clone())? != Fed::Taken {
            return Err(Error::internal("a writer that asked for rows has no room for them"));
        }
    }
    writer.finish();
    while drive_into(&mut writer, &mut sinks)?.is_some() {}
    Ok(())
}

/// Reads a file as the reading benchmark's contestant does, and counts its rows.
fn read(file: &Bytes, product: Product) -> Result<u64> {
    let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = drive(&mut footer, &sources)?.ok_or_else(|| Error::internal("no metadata"))?;
    let is_dense = matches!(product, Dense);
    let options = ReadOptions {
        layout: if is_dense { Layout::Dense } else { Layout::Spaced },
        keep_dictionaries: matches!(product, Dictionary),
        verify_utf8: !is_dense,
        ..ReadOptions::default()
    };
    let schema = &metadata.schema;
    let is_nested = |node: &usize| schema.leaves_of(*node).any(|leaf| !schema.leaves()[leaf].is_flat());
    let nested = schema.children(0).filter(|node| !is_dense && is_nested(node));
    let mut assemblers: Vec<Assembler> =
        nested.map(|node| Assembler::new(Arc::clone(schema), node, None, &Limits::DEFAULT)).collect();
    let mut reader =
        BatchReader::new(FILE, Arc::clone(&metadata), Arc::new(StandardCodecs::default()), options)?;
    let mut rows = 0;
    while let Some(batch) = drive(&mut reader, &sources)? {
        rows += u64_of(batch.rows);
        for assembler in &mut assemblers {
            drop(assembler.assemble(&batch, &|leaf| batch.columns.get(leaf))?);
        }
    }
    Ok(rows)
}

/// A file in memory.
struct Written<'a>(&'a mut Vec<u8>);

impl ByteSink for Written<'_> {
    fn name(&self) -> &str {
        "memory"
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, _: std::ops::Range<u64>) -> Result<Bytes> {
        Err(Error::io("what is written is not read"))
    }
}
