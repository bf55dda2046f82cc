//! What no fixture has.

use std::sync::Arc;

use marquetry_base::{Bytes, Detail, ErrorKind, Limit, Limits};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::{Continues, Deletion, EntryKind, Expiry, NO_TIMESTAMP, Values};
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, Version};

use crate::craft::{self, Craft, DELETION_TIME_EPOCH, TIMESTAMP_EPOCH};
use crate::files::{OBJECT, next, one};

/// A row with a write time, and all columns.
const ALL: u8 = 0x04 | 0x20;

fn strings(values: &Values) -> Vec<Vec<u8>> {
    (0..values.len())
        .map(|at| {
            let mut bytes = Vec::new();
            values.append_bytes(at, &mut bytes);
            bytes
        })
        .collect()
}

#[test]
fn a_value_of_many_megabytes_is_read_in_parts_and_a_batch_of_its_own() {
    let statistics =
        craft::statistics("UTF8Type", &["Int32Type"], &[], &[("a", "UTF8Type"), ("b", "UTF8Type")]);
    let huge: Vec<u8> = (0..5_000_000_u32).map(|at| at.to_le_bytes()[(at % 3) as usize]).collect();
    let row = |number: u32, a: &[u8], b: &[u8]| {
        let body = Craft::default().vint(7).cell(a).cell(b).bytes;
        Craft::default().row(&[ALL], &Craft::default().vint(0).raw(&number.to_be_bytes()).bytes, &body)
    };
    let data = Craft::default()
        .partition(b"key")
        .raw(&row(1, b"x", b"y").bytes)
        .raw(&row(2, &huge, &huge).bytes)
        .raw(&row(3, b"z", &huge[..9000]).bytes)
        .end();
    let batches = craft::read("mc", &statistics, &data).unwrap();
    let kinds: Vec<_> = batches.iter().map(|batch| (batch.continues, batch.is_open)).collect();
    let expected = [
        (Continues::Nothing, true),
        (Continues::Partition, true),
        (Continues::Entry, true),
        (Continues::Partition, false),
    ];
    // The large row has a batch for each of its values; the partition's end comes with the last row.
    assert_eq!(kinds[..3], expected[..3]);
    assert_eq!(kinds.last(), Some(&expected[3]));
    let of = |batch: usize, column: usize| strings(&batches[batch].columns[column].values);
    assert_eq!((of(0, 0), of(0, 1)), (vec![b"x".to_vec()], vec![b"y".to_vec()]));
    assert!(of(1, 0) == [huge.clone()] && of(1, 1).is_empty());
    assert!(of(2, 0).is_empty() && of(2, 1) == [huge.clone()]);
    let entries = &batches[2].entries;
    assert_eq!((entries.kinds.len(), entries.timestamps[0]), (1, TIMESTAMP_EPOCH + 7));
    assert_eq!(strings(&entries.clustering[0].values), [2_u32.to_be_bytes()]);
    assert_eq!(batches[2].partitions.keys.get(0), Some(&b"key"[..]));
    let last = batches.last().unwrap();
    assert_eq!(strings(&last.columns[0].values), [b"z"]);

    let limits = Limits { value_bytes: 1_000_000, ..Limits::DEFAULT };
    let mut options = DataOptions::default();
    options.limits = limits;
    let mut reader = craft::reader("mc", &statistics, options);
    let bytes = Bytes::from(data.bytes);
    next(&mut reader, &bytes).unwrap();
    let error = next(&mut reader, &bytes).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Limit(Limit::ValueBytes)), "{error}");
    assert_eq!(error.place().object.as_deref(), Some("Data.db"));
}

