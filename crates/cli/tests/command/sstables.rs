//! `sstable:…`: tables read from their SSTables. Those of `tests/data/sstables` are small ones that Cassandra wrote
//! (`tests/data/MakeSstables.java`); others are of the fixtures, where these are there.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{self, Folder, run};

const ID: &str = "0123456789abcdef0123456789abcdef";

/// The directory of the table, as a server has it.
pub(crate) fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/sstables/ks/t-{ID}"))
}

pub(crate) fn address(path: impl AsRef<Path>) -> String {
    format!("sstable:{}", path.as_ref().display())
}

/// Copies the SSTables whose names begin so, and no other file.
pub(crate) fn copy_sstables(prefix: &str, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(table()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with(prefix) && !name.ends_with(".cql") {
            let copy = to.join(&name);
            fs::copy(table().join(&name), &copy).unwrap();
            // Fixtures may be read-only.
            let mut permissions = fs::metadata(&copy).unwrap().permissions();
            #[expect(clippy::permissions_set_readonly_false, reason = "a copy in a temporary folder")]
            permissions.set_readonly(false);
            fs::set_permissions(&copy, permissions).unwrap();
        }
    }
}

pub(crate) fn csv(arguments: &[&str]) -> Vec<String> {
    let all = ["rows", "--format", "csv", "--quiet"].iter().chain(arguments);
    run(all).succeeded().lines().map(str::to_owned).collect()
}

/// What a SELECT returns: static values in each row, the newest values, nothing that is deleted or has expired.
#[test]
fn sstables_are_merged_as_servers_merge_them() {
    let source = address(table());
    let lines = csv(&[&source, "--mapping", "logical", "--at", "2027-01-01T00:00:00Z"]);
    let row = |pk: &str, st: u8, ck: u8, v: u32| format!("{pk},{ck},{st},{v},\"[\"\"x\"\",\"\"y{ck}\"\"]\"");
    let mut expected = vec!["pk,ck,st,v,tags".to_owned(), "a,9,97,900,".to_owned()];
    expected.extend([(4, 40), (3, 30), (2, 20), (1, 100)].map(|(ck, v)| row("a", 97, ck, v)));
    expected.extend([(4, 40), (3, 30), (2, 20), (1, 10)].map(|(ck, v)| row("c", 99, ck, v)));
    expected.extend([(4, 40), (1, 10)].map(|(ck, v)| row("b", 98, ck, v)));
    assert_eq!(lines, expected);
    // --at alone means that mapping. (c, 4) and the static value that was written with it have expired.
    let later = csv(&[&source, "--at", "2031-01-01"]);
    expected.retain(|line| !line.starts_with("c,4"));
    let expected: Vec<String> = expected.iter().map(|line| line.replace(",99,", ",,")).collect();
    assert_eq!(later, expected);
}

#[test]
fn everything_is_in_the_full_mapping() {
    let source = address(table());
    let kinds = |options: &[&str]| {
        let arguments = [&[&*source, "--columns", "mutation.kind"], options].concat();
        csv(&arguments).split_off(1)
    };
    let all = kinds(&[]);
    assert_eq!(all.len(), 16, "{all:?}");
    let count = |kind: &str| all.iter().filter(|line| line.contains(&format!("\"{kind}\""))).count();
    let counts = ["row", "static", "range_start_exclusive", "range_end"].map(count);
    assert_eq!(counts, [11, 3, 1, 1], "{all:?}");
    // The deleted rows of one SSTable are there if it is read alone.
    let inserted = table().join("oa-2-big-Data.db");
    assert_eq!(run(["count", &address(&inserted)]).succeeded(), "15\n");
    assert_eq!(
        run(["count", &address(inserted), "--mapping", "logical", "--at", "1800000000"]).succeeded(),
        "12\n"
    );
}

