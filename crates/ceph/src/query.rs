//! Rows of an object for which a predicate is true, or aggregates of them, as many as a call's share pays for.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Codecs, Error, ErrorKind, Result};
use marquetry_parquet::batch::RowSelection;
use marquetry_parquet::find::{FindOptions, Found, Report, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::BatchReader;

use crate::answer::Answer;
use crate::asked::{Asked, asked_of};
use crate::cursor::{At, Cursor};
use crate::host::{Driven, Host, OBJECT};
use crate::index::{Candidate, Lookup};
use crate::located::locate;
use crate::output::{Made, Output};
use crate::request::{Format, Request};
use crate::rows;

/// The part of what is left of a share that looking for rows may take, as a fraction: the rest is for reading what was found.
const FIND_SHARE: (u64, u64) = (3, 4);
/// Rows that are looked for at a time, if their columns are read then: what is found and not read any more is looked for again by the next call.
const FOUND_MAX: u64 = 32_768;
/// Rows that are tested at a time where an index says which may be wanted.
const FEW_ROWS: usize = 1024;
/// The part of a share below which nothing new is begun: to begin costs about as much as it would bring.
const LEFT_MIN: u64 = 8;

/// Answers a query from where its cursor says. Of an object of rows, the answer may be a file that is `kept`.
pub(crate) fn query(host: &mut Host<'_>, request: &Request<'_>, is_kept: bool) -> Result<Answer> {
    let (metadata, mark) = match host.footer() {
        Ok(footer) => footer,
        // What has no footer may be another kind of object.
        Err(error) if error.kind() == ErrorKind::Corrupt && rows::is_of_rows(host)? => {
            return rows::query(host, request, is_kept);
        }
        Err(error) => return Err(error),
    };
    if is_kept && request.format == Format::Parquet {
        let message = "a Parquet object is not transformed into Parquet: `marquetry copy` writes it anew, and `marquetry ceph compress` compresses it in another way";
        return Err(Error::unsupported(message));
    }
    let asked = asked_of(&metadata.schema, request, host)?;
    let leaves = asked.leaves.as_deref();
    let mut output = match &asked.aggregates {
        None => {
            let rows = (request.limit, request.format);
            Output::rows(&metadata, leaves, rows, host.share().answer_bytes)?
        }
        Some(aggregates) => {
            let leaves = leaves.unwrap_or_default();
            Output::aggregates(&metadata, leaves, aggregates, &asked.groups, request.format)?
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
    let lookup = match &asked.predicate {
        Some(predicate) => Lookup::of(host, &metadata, mark, predicate)?,
        None => None,
    };
    let mut query = Query { metadata, codecs: Host::codecs(), asked, lookup, report: None };
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

struct Query {
    metadata: Arc<FileMetaData>,
    codecs: Arc<dyn Codecs>,
    asked: Asked,
    /// An index that says where rows may be.
    lookup: Option<Lookup>,
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
        mut at: At,
        output: &Output,
        host: &mut Host<'_>,
    ) -> Result<(Option<Found>, At)> {
        let end = self.metadata.row_groups.len();
        // Where an index says that rows may be, only as many are searched.
        let mut until = None;
        if let Some(lookup) = &mut self.lookup {
            match lookup.next(at, &self.metadata, host)? {
                Candidate::Rows(from, row) => (at, until) = (from, Some((from.0, row))),
                Candidate::Unknown(from) => at = from,
                Candidate::None(next) => return Ok((None, next)),
            }
        }
        let mut options = FindOptions::default();
        options.read = Host::read_options();
        options.read.batch_rows = self.asked.rows_at_once(options.read.batch_rows);
        options.read.row_groups = Some(at.0..end);
        options.first_row = at.1;
        if until.is_some() {
            options.read.batch_rows = FEW_ROWS.min(options.read.batch_rows);
        }
        let reads = self.asked.leaves.as_ref().is_none_or(|leaves| !leaves.is_empty());
        options.limit = output.wanted().min(if reads { FOUND_MAX } else { u64::MAX });
        let limit = options.limit;
        let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
        let mut finder = RowFinder::new(OBJECT, metadata, codecs, predicate, options)?;
        let (mut units, mut least) = (host.work().units + host.left() / FIND_SHARE.1 * FIND_SHARE.0, at);
        if let Some((row_group, row)) = until {
            // It is looked at after each slice whether they were.
            (units, least) = (0, (row_group, row - 1));
        }
        let got_on = |finder: &RowFinder| finder.position().is_none_or(|now| now > least);
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
            let all = || (0..self.metadata.schema.leaves().len()).collect();
            let leaves: Vec<usize> = self.asked.leaves.clone().unwrap_or_else(all);
            locate(&self.metadata, &leaves, row_group, &mut located, host)?;
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
    use marquetry_base::Budget;

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
