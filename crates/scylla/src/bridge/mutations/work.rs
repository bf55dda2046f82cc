//! A batch of writes on its way to a batch of Parquet, stage by stage.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Budget, Bytes, Error, Price, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, INLINE_BYTES_MAX, Values as Parquet};

use super::cells::Filling;
use super::exceptions::{Exceptions, Looked};
use super::keys;
use super::leaf::{flat, validity_of};
use super::plan::{MutationLeaves, Plan};
use super::rows::{NO_ROW, RowKind, Rows, ruled_out};
use super::statics::{Repeating, Sources, Statics};
use super::survey::Survey;
use crate::sstable::batch::{EntryKind, Expiry, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, number_of};

/// The price of a row, in a column that says what it is.
const ROW_PRICE: Price = Price::per_kilovalue(4 << 10);

/// A batch that is being mapped.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) batch: MutationBatch,
    rows: Rows,
    survey: Survey,
    exceptions: Exceptions,
    columns: Vec<Option<ColumnBatch>>,
    stage: Stage,
    /// Keys and clustering values that are not complete.
    key: Option<keys::PartitionKey>,
    clustering: Option<keys::Clustering>,
    filling: Option<Filling>,
    /// Static columns, of a `logical` mapping.
    repeating: Repeating,
    repeated: Vec<ColumnBatch>,
    /// Rows that are in batches of Parquet already.
    taken: usize,
    /// The bytes of the partition keys.
    keys: Bytes,
    /// Of a `logical` mapping: values that became null, by the number of their column's name.
    lost: Vec<(usize, u64)>,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Survey,
    /// What rows have besides cells.
    Rows,
    Key(usize),
    Clustering(usize),
    Cells(usize),
    /// What is not like its row, of a column whose natural columns are complete.
    Exceptions(usize),
    List,
    Mutation,
    /// Static columns of some rows, which then are a batch.
    Statics,
}

impl Work {
    pub(super) fn new(
        plan: &Plan,
        mut batch: MutationBatch,
        rows: Rows,
        budget: &mut Budget<'_>,
    ) -> Result<Work> {
        if batch.columns.len() != plan.cells.len() || batch.entries.clustering.len() != plan.clustering.len()
        {
            return Err(Error::misuse("a batch of other columns than the table's"));
        }
        budget.charge(ROW_PRICE, 0, batch.entries.kinds.len() + plan.schema.leaves().len());
        let keys = Bytes::from(mem::take(&mut batch.partitions.keys.bytes));
        let stage = if plan.mutation.is_some() { Stage::Survey } else { Stage::Key(0) };
        let mut columns = Vec::new();
        columns.resize_with(plan.schema.leaves().len(), || None);
        Ok(Work {
            batch,
            rows,
            survey: Survey::default(),
            exceptions: Exceptions::default(),
            columns,
            stage,
            key: None,
            clustering: None,
            filling: None,
            repeating: Repeating::default(),
            repeated: Vec::new(),
            taken: 0,
            keys,
            lost: Vec::new(),
        })
    }

    /// Whether all rows are in batches of Parquet.
    pub(super) fn is_done(&self) -> bool {
        self.taken == self.rows.count
    }

