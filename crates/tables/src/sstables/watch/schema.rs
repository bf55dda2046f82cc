//! The definitions of a node's tables, as its own schema tables have them: SSTables of the keyspace `system_schema`, which servers flush with each
//! change of a schema. Without them, nobody knows what key columns are called. And who the node is, of `system.local`.
//!
//! Sources: `SchemaKeyspace.java` of Cassandra 3.11 to 5.0, `schema_tables.cc` of ScyllaDB.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_io::failed;
use marquetry_parquet::batch::Value;
use marquetry_parquet::print::{Cell, Columns, InvalidUtf8};
use marquetry_parquet::schema::Meaning;
use marquetry_scylla::bridge::mutations::MutationMapping;

use super::directory::{Listed, Stamp, list};
use super::links::{Linking, Links};
use super::options::TablePattern;
use super::tables::{TableDirectory, find_tables, name_of_place};
use crate::sstables::options::{Definition, SstablesOptions};
use crate::sstables::source::Sstables;
use crate::{Cancel, Reading, ReadingOptions, Source};

/// The schema tables, as far as they are needed, and which of their columns.
const TABLES: &[(&str, &str)] = &[
    (
        "columns",
        "keyspace_name text, table_name text, column_name text, clustering_order text, kind text, position int, type text, \
         PRIMARY KEY (keyspace_name, table_name, column_name)",
    ),
    (
        "tables",
        "keyspace_name text, table_name text, flags frozen<set<text>>, id uuid, PRIMARY KEY (keyspace_name, table_name)",
    ),
    (
        "types",
        "keyspace_name text, type_name text, field_names frozen<list<text>>, field_types frozen<list<text>>, \
         PRIMARY KEY (keyspace_name, type_name)",
    ),
    (
        "views",
        "keyspace_name text, view_name text, base_table_name text, id uuid, PRIMARY KEY (keyspace_name, view_name)",
    ),
    (
        "dropped_columns",
        "keyspace_name text, table_name text, column_name text, dropped_time timestamp, \
         PRIMARY KEY (keyspace_name, table_name, column_name)",
    ),
];

/// The table in which a node says who it is.
const LOCAL: (&str, &str) = ("local", "key text PRIMARY KEY, host_id uuid");

/// How often it is tried to read what changes meanwhile.
const TRIES: usize = 5;

/// What a node's schema tables say. They are read again when they have changed.
#[derive(Debug)]
pub(super) struct NodeSchema {
    data: Vec<PathBuf>,
    links: PathBuf,
    limits: Limits,
    /// The SSTables that were read.
    of: Option<BTreeMap<PathBuf, Stamp>>,
    made: Statements,
}

/// What the schema tables come to.
#[derive(Debug, Default)]
struct Statements {
    /// The statements of each keyspace's types.
    types: BTreeMap<String, String>,
    /// Tables and views, by name: `ks.t`.
    tables: BTreeMap<String, Defined>,
}

/// A table or a view.
#[derive(Debug, PartialEq)]
struct Defined {
    /// Its identifier, in hexadecimal digits, as its directory has it.
    id: String,
    /// The statements that define it. `None`: no statement says what columns it has.
    statements: Option<String>,
}

/// What a node says of the table in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there: the statements that define it, and the types of its keyspace. `None` if there is none that could.
    Current(Option<String>),
    /// Another table has its name: it was dropped, and one was created.
    Replaced,
    /// No table has its name; or nothing says which one does.
    Unknown,
}

/// A row of a schema table: text, numbers as text, lists of texts.
type Row = Vec<Field>;

#[derive(Debug, Clone, PartialEq)]
enum Field {
    Null,
    Text(String),
    Number(i64),
    List(Vec<String>),
}

impl NodeSchema {
    /// Of data directories, in which these tables may be spread; `work` is a directory for links, which only this uses.
    pub(super) fn new(data: Vec<PathBuf>, work: PathBuf, limits: Limits) -> NodeSchema {
        NodeSchema { data, links: work, limits, of: None, made: Statements::default() }
    }

