//! Rows of an object for which a predicate is true, or aggregates of them, as many as a call's share pays for.

use std::collections::HashMap;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Codecs, Detail, Error, ErrorKind, Result};
use marquetry_parquet::batch::RowSelection;
use marquetry_parquet::find::{FindOptions, Found, Report, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::{BatchReader, PageIndexReader};
use marquetry_parquet::schema::{Paths, Schema, ShapeKind};
use marquetry_text::predicate;

use crate::aggregate::{Function, average_of};
use crate::answer::Answer;
use crate::cursor::Cursor;
use crate::host::{Driven, Host, OBJECT};
use crate::output::{Made, Output};
use crate::request::{Format, Request};

/// The part of what is left of a share that looking for rows may take, as a fraction: the rest is for reading what was found.
const FIND_SHARE: (u64, u64) = (3, 4);
/// Rows that are looked for at a time, if their columns are read then: what is found and not read any more is looked for again by the next call.
const FOUND_MAX: u64 = 32_768;
/// The part of a share below which nothing new is begun: to begin costs about as much as it would bring.
const LEFT_MIN: u64 = 8;

/// Answers a query from where its cursor says.
pub(crate) fn query(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let (metadata, mark) = host.footer()?;
    let asked = Asked::of(&metadata, request)?;
    let leaves = asked.leaves.as_deref();
    let mut output = match &asked.aggregates {
        None => {
            let rows = (request.limit, request.format);
            Output::rows(&metadata, leaves, rows, host.share().answer_bytes)?
        }
        Some(aggregates) => {
            Output::aggregates(&metadata, leaves.unwrap_or_default(), aggregates, &asked.groups)?
        }
    };
    let begin = match request.cursor {
        None => (0, 0),
        Some(cursor) => {
            cursor.check(mark)?;
            (usize::try_from(cursor.row_group).unwrap_or(usize::MAX), cursor.row)
        }
    };
    let end = metadata.row_groups.len();
    if begin.0 > end
        || begin.1 > 0 && metadata.row_groups.get(begin.0).is_none_or(|group| group.rows <= begin.1)
    {
        return Err(Error::misuse("a cursor to rows that the object does not have"));
    }
    let mut query = Query { metadata, codecs: Host::codecs(), asked, report: None };
    let mut at = begin;
    while at.0 < end && output.wanted() > 0 {
        if at != begin && (output.is_full() || host.left() <= host.share().units / LEFT_MIN) {
            break;
        }
        at = query.go_on(at, &mut output, host)?;
    }
    let cursor = (at.0 < end && output.wanted() > 0).then(|| Cursor {
        row_group: u32::try_from(at.0).unwrap_or(u32::MAX),
        row: at.1,
        mark,
    });
    let Made { data, rows, first_row } = output.finish(host)?;
    // Rows that were found and not handed out are found again by the next call.
    let search = query.report.map(|mut report| {
        report.found = rows;
        report
    });
    Ok(Answer { data, cursor, rows, first_row, search, ..Answer::default() })
}

/// What a request means for an object.
struct Asked {
    /// The leaves that are read of rows that are found; `None`: all.
    leaves: Option<Vec<usize>>,
    /// `None`: all rows.
    predicate: Option<Predicate>,
    /// Each with its text, and its column's place among the leaves.
    aggregates: Option<Vec<(String, Option<usize>, Function)>>,
    /// The places of the columns that make groups.
    groups: Vec<usize>,
}

impl Asked {
    fn of(metadata: &FileMetaData, request: &Request<'_>) -> Result<Asked> {
        let schema = &metadata.schema;
        let parse = |text: &str| {
            let parsed = predicate::parse(text, schema);
            parsed.map_err(|error| Error::misuse(format!("{error} in the predicate {text}")))
        };
        let predicate = request.predicate.map(parse).transpose()?;
        let mut asked = Asked { leaves: None, predicate, aggregates: None, groups: Vec::new() };
        if !request.aggregates.is_empty() {
            asked.aggregate(schema, &request.aggregates, &request.groups)?;
        } else if request.format == Format::Count {
            asked.leaves = Some(Vec::new());
        } else if !request.leaves.is_empty() {
            asked.leaves = Some(named_leaves(schema, &request.leaves)?);
        } else if !request.columns.is_empty() {
            let mut leaves = Vec::new();
            for column in &request.columns {
                for leaf in leaves_of(schema, column)? {
                    if leaves.contains(&leaf) {
                        return Err(Error::misuse(format!("the column {column} is named twice")));
                    }
                    leaves.push(leaf);
                }
            }
            if request.format == Format::Parquet {
                // As its schema has them.
                leaves.sort_unstable();
            }
            asked.leaves = Some(leaves);
        }
        Ok(asked)
    }

    fn aggregate(&mut self, schema: &Schema, texts: &[&str], groups: &[&str]) -> Result<()> {
        let mut leaves: Vec<usize> = Vec::new();
        let mut place = |column: &str| {
            let of = leaves_of(schema, column)?;
            if !schema.children(0).any(|child| schema.leaves_of(child) == of && is_leaf(schema, child)) {
                let message = format!("aggregates of {column}, which may have several values a row");
                return Err(Error::unsupported(message));
            }
            Ok(leaves.iter().position(|leaf| *leaf == of.start).unwrap_or_else(|| {
                leaves.push(of.start);
                leaves.len() - 1
            }))
        };
        let mut aggregates = Vec::new();
        for text in texts {
            if let Some(column) = average_of(text) {
                // The mean of two means is not that of all rows: so the answer has what it is made of.
                let at = place(column)?;
                aggregates.push((format!("sum({column})"), Some(at), Function::Sum));
                aggregates.push((format!("count({column})"), Some(at), Function::Count));
                continue;
            }
            let (function, column) = Function::parse(text)?;
            aggregates.push(((*text).to_owned(), column.map(&mut place).transpose()?, function));
        }
        self.groups = groups.iter().map(|column| place(column)).collect::<Result<_>>()?;
        (self.leaves, self.aggregates) = (Some(leaves), Some(aggregates));
        Ok(())
    }
}

fn is_leaf(schema: &Schema, node: usize) -> bool {
    matches!(schema.shape(node).kind(), Ok(ShapeKind::Leaf))
}

/// The leaves below the column, or the field of one, that a path names.
fn leaves_of(schema: &Schema, column: &str) -> Result<std::ops::Range<usize>> {
    let names =
        predicate::names(column).map_err(|error| Error::misuse(format!("{error} in the column {column}")))?;
    let [path] = names.as_slice() else {
        return Err(Error::misuse(format!("'{column}' is not the name of one column")));
    };
    match Paths::default().find(schema, path, &mut Budget::unlimited()) {
        Ok(Some(field)) => Ok(field.shape.leaves()),
        Ok(None) => Err(Error::internal("a budget without an end is spent")),
        Err(_) => Err(Error::misuse(format!("the object has no column {column}"))),
    }
}

/// The leaves with these names, and with those of all that they are in, as the object spells them; in the object's order.
fn named_leaves(schema: &Schema, paths: &[&str]) -> Result<Vec<usize>> {
    // Names are looked up once, however many columns there are.
    let columns: HashMap<&str, usize> =
        schema.children(0).map(|node| (schema.nodes()[node].name.as_str(), node)).collect();
    let mut leaves = Vec::new();
    for path in paths {
        let missing = || Error::misuse(format!("the object has no column {}", path.replace('\0', ".")));
        let mut names = path.split('\0');
        let mut node = *names.next().and_then(|name| columns.get(name)).ok_or_else(missing)?;
        for name in names {
            let below = schema.children(node).find(|child| schema.nodes()[*child].name == name);
            node = below.ok_or_else(missing)?;
        }
        let leaf = schema.leaves_of(node).start;
        if schema.leaves().get(leaf).is_none_or(|leaf| leaf.node != node) {
            return Err(missing());
        }
        leaves.push(leaf);
    }
    leaves.sort_unstable();
    if leaves.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::misuse("a column is named twice"));
    }
    Ok(leaves)
}

