//! A table as the cluster has it, compared with the one wanted.

use std::collections::{HashMap, HashSet};

use marquetry_scylla::cql::{ColumnDef, CqlType, Name, Order, TableDef, TableName, TypeDef};
use scylla::client::session::Session;
use scylla::statement::{Consistency, Statement};
use scylla::value::{CqlTimestamp, CqlValue};

use crate::error::{Difference, Differing, Error, Item, Result};

/// A column's row of `system_schema.columns`: name, kind, position, order, type.
type ColumnRow = (String, String, i32, String, String);

const PURPOSE: &str = "describe its schema";

/// Reads a table's definition. `None`: the keyspace has no such table.
pub(crate) async fn read(session: &Session, table: &TableName) -> Result<Option<TableDef>> {
    let Some(keyspace) = &table.keyspace else {
        return Err(Error::Internal("a table's keyspace is not known"));
    };
    let names = (keyspace.as_str(), table.table.as_str());
    let rows: Vec<ColumnRow> = query(
        session,
        "SELECT column_name, kind, position, clustering_order, type FROM system_schema.columns \
         WHERE keyspace_name = ? AND table_name = ?",
        names,
    )
    .await?;
    if !rows.is_empty() {
        return table_of(table, rows).map(Some);
    }
    let keyspaces: Vec<(String,)> = query(
        session,
        "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?",
        (names.0,),
    )
    .await?;
    if keyspaces.is_empty() { Err(Error::NoKeyspace(keyspace.clone())) } else { Ok(None) }
}

/// Reads what the cluster knows a table by.
pub(crate) async fn read_id(session: &Session, table: &TableName) -> Result<String> {
    let keyspace = table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
    let rows: Vec<(CqlValue,)> = query(
        session,
        "SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
        (keyspace, table.table.as_str()),
    )
    .await?;
    match rows.into_iter().next() {
        Some((CqlValue::Uuid(id),)) => Ok(id.to_string()),
        Some((CqlValue::Timeuuid(id),)) => Ok(id.to_string()),
        _ if is_view(session, table).await? => Err(Error::Unsupported(
            "writing to a materialized view, whose rows are made of those of its base table",
        )),
        _ => Err(Error::NoTable(table.clone())),
    }
}

/// Whether it is a materialized view, which has columns as a table has.
async fn is_view(session: &Session, table: &TableName) -> Result<bool> {
    let keyspace = table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
    let rows: Vec<(String,)> = query(
        session,
        "SELECT view_name FROM system_schema.views WHERE keyspace_name = ? AND view_name = ?",
        (keyspace, table.table.as_str()),
    )
    .await?;
    Ok(!rows.is_empty())
}

/// Reads a table's comment. `None`: there is no such table.
pub(crate) async fn read_comment(session: &Session, table: &TableName) -> Result<Option<String>> {
    let keyspace = table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
    let rows: Vec<(Option<String>,)> = query(
        session,
        "SELECT comment FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
        (keyspace, table.table.as_str()),
    )
    .await?;
    Ok(rows.into_iter().next().and_then(|(comment,)| comment))
}

/// Reads which columns a table had that were dropped, and when, in microseconds: servers show nothing that was written until then, also where
/// there is a new column of that name.
pub(crate) async fn read_dropped(session: &Session, table: &TableName) -> Result<Vec<(String, i64)>> {
    let keyspace = table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
    let rows: Vec<(String, CqlTimestamp)> = query(
        session,
        "SELECT column_name, dropped_time FROM system_schema.dropped_columns WHERE keyspace_name = ? AND table_name = ?",
        (keyspace, table.table.as_str()),
    )
    .await?;
    // The servers count in microseconds, and say milliseconds.
    Ok(rows.into_iter().map(|(name, CqlTimestamp(ms))| (name, ms.saturating_mul(1_000))).collect())
}

/// How many indexes a table has.
pub(crate) async fn count_indexes(session: &Session, table: &TableName) -> Result<usize> {
    let keyspace = table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str());
    let rows: Vec<(String,)> = query(
        session,
        "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = ?",
        (keyspace, table.table.as_str()),
    )
    .await?;
    Ok(rows.len())
}

/// A user-defined type's row of `system_schema.types`: name, names of the fields, types of the fields.
type TypeRow = (String, Vec<String>, Vec<String>);

/// The user-defined types of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// Those that are understood.
    known: Vec<TypeDef>,
    /// The names of the others, and what is not understood: it matters to those who use them.
    odd: Vec<(String, String)>,
}

