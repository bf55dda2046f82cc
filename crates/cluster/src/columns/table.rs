//! Cells of a table, asked for and sent: many at a time, and again if that may help.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};
use marquetry_scylla::cql::TableName;
use scylla::client::session::Session;
use scylla::deserialize::row::ColumnIterator;
use scylla::errors::ExecutionError;
use scylla::response::query_result::QueryRowsResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency as DriverConsistency, SerialConsistency, Statement};

use super::head::Head;
use super::part::{Part, Version};
use super::plan::CELL_BYTES;
use super::run::{Cell, Run};
use super::statements::{self, Bound};
use crate::cluster::Cluster;
use crate::error::Error as ClusterError;
use crate::options::Consistency;
use crate::prepare::prepared;
use crate::retry::{Patience, is_passing};

/// Cells of a page: 2 MiB of those that are as large as is aimed for, 16 MiB at most.
const PAGE_CELLS: i32 = 16;
/// Keys of a page.
const PAGE_KEYS: i32 = 1000;
/// The time for an answer to what is conditional, for which the servers talk to each other several times.
const CONDITIONAL_TIMEOUT: Duration = Duration::from_secs(30);

/// A table of this layout.
pub(super) struct Table {
    pub(super) cluster: Cluster,
    name: TableName,
    consistency: Consistency,
    retry_for: Duration,
    select: PreparedStatement,
    select_before: PreparedStatement,
    /// Of a table that is written.
    changes: Option<Changes>,
}

struct Changes {
    insert: PreparedStatement,
    delete: PreparedStatement,
    partitions: PreparedStatement,
}

impl Table {
    /// Prepares what will be asked of a table.
    pub(super) fn new(
        cluster: Cluster,
        (consistency, retry_for): (Consistency, Duration),
        is_written: bool,
    ) -> Result<Arc<Table>> {
        let (session, name) = (Arc::clone(cluster.session()), cluster.address().table().clone());
        let preparing = async move {
            let prepare = async |text: String| {
                let done = prepared(&session, &text, consistency, retry_for).await;
                done.map_err(|reason| ClusterError::Select(Box::new(ExecutionError::PrepareError(reason))))
            };
            let (select, select_before) = tokio::try_join!(
                prepare(statements::select(&name)),
                prepare(statements::select_before(&name))
            )?;
            let changes = match is_written {
                false => None,
                true => {
                    let (insert, delete, partitions) = tokio::try_join!(
                        prepare(statements::insert(&name)),
                        prepare(statements::delete(&name)),
                        prepare(statements::partitions(&name))
                    )?;
                    Some(Changes { insert, delete, partitions })
                }
            };
            Ok::<_, ClusterError>((name, select, select_before, changes))
        };
        let (name, mut select, select_before, mut changes) = cluster.runtime().wait(preparing)??;
        select.set_page_size(PAGE_CELLS);
        if let Some(changes) = &mut changes {
            changes.partitions.set_page_size(PAGE_KEYS);
        }
        Ok(Arc::new(Table { cluster, name, consistency, retry_for, select, select_before, changes }))
    }

    fn session(&self) -> &Session {
        self.cluster.session()
    }

    /// What is current; `None` of a table without a file.
    pub(super) async fn head(&self) -> Result<Option<Head>> {
        let rows = self.cells(Version::NONE, Part::MAP, 0..1).await?;
        rows.first().map(|(_, bytes)| Head::parse(bytes)).transpose()
    }

    /// What is current, as its bytes, and the versions that are being written, by their leases: as all writers agree upon.
    pub(super) async fn agreed(&self) -> Result<(Option<Bytes>, Vec<u64>)> {
        let mut select = self.select.clone();
        select.set_consistency(DriverConsistency::Serial);
        let select = &select;
        let head = |range| async move {
            let cells = self.cells_by(select, Version::NONE, Part::MAP, range).await?;
            Ok::<_, Error>(cells.into_iter().next().map(|(_, bytes)| bytes))
        };
        agreed_by(|range| self.numbers(select, range), head).await
    }

