//! Parquet files that were made of SSTables of one table, as that table: what `marquetry watch` made of each flush, say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Budget, Detail, Error, Limits, Result};
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::Schema;
use marquetry_scylla::bridge::mutations::{MapperOptions, MutationMapping, Present, UnmapStep, Unmapper};
use marquetry_scylla::cql::Definitions;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::merge::{MergeOptions, Ties};
use marquetry_scylla::sstable::statistics::SerializationHeader;
use marquetry_scylla::sstable::{ColumnMap, KeyColumn, KeyNames, TableColumns};

use super::rows::{Mapping, Rows, Writes};
use crate::files::{Files, FilesOptions, Hive, find};
use crate::key_values::{SSTABLE_KEY, TABLE_SCHEMA_KEY, holds_for_any_columns, name_of};
use crate::source::open_piece;
use crate::subject::{is_stdin, named};
use crate::{Batches, Described, Key, Piece, PieceOptions, Source, Table};

/// Rows of batches of all files together, about; of wide rows, [bytes](BATCH_BYTES). The pages that readers hold come on top.
const BATCH_ROWS: usize = 1 << 17;
/// The least rows of a file's batch, and the most.
const BATCH_ROWS_MIN: usize = 64;
const BATCH_ROWS_MAX: usize = 8192;
/// Bytes of values of such batches together, about.
const BATCH_BYTES: u64 = 64 << 20;
/// The least of a file's batch.
const BATCH_BYTES_MIN: u64 = 64 << 10;

/// Parquet files of the mapping `full`, of one table, read as that table: each is opened at once, and their writes are merged as those of
/// [SSTables](super::Sstables) are. So deletions in one file are those of what another one has, and a column that only some of the files have is
/// one that was added.
///
/// Files read by [`Files`] are rows one after the other: those of several files are no writes of one table.
///
/// ```no_run
/// use marquetry_tables::Source;
/// use marquetry_tables::files::FilesOptions;
/// use marquetry_tables::sstables::FullFiles;
///
/// # fn main() -> marquetry_base::Result<()> {
/// let flushes = FullFiles::open(["lake/node-1/shop/orders-f34b/"], &FilesOptions::default())?;
/// println!("{} columns", flushes.map_or(0, |all| all.table().schema.leaves().len()));
/// # Ok(())
/// # }
/// ```
pub struct FullFiles {
    table: Table,
    pieces: [Piece; 1],
    files: Vec<FullFile>,
    mapping: Mapping,
    limits: Limits,
}

/// One of them.
struct FullFile {
    files: Arc<Files>,
    columns: Arc<TableColumns>,
    /// Its columns, as the table has them.
    map: ColumnMap,
}

