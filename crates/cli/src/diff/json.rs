//! What programs read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use marquetry::base::print::json;
use marquetry::tables::{ColumnDifference, RowId};

use super::compared::Compared;
use crate::failure::{Failure, Outcome};

pub(super) fn write(compared: &Compared) -> Outcome<String> {
    let found = &compared.found;
    let (schema, rows) = (&found.schema, &found.rows);
    let table = |side: usize| TableJson {
        name: &compared.names[side],
        rows: rows.total[side],
        columns: compared.sources[side].table().schema.children(0).count(),
        values_lost: found.lost[side].by_column().into_iter().collect(),
    };
    let differing = |fields: &'_ [(String, [String; 2])]| -> Vec<FieldJson> {
        let field = |(name, [a, b]): &(String, [String; 2])| FieldJson {
            column: name.clone(),
            a: a.clone(),
            b: b.clone(),
        };
        fields.iter().map(field).collect()
    };
    let keys = |side: usize| {
        let shown = rows.only_shown[side].iter();
        shown.map(|row| raw(row_json(compared, row, side)?)).collect::<Outcome<Vec<_>>>()
    };
    let key = |schema: &marquetry::parquet::schema::Schema| {
        schema.children(0).map(|node| schema.nodes()[node].name.clone()).collect()
    };
    let all = All {
        a: table(0),
        b: table(1),
        rows_equal: found.are_rows_equal(),
        schemas_equal: schema.is_none(),
        key: found.key.as_ref().map(|schemas| key(&schemas[0])),
        schema: SchemaJson {
            only_in_a: &schema.only[0],
            only_in_b: &schema.only[1],
            incomparable: differing(&schema.incomparable),
            different: differing(&schema.fields),
            reordered: &schema.reordered,
        },
        rows: RowsJson {
            compared: rows.compared,
            different: rows.changed,
            only_in_a: rows.only[0],
            only_in_b: rows.only[1],
            first_only_in_a: keys(0)?,
            first_only_in_b: keys(1)?,
            repeated_keys_in_a: rows.repeated_keys[0],
            repeated_keys_in_b: rows.repeated_keys[1],
        },
        columns: found.values.iter().map(|column| column_json(compared, column)).collect::<Outcome<_>>()?,
    };
    let mut out = Vec::new();
    crate::json::write(&mut out, &all).map_err(unwritable)?;
    out.push(b'\n');
    String::from_utf8(out).map_err(|error| Failure::bug(format!("JSON that is not UTF-8: {error}")))
}

fn column_json(compared: &Compared, column: &ColumnDifference) -> Outcome<ColumnJson> {
    let [mut in_a, mut in_b] = compared.column_texts(column.column)?;
    let mut first = Vec::with_capacity(column.shown.len());
    for row in &column.shown {
        let [a, b] = &row.values;
        let id = raw(row_json(compared, &row.id, 0)?)?;
        let (key, number) = match row.id {
            RowId::Number(number) => (None, Some(number)),
            RowId::Key(_) => (Some(id), None),
        };
        let (a, b) = (in_a.of(&compared.names[0], a)?, in_b.of(&compared.names[1], b)?);
        first.push(RowJson { row: number, key, a: raw(a)?, b: raw(b)? });
    }
    Ok(ColumnJson { column: column.name.clone(), different: column.rows, first })
}

/// A row's key as an object.
fn row_json(compared: &Compared, row: &RowId, side: usize) -> Outcome<String> {
    let mut out = vec![b'{'];
    for (number, (name, value)) in compared.row_name(row, side)?.iter().enumerate() {
        out.extend((number > 0).then_some(b','));
        json::string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Text that is JSON already.
fn raw(text: String) -> Outcome<Box<RawValue>> {
    RawValue::from_string(text).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::bug(format!("JSON could not be written: {error}"))
}

#[derive(Serialize)]
struct All<'a> {
    a: TableJson<'a>,
    b: TableJson<'a>,
    rows_equal: bool,
    schemas_equal: bool,
    /// The names of its columns.
    key: Option<Vec<String>>,
    schema: SchemaJson<'a>,
    rows: RowsJson,
    /// Those whose values differ.
    columns: Vec<ColumnJson>,
}

#[derive(Serialize)]
struct TableJson<'a> {
    name: &'a str,
    rows: u64,
    columns: usize,
    /// By column, how many values were compared as null because columns of Parquet cannot hold them.
    values_lost: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct SchemaJson<'a> {
    only_in_a: &'a [String],
    only_in_b: &'a [String],
    /// These make a difference of rows; those below do not.
    incomparable: Vec<FieldJson>,
    different: Vec<FieldJson>,
    /// Groups; the table itself is empty text.
    reordered: &'a [String],
}

/// A column or field, in words.
#[derive(Serialize)]
struct FieldJson {
    column: String,
    a: String,
    b: String,
}

#[derive(Serialize)]
struct RowsJson {
    compared: u64,
    different: u64,
    only_in_a: u64,
    only_in_b: u64,
    /// Keys.
    first_only_in_a: Vec<Box<RawValue>>,
    first_only_in_b: Vec<Box<RawValue>>,
    repeated_keys_in_a: u64,
    repeated_keys_in_b: u64,
}

#[derive(Serialize)]
struct ColumnJson {
    column: String,
    /// Rows that differ.
    different: u64,
    first: Vec<RowJson>,
}

#[derive(Serialize)]
struct RowJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Box<RawValue>>,
    a: Box<RawValue>,
    b: Box<RawValue>,
}