    /// What the node says of the table at a place, `ks/t-f34b…`. A name alone does not tell: a table may be dropped, and another one created.
    ///
    /// # Errors
    ///
    /// Those of its SSTables; `Io` if they change all the time.
    pub(super) fn standing(&mut self, place: &str, cancel: &Cancel) -> Result<Standing> {
        let wanted: Vec<TablePattern> = vec!["system_schema".parse()?];
        let mut tables = Vec::new();
        for data in &self.data {
            tables.extend(find_tables(data, &wanted)?.tables);
        }
        let mut is_known = false;
        for _ in 0..TRIES {
            let mut listed = Vec::new();
            let mut stamps = BTreeMap::new();
            for table in tables.iter().filter(|table| definition_of(table).is_some()) {
                let found = list(&table.path)?;
                let stays = found.sstables.iter().filter(|(_, seen)| !seen.is_leaving);
                stamps.extend(stays.map(|(stem, seen)| (table.path.join(stem), seen.stamp)));
                listed.push((table, found));
            }
            is_known = self.of.as_ref() == Some(&stamps);
            if is_known {
                break;
            }
            if let Some(rows) = self.read(&listed, cancel)? {
                self.made = Statements::of(&rows);
                (self.of, is_known) = (Some(stamps), true);
                break;
            }
        }
        if !is_known {
            return Err(Error::io("the schema tables change while they are read"));
        }
        Ok(self.made.standing(place))
    }

    /// The identifier of the node, in hexadecimal digits, as its SSTables have it: `host_id` of `system.local`, which Cassandra flushes when it is
    /// started for the first time. `None` where that table is in none of the data directories.
    ///
    /// # Errors
    ///
    /// Those of its SSTables; `Io` if they change all the time.
    pub(super) fn host(&self, cancel: &Cancel) -> Result<Option<String>> {
        let wanted: Vec<TablePattern> = vec!["system.local".parse()?];
        let mut tables = Vec::new();
        for data in &self.data {
            tables.extend(find_tables(data, &wanted)?.tables);
        }
        for _ in 0..TRIES {
            let mut listed = Vec::new();
            for table in &tables {
                listed.push((table, list(&table.path)?));
            }
            if let Some(rows) = self.read(&listed, cancel)? {
                let row = rows.get(LOCAL.0).and_then(|rows| rows.first());
                return Ok(row.map(|row| text(row, 1).to_owned()).filter(|id| !id.is_empty()));
            }
        }
        Err(Error::io("system.local changes while it is read"))
    }

    /// The rows of these tables, by their names. `None` if one of their SSTables went away.
    fn read(
        &self,
        listed: &[(&TableDirectory, Listed)],
        cancel: &Cancel,
    ) -> Result<Option<BTreeMap<&'static str, Vec<Row>>>> {
        self.clear()?;
        let mut folders: BTreeMap<&'static str, (&str, PathBuf)> = BTreeMap::new();
        for (number, (table, listed)) in listed.iter().enumerate() {
            let Some((name, definition)) = definition_of(table) else { continue };
            // A table in several data directories has a folder below for each: SSTables in two of them may have one name.
            let folder = self.links.join(name);
            let links = Links::or_copies(folder.join(number.to_string()));
            for seen in listed.sstables.values().filter(|seen| !seen.is_leaving) {
                match links.link(table, seen)? {
                    Linking::Done(_) => drop(folders.insert(name, (definition, folder.clone()))),
                    Linking::Gone | Linking::Taken => return Ok(None),
                }
            }
        }
        let mut all = BTreeMap::new();
        for (name, (definition, folder)) in folders {
            let definition = format!("CREATE TABLE {name} ({definition})");
            all.insert(name, rows(&folder, &definition, self.limits, cancel)?);
        }
        self.clear()?;
        Ok(Some(all))
    }

    fn clear(&self) -> Result<()> {
        match fs::remove_dir_all(&self.links) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("removed", &self.links.display().to_string(), error))
            }
            _ => Ok(()),
        }
    }
}

/// Which of the tables that are read here a directory is.
fn definition_of(table: &TableDirectory) -> Option<(&'static str, &'static str)> {
    if table.name == "system.local" {
        return Some(LOCAL);
    }
    let name = table.name.strip_prefix("system_schema.")?;
    TABLES.iter().find(|(its, _)| *its == name).copied()
}

