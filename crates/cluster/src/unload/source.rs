//! The source.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::{Bytes, Error, Result};
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;
use marquetry_scylla::bridge::mutations::{Mapper, MapperOptions, MutationMapping, Present};
use marquetry_scylla::cql::{TableDef, TableName};
use marquetry_scylla::select::{SelectedRows, Selection, Times};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::statistics::HeaderColumn;
use marquetry_tables::{
    Batches, ColumnPath, Filter, Key, Note, Piece, PieceOptions, Source, TABLE_SCHEMA_KEY, Table, TokenRange,
    filter, project,
};

use super::ahead::Ahead;
use super::describe;
use super::equal;
use super::estimates;
use super::options::UnloadOptions;
use super::pace::Pace;
use super::pages::Pages;
use super::ranges::{self, Splitting};
use super::requests::{Manner, Requests, Rows, is_not_understood};
use super::rows::PieceRows;
use crate::address::CqlAddress;
use crate::cluster::Cluster;
use crate::error::{Error as ClusterError, Result as ClusterResult};
use crate::same_table::cluster_of;

/// A table, or a view, of a live cluster, as a [`Source`].
///
/// Its columns, and their types, are those of the table's SSTables in the `logical` mapping, or in the `full` one with
/// [`with_metadata`](UnloadOptions::with_metadata): see `docs/full-mapping.md`. Rows come in the order of their tokens, and in partitions
/// in that of the clustering columns.
///
/// The table is read in pieces, which are token ranges that are about [`piece_bytes`](UnloadOptions::piece_bytes) large. Of a piece one
/// page is asked for ahead of the one that is in hand. A page that does not come in time is asked for again. What is written
/// while the table is read may be in the rows or not, as in every `SELECT`.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_cluster::{CqlSource, UnloadOptions};
/// use marquetry_tables::{Reading, ReadingOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips = CqlSource::open("cql://localhost/ks.trips".parse().unwrap(), &UnloadOptions::default())?;
/// let mut reading = Reading::new(Arc::new(trips), ReadingOptions::default())?;
/// while let Some((_, batch)) = reading.next_batch()? {
///     println!("{} rows", batch.rows);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CqlSource {
    // Before the cluster, whose runtime their requests run on.
    ahead: Arc<Ahead>,
    requests: Arc<Requests>,
    cluster: Arc<Cluster>,
    mapping: Mapping,
    table: Table,
    pieces: Vec<Piece>,
    rows: Vec<Rows>,
    /// Those of the partitions that are read.
    tokens: TokenRange,
    has_all_columns: bool,
    has_all_rows: bool,
}

/// The tokens of all partitions.
const ALL_TOKENS: TokenRange = TokenRange { after: None, end: None };
/// The metadata that says which tokens were wanted.
const TOKENS_KEY: &str = "marquetry.table.tokens";
/// Pieces of a share of a table, at least. Its reader takes them one after the other, with those after them on their way, of which one page is asked for: so
/// that several requests are on their way most of the time, a piece is to have few pages.
const PIECES_OF_A_SHARE: u64 = 16;

/// How rows become Parquet.
#[derive(Debug, Clone)]
struct Mapping {
    kind: MutationMapping,
    options: MapperOptions,
    /// The write time of what has none that a server would tell: when the table was opened, in microseconds since 1970.
    opened_us: i64,
}

impl CqlSource {
    /// Connects, and finds what the table is and how it is split.
    ///
    /// # Errors
    ///
    /// What cannot be reached, or is not there: a host, a keyspace, the table; a wrong password. `Unsupported` for types that are not known,
    /// and partitioners other than Murmur3.
    pub fn open(address: CqlAddress, options: &UnloadOptions) -> Result<CqlSource> {
        let cluster = Cluster::connect_unless(options.cancel.clone(), address, &options.connect)?;
        let definition = definition(&cluster)?;
        CqlSource::of_table(cluster, definition, options)
    }

