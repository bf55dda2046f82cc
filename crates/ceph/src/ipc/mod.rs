//! Objects of Arrow: an IPC stream, or a file, which is one with a head and a footer. They are queried, and written in other forms, as all are.
//!
//! A record batch is what a call reads of it, and of that the columns that are wanted. Its rows go on as those of a Parquet object of the same
//! columns do, so all that is done with them is said once, in [`Output`].

mod arrays;
mod message;

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use marquetry_arrow::FromArrow;
use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Price, Result, Segmented};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Evaluator;

use self::arrays::Batch;
use self::message::Message;
use crate::answer::Answer;
use crate::asked::asked_of;
use crate::cursor::Cursor;
use crate::failure::of_arrow;
use crate::host::{BATCH_ROWS, Host, too_much};
use crate::output::{Made, Output};
use crate::request::{Format, Request};

pub(crate) use self::message::is_of_arrow;

/// The part of a share below which nothing more is begun.
const LEFT_MIN: u64 = 8;
/// The part of a share that rows of a record batch take at least, and of what reading it took: the next call reads it again.
const BATCH_PART: u64 = 4;
const READ_PART: u64 = 2;
/// What a column of the schema costs, which is looked up by each call.
const SCHEMA_PRICE: Price = Price::per_kilovalue(2_000 << 10);
/// What a value costs that is chosen of a record batch.
const CHOOSE_PRICE: Price = Price::per_kilovalue(6 << 10);

/// Rows of an Arrow object, or aggregates of them, from where the cursor says, in the form that the request says. Of a Parquet file that is `kept`,
/// statistics and indexes are written.
pub(crate) fn query(host: &mut Host<'_>, request: &Request<'_>, is_kept: bool) -> Result<Answer> {
    if is_kept && request.format == Format::Arrow {
        return Err(Error::unsupported("an Arrow object is not transformed into Arrow"));
    }
    let length = host.length()?;
    let mark = host.mark_of_beginning()?;
    let (schema, first) = message::schema(host, length)?;
    let (mut rows, mut output) = Rows::new(&schema, request, is_kept, host)?;
    let (mut at, mut row) = (first, 0);
    if let Some(cursor) = request.cursor {
        cursor.check(mark)?;
        at = u64::from(cursor.row_group);
        row = usize::try_from(cursor.row).unwrap_or(usize::MAX);
        if at < first || at > length {
            return Err(Error::misuse("a cursor to rows that the object does not have"));
        }
    }
    let begin = at;
    let mut is_full = false;
    while at < length && output.wanted() > 0 {
        let is_spent = host.left() <= host.share().units / LEFT_MIN;
        if is_full || at > begin && (is_spent || output.is_full()) {
            break;
        }
        let Some(message) = Message::read(host, at, length)? else {
            at = length;
            break;
        };
        let (parsed, body) = message.parsed(length)?;
        if message::is_dictionary(&parsed) {
            (at, row) = (body.end, 0);
            continue;
        }
        let batch = Batch::of(&parsed).map_err(|error| error.at_offset(at))?;
        let all = batch.rows();
        if row > all {
            return Err(Error::misuse("a cursor to rows that the object does not have"));
        }
        // Rows have numbers that ascend: of those before them, nobody knows how many there are.
        output.begins_at((at << arrays::ROWS_MAX.ilog2()).saturating_add(u64_of(row)));
        if rows.read.is_empty() {
            // They are counted, and nothing is read of them.
            row += usize::try_from(output.count(u64_of(all - row))).unwrap_or(usize::MAX);
        } else {
            let before = host.work().units;
            let batch = batch.read(&schema, &rows.read, &body, host).map_err(|error| error.at_offset(at))?;
            // To read a record batch costs so much that more than a few of its rows are worth that, whatever is left.
            let (mut is_first, begun) = (true, host.work().units);
            let least = (host.share().units / BATCH_PART).max((begun - before) / READ_PART);
            while row < all && output.wanted() > 0 && !is_full {
                let is_spent =
                    host.left() <= host.share().units / LEFT_MIN && host.work().units - begun >= least;
                if !is_first && (is_spent || output.is_full()) {
                    break;
                }
                is_first = false;
                let some = batch.slice(row, rows.rows_at_once.min(all - row));
                let taken = rows.take(&some, &mut output, host).map_err(|error| error.at_offset(at))?;
                is_full = taken < some.num_rows();
                row += taken;
            }
        }
        if row >= all {
            (at, row) = (body.end, 0);
        }
    }
    let place = u32::try_from(at).map_err(|_| Error::too_large("an Arrow object beyond 4 GiB"))?;
    let cursor =
        (at < length && output.wanted() > 0).then_some(Cursor { row_group: place, row: u64_of(row), mark });
    let Made { data, rows, .. } = output.finish(host)?;
    Ok(Answer { data, cursor, rows, ..Answer::default() })
}

