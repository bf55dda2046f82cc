//! The machines, driven as hosts do: fed a byte at a time, without a budget, and called again after errors.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use marquetry_base::{Detail, ErrorKind, Limit};
use marquetry_parquet::batch::Values;

use super::*;
use crate::{Header, Wanted};

/// How a host behaves: the bytes of a piece, and the units of a step.
#[derive(Clone, Copy)]
struct Host {
    piece: usize,
    units: u64,
}

const HOSTS: [Host; 5] = [
    Host { piece: usize::MAX, units: u64::MAX },
    Host { piece: 1, units: u64::MAX },
    Host { piece: 7, units: 0 },
    Host { piece: usize::MAX, units: 1 },
    Host { piece: 100_000, units: 250_000 },
];

/// Maximum cost of a slice of work: a step may exceed its budget by this much.
const SLICE_UNITS_MAX: u64 = 75_000;

/// The maximum units that a step has charged.
struct Meter(u64);

impl Meter {
    fn sample(&mut self, text: &[u8], format: Format, options: &TextOptions, host: Host) -> Result<Sample> {
        let mut sampler = TextSampler::new(format, options)?;
        let mut rest = text;
        loop {
            let mut budget = Budget::new(host.units);
            let step = sampler.step(&mut budget);
            self.0 = self.0.max(budget.spent());
            match step {
                Ok(Step::Ready(Sampled::Sample(sample))) => {
                    assert_eq!(sampler.step(&mut budget).unwrap().map(|_| ()), Step::Done);
                    return Ok(sample);
                }
                Ok(Step::Ready(Sampled::Room)) if rest.is_empty() => sampler.finish(),
                Ok(Step::Ready(Sampled::Room)) => {
                    let (piece, after) = rest.split_at(rest.len().min(host.piece));
                    assert_eq!(sampler.feed(Bytes::copy_from_slice(piece)), Ok(Fed::Taken));
                    rest = after;
                }
                Ok(Step::Yield) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => {
                    assert_eq!(sampler.step(&mut budget).unwrap_err(), error, "it stays");
                    assert_eq!(sampler.feed(Bytes::new()).unwrap_err(), error);
                    return Err(error);
                }
            }
        }
    }

    fn read(
        &mut self,
        text: &[u8],
        form: &TextForm,
        options: &ReadOptions,
        host: Host,
    ) -> Result<Vec<Batch>> {
        let mut reader = TextReader::new(form, options.clone())?;
        let (mut rest, mut batches, mut rows) = (text, Vec::new(), 0);
        loop {
            let mut budget = Budget::new(host.units);
            let step = reader.step(&mut budget);
            self.0 = self.0.max(budget.spent());
            match step {
                Ok(Step::Ready(Read::Rows(batch))) => {
                    assert!(batch.rows > 0 && batch.rows <= options.batch_rows);
                    assert_eq!(batch.first_row, rows);
                    rows += marquetry_base::cast::u64_of(batch.rows);
                    batches.push(batch);
                }
                Ok(Step::Ready(Read::Room)) if rest.is_empty() => reader.finish(),
                Ok(Step::Ready(Read::Room)) => {
                    let (piece, after) = rest.split_at(rest.len().min(host.piece));
                    assert_eq!(reader.feed(Bytes::copy_from_slice(piece)), Ok(Fed::Taken));
                    rest = after;
                }
                Ok(Step::Yield) => {}
                Ok(Step::Done) => {
                    assert_eq!(reader.step(&mut budget), Ok(Step::Done));
                    return Ok(batches);
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => {
                    assert_eq!(reader.step(&mut budget).unwrap_err(), error, "it stays");
                    assert_eq!(reader.feed(Bytes::new()).unwrap_err(), error);
                    return Err(error);
                }
            }
        }
    }
}

/// Short texts with quotes in them are built anew: of all fields, a slice of these costs the most.
#[test]
fn a_slice_of_quoted_texts_is_small() {
    let text = "\"a\"\"b\",\"a\"\"ba\"\"ba\"\"b\"\n".repeat(3_000);
    let options = TextOptions { header: Header::No, ..TextOptions::default() };
    let (_, batches) = read(text.as_bytes(), Format::Csv, &options).unwrap();
    assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), 3_000);
}

