//! Page indexes, size statistics and geospatial statistics that lie.

use marquetry_base::Budget;

use super::*;

/// Where a page is: offset, bytes, first row.
type Place = (i64, i32, i64);

/// Bytes of a page of [`indexed_file`] in the file.
fn page_bytes(page: &Page) -> i32 {
    (page.header.write().len() + page.body.len()).try_into().unwrap()
}

fn pages() -> [Page; 3] {
    [[1, 2], [3, 4], [5, 6]].map(|values| Page::data(2, PLAIN, plain_i32(&values)))
}

/// Where three pages are that begin behind the magic.
fn places() -> Vec<Place> {
    let mut offset = 4;
    let place = |(number, page): (usize, &Page)| {
        let place = (offset, page_bytes(page), 2 * i64::try_from(number).unwrap());
        offset += i64::from(place.1);
        place
    };
    pages().iter().enumerate().map(place).collect()
}

fn offset_index(places: &[Place]) -> Struct {
    let place = |&(offset, bytes, row): &Place| {
        V::Struct(Struct::of([(1, V::I64(offset)), (2, V::I32(bytes)), (3, V::I64(row))]))
    };
    Struct::of([(1, V::List(places.iter().map(place).collect())), (2, V::List(vec![V::I64(8); 3]))])
}

fn bounds(values: [i32; 3]) -> V {
    V::List(values.map(|value| V::Binary(value.to_le_bytes().to_vec())).to_vec())
}

fn column_index() -> Struct {
    Struct::of([
        (1, V::List(vec![V::Bool(false); 3])),
        (2, bounds([1, 3, 5])),
        (3, bounds([2, 4, 6])),
        (4, V::I32(1)),
        (5, V::List(vec![V::I64(0); 3])),
        (7, V::List(vec![V::I64(2); 3])),
    ])
}

fn file(offset_index: Struct, column_index: Struct) -> Table {
    Table::new([Column::required("a", INT32)])
        .group(6, [Chunk::new(6, pages()).indexed(offset_index, column_index)])
}

/// A file with all that a footer may tell of its values.
pub(super) fn indexed_file() -> Table {
    let sizes = Struct::of([(1, V::I64(24)), (3, V::List(vec![V::I64(6)]))]);
    let corners = Struct::of((1..=6).map(|id| (id, V::Double(f64::from(id)))));
    let places_of = Struct::of([(1, V::Struct(corners)), (2, V::List(vec![V::I32(1), V::I32(1001)]))]);
    let mut table = file(offset_index(&places()), column_index());
    let chunk = &mut table.groups[0].1[0];
    chunk.metadata.set(16, V::Struct(sizes));
    chunk.metadata.set(17, V::Struct(places_of));
    table.footer.set(7, V::List(vec![V::Struct(Struct::of([(1, V::Struct(Struct::default()))]))]));
    table
}

/// The error of reading it all.
fn error_of(table: &Table) -> Error {
    examine(&table.write(), Layout::Spaced).expect_err("a lie")
}

