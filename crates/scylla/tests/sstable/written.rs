//! What is written is read again as it was, and found where it is.
#![allow(clippy::cast_possible_wrap, reason = "numbers here are small")]

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{ErrorKind, Limits};
use marquetry_scylla::bridge::mutations::{Mapper, MapperOptions, MutationMapping, Unmapper};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{
    Cells, Continues, Deletion, EntryKind, Expiry, MutationBatch, Values,
};
use marquetry_scylla::sstable::compression_info::Compressor;

use crate::files::Files;
use crate::mapping::{lines, mapped, read, unmapped};
use crate::writing::{all_options, options, write};
use crate::{craft, fixtures, index, name_of};

/// What a version cannot store: times after 2038 before `oa`; and values in the index of a trie that have no bytes in order.
fn is_left_out(version: &str, error: &marquetry_base::Error) -> bool {
    match error.kind() {
        ErrorKind::Unsupported => {
            let is_late = error.message().contains("2038") && matches!(version, "me" | "nb");
            let is_negative = error.message().contains("negative") && matches!(version, "oa" | "da");
            let is_unsorted = error.message().contains("an index of rows by values") && version == "da";
            is_late || is_negative || is_unsorted
        }
        _ => false,
    }
}

/// Values of the primary key that no server stores are errors with their row and their column, on the way back.
#[test]
fn keys_that_are_too_long_are_said_with_their_place() {
    let table = |key: &str| {
        let statistics = craft::statistics(key, &["UTF8Type"], &[], &[("v", "Int32Type")]);
        Arc::new(TableColumns::new(&[&statistics.header], None).unwrap())
    };
    // Two rows of two partitions; of the second, a part of the key and the clustering value have so many bytes.
    let back = |columns: &Arc<TableColumns>, key_bytes: [usize; 2], clustering_bytes: usize| {
        let is_composite = columns.partition_key.len() > 1;
        let mut batch = MutationBatch::default();
        let mut values = marquetry_scylla::sstable::batch::Strings::default();
        for (row, (keys, clustering)) in [([1, 1], 1), (key_bytes, clustering_bytes)].into_iter().enumerate()
        {
            for bytes in keys.into_iter().take(columns.partition_key.len()) {
                if is_composite {
                    batch.partitions.keys.bytes.extend(u16::try_from(bytes).unwrap().to_be_bytes());
                }
                batch.partitions.keys.bytes.extend(std::iter::repeat_n(b'k', bytes));
                if is_composite {
                    batch.partitions.keys.bytes.push(0);
                }
            }
            batch.partitions.keys.ends.push(u32::try_from(batch.partitions.keys.bytes.len()).unwrap());
            batch.partitions.offsets.push(0);
            batch.partitions.ends.push(u32::try_from(row + 1).unwrap());
            batch.entries.kinds.push(EntryKind::Row);
            batch.entries.timestamps.push(5);
            values.bytes.extend(std::iter::repeat_n(b'c', clustering));
            values.ends.push(u32::try_from(values.bytes.len()).unwrap());
        }
        batch.entries.clustering.push(marquetry_scylla::sstable::batch::ClusteringColumn {
            values: Values::Strings(values),
            ..Default::default()
        });
        batch.columns.push(marquetry_scylla::sstable::batch::Cells {
            values: Values::Four(Vec::new()),
            ..Default::default()
        });
        let options = MapperOptions::default();
        let mut mapper = Mapper::new(MutationMapping::Full, Arc::clone(columns), &options).unwrap();
        let made = mapped(&mut mapper, vec![batch], u64::MAX / 2);
        let mut unmapper = Unmapper::new(Arc::clone(columns), mapper.schema(), Limits::DEFAULT).unwrap();
        for mut batch in made {
            let _ = unmapper.step(&mut marquetry_base::Budget::unlimited())?;
            batch.first_row = 40;
            unmapper.feed(batch)?;
        }
        unmapper.step(&mut marquetry_base::Budget::unlimited()).map(|_| ())
    };
    let (single, several) = (table("UTF8Type"), table("CompositeType(UTF8Type,UTF8Type)"));
    back(&single, [65_535, 0], 65_535).unwrap();
    back(&several, [65_000, 529], 1).unwrap();
    for (table, keys, clustering, column) in [
        (&single, [65_536, 0], 1, Some("pk0")),
        (&single, [1, 0], 65_536, Some("ck0")),
        // Together.
        (&several, [65_000, 530], 1, None),
    ] {
        let error = back(table, keys, clustering).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(41)), "{error}");
        assert_eq!(error.place().column.as_deref(), column, "{error}");
        assert!(error.message().contains("servers store 65535"), "{error}");
    }
}

