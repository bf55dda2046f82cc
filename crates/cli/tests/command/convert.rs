//! Types and names of columns that are chosen: `--types`, `--rename`, `show --schema`, and how text is read.

use std::fs;

use crate::common::{Folder, run};

impl Folder {
    /// The Parquet file that a text becomes.
    fn parquet(&self, from: &str, more: &[&str]) -> String {
        let to = format!("{from}.parquet");
        run([&["copy", from, &to, "--quiet", "--overwrite"], more].concat()).succeeded();
        to
    }
}

/// Rows as JSON lines.
fn rows(file: &str, more: &[&str]) -> String {
    run([&["rows", file, "--format", "jsonl"], more].concat()).succeeded()
}

fn schema(file: &str, more: &[&str]) -> String {
    run([&["show", file, "--schema"], more].concat()).succeeded()
}

const TRIPS: &str =
    "id,fare,day,at\n1,1.50,2024-02-29,2024-02-29 10:00:00\n2,2.25,2024-03-01,2024-03-01 11:00:00.5\n";

#[test]
fn some_types_are_given_and_the_others_inferred() {
    let folder = Folder::new();
    let text = folder.write("a.csv", TRIPS);
    assert_eq!(schema(&text, &[]), "id bigint,\nfare double,\nday date,\nat localtimestamp(6)\n");
    let types = ["--types", "fare=decimal(6,2), id=text", "--types", "at=timestamp"];
    let typed = folder.parquet(&text, &types);
    assert_eq!(schema(&typed, &[]), "id text,\nfare decimal(6, 2),\nday date,\nat timestamp(3)\n");
    let expected = "{\"id\":\"1\",\"fare\":\"1.50\",\"day\":\"2024-02-29\",\"at\":\"2024-02-29T10:00:00.000Z\"}\n\
                    {\"id\":\"2\",\"fare\":\"2.25\",\"day\":\"2024-03-01\",\"at\":\"2024-03-01T11:00:00.500Z\"}\n";
    assert_eq!(rows(&typed, &[]), expected);
    // A Parquet file is converted to the same.
    let inferred = folder.parquet(&text, &[]);
    assert_eq!(rows(&inferred, &types), expected);
    run([&["diff", &inferred, &typed], &types[..]].concat()).succeeded();
    // What is text is read as the type: nothing is lost on the way.
    let long = folder.write("b.csv", "x,y\n0.1234567890123456789,007\n");
    assert_eq!(
        rows(&long, &["--types", "x=decimal(20,19),y=int"]),
        "{\"x\":\"0.1234567890123456789\",\"y\":7}\n"
    );
    // A name without an exact match is looked up in lower case.
    assert_eq!(rows(&long, &["--types", "Y=int", "--columns", "Y"]), "{\"y\":7}\n");
    let upper = folder.write("c.csv", "Y\n007\n");
    run(["rows", &upper, "--types", "y=int"])
        .failed(2, &["--types: there is no column \"y\"; its columns are Y"]);
    run(["rows", &long, "--types", "x=decimal(20,18)"])
        .failed(1, &["line 2", "is not a decimal(20, 18)", "column x"]);
}

#[test]
fn what_does_not_fit_is_an_error_with_its_place() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "a,b\n1,2024-01-01T00:00:00.000001Z\n300,2024-01-01T00:00:00Z\n");
    let file = folder.parquet(&text, &[]);
    run(["rows", &text, "--types", "a=tinyint"]).failed(1, &["line 3: \"300\" is not a tinyint", "column a"]);
    let to = folder.path("to.parquet");
    run(["copy", &file, &to, "--types", "a=tinyint"])
        .failed(1, &[&file, "300 does not fit a tinyint", "column a, row 1"]);
    run(["copy", &file, &to, "--types", "b=timestamp"])
        .failed(1, &["2024-01-01T00:00:00.000001Z does not fit a timestamp(3)", "row 0"]);
    assert!(!fs::exists(&to).unwrap());
    let all = "a=uuid,b=boolean,c=int,d=int";
    let said = [
        "bigint has no conversion to uuid (column a)",
        "timestamp(6) has no conversion to boolean (column b)",
        "--types: there is no column \"c\"; its columns are a, b",
        "no column \"d\"",
    ];
    run(["copy", &file, &to, "--types", all]).failed(1, &said);
    run(["rows", &file, "--types", "a"]).failed(2, &["--types: '=' is missing at the end"]);
    run(["rows", &text, "--types", "a=list<int>"])
        .failed(2, &["--types", "delimited text has no lists", "column a"]);
}

