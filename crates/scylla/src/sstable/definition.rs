//! The columns of a table as `CREATE TABLE` has them, beside those that its SSTables have.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::marshal::MarshalType;
use super::statistics::{HeaderColumn, SerializationHeader};
use super::table_columns::{KeyNames, TableColumns};
use crate::cql::{ColumnDef, CqlType, Name, Order, TableDef, TypeDef};

impl TableColumns {
    /// The columns of a table by its definition: keys have their names, columns that no SSTable has are there without cells, and those
    /// that the definition lacks, because they were dropped, are [left out](TableColumns::leave_out).
    ///
    /// A table `WITH COMPACT STORAGE` and without clustering columns has its values in static columns, and hidden columns beside them: they
    /// get the names that servers have for them, `column1` and `value`.
    ///
    /// # Errors
    ///
    /// As [`TableColumns::new`]; `Misuse` where the SSTables are not of such a table, with what differs; `Unsupported` for a
    /// user-defined type that is not among `types`, in a column that no SSTable has.
    pub fn of_definition(
        headers: &[&SerializationHeader],
        table: &TableDef,
        types: &[TypeDef],
    ) -> Result<TableColumns> {
        let Some(first) = headers.first() else { return Err(Error::misuse("the columns of no SSTable")) };
        let compact = with_hidden(table, headers);
        let table = compact.as_ref().unwrap_or(table);
        let defined = Defined { table, types };
        let by_name = defined.by_name();
        for header in headers {
            defined.check(header, &by_name)?;
        }
        let own = |columns: fn(&SerializationHeader) -> &Vec<HeaderColumn>, is_static: bool| {
            let stored = headers.iter().flat_map(|header| columns(header)).map(|it| &*it.name);
            let stored: BTreeSet<&[u8]> = stored.collect();
            let missing =
                defined.cells(is_static).filter(|column| !stored.contains(column.name.as_str().as_bytes()));
            let column = |column: &ColumnDef| {
                let kind = defined.kind(&column.cql_type, 0)?;
                Ok(HeaderColumn { name: column.name.as_str().as_bytes().to_vec(), kind })
            };
            missing.map(column).collect::<Result<Vec<_>>>()
        };
        let rest = SerializationHeader {
            statics: own(|header| &header.statics, true)?,
            regulars: own(|header| &header.regulars, false)?,
            ..(*first).clone()
        };
        let name =
            |at: usize| table.columns.get(at).map_or_else(String::new, |it| it.name.as_str().to_string());
        let names = KeyNames {
            partition_key: table.partition_key.iter().map(|at| name(*at)).collect(),
            clustering: table.clustering.iter().map(|(at, _)| name(*at)).collect(),
        };
        let headers: Vec<&SerializationHeader> = headers.iter().copied().chain([&rest]).collect();
        let mut columns = TableColumns::new(&headers, None)?;
        columns.leave_out(|column| !by_name.contains_key(&*column.name));
        columns.name_keys(&names)?;
        Ok(columns)
    }
}

impl TableColumns {
    /// The columns of a table as its server defines it, whatever SSTables it has.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a user-defined type that is not among `types`; `Misuse` for a column that is there twice.
    pub fn of_table(table: &TableDef, types: &[TypeDef]) -> Result<TableColumns> {
        let defined = Defined { table, types };
        let kind = |at: usize| match table.columns.get(at) {
            Some(column) => defined.kind(&column.cql_type, 0),
            None => Err(Error::misuse("a key of a column that the table lacks")),
        };
        let key = table.partition_key.iter().map(|at| kind(*at)).collect::<Result<Vec<_>>>()?;
        let clustering = table.clustering.iter().map(|(at, order)| {
            let kind = kind(*at)?;
            Ok(if *order == Order::Descending { MarshalType::Reversed(Box::new(kind)) } else { kind })
        });
        let header = SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: match <[MarshalType; 1]>::try_from(key) {
                Ok([only]) => only,
                Err(members) => MarshalType::Composite(members),
            },
            clustering: clustering.collect::<Result<_>>()?,
            statics: Vec::new(),
            regulars: Vec::new(),
        };
        TableColumns::of_definition(&[&header], table, types)
    }
}

