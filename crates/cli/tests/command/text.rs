//! CSV, TSV and JSON lines as sources.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::{self, Folder, Run, corpus, marquetry, run};

impl Folder {
    /// Copies to a Parquet file; says what is in that: its types, and its rows as JSON lines.
    pub(crate) fn copied(&self, from: &str, more: &[&str]) -> (String, Vec<String>) {
        let to = self.path("to.parquet");
        run([&["copy", from, &to, "--overwrite", "--verify", "--quiet"], more].concat()).succeeded();
        shown(&to)
    }

    /// Copies what cannot be: nothing is left behind.
    #[track_caller]
    pub(crate) fn refused(&self, from: &str, more: &[&str], code: i32, parts: &[&str]) {
        let to = self.path("none.parquet");
        run([&["copy", from, &to, "--quiet"], more].concat()).failed(code, parts);
        let left: Vec<_> = fs::read_dir(self.root()).unwrap().map(|it| it.unwrap().file_name()).collect();
        let is_left = |name: &std::ffi::OsString| name.to_string_lossy().contains("none");
        assert!(!left.iter().any(is_left), "{left:?}");
    }
}

/// The types of a Parquet file's fields, and its rows as JSON lines.
fn shown(path: &str) -> (String, Vec<String>) {
    let json = run(["show", "--json", path]).succeeded();
    let json: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let described = |field: &serde_json::Value| {
        let depth = usize::try_from(field["depth"].as_u64().unwrap()).unwrap();
        let kind = field["logical_type"].as_str().or(field["physical_type"].as_str()).unwrap_or("group");
        format!("{}{} {kind}", ".".repeat(depth - 1), field["name"].as_str().unwrap())
    };
    let types: Vec<String> = json["schema"].as_array().unwrap()[1..].iter().map(described).collect();
    (types.join(", "), rows(path, &[]))
}

/// Rows as JSON lines.
pub(crate) fn rows(path: &str, more: &[&str]) -> Vec<String> {
    let out = run([&["rows", "--format", "jsonl", path], more].concat()).succeeded();
    out.lines().map(str::to_string).collect()
}

#[test]
fn types_are_inferred_and_lose_nothing() {
    let folder = Folder::new();
    let text = "\
id,code,price,mixed,flag,day,at,local,note,nothing
1,010,1.5,7,true,2024-02-29,2024-02-29T12:00:00Z,2024-02-29 12:00:00.5,x,
-20,190,2,y,FALSE,1970-01-01,1970-01-01T01:00:00+01:00,2024-02-29,\"\",
,,,,,,,,,
";
    let (types, rows) = folder.copied(&folder.write("a.csv", text), &[]);
    assert_eq!(
        types,
        "id INT64, code STRING, price DOUBLE, mixed STRING, flag BOOLEAN, day DATE, at TIMESTAMP(MICROS, UTC), \
         local TIMESTAMP(MICROS, local), note STRING, nothing STRING"
    );
    assert_eq!(
        rows,
        [
            r#"{"id":1,"code":"010","price":1.5,"mixed":"7","flag":true,"day":"2024-02-29","at":"2024-02-29T12:00:00.000000Z","local":"2024-02-29T12:00:00.500000","note":"x","nothing":null}"#,
            r#"{"id":-20,"code":"190","price":2.0,"mixed":"y","flag":false,"day":"1970-01-01","at":"1970-01-01T00:00:00.000000Z","local":"2024-02-29T00:00:00.000000","note":"","nothing":null}"#,
            r#"{"id":null,"code":null,"price":null,"mixed":null,"flag":null,"day":null,"at":null,"local":null,"note":null,"nothing":null}"#,
        ]
    );
}