#[test]
fn fields_of_json_lines_that_no_one_type_holds() {
    let folder = Folder::new();
    let lines = "{\"a\":1,\"o\":{}}\n{\"a\":2,\"o\":[1, 2],\"m\":1,\"n\":{\"x\":1,\"y\":2}}\n{\"a\":3,\"o\":\"s\",\"m\":\"x\",\"n\":{\"x\":\"z\"}}\n";
    let text = folder.write("a.jsonl", lines);
    run(["rows", &text]).failed(1, &["column o", "--types COLUMN=TYPE"]);
    run(["rows", &text, "--types", "o=text"]).failed(1, &["column m", "--types COLUMN=TYPE"]);
    let types = ["--types", "o=text,m=text,n.x=text"];
    assert_eq!(
        schema(&text, &["--types", types[1]]),
        "a bigint,\no text,\nm text,\nn struct<x text, y bigint>\n"
    );
    assert_eq!(
        rows(&text, &types),
        "{\"a\":1,\"o\":\"{}\",\"m\":null,\"n\":null}\n\
         {\"a\":2,\"o\":\"[1, 2]\",\"m\":\"1\",\"n\":{\"x\":\"1\",\"y\":2}}\n\
         {\"a\":3,\"o\":\"s\",\"m\":\"x\",\"n\":{\"x\":\"z\",\"y\":null}}\n"
    );
    // Columns may be chosen without those that only need a type to be read.
    assert_eq!(
        rows(&text, &[&types[..], &["--columns", "n.y,a"]].concat()).lines().nth(1),
        Some("{\"n\":{\"y\":2},\"a\":2}")
    );
    run([&["rows", &text, "--types", "o=text,m=text,n.x=text,oo=int"][..]].concat())
        .failed(2, &["no column \"oo\"; its columns are a, o, m, n"]);
    // An inferred field is still strict, a given one is not.
    let more = folder.write("b.jsonl", "{\"a\":\"7\",\"b\":\"7\",\"l\":[\"1\"]}\n");
    assert_eq!(rows(&more, &["--types", "a=int,l=list<smallint>"]), "{\"a\":7,\"b\":\"7\",\"l\":[1]}\n");
    // Several files: the types hold in all.
    let other = folder.write("c.jsonl", "{\"a\":true,\"b\":\"8\",\"l\":[]}\n");
    let both = run(["rows", &more, &other, "--format", "jsonl", "--types", "a=text"]).succeeded();
    assert_eq!(both, "{\"a\":\"7\",\"b\":\"7\",\"l\":[\"1\"]}\n{\"a\":\"true\",\"b\":\"8\",\"l\":[]}\n");
}

#[test]
fn columns_get_other_names() {
    let folder = Folder::new();
    let text = folder.write("a.csv", TRIPS);
    let to = folder.path("to.csv");
    run([
        "copy",
        &text,
        &to,
        "--quiet",
        "--rename",
        "fare=price,day=\"the day\"",
        "--columns",
        "the day,price",
        "--types",
        "fare=decimal(3,2)",
    ])
    .succeeded();
    assert_eq!(fs::read_to_string(&to).unwrap(), "the day,price\n2024-02-29,1.50\n2024-03-01,2.25\n");
    run(["rows", &text, "--rename", "fare=id"]).failed(2, &["--rename: two columns would be called \"id\""]);
    run(["rows", &text, "--rename", "x=y"])
        .failed(2, &["--rename: there is no column \"x\"; its columns are id, fare, day, at"]);
    run(["rows", &text, "--rename", "fare"]).failed(2, &["--rename: an equals sign is missing"]);
    let cql = run(["cql", &text, "--table", "t", "--key", "k", "--rename", "id=k", "--types", "fare=float"])
        .succeeded();
    assert!(cql.contains("k bigint") && cql.contains("fare float"), "{cql}");
}

