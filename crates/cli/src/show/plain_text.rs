//! What is known of a CSV, TSV or JSON lines file: the columns that its first rows have.

use serde::Serialize;

use marquetry::describe::{NodeJson, schema_json};
use marquetry::tables::files::FormatFile;

use super::{json, text};
use crate::failure::Outcome;
use crate::table::printable;
use crate::table_args::advised_note;
use crate::terminal::Terminal;

/// Describes a file of text; its rows are not counted, which would take reading all of it.
pub(super) fn print(
    file: &dyn FormatFile,
    (as_json, terminal): (bool, Terminal),
    out: &mut Vec<u8>,
) -> Outcome {
    if as_json {
        let shown = TextJson {
            file: file.name(),
            format: file.format(),
            bytes: file.bytes(),
            schema: schema_json(file.schema()),
        };
        return json::write(&shown, out);
    }
    let mut heading = terminal.bold(&printable(file.name()));
    heading.push_str(&format!("\n  {:<11} {}\n", "format", file.format()));
    if let Some(bytes) = file.bytes() {
        heading.push_str(&format!("  {:<11} {}\n", "size", text::size_exact(bytes)));
    }
    if let Some(note) = file.note() {
        heading.push_str(&format!("  {:<11} {}\n", "note", printable(&advised_note(&note))));
    }
    out.extend_from_slice(heading.as_bytes());
    text::section("Schema, inferred from the first rows", terminal, out);
    text::schema(file.schema(), terminal, out);
    Ok(())
}

#[derive(Serialize)]
struct TextJson<'a> {
    file: &'a str,
    format: &'a str,
    bytes: Option<u64>,
    /// Inferred from the first rows.
    schema: Vec<NodeJson<'a>>,
}