/// What servers made of a table `WITH COMPACT STORAGE` that has no clustering columns, if its SSTables are of such a one: its columns are static,
/// and a clustering column is there for rows that only clients of before CQL can write, with one value each.
fn with_hidden(table: &TableDef, headers: &[&SerializationHeader]) -> Option<TableDef> {
    let has_statics = headers.iter().any(|header| !header.statics.is_empty());
    let has_no_other = headers.iter().flat_map(|header| &header.regulars).all(|it| it.name == b"value");
    let [clustering] = &*headers.first()?.clustering else { return None };
    if !table.clustering.is_empty() || !has_statics || !has_no_other || clustering.is_reversed() {
        return None;
    }
    let mut made = table.clone();
    for (at, column) in made.columns.iter_mut().enumerate() {
        column.is_static = !table.partition_key.contains(&at);
    }
    let is_taken = |name: &str| table.columns.iter().any(|column| column.name.as_str() == name);
    let free = |name: &str, first: usize| {
        (first..).map(|number| format!("{name}{number}")).find(|name| !is_taken(name))
    };
    let column =
        |name: &str, cql_type| Some(ColumnDef { name: Name::new(name).ok()?, cql_type, is_static: false });
    made.clustering.push((made.columns.len(), Order::Ascending));
    made.columns.push(column(&free("column", 1)?, clustering.cql()?)?);
    if headers.iter().any(|header| !header.regulars.is_empty()) && !is_taken("value") {
        made.columns.push(column("value", CqlType::Blob)?);
    }
    Some(made)
}

/// A definition, and the types that it refers to.
#[derive(Clone, Copy)]
struct Defined<'a> {
    table: &'a TableDef,
    types: &'a [TypeDef],
}

impl<'a> Defined<'a> {
    /// All columns by their names. An SSTable has as many as its file says: they are looked up, not searched.
    fn by_name(self) -> BTreeMap<&'a [u8], &'a ColumnDef> {
        let columns = self.table.columns.iter().rev();
        columns.map(|column| (column.name.as_str().as_bytes(), column)).collect()
    }

