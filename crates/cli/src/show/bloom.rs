//! What Bloom filters say about values.

use std::collections::BTreeSet;

use serde::Serialize;

use marquetry::describe::{BloomAnswer, BloomQuestion, FilterAnswer, PagesAnswer};
use marquetry::parquet::bloom::BLOCK_BYTES;
use marquetry::parquet::prune::Bound;
use marquetry::parquet::read::PageSet;
use marquetry::tables::Filter;
use marquetry::tables::files::ParquetFile;
use marquetry::tables::predicate;

use super::json;
use super::pages::{ABSENT, Column};
use super::text::print_table;
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, size, thousands};
use crate::table::{Side, Table};
use crate::terminal::Terminal;

/// Pages that are named for people.
const PAGES_SHOWN: usize = 8;

/// Asks the filters of all row groups, a line each.
pub(super) fn print(
    file: &ParquetFile,
    wanted: &str,
    as_json: bool,
    terminal: Terminal,
    out: &mut Vec<u8>,
) -> Outcome {
    let parsed = predicate::parse(wanted, &file.metadata().schema)
        .map_err(|error| Failure::of_predicate(&Filter::new(wanted), &error))?;
    let question = BloomQuestion::of(&parsed, file.metadata())
        .map_err(|error| Failure::usage(format!("--bloom '{wanted}': {}", error.message())))?;
    let column = Column::of(file, question.leaf())?;
    if as_json {
        return question.ask(file, |answer| json::write(&AnswerJson::of(file, &column, &answer), out));
    }
    let mut table = Table::new([
        ("row group", Side::Right),
        ("value", Side::Left),
        ("filter", Side::LeftWhole),
        ("size", Side::Right),
        ("blocks", Side::Right),
        ("block", Side::Right),
        ("at", Side::Right),
        ("pages", Side::LeftWhole),
        ("which", Side::Left),
    ]);
    let groups = file.metadata().row_groups.len();
    // Row groups that may have one of the values.
    let mut may_have = BTreeSet::new();
    let done = question.ask(file, |answer| {
        let says_no = answer.filter.as_ref().is_some_and(|filter| !filter.may_have)
            || answer.pages.as_ref().and_then(|it| it.may_have.as_ref()).is_some_and(PageSet::is_empty);
        if !says_no {
            may_have.insert(answer.row_group);
        }
        table.push(line(&column, &answer));
        Outcome::Ok(())
    });
    let told = match question.values().is_empty() {
        true => format!("{wanted}: no value of its type is that, so no row has it"),
        false => {
            let absent = thousands(groups - may_have.len());
            format!("{wanted}: absent from {absent} of {}", plural(groups, "row group"))
        }
    };
    column.title(file, &told, terminal, out);
    if !question.values().is_empty() && groups > 0 {
        print_table(&table, terminal, out);
    }
    done
}

fn line(column: &Column, answer: &BloomAnswer<'_>) -> Vec<String> {
    let value = Bound { value: answer.value, is_exact: Some(true) };
    let mut line = vec![
        answer.row_group.to_string(),
        column.shown.text(Some(value)).unwrap_or_else(|| ABSENT.to_string()),
    ];
    line.extend(match &answer.filter {
        Some(FilterAnswer { may_have, place, block, .. }) => {
            let range = place.range();
            let bytes = range.end - range.start;
            [
                (if *may_have { "may be" } else { "absent" }).to_string(),
                size(bytes),
                thousands(bytes / u64::from(BLOCK_BYTES)),
                thousands((block.start - range.start) / u64::from(BLOCK_BYTES)),
                thousands(block.start),
            ]
        }
        None => ["none", ABSENT, ABSENT, ABSENT, ABSENT].map(str::to_string),
    });
    line.extend(match &answer.pages {
        Some(PagesAnswer { may_have: Some(pages), .. }) => {
            let mut which: Vec<String> =
                pages.runs().flatten().take(PAGES_SHOWN).map(|page| page.to_string()).collect();
            if pages.count() > PAGES_SHOWN {
                which.push("…".to_string());
            }
            [format!("{} of {}", thousands(pages.count()), thousands(pages.pages())), which.join(", ")]
        }
        Some(PagesAnswer { bloom, .. }) => {
            [format!("{} (not as written)", thousands(bloom.pages())), ABSENT.to_string()]
        }
        None => ["none", ABSENT].map(str::to_string),
    });
    line
}

/// The answer of a row group about a value.
#[derive(Serialize)]
struct AnswerJson<'a> {
    file: &'a str,
    path: &'a str,
    row_group: usize,
    value: Option<String>,
    hash: String,
    /// `null` where the chunk has none.
    filter: Option<FilterJson>,
    pages: Option<PagesJson>,
}

#[derive(Serialize)]
struct FilterJson {
    may_have: bool,
    /// Of its blocks, after the header.
    offset: u64,
    bytes: u64,
    blocks: u64,
    /// What was read.
    block: u64,
    block_offset: u64,
}

#[derive(Serialize)]
struct PagesJson {
    pages: usize,
    /// Blocks of each page's filter.
    blocks: u32,
    offset: u64,
    bytes: u64,
    /// What was read.
    row: u32,
    row_offset: u64,
    row_bytes: u64,
    /// The pages that may have it; `null` if what was read is not what was written.
    may_have: Option<Vec<usize>>,
}

impl<'a> AnswerJson<'a> {
    fn of(file: &'a ParquetFile, column: &'a Column, answer: &BloomAnswer<'_>) -> AnswerJson<'a> {
        let value = Bound { value: answer.value, is_exact: Some(true) };
        let filter = |filter: &FilterAnswer| {
            let range = filter.place.range();
            let blocks_of = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
            FilterJson {
                may_have: filter.may_have,
                offset: range.start,
                bytes: range.end - range.start,
                blocks: blocks_of(range.end - range.start),
                block: blocks_of(filter.block.start - range.start),
                block_offset: filter.block.start,
            }
        };
        let pages = |pages: &PagesAnswer| {
            let (range, (row, of_row)) = (pages.bloom.range(), pages.row.clone());
            PagesJson {
                pages: pages.bloom.pages(),
                blocks: pages.bloom.blocks(),
                offset: range.start,
                bytes: range.end - range.start,
                row,
                row_offset: of_row.start,
                row_bytes: of_row.end - of_row.start,
                may_have: pages.may_have.as_ref().map(|pages| pages.runs().flatten().collect()),
            }
        };
        AnswerJson {
            file: file.name(),
            path: &column.path,
            row_group: answer.row_group,
            value: column.shown.exact_text(Some(value)),
            hash: format!("{:016x}", answer.hash),
            filter: answer.filter.as_ref().map(filter),
            pages: answer.pages.as_ref().map(pages),
        }
    }
}