#[test]
fn a_collection_of_many_cells_goes_on_from_batch_to_batch() {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("m", "MapType(Int32Type,UTF8Type)")]);
    let count = 200_000_u32;
    let mut body = Craft::default().vint(1).vint(9).vint(3).vint(u64::from(count));
    for number in 0..count {
        body = body.raw(&[0x08]).long(&number.to_be_bytes()).long(&number.to_le_bytes());
    }
    let data = Craft::default()
        .partition(&1_u32.to_be_bytes())
        .row(&[ALL | 0x40], &[], &body.bytes)
        .end()
        .partition(&2_u32.to_be_bytes())
        .end();
    let batches = craft::read("mc", &statistics, &data).unwrap();
    let last = batches.len() - 1;
    assert!(last > 2);
    let mut next = 0_u32;
    for (at, batch) in batches.iter().enumerate() {
        let cells = &batch.columns[0];
        assert_eq!(batch.continues, if at == 0 { Continues::Nothing } else { Continues::Entry });
        assert_eq!(batch.entries.timestamps, [TIMESTAMP_EPOCH + 1]);
        // A deletion is where it was read.
        assert_eq!(cells.deletions.get(0).is_some(), at == 0);
        assert!(cells.entries.iter().all(|entry| *entry == 0));
        for number in 0..cells.len() {
            assert_eq!(cells.paths.get(number), Some(&next.to_be_bytes()[..]));
            next += 1;
        }
    }
    assert_eq!(next, count);
    assert_eq!(batches[last].partitions.ends, [1, 1]);
    let deletion = Deletion { timestamp: TIMESTAMP_EPOCH + 9, local_deletion: DELETION_TIME_EPOCH + 3 };
    assert_eq!(batches[0].columns[0].deletions.values, [deletion]);
}

#[test]
fn batches_end_between_rows_and_stand_on_their_own() {
    let statistics = craft::statistics("Int32Type", &["Int32Type"], &[], &[("v", "Int32Type")]);
    let mut data = Craft::default().short(&[1]).raw(&9_u32.to_be_bytes()).raw(&8_u64.to_be_bytes());
    for number in 0..20_000_u32 {
        let body = Craft::default().vint(u64::from(number)).raw(&[0x08]).raw(&number.to_be_bytes()).bytes;
        data = data.row(&[ALL], &Craft::default().vint(0).raw(&number.to_be_bytes()).bytes, &body);
    }
    let batches = craft::read("mc", &statistics, &data.end()).unwrap();
    let counts: Vec<usize> = batches.iter().map(|batch| batch.entries.kinds.len()).collect();
    assert_eq!(counts, [8192, 8192, 20_000 - 2 * 8192]);
    for (at, batch) in batches.iter().enumerate() {
        let deletion = Deletion { timestamp: 8, local_deletion: 9 };
        assert_eq!(batch.partitions.deletions.values, [deletion]);
        assert_eq!((batch.is_open, batch.partitions.offsets.as_slice()), (at < 2, &[0][..]));
        let Values::Four(values) = &batch.columns[0].values else { panic!() };
        assert_eq!(usize::try_from(values[5]), Ok(at * 8192 + 5));
    }
}

