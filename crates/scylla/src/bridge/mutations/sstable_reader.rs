//! The machine that reads one SSTable: all its components in, batches of the mapping `full` out.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{
    Budget, Bytes, Codecs, Error, Failed, Limits, Machine, Object, Price, Release, Result, Step, release_all,
};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::Schema;

use super::{MapStep, Mapper, MapperOptions, MutationMapping, Present};
use crate::cql::{Definitions, TableName};
use crate::sstable::checksums::{Checksums, ChecksumsReader, parse_digest};
use crate::sstable::compression_info::{CompressionInfo, CompressionInfoReader};
use crate::sstable::scylla_metadata::{ScyllaMetadata, ScyllaMetadataReader};
use crate::sstable::statistics::{SerializationHeader, Statistics, StatisticsReader};
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
/// What comes between is done in four pieces, each in proportion to the columns and charged: the columns of the table are found (a definition is
/// compared with them), those of the SSTable among them, the schema, and how rows are stored.
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
    beginning: Beginning,
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

/// What of the beginning with the data comes next, and what it needs.
#[derive(Debug)]
enum Beginning {
    Columns,
    Map(Arc<TableColumns>),
    Mapper(Arc<TableColumns>, ColumnMap),
    Data(ColumnMap, Box<Mapper>),
}

impl Release for Beginning {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Beginning::Columns => true,
            Beginning::Map(columns) => columns.release(budget),
            Beginning::Mapper(columns, map) => release_all(&mut [columns, map], budget),
            Beginning::Data(map, mapper) => release_all(&mut [map, mapper], budget),
        }
    }
}

