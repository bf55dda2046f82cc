//! Writes with their write times, TTLs and deletions, on their way to the cluster: the rows of a `full` mapping as statements.
//!
//! ```text
//! batch of the full mapping ──► Unmapper ──► Statements ──► blocks of packed rows ──► Load ──► Writes::send
//! ```
//!
//! A row is sent by one task: its statements one after the other, because those of a list need that, and most rows have one.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use marquetry_base::{Budget, Detail, Error, Limits, Result, cast};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::statements::{
    RowStatements, StatementId, StatementTexts, Statements,
};
use marquetry_scylla::bridge::mutations::{UnmapStep, Unmapper};
use marquetry_scylla::cql::TableName;
use marquetry_scylla::sstable::TableColumns;
use marquetry_tables::{Distinct, Table};
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::prepared::PreparedStatement;

use crate::hidden::HiddenCells;
use crate::options::Consistency;
use crate::prepare::prepared;
use crate::rejects::reason_of;
use crate::rows::{Block, BlockSize, Keys, Origin, RowId, Unfit};

/// Makes blocks of the writes that rows of the `full` mapping are.
pub(crate) struct Writing {
    unmapper: Unmapper,
    statements: Statements,
    row: RowStatements,
    packing: Packing,
    block: BlockSize,
    /// Where rows are from that have no statements yet, in their order.
    sources: VecDeque<Source>,
    /// Rows are kept, because they may be rejected.
    keeps_rows: bool,
    /// The first row of the last batch, in its object.
    first_row: u64,
    rows: u64,
    statement_bytes_max: usize,
    has_list_keys: bool,
    earlier: Earlier,
    /// Rows before this one have statements, or are among those that have none.
    seen: u64,
    without_statements: Vec<Range<u64>>,
    hidden: HiddenCells,
    keys: Keys,
}

/// Rows that lie together: those of an object, or, if they are kept, those of a batch.
struct Source {
    /// Which of all rows is its first.
    start: u64,
    /// The same of its object.
    object_start: u64,
    origin: Arc<Origin>,
}

/// What earlier runs of a load have sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Earlier {
    /// All rows before this one were acknowledged: they are not sent.
    pub(crate) acknowledged: u64,
    /// No row from this one on was sent.
    pub(crate) sent_until: u64,
    /// How often the rows between may have been sent.
    pub(crate) times: i64,
    /// Elements may be added to lists a second time.
    pub(crate) adds_again: bool,
}

impl Earlier {
    /// How often a row may have been sent.
    fn times(&self, ordinal: u64) -> i64 {
        if ordinal < self.sent_until { self.times } else { 0 }
    }
}

impl Writing {
    /// For rows of this source, that are writes to a table with these columns.
    ///
    /// # Errors
    ///
    /// What CQL cannot write; a schema that is not the mapping's.
    pub(crate) fn new(
        columns: &Arc<TableColumns>,
        source: &Table,
        table: &TableName,
        (statement_bytes_max, block): (usize, BlockSize),
    ) -> Result<Writing> {
        Ok(Writing {
            statements: Statements::new(columns, table)?,
            unmapper: Unmapper::beside(
                Arc::clone(columns),
                &source.schema,
                Limits::DEFAULT,
                reason_of(source),
            )?,
            row: RowStatements::default(),
            packing: Packing::default(),
            block,
            sources: VecDeque::new(),
            keeps_rows: false,
            first_row: 0,
            rows: 0,
            statement_bytes_max,
            has_list_keys: false,
            earlier: Earlier::default(),
            seen: 0,
            without_statements: Vec::new(),
            hidden: HiddenCells::default(),
            keys: Keys::default(),
        })
    }

    /// Fails, later, for a write to these columns that the cluster would not show.
    pub(crate) fn expect_seen(&mut self, hidden: HiddenCells) {
        self.hidden = hidden;
    }

