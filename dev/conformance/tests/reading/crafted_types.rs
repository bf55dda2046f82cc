//! Types, annotations and codecs that no peer writes, made by hand and read as they were written; and what is refused.

use std::sync::{Arc, OnceLock};

use marquetry_base::{Bytes, ErrorKind};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::features::{self, Source};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::records::{array_sums, field_sums};
use marquetry_parquet::batch::Values;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::{LogicalType, TimeUnit};

use crate::Outcome;
use crate::crafted::{
    Case, batches, case, four_words, indices, numbers, one, rows_bytes, rows_i32, rows_i64,
};

/// Files of flat columns.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = lzo_cases();
    cases.push(gzip_members());
    cases.extend(int96_at_its_edges());
    cases.push(decimals_of_any_length());
    cases.push(a_column_of_fewer_rows());
    cases
}

/// Where dictionaries are kept, batches of the strings end where their pages do; what the columns before them have of a batch is then too much.
fn a_column_of_fewer_rows() -> Case {
    let (dictionary, words) = four_words();
    let data = Page::data(50, RLE_DICTIONARY, indices(&[1; 50], 2));
    let plain = Page::data(3, PLAIN, plain_bytes(["x", "y", "z"]));
    let strings = Chunk::new(103, [dictionary, data.clone(), data, plain]);
    let values: Vec<i64> = (0..103).collect();
    let chunk = || Chunk::new(103, [Page::data(103, PLAIN, plain_i64(&values))]);
    let columns = [("a", INT64), ("b", INT64), ("c", BYTE_ARRAY), ("d", INT64)];
    let table = Table::new(columns.map(|(name, kind)| Column::required(name, kind)));
    let rows = || rows_i64(&values);
    let words = [vec![words[1]; 100], vec!["x", "y", "z"]].concat();
    case(
        "strings-that-end-a-batch",
        table.group(103, [chunk(), chunk(), strings, chunk()]),
        [rows(), rows(), rows_bytes(&words), rows()],
    )
}

/// A block by LZO1X.
fn lzo(bytes: &[u8]) -> Vec<u8> {
    lzokay::compress::compress(bytes).expect("lzo takes any bytes")
}

fn big_endian(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a small page").to_be_bytes()
}

/// Pages in the three layouts that writers gave LZO: Hadoop's (Parquet Java), python-lzo's (fastparquet), and none.
fn lzo_cases() -> Vec<Case> {
    let values: Vec<i32> = numbers(600).iter().map(|value| value % 50).collect();
    let plain = plain_i32(&values);
    let hadoop = |bytes: &[u8]| {
        // Two blocks, of which the second has two chunks.
        let (first, second) = bytes.split_at(bytes.len() / 3);
        let mut out = Vec::new();
        for chunks in [vec![first], second.chunks(second.len().div_ceil(2)).collect()] {
            out.extend(big_endian(chunks.iter().map(|chunk| chunk.len()).sum()));
            for chunk in chunks {
                let chunk = lzo(chunk);
                out.extend(big_endian(chunk.len()));
                out.extend(chunk);
            }
        }
        out
    };
    let python = |bytes: &[u8]| [&[0xf0][..], &big_endian(bytes.len()), &lzo(bytes)].concat();
    let layouts: [(&str, Vec<u8>); 3] =
        [("lzo-of-hadoop", hadoop(&plain)), ("lzo-of-python", python(&plain)), ("lzo-bare", lzo(&plain))];
    let why = "it has no LZO";
    layouts
        .map(|(name, body)| {
            let length = V::I32(i32::try_from(plain.len()).expect("a small page"));
            let v1 = Page::data(600, PLAIN, body.clone()).with(2, length.clone());
            let v2 = Page::data_v2(600, 0, PLAIN, &[], &body).with(2, length);
            let rows = [rows_i32(&values), rows_i32(&values)].concat();
            let chunk = Chunk::new(1200, [v1, v2]).codec(LZO);
            case(name, one(Column::required("a", INT32), chunk), [rows]).not_by_pyarrow(why)
        })
        .into()
}

/// A page of which each third is a GZIP member, one of them empty.
fn gzip_members() -> Case {
    let values = numbers(300);
    let plain = plain_i32(&values);
    let parts = [&plain[..500], &[], &plain[500..]];
    let body: Vec<u8> = parts.iter().flat_map(|part| compress(GZIP, part)).collect();
    let page = Page::data(300, PLAIN, body).with(2, V::I32(1200));
    let chunk = Chunk::new(300, [page]).codec(GZIP);
    case("gzip-of-three-members", one(Column::required("a", INT32), chunk), [rows_i32(&values)])
}