/// The price of a column that a definition is compared with, one that is found among those of the table, one of the schema, and one of rows.
const COMPARE_PRICE: Price = Price::per_kilovalue(1200 << 10);
const FIND_PRICE: Price = Price::per_kilovalue(600 << 10);
const PLAN_PRICE: Price = Price::per_kilovalue(2000 << 10);
const LAYOUT_PRICE: Price = Price::per_kilovalue(40 << 10);

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
            beginning: Beginning::Columns,
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
            if self.rows.is_some() && !self.known.statistics.release(budget) {
                return Ok(Step::Yield);
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
                self.begin(budget)?;
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

    /// A piece of the beginning with the data, once all else is known.
    fn begin(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let limits = self.options.limits;
        let statistics = self.known.statistics.as_ref().ok_or_else(|| Error::internal("no statistics"))?;
        let header = &statistics.header;
        let stored = header.clustering.len() + header.statics.len() + header.regulars.len();
        self.beginning = match core::mem::replace(&mut self.beginning, Beginning::Columns) {
            Beginning::Columns => {
                let (columns, compared) = self.columns(header)?;
                budget.charge(COMPARE_PRICE, 0, compared);
                Beginning::Map(Arc::new(columns))
            }
            Beginning::Map(columns) => {
                let map = columns.index_of(header)?;
                budget.charge(FIND_PRICE, 0, stored.max(columns.cells().len()));
                Beginning::Mapper(columns, map)
            }
            Beginning::Mapper(columns, map) => {
                let options = MapperOptions { present: Present::of([&statistics.stats]), limits };
                let mapper = Mapper::new(MutationMapping::Full, columns, &options)?;
                budget.charge(PLAN_PRICE, 0, mapper.schema().leaves().len());
                Beginning::Data(map, Box::new(mapper))
            }
            Beginning::Data(map, mapper) => {
                let packing = self.known.packing.take().unwrap_or(Packing::Plain(None));
                let (object, codecs) = (self.object(&Component::Data)?, Arc::clone(&self.codecs.0));
                let options = DataOptions { limits, digest: self.known.digest, range: None };
                let data = DataReader::new(object, self.version, header, packing, codecs, options)?;
                budget.charge(LAYOUT_PRICE, 0, stored);
                self.rows = Some(Box::new(Rows { data, map, mapper: *mapper }));
                return Ok(());
            }
        };
        Ok(())
    }

    /// The columns of the table, and how many columns were compared.
    fn columns(&self, header: &SerializationHeader) -> Result<(TableColumns, usize)> {
        let stored = header.clustering.len() + header.statics.len() + header.regulars.len();
        let headers = [header];
        let Some(made) = &self.options.definitions else {
            return Ok((TableColumns::new(&headers, self.known.names.as_ref())?, stored));
        };
        let known = self.options.table.as_ref().map_or_else(KnownName::default, |table| KnownName {
            keyspace: table.keyspace.as_ref().map(|keyspace| keyspace.as_str()),
            table: Some(table.table.as_str()),
        });
        // A name that the host gives is not a guess: no other table is taken.
        let found = TableOf::find(made, &headers, known, known.table.is_none())?;
        let columns = found.ok_or_else(|| TableOf::not_there(made, known))?.columns;
        let tables = if known.table.is_some() { 1 } else { made.tables.len().max(1) };
        let defined: usize = made.tables.iter().map(|table| table.columns.len()).sum();
        Ok((columns, stored.saturating_mul(tables).saturating_add(defined)))
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
        let Known { statistics, packing, .. } = &mut self.known;
        let (data, map, mapper): (&mut dyn Release, &mut dyn Release, &mut dyn Release) = match &mut self.rows
        {
            Some(rows) => (&mut rows.data, &mut rows.map, &mut rows.mapper),
            None => (&mut (), &mut (), &mut ()),
        };
        let parts: &mut [&mut dyn Release] =
            &mut [&mut self.old, &mut self.part, statistics, packing, &mut self.beginning, data, map, mapper];
        release_all(parts, budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cql::CqlType;
    use crate::sstable::marshal::MarshalType;
    use crate::sstable::statistics::{HeaderColumn, Stats};
    use marquetry_codecs::StandardCodecs;

    /// A reader of an SSTable of so many columns, of which all but the data is read.
    fn wide(columns: usize) -> SstableReader {
        let file = |name: &str, object| (FileName::parse(name).unwrap().unwrap(), Object(object));
        let files = [file("nb-1-big-Data.db", 0), file("nb-1-big-Statistics.db", 1)];
        let int = || MarshalType::Native(CqlType::Int);
        let column = |number: usize| HeaderColumn { name: format!("c{number:06}").into_bytes(), kind: int() };
        let header = SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: int(),
            clustering: Vec::new(),
            statics: Vec::new(),
            regulars: (0..columns).map(column).collect(),
        };
        let mut reader =
            SstableReader::new(&files, Arc::new(StandardCodecs::default()), SstableOptions::default())
                .unwrap();
        reader.todo.clear();
        reader.known.statistics = Some(Statistics {
            partitioner: "Murmur3Partitioner".to_string(),
            bloom_false_positives: 0.01,
            stats: Stats::default(),
            header,
        });
        reader
    }

    #[test]
    fn a_beginning_is_charged_by_its_columns_and_released_in_slices() {
        let begun = |columns: usize| {
            let mut reader = wide(columns);
            let (mut steps, mut most, mut sum) = (0, 0, 0);
            loop {
                let mut budget = Budget::new(1);
                let step = reader.step(&mut budget).unwrap();
                (steps, most, sum) = (steps + 1, budget.spent().max(most), sum + budget.spent());
                match step {
                    Step::Yield => {}
                    Step::Need(_) => break,
                    other => panic!("{other:?}"),
                }
            }
            assert!(reader.known.statistics.is_none());
            (reader, steps, most, sum)
        };
        let (mut reader, steps, most, sum) = begun(100_000);
        let leaves = reader.schema().unwrap().leaves();
        // The key and the columns, and the group of the mapping.
        assert!((100_001..100_020).contains(&leaves.len()), "{}", leaves.len());
        assert!(reader.rows.as_ref().unwrap().map.is_same());
        // Pieces, and what is known from the statistics released column by column.
        assert!(steps > 100_000 && most < sum / 2, "{steps} steps of {most} of {sum} units at most");
        let (_, _, of_few, _) = begun(1000);
        assert!((90 * of_few..=110 * of_few).contains(&most), "{of_few} and {most} units");
        let mut calls = 0;
        loop {
            let mut budget = Budget::new(1);
            let is_done = reader.release(&mut budget);
            assert!(budget.spent() < 2_000_000, "{} units", budget.spent());
            calls += 1;
            if is_done {
                break;
            }
        }
        assert!(calls > 100_000, "{calls}");
    }
}