/// A place: a row group, and a row in it.
type At = (usize, u64);

struct Query {
    metadata: Arc<FileMetaData>,
    codecs: Arc<dyn Codecs>,
    asked: Asked,
    /// What was searched; `None` where nothing has been.
    report: Option<Report>,
}

impl Query {
    /// Finds rows from a place on, up to the end of a row group that has some, and hands them out. Where to go on.
    fn go_on(&mut self, at: At, output: &mut Output, host: &mut Host<'_>) -> Result<At> {
        let (found, next) = match &self.asked.predicate {
            None => (Some(self.all_of(at)?), (at.0 + 1, 0)),
            Some(predicate) => {
                let predicate = predicate.clone();
                self.find(predicate, at, output, host)?
            }
        };
        let Some(found) = found.filter(|found| !found.rows.is_empty()) else { return Ok(next) };
        let row_group = found.row_group;
        Ok(self.hand_out(found, output, host)?.map_or(next, |row| (row_group, row)))
    }

    /// All rows of a row group, from a place on.
    fn all_of(&self, (row_group, row): At) -> Result<Found> {
        let rows = RowSelection::of(row..self.metadata.row_groups[row_group].rows)?;
        Ok(Found { row_group, rows, pages: Vec::new() })
    }

    fn find(
        &mut self,
        predicate: Predicate,
        at: At,
        output: &Output,
        host: &mut Host<'_>,
    ) -> Result<(Option<Found>, At)> {
        let end = self.metadata.row_groups.len();
        let mut options = FindOptions::default();
        options.read = Host::read_options();
        options.read.row_groups = Some(at.0..end);
        options.first_row = at.1;
        let reads = self.asked.leaves.as_ref().is_none_or(|leaves| !leaves.is_empty());
        options.limit = output.wanted().min(if reads { FOUND_MAX } else { u64::MAX });
        let limit = options.limit;
        let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
        let mut finder = RowFinder::new(OBJECT, metadata, codecs, predicate, options)?;
        let units = host.work().units + host.left() / FIND_SHARE.1 * FIND_SHARE.0;
        let got_on = |finder: &RowFinder| finder.position().is_none_or(|now| now > at);
        let driven = host.drive_until(&mut finder, units, got_on)?;
        let mut report = *finder.report();
        if at.1 > 0 {
            // The call that came to it first counted its rows.
            let rows = self.metadata.row_groups.get(at.0).map_or(0, |group| group.rows);
            report.row_groups = report.row_groups.saturating_sub(1);
            report.rows = report.rows.saturating_sub(rows);
        }
        self.report.get_or_insert_default().add(&report);
        Ok(match driven {
            Driven::Ready(found) => {
                let rows = self.metadata.row_groups[found.row_group].rows;
                let end = found.rows.end();
                let is_cut = finder.report().found >= limit && end < rows;
                let next = if is_cut { (found.row_group, end) } else { (found.row_group + 1, 0) };
                (Some(found), next)
            }
            Driven::Done => (None, (end, 0)),
            Driven::Spent => match finder.stop()? {
                None => (None, (end, 0)),
                Some(stopped) => {
                    let rows = self.metadata.row_groups[stopped.row_group].rows;
                    let is_through = stopped.next_row >= rows;
                    let next = if is_through {
                        (stopped.row_group + 1, 0)
                    } else {
                        (stopped.row_group, stopped.next_row)
                    };
                    (stopped.found, next)
                }
            },
        })
    }

