//! The machine that reads one SSTable: all its components in, batches of the mapping `full` out.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{
    Budget, Bytes, Codecs, Error, Failed, Limits, Machine, Object, Release, Result, Step, release_all,
};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::Schema;

use super::{MapStep, Mapper, MapperOptions, MutationMapping, Present};
use crate::cql::{Definitions, TableName};
use crate::sstable::checksums::{Checksums, ChecksumsReader, parse_digest};
use crate::sstable::compression_info::{CompressionInfo, CompressionInfoReader};
use crate::sstable::scylla_metadata::{ScyllaMetadata, ScyllaMetadataReader};
use crate::sstable::statistics::{Statistics, StatisticsReader};
use crate::sstable::{
    ColumnMap, Component, DataOptions, DataReader, FileName, KeyNames, KnownName, Packing, TableColumns,
    TableOf, TextReader, Version, parse_toc,
};

/// How a [`SstableReader`] reads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SstableOptions {
    /// `CREATE TABLE` of the table, and `CREATE TYPE` of its types; other tables may be there, too. Without them key columns have the names
    /// that Scylla.db says, or else `pk0`, …, `ck0`, …, and columns that were dropped are there.
    pub definitions: Option<Definitions>,
    /// Which of the definitions is the table's. `None`: the only one, or the only one that fits.
    pub table: Option<TableName>,
    /// Bounds on what is read.
    pub limits: Limits,
}

impl Default for SstableOptions {
    fn default() -> SstableOptions {
        SstableOptions { definitions: None, table: None, limits: Limits::DEFAULT }
    }
}

/// Reads an SSTable from start to end: its products are batches of [`MutationMapping::Full`].
///
/// ```text
/// TOC.txt  Digest.crc32  Statistics.db  Scylla.db  CompressionInfo.db or CRC.db   each as a whole, where it is there
///                                   │
///                       schema, mapper, reader of the data
///                                   │
///                                Data.db ──► DataReader ──► Mapper ──► Batch
/// ```
///
/// It asks for the lengths of files, and for ranges of them. If the digest is there, Data.db is compared with it at its end, so batches are
/// handed out before; chunks have checksums of their own, which are compared before.
///
/// What the schema takes (a definition is compared with the columns) is one piece of work, in proportion to the columns.
#[derive(Debug)]
pub struct SstableReader {
    files: Vec<(Component, Object)>,
    version: Version,
    codecs: Shared,
    options: SstableOptions,
    /// Components that are read before the data, in their order.
    todo: VecDeque<Component>,
    part: Option<Part>,
    /// What was read and is still to be released.
    old: Option<Part>,
    known: Known,
    rows: Option<Box<Rows>>,
    is_done: bool,
    failed: Failed,
}

/// What the components before the data say.
#[derive(Debug, Default)]
struct Known {
    digest: Option<u32>,
    statistics: Option<Statistics>,
    names: Option<KeyNames>,
    packing: Option<Packing>,
}

#[derive(Clone)]
struct Shared(Arc<dyn Codecs>);

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Codecs")
    }
}

/// What makes rows of the data.
#[derive(Debug)]
struct Rows {
    data: DataReader,
    map: ColumnMap,
    mapper: Mapper,
}

/// The component that is being read.
#[derive(Debug)]
enum Part {
    Toc(TextReader),
    Digest(TextReader),
    Statistics(Box<StatisticsReader>),
    Scylla(Box<ScyllaMetadataReader>),
    Compression(CompressionInfoReader),
    Checksums(ChecksumsReader),
}

/// What a component says.
enum Learned {
    Toc(Bytes),
    Digest(Bytes),
    Statistics(Box<Statistics>),
    Scylla(ScyllaMetadata),
    Compression(CompressionInfo),
    Checksums(Checksums),
}

