use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_scylla::bridge::{MappedBatch, MappingOptions};
use marquetry_scylla::cql::{KeySpec, TableName};

use super::*;

/// Blobs `a`, `B` and `c`.
fn mapping(key: &str) -> Mapping {
    let blob = FieldType::Leaf(PhysicalType::ByteArray, None);
    let fields = ["a", "B", "c"].map(|name| FieldDef::new(name, blob.clone()));
    let options = MappingOptions { key: Some(KeySpec::parse(key).unwrap()), ..MappingOptions::default() };
    let table = TableName::parse("k.t").unwrap();
    Mapping::new(&Schema::of_fields(&fields).unwrap().into(), table, &options).unwrap()
}

fn filling(mapping: &Mapping, row_bytes_max: usize) -> Filling {
    Filling::new(
        mapping,
        &RowStatement::of(mapping, None),
        Nulls::Unset,
        (row_bytes_max, BlockSize::of(Rate::default())),
        (1000, 2),
    )
}

fn origin(object: &str) -> Arc<Origin> {
    Arc::new(Origin { object: Arc::from(object), batch: None })
}

/// Without stamps.
fn add(filling: &mut Filling, mapping: &Mapping, batch: &MappedBatch, next: usize) -> Result<usize, Unfit> {
    filling.add(&mut mapping.bind(batch, 50).unwrap(), &RowStamps::default(), next, 50)
}

/// A row whose write time would be later than any is refused: it would not win over the one before it.
#[test]
fn write_times_end() {
    let mapping = mapping("a");
    let mut filling = filling(&mapping, 1 << 20);
    filling.first_write_time_us = i64::MAX - 103;
    let row: Row<'_> = [Some(b"1"), None, None];
    let batch = batch(&mapping, &[row, row, row]);
    let error = add(&mut filling, &mapping, &batch, 0).unwrap_err();
    assert_eq!((error.in_batch, error.error.place().row), (2, Some(102)), "{:?}", error.error);
    assert_eq!(filling.rows.iter().map(|row| row.id.write_time_us).max(), Some(i64::MAX - 1));
}

type Row<'a> = [Option<&'a [u8]>; 3];

/// The rows of an object from its row 100 on.
fn batch(mapping: &Mapping, rows: &[Row<'_>]) -> MappedBatch {
    let column = |leaf: usize| {
        let cells = || rows.iter().map(move |row| row[leaf]);
        let bytes: Vec<u8> = cells().flatten().flatten().copied().collect();
        let lengths = cells().map(|cell| cell.map_or(0, <[u8]>::len));
        ColumnBatch {
            leaf,
            rows: rows.len(),
            nulls: cells().filter(Option::is_none).count(),
            validity: Some(cells().map(|cell| cell.is_some()).collect()),
            values: Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths).unwrap()),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        }
    };
    let batch =
        Batch { row_group: 0, first_row: 100, rows: rows.len(), columns: (0..3).map(column).collect() };
    mapping.assemble(batch).unwrap()
}