/// What becomes of rows: which columns are read of them, and what is done with these.
struct Rows {
    /// The places in the object of the columns that are read; and in those, of the ones that are tested and handed out.
    read: Vec<usize>,
    tested: Option<Tested>,
    handed_out: Vec<usize>,
    from_arrow: FromArrow,
    rows_at_once: usize,
}

/// A predicate, and the columns that it tests.
struct Tested {
    columns: Vec<usize>,
    from_arrow: FromArrow,
    evaluator: Evaluator,
}

impl Rows {
    fn new(
        schema: &SchemaRef,
        request: &Request<'_>,
        is_kept: bool,
        host: &mut Host<'_>,
    ) -> Result<(Rows, Output)> {
        host.charge(SCHEMA_PRICE.of(0, schema.fields().len()));
        let all = FromArrow::new(schema)?;
        // As of a Parquet file of the same columns.
        let asked = asked_of(all.schema(), request, host)?;
        let columns = Columns::of(all.schema());
        let handed_out = match &asked.leaves {
            None => (0..schema.fields().len()).collect(),
            Some(leaves) => columns.of_leaves(leaves)?,
        };
        let (mut tests, mut read) = (None, handed_out.clone());
        if let Some(predicate) = &asked.predicate {
            let mut tested: Vec<usize> =
                predicate.leaves().iter().map(|leaf| columns.of_leaf(*leaf)).collect();
            tested.sort_unstable();
            tested.dedup();
            let from_arrow = FromArrow::new(&part_of(schema, &tested)?)?;
            let leaves: Vec<usize> = tested.iter().flat_map(|column| columns.leaves(*column)).collect();
            let mapped = predicate
                .map_leaves(&|leaf: usize| leaves.binary_search(&leaf).ok())
                .ok_or_else(|| Error::internal("a predicate of columns that are not read"))?;
            let places: Vec<usize> = (0..leaves.len()).collect();
            let evaluator = Evaluator::new(&mapped, from_arrow.schema(), &places)?;
            read.extend(&tested);
            tests = Some((tested, from_arrow, evaluator));
        }
        read.sort_unstable();
        read.dedup();
        let places = |columns: &[usize]| -> Vec<usize> {
            columns.iter().filter_map(|column| read.binary_search(column).ok()).collect()
        };
        let tested = tests.map(|(columns, from_arrow, evaluator)| Tested {
            columns: places(&columns),
            from_arrow,
            evaluator,
        });
        let from_arrow = FromArrow::new(&part_of(schema, &handed_out)?)?;
        let table = table_of(&from_arrow);
        let output = match &asked.aggregates {
            None => {
                let rows = (request.limit, request.format);
                Output::rows(&table, None, rows, host.share().answer_bytes, is_kept)?
            }
            Some(aggregates) => {
                let leaves: Vec<usize> = (0..handed_out.len()).collect();
                Output::aggregates(&table, &leaves, aggregates, &asked.groups, request.format)?
            }
        };
        let (handed_out, rows_at_once) = (places(&handed_out), asked.rows_at_once(BATCH_ROWS));
        Ok((Rows { read, tested, handed_out, from_arrow, rows_at_once }, output))
    }

    /// Takes rows, from their first on: how many were dealt with, which is fewer if there is no room for more, or no time.
    fn take(&mut self, rows: &RecordBatch, output: &mut Output, host: &mut Host<'_>) -> Result<usize> {
        let all = rows.num_rows();
        let bits = match &mut self.tested {
            None => None,
            Some(tested) => Some(tested.bits(rows, host)?),
        };
        // The row after the one that was chosen with this number.
        let after = |taken: usize| match &bits {
            None => taken,
            Some(bits) => nth(bits, taken.saturating_sub(1)).map_or(all, |at| at + 1),
        };
        let chosen = match &bits {
            None => all,
            Some(bits) => bits.true_count(),
        };
        if self.handed_out.is_empty() {
            let counted = usize::try_from(output.count(u64_of(chosen))).unwrap_or(usize::MAX);
            return Ok(if counted < chosen { after(counted) } else { all });
        }
        if chosen == 0 {
            return Ok(all);
        }
        let mut rows = rows.project(&self.handed_out).map_err(of_arrow)?;
        if let Some(bits) = &bits {
            host.charge(CHOOSE_PRICE.of(0, all * self.handed_out.len()));
            rows = filter_record_batch(&rows, bits).map_err(of_arrow)?;
        }
        let mut taken = 0;
        while taken < chosen && output.wanted() > 0 {
            let mut budget = Budget::unlimited();
            let part = self.from_arrow.part(&rows, taken, &mut budget)?;
            host.charge(budget.spent());
            let mut part = part.ok_or_else(|| Error::internal("a budget without an end is spent"))?;
            while part.rows > 0 && output.wanted() > 0 {
                let some = output.take(&part, host)?;
                taken += some;
                let is_all = some >= part.rows;
                if !is_all && (!output.goes_on() || host.left_with_page() == 0) {
                    return Ok(after(taken));
                }
                part = part.slice(some.min(part.rows)..part.rows);
            }
        }
        Ok(if taken < chosen { after(taken) } else { all })
    }
}

