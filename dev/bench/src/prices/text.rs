//! Text: delimited, and JSON lines.

use bytes::Bytes;
use marquetry_base::{Budget, Error, Result, Step};
use marquetry_text::read::{
    Read, ReadOptions, Sampled, Split, SplitOptions, TextForm, TextReader, TextSampler, TextSplitter,
};
use marquetry_text::{Format, Header, TextOptions};

use super::{Case, Random, Timer, Work};

const COPY: &str = "read/window.rs COPY_PRICE";
const CHECK: &str = "read/place.rs CHECK_PRICE";
const SCAN: &str = "read/delimited/scan.rs SCAN_PRICE";
const SEE: &str = "read/delimited/sample.rs SEE_PRICE";
const NAME: &str = "read/delimited/naming.rs NAME_PRICE";
const PARSE: &str = "read/delimited/column.rs PARSE_PRICE";
const TEXT: &str = "read/delimited/column.rs TEXT_PRICE";
const BUILD: &str = "read/delimited/column.rs BUILD_PRICE";
const ROOM: &str = "read/delimited/column.rs ROOM_PRICE";
const SPLIT: &str = "read/split.rs SPLIT_PRICE";
const SEARCH: &str = "read/lines/mod.rs SEARCH_PRICE";
const SEE_LINE: &str = "read/lines/sample.rs SEE_PRICE";
const READ: &str = "read/lines/rows.rs READ_PRICE";

/// Fields of a row of the cases whose fields matter.
const FIELDS: usize = 8;

/// See [`super::cases`].
pub(super) fn cases(thousands: usize) -> Vec<Case> {
    let count = thousands * 1000;
    [delimited(count), samples(count), lines(count), splits(count)].concat()
}

/// What of a text is timed: looking at the first rows, reading rows of these types, or splitting.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    format: Format,
    schema: Option<&'static str>,
    header: Header,
    /// Whether lines that begin with `#` are comments.
    has_comments: bool,
    timed: Timed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    Sample,
    Rows,
    Split,
}

fn rows(price: &'static str, name: &str, amount: usize, schema: &'static str, text: String) -> Case {
    let format = if text.starts_with('{') { Format::JsonLines } else { Format::Csv };
    let has_comments = text.starts_with('#');
    let text_of = Text { format, schema: Some(schema), header: Header::No, has_comments, timed: Timed::Rows };
    Case::new(price, name, amount, Bytes::from(text)).work(Work::Text(text_of))
}

fn sample(price: &'static str, name: &str, amount: usize, header: Header, text: String) -> Case {
    let format = if text.starts_with('{') { Format::JsonLines } else { Format::Csv };
    let text_of = Text { format, schema: None, header, has_comments: false, timed: Timed::Sample };
    Case::new(price, name, amount, Bytes::from(text)).work(Work::Text(text_of))
}

/// Rows of fields that this makes.
fn table(count: usize, mut field: impl FnMut(&mut Random) -> String) -> String {
    let mut random = Random::new();
    let mut text = String::new();
    for _ in 0..count.div_ceil(FIELDS) {
        for at in 0..FIELDS {
            text += &field(&mut random);
            text.push(if at + 1 < FIELDS { ',' } else { '\n' });
        }
    }
    text
}

const BIGINTS: &str = "a bigint, b bigint, c bigint, d bigint, e bigint, f bigint, g bigint, h bigint";
const DOUBLES: &str = "a double, b double, c double, d double, e double, f double, g double, h double";
const TEXTS: &str = "a text, b text, c text, d text, e text, f text, g text, h text";
const BLOBS: &str = "a blob, b blob, c blob, d blob, e blob, f blob, g blob, h blob";
const UUIDS: &str = "a uuid, b uuid, c uuid, d uuid, e uuid, f uuid, g uuid, h uuid";
const INSTANTS: &str = "a timestamp(6), b timestamp(6), c timestamp(6), d timestamp(6), e timestamp(6), f timestamp(6), \
                        g timestamp(6), h timestamp(6)";
const DECIMALS: &str = "a decimal(38, 9), b decimal(38, 9), c decimal(38, 9), d decimal(38, 9), e decimal(38, 9), \
                        f decimal(38, 9), g decimal(38, 9), h decimal(38, 9)";