    /// The numbers of the rows, within a range, of the partition that is about the table. What is in them is nobody's concern.
    async fn numbers(&self, select: &PreparedStatement, range: Range<u64>) -> Result<Vec<u64>> {
        let offsets = [signed(range.start)?, signed(range.end)?];
        let bound = Bound { version: Version::NONE, part: Part::MAP, offsets: &offsets, bytes: None };
        let (mut numbers, mut state) = (Vec::new(), PagingState::start());
        loop {
            let (page, next) = self.page(select, &bound, state).await?;
            numbers.extend(cells_of(&page)?.iter().map(|(number, _)| *number));
            match next {
                Some(next) => state = next,
                None => return Ok(numbers),
            }
        }
    }

    /// The cells of a part that begin within a range, as far as they [follow](Run) each other.
    pub(super) async fn cells(&self, version: Version, part: Part, range: Range<u64>) -> Result<Vec<Cell>> {
        self.cells_by(&self.select, version, part, range).await
    }

    async fn cells_by(
        &self,
        select: &PreparedStatement,
        version: Version,
        part: Part,
        range: Range<u64>,
    ) -> Result<Vec<Cell>> {
        let offsets = [signed(range.start)?, signed(range.end)?];
        let (mut run, mut state) = (Run::until(range.end), PagingState::start());
        loop {
            let bound = Bound { version, part, offsets: &offsets, bytes: None };
            let (page, next) = self.page(select, &bound, state).await?;
            run.add(cells_of(&page)?);
            match next {
                Some(next) if !run.is_over() => state = next,
                _ => return Ok(run.into_cells()),
            }
        }
    }

    /// The last cell of a part that begins before an offset.
    pub(super) async fn cell_before(
        &self,
        version: Version,
        part: Part,
        offset: u64,
    ) -> Result<Option<Cell>> {
        let offsets = [signed(offset)?];
        let bound = Bound { version, part, offsets: &offsets, bytes: None };
        let (page, _) = self.page(&self.select_before, &bound, PagingState::start()).await?;
        Ok(cells_of(&page)?.into_iter().next())
    }

    /// The cells that hold a range of a part: all of each, in order. If they do not, where the first byte is that none has.
    pub(super) async fn holding(
        &self,
        version: Version,
        part: Part,
        range: Range<u64>,
    ) -> Result<Result<Vec<Cell>, u64>> {
        let (those, before) =
            (self.cells(version, part, range.clone()), self.cell_before(version, part, range.start));
        // A page is looked up within a cell, most likely; what is scanned begins where one does.
        let (mut cells, before) = match range.end - range.start < CELL_BYTES {
            true => tokio::try_join!(those, before)?,
            false => match those.await? {
                cells if cells.first().is_some_and(|(offset, _)| *offset == range.start) => (cells, None),
                cells => (cells, before.await?),
            },
        };
        if cells.first().is_none_or(|(offset, _)| *offset > range.start) {
            cells.splice(0..0, before);
        }
        Ok(match covered(&cells, &range) {
            at if at < range.end => Err(at),
            _ => Ok(cells),
        })
    }

    /// A page, and where the next one begins.
    async fn page(
        &self,
        statement: &PreparedStatement,
        bound: &Bound<'_>,
        state: PagingState,
    ) -> Result<(QueryRowsResult, Option<PagingState>)> {
        self.page_by(&mut Patience::new(self.retry_for, 0), statement, bound, state).await
    }

    /// The same, with the patience that is left.
    async fn page_by(
        &self,
        patience: &mut Patience,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        state: PagingState,
    ) -> Result<(QueryRowsResult, Option<PagingState>)> {
        let ask = |_: u32| self.session().execute_single_page(statement, &values, state.clone());
        match patience.send(is_passing, ask).await {
            Ok((answer, next)) => page_of(answer.into_rows_result(), next),
            Err(reason) => {
                let tries = patience.failures();
                Err(ClusterError::Read { tries, reason: Box::new(reason) }.into())
            }
        }
    }

    /// Writes a cell. Sent twice it is the same.
    pub(super) async fn put(&self, version: Version, part: Part, offset: u64, bytes: &[u8]) -> Result<()> {
        let offsets = [signed(offset)?];
        let bound = Bound { version, part, offsets: &offsets, bytes: Some(bytes) };
        self.change(&self.changes()?.insert, &bound, offset, "write a part of the file").await
    }

