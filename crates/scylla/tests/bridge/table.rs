//! Tables created from schemas, and schemas that cannot become tables.

use marquetry_base::ErrorKind;
use marquetry_scylla::bridge::{ColumnSource, MappingOptions};
use marquetry_scylla::cql::{KeySpec, Name};

use crate::batch::{keyed, mapping, numbered};
use crate::schema::{self, BYTE_ARRAY, Field, INT32, INT64, Note, UTF8, leaf, logical, time};

fn everything() -> Vec<Field> {
    vec![
        leaf("id", INT64, Note::None),
        leaf("Flight Date", INT32, Note::Converted(6)),
        leaf("tiny", INT32, schema::integer(8, true)),
        leaf("unsigned", INT64, schema::integer(64, false)),
        leaf("price", schema::fixed(16), Note::Decimal(2, 38)),
        leaf("select", BYTE_ARRAY, UTF8),
        leaf("photo", BYTE_ARRAY, Note::None),
        leaf("at", INT64, time(8, true, 2)),
        leaf("seen", INT64, time(8, false, 3)),
        leaf("made", INT64, time(8, false, 1)),
        leaf("opens", INT32, time(7, false, 1)),
        leaf("waits", schema::fixed(12), Note::Converted(21)),
        leaf("nothing", INT32, logical(11)),
    ]
}

#[test]
fn golden_definition() {
    let mapping = mapping(&everything(), &keyed("(id, \"Flight Date\"), seen desc")).unwrap();
    assert_eq!(
        mapping.table().to_string(),
        "CREATE TABLE t (\n    id bigint,\n    \"Flight Date\" date,\n    tiny tinyint,\n    unsigned varint,\n    \
         price decimal,\n    \"select\" text,\n    photo blob,\n    at bigint,\n    seen bigint,\n    made timestamp,\n    \
         opens time,\n    waits duration,\n    nothing int,\n    PRIMARY KEY ((id, \"Flight Date\"), seen)\n) WITH \
         CLUSTERING ORDER BY (seen DESC)\n  AND comment = 'Microseconds since 1970-01-01 00:00: at. Nanoseconds since \
         1970-01-01 00:00: seen. Local time, not adjusted to UTC: seen, made, opens.';\n"
    );
    assert_eq!(mapping.leaves(), (0..13).collect::<Vec<_>>());
    let in_key: Vec<usize> = (0..13).filter(|at| mapping.columns()[*at].in_key).collect();
    assert_eq!(in_key, [0, 1, 8]);
}

#[test]
fn columns_are_chosen_and_rows_numbered() {
    let columns = Some(vec!["made".to_owned(), "TINY".to_owned(), "Flight Date".to_owned()]);
    let mapping = mapping(&everything(), &MappingOptions { columns, ..numbered() }).unwrap();
    assert_eq!(
        mapping.table().to_string(),
        "CREATE TABLE t (\n    n bigint,\n    made timestamp,\n    tiny tinyint,\n    \"Flight Date\" date,\n    PRIMARY \
         KEY (n)\n) WITH comment = 'Local time, not adjusted to UTC: made.';\n"
    );
    assert_eq!(mapping.leaves(), [9, 2, 1]);
    let sources: Vec<_> = mapping.columns().iter().map(|column| column.source).collect();
    assert_eq!(sources[0], ColumnSource::RowNumber);
    assert_eq!(sources[2], ColumnSource::Leaf { leaf: 2, position: 1 });
}

#[test]
fn a_row_number_may_be_part_of_a_key() {
    let options = MappingOptions { key: Some(KeySpec::parse("tiny, n").unwrap()), ..numbered() };
    let mapping = mapping(&everything(), &options).unwrap();
    assert!(mapping.table().to_string().contains("PRIMARY KEY (tiny, n)"));
    let options = MappingOptions { timestamps_as_millis: true, ..numbered() };
    let table = crate::batch::mapping(&everything(), &options).unwrap().table().clone();
    assert!(table.to_string().contains("    seen timestamp,\n"));
    assert_eq!(table.comment.unwrap(), "Local time, not adjusted to UTC: seen, made, opens.");
}

