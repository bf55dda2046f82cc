//! Columns that are found by a footer's locator are those that its walk finds; whatever is wrong with the locator.

use std::sync::Arc;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Limits, Machine, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::hostile::{self, Manner, Random, part};
use marquetry_conformance::written;
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Levels, Values};
use marquetry_parquet::format::{FileMetaData, FooterColumns, KeyValue, SortingColumn};
use marquetry_parquet::read::FooterReader;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};

/// A leaf's column of one row, in which everything is there once.
fn column(schema: &Schema, number: usize, row: usize) -> ColumnBatch {
    let leaf = &schema.leaves()[number];
    let level = |max: u16| u8::try_from(max).unwrap();
    let levels = (!leaf.is_flat()).then(|| Levels {
        definition: vec![level(leaf.definition_max)].into(),
        repetition: (leaf.repetition_max > 0).then(|| vec![0_u8].into()),
    });
    ColumnBatch {
        leaf: number,
        rows: 1,
        nulls: 0,
        validity: None,
        values: Values::Int64(vec![i64::try_from(number * 31 + row).unwrap()].into()),
        layout: if levels.is_some() { Layout::Dense } else { Layout::Spaced },
        levels,
        provisional: false,
    }
}

fn file(schema: &Arc<Schema>, groups: usize, locator: bool, manner: Manner) -> (Bytes, u64) {
    let pair =
        |at: usize| KeyValue { key: format!("key {at}"), value: Some(Bytes::from(vec![b'v'; at * 40])) };
    let sorting = [0, 2].map(|column| SortingColumn { column, descending: column > 0, nulls_first: true });
    let options = WriteOptions {
        row_group_rows: 1,
        locator,
        key_values: (0..5).map(pair).collect(),
        sorting_columns: sorting.into_iter().take(schema.leaves().len().min(3) - 1).collect(),
        ..WriteOptions::default()
    };
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, Arc::clone(schema), codecs, options).unwrap();
    let mut row = 0;
    let written = written::write(&mut writer, manner, |writer, _room| {
        if row == groups {
            writer.finish();
            return Ok(());
        }
        let columns = (0..schema.leaves().len()).map(|leaf| column(schema, leaf, row)).collect();
        assert_eq!(writer.feed(Batch { row_group: 0, first_row: row as u64, rows: 1, columns })?, Fed::Taken);
        row += 1;
        Ok(())
    });
    let written = written.unwrap();
    (written.object(FILE), written.report.units_max)
}

/// What reading took: bytes, and rounds of requests, the file's length aside.
#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    rounds: u32,
    units: u64,
    units_max: u64,
}

fn read(file: &Bytes, columns: &FooterColumns) -> Result<(Arc<FileMetaData>, Taken)> {
    let mut reader = FooterReader::of_columns(FILE, Limits::DEFAULT, columns.clone());
    let mut taken = Taken::default();
    loop {
        let mut budget = Budget::default();
        let step = reader.step(&mut budget);
        taken.units += budget.spent();
        taken.units_max = taken.units_max.max(budget.spent());
        match step? {
            Step::Ready(metadata) => return Ok((metadata, taken)),
            Step::Need(demand) => {
                let mut has_range = false;
                for want in demand.wants {
                    match want {
                        Want::Length(object) => reader.supply_length(object, file.len() as u64)?,
                        Want::Range(object, range, _) => {
                            has_range = true;
                            taken.bytes += range.end - range.start;
                            reader.supply(object, range.clone(), part(file, &range))?;
                        }
                    }
                }
                taken.rounds += u32::from(has_range);
            }
            Step::Yield => {}
            other => panic!("{other:?}"),
        }
    }
}

fn anywhere(metadata: &FileMetaData) -> FileMetaData {
    FileMetaData { footer_start: 0, footer_bytes: 0, ..metadata.clone() }
}

/// Some fields, at random: so many leaves about.
fn fields(random: &mut Random, depth: usize, leaves: usize) -> Vec<FieldDef> {
    let mut all: Vec<FieldDef> = Vec::new();
    let mut left = leaves;
    while left > 0 {
        let number = all.len();
        let name = match random.below(8) {
            0 => format!("Name.{number}"),
            1 => format!("FIELD {number}"),
            2 if number > 0 => all[number - 1].name.to_ascii_uppercase(),
            _ => format!("c{number}"),
        };
        let field_type = if depth < 3 && random.below(6) == 0 {
            let inside = 1 + random.index(left.min(20));
            left -= inside.min(left) - 1;
            let inner = fields(random, depth + 1, inside);
            match random.below(3) {
                0 => FieldType::List(Box::new(FieldDef::new("element", FieldType::Struct(inner, None)))),
                1 => FieldType::Map(
                    Box::new(FieldDef::new("key", FieldType::Leaf(PhysicalType::Int64, None)).required()),
                    Some(Box::new(FieldDef::new("value", FieldType::Struct(inner, None)))),
                ),
                _ => FieldType::Struct(inner, None),
            }
        } else {
            FieldType::Leaf(PhysicalType::Int64, None)
        };
        left -= 1;
        let field = FieldDef::new(name, field_type);
        all.push(if random.below(2) == 0 { field.required() } else { field });
    }
    all
}