/// The batches of a text, or the error; both are the same for all hosts.
#[track_caller]
fn read(text: &[u8], format: Format, options: &TextOptions) -> Result<(Columns, Vec<Batch>)> {
    let mut found: Option<Result<(Columns, Vec<Batch>)>> = None;
    for host in HOSTS {
        let mut meter = Meter(0);
        let mut read_options = ReadOptions { batch_rows: 100, ..ReadOptions::default() };
        read_options.limits = options.limits;
        let read = meter
            .sample(text, format, options, host)
            .and_then(|sample| sample.form())
            .and_then(|form| Ok((form.columns().clone(), meter.read(text, &form, &read_options, host)?)));
        if host.units < u64::MAX {
            assert!(meter.0 <= host.units + SLICE_UNITS_MAX, "{} units in a step", meter.0);
        }
        match &found {
            None => found = Some(read),
            Some(before) => assert_eq!(&read, before, "pieces of {}, {} units", host.piece, host.units),
        }
    }
    found.unwrap()
}

/// Rows of numbers and texts as text.
fn shown(batches: &[Batch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.rows {
            let field = |column: &marquetry_parquet::batch::ColumnBatch| match &column.values {
                _ if column.is_null(row) => "-".to_string(),
                Values::Boolean(values) => values.get(row).to_string(),
                Values::Int32(values) => values[row].to_string(),
                Values::Int64(values) => values[row].to_string(),
                Values::Float(values) => values[row].to_string(),
                Values::Double(values) => values[row].to_string(),
                Values::FixedLenByteArray(values) => format!("{:?}", values.get(row)),
                Values::ByteArray(values) => String::from_utf8_lossy(values.get(row)).into_owned(),
                other => panic!("{other:?}"),
            };
            rows.push(batch.columns.iter().map(field).collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

#[track_caller]
fn check(text: &str, format: Format, options: &TextOptions, columns: &str, rows: &[&str]) {
    let (found, batches) = read(text.as_bytes(), format, options).unwrap();
    assert_eq!(found.to_string(), columns);
    assert_eq!(shown(&batches), rows);
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, format: Format, options: &TextOptions, said: &str) -> Error {
    let error = read(text.as_ref(), format, options).map(|(columns, _)| columns).unwrap_err();
    assert!(error.message().contains(said), "{error}");
    error
}

#[test]
fn delimited_text_of_every_type() {
    let options = TextOptions::default();
    let text =
        "id,name,price,flag,day\n1,a,1.5,true,2024-02-29\n-2,\"b \"\"c\"\"\n\",2,FALSE,1970-01-01\n,,,,\n";
    check(
        text,
        Format::Csv,
        &options,
        "id bigint, name text, price double, flag boolean, day date",
        &["1|a|1.5|true|19782", "-2|b \"c\"\n|2|false|0", "-|-|-|-|-"],
    );
    let given = TextOptions {
        schema: Some(
            "a tinyint, b blob, c decimal(20, 1), d float, e uuid, f time, t timestamp".parse().unwrap(),
        ),
        ..TextOptions::default()
    };
    check(
        " 7 ,0x6162,1.5,2.5,00112233445566778899aabbccddeeff,00:00:01,1970-01-01 00:00:01\n",
        Format::Csv,
        &given,
        "a tinyint, b blob, c decimal(20, 1), d float, e uuid, f time, t timestamp(3)",
        &["7|ab|[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15]|2.5|\
           [0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255]|1000000000|1000"],
    );
    check("\u{feff}a\tb\r\n\r\n1\t\"\r\n2", Format::Tsv, &short(), "a bigint, b text", &["1|\"", "2|-"]);
    check("", Format::Csv, &given_text(2), "a0 text, a1 text", &[]);
    check("x\n\n1", Format::Csv, &options, "x bigint", &["-", "1"]);
    // The rows are more than a batch has.
    let many: String = (0..1000).map(|row| format!("{row},{}\n", "long text ".repeat(row % 5))).collect();
    let (_, batches) =
        read(many.as_bytes(), Format::Csv, &TextOptions { header: Header::No, ..options }).unwrap();
    let expected: Vec<String> = (0..1000)
        .map(|row| match row % 5 {
            0 => format!("{row}|-"),
            times => format!("{row}|{}", "long text ".repeat(times)),
        })
        .collect();
    assert_eq!(shown(&batches), expected);
}

fn short() -> TextOptions {
    TextOptions { short_rows: true, ..TextOptions::default() }
}

fn given_text(columns: usize) -> TextOptions {
    let columns: Vec<String> = (0..columns).map(|column| format!("a{column} text")).collect();
    TextOptions { schema: Some(columns.join(", ").parse().unwrap()), ..TextOptions::default() }
}

#[test]
fn headers_and_delimiters_are_guessed() {
    for (text, columns) in [
        ("a,b\n1,2\n", "a bigint, b bigint"),
        ("a\tb, c\n1\t2\n", "a bigint, \"b, c\" bigint"),
        ("a;b\n1,5;2\n", "a text, b bigint"),
        ("a|b\n", "a text, b text"),
        ("a\n1\n", "a bigint"),
        ("1,name\n", "column1 bigint, column2 text"),
        ("x,2024-02-29\n", "column1 text, column2 date"),
        (",a\n1,2\n", "column1 bigint, a bigint"),
    ] {
        let (found, _) = read(text.as_bytes(), Format::Csv, &TextOptions::default()).unwrap();
        assert_eq!(found.to_string(), columns, "{text:?}");
    }
    let error = refused("a,a\n1,2\n", Format::Csv, &TextOptions::default(), "line 1: \"a\" appears twice");
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["header"])));
    let yes = TextOptions { header: Header::Yes, ..TextOptions::default() };
    let (found, _) = read(b"a,,a,column2,a#2,,a\n", Format::Csv, &yes).unwrap();
    assert_eq!(
        found.to_string(),
        "a text, column2#2 text, a#3 text, column2 text, a#2 text, column6 text, a#4 text"
    );
    let mut options =
        TextOptions { schema: Some("b text, A bigint".parse().unwrap()), ..TextOptions::default() };
    check("a,b\n007,x\n", Format::Csv, &options, "b text, A bigint", &["x|7"]);
    options.header = Header::Yes;
    refused("a,c\n", Format::Csv, &options, "the header has \"c\" where the schema has \"b\"");
    options.schema = Some("a text".parse().unwrap());
    refused("a,c\n", Format::Csv, &options, "the header's column \"c\" is missing from it");
}

/// What is no name is a value; of texts, something else has to tell that the first are names.
#[test]
fn a_first_row_of_values_is_a_row() {
    for (text, columns, is_guessed) in [
        ("name,id\nanna,1\n", "name text, id bigint", false),
        ("name,,id\nanna,x,1\n", "name text, column2 text, id bigint", false),
        ("name,city\nanna,bern\n", "name text, city text", true),
        ("name,city\n", "name text, city text", true),
        (",name\nx,anna\n", "column1 text, name text", true),
        ("name\u{1}city\nanna,x\u{1}bern\n", "name text, city text", true),
        ("1\u{1}a,b\n2\u{1}c,d\n", "column1 bigint, column2 text", false),
        // Values of no type but text.
        ("007,bern\n010,chur\n", "column1 text, column2 text", false),
        ("anna,29.02.2024\nbob,01.03.2024\n", "column1 text, column2 text", false),
        ("anna,\\N\nbob,chur\n", "column1 text, column2 text", false),
        ("anna\u{2}bern\nbob\u{2}chur\n", "column1 text", false),
        // Gaps, which a header has only beside columns that are not text.
        ("anna,,bern\nbob,x,chur\n", "column1 text, column2 text, column3 text", false),
        ("anna,bern,\nbob,chur,5\n", "column1 text, column2 text, column3 bigint", false),
        (",bern\n,chur\n", "column1 text, column2 text", false),
    ] {
        for host in HOSTS {
            let sample =
                Meter(0).sample(text.as_bytes(), Format::Csv, &TextOptions::default(), host).unwrap();
            let found = sample.form().unwrap().columns().to_string();
            assert_eq!((&*found, sample.is_header_guessed()), (columns, is_guessed), "{text:?}");
        }
    }
    // The row is one of the rows.
    let options = TextOptions::default();
    let columns = "column1 text, column2 text, column3 bigint";
    check("anna,bern,\nbob,chur,5\n", Format::Csv, &options, columns, &["anna|bern|-", "bob|chur|5"]);
    // A null that is given is no name; names that somebody else knows are certain, and so is what is said.
    let text = "name,city\nanna,bern\n";
    let mut known = [TextOptions::default(), TextOptions::default(), TextOptions::default()];
    known[0].types = "city=text".parse().unwrap();
    known[1].wanted = vec![("name".to_string(), Wanted::Text)];
    known[2].header = Header::Yes;
    for options in known {
        let sample = Meter(0).sample(text.as_bytes(), Format::Csv, &options, HOSTS[0]).unwrap();
        assert!(!sample.is_header_guessed(), "{options:?}");
    }
    let options = TextOptions { nulls: vec!["city".into()], ..TextOptions::default() };
    check(text, Format::Csv, &options, "column1 text, column2 text", &["name|-", "anna|bern"]);
}

#[test]
fn what_is_wrong_in_delimited_text_is_told_with_its_line() {
    let options = TextOptions::default();
    let csv = |text: &str, said: &str| refused(text, Format::Csv, &options, said);
    csv("", "it has no row");
    let error = csv("a,b\n1,2\n\n3\n", "line 4: 1 field, where the rows before have 2");
    assert_eq!(
        (error.kind(), error.detail()),
        (ErrorKind::Corrupt, Some(Detail::AdmittedBy(&["short_rows", "schema"])))
    );
    csv("a,b\n1,\"x\ny\"\n1,2,3\n", "line 4: 3 fields");
    csv("a,b\n1,\"x\n", "line 2: a quote that is not closed");
    csv("a,b\n1,\"x\"y\n", "line 2: text after a closing quote");
    csv("a,b\r1,2\r", "line 1: carriage returns");
    let error = refused(b"a,b\n1,x\n2,\xff\n", Format::Csv, &options, "line 3: bytes that are not UTF-8");
    assert_eq!(error.place().offset, Some(10));
    csv(&format!("\n\n{}\n", "x".repeat(65_536)), "line 3: a name of 65536 bytes");
    csv(&format!("{}1\n", "1,".repeat(100_000)), "line 1: a row of 100001 fields");
    let given = TextOptions { schema: Some("a int, b text".parse().unwrap()), ..TextOptions::default() };
    let error = refused("1,x\n\n2,\"\n\"\ny,z\n", Format::Csv, &given, "line 5: \"y\" is not an int");
    assert_eq!(error.place().column.as_deref(), Some("a"));
    refused("1,x,3\n", Format::Csv, &given, "line 1: 3 fields, where the schema has 2 columns");
    let long = format!("1,\"{}\"\n", "x".repeat(200));
    let mut small = given_text(2);
    small.limits.value_bytes = 4096 + 100;
    let error = refused(&long, Format::Csv, &small, "line 1: a row of more than 100 bytes");
    assert_eq!(error.detail(), Some(Detail::Limit(Limit::ValueBytes)));
    assert!(TextSampler::new(Format::Csv, &TextOptions { delimiter: Some(b'"'), ..options }).is_err());
}

#[test]
fn json_lines() {
    let options = TextOptions::default();
    check(
        "{\"a\":1,\"b\":\"x\\u00e9\",\"c\":true,\"d\":1.5}\r\n\n  {\"d\":2,\"b\":null}  \n{\"a\":-3}",
        Format::JsonLines,
        &options,
        "a bigint, b text, c boolean, d double",
        &["1|xé|true|1.5", "-|-|-|2", "-3|-|-|-"],
    );
    let (columns, batches) = read(b"{}\n\n { } \n{}", Format::JsonLines, &options).unwrap();
    let rows: usize = batches.iter().map(|batch| batch.rows).sum();
    assert_eq!((columns.as_slice().len(), rows), (0, 3), "rows without columns");
    let (columns, batches) = read(
        b"{\"l\":[1,null,2],\"s\":{\"x\":[{\"y\":\"a\"}]}}\n{\"s\":{\"x\":[]}}\n",
        Format::JsonLines,
        &options,
    )
    .unwrap();
    assert_eq!(columns.to_string(), "l list<bigint>, s struct<x list<struct<y text>>>");
    let levels = batches[0].columns[0].levels.as_ref().unwrap();
    assert_eq!(
        (&levels.definition[..], levels.repetition.as_deref()),
        (&[3, 2, 3, 0][..], Some(&[0, 1, 1, 0][..]))
    );
    let given = TextOptions {
        schema: Some("m map<int, double>, t text, b blob, d decimal(5, 2)".parse().unwrap()),
        ..TextOptions::default()
    };
    let text =
        "{\"m\":{\"1\":\"2.5\"},\"t\":{\"a\": [1, {}]},\"b\":\"0x61\",\"d\":1.25}\n{\"t\":[ ],\"d\":\"2\"}\n";
    let (_, batches) = read(text.as_bytes(), Format::JsonLines, &given).unwrap();
    assert_eq!(batches[0].columns[0].values, Values::Int32(vec![1].into()));
    let Values::ByteArray(texts) = &batches[0].columns[2].values else { panic!() };
    assert_eq!(texts.iter().collect::<Vec<_>>(), [&b"{\"a\": [1, {}]}"[..], b"[ ]"]);
    assert_eq!(batches[0].columns[4].values, Values::Int32(vec![125, 200].into()));
}

/// Doubles without digits, as they are printed.
#[test]
fn nan_and_infinities_among_numbers() {
    // Not NaN: it is not equal to itself, and results are compared.
    let options = TextOptions::default();
    check(
        "{\"a\":\"-Infinity\",\"b\":1,\"c\":\"NaN\"}\n{\"a\":1.5,\"b\":\"-Infinity\",\"c\":\"Infinity\"}\n{\"a\":\"Infinity\"}\n",
        Format::JsonLines,
        &options,
        "a double, b double, c text",
        &["-inf|1|NaN", "1.5|-inf|Infinity", "inf|-|-"],
    );
    check(
        "a,b,c\n-Infinity,1,NaN\n1.5,-Infinity,Infinity\nInfinity,,\n",
        Format::Csv,
        &options,
        "a double, b double, c text",
        &["-inf|1|NaN", "1.5|-inf|Infinity", "inf|-|-"],
    );
    let lines = |text: &str, said: &str| refused(text, Format::JsonLines, &options, said);
    lines("{\"a\":1}\n{\"a\":\"nan\"}\n", "line 2: a string, where the lines before have a number");
    lines(
        "{\"a\":\"NaN\"}\n{\"a\":\"x\"}\n{\"a\":1}\n",
        "line 3: a number, where the lines before have a string",
    );
    lines("{\"a\":9007199254740993}\n{\"a\":\"NaN\"}\n", "line 2: a string");
}

#[test]
fn what_is_wrong_in_json_lines_is_told_with_its_line() {
    let options = TextOptions::default();
    let lines = |text: &str, said: &str| refused(text, Format::JsonLines, &options, said);
    lines("\n", "it has no rows");
    lines("{\"a\":1}\n[1]\n", "line 2: \"[1]\" is not an object; each line must be one; `jq");
    lines(&format!("{}5", " ".repeat(100)), "line 1: \"5\" is not an object");
    lines("{\n", "line 1: an object that does not end, at its character 2; each object must end on its line");
    lines("{\"a\":1}\n\n{\"a\":}\n", "line 3: expected a value, at its character 6");
    let clash =
        lines("{\"a\":{\"b\":1}}\n{\"a\":{\"b\":\"x\"}}\n", "line 2: a string, where the lines before");
    assert_eq!(clash.place().column.as_deref(), Some("a.b"));
    assert_eq!(clash.detail(), Some(Detail::AdmittedBy(&["types"])));
    lines("{\"a\":9007199254740993}\n{\"a\":1.5}\n", "line 2: a number: only text holds all");
    lines("{\"a\":18446744073709551615}\n", "does not fit a signed integer of 64 bits");
    lines("{\"a\":1e400}\n", "too large for a double");
    lines("{\"a\":{}}\n", "objects without a field");
    lines("{\"a\":1,\"a\":2}\n", "line 1: a field that comes twice");
    lines(&format!("{{\"a\":{}", "[".repeat(100_000)), "recursion limit");
    lines(&format!("{{\"{}\":1}}", "x".repeat(65_536)), "line 1: a name of 65536 bytes");
    let given = TextOptions { schema: Some("a int".parse().unwrap()), ..TextOptions::default() };
    refused(
        "{\"a\":1}\n{\"a\":{\"b\":1}}\n",
        Format::JsonLines,
        &given,
        "line 2: \"{\\\"b\\\":1}\" is not an int",
    );
    refused("{\"b\":1}\n", Format::JsonLines, &given, "line 1: the field \"b\" is missing from the schema");
    let some = TextOptions { infer_bytes: 1, ..TextOptions::default() };
    // A piece is examined completely.
    let text = format!("{}{{\"b\":1}}\n{{\"a\":0.5}}\n", "{\"a\":1}\n".repeat(65_536));
    let error = refused(&text, Format::JsonLines, &some, "line 65537: no line before has a field \"b\"");
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["infer_bytes", "schema"])));
}

