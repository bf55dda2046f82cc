//! What a table has besides columns, key and types, by the statements that made the source's: options and indexes.

use marquetry_scylla::cql::{CqlType, Definitions, IndexDef, TableDef, TableName, TableOptions};
use marquetry_tables::{TABLE_SCHEMA_KEY, Table};

use crate::schema;

/// The options and the indexes of a source's table.
#[derive(Debug)]
pub(crate) struct MadeLike {
    table: TableDef,
    options: TableOptions,
    indexes: Vec<IndexDef>,
}

/// Options with the values that servers give them unless somebody says otherwise, and that `DESCRIBE` prints all the same. They are not said again: not every server
/// knows each of them, and each has such a value for those that it knows. Sources: `TableParams.java` of Cassandra 3.11 to 5.0, `schema.cc` of ScyllaDB.
const USUAL: [(&str, &[&str]); 19] = [
    ("additional_write_policy", &["'99p'"]),
    ("allow_auto_snapshot", &["true"]),
    ("caching", &["{'keys':'ALL','rows_per_partition':'NONE'}"]),
    ("cdc", &["false", "null", "{'enabled':'false'}"]),
    ("comment", &["''"]),
    ("crc_check_chance", &["1.0", "1"]),
    ("dclocal_read_repair_chance", &["0.1", "0.0", "0"]),
    ("default_time_to_live", &["0"]),
    ("extensions", &["{}"]),
    ("gc_grace_seconds", &["864000"]),
    ("incremental_backups", &["true"]),
    ("max_index_interval", &["2048"]),
    ("memtable", &["'default'"]),
    ("memtable_flush_period_in_ms", &["0"]),
    ("min_index_interval", &["128"]),
    ("paxos_grace_seconds", &["864000"]),
    ("read_repair", &["'BLOCKING'"]),
    ("read_repair_chance", &["0.0", "0"]),
    ("speculative_retry", &["'99p'", "'99PERCENTILE'", "'99.0PERCENTILE'"]),
];

/// Options that say how a table is stored: whatever they are, the same is in it, and the same can be asked.
const OF_STORAGE: [&str; 3] = ["bloom_filter_fp_chance", "compaction", "compression"];

impl MadeLike {
    /// What the statements say that a source has: `None` if it has none, and why not if they say nothing of one table.
    pub(crate) fn of(source: &Table) -> Option<Result<MadeLike, &'static str>> {
        let value = source.key_values.iter().find(|it| it.key == TABLE_SCHEMA_KEY)?.value.as_ref()?;
        Some(MadeLike::said(value))
    }

    fn said(statements: &[u8]) -> Result<MadeLike, &'static str> {
        let text = std::str::from_utf8(statements).map_err(|_| "are no text")?;
        let Definitions { tables, options, indexes, .. } =
            Definitions::parse(text).map_err(|_| "are not understood")?;
        let made = (<[TableDef; 1]>::try_from(tables), <[TableOptions; 1]>::try_from(options));
        let (Ok([table]), Ok([options])) = made else {
            return Err("do not make one table; a view's do not");
        };
        let indexes = indexes.into_iter().filter(|index| index.is_of(&table.table)).collect();
        Ok(MadeLike { table, options, indexes })
    }

    /// Whether a table has the columns, the key and the types of the statement's.
    pub(crate) fn fits(&self, wanted: &TableDef) -> bool {
        let [made, wanted] = [&self.table, wanted].map(|table| {
            let mut table = table.clone();
            table.columns.iter_mut().for_each(|column| unqualify(&mut column.cql_type));
            table
        });
        schema::compare(&made, &wanted).is_empty()
    }

    /// The options that are not as usual, each with its name and as it is written.
    pub(crate) fn properties(&self) -> Vec<(String, String)> {
        let mut properties = self.options.properties();
        properties.retain(|(name, text)| !is_usual(name, text));
        properties
    }

    /// Whether its table has this comment.
    pub(crate) fn has_comment(&self, comment: &str) -> bool {
        let quoted = format!("'{}'", comment.replace('\'', "''"));
        let is_it = |(name, text): &(String, String)| {
            name == "comment" && text.split_once('=').is_some_and(|(_, value)| value.trim() == quoted)
        };
        self.options.properties().iter().any(is_it)
    }

    /// The statements of the indexes, for a table that may have another name.
    pub(crate) fn indexes(&self, table: &TableName) -> Vec<String> {
        self.indexes.iter().map(|index| index.statement(table)).collect()
    }

    /// Seconds after which rows expire whose writes say nothing else; 0: never.
    pub(crate) fn default_ttl_s(&self) -> u32 {
        self.options.default_ttl_s
    }

    /// What a table with the columns and the key alone does not have, in words; but for how servers store it, of which they always say something.
    pub(crate) fn in_words(&self) -> Option<String> {
        let options = self.properties().into_iter().filter(|(name, _)| !OF_STORAGE.contains(&&**name));
        let mut what: Vec<String> = options.map(|(_, text)| text).collect();
        if !self.indexes.is_empty() {
            what.push("indexes".to_owned());
        }
        let last = what.pop()?;
        let what = if what.is_empty() { last } else { format!("{} and {last}", what.join(", ")) };
        let which = "which the source's table has, because its columns or its key are others: all of its options are in its statements (schema.cql, or \
                     marquetry.table.schema in a file)";
        Some(format!("{what}, {which}"))
    }
}

