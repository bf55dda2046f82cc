//! Rows as writes: merged as an SSTable a row would be; and imported by a real Cassandra, which answers with the same rows.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use marquetry_base::{Budget, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, Layout, Values};
use marquetry_parquet::schema::Schema;
use marquetry_scylla::bridge::mutations::{MapStep, Mapper, MapperOptions, MutationMapping};
use marquetry_scylla::bridge::writes::{RowAssembler, RowEncoder, RowRecords, RowStamp};
use marquetry_scylla::bridge::{Mapping, MappingOptions, NullElements};
use marquetry_scylla::cql::{Definitions, TableDef, TableName, TypeDef};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{Expiry, MutationBatch};
use marquetry_scylla::sstable::compression_info::Compressor;
use marquetry_scylla::sstable::merge::{MergeOptions, Ties};

use crate::PLAIN;
use crate::fixtures::{Tables, open};
use crate::merged;
use crate::random::Random;
use crate::read::read;
use crate::real::{Server, UNCOMPACTED, statement};
use crate::writing::{options as of_version, write};

const MIXED: &str = "(pk int, ck1 int, ck2 text, s int static, sm map<text, int> static, a int, b text, l list<int>, m map<text, int>, \
     n set<int>, u ut, f frozen<list<int>>, t tuple<int, text>, PRIMARY KEY (pk, ck1, ck2)) WITH CLUSTERING ORDER BY (ck1 DESC, ck2 ASC)";

fn defined() -> (TableDef, Vec<TypeDef>) {
    let text = format!("CREATE TYPE imp.ut (x int, y text); CREATE TABLE imp.mixed {MIXED};");
    let mut made = Definitions::parse(&text).expect("definitions");
    (made.tables.remove(0), made.types)
}

/// What a SELECT returns of writes, as rows of Parquet.
fn logical(columns: &Arc<TableColumns>, writes: Vec<MutationBatch>) -> (Arc<Schema>, Vec<Batch>) {
    let mapper = Mapper::new(MutationMapping::Logical, Arc::clone(columns), &MapperOptions::default());
    let mut mapper = mapper.expect("a mapping");
    let (mut writes, mut made) = (writes.into_iter(), Vec::new());
    loop {
        match mapper.step(&mut Budget::default()).expect("rows") {
            MapStep::Ready(batch) => made.push(spaced(batch)),
            MapStep::Need => match writes.next() {
                Some(batch) => mapper.feed(batch).expect("a batch"),
                None => mapper.finish(),
            },
            MapStep::Done => return (Arc::clone(mapper.schema()), made),
            _ => {}
        }
    }
}

/// The batch with slots for the nulls of its flat columns, which have numbers and text.
fn spaced(mut batch: Batch) -> Batch {
    for column in batch.columns.iter_mut().filter(|column| column.levels.is_none()) {
        column.layout = Layout::Spaced;
        let Some(validity) = column.validity.as_ref().filter(|_| column.nulls > 0) else { continue };
        column.values = match &column.values {
            Values::Int32(values) => {
                let mut next = values.iter().copied();
                let slot = |is_there| if is_there { next.next().unwrap_or_default() } else { 0 };
                validity.iter().map(slot).collect::<Vec<i32>>().into()
            }
            Values::ByteArray(values) => {
                let mut next = values.iter();
                let slot = |is_there| if is_there { next.next().unwrap_or_default() } else { &[][..] };
                let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
                for value in validity.iter().map(slot) {
                    bytes.extend_from_slice(value);
                    lengths.push(value.len());
                }
                Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths).unwrap())
            }
            other => panic!("{other:?}"),
        };
    }
    batch
}

/// Makes writes of rows.
struct Rows {
    mapping: Mapping,
    encoder: RowEncoder,
}

impl Rows {
    fn new(schema: &Arc<Schema>, options: &MappingOptions, table: (&TableDef, &[TypeDef])) -> Rows {
        let mapping = Mapping::new(schema, table.0.table.clone(), options).expect("a mapping");
        let encoder = RowEncoder::new(&mapping, Some(table)).expect("an encoder");
        Rows { mapping, encoder }
    }

    fn add(&mut self, batch: &Batch, row: usize, stamp: RowStamp, to: &mut RowRecords) -> Result<()> {
        let batch = self.mapping.assemble(batch.clone())?;
        self.encoder.add(&mut self.mapping.bind(&batch, 0)?, row, stamp, to)
    }

    fn assembled(&self, records: &mut RowRecords, now_s: u32) -> Vec<MutationBatch> {
        let batch = records.take().expect("records");
        let mut all: Vec<(&[u8], &[u8])> = RowRecords::of(&batch).expect("records").collect();
        all.sort_by_key(|(key, _)| *key);
        let mut assembler = RowAssembler::new(self.encoder.columns(), now_s).expect("an assembler");
        // Rows of one key may be in several parts.
        for part in all.chunks(3) {
            assembler.push(part.iter().copied()).expect("in order");
        }
        assembler.finish().expect("the end");
        std::iter::from_fn(|| assembler.take_ready()).collect()
    }
}