impl Types {
    fn of(keyspace: &Name, rows: Vec<TypeRow>) -> Types {
        let mut types = Types::default();
        for row in rows {
            let name = row.0.clone();
            match type_of(keyspace, row) {
                Ok(known) => types.known.push(known),
                Err(reason) => types.odd.push((name, reason)),
            }
        }
        types
    }

    /// Those that are understood.
    pub(crate) fn into_known(self) -> Vec<TypeDef> {
        self.known
    }

    /// Those that are understood, if all that a table's columns are made of are among them.
    ///
    /// # Errors
    ///
    /// What is not understood of one that they need.
    pub(crate) fn of_table(self, table: &TableDef) -> Result<Vec<TypeDef>> {
        let odd = table.columns.iter().find_map(|column| self.odd_in(&column.cql_type, &mut HashSet::new()));
        match odd.map(not_understood) {
            Some(error) => Err(error),
            None => Ok(self.known),
        }
    }

    /// Those that are understood, if those that are to be used are among them or are not there.
    ///
    /// # Errors
    ///
    /// What is not understood of one that is to be used.
    pub(crate) fn with(self, wanted: &[TypeDef]) -> Result<Vec<TypeDef>> {
        match self.odd.iter().find(|(name, _)| wanted.iter().any(|it| it.name.as_str() == name)) {
            Some(odd) => Err(not_understood(odd)),
            None => Ok(self.known),
        }
    }

    /// A type that is not understood, of those that values of a type have; `seen` are those that were looked at.
    fn odd_in<'a>(&'a self, of: &'a CqlType, seen: &mut HashSet<&'a Name>) -> Option<&'a (String, String)> {
        match of {
            CqlType::List(inner)
            | CqlType::Set(inner)
            | CqlType::Frozen(inner)
            | CqlType::Vector(inner, _) => self.odd_in(inner, seen),
            CqlType::Map(key, value) => self.odd_in(key, seen).or_else(|| self.odd_in(value, seen)),
            CqlType::Tuple(members) => members.iter().find_map(|member| self.odd_in(member, seen)),
            CqlType::Udt { name, .. } if seen.insert(name) => {
                let odd = self.odd.iter().find(|(odd, _)| odd == name.as_str());
                odd.or_else(|| {
                    let known = self.known.iter().find(|it| it.name == *name)?;
                    known.fields.iter().find_map(|(_, field)| self.odd_in(field, seen))
                })
            }
            _ => None,
        }
    }
}

fn not_understood((name, reason): &(String, String)) -> Error {
    Error::Answer { purpose: PURPOSE, reason: format!("the type {name:?}, which is needed: {reason}") }
}

/// Reads the user-defined types of a table's keyspace.
pub(crate) async fn read_types(session: &Session, table: &TableName) -> Result<Types> {
    let Some(keyspace) = &table.keyspace else {
        return Err(Error::Internal("a table's keyspace is not known"));
    };
    let rows: Vec<TypeRow> = query(
        session,
        "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = ?",
        (keyspace.as_str(),),
    )
    .await?;
    Ok(Types::of(keyspace, rows))
}

/// Compares user-defined types that are to be used with those that are there, by name: which of them are there with other
/// fields, or the same in another order.
pub(crate) fn compare_types(existing: &[TypeDef], wanted: &[TypeDef]) -> Vec<Differing> {
    let has: HashMap<&Name, &TypeDef> = existing.iter().map(|it| (&it.name, it)).collect();
    wanted
        .iter()
        .filter_map(|wanted| {
            let differences = compare_fields(has.get(&wanted.name)?, wanted);
            let item = Item::Type(wanted.name.clone());
            (!differences.is_empty()).then_some(Differing { item, differences })
        })
        .collect()
}

fn compare_fields(existing: &TypeDef, wanted: &TypeDef) -> Vec<Difference> {
    let has: HashMap<&Name, &CqlType> = existing.fields.iter().map(|(name, it)| (name, it)).collect();
    let mut differences = Vec::new();
    for (name, wanted) in &wanted.fields {
        match has.get(name) {
            None => differences.push(Difference::MissingField(name.clone())),
            Some(there) if !same_field_type(there, wanted) => {
                let (table, wanted) = ((*there).clone(), wanted.clone());
                differences.push(Difference::Type { name: name.clone(), table, wanted });
            }
            Some(_) => {}
        }
    }
    let wants: HashSet<&Name> = wanted.fields.iter().map(|(name, _)| name).collect();
    let extra = existing.fields.iter().filter(|(name, _)| !wants.contains(name));
    differences.extend(extra.map(|(name, _)| Difference::ExtraField(name.clone())));
    if differences.is_empty() {
        let names = |it: &TypeDef| it.fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let (existing, wanted) = (names(existing), names(wanted));
        differences.extend((existing != wanted).then_some(Difference::Order { existing, wanted }));
    }
    differences
}

