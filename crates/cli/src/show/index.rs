//! The page index of one column.

use serde::Serialize;

use marquetry::tables::files::ParquetFile;

use super::json;
use super::pages::{ABSENT, Column, IndexJson, Indexed, more, page_index};
use super::text::print_table;
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, thousands};
use crate::table::{Side, Table};
use crate::terminal::Terminal;

/// Pages that are listed for people, unless told otherwise.
const PAGES_SHOWN: u64 = 100;

/// Lists what the page index says of the pages, a line each. What is wrong with it, if anything is, is returned.
pub(super) fn print(
    file: &ParquetFile,
    column: &str,
    (limit, as_json): (Option<u64>, bool),
    terminal: Terminal,
    out: &mut Vec<u8>,
) -> Outcome<Option<Failure>> {
    let column = Column::find(file, column)?;
    let groups = &file.metadata().row_groups;
    let (indexes, fault) = page_index(file, column.leaf);
    let limit = limit.or((!as_json).then_some(PAGES_SHOWN));
    let mut table = Table::new([
        ("row group", Side::Right),
        ("page", Side::Right),
        ("first row", Side::Right),
        ("rows", Side::Right),
        ("offset", Side::Right),
        ("compressed", Side::Right),
        ("nulls", Side::Right),
        ("order", Side::LeftWhole),
        ("min", Side::Left),
        ("max", Side::Left),
    ]);
    let mut pages = 0;
    for index in &indexes {
        let Some(group) = groups.get(index.row_group) else { continue };
        for page in 0..index.offset_index.pages.len() {
            pages += 1;
            if limit.is_some_and(|limit| pages > limit) {
                continue;
            }
            let indexed = Indexed { index, page, group };
            if as_json {
                json::write(&IndexedJson::of(file, &column, &indexed), out)?;
            } else {
                table.push(line(&column, &indexed));
            }
        }
    }
    if !as_json {
        let with = match (indexes.len(), groups.len()) {
            (0, _) if fault.is_none() => "no page index".to_string(),
            (with, all) if with < all => {
                format!("{} in {} of {}", plural(pages, "page"), thousands(with), plural(all, "row group"))
            }
            (_, all) => format!("{} in {}", plural(pages, "page"), plural(all, "row group")),
        };
        column.title(file, &with, terminal, out);
        if !indexes.is_empty() {
            print_table(&table, terminal, out);
        }
        more(pages, limit, out);
    }
    Ok(fault)
}

fn line(column: &Column, indexed: &Indexed<'_>) -> Vec<String> {
    let absent = || ABSENT.to_string();
    let (location, known) = (indexed.location(), indexed.known(&column.shown).unwrap_or_default());
    vec![
        indexed.index.row_group.to_string(),
        indexed.page.to_string(),
        indexed.first_row().map_or_else(absent, thousands),
        indexed.rows().map_or_else(absent, thousands),
        thousands(location.offset),
        thousands(location.compressed_bytes),
        known.nulls.map_or_else(absent, thousands),
        indexed.order().unwrap_or_else(absent),
        column.shown.text(known.min).unwrap_or_else(absent),
        column.shown.text(known.max).unwrap_or_else(absent),
    ]
}

#[derive(Serialize)]
struct IndexedJson<'a> {
    file: &'a str,
    path: &'a str,
    row_group: usize,
    page: usize,
    first_row: Option<u64>,
    rows: Option<u64>,
    offset: u64,
    #[serde(flatten)]
    index: IndexJson,
}

impl<'a> IndexedJson<'a> {
    fn of(file: &'a ParquetFile, column: &'a Column, indexed: &Indexed<'_>) -> IndexedJson<'a> {
        IndexedJson {
            file: file.name(),
            path: &column.path,
            row_group: indexed.index.row_group,
            page: indexed.page,
            first_row: indexed.first_row(),
            rows: indexed.rows(),
            offset: indexed.location().offset,
            index: IndexJson::of(indexed, &column.shown),
        }
    }
}