    /// The table that a cluster is connected for.
    pub(crate) fn of_table(
        cluster: Cluster,
        definition: TableDef,
        options: &UnloadOptions,
    ) -> Result<CqlSource> {
        let types = cluster.types_of(&definition)?;
        let name = cluster.address().to_string();
        let about = |error: Error| error.at(|place| place.object = Some(name.clone()));
        let columns = Arc::new(TableColumns::of_table(&definition, &types).map_err(about)?);
        let (requests, note) = requests(&cluster, columns, options)?;
        let rows = token_ranges(&cluster, &requests.table, options)?;
        let (session, wanted) = (Arc::clone(cluster.session()), definition.clone());
        let defining = async move { describe::definition(&session, &wanted, &types).await };
        let (text, is_described) = cluster.runtime().wait(defining)?;
        let mapping = Mapping::new(options);
        let mut table = described(&name, &mapping, &requests, options.tokens).map_err(about)?;
        table.key_values.push(key_value(TABLE_SCHEMA_KEY, text));
        table.notes.extend(note);
        // A view has none.
        table.identity = cluster.table_id().ok();
        table.cluster = cluster_of(cluster.session());
        if !is_described {
            let text = "its servers know no DESCRIBE: marquetry.table.schema has its columns and key, and no options";
            table.notes.push(Note::of(text));
        }
        let pieces = pieces(&name, &rows);
        Ok(CqlSource {
            ahead: Arc::default(),
            requests: Arc::new(requests),
            cluster: Arc::new(cluster),
            mapping,
            table,
            pieces,
            rows,
            tokens: options.tokens.unwrap_or(ALL_TOKENS),
            has_all_columns: true,
            has_all_rows: true,
        })
    }

    /// The table's name.
    fn name(&self) -> &TableName {
        &self.requests.table
    }

    /// The same, of which only the partitions are read in which all rows are for which a predicate over some schema is true, whose leaves are those
    /// of the partition key. `None`: nobody knows.
    pub(crate) fn of_partitions(
        &self,
        predicate: &Predicate,
        (schema, leaves): (&Schema, &[usize]),
    ) -> Option<CqlSource> {
        if !self.has_all_rows {
            return None;
        }
        let columns = &self.requests.selection.columns().partition_key;
        let partitions = equal::partitions(predicate, schema, leaves, columns)?;
        let kept = |rows: &Rows| match rows {
            Rows::Partition(_, token) => self.rows.iter().any(|piece| piece.has(*token)),
            Rows::Tokens(..) => false,
        };
        let rows: Vec<Rows> = partitions.into_iter().filter(kept).collect();
        let pieces = pieces(&self.table.name, &rows);
        Some(CqlSource { ahead: Arc::default(), pieces, rows, has_all_rows: false, ..self.clone() })
    }

    /// The same, of which only the partitions with tokens in a range are read. `None` where partitions were chosen.
    ///
    /// # Errors
    ///
    /// `Misuse` for a range of which this has not all: its rows would be called those of the range.
    pub(crate) fn of_tokens(&self, tokens: TokenRange) -> Result<Option<CqlSource>> {
        if !self.has_all_rows {
            return Ok(None);
        }
        if !tokens.is_within(self.tokens) {
            let what = format!("the tokens {tokens} are not all among those that are read, {}", self.tokens);
            let error = Error::option("token_range", what);
            return Err(error.at(|place| place.object = Some(self.table.name.clone())));
        }
        let ranges = self.rows.iter().filter_map(|rows| match rows {
            Rows::Tokens(first, last) => Some(*first..=*last),
            Rows::Partition(..) => None,
        });
        let rows = ranges::within(ranges, &tokens.ranges(), PIECES_OF_A_SHARE);
        let rows: Vec<Rows> =
            rows.into_iter().map(|range| Rows::Tokens(*range.start(), *range.end())).collect();
        let pieces = pieces(&self.table.name, &rows);
        let mut table = self.table.clone();
        table.key_values.retain(|pair| pair.key != TOKENS_KEY);
        table.key_values.push(key_value(TOKENS_KEY, tokens.to_string()));
        Ok(Some(CqlSource { ahead: Arc::default(), table, pieces, rows, tokens, ..self.clone() }))
    }

    /// The same with these columns besides the key only.
    fn narrowed(&self, columns: TableColumns) -> Result<CqlSource> {
        let selection = Arc::new(Selection::new(Arc::new(columns), Times::None)?);
        let requests = self.requests.of(selection);
        let mut table = described(&self.table.name, &self.mapping, &requests, None)?;
        let of_all = |it: &&KeyValue| !table.key_values.iter().any(|own| own.key == it.key);
        let more: Vec<KeyValue> = self.table.key_values.iter().filter(of_all).cloned().collect();
        table.key_values.extend(more);
        table.notes.clone_from(&self.table.notes);
        table.identity.clone_from(&self.table.identity);
        table.cluster.clone_from(&self.table.cluster);
        let (ahead, requests) = (Arc::default(), Arc::new(requests));
        Ok(CqlSource { ahead, requests, table, has_all_columns: false, ..self.clone() })
    }
}

