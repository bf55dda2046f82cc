//! `find`, `count` and `--where`: rows by a predicate, of every kind of file, and what was left out by what.

use std::fs;
use std::path::Path;

use crate::common::{Folder, run};

/// Ten thousand rows, sorted, with page indexes and a Bloom filter; in ten row groups.
fn numbers(folder: &Folder) -> String {
    let lines: String = (0..10_000).map(|at| format!("{at},name {},{}\n", at * 7 % 10_000, at % 3)).collect();
    let text = folder.write("numbers.csv", format!("id,name,third\n{lines}"));
    let to = folder.path("numbers.parquet");
    run(["copy", &text, &to, "--bloom", "name", "--row-group-rows", "1000", "--page-rows", "100", "--quiet"])
        .succeeded();
    to
}

#[test]
fn rows_are_found_and_printed() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let found = run(["find", &file, "id = 4321"]).succeeded();
    assert_eq!(found, "  id  name      third\n4321  name 247      1\n");
    let found = run(["find", &file, "name = 'name 247' OR id >= 9999", "--columns", "id", "--format", "csv"]);
    assert_eq!(found.succeeded(), "id\n4321\n9999\n");
    let found = run([
        "find",
        &file,
        "id < 100 AND third = 2",
        "--limit",
        "2",
        "--format",
        "jsonl",
        "--columns",
        "id",
    ]);
    assert_eq!(found.succeeded(), "{\"id\":2}\n{\"id\":5}\n");
    let nothing = run(["find", &file, "id = -1", "--format", "csv"]);
    assert_eq!((nothing.code, &*nothing.out, &*nothing.err), (Some(1), "id,name,third\n", ""));
}

/// Several tests of one column ask the Bloom filters of its pages, all of which are one block.
#[test]
fn tests_that_share_a_filter() {
    let folder = Folder::new();
    let text = folder.write("three.csv", "c,n\nx,1\ny,2\nz,3\n");
    let file = folder.path("three.parquet");
    run(["copy", &text, &file, "--page-bloom", "c", "--quiet"]).succeeded();
    for (predicate, expected) in [
        ("c = 'x' OR c = 'y'", "n\n1\n2\n"),
        ("c IN ('x') OR c IN ('z') OR c = 'nobody'", "n\n1\n3\n"),
        ("c = 'x' AND c = 'x'", "n\n1\n"),
        ("c = 'y' AND n = 2 OR c = 'z' AND n = 2", "n\n2\n"),
    ] {
        let found = run(["find", &file, predicate, "--columns", "n", "--format", "csv"]);
        assert_eq!(found.succeeded(), expected, "{predicate}");
    }
    // More values than are asked for together.
    let many: Vec<String> = (0..1_000).map(|number| format!("'{number}'")).collect();
    let found = run(["count", &file, "--where", &format!("c IN ({}, 'z')", many.join(","))]);
    assert_eq!(found.succeeded(), "1\n");
}

/// Files that are opened for some columns answer as those that are opened whole: another column is not meant, however alike its name.
#[test]
fn names_that_differ_in_case() {
    let folder = Folder::new();
    let text = folder.write("case.jsonl", "{\"G\":1,\"g\":{\"a\":7},\"z\":2}\n");
    let file = folder.path("case.parquet");
    run(["copy", &text, &file, "--quiet"]).succeeded();
    let wanted = ["the column \"G\" holds values, and no field \"a\""];
    run(["rows", &file, "--columns", "G.a"]).failed(2, &wanted);
    run(["find", &file, "z > 0", "--columns", "G.a"]).failed(2, &wanted);
    assert_eq!(run(["rows", &file, "--columns", "g.a", "--format", "csv"]).succeeded().lines().count(), 2);
}