/// Leaves out the keyspaces of user-defined types: they are in their table's, as snapshots say and `DESCRIBE` does not.
fn unqualify(cql_type: &mut CqlType) {
    match cql_type {
        CqlType::List(inner) | CqlType::Set(inner) | CqlType::Frozen(inner) | CqlType::Vector(inner, _) => {
            unqualify(inner);
        }
        CqlType::Map(key, value) => {
            unqualify(key);
            unqualify(value);
        }
        CqlType::Tuple(members) => members.iter_mut().for_each(unqualify),
        CqlType::Udt { keyspace, .. } => *keyspace = None,
        _ => {}
    }
}

/// Whether an option, as it is written, has a value that it has anyway.
fn is_usual(name: &str, text: &str) -> bool {
    let value: String =
        text.split_once('=').map_or("", |(_, value)| value).chars().filter(|c| !c.is_whitespace()).collect();
    USUAL.iter().any(|(option, values)| *option == name && values.contains(&&*value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use marquetry_parquet::format::KeyValue;
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};

    use super::*;

    fn source(statements: &str) -> Table {
        let schema =
            Schema::of_fields(&[FieldDef::new("k", FieldType::Leaf(PhysicalType::Int32, None))]).unwrap();
        let mut table = Table::new("rows", Arc::new(schema));
        let value = Some(statements.as_bytes().to_vec().into());
        table.key_values = vec![KeyValue { key: TABLE_SCHEMA_KEY.to_owned(), value }];
        table
    }

    fn like(statements: &str) -> MadeLike {
        MadeLike::of(&source(statements)).unwrap().unwrap()
    }

    /// As Cassandra 5.0 describes a table of which four options were given.
    const DESCRIBED: &str = "CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)
        AND additional_write_policy = '99p' AND allow_auto_snapshot = true AND bloom_filter_fp_chance = 0.1
        AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'} AND cdc = false AND comment = 'a = b AND c'
        AND compaction = {'class': 'org.apache.cassandra.db.compaction.LeveledCompactionStrategy', 'sstable_size_in_mb': '160'}
        AND compression = {'chunk_length_in_kb': '16', 'class': 'org.apache.cassandra.io.compress.LZ4Compressor'}
        AND memtable = 'default' AND crc_check_chance = 1.0 AND default_time_to_live = 86400 AND extensions = {}
        AND gc_grace_seconds = 864000 AND incremental_backups = true AND max_index_interval = 2048
        AND memtable_flush_period_in_ms = 0 AND min_index_interval = 128 AND read_repair = 'BLOCKING' AND speculative_retry = '99p';
        CREATE CUSTOM INDEX t_v ON k.t (v) USING 'sai';";

    #[test]
    fn options_that_were_given_are_kept() {
        let like = like(DESCRIBED);
        let properties = like.properties();
        let names: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["bloom_filter_fp_chance", "comment", "compaction", "compression", "default_time_to_live"]
        );
        assert_eq!(properties[1].1, "comment = 'a = b AND c'");
        assert!(like.has_comment("a = b AND c") && !like.has_comment("a = b") && !like.has_comment(""));
        assert_eq!(like.default_ttl_s(), 86_400);
        let table = |name: &str| TableName::parse(name).unwrap();
        assert_eq!(
            like.indexes(&table("j.t")),
            ["CREATE CUSTOM INDEX IF NOT EXISTS t_v ON j.t (v) USING 'sai';"]
        );
        assert_eq!(
            like.indexes(&table("k.u")),
            ["CREATE CUSTOM INDEX IF NOT EXISTS ON k.u (v) USING 'sai';"]
        );
    }

    #[test]
    fn only_a_table_of_these_columns_is_like_it() {
        let fits = |wanted: &str| like(DESCRIBED).fits(&Definitions::parse(wanted).unwrap().tables[0]);
        let order = "WITH CLUSTERING ORDER BY (c DESC)";
        assert!(fits(&format!("CREATE TABLE j.u (v text, k int, c int, PRIMARY KEY (k, c)) {order}")));
        assert!(!fits("CREATE TABLE k.t (k int, c int, v text, PRIMARY KEY (k, c))"));
        assert!(!fits(&format!("CREATE TABLE k.t (k int, c int, PRIMARY KEY (k, c)) {order}")));
        assert!(!fits(&format!("CREATE TABLE k.t (k int, c bigint, v text, PRIMARY KEY (k, c)) {order}")));
        let typed = |kind: &str| {
            format!("CREATE TABLE k.t (k int PRIMARY KEY, v map<text, frozen<tuple<int, {kind}>>>)")
        };
        let wanted = Definitions::parse(&typed("frozen<u>")).unwrap().tables.remove(0);
        assert!(like(&typed("frozen<k.u>")).fits(&wanted) && !like(&typed("frozen<k.w>")).fits(&wanted));
        for other in [
            "",
            "CREATE TABLE (",
            "CREATE TABLE k.t (k int PRIMARY KEY); CREATE TABLE k.u (k int PRIMARY KEY);",
        ] {
            assert!(MadeLike::of(&source(other)).unwrap().is_err(), "{other}");
        }
    }

    #[test]
    fn what_another_table_lacks_is_said() {
        let of = |statements: &str| like(statements).in_words();
        let table = "CREATE TABLE k.t (k int, c int, PRIMARY KEY (k, c))";
        assert_eq!(of(&format!("{table};")), None);
        assert_eq!(
            of(&format!("{table} WITH CLUSTERING ORDER BY (c DESC) AND default_time_to_live = 0;")),
            None
        );
        let said =
            of(&format!("{table} WITH gc_grace_seconds = 7 AND default_time_to_live = 86400;")).unwrap();
        let begins = "gc_grace_seconds = 7 and default_time_to_live = 86400, which the source's table has";
        assert!(said.starts_with(begins), "{said}");
        assert!(!said.contains("indexes"), "{said}");
        assert!(of(&format!("{table} WITH cdc = true;")).unwrap().starts_with("cdc = true, which"));
        let said = of(DESCRIBED).unwrap();
        let begins = "comment = 'a = b AND c', default_time_to_live = 86400 and indexes, which";
        assert!(said.starts_with(begins), "{said}");
        let said = of(&format!("{table};\nCREATE CUSTOM INDEX i ON k.t (c) USING 'x';")).unwrap();
        assert!(said.starts_with("indexes, which"), "{said}");
    }

    #[test]
    fn usual_options_are_in_order() {
        assert!(USUAL.is_sorted_by_key(|(name, _)| *name));
    }
}