#[test]
fn what_an_index_says_is_read() {
    let bytes = indexed_file().write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let chunk = &metadata.row_groups[0].columns[0];
    assert_eq!(chunk.size_statistics.as_ref().unwrap().unencoded_byte_array_data_bytes, Some(24));
    let corners = chunk.geospatial_statistics.as_ref().unwrap().bounding_box.unwrap();
    assert_eq!(
        (corners.x, corners.y, corners.z, corners.m),
        ((1.0, 2.0), (3.0, 4.0), Some((5.0, 6.0)), None)
    );
    let mut reader = PageIndexReader::new(FILE, metadata, &ReadOptions::default()).unwrap();
    let mut seen = 0;
    hostile::run(&mut reader, FILE, &bytes, Manner::ONE_BYTE, |index| {
        seen += 1;
        let bounds = index.column_index.unwrap();
        assert_eq!(bounds.min_values.iter().map(|value| value[0]).collect::<Vec<_>>(), [1, 3, 5]);
        assert!(bounds.definition_levels(1).eq([2]) && bounds.repetition_levels(1).len() == 0);
        assert_eq!(index.offset_index.pages.len(), 3);
        assert_eq!(index.offset_index.unencoded_byte_array_data_bytes, Some(vec![8; 3].into()));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 1);
    // Fields that nobody knows change nothing.
    examine(&Table { unknown_fields: true, ..indexed_file() }.write(), Layout::Spaced).unwrap();
}

#[test]
fn pages_that_are_not_where_they_can_be() {
    let good = places();
    let changed = |change: &dyn Fn(&mut Vec<Place>)| {
        let mut places = good.clone();
        change(&mut places);
        let mut offsets = offset_index(&places);
        offsets.0.remove(&2);
        error_of(&file(offsets, column_index()))
    };
    let before = "the offset index: a page that begins before the end of the one before, or before its chunk";
    let beyond = "the offset index: a page without bytes, or beyond its chunk";
    for (change, message) in [
        (&|it: &mut Vec<Place>| it[0].0 = 3, before),
        (&|it: &mut Vec<_>| it[1].0 -= 1, before),
        (
            &|it: &mut Vec<_>| it.swap(0, 1),
            "the offset index: a first page that does not begin with the first row",
        ),
        (&|it: &mut Vec<_>| it[2].1 += 1000, beyond),
        (&|it: &mut Vec<_>| it[2].1 = 0, beyond),
        (&|it: &mut Vec<_>| it[2].0 = i64::MAX, beyond),
        (
            &|it: &mut Vec<_>| it[2].2 = 2,
            "the offset index: a page that does not begin after the first row of the one before",
        ),
        (&|it: &mut Vec<_>| it[2].2 = 6, "the offset index: a page beyond the rows of its row group"),
        (&|it: &mut Vec<_>| it[1].2 = -1, "the offset index: a negative count, size or offset"),
        (
            &|it: &mut Vec<_>| it[1].1 = -1,
            "the offset index: a page without its offset, its size or its first row",
        ),
        (&|it: &mut Vec<_>| it.clear(), "the offset index: no pages of 6 rows"),
        (&|it: &mut Vec<_>| it.truncate(2), "a column index of 3 pages beside an offset index of 2"),
    ] as [(&dyn Fn(&mut Vec<Place>), &str); 12]
    {
        let error = changed(change);
        assert_eq!(error.message(), message);
        assert_eq!((error.kind(), error.place().column.as_deref()), (ErrorKind::Corrupt, Some("a")));
    }
}

#[test]
fn lists_of_other_lengths() {
    for (field, value, message) in [
        (1, V::List(vec![V::Bool(false); 2]), "the column index: 3 lower bounds of 2 pages"),
        (2, V::List(vec![V::Binary(vec![]); 4]), "the column index: 4 lower bounds of 3 pages"),
        (3, V::List(vec![]), "the column index: 0 upper bounds of 3 pages"),
        (3, V::List(vec![V::I64(1); 3]), "the column index: a list of another type"),
        (1, V::List(vec![V::I32(1); 3]), "the column index: a list of another type"),
        (5, V::List(vec![V::I64(0); 2]), "the column index: 2 counts of nulls of 3 pages"),
        (8, V::List(vec![V::I64(0); 4]), "the column index: 4 counts of NaNs of 3 pages"),
        (6, V::List(vec![V::I64(0); 2]), "the column index: 2 counts of repetition levels of 3 pages"),
        (7, V::List(vec![V::I64(0); 6]), "the column index: 6 counts of definition levels of 3 pages"),
        (4, V::Bool(true), "the column index: one of its required fields is not there"),
    ] {
        let mut lying = column_index();
        lying.set(field, value);
        let error = error_of(&file(offset_index(&places()), lying));
        assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, message));
    }
    let mut sizes = offset_index(&places());
    sizes.set(2, V::List(vec![V::I64(1); 2]));
    assert_eq!(
        error_of(&file(sizes, column_index())).message(),
        "the offset index: sizes of 2 pages, and 3 pages"
    );
    // -1 for what is not known, as parquet-mr has written it, makes the list unknown, and nothing else.
    let mut unknown = column_index();
    unknown.set(5, V::List(vec![V::I64(0), V::I64(-1), V::I64(0)]));
    examine(&file(offset_index(&places()), unknown).write(), Layout::Spaced).unwrap();
}

#[test]
fn indexes_that_are_elsewhere() {
    let with = |fields: &[(i16, V)]| {
        let mut table = file(offset_index(&places()), column_index());
        let outer = &mut table.groups[0].1[0].outer;
        for (field, value) in fields {
            outer.set(*field, value.clone());
        }
        table
    };
    for fields in [
        &[(4, V::I64(i64::MAX))][..],
        &[(4, V::I64(0))],
        &[(5, V::I32(i32::MAX))],
        &[(6, V::I64(1 << 40))],
        // One that begins in the footer.
        &[(6, V::I64(i64::try_from(with(&[]).write().len()).unwrap() - 20))],
    ] {
        let error = error_of(&with(fields));
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(" bytes at "), "{error}");
        assert_eq!((error.place().row_group, error.place().column.as_deref()), (Some(0), Some("a")));
    }
    // Cut off, and begun too late.
    assert_eq!(error_of(&with(&[(7, V::I32(9))])).kind(), ErrorKind::Corrupt);
    assert_eq!(error_of(&with(&[(4, V::I64(5))])).kind(), ErrorKind::Corrupt);
    // Of no bytes: there is none.
    examine(&with(&[(5, V::I32(0)), (7, V::I32(0))]).write(), Layout::Spaced).unwrap();
    let error = error_of(&with(&[(5, V::I32(0))]));
    assert_eq!(error.message(), "a column index without an offset index");
}