/// What all machines have, whatever their products are.
trait Reads {
    fn take(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()>;
    fn take_length(&mut self, object: Object, length: u64) -> Result<()>;
    fn free(&mut self, budget: &mut Budget<'_>) -> bool;
}

impl<M: Machine + Release> Reads for M {
    fn take(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.supply(object, range, bytes)
    }

    fn take_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.supply_length(object, length)
    }

    fn free(&mut self, budget: &mut Budget<'_>) -> bool {
        self.release(budget)
    }
}

impl Part {
    fn new(component: &Component, object: Object, version: Version, limits: Limits) -> Result<Part> {
        Ok(match component {
            Component::Toc => Part::Toc(TextReader::new(object, component, limits)),
            Component::Digest => Part::Digest(TextReader::new(object, component, limits)),
            Component::Statistics => {
                Part::Statistics(Box::new(StatisticsReader::new(object, version, limits)))
            }
            Component::Scylla => Part::Scylla(Box::new(ScyllaMetadataReader::new(object, limits))),
            Component::CompressionInfo => {
                Part::Compression(CompressionInfoReader::new(object, version, limits))
            }
            Component::Crc => Part::Checksums(ChecksumsReader::new(object, limits)),
            _ => return Err(Error::internal("a component that is not read")),
        })
    }

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Learned>> {
        Ok(match self {
            Part::Toc(reader) => reader.step(budget)?.map(Learned::Toc),
            Part::Digest(reader) => reader.step(budget)?.map(Learned::Digest),
            Part::Statistics(reader) => reader.step(budget)?.map(|it| Learned::Statistics(Box::new(it))),
            Part::Scylla(reader) => reader.step(budget)?.map(Learned::Scylla),
            Part::Compression(reader) => reader.step(budget)?.map(Learned::Compression),
            Part::Checksums(reader) => reader.step(budget)?.map(Learned::Checksums),
        })
    }

    fn reads(&mut self) -> &mut dyn Reads {
        match self {
            Part::Toc(reader) | Part::Digest(reader) => reader,
            Part::Statistics(reader) => &mut **reader,
            Part::Scylla(reader) => &mut **reader,
            Part::Compression(reader) => reader,
            Part::Checksums(reader) => reader,
        }
    }

    fn component(&self) -> Component {
        match self {
            Part::Toc(_) => Component::Toc,
            Part::Digest(_) => Component::Digest,
            Part::Statistics(_) => Component::Statistics,
            Part::Scylla(_) => Component::Scylla,
            Part::Compression(_) => Component::CompressionInfo,
            Part::Checksums(_) => Component::Crc,
        }
    }
}

impl Release for Part {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.reads().free(budget)
    }
}

impl SstableReader {
    /// A reader of the SSTable that these files are, each with the object that it is. Data.db and Statistics.db must be among them, and, of
    /// what reading needs besides (CompressionInfo.db, CRC.db, Digest.crc32, Scylla.db), all that there is; others are never asked for. If
    /// TOC.txt is given, what it lists of those must be there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for files of several SSTables, or if one is missing or given twice.
    pub fn new(
        files: &[(FileName, Object)],
        codecs: Arc<dyn Codecs>,
        options: SstableOptions,
    ) -> Result<SstableReader> {
        let Some((first, _)) = files.first() else { return Err(Error::misuse("an SSTable of no files")) };
        let mut found: Vec<(Component, Object)> = Vec::new();
        for (name, object) in files {
            if name.stem() != first.stem() {
                return Err(Error::misuse(format!(
                    "files of several SSTables: {} and {}",
                    first.stem(),
                    name.stem()
                )));
            }
            let is_twice = found.iter().any(|(component, its)| *component == name.component || its == object);
            if is_twice {
                let what = format!("{} is given twice, or its object is", name.component.name());
                return Err(Error::misuse(what));
            }
            found.push((name.component.clone(), *object));
        }
        let has = |component: &Component| found.iter().any(|(its, _)| its == component);
        for needed in [Component::Data, Component::Statistics] {
            if !has(&needed) {
                let what = format!("an SSTable without {}, which cannot be read", needed.name());
                return Err(Error::misuse(what));
            }
        }
        let todo = [
            Component::Toc,
            Component::Digest,
            Component::Statistics,
            Component::Scylla,
            Component::CompressionInfo,
            Component::Crc,
        ];
        let is_wanted = |component: &Component| {
            has(component) && (*component != Component::Scylla || options.definitions.is_none())
        };
        Ok(SstableReader {
            todo: todo.into_iter().filter(is_wanted).collect(),
            files: found,
            version: first.version,
            codecs: Shared(codecs),
            options,
            part: None,
            old: None,
            known: Known::default(),
            rows: None,
            is_done: false,
            failed: Failed::default(),
        })
    }

