//! Strings that many rows share, as an entry of a dictionary: few bytes in a file, and many as values.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use marquetry::Writer;
use marquetry::arrow::StringLayout;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::Codec;
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};

const ROWS: usize = 600;

/// A file of one column, of which all rows have one of two long texts, or a short one.
fn written(path: &std::path::Path) -> [String; 3] {
    let texts = ["é".repeat(100_000), "ü".repeat(150_064), "short".to_owned()];
    let entries: Values = texts.iter().map(String::as_str).collect();
    let indices: Vec<u32> = (0..ROWS).map(|row| [0, 1, 1, 2][row % 4]).collect();
    let field = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
    let schema = Schema::of_fields(&[FieldDef::new("text".to_owned(), field)]).unwrap();
    let mut options = ParquetOptions::default();
    options.write.column.encoding = Some(Encoding::RleDictionary);
    options.write.column.compression = Compression::Codec(Codec::Zstd);
    let mut writer = Writer::with(path, schema, options).unwrap();
    writer.write(Batch::of_values([Values::Dictionary(indices.into(), Arc::new(entries))]).unwrap()).unwrap();
    writer.finish().unwrap();
    texts
}

#[test]
fn record_batches_of_strings_with_offsets_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.parquet");
    let texts = written(&path);
    assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
    for layout in [StringLayout::Offset32, StringLayout::Offset64] {
        let reader = marquetry::open(&path).unwrap().strings(layout);
        let mut row = 0;
        for batch in reader.record_batches().unwrap() {
            let column = Arc::clone(batch.unwrap().column(0));
            // Half of what has more than 64 MiB, at most.
            assert!(
                column.len() <= 300 && column.get_buffer_memory_size() < 80 << 20,
                "{} rows",
                column.len()
            );
            for at in 0..column.len() {
                let text = match layout {
                    StringLayout::Offset32 => column.as_string::<i32>().value(at),
                    _ => column.as_string::<i64>().value(at),
                };
                assert!(text == texts[[0, 1, 1, 2][row % 4]], "row {row}");
                row += 1;
            }
        }
        assert_eq!(row, ROWS);
    }
}

#[test]
fn strings_as_views_share_the_bytes_of_a_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.parquet");
    let texts = written(&path);
    let reader = marquetry::open(&path).unwrap();
    let batches = reader.record_batches().unwrap();
    let as_bytes = marquetry::open(&path).unwrap().record_batches().unwrap().with_text_as_bytes();
    for (batch, bytes) in batches.zip(as_bytes) {
        let (batch, bytes) = (batch.unwrap(), bytes.unwrap());
        let (text, bytes) = (batch.column(0).as_string_view(), bytes.column(0).as_binary_view());
        assert!(text.len() == ROWS && text.get_buffer_memory_size() < 1 << 20);
        for row in 0..ROWS {
            let expected = &texts[[0, 1, 1, 2][row % 4]];
            assert!(text.value(row) == expected && bytes.value(row) == expected.as_bytes(), "row {row}");
        }
    }
}
