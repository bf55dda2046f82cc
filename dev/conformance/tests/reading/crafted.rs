//! Legal rarities that no writer makes, read in every way; where pyarrow reads them too, it reads the same.

use std::process::Command;
use std::sync::{Arc, OnceLock};

use marquetry_base::Bytes;
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE, Sum};
use marquetry_conformance::craft::*;
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::{Batch, Layout, Values};
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::{LogicalType, TimeUnit};

use crate::{Outcome, crafted_faults, crafted_types};

/// A row's value as PLAIN holds it, or null.
pub(crate) type Row = Option<Vec<u8>>;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) table: Table,
    pub(crate) columns: Vec<Vec<Row>>,
    /// Why pyarrow does not read it, if it does not.
    pub(crate) not_by_pyarrow: Option<&'static str>,
}

pub(crate) fn case(name: &'static str, table: Table, columns: impl IntoIterator<Item = Vec<Row>>) -> Case {
    Case { name, table, columns: columns.into_iter().collect(), not_by_pyarrow: None }
}

impl Case {
    pub(crate) fn not_by_pyarrow(mut self, why: &'static str) -> Case {
        self.not_by_pyarrow = Some(why);
        self
    }
}

/// A table of one column, of which each row group is one chunk.
pub(crate) fn one(column: Column, chunk: Chunk) -> Table {
    let rows = chunk.values;
    Table::new([column]).group(rows, [chunk])
}

pub(crate) fn rows_i32(values: &[i32]) -> Vec<Row> {
    values.iter().map(|value| Some(value.to_le_bytes().to_vec())).collect()
}

pub(crate) fn rows_i64(values: &[i64]) -> Vec<Row> {
    values.iter().map(|value| Some(value.to_le_bytes().to_vec())).collect()
}

pub(crate) fn rows_bytes<B: AsRef<[u8]>>(values: &[B]) -> Vec<Row> {
    values.iter().map(|value| Some(value.as_ref().to_vec())).collect()
}

/// Numbers that look like nothing: the same in every run.
pub(crate) fn numbers(count: usize) -> Vec<i32> {
    (0..i32_from(count)).map(|i| i.wrapping_mul(0x9e37_79b1_u32.cast_signed()) >> (i % 25)).collect()
}

fn words(count: usize) -> Vec<String> {
    numbers(count)
        .iter()
        .map(|number| format!("{}word{number}", "long ".repeat(number.unsigned_abs() as usize % 5)))
        .collect()
}

/// Nulls by a pattern; the rows, and the values that are there.
pub(crate) fn with_nulls(
    values: &[i32],
    is_there: impl Fn(usize) -> bool,
) -> (Vec<Row>, Vec<bool>, Vec<i32>) {
    let there: Vec<bool> = (0..values.len()).map(is_there).collect();
    let rows = values
        .iter()
        .zip(&there)
        .map(|(value, &there)| there.then(|| value.to_le_bytes().to_vec()))
        .collect();
    let dense = values.iter().zip(&there).filter(|(_, there)| **there).map(|(value, _)| *value).collect();
    (rows, there, dense)
}

pub(crate) fn i32_from(value: usize) -> i32 {
    i32::try_from(value).unwrap()
}