#[test]
fn every_command_takes_them() {
    let folder = Folder::new();
    let source = address(table());
    let parquet = folder.path("t.parquet");
    run(["copy", &source, &parquet, "--quiet"]).succeeded();
    assert!(run(["diff", &source, &parquet]).succeeded().contains("the same: 16 rows"));
    let shown = run(["show", &parquet, "--json"]).succeeded();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let keys: Vec<&str> =
        shown["key_values"].as_array().unwrap().iter().filter_map(|pair| pair["key"].as_str()).collect();
    assert!(keys.contains(&"marquetry.mapping"), "{keys:?}");
    let found =
        run(["find", &source, "pk = 'a' AND ck = 1 AND mutation.kind = 'row'", "--columns", "v"]).succeeded();
    assert_eq!(found, "  v\n100\n");
    assert_eq!(run(["count", &source, "--where", "v > 50"]).succeeded(), "2\n");
    // CQL has no place for what only the full mapping has, so rows are what a SELECT returns.
    // The table is as its definition has it, unless a key is given.
    let cql = run(["cql", &source, "--table", "ks.u", "--at", "2027-01-01"]).succeeded();
    let table = "CREATE TABLE ks.u (\n    pk text,\n    ck int,\n    st int STATIC,\n    v int,\n    tags set<text>,\n    \
                 PRIMARY KEY (pk, ck)\n) WITH CLUSTERING ORDER BY (ck DESC);\n";
    assert!(cql.starts_with(table) && cql.contains(", {'x', 'y4'});\n"), "{cql}");
    assert_eq!(
        run(["copy", &source, "-", "--to", "cql", "--table", "ks.u", "--at", "2027-01-01"]).succeeded(),
        cql
    );
    run(["cql", &source, "--table", "ks.u", "--mapping", "full"]).failed(1, &["--mapping logical"]);
    let cql = run(["cql", &source, "--table", "ks.t", "--key", "pk, ck", "--at", "2027-01-01"]).succeeded();
    assert_eq!(cql.matches("INSERT INTO ks.t (pk, ck, st, v").count(), 11, "{cql}");
    assert!(!cql.contains("mutation"), "{cql}");
    let sorted = folder.path("sorted.parquet");
    run([
        "copy",
        &source,
        &sorted,
        "--mapping",
        "logical",
        "--at",
        "2027-01-01",
        "--sort",
        "v desc",
        "--quiet",
    ])
    .succeeded();
    assert_eq!(csv(&[&sorted, "--columns", "v", "-n", "2"]), ["v", "900", "100"]);
}

/// Ranges that meet have no partition in common, and none is lost.
#[test]
fn token_ranges_are_parts_of_the_table() {
    let source = address(table());
    let keys = |range: &str| {
        let mut lines = csv(&[&source, "--token-range", range, "--columns", "pk", "--at", "2027-01-01"]);
        lines.dedup();
        lines.split_off(1)
    };
    assert_eq!(keys(":"), ["a", "c", "b"]);
    let largest: Value =
        serde_json::from_str(&run(["show", &source, "--json", "--largest", "9"]).succeeded()).unwrap();
    let token = |key: &str| {
        let of = |it: &&Value| it["key"] == format!("'{key}'");
        let found = largest["largest_partitions"].as_array().unwrap().iter().find(of).unwrap().clone();
        found["token"].as_i64().unwrap()
    };
    let [a, b, c] = ["a", "b", "c"].map(token);
    assert!(a < c && c < b);
    assert_eq!(keys(&format!("{a}:{c}")), ["c"]);
    assert_eq!(keys(&format!(":{a}")), ["a"]);
    assert_eq!(keys(&format!("{}:{c}", a - 1)), ["a", "c"]);
    assert_eq!(keys(&format!("{c}:")), ["b"]);
    // Around the ring, in the order of tokens all the same.
    assert_eq!(keys(&format!("{c}:{a}")), ["a", "b"]);
    assert_eq!(keys(&format!("{b}:{}", a - 1)), [""; 0]);
    let wrong = run(["rows", &source, "--token-range", "1"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("'1' is not two tokens, such as"), "{}", wrong.err);
}

/// Snapshots, and backups of several nodes: SSTables of one table somewhere below a directory.
#[test]
fn snapshots_and_backups() {
    let folder = Folder::new();
    let root = folder.root();
    let count = |path: &str, options: &[&str]| {
        let source = address(root.join(path));
        run([&["count", &source, "--at", "2027-01-01"], options].concat()).succeeded()
    };
    let columns =
        |path: &str| csv(&[&address(root.join(path)), "--at", "2027-01-01", "-n", "0"]).swap_remove(0);

    // A server's directory: its snapshots, backups and indexes are other sets.
    let server = format!("data/ks/t-{ID}");
    copy_sstables("oa-2", &root.join(&server));
    copy_sstables("oa-", &root.join(&server).join("snapshots/daily"));
    copy_sstables("nb-", &root.join(&server).join("backups"));
    copy_sstables("oa-3", &root.join(&server).join(".t_v_idx"));
    assert_eq!(count(&server, &[]), "12\n");
    assert_eq!(count(&format!("{server}/snapshots/daily"), &[]), "10\n");
    assert_eq!(columns(&server), "pk0,ck0,st,v,tags");
    fs::copy(table().join("schema.cql"), root.join(&server).join("snapshots/daily/schema.cql")).unwrap();
    assert_eq!(columns(&format!("{server}/snapshots/daily")), "pk,ck,st,v,tags");
    for file in fs::read_dir(root.join(&server)).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            fs::remove_file(file).unwrap();
        }
    }
    run(["count", &address(root.join(&server))])
        .failed(2, &["no SSTable but those in", "name the one that is wanted"]);

    // ScyllaDB Manager, of three nodes.
    for (node, prefix) in [("n1", "oa-2"), ("n2", "nb-"), ("n3", "oa-3")] {
        let path = format!("backup/sst/cluster/c/dc/dc1/node/{node}/keyspace/ks/table/t/{ID}");
        copy_sstables(prefix, &root.join(path));
    }
    assert_eq!(count("backup", &[]), "11\n");
    assert_eq!(count("backup/sst/cluster/c/dc/*/node/n[12]/keyspace/ks/table/t", &[]), "13\n");
    let described: Value =
        serde_json::from_str(&run(["show", "--json", &address(root.join("backup"))]).succeeded()).unwrap();
    assert_eq!(
        (&described["table"], described["sstables"].as_array().unwrap().len()),
        (&Value::from("ks.t"), 3)
    );

    // Medusa: the definition is among a backup's metadata.
    copy_sstables("oa-2", &root.join(format!("medusa/node1/first/data/ks/t-{ID}")));
    copy_sstables("nb-", &root.join(format!("medusa/node2/first/data/ks/t-{ID}")));
    fs::create_dir_all(root.join("medusa/node1/first/meta")).unwrap();
    let other = "CREATE TABLE ks.other (pk text, ck int, PRIMARY KEY (pk, ck));";
    let schema = fs::read_to_string(table().join("schema.cql")).unwrap();
    fs::write(root.join("medusa/node1/first/meta/schema.cql"), format!("{other}\n{schema}")).unwrap();
    assert_eq!((count("medusa", &[]), columns("medusa")), ("13\n".to_owned(), "pk,ck,st,v,tags".to_owned()));

    // Two tables, and one that was dropped and created again.
    copy_sstables("oa-2", &root.join(format!("two/ks/other-{ID}")));
    copy_sstables("oa-2", &root.join(format!("two/ks/t-{ID}")));
    run(["count", &address(root.join("two"))])
        .failed(2, &["SSTables of 2 tables: ks.other (", "name the directory of one"]);
    copy_sstables("oa-2", &root.join(format!("again/ks/t-{ID}")));
    copy_sstables("oa-2", &root.join(format!("again/ks/t-{}", ID.replace('0', "f"))));
    run(["count", &address(root.join("again"))]).failed(2, &["SSTables of 2 tables: ks.t ("]);
}

