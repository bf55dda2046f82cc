//! Many files at a glance: what they have in common, and where they differ.

use std::collections::HashSet;
use std::fmt::Write;

use marquetry::parquet::schema::{DifferenceKind, NodeKind, Schema};

use super::text;
use crate::numbers::{plural, size, thousands};
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;
use marquetry::tables::files::{DataFile, Gathered};

/// Files that are listed; more say little to a person. `--json` has them all.
const FILES_SHOWN: usize = 100;

/// Differences that are listed.
const DIFFERENCES_SHOWN: usize = 100;

pub(super) fn print(gathered: &Gathered, terminal: Terminal, out: &mut Vec<u8>) {
    heading(gathered, terminal, out);
    text::section("Schema", terminal, out);
    text::schema(&gathered.unified.schema, terminal, out);
    if !gathered.unified.differences.is_empty() {
        text::section("Differences", terminal, out);
        differences(gathered, out);
    }
    text::section("Files", terminal, out);
    files(gathered, terminal, out);
}

fn heading(gathered: &Gathered, terminal: Terminal, out: &mut Vec<u8>) {
    let files = &gathered.files;
    let mut text = terminal.bold(&plural(files.len(), "file"));
    text.push('\n');
    let mut fact = |name: &str, value: String| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {name:<11} {value}");
    };
    let sum = |of: fn(&DataFile) -> u64| files.iter().map(of).fold(0, u64::saturating_add);
    let row_groups = files.iter().filter_map(DataFile::row_groups).fold(0, usize::saturating_add);
    fact(
        "rows",
        format!("{} in {}", thousands(sum(|file| file.rows().unwrap_or(0))), plural(row_groups, "row group")),
    );
    fact("size", text::size_exact(sum(|file| file.bytes().unwrap_or(0))));
    fact(
        "schemas",
        match gathered.schemas() {
            1 => "1, the same in all files".to_string(),
            schemas => format!("{}, joined by name", thousands(marquetry::base::cast::u64_of(schemas))),
        },
    );
    for (number, column) in gathered.partitions.iter().enumerate() {
        let values: HashSet<Option<String>> = files.iter().map(|file| file.constant(number)).collect();
        let kind = match &column.logical_type {
            Some(logical) => format!("{} {logical}", column.physical_type),
            None => column.physical_type.to_string(),
        };
        let known = plural(values.len(), "value");
        fact("partition", format!("{} ({kind}, {known})", printable(&column.name)));
    }
    out.extend_from_slice(text.as_bytes());
}

fn differences(gathered: &Gathered, out: &mut Vec<u8>) {
    let (schema, all) = (&gathered.unified.schema, &gathered.unified.differences);
    let name = |source: &usize| printable(gathered.name_of(*source));
    for difference in all.iter().take(DIFFERENCES_SHOWN) {
        let what = match &difference.kind {
            DifferenceKind::Missing { with, without } => {
                format!("in {}, but not in {}", name(with), name(without))
            }
            DifferenceKind::Widened { one: (first, one), other: (second, other) } => {
                format!("{one} in {}, {other} in {}: widened", name(first), name(second))
            }
            DifferenceKind::Clash { one: (first, one), other: (second, other) } => {
                format!("{one} in {}, {other} in {}: no type holds both", name(first), name(second))
            }
            DifferenceKind::Twice { source } => format!("twice in {}", name(source)),
            DifferenceKind::Broken { source, error } => {
                format!("{} in {}", printable(error.message()), name(source))
            }
        };
        let line = format!("  {}  {what}\n", printable(&path(schema, difference.node)));
        out.extend_from_slice(line.as_bytes());
    }
    if let Some(more) = all.len().checked_sub(DIFFERENCES_SHOWN).filter(|more| *more > 0) {
        out.extend_from_slice(format!("  … {more} more\n").as_bytes());
    }
}

fn path(schema: &Schema, node: usize) -> String {
    match schema.nodes()[node].kind {
        NodeKind::Leaf { leaf } => schema.leaf_path(leaf),
        NodeKind::Group { .. } => schema.path(node),
    }
}

fn files(gathered: &Gathered, terminal: Terminal, out: &mut Vec<u8>) {
    let mut table = Table::new([
        ("file", Side::Left),
        ("rows", Side::Right),
        ("row groups", Side::Right),
        ("size", Side::Right),
    ])
    .indented(2);
    for file in gathered.files.iter().take(FILES_SHOWN) {
        table.push(vec![
            printable(file.name()),
            thousands(file.rows().unwrap_or(0)),
            file.row_groups().unwrap_or(0).to_string(),
            size(file.bytes().unwrap_or(0)),
        ]);
    }
    text::print_table(&table, terminal, out);
    if let Some(more) = gathered.files.len().checked_sub(FILES_SHOWN).filter(|more| *more > 0) {
        out.extend_from_slice(format!("  … {more} more; --json lists them all\n").as_bytes());
    }
}
