//! What is written is read again: any batches, options and hosts.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Codec, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::written::{self, Written};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::{Compression, Encoding, FileMetaData};
use marquetry_parquet::read::{PageIndexReader, ReadOptions};
use marquetry_parquet::schema::{PhysicalType, Schema};
use marquetry_parquet::write::{
    BloomOptions, ColumnOptions, Fed, FileWriter, PageBloomOptions, PageVersion, WriteOptions,
};

use crate::choices::Choices;
use crate::host::{self, LIMITS, Watched, bounded, check_error};
use crate::plan::{Only, Plan};
use crate::targets::SPILL;
use crate::tree::Tree;

/// Tables of any schema, in batches as a reader cuts them.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let (read, manner) = (host::options(choices), host::manner(choices));
    let tree = Tree::choose(choices, 4);
    let rows_max = choices.pick(&[20, 3, 60, 200]);
    let given = Plan::choose(tree, rows_max, Only::default(), choices);
    let source = given.write();
    let Some((metadata, batches)) = batches(&source, &read) else { return };
    let schema = Arc::clone(&metadata.schema);
    let options = options(&schema, choices);
    let write = |manner| bounded(&source, &LIMITS, || write(&schema, &batches, &options, manner));
    let (kind, hostile) = match (write(Manner::KIND), write(host::for_file(manner, &source))) {
        (Ok(kind), Ok(hostile)) => (kind, hostile),
        (Err(kind), Err(hostile)) => {
            assert_eq!(kind.kind(), hostile.kind(), "another error by {manner:?}");
            return check_error(&kind);
        }
        (kind, hostile) => {
            panic!("{:?} by {manner:?}, where a kind host gets {:?}", hostile.err(), kind.err())
        }
    };
    let file = hostile.object(FILE);
    assert!(file == kind.object(FILE), "another file by {manner:?}: {options:?}");
    examine(&file, &schema, &given, options.limits, host::for_file(manner, &file));
}

/// A table as batches; `None` where limits keep some of it back.
fn batches(bytes: &Bytes, options: &ReadOptions) -> Option<(Arc<FileMetaData>, Vec<Batch>)> {
    let metadata = host::footer(bytes, LIMITS, Manner::KIND).ok()?;
    let mut batches = Vec::new();
    let mut reader = host::reader(&metadata, options).ok()?;
    let read = hostile::run(&mut reader, FILE, bytes, Manner::KIND, |batch| {
        batches.push(batch);
        Ok(())
    });
    read.is_ok().then_some((metadata, batches))
}

fn write(schema: &Arc<Schema>, batches: &[Batch], options: &WriteOptions, manner: Manner) -> Result<Written> {
    let codecs = Arc::new(StandardCodecs::default());
    let writer = FileWriter::new(FILE, Arc::clone(schema), codecs, options.clone())?;
    let mut left = batches.iter();
    // A chunk that a library compresses is one call.
    let mut writer = Watched::at_once(writer, Budget::DEFAULT_UNITS);
    written::write(&mut writer, manner, |writer, _room| {
        let writer = writer.machine();
        match left.next() {
            Some(batch) => assert_eq!(writer.feed(batch.clone())?, Fed::Taken, "room that there is not"),
            None => writer.finish(),
        }
        Ok(())
    })
}

/// The file has the values that were given, whoever reads it with the limits it was written with, and a page index that
/// agrees with its footer.
fn examine(file: &Bytes, schema: &Schema, given: &Plan, limits: Limits, manner: Manner) {
    let metadata = host::footer(file, limits, manner).expect("a footer that was written");
    assert_eq!(metadata.schema.leaves(), schema.leaves());
    let read = ReadOptions { limits, ..ReadOptions::default() };
    for manner in [Manner::KIND, manner] {
        let told = bounded(file, &limits, || host::read(file, &metadata, &read, manner));
        told.check_expected(&given.expected);
    }
    let indexes = PageIndexReader::new(FILE, metadata, &read);
    let read = indexes
        .and_then(|indexes| hostile::run(&mut Watched::new(indexes), FILE, file, manner, |_index| Ok(())));
    assert!(read.is_ok(), "a page index that was written: {:?}", read.err());
}