#[test]
fn what_it_finds_is_what_the_walk_finds() {
    let mut used = 0;
    for seed in 1..=6_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let schema = Arc::new(Schema::of_fields(&fields(&mut random, 0, 900)).unwrap());
        let (located, units) = file(&schema, 2, true, Manner::KIND);
        let (plain, _) = file(&schema, 2, false, Manner::KIND);
        let (slowly, units_slowly) = file(&schema, 2, true, Manner { budget: 1, ..Manner::KIND });
        assert!(located == slowly, "budgets change what is written");
        println!("{} bytes, {} without; {units}, {units_slowly} units", located.len(), plain.len());
        for round in 0..30 {
            let mut wanted = Vec::new();
            for _ in 0..random.below(6) {
                // Any node, groups among them.
                let node = 1 + random.index(schema.nodes().len() - 1);
                let path = schema.path(node);
                wanted.push(if random.below(4) == 0 { path.to_ascii_lowercase() } else { path });
            }
            if round == 7 {
                wanted.push(format!("{}.nothing", wanted.first().cloned().unwrap_or_default()));
            }
            let columns = FooterColumns::new(wanted.clone());
            let expected = read(&plain, &columns).map(|(metadata, _)| anywhere(&metadata));
            let found = read(&located, &columns);
            match (expected, found) {
                (Ok(expected), Ok((found, taken))) => {
                    assert_eq!(found.schema, expected.schema, "seed {seed}, {wanted:?}");
                    assert!(anywhere(&found) == expected, "seed {seed}, {wanted:?}");
                    assert_eq!(found.file_bytes(), located.len() as u64);
                    used += u32::from(taken.bytes < 120_000 && taken.rounds <= 3);
                }
                (Err(expected), Err(error)) => assert_eq!(expected.message(), error.message()),
                (expected, found) => panic!("{expected:?}; {found:?}"),
            }
            if round % 5 == 0 {
                for manner in [Manner::ONE_BYTE, Manner::DISORDERLY] {
                    let mut reader = FooterReader::of_columns(FILE, Limits::DEFAULT, columns.clone());
                    let mut found = None;
                    let report = hostile::run(&mut reader, FILE, &located, manner, |metadata| {
                        found = Some(metadata);
                        Ok(())
                    });
                    if let Ok((expected, _)) = read(&located, &columns) {
                        assert_eq!(found, Some(expected), "{manner:?}");
                        assert!(report.unwrap().units_max < 100_000);
                    }
                }
            }
        }
    }
    assert!(used > 100, "{used} of 180");
}

/// A flat file of which nearly all is columns that are not wanted.
fn wide(columns: usize) -> Arc<Schema> {
    let of =
        |at| FieldDef::new(format!("feature_{at}"), FieldType::Leaf(PhysicalType::Int64, None)).required();
    Arc::new(Schema::of_fields(&(0..columns).map(of).collect::<Vec<_>>()).unwrap())
}

#[test]
fn whatever_is_wrong_with_it_the_same_is_found() {
    let (file, _) = file(&wide(1000), 2, true, Manner::KIND);
    let columns = FooterColumns::new(["feature_7", "feature_500"]);
    let (expected, taken) = read(&file, &columns).unwrap();
    assert!(taken.rounds == 3 && taken.bytes < 110_000, "{taken:?}");
    let footer = usize_of(expected.footer_start).unwrap();
    let (mut doubted, mut held) = (0, 0);
    // Every byte of a locator that is small enough; some of all of its pages.
    let body = footer - (file.len() - footer);
    let places = (body..footer).step_by(41).chain(file.len() - 99..file.len() - 8);
    for at in places {
        let mut bytes = file.to_vec();
        bytes[at] ^= 0x10;
        let (found, taken) = match read(&bytes.into(), &columns) {
            Ok(found) => found,
            // What follows the columns is the footer's own.
            Err(error) => {
                assert!(at >= file.len() - 99, "byte {at}: {error}");
                continue;
            }
        };
        if at < footer {
            assert_eq!(found, expected, "byte {at}");
        } else {
            assert_eq!(found.row_groups, expected.row_groups, "byte {at}");
        }
        *(if taken.bytes > 110_000 { &mut doubted } else { &mut held }) += 1;
    }
    println!("{doubted} doubted, {held} held");
    assert!(doubted > 50 && held > 100, "{doubted} doubted, {held} held");
}

