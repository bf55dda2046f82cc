//! Tables to be loaded: rows that are made here, and those of a file.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Limits, Object, Result};
use marquetry_cluster::CqlTable;
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::File;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Levels, Values};
use marquetry_parquet::format::{FileMetaData, KeyValue};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_tables::{
    Batches, CopyOptions, Destination, Piece, PieceOptions, Source, TABLE_SCHEMA_KEY, Table, Written, copy,
};

/// Loads a source; what was loaded, also after an error, and how it ended.
pub(crate) fn load(table: &mut CqlTable, source: &Arc<dyn Source>) -> (Written, Result<u64>) {
    load_watched(table, source, &mut |_| {})
}

/// … with a look at how far it is, after each batch.
pub(crate) fn load_watched(
    table: &mut CqlTable,
    source: &Arc<dyn Source>,
    look: &mut dyn FnMut(&Written),
) -> (Written, Result<u64>) {
    let copied = copy(source, table, &CopyOptions::default(), &mut |copied| look(&copied.written));
    let loaded = table.progress().unwrap_or_default();
    if let Ok(copied) = copied {
        assert_eq!(loaded, copied.written);
    }
    (loaded, copied.map(|copied| copied.rows))
}

/// A file of `tests/data`, in batches of three rows, which end within row groups too.
pub(crate) struct FileSource {
    table: Table,
    pieces: [Piece; 1],
    metadata: Arc<FileMetaData>,
    name: &'static str,
}

impl FileSource {
    pub(crate) fn open(name: &'static str) -> Arc<FileSource> {
        let sources = ByteSources::new().with(Object(0), file(name));
        let metadata = drive(&mut FooterReader::new(Object(0), Limits::DEFAULT), &sources).unwrap().unwrap();
        let table = Table::new(name, Arc::clone(&metadata.schema));
        Arc::new(FileSource { table, pieces: [Piece::of(name)], metadata, name })
    }

    pub(crate) fn batches(&self, keep_dictionaries: bool) -> impl Iterator<Item = Batch> + use<> {
        let mut rows = self.read(keep_dictionaries);
        std::iter::from_fn(move || rows.next().unwrap())
    }

    fn read(&self, keep_dictionaries: bool) -> FileRows {
        let options = ReadOptions { batch_rows: 3, keep_dictionaries, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let reader = BatchReader::new(Object(0), Arc::clone(&self.metadata), codecs, options).unwrap();
        FileRows { reader, file: ByteSources::new().with(Object(0), file(self.name)) }
    }
}

fn file(name: &str) -> File {
    File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

impl Source for FileSource {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(self.read(options.keep_dictionaries)))
    }
}

struct FileRows {
    reader: BatchReader,
    file: ByteSources<File>,
}

impl Batches for FileRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        drive(&mut self.reader, &self.file)
    }
}

/// A value of a made row.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Int(i32),
    Big(i64),
    Bytes(Vec<u8>),
}

pub(crate) fn int(value: i32) -> Cell {
    Cell::Int(value)
}

pub(crate) fn text(value: &str) -> Cell {
    Cell::Bytes(value.as_bytes().to_vec())
}

type Rows = Arc<dyn Fn() -> Box<dyn Iterator<Item = Vec<Cell>> + Send> + Send + Sync>;

/// Rows that are made when they are asked for, some of them at a time, in several pieces `made 0`, `made 1`, ….
pub(crate) struct Made {
    table: Table,
    types: Vec<PhysicalType>,
    pieces: Vec<Piece>,
    rows: Vec<Rows>,
    batch_rows: usize,
}

impl Made {
    /// Columns of the CQL types `int`, `bigint`, `text` and `blob`; one piece.
    pub(crate) fn new<R>(columns: &[(&str, &str)], rows: R) -> Made
    where
        R: IntoIterator<Item = Vec<Cell>>,
        R::IntoIter: Clone + Send + Sync + 'static,
    {
        let types: Vec<_> = columns
            .iter()
            .map(|(_, cql_type)| match *cql_type {
                "int" => (PhysicalType::Int32, None),
                "bigint" => (PhysicalType::Int64, None),
                "text" => (PhysicalType::ByteArray, Some(LogicalType::String)),
                "blob" => (PhysicalType::ByteArray, None),
                other => panic!("{other}"),
            })
            .collect();
        let fields: Vec<FieldDef> = columns
            .iter()
            .zip(&types)
            .map(|((name, _), (physical, logical))| {
                FieldDef::new(*name, FieldType::Leaf(*physical, logical.clone()))
            })
            .collect();
        let made = Made {
            table: Table::new("made", Arc::new(Schema::of_fields(&fields).unwrap())),
            types: types.into_iter().map(|(physical, _)| physical).collect(),
            pieces: Vec::new(),
            rows: Vec::new(),
            batch_rows: 1000,
        };
        made.and(rows)
    }