#[test]
fn fields_get_other_names() {
    let folder = Folder::new();
    let line = r#"{"a.b":1,"a":{"b":2,"in":{"x":3},"tags":[{"y":4}]}}"#;
    let from = folder.write("a.jsonl", format!("{line}\n"));
    let rows = |from: &str, rename: &str| {
        run(["rows", "--format", "jsonl", from, "--rename", rename]).succeeded().trim_end().to_string()
    };
    for from in [&from, &folder.parquet(&from, &[])] {
        // A column is found before a field, and the longest name.
        assert_eq!(rows(from, "a.b=c"), line.replace("a.b", "c"));
        assert_eq!(rows(from, "a.in=out"), line.replace("\"in\"", "\"out\""));
        assert_eq!(rows(from, "a.in.x=b, a=z"), line.replace("\"x\"", "\"b\"").replace("\"a\"", "\"z\""));
        assert_eq!(
            rows(from, "a.tags.y=b,a.tags=list"),
            line.replace("\"y\"", "\"b\"").replace("tags", "list")
        );
        let wrong = |rename: &str, said: &str| {
            run(["rows", from, "--rename", rename]).failed(2, &["--rename: ", said])
        };
        wrong("a.in=b", "two fields of \"a\" would be called \"b\"");
        wrong("a.none=b", "there is no field \"none\"");
        wrong("a.in=c,a.in=d", "gets two names");
    }
}

#[test]
fn a_schema_is_printed_edited_and_read_again() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "id;a name\n1;x\n2;y\n");
    let printed = schema(&text, &[]);
    assert_eq!(printed, "id bigint,\n\"a name\" text\n");
    let file = folder.write("schema.txt", printed.replace("bigint", "smallint"));
    let typed = folder.parquet(&text, &["--schema-file", &file]);
    assert_eq!(schema(&typed, &[]), "id smallint,\n\"a name\" text\n");
    let json = folder.write("b", "{\"a\":[{\"b\":1}]}\n");
    assert_eq!(schema(&json, &["--from", "jsonl"]), "a list<struct<b bigint>>\n");
    assert_eq!(schema(&text, &["--delimiter", ",", "--header", "yes"]), "\"id;a name\" text\n");
    run(["show", &typed, "--delimiter", ","]).failed(2, &["--delimiter is for --schema"]);
    run(["show", &typed, "--schema", "--delimiter", ","]).failed(2, &["--delimiter is for CSV"]);
}

#[test]
fn lines_are_skipped_and_errors_count_them() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "made by\n\"a tool\n# comment\nid,name\n1,a\n#2,b\n3,\"x\n#y\"\nx,c\n");
    let options = ["--skip", "2", "--comment", "#", "--types", "id=int"];
    run([&["rows", &text, "--format", "jsonl"], &options[..]].concat())
        .failed(1, &["line 9: \"x\" is not an int"]);
    let options = ["--skip", "2", "--comment", "#", "--limit", "2", "--header", "yes"];
    assert_eq!(rows(&text, &options), "{\"id\":\"1\",\"name\":\"a\"}\n{\"id\":\"3\",\"name\":\"x\\n#y\"}\n");
    // A column alone, in which an empty line is a null, and a comment is not.
    let one = folder.write("empty.csv", "#c\nid\n1\n#c\n\n2\n");
    assert_eq!(rows(&one, &["--comment", "#"]), "{\"id\":1}\n{\"id\":null}\n{\"id\":2}\n");
    let one = folder.write("one.csv", "#c\nid\n1\n#c\n2\n");
    assert_eq!(rows(&one, &["--comment", "#"]), "{\"id\":1}\n{\"id\":2}\n");
    let packed = folder.path("packed.csv.gz");
    run(["copy", &one, &packed, "--quiet", "--comment", "#"]).succeeded();
    assert_eq!(rows(&packed, &["--skip", "1", "--header", "no"]), "{\"column1\":1}\n{\"column1\":2}\n");
    let escaped = folder.write("b.jsonl", "{\"a\":\"\\\"\"}\n#\n{\"a\":\"x\"}\n");
    assert_eq!(rows(&escaped, &["--comment", "#"]), "{\"a\":\"\\\"\"}\n{\"a\":\"x\"}\n");
    let lines = folder.write("a.jsonl", "// x\n{\"a\":1}\n// y\n{\"a\":\n");
    run(["rows", &lines, "--comment", "/"]).failed(1, &["line 4"]);
    assert_eq!(run(["rows", &one, "--comment", "##"]).code, Some(2));
}