    /// The schema of the batches. `None` before it is known, which it is with the first batch, and at the end.
    pub fn schema(&self) -> Option<&Arc<Schema>> {
        self.rows.as_ref().map(|rows| rows.mapper.schema())
    }

    /// Key-value metadata for files of these batches, as [`Mapper::key_values`]. Empty before the schema is known.
    ///
    /// # Errors
    ///
    /// None, once the schema is known.
    pub fn key_values(&self) -> Result<Vec<KeyValue>> {
        self.rows.as_ref().map_or(Ok(Vec::new()), |rows| rows.mapper.key_values())
    }

    fn object(&self, component: &Component) -> Result<Object> {
        let found = self.files.iter().find(|(its, _)| its == component);
        found.map(|(_, object)| *object).ok_or_else(|| Error::internal("a component that is not there"))
    }

    fn component(&self, object: Object) -> Result<&Component> {
        let found = self.files.iter().find(|(_, its)| *its == object);
        found
            .map(|(component, _)| component)
            .ok_or_else(|| Error::misuse("an object that is not this machine's"))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        loop {
            if let Some(old) = &mut self.old {
                if !old.release(budget) {
                    return Ok(Step::Yield);
                }
                self.old = None;
            }
            if self.is_done {
                return Ok(Step::Done);
            }
            if let Some(rows) = &mut self.rows {
                let step = rows.step(budget).map_err(of_data)?;
                self.is_done = matches!(step, Step::Done);
                return Ok(step);
            }
            if let Some(part) = &mut self.part {
                match part.step(budget)? {
                    Step::Ready(learned) => {
                        self.old = self.part.take();
                        self.learn(learned)?;
                    }
                    Step::Need(demand) => return Ok(Step::Need(demand)),
                    Step::Yield => return Ok(Step::Yield),
                    Step::Append(..) | Step::Done => {
                        return Err(Error::internal("a component's reader ended without a product"));
                    }
                }
            } else if let Some(component) = self.todo.pop_front() {
                let object = self.object(&component)?;
                self.part = Some(Part::new(&component, object, self.version, self.options.limits)?);
            } else {
                self.begin()?;
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    fn learn(&mut self, learned: Learned) -> Result<()> {
        let known = &mut self.known;
        match learned {
            Learned::Toc(text) => return self.expect_complete(&text),
            Learned::Digest(text) => known.digest = Some(parse_digest(&text)?),
            Learned::Statistics(statistics) => known.statistics = Some(*statistics),
            Learned::Scylla(made) => known.names = made.schema.map(|schema| schema.key_names()),
            Learned::Compression(info) => {
                known.packing = Some(Packing::Compressed(Arc::new(info)));
                self.todo.retain(|component| *component != Component::Crc);
            }
            Learned::Checksums(sums) => known.packing = Some(Packing::Plain(Some(Arc::new(sums)))),
        }
        Ok(())
    }

    /// Checks that the files which are read are those that TOC.txt lists.
    fn expect_complete(&mut self, toc: &[u8]) -> Result<()> {
        let listed = parse_toc(toc)?;
        let has = |component: &Component| self.files.iter().any(|(its, _)| its == component);
        let is_read = |component: &&Component| match component {
            Component::Digest | Component::CompressionInfo | Component::Crc => true,
            Component::Scylla => self.options.definitions.is_none(),
            _ => false,
        };
        let missing = listed.iter().filter(is_read).find(|component| !has(component));
        if let Some(missing) = missing {
            let name = missing.name();
            let what = format!("an incomplete SSTable: {name} is listed in TOC.txt and is not given");
            return Err(Error::misuse(what));
        }
        if !listed.contains(&Component::Statistics) {
            let what =
                "a table of contents that lists no Statistics.db, without which Data.db cannot be read";
            return Err(
                Error::corrupt(what).at(|place| place.object = Some(Component::Toc.name().to_string()))
            );
        }
        self.todo.retain(|component| listed.contains(component));
        Ok(())
    }

    /// Begins with the data, once all else is known.
    fn begin(&mut self) -> Result<()> {
        let Known { digest, statistics, names, packing } = core::mem::take(&mut self.known);
        let statistics = statistics.ok_or_else(|| Error::internal("no statistics"))?;
        let headers = [&statistics.header];
        let columns = match &self.options.definitions {
            None => TableColumns::new(&headers, names.as_ref())?,
            Some(made) => {
                let known = self.options.table.as_ref().map_or_else(KnownName::default, |table| KnownName {
                    keyspace: table.keyspace.as_ref().map(|keyspace| keyspace.as_str()),
                    table: Some(table.table.as_str()),
                });
                // A name that the host gives is not a guess: no other table is taken.
                let found = TableOf::find(made, &headers, known, known.table.is_none())?;
                found.ok_or_else(|| TableOf::not_there(made, known))?.columns
            }
        };
        let limits = self.options.limits;
        let map = columns.index_of(&statistics.header)?;
        let options = MapperOptions { present: Present::of([&statistics.stats]), limits };
        let mapper = Mapper::new(MutationMapping::Full, Arc::new(columns), &options)?;
        let packing = packing.unwrap_or(Packing::Plain(None));
        let (object, codecs) = (self.object(&Component::Data)?, Arc::clone(&self.codecs.0));
        let options = DataOptions { limits, digest, range: None };
        let data = DataReader::new(object, self.version, &statistics.header, packing, codecs, options)?;
        self.rows = Some(Box::new(Rows { data, map, mapper }));
        Ok(())
    }
}

impl Rows {
    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        loop {
            match self.mapper.step(budget)? {
                MapStep::Ready(batch) => return Ok(Step::Ready(batch)),
                MapStep::Yield => return Ok(Step::Yield),
                MapStep::Done => return Ok(Step::Done),
                MapStep::Need => {}
            }
            if let Some(spare) = self.mapper.recycle()
                && self.map.is_same()
            {
                self.data.recycle(spare);
            }
            match self.data.step(budget)? {
                Step::Ready(batch) => self.mapper.feed(self.map.apply(batch)?)?,
                Step::Done => self.mapper.finish(),
                Step::Need(demand) => return Ok(Step::Need(demand)),
                Step::Yield => return Ok(Step::Yield),
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }
}

/// An error of the data, unless it is another component's.
fn of_data(error: Error) -> Error {
    match &error.place().object {
        Some(_) => error,
        None => error.at(|place| place.object = Some(Component::Data.name().to_string())),
    }
}

impl Machine for SstableReader {
    type Product = Batch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        let component = self.component(object)?.clone();
        match (&mut self.part, &mut self.rows) {
            _ if self.failed.is_set() || self.is_done => Ok(()),
            (Some(part), _) if part.component() == component => part.reads().take(object, range, bytes),
            (_, Some(rows)) if component == Component::Data => rows.data.supply(object, range, bytes),
            // What was asked for before, or was not.
            _ => Ok(()),
        }
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        let component = self.component(object)?.clone();
        match (&mut self.part, &mut self.rows) {
            (Some(part), _) if part.component() == component => part.reads().take_length(object, length),
            (_, Some(rows)) if component == Component::Data => rows.data.supply_length(object, length),
            _ => Ok(()),
        }
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if self.component(object).is_ok() {
            self.failed.set(reason);
        }
    }
}

/// For a reader that is no longer wanted, or has failed. A batch of writes that is being mapped is freed with the machine.
impl Release for SstableReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let rows: &mut dyn Release = match &mut self.rows {
            Some(rows) => &mut rows.data,
            None => &mut (),
        };
        release_all(&mut [&mut self.old, &mut self.part, &mut self.known.statistics, rows], budget)
    }
}