    /// Reads the columns of rows that were found, while the share lasts and there is room. The first row that was not read; `None` if all were.
    fn hand_out(&self, found: Found, output: &mut Output, host: &mut Host<'_>) -> Result<Option<u64>> {
        let Found { row_group, rows, pages } = found;
        let first = rows.next_run(0).map_or(0, |run| run.start);
        output.begins_at(self.metadata.row_groups[row_group].first_row + first);
        if self.asked.leaves.as_ref().is_some_and(Vec::is_empty) {
            let counted = output.count(rows.rows());
            return Ok((counted < rows.rows()).then(|| nth(&rows, counted)));
        }
        let mut options = Host::read_options();
        options.leaves = self.asked.leaves.clone();
        options.row_groups = Some(row_group..row_group + 1);
        let mut located = pages;
        let is_partial = rows.rows() < self.metadata.row_groups[row_group].rows;
        if is_partial {
            self.locate(row_group, &mut located, host)?;
        }
        let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
        let mut reader = BatchReader::new(OBJECT, metadata, codecs, options)?;
        if is_partial {
            reader.select(row_group, rows.clone())?;
            for (leaf, pages) in located {
                reader.locate(row_group, leaf, pages)?;
            }
        }
        let mut taken = 0;
        while taken < rows.rows() && output.wanted() > 0 && !output.is_full() {
            let until = host.work().units + host.left();
            let batch = match host.drive_until(&mut reader, until, |_| taken > 0)? {
                Driven::Ready(batch) => batch,
                Driven::Done => return Err(Error::internal("a row group that ends before its rows")),
                Driven::Spent => break,
            };
            let some = output.take(&batch, host)?;
            taken += u64_of(some);
            if some < batch.rows || host.left() == 0 {
                break;
            }
        }
        Ok((taken < rows.rows()).then(|| nth(&rows, taken)))
    }