    /// Deletes a partition.
    pub(super) async fn drop_part(&self, version: Version, part: Part) -> Result<()> {
        let bound = Bound { version, part, offsets: &[], bytes: None };
        self.change(&self.changes()?.delete, &bound, 0, "drop an old version").await
    }

    async fn change(
        &self,
        statement: &PreparedStatement,
        bound: &Bound<'_>,
        spread: u64,
        purpose: &'static str,
    ) -> Result<()> {
        let mut patience = Patience::new(self.retry_for, spread);
        let sent = patience.send(is_passing, |_| self.session().execute_unpaged(statement, bound)).await;
        sent.map(drop).map_err(|reason| ClusterError::Statement { purpose, reason: Box::new(reason) }.into())
    }

    /// All partitions, by their keys.
    pub(super) async fn partitions(&self) -> Result<Vec<(Version, Part)>> {
        let (mut found, mut state) = (Vec::new(), PagingState::start());
        let statement = &self.changes()?.partitions;
        // All pages together have the time that one may take.
        let mut patience = Patience::new(self.retry_for, 0);
        loop {
            let (page, next) = self.page_by(&mut patience, statement, (), state).await?;
            for row in page.rows::<ColumnIterator<'_, '_>>().map_err(|error| unexpected(&error))? {
                let mut values: Vec<Vec<u8>> = Vec::new();
                for cell in row.map_err(|error| unexpected(&error))? {
                    let cell = cell.map_err(|error| unexpected(&error))?;
                    values.push(cell.slice.map(|slice| slice.as_slice().to_vec()).unwrap_or_default());
                }
                found.push(key_of(&values).ok_or_else(|| unexpected(&"a key of other columns"))?);
            }
            match next {
                Some(next) => state = next,
                None => return Ok(found),
            }
        }
    }

    /// Says that a version is being written.
    pub(super) async fn lease(&self, version: Version) -> Result<()> {
        let text = statements::lease(&self.name, version);
        // If the answer was lost, the row may be there, and is this version's: nobody else has its number.
        self.conditional(text, "begin a version").await.map(drop)
    }

    /// Says so again.
    ///
    /// # Errors
    ///
    /// `Io` if it is too late: another writer may have dropped what was written.
    pub(super) async fn renew(&self, version: Version) -> Result<()> {
        match self.conditional(statements::renew(&self.name, version), "go on with a version").await? {
            true => Ok(()),
            false => Err(too_late()),
        }
    }

    /// Gives a lease back. Otherwise it ends by itself.
    pub(super) async fn give_back(&self, version: Version) -> Result<()> {
        self.conditional(statements::give_back(&self.name, version), "give up a version").await.map(drop)
    }

    /// Makes a version current in place of what was.
    ///
    /// # Errors
    ///
    /// `Refused` if another version became current meanwhile; `Io` if this one took too long to be written, or it is not known whether it
    /// is current.
    pub(super) async fn publish(&self, version: Version, was: Option<&Bytes>, head: &str) -> Result<()> {
        let text = statements::publish(&self.name, version, was.map(|was| &was[..]), head);
        let mut patience = Patience::new(self.retry_for, version.lease().unsigned_abs());
        loop {
            let reason = match self.once(&text).await {
                Ok(true) => return Ok(()),
                Ok(false) => None,
                Err(reason) => Some(reason),
            };
            // Whatever the answer was, and if there was none: what is current is what counts.
            let (now, leases) = self.agreed().await.map_err(|error| {
                let message = format!("whether the new version is current is not known: {}", error.message());
                error.reworded(message)
            })?;
            if now.as_deref() == Some(head.as_bytes()) {
                return Ok(());
            }
            if now.as_ref() != was {
                let what = "another version was written meanwhile, and is current; this one was dropped";
                return Err(Error::refused(what));
            }
            if !leases.iter().any(|lease| i64::try_from(*lease) == Ok(version.lease())) {
                return Err(too_late());
            }
            let may_pass = reason.as_ref().is_none_or(is_passing);
            if !patience.wait(may_pass).await {
                let purpose = "make the new version current";
                return Err(match reason {
                    Some(reason) => ClusterError::Statement { purpose, reason: Box::new(reason) }.into(),
                    None => Error::refused("the cluster did not make the new version current"),
                });
            }
        }
    }