/// What is incomplete or broken is an error that names the file, never less of the table.
#[test]
fn what_is_broken_is_said() {
    let folder = Folder::new();
    let broken = |name: &str, break_it: &dyn Fn(&Path)| {
        let path = folder.root().join(name);
        copy_sstables("", &path);
        break_it(&path);
        run(["count", &address(path)])
    };
    let remove = |name: &'static str| move |path: &Path| fs::remove_file(path.join(name)).unwrap();
    let write = |name: &'static str| move |path: &Path| fs::write(path.join(name), "").unwrap();
    broken("toc", &remove("oa-2-big-TOC.txt"))
        .failed(1, &["oa-2-big-Data.db: an incomplete SSTable: it has no TOC.txt"]);
    broken("filter", &remove("nb-2-big-Filter.db"))
        .failed(1, &["nb-2-big-Data.db: an incomplete SSTable: Filter.db is listed"]);
    broken("data", &remove("oa-3-big-Data.db"))
        .failed(1, &["an incomplete SSTable: Data.db is listed in TOC.txt"]);
    broken("log", &write("nb_txn_compaction_0a.log"))
        .failed(1, &["nb_txn_compaction_0a.log: SSTables here are being written"]);
    broken("old", &write("ks-t-ka-1-Data.db"))
        .failed(1, &["ks-t-ka-1-Data.db: an SSTable of a version before `ma`"]);
    broken("tmp", &write("ks-t-tmp-ka-1-Data.db")).failed(1, &["ks-t-tmp-ka-1-Data.db: a temporary file"]);
    broken("new", &write("zz-9-big-Data.db")).failed(1, &["zz-9-big-Data.db: SSTables of version \"zz\""]);
    broken("older", &write("nb-2-big-Data.db.sm_20240101000000UTC"))
        .failed(1, &["an SSTable of an older backup"]);

    type Change = fn(&mut Vec<u8>);
    let change = |name: &'static str, change: Change| {
        move |path: &Path| {
            let mut bytes = fs::read(path.join(name)).unwrap();
            change(&mut bytes);
            fs::write(path.join(name), bytes).unwrap();
        }
    };
    let flip: Change = |bytes: &mut Vec<u8>| *bytes.get_mut(20).unwrap() ^= 1;
    broken("flipped", &change("oa-2-big-Data.db", flip)).failed(1, &["oa-2-big-Data.db: ", "CRC-32", "byte"]);
    let cut: Change = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    broken("cut", &change("oa-2-big-Data.db", cut)).failed(1, &["oa-2-big-Data.db: ", "byte"]);
    broken("statistics", &change("nb-2-big-Statistics.db", cut))
        .failed(1, &["nb-2-big-Statistics.db: ", "byte"]);
    broken("chunks", &change("oa-3-big-CompressionInfo.db", cut))
        .failed(1, &["oa-3-big-CompressionInfo.db: "]);
    let other: Change = |bytes: &mut Vec<u8>| *bytes = b"12345".to_vec();
    broken("digest", &change("oa-2-big-Digest.crc32", other))
        .failed(1, &["oa-2-big-Data.db: ", "Digest.crc32"]);
    let no_number: Change = |bytes: &mut Vec<u8>| *bytes = b"x".to_vec();
    broken("no-digest", &change("oa-2-big-Digest.crc32", no_number))
        .failed(1, &["oa-2-big-Digest.crc32: a digest that is not"]);

    folder.write("empty/notes.txt", "nothing here");
    run(["count", &address(folder.root().join("empty"))]).failed(3, &["empty: no SSTable"]);
    run(["count", &address(folder.root().join("empty/notes.txt"))])
        .failed(3, &["notes.txt: not the name of an SSTable's file"]);
    run(["count", &address(folder.root().join("nowhere"))])
        .failed(3, &["nowhere: no such file or directory"]);
}

