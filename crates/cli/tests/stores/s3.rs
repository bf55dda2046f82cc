//! S3.

use std::time::Duration;

use marquetry_testing::http::{Act, HttpProxy};
use marquetry_testing::stores::{S3, s3, s3_with_tls};

use super::common::{Run, data};
use super::{Folder, numbers, run_with};

/// The command beside a server of S3, and a bucket of the test's own.
pub(super) struct Bucket {
    pub(super) server: &'static S3,
    pub(super) name: &'static str,
    /// What the command takes for the server.
    pub(super) endpoint: String,
}

impl Bucket {
    pub(super) fn new(name: &'static str) -> Option<Bucket> {
        let server = s3()?;
        server.create_bucket(name);
        Some(Bucket { server, name, endpoint: format!("http://{}", server.at) })
    }

    /// The same behind a proxy.
    pub(super) fn behind(&self, proxy: &HttpProxy) -> Bucket {
        Bucket { endpoint: format!("http://{}", proxy.at), ..*self }
    }

    pub(super) fn variables(&self) -> [(&'static str, &str); 4] {
        [
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ACCESS_KEY_ID", "someone"),
            ("AWS_SECRET_ACCESS_KEY", "a-secret"),
            ("AWS_REGION", "us-east-1"),
        ]
    }

    /// Runs the command; `@` in an argument is the bucket.
    pub(super) fn run<const N: usize>(&self, arguments: [&str; N]) -> Run {
        let arguments = self.spelled(arguments);
        run_with(&self.variables(), arguments.iter().map(String::as_str))
    }

    pub(super) fn spelled<const N: usize>(&self, arguments: [&str; N]) -> [String; N] {
        arguments.map(|argument| argument.replace('@', &format!("s3://{}", self.name)))
    }

    pub(super) fn keys(&self) -> String {
        self.server.keys(self.name).join(" ")
    }

    pub(super) fn uploads(&self) -> String {
        self.server.uploads(self.name).join(" ")
    }
}

/// A node's SSTables become objects, once; those of SSTables that are gone are removed.
#[test]
fn sstables_of_a_node_become_objects() {
    let Some(bucket) = Bucket::new("watched") else { return };
    let folder = Folder::new();
    let place = "ks/t-0123456789abcdef0123456789abcdef";
    let table = std::path::Path::new(&folder.path("data")).join(place);
    std::fs::create_dir_all(&table).unwrap();
    for file in std::fs::read_dir(data(&format!("sstables/{place}"))).unwrap() {
        let file = file.unwrap();
        std::fs::write(table.join(file.file_name()), std::fs::read(file.path()).unwrap()).unwrap();
    }
    let node = folder.path("data");
    let watch = || bucket.run(["watch", &node, "--to", "@/lake/", "--keep", "current", "--once"]).succeeded();
    assert!(watch().contains("3 SSTables converted"));
    let keys = bucket.keys();
    assert_eq!(keys.matches(".parquet").count(), 3, "{keys}");
    assert!(keys.starts_with("lake/_marquetry_watch ") && keys.contains(&format!("lake/{place}/oa-2-big-")));
    let count = ["count", "@/lake/", "--union"];
    assert_eq!(bucket.run(count).succeeded(), "19\n");
    assert!(watch().contains("0 SSTables converted"));
    for file in std::fs::read_dir(&table).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains("oa-2-big") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert!(watch().contains(", 1 removed"));
    assert_eq!(bucket.run(count).succeeded(), "4\n");
    // It is one watcher's.
    let other = folder.path("data/.other");
    bucket
        .run(["watch", &node, "--to", "@/lake", "--keep", "current", "--once", "--work", &other])
        .failed(2, &["the destination is that of another watcher"]);
}

#[test]
fn every_command_reads_and_copy_writes() {
    let Some(bucket) = Bucket::new("commands") else { return };
    let (folder, file) = (Folder::new(), data("types.parquet"));
    let wrote = bucket.run(["copy", &file, "@/a b/types.parquet"]).succeeded();
    assert!(wrote.contains("3 rows written to s3://commands/a b/types.parquet"), "{wrote}");
    assert_eq!(bucket.keys(), "a b/types.parquet");
    bucket.run(["diff", &file, "@/a b/types.parquet"]).succeeded();
    let copied = folder.path("types.parquet");
    run_with(&[], ["copy", &file, &copied]).succeeded();
    let here = run_with(&[], ["rows", &file, "--format", "csv"]).succeeded();
    assert_eq!(bucket.run(["rows", "@/a b/types.parquet", "--format", "csv"]).succeeded(), here);
    let here = run_with(&[], ["cql", &file, "--table", "k.t", "--key", "id"]).succeeded();
    assert_eq!(bucket.run(["cql", "@/a b/types.parquet", "--table", "k.t", "--key", "id"]).succeeded(), here);
    assert!(bucket.run(["show", "@/a b/types.parquet"]).succeeded().contains("3 in 1 row group"));
    let pages = |from: &str| {
        bucket.run(["show", "--pages", "id", from]).succeeded().lines().skip(1).collect::<String>()
    };
    assert_eq!(pages("@/a b/types.parquet"), pages(&copied));
    // From one place of the store to another, and back.
    bucket.run(["copy", "@/a b/types.parquet", "@/types.jsonl.zst", "--columns", "id,Text"]).succeeded();
    bucket.run(["copy", "@/types.jsonl.zst", &folder.path("types.jsonl")]).succeeded();
    assert_eq!(folder.read("types.jsonl").lines().count(), 3);
    // Local files and objects are one table.
    let both =
        bucket.run(["rows", &file, "@/a b/types.parquet", "--columns", "id", "--format", "csv"]).succeeded();
    assert_eq!(both.lines().count(), 7);
}

#[test]
fn patterns_directories_and_partitions() {
    let Some(bucket) = Bucket::new("tree") else { return };
    let folder = Folder::new();
    let csv = folder.write("trips.csv", "year,id\n2023,1\n2024,2\n2024,3\n");
    bucket.run(["copy", &csv, "@/trips/", "--partition-by", "year"]).succeeded();
    assert_eq!(bucket.keys(), "trips/year=2023/part-00000.parquet trips/year=2024/part-00000.parquet");
    bucket.run(["copy", &csv, "@/trips/_temporary/x.parquet"]).succeeded();
    bucket.run(["copy", &csv, "@/trips/notes.csv"]).succeeded();
    let rows = |from: &str| {
        let rows = bucket.run(["rows", from, "--columns", "id", "--format", "csv"]).succeeded();
        rows.lines().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rows("@/trips/**/*.parquet"), "1 2 3");
    assert_eq!(rows("@/trips/year=*"), "1 2 3");
    assert_eq!(rows("@/trips/year=2024/"), "2 3");
    assert_eq!(rows("@/trips/year=2024"), "2 3");
    assert_eq!(rows("@/trips/notes.csv"), "1 2 3");
    let years =
        bucket.run(["rows", "@/trips/**/*.parquet", "--columns", "year", "--format", "csv"]).succeeded();
    assert_eq!(years, "year\n2023\n2024\n2024\n");
    assert!(bucket.run(["show", "@/trips/year=*"]).succeeded().starts_with("2 files\n"));
    bucket.run(["rows", "@/trips/z*"]).failed(3, &["s3://tree/trips/z*: no object matches"]);
    bucket.run(["rows", "@/none/"]).failed(3, &["s3://tree/none/: a directory without"]);
}

/// What consoles create for a folder is no object of the table, and hinders nobody.
#[test]
fn objects_that_stand_for_folders() {
    let Some(bucket) = Bucket::new("folders") else { return };
    let folder = Folder::new();
    let csv = folder.write("trips.csv", "year,id\n2023,1\n2024,2\n");
    for marker in ["trips/", "trips/year=2024/", "trips/year=2025/"] {
        assert_eq!(bucket.server.ask("PUT", &format!("/folders/{marker}"), b"").status, 200);
    }
    bucket.run(["rows", "@/trips/"]).failed(3, &["s3://folders/trips/: a directory without"]);
    bucket.run(["copy", &csv, "@/trips/", "--partition-by", "year"]).succeeded();
    let rows = |from: &str| bucket.run(["rows", from, "--columns", "id", "--format", "csv"]).succeeded();
    for from in ["@/trips/", "@/trips", "@/trips/year=*", "@/trips/*"] {
        assert_eq!(rows(from), "id\n1\n2\n", "{from}");
    }
    bucket.run(["copy", &csv, "@/trips/", "--partition-by", "year"]).failed(1, &["is not empty"]);
    bucket.run(["copy", &csv, "@/trips/", "--partition-by", "year", "--overwrite"]).succeeded();
    assert_eq!(rows("@/trips/"), "id\n1\n2\n");
    // What has bytes is something else.
    assert_eq!(bucket.server.ask("PUT", "/folders/trips/notes", b"x").status, 200);
    bucket
        .run(["copy", &csv, "@/trips/", "--partition-by", "year", "--overwrite"])
        .failed(3, &["it contains notes"]);
}

/// However many files a directory has: each is asked for once, many side by side.
#[test]
fn a_hundred_files_are_asked_for_once_each() {
    let Some(bucket) = Bucket::new("many") else { return };
    let folder = Folder::new();
    let ids: String = (0..100).map(|id| format!("{id}\n")).collect();
    let csv = folder.write("ids.csv", &format!("id\n{ids}"));
    bucket.run(["copy", &csv, "@/ids/", "--file-rows", "1"]).succeeded();
    let proxy = HttpProxy::start(&bucket.server.at, Duration::from_millis(20), |_| Act::Pass);
    let behind = bucket.behind(&proxy);
    for from in ["@/ids/", "@/ids/*.parquet"] {
        let (before, asked) = (proxy.seen().rounds, proxy.seen().requests.len());
        let rows = behind.run(["rows", from, "--limit", "1", "--format", "csv"]).succeeded();
        assert_eq!(rows, "id\n0\n");
        let seen = proxy.seen();
        let requests = &seen.requests[asked..];
        assert!(requests.len() <= 110, "{}: {requests:#?}", requests.len());
        assert!(seen.rounds - before <= 30, "{} rounds", seen.rounds - before);
    }
}

#[test]
fn a_directory_is_replaced_as_a_whole_or_not_at_all() {
    let Some(bucket) = Bucket::new("replaced") else { return };
    let folder = Folder::new();
    let csv = folder.write("trips.csv", "year,id\n2023,1\n2024,2\n");
    let new = folder.write("new.csv", "year,id\n2024,5\n2025,6\n");
    bucket.run(["copy", &csv, "@/t/", "--partition-by", "year"]).succeeded();
    let before = bucket.keys();
    bucket.run(["copy", &new, "@/t/", "--partition-by", "year"]).failed(1, &["not empty", "--overwrite"]);
    assert_eq!(bucket.keys(), before);
    bucket.run(["copy", &new, "@/t/", "--partition-by", "year", "--overwrite"]).succeeded();
    assert_eq!(bucket.keys(), "t/year=2024/part-00000.parquet t/year=2025/part-00000.parquet");
    assert_eq!(bucket.run(["rows", "@/t/", "--columns", "id", "--format", "csv"]).succeeded(), "id\n5\n6\n");
    // What is not a table's stays, and so does all else.
    bucket.run(["copy", &csv, "@/t/notes.csv"]).succeeded();
    let before = bucket.keys();
    // With the code of a directory on disk, and without advice that does not help.
    let refused = bucket.run(["copy", &csv, "@/t/", "--overwrite"]);
    assert!(!refused.err.contains("--overwrite"), "{}", refused.err);
    refused.failed(3, &["it contains notes.csv, which is not a Parquet file and is not replaced"]);
    assert_eq!(bucket.keys(), before);
}

#[test]
fn a_copy_does_not_read_what_it_replaces() {
    let Some(bucket) = Bucket::new("self") else { return };
    let folder = Folder::new();
    let csv = folder.write("a.csv", "id\n1\n2\n");
    bucket.run(["copy", &csv, "@/t/a.parquet"]).succeeded();
    let rows = |from: &str| bucket.run(["rows", from, "--format", "csv"]).succeeded().lines().skip(1).count();
    for from in ["@/t/", "@/t/*.parquet", "S3://self/t/"] {
        bucket.run(["copy", from, "@/t/all.parquet", "--overwrite"]).succeeded();
        assert_eq!(rows("@/t/all.parquet"), 2, "{from}");
    }
    for _ in 0..2 {
        bucket.run(["copy", "@/t/", "@/t/out/", "--overwrite"]).succeeded();
        assert_eq!(rows("@/t/out/"), 4, "a.parquet and all.parquet");
    }
    // Named itself, an object is replaced by what is made of it.
    bucket.run(["copy", "@/t/out/", "@/t/out/", "--overwrite"]).succeeded();
    assert_eq!(rows("@/t/out/"), 4);
    bucket
        .run(["copy", "@/t/out/", "@/t/out/part-00000.parquet", "--overwrite"])
        .failed(3, &["s3://self/t/out/: no file but the destination itself"]);
}

/// By the first bytes of an object, which may have any name.
#[test]
fn an_object_of_parquet_is_compared_with_text() {
    let Some(bucket) = Bucket::new("beside") else { return };
    let folder = Folder::new();
    let (csv, odd) = (folder.write("a.csv", "id,n\n1,NA\n2,5\n"), folder.write("a.dat", "id,n\n1,NA\n2,5\n"));
    bucket.run(["copy", &csv, "@/a.parquet", "--null", "NA"]).succeeded();
    bucket.run(["diff", &csv, "@/a.parquet", "--null", "NA"]).succeeded();
    bucket.run(["diff", &odd, "@/a.parquet", "--null", "NA", "--from", "csv"]).succeeded();
    bucket.run(["diff", "@/a.parquet", "@/a.parquet", "--null", "NA"]).failed(2, &["--null is for CSV"]);
}

#[test]
fn an_object_is_replaced_only_on_request() {
    let Some(bucket) = Bucket::new("again") else { return };
    let (file, other) = (data("types.parquet"), data("nested.parquet"));
    bucket.run(["copy", &file, "@/a.parquet"]).succeeded();
    bucket
        .run(["copy", &other, "@/a.parquet"])
        .failed(1, &["s3://again/a.parquet: already exists; --overwrite"]);
    bucket.run(["diff", &file, "@/a.parquet"]).succeeded();
    bucket.run(["copy", &other, "@/a.parquet", "--overwrite"]).succeeded();
    bucket.run(["diff", &other, "@/a.parquet"]).succeeded();
    bucket.run(["copy", &file, "@/b.parquet", "--verify"]).failed(2, &["--verify is for"]);
    bucket.run(["copy", &file, "@/b.xml"]).failed(2, &["a name that ends in .parquet"]);
}

#[test]
fn errors_are_one_line_with_the_address_and_no_secret() {
    let Some(bucket) = Bucket::new("errors") else { return };
    bucket.run(["rows", "@/none.parquet"]).failed(3, &["s3://errors/none.parquet: ", "does not exist"]);
    bucket
        .run(["rows", "s3://no-such-bucket/a.parquet"])
        .failed(3, &["s3://no-such-bucket/a.parquet: ", "bucket does not exist"]);
    let file = data("types.parquet");
    bucket
        .run(["copy", &file, "s3://no-such-bucket/a.parquet"])
        .failed(3, &["s3://no-such-bucket/a.parquet: ", "bucket does not exist"]);
    bucket.run(["rows", "s3:///a.parquet"]).failed(2, &["without the name of a bucket"]);
    bucket.run(["rows", "@/a/../b.parquet"]).failed(2, &["'..'"]);
    // Nobody to ask, and nothing to ask with.
    let nobody = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
    ];
    run_with(&nobody, ["rows", "s3://b/a.parquet"])
        .failed(3, &["s3://b/a.parquet: no connection to the server"]);
    run_with(&[], ["rows", "s3://b/a.parquet"])
        .failed(3, &["s3://b/a.parquet: no credentials: set AWS_ACCESS_KEY_ID"]);
    run_with(&[], ["rows", "s3://b/*.parquet"]).failed(3, &["s3://b/*.parquet: no credentials"]);
    run_with(&[], ["rows", "az://b/a.parquet"])
        .failed(3, &["no credentials: set AZURE_STORAGE_ACCOUNT_NAME"]);
    // A server that refuses, and repeats what was signed.
    let proxy = HttpProxy::start(&bucket.server.at, Duration::ZERO, |_| Act::Status(403));
    let refused = bucket.behind(&proxy).run(["rows", "@/a.parquet"]);
    assert!(!refused.err.contains("a-secret"), "{}", refused.err);
    refused.failed(3, &["s3://errors/a.parquet: access denied; set AWS_ACCESS_KEY_ID"]);
}