/// All SSTables, from their batches and from the `full` mapping of these, in every version by some compressor.
#[test]
fn all_sstables_are_the_same_after_they_were_written() {
    let Some(all) = fixtures() else { return };
    let every = all_options();
    let (mut count, mut left_out) = (0, Vec::new());
    for (number, path) in all.iter().enumerate() {
        let files = Files::open(path);
        if !files.read_statistics().unwrap().partitioner.ends_with("Murmur3Partitioner") {
            continue;
        }
        let (columns, present, batches) = read(&files);
        let expected = lines(&batches);
        let columns = Arc::new(columns);
        let mut options = MapperOptions::default();
        options.present = present;
        let mut mapper = Mapper::new(MutationMapping::Full, Arc::clone(&columns), &options).unwrap();
        let rows = mapped(&mut mapper, batches.clone(), 150_000);
        let mut unmapper = Unmapper::new(Arc::clone(&columns), mapper.schema(), Limits::DEFAULT).unwrap();
        let back = unmapped(&mut unmapper, rows, 150_000);
        for (at, options) in every.iter().enumerate() {
            // Each version by one compressor a file, which all have their turns.
            if at % 6 != number % 6 {
                continue;
            }
            let units = [0, 1_000, 150_000][number % 3];
            let version = options.version.name();
            let of = if number % 2 == 0 { &batches } else { &back };
            match write(&columns, options, of, units) {
                Ok(written) => {
                    assert_eq!(lines(&written.read()), expected, "{} as {version}", path.display());
                    count += 1;
                }
                Err(error) if is_left_out(version, &error) => {
                    left_out.push(format!("{} as {version}: {error}", name_of(path)));
                }
                Err(error) => panic!("{} as {version}: {error}", path.display()),
            }
        }
    }
    assert!(count > 3 * left_out.len(), "{count} written, and not {left_out:#?}");
}