/// `CREATE TABLE` names keys, and says which columns there are.
#[test]
fn definitions() {
    let folder = Folder::new();
    let source = address(table());
    let heading = |options: &[&str]| {
        csv(&[&[&*source, "-n", "0", "--at", "2027-01-01"], options].concat()).swap_remove(0)
    };
    assert_eq!(heading(&[]), "pk,ck,st,v,tags");
    assert_eq!(heading(&["--schema", "none"]), "pk0,ck0,st,v,tags");
    let of = |columns: &str| {
        format!("CREATE TABLE x.y ({columns}, PRIMARY KEY (key, c)) WITH CLUSTERING ORDER BY (c DESC)")
    };
    // `v` was dropped, `new` was added.
    let other = of("key text, c int, st int static, tags set<text>, new bigint");
    assert_eq!(heading(&["--schema", &other]), "key,c,st,new,tags");
    let file = folder.write("other.cql", &other);
    assert_eq!(heading(&["--schema-file", &file]), "key,c,st,new,tags");
    assert_eq!(heading(&["--schema", &file]), "key,c,st,new,tags");
    let rows = csv(&[&source, "--schema", &file, "--at", "2027-01-01", "--columns", "key,c,new", "-n", "1"]);
    // Of (a, 9) only `v` was written, so it is gone with that.
    assert_eq!(rows, ["key,c,new", "a,4,"]);
    for (columns, said) in [
        (
            "key int, c int",
            "the partition key of x.y are (key int) by its definition, and (text) in an SSTable",
        ),
        (
            "key text, c int, v text",
            "the definition of x.y has the column \"v\" as text, and an SSTable has it as int",
        ),
    ] {
        run(["count", &source, "--schema", &of(columns)]).failed(2, &[said]);
    }
    let file = folder.write("bad.cql", "\nCREATE TABLE (");
    run(["count", &source, "--schema", &file]).failed(2, &["bad.cql: line 2: "]);
    run(["count", &source, "--schema", &folder.path("lost.cql")]).failed(3, &["lost.cql: no such file"]);
    let two = folder.write(
        "two.cql",
        format!("{}; {};", of("key text, c int"), of("key text, c int").replace("x.y", "x.z")),
    );
    run(["count", &source, "--schema", &two]).failed(2, &["may be of x.y and of x.z"]);
    run(["count", &source, "--schema", "user text, day date"])
        .failed(3, &["no CREATE TABLE, which SSTables want"]);
}

