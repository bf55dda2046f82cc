//! Rows in order: what `--sort` says, and rows put so.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::SpillFile;
use marquetry_io::{ByteSink, ByteSinks, drive_into};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::Fed;

use super::leaves_of;
use crate::columns::{self, Wanted};
use crate::failure::{Failure, Outcome};
use crate::output::Interrupted;

/// A column that rows are sorted by, as a person names it.
#[derive(Debug)]
pub(super) struct SortBy {
    column: Wanted,
    descending: bool,
    nulls_first: bool,
}

/// Reads `a, b desc, "c" asc nulls first`.
pub(super) fn parse(list: &str) -> Outcome<Vec<SortBy>> {
    let wrong = |why: String| Failure::usage(format!("--sort '{list}': {why}"));
    let mut all = Vec::new();
    for item in split(list) {
        let (mut text, mut descending, mut nulls_first) = (item.trim(), false, false);
        if let Some(rest) = without_words(text, &["nulls", "first"]) {
            (text, nulls_first) = (rest, true);
        } else if let Some(rest) = without_words(text, &["nulls", "last"]) {
            text = rest;
        }
        if let Some(rest) = without_words(text, &["desc"]) {
            (text, descending) = (rest, true);
        } else if let Some(rest) = without_words(text, &["asc"]) {
            text = rest;
        }
        let mut columns = columns::parse_list("--sort", text)?;
        match (columns.pop(), columns.is_empty()) {
            (Some(column), true) => all.push(SortBy { column, descending, nulls_first }),
            _ => return Err(wrong(format!("'{}' is no column", item.trim()))),
        }
    }
    Ok(all)
}

/// The parts between commas that stand in no quotes.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// What stands before these words at the end, in whatever case; there is something.
fn without_words<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let mut rest = text;
    for word in words.iter().rev() {
        let start = rest.rfind(char::is_whitespace)?;
        let (before, last) = rest.split_at(start);
        if !last.trim_start().eq_ignore_ascii_case(word) {
            return None;
        }
        rest = before.trim_end();
    }
    (!rest.is_empty()).then_some(rest)
}

/// The columns of a schema that are meant.
pub(super) fn resolve(by: &[SortBy], schema: &Schema) -> Outcome<Vec<SortingColumn>> {
    let resolve = |by: &SortBy| match &*leaves_of("--sort", schema, &by.column)? {
        [leaf] if schema.leaves()[*leaf].is_flat() => Ok(SortingColumn {
            column: u32::try_from(*leaf).map_err(|_| Failure::usage("--sort: a column beyond the 2^32nd"))?,
            descending: by.descending,
            nulls_first: by.nulls_first,
        }),
        _ => Err(Failure::usage(format!(
            "--sort: the column {} is nested, and has no order",
            by.column.dotted()
        ))),
    };
    let resolved = by.iter().map(resolve).collect::<Outcome<Vec<_>>>()?;
    for (at, by) in by.iter().enumerate() {
        if resolved[..at].iter().any(|before| before.column == resolved[at].column) {
            return Err(Failure::usage(format!("--sort: the column {} is named twice", by.column.dotted())));
        }
    }
    Ok(resolved)
}

/// What rows wait in that are more than memory shall hold.
const SPILL: Object = Object(0);

/// Rows that are being sorted.
pub(super) struct Sorting {
    sorter: Sorter,
    spill: Stoppable,
}

/// A file in which rows wait. What is done with it may take long, and is ended where the user asks for that.
struct Stoppable {
    file: SpillFile,
    interrupted: Interrupted,
}

impl Stoppable {
    fn check(&self) -> Result<(), Error> {
        if self.interrupted.is_set() { Err(Error::cancelled()) } else { Ok(()) }
    }
}

impl ByteSink for Stoppable {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.check()?;
        self.file.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes, Error> {
        self.check()?;
        self.file.read(range)
    }
}

impl Sorting {
    /// What is too much for memory goes to a nameless file beside `path`.
    ///
    /// # Errors
    ///
    /// As [`Sorter::new`]; where no file can be made there.
    pub(super) fn new(
        schema: Arc<Schema>,
        by: &[SortingColumn],
        memory_bytes: u64,
        path: &Path,
        interrupted: &Interrupted,
    ) -> Result<Sorting, Error> {
        let options = SortOptions { memory_bytes, ..SortOptions::default() };
        let sorter = Sorter::new(schema, by, Arc::new(StandardCodecs::default()), SPILL, options)?;
        let file = SpillFile::create_beside(path)?;
        Ok(Sorting { sorter, spill: Stoppable { file, interrupted: interrupted.clone() } })
    }

    /// Takes rows in.
    pub(super) fn push(&mut self, batch: Batch) -> Result<(), Error> {
        match drive_into(&mut self.sorter, &mut ByteSinks::new().with(SPILL, &mut self.spill))? {
            Some(Sorted::Room) => {}
            _ => return Err(Error::internal("a sorter that has no room for rows")),
        }
        match self.sorter.feed(batch)? {
            Fed::Taken => Ok(()),
            Fed::Full(_) => Err(Error::internal("a sorter that asked for rows has no room for them")),
        }
    }

    /// The next rows in order, once all were taken in.
    pub(super) fn next(&mut self) -> Result<Option<Batch>, Error> {
        self.sorter.finish();
        match drive_into(&mut self.sorter, &mut ByteSinks::new().with(SPILL, &mut self.spill))? {
            Some(Sorted::Rows(batch)) => Ok(Some(batch)),
            Some(Sorted::Room) => Err(Error::internal("a sorter that wants more rows than there are")),
            None => Ok(None),
        }
    }

    /// Bytes that were written for they were too much for memory.
    pub(super) fn told(&self) -> u64 {
        self.sorter.spilled_bytes()
    }
}

/// Which leaves are left without some columns: for each leaf its number among them.
pub(super) fn renumbered(leaves: usize, without: &[usize]) -> Vec<Option<u32>> {
    let mut number = 0;
    (0..leaves)
        .map(|leaf| {
            (!without.contains(&leaf)).then(|| {
                number += 1;
                number - 1
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_columns() {
        let parse = |list: &str| match parse(list) {
            Ok(all) => {
                let one = |by: &SortBy| {
                    let down = if by.descending { "-" } else { "+" };
                    format!("{down}{}{}", if by.nulls_first { "0" } else { "" }, by.column.dotted())
                };
                all.iter().map(one).collect::<Vec<_>>().join("|")
            }
            Err(Failure::Said(_, message)) => message,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(parse("a"), "+a");
        assert_eq!(parse("a, b desc ,c ASC nulls FIRST,d Desc Nulls  Last"), "+a|-b|+0c|-d");
        assert_eq!(parse("\"b desc\", \"x,y\" desc, s.t nulls first"), "+b desc|-x,y|+0s.t");
        assert_eq!(parse("desc, first"), "+desc|+first");
        assert!(
            parse("a,,b").contains("--sort") && parse("a,,b").contains("a name is empty"),
            "{}",
            parse("a,,b")
        );
        assert!(parse("\"a").contains("a quote is not closed"));
    }

    #[test]
    fn leaves_that_are_left() {
        assert_eq!(renumbered(4, &[1]), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(renumbered(2, &[]), [Some(0), Some(1)]);
    }
}