/// A footer that was copied, or to which something was added, is not believed to be where it was.
#[test]
fn a_locator_of_another_file_is_not_believed() {
    let (file, _) = file(&wide(1000), 2, true, Manner::KIND);
    let columns = FooterColumns::new(["feature_7"]);
    let (expected, _) = read(&file, &columns).unwrap();
    let footer = usize_of(expected.footer_start).unwrap();
    let appended = [&file[..], &file[footer..]].concat();
    let (found, taken) = read(&appended.into(), &columns).unwrap();
    assert_eq!(anywhere(&found), anywhere(&expected));
    assert!(taken.bytes > 110_000);
    // The same length, another body.
    let mut moved = file.to_vec();
    moved[4..footer].rotate_left(1);
    let (found, _) = read(&moved.into(), &columns).unwrap();
    assert_eq!(found, expected);
}

/// A locator that can be made to lie: its checksums are right all the same.
struct Lying {
    file: Vec<u8>,
    /// Where its blocks are, what they hold, and where its slots are in that.
    start: usize,
    payload: Vec<u8>,
    slots: std::ops::Range<usize>,
}

const BLOCK: usize = 4096;
const PAYLOAD: usize = 4080;

impl Lying {
    fn of(file: &[u8]) -> Lying {
        let announced = &file[file.len() - 8 - 1 - 84..];
        let number =
            |at: usize| usize_of(u64::from_le_bytes(announced[at..at + 8].try_into().unwrap())).unwrap();
        let (start, bytes) = (number(8), number(16));
        let blocks = file[start..start + bytes].chunks(BLOCK);
        let payload = blocks.flat_map(|block| block[..PAYLOAD].to_vec()).collect();
        let slots = number(24)..number(24) + 16 * number(32);
        Lying { file: file.to_vec(), start, payload, slots }
    }

    /// The slot of a field, and the bytes of its records.
    fn records(&self, path: &str) -> (usize, std::ops::Range<usize>) {
        let hash = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let tag = hash.to_le_bytes();
        let slot = self.slots.clone().step_by(16).find(|slot| self.payload[*slot..*slot + 4] == tag[..4]);
        let slot = slot.expect("a slot");
        let start = u64::from_le_bytes(self.payload[slot + 8..slot + 16].try_into().unwrap());
        let start = usize_of(start).unwrap();
        (slot, start..start + self.u32_at(slot + 4))
    }

    fn u32_at(&self, at: usize) -> usize {
        u32::from_le_bytes(self.payload[at..at + 4].try_into().unwrap()) as usize
    }

    /// Where in a record its element and its first chunk are, each after its length.
    fn parts(&self, record: &std::ops::Range<usize>) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let element = record.start + 16..record.start + 16 + self.u32_at(record.start + 12);
        let chunk = element.end + 4..element.end + 4 + self.u32_at(element.end);
        (element, chunk)
    }

    /// The file, with right checksums of what the payload is now.
    fn file(&self) -> Bytes {
        let mut file = self.file.clone();
        for (number, payload) in self.payload.chunks(PAYLOAD).enumerate() {
            let block = &mut file[self.start + number * BLOCK..][..BLOCK];
            block[..PAYLOAD].copy_from_slice(payload);
            let crc = crc32fast::hash(&block[..BLOCK - 4]);
            block[BLOCK - 4..].copy_from_slice(&crc.to_le_bytes());
        }
        file.into()
    }
}