    /// Goes on; a batch once it is complete, `None` if the budget is spent first.
    ///
    /// # Errors
    ///
    /// As [`Mapper::step`](super::Mapper::step)'s.
    pub(super) fn step(
        &mut self,
        plan: &Plan,
        statics: &Statics,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Batch>> {
        loop {
            match self.stage {
                Stage::Survey => {
                    if !self.survey.step(&self.batch, budget) {
                        return Ok(None);
                    }
                    self.stage = Stage::Rows;
                }
                Stage::Rows => {
                    self.exceptions.add_rows(&self.batch, &self.rows, &self.survey, budget);
                    self.stage = Stage::Key(0);
                }
                Stage::Key(number) if number < plan.keys.len() => {
                    let key = self
                        .key
                        .get_or_insert_with(|| keys::PartitionKey::new(&plan.keys[number], &self.keys));
                    let made = key.step(&plan.keys, number, &self.batch, &self.keys, &self.rows, budget)?;
                    let Some(made) = made else { return Ok(None) };
                    self.key = None;
                    self.add_keys(plan, plan.cells.len() + number, made);
                    self.stage = Stage::Key(number + 1);
                }
                Stage::Key(_) => self.stage = Stage::Clustering(0),
                Stage::Clustering(number) if number < plan.clustering.len() => {
                    let column = &plan.clustering[number];
                    if self.clustering.is_none() {
                        let begun =
                            keys::Clustering::new(column, number, &mut self.batch, &self.rows, budget)?;
                        self.clustering = Some(begun);
                    }
                    let Some(clustering) = &mut self.clustering else { return Ok(None) };
                    let made = clustering.step(column, number, &self.batch, &self.rows, budget)?;
                    let Some(made) = made else { return Ok(None) };
                    self.clustering = None;
                    self.add_keys(plan, plan.cells.len() + plan.keys.len() + number, made);
                    self.stage = Stage::Clustering(number + 1);
                }
                Stage::Clustering(_) => self.stage = Stage::Cells(0),
                Stage::Cells(number) if number < plan.cells.len() => {
                    if plan.mutation.is_none() && number < plan.statics {
                        self.stage = Stage::Cells(number + 1);
                    } else if !self.cells(plan, number, budget)? {
                        return Ok(None);
                    }
                }
                Stage::Cells(_) => self.stage = Stage::List,
                Stage::Exceptions(number) => {
                    if !self.exceptions(plan, number, budget) {
                        return Ok(None);
                    }
                    self.filling = None;
                    self.stage = Stage::Cells(number + 1);
                }
                Stage::List => {
                    if let Some(leaves) = &plan.mutation {
                        let made =
                            self.exceptions.finish(&leaves.cells, &plan.names, self.rows.count, budget)?;
                        let Some(columns) = made else { return Ok(None) };
                        self.set(columns);
                    }
                    self.stage = Stage::Mutation;
                }
                Stage::Mutation => {
                    if let Some(leaves) = &plan.mutation {
                        self.mutation(leaves, budget)?;
                    }
                    self.stage = Stage::Statics;
                }
                Stage::Statics => {
                    let plans = match plan.mutation {
                        Some(_) => &[],
                        None => plan.cells.get(..plan.statics).unwrap_or_default(),
                    };
                    let sources = Sources { batch: &self.batch, rows: &self.rows, statics };
                    let made = self.repeating.step(plans, sources, &mut self.repeated, budget)?;
                    return made.map(|rows| self.take(rows)).transpose();
                }
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }

    /// The natural columns of a column; false if the budget is spent first.
    fn cells(&mut self, plan: &Plan, number: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let (column, cells) = (&plan.cells[number], &mut self.batch.columns[number]);
        if self.filling.is_none() {
            self.filling = Some(Filling::new(column, cells)?);
        }
        let Some(filling) = &mut self.filling else { return Ok(false) };
        let Some(columns) = filling.step(column, cells, &self.rows, budget)? else { return Ok(false) };
        let lost = filling.lost;
        self.lose(plan, number, lost);
        self.set(columns);
        self.stage =
            if plan.mutation.is_some() { Stage::Exceptions(number) } else { Stage::Cells(number + 1) };
        if plan.mutation.is_none() {
            self.filling = None;
        }
        Ok(true)
    }

    fn exceptions(&mut self, plan: &Plan, number: usize, budget: &mut Budget<'_>) -> bool {
        let Some(filling) = &self.filling else { return true };
        let looked = Looked {
            name: number_of(number),
            multi: plan.cells[number].multi,
            cells: &self.batch.columns[number],
            values: &filling.values,
            paths: &filling.paths,
            raws: &filling.raws,
            listed: &filling.listed,
            absent: &filling.absent,
        };
        self.exceptions.add_cells(&looked, &self.batch, &self.rows, &self.survey, budget)
    }

    fn add_keys(&mut self, plan: &Plan, name: usize, (columns, odd, lost): keys::Made) {
        self.lose(plan, name, lost);
        self.set(columns);
        if plan.mutation.is_some() {
            for odd in odd {
                self.exceptions.add_key(&self.rows, odd.rows, number_of(name), odd.value.as_deref());
            }
        }
    }

    /// Counts values of a column that became null. A `full` mapping has them elsewhere.
    fn lose(&mut self, plan: &Plan, name: usize, values: u64) {
        if values > 0 && plan.mutation.is_none() {
            self.lost.push((name, values));
        }
    }

    /// The values that became null since this was last called, by the numbers of their columns' names.
    pub(super) fn take_lost(&mut self) -> impl Iterator<Item = (usize, u64)> + use<> {
        mem::take(&mut self.lost).into_iter().chain(mem::take(&mut self.repeating.lost))
    }

    fn set(&mut self, columns: Vec<ColumnBatch>) {
        for column in columns {
            let leaf = column.leaf;
            if let Some(place) = self.columns.get_mut(leaf) {
                *place = Some(column);
            }
        }
    }

    /// What rows have besides keys and cells.
    fn mutation(&mut self, leaves: &MutationLeaves, budget: &mut Budget<'_>) -> Result<()> {
        let count = self.rows.count;
        budget.charge(ROW_PRICE, 0, 8 * count);
        let Work { batch, rows, survey, .. } = self;
        let kinds: Vec<RowKind> = kinds(batch, rows, survey);
        let kind = flat(leaves.kind, count, Parquet::ByteArray(texts_of(&kinds)), || none(count));
        // Of each row the entry, if it is a row, static or not.
        let of_entries = || {
            let entries = batch.entries.kinds.iter().enumerate().filter(|(_, kind)| kind.is_row());
            entries.map(|(entry, _)| (rows.of(number_of(entry)), entry)).filter(|(row, _)| *row != NO_ROW)
        };
        let is_dense = rows.are_entries() && survey.times.iter().all(|time| *time != NO_TIMESTAMP);
        let write_time = if is_dense {
            flat(leaves.write_time, count, mem::take(&mut survey.times).into(), || none(count))
        } else {
            let with = || of_entries().filter(|(_, entry)| survey.times[*entry] != NO_TIMESTAMP);
            let values: Vec<i64> = with().map(|(_, entry)| survey.times[entry]).collect();
            flat(leaves.write_time, count, values.into(), || validity_of(count, with().map(|(row, _)| row)))
        };
        let with = of_entries().filter(|(_, entry)| batch.entries.timestamps[*entry] != NO_TIMESTAMP);
        let markers = validity_of(count, with.map(|(row, _)| row));
        let row_marker = flat(leaves.row_marker, count, Parquet::Boolean(markers), || none(count));
        let mut made = alloc::vec![kind, write_time, row_marker];
        let expires = |entry: &usize| survey.expiry(*entry) != Expiry::NEVER;
        match (leaves.ttl, leaves.expires_at) {
            (Some(ttl), Some(expires_at)) => {
                let with = || of_entries().filter(|(_, entry)| expires(entry));
                let ttls = with().map(|(_, entry)| {
                    let ttl = i32::try_from(survey.expiry(entry).ttl);
                    ttl.map_err(|_| Error::corrupt("a TTL of more than 31 bits"))
                });
                let ttls = ttls.collect::<Result<Vec<i32>>>()?;
                made.push(flat(ttl, count, ttls.into(), || validity_of(count, with().map(|(row, _)| row))));
                let at = |entry: usize| survey.expiry(entry).local_deletion;
                let with = || with().filter(|(_, entry)| at(*entry) != NO_DELETION_TIME);
                let times: Vec<i64> = with().map(|(_, entry)| i64::from(at(entry))).collect();
                made.push(flat(expires_at, count, times.into(), || {
                    validity_of(count, with().map(|(row, _)| row))
                }));
            }
            _ if survey.expiries.iter().any(|expiry| *expiry != Expiry::NEVER) => {
                return Err(ruled_out("no TTL"));
            }
            _ => {}
        }
        match (leaves.deleted_at, leaves.local_deletion_time) {
            (Some(deleted_at), Some(local)) => {
                let deletions = &rows.deletions;
                let validity = || validity_of(count, deletions.iter().map(|(row, _)| *row));
                let times: Vec<i64> = deletions.iter().map(|(_, deletion)| deletion.timestamp).collect();
                made.push(flat(deleted_at, count, times.into(), validity));
                let times: Vec<i64> = deletions.iter().map(|(_, it)| i64::from(it.local_deletion)).collect();
                made.push(flat(local, count, times.into(), validity));
            }
            _ if !rows.deletions.is_empty() => return Err(ruled_out("no deletion")),
            _ => {}
        }
        self.set(made);
        Ok(())
    }

    /// A batch of these rows, whose static columns are made.
    fn take(&mut self, rows: Range<usize>) -> Result<Batch> {
        self.taken = rows.end;
        let is_all = rows == (0..self.rows.count);
        let mut repeated = mem::take(&mut self.repeated).into_iter().peekable();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (leaf, column) in self.columns.iter_mut().enumerate() {
            let made = match repeated.next_if(|column| column.leaf == leaf) {
                Some(column) => Some(column),
                None if is_all => column.take(),
                None => column.as_ref().map(|column| column.slice(rows.clone())),
            };
            columns.push(made.ok_or_else(|| Error::internal(alloc::format!("leaf {leaf} was not made")))?);
        }
        Ok(Batch { row_group: 0, first_row: 0, rows: rows.len(), columns })
    }
}

/// A bitmap that is not asked for: no row is null.
fn none(rows: usize) -> Bitmap {
    validity_of(rows, core::iter::empty())
}

/// What rows are.
fn kinds(batch: &MutationBatch, rows: &Rows, survey: &Survey) -> Vec<RowKind> {
    let is_dead = |entry: usize| {
        batch.entries.kinds[entry] == EntryKind::Row
            && batch.entries.timestamps[entry] == NO_TIMESTAMP
            && survey.alive.get(entry) == Some(&false)
    };
    let mut kinds = match rows.kinds.is_empty() {
        true => batch.entries.kinds.iter().map(|kind| RowKind::of_bound(*kind).0).collect(),
        false => rows.kinds.clone(),
    };
    if !survey.alive.is_empty() {
        for entry in (0..batch.entries.kinds.len()).filter(|entry| is_dead(*entry)) {
            if let Some(kind) = kinds.get_mut(usize_of_u32(rows.of(number_of(entry)))) {
                *kind = RowKind::Deletion;
            }
        }
    }
    kinds
}

/// The names of kinds.
fn texts_of(kinds: &[RowKind]) -> ByteArrays {
    let mut bytes = Vec::new();
    let views = RowKind::ALL.map(|kind| {
        let name = kind.name().as_bytes();
        let offset = number_of(bytes.len());
        if name.len() > INLINE_BYTES_MAX {
            bytes.extend_from_slice(name);
        }
        marquetry_kernels::strings::view(name, 0, offset)
    });
    let place = |kind: RowKind| RowKind::ALL.iter().position(|it| *it == kind).unwrap_or(0);
    let row = views[place(RowKind::Row)];
    let view = |kind: &RowKind| if *kind == RowKind::Row { row } else { views[place(*kind)] };
    let views: Vec<u128> = kinds.iter().map(view).collect();
    ByteArrays::new(views.into(), Arc::new(alloc::vec![bytes.into()]))
}