/// What is not as in the SSTables is said, unless it was asked for.
#[test]
fn what_is_left_out_is_said() {
    let folder = Folder::new();
    let source = address(table());
    let file = folder.write(
        "short.cql",
        "CREATE TABLE ks.t (pk text, ck int, v int, PRIMARY KEY (pk, ck)) WITH CLUSTERING ORDER BY (ck DESC)",
    );
    let csv = ["--format", "csv", "-n", "1"];
    let said = |source: &str, more: &[&str]| run([&["rows", source], &csv[..], more].concat());
    let left_out = format!("left out: st, tags (not in {file})");
    let short = said(&source, &["--schema", &file]);
    assert!(short.code == Some(0) && short.err.contains(&left_out), "{}", short.err);
    assert!(!said(&source, &["--schema", &file, "--quiet"]).err.contains("left out"));
    let parquet = folder.path("short.parquet");
    let copied = run(["copy", &source, &parquet, "--schema", &file]);
    assert!(copied.code == Some(0) && copied.err.contains(&left_out), "{}", copied.err);
    let shown = run(["show", &source, "--schema-file", &file]).succeeded();
    assert!(shown.contains(&format!("  note            {left_out}\n")), "{shown}");
    assert!(!said(&source, &[]).err.contains("note"));

    let nameless = folder.root().join("nameless");
    copy_sstables("oa-2", &nameless);
    let unknown = "the names of key columns are not known (pk0, ck0): there is no schema.cql; ";
    let err = said(&address(&nameless), &[]).err;
    assert!(err.contains(unknown) && err.contains("--schema FILE"), "{err}");
    assert!(!said(&address(&nameless), &["--schema", "none"]).err.contains("not known"));
    assert!(run(["show", &address(&nameless)]).succeeded().contains(unknown));
    // No table is created with such names, unless that is asked for: then somebody looks for a server.
    let source = address(&nameless);
    for more in [&[][..], &["--mapping", "logical"]] {
        let create = ["copy", &source, "cql://127.0.0.1:1/ks.t", "--create", "--quiet"];
        let known = "no table is created with names that are made up; --schema FILE";
        run([&create[..], more].concat())
            .failed(2, &["the names of key columns are not known (pk0, ck0): there is no schema.cql", known]);
        run([&create[..], more, &["--schema", "none"]].concat()).failed(3, &["cannot connect"]);
    }
    // Above the SSTables may be anything; beside them, the definition.
    folder.write("schema.cql", "CREATE TABLE (");
    assert!(said(&address(&nameless), &[]).err.contains("schema.cql cannot be read (line 1: "));
    let beside = |text: &str| {
        folder.write("nameless/schema.cql", text);
        said(&address(&nameless), &[])
    };
    let advice = "'none' stands for no definition";
    beside("CREATE TABLE (").failed(2, &["nameless/schema.cql: line 1: ", advice]);
    beside("CREATE TABLE ks.t (pk int PRIMARY KEY)")
        .failed(2, &["nameless/schema.cql: the partition key of ks.t", advice]);
    let two = "CREATE TABLE ks.a (pk int PRIMARY KEY); CREATE TABLE ks.b (pk int PRIMARY KEY)";
    beside(two)
        .failed(2, &["no definition of a table that the SSTables are of (2 tables are defined)", advice]);
    // As Cassandra leaves it for some tables.
    let commented = beside("/* CREATE TABLE ks.t (pk text PRIMARY KEY) */");
    assert!(
        commented.code == Some(0) && commented.err.contains("schema.cql has no CREATE TABLE"),
        "{}",
        commented.err
    );
}

/// What a file says of its mapping is true of it.
#[test]
fn the_mapping_is_in_the_file() {
    let folder = Folder::new();
    let source = address(table());
    let keys = |source: &str, options: &[&str]| {
        let parquet = folder.path("keys.parquet");
        run([&["copy", source, &parquet, "--quiet", "--overwrite"], options].concat()).succeeded();
        let shown: Value = serde_json::from_str(&run(["show", &parquet, "--json"]).succeeded()).unwrap();
        let pairs = shown["key_values"].as_array().unwrap().iter();
        let mut pairs: Vec<String> = pairs
            .filter(|pair| pair["key"].as_str().unwrap().starts_with("marquetry."))
            .map(|pair| match pair["key"].as_str().unwrap() {
                "marquetry.table.columns" => "columns".to_owned(),
                "marquetry.table.schema" => "schema".to_owned(),
                key => {
                    format!("{}={}", key.trim_start_matches("marquetry."), pair["value"].as_str().unwrap())
                }
            })
            .collect();
        pairs.sort_unstable();
        pairs.join(" ")
    };
    let full = "columns mapping.group=mutation mapping.version=1 mapping=full schema table.name=ks.t";
    assert_eq!(keys(&source, &[]), full);
    assert_eq!(keys(&source, &["--where", "v > 50"]), full);
    assert_eq!(
        keys(&source, &["--at", "1800000000", "--token-range", "0:"]),
        "columns mapping.at=1800000000 mapping.version=1 mapping=logical schema table.name=ks.t table.tokens=0:"
    );
    for options in [&["--columns", "pk,mutation.kind"], &["--rename", "v=w"], &["--types", "v=bigint"]] {
        assert_eq!(keys(&source, options), "schema table.name=ks.t", "{options:?}");
    }
    let parquet = folder.path("full.parquet");
    run(["copy", &source, &parquet, "--quiet"]).succeeded();
    assert_eq!(keys(&parquet, &[]), full);
    assert_eq!(keys(&parquet, &["--columns", "pk,v"]), "schema table.name=ks.t");
}

