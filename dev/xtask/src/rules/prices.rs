//! Prices: a budget bounds time only as far as they are right, so each is measured somewhere.

use crate::rust_text::{code_only, line_of};

/// Where prices are measured: the cases name the constant, as [`missing`] does.
pub const MEASURED_IN: &[&str] = &[
    "dev/bench/src/prices/",
    "dev/bench/src/stall/writing.rs",
    "crates/arrow/examples/cost.rs",
    "crates/codecs/examples/prices.rs",
    "crates/codecs/examples/compress.rs",
    "crates/parquet/examples/encode.rs",
    "crates/parquet/examples/page_bloom.rs",
    "crates/parquet/examples/sort.rs",
    "crates/scylla/examples/mutation_mapping.rs",
    "crates/scylla/examples/sstable_merge.rs",
    "crates/scylla/examples/sstable_scan.rs",
    "crates/scylla/examples/sstable_write.rs",
    "crates/scylla/examples/tables/mod.rs",
];

/// Prices that nothing measures yet, and why.
const UNMEASURED: &[(&str, &str)] = &[
    ("read/conform/variant.rs VARIANT_PRICE", "no file of shredded variants is made for it"),
    ("read/column/cut.rs CUT_PRICE", "charged only where the columns' batches end at different rows"),
    ("bloom.rs FOLD_PRICE", WRITER),
    ("cql.rs TEXT_PRICE", "text is charged once it is printed, as much as is printed"),
    ("writer.rs CHECK_PRICE", "arrow-rs checks a column in one piece, which is charged when it is done"),
    (
        "uring.rs READ_PRICE",
        "what the kernel copies is no loop of ours; bench-lateness sees what a turn takes",
    ),
    ("uring/write.rs APPEND_PRICE", "as uring.rs READ_PRICE"),
    (
        "host.rs READ_PRICE",
        "what an OSD takes to read is no loop of ours; a test with a real one prints what a call took",
    ),
    ("output.rs WRITE_PRICE", OSD),
    ("output.rs TAKE_PRICE", OSD),
    ("aggregate.rs FOLD_PRICE", OSD),
    ("aggregate.rs COMPARE_PRICE", OSD),
    ("asked.rs NAME_PRICE", OSD),
    ("asked.rs PREDICATE_PRICE", OSD),
    ("groups.rs KEY_PRICE", OSD),
    ("ends.rs VALUE_PRICE", ESTIMATE),
    ("ends.rs DROP_PRICE", ESTIMATE),
    ("ends.rs PAGE_PRICE", ESTIMATE),
    ("ends.rs LEAF_PRICE", OSD),
    ("ends.rs INDEX_PRICE", ESTIMATE),
    ("ends.rs FIND_PRICE", OSD),
    ("kept.rs JOIN_PRICE", OSD),
    ("kept.rs KEEP_PRICE", OSD),
    ("parquet_rows.rs ROWS_PRICE", ESTIMATE),
    ("parquet_rows.rs END_PRICE", ESTIMATE),
    ("host.rs UNIQUE_PRICE", OSD),
    ("index.rs TEXT_PRICE", OSD),
    ("index.rs CHECK_PRICE", OSD),
    ("index.rs PART_PRICE", ESTIMATE),
    ("stats.rs BYTE_PRICE", OSD),
    ("output.rs ROW_PRICE", OSD),
    ("index.rs VALUE_PRICE", OSD),
    ("rows/mod.rs VALUE_PRICE", OSD),
    ("rows/mod.rs ROW_PRICE", OSD),
    ("rows/mod.rs TEXT_PRICE", OSD),
    ("rows/mod.rs WRITE_PRICE", OSD),
    ("ipc/mod.rs SCHEMA_PRICE", OSD),
    ("ipc/mod.rs CHOOSE_PRICE", OSD),
    ("ipc/message.rs METADATA_PRICE", OSD),
    ("ipc/arrays.rs CHECK_PRICE", OSD),
    ("ipc/arrays.rs COLUMN_PRICE", OSD),
    ("find/finder.rs JUDGE_PRICE", "a test of a row group is judged beside metadata that is read for it"),
    ("find/reading.rs RUN_PRICE", "a run of found rows is a part of a batch that was read"),
    ("prune/evaluate.rs WORD_PRICE", "a word of a mask is of 64 rows, which were tested"),
    (
        "thrift/alike.rs LEARN_PRICE",
        "at most one in 64 structures is learned, or one after 32 numbers and strings that were stepped over",
    ),
    ("read/bloom.rs PROBE_PRICE", "a probe is a look at 32 bytes that were asked for alone"),
    ("dictionary.rs GIVE_PRICE", "a copy of what was decompressed just before, and is still in the cache"),
    ("write/geospatial.rs GEOMETRY_PRICE", WRITER),
    ("format/write/footer.rs COUNT_PRICE", WRITER),
    ("sort/gather.rs ENTRY_PRICE", "the example sorts flat rows"),
    ("sort/gather.rs ROW_PRICE", "the example sorts flat rows"),
    ("write/sample.rs KEEP_PRICE", WRITER),
    ("write/part.rs GATHER_PRICE", WRITER),
    ("write/translation.rs TRANSLATE_PRICE", WRITER),
    ("write/statistics.rs NUMBER_PRICE", WRITER),
    ("write/statistics.rs STRING_PRICE", WRITER),
    ("bridge/mutations/mapper.rs MOVE_PRICE", "only a row of more than a batch is moved, which is copying"),
    ("bridge/mutations/statics.rs REPEAT_PRICE", "the example maps to full, which repeats no static values"),
    ("bridge/mutations/statics.rs ELEMENT_PRICE", "as bridge/mutations/statics.rs REPEAT_PRICE"),
    (
        "bridge/mutations/partition_work.rs PLACE_PRICE",
        "the mapping verbatim is there to be compared, in size",
    ),
    ("bridge/mutations/sstable_reader.rs COMPARE_PRICE", BEGINNING),
    ("bridge/mutations/sstable_reader.rs FIND_PRICE", BEGINNING),
    ("bridge/mutations/sstable_reader.rs PLAN_PRICE", BEGINNING),
    ("bridge/mutations/sstable_reader.rs LAYOUT_PRICE", BEGINNING),
    ("bridge/mutations/partition_work.rs CELL_PRICE", "as bridge/mutations/partition_work.rs PLACE_PRICE"),
];