/// A column of `unknown` has only nulls, whatever its text says null is.
#[test]
fn what_is_wanted_is_kept_as_it_is_written() {
    let wanted = |name: &str, wanted| (name.to_string(), wanted);
    let options = TextOptions {
        wanted: vec![
            wanted("word", Wanted::Text),
            wanted("price", Wanted::Exact),
            wanted("many", Wanted::Exact),
            wanted("nobody", Wanted::Text),
        ],
        ..TextOptions::default()
    };
    check(
        "word,Price,many,other\n1.10,100.00,7,1.10\nTRUE,\"\",8,2.50\n\"\",12345678901234567.89,,3\n",
        Format::Csv,
        &options,
        "word text, Price text, many bigint, other double",
        &["1.10|100.00|7|1.1", "TRUE|-|8|2.5", "|12345678901234567.89|-|3"],
    );
    check(
        "{\"word\":1.10,\"price\":0.12345678901234567890,\"many\":1}\n{\"word\":3,\"price\":1e2,\"many\":null}\n",
        Format::JsonLines,
        &options,
        "word text, price text, many bigint",
        &["1.10|0.12345678901234567890|1", "3|1e2|-"],
    );
    // What is given is what it is, and a decimal comma makes no text that others read.
    let given = TextOptions { types: "price=float".parse().unwrap(), ..options.clone() };
    check("price\n1.5\n", Format::Csv, &given, "price float", &["1.5"]);
    let comma = TextOptions { decimal: b',', delimiter: Some(b';'), ..options };
    check("price;a\n1,5;1\n", Format::Csv, &comma, "price double, a bigint", &["1.5|1"]);
}

