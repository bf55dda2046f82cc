//! Rows of an object for which a predicate is true, or aggregates of them, as many as a call's share pays for.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Codecs, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Combine, RowSelection};
use marquetry_parquet::find::{FindOptions, Found, Report, RowFinder};
use marquetry_parquet::format::{FileMetaData, OffsetIndex};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::BatchReader;
use marquetry_parquet::schema::Leaf;

use crate::answer::Answer;
use crate::asked::{Asked, asked_of};
use crate::cursor::{At, Cursor};
use crate::ends::{Ends, scaled};
use crate::host::{BATCH_ROWS, Driven, Host, OBJECT, too_much};
use crate::index::{Candidate, Lookup};
use crate::ipc;
use crate::kept::{Kept, Parts};
use crate::located::locate;
use crate::output::{Made, Output};
use crate::request::{Format, Request};
use crate::rows;

/// Units after which it is looked at how far a search is; and fewer, shortly before the row where it is to end.
const SEARCH_UNITS: u64 = 20_000;
const LAST_UNITS: u64 = 1_000;
/// Rows that are tested in between, at most, as far as that matters: more were ruled out without being read.
const TESTED_MAX: u64 = 8_000;
/// Rows that are tested at a time where an index says which may be wanted.
const FEW_ROWS: usize = 1024;
/// Leaves that are kept of a search, at most: of more, the others are read once more.
const KEPT_MAX: usize = 32;
/// The part of a share below which nothing new is begun: to begin costs about as much as it would bring.
const LEFT_MIN: u64 = 8;
/// The part of a share that a batch takes which is handed out, about, where rows cost much: a call ends between two of them. And its rows at least: a
/// batch costs something by itself, above all where dictionaries are translated into those of an answer.
const BATCH_PART: u64 = 2;
const HANDED_OUT_MIN: usize = 250;