/// Indexes and filters of what was written are right.
#[test]
fn partitions_are_found_in_what_was_written() {
    let Some(all) = fixtures() else { return };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("written-index");
    for path in all.iter().filter(|path| {
        let name = name_of(path);
        name.contains("4.1.10-nb-snappy") || name.contains("5.0.9-da-none")
    }) {
        let (columns, _, batches) = read(&Files::open(path));
        for version in ["me", "nb", "oa", "da"] {
            let written =
                write(&columns, &options(version, Some(Compressor::Lz4)), &batches, 150_000).unwrap();
            index::check_all(&written.create(&directory));
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// A table of one text key, a clustering column and a blob, with so many partitions of so many rows of so many bytes; every tenth with
/// ranges of deleted rows.
pub(crate) fn large(partitions: usize, rows: usize, bytes: usize) -> (TableColumns, Vec<MutationBatch>) {
    let statistics = craft::statistics("Int32Type", &["LongType"], &[], &[("v", "BytesType")]);
    let columns = TableColumns::new(&[&statistics.header], None).unwrap();
    let mut keys: Vec<i32> = (0..partitions as i32).collect();
    keys.sort_by_key(|key| marquetry_scylla::sstable::murmur3_token(&key.to_be_bytes()));
    let mut batches = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let mut row = 0;
        loop {
            let mut batch = MutationBatch::default();
            let mut clustering = Vec::new();
            let mut values = marquetry_scylla::sstable::batch::Strings::default();
            batch.partitions.keys.bytes.extend(key.to_be_bytes());
            batch.partitions.keys.ends.push(4);
            batch.partitions.offsets.push(0);
            batch.continues = if row == 0 { Continues::Nothing } else { Continues::Partition };
            let mut cells = marquetry_scylla::sstable::batch::Cells::default();
            while row < rows && clustering.len() < 500 {
                let entry = clustering.len() as u32;
                clustering.push(row as i64 * 3);
                batch.entries.timestamps.push(1_700_000_000_000_000 + row as i64);
                let is_start = row % 100 == 7;
                if number % 10 == 1 && row % 50 == 7 && (!is_start || row + 50 < rows) {
                    let kind = if is_start { EntryKind::InclusiveStart } else { EntryKind::InclusiveEnd };
                    batch.entries.kinds.push(kind);
                    let deletion = Deletion { timestamp: 77, local_deletion: 1_700_000_000 };
                    batch.entries.deletions.push(entry, deletion);
                    *batch.entries.timestamps.last_mut().unwrap() = i64::MIN;
                } else {
                    batch.entries.kinds.push(EntryKind::Row);
                    cells.entries.push(entry);
                    let fill = (row as u8).wrapping_mul(31);
                    values.bytes.extend((0..bytes).map(|at| fill.wrapping_add((at / 7) as u8)));
                    values.ends.push(values.bytes.len() as u32);
                }
                row += 1;
            }
            batch.partitions.ends.push(clustering.len() as u32);
            batch.entries.clustering.push(marquetry_scylla::sstable::batch::ClusteringColumn {
                values: Values::Eight(clustering),
                ..Default::default()
            });
            cells.values = Values::Strings(values);
            batch.columns.push(cells);
            batch.is_open = row < rows;
            batches.push(batch);
            if row >= rows {
                break;
            }
        }
    }
    (columns, batches)
}

/// Thousands of partitions, so that summaries have samples and tries pages; and partitions of megabytes, which have indexes of their own.
#[test]
fn large_tables_are_found_again() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("written-large");
    for (partitions, rows, bytes) in [(3000, 1, 10), (20, 2400, 300), (1, 1, 1 << 20)] {
        let (columns, batches) = large(partitions, rows, bytes);
        for version in ["me", "nb", "oa", "da"] {
            let written =
                write(&columns, &options(version, Some(Compressor::Lz4)), &batches, 150_000).unwrap();
            assert_eq!(lines(&written.read()), lines(&batches), "{version}");
            index::check_all(&written.create(&directory));
            let statistics = written.files().read_statistics().unwrap();
            assert_eq!(statistics.stats.partition_sizes.count(), partitions as u64);
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// Cassandra's own tool prints of written SSTables what it prints of others.
#[test]
#[ignore = "soak: sstabledump takes some seconds a file"]
fn sstabledump_prints_what_was_written() {
    let (Some(all), Some(script)) = (fixtures(), marquetry_testing::sstabledump()) else { return };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("written-dump");
    let some = [
        "5.0.9-oa-zstd/mix/oa-1",
        "5.0.9-oa-zstd/mix/oa-2",
        "5.0.9-da-none/wide/da-2",
        "4.1.10-nb-lz4/cnt/nb-1",
    ];
    for path in all.iter().filter(|path| some.iter().any(|name| path.to_string_lossy().contains(name))) {
        let (columns, _, batches) = read(&Files::open(path));
        for version in ["me", "nb", "oa", "da"] {
            let written =
                write(&columns, &options(version, Some(Compressor::Snappy)), &batches, 150_000).unwrap();
            crate::compare(&written.create(&directory), &script);
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// What no server could read again is refused, and says why.
#[test]
fn what_is_not_in_order_is_refused() {
    let (columns, batches) = large(3, 10, 5);
    let nb = options("nb", None);
    let mut turned = batches.clone();
    turned.reverse();
    let refused = |batches: &[MutationBatch]| {
        let error = write(&columns, &nb, batches, 1_000).err().expect("refused");
        (error.kind(), error.message().to_string())
    };
    let misuse = |message: &str| (ErrorKind::Misuse, message.to_string());
    let of_rows = |message: &str| (ErrorKind::Conversion, message.to_string());
    assert_eq!(
        refused(&turned),
        of_rows("partitions that are not in the order of their tokens, or one that is there twice")
    );
    let mut turned = batches.clone();
    if let Values::Eight(values) = &mut turned[0].entries.clustering[0].values {
        values.swap(2, 3);
    }
    assert_eq!(
        refused(&turned),
        of_rows("rows that are not in the order of their clustering columns, or one that is there twice")
    );
    let mut open = batches.clone();
    open[2].is_open = true;
    // As a reader has it whose last batch ends before the partition's end.
    assert!(write(&columns, &nb, &open, 1_000).is_ok());
    assert_eq!(refused(&[]), misuse("an SSTable without partitions"));
    let mut late = batches.clone();
    late[0].columns[0].tombstones.push(0, 0x7fff_ffff);
    assert_eq!(refused(&late).0, ErrorKind::Unsupported);
    assert!(write(&columns, &options("oa", None), &late, 1_000).is_ok());
    // Cells that no row has are not left out in silence.
    let mut stray = batches.clone();
    stray[0].columns[0].entries[9] = 10;
    assert_eq!(refused(&stray), misuse("a batch with cells that are in none of its rows"));
    let (_, mut rowless) = large(1, 0, 5);
    let (_, mut rows) = large(1, 10, 5);
    (rowless[0].is_open, rows[0].continues) = (true, Continues::Entry);
    rowless.append(&mut rows);
    assert!(refused(&rowless).1.contains("goes on with a row"));
    let mut small = nb.clone();
    small.limits.total_bytes = 4;
    let error = write(&columns, &small, &batches, 1_000).err().expect("a row beyond the limit");
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    let long = craft::statistics("Int32Type", &["UTF8Type"], &[], &[("v", "BytesType")]);
    let long = TableColumns::new(&[&long.header], None).unwrap();
    let with_value = |bytes: u32| {
        let (_, mut batches) = large(1, 1, 5);
        let mut strings = marquetry_scylla::sstable::batch::Strings::default();
        strings.bytes.extend((0..bytes).map(|_| b'a'));
        strings.ends.push(bytes);
        batches[0].entries.clustering[0].values = Values::Strings(strings);
        write(&long, &nb, &batches, 1_000_000).map(|_| ()).map_err(|error| error.kind())
    };
    assert_eq!(with_value(0xffff), Ok(()));
    assert_eq!(with_value(0x1_0000), Err(ErrorKind::Unsupported));
    let other = craft::statistics("Int32Type", &[], &[], &[("v", "BytesType")]);
    let other = TableColumns::new(&[&other.header], None).unwrap();
    assert!(write(&other, &nb, &batches, 1_000).is_err());
}

/// Files do not depend on how far steps come.
#[test]
fn budgets_make_no_difference() {
    let (columns, batches) = large(40, 30, 700);
    for options in all_options() {
        let [one, other] = [0, u64::MAX / 2].map(|units| write(&columns, &options, &batches, units));
        assert_eq!(one.unwrap().components, other.unwrap().components);
    }
}

/// Rows of so many columns whose cells are all like them: some expire, some are deleted, and each lacks some cells.
fn plain(columns: usize) -> (TableColumns, Vec<MutationBatch>) {
    let types = ["Int32Type", "UTF8Type", "LongType", "UUIDType", "BytesType"];
    let names: Vec<String> = (0..columns).map(|at| format!("c{at:02}")).collect();
    let regulars: Vec<(&str, &str)> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), types[at % 5])).collect();
    let statistics = craft::statistics("Int32Type", &["LongType"], &[], &regulars);
    let table = TableColumns::new(&[&statistics.header], None).unwrap();
    let mut batch = MutationBatch::default();
    batch.partitions.keys.bytes.extend(7_i32.to_be_bytes());
    batch.partitions.keys.ends.push(4);
    batch.partitions.offsets.push(0);
    batch.partitions.ends.push(300);
    let mut clustering = Vec::new();
    for row in 0..300 {
        batch.entries.kinds.push(EntryKind::Row);
        batch.entries.timestamps.push(1_700_000_000_000_000 + i64::from(row) * 77);
        clustering.push(i64::from(row));
        if row % 3 == 1 {
            batch.entries.expiries.push(row, Expiry { ttl: 60 + row, local_deletion: 1_700_000_060 + row });
        }
        if row % 7 == 3 {
            batch.entries.deletions.push(row, Deletion { timestamp: 77, local_deletion: 1_700_000_000 });
        }
    }
    batch.entries.clustering.push(marquetry_scylla::sstable::batch::ClusteringColumn {
        values: Values::Eight(clustering),
        ..Default::default()
    });
    for (at, name) in names.iter().enumerate() {
        let fixed = [Some(4), None, Some(8), Some(16), None][at % 5];
        let mut cells = Cells { values: Values::of(fixed), ..Cells::default() };
        // Every tenth row has all, and every eleventh none.
        for row in (0..300).filter(|row| row % 10 == 0 || row % 11 != 5 && (row + at as u32) % 4 != 1) {
            cells.entries.push(row);
            match &mut cells.values {
                Values::Four(values) => values.push(row as i32),
                Values::Eight(values) => values.push(i64::from(row) << 33),
                Values::Sixteen(values) => values.push([row as u8; 16]),
                Values::Strings(strings) => {
                    strings.bytes.extend(name.bytes().cycle().take(row as usize % 23));
                    strings.ends.push(strings.bytes.len() as u32);
                }
                other => panic!("{other:?}"),
            }
        }
        batch.columns.push(cells);
    }
    (table, vec![batch])
}

/// Rows that are written in one go have the bytes of those that are written cell by cell, as all are where values may be no longer than such a row.
#[test]
fn rows_in_one_go_are_those_of_cell_by_cell() {
    let mut all: Vec<_> = [1, 5, 62, 63, 64, 90].map(plain).into();
    all.extend([10, 700, 4_078, 4_079, 4_080].map(|bytes| large(7, 30, bytes)));
    for (number, (columns, batches)) in all.iter().enumerate() {
        for version in ["me", "nb", "oa", "da"] {
            let mut options = options(version, Some(Compressor::Lz4));
            let one = write(columns, &options, batches, 150_000).unwrap();
            options.limits.value_bytes = 4_095;
            let other = write(columns, &options, batches, 150_000).unwrap();
            assert!(one.components == other.components, "table {number} as {version}");
            assert_eq!(lines(&one.read()), lines(batches), "table {number} as {version}");
        }
    }
}

/// A static column's value in another row, or the reverse, is an error on the way back: no row could be written with it.
#[test]
fn values_in_rows_of_the_other_kind_are_refused() {
    let statistics =
        craft::statistics("Int32Type", &["LongType"], &[("s", "Int32Type")], &[("v", "Int32Type")]);
    let columns = Arc::new(TableColumns::new(&[&statistics.header], None).unwrap());
    let back = |of_static: u32, of_regular: u32| {
        let mut batch = MutationBatch::default();
        batch.partitions.keys.bytes.extend(7_i32.to_be_bytes());
        batch.partitions.keys.ends.push(4);
        batch.partitions.offsets.push(0);
        batch.partitions.ends.push(2);
        batch.entries.kinds.extend([EntryKind::Static, EntryKind::Row]);
        batch.entries.timestamps.extend([1_700_000_000_000_000; 2]);
        batch.entries.clustering.push(marquetry_scylla::sstable::batch::ClusteringColumn {
            values: Values::Eight(vec![0, 5]),
            ..Default::default()
        });
        for entry in [of_static, of_regular] {
            batch.columns.push(marquetry_scylla::sstable::batch::Cells {
                entries: vec![entry],
                values: Values::Four(vec![1]),
                ..Default::default()
            });
        }
        let options = MapperOptions::default();
        let mut mapper = Mapper::new(MutationMapping::Full, Arc::clone(&columns), &options).unwrap();
        let made = mapped(&mut mapper, vec![batch], 100_000);
        let mut unmapper = Unmapper::new(Arc::clone(&columns), mapper.schema(), Limits::DEFAULT).unwrap();
        for batch in made {
            let _ = unmapper.step(&mut marquetry_base::Budget::unlimited())?;
            unmapper.feed(batch)?;
        }
        unmapper.step(&mut marquetry_base::Budget::unlimited()).map(|_| ())
    };
    assert!(back(0, 1).is_ok());
    for (of_static, of_regular) in [(1, 1), (0, 0)] {
        let error = back(of_static, of_regular).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}
