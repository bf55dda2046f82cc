//! A table of one's own: a generator, copied to a Parquet file, to CSV, and to CQL text.
//! `cargo run --example custom_source -- squares.parquet squares.csv`.

use std::env;
use std::io;
use std::sync::Arc;

use marquetry::base::cast::u64_of;
use marquetry::batch::Batch;
use marquetry::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry::scylla::bridge::MappingOptions;
use marquetry::scylla::cql::{KeySpec, TableName};
use marquetry::tables::{
    Batches, CopyOptions, CqlText, CqlTextOptions, Piece, PieceOptions, Source, Table, copy,
};

/// Numbers and their squares.
struct Squares {
    table: Table,
    pieces: Vec<Piece>,
}

/// Numbers of a piece: pieces are read side by side.
const PIECE_ROWS: i64 = 100_000;

impl Squares {
    fn new(pieces: usize) -> marquetry::Result<Squares> {
        let column = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
        let schema = Schema::of_fields(&[column("n"), column("square")])?;
        let mut table = Table::new("squares", Arc::new(schema));
        table.rows = u64::try_from(PIECE_ROWS).ok().map(|rows| u64_of(pieces) * rows);
        let pieces = (0..pieces).map(|piece| Piece::of(format!("squares, piece {piece}"))).collect();
        Ok(Squares { table, pieces })
    }
}

impl Source for Squares {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, _: &PieceOptions) -> marquetry::Result<Box<dyn Batches>> {
        let first: i64 = self.pieces[..piece].iter().map(|_| PIECE_ROWS).sum();
        Ok(Box::new(Numbers { next: first, end: first + PIECE_ROWS }))
    }
}

/// The rows of a piece.
struct Numbers {
    next: i64,
    end: i64,
}

impl Batches for Numbers {
    fn next(&mut self) -> marquetry::Result<Option<Batch>> {
        let numbers: Vec<i64> = (self.next..self.end.min(self.next + 8192)).collect();
        let Some(last) = numbers.last() else { return Ok(None) };
        self.next = last + 1;
        let squares: Vec<i64> = numbers.iter().map(|n| n * n).collect();
        Ok(Some(Batch::of_values([numbers.into(), squares.into()])?))
    }
}

fn main() -> marquetry::Result<()> {
    let mut paths: Vec<_> = env::args_os().skip(1).collect();
    if paths.is_empty() {
        paths = vec!["squares.parquet".into(), "squares.csv".into()];
    }
    let squares: Arc<dyn Source> = Arc::new(Squares::new(10)?);
    for path in &paths {
        let mut file = marquetry::destination(path)?;
        let copied = copy(&squares, file.as_mut(), &CopyOptions::default(), &mut |_| {})?;
        eprintln!("{} rows in {} bytes", copied.rows, copied.written.bytes);
    }

    let key = KeySpec::parse("n").map_err(|error| marquetry::Error::misuse(error.to_string()))?;
    let table =
        TableName::parse("demo.squares").map_err(|error| marquetry::Error::misuse(error.to_string()))?;
    let mapping = MappingOptions { key: Some(key), ..MappingOptions::default() };
    let mut text = CqlText::new(io::stdout(), table, CqlTextOptions::of(mapping));
    let mut first = CopyOptions::default();
    first.limit = Some(3);
    copy(&squares, &mut text, &first, &mut |_| {})?;
    Ok(())
}
