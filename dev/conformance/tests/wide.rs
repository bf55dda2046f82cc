//! A table of a hundred thousand columns is written in little memory, by columns and by rows. A process of its own, whose memory
//! the system tells.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Limits, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::craft::{Column, DOUBLE, Table};
use marquetry_conformance::hostile::Manner;
use marquetry_io::blocking::{self, NewFile, SpillFile};
use marquetry_io::{ByteSink, ByteSinks, ByteSources, drive, drive_into};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};

const SPILL: Object = Object(7);

/// Columns, row groups, and rows of each.
#[derive(Clone, Copy)]
struct Size {
    columns: usize,
    groups: usize,
    rows: usize,
}

impl Size {
    /// The number of a column in a row: sixteen bits that say something, as in features that were measured.
    fn value(self, column: usize, row: usize) -> f64 {
        let mut mixed = (column * self.groups * self.rows + row) as u64;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u16::try_from(mixed >> 48).unwrap()) / 65_536.0
    }

    fn column(self, column: usize, rows: std::ops::Range<usize>) -> ColumnBatch {
        let values: Vec<f64> = rows.clone().map(|row| self.value(column, row)).collect();
        ColumnBatch {
            leaf: column,
            rows: rows.len(),
            nulls: 0,
            validity: None,
            values: Values::Double(values.into()),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        }
    }

    fn schema(self) -> Arc<Schema> {
        let columns = (0..self.columns).map(|column| Column::required(&format!("feature_{column}"), DOUBLE));
        let file = Table::new(columns).write();
        canonical::metadata(&file, Manner::KIND).unwrap().schema.clone()
    }

    /// Writes the table, as `feed` hands it over.
    fn write(self, path: &Path, feed: impl Fn(&mut dyn FnMut(Handed))) {
        let codecs = Arc::new(StandardCodecs::default());
        // By rows alone, whatever they take.
        let options = WriteOptions {
            row_group_rows: self.rows as u64,
            row_group_bytes: u64::MAX,
            spill: Some(SPILL),
            ..WriteOptions::default()
        };
        let mut writer = FileWriter::new(FILE, self.schema(), codecs, options).unwrap();
        let mut file = NewFile::create(path).unwrap();
        let mut spill = SpillFile::create_beside(path).unwrap();
        let mut sinks = ByteSinks::<&mut dyn ByteSink>::new().with(FILE, &mut file).with(SPILL, &mut spill);
        feed(&mut |handed| {
            drive_into(&mut writer, &mut sinks).unwrap().expect("a writer that wants more");
            match handed {
                Handed::Rows(batch) => assert_eq!(writer.feed(batch).unwrap(), Fed::Taken),
                Handed::Column(column) => assert_eq!(writer.feed_column(column).unwrap(), Fed::Taken),
            }
        });
        writer.finish();
        while drive_into(&mut writer, &mut sinks).unwrap().is_some() {}
        assert_eq!(writer.row_groups(), self.groups);
        drop((writer, sinks));
        file.commit().unwrap();
    }

    fn write_by_columns(self, path: &Path) {
        self.write(path, |hand| {
            for group in 0..self.groups {
                let rows = group * self.rows..(group + 1) * self.rows;
                (0..self.columns).for_each(|column| hand(Handed::Column(self.column(column, rows.clone()))));
            }
        });
    }

    fn write_by_rows(self, path: &Path, at_once: usize) {
        self.write(path, |hand| {
            let all = self.groups * self.rows;
            for start in (0..all).step_by(at_once) {
                let rows = start..all.min(start + at_once);
                let columns = (0..self.columns).map(|column| self.column(column, rows.clone())).collect();
                let first_row = start as u64;
                hand(Handed::Rows(Batch { row_group: 0, first_row, rows: rows.len(), columns }));
            }
        });
    }

    /// Reads some columns, and compares them with what they are to be.
    fn check(self, path: &Path) {
        let leaves = vec![0, self.columns / 2, self.columns - 1];
        let sources = ByteSources::new().with(FILE, blocking::File::open(path).unwrap());
        let metadata = drive(&mut FooterReader::new(FILE, Limits::TRUSTED), &sources).unwrap().unwrap();
        assert_eq!(metadata.schema.leaves().len(), self.columns);
        assert_eq!(metadata.row_groups.len(), self.groups);
        let options =
            ReadOptions { leaves: Some(leaves.clone()), limits: Limits::TRUSTED, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let mut reader = BatchReader::new(FILE, metadata, codecs, options).unwrap();
        let mut row = 0;
        while let Some(batch) = drive(&mut reader, &sources).unwrap() {
            for (leaf, column) in leaves.iter().zip(&batch.columns) {
                let Values::Double(values) = &column.values else { panic!("no doubles") };
                for (at, value) in values.iter().enumerate() {
                    assert_eq!(*value, self.value(*leaf, row + at), "column {leaf}, row {}", row + at);
                }
            }
            row += batch.rows;
        }
        assert_eq!(row, self.groups * self.rows);
    }
}

/// What a host hands over.
enum Handed {
    Rows(Batch),
    Column(ColumnBatch),
}

/// The most memory that this process ever took, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the system tells it");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn by_columns_and_by_rows() {
    let size = Size { columns: 300, groups: 3, rows: 40 };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let paths = ["columns", "rows"].map(|name| folder.path().join(name));
    size.write_by_columns(&paths[0]);
    size.write_by_rows(&paths[1], 7);
    paths.iter().for_each(|path| size.check(path));
}

#[test]
#[ignore = "soak: 8 GB of doubles, twice"]
fn a_hundred_thousand_columns_in_little_memory() {
    let size = Size { columns: 100_000, groups: 10, rows: 1000 };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("wide.parquet");
    for (name, write) in [
        ("by columns", &(|path: &Path| size.write_by_columns(path)) as &dyn Fn(&Path)),
        ("by rows", &|path| size.write_by_rows(path, 100)),
    ] {
        write(&path);
        let (peak, bytes) = (peak_mib(), std::fs::metadata(&path).unwrap().len());
        println!("{name}: {peak} MiB of memory, {bytes} bytes");
        assert!(peak < 1024, "{name}: {peak} MiB");
        std::fs::remove_file(&path).unwrap();
    }
    // Reading takes memory too: it is not counted.
    size.write_by_columns(&path);
    size.check(&path);
}