/// INT96 whose nanoseconds are more than a day, and whose days are the first there are.
fn int96_at_its_edges() -> [Case; 2] {
    const DAY_NANOS: u64 = 86_400_000_000_000;
    let edges = |name, values: &[(u64, u32)]| {
        let value = |(nanos, day): &(u64, u32)| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat();
        let values: Vec<Vec<u8>> = values.iter().map(value).collect();
        let count = i64::try_from(values.len()).expect("few values");
        let page = Page::data(i32::try_from(count).expect("few values"), PLAIN, values.concat());
        case(name, one(Column::required("a", INT96), Chunk::new(count, [page])), [rows_bytes(&values)])
    };
    let beyond_a_day = [
        (0, 2_440_588),
        (DAY_NANOS - 1, 2_440_588),
        (DAY_NANOS, 2_440_587),
        (3 * DAY_NANOS + 5, 2_440_000),
        (7, 5_000_000),
    ];
    let first_days = [(0, 0), (12, 0), (DAY_NANOS - 1, 1)];
    [
        edges("int96-beyond-a-day", &beyond_a_day),
        edges("int96-of-the-first-days", &first_days)
            .not_by_pyarrow("it takes days before 1970 that its nanoseconds do not reach for 1970-01-01"),
    ]
}

/// BYTE_ARRAY decimals that are longer than they need be, and as short as can be.
fn decimals_of_any_length() -> Case {
    let values: [&[u8]; 7] =
        [&[5], &[0, 0, 5], &[0xff, 0xff, 0xfb], &[0x80], &[0], &[0, 0x80], &[0x7f, 0xff, 0xff, 0xff]];
    let column = Column::required("a", BYTE_ARRAY).with(6, V::I32(5)).with(7, V::I32(2)).with(8, V::I32(20));
    let chunk = Chunk::new(7, [Page::data(7, PLAIN, plain_bytes(values))]);
    case("decimals-of-any-length", one(column, chunk), [rows_bytes(&values)])
}

/// What a footer says and pages do not show, once.
pub(crate) fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let mut all = Outcome { summary: "annotations, groups, refusals".to_owned(), ..Outcome::default() };
        converted_types(&mut all);
        file_group(&mut all);
        extensions(&mut all);
        external_column(&mut all);
        all
    })
}

#[test]
fn what_footers_say_is_understood() {
    outcome().assert_right("footers");
}

/// Each number of `ConvertedType`, without a `LogicalType` beside it.
fn converted_types(all: &mut Outcome) {
    let integer = |bit_width, is_signed| LogicalType::Integer { bit_width, is_signed };
    let time = |unit| LogicalType::Time { is_adjusted_to_utc: true, unit };
    let timestamp = |unit| LogicalType::Timestamp { is_adjusted_to_utc: true, unit };
    let expected = [
        (0, BYTE_ARRAY, LogicalType::String),
        (4, BYTE_ARRAY, LogicalType::Enum),
        (5, INT32, LogicalType::Decimal { scale: 2, precision: 9 }),
        (5, INT64, LogicalType::Decimal { scale: 2, precision: 9 }),
        (5, BYTE_ARRAY, LogicalType::Decimal { scale: 2, precision: 9 }),
        (6, INT32, LogicalType::Date),
        (7, INT32, time(TimeUnit::Millis)),
        (8, INT64, time(TimeUnit::Micros)),
        (9, INT64, timestamp(TimeUnit::Millis)),
        (10, INT64, timestamp(TimeUnit::Micros)),
        (11, INT32, integer(8, false)),
        (12, INT32, integer(16, false)),
        (13, INT32, integer(32, false)),
        (14, INT64, integer(64, false)),
        (15, INT32, integer(8, true)),
        (16, INT32, integer(16, true)),
        (17, INT32, integer(32, true)),
        (18, INT64, integer(64, true)),
        (19, BYTE_ARRAY, LogicalType::Json),
        (20, BYTE_ARRAY, LogicalType::Bson),
        (21, FIXED_LEN_BYTE_ARRAY, LogicalType::Interval),
    ];
    for (number, physical_type, expected) in expected {
        let mut column = Column::required("a", physical_type).with(6, V::I32(number));
        if number == 5 {
            column = column.with(7, V::I32(2)).with(8, V::I32(9));
        }
        if physical_type == FIXED_LEN_BYTE_ARRAY {
            column = column.with(2, V::I32(12));
        }
        let bytes = Table::new([column]).write();
        match canonical::metadata(&bytes, Manner::KIND)
            .map(|metadata| metadata.schema.nodes()[1].logical_type.clone())
        {
            Ok(Some(found)) if found == expected => {
                all.evidence.add(
                    Source::Crafted,
                    "converted-types",
                    [(features::CONVERTED, found.to_string())],
                );
            }
            other => all.wrong.push(format!("ConvertedType {number}: {other:?}, not {expected:?}")),
        }
    }
}

/// A group annotated as FILE is a struct of the fields that it has.
fn file_group(all: &mut Outcome) {
    let mut file = group("f", 1, 3);
    file.set(10, V::Struct(Struct::of([(19, V::Struct(Struct::default()))])));
    let text = |name: &str| {
        let mut leaf = leaf(name, 1, BYTE_ARRAY);
        leaf.set(10, V::Struct(Struct::of([(1, V::Struct(Struct::default()))])));
        leaf
    };
    let elements = [file, text("uri"), leaf("offset", 1, INT64), leaf("inline", 1, BYTE_ARRAY)];
    let levels = |levels| [Levels { width: 2, levels }];
    let chunks = [
        Page::nested(&levels(&[2, 1, 0]), PLAIN, &plain_bytes(["a"])),
        Page::nested(&levels(&[2, 1, 0]), PLAIN, &plain_i64(&[4])),
        Page::nested(&levels(&[1, 2, 0]), PLAIN, &plain_bytes(["bc"])),
    ];
    let bytes = Table::nested(1, elements).group(3, chunks.map(|page| Chunk::new(3, [page]))).write();
    let rows = ["{61,0400000000000000,n,}", "{n,n,6263,}", "n,"];
    records(all, "file-group", &bytes, &rows);
}

