//! What a destination is told of where rows are from, and what errors are about.

use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::{
    Batches, CopyOptions, Destination, Piece, PieceOptions, Source, Table, Wants, Written, copy,
};

/// Pieces `a`, `b` and `c`, each of two batches of one row.
struct Letters {
    table: Table,
    pieces: [Piece; 3],
}

impl Letters {
    fn source() -> Arc<dyn Source> {
        let field = FieldDef::new("n", FieldType::Leaf(PhysicalType::Int32, None));
        let table = Table::new("letters", Arc::new(Schema::of_fields(&[field]).unwrap()));
        Arc::new(Letters { table, pieces: ["a", "b", "c"].map(Piece::of) })
    }
}

impl Source for Letters {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _piece: usize, _options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Two(0)))
    }
}

struct Two(u64);

impl Batches for Two {
    fn next(&mut self) -> Result<Option<Batch>> {
        let values = Values::Int32(vec![7].into());
        let layout = Layout::Spaced;
        let column = ColumnBatch {
            leaf: 0,
            rows: 1,
            nulls: 0,
            validity: None,
            values,
            layout,
            levels: None,
            provisional: false,
        };
        let batch = Batch { row_group: 0, first_row: self.0, rows: 1, columns: vec![column] };
        self.0 += 1;
        Ok((self.0 <= 2).then_some(batch))
    }
}

/// Keeps what it is told, and fails at its fourth row.
#[derive(Default)]
struct Told {
    told: Vec<String>,
    rows: usize,
    fails: Option<Error>,
}

impl Destination for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.told.push(format!("begin {}", table.name));
        Ok(Wants::default())
    }

    fn rows_from(&mut self, object: &str) {
        self.told.push(format!("from {object}"));
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.told.push(format!("row {}", batch.first_row));
        self.rows += 1;
        match &self.fails {
            Some(error) if self.rows == 4 => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<Written> {
        self.told.push("finish".to_owned());
        Ok(Written::default())
    }
}

#[test]
fn a_destination_is_told_when_the_object_changes() {
    let mut told = Told::default();
    copy(&Letters::source(), &mut told, &CopyOptions::default(), &mut |_| {}).unwrap();
    let expected = [
        "begin letters",
        "from a",
        "row 0",
        "row 1",
        "from b",
        "row 0",
        "row 1",
        "from c",
        "row 0",
        "row 1",
        "finish",
    ];
    assert_eq!(told.told, expected);
}

#[test]
fn errors_name_what_they_are_about() {
    let object = |fails: Error| {
        let mut told = Told { fails: Some(fails), ..Told::default() };
        let error = copy(&Letters::source(), &mut told, &CopyOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!(told.told.last().unwrap(), "row 1");
        error.place().object.clone().unwrap()
    };
    assert_eq!(object(Error::conversion("a value")), "b");
    assert_eq!(object(Error::corrupt("levels")), "b");
    assert_eq!(object(Error::io("a disk")), "told");
    assert_eq!(object(Error::refused("a row").at(|place| place.object = Some("a".to_owned()))), "a");
}