#[track_caller]
fn refused(fields: &[Field], options: &MappingOptions, kind: ErrorKind, message: &str) {
    let error = mapping(fields, options).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), kind);
}

#[test]
fn what_cannot_be_is_found_before_the_first_row() {
    use ErrorKind::{Conversion, Misuse};
    let ab = [leaf("a", INT32, Note::None), leaf("b", INT32, Note::None)];
    let columns = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let chosen = |names: &[&str], key| MappingOptions { columns: columns(names), ..keyed(key) };
    refused(
        &ab,
        &MappingOptions::default(),
        Misuse,
        "the table needs a primary key: columns or a row number",
    );
    refused(&ab, &keyed("c"), Misuse, "the key names \"c\", which is not a column; there are a, b");
    refused(&ab, &keyed("a, A"), Misuse, "the key names \"a\" twice");
    refused(
        &ab,
        &chosen(&["b"], "a"),
        Misuse,
        "the key names \"a\", which is not among the columns that are taken",
    );
    refused(&ab, &chosen(&["a", "x"], "a"), Misuse, "there is no column \"x\"; there are a, b");
    refused(&ab, &chosen(&["a", "A"], "a"), Misuse, "the column \"a\" is wanted twice");
    let taken = MappingOptions { row_number: Some(Name::new("b").unwrap()), ..keyed("a") };
    refused(&ab, &taken, Misuse, "the row number cannot be called b: a column of the file is");
    refused(
        &everything(),
        &keyed("waits"),
        Misuse,
        "waits cannot be in the key: CQL allows no duration there",
    );
    let message = "nothing cannot be in the key: its type UNKNOWN is always null";
    refused(&everything(), &keyed("nothing"), Misuse, message);

    let twice = [leaf("a", INT32, Note::None), leaf("a", INT64, Note::None), leaf("b", INT32, Note::None)];
    refused(&twice, &keyed("b"), Conversion, "two columns of the file are called \"a\"");
    refused(&twice, &chosen(&["a", "b"], "b"), Conversion, "two columns of the file are called \"a\"");
    assert!(mapping(&twice, &chosen(&["b"], "b")).is_ok());
    let cases = [leaf("a", INT32, Note::None), leaf("A", INT64, Note::None)];
    assert!(mapping(&cases, &keyed("a")).is_ok(), "quoted, CQL can tell them apart");
    refused(
        &[leaf("", INT32, Note::None)],
        &numbered(),
        Conversion,
        "CQL cannot have the name of column 1 (of 1): a name is empty; choose others with --columns",
    );
    let long = "x".repeat(65_536);
    let error = mapping(&[leaf(&long, INT32, Note::None)], &numbered()).unwrap_err();
    let message = "CQL cannot have the name of column 1 (of 1): a name is 65536 long; the longest that CQL keeps here is 65535; \
                   choose others with --columns";
    assert_eq!(error.message(), message);

    // All of it is reported together.
    let wrong =
        MappingOptions { sets: vec!["s".to_owned()], ..chosen(&["b", "x", "c", "y", "C"], "z, b, a") };
    let fields = [&twice[..], &[leaf("c", schema::fixed(12), Note::Converted(21))]].concat();
    let message = "the column \"c\" is wanted twice; there are no columns \"x\", \"y\"; there are a, a, b, c; \
                   \"s\" is to be a set, but no list is called so; there are none; \
                   the key names \"z\", which is not a column; there are b, c; \
                   the key names \"a\", which is not among the columns that are taken";
    refused(&fields, &wrong, Misuse, message);

    // Many columns are fast, even if they are selected, and the message about them is short.
    let names: Vec<String> = (0..5000).map(|number| format!("column {number}")).collect();
    let many: Vec<Field> = names.iter().map(|name| leaf(name, INT32, Note::None)).collect();
    let mut backwards: Vec<&str> = names.iter().map(String::as_str).rev().collect();
    let wide = mapping(&many, &chosen(&backwards, "\"column 7\"")).unwrap();
    assert!(wide.leaves().into_iter().eq((0..5000).rev()));
    assert_eq!(wide.table().partition_key, [4992]);
    backwards.push("column 0");
    refused(&many, &chosen(&backwards, "\"column 7\""), Misuse, "the column \"column 0\" is wanted twice");
}