#[test]
fn sstables_are_shown() {
    let source = address(table());
    let shown = run(["show", &source, "--largest", "2"]).succeeded();
    for line in [
        "  table           ks.t",
        "  SSTables        3 SSTables of version nb, oa",
        "  partitions      5",
        "  TTL             0 to 100,000,000 s",
        "  ck      int        clustering, descending",
        "  st      int        static",
        "  compression     LZ4Compressor, chunks of 4 KiB",
        "  partitioner     Murmur3Partitioner",
        "Largest partitions",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no {line:?} in {shown}");
    }
    // A directory and a file need no scheme.
    let directory = table();
    let directory = directory.to_str().unwrap();
    assert!(run(["show", directory]).succeeded().contains("3 SSTables"));
    assert!(
        run(["show", &format!("{directory}/nb-2-big-Data.db")])
            .succeeded()
            .contains("1 SSTable of version nb")
    );
    let json: Value = serde_json::from_str(&run(["show", "--json", directory]).succeeded()).unwrap();
    assert_eq!((&json["total"]["partitions"], &json["total"]["rows"]), (&Value::from(5), &Value::from(17)));
    assert_eq!(json["total"]["timestamp_max"], Value::from(3_000_000));
    assert_eq!(json["sstables"][0]["components"]["Data.db"], Value::from(57));
    assert_eq!(json["columns"][1]["role"], Value::from("clustering"));
    assert_eq!(json["largest_partitions"], Value::Null);
    assert!(shown.contains("  can be dropped  "), "{shown}");
    run(["show", &source, "--schema", "all.cql"]).failed(2, &["--schema-file FILE names the file"]);
    run(["show", &source, "--pages", "v"]).failed(2, &["--pages is not for SSTables"]);
    run(["show", "--largest", "3", &common::data("one.parquet")])
        .failed(2, &["--largest and --schema-file are for SSTables"]);
}

/// A destination that fills up: the error says which file and why, and nothing of it stays, under no name.
#[test]
#[cfg(unix)]
fn a_destination_that_fills_up_leaves_nothing() {
    use std::process::Command;
    let folder = Folder::new();
    let lines: Vec<String> = (0..60_000_u64)
        .map(|row| format!("{row},{:x}{:x}\n", row.wrapping_mul(0x9e37_79b9_7f4a_7c15), row * row))
        .collect();
    let rows = folder.write("rows.csv", format!("id,v\n{}", lines.concat()));
    let disk = folder.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let copy = |shell: &str, more: &[&str]| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            shell,
            env!("CARGO_BIN_EXE_marquetry"),
            "copy",
            &rows,
            &address(disk.join("new")),
        ]);
        command
            .args(["--table", "ks.t", "--key", "id", "--codec", "none", "-q"])
            .args(more)
            .env("DISK", &disk);
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    // A limit on the sizes of files stands in for a full disk, where nobody may mount one.
    let limited = "ulimit -f 1000; trap '' XFSZ; exec \"$0\" \"$@\"";
    for (more, object) in [(&[][..], "me-1-big-Data.db"), (&["--memory", "64K"], "disk")] {
        let (code, _, said) = copy(limited, more);
        assert!(
            code == Some(3) && said.contains(object) && said.to_lowercase().contains("file too large"),
            "{code:?} {said}"
        );
        assert_eq!(fs::read_dir(&disk).unwrap().count(), 0, "{said}");
    }
    let mounted = "mount -t tmpfs -o size=1m tmpfs \"$DISK\" || exit 77; \"$0\" \"$@\"; code=$?; ls -A \"$DISK\"; exit $code";
    let unshared = format!("exec unshare -rm sh -c '{mounted}' \"$0\" \"$@\"");
    let can_mount =
        Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs \"$0\""]).arg(&disk).output();
    if can_mount.is_ok_and(|output| output.status.success()) {
        for more in [&[][..], &["--memory", "64K"]] {
            let (code, left, said) = copy(&unshared, more);
            assert!(
                code == Some(3) && said.to_lowercase().contains("no space left on device"),
                "{code:?} {said}"
            );
            assert_eq!(left, "", "{said}");
        }
    }
    let (code, _, said) = copy("exec \"$0\" \"$@\"", &[]);
    assert!(code == Some(0) && disk.join("new/me-1-big-TOC.txt").exists(), "{said}");
}

