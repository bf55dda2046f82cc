//! The examples, run as a reader of the documentation would; and how few names the everyday ones need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs an example; returns what it printed.
fn run(name: &str, arguments: &[&Path]) -> String {
    let done = example(name).args(arguments).output().unwrap();
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn example(name: &str) -> Command {
    // Cargo builds examples with the tests, beside their folder.
    let test = std::env::current_exe().unwrap();
    let folder: PathBuf = test.parent().and_then(Path::parent).unwrap().join("examples");
    let path = folder.join(name);
    assert!(path.is_file(), "{} is not built: run all targets of this package", path.display());
    Command::new(path)
}

#[test]
fn examples_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let trips = at("trips.parquet");
    assert!(run("write", &[&trips]).starts_with("10000 rows in "));
    assert_eq!(run("read", &[&trips]), "10000 rows\n");
    let projected = run("project", &[&trips, Path::new("fare,id")]);
    assert_eq!(projected, "fare, id of 3 rows\nfare: [0.0, 0.25, 0.5]\nid: [0, 1, 2]\n");
    let record_batches = run("to_arrow", &[&trips]);
    assert!(record_batches.ends_with(" rows\n") && record_batches.contains("\"fare\""), "{record_batches}");
    assert_eq!(run("from_arrow", &[&at("fares.parquet")]), "1000 rows\n");
    let sorted = at("sorted.parquet");
    assert_eq!(
        run("sort_rows", &[&trips, &sorted, Path::new("fare desc, id")]),
        "10000 rows sorted by fare desc, id\n"
    );
    assert_eq!(run("project", &[&sorted, Path::new("id")]), "id of 3 rows\nid: [96, 193, 290]\n");
    let by_city = at("by-city");
    assert!(run("many_files", &[&trips, &by_city, Path::new("city")]).ends_with("10000 rows in 2 files\n"));
    assert!(by_city.join("city=Gent/part-00000.parquet").is_file());
    assert!(run("reactor", &[&trips]).starts_with("10000 rows, and "));
    assert!(run("own_loop", &[&trips, &sorted]).starts_with("20000 rows in "));
    let by_compio = run("with_compio", &[&trips, &sorted]);
    assert!(by_compio.starts_with("20000 rows "), "{by_compio}");
    if by_compio != "20000 rows by io_uring\n" {
        marquetry_testing::skipped(marquetry_testing::Need::Uring);
    }
    let (squares, csv) = (at("squares.parquet"), at("squares.csv"));
    let statements = run("custom_source", &[&squares, &csv]);
    assert!(statements.ends_with("INSERT INTO demo.squares (n, square) VALUES (2, 4);\n"), "{statements}");
    assert_eq!(run("read", &[&squares]), "1000000 rows\n");
    assert!(fs::read_to_string(&csv).unwrap().starts_with("n,square\n0,0\n1,1\n2,4\n"));
    assert_eq!(run("read", &[&csv]), "1000000 rows\n");
}

/// A source of one's own is a page of code.
#[test]
fn a_custom_source_is_short() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/custom_source.rs");
    let lines = fs::read_to_string(path).unwrap().lines().count();
    assert!(lines <= 100, "{lines} lines");
}