#[test]
fn a_profile_has_credentials_and_an_endpoint() {
    let Some(bucket) = Bucket::new("profile") else { return };
    let folder = Folder::new();
    let file = data("types.parquet");
    bucket.run(["copy", &file, "@/a.parquet"]).succeeded();
    folder.write(".aws/credentials", "[work]\naws_access_key_id = me\naws_secret_access_key = secret\n");
    folder.write(
        ".aws/config",
        &format!("[profile work]\nregion = us-east-1\nendpoint_url = {}\n", bucket.endpoint),
    );
    let variables = [("HOME", folder.0.path().to_str().unwrap()), ("AWS_PROFILE", "work")];
    run_with(&variables, ["diff", &file, "s3://profile/a.parquet"]).succeeded();
}

#[test]
fn tls() {
    let folder = Folder::new();
    let Some((server, certificate)) = s3_with_tls(folder.0.path()) else { return };
    let endpoint = format!("https://{}", server.at);
    let mut variables = vec![
        ("AWS_ENDPOINT_URL", &*endpoint),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_REGION", "us-east-1"),
    ];
    // Who signed it is not known.
    run_with(&variables, ["rows", "s3://b/a.parquet"]).failed(3, &["no connection to the server"]);
    variables.push(("SSL_CERT_FILE", certificate.to_str().unwrap()));
    run_with(&variables, ["rows", "s3://b/a.parquet"]).failed(3, &["bucket does not exist"]);
}

