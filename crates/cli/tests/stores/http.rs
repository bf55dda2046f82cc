//! Files of HTTP servers, which are only read.

use marquetry_testing::http::{FileServer, Ranges};

use super::common::data;
use super::{Folder, numbers, run_with};

fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> super::common::Run {
    run_with(&[], arguments)
}

#[test]
fn files_are_read_in_ranges() {
    for ranges in [Ranges::Tagged, Ranges::Untagged] {
        let server = FileServer::start(ranges);
        let (file, large) = (data("types.parquet"), numbers(20));
        server.put("/a/types.parquet", std::fs::read(&file).unwrap());
        server.put("/large.parquet", std::fs::read(&large).unwrap());
        let url = |path: &str| format!("http://{}{path}", server.at);
        run(["diff", &file, &url("/a/types.parquet")]).succeeded();
        run(["diff", &large, &url("/large.parquet")]).succeeded();
        run(["rows", &url("/a/types.parquet?signature=secret"), "--limit", "1"]).succeeded();
        assert!(run(["show", &url("/large.parquet")]).succeeded().contains("131,072"));
        run(["rows", &url("/none.parquet")]).failed(3, &[&url("/none.parquet: not found")]);
    }
}

#[test]
fn texts_are_read_even_where_there_are_no_ranges() {
    let folder = Folder::new();
    let text: String = (0..200_000).map(|id| format!("{id},{}\n", id * 7)).collect();
    let text = format!("id,seven\n{text}");
    for ranges in [Ranges::Tagged, Ranges::Untagged, Ranges::None] {
        let server = FileServer::start(ranges);
        server.put("/ids.csv", text.clone().into_bytes());
        let url = format!("http://{}/ids.csv?signature=secret", server.at);
        run(["copy", &url, &folder.path("ids.csv"), "--overwrite"]).succeeded();
        assert!(folder.read("ids.csv") == text, "{ranges:?}");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_an_error_without_secrets() {
    let server = FileServer::start(Ranges::None);
    let file = data("types.parquet");
    server.put("/types.parquet", std::fs::read(&file).unwrap());
    let url = format!("http://{}/types.parquet", server.at);
    // Read from its start, it waits in a file without a name.
    run(["diff", &file, &url]).succeeded();
    assert!(run(["show", &url]).succeeded().starts_with(&url));
    let shown = run(["show", &format!("{url}?signature=secret")]).succeeded();
    assert!(shown.starts_with(&format!("{url}?…\n")) && !shown.contains("secret"), "{shown}");
    for command in ["show", "rows"] {
        let failed = run([command, "http://127.0.0.1:1/a.csv?sig=secret"]);
        assert!(!failed.err.contains("secret"), "{}", failed.err);
        failed.failed(3, &["?…: "]);
    }
    // Nor does what is found out.
    server.put("/ids.csv", b"id\n1\n".to_vec());
    server.put("/other.csv", b"id\n2\n".to_vec());
    let signed = |name: &str| format!("http://{}/{name}.csv?X-Amz-Signature=secret", server.at);
    let (ids, other) = (signed("ids"), signed("other"));
    let folder = Folder::new();
    for arguments in [
        vec!["diff", &ids, &other],
        vec!["diff", &ids, &other, "--json"],
        vec!["diff", &ids, &ids, "--key", "id"],
        vec!["show", &ids],
        vec!["show", &ids, "--json"],
        vec!["copy", &ids, &folder.path("ids.parquet"), "--sort", "id"],
        vec!["copy", &ids, "-", "--to", "jsonl"],
        vec!["rows", &ids],
        vec!["cql", &ids, "--table", "t", "--key", "(id)"],
        vec!["show", &ids, "--summary"],
    ] {
        let ran = run(arguments.clone());
        assert!(
            !ran.out.contains("secret") && !ran.err.contains("secret"),
            "{arguments:?}: {} {}",
            ran.out,
            ran.err
        );
        assert!(!ran.out.is_empty() || !ran.err.is_empty(), "{arguments:?}");
    }
    let failed = run(["rows", "https://me:secret@host/a.csv"]);
    assert!(!failed.err.contains("secret"), "{}", failed.err);
    failed.failed(2, &["a user or a password"]);
    run(["copy", &file, &url]).failed(2, &["can only be read"]);
    run(["copy", &file, "ftp://host/a.parquet"]).failed(2, &["ftp:// is not supported"]);
}