#[test]
fn types_are_told() {
    let folder = Folder::new();
    let schema = "a tinyint, b smallint, c int, d bigint, e float, f double, g text, h blob, i uuid, j date, k time, \
                  l timestamp, m timestamp(9), n decimal(5, 2), o decimal(12, 3), p decimal(30, 1), q boolean, r localtimestamp(6)";
    let text = "-128,32767, 7 ,+9,1.5,NaN,010,0x00ff,00112233-4455-6677-8899-aabbccddeeff,2024-02-29,23:59:59.5,\
                2024-02-29 00:00:00.001,2024-02-29T00:00:00.000000001+01:00,-12.5,123456789.125,-1e,true,2024-02-29\n";
    let text = text.replace("-1e", "-12345678901234567890123456789.0");
    let from = folder.write("a.csv", text);
    let (types, rows) = folder.copied(&from, &["--schema", schema]);
    assert_eq!(
        types,
        "a INT(8), b INT(16), c INT32, d INT64, e FLOAT, f DOUBLE, g STRING, h BYTE_ARRAY, i UUID, j DATE, k TIME(NANOS, local), \
         l TIMESTAMP(MILLIS, UTC), m TIMESTAMP(NANOS, UTC), n DECIMAL(5, 2), o DECIMAL(12, 3), p DECIMAL(30, 1), q BOOLEAN, \
         r TIMESTAMP(MICROS, local)"
    );
    assert_eq!(
        rows,
        [concat!(
            r#"{"a":-128,"b":32767,"c":7,"d":9,"e":1.5,"f":"NaN","g":"010","h":"0x00ff","#,
            r#""i":"00112233-4455-6677-8899-aabbccddeeff","j":"2024-02-29","k":"23:59:59.500000000","#,
            r#""l":"2024-02-29T00:00:00.001Z","m":"2024-02-28T23:00:00.000000001Z","n":"-12.50","o":"123456789.125","#,
            r#""p":"-12345678901234567890123456789.0","q":true,"r":"2024-02-29T00:00:00.000000"}"#
        )]
    );
    // From a file; the header is found by the names, in any order.
    let told = folder.write("schema.txt", "b text,\na bigint,\n");
    let from = folder.write("b.csv", "A,b\n007,x\n");
    assert_eq!(folder.copied(&from, &["--schema-file", &told]).1, [r#"{"b":"x","a":7}"#]);
    for (schema, parts) in [
        ("a bigint", &["--schema: the header's column \"b\" is missing from it"][..]),
        ("a bigint, b text, c text", &["--schema: its column \"c\" is missing from the header"]),
    ] {
        folder.refused(&from, &["--schema", schema, "--header", "yes"], 2, parts);
    }
    let bare = folder.write("bare.csv", "1,x\n");
    let what = "line 1: 2 fields, where the schema has 3 columns";
    folder.refused(&bare, &["--schema", "a int, b text, c text"], 1, &[what]);
    folder.refused(&from, &["--schema", "a int, b list<text>"], 2, &["no lists", "column b"]);
    // Some names of the schema, and others: no row is made of a header.
    let named = folder.write("named.csv", "id,v\n1,x\n");
    for (schema, part) in [
        ("id int, vv text", "line 1: the header has \"v\" where the schema has \"vv\""),
        ("idd text, v text", "line 1: the header has \"id\" where the schema has \"idd\""),
        ("id int", "line 1: the header's column \"v\" is missing from the schema"),
    ] {
        folder.refused(&named, &["--schema", schema], 1, &[part, "--header no"]);
    }
    let schema = ["--schema", "id int, vv text", "--header", "yes"];
    folder.refused(&named, &schema, 2, &["--schema: the header has \"v\" where the schema has \"vv\""]);
    let rows = folder.copied(&named, &["--schema", "idd text, v text", "--header", "no"]).1;
    assert_eq!(rows, [r#"{"idd":"id","v":"v"}"#, r#"{"idd":"1","v":"x"}"#]);
    folder.refused(&from, &["--schema", "a integer"], 2, &["--schema", "there is no type integer"]);
    let small = folder.write("c.csv", "300\n");
    folder.refused(
        &small,
        &["--schema", "a tinyint"],
        1,
        &["line 1", "\"300\" is not a tinyint", "column a"],
    );
}

#[test]
fn quotes_lines_and_marks() {
    let folder = Folder::new();
    let text = "\u{feff}name,text\r\n\"a, b\",\"say \"\"hi\"\"\r\nand more\"\r\n\r\nplain,\"long: 0123456789 é\"\r\nx,";
    let (types, rows) = folder.copied(&folder.write("a.csv", text), &[]);
    assert_eq!(types, "name STRING, text STRING");
    assert_eq!(
        rows,
        [
            r#"{"name":"a, b","text":"say \"hi\"\r\nand more"}"#,
            r#"{"name":"plain","text":"long: 0123456789 é"}"#,
            r#"{"name":"x","text":null}"#,
        ]
    );
    let (_, rows) = folder.copied(
        &folder.write("b.csv", "'a;b';c\n1;'it''s'\n"),
        &["--quote", "'", "--delimiter", ";", "--header", "no"],
    );
    assert_eq!(rows, [r#"{"column1":"a;b","column2":"c"}"#, r#"{"column1":"1","column2":"it's"}"#]);
    let (_, rows) = folder.copied(&folder.write("c.tsv", "1\t\"x\n2\ty\"\n"), &[]);
    assert_eq!(rows, [r#"{"column1":1,"column2":"\"x"}"#, r#"{"column1":2,"column2":"y\""}"#]);
    // One column: a line of nothing is null.
    let (_, rows) = folder.copied(&folder.write("d.csv", "n\n1\n\n2"), &[]);
    assert_eq!(rows, [r#"{"n":1}"#, r#"{"n":null}"#, r#"{"n":2}"#]);
}

#[test]
fn what_is_no_table_is_refused_and_leaves_nothing() {
    let folder = Folder::new();
    let text = |name: &str, text: &[u8]| folder.write(name, text);
    let refused = |from: &str, parts: &[&str]| folder.refused(from, &[], 1, parts);
    refused(&text("empty.csv", b""), &["empty.csv", "no row"]);
    refused(
        &text("few.csv", b"a,b\n1,2\n\n3\n"),
        &["few.csv: line 4: 1 field, where the rows before have 2"],
    );
    refused(&text("many.csv", b"a,b\n1,\"x\ny\"\n1,2,3\n"), &["line 4: 3 fields"]);
    refused(&text("open.csv", b"a,b\n1,\"x\n"), &["line 2: a quote that is not closed"]);
    refused(&text("behind.csv", b"a,b\n1,\"x\"y\n"), &["line 2: text after a closing quote"]);
    refused(
        &text("bytes.csv", b"a,b\n1,x\n2,\xff\n"),
        &["line 3: bytes that are not UTF-8", "byte 10", "--text-encoding"],
    );
    refused(&text("returns.csv", b"a,b\r1,2\r3,4\r"), &["line 1: carriage returns", "tr "]);
    refused(&text("one_return.csv", b"a,\"b\rb\"\r1,2\r\n3,4\n"), &["line 1: "]);
    refused(
        &text("longer.csv", b"a,b\n1,2\n3,4,5\n"),
        &["line 3: 3 fields", "--schema", "--short-rows null"],
    );
    refused(&text("object.jsonl", b"{\"a\":1}\n[1]\n"), &["line 2", "is not an object", "jq"]);
    refused(
        &text("pretty.jsonl", b"{\n  \"a\": 1\n}\n"),
        &["line 1", "each object must end on its line", "jq"],
    );
    refused(&text("broken.jsonl", b"{\"a\":1}\n{\"a\":}\n"), &["broken.jsonl: line 2", "character 6"]);
    refused(&text("bytes.jsonl", b"{\"a\":\"\xff\"}\n"), &["line 1: bytes that are not UTF-8", "byte 6"]);
    refused(
        &text("clash.jsonl", b"{\"a\":{\"b\":1}}\n\n{\"a\":{\"b\":\"x\"}}\n"),
        &["line 3: a string, where the lines before have a number", "a.b"],
    );
    refused(&text("empty.jsonl", b"\n"), &["empty.jsonl", "no rows"]);
    refused(&text("nothing.jsonl", b"{\"a\":{}}\n"), &["objects without a field", "column a"]);
    refused(
        &text("deep.jsonl", format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100)).as_bytes()),
        &["nesting"],
    );
    refused(
        &text("deeper.jsonl", format!("{{\"a\":{}", "[".repeat(100_000)).as_bytes()),
        &["recursion limit"],
    );
    let wide = text("wide.csv", &[b"x".as_slice(), &b",x".repeat(1_000_000)].concat());
    refused(&wide, &["line 1: a row of 1000001 fields", "more than 100000"]);
    folder.refused(&folder.path("nowhere.csv"), &[], 3, &["nowhere.csv", "no such file"]);
    folder.refused(&text("a.csv", b"a\n1\n"), &["--delimiter", "\""], 2, &["same character"]);
    folder.refused(
        &text("a.csv.gz", b"no gzip at all"),
        &[],
        3,
        &["a.csv.gz: it could not be read: not gzip data"],
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"a,b\n1,2\n").unwrap();
    let packed = packed.finish().unwrap();
    folder.refused(&text("cut.csv.gz", &packed[..packed.len() - 9]), &[], 3, &["gzip data are cut off"]);
    let followed = [&packed[..], &[0; 20]].concat();
    folder.refused(&text("followed.csv.gz", &followed), &[], 3, &["not gzip data"]);
    folder.refused(
        &common::data("one.parquet"),
        &["--delimiter", ";"],
        2,
        &["--delimiter is for CSV, TSV and JSON lines"],
    );
    let parquet = common::data("one.parquet");
    folder.refused(
        &parquet,
        &["--from", "csv"],
        2,
        &["--from is for CSV", "one.parquet begins as Parquet files do"],
    );
}

/// A value that is not what the first rows suggested: the place is told, and what can be done; and that helps.
#[test]
fn values_beyond_the_sample() {
    let folder = Folder::new();
    let mut text = "n,code\n".to_string();
    let rows = 1_600_000;
    (0..rows).for_each(|row| text += &format!("{row},{}\n", 100 + row % 800));
    text += "1.5,010\n";
    let from = folder.write("a.csv", text);
    let line = format!("line {}: \"1.5\" is not a bigint", rows + 2);
    folder.refused(&from, &[], 1, &[&line, "--infer-all", "--types", "column n"]);
    let to = folder.path("to.parquet");
    run(["copy", &from, &to, "--infer-all", "--quiet"]).succeeded();
    let json = run(["show", "--json", &to]).succeeded();
    assert!(json.contains(r#""path":"n","physical_type":"DOUBLE""#), "{}", &json[..2000]);
    assert!(json.contains(r#""path":"code","physical_type":"BYTE_ARRAY""#));
    let mut lines = "{\"n\":1}\n".repeat(2_200_000);
    lines += "{\"m\":2}\n";
    let from = folder.write("a.jsonl", lines);
    folder.refused(&from, &[], 1, &["line 2200001: no line before has a field \"m\"", "--infer-all"]);
    run(["copy", &from, &to, "--infer-all", "--quiet", "--overwrite"]).succeeded();
    assert_eq!(run(["rows", &to, "--format", "csv"]).succeeded().lines().last(), Some(",2"));
}

#[test]
fn json_lines() {
    let folder = Folder::new();
    let text = concat!(
        "{\"id\":1,\"name\":\"a\",\"at\":\"2024-02-29T12:00:00Z\",\"pos\":{\"x\":1,\"y\":null},\"tags\":[\"p\",null],\"m\":[[1],[]]}\n",
        "\n",
        "{\"pos\":{\"y\":2.5,\"x\":2.5},\"id\":-5,\"ok\":true,\"tags\":[],\"list\":[{\"k\":\"\\u00e9\\n\"}]}\r\n",
        "{}",
    );
    let (types, rows) = folder.copied(&folder.write("a.jsonl", text), &[]);
    assert_eq!(
        types,
        "id INT64, name STRING, at TIMESTAMP(MICROS, UTC), pos group, .x DOUBLE, .y DOUBLE, tags LIST, .list group, ..element STRING, \
         m LIST, .list group, ..element LIST, ...list group, ....element INT64, ok BOOLEAN, list LIST, .list group, ..element group, \
         ...k STRING"
    );
    assert_eq!(
        rows,
        [
            r#"{"id":1,"name":"a","at":"2024-02-29T12:00:00.000000Z","pos":{"x":1.0,"y":null},"tags":["p",null],"m":[[1],[]],"ok":null,"list":null}"#,
            r#"{"id":-5,"name":null,"at":null,"pos":{"x":2.5,"y":2.5},"tags":[],"m":null,"ok":true,"list":[{"k":"é\n"}]}"#,
            r#"{"id":null,"name":null,"at":null,"pos":null,"tags":null,"m":null,"ok":null,"list":null}"#,
        ]
    );
    // What is told holds what cannot be inferred.
    let from = folder.write(
        "b.ndjson",
        "{\"a\":1,\"m\":{\"x\":1},\"d\":12.50}\n{\"a\":{\"b\":[1, 2]},\"m\":{},\"d\":\"3\"}\n{\"a\":\"t\"}\n",
    );
    folder.refused(
        &from,
        &[],
        1,
        &[
            "line 2: an object, where the lines before have a number",
            "only text holds both",
            "column a",
            "--types",
        ],
    );
    let (types, rows) = folder.copied(&from, &["--schema", "a text, m map<text, int>, d decimal(6, 2)"]);
    assert_eq!(types, "a STRING, m MAP, .key_value group, ..key STRING, ..value INT32, d DECIMAL(6, 2)");
    assert_eq!(
        rows,
        [
            r#"{"a":"1","m":[{"key":"x","value":1}],"d":"12.50"}"#,
            r#"{"a":"{\"b\":[1, 2]}","m":[],"d":"3.00"}"#,
            r#"{"a":"t","m":null,"d":null}"#,
        ]
    );
    folder.refused(
        &from,
        &["--schema", "a text, m map<text, int>"],
        1,
        &["line 1: the field \"d\" is missing from the schema"],
    );
    folder.refused(
        &from,
        &["--schema", "a text, m text, d int"],
        1,
        &["line 1: \"12.50\" is not an int", "column d"],
    );
    // No digit is lost without a word.
    for (number, said) in [
        ("18446744073709551615", "does not fit a signed integer of 64 bits"),
        (
            "18446744073709551616",
            "\"18446744073709551616\" does not fit a signed integer of 64 bits; only text holds it",
        ),
        (
            "-9007199254740993, \"b\": 0.5}\n{\"a\": 0.5",
            "a number: only text holds all of the numbers exactly",
        ),
    ] {
        let from = folder.write("large.jsonl", format!("{{\"a\":{number}}}\n"));
        folder.refused(&from, &[], 1, &[said, "column a"]);
    }
    for number in ["1e400", "-1e400"] {
        let from = folder.write("large.jsonl", format!("{{\"a\":0.5}}\n{{\"a\":{number}}}\n"));
        folder.refused(&from, &[], 1, &["line 2: "]);
        let (types, rows) = folder.copied(&from, &["--schema", "a text"]);
        assert_eq!((types, &*rows[1]), ("a STRING".to_owned(), &*format!("{{\"a\":\"{number}\"}}")));
    }
    let from =
        folder.write("mixed.jsonl", "{\"a\":-0}\n{\"a\":9007199254740992}\n{\"a\":1.0E+2}\n{\"a\":null}\n");
    let rows = [r#"{"a":-0.0}"#, r#"{"a":9007199254740992.0}"#, r#"{"a":100.0}"#, r#"{"a":null}"#];
    assert_eq!(folder.copied(&from, &[]).1, rows);
    let twice = folder.write("twice.jsonl", "{\"a\":1,\"a\":2}\n");
    folder.refused(&twice, &[], 1, &["line 1", "twice", "column a"]);
}

/// A double is the one that is nearest to what is written, and no neighbour of it.
#[test]
fn doubles_bit_by_bit() {
    let folder = Folder::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut written = vec![0.955_468_023_921_471_3, -0.0, 5e-324, f64::MIN_POSITIVE, f64::MAX, 1e23];
    while written.len() < 3000 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let any = f64::from_bits(state ^ state >> 29);
        // Of ordinary sizes, too, which are written with a point.
        written.extend([any, any.fract(), any % 1e6].into_iter().filter(|double| double.is_finite()));
    }
    for (name, head, open, close) in [("a.jsonl", "", "{\"d\":", "}\n"), ("a.csv", "d\n", "", "\n")] {
        let lines: String = written.iter().map(|double| format!("{open}{double:?}{close}")).collect();
        let (types, rows) = folder.copied(&folder.write(name, format!("{head}{lines}")), &[]);
        assert_eq!(types, "d DOUBLE");
        assert_eq!(rows.len(), written.len());
        for (row, double) in rows.iter().zip(&written) {
            let read: f64 = row["{\"d\":".len()..row.len() - 1].parse().unwrap();
            assert_eq!(read.to_bits(), double.to_bits(), "{name}: {row}, which was {double:?}");
        }
    }
}

/// Whatever JSON lines say, a file has it, as Python and pyarrow read them.
#[test]
fn any_json_lines() {
    let Some(python) = marquetry_testing::python() else { return };
    const FILES: usize = 60;
    let folder = Folder::new();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peers/json_lines.py");
    let run_script = |what: &str| {
        let arguments = [what, folder.root().to_str().unwrap(), &FILES.to_string()].map(str::to_owned);
        let out = std::process::Command::new(&python).arg(&script).args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    run_script("make");
    for file in 0..FILES {
        let (from, to) = (folder.path(&format!("{file}.jsonl")), folder.path(&format!("{file}.parquet")));
        run(["copy", &from, &to, "--quiet"]).succeeded();
    }
    run_script("check");
}

/// Columns that are chosen, limits, packed texts, several texts as one table, and columns in paths.
#[test]
fn as_other_tables() {
    let folder = Folder::new();
    let from = folder.write("a.csv", "a,b,c\n1,x,2.5\n2,y,3.5\n");
    assert_eq!(folder.copied(&from, &["--columns", "c,a", "--limit", "1"]).1, [r#"{"c":2.5,"a":1}"#]);
    let lines = folder.write("a.jsonl", "{\"a\":{\"x\":1,\"y\":2},\"b\":[3]}\n");
    assert_eq!(folder.copied(&lines, &["--columns", "b,a.y"]).1, [r#"{"b":[3],"a":{"y":2}}"#]);
    // Together they have the types that hold the values of both.
    let other = folder.write("b.csv", "a,b,c\nx,z,9\n");
    let to = folder.path("to.parquet");
    run(["copy", &from, &other, &to, "--overwrite", "--quiet", "--verify"]).succeeded();
    let (types, both) = shown(&to);
    assert_eq!(types, "a STRING, b STRING, c DOUBLE");
    assert_eq!(both[2], r#"{"a":"x","b":"z","c":9.0}"#);
    // Others are joined as Parquet files are.
    let less = folder.write("c.csv", "a,d\n5,true\n");
    run(["copy", &from, &less, &to, "--overwrite"]).failed(1, &["no column", "--union"]);
    run(["copy", &from, &less, &to, "--overwrite", "--union", "--quiet", "--verify"]).succeeded();
    assert_eq!(rows(&to, &[])[2], r#"{"a":5,"b":null,"c":null,"d":true}"#);
    run(["copy", &from, &lines, &to, "--overwrite", "--union", "--quiet"]).failed(1, &["no type holds"]);
    // A directory of them, and columns in its path.
    for day in 1..3 {
        fs::create_dir(folder.path(&format!("day={day}"))).unwrap();
        folder.write(&format!("day={day}/x.csv"), format!("n\n{day}0\n"));
    }
    let pattern = folder.path("day=*/*.csv");
    assert_eq!(folder.copied(&pattern, &[]).1, [r#"{"n":10,"day":1}"#, r#"{"n":20,"day":2}"#]);
    assert_eq!(rows(&folder.path("."), &["--from", "csv", "--columns", "n", "--union"]).len(), 6);

    let text = "a,b\n1,x\n".to_string() + &"2,y\n".repeat(300_000);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let mut zst = vec![0; 1 << 20];
    let length = zstd_safe::compress(&mut zst[..], text.as_bytes(), 3).unwrap();
    zst.truncate(length);
    let plain = folder.write("p.csv", &text);
    for packed in [folder.write("p.csv.gz", gz.finish().unwrap()), folder.write("p.csv.zst", &zst)] {
        run(["copy", &packed, &to, "--overwrite", "--quiet"]).succeeded();
        assert!(run(["diff", &plain, &to]).succeeded().contains("the same: 300,001 rows of 2 columns"));
    }
    fs::create_dir(folder.path("packed")).unwrap();
    run(["rows", &folder.path("packed"), "--from", "csv"])
        .failed(3, &["a directory without a Parquet file (*.parquet, *.parq, *.pq) or a text (*.csv)\n"]);
    fs::rename(folder.path("p.csv.gz"), folder.path("packed/P.CSV.GZ")).unwrap();
    let first = run(["rows", &folder.path("packed"), "--from", "csv", "--limit", "1"]).succeeded();
    assert!(first.contains("1  x"), "{first}");
    folder.refused(&folder.write("cut.csv.zst", &zst[..length - 5]), &[], 3, &["cut.csv.zst", "cut off"]);
    run(["diff", &plain, &from]).failed(1, &["differ"]);
}

#[test]
fn other_commands_read_text() {
    let folder = Folder::new();
    let from = folder.write("a.csv", "a,b\n1,x\n2,y\n");
    assert_eq!(rows(&from, &[]), [r#"{"a":1,"b":"x"}"#, r#"{"a":2,"b":"y"}"#]);
    assert_eq!(run(["rows", &from, "--limit", "1"]).succeeded(), "a  b\n1  x\n");
    run(["rows", &from]).succeeded();
    let long = folder.write("long.csv", format!("a\n{}", "1\n".repeat(11)));
    let table = run(["rows", &long]);
    assert_eq!((table.out.lines().count(), table.code), (11, Some(0)));
    assert_eq!(table.err, "marquetry: note: the first 10 rows; --limit N shows more\n");
    let cql = run(["cql", &from, "--table", "ks.t", "--key", "a"]).succeeded();
    assert!(cql.contains("\"a\" bigint") || cql.contains("a bigint"), "{cql}");
    assert!(cql.contains("(2, 'y')"), "{cql}");
    let other = folder.write("b.csv", "a,b\n1,x\n2,z\n3,w\n");
    let out = run(["diff", &from, &other]).failed(1, &["differ"]);
    assert!(out.contains("rows: 2 compared, 1 differ, 1 only in B\ncolumn b: 1 row differs\n"), "{out}");
}

fn piped(text: &[u8], arguments: &[&str]) -> Run {
    let mut child = marquetry()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(text);
    Run::of(child.wait_with_output().unwrap())
}

#[test]
fn standard_input() {
    let folder = Folder::new();
    let to = folder.path("to.parquet");
    let mut text = "n,t\n".to_string();
    (0..2_000_000).for_each(|row| text += &format!("{row},{:x}\n", row * 7));
    piped(text.as_bytes(), &["copy", "-", &to, "--from", "csv", "--quiet"]).succeeded();
    let from = folder.write("a.csv", &text);
    assert!(run(["diff", &from, &to]).succeeded().contains("2,000,000 rows"));
    piped(b"{\"a\":1}\n", &["rows", "-", "--from", "jsonl"]).succeeded();
    piped(b"", &["rows", "-", "--from", "csv"]).failed(1, &["standard input", "no row"]);
    piped(b"a\n1\n", &["rows", "-", "--from", "csv", "--infer-all"])
        .failed(2, &["--infer-all: the whole text is read twice"]);
    // It is read once, and verified all the same.
    let verified = folder.path("v.parquet");
    let copy = ["copy", "-", &verified, "--from", "csv", "--verify", "--sort", "a desc"];
    assert!(piped(b"a\n1\n2\n", &copy).succeeded().contains("verified"));
    assert_eq!(run(["rows", "--format", "csv", &verified]).succeeded(), "a\n2\n1\n");
}

/// Interrupted while it waits for more, it leaves nothing behind.
#[cfg(target_os = "linux")]
#[test]
fn a_copy_that_is_interrupted_leaves_nothing() {
    let folder = Folder::new();
    let to = folder.path("to.parquet");
    let mut child = marquetry()
        .args(["copy", "-", &to, "--from", "csv", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than is looked at first, and then nothing.
    let rows = "1,x\n".repeat(8_000_000);
    input.write_all(rows.as_bytes()).unwrap();
    let killed = std::process::Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(fs::read_dir(folder.root()).unwrap().count(), 0);
}

/// Limits that nobody can lift are not said to be lifted by --trust; and one that can be is.
#[test]
fn limits_of_text() {
    let folder = Folder::new();
    let wide = folder.write("wide.csv", vec!["1"; 100_001].join(",") + "\n");
    let deep = folder.write("deep.jsonl", format!("{{\"a\":{}1{}}}\n", "[".repeat(100), "]".repeat(100)));
    for (from, part) in [
        (&wide, "a row of 100001 fields, more than 100000, which is not supported\n"),
        (&deep, "nesting of 64 (column a)\n"),
    ] {
        for trust in [&[][..], &["--trust"]] {
            folder.refused(from, trust, 1, &[part]);
        }
    }
}

/// What is copied can be read: names and rows that readers refuse by default are refused.
#[test]
fn names_and_rows_that_nobody_could_read() {
    let folder = Folder::new();
    let name = "x".repeat(65_000);
    for (text, file) in [(format!("{name},b\n1,2\n"), "a.csv"), (format!("{{\"{name}\":1}}\n"), "a.jsonl")] {
        let from = folder.write(file, &text);
        assert_eq!(folder.copied(&from, &[]).1.len(), 1);
        let longer = folder.write(file, text.replacen('x', "xx", 1));
        folder.refused(&longer, &[], 1, &["line 1: a name of 65001 bytes, more than 65000"]);
        folder.refused(&longer, &["--schema", &format!("x{name} int")], 2, &["--schema: ", "65001 bytes"]);
    }
    // One line and no end: not all of it is read.
    let line = folder.path("line.csv");
    let mut file = std::io::BufWriter::new(fs::File::create(&line).unwrap());
    (0..40_000).for_each(|_| file.write_all(&[b'x'; 10_000]).unwrap());
    file.flush().unwrap();
    folder.refused(&line, &[], 1, &["line 1: a row of more than 268431360 bytes", "--trust"]);
    folder.refused(&line, &["--from", "jsonl"], 1, &["line 1: a row of more than", "--trust"]);
    // A first line that is longer than what types are inferred from.
    let long = format!("{{\"a\":\"{}\"}}\n", "long ".repeat(4_000_000));
    assert_eq!(folder.copied(&folder.write("long.jsonl", long), &[]).1.len(), 1);
}

/// Lines that each have a new field are an error before they take long.
#[test]
fn lines_of_ever_new_fields() {
    let folder = Folder::new();
    let text: String = (0..1_000_000).map(|at| format!("{{\"key{at}\":{at}}}\n")).collect();
    let from = folder.write("a.jsonl", text);
    folder.refused(&from, &[], 1, &["line 5", "objects with ever new fields", "--schema"]);
    folder.refused(&from, &["--infer-all"], 1, &["objects with ever new fields"]);
}

/// A row holds what a line of tab-separated text does; what the line has not is null.
fn same_as_written(line: &str, row: &str, kinds: &[&str]) {
    let row: serde_json::Value = serde_json::from_str(row).unwrap();
    let fields = line.split('\t').chain(std::iter::repeat(""));
    for ((at, kind), field) in kinds.iter().enumerate().zip(fields) {
        let value = &row[format!("column{}", at + 1)];
        let is_same = match (field, *kind) {
            ("", _) => value.is_null(),
            (_, "STRING") => value.as_str() == Some(field),
            (_, "INT64") => value.as_i64().map(|it| it.to_string()).as_deref() == Some(field),
            (_, "DOUBLE") => value.as_f64() == Some(field.parse().unwrap()),
            (_, kind) => panic!("column {at}: {kind}"),
        };
        assert!(is_same, "{field:?} became {value}");
    }
}

/// GDELT's events: tab-separated, with 57 columns and, since there are addresses in them, 58. Every value is there, and what was no
/// number stays as it was written.
#[test]
fn events_of_gdelt() {
    let Some(sample) = corpus("real/gdelt-events-sample.csv") else { return };
    let folder = Folder::new();
    folder.refused(&sample, &[], 1, &["line 510: 57 fields, where the rows before have 58"]);
    let text = fs::read_to_string(&sample).unwrap();
    for columns in [57, 58] {
        let lines: Vec<&str> = text.lines().filter(|line| line.split('\t').count() == columns).collect();
        assert!(lines.len() > 200);
        let from = folder.write(&format!("{columns}.export.CSV"), lines.join("\n") + "\n");
        let (types, rows) = folder.copied(&from, &[]);
        assert!(types.starts_with(
            "column1 INT64, column2 INT64, column3 INT64, column4 INT64, column5 DOUBLE, column6 STRING"
        ));
        assert_eq!((types.split(", ").count(), rows.len()), (columns, lines.len()));
        let kinds: Vec<&str> = types.split(", ").map(|it| it.split_once(' ').unwrap().1).collect();
        lines.iter().zip(&rows).for_each(|(line, row)| same_as_written(line, row, &kinds));
        compare_with_python(&from, &folder.path("to.parquet"), "\t");
    }
    // Both together: what the older rows do not have is null.
    let (types, rows) = folder.copied(&sample, &["--short-rows", "null"]);
    let kinds: Vec<&str> = types.split(", ").map(|it| it.split_once(' ').unwrap().1).collect();
    assert_eq!((kinds.len(), rows.len()), (58, text.lines().count()));
    text.lines().zip(&rows).for_each(|(line, row)| same_as_written(line, row, &kinds));
    let Some(from) = corpus("real/gdelt-1k-tab.csv") else { return };
    let (types, rows) = folder.copied(&from, &["--delimiter", "\\x01"]);
    assert_eq!((rows.len(), types.split(", ").count()), (1000, 8));
    compare_with_python(&from, &folder.path("to.parquet"), "\u{1}");
}

/// Compares every value with what Python's csv module reads, through pyarrow's and DuckDB's eyes.
fn compare_with_python(text: &str, parquet: &str, delimiter: &str) {
    let Some(python) = marquetry_testing::python() else { return };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/compare_text.py");
    let out =
        std::process::Command::new(python).arg(script).args([text, parquet, delimiter]).output().unwrap();
    assert!(
        out.status.success(),
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Numbers that look random and are always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn text(&mut self) -> String {
        let parts = ["a", "long text ", ",", "\"", "\n", "\r\n", "é", "\t", "0", "'", ";"];
        (0..self.below(6)).map(|_| parts[self.below(parts.len())]).collect()
    }
}

/// Whatever text is in fields, it is there as it was, in pieces of any size.
#[test]
fn any_text_in_fields() {
    let folder = Folder::new();
    let mut random = Random(1);
    let columns = 5;
    let mut text = String::new();
    let mut expected = Vec::new();
    // More than a piece.
    for _ in 0..40_000 {
        let mut row = serde_json::Map::new();
        for column in 0..columns {
            let value = random.text();
            let must_quote = value.contains([',', '"', '\n', '\r']);
            let is_quoted = must_quote || random.below(3) == 0;
            let field = if is_quoted { format!("\"{}\"", value.replace('"', "\"\"")) } else { value.clone() };
            text += &field;
            text += if column + 1 < columns { "," } else { ["\n", "\r\n"][random.below(2)] };
            let is_null = value.is_empty() && !is_quoted;
            row.insert(format!("c{column}"), if is_null { serde_json::Value::Null } else { value.into() });
        }
        expected.push(serde_json::Value::Object(row));
    }
    let from = folder.write("a.csv", text);
    let schema = "c0 text, c1 text, c2 text, c3 text, c4 text";
    let (_, rows) = folder.copied(&from, &["--schema", schema, "--header", "no", "--delimiter", ","]);
    assert_eq!(rows.len(), expected.len());
    for (number, (row, expected)) in rows.iter().zip(&expected).enumerate() {
        assert_eq!(serde_json::from_str::<serde_json::Value>(row).unwrap(), *expected, "row {number}");
    }
}

/// Whatever objects there are, they come back as rows.
#[test]
fn any_objects() {
    use serde_json::{Value, json};

    fn list(random: &mut Random, depth: usize) -> Value {
        let element = |random: &mut Random| match (random.below(4), depth) {
            (0, _) => Value::Null,
            (_, 0) => json!(random.below(1000)),
            _ => list(random, depth - 1),
        };
        (0..random.below(4)).map(|_| element(random)).collect()
    }

    let folder = Folder::new();
    let mut random = Random(3);
    let (mut text, mut expected) = (String::new(), Vec::new());
    for _ in 0..20_000 {
        let mut row = json!({
            "id": random.below(1 << 30), "text": random.text(), "ok": random.below(2) == 0,
            "lists": list(&mut random, 2),
            "place": {"name": random.text(), "deep": {"tags": [random.text(), null]}, "n": random.below(10)},
            "items": [{"a": random.below(5)}, {"a": null}, null],
        });
        for field in ["id", "text", "ok", "lists", "place", "items"] {
            if random.below(5) == 0 {
                row[field] = Value::Null;
            }
        }
        let mut written = row.clone();
        let fields = written.as_object_mut().unwrap();
        // What is null may be missing.
        fields.retain(|_, value| !value.is_null() || random.below(2) == 0);
        text += &format!("{written}\n");
        expected.push(row);
    }
    let from = folder.write("a.jsonl", text);
    for more in [&[][..], &["--schema", SCHEMA]] {
        let (_, rows) = folder.copied(&from, more);
        assert_eq!(rows.len(), expected.len());
        for (number, (row, expected)) in rows.iter().zip(&expected).enumerate() {
            assert_eq!(serde_json::from_str::<Value>(row).unwrap(), *expected, "row {number}");
        }
    }
}

const SCHEMA: &str = "id bigint, text text, ok boolean, lists list<list<list<int>>>, \
                      place struct<name text, deep struct<tags list<text>>, n tinyint>, items list<struct<a int>>";