#[test]
fn nothing_but_nulls() {
    let given = TextOptions {
        schema: Some("id int, n unknown, l list<unknown>".parse().unwrap()),
        ..TextOptions::default()
    };
    let host = HOSTS[0];
    let mut meter = Meter(0);
    let mut nulls = |text: &str, format, options: &TextOptions| {
        let form = meter.sample(text.as_bytes(), format, options, host).unwrap().form().unwrap();
        let rows = meter.read(text.as_bytes(), &form, &ReadOptions::default(), host).unwrap();
        rows.iter().map(|batch| batch.columns[1].nulls).sum::<usize>()
    };
    let lines = "{\"id\":1,\"n\":null,\"l\":[null,null]}\n{\"id\":2}\n";
    assert_eq!(nulls(lines, Format::JsonLines, &given), 2);
    let flat = TextOptions { schema: Some("id int, n unknown".parse().unwrap()), ..given.clone() };
    assert_eq!(nulls("id,n\n1,\n2,\"\"\n", Format::Csv, &flat), 2);
    let words = TextOptions { nulls: vec!["NA".into()], ..flat.clone() };
    assert_eq!(nulls("id,n\n1,NA\n2,NA\n", Format::Csv, &words), 2);
    let what = "\"x\" is not null, the only value of unknown";
    refused("id,n\n1,\n2,x\n", Format::Csv, &flat, &format!("line 3: {what}"));
    refused("{\"n\":null}\n{\"n\":\"x\"}\n", Format::JsonLines, &given, &format!("line 2: {what}"));
    refused("{\"l\":[null,0]}\n", Format::JsonLines, &given, "line 1: \"0\" is not null");
}