/// Write times and deletions are not dropped by an option that says nothing of them.
#[test]
fn writes_are_not_made_rows_by_the_way() {
    let folder = Folder::new();
    let (source, to) = (address(table()), address(folder.path("new")));
    for option in [
        &["--columns", "pk,ck,v"][..],
        &["--rename", "v=w"],
        &["--types", "v=bigint"],
        &["--where", "v > 5"],
        &["--nulls", "null"],
        &["--key", "pk, ck"],
    ] {
        let arguments = ["copy", &source, &to].into_iter().chain(option.iter().copied());
        run(arguments).failed(2, &[option[0], "deletions would be lost", "--mapping logical"]);
        assert!(!folder.root().join("new").exists());
    }
    run([
        "copy",
        &source,
        &to,
        "--columns",
        "pk,ck,v",
        "--mapping",
        "logical",
        "--table",
        "ks.t",
        "--key",
        "pk, ck",
    ])
    .succeeded();
    assert!(folder.root().join("new/schema.cql").exists());
}

/// The same of a Parquet file of the mapping `full`, whose metadata say what its rows are: with other columns they would be rows.
#[test]
fn writes_in_a_parquet_file_are_not_made_rows_either() {
    let folder = Folder::new();
    let (full, to) = (folder.path("full.parquet"), address(folder.path("new")));
    run(["copy", &address(table()), &full]).succeeded();
    let names = folder.path("names");
    fs::write(&names, "pk\nck\nv\n").unwrap();
    for option in
        [["--columns", "pk,ck,v"], ["--columns-file", &names], ["--rename", "v=w"], ["--types", "v=bigint"]]
    {
        for more in [&[&*to, "--table", "ks.t", "--key", "pk, ck"][..], &["cql://127.0.0.1:9/ks.t"]] {
            let arguments = ["copy", &full].into_iter().chain(more.iter().copied()).chain(option);
            run(arguments).failed(2, &[option[0], "writes", "what they delete would become rows"]);
        }
    }
    assert!(!folder.root().join("new").exists());
    // Into a file they are columns like others.
    run(["copy", &full, &folder.path("some.parquet"), "--columns", "pk,ck,v"]).succeeded();
}

/// Columns whose names begin like that of the group of what is written about rows.
#[test]
fn columns_called_like_mutations() {
    let folder = Folder::new();
    let (rows, schema) = (folder.path("rows.jsonl"), folder.path("schema.cql"));
    fs::write(
        &rows,
        "{\"k\": 1, \"mutation_log\": {\"expires_at\": 5, \"local_deletion_time\": 6}, \"mutation\": 7}\n",
    )
    .unwrap();
    let statements = "CREATE TYPE ks.ev (expires_at bigint, local_deletion_time bigint);
        CREATE TABLE ks.t (k bigint PRIMARY KEY, mutation_log frozen<ev>, mutation bigint);";
    fs::write(&schema, statements).unwrap();
    let [new, full, again, back] = ["new", "full.parquet", "again", "back"].map(|name| folder.path(name));
    run(["copy", &rows, &address(&new), "--schema-cql", &schema]).succeeded();
    run(["copy", &address(&new), &full]).succeeded();
    run(["copy", &full, &address(&back)]).succeeded();
    run(["copy", &address(&new), &address(&again)]).succeeded();
    for other in [address(&back), address(&again)] {
        run(["diff", &address(&new), &other]).succeeded();
    }
}

#[test]
fn options_of_sstables_are_for_them() {
    let parquet = common::data("one.parquet");
    for option in [&["--mapping", "full"][..], &["--at", "2024-01-01"], &["--token-range", "-1:1"]] {
        let arguments = [&["count", &*parquet], option].concat();
        run(arguments).failed(2, &["is for SSTables"]);
    }
    let source = address(table());
    run(["count", &source, "--delimiter", ";"]).failed(2, &["--delimiter is for CSV"]);
    for others in [[&*source, &*source], [&source, &parquet], [&parquet, &source]] {
        run([&["count"], &others[..]].concat()).failed(2, &["SSTables are read alone"]);
    }
    run(["count", "sstable:"]).failed(2, &["sstable: names no SSTables"]);
    for option in ["full", "verbatim"] {
        run(["count", &source, "--mapping", option, "--at", "2026-01-01"])
            .failed(2, &["--at is for --mapping logical"]);
    }
    let directory = table();
    let directory = directory.to_str().unwrap();
    let said = run(["rows", directory]);
    assert!(
        said.code != Some(0) && said.err.contains(&format!("SSTables are the address sstable:{directory}")),
        "{}",
        said.err
    );
    let data = format!("{directory}/nb-2-big-Data.db");
    let said = run(["rows", &data]);
    assert!(
        said.code != Some(0) && said.err.contains(&format!("SSTables are the address sstable:{data}")),
        "{}",
        said.err
    );
    run(["copy", &parquet, &source]).failed(1, &["SSTables go to a new directory"]);
}