/// Compares an existing table with the one wanted: columns by name, in any order, types, statics, and the key.
pub(crate) fn compare(existing: &TableDef, wanted: &TableDef) -> Vec<Difference> {
    let has = by_name(&existing.columns);
    let mut differences = Vec::new();
    for column in &wanted.columns {
        let name = || column.name.clone();
        let Some(there) = has.get(&column.name) else {
            differences.push(Difference::Missing(name()));
            continue;
        };
        if !same_type(&there.cql_type, &column.cql_type) {
            let (table, wanted) = (there.cql_type.clone(), column.cql_type.clone());
            differences.push(Difference::Type { name: name(), table, wanted });
        }
        if there.is_static != column.is_static {
            differences.push(Difference::Static(name()));
        }
    }
    let wants = by_name(&wanted.columns);
    let extra = existing.columns.iter().filter(|column| !wants.contains_key(&column.name));
    differences.extend(extra.map(|column| Difference::Extra(column.name.clone())));
    let (table, wanted) = (key_text(existing), key_text(wanted));
    differences.extend((table != wanted).then_some(Difference::Key { table, wanted }));
    differences
}

fn by_name(columns: &[ColumnDef]) -> HashMap<&Name, &ColumnDef> {
    columns.iter().map(|column| (&column.name, column)).collect()
}

/// A field is frozen anyway.
fn same_field_type(one: &CqlType, other: &CqlType) -> bool {
    same_type(&one.clone().frozen(), &other.clone().frozen())
}

/// What CQL prints is the same: `frozen<…>` where it must be anyway does not count.
fn same_type(one: &CqlType, other: &CqlType) -> bool {
    one == other || one.to_string() == other.to_string()
}

fn key_text(table: &TableDef) -> String {
    let name = |at: &usize| table.columns.get(*at).map(|column| column.name.to_string()).unwrap_or_default();
    let partition: Vec<String> = table.partition_key.iter().map(name).collect();
    let mut text =
        if partition.len() == 1 { partition[0].clone() } else { format!("({})", partition.join(", ")) };
    for (at, order) in &table.clustering {
        text.push_str(", ");
        text.push_str(&name(at));
        text.push_str(if *order == Order::Descending { " DESC" } else { "" });
    }
    text
}

fn table_of(table: &TableName, rows: Vec<ColumnRow>) -> Result<TableDef> {
    let mut def = TableDef {
        table: table.clone(),
        if_not_exists: false,
        columns: Vec::with_capacity(rows.len()),
        partition_key: Vec::new(),
        clustering: Vec::new(),
        comment: None,
    };
    let mut partition_key = Vec::new();
    let mut clustering = Vec::new();
    for (at, (name, kind, position, order, cql_type)) in rows.into_iter().enumerate() {
        let nonsense = |reason: String| Error::Answer { purpose: PURPOSE, reason };
        let cql_type = CqlType::parse(&cql_type)
            .map_err(|error| nonsense(format!("the type {cql_type:?} of the column {name:?}: {error}")))?;
        let name = Name::new(&name).map_err(|error| nonsense(format!("a column's name: {error}")))?;
        match kind.as_str() {
            "partition_key" => partition_key.push((position, at)),
            "clustering" => {
                let descending = order.eq_ignore_ascii_case("desc");
                clustering.push((
                    position,
                    at,
                    if descending { Order::Descending } else { Order::Ascending },
                ));
            }
            _ => {}
        }
        def.columns.push(ColumnDef { name, cql_type, is_static: kind == "static" });
    }
    partition_key.sort_unstable();
    clustering.sort_unstable_by_key(|(position, ..)| *position);
    def.partition_key = partition_key.into_iter().map(|(_, at)| at).collect();
    def.clustering = clustering.into_iter().map(|(_, at, order)| (at, order)).collect();
    Ok(def)
}