/// Rows longer than a piece: read completely, in slices, and refused beyond a limit.
#[test]
fn long_rows() {
    let host = Host { piece: 100_000, units: 0 };
    let long = "0123456789abcdef".repeat(150_000);
    let mut meter = Meter(0);
    let doubled = long.replace("789", "\"\"");
    let text = format!("a,b,c\n1,{long},\"{doubled}\"\n2,{long},x\n");
    let sample = meter.sample(text.as_bytes(), Format::Csv, &TextOptions::default(), host).unwrap();
    let form = sample.form().unwrap();
    let rows = meter.read(text.as_bytes(), &form, &ReadOptions::default(), host).unwrap();
    let single = long.replace("789", "\"");
    assert!(shown(&rows) == [format!("1|{long}|{single}"), format!("2|{long}|x")]);
    let hex = "61".repeat(600_000);
    let given = TextOptions {
        schema: Some("t text, e text, b blob, l list<int>, r text".parse().unwrap()),
        ..TextOptions::default()
    };
    let list = "1,".repeat(300_000);
    let raw = format!("[{}]", "[],".repeat(50_000));
    let text = format!(
        "{{\"t\":\"{long}\",\"e\":\"{}\",\"b\":\"0x{hex}\",\"l\":[{list}2],\"r\":{}}}{}\n{{}}\n",
        long.replace("789", "\\n"),
        raw.replace(",]", "]"),
        " ".repeat(100_000),
    );
    let sample = meter.sample(text.as_bytes(), Format::JsonLines, &given, host).unwrap();
    let rows = meter.read(text.as_bytes(), &sample.form().unwrap(), &ReadOptions::default(), host).unwrap();
    let bytes = |column: usize| {
        let Values::ByteArray(values) = &rows[0].columns[column].values else { panic!() };
        values.get(0).to_vec()
    };
    assert!(bytes(0) == long.as_bytes() && bytes(1) == long.replace("789", "\n").as_bytes());
    assert!(bytes(2) == "a".repeat(600_000).as_bytes() && bytes(4) == raw.replace(",]", "]").as_bytes());
    assert_eq!(rows[0].columns[3].values.len(), 300_001);
    // The same without given columns.
    let mut text = text.replace(&raw.replace(",]", "]"), "[[],[]]");
    text.push('\n');
    let sample = meter.sample(text.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap();
    assert_eq!(
        sample.form().unwrap().columns().to_string(),
        "t text, e text, b text, l list<bigint>, r list<list<text>>"
    );
    assert!(meter.0 <= SLICE_UNITS_MAX, "{} units in a step", meter.0);
    let mut small = TextOptions::default();
    small.limits.value_bytes = 1 << 20;
    for format in [Format::Csv, Format::JsonLines] {
        let endless = format!("{{\"a\":\"{long}");
        let error = meter.sample(endless.as_bytes(), format, &small, host).unwrap_err();
        assert!(error.message().contains("line 1: a row of more than 1044480 bytes"), "{error}");
    }
}

/// Wide tables: headers, rows and types in slices.
#[test]
fn wide_tables() {
    let host = Host { piece: 1 << 20, units: 0 };
    let columns = 50_000;
    let mut text = (0..columns).map(|at| format!("c{at}")).collect::<Vec<_>>().join(",");
    for row in 0..3 {
        text += "\n";
        text += &vec![row.to_string(); columns].join(",");
    }
    let mut meter = Meter(0);
    let form =
        meter.sample(text.as_bytes(), Format::Csv, &TextOptions::default(), host).unwrap().form().unwrap();
    assert_eq!(form.schema().leaves().len(), columns);
    let rows = meter.read(text.as_bytes(), &form, &ReadOptions::default(), host).unwrap();
    assert_eq!(rows.iter().map(|batch| batch.rows).sum::<usize>(), 3);
    // Names that are all the same.
    let same = vec!["a"; columns].join(",");
    let yes = TextOptions { header: Header::Yes, ..TextOptions::default() };
    let form = meter.sample(same.as_bytes(), Format::Csv, &yes, host).unwrap().form().unwrap();
    assert_eq!(form.columns().as_slice()[columns - 1].name, format!("a#{columns}"));
    // Texts one of which is empty, which are no names.
    let texts: Vec<String> =
        (0..columns).map(|at| if at == 7 { String::new() } else { format!("text {at}") }).collect();
    let texts = format!("{0}\n{0}\n", texts.join(","));
    let sample = meter.sample(texts.as_bytes(), Format::Csv, &TextOptions::default(), host).unwrap();
    let form = sample.form().unwrap();
    assert_eq!(form.columns().as_slice()[columns - 1].name, format!("column{columns}"));
    assert!(meter.0 <= SLICE_UNITS_MAX, "{} units in a step", meter.0);
}

/// How very many fields become columns is found in slices, each of which is charged.
#[test]
fn wide_lines() {
    let host = Host { piece: 1 << 20, units: 0 };
    let objects = 10_000;
    let fields: Vec<String> =
        (0..objects).map(|at| format!("\"c{at}\":[{{\"a\":{at},\"b\":\"x\"}}]")).collect();
    let text = format!("{{{}}}\n{{}}\n", fields.join(","));
    let mut meter = Meter(0);
    let sample = meter.sample(text.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap();
    let form = sample.form().unwrap();
    assert_eq!(form.schema().leaves().len(), 2 * objects);
    let mut reader = TextReader::new(&form, ReadOptions::default()).unwrap();
    let (mut steps, mut units) = (0, 0);
    loop {
        let mut budget = Budget::new(0);
        let step = reader.step(&mut budget).unwrap();
        meter.0 = meter.0.max(budget.spent());
        (steps, units) = (steps + 1, units + budget.spent());
        if step == Step::Ready(Read::Room) {
            break;
        }
    }
    assert!(
        steps > objects && units > 4000 * u64::try_from(objects).unwrap(),
        "{units} units in {steps} steps"
    );
    assert!(meter.0 <= SLICE_UNITS_MAX, "{} units in a step", meter.0);
    // (The end of a line is one event for the shredder, however many fields are missing.)
    let rows = meter.read(text.as_bytes(), &form, &ReadOptions::default(), host).unwrap();
    assert_eq!(rows.iter().map(|batch| batch.rows).sum::<usize>(), 2);
    let Values::Int64(last) = &rows[0].columns[2 * objects - 2].values else { panic!("no numbers") };
    assert_eq!(last[..], [i64::try_from(objects - 1).unwrap()]);
}

/// Objects that keep having new fields are refused before their nulls are too many; those that have a good part of many
/// fields are not.
#[test]
fn ever_new_fields() {
    let host = Host { piece: 1 << 20, units: 250_000 };
    let text: String = (0..20_000).map(|at| format!("{{\"k{at}\":1}}\n")).collect();
    let mut meter = Meter(0);
    let error = meter.sample(text.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap_err();
    assert!(error.message().contains("ever new fields"), "{error}");
    for [start, end] in [["{\"o\":{", "}}"], ["{\"o\":[{", "}]}"], ["{\"o\":[{\"p\":{", "}}]}"]] {
        let text: String = (0..20_000).map(|at| format!("{start}\"k{at}\":1{end}\n")).collect();
        let below = meter.sample(text.as_bytes(), Format::JsonLines, &TextOptions::default(), host);
        let error = below.unwrap_err();
        // All of them count, wherever they are.
        let found = error.message().split(' ').find_map(|word| word.parse::<u64>().ok());
        assert!(found.is_some_and(|found| (2_000..10_000).contains(&found)), "{error}");
    }
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["schema"])));
    let nested: String = (0..20_000).map(|at| format!("{{\"a\":[{{\"k{at}\":1}}]}}\n")).collect();
    let error =
        meter.sample(nested.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap_err();
    assert_eq!(error.place().column.as_deref(), Some("a"));
    let wide: String = (0..20)
        .map(|line| {
            let fields = (0..3000).map(|at| format!("\"k{}\":{at}", at + line)).collect::<Vec<_>>();
            format!("{{{}}}\n", fields.join(","))
        })
        .collect();
    let sample = meter.sample(wide.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap();
    assert_eq!(sample.form().unwrap().schema().leaves().len(), 3019);
    // All fields come at once, and then a few at a time.
    let mut first: String = (0..20_000).map(|at| format!("\"k{at}\":1,")).collect();
    first = format!("{{{}}}\n", first.trim_end_matches(','));
    first.extend((0..3_000).map(|line| format!("{{\"k{line}\":1,\"k{}\":2}}\n", line + 1)));
    let sample = meter.sample(first.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap();
    assert_eq!(sample.form().unwrap().schema().leaves().len(), 20_000);
    // A few of many fields that all come soon.
    let sparse: String = (0..8_000)
        .map(|line| {
            let fields =
                (0..5).map(|at| format!("\"k{}\":1", (line * 5 + at) * 7_919 % 5_000)).collect::<Vec<_>>();
            format!("{{{}}}\n", fields.join(","))
        })
        .collect();
    let sample = meter.sample(sparse.as_bytes(), Format::JsonLines, &TextOptions::default(), host).unwrap();
    assert_eq!(sample.form().unwrap().schema().leaves().len(), 5_000);
}

#[test]
fn samples_are_joined() {
    let mut meter = Meter(0);
    let mut sample = |text: &str, format| {
        meter.sample(text.as_bytes(), format, &TextOptions::default(), HOSTS[0]).unwrap()
    };
    let (mut one, other) = (sample("a,b\n1,2\n", Format::Csv), sample("a,b\n1.5,x\n", Format::Csv));
    let others = sample("a,c\n1,2\n", Format::Csv);
    assert!(one.is_like(&other) && !one.is_like(&others) && one.join(&others).is_err());
    one.join(&other).unwrap();
    assert_eq!(one.form().unwrap().columns().to_string(), "a double, b text");
    assert_eq!(other.form_as(&one).unwrap().columns().to_string(), "a double, b text");
    let turned = sample("b,a\n1,true\n", Format::Csv);
    one.join(&turned).unwrap();
    assert_eq!(one.form().unwrap().columns().to_string(), "a text, b text");
    assert_eq!(turned.form_as(&one).unwrap().columns().to_string(), "b text, a text");
    assert!(!turned.is_like(&sample("b,a,c\n1,1,1\n", Format::Csv)));
    let mut lines = sample("{\"a\":1,\"s\":{\"x\":null}}\n", Format::JsonLines);
    lines
        .join(&sample("{\"b\":[true],\"s\":{\"x\":1.5,\"y\":{\"z\":\"\"}},\"a\":2.5}\n", Format::JsonLines))
        .unwrap();
    assert_eq!(
        lines.form().unwrap().columns().to_string(),
        "a double, s struct<x double, y struct<z text>>, b list<boolean>"
    );
    let error = lines.join(&sample("{\"s\":{\"y\":{\"z\":1}}}", Format::JsonLines)).unwrap_err();
    assert_eq!(error.place().column.as_deref(), Some("s.y.z"));
    assert!(!one.is_like(&lines) && one.join(&lines).is_err());
}

#[test]
fn leaves_are_chosen() {
    let text = b"{\"a\":1,\"b\":{\"x\":2,\"y\":3}}\n";
    let mut meter = Meter(0);
    for (format, text, leaves, rows) in [
        (Format::Csv, &b"a,b,c\n1,2,3\n"[..], vec![2, 0], "3|1"),
        (Format::Csv, b"a,b,c\n1,2,3\n", vec![], ""),
        (Format::JsonLines, b"{\"a\":1,\"b\":2}\n", vec![1, 0], "2|1"),
    ] {
        let form = meter.sample(text, format, &TextOptions::default(), HOSTS[0]).unwrap().form().unwrap();
        let options = ReadOptions { leaves: Some(leaves), ..ReadOptions::default() };
        assert_eq!(shown(&meter.read(text, &form, &options, HOSTS[1]).unwrap()), [rows]);
    }
    let form =
        meter.sample(text, Format::JsonLines, &TextOptions::default(), HOSTS[0]).unwrap().form().unwrap();
    for leaves in [vec![3], vec![0, 0]] {
        let options = ReadOptions { leaves: Some(leaves), ..ReadOptions::default() };
        assert_eq!(TextReader::new(&form, options).unwrap_err().detail(), Some(Detail::Option("leaves")));
    }
}
