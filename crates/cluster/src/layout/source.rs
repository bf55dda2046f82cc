//! A table of the layouts `wide` and `blob` as a source of the rows that it holds.

use std::fmt;
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::{Plan as _, Projection, Schema};
use marquetry_tables::{
    Batches, ColumnPath, Filter, Key, Piece, PieceOptions, Source, Table, TokenRange, filter, project,
};

use super::TableLayout;
use super::description::Description;
use super::laying::word;
use super::reading::{Unlaid, Unlaying, columns_of};
use crate::unload::CqlSource;

/// The rows that a table of another layout than `rows` holds, with the names and the types that they had.
///
/// It is read as [`CqlSource`] reads a table, by token ranges; of the layout `wide` only the columns that are wanted, of `blob` all of each
/// record, unless nothing but its key is. What is not as the table's comment says is an error with the row and its key.
#[derive(Clone)]
pub struct LaidSource {
    described: Arc<Description>,
    /// All of the table, for what is asked of its partitions.
    all: Arc<CqlSource>,
    /// The columns of the table that are read.
    read: Arc<dyn Source>,
    plan: Arc<Unlaying>,
    table: Table,
    /// The rows' columns that are wanted.
    numbers: Vec<usize>,
    is_whole: bool,
}

impl LaidSource {
    /// The rows that a described table holds.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a table that is not as it is described.
    pub(crate) fn new(all: CqlSource, described: Description) -> Result<LaidSource> {
        let numbers: Vec<usize> = (0..described.schema.children(0).count()).collect();
        let schema = Arc::clone(&described.schema);
        LaidSource::of(Arc::new(all), Arc::new(described), numbers, schema)
    }

    /// The layout.
    pub fn layout(&self) -> TableLayout {
        self.described.layout
    }

    /// The rows' columns, for people: their names, their types, and what holds each.
    pub fn columns(&self) -> Vec<[String; 3]> {
        let schema = &self.described.schema;
        let column = |(number, node): (usize, usize)| {
            let held = self.described.columns.iter().find(|held| held.number == number);
            let holder = match (held, &self.described.cell) {
                (Some(held), _) if held.is_key => "key".to_owned(),
                (Some(held), _) => held.name.clone(),
                (None, cell) => cell.clone().unwrap_or_default(),
            };
            let name = schema.nodes().get(node).map_or_else(String::new, |node| node.name.clone());
            [name, word(schema, node), holder]
        };
        schema.children(0).enumerate().map(column).collect()
    }

    /// The same of some of the table's partitions, where all columns are read.
    fn reading(&self, some: CqlSource) -> Result<LaidSource> {
        let (described, schema) = (Arc::clone(&self.described), Arc::clone(&self.described.schema));
        LaidSource::of(Arc::new(some), described, self.numbers.clone(), schema)
    }

    fn of(
        all: Arc<CqlSource>,
        described: Arc<Description>,
        numbers: Vec<usize>,
        schema: Arc<Schema>,
    ) -> Result<LaidSource> {
        let is_whole = numbers.len() == described.schema.children(0).count();
        let source = Arc::clone(&all) as Arc<dyn Source>;
        let read = if is_whole { source } else { project(&source, &columns_of(&described, &numbers))? };
        let name = all.table().name.clone();
        let plan = Unlaying::new(&described, &numbers, &read.table().schema);
        let plan = Arc::new(plan.map_err(|error| error.at(|place| place.object = Some(name.clone())))?);
        let mut table = Table::new(name, schema);
        table.key = key(&described, all.table(), &table.schema);
        table.notes.clone_from(&all.table().notes);
        table.identity.clone_from(&all.table().identity);
        table.cluster.clone_from(&all.table().cluster);
        Ok(LaidSource { described, all, read, plan, table, numbers, is_whole })
    }
}

/// The table's key, by the rows' leaves.
fn key(described: &Description, table: &Table, schema: &Schema) -> Option<Key> {
    let own = |leaf: usize| {
        let name = &table.schema.node_of(table.schema.leaves().get(leaf)?).name;
        let held = described.columns.iter().find(|held| held.name == *name)?;
        let node = schema.child_of_root(described.names().get(held.number)?)?;
        Some(schema.leaves_of(node).start)
    };
    let Key { partition, clustering } = table.key.as_ref()?;
    let partition = partition.iter().map(|leaf| own(*leaf)).collect::<Option<_>>()?;
    let clustering = clustering.iter().map(|by| {
        let column = u32::try_from(own(usize::try_from(by.column).ok()?)?).ok()?;
        Some(SortingColumn { column, ..*by })
    });
    Some(Key { partition, clustering: clustering.collect::<Option<_>>()? })
}

impl Source for LaidSource {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.read.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        // What the table cannot hold is counted under the names that the rows have.
        let names = self.described.names();
        let held = self.described.columns.iter();
        let names = held.filter_map(|held| Some((&*held.name, *names.get(held.number)?)));
        let mut inner = options.clone();
        inner.lost = options.lost.of_columns(names);
        let batches = self.read.open(piece, &inner)?;
        let name =
            self.pieces().get(piece).map_or_else(|| self.table.name.clone(), |piece| piece.name.clone());
        Ok(Box::new(Unlaid::new(batches, Arc::clone(&self.plan), name)?))
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        if !self.is_whole {
            return Ok(None);
        }
        let schema = &self.table.schema;
        let mut wanted = Vec::new();
        for column in columns {
            // What is not there is said where all columns are looked at.
            let Ok(leaves) = column.leaves(schema) else { return Ok(None) };
            wanted.extend(leaves);
        }
        let nodes = schema.children(0).enumerate();
        let nodes = nodes.filter(|(_, node)| schema.leaves_of(*node).any(|leaf| wanted.contains(&leaf)));
        let (numbers, nodes): (Vec<usize>, Vec<usize>) = nodes.unzip();
        if numbers.len() == self.numbers.len() {
            return Ok(None);
        }
        let mut projection = Projection::new(Arc::clone(schema));
        for node in nodes {
            if projection.add_column(node).is_err() {
                return Ok(None);
            }
        }
        let narrow = Arc::new(projection.plan().at_once()?);
        let (all, described) = (Arc::clone(&self.all), Arc::clone(&self.described));
        let narrow: Arc<dyn Source> = Arc::new(LaidSource::of(all, described, numbers, narrow)?);
        project(&narrow, columns).map(Some)
    }

    fn within(&self, tokens: TokenRange) -> Result<Option<Arc<dyn Source>>> {
        let Some(some) = self.all.of_tokens(tokens)?.filter(|_| self.is_whole) else { return Ok(None) };
        Ok(Some(Arc::new(self.reading(some)?)))
    }

    fn filter(&self, predicate: &Predicate, wanted: &Filter) -> Result<Option<Arc<dyn Source>>> {
        let Some(key) = self.table.key.as_ref().filter(|_| self.is_whole) else { return Ok(None) };
        let Some(some) = self.all.of_partitions(predicate, (&self.table.schema, &key.partition)) else {
            return Ok(None);
        };
        filter(&(Arc::new(self.reading(some)?) as Arc<dyn Source>), wanted).map(Some)
    }
}

impl fmt::Debug for LaidSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, layout) = (&self.table.name, self.described.layout);
        f.debug_struct("LaidSource").field("table", name).field("layout", &layout).finish_non_exhaustive()
    }
}