/// A dictionary of four words, and pages of indices into it.
pub(crate) fn four_words() -> (Page, [&'static str; 4]) {
    let words = ["alpha", "beta, which is longer than twelve bytes", "", "delta"];
    (Page::dictionary(4, plain_bytes(words)), words)
}

pub(crate) fn indices(values: &[u32], width: u32) -> Vec<u8> {
    let mut body = vec![u8::try_from(width).unwrap()];
    body.extend(packed_run(values, width));
    body
}

fn levels_cases() -> Vec<Case> {
    let values = numbers(29);
    let (rows, there, dense) = with_nulls(&values, |row| row % 3 != 1);
    let nulls = i32_from(there.iter().filter(|there| !**there).count());
    let mut packed = vec![0u8; 4];
    for (row, &there) in there.iter().enumerate() {
        packed[row / 8] |= u8::from(there) << (7 - row % 8);
    }
    let bit_packed =
        Page::data(29, PLAIN, [packed, plain_i32(&dense)].concat()).with_own(3, V::I32(BIT_PACKED));

    let mut padded = levels(&there);
    padded.extend([0; 5]);
    let padding = Page::data(29, PLAIN, [prefixed(&padded), plain_i32(&dense)].concat());

    // The last group of eight is cut to the bytes that hold values; there is nothing after it in its stream.
    let mut long_run = repeated_run(10, 1, 1);
    long_run.extend(repeated_run(1_000_000, 0, 1));
    let (ten_rows, _, ten) = with_nulls(&values, |row| row < 10);
    let too_long_run = Page::data(29, PLAIN, [prefixed(&long_run), plain_i32(&ten)].concat());

    let mut pages = Vec::new();
    let mut mixed = Vec::new();
    for page in 0..12 {
        let (rows, there, dense) = with_nulls(&values[..7], |row| [true, false, row % 2 == 0][page % 3]);
        let nulls = i32_from(7 - dense.len());
        let levels = match page % 4 {
            0 => levels(&there),
            _ => there.iter().flat_map(|&there| repeated_run(1, there.into(), 1)).collect(),
        };
        pages.push(match page % 2 {
            0 => Page::data_v2(7, nulls, PLAIN, &levels, &plain_i32(&dense)),
            _ => Page::data(7, PLAIN, [prefixed(&levels), plain_i32(&dense)].concat()),
        });
        mixed.extend(rows);
    }
    let all_null = Page::data_v2(9, 9, RLE_DICTIONARY, &repeated_run(9, 0, 1), &[]);
    let optional = || Column::optional("a", INT32);
    vec![
        case("bit-packed-levels", one(optional(), Chunk::new(29, [bit_packed])), [rows.clone()])
            .not_by_pyarrow("it takes the least significant bit first; Encodings.md says the most"),
        case("padding-after-levels", one(optional(), Chunk::new(29, [padding])), [rows.clone()]),
        case("a-run-of-levels-beyond-the-page", one(optional(), Chunk::new(29, [too_long_run])), [ten_rows]),
        case("all-null-and-no-null-pages", one(optional(), Chunk::new(84, pages)), [mixed]),
        case("all-null-without-a-body", one(optional(), Chunk::new(9, [all_null.clone()])), [vec![None; 9]])
            .not_by_pyarrow("no dictionary"),
        case(
            "all-null-compressed-to-nothing",
            one(
                optional(),
                Chunk::new(
                    18,
                    [all_null.clone().with_own(4, V::I32(PLAIN)), all_null.with_own(4, V::I32(PLAIN))],
                )
                .codec(SNAPPY),
            ),
            [vec![None; 18]],
        ),
        // As Arrow Go writes it without statistics.
        case(
            "a-v2-page-that-counts-no-nulls",
            one(
                optional(),
                Chunk::new(29, [Page::data_v2(29, 0, PLAIN, &levels(&there), &plain_i32(&dense))]),
            ),
            [rows.clone()],
        ),
        // As the Go writer by fraugster has it.
        case(
            "a-v2-page-that-counts-other-rows",
            one(
                optional(),
                Chunk::new(
                    29,
                    [Page::data_v2(29, nulls, PLAIN, &levels(&there), &plain_i32(&dense))
                        .with_own(3, V::I32(28))],
                ),
            ),
            [rows.clone()],
        ),
        case(
            "a-nullable-v2-page-with-crc",
            one(
                optional(),
                Chunk::new(
                    29,
                    [Page::data_v2(29, nulls, PLAIN, &levels(&there), &plain_i32(&dense))
                        .compressed(ZSTD)
                        .with_crc()],
                )
                .codec(ZSTD),
            ),
            [rows],
        ),
    ]
}

fn dictionary_cases() -> Vec<Case> {
    let (dictionary, words) = four_words();
    let picks: Vec<u32> = (0..50).map(|i| i * i % 4).collect();
    let rows: Vec<Row> = picks.iter().map(|&pick| Some(words[pick as usize].into())).collect();
    let data = || Page::data(50, RLE_DICTIONARY, indices(&picks, 2));
    let text = || Column::required("a", BYTE_ARRAY);
    let chunk = || Chunk::new(50, [dictionary.clone(), data()]);

    let single = Page::dictionary(1, plain_bytes(["the only one, and it is long"]));
    let single_rows = rows_bytes(&["the only one, and it is long"; 40]);
    let width_0 = |body: Vec<u8>| {
        Chunk::new(40, [single.clone(), Page::data(40, RLE_DICTIONARY, [vec![0], body].concat())])
    };

    let mut cut = indices(&picks, 2);
    cut.truncate(cut.len() - 1); // 50 values of 2 bits need 12.5 bytes; the groups have 14.
    let mut fall_back = vec![dictionary.clone()];
    let mut fall_back_rows = Vec::new();
    for page in 0..9 {
        if page % 3 == 2 {
            fall_back.push(Page::data(
                3,
                PLAIN,
                plain_bytes(["plain", "values that do not fit a view", "x"]),
            ));
            fall_back_rows.extend(rows_bytes(&["plain", "values that do not fit a view", "x"]));
        } else {
            fall_back.push(data());
            fall_back_rows.extend(rows.clone());
        }
    }
    let fall_back_count = i32_from(fall_back_rows.len()).into();
    vec![
        case(
            "plain-dictionary",
            one(
                text(),
                Chunk::new(
                    50,
                    [
                        dictionary.clone().with_own(2, V::I32(PLAIN_DICTIONARY)),
                        Page::data(50, PLAIN_DICTIONARY, indices(&picks, 2)),
                    ],
                ),
            ),
            [rows.clone()],
        ),
        case(
            "no-dictionary-page-offset",
            one(text(), chunk().with(9, V::I64(4)).without(11)),
            [rows.clone()],
        ),
        case(
            "dictionary-page-offset-0",
            one(text(), chunk().with(9, V::I64(4)).with(11, V::I64(0))),
            [rows.clone()],
        ),
        case(
            "indices-of-32-bits",
            one(
                text(),
                Chunk::new(50, [dictionary.clone(), Page::data(50, RLE_DICTIONARY, indices(&picks, 32))]),
            ),
            [rows.clone()],
        ),
        case(
            "indices-of-32-bits-repeated",
            one(
                text(),
                Chunk::new(
                    50,
                    [
                        dictionary.clone(),
                        Page::data(50, RLE_DICTIONARY, [vec![32], repeated_run(50, 3, 32)].concat()),
                    ],
                ),
            ),
            [vec![Some(words[3].into()); 50]],
        ),
        case(
            "indices-of-no-bits-repeated",
            one(text(), width_0(repeated_run(40, 0, 0))),
            [single_rows.clone()],
        ),
        case("indices-of-no-bits-packed", one(text(), width_0(packed_run(&[0; 40], 0))), [single_rows]),
        case(
            "a-group-cut-off",
            one(text(), Chunk::new(50, [dictionary, Page::data(50, RLE_DICTIONARY, cut)])),
            [rows],
        ),
        case(
            "dictionary-and-plain-in-turn",
            one(text(), Chunk::new(fall_back_count, fall_back)),
            [fall_back_rows],
        ),
    ]
}

fn page_cases() -> Vec<Case> {
    let values = numbers(60);
    let rows = rows_i32(&values);
    let plain =
        |range: std::ops::Range<usize>| Page::data(i32_from(range.len()), PLAIN, plain_i32(&values[range]));
    let v2 = |range: std::ops::Range<usize>| {
        Page::data_v2(i32_from(range.len()), 0, PLAIN, &[], &plain_i32(&values[range]))
    };
    let required = || Column::required("a", INT32);
    let mixed = [
        v2(0..20).compressed(SNAPPY),
        v2(20..40).with_own(7, V::Bool(false)),
        v2(40..60).compressed(SNAPPY).with_own(7, V::Bool(true)),
    ];
    let mut empty = Vec::new();
    for at in (0..60).step_by(5) {
        empty.extend([plain(0..0), v2(0..0), plain(at..at + 5)]);
        empty.extend(vec![plain(0..0); 20]);
    }
    let skipped = [
        Page::other(1, vec![1, 2, 3]).with(6, V::Struct(Struct::default())),
        plain(0..30),
        Page::other(77, vec![0xff; 5000]),
        Page::other(1, vec![]),
        plain(30..60),
        Page::other(-1, vec![9]),
    ];
    let unknown = Table {
        unknown_fields: true,
        ..Table::new([
            required(),
            Column::optional("b", BYTE_ARRAY)
                .with(10, V::Struct(Struct::of([(1, V::Struct(Struct::default()))]))),
        ])
        .group(
            30,
            [
                Chunk::new(30, [plain(0..30)]),
                Chunk::new(
                    30,
                    [
                        four_words().0,
                        Page::data_v2(30, 0, RLE_DICTIONARY, &repeated_run(30, 1, 1), &indices(&[1; 30], 2)),
                    ],
                ),
            ],
        )
    };
    let many: Vec<i32> = numbers(4000);
    let single_values = many.iter().enumerate().map(|(row, value)| match row % 2 {
        0 => Page::data(1, PLAIN, plain_i32(&[*value])),
        _ => Page::data_v2(1, 0, PLAIN, &[], &plain_i32(&[*value])),
    });
    let huge = "0123456789abcdef".repeat(20 << 16);
    vec![
        case(
            "an-uncompressed-v2-page-in-a-snappy-chunk",
            one(required(), Chunk::new(60, mixed).codec(SNAPPY)),
            [rows.clone()],
        ),
        case("many-empty-pages", one(required(), Chunk::new(60, empty)), [rows.clone()])
            .not_by_pyarrow("it takes an empty page for the end"),
        case("pages-to-skip", one(required(), Chunk::new(60, skipped)), [rows.clone()]),
        case(
            "unknown-fields-everywhere",
            unknown,
            [rows[..30].to_vec(), vec![Some(four_words().1[1].into()); 30]],
        ),
        case("pages-of-one-value", one(required(), Chunk::new(4000, single_values)), [rows_i32(&many)]),
        case(
            "a-string-of-20-mib",
            one(
                Column::required("a", BYTE_ARRAY),
                Chunk::new(3, [Page::data(3, PLAIN, plain_bytes(["", &huge, "x"])).compressed(ZSTD)])
                    .codec(ZSTD),
            ),
            [rows_bytes(&["", &huge, "x"])],
        ),
        case("no-columns", Table::new([]).group(5, []).group(0, []).group(9000, []), [])
            .not_by_pyarrow("nothing to compare"),
        case("no-row-groups", Table::new([required(), Column::optional("b", BYTE_ARRAY)]), [vec![], vec![]]),
        case(
            "row-groups-of-no-rows",
            Table::new([required()])
                .group(0, [Chunk::new(0, [])])
                .group(60, [Chunk::new(60, [plain(0..60)])])
                .group(0, [Chunk::new(0, [plain(0..0)])])
                // As Arrow C++ writes it: a dictionary page, and no data page.
                .group(0, [Chunk::new(0, [Page::dictionary(0, vec![])]).with(9, V::I64(0))])
                .group(0, [Chunk::new(0, [])]),
            [rows],
        ),
    ]
}

fn encoding_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let values = numbers(700);
    let wide: Vec<i64> = values.iter().map(|&value| i64::from(value) << 31).collect();
    // Differences that 32 bits hold, and some that they do not.
    let quarters: Vec<i32> = values.iter().map(|value| value / 4).collect();
    let narrow: Vec<i64> = quarters.iter().map(|&value| value.into()).collect();
    let whole: Vec<i64> = values.iter().map(|&value| value.into()).collect();
    let page = Page::data(700, DELTA_BINARY_PACKED, delta(&whole, 128, 4));
    let table = one(Column::required("a", INT32), Chunk::new(700, [page]));
    cases.push(
        case("delta-int32-of-33-bits", table, [rows_i32(&values)])
            .not_by_pyarrow("it takes at most 32 bits; DuckDB writes more"),
    );
    for (name, block, miniblocks) in [
        ("delta-128-in-1", 128, 1),
        ("delta-128-in-4", 128, 4),
        ("delta-256-in-8", 256, 8),
        ("delta-1024-in-2", 1024, 2),
        ("delta-640-in-5", 640, 5),
    ] {
        let pages = |values: &[i64]| {
            values
                .chunks(333)
                .map(|values| {
                    Page::data(i32_from(values.len()), DELTA_BINARY_PACKED, delta(values, block, miniblocks))
                })
                .collect::<Vec<_>>()
        };
        let table = Table::new([Column::required("a", INT64), Column::required("b", INT32)]);
        let table = table.group(700, [Chunk::new(700, pages(&wide)), Chunk::new(700, pages(&narrow))]);
        cases.push(case(name, table, [rows_i64(&wide), rows_i32(&quarters)]));
    }
    let mut words = words(500);
    let lengths = delta_length(&words);
    cases.push(case(
        "delta-length",
        one(
            Column::required("a", BYTE_ARRAY),
            Chunk::new(500, [Page::data(500, DELTA_LENGTH_BYTE_ARRAY, lengths)]),
        ),
        [rows_bytes(&words)],
    ));
    words.sort();
    let pages = words
        .chunks(200)
        .map(|words| Page::data(i32_from(words.len()), DELTA_BYTE_ARRAY, delta_byte_array(words)));
    cases.push(case(
        "delta-byte-array",
        one(Column::required("a", BYTE_ARRAY), Chunk::new(500, pages)),
        [rows_bytes(&words)],
    ));
    let with_nulls: Vec<Row> = (0..500).map(|row| (row % 7 < 2).then(|| words[row].clone().into())).collect();
    let there: Vec<bool> = with_nulls.iter().map(Option::is_some).collect();
    let dense: Vec<&Vec<u8>> = with_nulls.iter().flatten().collect();
    let page = Page::data_v2(
        500,
        i32_from(500 - dense.len()),
        DELTA_BYTE_ARRAY,
        &levels(&there),
        &delta_byte_array(&dense),
    );
    cases.push(case(
        "delta-byte-array-with-nulls",
        one(Column::optional("a", BYTE_ARRAY), Chunk::new(500, [page])),
        [with_nulls.clone()],
    ));
    let fixed: Vec<Vec<u8>> =
        values.iter().map(|value| [&[7; 3][..], &value.to_be_bytes()].concat()).collect();
    let fixed_column = |name, width| Column::required(name, FIXED_LEN_BYTE_ARRAY).with(2, V::I32(width));
    cases.push(case(
        "delta-byte-array-of-fixed-length",
        one(
            fixed_column("a", 7),
            Chunk::new(700, [Page::data(700, DELTA_BYTE_ARRAY, delta_byte_array(&fixed))]),
        ),
        [rows_bytes(&fixed)],
    ));
    let bits: Vec<bool> = values.iter().map(|value| value % 3 == 0).collect();
    let runs = prefixed(&levels(&bits));
    cases.push(case(
        "booleans-in-runs",
        one(Column::required("a", BOOLEAN), Chunk::new(700, [Page::data(700, RLE, runs)])),
        [bits.iter().map(|&bit| Some(vec![bit.into()])).collect()],
    ));
    cases
}

