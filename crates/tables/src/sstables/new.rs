//! SSTables as a destination: a new directory of them, for `nodetool import` or `nodetool refresh`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::shown;
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{MutationMapping, UnmapStep, Unmapper};
use marquetry_scylla::cql::TableName;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::write::{SstableWriter, WriteCompression, WriteOptions, WriteStep};
use marquetry_scylla::sstable::{Component, FileName, IndexKind, TableColumns, Version};

use crate::key_values::TABLE_SCHEMA_KEY;
use crate::stage::{Guard, Stage};
use crate::subject::named;
use crate::{Cancel, Described, Destination, Table, Wants, Written};

/// How SSTables are written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewSstablesOptions {
    /// The version of the format: `me`, `nb`, `oa` or `da`. `me` by default, which all servers of the last years read: Cassandra from 3.11.11
    /// on (3.11 was not tried) and ScyllaDB from 5.0 on. Cassandra reads `nb` from 4.0 on, and `oa` and `da` from 5.0 on; ScyllaDB reads none of these.
    pub version: Version,
    /// How Data.db is compressed. `None`: not at all.
    pub compression: Option<WriteCompression>,
    /// Bytes of a Data.db after which another SSTable begins.
    pub bytes_max: Option<u64>,
    /// Tokens at which another SSTable begins: see [`WriteOptions::split_at`].
    pub split_at: Vec<i64>,
    /// Bounds on values, and on indexes of partitions.
    pub limits: Limits,
}

impl Default for NewSstablesOptions {
    fn default() -> NewSstablesOptions {
        NewSstablesOptions::of(WriteOptions::default())
    }
}

impl NewSstablesOptions {
    /// The options for a version, by its two letters.
    ///
    /// # Errors
    ///
    /// `Unsupported` for versions that are not written.
    pub fn new(version: &str) -> Result<NewSstablesOptions> {
        Ok(NewSstablesOptions::of(WriteOptions::new(Version::parse(version)?)?))
    }

    fn of(write: WriteOptions) -> NewSstablesOptions {
        NewSstablesOptions {
            version: write.version,
            compression: write.compression,
            bytes_max: Some(BYTES_MAX),
            split_at: Vec::new(),
            limits: write.limits,
        }
    }

    fn write(&self) -> Result<WriteOptions> {
        let mut options = WriteOptions::new(self.version)?;
        options.compression = self.compression;
        options.bytes_max = self.bytes_max;
        options.split_at.clone_from(&self.split_at);
        options.limits = self.limits;
        Ok(options)
    }
}

/// As large as servers like to compact.
const BYTES_MAX: u64 = 4 << 30;

/// A new directory of SSTables, which appears when all of them are complete and on disk; beside them is a `schema.cql`, if the
/// table can be made by CQL.
///
/// Its rows are writes: those of the mapping `full`, in the order of tokens, as other SSTables and Parquet files made of them have them.
/// Until it is committed, files are in a hidden directory beside it.
pub struct NewSstables {
    path: PathBuf,
    name: String,
    options: NewSstablesOptions,
    guard: Guard,
    cancel: Cancel,
    open: Option<Box<Open>>,
    notes: Vec<String>,
}

/// What is being written.
struct Open {
    directory: Hidden,
    unmapper: Unmapper,
    columns: Arc<TableColumns>,
    options: WriteOptions,
    /// Made with the first partition.
    writer: Option<SstableWriter>,
    files: BTreeMap<&'static str, File>,
    /// The number in the names of the SSTable.
    generation: u32,
    schema: Option<String>,
    written: Written,
}