/// From any kind of file to any, by their names alone.
#[test]
fn names_say_what_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run("write", &[&at("0.parquet")]);
    let names = ["0.parquet", "1.csv", "2.tsv.gz", "3.jsonl.zst", "4.parquet", "5/"];
    for pair in names.windows(2) {
        let to = match pair[1] {
            "5/" => format!("{}/5/", folder.path().display()).into(),
            name => at(name),
        };
        assert_eq!(marquetry::copy(at(pair[0]), to).unwrap().rows, 10_000, "{pair:?}");
    }
    let ids = |name: &str| -> Vec<u8> {
        let (mut text, rows) =
            (Vec::new(), marquetry::open(at(name)).unwrap().columns(["id", "city"]).unwrap());
        let options = marquetry::tables::text::TextOutputOptions::default();
        let mut csv = marquetry::tables::text::TextOutput::new(
            &mut text,
            marquetry::tables::text::Format::Csv,
            options,
        );
        let options = marquetry::tables::CopyOptions::default();
        marquetry::tables::copy(rows.source(), &mut csv, &options, &mut |_| {}).unwrap();
        drop(csv);
        text
    };
    let first = ids("0.parquet");
    names.iter().for_each(|name| assert_eq!(ids(name), first, "{name}"));
    let error = marquetry::copy(at("0.parquet"), at("1.csv")).unwrap_err();
    assert_eq!(error.detail(), Some(marquetry::base::Detail::AlreadyExists));
    for address in ["ftp://host/trips.parquet", "https://host/trips.parquet", "trips.xml", "-"] {
        let error = marquetry::destination(address).err().unwrap();
        assert_eq!(error.kind(), marquetry::base::ErrorKind::Unsupported, "{error}");
    }
    let error = marquetry::open("ftp://host/trips.parquet").err().unwrap();
    assert_eq!(error.kind(), marquetry::base::ErrorKind::Unsupported, "{error}");
}

/// Where nobody listens, the example that loads says so; what it does with a server, the tests of the cluster's crate show.
#[test]
fn the_example_that_loads_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let trips = folder.path().join("trips.parquet");
    run("write", &[&trips]);
    // A port that is free, or was a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("cql://me:tiger@127.0.0.1:{port}/ks.trips");
    let failed = |key: &str| {
        let done = example("to_cluster").arg(&trips).args([&address, key]).output().unwrap();
        assert!(!done.status.success());
        String::from_utf8(done.stderr).unwrap()
    };
    let said = failed("city, id");
    assert!(said.contains(&format!("cannot connect to cql://me@127.0.0.1:{port}/ks.trips: ")), "{said}");
    assert!(said.contains("0 rows are in cql://me@") && !said.contains("tiger"), "{said}");
    // What is wrong with the rows is found before anybody is connected to.
    let said = failed("town, id");
    assert!(said.contains("the key names \"town\"") && !said.contains("cannot connect"), "{said}");
}

#[test]
fn a_live_table_is_a_destination_by_its_address() {
    let table = marquetry::destination("cql://me:tiger@db1,db2:9043/ks.trips").unwrap();
    assert_eq!(table.name(), "cql://me@db1:9042,db2:9043/ks.trips");
    let error = marquetry::destination("cql://me:tiger@db1/").err().unwrap();
    assert_eq!(error.kind(), marquetry::base::ErrorKind::Misuse);
    let said = error.to_string();
    assert!(said.contains("ends without /KEYSPACE.TABLE") && !said.contains("tiger"), "{said}");
}

/// A batch, a stream of batches, record batches: all are the same rows.
#[test]
fn every_way_to_read_has_the_same_rows() {
    use futures_util::StreamExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trips.parquet");
    run("write", &[&path]);
    let trips = marquetry::open(&path).unwrap();
    let batches: usize = trips.batches().unwrap().map(|batch| batch.unwrap().rows).sum();
    let record_batches: usize = trips.record_batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let streamed = runtime.block_on(async {
        let (mut rows, mut stream) = (0, trips.stream().unwrap());
        while let Some(batch) = stream.next().await {
            rows += batch.unwrap().rows;
        }
        rows
    });
    assert_eq!([batches, record_batches, streamed], [10_000; 3]);
    let few = trips.clone().limit(7).threads(0);
    assert_eq!((few.rows(), few.batches().unwrap().map(|batch| batch.unwrap().rows).sum()), (Some(7), 7));
    let error = trips.columns(["nothing"]).err().unwrap();
    assert!(error.to_string().contains("there is no column \"nothing\""), "{error}");
}