    /// Whether a conditional statement was applied. One that was not answered is sent again: then it may say no to what it did itself.
    async fn conditional(&self, text: String, purpose: &'static str) -> Result<bool> {
        let sent = Patience::new(self.retry_for, 0).send(is_passing, |_| self.once(&text)).await;
        sent.map_err(|reason| ClusterError::Statement { purpose, reason: Box::new(reason) }.into())
    }

    async fn once(&self, text: &str) -> Result<bool, ExecutionError> {
        let mut statement = Statement::new(text);
        statement.set_consistency(self.consistency.for_driver());
        statement.set_serial_consistency(Some(SerialConsistency::Serial));
        statement.set_request_timeout(Some(CONDITIONAL_TIMEOUT));
        let answer = self.session().query_unpaged(statement, ()).await?;
        // The first column says so; an answer without rows is one to what is not conditional.
        let applied = answer.into_rows_result().ok().and_then(|rows| {
            let mut rows = rows.rows::<ColumnIterator<'_, '_>>().ok()?;
            let first = rows.next()?.ok()?.next()?.ok()?;
            Some(first.slice?.as_slice() == [1])
        });
        Ok(applied == Some(true))
    }

    fn changes(&self) -> Result<&Changes> {
        self.changes.as_ref().ok_or_else(|| Error::internal("a table that is only read"))
    }
}

/// Two reads of the partition that is about the table: of the rows of versions that are being written, and *then* of what is current.
///
/// Publishing moves what is current and deletes the lease at once. So a version that is published meanwhile is seen with its lease, or as current, or
/// both; in the other order, and from page to page of one read, it could be seen as neither, and its partitions would be dropped.
async fn agreed_by<L, H>(
    leases: impl FnOnce(Range<u64>) -> L,
    head: impl FnOnce(Range<u64>) -> H,
) -> Result<(Option<Bytes>, Vec<u64>)>
where
    L: Future<Output = Result<Vec<u64>>>,
    H: Future<Output = Result<Option<Bytes>>>,
{
    let leases = leases(1..offset_max()).await?;
    Ok((head(0..1).await?, leases))
}

/// Up to where cells hold a range from its start on, if each begins where the one before ends.
fn covered(cells: &[Cell], range: &Range<u64>) -> u64 {
    let mut at = range.start;
    for (nth, (offset, bytes)) in cells.iter().enumerate() {
        let follows = if nth == 0 { *offset <= at } else { *offset == at };
        let end = offset.saturating_add(u64_of(bytes.len()));
        if !follows || end <= at {
            break;
        }
        at = end;
    }
    at
}

/// The largest offset, which no cell begins at.
pub(super) fn offset_max() -> u64 {
    i64::MAX.unsigned_abs()
}

fn signed(offset: u64) -> Result<i64> {
    i64::try_from(offset).map_err(|_| Error::misuse("an offset beyond what a file can have"))
}

fn too_late() -> Error {
    Error::io(
        "writing the version took too long, so another writer may have dropped what was written of it: write it again",
    )
}

fn page_of(
    answer: std::result::Result<QueryRowsResult, impl std::fmt::Display>,
    next: PagingStateResponse,
) -> Result<(QueryRowsResult, Option<PagingState>)> {
    let rows = answer.map_err(|error| unexpected(&error))?;
    Ok((
        rows,
        match next {
            PagingStateResponse::HasMorePages { state } => Some(state),
            PagingStateResponse::NoMorePages => None,
        },
    ))
}

fn cells_of(page: &QueryRowsResult) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for row in page.rows::<ColumnIterator<'_, '_>>().map_err(|error| unexpected(&error))? {
        let mut row = row.map_err(|error| unexpected(&error))?;
        let mut next = || row.next().and_then(std::result::Result::ok).and_then(|column| column.slice);
        let (Some(offset), Some(bytes)) = (next(), next()) else {
            return Err(unexpected(&"a cell without an offset or bytes"));
        };
        let offset = <[u8; 8]>::try_from(offset.as_slice()).map(i64::from_be_bytes).ok();
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        cells.push((offset.ok_or_else(|| unexpected(&"a cell before the file's start"))?, bytes.to_bytes()));
    }
    Ok(cells)
}