    /// Fails if an SSTable with this header is not of the table.
    fn check(&self, header: &SerializationHeader, by_name: &BTreeMap<&[u8], &ColumnDef>) -> Result<()> {
        let table = self.table;
        let stored: Vec<&MarshalType> = match &header.key {
            MarshalType::Composite(members) => members.iter().collect(),
            one => alloc::vec![one],
        };
        let partition: Vec<(usize, Order)> =
            table.partition_key.iter().map(|at| (*at, Order::Ascending)).collect();
        let clustering: Vec<&MarshalType> = header.clustering.iter().collect();
        self.check_keys("partition key", &partition, &stored)?;
        self.check_keys("clustering columns", &table.clustering, &clustering)?;
        for (columns, is_static) in [(&header.statics, true), (&header.regulars, false)] {
            for column in columns {
                let Some(defined) = by_name.get(&*column.name) else { continue };
                if defined.is_static != is_static || !self.is_stored_as(&defined.cql_type, &column.kind, 0) {
                    let word = if defined.is_static { " static" } else { "" };
                    let stored_word = if is_static { " static" } else { "" };
                    return Err(Error::misuse(format!(
                        "the definition of {} has the column {:?} as {}{word}, and an SSTable has it as {}{stored_word}",
                        table.table,
                        defined.name.as_str(),
                        defined.cql_type,
                        shown(&column.kind)
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_keys(&self, what: &str, defined: &[(usize, Order)], stored: &[&MarshalType]) -> Result<()> {
        let column = |at: usize| self.table.columns.get(at);
        let is_same = |(&(at, order), stored): (&(usize, Order), &&MarshalType)| {
            let is_reversed = order == Order::Descending;
            column(at).is_some_and(|it| self.is_stored_as(&it.cql_type, stored, 0))
                && is_reversed == stored.is_reversed()
        };
        if defined.len() == stored.len() && defined.iter().zip(stored).all(is_same) {
            return Ok(());
        }
        let order = |is_reversed: bool| if is_reversed { " DESC" } else { "" };
        let theirs = defined.iter().filter_map(|(at, its)| {
            column(*at).map(|it| format!("{} {}{}", it.name, it.cql_type, order(*its == Order::Descending)))
        });
        let ours = stored.iter().map(|kind| format!("{}{}", shown(kind), order(kind.is_reversed())));
        let listed = |all: Vec<String>| all.join(", ");
        Err(Error::misuse(format!(
            "the {what} of {} are ({}) by its definition, and ({}) in an SSTable",
            self.table.table,
            listed(theirs.collect()),
            listed(ours.collect())
        )))
    }

    /// The columns that have cells.
    fn cells(self, is_static: bool) -> impl Iterator<Item = &'a ColumnDef> {
        let clustering = self.table.clustering.iter().map(|(at, _)| *at);
        let keys: BTreeSet<usize> = self.table.partition_key.iter().copied().chain(clustering).collect();
        let is_key = move |at: usize| keys.contains(&at);
        let columns = self.table.columns.iter().enumerate();
        columns
            .filter(move |(at, column)| column.is_static == is_static && !is_key(*at))
            .map(|(_, column)| column)
    }

    /// Whether values of a type may be stored as an SSTable names it: how it says that something is frozen differs from version to
    /// version, and types that were widened keep the names that they had.
    fn is_stored_as(&self, defined: &CqlType, stored: &MarshalType, depth: usize) -> bool {
        let all = |defined: &[&CqlType], stored: &[&MarshalType]| {
            defined.len() == stored.len()
                && defined
                    .iter()
                    .zip(stored)
                    .all(|(defined, stored)| self.is_stored_as(defined, stored, depth))
        };
        match (defined, stored) {
            (CqlType::Frozen(defined), stored) => self.is_stored_as(defined, stored, depth),
            (defined, MarshalType::Frozen(stored) | MarshalType::Reversed(stored)) => {
                self.is_stored_as(defined, stored, depth)
            }
            (CqlType::List(defined), MarshalType::List(stored))
            | (CqlType::Set(defined), MarshalType::Set(stored)) => self.is_stored_as(defined, stored, depth),
            (CqlType::Map(key, value), MarshalType::Map(stored_key, stored_value)) => {
                all(&[key, value], &[stored_key, stored_value])
            }
            (CqlType::Tuple(defined), MarshalType::Tuple(stored)) => {
                all(&defined.iter().collect::<Vec<_>>(), &stored.iter().collect::<Vec<_>>())
            }
            (CqlType::Vector(defined, count), MarshalType::Vector(stored, stored_count)) => {
                count == stored_count && self.is_stored_as(defined, stored, depth)
            }
            (CqlType::Udt { keyspace, name }, MarshalType::User { name: stored, fields, .. }) => {
                let Some(of) = self.type_of(keyspace.as_ref(), name) else { return name.as_str() == stored };
                // Fields are added at the end, and may have been since.
                let fields = of.fields.iter().zip(fields);
                depth < DEPTH_MAX
                    && name.as_str() == stored
                    && fields
                        .into_iter()
                        .all(|((_, defined), (_, stored))| self.is_stored_as(defined, stored, depth + 1))
            }
            (CqlType::Blob, stored) => !stored.is_multi_cell() && !stored.is_counter(),
            (defined, MarshalType::Native(stored)) => is_widened(defined, stored),
            _ => false,
        }
    }

    /// A type as Cassandra names it in a header.
    fn kind(&self, defined: &CqlType, depth: usize) -> Result<MarshalType> {
        let boxed = |inner: &CqlType| self.kind(unfrozen(inner), depth).map(Box::new);
        Ok(match defined {
            CqlType::List(element) => MarshalType::List(boxed(element)?),
            CqlType::Set(element) => MarshalType::Set(boxed(element)?),
            CqlType::Map(key, value) => MarshalType::Map(boxed(key)?, boxed(value)?),
            CqlType::Tuple(members) => {
                let members = members.iter().map(|it| self.kind(unfrozen(it), depth));
                MarshalType::Tuple(members.collect::<Result<_>>()?)
            }
            CqlType::Vector(element, count) => MarshalType::Vector(boxed(element)?, *count),
            CqlType::Frozen(inner) => match &**inner {
                tuple @ (CqlType::Tuple(_) | CqlType::Vector(..)) => self.kind(tuple, depth)?,
                inner => MarshalType::Frozen(Box::new(self.kind(inner, depth)?)),
            },
            CqlType::Udt { keyspace, name } => {
                let of = self.type_of(keyspace.as_ref(), name).filter(|_| depth < DEPTH_MAX);
                let of = of.ok_or_else(|| Error::unsupported(format!("the type {name} is not defined")))?;
                let field = |(name, kind): &(Name, CqlType)| {
                    Ok((name.as_str().to_string(), self.kind(unfrozen(kind), depth + 1)?))
                };
                let keyspace =
                    keyspace.as_ref().or(of.keyspace.as_ref()).or(self.table.table.keyspace.as_ref());
                MarshalType::User {
                    keyspace: keyspace.map_or_else(String::new, |it| it.as_str().to_string()),
                    name: name.as_str().to_string(),
                    fields: of.fields.iter().map(field).collect::<Result<_>>()?,
                }
            }
            native => MarshalType::Native(native.clone()),
        })
    }

    /// A user-defined type; of the table's keyspace, if none is named.
    fn type_of(&self, keyspace: Option<&Name>, name: &Name) -> Option<&'a TypeDef> {
        let keyspace = keyspace.or(self.table.table.keyspace.as_ref());
        self.types
            .iter()
            .find(|it| it.name == *name && (it.keyspace.as_ref() == keyspace || it.keyspace.is_none()))
    }
}

/// User-defined types in each other, at most: they could be defined by themselves.
const DEPTH_MAX: usize = 32;

/// What is inside of something frozen is not called so.
fn unfrozen(kind: &CqlType) -> &CqlType {
    match kind {
        CqlType::Frozen(inner) => unfrozen(inner),
        kind => kind,
    }
}

/// Whether values that were stored as one type can be read as another, as far as servers have ever allowed to change it.
fn is_widened(defined: &CqlType, stored: &CqlType) -> bool {
    use CqlType::{Ascii, Bigint, Int, Smallint, Text, Timestamp, Timeuuid, Tinyint, Uuid, Varint};
    defined == stored
        || matches!(
            (defined, stored),
            (Text, Ascii)
                | (Uuid, Timeuuid)
                | (Bigint | Varint, Timestamp)
                | (Timestamp, Bigint)
                | (Varint, Tinyint | Smallint | Int | Bigint)
        )
}

fn shown(kind: &MarshalType) -> String {
    kind.cql().map_or_else(|| format!("{kind:?}"), |kind| kind.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cql::Definitions;
    use marquetry_base::ErrorKind;

    fn header(
        key: &str,
        clustering: &[&str],
        statics: &[(&str, &str)],
        regulars: &[(&str, &str)],
    ) -> SerializationHeader {
        let kind = |text: &str| MarshalType::parse(text, 64).unwrap();
        let columns = |all: &[(&str, &str)]| {
            let column = |(name, text): &(&str, &str)| HeaderColumn {
                name: name.as_bytes().to_vec(),
                kind: kind(text),
            };
            all.iter().map(column).collect()
        };
        SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: kind(key),
            clustering: clustering.iter().map(|text| kind(text)).collect(),
            statics: columns(statics),
            regulars: columns(regulars),
        }
    }

    fn of(header: &SerializationHeader, text: &str) -> Result<TableColumns> {
        let made = Definitions::parse(text).unwrap();
        TableColumns::of_definition(&[header], &made.tables[0], &made.types)
    }

    fn names(table: &TableColumns) -> String {
        let keys = table.partition_key.iter().chain(&table.clustering).map(|key| key.name.clone());
        let cells = table.cells().map(|column| String::from_utf8(column.name.clone()).unwrap());
        keys.chain(cells).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn compact_tables_have_hidden_columns() {
        let text = "CREATE TABLE t (p int PRIMARY KEY, a int, column1 text) WITH COMPACT STORAGE";
        let statics = [("a", "Int32Type"), ("column1", "UTF8Type")];
        let stored = header("Int32Type", &["UTF8Type"], &statics, &[]);
        let table = of(&stored, text).unwrap();
        assert_eq!((&*names(&table), table.statics.len()), ("p column2 a column1", 2));
        let stored = header("Int32Type", &["UTF8Type"], &statics, &[("value", "BytesType")]);
        let table = of(&stored, text).unwrap();
        assert_eq!(names(&table), "p column2 a column1 value");
        assert_eq!(table.left_out().count(), 0);
        // All of it is the key.
        let stored = header("Int32Type", &["UTF8Type"], &[], &[("value", "EmptyType")]);
        let text = "CREATE TABLE t (p int, c text, PRIMARY KEY (p, c)) WITH COMPACT STORAGE";
        let table = of(&stored, text).unwrap();
        assert_eq!((&*names(&table), table.left_out().count()), ("p c", 0));
    }

    #[test]
    fn keys_are_named_dropped_columns_left_out_and_new_ones_there() {
        let stored = header(
            "CompositeType(Int32Type,UTF8Type)",
            &["ReversedType(LongType)"],
            &[("s", "Int32Type")],
            &[("old", "UTF8Type"), ("v", "AsciiType"), ("l", "ListType(Int32Type)")],
        );
        let text = "CREATE TYPE ks.u (a int, b frozen<list<text>>);
            CREATE TABLE ks.t (p int, \"Q\" text, c bigint, s int static, v text, l list<int>, n frozen<ks.u>, m map<text, frozen<set<int>>>,
            z int static, PRIMARY KEY ((p, \"Q\"), c)) WITH CLUSTERING ORDER BY (c DESC)";
        let table = of(&stored, text).unwrap();
        assert_eq!(names(&table), "p Q c s z n v l m");
        assert!(table.index_of(&stored).is_ok());
        let kind = |name: &str| {
            let found = table.cells().find(|column| column.name == name.as_bytes());
            format!("{}", found.unwrap().kind.cql().unwrap())
        };
        assert_eq!((&*kind("n"), &*kind("m")), ("frozen<ks.u>", "map<text, frozen<set<int>>>"));
        // What is stored stays as it is stored.
        assert_eq!(kind("v"), "ascii");
    }

    /// One by one this would be ten thousand million comparisons.
    #[test]
    fn as_many_columns_as_a_hostile_file_has() {
        const COLUMNS: usize = 100_000;
        let names: Vec<String> = (0..COLUMNS).map(|number| format!("c{number:06}")).collect();
        let columns: Vec<(&str, &str)> = names.iter().rev().map(|name| (&**name, "Int32Type")).collect();
        let stored = header("Int32Type", &[], &[], &columns);
        let mut made = Definitions::parse("CREATE TABLE ks.t (p int PRIMARY KEY)").unwrap();
        // Half of them are defined, and as many that are not stored.
        for name in names.iter().step_by(2).cloned().chain((0..COLUMNS / 2).map(|it| format!("d{it:06}"))) {
            let (name, cql_type) = (Name::new(&name).unwrap(), CqlType::Int);
            made.tables[0].columns.push(ColumnDef { name, cql_type, is_static: false });
        }
        let table = TableColumns::of_definition(&[&stored], &made.tables[0], &[]).unwrap();
        assert_eq!((table.partition_key[0].name.as_str(), table.cells().len()), ("p", COLUMNS));
        assert!(table.cells().is_sorted_by_key(|column| &column.name));
        assert_eq!(table.cells().nth(COLUMNS / 2).unwrap().name, b"d000000");
        assert_eq!(table.left_out().count(), COLUMNS / 2);
        assert_eq!(table.left_out().next().unwrap(), b"c000001");
        let map = table.index_of(&stored).unwrap();
        assert_eq!((map.number(0), map.number(1)), (None, Some(COLUMNS / 2 - 1)));
    }

    #[test]
    fn columns_of_a_definition_alone() {
        let text = "CREATE TYPE ks.u (a int, b frozen<list<text>>);
            CREATE TABLE ks.t (p int, \"Q\" frozen<u>, c bigint, d text, s int static, v text, l list<int>, n frozen<ks.u>, o u,
            PRIMARY KEY ((p, \"Q\"), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)";
        let made = Definitions::parse(text).unwrap();
        let table = TableColumns::of_table(&made.tables[0], &made.types).unwrap();
        assert_eq!(names(&table), "p Q c d s n v l o");
        assert_eq!(table.statics.len(), 1);
        let is_reversed: Vec<bool> = table.clustering.iter().map(|key| key.kind.is_reversed()).collect();
        assert_eq!(is_reversed, [true, false]);
        let multi: Vec<bool> = table.cells().map(|column| column.kind.is_multi_cell()).collect();
        assert_eq!(multi, [false, false, false, true, true]);
        let unknown = Definitions::parse("CREATE TABLE t (p int PRIMARY KEY, n frozen<nowhere>)").unwrap();
        let error = TableColumns::of_table(&unknown.tables[0], &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn definitions_of_other_tables() {
        let stored = header(
            "Int32Type",
            &["UTF8Type"],
            &[],
            &[("v", "Int32Type"), ("u", "UserType(ks,75,61:Int32Type)")],
        );
        for (text, said) in [
            (
                "CREATE TABLE t (p bigint, c text, PRIMARY KEY (p, c))",
                "the partition key of t are (p bigint) by its definition, and (int) in an SSTable",
            ),
            (
                "CREATE TABLE t (p int, c text, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)",
                "the clustering columns of t are (c text DESC) by its definition, and (text) in an SSTable",
            ),
            (
                "CREATE TABLE t (p int PRIMARY KEY, v int)",
                "the clustering columns of t are () by its definition, and (text) in an SSTable",
            ),
            (
                "CREATE TABLE t (p int, c text, v text, PRIMARY KEY (p, c))",
                "the definition of t has the column \"v\" as text, and an SSTable has it as int",
            ),
            (
                "CREATE TABLE t (p int, c text, v int static, PRIMARY KEY (p, c))",
                "the definition of t has the column \"v\" as int static, and an SSTable has it as int",
            ),
            (
                "CREATE TYPE u (a text); CREATE TABLE t (p int, c text, u u, PRIMARY KEY (p, c))",
                "the definition of t has the column \"u\" as u, and an SSTable has it as ks.u",
            ),
        ] {
            let error = of(&stored, text).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Misuse, said), "{text}");
        }
        let unknown = "CREATE TABLE t (p int, c text, n frozen<nowhere>, PRIMARY KEY (p, c))";
        assert_eq!(of(&stored, unknown).unwrap_err().kind(), ErrorKind::Unsupported);
        let endless =
            "CREATE TYPE w (a frozen<w>); CREATE TABLE t (p int, c text, n frozen<w>, PRIMARY KEY (p, c))";
        assert_eq!(of(&stored, endless).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
