//! What the writer writes, readers with the same limits read: up to a limit it is read, and beyond it is refused before
//! the file is complete, with the column and the row.

use std::sync::Arc;

use marquetry_base::{Bytes, Codec, Detail, Error, Limit, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::leaves::sums;
use marquetry_conformance::written;
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::format::{Compression, Encoding, FileMetaData, KeyValue, PageKind};
use marquetry_parquet::read::{BatchReader, FooterReader, PageIndexReader, PageScanner, ReadOptions};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, PageVersion, WriteOptions};

const ZSTD: Compression = Compression::Codec(Codec::Zstd);
const SNAPPY: Compression = Compression::Codec(Codec::Snappy);
/// Columns of the tests of wide rows.
const COLUMNS: usize = 20;

fn leaf(name: &str, physical: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, None)).required()
}

fn schema(fields: &[FieldDef]) -> Arc<Schema> {
    Arc::new(Schema::of_fields(fields).unwrap())
}

fn strings(values: &[Vec<u8>]) -> Values {
    Values::ByteArray(ByteArrays::from_lengths(values.concat().into(), values.iter().map(Vec::len)).unwrap())
}

fn rows(values: impl IntoIterator<Item = Values>) -> Vec<Batch> {
    vec![Batch::of_values(values).unwrap()]
}

/// Rows of lists of so many values each.
fn lists(counts: &[usize], values: Values) -> Vec<Batch> {
    let repetition: Vec<u8> =
        counts.iter().flat_map(|&count| (0..count).map(|at| u8::from(at > 0))).collect();
    let definition = vec![2; repetition.len()];
    let column = ColumnBatch {
        leaf: 0,
        rows: counts.len(),
        nulls: 0,
        validity: None,
        values,
        layout: Layout::Dense,
        levels: Some(Levels { definition: definition.into(), repetition: Some(repetition.into()) }),
        provisional: false,
    };
    vec![Batch { row_group: 0, first_row: 0, rows: counts.len(), columns: vec![column] }]
}

fn list_schema(physical: PhysicalType) -> Arc<Schema> {
    schema(&[FieldDef::new("v", FieldType::List(Box::new(leaf("element", physical))))])
}

/// Bytes that no codec makes smaller.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

fn write(schema: &Arc<Schema>, batches: &[Batch], options: &WriteOptions) -> Result<Bytes> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, Arc::clone(schema), codecs, options.clone())?;
    let mut left = batches.iter().cloned();
    let written = written::write(&mut writer, Manner::KIND, |writer, _| {
        match left.next() {
            Some(batch) => assert_eq!(writer.feed(batch)?, Fed::Taken),
            None => writer.finish(),
        }
        Ok(())
    })?;
    Ok(written.object(FILE))
}

/// The rows of a file, all of whose metadata is read, too.
fn read(file: &Bytes, limits: Limits) -> Result<(Arc<FileMetaData>, Vec<Batch>)> {
    let mut metadata = None;
    hostile::run(&mut FooterReader::new(FILE, limits), FILE, file, Manner::KIND, |found| {
        metadata = Some(found);
        Ok(())
    })?;
    let metadata: Arc<FileMetaData> = metadata.expect("a footer");
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let mut index = PageIndexReader::new(FILE, Arc::clone(&metadata), &options)?;
    hostile::run(&mut index, FILE, file, Manner::KIND, |_| Ok(()))?;
    let codecs = Arc::new(StandardCodecs::new(limits));
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options)?;
    let mut batches = Vec::new();
    canonical::read(&mut reader, file, Manner::KIND, |batch| batches.push(batch))?;
    Ok((metadata, batches))
}