    /// One more piece.
    pub(crate) fn and<R>(mut self, rows: R) -> Made
    where
        R: IntoIterator<Item = Vec<Cell>>,
        R::IntoIter: Clone + Send + Sync + 'static,
    {
        self.pieces.push(Piece::of(format!("made {}", self.pieces.len())));
        let rows = rows.into_iter();
        self.rows.push(Arc::new(move || Box::new(rows.clone())));
        self
    }

    /// Rows that come with the statements that made their table.
    pub(crate) fn made_by(mut self, statements: &str) -> Made {
        let value = Some(statements.as_bytes().to_vec().into());
        self.table.key_values.push(KeyValue { key: TABLE_SCHEMA_KEY.to_owned(), value });
        self
    }

    /// Batches of this many rows.
    pub(crate) fn in_batches_of(mut self, rows: usize) -> Made {
        self.batch_rows = rows;
        self
    }

    /// Loads them into a table.
    pub(crate) fn load(self, table: &mut CqlTable) -> (Written, Result<u64>) {
        load(table, &self.shared())
    }

    pub(crate) fn shared(self) -> Arc<dyn Source> {
        Arc::new(self)
    }
}

impl Source for Made {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, _options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let (types, rows) = (self.types.clone(), self.rows[piece]());
        Ok(Box::new(MadeRows { types, rows, first_row: 0, batch_rows: self.batch_rows }))
    }
}

struct MadeRows {
    types: Vec<PhysicalType>,
    rows: Box<dyn Iterator<Item = Vec<Cell>> + Send>,
    first_row: u64,
    batch_rows: usize,
}

impl Batches for MadeRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let rows: Vec<Vec<Cell>> = self.rows.by_ref().take(self.batch_rows).collect();
        let columns = self.types.iter().enumerate().map(|(leaf, physical)| column(leaf, *physical, &rows));
        let batch =
            Batch { row_group: 0, first_row: self.first_row, rows: rows.len(), columns: columns.collect() };
        self.first_row += rows.len() as u64;
        Ok((!rows.is_empty()).then_some(batch))
    }
}

fn column(leaf: usize, physical: PhysicalType, rows: &[Vec<Cell>]) -> ColumnBatch {
    let cells = || rows.iter().map(move |row| &row[leaf]);
    let number = |cell: &Cell| match cell {
        Cell::Null => 0,
        Cell::Int(value) => i64::from(*value),
        Cell::Big(value) => *value,
        Cell::Bytes(_) => panic!("bytes for a number"),
    };
    let bytes = |cell: &Cell| match cell {
        Cell::Bytes(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    let values = match physical {
        PhysicalType::Int32 => {
            Values::Int32(cells().map(|cell| i32::try_from(number(cell)).unwrap()).collect::<Vec<_>>().into())
        }
        PhysicalType::Int64 => Values::Int64(cells().map(number).collect::<Vec<_>>().into()),
        _ => {
            let all: Vec<Vec<u8>> = cells().map(bytes).collect();
            let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
            Values::ByteArray(ByteArrays::from_lengths(all.concat().into(), lengths).unwrap())
        }
    };
    let is_value = |cell: &Cell| !matches!(cell, Cell::Null);
    ColumnBatch {
        leaf,
        rows: rows.len(),
        nulls: cells().filter(|cell| !is_value(cell)).count(),
        validity: Some(cells().map(is_value).collect()),
        values,
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    }
}

/// So many rows of a key and a list of two elements, the key and the number after it.
pub(crate) fn of_lists(rows: i32) -> Arc<dyn Source> {
    let int = FieldType::Leaf(PhysicalType::Int32, None);
    let element = FieldDef::new("element", int.clone());
    let fields = [FieldDef::new("k", int).required(), FieldDef::new("v", FieldType::List(Box::new(element)))];
    let schema = Arc::new(Schema::of_fields(&fields).unwrap());
    Arc::new(Lists(Table::new("lists", schema), [Piece::of("lists")], rows))
}

struct Lists(Table, [Piece; 1], i32);

struct NextLists(i32, i32);

impl Source for Lists {
    fn table(&self) -> &Table {
        &self.0
    }

    fn pieces(&self) -> &[Piece] {
        &self.1
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(NextLists(0, self.2)))
    }
}

impl Batches for NextLists {
    fn next(&mut self) -> Result<Option<Batch>> {
        let keys: Vec<i32> = (self.0..self.1.min(self.0 + 1000)).collect();
        if keys.is_empty() {
            return Ok(None);
        }
        let rows = keys.len();
        self.0 += 1000;
        let elements: Vec<i32> = keys.iter().flat_map(|key| [*key, key + 1]).collect();
        let mut batch = Batch::of_values([Values::from(keys)])?;
        batch.columns.push(ColumnBatch {
            leaf: 1,
            rows,
            nulls: 0,
            validity: None,
            values: elements.into(),
            layout: Layout::Dense,
            levels: Some(Levels {
                definition: vec![3_u8; 2 * rows].into(),
                repetition: Some((0..2 * rows).map(|at| u8::from(at % 2 == 1)).collect::<Vec<_>>().into()),
            }),
            provisional: false,
        });
        Ok(Some(batch))
    }
}