impl Tested {
    /// For which rows the predicate is true.
    fn bits(&mut self, rows: &RecordBatch, host: &mut Host<'_>) -> Result<BooleanArray> {
        let rows = rows.project(&self.columns).map_err(of_arrow)?;
        let (mut bits, mut done) = (Vec::with_capacity(rows.num_rows()), 0);
        while done < rows.num_rows() {
            let mut budget = Budget::new(host.left_at_all());
            let part = self.from_arrow.part(&rows, done, &mut budget)?.ok_or_else(too_much)?;
            let found = self.evaluator.step(&part, &mut budget)?;
            host.charge(budget.spent());
            bits.extend(found.ok_or_else(too_much)?.iter());
            done += part.rows;
        }
        Ok(BooleanArray::from(bits))
    }
}

/// Which leaves each column of a schema has: consecutive ones.
struct Columns {
    /// The first leaf of each, and one after the last of all.
    firsts: Vec<usize>,
}

impl Columns {
    fn of(schema: &marquetry_parquet::schema::Schema) -> Columns {
        let mut firsts: Vec<usize> =
            schema.children(0).map(|column| schema.leaves_of(column).start).collect();
        firsts.push(schema.leaves().len());
        Columns { firsts }
    }

    fn leaves(&self, column: usize) -> std::ops::Range<usize> {
        self.firsts[column]..self.firsts[column + 1]
    }

    fn of_leaf(&self, leaf: usize) -> usize {
        self.firsts.partition_point(|first| *first <= leaf).saturating_sub(1)
    }

    /// The columns of these leaves, in their order, of which each has all.
    fn of_leaves(&self, leaves: &[usize]) -> Result<Vec<usize>> {
        let (mut columns, mut at) = (Vec::new(), 0);
        while let Some(leaf) = leaves.get(at) {
            let column = self.of_leaf(*leaf);
            let of_column = self.leaves(column);
            let end = at + of_column.len();
            if !leaves.get(at..end).is_some_and(|some| of_column.eq(some.iter().copied())) {
                return Err(Error::unsupported("a part of a nested column of an Arrow object"));
            }
            columns.push(column);
            at = end;
        }
        Ok(columns)
    }
}

fn part_of(schema: &SchemaRef, columns: &[usize]) -> Result<Schema> {
    schema.project(columns).map_err(of_arrow)
}

/// What stands for the footer of a Parquet file of these columns, which has their types in Arrow, too.
fn table_of(from_arrow: &FromArrow) -> FileMetaData {
    let mut key_values = Segmented::new();
    key_values.push(from_arrow.key_value());
    FileMetaData {
        version: 2,
        schema: Arc::clone(from_arrow.schema()),
        rows: 0,
        row_groups: Segmented::new(),
        key_values,
        created_by: None,
        column_orders: Segmented::new(),
        encryption: None,
        footer_start: 0,
        footer_bytes: 0,
        is_partial: false,
    }
}

/// The place of the true bit with this number.
fn nth(bits: &BooleanArray, number: usize) -> Option<usize> {
    bits.values().set_indices().nth(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_all_their_leaves() {
        let columns = Columns { firsts: vec![0, 1, 3, 4, 6] };
        assert_eq!(columns.of_leaves(&[3, 1, 2, 0]).unwrap(), [2, 1, 0]);
        assert_eq!((columns.of_leaf(2), columns.of_leaf(5), columns.leaves(3)), (1, 3, 4..6));
        for part in [&[1][..], &[2, 1], &[0, 2], &[4, 5, 4]] {
            assert!(columns.of_leaves(part).is_err(), "{part:?}");
        }
    }
}