/// A partition, by the values of its key.
fn key_of(values: &[Vec<u8>]) -> Option<(Version, Part)> {
    let [version, column, row_group, shard] = values else { return None };
    let number = |value: &[u8]| value.try_into().ok().map(i32::from_be_bytes);
    let part = Part { column: number(column)?, row_group: number(row_group)?, shard: number(shard)? };
    Some((Version::of_bytes(version)?, part))
}

fn unexpected(reason: &dyn std::fmt::Display) -> Error {
    ClusterError::Answer { purpose: "read parts of a file", reason: reason.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_a_range_if_they_follow_each_other() {
        let cells = |cells: &[(u64, usize)]| -> Vec<Cell> {
            cells.iter().map(|(offset, length)| (*offset, Bytes::from(vec![0; *length]))).collect()
        };
        let covered = |of: &[(u64, usize)], range| covered(&cells(of), &range);
        assert_eq!(covered(&[(0, 10), (10, 10)], 5..20), 20);
        assert_eq!(covered(&[(5, 10), (15, 10)], 5..20), 25);
        // None; too late; the one before ends before; one is missing; two overlap; one is empty.
        assert_eq!(covered(&[], 5..20), 5);
        assert_eq!(covered(&[(6, 100)], 5..20), 5);
        assert_eq!(covered(&[(0, 4), (6, 100)], 5..20), 5);
        assert_eq!(covered(&[(0, 10), (12, 10)], 5..20), 10);
        assert_eq!(covered(&[(0, 10), (9, 20)], 5..20), 10);
        assert_eq!(covered(&[(0, 10), (10, 0), (10, 10)], 5..20), 10);
    }

    /// The partition that is about a table, read a page at a time, in which B is published once a page was read.
    struct Own {
        head: Bytes,
        leases: Vec<u64>,
        reads: u32,
    }

    const B: (&str, u64) = ("b", 100);

    impl Own {
        fn page(&mut self, from: u64) -> Vec<u64> {
            let page = self.leases.iter().copied().filter(|lease| *lease >= from).take(16).collect();
            self.read();
            page
        }

        fn read(&mut self) {
            self.reads += 1;
            if self.reads == 1 {
                self.head = Bytes::from_static(B.0.as_bytes());
                self.leases.retain(|lease| *lease != B.1);
            }
        }
    }

    /// Of more writers than a page has, one publishes between two pages.
    #[tokio::test]
    async fn who_publishes_meanwhile_is_seen() {
        let own = Own { head: Bytes::from_static(b"a"), leases: (1..=B.1).collect(), reads: 0 };
        let own = std::sync::Mutex::new(own);
        let leases = async |range: Range<u64>| {
            let (mut all, mut from) = (Vec::new(), range.start);
            loop {
                let page = own.lock().unwrap().page(from);
                let Some(last) = page.last() else { return Ok::<_, Error>(all) };
                from = last + 1;
                all.extend(page);
            }
        };
        let head = async |range: Range<u64>| {
            assert_eq!(range, 0..1);
            let mut own = own.lock().unwrap();
            let head = own.head.clone();
            own.read();
            Ok::<_, Error>(Some(head))
        };
        let (head, leases) = agreed_by(leases, head).await.unwrap();
        assert_eq!(leases, (1..B.1).collect::<Vec<u64>>());
        assert_eq!(head.as_deref(), Some(B.0.as_bytes()), "B is neither current nor being written");
    }

    #[test]
    fn keys_are_read() {
        let version = Version::random();
        let number = |number: i32| number.to_be_bytes().to_vec();
        let key = vec![version.as_bytes().to_vec(), number(-3), number(7), number(1)];
        assert_eq!(key_of(&key), Some((version, Part { column: -3, row_group: 7, shard: 1 })));
        assert_eq!(key_of(&key[..3]), None);
        assert_eq!(key_of(&[key[0].clone(), vec![0], number(7), number(1)]), None);
    }
}