    /// Where the pages are of the leaves that are read, as far as the object says so.
    fn locate(
        &self,
        row_group: usize,
        located: &mut Vec<(usize, Arc<marquetry_parquet::format::OffsetIndex>)>,
        host: &mut Host<'_>,
    ) -> Result<()> {
        let all = || (0..self.metadata.schema.leaves().len()).collect();
        let leaves: Vec<usize> = self.asked.leaves.clone().unwrap_or_else(all);
        let missing = |leaf: &usize| located.iter().all(|(known, _)| known != leaf);
        let missing: Vec<usize> = leaves.iter().copied().filter(missing).collect();
        // Of leaves that are not read, nothing is wanted.
        located.retain(|(leaf, _)| leaves.contains(leaf));
        for leaf in missing {
            let mut options = Host::read_options();
            (options.leaves, options.row_groups) = (Some(vec![leaf]), Some(row_group..row_group + 1));
            let metadata = Arc::clone(&self.metadata);
            let mut reader = PageIndexReader::new(OBJECT, metadata, &options)?.without_bounds();
            match host.finish(&mut reader) {
                Ok(Some(index)) => located.push((leaf, Arc::new(index.offset_index))),
                Ok(None) => {}
                // Rows are found without it, by reading more.
                Err(error) if is_dispensable(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether an error about an index says that this is not to be used.
fn is_dispensable(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Unsupported => true,
        ErrorKind::LimitExceeded => matches!(error.detail(), Some(Detail::Limit(_))),
        _ => false,
    }
}

/// The selected row before which `count` others are.
fn nth(rows: &RowSelection, mut count: u64) -> u64 {
    let mut at = 0;
    while let Some(run) = rows.next_run(at) {
        let length = run.end - run.start;
        if count < length {
            return run.start + count;
        }
        (count, at) = (count - length, run.end);
    }
    rows.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_selected_row_is_found_across_runs() {
        let mut rows = RowSelection::none();
        let mut budget = Budget::unlimited();
        for run in [3..5, 10..11, 70_000..70_010] {
            rows.push(run, &mut budget).unwrap();
        }
        let found: Vec<u64> = (0..14).map(|count| nth(&rows, count)).collect();
        assert_eq!(found[..4], [3, 4, 10, 70_000]);
        assert_eq!((found[12], found[13]), (70_009, 70_010));
    }
}