/// What is chosen of a table is what is copied.
#[test]
fn a_limit_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run("write", &[&at("trips.parquet")]);
    let options = marquetry::tables::CopyOptions::default();
    marquetry::copy(at("trips.parquet"), at("trips.csv")).unwrap();
    for (from, known) in [("trips.parquet", Some(7)), ("trips.csv", None)] {
        let few = marquetry::open(at(from)).unwrap().limit(7).columns(["id"]).unwrap().limit(9);
        assert_eq!(few.rows(), known);
        let to = at(&format!("{from}.parquet"));
        let mut file = marquetry::destination(&to).unwrap();
        let copied = marquetry::tables::copy(few.source(), file.as_mut(), &options, &mut |_| {}).unwrap();
        assert_eq!((copied.rows, copied.rows_total), (7, known));
        assert_eq!(marquetry::open(&to).unwrap().rows(), Some(7));
    }
}

/// Any reader of record batches is a source, once.
#[test]
fn record_batches_are_a_source() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator, StringArray};
    use arrow_schema::ArrowError;
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    // Larger than a batch of ours, empty, and small.
    let batch = |rows: std::ops::Range<i64>| {
        let texts: StringArray = rows.clone().map(|n| Some(format!("text {n}"))).collect();
        let id: arrow_array::ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("id", id), ("text", Arc::new(texts))]).unwrap()
    };
    let batches = [batch(0..20_000), batch(0..0), batch(20_000..20_003)];
    let schema = batches[0].schema();
    let given = RecordBatchIterator::new(batches.clone().map(Ok), Arc::clone(&schema));
    let rows = marquetry::Reader::of_record_batches("a query", given).unwrap();
    let mut options = marquetry::tables::CopyOptions::default();
    options.verify = true;
    let mut file = marquetry::destination(&path).unwrap();
    let copied = marquetry::tables::copy(rows.source(), file.as_mut(), &options, &mut |_| {}).unwrap();
    assert_eq!((copied.rows, copied.verified), (20_003, 20_003));
    let again = rows.batches().unwrap().next().unwrap().unwrap_err();
    assert_eq!(
        (again.kind(), again.place().object.as_deref()),
        (marquetry::base::ErrorKind::Misuse, Some("a query"))
    );
    let read = marquetry::open(&path).unwrap().record_batches().unwrap();
    assert_eq!(arrow_array::RecordBatchReader::schema(&read), schema);
    let read: Vec<RecordBatch> = read.map(Result::unwrap).collect();
    let rows = |batches: &[RecordBatch]| -> Vec<(i64, String)> {
        let of = |batch: &RecordBatch| -> Vec<(i64, String)> {
            let ids = batch.column(0).as_primitive::<Int64Type>().values().iter().copied();
            ids.zip(batch.column(1).as_string::<i32>().iter().map(|text| text.unwrap().to_string())).collect()
        };
        batches.iter().flat_map(of).collect()
    };
    assert_eq!(rows(&read), rows(&batches));

    // Errors are ours again where they were, and name what fails.
    let lost = marquetry::Error::corrupt("a page").at_offset(7);
    let external = ArrowError::ExternalError(Box::new(lost.clone()));
    for (error, kind) in [
        (external, marquetry::base::ErrorKind::Corrupt),
        (ArrowError::ComputeError("by zero".to_string()), marquetry::base::ErrorKind::Io),
    ] {
        let given = [Ok(batch(0..3)), Err(error)];
        let given = RecordBatchIterator::new(given, Arc::clone(&schema));
        let mut rows = marquetry::Reader::of_record_batches("a query", given).unwrap().batches().unwrap();
        assert_eq!(rows.next().unwrap().unwrap().rows, 3);
        let error = rows.next().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.place().object.as_deref()), (kind, Some("a query")));
        assert!(std::error::Error::source(&error).is_some() || error.place().offset == lost.place().offset);
    }
}