/// The rows of the SSTables in a directory that are alive.
fn rows(folder: &Path, definition: &str, limits: Limits, cancel: &Cancel) -> Result<Vec<Row>> {
    let options = SstablesOptions {
        definition: Definition::Text(definition.to_owned()),
        mapping: MutationMapping::Logical,
        limits,
        cancel: cancel.clone(),
        ..SstablesOptions::default()
    };
    let source: Arc<dyn Source> = Arc::new(Sstables::open(folder, &options)?);
    let mut columns = Columns::new(&source.table().schema, InvalidUtf8::Error, &limits)?;
    let reading = ReadingOptions { threads: Some(1), cancel: cancel.clone(), ..ReadingOptions::default() };
    let mut reading = Reading::new(source, reading)?;
    let mut all = Vec::new();
    while let Some((_, batch)) = reading.next_batch()? {
        let read = columns.visit(&batch, |columns| -> Result<()> {
            for row in 0..columns.rows() {
                let fields = (0..columns.len()).map(|column| match columns.cell(row, column)? {
                    Cell::Null => Ok(Field::Null),
                    Cell::Value(Meaning::Uuid, Value::Bytes(id)) => {
                        Ok(Field::Text(id.iter().map(|byte| format!("{byte:02x}")).collect()))
                    }
                    Cell::Value(_, Value::Bytes(text)) => {
                        Ok(Field::Text(String::from_utf8_lossy(text).into_owned()))
                    }
                    Cell::Value(_, Value::Int32(number)) => Ok(Field::Number(number.into())),
                    Cell::Value(_, Value::Int64(number)) => Ok(Field::Number(number)),
                    Cell::Value(..) => Ok(Field::Null),
                    Cell::Nested => {
                        let mut json = Vec::new();
                        columns.json(row, column, &mut json)?;
                        Ok(Field::List(texts_of(&String::from_utf8_lossy(&json))))
                    }
                });
                all.push(fields.collect::<Result<Row>>()?);
            }
            Ok(())
        })?;
        read?;
    }
    Ok(all)
}

/// The texts of a list in JSON; names and types need no escapes but those of quotes.
fn texts_of(json: &str) -> Vec<String> {
    let (mut all, mut current, mut is_escaped) = (Vec::new(), None::<String>, false);
    for letter in json.chars() {
        match (&mut current, letter) {
            (Some(text), letter) if is_escaped => {
                text.push(letter);
                is_escaped = false;
            }
            (Some(_), '\\') => is_escaped = true,
            (Some(_), '"') => all.extend(current.take()),
            (Some(text), letter) => text.push(letter),
            (None, '"') => current = Some(String::new()),
            (None, _) => {}
        }
    }
    all
}

fn text(row: &Row, at: usize) -> &str {
    match row.get(at) {
        Some(Field::Text(text)) => text,
        _ => "",
    }
}

fn number(row: &Row, at: usize) -> i64 {
    match row.get(at) {
        Some(Field::Number(number)) => *number,
        _ => 0,
    }
}