/// The first error of the rows under a key, and how many rows come before it.
fn refusal(key: &str, rows: &[Row<'_>]) -> Option<(String, usize)> {
    let mapping = mapping(key);
    let mut filling = filling(&mapping, 70_000);
    let Unfit { in_batch, error } = add(&mut filling, &mapping, &batch(&mapping, rows), 0).err()?;
    let before = filling.take(&origin("")).map_or(0, |block| block.rows().count());
    assert_eq!(in_batch, before);
    Some((error.to_string(), before))
}

#[test]
fn cells_come_back() {
    let mapping = mapping("a");
    let rows: [Row<'_>; 2] = [[Some(b"k"), None, Some(b"")], [Some(b"l"), Some(b"xyz"), None]];
    let mut filling = filling(&mapping, 100);
    assert_eq!(add(&mut filling, &mapping, &batch(&mapping, &rows), 0).unwrap(), 2);
    let block = filling.take(&origin("o")).unwrap();
    assert_eq!(&*block.from.object, "o");
    let got: Vec<(RowId, Bytes)> = block.rows().collect();
    assert_eq!(got[0].0, RowId { number: 100, ordinal: 50, in_batch: 0, write_time_us: 1100 });
    assert_eq!(got[1].0, RowId { number: 101, ordinal: 51, in_batch: 1, write_time_us: 1102 });
    for ((_, cells), row) in got.iter().zip(rows) {
        assert_eq!(Cells(cells).collect::<Vec<_>>(), row);
    }
    assert!(filling.take(&origin("o")).is_none());
}

#[test]
fn keys_are_checked() {
    let whole: Row<'_> = [Some(b"k"), Some(b"l"), Some(b"")];
    assert_eq!(refusal("a, B", &[whole, [Some(b"k"), Some(b""), None]]), None);
    let refused = |key: &str, row: Row<'_>| {
        let (message, before) = refusal(key, &[whole, row]).unwrap();
        assert_eq!(before, 1);
        message
    };
    let null = "a column of the primary key is null";
    assert_eq!(refused("a, B", [None, Some(b"l"), None]), format!("{null} (column a, row 101)"));
    assert_eq!(refused("a, B", [Some(b"k"), None, None]), format!("{null} (column B, row 101)"));
    assert_eq!(refused("a", [Some(b""), None, None]), "the partition key is empty (column a, row 101)");
    // A component of a composite key may be empty.
    assert_eq!(refusal("(c, a)", &[whole]), None);
    let long = [b'x'; 65_536];
    assert_eq!(refusal("a", &[[Some(&long[1..]), None, None]]), None);
    let error = "a partition key of 65536 bytes, more than 65535 (column a, row 101)";
    assert_eq!(refused("a", [Some(&long), None, None]), error);
    assert_eq!(refusal("(a, B)", &[[Some(&long[7..]), Some(b""), None]]), None);
    let error =
        "the partition key has more than 65535 bytes, the most that the databases take (column B, row 101)";
    assert_eq!(refused("(a, B)", [Some(&long[6..]), Some(b""), None]), error);
}

#[test]
fn large_rows_are_refused_by_their_largest_column() {
    let (small, large) = ([0; 30_000], [0; 39_988]);
    assert_eq!(refusal("a", &[[Some(b"k"), Some(&small), Some(&large[1..])]]), None);
    let message =
        "the row has 70001 bytes, 39988 of them in this column; the cluster takes 70000 (column c, row 100)";
    assert_eq!(refusal("a", &[[Some(b"k"), Some(&small), Some(&large)]]), Some((message.to_owned(), 0)));
}

#[test]
fn blocks_are_full_by_rows_or_bytes() {
    let mapping = mapping("a");
    let mut filling = filling(&mapping, usize::MAX);
    let row: Row<'_> = [Some(b"k"), None, None];
    let rows = batch(&mapping, &vec![row; BLOCK_ROWS + 5]);
    assert_eq!(add(&mut filling, &mapping, &rows, 0).unwrap(), BLOCK_ROWS);
    assert_eq!(filling.take(&origin("")).unwrap().rows().count(), BLOCK_ROWS);
    assert_eq!(add(&mut filling, &mapping, &rows, BLOCK_ROWS).unwrap(), BLOCK_ROWS + 5);
    // Rows of several batches may be in one block.
    let large = vec![0; BLOCK_BYTES];
    let row: Row<'_> = [Some(b"k"), Some(&large), None];
    assert_eq!(add(&mut filling, &mapping, &batch(&mapping, &[row, row]), 0).unwrap(), 1);
    assert_eq!(filling.take(&origin("")).unwrap().rows().count(), 6);
}

#[test]
fn slow_loads_have_small_blocks() {
    let of = |rate: &str| {
        let block = BlockSize::of(rate.parse().unwrap());
        (block.rows, block.bytes)
    };
    assert_eq!(of("1M"), (BLOCK_ROWS, BLOCK_BYTES));
    assert_eq!(of("160"), (10, BLOCK_BYTES));
    assert_eq!(of("1"), (1, BLOCK_BYTES));
    assert_eq!(of("20K,16KB"), (BLOCK_ROWS, 1000));
}