impl FullFiles {
    /// Opens files as one table. `None` for what is read as it is, by [`Files`]: one file alone, files that are not of the mapping `full`, and those
    /// of the same columns of which none says that it has [all of an SSTable](fn@super::watch): the parts that one table was copied to.
    ///
    /// # Errors
    ///
    /// As [`Files::open`]'s, of each file; `Misuse` for files of which some are of the mapping `full`, and for those of several tables; `Unsupported` for columns of
    /// types in different files of which none can hold the values of the other.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: &FilesOptions,
    ) -> Result<Option<FullFiles>> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_path_buf()).collect();
        if paths.iter().any(|path| is_stdin(path)) {
            return Ok(None);
        }
        // What is wrong with it is said by whoever reads it as it is.
        let Ok(found) = find(&paths, options) else { return Ok(None) };
        let is_parquet = |path: &PathBuf| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| PARQUET_EXTENSIONS.contains(&extension))
        };
        // Other formats need not be looked into.
        if found.len() < 2 || !(options.formats.is_empty() || found.first().is_some_and(is_parquet)) {
            return Ok(None);
        }
        let store = options.cancel.of_store(&options.store);
        let options = FilesOptions { store, columns: None, needed: None, hive: Hive::Off, ..options.clone() };
        let mut opened: Vec<(Arc<Files>, TableColumns)> = Vec::new();
        for path in &found {
            options.cancel.check()?;
            let files = Files::open([path], &options)?;
            let columns = match (Described::of(files.table())?, opened.first()) {
                (Some(Described { mapping: MutationMapping::Full, columns }), _) => columns,
                (_, None) => return Ok(None),
                (_, Some((first, _))) => {
                    let what = format!(
                        "rows, where {} has writes (the mapping full): copy files of either kind by themselves",
                        first.table().name
                    );
                    return Err(named(Error::misuse(what), &files.table().name));
                }
            };
            expect_one_table(&opened, (&files, &columns), options.union)?;
            opened.push((Arc::new(files), columns));
        }
        let Some(((first, columns), others)) = opened.split_first() else { return Ok(None) };
        let is_like_first = |(files, its): &(Arc<Files>, TableColumns)| {
            its == columns && files.table().schema == first.table().schema
        };
        let is_of_sstable = |(files, _): &(Arc<Files>, TableColumns)| value(files, SSTABLE_KEY).is_some();
        if others.iter().all(is_like_first) && !opened.iter().any(is_of_sstable) {
            return Ok(None);
        }
        FullFiles::of(opened, options.limits).map(Some)
    }

    fn of(opened: Vec<(Arc<Files>, TableColumns)>, limits: Limits) -> Result<FullFiles> {
        let (first, of_first) = opened.first().ok_or_else(|| Error::internal("no files"))?;
        let name = match opened.len() {
            2 => format!("{} and 1 more file", first.table().name),
            count => format!("{} and {} more files", first.table().name, count - 1),
        };
        let headers: Vec<SerializationHeader> = opened.iter().map(|(_, columns)| columns.header()).collect();
        let all: Vec<&SerializationHeader> = headers.iter().collect();
        let columns =
            TableColumns::new(&all, Some(&names_of(of_first))).map_err(|error| named(error, &name))?;
        let mut options = MapperOptions::default();
        // What was written at one time in each file was not in all of them.
        options.present = Present { ttls: false, deletions: false, write_times: true };
        for (files, _) in &opened {
            let of_file = present(files);
            options.present.ttls |= of_file.ttls;
            options.present.deletions |= of_file.deletions;
        }
        options.limits = limits;
        let mapping = Mapping { kind: MutationMapping::Full, columns: Arc::new(columns), options, at: 0 };
        let mapper = mapping.mapper().map_err(|error| named(error, &name))?;
        let mut table = Table::new(&name, Arc::clone(mapper.schema()));
        table.key = Key::of_columns(&table.schema, &mapping.columns);
        let bytes = |sum: u64, (files, _): &(Arc<Files>, TableColumns)| {
            Some(sum.saturating_add(files.table().bytes?))
        };
        table.bytes = opened.iter().try_fold(0, bytes);
        table.key_values = mapper.key_values()?;
        let is_of_all = |it: &&KeyValue| {
            holds_for_any_columns(it) && opened.iter().all(|(files, _)| files.table().key_values.contains(it))
        };
        table.key_values.extend(first.table().key_values.iter().filter(is_of_all).cloned());
        table.key_values.extend(definition(&opened, &mapping.columns));
        let pieces = [Piece { bytes: table.bytes, ..Piece::of(name) }];
        let map = |((files, columns), header): ((Arc<Files>, TableColumns), &SerializationHeader)| {
            let map = mapping.columns.index_of(header).map_err(|error| named(error, &files.table().name))?;
            Ok(FullFile { files, columns: Arc::new(columns), map })
        };
        let files = opened.into_iter().zip(&headers).map(map).collect::<Result<Vec<_>>>()?;
        Ok(FullFiles { table, pieces, files, mapping, limits })
    }
}