fn texts(row: &Row, at: usize) -> &[String] {
    match row.get(at) {
        Some(Field::List(texts)) => texts,
        _ => &[],
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Statements {
    fn of(all: &BTreeMap<&'static str, Vec<Row>>) -> Statements {
        let of = |name: &str| all.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut made = Statements::default();
        for row in of("types") {
            let fields = texts(row, 2).iter().zip(texts(row, 3));
            let fields: Vec<String> = fields.map(|(name, kind)| format!("{} {kind}", quoted(name))).collect();
            let keyspace = text(row, 0);
            let (name, fields) = (quoted(text(row, 1)), fields.join(", "));
            let statement = format!("CREATE TYPE {}.{name} ({fields});\n", quoted(keyspace));
            made.types.entry(keyspace.to_owned()).or_default().push_str(&statement);
        }
        let mut columns: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
        for row in of("columns") {
            columns.entry((text(row, 0), text(row, 1))).or_default().push(row);
        }
        // Those of Thrift and of compact storage have columns that no statement says.
        let is_plain = |row: &Row| {
            let has = |flag: &str| texts(row, 2).iter().any(|its| its == flag);
            has("compound") && !has("dense") && !has("super")
        };
        for row in of("tables") {
            let (keyspace, table) = (text(row, 0), text(row, 1));
            let dropped =
                of("dropped_columns").iter().filter(|row| (text(row, 0), text(row, 1)) == (keyspace, table));
            let columns = columns.get(&(keyspace, table)).filter(|_| is_plain(row));
            let statements = columns.map(|columns| table_statement(keyspace, table, columns, dropped));
            made.add(keyspace, table, text(row, 3), statements);
        }
        for row in of("views") {
            let (keyspace, view, base) = (text(row, 0), text(row, 1), text(row, 2));
            let statements = columns.get(&(keyspace, view)).map(|columns| {
                let of_base = made.tables.get(&format!("{keyspace}.{base}"));
                let of_base = of_base.and_then(|base| base.statements.clone()).unwrap_or_default();
                format!(
                    "{of_base}CREATE MATERIALIZED VIEW {0}.{1} AS SELECT * FROM {0}.{2} WHERE x IS NOT NULL PRIMARY KEY {3};\n",
                    quoted(keyspace),
                    quoted(view),
                    quoted(base),
                    primary_key(columns)
                )
            });
            made.add(keyspace, view, text(row, 3), statements);
        }
        made
    }

    fn add(&mut self, keyspace: &str, table: &str, id: &str, statements: Option<String>) {
        self.tables.insert(format!("{keyspace}.{table}"), Defined { id: id.to_owned(), statements });
    }

    fn standing(&self, place: &str) -> Standing {
        let name = name_of_place(place);
        let keyspace = name.split('.').next().unwrap_or_default();
        let Some(defined) = self.tables.get(&name) else { return Standing::Unknown };
        if !place.rsplit_once('-').is_some_and(|(_, id)| id.eq_ignore_ascii_case(&defined.id)) {
            return Standing::Replaced;
        }
        let types = self.types.get(keyspace).map_or("", String::as_str);
        Standing::Current(defined.statements.as_ref().map(|statements| format!("{types}{statements}")))
    }
}

/// The columns of a kind, in their order.
fn of_kind<'a>(columns: &[&'a Row], kind: &str) -> Vec<&'a Row> {
    let mut all: Vec<&Row> = columns.iter().copied().filter(|row| text(row, 4) == kind).collect();
    all.sort_by_key(|row| number(row, 5));
    all
}

/// `(("p"), "c")`
fn primary_key(columns: &[&Row]) -> String {
    let names = |kind: &str| {
        let names: Vec<String> = of_kind(columns, kind).iter().map(|row| quoted(text(row, 2))).collect();
        names.join(", ")
    };
    match names("clustering") {
        clustering if clustering.is_empty() => format!("(({}))", names("partition_key")),
        clustering => format!("(({}), {clustering})", names("partition_key")),
    }
}

