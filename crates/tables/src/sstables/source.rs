//! SSTables as a source of rows.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::{Bytes, Error, Result};
use marquetry_parquet::format::KeyValue;
use marquetry_scylla::bridge::mutations::MutationMapping;

use super::index;
use super::options::SstablesOptions;
use super::rows::{Mapping, Rows};
use super::{SstablesOf, component::Sstable};
use crate::key_values::{TABLE_NAME_KEY, TABLE_SCHEMA_KEY};
use crate::subject::named;
use crate::{Batches, Key, Piece, PieceOptions, Source, Table, TokenRange};

/// The most pieces: with more of them no reader has more to do at a time.
const PIECES_MAX: u64 = 4096;

/// The SSTables of a table, read as one: a snapshot, a backup of several nodes, what a server left.
///
/// Each partition is read out of all SSTables that have it, and its rows are merged as servers do. Large tables are read in pieces, which are
/// ranges of tokens; so pieces are in the order of tokens, and rows in that of partitions and clustering columns.
///
/// ```no_run
/// use marquetry_tables::Source;
/// use marquetry_tables::sstables::{Sstables, SstablesOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let table = Sstables::open("data/ks/t-f34b6ff0f8f711eb9fcf000000000000".as_ref(), &SstablesOptions::default())?;
/// println!("{} columns in {} pieces", table.table().schema.leaves().len(), table.pieces().len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sstables {
    of: SstablesOf,
    mapping: Mapping,
    table: Table,
    pieces: Vec<Piece>,
    /// Of each piece. `None`: all.
    tokens: Vec<Option<RangeInclusive<i64>>>,
}

impl Sstables {
    /// Opens the SSTables that a path names: those in a directory, or, if it has none itself, in all directories below it; the one that a
    /// component's path names; those that match a pattern.
    ///
    /// # Errors
    ///
    /// `Io`, with [`NotFound`](marquetry_base::Detail::NotFound) where there are none; `Corrupt` for SSTables that are not complete, and for statistics that
    /// cannot be read; `Misuse` for SSTables of several tables, and for a definition of another table; `Unsupported` for versions that are not
    /// known, and for what cannot be merged.
    pub fn open(path: &Path, options: &SstablesOptions) -> Result<Sstables> {
        let of = SstablesOf::open(path, options)?;
        let mapping = Mapping::new(options.mapping, &of, options.at.unwrap_or_else(now));
        let mapper = mapping.mapper().map_err(|error| named(error, &of.name))?;
        let tokens = split(&of, options)?;
        let mut table = Table::new(of.name.clone(), Arc::clone(mapper.schema()));
        table.key = Key::of_columns(&table.schema, &mapping.columns);
        table.bytes = Some(of.sstables.iter().fold(0, |sum, it| sum.saturating_add(it.data_bytes())));
        table.key_values = mapper.key_values()?;
        let is_logical = mapping.kind == MutationMapping::Logical;
        let more = [
            ("marquetry.mapping.at", is_logical.then(|| mapping.at.to_string())),
            (TABLE_NAME_KEY, of.defined.name.clone()),
            (TABLE_SCHEMA_KEY, of.defined.statements.clone()),
            ("marquetry.table.tokens", options.tokens.map(|tokens| tokens.to_string())),
        ];
        table.key_values.extend(more.into_iter().filter_map(|(key, value)| {
            Some(KeyValue { key: key.to_owned(), value: Some(Bytes::copy_from_slice(value?.as_bytes())) })
        }));
        (table.notes, table.unnamed_key) = (of.notes(), of.unnamed_key());
        table.is_in_token_order = is_logical && of.sstables.iter().all(|it| it.is_sorted_by_tokens());
        let share = table.bytes.map(|bytes| bytes / u64::try_from(tokens.len().max(1)).unwrap_or(u64::MAX));
        let piece = |tokens: &Option<RangeInclusive<i64>>| {
            let name = match (tokens, &*of.sstables) {
                (None, [only]) => only.files.shown(),
                (None, _) => of.name.clone(),
                (Some(tokens), _) => format!("{} (tokens {} to {})", of.name, tokens.start(), tokens.end()),
            };
            Piece { bytes: share, ..Piece::of(name) }
        };
        Ok(Sstables { pieces: tokens.iter().map(piece).collect(), of, mapping, table, tokens })
    }
}

impl Source for Sstables {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let (Some(tokens), Some(piece)) = (self.tokens.get(piece), self.pieces.get(piece)) else {
            return Err(Error::misuse("a piece that there is none of"));
        };
        Ok(Box::new(Rows::open(&self.of, &piece.name, &self.mapping, tokens.as_ref(), options)?))
    }
}

/// The ranges of tokens that are read side by side.
fn split(of: &SstablesOf, options: &SstablesOptions) -> Result<Vec<Option<RangeInclusive<i64>>>> {
    let is_sorted = of.sstables.iter().all(|sstable| sstable.is_sorted_by_tokens());
    if options.tokens.is_some() && !is_sorted {
        let class = of.sstables.first().map_or("", |sstable| &sstable.statistics.partitioner);
        return Err(named(Error::unsupported(format!("tokens of {class}")), &of.name));
    }
    let bytes = of.sstables.iter().fold(0_u64, |sum, it| sum.saturating_add(it.data_bytes()));
    let parts = u32::try_from((bytes / options.piece_bytes.max(1)).clamp(1, PIECES_MAX)).unwrap_or(1);
    let largest = of.sstables.iter().max_by_key(|sstable| sstable.data_bytes());
    let is_indexed = |sstable: &Arc<Sstable>| index::is_there(sstable);
    let borders = match largest {
        Some(largest) if parts > 1 && is_sorted && of.sstables.iter().all(is_indexed) => {
            index::borders(&options.cancel.of_store(&of.store), largest, of.limits, parts)?
        }
        _ => Vec::new(),
    };
    let wanted = options.tokens.map_or_else(|| vec![i64::MIN..=i64::MAX], TokenRange::ranges);
    if options.tokens.is_none() && borders.is_empty() {
        return Ok(vec![None]);
    }
    let mut pieces = Vec::new();
    for range in wanted {
        let mut start = *range.start();
        for border in borders.iter().filter(|border| range.contains(border) && **border > *range.start()) {
            pieces.push(Some(start..=border - 1));
            start = *border;
        }
        if start <= *range.end() {
            pieces.push(Some(start..=*range.end()));
        }
    }
    Ok(pieces)
}

/// Seconds since 1970, as local deletion times have them.
fn now() -> u32 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX)
}