impl Source for FullFiles {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let piece = self.pieces.get(piece).ok_or_else(|| Error::misuse("a piece that there is none of"))?;
        let count = self.files.len();
        let bytes = BATCH_BYTES / u64::try_from(count).unwrap_or(u64::MAX);
        let of_each = PieceOptions {
            batch_rows: Some((BATCH_ROWS / count).clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX)),
            batch_bytes: Some(bytes.max(BATCH_BYTES_MIN)),
            cancel: options.cancel.clone(),
            bytes_read: options.bytes_read.clone(),
            ..PieceOptions::default()
        };
        let mut inputs: Vec<Box<dyn Writes>> = Vec::new();
        for file in &self.files {
            inputs.push(Box::new(FileWrites::new(file, self.limits, &of_each)?));
        }
        let mut merging = MergeOptions::default();
        // As of SSTables that do not say that they are ScyllaDB's.
        (merging.limits, merging.ties) = (self.limits, Ties::GreaterValue);
        Ok(Box::new(Rows::of(&piece.name, &self.mapping, inputs, Some(merging), options)?))
    }
}

/// The writes of a file.
struct FileWrites {
    name: String,
    files: Arc<Files>,
    map: ColumnMap,
    unmapper: Unmapper,
    options: PieceOptions,
    /// The next piece, and the rest of the one before.
    piece: usize,
    batches: Option<Box<dyn Batches>>,
}

impl FileWrites {
    fn new(file: &FullFile, limits: Limits, options: &PieceOptions) -> Result<FileWrites> {
        let FullFile { files, columns, map } = file;
        let Table { name, schema, .. } = files.table();
        let unmapper =
            Unmapper::new(Arc::clone(columns), schema, limits).map_err(|error| named(error, name))?;
        Ok(FileWrites {
            name: name.clone(),
            files: Arc::clone(files),
            map: map.clone(),
            unmapper: unmapper.in_order(),
            options: options.clone(),
            piece: 0,
            batches: None,
        })
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(batches) = &mut self.batches {
                if let Some(batch) = batches.next()? {
                    return Ok(Some(batch));
                }
                self.batches = None;
            }
            if self.piece == self.files.pieces().len() {
                return Ok(None);
            }
            self.batches = Some(open_piece(&*self.files, self.piece, &self.options)?);
            self.piece += 1;
        }
    }

    fn next_writes(&mut self) -> Result<Option<MutationBatch>> {
        loop {
            match self.unmapper.step(&mut Budget::unlimited())? {
                UnmapStep::Ready(writes) => return self.map.apply(writes).map(Some),
                UnmapStep::Need => match self.next_batch()? {
                    Some(batch) => self.unmapper.feed(batch)?,
                    None => self.unmapper.finish(),
                },
                UnmapStep::Yield => self.options.cancel.check()?,
                UnmapStep::Done => return Ok(None),
            }
        }
    }
}

impl Writes for FileWrites {
    fn next(&mut self) -> Result<Option<MutationBatch>> {
        self.next_writes().map_err(|error| named(error, &self.name))
    }

    /// The arrays are not those of a reader.
    fn recycle(&mut self, _: MutationBatch) {}

    fn name(&self) -> &str {
        &self.name
    }
}

/// The statements that make the table with all of these columns, where files have others, because columns were added between them: those of the last file
/// that has such.
fn definition(opened: &[(Arc<Files>, TableColumns)], columns: &TableColumns) -> Option<KeyValue> {
    let of_each = |(files, _): &(Arc<Files>, TableColumns)| {
        files.table().key_values.iter().find(|it| it.key == TABLE_SCHEMA_KEY).cloned()
    };
    let first = opened.first().and_then(of_each);
    if opened.iter().all(|file| of_each(file) == first) {
        // All files say so.
        return None;
    }
    let has_all = |it: &KeyValue| {
        let made = Definitions::parse(std::str::from_utf8(it.value.as_ref()?).ok()?).ok()?;
        let [table] = &*made.tables else { return None };
        let names: BTreeSet<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let mut all = columns.statics.iter().chain(&columns.regulars);
        Some(all.all(|column| std::str::from_utf8(&column.name).is_ok_and(|name| names.contains(name))))
    };
    opened.iter().rev().filter_map(of_each).find(|it| has_all(it) == Some(true))
}

