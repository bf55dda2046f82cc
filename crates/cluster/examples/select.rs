//! Runs one CQL statement on a cluster and prints the rows as a table: the small part of cqlsh that the demo needs.
//!
//! ```text
//! cargo run --release --example select -p marquetry-cluster -- HOST:PORT "SELECT * FROM system.local"
//! ```

use std::io::{self, Write};
use std::process::ExitCode;

use marquetry_cluster::Host;
use marquetry_scylla::cql::literal;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::query_result::QueryRowsResult;
use scylla::value::{CqlValue, Row};

/// The longest text that is printed of one value, in characters.
const CELL_CHARS_MAX: usize = 60;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, statement] = arguments.as_slice() else {
        eprintln!("usage: select HOST[:PORT] STATEMENT");
        return ExitCode::from(2);
    };
    match run(host, statement) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("select: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(host: &str, statement: &str) -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::parse(host)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let session = SessionBuilder::new().known_node(host.to_string()).build().await?;
        Ok::<_, Box<dyn std::error::Error>>(session.query_unpaged(statement, ()).await?)
    })?;
    // Statements other than SELECT return no rows.
    if !answer.is_rows() {
        return Ok(());
    }
    let table = read(&answer.into_rows_result()?)?;
    match print(&table, &mut io::stdout().lock()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

struct Table {
    names: Vec<String>,
    /// Whether the column's values are numbers, which are set to the right.
    numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
}

fn read(answer: &QueryRowsResult) -> Result<Table, Box<dyn std::error::Error>> {
    let names: Vec<String> = answer.column_specs().iter().map(|column| column.name().to_owned()).collect();
    let mut numeric = vec![true; names.len()];
    let mut rows = Vec::new();
    for row in answer.rows::<Row>()? {
        let row = row?;
        for (all, value) in numeric.iter_mut().zip(&row.columns) {
            *all &= value.as_ref().is_none_or(is_number);
        }
        rows.push(row.columns.iter().map(|value| value.as_ref().map_or("null".to_owned(), show)).collect());
    }
    Ok(Table { names, numeric, rows })
}

fn print(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let width = |column: usize| {
        let cells = table.rows.iter().map(|row| &row[column]).chain([&table.names[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.names.len()).map(width).collect();
    print_row(out, &table.names, &widths, &vec![false; widths.len()])?;
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    writeln!(out, "{}", rule.join("+"))?;
    for row in &table.rows {
        print_row(out, row, &widths, &table.numeric)?;
    }
    let rows = if table.rows.len() == 1 { "row" } else { "rows" };
    writeln!(out, "\n({} {rows})", table.rows.len())
}

fn print_row(out: &mut impl Write, cells: &[String], widths: &[usize], right: &[bool]) -> io::Result<()> {
    let cells: Vec<String> = cells
        .iter()
        .zip(widths)
        .zip(right)
        .map(
            |((cell, width), right)| {
                if *right { format!(" {cell:>width$} ") } else { format!(" {cell:<width$} ") }
            },
        )
        .collect();
    writeln!(out, "{}", cells.join("|").trim_end())
}

fn is_number(value: &CqlValue) -> bool {
    matches!(
        value,
        CqlValue::TinyInt(_)
            | CqlValue::SmallInt(_)
            | CqlValue::Int(_)
            | CqlValue::BigInt(_)
            | CqlValue::Counter(_)
            | CqlValue::Varint(_)
            | CqlValue::Decimal(_)
            | CqlValue::Float(_)
            | CqlValue::Double(_)
    )
}

/// A value as CQL spells it, without quotes; what would break a line is escaped, what is long is cut.
fn show(value: &CqlValue) -> String {
    let mut out = Vec::new();
    match value {
        CqlValue::Ascii(text) | CqlValue::Text(text) => out.extend_from_slice(text.as_bytes()),
        CqlValue::Boolean(value) => literal::boolean(&mut out, *value),
        CqlValue::Blob(bytes) => literal::blob(&mut out, bytes),
        CqlValue::TinyInt(value) => literal::integer(&mut out, *value),
        CqlValue::SmallInt(value) => literal::integer(&mut out, *value),
        CqlValue::Int(value) => literal::integer(&mut out, *value),
        CqlValue::BigInt(value) => literal::integer(&mut out, *value),
        CqlValue::Counter(value) => literal::integer(&mut out, value.0),
        CqlValue::Float(value) => literal::float(&mut out, *value),
        CqlValue::Double(value) => literal::double(&mut out, *value),
        CqlValue::Inet(address) => literal::inet(&mut out, *address),
        CqlValue::Uuid(value) => literal::uuid(&mut out, value.as_bytes()),
        CqlValue::Timeuuid(value) => literal::uuid(&mut out, value.as_bytes()),
        CqlValue::Timestamp(value) => literal::timestamp(&mut out, value.0),
        // Days with 1970-01-01 at 2^31.
        CqlValue::Date(value) => literal::date(&mut out, value.0.wrapping_sub(1 << 31).cast_signed()),
        CqlValue::Time(value) => spelled(&mut out, |out| literal::time(out, value.0)),
        CqlValue::Duration(value) => {
            spelled(&mut out, |out| literal::duration(out, value.months, value.days, value.nanoseconds));
        }
        CqlValue::Varint(value) => {
            spelled(&mut out, |out| literal::varint(out, value.as_signed_bytes_be_slice()));
        }
        CqlValue::Decimal(value) => {
            let (unscaled, scale) = value.as_signed_be_bytes_slice_and_exponent();
            spelled(&mut out, |out| literal::decimal_bytes(out, unscaled, scale));
        }
        CqlValue::List(values) => return show_all("[", values.iter().map(show), "]"),
        CqlValue::Vector(values) => return show_all("[", values.iter().map(show), "]"),
        CqlValue::Set(values) => return show_all("{", values.iter().map(show), "}"),
        CqlValue::Map(pairs) => {
            return show_all(
                "{",
                pairs.iter().map(|(key, value)| format!("{}: {}", show(key), show(value))),
                "}",
            );
        }
        CqlValue::Tuple(values) => {
            return show_all(
                "(",
                values.iter().map(|value| value.as_ref().map_or("null".to_owned(), show)),
                ")",
            );
        }
        CqlValue::UserDefinedType { fields, .. } => {
            let show_field = |(name, value): &(String, Option<CqlValue>)| {
                format!("{name}: {}", value.as_ref().map_or("null".to_owned(), show))
            };
            return show_all("{", fields.iter().map(show_field), "}");
        }
        CqlValue::Empty => {}
        other => return format!("{other:?}"),
    }
    let text = String::from_utf8_lossy(&out);
    let is_text = matches!(value, CqlValue::Ascii(_) | CqlValue::Text(_));
    cut(if is_text { &text } else { text.trim_matches('\'') })
}

/// What has no literal (a time beyond the day, which no server stores) is told as such.
fn spelled(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), literal::LiteralError>) {
    if let Err(error) = write(out) {
        *out = format!("<{error}>").into_bytes();
    }
}

fn show_all(open: &str, values: impl Iterator<Item = String>, close: &str) -> String {
    format!("{open}{}{close}", values.collect::<Vec<_>>().join(", "))
}

fn cut(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| {
        let escape = c.is_control().then(|| c.escape_default());
        escape.into_iter().flatten().chain((!c.is_control()).then_some(c))
    });
    let mut shown: String = escaped.take(CELL_CHARS_MAX + 1).collect();
    if shown.chars().count() > CELL_CHARS_MAX {
        shown = shown.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect();
    }
    shown
}
