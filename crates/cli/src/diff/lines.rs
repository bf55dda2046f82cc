//! What a person reads: the tables as A and B, then their schemas, rows and columns.

use marquetry::tables::{ColumnDifference, RowId};

use super::compared::Compared;
use crate::failure::Outcome;
use crate::numbers::{plural, thousands};
use crate::table::printable;

/// Characters of a line, with its end, that names two types.
const LINE_CHARS_MAX: usize = 80;
/// Columns whose values are printed. Of others it is only said that they differ.
const COLUMNS_WITH_VALUES_MAX: usize = 100;
/// Bytes of a value that are printed.
const VALUE_BYTES_MAX: usize = 1000;
/// Of these, the bytes before the first difference.
const VALUE_BYTES_BEFORE: usize = 100;

pub(super) fn write(compared: &Compared) -> Outcome<String> {
    let mut text = String::new();
    let found = &compared.found;
    if found.are_rows_equal() {
        let columns = compared.sources[0].table().schema.children(0).count();
        text +=
            &format!("the same: {} of {}\n", plural(found.rows.compared, "row"), plural(columns, "column"));
        // A and B are only spoken of if something differs.
        if found.schema.is_none() && found.rows.repeated_keys == [0, 0] && found.are_all_compared() {
            return Ok(text);
        }
    }
    tables(compared, &mut text);
    for (letter, lost) in ["A", "B"].into_iter().zip(&found.lost) {
        let note = lost.note().map(|note| format!("{letter}: {}\n", printable(&note.text)));
        text += &note.unwrap_or_default();
    }
    schemas(compared, &mut text);
    if !found.are_rows_equal() || found.rows.repeated_keys != [0, 0] {
        rows(compared, &mut text)?;
    }
    for (number, column) in found.values.iter().enumerate() {
        values(compared, column, number < COLUMNS_WITH_VALUES_MAX, &mut text)?;
    }
    let more = found.values.len().saturating_sub(COLUMNS_WITH_VALUES_MAX);
    if more > 0 {
        text += &format!("(without the values of {}; --columns chooses)\n", plural(more, "column"));
    }
    Ok(text)
}

/// Which table is A, and which B.
fn tables(compared: &Compared, text: &mut String) {
    for (side, letter) in ["A", "B"].into_iter().enumerate() {
        let columns = plural(compared.sources[side].table().schema.children(0).count(), "column");
        let rows = plural(compared.found.rows.total[side], "row");
        *text += &format!("{letter}: {}, {rows} of {columns}\n", compared.names[side]);
    }
}

fn schemas(compared: &Compared, text: &mut String) {
    let schema = &compared.found.schema;
    if schema.is_none() {
        return;
    }
    *text += "schemas:\n";
    for (names, letter) in schema.only.iter().zip(["A", "B"]) {
        names.iter().for_each(|name| *text += &format!("  {}: only in {letter}\n", printable(name)));
    }
    for (name, in_each) in &schema.incomparable {
        field(&format!("{}, which cannot be compared", printable(name)), in_each, text);
    }
    for (name, in_each) in &schema.fields {
        field(&printable(name), in_each, text);
    }
    for group in &schema.reordered {
        match group.as_str() {
            "" => *text += "  the columns are in another order\n",
            group => *text += &format!("  {}: its fields are in another order\n", printable(group)),
        }
    }
}

/// A field of two types: on one line if that is short.
fn field(name: &str, [in_a, in_b]: &[String; 2], text: &mut String) {
    let line = format!("  {name}: {in_a} in A, {in_b} in B\n");
    *text += &match line.chars().count() {
        ..=LINE_CHARS_MAX => line,
        _ => format!("  {name}\n    A: {in_a}\n    B: {in_b}\n"),
    };
}

fn rows(compared: &Compared, text: &mut String) -> Outcome {
    let rows = &compared.found.rows;
    let mut parts =
        vec![format!("{} compared", thousands(rows.compared)), format!("{} differ", thousands(rows.changed))];
    for (only, letter) in rows.only.iter().zip(["A", "B"]) {
        parts.extend((*only > 0).then(|| format!("{} only in {letter}", thousands(*only))));
    }
    *text += &format!("rows: {}\n", parts.join(", "));
    for (side, letter) in ["A", "B"].into_iter().enumerate() {
        for row in &rows.only_shown[side] {
            *text += &format!("  only in {letter}: {}\n", row_name(compared, row, side)?);
        }
        let repeated = rows.repeated_keys[side];
        if repeated > 0 {
            *text += &format!("  {} in {letter} with the key of a row before\n", plural(repeated, "row"));
        }
    }
    Ok(())
}

/// A column, and its values in the first rows that differ.
fn values(compared: &Compared, column: &ColumnDifference, is_shown: bool, text: &mut String) -> Outcome {
    let rows = match column.rows {
        1 => "1 row differs".to_string(),
        rows => format!("{} rows differ", thousands(rows)),
    };
    *text += &format!("column {}: {rows}\n", printable(&column.name));
    if !is_shown || column.shown.is_empty() {
        return Ok(());
    }
    let [mut in_a, mut in_b] = compared.column_texts(column.column)?;
    for row in &column.shown {
        let [a, b] = &row.values;
        let (a, b) = (in_a.of(&compared.names[0], a)?, in_b.of(&compared.names[1], b)?);
        let difference = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        *text += &format!("  {}\n", row_name(compared, &row.id, 0)?);
        *text += &format!("    A: {}\n    B: {}\n", excerpt(&a, difference), excerpt(&b, difference));
    }
    Ok(())
}

/// `row 3`, `id 17`, `day "2024-02-29", trip 5`.
fn row_name(compared: &Compared, row: &RowId, side: usize) -> Outcome<String> {
    let named = compared.row_name(row, side)?;
    let named = named.iter().map(|(name, value)| format!("{} {}", printable(name), excerpt(value, 0)));
    Ok(named.collect::<Vec<_>>().join(", "))
}

/// A value's text, or of a long one the part around the first byte in which it differs, and where that is.
fn excerpt(text: &str, difference: usize) -> String {
    if text.len() <= VALUE_BYTES_MAX {
        return printable(text);
    }
    let boundary = |at: usize| (0..=at.min(text.len())).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = boundary(difference.min(text.len()).saturating_sub(VALUE_BYTES_BEFORE));
    let end = boundary(start + VALUE_BYTES_MAX);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    let (part, length) = (printable(&text[start..end]), thousands(text.len()));
    format!("{before}{part}{after} (bytes {} to {} of {length})", thousands(start), thousands(end))
}