/// What is written is read, with the same limits, as what it was.
fn accepted(name: &str, schema: &Arc<Schema>, batches: &[Batch], options: &WriteOptions) -> Bytes {
    let file = write(schema, batches, options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (metadata, read) = read(&file, options.limits).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(sums(schema, batches) == sums(&metadata.schema, &read), "{name}: other rows are read");
    file
}

/// The writer refuses what readers with the same limits refuse. Returns the column and the row.
fn refused(
    name: &str,
    schema: &Arc<Schema>,
    batches: &[Batch],
    options: &WriteOptions,
    limit: Limit,
) -> (Option<String>, Option<u64>) {
    let limit_of = |error: &Error| match error.detail() {
        Some(Detail::Limit(limit)) => Some(limit),
        _ => None,
    };
    let error = write(schema, batches, options).map(|file| file.len()).expect_err(name);
    assert_eq!(limit_of(&error), Some(limit), "{name}: {error}");
    // And it is right to.
    let trusted = WriteOptions { limits: Limits::TRUSTED, ..options.clone() };
    let file = write(schema, batches, &trusted).unwrap();
    let found = read(&file, options.limits).map(|_| ()).expect_err(name);
    assert_eq!(limit_of(&found), Some(limit), "{name}: {found}");
    assert!(read(&file, Limits::TRUSTED).is_ok(), "{name}");
    (error.place().column.clone(), error.place().row)
}

fn with(column: ColumnOptions, limits: Limits) -> WriteOptions {
    WriteOptions { column, limits, ..WriteOptions::default() }
}

fn encoded(encoding: Encoding, compression: Compression) -> ColumnOptions {
    ColumnOptions { encoding: Some(encoding), compression, ..ColumnOptions::default() }
}

#[test]
fn values() {
    let limits = Limits { value_bytes: 100_000, ..Limits::DEFAULT };
    let schema_of = schema(&[leaf("a", PhysicalType::Int32), leaf("v", PhysicalType::ByteArray)]);
    let batches = |bytes: usize| {
        let values = [vec![1; 5], vec![2; 70_000], vec![3; 0], vec![4; bytes], vec![5; 1]];
        rows([Values::Int32((0..5).collect::<Vec<_>>().into()), strings(&values)])
    };
    for encoding in [Encoding::Plain, Encoding::RleDictionary, Encoding::DeltaByteArray] {
        let options = with(ColumnOptions { encoding: None, ..encoded(encoding, SNAPPY) }, limits);
        let mut options = WriteOptions { page_bytes: 100, ..options };
        options.columns.insert(1, encoded(encoding, SNAPPY));
        accepted("a value", &schema_of, &batches(100_000), &options);
        let place = refused("a value", &schema_of, &batches(100_001), &options, Limit::ValueBytes);
        assert_eq!(place, (Some("v".into()), Some(3)));
    }
    let fixed = |width: usize| {
        let physical = PhysicalType::FixedLenByteArray(u32::try_from(width).unwrap());
        let values = Values::FixedLenByteArray(FixedBytes::new(width, 2, vec![7; 2 * width].into()));
        (schema(&[leaf("v", physical)]), rows([values]))
    };
    let options = with(ColumnOptions::default(), limits);
    let (schema, batches) = fixed(100_000);
    accepted("a wide value", &schema, &batches, &options);
    let (schema, batches) = fixed(100_001);
    refused("a wide value", &schema, &batches, &options, Limit::ValueBytes);
}

/// A row is never divided.
#[test]
fn pages() {
    let limits = Limits { page_bytes: 1_000_000, ..Limits::DEFAULT };
    let schema = list_schema(PhysicalType::ByteArray);
    let batches = |bytes: usize| {
        let values = [vec![1; 10], vec![2; 10], noise(bytes), noise(bytes)];
        lists(&[1, 1, 2], strings(&values))
    };
    for version in [PageVersion::V1, PageVersion::V2] {
        for compression in [Compression::Uncompressed, SNAPPY, ZSTD] {
            let column = encoded(Encoding::Plain, compression);
            let options = WriteOptions { page_bytes: 100_000, page_version: version, ..with(column, limits) };
            // Levels and what codecs add.
            accepted("a page", &schema, &batches(499_800), &options);
            let place = refused("a page", &schema, &batches(500_100), &options, Limit::PageBytes);
            assert_eq!(place, (Some("v.list.element".into()), Some(2)));
        }
    }
    let options = WriteOptions { page_bytes: 1_000_001, ..with(ColumnOptions::default(), limits) };
    let error = write(&schema, &batches(1), &options).map(|_| ()).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Limit(Limit::PageBytes)), "{error}");
}

