//! Indexes of columns: what is found by them is what is found without, whatever state they are in.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StructArray};
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::Codec;
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_rados::{Answer, Asked, Query, compress, index};

use crate::{Object, by, found, rows_of, trips, written};

#[test]
fn an_index_finds_what_a_search_does_and_reads_less() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trips(30_000, Compression::Codec(Codec::Zstd));
    let rows = rows_of(folder.path(), &bytes);
    let ids: Vec<i64> = rows.column_by_name("id").unwrap().to_data().buffer::<i64>(0)[..30_000].to_vec();
    let mut object = Object::new(bytes.clone());
    let search = |object: &mut Object, predicate: &str| {
        object.read = 0;
        let asked = Asked::new().column("id").column("city").predicate(predicate).share(400_000, 100_000);
        let answers: Vec<Answer> = Query::new(&mut *object, &asked).map(Result::unwrap).collect();
        let rows: Vec<(u64, u64)> =
            answers.iter().filter(|it| it.rows > 0).map(|it| (it.first_row, it.rows)).collect();
        (rows, answers.iter().map(|answer| answer.rows).sum::<u64>(), object.read)
    };
    let absent = (8_000_000..).find(|id| !ids.contains(id)).unwrap();
    let predicates = [
        format!("id = {}", ids[17_123]),
        format!("id IN ({}, {}, {}, -5)", ids[3], ids[9_999], ids[29_999]),
        format!("id = {} AND fare IS NOT NULL", ids[12_345]),
        format!("id = {absent}"),
        "id = -1".to_owned(),
        format!("id = {} OR city IS NULL", ids[5]),
    ];
    let before: Vec<_> = predicates.iter().map(|predicate| search(&mut object, predicate)).collect();
    assert_eq!(before[0].1, 1);
    // While it is built, what it has is used.
    let calls = index(&mut Object { fails_after: 2, ..object.clone() }, "id");
    assert!(calls.is_err());
    object.fails_after = 3;
    assert!(index(&mut object, "id").is_err());
    for (predicate, (_, rows, _)) in predicates.iter().zip(&before) {
        assert_eq!(search(&mut object, predicate).1, *rows, "{predicate}");
    }
    (object.fails_after, object.calls) = (u64::MAX, 0);
    let calls = index(&mut object, "id").unwrap();
    assert!(calls > 2, "{calls} calls");
    for (predicate, (_, rows, read)) in predicates.iter().zip(&before) {
        let (_, now, now_read) = search(&mut object, predicate);
        assert_eq!(now, *rows, "{predicate}");
        println!("{predicate}: {read} bytes were read, and {now_read} by the index");
        if predicate.contains("OR") {
            assert_eq!(now_read, *read, "{predicate}");
        } else if predicate.contains("= -1") {
            // Statistics know that without it.
            assert!(now_read < read + 20_000, "{predicate}");
        } else {
            assert!(
                now_read * 10 < read * 9,
                "{predicate}: {read} bytes were read, and {now_read} by the index"
            );
        }
    }
    // A part of which something is missing or damaged is searched without it.
    for number in 0..4 {
        let mut damaged = object.clone();
        let mut left = 0;
        damaged.entries.retain(|key, entry| {
            let is_bucket = key != "marquetry.index";
            match number {
                0 => return !is_bucket,
                1 if is_bucket => entry.truncate(entry.len() / 2),
                2 if is_bucket => entry.truncate(3),
                3 if is_bucket => entry.iter_mut().for_each(|byte| *byte ^= 1),
                _ => {}
            }
            left += 1;
            true
        });
        assert!(number == 0 || left > 16);
        for (predicate, (_, rows, _)) in predicates.iter().zip(&before) {
            assert_eq!(search(&mut damaged, predicate).1, *rows, "{predicate}, damage {number}");
        }
    }
    // Bytes with the same end in place of it are not known for others: who builds the index again has one of them.
    let mut again = object.clone();
    again.entries.values_mut().for_each(|entry| entry.reverse());
    again.entries.insert("marquetry.index".to_owned(), object.entries["marquetry.index"].clone());
    index(&mut again, "id").unwrap();
    assert!(again.entries == object.entries);
    // Of another state of the object it is not used, nor of another column.
    let indexed = object.clone();
    compress(&mut object, &by("snappy", None)).unwrap();
    for (predicate, (_, rows, _)) in predicates.iter().zip(&before) {
        assert_eq!(search(&mut object, predicate).1, *rows, "{predicate}");
    }
    let mut object = indexed;
    index(&mut object, "city").unwrap();
    // It is in all pieces, so the index is of no use: a call looks at some of its parts, which are as small as the calls that made them.
    let city = "city = 'a city, number 77'";
    let (_, _, without) = search(&mut Object::new(bytes), city);
    let (_, rows, with) = search(&mut object, city);
    println!("{city}: {without} bytes were read, and {with} with an index");
    assert!(rows == 300 && with < without + without / 3, "{rows} rows by {with} bytes, not {without}");
    assert_eq!(search(&mut object, &predicates[0]).1, 1);
    // Entries that are wrong are not used, or an error.
    let entry = object.entries.get_mut("marquetry.index").unwrap();
    entry.truncate(entry.len() - 3);
    assert_eq!(search(&mut object, "city = 'a city, number 77'").1, 300);
    for wrong in ["nothing", "tags"] {
        let result = index(&mut object, wrong);
        assert!(result.is_err() == (wrong == "nothing"), "{wrong}: {result:?}");
    }
    // Values in lists are found by row, too.
    assert_eq!(search(&mut object, "tags = 'tag 1 of 21003'").1, 1);
}

