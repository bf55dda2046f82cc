//! README's figures of speed: a table that is made of the last results of the benchmarks, `docs/bench/*.json`, and nothing else.

use serde_json::Value;

/// What stands around the table in README.md.
pub const BEGIN: &str =
    "<!-- speed: from docs/bench/*.json, by `MARQUETRY_UPDATE=1 cargo test -p marquetry-xtask speed` -->";
/// And behind it.
pub const END: &str = "<!-- speed: end -->";

/// Results whose cases are compared by time or size: a line's title, the file, and what its cases begin with and have in them.
type Group = (&'static str, &'static str, &'static str, fn(&str) -> bool);

/// The lines of the table, in order. Each case is counted by one of them: [`left_out`].
const GROUPS: &[Group] = &[
    ("Reading dictionaries", "read", "", |case| case.contains("RLE_DICTIONARY")),
    ("Reading deltas, split bytes", "read", "", |case| {
        ["DELTA_", "BYTE_STREAM", " ALP ", " RLE "].iter().any(|encoding| case.contains(encoding))
    }),
    ("Reading plain values, not compressed", "read", "", |case| {
        is_plain(case) && case.contains("UNCOMPRESSED")
    }),
    ("Reading plain values, compressed", "read", "", |case| is_plain(case) && !case.contains("UNCOMPRESSED")),
    ("Reading lists and maps", "nested", "Arrow arrays: ", |case| {
        case.contains("list") || case.contains("map")
    }),
    ("Reading structs", "nested", "Arrow arrays: ", |case| case.starts_with("struct")),
    ("Records as JSON lines", "nested", "records to JSON lines: ", |_| true),
    ("Writing a column", "write", "time: one column: ", |_| true),
    ("Writing a table", "write", "time: tables, encodings chosen by the writer: ", |_| true),
    ("Size of what is written", "write", "size: ", |_| true),
    ("Whole programs, on all cores", "whole", "Wall clock: ", |_| true),
    ("Memory of whole programs", "whole", "Peak memory: ", |_| true),
];

fn is_plain(case: &str) -> bool {
    case.contains(" PLAIN ")
}

/// A file of results, by its name.
pub type Results<'a> = &'a dyn Fn(&str) -> Result<Value, String>;

/// The part of README that these results make, markers and all.
///
/// # Errors
///
/// A sentence, where a result is not as it should be.
pub fn section(results: Results<'_>) -> Result<String, String> {
    let mut lines = vec![
        BEGIN.to_owned(),
        String::new(),
        "| | cases | ahead of the best peer | ours, where the best peer takes 1: best, median, worst | worst in |"
            .to_owned(),
        "|---|--:|--:|--:|---|".to_owned(),
    ];
    for group in GROUPS {
        let mut ratios = ratios(group, &results(group.1)?)?;
        ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (Some((best, _)), Some((worst, case))) = (ratios.first(), ratios.last()) else {
            return Err(format!("{}: no results", group.0));
        };
        let ahead = ratios.iter().filter(|(ratio, _)| *ratio < 1.0).count();
        let count = ratios.len();
        let median = f64::midpoint(ratios[(count - 1) / 2].0, ratios[count / 2].0);
        let figures = format!("{best:.2}, {median:.2}, {worst:.2}");
        lines.push(format!("| {} | {count} | {ahead} | {figures} | {case} |", group.0));
    }
    lines.push(String::new());
    lines.push(stall(&results("stall")?)?);
    lines.push(lateness(&results("lateness")?)?);
    lines.push(cql(&results("cql_text")?)?);
    lines.push(String::new());
    lines.push(END.to_owned());
    Ok(lines.join("\n"))
}

/// What README says instead, if it does.
pub fn stale(readme: &str, results: Results<'_>) -> Vec<String> {
    let part = readme.find(BEGIN).and_then(|start| {
        let end = start + readme[start..].find(END)? + END.len();
        Some(&readme[start..end])
    });
    match (part, section(results)) {
        (_, Err(error)) => vec![error],
        (None, Ok(_)) => vec![format!("README.md has no part between {BEGIN} and {END}")],
        (Some(part), Ok(section)) if part != section => {
            let differs = part.lines().zip(section.lines()).find(|(is, should)| is != should);
            let (is, should) = differs.unwrap_or(("it", "of another length"));
            vec![format!("README.md: {is:?} should be {should:?}")]
        }
        _ => Vec::new(),
    }
}

/// Cases of a file of results that no line of the table counts.
pub fn left_out(name: &str, results: &Value) -> Vec<String> {
    let groups = || GROUPS.iter().filter(|group| group.1 == name);
    let is_counted =
        |case: &str| groups().any(|(_, _, prefix, belongs)| case.strip_prefix(prefix).is_some_and(belongs));
    // Ours beside ours is compared with no peer, and what ours does with fewer of the processor's instructions is no line.
    let compared = results["rows"].as_array().into_iter().flatten();
    let compared = compared.filter(|row| !row["ratio"].is_null() && row["is_lower_level"] != true);
    compared
        .filter_map(|row| row["case"].as_str())
        .filter(|case| !is_counted(case))
        .map(|case| format!("{name}: {case} is in no line of README"))
        .collect()
}

/// Ours by the best peer's, and the case.
fn ratios(&(_, _, prefix, belongs): &Group, results: &Value) -> Result<Vec<(f64, String)>, String> {
    let rows = rows(results)?.filter(|row| row["is_lower_level"] != true);
    let cases = rows.filter_map(|row| Some((row["case"].as_str()?.strip_prefix(prefix)?, row)));
    cases
        .filter(|(case, _)| belongs(case))
        .map(|(case, row)| {
            let ratio = row["ratio"].as_f64().ok_or_else(|| format!("{case}: no ratio"))?;
            Ok((ratio, case.to_owned()))
        })
        .collect()
}

fn rows(results: &Value) -> Result<impl Iterator<Item = &Value>, String> {
    Ok(results["rows"].as_array().ok_or("results without rows")?.iter())
}

/// The longest calls.
fn stall(results: &Value) -> Result<String, String> {
    let (mut files, mut over, mut ours, mut peers) = (0, 0, 0.0_f64, 0.0_f64);
    for row in
        rows(results)?.filter(|row| row["case"].as_str().is_some_and(|it| it.starts_with("longest call")))
    {
        files += 1;
        ours = ours.max(row["ours"].as_f64().ok_or("a longest call that is not known")?);
        let theirs = row["peers"].as_object().into_iter().flatten().filter_map(|(_, it)| it.as_f64());
        let longest = theirs.fold(0.0, f64::max);
        over += usize::from(longest > 500.0);
        peers = peers.max(longest);
    }
    Ok(format!(
        "* **Never stall**: of {files} files, hostile ones too, the longest call takes {:.2} ms (the shortest of its replays). A peer keeps its thread for more than\n  0.5 ms in {over} of them, and for {:.2} s at most.",
        ours / 1e3,
        peers / 1e6
    ))
}

/// A timer on the same thread.
fn lateness(results: &Value) -> Result<String, String> {
    let mut late = [Vec::new(), Vec::new()];
    for row in rows(results)? {
        for (who, measured) in row["measured"].as_object().into_iter().flatten() {
            let p999 = measured["late"]["p999"].as_f64().ok_or("a lateness that is not known")?;
            match who.as_str() {
                _ if who.starts_with("ours") => late[0].push(p999),
                _ if who.starts_with("parquet-rs") => late[1].push(p999),
                _ => {}
            }
        }
    }
    let bounds = |late: &[f64]| {
        let bound = |pick: fn(f64, f64) -> f64| late.iter().copied().reduce(pick).unwrap_or(f64::NAN);
        (bound(f64::min), bound(f64::max))
    };
    let ((least, most), (their_least, their_most)) = (bounds(&late[0]), bounds(&late[1]));
    Ok(format!(
        "* **A timer** of 1 ms on the same thread is late by {least:.1} to {most:.1} ms at the 99.9th percentile (in the least disturbed of five rounds); beside parquet-rs's\n  asynchronous reader by {:.1} to {:.1} *seconds*.",
        their_least / 1e3,
        their_most / 1e3
    ))
}

/// CQL text.
fn cql(results: &Value) -> Result<String, String> {
    let speeds = rows(results)?.filter(|row| row["unit"] == "MB/s").filter_map(|row| row["ours"].as_f64());
    let least = speeds.reduce(f64::min).ok_or("CQL text of no speed")?;
    Ok(format!("* **CQL text**: {:.1} GB a second and more, on one core.", least / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results(name: &str) -> Result<Value, String> {
        let case = |case: &str, ratio: f64| json!({ "case": case, "ratio": ratio });
        Ok(match name {
            "read" => json!({ "rows": [
                case("dense: int32 RLE_DICTIONARY SNAPPY", 0.5),
                case("dense: int64 RLE_DICTIONARY SNAPPY", 1.25),
                case("dense: int64 DELTA_BINARY_PACKED UNCOMPRESSED", 0.4),
                case("dense: int32 PLAIN UNCOMPRESSED", 1.4),
                case("dense: int32 PLAIN SNAPPY", 0.8),
            ] }),
            "nested" => json!({ "rows": [
                case("Arrow arrays: list<int64> PLAIN", 0.2),
                case("Arrow arrays: struct 3 deep PLAIN", 0.9),
                case("records to JSON lines: flat", 0.4),
            ] }),
            "write" => json!({ "rows": [
                case("time: one column: int32", 0.7),
                case("time: tables, encodings chosen by the writer: gdelt", 0.8),
                json!({ "case": "time: tables, encodings chosen by the writer (portable): gdelt", "ratio": 9.0, "is_lower_level": true }),
                case("size: one column: int32", 0.95),
            ] }),
            "whole" => json!({ "rows": [
                case("Wall clock: flights: sort", 2.5),
                case("Peak memory: flights: sort", 0.5),
                { "case": "Two threads: flights: sort", "ours": 0.7 },
            ] }),
            "stall" => json!({ "rows": [
                { "case": "longest call: a", "ours": 390.0, "peers": { "x": 700.0, "y": null } },
                { "case": "longest call: b", "ours": 10.0, "peers": { "x": 210_000.0 } },
                { "case": "peak resident memory: b", "ours": 99.0, "peers": {} },
            ] }),
            "lateness" => json!({ "rows": [{ "measured": {
                "ours-tokio": { "late": { "p999": 0.6 } },
                "idle-tokio": { "late": { "p999": 9.0 } },
                "parquet-rs-tokio": { "late": { "p999": 1600.0 } },
            } }] }),
            _ => json!({ "rows": [
                { "case": "Speed", "unit": "MB/s", "ours": 1157.0 },
                { "case": "Speed of another", "unit": "MB/s", "ours": 1130.0 },
            ] }),
        })
    }

    #[test]
    fn the_table_is_what_the_results_say() {
        let section = section(&results).unwrap();
        assert!(
            section.contains(
                "| Reading dictionaries | 2 | 1 | 0.50, 0.88, 1.25 | dense: int64 RLE_DICTIONARY SNAPPY |"
            ),
            "{section}"
        );
        assert!(
            section.contains("of 2 files, hostile ones too, the longest call takes 0.39 ms"),
            "{section}"
        );
        assert!(section.contains("0.5 ms in 2 of them, and for 0.21 s at most"), "{section}");
        assert!(section.contains("late by 0.6 to 0.6 ms"), "{section}");
        assert!(
            section.contains("by 1.6 to 1.6 *seconds*") && section.contains("1.1 GB a second and more"),
            "{section}"
        );
    }

    #[test]
    fn what_no_line_counts_is_found() {
        for name in ["read", "nested", "write", "whole"] {
            assert_eq!(left_out(name, &results(name).unwrap()), [""; 0]);
        }
        let other = json!({ "rows": [{ "case": "Disk: flights", "ratio": 1.0 }] });
        assert_eq!(left_out("whole", &other).len(), 1);
    }

    #[test]
    fn another_figure_is_found() {
        let readme = format!("# A\n{}\n# B", section(&results).unwrap());
        assert_eq!(stale(&readme, &results), [""; 0]);
        assert_eq!(stale(&readme.replace("0.39 ms", "0.38 ms"), &results).len(), 1);
        assert_eq!(stale(&readme.replace("| 0.50,", "| 0.49,"), &results).len(), 1);
        assert_eq!(stale("# A", &results).len(), 1);
    }
}