#[test]
fn rows_of_more_than_63_columns_list_what_they_have_or_lack() {
    let names: Vec<String> = (0..100).map(|at| format!("c{at:02}")).collect();
    let columns: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "UTF8Type")).collect();
    let statistics = craft::statistics("Int32Type", &["Int32Type"], &[], &columns);
    let key = |number: u32| Craft::default().vint(0).raw(&number.to_be_bytes()).bytes;
    let timestamp = 0x04;
    let two = Craft::default().vint(1).vint(98).vint(3).vint(99).cell(b"three").cell(b"last").bytes;
    let none = Craft::default().vint(1).vint(100).bytes;
    let mut most = Craft::default().vint(1).vint(2).vint(0).vint(50);
    let mut all = Craft::default().vint(1).vint(0);
    for number in 0..100_u8 {
        if number != 0 && number != 50 {
            most = most.cell(&[number]);
        }
        all = all.cell(&[number]);
    }
    let data = Craft::default()
        .partition(b"1")
        .row(&[timestamp], &key(1), &two)
        .row(&[timestamp], &key(2), &none)
        .row(&[timestamp], &key(3), &most.bytes)
        .row(&[timestamp], &key(4), &all.bytes)
        .end();
    let batch = craft::read("mc", &statistics, &data).unwrap().remove(0);
    let cells =
        |column: usize| (batch.columns[column].entries.clone(), strings(&batch.columns[column].values));
    assert_eq!(cells(3), (vec![0, 2, 3], vec![b"three".to_vec(), vec![3], vec![3]]));
    assert_eq!(cells(99), (vec![0, 2, 3], vec![b"last".to_vec(), vec![99], vec![99]]));
    assert_eq!(cells(0), (vec![3], vec![vec![0]]));
    assert_eq!(cells(50), (vec![3], vec![vec![50]]));
    for (missing, list) in [(98, [3, 3]), (98, [5, 4]), (2, [0, 100]), (101, [0, 1])] {
        let body = list.iter().fold(Craft::default().vint(1).vint(missing), |body, at| body.vint(*at));
        let data = Craft::default()
            .partition(b"1")
            .row(&[timestamp], &key(1), &body.cell(b"").cell(b"").bytes)
            .end();
        let error = craft::read("mc", &statistics, &data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[test]
fn lives_of_cells() {
    let columns =
        [("a", "Int32Type"), ("b", "Int32Type"), ("c", "Int32Type"), ("d", "Int32Type"), ("e", "Int32Type")];
    let statistics = craft::statistics("Int32Type", &[], &[], &columns);
    let value = 5_u32.to_be_bytes();
    // A row that expires; cells that do as it does, never, at another time, are deleted, and are empty.
    let body = Craft::default()
        .vint(1)
        .vint(60)
        .vint(100)
        .raw(&[0x08 | 0x10 | 0x02])
        .raw(&value)
        .raw(&[0x08])
        .raw(&value)
        .raw(&[0x02])
        .vint(4)
        .vint(200)
        .vint(70)
        .raw(&value)
        .raw(&[0x01 | 0x04 | 0x08])
        .vint(300)
        .raw(&[0x04 | 0x08 | 0x10 | 0x02]);
    let data = Craft::default().partition(b"1").row(&[ALL | 0x08], &[], &body.bytes).end();
    let batch = craft::read("mc", &statistics, &data).unwrap().remove(0);
    let at = |seconds: u32| DELETION_TIME_EPOCH + seconds;
    assert_eq!(batch.entries.expiries.values, [Expiry { ttl: 60, local_deletion: at(100) }]);
    let cells = &batch.columns;
    assert!(cells[0].expiries.is_empty() && cells[0].timestamps.is_empty());
    assert_eq!(cells[1].expiries.values, [Expiry::NEVER]);
    assert_eq!(cells[2].expiries.values, [Expiry { ttl: 70, local_deletion: at(200) }]);
    assert_eq!(cells[2].timestamps.values, [TIMESTAMP_EPOCH + 4]);
    assert_eq!((&cells[3].tombstones.values[..], cells[3].empties.len()), (&[at(300)][..], 0));
    assert_eq!((cells[4].empties.as_slice(), cells[4].expiries.is_empty()), (&[0][..], true));
    // Bits that contradict each other.
    for flags in [0x03, 0x18, 0x10, 0x11, 0x28, 0x80, 0x13] {
        let body = Craft::default().vint(1).raw(&[flags]).vint(1).vint(1).vint(1).raw(&value);
        let data = Craft::default().partition(b"1").row(&[ALL], &[], &body.bytes).end();
        let error = craft::read("mc", &statistics, &data).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{flags:#x}: {error}");
    }
}

#[test]
fn bounds_and_deletions_of_every_kind() {
    let statistics = craft::statistics("Int32Type", &["Int32Type", "UTF8Type"], &[], &[("v", "Int32Type")]);
    let bound = |kind: u8, values: u16, clustering: &[u8], times: &[u64]| {
        let body = times.iter().fold(Craft::default(), |body, time| body.vint(*time)).bytes;
        let mut craft = Craft::default().raw(&[0x02, kind]).raw(&values.to_be_bytes()).raw(clustering);
        craft = craft.vint(body.len() as u64 + 1).vint(0).raw(&body);
        craft.bytes
    };
    let one = Craft::default().vint(0).raw(&7_u32.to_be_bytes()).bytes;
    let two = Craft::default().vint(0b01_00).raw(&7_u32.to_be_bytes()).bytes;
    let null = Craft::default().vint(0b10_01).bytes;
    let data = Craft::default()
        .partition(b"1")
        .raw(&bound(1, 1, &one, &[1, 2]))
        .raw(&bound(2, 1, &one, &[1, 2, 3, 4]))
        .raw(&bound(5, 2, &two, &[3, 4, 5, 6]))
        .row(&[0x10 | 0x80, 0x02], &null, &Craft::default().vint(8).vint(9).vint(1).bytes)
        .row(&[0x10 | 0x80, 0x80], &null, &Craft::default().vint(8).vint(9).vint(10).vint(11).vint(1).bytes)
        .raw(&bound(6, 0, &[], &[5, 6]))
        .end();
    let batch = craft::read("me", &statistics, &data).unwrap().remove(0);
    let entries = &batch.entries;
    assert_eq!(
        entries.kinds,
        [
            EntryKind::InclusiveStart,
            EntryKind::ExclusiveEndInclusiveStart,
            EntryKind::InclusiveEndExclusiveStart,
            EntryKind::Row,
            EntryKind::Row,
            EntryKind::InclusiveEnd
        ]
    );
    assert_eq!(
        (entries.prefixes.at.as_slice(), entries.prefixes.values.as_slice()),
        (&[0, 1, 5][..], &[1, 1, 0][..])
    );
    assert!(entries.timestamps.iter().all(|timestamp| *timestamp == NO_TIMESTAMP));
    let deletion = |timestamp: i64, local: u32| Deletion {
        timestamp: TIMESTAMP_EPOCH + timestamp,
        local_deletion: DELETION_TIME_EPOCH + local,
    };
    assert_eq!(entries.deletions.at, [0, 1, 2, 4, 5]);
    assert_eq!(entries.starts.values, [deletion(3, 4), deletion(5, 6)]);
    assert_eq!(
        (entries.shadowables.get(3), entries.shadowables.get(4)),
        (Some(deletion(8, 9)), Some(deletion(10, 11)))
    );
    assert_eq!(entries.clustering[1].nulls, [3, 4]);
    assert_eq!(entries.clustering[0].empties, [3, 4]);
    for bad in [
        bound(3, 1, &one, &[1, 2]),
        bound(1, 3, &one, &[1, 2]),
        bound(1, 1, &one, &[1, 2, 3]),
        bound(9, 0, &[], &[1]),
    ] {
        let data = Craft::default().partition(b"1").raw(&bad).end();
        assert_eq!(craft::read("me", &statistics, &data).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn partitions_since_oa() {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("v", "Int32Type")]);
    let data = Craft::default()
        .short(b"1")
        .raw(&[0x80, 0x01])
        .short(b"2")
        .raw(&6_i64.to_be_bytes())
        .raw(&u32::MAX.wrapping_sub(1).to_be_bytes())
        .raw(&[0x01]);
    let batch = craft::read("oa", &statistics, &data).unwrap().remove(0);
    assert_eq!(batch.partitions.ends, [0, 0]);
    assert_eq!(
        batch.partitions.deletions.get(1),
        Some(Deletion { timestamp: 6, local_deletion: u32::MAX - 1 })
    );
    let data = Craft::default().short(b"1").raw(&[0x81, 0x01]);
    assert_eq!(craft::read("oa", &statistics, &data).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_part_of_the_data_is_read_from_partition_to_partition() {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("v", "Int32Type")]);
    let mut data = Craft::default();
    let mut starts = Vec::new();
    for number in 0..10_000_u32 {
        starts.push(data.bytes.len() as u64);
        let body = Craft::default().vint(1).raw(&[0x08]).raw(&number.to_be_bytes()).bytes;
        data = data.partition(&number.to_be_bytes()).row(&[ALL], &[], &body).end();
    }
    let bytes = Bytes::from(data.bytes);
    let mut options = DataOptions::default();
    options.range = Some(starts[4000]..starts[9000]);
    let mut reader = craft::reader("mc", &statistics, options.clone());
    let batch = next(&mut reader, &bytes).unwrap().unwrap();
    assert_eq!(batch.partitions.ends.len(), 5000);
    assert_eq!(batch.partitions.offsets[0], starts[4000]);
    assert_eq!(batch.partitions.keys.get(4999), Some(&8999_u32.to_be_bytes()[..]));
    assert!(next(&mut reader, &bytes).unwrap().is_none());
    options.range = Some(starts[4000]..starts[9000] + 3);
    let mut reader = craft::reader("mc", &statistics, options);
    assert_eq!(next(&mut reader, &bytes).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Chunks that did not become smaller, by `max_compressed_length`; a compressor that does nothing; and what is not known.
#[test]
fn chunks_that_are_stored_as_they_are() {
    let statistics = craft::statistics("Int32Type", &[], &[], &[("v", "UTF8Type")]);
    let text: Vec<u8> = (0..3000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let body = Craft::default().vint(1).cell(&text).bytes;
    let data = Craft::default().partition(b"1").row(&[ALL], &[], &body).end().bytes;
    let file = |compressor: &str, most: u32| {
        let (mut file, mut offsets) = (Vec::new(), Vec::new());
        for chunk in data.chunks(1024) {
            offsets.push(file.len() as u64);
            file.extend(chunk);
            file.extend(marquetry_kernels::crc32(0, chunk).to_be_bytes());
        }
        let mut info = Craft::default().short(compressor.as_bytes()).raw(&0_u32.to_be_bytes());
        info = info
            .raw(&1024_u32.to_be_bytes())
            .raw(&most.to_be_bytes())
            .raw(&(data.len() as u64).to_be_bytes());
        info = info.raw(&(offsets.len() as u32).to_be_bytes());
        info = offsets.iter().fold(info, |info, offset| info.raw(&offset.to_be_bytes()));
        (Bytes::from(file), Bytes::from(info.bytes))
    };
    let read = |compressor: &str, most: u32, end: usize| {
        let (mut file, info) = file(compressor, most);
        file.truncate(file.len() - end);
        let version = Version::parse("nb").unwrap();
        let info = one(CompressionInfoReader::new(OBJECT, version, Limits::DEFAULT), &info)?;
        let (codecs, packing) = (Arc::new(StandardCodecs::default()), Packing::Compressed(Arc::new(info)));
        let options = DataOptions::default();
        let mut reader = DataReader::new(OBJECT, version, &statistics.header, packing, codecs, options)?;
        next(&mut reader, &file)
    };
    let last = data.len() as u32 % 1024;
    for (compressor, most) in
        [("LZ4Compressor", last), ("NoopCompressor", u32::MAX >> 1), ("a.b.SnappyCompressor", 1)]
    {
        let batch = read(compressor, most, 0).unwrap().unwrap();
        assert!(strings(&batch.columns[0].values) == [text.clone()], "{compressor}");
        assert_eq!(read(compressor, most, 1).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert_eq!(read("LZ4Compressor", last + 1, 0).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(read("SomeCompressor", 1, 0).unwrap_err().kind(), ErrorKind::Unsupported);
}