/// What is quoted depends on the delimiter, whichever that is.
#[test]
fn no_comment_is_in_quotes() {
    let folder = Folder::new();
    for delimiter in ["^", "~", "_", "a", "\u{1}", ","] {
        let text = folder.write("a.csv", format!("k{delimiter}v\nx{delimiter}\"1\n#2\n3\"\n#4\n"));
        let options = ["--delimiter", delimiter, "--comment", "#", "--header", "yes"];
        assert_eq!(rows(&text, &options), "{\"k\":\"x\",\"v\":\"1\\n#2\\n3\"}\n", "{delimiter:?}");
    }
    // A quote that is text, and a space before it that is no delimiter.
    let text = folder.write("b.csv", "k,v\n1,approx \"5\n#note\n2,x\n");
    let expected = "{\"k\":1,\"v\":\"approx \\\"5\"}\n{\"k\":2,\"v\":\"x\"}\n";
    assert_eq!(rows(&text, &["--comment", "#"]), expected);
    let copy = folder.parquet(&text, &["--comment", "#"]);
    assert_eq!(rows(&copy, &[]), expected);
    run(["rows", &text, "--comment", ",", "--delimiter", ","]).failed(2, &["comment"]);
    let lines = folder.write("c.jsonl", "{\"a\":1}\n");
    run(["rows", &lines, "--comment", "{"]).failed(2, &["comment"]);
}

#[test]
fn other_encodings() {
    let folder = Folder::new();
    let latin = folder.write("a.csv", b"name,n\ncaf\xe9,1\n\x80,2\n");
    let said = run(["rows", &latin, "--format", "jsonl"]).failed(1, &["line 2", "UTF-8", "--text-encoding"]);
    assert!(!said.contains("--invalid-utf8"), "{said}");
    // Which is how it is text, whatever its name.
    let text = folder.write("a.txt", b"name,n\ncaf\xe9,1\n");
    assert_eq!(rows(&text, &["--text-encoding", "latin1"]), "{\"name\":\"caf\u{e9}\",\"n\":1}\n");
    assert_eq!(
        rows(&latin, &["--text-encoding", "windows-1252"]),
        "{\"name\":\"café\",\"n\":1}\n{\"name\":\"€\",\"n\":2}\n"
    );
    let wide: Vec<u8> = "\u{feff}a;b\r\n1;é\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = folder.write("b.csv", wide);
    assert_eq!(rows(&wide, &["--text-encoding", "utf-16le"]), "{\"a\":1,\"b\":\"é\"}\n");
    let broken = folder.write("c.csv", b"a\nb\n\x81\x20\n");
    run(["rows", &broken, "--text-encoding", "shift_jis"])
        .failed(1, &["line 3: bytes that are not shift_jis"]);
    run(["rows", &latin, "--text-encoding", "klingon"])
        .failed(2, &["--text-encoding: there is no encoding \"klingon\""]);
    // Longer than what is read at a time, with a character across the border.
    let mut long = b"x\n".to_vec();
    for row in 0..200_000 {
        long.extend_from_slice(format!("{row} ").as_bytes());
        long.extend_from_slice(b"\x83\x65\n");
    }
    let long = folder.write("d.csv", long);
    let out = run(["rows", &long, "--text-encoding", "shift_jis", "--format", "csv", "--quiet"]).succeeded();
    assert!(out.lines().skip(1).enumerate().all(|(row, line)| line == format!("{row} テ")));
}