/// Rows after the first ones are the last lines of all: of one file and of several, of Parquet and of text, whatever is read in one piece.
#[test]
fn rows_after_others() {
    let folder = Folder::new();
    let (file, text) = (numbers(&folder), folder.path("numbers.csv"));
    let all = run(["rows", &file, "--format", "csv"]).succeeded();
    let lines: Vec<&str> = all.lines().collect();
    let expected = |skip: usize, count: usize| -> String {
        let rows = lines[1..].iter().cycle().take(20_000).skip(skip).take(count);
        std::iter::once(&lines[0]).chain(rows).flat_map(|line| [line, "\n"]).collect()
    };
    for skip in [0, 1, 99, 100, 999, 1000, 1001, 4321, 9999, 10_000, 12_345, 19_999, 20_000] {
        for (files, total) in [
            (&[&file][..], 10_000),
            (&[&text], 10_000),
            (&[&file, &file], 20_000),
            (&[&text, &text], 20_000),
            (&[&file, &text], 20_000),
            (&[&text, &file], 20_000),
        ] {
            let left = total - skip.min(total);
            for (limit, count) in [(None, left), (Some("150"), left.min(150))] {
                let mut arguments = vec!["rows", "--format", "csv", "--offset"];
                let offset = skip.to_string();
                arguments.push(&offset);
                arguments.extend(limit.iter().flat_map(|limit| ["--limit", limit]));
                arguments.extend(files.iter().map(|file| file.as_str()));
                let found = run(&arguments).succeeded();
                assert!(found == expected(skip, count), "{arguments:?}");
            }
        }
    }
    let found =
        run(["find", &file, "third = 2", "--offset", "3", "-n", "2", "--columns", "id", "--format", "csv"]);
    assert_eq!(found.succeeded(), "id\n11\n14\n");
    // Pages without a wanted row are not read: neither those of other row groups, nor those before it in its own.
    let mut bytes = fs::read(&file).unwrap();
    for column in ["id", "name", "third"] {
        let pages = run(["show", "--pages", column, "--json", &file]).succeeded();
        let pages = pages.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let first_of = |group: u64| {
            let is_wanted =
                |page: &serde_json::Value| page["row_group"] == group && page["kind"] == "data v1";
            let page = pages.clone().find(is_wanted).unwrap();
            usize::try_from(page["offset"].as_u64().unwrap() + page["header_bytes"].as_u64().unwrap())
                .unwrap()
        };
        for at in [first_of(0), first_of(8)] {
            bytes[at] ^= 1;
        }
    }
    let broken = folder.write("broken.parquet", &bytes);
    run(["rows", &broken, "--format", "csv", "--quiet"]).failed(1, &["broken.parquet"]);
    for options in [&[][..], &["--rename", "third=part"], &["--types", "third=int"]] {
        let arguments =
            [&["rows", &broken, "--format", "csv", "--offset", "8150", "--limit", "1"], options].concat();
        let found = run(&arguments).succeeded();
        assert_eq!(found.lines().last(), Some(lines[8151]), "{arguments:?}");
    }
    let table = run(["rows", &file, "--offset", "9998", "--columns", "id"]).succeeded();
    assert_eq!(table, "  id\n9998\n9999\n");
}

