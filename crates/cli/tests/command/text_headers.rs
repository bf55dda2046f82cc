//! Whether the first row of a CSV has the names of columns, and what stands for null.

use crate::common::{Folder, run};
use crate::text::rows;

#[test]
fn headers_and_nulls() {
    let folder = Folder::new();
    let from = folder.write("a.csv", "a,b\nNA,x\n-,NA\n");
    let (types, rows) = folder.copied(&from, &["--null", "NA", "--null", "-"]);
    assert_eq!((types.as_str(), rows.len()), ("a STRING, b STRING", 2));
    assert_eq!(rows, [r#"{"a":null,"b":"x"}"#, r#"{"a":null,"b":null}"#]);
    assert_eq!(folder.copied(&from, &["--header", "no"]).1.len(), 3);
    let from = folder.write("b.csv", "1,2\n3,4\n");
    assert_eq!(folder.copied(&from, &[]).1, [r#"{"column1":1,"column2":2}"#, r#"{"column1":3,"column2":4}"#]);
    assert_eq!(folder.copied(&from, &["--header", "yes"]).1, [r#"{"1":3,"2":4}"#]);
    // The index of other programs has no name.
    let from = folder.write("c.csv", ",x\n0,a\n");
    assert_eq!(folder.copied(&from, &[]).1, [r#"{"column1":0,"x":"a"}"#]);
    // A name that is there twice: it may be a row as well.
    let from = folder.write("twice.csv", "a,a,,b,,column3,a#2\n1,2,3,4,5,6,7\n");
    folder.refused(&from, &[], 1, &["line 1: \"a\" appears twice", "--header no", "--header yes"]);
    assert_eq!(
        folder.copied(&from, &["--header", "yes"]).1,
        [r#"{"a":1,"a#3":2,"column3#2":3,"b":4,"column5":5,"column3":6,"a#2":7}"#]
    );
    assert_eq!(folder.copied(&from, &["--header", "no"]).1.len(), 2);
    // A header alone.
    let (types, rows) = folder.copied(&folder.write("d.csv", "x,y\n"), &[]);
    assert_eq!((types.as_str(), rows.len()), ("x STRING, y STRING", 0));
    // A number that is too large for its type is none.
    let from = folder.write("large.csv", "x\n1e400\n1.5\n");
    assert_eq!(folder.copied(&from, &[]).1, [r#"{"x":"1e400"}"#, r#"{"x":"1.5"}"#]);
    folder.refused(&from, &["--schema", "x double"], 1, &["line 2: \"1e400\" is not a double"]);
    folder.refused(&from, &["--schema", "x float"], 1, &["line 2: \"1e400\" is not a float"]);
    let from = folder.write("infinite.csv", "x\n-inf\ninfinity\n");
    assert_eq!(folder.copied(&from, &["--schema", "x double"]).1.len(), 2);
    // Quotes around nothing are nothing, but in text.
    let from = folder.write("e.csv", "n,t\n\"\",\"\"\n\"5\",\"x\"\n");
    assert_eq!(folder.copied(&from, &[]).1, [r#"{"n":null,"t":""}"#, r#"{"n":5,"t":"x"}"#]);
}

/// A row that may be lost for a header is not lost without a word.
#[test]
fn a_header_that_is_guessed_is_said() {
    let folder = Folder::new();
    let said = "nothing tells it from the others; --header no takes it for a row, --header yes for the names";
    // Hive's table of text: it has no header.
    let hive = folder.write("000000_0", "anna\x01bern\x01\\N\nbob\x01chur\x015\n");
    let expected = [
        r#"{"column1":"anna","column2":"bern","column3":null}"#,
        r#"{"column1":"bob","column2":"chur","column3":5}"#,
    ];
    for more in [&["--null", "\\N"][..], &["--null", "\\N", "--delimiter", "\\x01"]] {
        assert_eq!(rows(&hive, more), expected);
    }
    let text = folder.write("text.csv", "anna\x01bern\nbob\x01chur\n");
    for command in [
        &["rows", &text][..],
        &["count", &text],
        &["find", &text, "bern = 'chur'"],
        &["copy", &text, &folder.path("text.parquet")],
        &["show", "--schema", &text],
    ] {
        let ran = run(command);
        assert!(ran.code == Some(0) && ran.err.contains(said), "{command:?}: {}", ran.err);
        assert!(ran.err.contains("text.csv: the first row is taken for the names of columns"), "{}", ran.err);
    }
    assert!(run(["show", &text]).succeeded().contains(said));
    assert_eq!(run(["count", &text, "--header", "no"]).succeeded(), "2\n");
    assert_eq!(run(["count", &text, "--header", "yes"]).succeeded(), "1\n");
    assert_eq!(run(["rows", &text, "--quiet", "--format", "csv"]).succeeded(), "anna,bern\nbob,chur\n");
    // Files that begin alike have a header; of several that do not, the first is named.
    let one = folder.write("many/one.csv", "name,city\nanna,bern\n");
    let other = folder.write("many/other.csv", "city,name\nchur,bob\n");
    assert_eq!(run(["count", &one, &other]).succeeded(), "2\n");
    let (third, fourth) = (folder.write("3.csv", "a,b\nx,y\n"), folder.write("4.csv", "c,b\nx,y\n"));
    let many = run(["rows", &third, &fourth, "--union"]);
    assert!(many.err.contains("3.csv and 1 more file: the first row is taken for"), "{}", many.err);
    let fifth = folder.write("5.csv", "d,e\n1,2\n");
    let many = run(["rows", &fifth, &fourth, "--union"]);
    assert!(many.err.contains("more file: in ") && many.err.contains("4.csv, the first row"), "{}", many.err);
}