fn delimited(count: usize) -> Vec<Case> {
    let values = |price, name, schema, field: &dyn Fn(&mut Random) -> String| {
        rows(price, name, count, schema, table(count, field))
    };
    let long = |unit: &str, bytes: usize| {
        let row = unit.repeat(bytes / unit.len());
        format!("{}\n", row).repeat(count * 8 / bytes + 1)
    };
    let bytes = |price, name, text: String| rows(price, name, text.len(), "a text", text).bytes();
    vec![
        bytes(COPY, "rows of 2 MB", long("x", (count * 4).min(2_000_000))),
        bytes(CHECK, "4-byte characters", long("😀𝄞", 4000)),
        bytes(SCAN, "rows of 4,000 bytes", long("x", 4000)),
        values(SCAN, "fields of nothing", TEXTS, &|_| String::new()),
        rows(SCAN, "comments of nothing", count, "a text", format!("{}a\n", "#\n".repeat(count))),
        rows(SCAN, "comments and rows of nothing", count, "a text", "#\n\n".repeat(count)),
        values(ROOM, "all null", DECIMALS, &|_| String::new()),
        values(PARSE, "bigint, 1 digit", BIGINTS, &|random| random.below(10).to_string()),
        values(PARSE, "bigint, 19 digits", BIGINTS, &|random| {
            (random.next() | 1 << 62).cast_signed().unsigned_abs().to_string()
        }),
        values(PARSE, "double, 3 digits", DOUBLES, &|random| {
            format!("{}.{}", random.below(10), random.below(100))
        }),
        values(PARSE, "double, 17 digits", DOUBLES, &|random| (random.next() as f64 / 1e18).to_string()),
        values(PARSE, "double, 700 digits", DOUBLES, &|random| {
            format!("0.{}", random.next().to_string().repeat(36))
        }),
        values(PARSE, "timestamp", INSTANTS, &|random| {
            format!("2024-02-{:02}T12:34:{:02}.123456+01:00", 1 + random.below(28), random.below(60))
        }),
        values(PARSE, "decimal", DECIMALS, &|random| {
            format!("{}.{}", random.next(), random.below(1_000_000_000))
        }),
        values(PARSE, "uuid", UUIDS, &|random| {
            format!("{:08x}-0011-2233-4455-66778899aabb", random.next() >> 32)
        }),
        values(TEXT, "text, 5 bytes", TEXTS, &|random| format!("{:05}", random.below(100_000))),
        values(TEXT, "text, 50 bytes", TEXTS, &|random| format!("{:050}", random.next())),
        values(BUILD, "quoted, 5 bytes", TEXTS, &|random| format!("\"{:05}\"", random.below(100_000))),
        values(BUILD, "quotes doubled, 20 bytes", TEXTS, &|random| {
            format!("\"{}\"\"{}\"", random.next() >> 40, random.next() >> 40)
        }),
        values(BUILD, "nothing but quotes", TEXTS, &|_| "\"".repeat(202)),
        values(BUILD, "blob, 32 bytes", BLOBS, &|random| format!("0x{:032x}", random.next())),
    ]
}

fn samples(count: usize) -> Vec<Case> {
    let values = |name, field: &dyn Fn(&mut Random) -> String| {
        sample(SEE, name, count, Header::No, table(count, field))
    };
    let columns = count.min(100_000);
    let names = |name, text: Vec<String>| sample(NAME, name, columns, Header::Yes, text.join(","));
    vec![
        values("sample of bigint", &|random| random.below(1_000_000).to_string()),
        values("sample of double", &|random| (random.next() as f64 / 1e18).to_string()),
        values("sample of timestamp", &|random| {
            format!("2024-02-{:02}T12:34:56.123456Z", 1 + random.below(28))
        }),
        values("sample of text", &|random| format!("x{:08}", random.below(1_000_000))),
        names("names", (0..columns).map(|at| format!("column_{at}")).collect()),
        names("names that are the same", vec!["a".to_string(); columns]),
        names("long names", (0..columns).map(|at| format!("{}{at:08}", "long_name_".repeat(9))).collect()),
    ]
}

fn lines(count: usize) -> Vec<Case> {
    let table = |field: &dyn Fn(&mut Random) -> String| {
        let mut random = Random::new();
        let mut text = String::new();
        for _ in 0..count.div_ceil(FIELDS) {
            let fields: Vec<String> =
                ('a'..='h').map(|name| format!("\"{name}\":{}", field(&mut random))).collect();
            text += &format!("{{{}}}\n", fields.join(","));
        }
        text
    };
    let nested = |element: &str| {
        let list = vec![element; 1000].join(",");
        format!("{{\"a\":[{list}]}}\n").repeat(count.div_ceil(1000))
    };
    let string =
        |part: &str| format!("{{\"a\":\"{}\"}}\n", part.repeat(4000 / part.len())).repeat(count / 500 + 1);
    let bytes = |name, text: String| rows(READ, name, text.len(), "a text", text).bytes();
    let seen = |name, text: String| sample(SEE_LINE, name, count, Header::No, text);
    let integer = |random: &mut Random| random.below(1_000_000).to_string();
    let double = |random: &mut Random| (random.next() as f64 / 1e18).to_string();
    let text = |random: &mut Random| format!("\"{:08}\"", random.below(1_000_000));
    vec![
        rows(SEARCH, "empty lines", count, "a text", format!("{{}}{}{{}}", "\n".repeat(count))),
        rows(SEARCH, "objects of nothing", count, "a text", "{}\n".repeat(count)),
        rows(READ, "bigint", count, BIGINTS, table(&integer)),
        rows(READ, "double", count, DOUBLES, table(&double)),
        rows(READ, "text", count, TEXTS, table(&text)),
        rows(READ, "text with escapes", count, TEXTS, table(&|_| "\"\\u00e9\\n\\ud83d\\ude00\"".to_string())),
        rows(READ, "null", count, TEXTS, table(&|_| "null".to_string())),
        rows(READ, "lists of integers", count, "a list<int>", nested("1")),
        rows(READ, "lists of lists", count, "a list<list<int>>", nested("[]")),
        rows(READ, "lists as text", count, "a text", nested("[]")),
        bytes("long strings", string("0123456789")),
        bytes("long strings of escapes", string("\\n")),
        bytes("long strings of escapes by number", string("\\u00e9")),
        seen("sample of bigint", table(&integer)),
        seen("sample of double", table(&double)),
        seen("sample of text", table(&text)),
        seen("sample of timestamps", table(&|_| "\"2024-02-29T12:34:56.123456Z\"".to_string())),
        seen("sample of lists of lists", nested("[]")),
        seen("sample of objects", nested("{\"b\":1}")),
    ]
}