/// The prices are set by what their loops do; the bench of writing large things has no case that is mostly of them.
const WRITER: &str = "no case of writing is mostly of it";

/// Nothing is charged by them.
const ESTIMATE: &str = "what rows will cost, about, by other prices, before they are read";

/// A share is some milliseconds, of which this is the least part.
const OSD: &str = "a call of the object class is not timed by units alone; make bench-ceph is to measure it";

/// Charged once an SSTable, by its columns; the examples scan long tables of few.
const BEGINNING: &str = "no example begins with a header of many columns";

/// Constants of type `Price` in the sources of the crates that no measurement names.
///
/// A price is named by its file below `crates/*/src` and its own name, as a string: `"read/page.rs CRC_PRICE"`.
pub fn missing<'a>(
    sources: impl Iterator<Item = (&'a str, &'a str)>,
    measurements: &[(&str, &str)],
) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in sources {
        for (name, line) in prices(text) {
            let price = format!("{} {name}", below_src(path));
            let is_measured = measurements.iter().any(|(_, text)| text.contains(&format!("\"{price}\"")));
            let is_excused = UNMEASURED.iter().any(|(excused, _)| *excused == price);
            match (is_measured, is_excused) {
                (false, false) => faults.push(format!("{path}:{line}: nothing measures \"{price}\"")),
                (true, true) => faults.push(format!("\"{price}\" is measured: strike it out")),
                _ => {}
            }
        }
    }
    faults
}

/// Names in measurements that are no price's any more.
pub fn unknown<'a>(
    sources: impl Iterator<Item = (&'a str, &'a str)>,
    measurements: &[(&str, &str)],
) -> Vec<String> {
    let known: Vec<String> = sources
        .flat_map(|(path, text)| {
            prices(text).into_iter().map(move |(name, _)| format!("{} {name}", below_src(path)))
        })
        .collect();
    let mut faults = Vec::new();
    for (path, text) in measurements {
        for literal in text.split('"').skip(1).step_by(2) {
            let is_price = literal.split_once(".rs ").is_some_and(|(_, name)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            });
            if is_price && !known.iter().any(|known| known == literal) {
                faults.push(format!("{path}: there is no price \"{literal}\""));
            }
        }
    }
    faults.extend(
        UNMEASURED
            .iter()
            .filter(|(excused, _)| !known.iter().any(|known| known == excused))
            .map(|(excused, _)| format!("there is no price \"{excused}\"")),
    );
    faults
}

/// The constants of type `Price` that have a value, and their lines.
fn prices(text: &str) -> Vec<(&str, usize)> {
    let code = code_only(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices(": Price =") {
        let Some(start) = code[..at].rfind("const ") else { continue };
        let name = &text[start + "const ".len()..at];
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
            found.push((name, line_of(&code, at) + 1));
        }
    }
    found
}

fn below_src(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, below)| below)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// A price.\nconst CRC_PRICE: Price = Price::per_kib(1);\n// const OLD: Price = x;\n\
                          trait T { const PRICE: Price; }\npub(super) const COPY: Price = Price { kib: 1, kilovalue: 0 };\n";

    #[test]
    fn prices_that_nothing_measures_are_found() {
        let sources = || [("crates/parquet/src/read/page.rs", SOURCE)].into_iter();
        let half = [("dev/bench/src/prices/a.rs", "const C: &str = \"read/page.rs CRC_PRICE\";")];
        assert_eq!(
            missing(sources(), &half),
            ["crates/parquet/src/read/page.rs:5: nothing measures \"read/page.rs COPY\""]
        );
        let all = [half[0], ("dev/bench/src/prices/b.rs", "f(\"read/page.rs COPY\", \"int32\")")];
        assert_eq!(missing(sources(), &all), [""; 0]);
    }

    #[test]
    fn measurements_of_no_price_are_found() {
        let sources = [("crates/parquet/src/read/page.rs", SOURCE)];
        let text = "\"read/page.rs COPY\" \"read/page.rs OLD\" \"see page.rs for more\"";
        let faults = unknown(sources.into_iter(), &[("a.rs", text)]);
        assert!(faults.contains(&"a.rs: there is no price \"read/page.rs OLD\"".to_owned()), "{faults:?}");
        assert!(!faults.iter().any(|fault| fault.contains("COPY") || fault.contains("more")), "{faults:?}");
    }
}