/// Answers a query from where its cursor says. Of an object of rows or of Arrow, the answer may be a file that is `kept`.
pub(crate) fn query(host: &mut Host<'_>, request: &Request<'_>, is_kept: bool) -> Result<Answer> {
    let (metadata, mark) = match host.footer() {
        Ok(footer) => footer,
        // What has no footer may be another kind of object.
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            if ipc::is_of_arrow(host)? {
                return ipc::query(host, request, is_kept);
            }
            return if rows::is_of_rows(host)? { rows::query(host, request, is_kept) } else { Err(error) };
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
            Output::rows(&metadata, leaves, rows, host.share().answer_bytes, is_kept)?
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
    let keeps = keeps(&metadata, &asked);
    let mut query = Query {
        metadata,
        codecs: Host::codecs(),
        asked,
        lookup,
        keeps,
        report: None,
        ends: None,
        batch_rows: BATCH_ROWS,
        fixed: host.work().units,
        next_units: 0,
        is_full: false,
        is_named: false,
    };
    let mut at = begin;
    while at.0 < end && output.wanted() > 0 {
        let is_spent =
            host.left() <= host.share().units / LEFT_MIN || host.left_with_page() < query.next_units;
        if at != begin && (is_spent || query.is_full || output.is_full()) {
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
    /// Leaves that are tested and handed out, as long as that takes decoding them once.
    keeps: Vec<usize>,
    /// What was searched; `None` where nothing has been.
    report: Option<Report>,
    /// Of the row group at hand: what its rows cost, and where its pages begin.
    ends: Option<Ends>,
    /// Rows that are handed out at a time.
    batch_rows: usize,
    /// Units that each call takes before it comes to rows.
    fixed: u64,
    /// Units, about, to go on by another page of the row group at hand.
    next_units: u64,
    /// Rows were left out for which the answer has no room.
    is_full: bool,
    /// The rows that were searched last are those that an index named.
    is_named: bool,
}

/// How far a search is in a row group.
struct Search {
    row_group: usize,
    /// Where it began there, and what the call had spent then.
    first: u64,
    begun: u64,
    /// Where it is, and the rows that were tested, about: others were ruled out.
    row: u64,
    tested: u64,
    /// What it had spent once the first rows were tested, and these: to begin costs more.
    opened: Option<(u64, u64)>,
    /// The row where it is to end, as far as that is known: there is no need to look before it.
    end: u64,
    /// The row group, the row and the rows found when it was looked at last, and the units that it had to have left to go on then.
    seen: Option<((usize, u64, u64), u64)>,
}

impl Query {
    /// Finds rows from a place on, up to the end of a row group that has some, and hands them out. Where to go on.
    fn go_on(&mut self, at: At, output: &mut Output, host: &mut Host<'_>) -> Result<At> {
        let begun = host.spent();
        let mut kept = None;
        let (found, mut next) = match &self.asked.predicate {
            None => (Some(self.all_of(at)?), (at.0 + 1, 0)),
            Some(predicate) => {
                let predicate = predicate.clone();
                if !self.keeps.is_empty() {
                    kept = Some(Kept::of(self.keeps.clone(), output.keeps_dictionaries()));
                }
                let found = self.find(predicate, at, (&*output, &mut kept), host)?;
                if found.0.is_some() && kept.is_none() && !self.keeps.is_empty() {
                    // It found rows without a look at their values: it is likely to do so again.
                    self.keeps.clear();
                    self.ends = None;
                }
                found
            }
        };
        if let Some(mut found) = found.filter(|found| !found.rows.is_empty()) {
            let row_group = found.row_group;
            if let Some(row) = self.cut(&mut found, output, host)? {
                next = (row_group, row);
            }
            if let Some(row) = self.hand_out(found, kept, output, host)? {
                next = (row_group, row);
            }
        }
        let units = host.spent().saturating_sub(begun);
        self.next_units = match self.ends.as_ref().filter(|ends| ends.row_group == next.0) {
            Some(ends) if at.0 == next.0 && !self.is_named => {
                scaled(units, ends.page_rows(), next.1.saturating_sub(at.1))
            }
            _ => 0,
        };
        Ok(next)
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
        (output, kept): (&Output, &mut Option<Kept>),
        host: &mut Host<'_>,
    ) -> Result<(Option<Found>, At)> {
        let mut end = self.metadata.row_groups.len();
        // Where an index says that rows may be, only as many are searched; and where it says nothing, those up to where it may.
        let (mut until, mut unknown_end) = (None, None);
        if let Some(lookup) = &mut self.lookup {
            match lookup.next(at, &self.metadata, host)? {
                Candidate::Rows(from, row) => (at, until) = (from, Some((from.0, row))),
                Candidate::Unknown(from, row) => (at, unknown_end) = (from, row),
                Candidate::None(next) => return Ok((None, next)),
            }
        }
        if unknown_end.is_some() {
            end = at.0 + 1;
        }
        self.is_named = until.is_some();
        let mut options = FindOptions::default();
        options.read = Host::read_options();
        options.read.batch_rows = self.asked.rows_at_once(options.read.batch_rows);
        options.read.row_groups = Some(at.0..end);
        options.first_row = at.1;
        if until.is_some() {
            options.read.batch_rows = FEW_ROWS.min(options.read.batch_rows);
        }
        options.limit = output.wanted();
        options.keep_tested = kept.is_some();
        let limit = options.limit;
        let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
        let mut finder = RowFinder::new(OBJECT, metadata, codecs, predicate, options)?;
        let least = until.map_or(at, |(row_group, row)| (row_group, row - 1));
        let mut search = Search::at(at, host);
        let (driven, search_end) = loop {
            if until.is_some() {
                let got_on = |finder: &RowFinder| finder.position().is_none_or(|now| now > least);
                break (host.drive_until(&mut finder, 0, got_on)?, u64::MAX);
            }
            let units = search.units(&finder);
            match host.drive_until(&mut finder, host.work().units + units, |_| true)? {
                Driven::Spent => {}
                driven => break (driven, u64::MAX),
            }
            if let Some(kept) = kept {
                kept.take(&mut finder, host);
            }
            if finder.position().is_some_and(|now| now <= least) {
                if host.left_at_all() == 0 {
                    return Err(too_much());
                }
            } else if let Some(end) = self.has_enough(&finder, &mut search, output, host)? {
                break (Driven::Spent, end);
            } else if let Some(row) = unknown_end
                && finder.position().is_some_and(|now| now >= (at.0, row))
            {
                let lookup = self.lookup.as_mut();
                unknown_end = lookup.map_or(Ok(None), |lookup| lookup.unknown_from((at.0, row), host))?;
                if unknown_end.is_none() {
                    break (Driven::Spent, row);
                }
            }
        };
        if let Some(kept) = kept {
            kept.take(&mut finder, host);
        }
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
                *kept = kept.take().and_then(|kept| kept.all_of(found.rows.rows()));
                let rows = self.metadata.row_groups[found.row_group].rows;
                let end = found.rows.end();
                let is_cut = finder.report().found >= limit && end < rows;
                let next = if is_cut { (found.row_group, end) } else { (found.row_group + 1, 0) };
                (Some(found), next)
            }
            Driven::Done => (None, (end, 0)),
            Driven::Spent => match finder.stop()? {
                None => (None, (end, 0)),
                Some(mut stopped) => {
                    let count = stopped.found.as_ref().map_or(0, |found| found.rows.rows());
                    *kept = kept.take().and_then(|kept| kept.all_of(count));
                    if let Some(found) = stopped.found.as_mut().filter(|_| search_end < stopped.next_row) {
                        found.rows = before(&mut found.rows, search_end, host)?;
                    }
                    let rows = self.metadata.row_groups[stopped.row_group].rows;
                    let next_row = stopped.next_row.min(search_end);
                    let is_through = next_row >= rows;
                    let next =
                        if is_through { (stopped.row_group + 1, 0) } else { (stopped.row_group, next_row) };
                    (stopped.found, next)
                }
            },
        })
    }

    /// Whether a search has found what the call can hand out: the row before which it ends then.
    fn has_enough(
        &mut self,
        finder: &RowFinder,
        search: &mut Search,
        output: &Output,
        host: &mut Host<'_>,
    ) -> Result<Option<u64>> {
        let Some((row_group, row)) = finder.position() else { return Ok(None) };
        let found = finder.report().found;
        let seen = search.seen.filter(|(seen, _)| *seen == (row_group, row, found));
        if seen.is_some_and(|(_, needed)| host.left_with_page() > needed) {
            // A batch is at hand, of which nothing is known yet.
            return Ok(None);
        }
        if search.row_group != row_group {
            *search = Search::at((row_group, 0), host);
        }
        search.tested += row.saturating_sub(search.row).min(TESTED_MAX);
        search.row = row;
        let spent = host.work().units - search.begun;
        if search.tested == 0 {
            // It came to another row group without reading anything.
            return Ok((host.left() == 0).then_some(row));
        }
        let (opened, tested) = *search.opened.get_or_insert((spent, search.tested));
        let (metadata, fixed) = (Arc::clone(&self.metadata), self.fixed);
        let ends = self.ends_of(row_group, host);
        let opening = if found > 0 { ends.opening(output) } else { 0 };
        let (units, left) = (ends.units(search.tested, found, output), host.left_with_page());
        search.seen = Some(((row_group, row, found), units.saturating_add(opening)));
        let (left, room) = (left.saturating_sub(opening), ends.rows_of(output.room()));
        if found >= room || units >= left {
            // Whichever row it is, the search up to here is paid.
            let paid = fixed.saturating_add(spent);
            let end = ends.end(&metadata, (search.first, search.first + 1), (row, paid), host)?;
            self.is_full = found >= room;
            return Ok(Some(end));
        }
        if row < search.end {
            return Ok(None);
        }
        // As many rows more as are paid for, if they cost what those before did, and there is room for what is found in them.
        let searching = match search.tested - tested {
            0 => spent,
            rows => scaled(spent - opened, search.tested, rows),
        };
        let spent = searching.saturating_add(units);
        let paid = scaled(search.tested, left - units, spent);
        let fitting = scaled(search.tested, room - found, found);
        let most = row.saturating_add(paid.min(fitting));
        search.end = ends.end(&metadata, (search.first, row), (most, fixed), host)?;
        Ok((search.end <= row).then_some(search.end))
    }

    /// Leaves out rows that the call cannot hand out, by what they cost, about: the first of them; `None` if it can hand out all.
    fn cut(&mut self, found: &mut Found, output: &Output, host: &mut Host<'_>) -> Result<Option<u64>> {
        if self.asked.leaves.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let (metadata, fixed) = (Arc::clone(&self.metadata), self.fixed);
        let ends = self.ends_of(found.row_group, host);
        let (first, end) = (found.rows.next_run(0).map_or(0, |run| run.start), found.rows.end());
        let opening = ends.opening(output);
        let left = host.left_with_page().saturating_sub(opening);
        let (rows, room) = (end - first, ends.rows_of(output.room()));
        let wanted = found.rows.rows().min(output.wanted());
        let (units, share) = (ends.units(rows, wanted, output), host.share().units);
        let batch_rows = batch_rows(scaled(wanted, share / BATCH_PART, units));
        if units <= left && wanted <= room {
            self.batch_rows = batch_rows;
            return Ok(None);
        }
        let left = left.saturating_sub(ends.passed(&metadata, first, host)?);
        let (paid, fitting) = (scaled(rows, left, units), scaled(rows, room, wanted));
        // A first batch is read in any case: as many rows as usual where to begin costs most, because all calls do.
        let begin = ends.begin_units(&metadata, host)?;
        let is_dear = begin.is_none_or(|begin| begin.saturating_add(opening) > share / 2);
        let least = if is_dear { BATCH_ROWS } else { batch_rows };
        let most = first.saturating_add(paid.min(fitting).max(u64_of(least)));
        if most >= end {
            self.batch_rows = batch_rows;
            return Ok(None);
        }
        let row = ends.end(&metadata, (first, first + 1), (most, fixed), host)?;
        found.rows = before(&mut found.rows, row, host)?;
        (self.is_full, self.batch_rows) = (fitting < paid, batch_rows);
        Ok(Some(row))
    }

    /// What the rows of a row group cost.
    fn ends_of(&mut self, row_group: usize, host: &mut Host<'_>) -> &mut Ends {
        let known = self.ends.take().filter(|ends| ends.row_group == row_group);
        let ends = known.unwrap_or_else(|| {
            let tested = self.asked.predicate.as_ref().map_or_else(Vec::new, Predicate::leaves);
            let leaves = (self.asked.leaves.as_deref(), tested.as_slice(), self.keeps.as_slice());
            Ends::new(&self.metadata, row_group, leaves, host)
        });
        self.ends.insert(ends)
    }

    /// Reads the columns of rows that were found, but for those that the search has kept, while the share lasts and there is room. The first row
    /// that was not handed out; `None` if all were.
    fn hand_out(
        &self,
        found: Found,
        kept: Option<Kept>,
        output: &mut Output,
        host: &mut Host<'_>,
    ) -> Result<Option<u64>> {
        let Found { row_group, rows, pages } = found;
        let first = rows.next_run(0).map_or(0, |run| run.start);
        output.begins_at(self.metadata.row_groups[row_group].first_row + first);
        if self.asked.leaves.as_ref().is_some_and(Vec::is_empty) {
            let counted = output.count(rows.rows());
            return Ok((counted < rows.rows()).then(|| nth(&rows, counted)));
        }
        let all = || (0..self.metadata.schema.leaves().len()).collect();
        let leaves: Vec<usize> = self.asked.leaves.clone().unwrap_or_else(all);
        let mut read = leaves.clone();
        if kept.is_some() {
            read.retain(|leaf| !self.keeps.contains(leaf));
        }
        let reader = match read.is_empty() {
            true => None,
            false => Some(self.reader((row_group, &rows), (read, pages), output, host)?),
        };
        let mut parts = Parts::new(&leaves, (reader, kept), self.batch_rows);
        let (mut taken, begun) = (0, host.spent());
        'batches: while taken < rows.rows() && output.wanted() > 0 && !output.is_full() {
            let until = host.work().units + host.left_with_page();
            let mut batch = match parts.next((rows.rows() - taken, taken == 0), until, host)? {
                Driven::Ready(batch) => batch,
                Driven::Done => return Err(Error::internal("a row group that ends before its rows")),
                Driven::Spent => break,
            };
            let (is_first, whole) = (taken == 0, u64_of(batch.rows));
            loop {
                let some = output.take(&batch, host)?;
                taken += u64_of(some);
                if some >= batch.rows {
                    break;
                }
                if host.left_with_page() == 0 || !output.goes_on() {
                    break 'batches;
                }
                batch = batch.slice(some..batch.rows);
            }
            if is_first && taken == whole {
                host.extend();
            }
            let (left, spent) = (host.left_with_page(), host.spent().saturating_sub(begun));
            // What is read is paid for.
            if parts.has_more() {
                continue;
            }
            if left == 0 || self.ends_best((row_group, &rows), taken, (spent, left), host) {
                break;
            }
        }
        Ok((taken < rows.rows()).then(|| nth(&rows, taken)))
    }

    /// What reads some leaves of these rows, whose pages are known as far as is said.
    fn reader(
        &self,
        (row_group, rows): (usize, &RowSelection),
        (leaves, pages): (Vec<usize>, Vec<(usize, Arc<OffsetIndex>)>),
        output: &Output,
        host: &mut Host<'_>,
    ) -> Result<BatchReader> {
        let mut options = Host::read_options();
        options.batch_rows = self.batch_rows;
        options.leaves = Some(leaves.clone());
        options.row_groups = Some(row_group..row_group + 1);
        options.keep_dictionaries = output.keeps_dictionaries();
        let mut located = Vec::new();
        let is_partial = rows.rows() < self.metadata.row_groups[row_group].rows;
        if is_partial {
            if let Some(ends) = self.ends.as_ref().filter(|ends| ends.row_group == row_group) {
                let is_new = |leaf: usize| pages.iter().all(|(known, _)| *known != leaf);
                let known = ends.located().filter(|(leaf, _)| is_new(*leaf));
                located.extend(known.map(|(leaf, index)| (leaf, Arc::clone(index))));
            }
            located.extend(pages);
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
        Ok(reader)
    }

    /// Whether a call best ends after so many of the rows that it hands out, which have taken `spent` units: where a page begins, if what is
    /// left does not pay for that.
    fn ends_best(
        &self,
        (row_group, rows): (usize, &RowSelection),
        taken: u64,
        (spent, left): (u64, u64),
        host: &mut Host<'_>,
    ) -> bool {
        let first = rows.next_run(0).map_or(0, |run| run.start);
        let row = first + taken;
        let most = row.saturating_add(scaled(taken, left, spent));
        // Where rows are left out, it is not known which one is next without counting.
        let is_whole = rows.rows() == rows.end() - first;
        let ends = self.ends.as_ref().filter(|ends| ends.row_group == row_group && is_whole);
        most < rows.end() && ends.is_some_and(|ends| ends.best((first, row), (most, self.fixed), host) <= row)
    }
}