/// They are abandoned between rows; a row that is too large for one is refused.
#[test]
fn dictionaries() {
    let limits = Limits { dictionary_bytes: 2_000_000, ..Limits::DEFAULT };
    let column = encoded(Encoding::RleDictionary, SNAPPY);
    let options = WriteOptions { dictionary_bytes: 64 << 20, ..with(column, limits) };
    let numbers = |count: i64| Values::Int64((0..count).collect::<Vec<_>>().into());
    let flat = schema(&[leaf("v", PhysicalType::Int64)]);
    accepted("numbers", &flat, &rows([numbers(500_000)]), &options);
    let texts: Vec<Vec<u8>> = (0..200_000).map(|at| format!("{at:06}").into_bytes()).collect();
    let flat = schema(&[leaf("v", PhysicalType::ByteArray)]);
    accepted("strings", &flat, &rows([strings(&texts)]), &options);
    let list = list_schema(PhysicalType::Int64);
    accepted("a list", &list, &lists(&[249_000, 3], numbers(249_003)), &options);
    refused("a list", &list, &lists(&[250_001, 3], numbers(250_004)), &options, Limit::DictionaryBytes);
}

#[test]
fn names_and_nesting() {
    let nested = |depth: usize, bytes: usize| {
        let mut field = leaf(&"n".repeat(bytes), PhysicalType::Int32);
        for _ in 0..depth {
            field = FieldDef::new("g", FieldType::Struct(vec![field], None)).required();
        }
        schema(&[field])
    };
    let batches = rows([Values::Int32(vec![1, 2, 3].into())]);
    let limits = Limits { nesting: 5, structure_bytes: 10_000, ..Limits::DEFAULT };
    let options = with(ColumnOptions::default(), limits);
    accepted("groups", &nested(5, 1), &batches, &options);
    refused("groups", &nested(6, 1), &batches, &options, Limit::Nesting);
    // As many as are left by what else is in a structure.
    accepted("a path", &nested(5, 9_454), &batches, &options);
    let error = write(&nested(5, 9_455), &batches, &options).map(|_| ()).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Limit(Limit::StructureBytes)), "{error}");
    refused("a name", &nested(0, 10_001), &batches, &options, Limit::StructureBytes);
    // The structures of a nested column have histograms, too.
    let list = |depth: usize, bytes: usize| {
        let mut field = leaf(&"n".repeat(bytes), PhysicalType::Int32);
        for _ in 0..depth {
            field = FieldDef::new("g", FieldType::List(Box::new(field)));
        }
        schema(&[field])
    };
    let limits = Limits { structure_bytes: 10_000, ..Limits::DEFAULT };
    let of_lists = list(20, 9_000);
    let column = ColumnBatch {
        leaf: 0,
        rows: 300,
        nulls: 300,
        validity: None,
        values: Values::Int32(Vec::new().into()),
        layout: Layout::Dense,
        levels: Some(Levels { definition: vec![0; 300].into(), repetition: Some(vec![0; 300].into()) }),
        provisional: false,
    };
    let batches = vec![Batch { row_group: 0, first_row: 0, rows: 300, columns: vec![column] }];
    accepted("many levels", &of_lists, &batches, &with(ColumnOptions::default(), limits));
}