/// A type as it is listed, or what is not understood of it.
fn type_of(keyspace: &Name, (name, names, types): TypeRow) -> Result<TypeDef, String> {
    if names.len() != types.len() {
        return Err("it has not as many names as types of fields".to_owned());
    }
    let fields = names.iter().zip(types).map(|(field, cql_type)| {
        let cql_type = CqlType::parse(&cql_type)
            .map_err(|error| format!("the type {cql_type:?} of the field {field:?}: {error}"))?;
        let field = Name::new(field).map_err(|error| format!("a field's name: {error}"))?;
        Ok((field, cql_type))
    });
    let fields = fields.collect::<Result<_, String>>()?;
    let name = Name::new(&name).map_err(|error| format!("its name: {error}"))?;
    Ok(TypeDef { keyspace: Some(keyspace.clone()), name, if_not_exists: false, fields })
}

pub(crate) async fn query<R>(
    session: &Session,
    text: &str,
    values: impl scylla::serialize::row::SerializeRow,
) -> Result<Vec<R>>
where
    R: for<'frame, 'metadata> scylla::deserialize::row::DeserializeRow<'frame, 'metadata>,
{
    let mut statement = Statement::new(text);
    // The system tables are each node's own.
    statement.set_consistency(Consistency::One);
    statement.set_is_idempotent(true);
    let nonsense =
        |error: &dyn std::error::Error| Error::Answer { purpose: PURPOSE, reason: error.to_string() };
    let answer = session
        .query_unpaged(statement, values)
        .await
        .map_err(|error| Error::Statement { purpose: PURPOSE, reason: Box::new(error) })?
        .into_rows_result()
        .map_err(|error| nonsense(&error))?;
    let rows = answer.rows::<R>().map_err(|error| nonsense(&error))?;
    rows.collect::<Result<Vec<R>, _>>().map_err(|error| nonsense(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn said(differences: &[Difference]) -> String {
        differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// As the schema tables tell it: columns by name, positions in the key anywhere.
    fn existing(rows: &[(&str, &str, i32, &str, &str)]) -> TableDef {
        let rows = rows
            .iter()
            .map(|(name, kind, position, order, cql_type)| {
                (
                    (*name).to_owned(),
                    (*kind).to_owned(),
                    *position,
                    (*order).to_owned(),
                    (*cql_type).to_owned(),
                )
            })
            .collect();
        table_of(&TableName::parse("k.t").unwrap(), rows).unwrap()
    }

    fn flights() -> TableDef {
        existing(&[
            ("b", "partition_key", 1, "none", "text"),
            ("a", "partition_key", 0, "none", "int"),
            ("d", "clustering", 1, "desc", "date"),
            ("C", "clustering", 0, "asc", "varchar"),
            ("s", "static", -1, "none", "frozen<list<int>>"),
            ("v", "regular", -1, "none", "bigint"),
        ])
    }

    #[test]
    fn the_schema_tables_are_understood() {
        let table = flights();
        assert_eq!(table.check(), Ok(()));
        assert!(
            table.to_string().contains(
                "s frozen<list<int>> STATIC,\n    v bigint,\n    PRIMARY KEY ((a, b), \"C\", d)\n) WITH CLUSTERING ORDER \
                 BY (\"C\" ASC, d DESC)"
            ),
            "{table}"
        );
        let rows = vec![("x".to_owned(), "regular".to_owned(), -1, "none".to_owned(), "int<".to_owned())];
        let error = table_of(&TableName::parse("k.t").unwrap(), rows).unwrap_err();
        assert!(matches!(error, Error::Answer { .. }), "{error}");
    }

    #[test]
    fn differences() {
        let table = flights();
        let mut wanted = table.clone();
        wanted.columns.reverse();
        let last = wanted.columns.len() - 1;
        wanted.partition_key.iter_mut().for_each(|at| *at = last - *at);
        wanted.clustering.iter_mut().for_each(|(at, _)| *at = last - *at);
        wanted.comment = Some("another".to_owned());
        assert_eq!(compare(&table, &wanted), [], "the order of columns is nothing");

        let changed = |change: &dyn Fn(&mut TableDef)| {
            let mut wanted = table.clone();
            change(&mut wanted);
            said(&compare(&table, &wanted))
        };
        assert_eq!(changed(&|table| table.columns[5].name = name("w")), "missing column w; extra column v");
        assert_eq!(changed(&|table| table.columns.truncate(5)), "extra column v");
        assert_eq!(changed(&|table| table.columns[5].cql_type = CqlType::Int), "v is bigint, expected int");
        assert_eq!(changed(&|table| table.columns[4].is_static = false), "s is static in only one of them");
        let is = "PRIMARY KEY is ((a, b), \"C\", d DESC), expected";
        assert_eq!(changed(&|table| table.partition_key.reverse()), format!("{is} ((b, a), \"C\", d DESC)"));
        assert_eq!(changed(&|table| table.clustering.truncate(1)), format!("{is} ((a, b), \"C\")"));
        assert_eq!(
            changed(&|table| table.clustering[1].1 = Order::Ascending),
            format!("{is} ((a, b), \"C\", d)")
        );
    }

    fn point(fields: &[(&str, &str)]) -> TypeDef {
        let (names, types) = fields.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned())).unzip();
        type_of(&name("k"), ("Point".to_owned(), names, types)).unwrap()
    }

    #[test]
    fn types_are_understood_and_compared() {
        let there = point(&[("x", "int"), ("Y", "frozen<list<frozen<\"Other\">>>"), ("z", "varchar")]);
        assert_eq!(
            there.to_string(),
            "CREATE TYPE k.\"Point\" (\n    x int,\n    \"Y\" frozen<list<frozen<\"Other\">>>,\n    z text\n);\n"
        );
        let difference = |fields: &[(&str, &str)]| {
            let found = compare_types(&[point(&[("a", "int")]), there.clone()], &[point(fields)]);
            found.iter().map(ToString::to_string).collect::<String>()
        };
        // Of two types of one name the later counts here; a server has one. What is frozen anyway is the same.
        assert_eq!(difference(&[("x", "int"), ("Y", "list<\"Other\">"), ("z", "text")]), "");
        let prefix = "the type \"Point\" exists with a different definition: ";
        let rest = [("Y", "list<\"Other\">"), ("z", "text")];
        assert_eq!(
            difference(&[&[("x", "bigint")], &rest[..]].concat()),
            format!("{prefix}x is int, expected bigint")
        );
        assert_eq!(difference(&rest), format!("{prefix}extra field x"));
        assert_eq!(
            difference(&[&rest[..1], &[("w", "int"), ("z", "int")]].concat()),
            format!("{prefix}missing field w; z is text, expected int; extra field x")
        );
        let order = format!("{prefix}its fields are ordered x, \"Y\", z, expected \"Y\", z, x");
        assert_eq!(difference(&[&rest[..], &[("x", "int")]].concat()), order);
        // One that is not there is to be made.
        assert_eq!(compare_types(&[], &[there]), []);
        for (names, types) in
            [(vec!["a".to_owned()], vec![]), (vec!["a".to_owned()], vec!["int<".to_owned()])]
        {
            type_of(&name("k"), ("p".to_owned(), names, types)).unwrap_err();
        }
    }

    /// What is not understood ends nothing but what needs it, however deep that is.
    #[test]
    fn odd_types_matter_to_those_who_use_them() {
        let row = |name: &str, kind: &str| (name.to_owned(), vec!["a".to_owned()], vec![kind.to_owned()]);
        let types = || {
            let rows = vec![
                row("odd", "'org.apache.cassandra.db.marshal.LexicalUUIDType'"),
                row("fine", "int"),
                row("outer", "frozen<map<text, frozen<middle>>>"),
                row("middle", "frozen<list<frozen<odd>>>"),
            ];
            Types::of(&name("k"), rows)
        };
        let table = |kind: &str| {
            existing(&[("p", "partition_key", 0, "none", "int"), ("v", "regular", -1, "none", kind)])
        };
        for kind in ["int", "fine", "list<frozen<tuple<int, frozen<fine>>>>"] {
            let known = types().of_table(&table(kind)).unwrap();
            assert_eq!(known.len(), 3, "{kind}");
        }
        for kind in ["odd", "set<frozen<outer>>", "frozen<tuple<fine, middle>>", "vector<frozen<odd>, 2>"] {
            let error = types().of_table(&table(kind)).unwrap_err().to_string();
            assert!(
                error.contains("the type \"odd\", which is needed: ") && error.contains("LexicalUUIDType"),
                "{error}"
            );
        }
        let wanted = |name: &str| {
            let made = type_of(&self::name("k"), row(name, "int")).unwrap();
            types().with(&[made]).map(|known| known.len())
        };
        assert_eq!((wanted("fine").unwrap(), wanted("absent").unwrap()), (3, 3));
        assert!(wanted("odd").unwrap_err().to_string().contains("LexicalUUIDType"));
    }
}