impl Search {
    /// One that begins.
    fn at((row_group, row): At, host: &Host<'_>) -> Search {
        let begun = host.work().units;
        Search { row_group, first: row, begun, row, tested: 0, opened: None, end: 0, seen: None }
    }

    /// Units after which it is looked at how far the search is.
    fn units(&self, finder: &RowFinder) -> u64 {
        let is_last = finder.position().is_some_and(|(row_group, row)| {
            let left = self.end.checked_sub(row);
            row_group == self.row_group && left.is_some_and(|left| left <= u64_of(BATCH_ROWS))
        });
        if is_last { LAST_UNITS } else { SEARCH_UNITS }
    }
}

/// The leaves that are tested and handed out, and have one value a row, in the order in which they are handed out.
fn keeps(metadata: &FileMetaData, asked: &Asked) -> Vec<usize> {
    let tested = asked.predicate.as_ref().map_or_else(Vec::new, Predicate::leaves);
    let is_flat = |leaf: &usize| metadata.schema.leaves().get(*leaf).is_some_and(Leaf::is_flat);
    match &asked.leaves {
        None => tested.into_iter().filter(is_flat).take(KEPT_MAX).collect(),
        Some(leaves) => {
            let is_tested = |leaf: &usize| tested.binary_search(leaf).is_ok();
            leaves.iter().copied().filter(is_tested).filter(is_flat).take(KEPT_MAX).collect()
        }
    }
}

/// Rows of a batch, where so many are paid for: the usual ones, halved as often as it takes, so that they still end where pages do whose rows are
/// a multiple of those.
fn batch_rows(paid: u64) -> usize {
    let mut rows = BATCH_ROWS;
    while u64_of(rows) > paid && rows / 2 >= HANDED_OUT_MIN {
        rows /= 2;
    }
    rows
}

/// Those of the rows that are before one of them.
fn before(rows: &mut RowSelection, end: u64, host: &mut Host<'_>) -> Result<RowSelection> {
    let mut budget = Budget::unlimited();
    let mut rows = std::mem::take(rows).combine(RowSelection::of(0..end)?, Combine::Intersection);
    let rows = rows.step(&mut budget)?;
    host.charge(budget.spent());
    rows.ok_or_else(|| Error::internal("a budget without an end is spent"))
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
    fn batches_are_smaller_where_rows_cost_more() {
        let of = [u64::MAX, 4000, 3999, 2000, 700, 499, 250, 10, 0].map(batch_rows);
        assert_eq!(of, [4000, 4000, 2000, 2000, 500, 250, 250, 250, 250]);
    }

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