fn cases() -> Vec<Case> {
    let cases = [
        levels_cases(),
        dictionary_cases(),
        page_cases(),
        encoding_cases(),
        crafted_faults::cases(),
        crafted_types::cases(),
    ];
    cases.into_iter().flatten().collect()
}

/// The sums of what was put in.
fn expected(bytes: &Bytes, columns: &[Vec<Row>]) -> Vec<Sum> {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    columns
        .iter()
        .enumerate()
        .map(|(number, rows)| {
            let leaf = &metadata.schema.leaves()[number];
            let mut sum =
                Sum::new(&metadata.schema, number, metadata.schema.node_of(leaf).logical_type.as_ref());
            rows.iter().for_each(|row| sum.add_row(row.as_deref()));
            sum.finish()
        })
        .collect()
}

/// Above it, one byte at a time takes too long.
const ONE_BYTE_FILE_MAX: usize = 40_000;

/// Reads all cases in every way, once.
pub(crate) fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        let (mut readings, mut wrong, mut evidence) = (0, Vec::new(), Evidence::default());
        let cases = cases();
        for case in &cases {
            let bytes = case.table.write();
            match read_in_every_way(&bytes, &expected(&bytes, &case.columns)) {
                Ok(read) => {
                    readings += read;
                    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
                    evidence.add(Source::Crafted, case.name, features::observe(&bytes, &metadata).unwrap());
                }
                Err(error) => wrong.push(format!("{}: {error}", case.name)),
            }
        }
        Outcome { summary: format!("{} files, {readings} readings of columns", cases.len()), wrong, evidence }
    })
}

