//! What is written, and the files of others written again, are read equal by Apache Spark 4.

use std::collections::BTreeMap;

use marquetry_conformance::files;

use crate::{kept, others};

/// What Spark says of what it does not read, whoever wrote it: a part of its words, and why.
const NOT_BY_SPARK: &[(&str, &str)] = &[
    ("BrotliCodec", "it does not bring BROTLI"),
    ("(FLOAT16)", NO_TYPE),
    ("(INTERVAL)", NO_TYPE),
    ("(TIME(", NO_TYPE),
    ("(UUID)", NO_TYPE),
    ("DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", NO_TYPE),
    ("INVALID_CRS_VALUE", "a reference system that it does not know"),
    (
        "nulls in input cannot be viewed as non-nullable",
        "it does not hand nulls of variants and geometries to Arrow",
    ),
    ("UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT", "variants of types that it does not know"),
    ("INVALID_VARIANT_SHREDDING_SCHEMA", "variants of types that it does not know"),
    ("NullPointerException", "a logical type that nobody knows"),
    ("OverflowError", "dates that Python does not have"),
    ("UnicodeDecodeError", "strings that are no text"),
    ("WKB_PARSE_ERROR", "geometries of NaN are none to it"),
    ("MALFORMED_VARIANT", "a file that is meant to be wrong"),
];

const NO_TYPE: &str = "it has no such type, and no schema of a file with one";

#[test]
#[ignore = "soak: Spark reads some 500 files, in minutes"]
fn spark_reads_what_is_written() {
    let Some(spark) = files::spark() else { return };
    let (Some(made), Some(kept)) = (others::outcome(), kept::outcome()) else { return };
    let (mut wrong, mut columns, mut row_by_row) = (Vec::new(), 0, 0);
    let mut refused = BTreeMap::<&str, usize>::new();
    for (outcome, folder) in [(made, "written"), (kept, "rewritten")] {
        let folder = files::root().join("target/conformance").join(folder);
        for entry in others::expect(&spark, "expect_spark.py", &folder, &outcome.paths) {
            let file = entry["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            columns += entry["columns"].as_u64().unwrap();
            row_by_row += entry["row_by_row"].as_u64().unwrap();
            let faults = entry["wrong"].as_array().unwrap().iter();
            wrong.extend(faults.map(|fault| format!("{file}: {}", fault.as_str().unwrap())));
            for (column, said) in entry["refused"].as_object().unwrap() {
                let said = said.as_str().unwrap();
                match NOT_BY_SPARK.iter().find(|(part, _)| said.contains(part)) {
                    Some((_, why)) => *refused.entry(why).or_default() += 1,
                    None => wrong.push(format!("{file}: {column}: {said}")),
                }
            }
        }
    }
    println!(
        "{columns} columns equal, {row_by_row} of them by its slower reader alone; not read: {refused:?}"
    );
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(columns > 4000, "{columns}");
}