/// Extensions stand in a field of type `binary` and number 32767, of any structure.
fn extensions(all: &mut Outcome) {
    let extension = || V::Binary(b"\xde\xad\xbe\xef any bytes".to_vec());
    let column = Column::required("a", INT32).with(32767, extension());
    let page = Page::data(2, PLAIN, plain_i32(&[1, 2])).with(32767, extension()).with_own(32767, extension());
    let mut table = one(column, Chunk::new(2, [page]).with(32767, extension()));
    table.footer.set(32767, extension());
    if records(all, "extensions", &table.write(), &["01000000,", "02000000,"]) {
        all.evidence.add(Source::Crafted, "extensions", [(features::EXTENSIONS, String::new())]);
    }
}

/// Reads a file of one field as records and as arrays; true where it is as expected, and so evidence.
fn records(all: &mut Outcome, name: &str, bytes: &Bytes, rows: &[&str]) -> bool {
    let wrong_before = all.wrong.len();
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    for manner in [Manner::KIND, Manner::ONE_BYTE] {
        let options = ReadOptions { batch_rows: 2, ..ReadOptions::default() };
        for found in [
            field_sums(bytes, &metadata, options.clone(), manner),
            array_sums(bytes, &metadata, options.clone(), manner),
        ] {
            if !found.as_ref().is_ok_and(|fields| fields.len() == 1 && fields[0].head == rows) {
                all.wrong.push(format!("{name}: {found:?}, not {rows:?}"));
            }
        }
    }
    let is_right = all.wrong.len() == wrong_before;
    if is_right {
        all.evidence.add(Source::Crafted, name, features::observe(bytes, &metadata).unwrap());
    }
    is_right
}

/// A column chunk in another file.
fn external_column(all: &mut Outcome) {
    let chunk = Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))]).in_file("other.parquet");
    let bytes = one(Column::required("a", INT32), chunk).write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let codecs = Arc::new(StandardCodecs::default());
    let read = BatchReader::new(FILE, metadata, codecs, ReadOptions::default())
        .and_then(|mut reader| canonical::read(&mut reader, &bytes, Manner::KIND, |_| ()));
    match read {
        Err(error) if error.kind() == ErrorKind::Unsupported && error.place().column.is_some() => {
            all.evidence.refuse(features::EXTERNAL, error.message());
        }
        other => all.wrong.push(format!("a column in another file: {other:?}")),
    }
}

#[test]
fn lists_before_a_column_of_fewer_rows_lose_none() {
    let data = Page::data(50, RLE_DICTIONARY, indices(&[1; 50], 2));
    let plain = Page::data(3, PLAIN, plain_bytes(["x", "y", "z"]));
    let text = Chunk::new(103, [four_words().0, data.clone(), data, plain]);
    // Of 0, 1, 2, 0, 1, 2 … elements: an empty one has an entry, and no value.
    let (mut repetition, mut definition) = (Vec::new(), Vec::new());
    for length in (0..103).map(|row| row % 3) {
        repetition.extend((0..length.max(1)).map(|element| u32::from(element > 0)));
        definition.extend((0..length.max(1)).map(|_| u32::from(length > 0)));
    }
    let values: Vec<i64> = (0..102).collect();
    let entries = i64::try_from(repetition.len()).unwrap();
    let levels = [Levels { width: 1, levels: &repetition }, Levels { width: 1, levels: &definition }];
    let lists = Chunk::new(entries, [Page::nested(&levels, PLAIN, &plain_i64(&values))]);
    let schema = list("a", 0).into_iter().chain([leaf("element", 0, INT64), leaf("b", 0, BYTE_ARRAY)]);
    let options = ReadOptions { keep_dictionaries: true, ..ReadOptions::default() };
    let batches = batches(&Table::nested(2, schema).group(103, [lists, text]).write(), options);
    assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [100, 3]);
    let (mut found, mut levels) = (Vec::new(), (Vec::new(), Vec::new()));
    for column in batches.iter().map(|batch| &batch.columns[0]) {
        let Values::Int64(values) = &column.values else { panic!("{:?}", column.values) };
        found.extend_from_slice(values);
        let of_batch = column.levels.as_ref().expect("levels of lists");
        let repetition = of_batch.repetition.as_ref().expect("repetition levels of lists");
        levels.0.extend(repetition.iter().map(|level| u32::from(*level)));
        levels.1.extend(of_batch.definition.iter().map(|level| u32::from(*level)));
    }
    assert_eq!((found, levels), (values, (repetition, definition)));
}