#[test]
fn rarities_read_as_they_were_written() {
    outcome().assert_right("crafted");
}

/// Says how many columns were read.
fn read_in_every_way(bytes: &Bytes, expected: &[Sum]) -> Result<usize, String> {
    let mut readings = 0;
    for manner in [Manner::KIND, Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
        if bytes.len() > ONE_BYTE_FILE_MAX && manner.piece_bytes == 1 {
            continue;
        }
        let metadata = canonical::metadata(bytes, manner).map_err(|error| format!("{error:?}"))?;
        for (number, layout) in [Layout::Dense, Layout::Spaced].into_iter().cycle().enumerate().take(8) {
            let batch_rows = [8192, 7, 1, 64][number / 2];
            let keep_dictionaries = number % 4 > 1;
            let options = ReadOptions { layout, batch_rows, keep_dictionaries, ..ReadOptions::default() };
            let how = format!("{layout:?}, batches of {batch_rows}, {manner:?}");
            let (sums, _) = canonical::sums(bytes, &metadata, options, manner)
                .map_err(|error| format!("{how}: {error:?}"))?;
            if sums.len() != expected.len() {
                return Err(format!("{how}: {} columns", sums.len()));
            }
            for (sum, expected) in sums.iter().zip(expected) {
                let is_same = (sum.rows, sum.nulls, &sum.head, sum.crc32)
                    == (expected.rows, expected.nulls, &expected.head, expected.crc32);
                if !is_same {
                    return Err(format!("{how}: {sum:?}, where {expected:?} was written"));
                }
                readings += 1;
            }
        }
    }
    Ok(readings)
}