fn splits(count: usize) -> Vec<Case> {
    let case = |name, header, text: String| {
        let has_comments = text.starts_with('#');
        let text_of = Text { format: Format::Csv, schema: None, header, has_comments, timed: Timed::Split };
        Case::new(SPLIT, name, text.len(), Bytes::from(text)).work(Work::Text(text_of)).bytes()
    };
    let row = |field: &str| format!("{field},{field},{field}\n");
    let table = |field: &str| row(field).repeat(count * 4 / row(field).len() + 1);
    vec![
        case("split, fields of 50 bytes", Header::No, table(&"x".repeat(50))),
        case("split, quoted fields of 5 bytes", Header::No, table("\"abcde\"")),
        case("split, quoted fields of nothing", Header::No, table("\"\"")),
        case("split, nothing but quotes", Header::No, table(&"\"".repeat(202))),
        case("split, quotes that are text", Header::No, table(&format!("x{}", "\"".repeat(200)))),
        case("split, comments of nothing", Header::No, format!("{}a,b\n", "#\n".repeat(count))),
        case(
            "split, comments that are none",
            Header::No,
            format!("#\n{}", table(&"#".repeat(50)).replace("\n", "\nx").trim_end_matches('x')),
        ),
        case("split, line ends", Header::No, format!("a,b\n{}", "\n".repeat(count))),
        case("split, empty lines before the header", Header::Yes, format!("{}a,b\n", "\n".repeat(count))),
    ]
}

/// Splits a case once.
fn split(case: &Case, form: &TextForm, timer: &mut Timer<'_>) -> Result<u64> {
    let mut splitter = TextSplitter::new(form, SplitOptions::default());
    let mut rest = Some(case.file.clone());
    loop {
        match timer.step(|budget: &mut Budget<'_>| splitter.step(budget))? {
            Step::Ready(Split::Block(block)) => drop(std::hint::black_box(block)),
            Step::Ready(Split::Room) => match rest.take() {
                Some(bytes) => drop(splitter.feed(bytes)?),
                None => splitter.finish(),
            },
            Step::Yield => {}
            Step::Done => return Ok(timer.units),
            other => return Err(Error::internal(format!("{other:?}"))),
        }
    }
}

/// Reads a case once.
pub(super) fn read(case: &Case, of: Text, batch_rows: usize, timer: &mut Timer<'_>) -> Result<u64> {
    let mut options = TextOptions::default();
    options.schema = of.schema.map(str::parse).transpose()?;
    options.header = of.header;
    options.delimiter = Some(b',');
    options.comment = of.has_comments.then_some(b'#');
    options.infer_bytes = u64::MAX;
    timer.is_on = of.timed == Timed::Sample;
    let mut sampler = TextSampler::new(of.format, &options)?;
    let mut rest = Some(case.file.clone());
    let sample = loop {
        match timer.step(|budget| sampler.step(budget))? {
            Step::Ready(Sampled::Sample(sample)) => break sample,
            Step::Ready(Sampled::Room) => match rest.take() {
                Some(bytes) => drop(sampler.feed(bytes)?),
                None => sampler.finish(),
            },
            Step::Yield => {}
            other => return Err(Error::internal(format!("{other:?}"))),
        }
    };
    if of.timed == Timed::Sample {
        return Ok(timer.units);
    }
    let form = sample.form()?;
    timer.is_on = true;
    if of.timed == Timed::Split {
        return split(case, &form, timer);
    }
    let mut read_options = ReadOptions::default();
    read_options.batch_rows = batch_rows;
    let mut reader = TextReader::new(&form, read_options)?;
    let mut rest = Some(case.file.clone());
    loop {
        match timer.step(|budget: &mut Budget<'_>| reader.step(budget))? {
            Step::Ready(Read::Rows(batch)) => drop(std::hint::black_box(batch)),
            Step::Ready(Read::Room) => match rest.take() {
                Some(bytes) => drop(reader.feed(bytes)?),
                None => reader.finish(),
            },
            Step::Yield => {}
            Step::Done => return Ok(timer.units),
            other => return Err(Error::internal(format!("{other:?}"))),
        }
    }
}