#[test]
fn numbers_and_times_as_others_write_them() {
    let folder = Folder::new();
    let text =
        folder.write("a.csv", "n;x;d;t\n1; 1,50 ;29.02.2024;29.2.2024 1:02\n2;-2;1.3.2024;1.3.2024 10:00\n");
    let options = ["--decimal", ",", "--timestamp-format", "%d.%m.%Y %H:%M", "--trim"];
    let printed = schema(&text, &options);
    assert_eq!(printed, "n bigint,\nx double,\nd text,\nt localtimestamp(6)\n");
    let dates = ["--decimal", ",", "--timestamp-format", "%d.%m.%Y"];
    assert_eq!(schema(&text, &dates), "n bigint,\nx text,\nd date,\nt text\n");
    let typed = rows(&text, &[&options[..], &["--types", "x=decimal(5,2)", "--columns", "x,t"]].concat());
    assert_eq!(
        typed,
        "{\"x\":\"1.50\",\"t\":\"2024-02-29T01:02:00.000000\"}\n{\"x\":\"-2.00\",\"t\":\"2024-03-01T10:00:00.000000\"}\n"
    );
    // With a decimal comma, a point is none.
    let points = folder.write("b.csv", "x;y\n1.5;1,5\n");
    assert_eq!(schema(&points, &["--decimal", ","]), "x text,\ny double\n");
    run(["rows", &points, "--decimal", ",", "--types", "x=double"])
        .failed(1, &["line 2: \"1.5\" is not a double"]);
    run(["rows", &points, "--decimal", "5"]).failed(2, &["--decimal"]);
    run(["rows", &points, "--timestamp-format", "%d"])
        .failed(2, &["--timestamp-format: a year, a month and a day"]);
    let trimmed = folder.write("c.csv", " a , b\n 1 ,\" x \"\n 2 , y z \n , \n");
    assert_eq!(
        rows(&trimmed, &["--trim"]),
        "{\"a\":1,\"b\":\" x \"}\n{\"a\":2,\"b\":\"y z\"}\n{\"a\":null,\"b\":null}\n"
    );
    assert_eq!(schema(&trimmed, &["--header", "yes"]), "\" a \" text,\n\" b\" text\n");
}

#[test]
fn times_of_text_are_timestamps_in_cql() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "id,at,local\n1,2024-02-29T10:00:00.5Z,2024-02-29 10:00\n");
    let cql = |file: &str, more: &[&str]| run([&["cql", file, "--table", "t", "--key", "id"], more].concat());
    let out = cql(&text, &[]).succeeded();
    assert!(out.contains("at timestamp") && out.contains("local timestamp"), "{out}");
    assert!(out.contains("'2024-02-29T10:00:00.500Z'"), "{out}");
    let streamed = run(["copy", &text, "-", "--to", "cql", "--table", "t", "--key", "id"]).succeeded();
    assert_eq!(streamed, out);
    let lines = folder
        .write("a.jsonl", "{\"id\":1,\"at\":\"2024-02-29T10:00:00.5Z\",\"l\":[\"2024-02-29T10:00:00\"]}\n");
    let out = cql(&lines, &[]).succeeded();
    assert!(out.contains("at timestamp") && out.contains("l list<timestamp>"), "{out}");
    // What would be lost is an error with its line, and both ways out are named.
    let fine = folder.write("b.csv", "id,at\n1,2024-02-29T10:00:00.000001Z\n");
    cql(&fine, &[]).failed(1, &["line 2: \"2024-02-29T10:00:00.000001Z\" is not a timestamp(3)", "--types"]);
    assert!(cql(&fine, &["--timestamps-as", "bigint"]).succeeded().contains("at bigint"));
    assert!(cql(&fine, &["--timestamps-as", "millis"]).succeeded().contains("at timestamp"));
    assert!(cql(&fine, &["--types", "at=timestamp(6)"]).succeeded().contains("at bigint"));
    // A Parquet file says its unit, and keeps it.
    let file = folder.parquet(&text, &[]);
    assert!(cql(&file, &[]).succeeded().contains("at bigint"));
    assert!(cql(&file, &["--types", "at=timestamp"]).succeeded().contains("at timestamp"));
}