#[test]
fn pyarrow_reads_them_the_same() {
    let Some(python) = files::python() else { return };
    let folder = crate::folder("crafted");
    let cases = cases();
    let mut paths = Vec::new();
    for case in &cases {
        let path = folder.join(format!("{}.parquet", case.name));
        std::fs::write(&path, case.table.write()).unwrap();
        paths.push(path);
    }
    let without_a_run = folder.join("indices-without-a-run.parquet");
    std::fs::write(&without_a_run, indices_without_a_run()).unwrap();
    paths.push(without_a_run);
    let out = folder.join("expect.json");
    let status = Command::new(python)
        .arg(files::root().join("dev/conformance/expect.py"))
        .arg(&out)
        .args(&paths)
        .status()
        .unwrap();
    assert!(status.success());
    let all: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let without_a_run = &all[cases.len()];
    assert!(without_a_run["error"].is_string(), "pyarrow: {without_a_run}");
    let mut wrong = Vec::new();
    for (case, theirs) in cases.iter().zip(all.as_array().unwrap()) {
        let ours = expected(&case.table.write(), &case.columns);
        let columns = theirs["columns"].as_array().cloned().unwrap_or_default();
        let same = columns.len() == ours.len()
            && columns.iter().zip(&ours).all(|(theirs, ours)| {
                theirs["nulls"].as_u64() == Some(ours.nulls)
                    && theirs["crc32"].as_u64() == Some(ours.crc32.into())
            })
            && !ours.is_empty();
        if same != case.not_by_pyarrow.is_none() {
            wrong.push(format!("{}: expected {:?}, pyarrow: {theirs}", case.name, case.not_by_pyarrow));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn annotations_of_either_kind() {
    let empty = || V::Struct(Struct::default());
    let time = |unit: i16| {
        let unit = Struct::of([(unit, empty())]);
        V::Struct(Struct::of([(1, V::Bool(false)), (2, V::Struct(unit))]))
    };
    let newer = |physical_type, id: i16, value: V| {
        Column::required("a", physical_type).with(10, V::Struct(Struct::of([(id, value)])))
    };
    let older = |physical_type, number| Column::required("a", physical_type).with(6, V::I32(number));
    let decimal = V::Struct(Struct::of([(1, V::I32(2)), (2, V::I32(9))]));
    let micros = |is_adjusted_to_utc| LogicalType::Timestamp { is_adjusted_to_utc, unit: TimeUnit::Micros };
    for (column, expected) in [
        (newer(BYTE_ARRAY, 1, empty()), Some(LogicalType::String)),
        (older(BYTE_ARRAY, 0), Some(LogicalType::String)),
        (newer(BYTE_ARRAY, 4, empty()), Some(LogicalType::Enum)),
        (newer(INT32, 5, decimal), Some(LogicalType::Decimal { scale: 2, precision: 9 })),
        (
            older(INT32, 5).with(7, V::I32(2)).with(8, V::I32(9)),
            Some(LogicalType::Decimal { scale: 2, precision: 9 }),
        ),
        (newer(INT32, 6, empty()), Some(LogicalType::Date)),
        (older(INT32, 6), Some(LogicalType::Date)),
        (newer(INT64, 8, time(2)), Some(micros(false))),
        (older(INT64, 10), Some(micros(true))),
        (newer(INT32, 99, empty()), Some(LogicalType::Unrecognised { number: 99, has_fields: false })),
        (
            newer(INT32, 99, V::Struct(Struct::of([(3, empty())]))),
            Some(LogicalType::Unrecognised { number: 99, has_fields: true }),
        ),
        (Column::required("a", INT32), None),
        (older(INT32, 99), None),
        // Where both are there, the newer one counts.
        (older(INT64, 10).with(10, V::Struct(Struct::of([(8, time(2))]))), Some(micros(false))),
    ] {
        let bytes = Table::new([column]).write();
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        assert_eq!(metadata.schema.nodes()[1].logical_type, expected);
    }
}

/// All batches of a file.
pub(crate) fn batches(bytes: &Bytes, options: ReadOptions) -> Vec<Batch> {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, metadata, codecs, options).unwrap();
    let mut all = Vec::new();
    canonical::read(&mut reader, bytes, Manner::USUAL, |batch| all.push(batch)).unwrap();
    all
}

#[test]
fn heavy_values_make_small_batches_of_whole_rows() {
    // 40 strings of 1 MiB, one a page, beside numbers and short strings that could all stand in one batch.
    let strings: Vec<String> = (0..40).map(|row| format!("{row:07} ").repeat(1 << 17)).collect();
    let values = numbers(40);
    let short = words(40);
    let heavy = strings.iter().map(|text| Page::data(1, PLAIN, plain_bytes([text])).compressed(ZSTD));
    let (with_nulls, there, dense) = with_nulls(&values, |row| row % 3 > 0);
    let table = Table::new([
        Column::required("a", INT32),
        Column::required("heavy", BYTE_ARRAY),
        Column::required("b", BYTE_ARRAY),
        Column::optional("c", INT32),
    ])
    .group(
        40,
        [
            Chunk::new(40, [Page::data(40, PLAIN, plain_i32(&values))]),
            Chunk::new(40, heavy).codec(ZSTD),
            Chunk::new(40, [Page::data(40, DELTA_BYTE_ARRAY, delta_byte_array(&short))]),
            Chunk::new(40, [Page::data(40, PLAIN, [prefixed(&levels(&there)), plain_i32(&dense)].concat())]),
        ],
    );
    let bytes = table.write();
    let expected =
        expected(&bytes, &[rows_i32(&values), rows_bytes(&strings), rows_bytes(&short), with_nulls]);
    for layout in [Layout::Spaced, Layout::Dense] {
        let options = ReadOptions { layout, ..ReadOptions::default() };
        let batches = batches(&bytes, options.clone());
        assert!(
            batches.len() > 2 && batches.iter().all(|batch| batch.rows <= 16),
            "{} batches",
            batches.len()
        );
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        let (sums, _) = canonical::sums(&bytes, &metadata, options, Manner::USUAL).unwrap();
        for (sum, expected) in sums.iter().zip(&expected) {
            assert_eq!(
                (sum.crc32, sum.nulls, sum.rows),
                (expected.crc32, expected.nulls, 40),
                "{}",
                sum.path
            );
        }
    }
}

#[test]
fn prefixes_cannot_make_a_batch_of_any_size() {
    // 3,000 values of 1 MiB in a page of 1 MiB: each is the one before and a byte.
    let first = vec![b'x'; 1 << 20];
    let prefixes: Vec<i64> = std::iter::once(0).chain((0..2999).map(|row| (1 << 20) + row)).collect();
    let lengths: Vec<i64> = std::iter::once(1 << 20).chain(std::iter::repeat_n(1, 2999)).collect();
    let body = [delta(&prefixes, 128, 4), delta(&lengths, 128, 4), first, vec![b'y'; 2999]].concat();
    let table =
        one(Column::required("a", BYTE_ARRAY), Chunk::new(3000, [Page::data(3000, DELTA_BYTE_ARRAY, body)]));
    let bytes = table.write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let mut reader =
        BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), ReadOptions::default())
            .unwrap();
    let mut next = 0;
    canonical::read(&mut reader, &bytes, Manner::USUAL, |batch| {
        let Values::ByteArray(values) = &batch.columns[0].values else { panic!("no strings") };
        let held: usize = values.buffers().iter().map(Bytes::len).sum();
        assert!(held <= 18 << 20, "a batch of {held} bytes");
        for value in values.iter() {
            assert_eq!(
                (value.len(), value.iter().rposition(|&byte| byte == b'x')),
                ((1 << 20) + next, Some((1 << 20) - 1))
            );
            next += 1;
        }
    })
    .unwrap();
    assert_eq!(next, 3000);
}