#[test]
fn footers() {
    let limits = Limits { footer_bytes: 20_000, ..Limits::DEFAULT };
    let schema = schema(&[leaf("v", PhysicalType::Int32)]);
    let batches = |count: i32| rows([Values::Int32((0..count).collect::<Vec<_>>().into())]);
    let options = WriteOptions { row_group_rows: 1, ..with(ColumnOptions::default(), limits) };
    accepted("row groups", &schema, &batches(100), &options);
    refused("row groups", &schema, &batches(400), &options, Limit::FooterBytes);
    let pair = |bytes: usize| KeyValue { key: "k".into(), value: Some(vec![b'v'; bytes].into()) };
    let options = with(ColumnOptions::default(), limits);
    let options = |bytes| WriteOptions { key_values: vec![pair(bytes)], ..options.clone() };
    accepted("metadata", &schema, &batches(1), &options(19_000));
    refused("metadata", &schema, &batches(1), &options(20_000), Limit::FooterBytes);
}

/// A chunk of very many pages has no index.
#[test]
fn page_indexes() {
    let limits = Limits { page_index_bytes: 100_000, ..Limits::DEFAULT };
    let schema = schema(&[leaf("v", PhysicalType::ByteArray)]);
    let texts =
        |count: usize| -> Vec<Vec<u8>> { (0..count).map(|at| format!("{at:060}").into_bytes()).collect() };
    let column = encoded(Encoding::Plain, Compression::Uncompressed);
    let options = WriteOptions { page_rows: 1, ..with(column, limits) };
    for (count, is_indexed) in [(600, [true, true]), (2_000, [false, true]), (5_000, [false, false])] {
        let file = accepted("an index", &schema, &rows([strings(&texts(count))]), &options);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let chunk = &metadata.row_groups[0].columns[0];
        let found = [chunk.column_index.is_some(), chunk.offset_index.is_some()];
        assert_eq!(found, is_indexed, "{count} pages");
    }
    let trusted = WriteOptions { limits: Limits::TRUSTED, ..options };
    let file = write(&schema, &rows([strings(&texts(2_000))]), &trusted).unwrap();
    assert!(read(&file, limits).is_err() && read(&file, Limits::TRUSTED).is_ok());
}

/// A page of a long row that a codec makes very small is not compressed, in files of both versions.
#[test]
fn repetitive_rows() {
    let flat = schema(&[leaf("v", PhysicalType::ByteArray)]);
    let list = list_schema(PhysicalType::Int64);
    let long = rows([strings(&[b"short".to_vec(), vec![b'x'; 65 << 20], b"short, too".to_vec()])]);
    let numbers = lists(&[3, 9 << 20, 2], Values::Int64(vec![7; (9 << 20) + 5].into()));
    for (schema, batches, page_version) in [
        (&flat, &long, PageVersion::V1),
        (&list, &numbers, PageVersion::V1),
        (&list, &numbers, PageVersion::V2),
    ] {
        let options = WriteOptions { page_version, ..with(encoded(Encoding::Plain, ZSTD), Limits::DEFAULT) };
        let file = accepted("a repetitive row", schema, batches, &options);
        assert!(file.len() > 65 << 20, "{} bytes", file.len());
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let mut scanner = PageScanner::new(FILE, &metadata, 0, 0, Limits::DEFAULT).unwrap();
        let (mut stored, mut others) = (0, 0);
        hostile::run(&mut scanner, FILE, &file, Manner::KIND, |page| {
            match (&page.header.kind, page_version) {
                (PageKind::DataV2(header), _) if page.header.uncompressed_bytes > 1 << 20 => {
                    assert!(!header.is_compressed);
                    stored += 1;
                }
                (PageKind::Data(_), PageVersion::V1) | (PageKind::DataV2(_), PageVersion::V2) => others += 1,
                (kind, _) => panic!("{kind:?}"),
            }
            Ok(())
        })
        .unwrap();
        assert_eq!((stored, others > 0), (1, true), "{page_version:?}");
        let trusted = WriteOptions { limits: Limits::TRUSTED, ..options };
        assert!(write(schema, batches, &trusted).unwrap().len() < 1 << 20);
    }
}

