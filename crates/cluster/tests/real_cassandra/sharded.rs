//! Shards and tablets, **by a fake of ScyllaDB** (`marquetry_testing::Scylla`): a Cassandra behind a proxy that says it has shards.

use std::collections::BTreeSet;
use std::sync::Arc;

use marquetry_cluster::{CqlOptions, CqlSource, CqlTable, UnloadOptions};
use marquetry_scylla::sstable::murmur3_token;
use marquetry_tables::{Reading, ReadingOptions, Source};
use marquetry_testing::Scylla;
use scylla::value::CqlValue;

use crate::made::{Made, int};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    const SHARDS: u16 = 3;
    const ROWS: i32 = 2000;
    server.run("CREATE TABLE cluster_test.sharded (k int PRIMARY KEY, v int)");
    server.run("CREATE TABLE cluster_test.tablets (table_id uuid, last_token bigint, PRIMARY KEY (table_id, last_token))");
    let id =
        "SELECT id FROM system_schema.tables WHERE keyspace_name = 'cluster_test' AND table_name = 'sharded'";
    let Some(CqlValue::Uuid(id)) = server.value(id) else { panic!("a table without an identifier") };
    let last_tokens = [-4_611_686_018_427_387_905, -1, 4_611_686_018_427_387_903, i64::MAX];
    for token in last_tokens {
        server
            .run(&format!("INSERT INTO cluster_test.tablets (table_id, last_token) VALUES ({id}, {token})"));
    }
    let fake = Scylla::before(&server.at, SHARDS, "cluster_test.tablets");
    let address = || format!("cql://{}/{KEYSPACE}.sharded", fake.at).parse().unwrap();

    // Rows go to the shards that they belong to.
    let mut options = CqlOptions::default();
    // The driver opens one connection after the other, and rows do not wait for those of all shards: the last ones are late enough.
    options.rate = "600".parse().unwrap();
    let mut table = CqlTable::new(address(), options);
    let rows = (0..ROWS).map(|row| vec![int(row), int(row)]);
    assert_eq!(Made::new(&[("k", "int"), ("v", "int")], rows).load(&mut table).1, Ok(2000));
    let all: BTreeSet<u16> = (0..SHARDS).collect();
    let is_right: Vec<bool> = fake
        .executed()
        .iter()
        .filter_map(|executed| match &executed.values[..] {
            [Some(key), Some(_)] if key.len() == 4 => {
                Some(executed.shard == fake.shard_of(murmur3_token(key)))
            }
            _ => None,
        })
        .collect();
    assert_eq!(is_right.len(), 2000);
    let right = is_right.iter().filter(|is_right| **is_right).count();
    assert!(is_right[1500..].iter().all(|is_right| *is_right), "{right} of 2000 rows went to their shards");
    // The driver has a connection to each shard, which it chose by its own port.
    let chosen: BTreeSet<u16> = fake.chosen_by_port().into_iter().collect();
    assert!(chosen.len() >= usize::from(SHARDS) - 1, "{chosen:?}");

    // Pages are asked of the shards that have the rows, by tablets.
    let before = fake.executed().len();
    let mut options = UnloadOptions::default();
    options.rate = "600".parse().unwrap();
    let source = CqlSource::open(address(), &options).unwrap();
    let ends: BTreeSet<i64> = source.pieces().iter().filter_map(|piece| Some(piece.tokens?.1)).collect();
    for token in last_tokens {
        assert!(ends.contains(&token), "no piece ends with the tablet of {token}");
    }
    let source: Arc<dyn Source> = Arc::new(source);
    let mut reading = Reading::new(source, ReadingOptions::default()).unwrap();
    let mut found = 0;
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        found += batch.rows;
    }
    assert_eq!(found, 2000);
    let mut pages = Vec::new();
    for executed in &fake.executed()[before..] {
        let [Some(after), Some(last)] = &executed.values[..] else { continue };
        if let (8, Ok(last)) = (after.len(), <[u8; 8]>::try_from(&last[..])) {
            pages.push((executed.shard, fake.shard_of(i64::from_be_bytes(last))));
        }
    }
    assert!(pages.len() >= 64, "{pages:?}");
    assert!(pages[pages.len() / 2..].iter().all(|(asked, of)| asked == of), "{pages:?}");
    let asked: BTreeSet<u16> = pages.iter().map(|(asked, _)| *asked).collect();
    assert_eq!(asked, all);
    let statements = fake.statements();
    let select = statements.iter().find(|text| text.contains("token(k) > ?")).unwrap();
    assert!(select.ends_with(" BYPASS CACHE USING TIMEOUT 60s"), "{select}");
}