#[test]
fn many_chunks_with_one_index() {
    // A thousand chunks that all name the same index: together more than the file has.
    let mut chunk = Chunk::new(6, pages()).indexed(offset_index(&places()), column_index());
    let first = file(offset_index(&places()), column_index()).write();
    let metadata = canonical::metadata(&first, Manner::KIND).unwrap();
    let (column, offset) =
        (metadata.row_groups[0].columns[0].column_index, metadata.row_groups[0].columns[0].offset_index);
    let (Some((column_at, column_bytes)), Some((offset_at, offset_bytes))) = (column, offset) else {
        panic!()
    };
    let mut table = Table::new([Column::required("a", INT32)]).group(6, [chunk.clone()]);
    chunk.indexes.clear();
    chunk.outer = Struct::of([
        (4, V::I64(offset_at.try_into().unwrap())),
        (5, V::I32(offset_bytes.try_into().unwrap())),
        (6, V::I64(column_at.try_into().unwrap())),
        (7, V::I32(column_bytes.try_into().unwrap())),
    ]);
    chunk.metadata = Struct::of([(9, V::I64(4))]);
    chunk.pages.clear();
    chunk.metadata.set(7, V::I64(metadata.row_groups[0].columns[0].compressed_bytes.try_into().unwrap()));
    for _ in 0..1000 {
        table = table.group(6, [chunk.clone()]);
    }
    let bytes = table.write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let mut reader = PageIndexReader::new(FILE, metadata, &ReadOptions::default()).unwrap();
    let mut read = 0;
    let error = hostile::run(&mut reader, FILE, &bytes, Manner::KIND, |_| {
        read += 1;
        Ok(())
    })
    .unwrap_err();
    assert_eq!(error.message(), "page indexes that are longer together than the file");
    assert!((1..10).contains(&read) && error.kind() == ErrorKind::Corrupt, "{read}");
}

#[test]
fn an_index_of_a_million_pages_is_many_small_steps() {
    const PAGES: i32 = 1_000_000;
    let pages_usize = usize::try_from(PAGES).unwrap();
    // Each page is a byte, as far as the index says, of a chunk that claims to be so long; nobody reads it.
    let offsets: Vec<Place> = (0..i64::from(PAGES)).map(|page| (4 + page, 1, page)).collect();
    let mut offset = offset_index(&offsets);
    offset.0.remove(&2);
    let bound = V::List(vec![V::Binary(vec![7; 4]); pages_usize]);
    let column = Struct::of([
        (1, V::List(vec![V::Bool(false); pages_usize])),
        (2, bound.clone()),
        (3, bound),
        (4, V::I32(0)),
    ]);
    let body = vec![0; pages_usize];
    let mut page = Page::data(1, PLAIN, body);
    page.header.set(3, V::I32(PAGES));
    let table = Table::new([Column::required("a", INT32)])
        .group(PAGES.into(), [Chunk::new(PAGES.into(), [page]).indexed(offset, column)]);
    let bytes = table.write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let mut reader = PageIndexReader::new(FILE, Arc::clone(&metadata), &ReadOptions::default()).unwrap();
    let peak = memory::peak();
    let mut pages = 0;
    let report = hostile::run(
        &mut reader,
        FILE,
        &bytes,
        Manner { late: false, shuffled: false, ..Manner::USUAL },
        |index| {
            pages += index.offset_index.pages.len();
            assert_eq!(index.column_index.unwrap().max_values.get(999_999), [7; 4]);
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(pages, pages_usize);
    assert!(report.units_max <= Budget::DEFAULT_UNITS + 40_000, "{report:?}");
    assert!(report.steps > 100, "{report:?}");
    let peak = peak.bytes();
    // The places take 24 bytes a page, the bounds 17, and a vector that grows has twice its size and half again.
    assert!(peak < 200 << 20, "{peak}");
    let limits = Limits { page_index_bytes: 1 << 20, ..Limits::DEFAULT };
    let mut reader =
        PageIndexReader::new(FILE, metadata, &ReadOptions { limits, ..ReadOptions::default() }).unwrap();
    let error = hostile::run(&mut reader, FILE, &bytes, Manner::KIND, |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.message().contains("page_index_bytes"), "{error}");
}