/// Rows of which an index says nothing are searched without it, and those after them by it, in the same call.
#[test]
fn an_index_helps_after_rows_of_which_it_says_nothing() {
    // A value that is everywhere in the first rows, and once in those after them; no bound rules it out.
    let noise = |row: i64| (row.wrapping_mul(0x1e37_79b9_7f4a_7c15) >> 24) - 77;
    let is_wanted = |row: i64| row < 12 << 10 && row % 3 == 0 || row == 80_000;
    let ids = (0..100_i64 << 10).map(|row| if is_wanted(row) { 7 } else { noise(row) | 8 });
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let mut options = ParquetOptions::default();
    options.write.page_rows = 1024;
    options.write.column.encoding = Some(Encoding::Plain);
    options.write.column.compression = Compression::Uncompressed;
    let mut object = Object::new(written(&RecordBatch::try_from_iter([("id", ids)]).unwrap(), options));
    let asked = Asked::new().predicate("id = 7").counted().share(4_000_000, 1 << 20);
    let search = |object: &mut Object| {
        object.read = 0;
        let answers: Vec<Answer> = Query::new(&mut *object, &asked).map(Result::unwrap).collect();
        (answers.len(), answers.iter().map(|answer| answer.rows).sum::<u64>(), object.read)
    };
    let (calls, rows, without) = search(&mut object);
    assert_eq!(rows, 4097);
    index(&mut object, "id").unwrap();
    let (calls_with, rows, with) = search(&mut object);
    println!("{without} bytes were read in {calls} calls, and {with} by the index in {calls_with}");
    assert_eq!(rows, 4097);
    assert!(with * 4 < without * 3, "{with} bytes were read, and {without} without the index");
}

/// What is said of parts is written once for many of them: a call does not write more, the longer the index is.
#[test]
fn a_long_index_has_lists_of_its_parts() {
    let ids = (0..270_i64 << 10).map(|row| row.wrapping_mul(0x1e37_79b9_7f4a_7c15) >> 24);
    let ids: Vec<i64> = ids.collect();
    let (first, last) = (ids[3], ids[ids.len() - 3]);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let mut options = ParquetOptions::default();
    options.write.page_rows = 1024;
    options.write.column.encoding = Some(Encoding::Plain);
    options.write.column.compression = Compression::Uncompressed;
    let mut object = Object::new(written(&RecordBatch::try_from_iter([("id", ids)]).unwrap(), options));
    // A piece of the rows a call.
    object.share = 1;
    assert_eq!(index(&mut object, "id").unwrap(), 271);
    let lists: Vec<&String> = object.entries.keys().filter(|key| key.contains("list")).collect();
    assert_eq!(lists, ["marquetry.index.list.00000000"]);
    let (list, head) = (object.entries[lists[0]].len(), object.entries["marquetry.index"].len());
    assert!(list >= 256 * 16 && head < 14 * 16 + 100, "{list} and {head} bytes");
    let search = |object: &mut Object, id: i64| {
        object.read = 0;
        (found(object, &format!("id = {id}")), object.read)
    };
    for id in [first, last] {
        let (rows, read) = search(&mut object, id);
        assert!(rows == 1 && read < 1 << 20, "{rows} rows by {read} bytes");
    }
    // Without one of its lists, or with another one, it is not used.
    for number in 0..3 {
        let mut damaged = object.clone();
        let list = damaged.entries.get_mut("marquetry.index.list.00000000").unwrap();
        match number {
            0 => list.truncate(list.len() - 16),
            1 => list[77] ^= 1,
            _ => drop(damaged.entries.remove("marquetry.index.list.00000000")),
        }
        for id in [first, last] {
            let (rows, read) = search(&mut damaged, id);
            assert!(rows == 1 && read > 2 << 20, "{rows} rows by {read} bytes");
        }
    }
    // One that was interrupted goes on after its list; who begins again writes the list anew.
    let mut again = object.clone();
    again.entries.get_mut("marquetry.index.list.00000000").unwrap().reverse();
    index(&mut again, "id").unwrap();
    assert!(again.entries == object.entries);
}

#[test]
fn an_index_is_of_the_column_that_it_was_made_of() {
    let within = |name: &str, values: std::ops::Range<i64>| -> ArrayRef {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        Arc::new(StructArray::from(RecordBatch::try_from_iter([(name, values)]).unwrap()))
    };
    // The names of both, with dots between them, are the same.
    let columns = [("x", within("a.b", 0..9000)), ("x.a", within("b", 9000..18_000))];
    let mut object =
        Object::new(written(&RecordBatch::try_from_iter(columns).unwrap(), ParquetOptions::default()));
    let (first, second) = ("x.\"a.b\"", "\"x.a\".b");
    let found_in = |object: &mut Object| {
        let predicates = [(first, 77), (first, 9077), (second, 77), (second, 9077)];
        predicates.map(|(column, value)| found(object, &format!("{column} = {value}")))
    };
    assert_eq!(found_in(&mut object), [1, 0, 0, 1]);
    for column in [first, second] {
        index(&mut object, column).unwrap();
        assert_eq!(found_in(&mut object), [1, 0, 0, 1], "with an index of {column}");
    }
}