/// Of the same statements, all versions and compressors have the same rows. How many there are follows from the statements
/// (`schema.py`, beside them).
#[test]
fn fixtures_have_the_rows_that_were_written() {
    let Some(folders) = marquetry_testing::sstables() else { return };
    let mut read = 0;
    for entry in fs::read_dir(&folders[0]).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for (table, logical) in [("mix", 967), ("wide", 3592), ("cnt", 20), ("simple", 2000)] {
            let source = address(folder.join(table));
            let counted = run(["count", &source, "--mapping", "logical", "--at", "2026-11-21"]).succeeded();
            assert_eq!(counted, format!("{logical}\n"), "{source}");
            let full = run(["count", &source]).succeeded();
            let half = |range: &str| run(["count", &source, "--token-range", range]).succeeded();
            let number = |text: &str| text.trim().parse::<u64>().unwrap();
            assert_eq!(number(&full), number(&half(":0")) + number(&half("0:")), "{source}");
            read += 1;
        }
    }
    assert!(read >= 4, "no fixtures");
}

/// Cassandra 3.0 counts cells that are not deleted among what can be dropped, in 2038.
#[test]
fn cells_that_are_not_deleted_cannot_be_dropped() {
    let Some(folders) = marquetry_testing::sstables() else { return };
    let table = |legacy: &PathBuf| legacy.join("mc/legacy_tables/legacy_mc_simple");
    if let Some(table) = folders.iter().map(table).find(|table| table.is_dir()) {
        let shown = run(["show", "--json", &address(table)]).succeeded();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(
            (&shown["total"]["cells"], &shown["total"]["droppable"]),
            (&Value::from(5), &Value::from(0)),
            "{shown}"
        );
    }
}

/// A snapshot of a view has the view's definition, and not its table's.
#[test]
fn a_view_alone_names_the_keys() {
    let folder = Folder::new();
    let snapshot = folder.root().join("snapshot");
    copy_sstables("oa-2", &snapshot);
    let view = "CREATE MATERIALIZED VIEW ks.v AS SELECT * FROM ks.u WHERE a IS NOT NULL AND b IS NOT NULL PRIMARY KEY (a, b);";
    fs::write(snapshot.join("schema.cql"), view).unwrap();
    let lines = csv(&[&address(&snapshot), "--mapping", "logical"]);
    assert!(lines[0].starts_with("a,b,"), "{}", lines[0]);
}

/// Of a column that was dropped and added again, values of before do not count: neither in a row nor in a collection.
#[test]
fn what_was_written_before_a_column_was_dropped_is_left_out() {
    let folder = Folder::new();
    let schema = folder.root().join("schema.cql");
    let table = fs::read_to_string(table().join("schema.cql")).unwrap();
    let source = address(self::table());
    let rows = |statements: &str| {
        fs::write(&schema, format!("{table}\n{statements}")).unwrap();
        csv(&[&source, "--mapping", "logical", "--at", "2027-01-01", "--schema", schema.to_str().unwrap()])
    };
    let before = rows("");
    let after = rows(
        "ALTER TABLE ks.t DROP (v, tags) USING TIMESTAMP 1000000;\nALTER TABLE ks.t ADD v int;\nALTER TABLE ks.t ADD tags set<text>;",
    );
    let number = |line: &str| line.split(',').nth(3).unwrap().to_owned();
    assert_eq!(before.len(), after.len(), "rows have markers");
    for (before, after) in before.iter().zip(&after).skip(1) {
        let key = |line: &str| line.splitn(4, ',').take(3).collect::<Vec<_>>().join(",");
        assert_eq!(key(before), key(after));
        let v = number(before);
        // Only these two were written later.
        assert_eq!(number(after), if ["100", "900"].contains(&&*v) { v } else { String::new() }, "{after}");
        assert!(after.ends_with(','), "{after}");
    }
    // Of a column that was not added again there is nothing.
    let dropped = rows("ALTER TABLE ks.t DROP v USING TIMESTAMP 1500000;");
    assert_eq!(dropped[0], "pk,ck,st,tags");
}