/// The definition of the table that a cluster is connected for.
pub(crate) fn definition(cluster: &Cluster) -> Result<TableDef> {
    let missing =
        |has_keyspace| ClusterError::NotThere { table: cluster.address().table().clone(), has_keyspace };
    match cluster.table() {
        Ok(definition) => Ok(definition.ok_or_else(|| missing(true))?),
        Err(ClusterError::NoKeyspace(_)) => Err(missing(false).into()),
        Err(error) => Err(error.into()),
    }
}

impl Source for CqlSource {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, number: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let (Some(rows), Some(piece)) = (self.rows.get(number), self.pieces.get(number)) else {
            return Err(Error::misuse("a piece that there is none of"));
        };
        let start =
            |rows: &Rows| Pages::start(self.cluster.runtime(), Arc::clone(&self.requests), rows.clone());
        // Who wants few rows may not want those of the next piece.
        let pages = match options.limit {
            Some(_) => start(rows)?,
            None => self.ahead.take(number, self.rows.len(), self.requests.ahead(), |next| {
                self.rows
                    .get(next)
                    .map_or(Err(ClusterError::Internal("a piece that there is none of")), start)
            })?,
        };
        let selected = SelectedRows::new(Arc::clone(&self.requests.selection), self.mapping.opened_us);
        let mapper = self.mapping.mapper(self.requests.selection.columns())?;
        let cluster: Arc<dyn Send + Sync> = Arc::clone(&self.cluster) as _;
        Ok(Box::new(PieceRows::new(piece.name.clone(), pages, selected, mapper, options, cluster)))
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        // Of rows with metadata, times and markers come from all columns.
        if !self.has_all_columns || self.mapping.kind != MutationMapping::Logical {
            return Ok(None);
        }
        let schema = &self.table.schema;
        let mut wanted = BTreeSet::new();
        for column in columns {
            // What is not there is said where all columns are looked at.
            let Ok(leaves) = column.leaves(schema) else { return Ok(None) };
            wanted.extend(leaves.into_iter().filter_map(|leaf| top_of(schema, leaf)));
        }
        let mut narrow = (**self.requests.selection.columns()).clone();
        // A partition with nothing but static values is a row, so these are selected whatever is asked for.
        narrow.regulars.retain(|column| is_among(column, &wanted));
        if narrow.regulars.len() == self.requests.selection.columns().regulars.len() {
            return Ok(None);
        }
        let narrowed: Arc<dyn Source> = Arc::new(self.narrowed(narrow)?);
        project(&narrowed, columns).map(Some)
    }

    fn within(&self, tokens: TokenRange) -> Result<Option<Arc<dyn Source>>> {
        if !self.has_all_columns {
            return Ok(None);
        }
        Ok(self.of_tokens(tokens)?.map(|some| Arc::new(some) as Arc<dyn Source>))
    }

    fn filter(&self, predicate: &Predicate, wanted: &Filter) -> Result<Option<Arc<dyn Source>>> {
        let Some(key) = self.table.key.as_ref() else { return Ok(None) };
        match self.of_partitions(predicate, (&self.table.schema, &key.partition)) {
            Some(some) => filter(&(Arc::new(some) as Arc<dyn Source>), wanted).map(Some),
            None => Ok(None),
        }
    }
}

impl fmt::Debug for CqlSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CqlSource").field("table", self.name()).finish_non_exhaustive()
    }
}

impl Mapping {
    fn new(options: &UnloadOptions) -> Mapping {
        let mut mapper = MapperOptions::default();
        // What a server answers with is alive.
        mapper.present = Present { deletions: false, ..Present::ALL };
        mapper.limits = options.limits;
        let kind = match options.with_metadata {
            true => MutationMapping::Full,
            false => MutationMapping::Logical,
        };
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let opened_us = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        Mapping { kind, options: mapper, opened_us }
    }

    fn mapper(&self, columns: &Arc<TableColumns>) -> Result<Mapper> {
        Mapper::new(self.kind, Arc::clone(columns), &self.options)
    }
}