fn options(schema: &Schema, choices: &mut Choices<'_>) -> WriteOptions {
    // Libraries have memory anew for each page, most of an input's time: those that do get few pages.
    let is_dear = choices.once_in(8);
    let codecs: &[Codec] = match is_dear {
        true => &[Codec::Zstd, Codec::Brotli, Codec::Gzip],
        false => &[Codec::Snappy, Codec::Lz4Raw, Codec::Lz4],
    };
    let leaves = 0..schema.leaves().len();
    let columns = leaves.map(|leaf| (leaf, column(schema, leaf, codecs, choices))).collect();
    let least = if is_dear { 50 } else { 1 };
    WriteOptions {
        columns,
        page_version: choices.pick(&[PageVersion::V1, PageVersion::V2]),
        page_rows: choices.pick(&[20_000, 1, 2, 7, 64, 100]).max(least),
        page_bytes: choices.pick(&[1 << 20, 1, 30, 500]).max(least * 10),
        dictionary_bytes: choices.pick(&[1 << 20, 0, 1, 40, 300]),
        row_group_rows: choices.pick(&[1 << 20, 1, 3, 64, 150]).max(least as u64),
        row_group_bytes: choices.pick(&[128 << 20, 1, 100, 2_000]).max(least as u64 * 100),
        crc: !choices.once_in(3),
        page_index: !choices.once_in(3),
        spill: choices.once_in(2).then_some(SPILL),
        held_bytes_max: choices.pick(&[16 << 20, 0, 1, 50, 1_000]),
        limits: if choices.once_in(2) { limits(choices) } else { LIMITS },
        ..WriteOptions::default()
    }
}

/// Limits, a few of which small tables reach. (What the writer counts of memory begins with rows of a MiB.)
fn limits(choices: &mut Choices<'_>) -> Limits {
    let mut one_of = |usual: u64, small: &[u64]| match choices.byte() % 6 {
        5 => choices.pick(small),
        _ => usual,
    };
    Limits {
        footer_bytes: one_of(LIMITS.footer_bytes, &[100, 400, 2_000]),
        page_header_bytes: one_of(LIMITS.page_header_bytes, &[20, 60, 200]),
        structure_bytes: one_of(LIMITS.structure_bytes, &[100, 300, 1_000]),
        page_index_bytes: one_of(LIMITS.page_index_bytes, &[20, 100]),
        page_bytes: one_of(LIMITS.page_bytes, &[10, 100, 1_000]),
        dictionary_bytes: one_of(LIMITS.dictionary_bytes, &[5, 50, 500]),
        value_bytes: one_of(LIMITS.value_bytes, &[0, 5, 50]),
        window_bytes: one_of(LIMITS.window_bytes, &[1 << 10]),
        nesting: one_of(LIMITS.nesting.into(), &[1, 3]) as u32,
        ..LIMITS
    }
}

fn column(schema: &Schema, leaf: usize, codecs: &[Codec], choices: &mut Choices<'_>) -> ColumnOptions {
    let physical = schema.leaves()[leaf].physical_type;
    let encodings = encodings(physical);
    let is_packed = choices.once_in(2);
    let has_bloom = physical != PhysicalType::Boolean && choices.once_in(4);
    ColumnOptions {
        encoding: (!choices.once_in(3)).then(|| choices.pick(encodings)),
        compression: match is_packed {
            true => Compression::Codec(choices.pick(codecs)),
            false => Compression::Uncompressed,
        },
        dictionary: !choices.once_in(4),
        bounds: !choices.once_in(5),
        bounds_bytes_max: choices.pick(&[64, 1, 2, 5, 1_000]),
        bloom: has_bloom.then(|| BloomOptions {
            fpp: choices.pick(&[0.01, 0.5, 0.0001]),
            bytes_max: choices.pick(&[1 << 20, 32, 64, 1 << 12]),
        }),
        page_bloom: has_bloom.then(PageBloomOptions::default),
        ..ColumnOptions::default()
    }
}

/// The encodings that values of a type can be written in.
pub(crate) fn encodings(physical: PhysicalType) -> &'static [Encoding] {
    use Encoding::{
        Alp, ByteStreamSplit, DeltaBinaryPacked, DeltaByteArray, DeltaLengthByteArray, Plain, Rle,
        RleDictionary,
    };
    match physical {
        PhysicalType::Boolean => &[Plain, Rle],
        PhysicalType::Int32 | PhysicalType::Int64 => {
            &[Plain, RleDictionary, DeltaBinaryPacked, ByteStreamSplit]
        }
        PhysicalType::Int96 => &[Plain, RleDictionary],
        PhysicalType::Float | PhysicalType::Double => &[Plain, RleDictionary, ByteStreamSplit, Alp],
        PhysicalType::ByteArray => &[Plain, RleDictionary, DeltaLengthByteArray, DeltaByteArray],
        PhysicalType::FixedLenByteArray(_) => &[Plain, RleDictionary, ByteStreamSplit, DeltaByteArray],
    }
}