#[test]
fn what_was_left_out_is_explained() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let told = run(["find", &file, "id = 4321", "--explain"]).succeeded();
    assert!(
        told.starts_with(
            "found        1 of 10,000 rows in 10 row groups\n\
             statistics   9 row groups decided, 1 undecided\n\
             bloom        none there\n\
             dictionary   none there\n\
             index        9 pages decided, 1 undecided\n\
             page bloom   none there\n\
             page headers not needed\n\
             tested       100 rows\n\
             searched     "
        ),
        "{told}"
    );
    let told = run(["find", &file, "name = 'name 247'", "--explain"]).succeeded();
    assert!(
        told.contains(
            "statistics   1 row group decided, 9 undecided\nbloom        8 row groups decided, 1 undecided\n"
        ),
        "{told}"
    );
    let told = run(["find", &file, "name = 'name 247'", "--explain", "--without", "bloom,index"]).succeeded();
    assert!(
        told.contains(
            "bloom        not used\ndictionary   none there\nindex        not used\npage bloom   none there\n\
             page headers none there\n\
             tested       9,000 rows\n"
        ),
        "{told}"
    );
    let told = run(["find", &file, "id = 4321", "--explain", "--json", "--without", "stats"]).succeeded();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["found"], &told["index"]["pruned"]), (&1.into(), &99.into()));
    // Words that a dictionary lists, between the bounds of every page; and one that is not among them.
    let lines: String =
        (0..3_000).map(|at| format!("{at},{}\n", ["ape", "cat", "elk"][at * 7 % 3])).collect();
    let text = folder.write("words.csv", format!("id,word\n{lines}"));
    let words = folder.path("words.parquet");
    run(["copy", &text, &words, "--row-group-rows", "1000", "--quiet"]).succeeded();
    let told = run(["find", &words, "word = 'bee'", "--explain"]);
    assert!(told.out.contains("dictionary   3 row groups decided, 0 undecided\n"), "{}", told.out);
    assert!(told.out.contains("tested       0 rows\n") && told.code == Some(1), "{}", told.out);
    let told = run(["find", &words, "word <> 'bee'", "--explain", "--json"]).succeeded();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["found"], &told["dictionary"]["pruned"]), (&3000.into(), &3.into()));
    let told = run(["find", &words, "word = 'bee'", "--explain", "--without", "dictionary"]).out;
    assert!(told.contains("dictionary   not used\n") && told.contains("tested       3,000 rows\n"), "{told}");
    let nothing = run(["find", &file, "id = -1", "--explain"]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.out.contains("statistics   10 row groups decided, 0 undecided\n"), "{}", nothing.out);
}

#[test]
fn rows_are_counted() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let text = folder.path("numbers.csv");
    assert_eq!(run(["count", &file]).succeeded(), "10000\n");
    assert_eq!(run(["count", &text]).succeeded(), "10000\n");
    for threads in ["1", "3"] {
        for file in [&file, &text] {
            let counted = run(["count", file, "--where", "third = 2 AND id > 5000", "--threads", threads]);
            assert_eq!(counted.succeeded(), "1666\n", "{file}");
        }
    }
    assert_eq!(run(["count", &file, &text, "--union", "--where", "id = 7"]).succeeded(), "2\n");
    // And added up, of Parquet files and text.
    for file in [&file, &text] {
        let of = ["--aggregate", "count(*), sum(id), avg(id)", "--format", "csv"];
        let of_all = run([&["rows", file][..], &of].concat()).succeeded();
        assert_eq!(of_all, "count(*),sum(id),avg(id)\n10000,49995000,4999.5\n");
        let groups = ["find", file, "id < 9", "--aggregate", "count(*), max(id)", "--group-by", "third"];
        let groups = run([&groups[..], &["--format", "csv"]].concat()).succeeded();
        assert_eq!(groups, "third,count(*),max(id)\n0,3,6\n1,3,7\n2,3,8\n");
        let nothing = run(["find", file, "id < 0", "--aggregate", "sum(id)", "--format", "jsonl"]);
        assert_eq!((nothing.out.as_str(), nothing.code), ("{\"sum(id)\":null}\n", Some(1)));
    }
    for (wrong, why) in [
        (["--aggregate", "median(id)"], "'median(id)' is none of count(*)"),
        (["--group-by", "id"], "--aggregate"),
    ] {
        let refused = run([&["rows", &file][..], &wrong].concat());
        assert!(refused.code == Some(2) && refused.err.contains(why), "{}", refused.err);
    }
    run(["rows", &file, "--aggregate", "sum(name)"]).failed(2, &["sum(name) is of no numbers"]);
    for groups in ["nosuch", "a.."] {
        let refused = run(["rows", &file, "--aggregate", "count(*)", "--group-by", groups]);
        assert!(refused.code == Some(2) && refused.err.contains("--group-by"), "{}", refused.err);
    }
    let explained = run(["find", &file, "id < 9", "--explain", "--aggregate", "count(*)"]);
    assert!(
        explained.code == Some(2) && explained.err.contains("cannot be used with '--aggregate"),
        "{}",
        explained.err
    );
}