/// A column of every type, and values at its ends.
const EVERY_TYPE: [(&str, &[&str]); 37] = [
    ("boolean", &["true", "false"]),
    ("tinyint", &["-128", "127"]),
    ("smallint", &["-32768", "32767"]),
    ("int", &["-2147483648", "2147483647"]),
    ("bigint", &["-9223372036854775808", "9223372036854775807"]),
    ("uint8", &["0", "255"]),
    ("uint16", &["0", "65535"]),
    ("uint32", &["0", "4294967295"]),
    ("uint64", &["0", "18446744073709551615"]),
    ("float16", &["0.1", "NaN", "-Infinity", "65504", "-0.0"]),
    ("float", &["0.1", "NaN", "Infinity", "1e-45", "-0.0"]),
    ("double", &["0.1", "NaN", "-Infinity", "5e-324", "-0.0"]),
    ("text", &["a, b", "\\n", "NaN", " "]),
    ("enum", &["RED"]),
    ("json", &["{\\\"a\\\": [1]}"]),
    ("blob", &["0x", "0x00ff"]),
    ("bson", &["0x0500000000"]),
    ("fixed(3)", &["0x000102"]),
    ("date", &["0000-01-01", "9999-12-31", "+010000-01-01", "-000001-12-31"]),
    ("time", &["00:00:00", "23:59:59.999999999"]),
    ("time(3)", &["23:59:59.999"]),
    ("time(6)", &["23:59:59.999999"]),
    ("utctime(3)", &["23:59:59.999"]),
    ("utctime(9)", &["00:00:00.000000001"]),
    ("timestamp", &["0001-01-01T00:00:00.001Z"]),
    ("timestamp(6)", &["9999-12-31T23:59:59.999999Z", "+290000-12-30T23:00:00.000001Z"]),
    ("timestamp(9)", &["1677-09-21T00:12:43.145224192Z"]),
    ("localtimestamp(3)", &["2024-02-29T00:00:00.001"]),
    ("localtimestamp(6)", &["2024-02-29T00:00:00.000001"]),
    ("localtimestamp(9)", &["2024-02-29T00:00:00.000000001"]),
    ("int96", &["2024-02-29T23:59:59.999999999"]),
    ("interval", &["P1M2DT3.004S", "P4294967295M4294967295DT4294967.295S"]),
    ("uuid", &["00112233-4455-6677-8899-aabbccddeeff"]),
    ("unknown", &[]),
    ("decimal(9, 2)", &["-9999999.99", "0.01"]),
    ("decimal(18, 18)", &["0.999999999999999999"]),
    ("decimal(38, 0)", &["-99999999999999999999999999999999999999"]),
];

#[test]
fn every_type_goes_through_text_and_back() {
    let folder = Folder::new();
    let rows_most = EVERY_TYPE.iter().map(|(_, values)| values.len()).max().unwrap();
    let mut lines = String::new();
    // One row more, of nulls.
    for row in 0..=rows_most {
        let value = |at: usize| match EVERY_TYPE[at].1.get(row) {
            Some(value) => format!("\"c{at}\":\"{value}\""),
            None => format!("\"c{at}\":null"),
        };
        let fields: Vec<String> = (0..EVERY_TYPE.len()).map(value).collect();
        lines += &format!("{{{}}}\n", fields.join(","));
    }
    let text = folder.write("from.jsonl", lines);
    let words: Vec<String> =
        EVERY_TYPE.iter().enumerate().map(|(at, (word, _))| format!("c{at} {word}")).collect();
    let file = folder.parquet(&text, &["--schema", &words.join(",")]);
    let printed = schema(&file, &[]);
    assert_eq!(printed, words.join(",\n").replace(" timestamp,", " timestamp(3),") + "\n");
    let saved = folder.write("schema.txt", printed);
    for name in ["to.csv", "to.csv.zst", "to.jsonl", "to.jsonl.gz"] {
        let to = folder.path(name);
        let said = run(["copy", &file, &to, "--verify"]).succeeded();
        assert!(said.contains("verified"), "{said}");
        let back = folder.parquet(&to, &["--schema-file", &saved]);
        let same = run(["diff", &file, &back]).succeeded();
        assert!(same.contains("the same: 6 rows of 37 columns"), "{same}");
    }
}