/// Rows with much at the same place and time: all in one SSTable, and each in one of its own, which are merged.
#[test]
fn rows_of_one_key_are_what_sstables_of_them_merge_to() {
    let columns = crate::form::table(false);
    let (table, types) = columns.definition(&TableName::parse("ks.t").expect("a name")).expect("a table");
    let shape = Tables::new(&columns);
    let mut merge = MergeOptions::default();
    merge.ties = Ties::GreaterValue;
    let mut compared = 0;
    for seed in 0..400 {
        let (_, is_counter, batches) = crate::random::flush(seed);
        if is_counter {
            continue;
        }
        let mut live = merge.clone();
        live.live_at = Some(1);
        let writes = merged(&columns, vec![batches], &live, PLAIN).expect("sorted");
        let (schema, batches) = logical(&columns, writes);
        // Elements of lists have keys by their places, so lists of one time are added to, and not merged.
        let mut options = MappingOptions::default().defined_by(&table, types.clone());
        options.columns =
            Some(["pk0", "ck0", "ck1", "s", "sm", "a", "b", "m", "n", "u"].map(str::to_owned).to_vec());
        // Integers of no bytes, which only Thrift could write, are null as elements.
        options.null_elements = NullElements::Drop;
        let mut rows = Rows::new(&schema, &options, (&table, &types));
        let mut random = Random::new(seed);
        let (mut together, mut alone, mut inputs) =
            (RowRecords::default(), RowRecords::default(), Vec::new());
        for batch in &batches {
            for row in 0..batch.rows {
                // Each row some times.
                for _ in 0..random.below(4) {
                    let ttl = u32::try_from(random.below(3)).expect("small");
                    let expiry = (ttl > 0).then_some(Expiry { ttl, local_deletion: 1000 + ttl });
                    let write_time_us = i64::try_from(random.below(3)).expect("small") + 5;
                    let stamp = RowStamp { write_time_us, expiry };
                    if rows.add(batch, row, stamp, &mut together).is_err() {
                        // Of the partition there is only a static integer of no bytes, which is null here.
                        assert!(rows.add(batch, row, stamp, &mut alone).is_err() && alone.is_empty());
                        continue;
                    }
                    rows.add(batch, row, stamp, &mut alone).expect("a row");
                    inputs.push(rows.assembled(&mut alone, 1000));
                }
            }
        }
        if inputs.len() < 2 {
            continue;
        }
        compared += inputs.len();
        let found = rows.assembled(&mut together, 1000);
        let expected = merged(&columns, inputs, &merge, PLAIN).expect("sorted");
        assert_eq!(read(&found, &shape), read(&expected, &shape), "seed {seed}");
    }
    assert!(compared > 500, "{compared} rows");
}

#[test]
#[ignore = "soak: a Cassandra that imports often"]
fn rows_are_imported() {
    let Some(server) = Server::start("rows-cassandra") else { return };
    let mut cql = server.connect();
    cql.run("CREATE KEYSPACE imp WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TYPE imp.ut (x int, y text)");
    let create = |name: &str| format!("CREATE TABLE imp.{name} {MIXED} AND {UNCOMPACTED}");
    cql.run(&create("mixed"));
    let mut random = Random::new(11);
    for _ in 0..800 {
        let statement = statement(&mut random, "imp.mixed").replace("TTL 1 ", "TTL 90000 ");
        // Of the rest more is left.
        if !statement.starts_with("DELETE FROM") {
            cql.run(&statement);
        }
    }
    server.nodetool(&["flush", "imp"]);
    let found = open(&server.files("mixed"));
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    let now_s = u32::try_from(now_s).expect("before 2106");
    let mut merge = MergeOptions::default();
    (merge.live_at, merge.ties) = (Some(now_s), Ties::GreaterValue);
    let live = merged(&found.columns, found.inputs.clone(), &merge, PLAIN).expect("sorted");
    let (table, types) = defined();
    let columns = Arc::new(TableColumns::of_table(&table, &types).expect("columns"));
    let (schema, batches) = logical(&columns, live);
    let options = MappingOptions::default().defined_by(&table, types.clone());
    let mut rows = Rows::new(&schema, &options, (&table, &types));
    let all = "pk, ck1, ck2, a, b, l, m, n, u, f, t, s, sm";
    let expected = cql.run(&format!("SELECT {all} FROM imp.mixed"));
    assert!(expected.len() > 10, "{} rows", expected.len());
    for version in ["me", "nb", "oa", "da"] {
        let mut records = RowRecords::default();
        for batch in &batches {
            // In another order each time.
            let mut order: Vec<usize> = (0..batch.rows).collect();
            order.sort_by_cached_key(|_| random.next());
            let stamp = RowStamp { write_time_us: 1_700_000_000_000_000, expiry: None };
            for row in order {
                rows.add(batch, row, stamp, &mut records).expect("a row");
            }
        }
        let writes = rows.assembled(&mut records, now_s);
        let written =
            write(rows.encoder.columns(), &of_version(version, Some(Compressor::Lz4)), &writes, 150_000);
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows").join(version);
        written.expect("SSTables").create(&directory);
        let to = format!("rows_{version}");
        cql.run(&create(&to));
        let path = directory.to_string_lossy().into_owned();
        server.nodetool(&["import", "--copy-data", "--extended-verify", "imp", &to, &path]);
        assert!(cql.run(&format!("SELECT {all} FROM imp.{to}")) == expected, "{version}");
        assert!(
            cql.run(&format!("SELECT writetime(a) FROM imp.{to} WHERE pk = 0")).len() > 1,
            "rows of one partition"
        );
        // A later write wins, and a compaction of both leaves what it was.
        cql.run(&format!("INSERT INTO imp.{to} (pk, ck1, ck2, n) VALUES (77, 1, 'x', {{5}})"));
        server.nodetool(&["flush", "imp", &to]);
        server.nodetool(&["compact", "imp", &to]);
        server.nodetool(&["verify", "-e", "-f", "imp", &to]);
        cql.run(&format!("DELETE FROM imp.{to} WHERE pk = 77"));
        assert!(cql.run(&format!("SELECT {all} FROM imp.{to}")) == expected, "{version} compacted");
        println!("{to}: {} rows", expected.len());
    }
}