#[test]
fn kept_dictionaries_end_where_pages_are_plain() {
    let case =
        dictionary_cases().into_iter().find(|case| case.name == "dictionary-and-plain-in-turn").unwrap();
    let options = ReadOptions { keep_dictionaries: true, ..ReadOptions::default() };
    let batches = batches(&case.table.write(), options);
    let kinds: Vec<(bool, usize)> = batches
        .iter()
        .map(|batch| (matches!(batch.columns[0].values, Values::Dictionary(..)), batch.rows))
        .collect();
    assert_eq!(kinds, [(true, 100), (false, 3), (true, 100), (false, 3), (true, 100), (false, 3)]);
}

#[test]
fn columns_before_one_of_fewer_rows_lose_none() {
    let data = Page::data(50, RLE_DICTIONARY, indices(&[1; 50], 2));
    let plain = Page::data(3, PLAIN, plain_bytes(["x", "y", "z"]));
    let text = Chunk::new(103, [four_words().0, data.clone(), data, plain]);
    let values: Vec<i64> = (0..103).collect();
    let chunk = || Chunk::new(103, [Page::data(103, PLAIN, plain_i64(&values))]);
    let columns = [("a", INT64), ("b", INT64), ("c", BYTE_ARRAY), ("d", INT64)];
    let table = Table::new(columns.map(|(name, kind)| Column::required(name, kind)));
    let options = ReadOptions { keep_dictionaries: true, ..ReadOptions::default() };
    let batches = batches(&table.group(103, [chunk(), chunk(), text, chunk()]).write(), options);
    assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [100, 3]);
    for column in [0, 1, 3] {
        let found = batches.iter().flat_map(|batch| match &batch.columns[column].values {
            Values::Int64(values) => values.to_vec(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found.collect::<Vec<_>>(), values);
    }
}

/// A page of 40 indices of no bits, and no run.
fn indices_without_a_run() -> Bytes {
    let single = Page::dictionary(1, plain_bytes(["x"]));
    let data = Page::data(40, RLE_DICTIONARY, vec![0]);
    one(Column::required("a", BYTE_ARRAY), Chunk::new(40, [single, data])).write()
}

#[test]
fn indices_of_no_bits_still_need_a_run() {
    // Arrow C++ (see `pyarrow_reads_them_the_same`) and parquet-rs find no values there either.
    let bytes = indices_without_a_run();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let error = canonical::sums(&bytes, &metadata, ReadOptions::default(), Manner::KIND).unwrap_err();
    assert_eq!(error.message(), "the page ends before its last value");
    assert_eq!(error.place().column.as_deref(), Some("a"));

    use parquet::column::reader::get_typed_column_reader;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let theirs = SerializedFileReader::new(bytes).unwrap();
    let column = theirs.get_row_group(0).unwrap().get_column_reader(0).unwrap();
    let mut column = get_typed_column_reader::<parquet::data_type::ByteArrayType>(column);
    let mut values = Vec::new();
    let read = column.read_records(40, None, None, &mut values);
    assert!(read.is_err() || values.is_empty(), "{read:?}, {values:?}");
}