/// A row counts with what it takes in memory, in all columns.
#[test]
fn rows_in_memory() {
    let limits = Limits { total_bytes: 96 << 20, ..Limits::DEFAULT };
    let column = ColumnOptions { encoding: Some(Encoding::RleDictionary), ..ColumnOptions::default() };
    let options = with(column, limits);
    let list = list_schema(PhysicalType::Int64);
    let numbers = |count: usize| lists(&[1, count, 2], Values::Int64(vec![7; count + 3].into()));
    accepted("a list", &list, &numbers(3 << 20), &options);
    let place = refused("a list", &list, &numbers(6 << 20), &options, Limit::TotalBytes);
    assert_eq!(place, (Some("v.list.element".into()), Some(1)));
    let texts = |columns: usize| {
        let fields: Vec<FieldDef> =
            (0..columns).map(|at| leaf(&format!("c{at}"), PhysicalType::ByteArray)).collect();
        let long = strings(&[b"a".to_vec(), vec![b'x'; 10 << 20], b"b".to_vec()]);
        (schema(&fields), rows(vec![long; columns]))
    };
    let options = with(encoded(Encoding::Plain, SNAPPY), limits);
    let (schema, batches) = texts(4);
    accepted("strings", &schema, &batches, &options);
    let (schema, batches) = texts(12);
    refused("strings", &schema, &batches, &options, Limit::TotalBytes);
}

/// Strings of a dictionary are views into that, however many there are in a row.
#[test]
fn a_row_of_strings_of_a_dictionary() {
    let limits = Limits { total_bytes: 96 << 20, ..Limits::DEFAULT };
    let column = ColumnOptions { encoding: Some(Encoding::RleDictionary), ..ColumnOptions::default() };
    let list = list_schema(PhysicalType::ByteArray);
    let count = 1 << 20;
    let texts = |count: usize| {
        let views = ByteArrays::from_lengths(vec![b'x'; 100].into(), [100]).unwrap().views()[0];
        let whole = Arc::new(vec![Bytes::from(vec![b'x'; 100])]);
        lists(&[1, count, 2], Values::ByteArray(ByteArrays::new(vec![views; count + 3].into(), whole)))
    };
    accepted("strings of a dictionary", &list, &texts(count), &with(column, limits));
    let plain = with(encoded(Encoding::Plain, SNAPPY), limits);
    refused("the same in place", &list, &texts(count), &plain, Limit::TotalBytes);
}

/// Short values, which are written together, are each held to the limit; as views, and as a dictionary's. The error names their row.
#[test]
fn short_values() {
    let limits = Limits { value_bytes: 100, ..Limits::DEFAULT };
    let flat = schema(&[leaf("v", PhysicalType::ByteArray)]);
    for encoding in [Encoding::Plain, Encoding::RleDictionary, Encoding::DeltaByteArray] {
        let options = with(encoded(encoding, SNAPPY), limits);
        let values = |longest: usize| rows([strings(&[vec![b'a'; 10], vec![b'x'; longest], vec![b'b'; 99]])]);
        accepted("short values", &flat, &values(100), &options);
        let place = refused("a longer one", &flat, &values(101), &options, Limit::ValueBytes);
        assert_eq!(place, (Some("v".into()), Some(1)), "{encoding}");
        let Values::ByteArray(entries) = strings(&[vec![b'x'; 101], vec![b'a'; 10]]) else { unreachable!() };
        let indices = vec![1_u32, 1, 1, 0, 1].into();
        let kept = rows([Values::Dictionary(indices, Arc::new(Values::ByteArray(entries)))]);
        let place = refused("a dictionary's", &flat, &kept, &options, Limit::ValueBytes);
        assert_eq!(place, (Some("v".into()), Some(3)), "{encoding}");
    }
    let list = list_schema(PhysicalType::ByteArray);
    for (long, row) in [(0, 0), (3, 1), (4, 2)] {
        let values: Vec<Vec<u8>> = (0..6).map(|at| vec![b'x'; if at == long { 101 } else { 10 }]).collect();
        let options = with(encoded(Encoding::Plain, SNAPPY), limits);
        let place =
            refused("in a list", &list, &lists(&[1, 3, 2], strings(&values)), &options, Limit::ValueBytes);
        assert_eq!(place, (Some("v.list.element".into()), Some(row)));
    }
}