    /// Goes on after what earlier runs have sent.
    pub(crate) fn after(&mut self, earlier: Earlier) {
        (self.earlier, self.seen) = (earlier, earlier.acknowledged);
    }

    /// Keeps rows, so that those that are rejected can be told.
    pub(crate) fn keep_rows(&mut self) {
        self.keeps_rows = true;
    }

    /// Whether statements add elements to lists under keys that servers make: then it matters whether they were sent.
    pub(crate) fn adds_to_lists(&self) -> bool {
        !self.has_list_keys && !self.texts().lists().is_empty()
    }

    /// How many writes of rows there were, and how many different keys they have.
    pub(crate) fn keys(&self) -> (u64, Distinct) {
        self.keys.count()
    }

    /// The rows that no statement is of, since the last time: bounds of ranges, whose deletion is another row's statement.
    pub(crate) fn without_statements(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.without_statements)
    }

    /// For servers that take the keys of lists' elements.
    pub(crate) fn with_list_keys(mut self) -> Writing {
        self.statements = self.statements.with_list_keys();
        self.has_list_keys = true;
        self
    }

    /// The texts of the statements.
    pub(crate) fn texts(&self) -> &StatementTexts {
        self.statements.texts()
    }

    /// Takes rows of an object. Blocks go to `give`, also those before an error, and so do rows that cannot be sent.
    ///
    /// # Errors
    ///
    /// Why a row is no write, or none that CQL can say; with its number and object. And what `give` returns.
    pub(crate) fn add<E: From<Error>>(
        &mut self,
        batch: Batch,
        object: &Arc<str>,
        give: &mut dyn FnMut(Made<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.sources.back().filter(|last| last.origin.object == *object);
        if before.is_none() || self.keeps_rows {
            let origin = Origin { object: Arc::clone(object), batch: self.keeps_rows.then(|| batch.clone()) };
            let object_start = before.map_or(self.rows, |before| before.object_start);
            self.sources.push_back(Source { start: self.rows, object_start, origin: Arc::new(origin) });
        }
        self.first_row = batch.first_row;
        self.rows += cast::u64_of(batch.rows);
        self.unmapper.feed(batch)?;
        self.work(give)
    }

    /// Takes notice that there are no more rows.
    ///
    /// # Errors
    ///
    /// As [`Writing::add`]; and for a range of deleted rows that does not end.
    pub(crate) fn finish<E: From<Error>>(
        &mut self,
        give: &mut dyn FnMut(Made<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.unmapper.finish();
        self.work(give)?;
        self.statements.finish()?;
        if self.statements.rows() != self.rows {
            return Err(Error::internal("statements of more rows than there are, or of fewer").into());
        }
        self.saw(self.rows);
        Ok(())
    }

    /// All rows before this one were made statements of, if they have any.
    fn saw(&mut self, row: u64) {
        if self.seen < row {
            self.without_statements.push(self.seen..row);
            self.seen = row;
        }
    }

    fn work<E: From<Error>>(&mut self, give: &mut dyn FnMut(Made<'_>) -> Result<(), E>) -> Result<(), E> {
        loop {
            let step = self.unmapper.step(&mut Budget::unlimited());
            let first_row = self.first_row;
            let step = step.map_err(|error| {
                error.replaced(|place| place.row = place.row.map(|row| row.saturating_add(first_row)))
            });
            match step? {
                UnmapStep::Ready(batch) => {
                    self.hidden.expect_none(&batch).map_err(|error| self.of_source(error))?;
                    self.statements.feed(batch)?;
                    let packed = self.pack_all(give);
                    // Those before a row that cannot be are sent.
                    if let Some(source) = self.sources.front()
                        && let Some(block) = self.packing.take(&source.origin)
                    {
                        give(Made::Block(block))?;
                    }
                    packed?;
                }
                UnmapStep::Need | UnmapStep::Done => return Ok(()),
                UnmapStep::Yield => {}
            }
        }
    }

    /// An error about the rows that come next.
    fn of_source(&self, error: Error) -> Error {
        let object = self.sources.front().map(|source| source.origin.object.to_string());
        error.at(|place| place.object = object.filter(|object| !object.is_empty()))
    }

    /// Fails for a row that adds elements to a list and may have done so before.
    fn expect_safe(&self, ordinal: u64) -> Result<()> {
        if self.earlier.times(ordinal) == 0 || self.earlier.adds_again {
            return Ok(());
        }
        let lists = self.row.statements.chunk_by(|one, other| one.list == other.list);
        let mut firsts = lists.filter_map(|list| list.first()).filter(|first| first.list.is_some());
        match firsts.find(|first| !self.texts().is_replacing(first.id)) {
            None => Ok(()),
            Some(first) => {
                let list = first.list.and_then(|number| self.texts().column(number));
                let list = list.map_or_else(String::new, ToString::to_string);
                let message = format!(
                    "elements are added to the list {list} here, and an earlier run may have added them: truncate the table and begin \
                     anew, or accept elements that are there twice"
                );
                Err(Error::refused(message).with(Detail::AdmittedBy(&["lists_at_least_once"])))
            }
        }
    }

    /// Packs the rows of a batch.
    fn pack_all<E: From<Error>>(&mut self, give: &mut dyn FnMut(Made<'_>) -> Result<(), E>) -> Result<(), E> {
        let now = now();
        loop {
            let is_there = self.statements.next(now, &mut self.row);
            // Of the row that is, or is not, made.
            let row = match &is_there {
                Ok(_) => self.row.row,
                Err(error) => error.place().row.unwrap_or(0),
            };
            while self.sources.get(1).is_some_and(|source| source.start <= row) {
                if let Some(source) = self.sources.pop_front()
                    && let Some(block) = self.packing.take(&source.origin)
                {
                    give(Made::Block(block))?;
                }
            }
            let Some(source) = self.sources.front() else { return Ok(()) };
            let (origin, number) = (Arc::clone(&source.origin), row.saturating_sub(source.object_start));
            let in_batch = self.keeps_rows.then(|| row.saturating_sub(source.start)).and_then(cast::usize_of);
            let placed = |error: Error| {
                let object = (!origin.object.is_empty()).then(|| origin.object.to_string());
                error.replaced(|place| (place.row, place.object) = (Some(number), object))
            };
            if !is_there.map_err(placed)? {
                return Ok(());
            }
            // A range is two rows.
            let in_batch = in_batch.filter(|_| !self.row.is_range);
            match self.pack_row(row, (number, in_batch)) {
                Ok(()) => {}
                Err(error) => {
                    let error = placed(error);
                    let Some(in_batch) = in_batch else { return Err(error.into()) };
                    give(Made::Unfit(&origin, Unfit { in_batch, error }, row))?;
                }
            }
            if self.packing.is_full(self.block)
                && let Some(block) = self.packing.take(&origin)
            {
                give(Made::Block(block))?;
            }
        }
    }

    /// Packs the statements of a row, unless it is not to be sent.
    fn pack_row(&mut self, row: u64, (number, in_batch): (u64, Option<usize>)) -> Result<()> {
        self.saw(row);
        self.seen = self.seen.max(row + 1);
        if row < self.earlier.acknowledged {
            return Ok(());
        }
        self.expect_safe(row)?;
        let id = RowId { number, ordinal: row, in_batch: in_batch.unwrap_or(usize::MAX), write_time_us: 0 };
        pack(&self.row, self.statement_bytes_max, id, &mut self.packing)?;
        if !self.row.key.is_empty() {
            self.keys.add(&self.row.key);
        }
        Ok(())
    }
}

/// What becomes of rows.
pub(crate) enum Made<'a> {
    /// Rows to be sent.
    Block(Block),
    /// One that cannot be, where it is from, and its number among all.
    Unfit(&'a Origin, Unfit, u64),
}

/// Packed rows that become a block, and where each begins.
#[derive(Default)]
struct Packing {
    rows: Vec<(RowId, usize)>,
    bytes: Vec<u8>,
}

impl Packing {
    fn is_full(&self, block: BlockSize) -> bool {
        self.rows.len() >= block.rows || self.bytes.len() >= block.bytes
    }

    /// The block, if there are rows in it. The next one begins.
    fn take(&mut self, origin: &Arc<Origin>) -> Option<Block> {
        let Packing { rows, bytes } = std::mem::take(self);
        (!rows.is_empty()).then(|| Block::of(Arc::clone(origin), Bytes::from(bytes), rows))
    }
}

/// Seconds since 1970, by this machine's clock.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// The bytes before a statement's values: its number, its write time, the list that it writes, and the length of its values.
const HEAD_BYTES: usize = 4 + 8 + 4 + 4;
/// The number of no list.
const NO_LIST: u32 = u32::MAX;

fn pack(row: &RowStatements, bytes_max: usize, id: RowId, packing: &mut Packing) -> Result<()> {
    let largest = row.statements.iter().map(|statement| statement.values.len()).max().unwrap_or(0);
    if largest > bytes_max {
        return Err(Error::conversion(format!(
            "a statement for this row has {largest} bytes of values; the cluster takes {bytes_max}"
        )));
    }
    let Packing { rows, bytes } = packing;
    rows.push((id, bytes.len()));
    for statement in &row.statements {
        let values = row.values.get(statement.values.clone()).unwrap_or_default();
        bytes.extend(statement.id.number().to_be_bytes());
        bytes.extend(statement.write_time.to_be_bytes());
        bytes.extend(statement.list.unwrap_or(NO_LIST).to_be_bytes());
        bytes.extend(u32::try_from(values.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(values);
    }
    Ok(())
}

/// A statement of a packed row.
#[derive(Debug, Clone)]
struct Step {
    id: StatementId,
    write_time: i64,
    list: Option<u32>,
    values: Bytes,
}

/// The statements of a packed row. They end early where the bytes are none, which [`pack`] never makes.
fn steps(mut row: Bytes) -> Vec<Step> {
    let mut steps = Vec::new();
    while row.len() >= HEAD_BYTES {
        let head = row.split_to(HEAD_BYTES);
        let word = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            u32::from_be_bytes(bytes.unwrap_or_default())
        };
        let time = head.get(4..12).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let length = cast::usize_of_u32(word(16)).min(row.len());
        steps.push(Step {
            id: StatementId::of_number(word(0)),
            write_time: i64::from_be_bytes(time),
            list: Some(word(12)).filter(|list| *list != NO_LIST),
            values: row.split_to(length),
        });
    }
    steps
}

/// The statements of a table, which are prepared when they are needed. There are few of them, so all are kept.
pub(crate) struct Writes {
    texts: StatementTexts,
    consistency: Consistency,
    prepared: Mutex<HashMap<StatementId, PreparedStatement>>,
    earlier: Earlier,
}

/// A row that is being sent.
pub(crate) struct Sent {
    steps: Vec<Step>,
    /// The next statement.
    next: usize,
    /// How often the statements of a list may have been sent before.
    again: i64,
    /// The same, of a list that this run has not sent.
    before: i64,
    /// A statement that adds to a list may have arrived: sent again, it could add its elements twice.
    is_unsure: bool,
}

impl Writes {
    /// The statements of a table, of which the usual one is prepared: a table that is not as it should be refuses it.
    ///
    /// # Errors
    ///
    /// The cluster's.
    pub(crate) async fn prepare(
        session: &Session,
        texts: StatementTexts,
        consistency: Consistency,
        earlier: Earlier,
        retry_for: Duration,
    ) -> crate::error::Result<Writes> {
        let writes = Writes { texts, consistency, prepared: Mutex::default(), earlier };
        match writes.statement(session, writes.texts.usual(), retry_for).await {
            Ok(_) => Ok(writes),
            Err(ExecutionError::PrepareError(reason)) => Err(crate::Error::Prepare(Box::new(reason))),
            Err(_) => Err(crate::Error::Internal("a table without an INSERT")),
        }
    }

    pub(crate) fn begin(&self, row: Bytes, ordinal: u64) -> Sent {
        let before = self.earlier.times(ordinal);
        Sent { steps: steps(row), next: 0, again: before, before, is_unsure: false }
    }

    /// Sends the statements of a row that were not acknowledged yet. After an error it can be called again.
    ///
    /// Elements of a list get keys that the server makes, so a statement that may have arrived would add them a second time. Where the
    /// statements of its list begin with a value that replaces the list, they begin anew, a microsecond after all that was sent. Where they
    /// only add to what is there, the row [must not be sent again](Sent::is_unsure), unless elements may be there twice.
    ///
    /// # Errors
    ///
    /// That of the first statement that was not acknowledged.
    pub(crate) async fn send(&self, session: &Session, row: &mut Sent) -> Result<(), ExecutionError> {
        while let Some(step) = row.steps.get(row.next) {
            let (id, mut write_time) = (step.id, step.write_time);
            let is_of_list = |other: &Step| step.list.is_some() && other.list == step.list;
            let first = if step.list.is_some() { row.first_of_list() } else { row.next };
            let is_replaced = step.list.is_some()
                && row.steps.get(first).is_some_and(|first| self.texts.is_replacing(first.id));
            if row.again > 0 && is_replaced {
                let times = row.steps.iter().filter(|other| is_of_list(other)).map(|other| other.write_time);
                write_time = times.max().unwrap_or(write_time).saturating_add(row.again);
            }
            // Whoever sends the row waits, and comes again.
            let mut prepared = self.statement(session, id, Duration::ZERO).await?;
            prepared.set_timestamp(Some(write_time));
            if let Err(error) = session.execute_unpaged(&prepared, &Values(&step.values)).await {
                if step.list.is_some() && may_have_arrived(&error) {
                    if is_replaced {
                        (row.next, row.again) = (first, row.again + 1);
                    } else {
                        row.is_unsure = !self.earlier.adds_again;
                    }
                }
                return Err(error);
            }
            let goes_on = row.steps.get(row.next + 1).is_some_and(is_of_list);
            row.next += 1;
            row.again = if goes_on { row.again } else { row.before };
        }
        Ok(())
    }

    async fn statement(
        &self,
        session: &Session,
        id: StatementId,
        retry_for: Duration,
    ) -> Result<PreparedStatement, ExecutionError> {
        let known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(prepared) = known {
            return Ok(prepared);
        }
        // Several tasks may do so at a time; what they get is the same.
        let text = self.texts.text(id).map_err(SerializationError::new)?;
        let mut made = prepared(session, &text, self.consistency, retry_for).await?;
        made.set_is_idempotent(self.texts.is_idempotent(id));
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).insert(id, made.clone());
        Ok(made)
    }
}

impl Sent {
    /// Whether the row must not be sent again, because elements of a list could be there twice.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// The first of the statements of the list that the next one is of.
    fn first_of_list(&self) -> usize {
        let list = self.steps.get(self.next).and_then(|step| step.list);
        self.steps.iter().position(|step| step.list == list).unwrap_or(self.next)
    }
}

/// Whether a statement that failed may have been executed nevertheless, or may be yet.
fn may_have_arrived(error: &ExecutionError) -> bool {
    !matches!(
        error,
        ExecutionError::EmptyPlan
            | ExecutionError::ConnectionPoolError(_)
            | ExecutionError::BadQuery(_)
            | ExecutionError::PrepareError(_)
            | ExecutionError::LastAttemptError(RequestAttemptError::DbError(
                DbError::Unavailable { .. }
                    | DbError::Overloaded
                    | DbError::IsBootstrapping
                    | DbError::RateLimitReached { .. },
                _
            ))
    )
}

/// Bound values, as the protocol has them.
struct Values<'a>(&'a Bytes);

/// The length of a null; a lower one is that of what is not bound.
const NULL: i32 = -1;

impl SerializeRow for Values<'_> {
    fn serialize(
        &self,
        context: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        let wrong = || {
            SerializationError::new(Error::internal("a statement has not as many values as it has columns"))
        };
        let mut rest: &[u8] = self.0;
        // The types were checked against the table's before anything was prepared.
        for _ in context.columns() {
            let (length, values) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
            rest = values;
            let to = writer.make_cell_writer();
            match i32::from_be_bytes(*length) {
                NULL => to.set_null(),
                length => match usize::try_from(length) {
                    Err(_) => to.set_unset(),
                    Ok(length) => {
                        let (value, values) = rest.split_at_checked(length).ok_or_else(wrong)?;
                        rest = values;
                        to.set_value(value).map_err(SerializationError::new)?
                    }
                },
            };
        }
        if rest.is_empty() { Ok(()) } else { Err(wrong()) }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_scylla::bridge::mutations::statements::Statement;

    #[test]
    fn a_row_is_packed_and_unpacked() {
        let statement = |number, write_time, values, list| Statement {
            id: StatementId::of_number(number),
            write_time,
            values,
            list,
        };
        let row = RowStatements {
            row: 3,
            statements: vec![
                statement(17, -5, 0..2, None),
                statement(2, i64::MAX, 2..2, Some(0)),
                statement(1, 9, 2..5, Some(7)),
            ],
            values: b"abcde".to_vec(),
            key: Vec::new(),
            is_range: false,
        };
        let mut packing = Packing::default();
        let id = |number, ordinal| RowId { number, ordinal, in_batch: 0, write_time_us: 0 };
        pack(&row, 3, id(4, 9), &mut packing).unwrap();
        assert!(pack(&row, 2, id(5, 10), &mut packing).is_err());
        let origin = Origin { object: Arc::from("object"), batch: None };
        let block = packing.take(&Arc::new(origin)).unwrap();
        let rows: Vec<((u64, u64), Bytes)> =
            block.rows().map(|(id, cells)| ((id.number, id.ordinal), cells)).collect();
        assert_eq!((rows.len(), rows[0].0), (1, (4, 9)));
        let unpacked: Vec<_> = steps(rows[0].1.clone())
            .into_iter()
            .map(|step| (step.id.number(), step.write_time, step.values, step.list))
            .collect();
        let bytes = Bytes::from_static;
        assert_eq!(
            unpacked,
            [
                (17, -5, bytes(b"ab"), None),
                (2, i64::MAX, bytes(b""), Some(0)),
                (1, 9, bytes(b"cde"), Some(7))
            ]
        );
    }

    #[test]
    fn a_list_begins_anew() {
        let step = |list| Step { id: StatementId::of_number(0), write_time: 0, list, values: Bytes::new() };
        let steps = vec![step(None), step(Some(1)), step(Some(1)), step(Some(2)), step(None)];
        let first =
            |next| Sent { steps: steps.clone(), next, again: 0, before: 0, is_unsure: false }.first_of_list();
        assert_eq!([1, 2, 3].map(first), [1, 1, 3]);
    }

    #[test]
    fn what_certainly_did_not_arrive() {
        let db = |error| ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, String::new()));
        assert!(!may_have_arrived(&db(DbError::Overloaded)) && !may_have_arrived(&ExecutionError::EmptyPlan));
        let timeout = ExecutionError::RequestTimeout(std::time::Duration::from_secs(1));
        assert!(may_have_arrived(&db(DbError::ServerError)) && may_have_arrived(&timeout));
    }
}