/// A text among a file's key-value metadata.
fn value<'a>(files: &'a Files, key: &str) -> Option<&'a str> {
    let found = files.table().key_values.iter().find(|it| it.key == key)?;
    std::str::from_utf8(found.value.as_ref()?).ok()
}

/// What a file may have, as its columns say.
fn present(files: &Files) -> Present {
    let schema: &Schema = &files.table().schema;
    let Some(group) = value(files, "marquetry.mapping.group") else {
        return Present { ttls: true, deletions: true, write_times: true };
    };
    let has = |field: &str| {
        let path = format!("{group}.{field}");
        (0..schema.leaves().len()).any(|leaf| schema.leaf_path(leaf) == path)
    };
    Present { ttls: has("expires_at"), deletions: has("local_deletion_time"), write_times: true }
}

/// Fails for a file of which something says that it is of another table than those before it, or of which keys have other names. Of files that do not say
/// whose they are, only the columns tell, unless columns that some of them lack are `wanted`.
fn expect_one_table(
    before: &[(Arc<Files>, TableColumns)],
    (files, columns): (&Files, &TableColumns),
    wanted: bool,
) -> Result<()> {
    let Some((first, of_first)) = before.first() else { return Ok(()) };
    // Of an SSTable: where its table is, which has its identifier.
    let place = |files: &Files| {
        let (place, _) = value(files, SSTABLE_KEY)?.rsplit_once('/')?;
        Some(place.to_owned())
    };
    let name = |files: &Files| Some(name_of(files.table())?.to_string());
    let keys = |columns: &TableColumns| {
        let KeyNames { partition_key, clustering } = names_of(columns);
        format!("the key ({}), {}", partition_key.join(", "), clustering.join(", "))
    };
    // Not each of them says it.
    let said = |what: &dyn Fn(&Files) -> Option<String>| {
        before.iter().find_map(|(of, _)| Some((what(of)?, of.table().name.clone())))
    };
    let differ = |before: Option<(String, String)>, now: Option<String>| match (before, now) {
        (Some((was, of)), Some(is)) if was != is => Some((was, of, is)),
        _ => None,
    };
    let wrong = |what: String| Err(named(Error::misuse(what), &files.table().name));
    let placed = said(&place);
    let is_one_place = placed.as_ref().map(|(place, _)| place) == place(files).as_ref() && placed.is_some();
    let by_table = || differ(placed.clone(), place(files)).or_else(|| differ(said(&name), name(files)));
    if let Some((was, of, is)) = if is_one_place { None } else { by_table() } {
        return wrong(format!("writes of another table than those of {of}: of {is}, not {was}"));
    }
    let (was, is, of) = (keys(of_first), keys(columns), &first.table().name);
    match (was == is, is_one_place) {
        (true, _) => {}
        (false, true) => {
            return wrong(format!(
                "{is}, where {of}, of the same table, has {was}: a column of the key was renamed, or its name not known; copy files of either name by themselves"
            ));
        }
        (false, false) => {
            return wrong(format!("writes of another table than those of {of}: of {is}, not {was}"));
        }
    }
    let is_known = |files: &Files| place(files).is_some() || name(files).is_some();
    if !wanted && columns != of_first && !(is_known(files) && is_known(first)) {
        let what = format!(
            "other columns than those of {of}, and not both say which table they are of: columns that some files lack have to be asked for"
        );
        return Err(named(Error::misuse(what).with(Detail::AdmittedBy(&["union"])), &files.table().name));
    }
    Ok(())
}

fn names_of(columns: &TableColumns) -> KeyNames {
    let names = |keys: &[KeyColumn]| keys.iter().map(|key| key.name.clone()).collect();
    KeyNames { partition_key: names(&columns.partition_key), clustering: names(&columns.clustering) }
}