fn table_statement<'a>(
    keyspace: &str,
    table: &str,
    columns: &[&Row],
    dropped: impl Iterator<Item = &'a Row>,
) -> String {
    let name = format!("{}.{}", quoted(keyspace), quoted(table));
    let word = |row: &Row| if text(row, 4) == "static" { " static" } else { "" };
    let defined: Vec<String> =
        columns.iter().map(|row| format!("{} {}{}", quoted(text(row, 2)), text(row, 6), word(row))).collect();
    let clustering = of_kind(columns, "clustering");
    let order: Vec<String> =
        clustering.iter().map(|row| format!("{} {}", quoted(text(row, 2)), text(row, 3))).collect();
    let order = match order.is_empty() {
        true => String::new(),
        false => format!(" WITH CLUSTERING ORDER BY ({})", order.join(", ")),
    };
    let mut statement = format!(
        "CREATE TABLE {name} ({}, PRIMARY KEY {}){order};\n",
        defined.join(", "),
        primary_key(columns)
    );
    for row in dropped {
        // One that was added again: what was written before it was dropped is not in it.
        let Some(again) = columns.iter().find(|column| text(column, 2) == text(row, 2)) else { continue };
        let (column, micros) = (quoted(text(row, 2)), number(row, 3).saturating_mul(1000));
        statement.push_str(&format!("ALTER TABLE {name} DROP {column} USING TIMESTAMP {micros};\n"));
        statement.push_str(&format!("ALTER TABLE {name} ADD {column} {}{};\n", text(again, 6), word(again)));
    }
    statement
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_scylla::cql::Definitions;

    fn row(fields: &[&str]) -> Row {
        let field = |text: &&str| match (text.strip_prefix('['), text.parse()) {
            (Some(list), _) => Field::List(list.split('|').map(str::to_owned).collect()),
            (None, Ok(number)) => Field::Number(number),
            _ => Field::Text((*text).to_owned()),
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn statements_define_what_the_schema_tables_have() {
        let columns = |table: &str| {
            [
                row(&["ks", table, "c", "desc", "clustering", "0", "text"]),
                row(&["ks", table, "P", "none", "partition_key", "1", "int"]),
                row(&["ks", table, "a", "none", "partition_key", "0", "uuid"]),
                row(&["ks", table, "s", "none", "static", "-1", "frozen<pt>"]),
                row(&["ks", table, "v", "none", "regular", "-1", "map<text, int>"]),
            ]
        };
        let all = BTreeMap::from([
            ("columns", [columns("t"), columns("w"), columns("dense")].concat()),
            (
                "tables",
                vec![
                    row(&["ks", "t", "[compound", "aa"]),
                    row(&["ks", "dense", "[dense|compound", "bb"]),
                    row(&["ks", "x", "[compound", "cc"]),
                ],
            ),
            ("types", vec![row(&["ks", "pt", "[x|Y y", "[int|frozen<list<text>>"])]),
            ("views", vec![row(&["ks", "w", "t", "dd"])]),
            (
                "dropped_columns",
                vec![row(&["ks", "t", "v", "1700000000123"]), row(&["ks", "t", "old", "1700000000123"])],
            ),
        ]);
        let made = Statements::of(&all);
        let parsed = |place: &str| match made.standing(place) {
            Standing::Current(Some(text)) => {
                Definitions::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
            }
            other => panic!("{other:?}"),
        };
        // No statement defines the one, and nobody knows the columns of the other.
        for place in ["ks/dense-BB", "ks/x-cc"] {
            assert_eq!(made.standing(place), Standing::Current(None));
        }
        // They were dropped, and others were created; or they were dropped.
        for place in ["ks/t-a0", "ks/w-aa", "ks/dense-0b", "ks/t"] {
            assert_eq!(made.standing(place), Standing::Replaced, "{place}");
        }
        assert_eq!(made.standing("ks/u-aa"), Standing::Unknown);
        assert_eq!(made.standing("other/t-aa"), Standing::Unknown);
        let of_table = parsed("ks/t-aa");
        assert_eq!((of_table.tables.len(), of_table.types.len(), of_table.views.len()), (1, 1, 0));
        let defined = parsed("ks/w-dd");
        assert_eq!((defined.tables.len(), defined.types.len(), defined.views.len()), (1, 1, 1));
        let table = &defined.tables[0];
        let name = |at: &usize| table.columns[*at].name.as_str();
        assert_eq!(table.partition_key.iter().map(name).collect::<Vec<_>>(), ["a", "P"]);
        assert_eq!(table.clustering.iter().map(|(at, _)| name(at)).collect::<Vec<_>>(), ["c"]);
        assert_eq!(table.columns.len(), 5);
        let [dropped] = &*defined.dropped else { panic!("{:?}", defined.dropped) };
        assert_eq!((dropped.name.as_str(), dropped.timestamp), ("v", 1_700_000_000_123_000));
        assert_eq!(defined.views[0].clustering[0].as_str(), "c");
    }

    #[test]
    fn lists_of_texts() {
        assert_eq!(texts_of(r#"["a","frozen<\"Pt\">","b\\c"]"#), ["a", "frozen<\"Pt\">", "b\\c"]);
        assert!(texts_of("[]").is_empty());
    }

    #[test]
    fn without_schema_tables_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut schema =
            NodeSchema::new(vec![folder.path().to_path_buf()], folder.path().join("work"), Limits::DEFAULT);
        assert_eq!(schema.standing("ks/t-0", &Cancel::new()), Ok(Standing::Unknown));
        assert_eq!(schema.host(&Cancel::new()), Ok(None));
    }
}