#[test]
fn other_commands_take_some_rows() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let (text, some) = (folder.path("some.csv"), folder.path("some.parquet"));
    let wanted = "name IN ('name 7', 'name 14')";
    run(["copy", &file, &text, "--where", wanted, "--rename", "id=number", "--columns", "number", "--quiet"])
        .succeeded();
    assert_eq!(fs::read_to_string(&text).unwrap(), "number\n1\n2\n");
    run(["copy", &file, &some, "--where", "third = 0", "--sort", "id desc", "--verify", "--quiet"])
        .succeeded();
    assert_eq!(run(["count", &some]).succeeded(), "3334\n");
    let printed =
        run(["rows", &some, "--where", "id <= 3", "--format", "csv", "--columns", "id"]).succeeded();
    assert_eq!(printed, "id\n3\n0\n");
    let told = run(["diff", &file, &folder.path("numbers.csv"), "--where", "id < 50"]).succeeded();
    assert!(told.starts_with("the same: 50 rows"), "{told}");
    let cql = run(["cql", &file, "--table", "ks.t", "--key", "id", "--where", "id = 17"]).succeeded();
    assert_eq!(cql.matches("INSERT").count(), 1, "{cql}");
}

#[test]
fn a_filter_is_asked_by_several_tests() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let both = "(id > 5 OR name = 'name 1x') AND name IN ('name 2x', 'name 21')";
    let found = run(["find", "--columns", "id", "--format", "csv", &file, both]);
    // Names are the numbers times seven; 3 * 7 is less than what is asked of numbers.
    assert_eq!((found.code, &*found.out), (Some(1), "id\n"));
    let found =
        run(["find", "--columns", "id", "--format", "csv", &file, &both.replace("21", "49")]).succeeded();
    assert_eq!(found, "id\n7\n");
}

#[test]
fn lists_that_are_null_or_empty() {
    let folder = Folder::new();
    let lines = "{\"id\":1,\"s\":[{\"i\":1}]}\n{\"id\":2,\"s\":null}\n{\"id\":3,\"s\":[]}\n";
    let (text, to) = (folder.write("a.jsonl", lines), folder.path("a.parquet"));
    run(["copy", &text, &to, "--quiet"]).succeeded();
    for file in [&text, &to] {
        let ids = |predicate: &str| {
            let found = run(["find", file, predicate, "--columns", "id", "--format", "csv"]).out;
            found.lines().skip(1).collect::<Vec<_>>().join(",")
        };
        assert_eq!(
            ["s.i = 1", "NOT s.i = 1", "s IS NULL", "s IS NOT NULL"].map(ids),
            ["1", "3", "2", "1,3"],
            "{file}"
        );
    }
}

/// Of a map whose keys are not read a list is left; its values are found all the same.
#[test]
fn columns_that_are_only_tested() {
    let folder = Folder::new();
    let lines = "{\"id\":1,\"m\":[{\"key\":\"a\",\"value\":5}]}\n{\"id\":2,\"m\":[]}\n{\"id\":3}\n";
    let text = folder.write("a.jsonl", lines);
    let with_map = ["--schema", "id bigint, m map<text, int>"];
    for predicate in ["m.value = 5", "m.key = 'a'", "m IS NOT NULL AND id = 1"] {
        let some = ["find", &text, predicate, "--columns", "id", "--format", "csv"];
        assert_eq!(run([&some[..], &with_map[..]].concat()).succeeded(), "id\n1\n", "{predicate}");
        let count = ["count", &text, "--where", predicate];
        assert_eq!(run([&count[..], &with_map[..]].concat()).succeeded(), "1\n", "{predicate}");
    }
}