impl NewSstables {
    /// SSTables in a directory at `path`, which does not exist, or has nothing in it. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Misuse` with [`AlreadyExists`](Detail::AlreadyExists) if something is there; `Unsupported` for a path of an object store, and for a
    /// symbolic link or a mount point, whose place a complete directory cannot take; `Misuse` for a path without a name.
    pub fn new(path: impl AsRef<Path>, options: NewSstablesOptions) -> Result<NewSstables> {
        let path = path.as_ref().to_path_buf();
        let name = shown(&path.to_string_lossy());
        let about = |error: Error| named(error, &name);
        if path.to_string_lossy().contains("://") {
            return Err(about(Error::unsupported(
                "SSTables are written to a local directory: copy it to the store when it is complete",
            )));
        }
        if path.file_name().is_none() {
            return Err(about(Error::misuse("a new directory for SSTables needs a name")));
        }
        let is_free = match fs::read_dir(&path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if !is_free {
            return Err(about(
                Error::misuse("there is something already: SSTables go to a new directory, or an empty one")
                    .with(Detail::AlreadyExists),
            ));
        }
        if let Some(why) = cannot_be_replaced(&path) {
            return Err(about(Error::unsupported(format!(
                "{why}: SSTables go to a new directory, which takes its name when it is complete"
            ))));
        }
        options.write()?;
        Ok(NewSstables {
            path,
            name,
            options,
            guard: Guard::default(),
            cancel: Cancel::new(),
            open: None,
            notes: Vec::new(),
        })
    }

    fn begin_directory(&mut self, table: &Table) -> Result<Wants> {
        let columns = Arc::new(columns_of(table)?);
        let options = self.options.write()?;
        // What the version cannot have of such a table is said before anything is created.
        SstableWriter::new(&columns, options.clone(), &StandardCodecs::default())?;
        let unmapper = Unmapper::new(Arc::clone(&columns), &table.schema, self.options.limits)
            .map_err(|error| named(error, &table.name))?;
        let (schema, note) = schema_of(table, &columns);
        self.notes.extend(note);
        let directory = Hidden::create(&self.path)?;
        self.open = Some(Box::new(Open {
            directory,
            unmapper,
            columns,
            options,
            writer: None,
            files: BTreeMap::new(),
            generation: 1,
            schema,
            written: Written::default(),
        }));
        Ok(Wants::default())
    }

    fn open(&mut self) -> Result<(&mut Open, &Cancel)> {
        match &mut self.open {
            Some(open) => Ok((open, &self.cancel)),
            None => Err(Error::internal("SSTables that are not open")),
        }
    }

    fn commit_directory(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Err(Error::internal("SSTables that are not open")) };
        if let Some(schema) = &open.schema {
            let path = open.directory.path.join("schema.cql");
            let written = File::create_new(&path).and_then(|mut file| {
                file.write_all(schema.as_bytes())?;
                file.sync_all()
            });
            written.map_err(|error| failed(&path, &error))?;
        }
        open.directory.appear(&self.path)
    }
}

