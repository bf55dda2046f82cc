//! Files as CQL: the mapping of columns, statements, cells; and records as packed cells.

use std::sync::Arc;

use marquetry_base::{Budget, ErrorKind, Result};
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::record::{Program, ShredOptions, Shredder};
use marquetry_parquet::schema::{Plan as _, Schema};
use marquetry_scylla::bridge::{
    DuplicateKeys, InsertWriter, InvalidUtf8, Mapping, MappingOptions, NullElements, Nulls,
};
use marquetry_scylla::cql::{Name, TableName};
use marquetry_scylla::packed::{CellWriter, Packing, Sinks};

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;
use crate::host::{self, LIMITS};
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// Rows of any schema, as statements and cells.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let options = MappingOptions {
        timestamps_as_millis: choices.once_in(2),
        invalid_utf8: choices.pick(&[InvalidUtf8::Error, InvalidUtf8::Replace, InvalidUtf8::Blob]),
        row_number: Name::new("n").ok(),
        nulls: choices.pick(&[Nulls::Unset, Nulls::Null]),
        frozen: choices.once_in(2),
        null_elements: choices.pick(&[NullElements::Drop, NullElements::Error]),
        duplicate_keys: choices.pick(&[DuplicateKeys::Last, DuplicateKeys::Error]),
        sets: if choices.once_in(3) { vec!["c0".to_owned()] } else { Vec::new() },
        ..MappingOptions::default()
    };
    let keep_dictionaries = choices.once_in(2);
    let tree = Tree::choose(choices, 5);
    let mut plan = Plan::choose(tree, 40, Only::default(), choices);
    if choices.once_in(3) {
        plan.lie(4, choices);
    }
    let bytes = plan.write();
    let Ok(metadata) = host::footer(&bytes, LIMITS, Manner::KIND) else { return };
    let table = TableName::parse("ks.t").expect("a name");
    let mapping = match Mapping::new(&metadata.schema, table, &options) {
        Ok(mapping) => mapping,
        Err(error) => {
            assert!(error.kind() != ErrorKind::Internal, "{error:?}");
            return;
        }
    };
    let read = ReadOptions {
        leaves: Some(mapping.leaves()),
        layout: Layout::Spaced,
        batch_rows: 50,
        keep_dictionaries,
        limits: LIMITS,
        ..ReadOptions::default()
    };
    rows(&mapping, &metadata, &read, &bytes);
}

fn rows(
    mapping: &Mapping,
    metadata: &Arc<FileMetaData>,
    options: &ReadOptions,
    bytes: &marquetry_base::Bytes,
) {
    let Ok(mut reader) = host::reader(metadata, options) else { return };
    let mut rows = 0;
    let result = hostile::run(&mut reader, FILE, bytes, Manner::KIND, |batch| {
        rows += batch.rows;
        if rows > host::ROWS_MAX {
            return Err(marquetry_base::Error::io("enough"));
        }
        packed(&metadata.schema, &mapping.leaves(), &batch);
        statements(mapping, batch)
    });
    if let Err(error) = result {
        assert!(error.kind() != ErrorKind::Internal && error.kind() != ErrorKind::Misuse, "{error:?}");
    }
}

/// Records as cells are the same there and back. One that is damaged is an error, or another record, which is written as it was read.
fn packed(schema: &Arc<Schema>, leaves: &[usize], batch: &Batch) {
    let Ok(program) = Program::plan(Arc::clone(schema), Some(leaves.into())).at_once() else { return };
    let Ok(packing) = Packing::new(Arc::new(program)).map(Arc::new) else { return };
    let cells = |batch: &Batch| {
        let mut writer = CellWriter::new(Arc::clone(&packing));
        let mut records = packing.program().records(batch)?;
        records.step(&mut writer, &mut Budget::unlimited())?;
        writer.take()
    };
    let written = match cells(batch) {
        Ok(written) => written,
        Err(error) => return host::check_error(&error),
    };
    let options = ShredOptions { batch_rows: usize::MAX, batch_bytes: usize::MAX, layout: Layout::Spaced };
    let shredder = || {
        let plan = Shredder::plan(Arc::clone(schema), Some(leaves.into()), options);
        plan.at_once().expect("a shredder of what there is a program of")
    };
    let taken =
        |mut shredder: Shredder| shredder.take(&mut Budget::unlimited()).ok().flatten().expect("a batch");
    let (all, mut back) = (Sinks::of(&packing, |_| true), shredder());
    written.iter().for_each(|cell| packing.read(cell, &all, &mut back).expect("a cell that was written"));
    assert!(cells(&taken(back)).expect("they were records before") == written, "a record that is another");
    for (row, cell) in written.iter().enumerate().take(8) {
        let mut damaged = cell.to_vec();
        damaged[row * 7 % cell.len()] ^= 1 << (row % 8);
        for cell in [&damaged[..], &cell[..cell.len() / 2]] {
            let mut shredder = shredder();
            match packing.read(cell, &all, &mut shredder) {
                Ok(()) => {
                    let again = cells(&taken(shredder)).expect("a record that was read");
                    assert!(again.get(0) == cell, "one record, two cells");
                }
                Err(error) => {
                    assert!(error.place().offset.is_some(), "{error:?}");
                    host::check_error(&error);
                }
            }
        }
    }
}

/// Writes a batch at once and row by row, which must be the same, and each of its cells.
fn statements(mapping: &Mapping, batch: Batch) -> Result<()> {
    let first = batch.first_row;
    let batch = mapping.assemble(batch)?;
    let mut whole = Vec::new();
    let written = InsertWriter::new(mapping).write(&batch, 0..batch.rows(), first, &mut whole, usize::MAX);
    let mut parts = Vec::new();
    let mut writer = InsertWriter::new(mapping);
    let mut row = 0;
    let mut in_parts = Ok(());
    while row < batch.rows() {
        let enough = parts.len() + 1;
        match writer.write(&batch, row..batch.rows(), first, &mut parts, enough) {
            Ok(written) => {
                assert!(written.next_row > row, "a row that is not written");
                row = written.next_row;
            }
            Err(error) => {
                in_parts = Err(error);
                break;
            }
        }
    }
    if is_planted(Canary::Bytes) && parts.len() % 5 == 3 {
        parts.push(b' ');
    }
    assert_eq!(in_parts, written.map(|_| ()), "row by row, it ends otherwise");
    assert!(parts == whole, "row by row, the statements are others");
    assert!(whole.is_empty() || whole.ends_with(b";\n"), "a statement without an end");
    let mut cell = b"before".to_vec();
    let mut bound = mapping.bind(&batch, first)?;
    for column in 0..mapping.columns().len() {
        for row in 0..batch.rows() {
            cell.truncate(6);
            match bound.write_cell(column, row, &mut cell) {
                Ok(found) => assert!(found.is_value() || cell.len() == 6, "a null that is written"),
                Err(error) => {
                    assert!(
                        error.kind() != ErrorKind::Internal && error.kind() != ErrorKind::Misuse,
                        "{error:?}"
                    );
                    assert_eq!(cell, b"before", "something was written of a cell that cannot be");
                }
            }
        }
    }
    Ok(())
}