#[test]
fn directories_decide_by_their_names() {
    let folder = Folder::new();
    let file = numbers(&folder);
    let to = folder.path("by-third/");
    run(["copy", &file, &to, "--partition-by", "third", "--quiet"]).succeeded();
    assert_eq!(run(["count", &to, "--where", "third = 1 AND id < 10"]).succeeded(), "3\n");
    assert_eq!(run(["count", &to, "--where", "third IS NULL"]).succeeded(), "0\n");
    let told = run(["find", &to, "third = 1", "--explain"]).succeeded();
    assert!(told.starts_with("found        3,333 of 3,333 rows"), "{told}");
}

#[test]
fn a_wrong_predicate_is_shown() {
    let folder = Folder::new();
    let text = folder.write("a.csv", "id,name\n1,x\n");
    for (arguments, message, carets) in [
        (["find", &text, "id = 'x'"].as_slice(), "'x' is not a bigint", "  id = 'x'\n       ^^^\n"),
        (
            &["count", &text, "--where", "nmae = 1"],
            "there is no column nmae: did you mean name? the columns are id, name",
            "  nmae = 1\n  ^^^^\n",
        ),
        (
            &["rows", &text, "--where", "id = 1 AND"],
            "a column is missing at the end",
            "  id = 1 AND\n            ^\n",
        ),
    ] {
        let failed = run(arguments);
        assert_eq!((failed.code, &*failed.out), (Some(2), ""));
        assert_eq!(failed.err, format!("marquetry: {message}\n{carets}"));
    }
    assert_eq!(run(["find", &text]).code, Some(2));
    run(["find", "id = 1", &text])
        .failed(2, &["name the files first, then the predicate", "a.csv is a file"]);
    run(["find", &text, "id = 1", "--where", "id = 1"]).failed(2, &["--where is for other commands"]);
}

/// As DuckDB finds them: every type, operator and kind of file, whatever is used.
#[test]
fn the_same_rows_as_duckdb_finds() {
    let Some(python) = marquetry_testing::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/find.py");
    let status = std::process::Command::new(python).arg(script).arg(folder.path()).status();
    assert!(status.is_ok_and(|status| status.success()));
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    for number in 0..4 {
        let (from, to) = (path(&format!("arrow{number}.parquet")), path(&format!("ours{number}.parquet")));
        run(["copy", &from, &to, "--quiet", "--page-rows", "64", "--row-group-rows", "500"]
            .into_iter()
            .chain(["--bloom", "small,big,city,name,score,huge"]))
        .succeeded();
    }
    let cases = fs::read_to_string(path("cases.tsv")).unwrap();
    let without = [
        "",
        "stats",
        "index",
        "bloom",
        "index,bloom",
        "index,dictionary",
        "stats,bloom",
        "stats,index,bloom",
        "stats,index,bloom,dictionary",
    ];
    let (mut found, mut searches) = (0, 0);
    for (number, case) in cases.lines().enumerate() {
        let [file, predicate, expected] = case.split('\t').collect::<Vec<_>>()[..] else { panic!("{case}") };
        let file = path(file);
        let mut arguments = vec!["find", "--columns", "rid", "--format", "csv"];
        let without = without[number % without.len()];
        if !without.is_empty() {
            arguments.extend(["--without", without]);
        }
        arguments.extend(["--", &file, predicate]);
        let ran = run(arguments);
        let rows: Vec<&str> = ran.out.lines().skip(1).collect();
        assert_eq!(rows.join(","), expected, "{file} without {without:?}: {predicate}\n{}", ran.err);
        assert_eq!(ran.code, Some(i32::from(rows.is_empty())));
        (found, searches) = (found + rows.len(), searches + 1);
    }
    assert!(searches >= 700 && found > 50_000, "{searches} searches found {found} rows");
}