/// Of columns of short strings whose pages end at different rows, a batch holds two pages of each at least: it does not end
/// where any of them does, though what all hold is more than a batch may.
#[test]
fn columns_of_short_strings() {
    let limits = Limits { total_bytes: 112 << 20, ..Limits::DEFAULT };
    let (columns, pages, page_bytes) = (96, 4, 256 << 10);
    let fields: Vec<FieldDef> =
        (0..columns).map(|at| leaf(&format!("c{at}"), PhysicalType::ByteArray)).collect();
    let column = |at: usize| {
        let bytes = 96 + at;
        let text = |row: usize| format!("{row:0bytes$}").into_bytes();
        strings(&(0..pages * page_bytes / 144).map(text).collect::<Vec<_>>())
    };
    let options = WriteOptions {
        page_bytes,
        page_rows: usize::MAX,
        ..with(encoded(Encoding::Plain, Compression::Uncompressed), limits)
    };
    let file = accepted("many columns", &schema(&fields), &rows((0..columns).map(column)), &options);
    let batches = read(&file, limits).unwrap().1.len();
    // Twice as many end where a page ends.
    assert!(batches < 12, "{batches} batches");
}

/// Of many columns of long strings, a batch has so few rows that readers hold them.
#[test]
fn many_columns_of_strings() {
    let limits = Limits { total_bytes: 48 << 20, ..Limits::DEFAULT };
    let fields: Vec<FieldDef> =
        (0..COLUMNS).map(|at| leaf(&format!("c{at}"), PhysicalType::ByteArray)).collect();
    let column = |at: usize| {
        let text = |row: usize| format!("{row:08}-{at:02}-{}", "x".repeat(500)).into_bytes();
        strings(&(0..8_192).map(text).collect::<Vec<_>>())
    };
    let options = WriteOptions { page_bytes: 256 << 10, ..with(encoded(Encoding::Plain, ZSTD), limits) };
    accepted("many columns", &schema(&fields), &rows((0..COLUMNS).map(column)), &options);
}

/// The same at the sizes of the defaults.
#[test]
#[ignore = "soak: rows of 250 MiB"]
fn rows_of_the_default_sizes() {
    let flat = schema(&[leaf("v", PhysicalType::ByteArray), leaf("w", PhysicalType::ByteArray)]);
    let values = |bytes: usize| {
        let long = strings(&[b"a".to_vec(), vec![b'x'; bytes], b"b".to_vec()]);
        rows([long.clone(), long])
    };
    for encoding in [Encoding::Plain, Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray] {
        for compression in [Compression::Uncompressed, SNAPPY, ZSTD] {
            let options = with(encoded(encoding, compression), Limits::DEFAULT);
            accepted("long values", &flat, &values(250 << 20), &options);
        }
    }
    // (By default a page may have as many bytes as a value, and is refused first.)
    let options = with(ColumnOptions::default(), Limits { page_bytes: 512 << 20, ..Limits::DEFAULT });
    refused("a longer value", &flat, &values((256 << 20) + 1), &options, Limit::ValueBytes);
    let list = list_schema(PhysicalType::Int64);
    let numbers = |count: usize| lists(&[count, 1], Values::Int64(vec![0; count + 1].into()));
    let options = with(encoded(Encoding::RleDictionary, ZSTD), Limits::DEFAULT);
    accepted("a list", &list, &numbers(12_000_000), &options);
    let place = refused("a longer list", &list, &numbers(16_000_000), &options, Limit::Expansion);
    assert_eq!(place, (Some("v.list.element".into()), Some(0)));
    let plain = with(encoded(Encoding::Plain, ZSTD), Limits::DEFAULT);
    accepted("a longer list in PLAIN", &list, &numbers(16_000_000), &plain);
}