/// What is asked of the table; with times of elements, if its servers know them, or with a note.
fn requests(
    cluster: &Cluster,
    columns: Arc<TableColumns>,
    options: &UnloadOptions,
) -> Result<(Requests, Option<Note>)> {
    let manner = Manner::new(options);
    let prepare = |times: Times| -> Result<ClusterResult<Requests>> {
        let selection = Arc::new(Selection::new(Arc::clone(&columns), times)?);
        let (session, table) = (Arc::clone(cluster.session()), cluster.address().table().clone());
        let manner = manner.clone();
        let pace = Arc::new(Pace::new(options.page_bytes));
        let requests = Requests::new(session, table, selection, pace, manner);
        let preparing = async move { requests.prepare().await.map(|()| requests) };
        Ok(cluster.runtime().wait(preparing)?)
    };
    if !options.with_metadata {
        return Ok((prepare(Times::None)??, None));
    }
    match prepare(Times::Elements)? {
        Err(error) if is_not_understood(&error) => {
            let several = columns.cells().filter(|column| column.kind.is_multi_cell());
            let names: Vec<String> =
                several.map(|column| String::from_utf8_lossy(&column.name).into_owned()).collect();
            // Then it is something else that is not understood.
            if names.is_empty() {
                return Err(error.into());
            }
            let text = format!(
                "its servers do not tell the write times and TTLs of elements ({}): elements have those of their row, and do not expire",
                names.join(", ")
            );
            Ok((prepare(Times::Cells)??, Some(Note::of(text))))
        }
        prepared => Ok((prepared?, None)),
    }
}

/// The token ranges that are read as pieces.
fn token_ranges(cluster: &Cluster, table: &TableName, options: &UnloadOptions) -> Result<Vec<Rows>> {
    let (session, table) = (Arc::clone(cluster.session()), table.clone());
    let wanted = options.tokens.unwrap_or(ALL_TOKENS).ranges();
    let wanted = TokenRange::without(&wanted, &options.done);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let splitting = Splitting {
        piece_bytes: options.piece_bytes,
        pieces_wanted: u32::try_from(4 * processors).unwrap_or(u32::MAX),
    };
    let finding = async move {
        estimates::expect_tokens(&session).await?;
        estimates::ranges(&session, &table, &wanted, splitting).await
    };
    let ranges = cluster.runtime().wait(finding)??;
    Ok(ranges.into_iter().map(|range| Rows::Tokens(*range.start(), *range.end())).collect())
}

fn pieces(name: &str, rows: &[Rows]) -> Vec<Piece> {
    let piece = |rows: &Rows| {
        let mut piece = Piece::of(match rows {
            Rows::Tokens(i64::MIN, i64::MAX) => name.to_owned(),
            Rows::Tokens(first, last) => format!("{name} (tokens {first} to {last})"),
            Rows::Partition(_, token) => format!("{name} (token {token})"),
        });
        // Another partition may have the token of one.
        piece.tokens = match rows {
            Rows::Tokens(first, last) => Some((*first, *last)),
            Rows::Partition(..) => None,
        };
        piece
    };
    rows.iter().map(piece).collect()
}

/// What is known of the table before it is read.
fn described(
    name: &str,
    mapping: &Mapping,
    requests: &Requests,
    tokens: Option<TokenRange>,
) -> Result<Table> {
    let columns = requests.selection.columns();
    let mapper = mapping.mapper(columns)?;
    let mut table = Table::new(name, Arc::clone(mapper.schema()));
    table.key = Key::of_columns(&table.schema, columns);
    table.is_in_token_order = mapping.kind == MutationMapping::Logical;
    table.key_values = mapper.key_values()?;
    let is_logical = mapping.kind == MutationMapping::Logical;
    let more = [
        ("marquetry.mapping.at", is_logical.then(|| (mapping.opened_us / 1_000_000).to_string())),
        ("marquetry.table.name", Some(requests.table.to_string())),
        (TOKENS_KEY, tokens.map(|tokens| tokens.to_string())),
    ];
    table.key_values.extend(more.into_iter().filter_map(|(key, value)| Some(key_value(key, value?))));
    Ok(table)
}

fn key_value(key: &str, value: String) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(Bytes::from(value.into_bytes())) }
}

/// The column that a leaf is of.
fn top_of(schema: &Schema, leaf: usize) -> Option<String> {
    let mut at = schema.leaves().get(leaf)?.node;
    loop {
        let node = schema.nodes().get(at)?;
        if node.parent == 0 {
            return Some(node.name.clone());
        }
        at = node.parent;
    }
}

fn is_among(column: &HeaderColumn, names: &BTreeSet<String>) -> bool {
    std::str::from_utf8(&column.name).is_ok_and(|name| names.contains(name))
}