/// Record batches are written and read again the same.
#[test]
fn record_batches_go_round() {
    let folder = tempfile::tempdir().unwrap();
    let (path, again) = (folder.path().join("trips.parquet"), folder.path().join("again.parquet"));
    run("write", &[&path]);
    let read = |path: &Path| -> Vec<_> {
        marquetry::open(path).unwrap().record_batches().unwrap().map(Result::unwrap).collect()
    };
    let batches = read(&path);
    let mut writer = marquetry::create_arrow(&again, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write_arrow(batch).unwrap());
    assert_eq!(writer.finish().unwrap().rows, 10_000);
    assert_eq!(read(&again), batches);
    let refused = marquetry::create_arrow(&again, &batches[0].schema()).err().unwrap();
    assert_eq!(refused.detail(), Some(marquetry::base::Detail::AlreadyExists));
}

/// The names of ours that a program needs: what it takes from `marquetry`, and the methods of what that returns.
fn names(example: &str, of_others: &[&str]) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
    let source = fs::read_to_string(path).unwrap();
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("marquetry::") {
        let rest = &code[at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:{}, ".contains(c))).unwrap_or(rest.len());
        // All of a path, and all names in its braces.
        let words = rest[..end].split(|c: char| !(c.is_alphanumeric() || c == '_'));
        names.extend(words.filter(|word| !word.is_empty() && *word != "marquetry").map(str::to_string));
    }
    for (at, _) in code.match_indices('.') {
        let name = word(&code[at + 1..]);
        let is_method = code[at + 1 + name.len()..].starts_with('(');
        if is_method && !of_others.contains(&name.as_str()) {
            names.insert(name);
        }
    }
    // The type that `main` returns is the standard library's with our error.
    names.remove("Result");
    names
}

#[test]
fn the_everyday_needs_few_names() {
    const STD: [&str; 3] = ["nth", "unwrap_or_else", "into"];
    const ARROW: [&str; 5] = ["nth", "unwrap_or_else", "into", "schema", "num_rows"];
    let read = names("read.rs", &STD);
    assert!(read.len() <= 4, "to read all rows: {read:?}");
    let arrow = names("to_arrow.rs", &ARROW);
    assert!(arrow.len() <= 5, "to read two columns as Arrow: {arrow:?}");
    const MADE: [&str; 5] = ["nth", "unwrap_or_else", "into", "schema", "map"];
    let write = names("from_arrow.rs", &MADE);
    assert!(write.len() <= 6, "to write record batches: {write:?}");
}

/// Record batches of another schema than the file's are refused: nothing is written as something else.
#[test]
fn record_batches_of_another_schema_are_refused() {
    use arrow_array::{Int64Array, RecordBatch, TimestampMicrosecondArray, TimestampNanosecondArray};
    use marquetry::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema, TimeUnit};
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    let micros = LogicalType::Timestamp { is_adjusted_to_utc: false, unit: TimeUnit::Micros };
    let schema = || {
        let column = |name, logical| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, logical));
        Schema::of_fields(&[column("id", None), column("at", Some(micros.clone()))]).unwrap()
    };
    let ids = || -> arrow_array::ArrayRef { Arc::new(Int64Array::from(vec![1])) };
    let micros_of = || -> arrow_array::ArrayRef { Arc::new(TimestampMicrosecondArray::from(vec![7])) };
    let nanos_of = || -> arrow_array::ArrayRef { Arc::new(TimestampNanosecondArray::from(vec![7_000])) };
    let write = |name: &str, columns: Vec<(&str, arrow_array::ArrayRef)>| {
        let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
        let mut writer = marquetry::create(folder.path().join(name), schema()).unwrap();
        writer.write_arrow(&batch)?;
        writer.finish()
    };
    assert_eq!(write("right", vec![("id", ids()), ("at", micros_of())]).unwrap().rows, 1);
    for (name, columns) in [
        ("unit", vec![("id", ids()), ("at", nanos_of())]),
        ("order", vec![("at", micros_of()), ("id", ids())]),
        ("missing", vec![("id", ids())]),
    ] {
        let error = write(name, columns).unwrap_err();
        assert_eq!(error.kind(), marquetry::base::ErrorKind::Misuse, "{name}: {error}");
        assert!(!folder.path().join(name).exists());
    }
}