/// The bar of the project: at most three requests one after another, and a tenth more bytes than the column has.
#[test]
fn one_column_of_a_hundred_takes_three_rounds_and_its_own_bytes() {
    let Some(bucket) = Bucket::new("columns") else { return };
    let (folder, file) = (Folder::new(), numbers(100));
    bucket.run(["copy", &file, "@/numbers.parquet"]).succeeded();
    // What is requested together is together in flight, however busy the machine is.
    let proxy = HttpProxy::start(&bucket.server.at, Duration::from_millis(300), |_| Act::Pass);
    let behind = bucket.behind(&proxy);
    behind.run(["copy", "@/numbers.parquet", &folder.path("c42.csv"), "--columns", "c42"]).succeeded();
    let (seen, column_bytes) = (proxy.seen(), 8 * super::ROWS as u64);
    assert!(seen.rounds <= 3, "{} rounds: {:#?}", seen.rounds, seen.requests);
    assert!(seen.bytes * 10 <= column_bytes * 11, "{} bytes for a column of {column_bytes}", seen.bytes);
    run_with(&[], ["copy", &file, &folder.path("here.csv"), "--columns", "c42"]).succeeded();
    assert!(folder.read("c42.csv") == folder.read("here.csv"));
    // All of it, with many requests at a time; each after the first reads on.
    behind.run(["copy", "@/numbers.parquet", &folder.path("all.parquet")]).succeeded();
    let all = proxy.seen();
    let (requests, rounds) = (all.requests.len() - seen.requests.len(), all.rounds - seen.rounds);
    assert!(rounds < requests as u64, "{rounds} rounds of {requests} requests");
    let file_bytes = std::fs::metadata(&file).unwrap().len();
    assert!(
        (all.bytes - seen.bytes) * 100 <= file_bytes * 102,
        "{} bytes of {file_bytes}",
        all.bytes - seen.bytes
    );
    run_with(&[], ["diff", &file, &folder.path("all.parquet")]).succeeded();
}
