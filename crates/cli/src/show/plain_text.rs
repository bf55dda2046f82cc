//! What is known of a CSV, TSV or JSON lines file: the columns that its first rows have.

use std::path::{Path, PathBuf};

use serde::Serialize;

use marquetry::SourceOptions;
use marquetry::tables::text::Format;

use super::{json, text};
use crate::failure::Outcome;
use crate::output::Interrupted;
use crate::table::printable;
use crate::table_args::{LimitArgs, TableArgs};
use crate::terminal::Terminal;

/// The format of a file that is text by its name.
pub(super) fn format_of(path: &Path) -> Option<Format> {
    Format::by_name(path.file_name()?.to_str()?)
}

/// Describes a file of text; its rows are not counted, which would take reading all of it.
pub(super) fn print(
    path: &Path,
    format: Format,
    (as_json, terminal): (bool, Terminal),
    limits: LimitArgs,
    interrupted: &Interrupted,
    out: &mut Vec<u8>,
) -> Outcome {
    let args = TableArgs { limits, ..TableArgs::default() };
    let options = SourceOptions::from(args.options(interrupted)?);
    let paths: [PathBuf; 1] = [path.to_path_buf()];
    let opened = marquetry::open_all(&paths, &options)?;
    let table = opened.source().table();
    if as_json {
        let shown = TextJson {
            file: &table.name,
            format: name_of(format),
            bytes: table.bytes,
            schema: json::nodes(&table.schema),
        };
        return json::write(&shown, out);
    }
    let mut heading = terminal.bold(&printable(&table.name));
    heading.push_str(&format!("\n  {:<11} {}\n", "format", name_of(format)));
    if let Some(bytes) = table.bytes {
        heading.push_str(&format!("  {:<11} {}\n", "size", text::size_exact(bytes)));
    }
    out.extend_from_slice(heading.as_bytes());
    text::section("Schema, inferred from the first rows", terminal, out);
    text::schema(&table.schema, terminal, out);
    Ok(())
}

#[derive(Serialize)]
struct TextJson<'a> {
    file: &'a str,
    format: &'static str,
    bytes: Option<u64>,
    /// Inferred from the first rows.
    schema: Vec<json::NodeJson<'a>>,
}

fn name_of(format: Format) -> &'static str {
    match format {
        Format::Csv => "CSV",
        Format::Tsv => "TSV",
        Format::JsonLines => "JSON lines",
        _ => "text",
    }
}