/// A locator whose checksums are right and which is wrong in any of its parts is not believed; where it could be right, what it
/// says is what a footer could say, and nothing worse comes of it.
#[test]
fn a_locator_that_lies_is_not_believed() {
    let (file, _) = file(&wide(1000), 2, true, Manner::KIND);
    let columns = FooterColumns::new(["feature_7", "feature_500"]);
    let (expected, taken) = read(&file, &columns).unwrap();
    assert!(taken.bytes < 110_000);
    let honest = Lying::of(&file);
    assert_eq!(honest.file(), file);
    let (slot, record) = honest.records("feature_7");
    let (_, other) = honest.records("feature_8");
    let (element, chunk) = honest.parts(&record);
    let mut lies: Vec<(String, Lying)> = Vec::new();
    let mut lie = |name: String, change: &dyn Fn(&mut Vec<u8>)| {
        let mut lying = Lying::of(&file);
        change(&mut lying.payload);
        lies.push((name, lying));
    };
    lie("another hash".into(), &|payload| payload[slot] ^= 1);
    lie("another column's records".into(), &|payload| {
        payload[slot + 8..slot + 16].copy_from_slice(&(other.start as u64).to_le_bytes());
    });
    lie("no records".into(), &|payload| payload[slot + 4..slot + 8].fill(0));
    for by in [1_i32, -1, 100, -100, 1 << 30] {
        let add = |at: usize| {
            move |payload: &mut Vec<u8>| {
                let bytes: [u8; 4] = payload[at..at + 4].try_into().unwrap();
                let sum = i32::from_le_bytes(bytes).wrapping_add(by);
                payload[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            }
        };
        lie(format!("records of {by} bytes more"), &add(slot + 4));
        lie(format!("records {by} bytes further"), &add(slot + 8));
        lie(format!("an element of {by} bytes more"), &add(element.start - 4));
        lie(format!("a chunk of {by} bytes more"), &add(chunk.start - 4));
    }
    lie("a leaf that is not there".into(), &|payload| payload[record.start + 3] = 1);
    lie("a path of two names".into(), &|payload| payload[record.start + 6] = 2);
    // The type is the first field of the element, and the first of the chunk's metadata: that comes after its offset.
    lie("another type of the element".into(), &|payload| {
        assert_eq!(payload[element.start..][..2], [0x15, 4], "INT64");
        payload[element.start + 1] = 10;
    });
    let metadata = chunk.start + 1 + payload_number(&honest.payload[chunk.start + 1..]).1;
    lie("another type of the chunk".into(), &|payload| {
        assert_eq!(payload[metadata..][..3], [0x1c, 0x15, 4], "the metadata, and INT64");
        payload[metadata + 2] = 2;
    });
    for (name, lying) in &lies {
        let (found, taken) = read(&lying.file(), &columns).unwrap();
        assert_eq!(found, expected, "{name}");
        assert!(taken.bytes > 110_000, "{name}: it is believed");
    }
    // Whatever byte of the record is changed: the footer is walked, or what is found could be in a footer, of this column and of
    // data before the locator.
    let (mut doubted, mut believed) = (0, 0);
    for at in record {
        for bit in [0, 3, 6] {
            let mut lying = Lying::of(&file);
            lying.payload[at] ^= 1 << bit;
            let (found, taken) = match read(&lying.file(), &columns) {
                Ok(found) => found,
                Err(error) => panic!("byte {at}: {error}"),
            };
            assert_eq!(found.schema.leaves().len(), 2);
            for group in &found.row_groups {
                for chunk in &group.columns {
                    let end = chunk.first_page_offset() + chunk.compressed_bytes;
                    assert!(chunk.values == group.rows && end <= honest.start as u64, "byte {at}: {chunk:?}");
                }
            }
            if taken.bytes > 110_000 {
                assert_eq!(found, expected, "byte {at}");
                doubted += 1;
            } else {
                believed += 1;
            }
        }
    }
    println!("{} lies; of the record's bits, {doubted} doubted, {believed} believed", lies.len());
    assert!(doubted > 100);
}

/// A number as Thrift's compact protocol has it, and its bytes.
fn payload_number(bytes: &[u8]) -> (u64, usize) {
    let length = 1 + bytes.iter().position(|byte| *byte < 0x80).unwrap();
    (bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)), length)
}

#[test]
#[ignore = "soak: a hundred thousand columns"]
fn ten_of_a_hundred_thousand_columns() {
    for columns in [10_000, 100_000] {
        ten_of(columns);
    }
}

fn ten_of(columns: usize) {
    let wanted = FooterColumns::new((0..10).map(|at| format!("feature_{}", at * (columns / 11) + 11)));
    let schema = wide(columns);
    let mut found = Vec::new();
    for locator in [true, false] {
        let (file, _) = file(&schema, 10, locator, Manner::KIND);
        if let Some(folder) = std::env::var_os("MARQUETRY_KEEP") {
            let name = format!("wide-{columns}-{locator}.parquet");
            std::fs::write(std::path::Path::new(&folder).join(name), &file).unwrap();
        }
        for _ in 0..7 {
            let start = std::time::Instant::now();
            let (metadata, taken) = read(&file, &wanted).unwrap();
            let (bytes, footer, took) = (file.len(), metadata.footer_bytes, start.elapsed());
            println!(
                "{columns} columns, locator {locator}: {bytes} bytes, {footer} of footer, {took:?}, {taken:?}"
            );
            assert!(!locator || (taken.bytes <= 256 << 10 && taken.rounds <= 3));
            found.push(metadata);
        }
    }
    assert!(found.iter().all(|metadata| anywhere(metadata) == anywhere(&found[0])));
}
