//! A copy that waits for a server which is silent ends when it is cancelled, whatever store it was given.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use marquetry::batch::Batch;
use marquetry::io::store::Stores;
use marquetry::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry::tables::files::{Files, FilesOptions};
use marquetry::tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry::tables::text::{TextFormat, TextOptions};
use marquetry::tables::{Cancel, CopyOptions, Source, copy};
use marquetry_testing::http::{Act, FileServer, HttpProxy, Ranges};

/// A Parquet file that is longer than what its opening reads, in one row group.
fn parquet(folder: &std::path::Path) -> Vec<u8> {
    let path = folder.join("numbers.parquet");
    let schema = Schema::of_fields(&[FieldDef::new("n", FieldType::Leaf(PhysicalType::Int64, None))]);
    let mut writer = marquetry::create(&path, schema.unwrap()).unwrap();
    // That no encoding makes smaller.
    let mix = |n: u64| n.wrapping_mul(n).wrapping_mul(6_364_136_223_846_793_005).rotate_left(29);
    let numbers: Vec<i64> = (0..100_000).map(|n| (mix(n) ^ mix(!n)).cast_signed()).collect();
    for numbers in numbers.chunks(8192) {
        writer.write(Batch::of_values([numbers.to_vec().into()]).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.len() > 300_000, "{}", bytes.len());
    bytes
}

#[test]
fn a_copy_that_waits_for_a_silent_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = FileServer::start(Ranges::Tagged);
    server.put("/a.parquet", parquet(folder.path()));
    let text: String = (0..400_000).map(|n| format!("{n},{n}\n")).collect();
    server.put("/a.csv", format!("n,m\n{text}").into_bytes());
    for (name, threads) in [("a.parquet", 1), ("a.parquet", 3), ("a.csv", 1), ("a.csv", 3)] {
        let is_silent = Arc::new(AtomicBool::new(false));
        let (sender, is_waiting) = mpsc::channel();
        let asked = Arc::clone(&is_silent);
        let proxy = HttpProxy::start(&server.at, Duration::ZERO, move |_| {
            if asked.load(Ordering::SeqCst) {
                let _ = sender.send(());
                return Act::Silent;
            }
            Act::Pass
        });
        let mut options = FilesOptions::default();
        options.store = Arc::new(Stores::new());
        let mut text = TextOptions::default();
        text.infer_bytes = 1;
        options.formats = vec![Arc::new(TextFormat::new(text))];
        let files = Files::open([format!("http://{}/{name}", proxy.at)], &options).unwrap();
        let source: Arc<dyn Source> = Arc::new(files);
        is_silent.store(true, Ordering::SeqCst);
        let cancel = Cancel::new();
        let cancelling = cancel.clone();
        let elsewhere = std::thread::spawn(move || {
            is_waiting.recv().unwrap();
            cancelling.cancel();
        });
        let to = folder.path().join("out.parquet");
        let mut destination = NewParquetFile::new(&to, ParquetOptions::default()).unwrap();
        let mut options = CopyOptions::default();
        (options.cancel, options.threads) = (cancel, Some(threads));
        let error = copy(&source, &mut destination, &options, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), marquetry::base::ErrorKind::Cancelled, "{name} by {threads}: {error}");
        elsewhere.join().unwrap();
        drop(destination);
        assert!(!to.exists());
    }
}
