//! Azure's blobs.

use std::time::Duration;

use marquetry_testing::http::{Act, HttpProxy};
use marquetry_testing::stores::azure;

use super::common::{Run, data};
use super::{Folder, numbers, run_with};

/// Runs the command beside a server.
fn run<const N: usize>(at: &str, arguments: [&str; N]) -> Run {
    let url = format!("http://{at}");
    let variables = [("AZURE_STORAGE_USE_EMULATOR", "true"), ("AZURITE_BLOB_STORAGE_URL", &*url)];
    run_with(&variables, arguments)
}

#[test]
fn every_command_reads_and_copy_writes() {
    let Some(server) = azure() else { return };
    server.create_container("commands");
    let (folder, file, large) = (Folder::new(), data("types.parquet"), numbers(20));
    run(&server.at, ["copy", &file, "az://commands/a b/types.parquet"]).succeeded();
    run(&server.at, ["copy", &large, "az://commands/large.parquet"]).succeeded();
    assert_eq!(server.blobs("commands"), ["a b/types.parquet", "large.parquet"]);
    run(&server.at, ["diff", &file, "az://commands/a b/types.parquet"]).succeeded();
    run(&server.at, ["diff", &large, "az://commands/large.parquet"]).succeeded();
    run(&server.at, ["copy", &file, "az://commands/large.parquet"]).failed(1, &["already exists"]);
    assert!(run(&server.at, ["show", "az://commands/large.parquet"]).succeeded().contains("131,072"));
    run(&server.at, ["copy", "az://commands/a b/*.parquet", "az://commands/t.csv.gz"]).succeeded();
    run(&server.at, ["copy", "az://commands/t.csv.gz", &folder.path("t.csv")]).succeeded();
    run_with(&[], ["copy", &file, &folder.path("here.csv.gz")]).succeeded();
    run_with(&[], ["copy", &folder.path("here.csv.gz"), &folder.path("here.csv")]).succeeded();
    assert_eq!(folder.read("t.csv"), folder.read("here.csv"));
    run(&server.at, ["copy", &file, "az://commands/dir/", "--file-rows", "2"]).succeeded();
    run(&server.at, ["diff", &file, "az://commands/dir/"]).succeeded();
    run(&server.at, ["copy", &file, "az://commands/dir/", "--overwrite"]).succeeded();
    let blobs = server.blobs("commands");
    assert_eq!(blobs.iter().filter(|blob| blob.starts_with("dir/")).count(), 1, "{blobs:?}");
}

#[test]
fn errors() {
    let Some(server) = azure() else { return };
    server.create_container("errors");
    run(&server.at, ["rows", "az://errors/none.parquet"]).failed(3, &["az://errors/none.parquet: not found"]);
    run(&server.at, ["rows", "az://no-such-container/*.parquet"]).failed(3, &["container does not exist"]);
    // A block that is refused. (Azure itself removes those before it after a week; no request does.)
    let proxy = HttpProxy::start(&server.at, Duration::ZERO, |asked| {
        let is_second = asked.target.contains("comp=block&") && asked.number > 4;
        if is_second { Act::Status(403) } else { Act::Pass }
    });
    run(&proxy.at, ["copy", &numbers(40), "az://errors/a.parquet"])
        .failed(3, &["az://errors/a.parquet: access denied"]);
    run(&server.at, ["rows", "az://errors/a.parquet"]).failed(3, &["not found"]);
}

/// What the store did is done, even if its answer never arrives.
#[test]
fn a_lost_answer_to_the_last_request() {
    let Some(server) = azure() else { return };
    server.create_container("lost");
    for (file, to) in
        [(data("types.parquet"), "az://lost/small.parquet"), (numbers(20), "az://lost/large.parquet")]
    {
        let proxy = HttpProxy::start(&server.at, Duration::ZERO, |asked| {
            let is_last = asked.target.contains("comp=blocklist") || !asked.target.contains("comp=");
            if asked.method == "PUT" && is_last { Act::Lose } else { Act::Pass }
        });
        run(&proxy.at, ["copy", &file, to]).succeeded();
        run(&server.at, ["diff", &file, to]).succeeded();
    }
}

/// Azure knows no ranges from an object's end, so its length is a round of its own.
#[test]
fn one_column_of_a_hundred_takes_three_rounds() {
    let Some(server) = azure() else { return };
    server.create_container("columns");
    let (folder, file) = (Folder::new(), numbers(100));
    run(&server.at, ["copy", &file, "az://columns/n.parquet"]).succeeded();
    let proxy = HttpProxy::start(&server.at, Duration::from_millis(300), |_| Act::Pass);
    run(&proxy.at, ["copy", "az://columns/n.parquet", &folder.path("c42.csv"), "--columns", "c42"])
        .succeeded();
    let (seen, column_bytes) = (proxy.seen(), 8 * super::ROWS as u64);
    assert!(seen.rounds <= 3, "{} rounds: {:#?}", seen.rounds, seen.requests);
    assert!(seen.bytes * 10 <= column_bytes * 11, "{} bytes for a column of {column_bytes}", seen.bytes);
}