impl Destination for NewSstables {
    fn name(&self) -> &str {
        &self.name
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_directory(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let rows = u64_of(batch.rows);
        let written = self.open().and_then(|(open, cancel)| {
            open.rows(Some(batch), cancel)?;
            open.written.rows += rows;
            Ok(())
        });
        self.guard.then(Stage::Begun, written)
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|(open, cancel)| {
            open.unmapper.finish();
            open.rows(None, cancel)?;
            if let Some(writer) = &mut open.writer {
                writer.finish();
                open.append(cancel)?;
            }
            Ok(open.written)
        });
        self.guard.then(Stage::Finished, written)
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        let committed = self.commit_directory();
        self.guard.then(Stage::Committed, committed)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

impl Open {
    /// Makes writes of rows, and of what is left of those before them.
    fn rows(&mut self, mut batch: Option<Batch>, cancel: &Cancel) -> Result<()> {
        loop {
            cancel.check()?;
            match self.unmapper.step(&mut Budget::unlimited())? {
                UnmapStep::Ready(writes) => self.put(writes, cancel)?,
                UnmapStep::Need => match batch.take() {
                    Some(batch) => self.unmapper.feed(batch)?,
                    None => return Ok(()),
                },
                UnmapStep::Yield => {}
                UnmapStep::Done => return Ok(()),
            }
        }
    }

    fn put(&mut self, writes: MutationBatch, cancel: &Cancel) -> Result<()> {
        if writes.partitions.ends.is_empty() {
            return Ok(());
        }
        if self.writer.is_none() {
            let codecs = StandardCodecs::default();
            self.writer = Some(SstableWriter::new(&self.columns, self.options.clone(), &codecs)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.feed(writes)?;
        }
        self.append(cancel)
    }

    /// Appends to files until the writer waits, or all is written.
    fn append(&mut self, cancel: &Cancel) -> Result<()> {
        while let Some(writer) = &mut self.writer {
            cancel.check()?;
            match writer.step(&mut Budget::unlimited())? {
                WriteStep::Append(component, bytes) => self.append_to(&component, &bytes)?,
                WriteStep::Need => return Ok(()),
                WriteStep::Yield => {}
                WriteStep::Done => {
                    self.end_sstable()?;
                    let next = self.writer.take().map(|writer| writer.next(&StandardCodecs::default()));
                    self.writer = next.transpose()?.flatten();
                    self.generation += 1;
                }
            }
        }
        Ok(())
    }

    fn append_to(&mut self, component: &Component, bytes: &Bytes) -> Result<()> {
        let path = self.path_of(component);
        let name = known_name(component)?;
        if !self.files.contains_key(name) {
            let file = File::create_new(&path).map_err(|error| failed(&path, &error))?;
            self.files.insert(name, file);
            self.written.files += 1;
        }
        self.written.bytes += u64_of(bytes.len());
        let file = self.files.get_mut(name).ok_or_else(|| Error::internal("a file that is not open"))?;
        file.write_all(bytes).map_err(|error| failed(&path, &error))
    }

    /// Waits until all files of an SSTable are on disk.
    fn end_sstable(&mut self) -> Result<()> {
        let components = self.writer.as_ref().map(SstableWriter::components).unwrap_or_default();
        for component in &components {
            // Of some, such as the indexes of rows, nothing may have been written.
            self.append_to(component, &Bytes::new())?;
        }
        for component in &components {
            let path = self.path_of(component);
            if let Some(file) = self.files.remove(known_name(component)?) {
                file.sync_all().map_err(|error| failed(&path, &error))?;
            }
        }
        Ok(())
    }

    fn path_of(&self, component: &Component) -> PathBuf {
        let version = self.options.version;
        let format = match version.index() {
            IndexKind::Big => "big",
            IndexKind::Trie => "bti",
        };
        let name = FileName {
            version,
            id: self.generation.to_string(),
            format: format.to_owned(),
            component: Component::Data,
        };
        self.directory.path.join(name.of(component))
    }
}

/// The name of a component that the writer has.
fn known_name(component: &Component) -> Result<&'static str> {
    let known = [
        Component::Data,
        Component::Index,
        Component::Summary,
        Component::Partitions,
        Component::Rows,
        Component::Filter,
        Component::Statistics,
        Component::CompressionInfo,
        Component::Crc,
        Component::Digest,
        Component::Toc,
    ];
    const NAMES: [&str; 11] = [
        "Data.db",
        "Index.db",
        "Summary.db",
        "Partitions.db",
        "Rows.db",
        "Filter.db",
        "Statistics.db",
        "CompressionInfo.db",
        "CRC.db",
        "Digest.crc32",
        "TOC.txt",
    ];
    let found = known.iter().zip(NAMES).find(|(known, _)| *known == component);
    found.map(|(_, name)| name).ok_or_else(|| Error::internal("a component that is not known"))
}

/// The columns of the table that rows are writes of.
fn columns_of(table: &Table) -> Result<TableColumns> {
    let about = |error: Error| named(error, &table.name);
    match Described::of(table)? {
        Some(described) if described.mapping == MutationMapping::Full => Ok(described.columns),
        Some(described) => Err(about(Error::unsupported(format!(
            "rows of the mapping {}, of which SSTables cannot be made: those of full have all that they need",
            described.mapping.name()
        )))),
        None => Err(about(Error::unsupported(
            "plain rows, of which SSTables are not made yet: they are made of other SSTables (sstable:DIR), and of Parquet files with the \
             mapping full",
        ))),
    }
}

/// The statements that make the table; or why there are none.
fn schema_of(table: &Table, columns: &TableColumns) -> (Option<String>, Option<String>) {
    let value = |key: &str| {
        let found = table.key_values.iter().find(|it| it.key == key)?;
        found.value.as_ref().and_then(|value| std::str::from_utf8(value).ok())
    };
    if let Some(schema) = value(TABLE_SCHEMA_KEY) {
        return (Some(schema.to_owned()), None);
    }
    let without = |why: String| (None, Some(format!("no schema.cql beside the SSTables: {why}")));
    let Some(name) = value("marquetry.table.name") else {
        return without("the table's name is not known".to_owned());
    };
    let parsed = TableName::parse(name).map_err(|error| error.to_string());
    match parsed.and_then(|name| columns.definition(&name).map_err(|error| error.message().to_owned())) {
        Ok((made, types)) => {
            let types = types.iter().map(|made| format!("{made};\n"));
            (Some(types.chain([format!("{made};\n")]).collect()), None)
        }
        Err(why) => without(why),
    }
}

/// A directory that has a hidden name until it is complete. Dropping it removes it.
struct Hidden {
    path: PathBuf,
    is_left: bool,
}

impl Hidden {
    fn create(beside: &Path) -> Result<Hidden> {
        let name = beside.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = parent_of(beside);
        for number in 0..100 {
            let path = parent.join(format!(".{name}.{}-{number}.new", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Hidden { path, is_left: false }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(beside, &error)),
            }
        }
        Err(named(Error::io("too many unfinished directories beside it"), &shown(&beside.to_string_lossy())))
    }

    /// Gives it its name. If it cannot have it, what was written stays, under the hidden name.
    fn appear(mut self, path: &Path) -> Result<()> {
        sync(&self.path).map_err(|error| failed(path, &error))?;
        // Of an empty directory that is there, the name is taken over.
        let renamed = fs::rename(&self.path, path);
        self.is_left = true;
        renamed.map_err(|error| {
            let hidden = shown(&self.path.to_string_lossy());
            let message =
                format!("the SSTables are complete, in {hidden}, but could not be given this name: {error}");
            named(Error::io(message), &shown(&path.to_string_lossy()))
        })?;
        sync(parent_of(path)).map_err(|error| {
            let message =
                format!("the SSTables are in place, but their directory could not be synced: {error}");
            named(Error::io(message), &shown(&path.to_string_lossy()))
        })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.is_left {
            // What cannot be removed has a hidden name, which no reader takes for a table.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why another directory could not be given this name, as far as that can be seen before.
fn cannot_be_replaced(path: &Path) -> Option<&'static str> {
    let found = fs::symlink_metadata(path).ok()?;
    if found.is_symlink() {
        return Some("a symbolic link");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if fs::metadata(parent_of(path)).is_ok_and(|parent| parent.dev() != found.dev()) {
            return Some("a mount point");
        }
    }
    None
}

/// Waits until a directory is on disk.
fn sync(directory: &Path) -> std::io::Result<()> {
    if cfg!(unix) { OpenOptions::new().read(true).open(directory)?.sync_all() } else { Ok(()) }
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let made = Error::io(error.to_string());
    let made = match error.kind() {
        std::io::ErrorKind::PermissionDenied => made.with(Detail::PermissionDenied),
        std::io::ErrorKind::NotFound => made.with(Detail::NotFound),
        _ => made,
    };
    named(made, &shown(&path.to_string_lossy()))
}