#[test]
fn columns_without_a_word_are_left_out_with_a_note() {
    use marquetry::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
    let folder = Folder::new();
    let leaf = |name, logical| FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, logical));
    let shape = |name| leaf(name, Some(LogicalType::Geometry { crs: None }));
    let write = |name: &str, fields: &[FieldDef]| {
        let path = folder.path(name);
        marquetry::create(&path, Schema::of_fields(fields).unwrap()).unwrap().finish().unwrap();
        path
    };
    let place = FieldDef::new("place", FieldType::Struct(vec![leaf("lat", None), shape("what")], None));
    let some = write("some.parquet", &[leaf("id", None), shape("none"), place, leaf("n", None)]);
    let shown = run(["show", &some, "--schema"]);
    assert_eq!((shown.code, &*shown.out), (Some(0), "id blob,\nn blob\n"));
    assert!(shown.err.contains("types without a word: none, place.what\n"), "{}", shown.err);
    let none = write("none.parquet", &[shape("none")]);
    run(["show", &none, "--schema"]).failed(1, &["none.parquet: types without a word: none"]);
}

/// `unknown` is the type of nulls that have none.
#[test]
fn nothing_but_nulls_is_a_type() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "id,n\n1,\n2,\n");
    let file = folder.parquet(&text, &["--types", "n=unknown"]);
    assert_eq!(schema(&file, &[]), "id bigint,\nn unknown\n");
    assert!(run(["show", &file]).succeeded().contains("UNKNOWN"));
    // Other nulls become such, and such become others.
    let inferred = folder.parquet(&folder.write("c.csv", "id,n\n1,\n2,\n"), &[]);
    assert_eq!(schema(&inferred, &[]), "id bigint,\nn text\n");
    assert_eq!(rows(&inferred, &["--types", "n=unknown"]), rows(&file, &["--types", "n=uuid"]));
    let bad = folder.write("b.csv", "id,n\n1,\n2,x\n");
    run(["rows", &bad, "--schema", "id int, n unknown"])
        .failed(1, &["line 3: \"x\" is not null, the only value of unknown (column n"]);
    run(["rows", &folder.parquet(&bad, &[]), "--types", "n=unknown"])
        .failed(1, &["\"x\" does not fit null, the only value of unknown (column n, row 1)"]);
    run(["rows", &inferred, "--types", "id=unknown"]).failed(1, &["bigint has no conversion to unknown"]);
}

#[test]
fn nested_columns_and_maps_go_through_json_lines_and_back() {
    let folder = Folder::new();
    let schema_text = "m map<text, int>, u map<uint32, list<float16>>, s struct<a interval, b map<date, struct<x time(3)>>>";
    let text = folder.write(
        "from.jsonl",
        "{\"m\":{\"a\":1,\"b\":null},\"u\":{\"4294967295\":[\"NaN\",1.5]},\"s\":{\"a\":\"P1M0DT0.000S\",\"b\":{\"2024-02-29\":{\"x\":\"01:02:03.004\"}}}}\n\
         {\"m\":{},\"u\":null,\"s\":{\"b\":{}}}\n{}\n",
    );
    let file = folder.parquet(&text, &["--schema", schema_text]);
    let to = folder.path("to.jsonl");
    let said = run(["copy", &file, &to, "--verify"]).succeeded();
    assert!(said.contains("verified"), "{said}");
    let saved = folder.write("schema.txt", schema(&file, &[]));
    let back = folder.parquet(&to, &["--schema-file", &saved]);
    run(["diff", &file, &back]).succeeded();
    for (entry, part) in [
        ("[{\"value\":1,\"key\":\"a\"}]", "the key first"),
        ("[{\"key\":\"a\",\"other\":1}]", "an array of entries"),
        ("[{}]", "an array of entries"),
        ("[1]", "an array of entries"),
    ] {
        let wrong = folder.write("wrong.jsonl", format!("{{\"m\":{entry}}}\n"));
        run(["rows", &wrong, "--schema", "m map<text, int>"]).failed(1, &["line 1", part, "column m"]);
    }
    let short = folder.write("short.jsonl", "{\"m\":[{\"key\":\"a\"}]}\n");
    assert_eq!(rows(&short, &["--schema", "m map<text, int>"]), "{\"m\":[{\"key\":\"a\",\"value\":null}]}\n");
}
