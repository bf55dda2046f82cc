//! The definition of a table, made of the columns that its SSTables have.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::marshal::MarshalType;
use super::table_columns::TableColumns;
use crate::cql::{ColumnDef, CqlType, Name, Order, TableDef, TableName, TypeDef};

impl TableColumns {
    /// `CREATE TABLE` for a table of this name with these columns, and `CREATE TYPE` for its user-defined types, each before those that use
    /// it. Types are in the table's keyspace, whatever theirs was. It is the inverse of [`TableColumns::of_definition`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for types and names that CQL does not have, as tables made without
    /// it may have; for two user-defined types of one name and different fields.
    pub fn definition(&self, table: &TableName) -> Result<(TableDef, Vec<TypeDef>)> {
        let mut types = Types { table, made: Vec::new() };
        let mut made = TableDef {
            table: table.clone(),
            if_not_exists: false,
            columns: Vec::new(),
            partition_key: (0..self.partition_key.len()).collect(),
            clustering: Vec::new(),
            comment: None,
        };
        for key in &self.partition_key {
            made.columns.push(types.column(key.name.as_bytes(), &key.kind, false)?);
        }
        for key in &self.clustering {
            let order = if key.kind.is_reversed() { Order::Descending } else { Order::Ascending };
            made.clustering.push((made.columns.len(), order));
            made.columns.push(types.column(key.name.as_bytes(), &key.kind, false)?);
        }
        for column in &self.statics {
            made.columns.push(types.column(&column.name, &column.kind, true)?);
        }
        for column in &self.regulars {
            made.columns.push(types.column(&column.name, &column.kind, false)?);
        }
        made.check().map_err(|error| Error::unsupported(format!("{error}")))?;
        Ok((made, types.made))
    }
}

/// The user-defined types so far.
struct Types<'a> {
    table: &'a TableName,
    made: Vec<TypeDef>,
}

impl Types<'_> {
    fn column(&mut self, name: &[u8], kind: &MarshalType, is_static: bool) -> Result<ColumnDef> {
        let text = core::str::from_utf8(name)
            .map_err(|_| Error::unsupported("a column whose name is not UTF-8, which CQL does not allow"))?;
        let about = |error: Error| error.at(|place| place.column = Some(text.into()));
        let name = Name::new(text).map_err(|error| about(Error::unsupported(format!("{error}"))))?;
        let cql_type = match self.kind(kind).map_err(about)? {
            // As servers print them: tuples are frozen anyway.
            tuple @ CqlType::Tuple(_) => tuple.frozen(),
            cql_type => cql_type,
        };
        Ok(ColumnDef { name, cql_type, is_static })
    }

    /// A type in CQL; the user-defined types in it are added to the list. It recurses as deep as names of types do.
    fn kind(&mut self, kind: &MarshalType) -> Result<CqlType> {
        let mut boxed = |inner: &MarshalType| self.kind(inner).map(alloc::boxed::Box::new);
        Ok(match kind {
            MarshalType::Native(native) => native.clone(),
            MarshalType::List(element) => CqlType::List(boxed(element)?),
            MarshalType::Set(element) => CqlType::Set(boxed(element)?),
            MarshalType::Map(key, value) => CqlType::Map(boxed(key)?, boxed(value)?),
            MarshalType::Vector(element, count) => CqlType::Vector(boxed(element)?, *count),
            MarshalType::Tuple(members) => {
                CqlType::Tuple(members.iter().map(|member| self.kind(member)).collect::<Result<_>>()?)
            }
            MarshalType::Frozen(inner) => self.kind(inner)?.frozen(),
            MarshalType::Reversed(inner) => self.kind(inner)?,
            MarshalType::User { name, fields, .. } => self.user(name, fields)?,
            MarshalType::Empty | MarshalType::Composite(_) | MarshalType::DynamicComposite(_) => {
                return Err(Error::unsupported(format!("CQL has no name for the type {kind}")));
            }
        })
    }

    fn user(&mut self, name: &str, fields: &[(alloc::string::String, MarshalType)]) -> Result<CqlType> {
        let wrong = |error| Error::unsupported(format!("the type {name:?}: {error}"));
        let type_name = Name::new_type(name).map_err(wrong)?;
        let field = |(field, kind): &(alloc::string::String, MarshalType)| {
            Ok((Name::new(field).map_err(wrong)?, self.kind(kind)?))
        };
        let fields = fields.iter().map(field).collect::<Result<Vec<_>>>()?;
        let keyspace = self.table.keyspace.clone();
        let made = TypeDef { keyspace, name: type_name.clone(), if_not_exists: false, fields };
        match self.made.iter().find(|before| before.name == type_name) {
            // Within something frozen, SSTables do not say that fields are: as CQL they are the same.
            Some(before) if format!("{before}") != format!("{made}") => {
                return Err(Error::unsupported(format!(
                    "two types are called {name:?} and have other fields"
                )));
            }
            Some(_) => {}
            None => self.made.push(made),
        }
        Ok(CqlType::Udt { keyspace: None, name: type_name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use marquetry_base::ErrorKind;

    use crate::sstable::statistics::{HeaderColumn, SerializationHeader};

    fn columns(
        key: &str,
        clustering: &[&str],
        statics: &[(&str, &str)],
        all: &[(&str, &str)],
    ) -> TableColumns {
        let kind = |text: &str| MarshalType::parse(text, 64).unwrap();
        let cells = |all: &[(&str, &str)]| {
            let column = |(name, text): &(&str, &str)| HeaderColumn {
                name: name.as_bytes().to_vec(),
                kind: kind(text),
            };
            all.iter().map(column).collect()
        };
        let header = SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: kind(key),
            clustering: clustering.iter().map(|text| kind(text)).collect(),
            statics: cells(statics),
            regulars: cells(all),
        };
        TableColumns::new(&[&header], None).unwrap()
    }

    #[test]
    fn a_table_is_defined_as_it_was() {
        let inner = "UserType(old,696e,61:Int32Type)";
        let outer = format!("UserType(old,6f7574,78:FrozenType({inner}),79:ListType(UTF8Type))");
        let table = columns(
            "CompositeType(Int32Type,UTF8Type)",
            &["ReversedType(LongType)", "InetAddressType"],
            &[("s", "SetType(Int32Type)")],
            &[
                ("A", "TupleType(Int32Type,DoubleType)"),
                (
                    "f",
                    &format!(
                        "FrozenType({})",
                        outer.replace("ListType(UTF8Type)", "FrozenType(ListType(UTF8Type))")
                    ),
                ),
                ("u", &outer),
                ("v", "VectorType(FloatType,3)"),
            ],
        );
        let (made, types) = table.definition(&TableName::parse("ks.t").unwrap()).unwrap();
        assert_eq!(
            made.to_string(),
            "CREATE TABLE ks.t (\n    pk0 int,\n    pk1 text,\n    ck0 bigint,\n    ck1 inet,\n    s set<int> STATIC,\n    \
             \"A\" frozen<tuple<int, double>>,\n    f frozen<out>,\n    v vector<float, 3>,\n    u out,\n    PRIMARY KEY ((pk0, pk1), ck0, ck1)\n) \
             WITH CLUSTERING ORDER BY (ck0 DESC, ck1 ASC);\n"
        );
        let types: String = types.iter().map(ToString::to_string).collect();
        assert_eq!(
            types,
            "CREATE TYPE ks.\"in\" (\n    a int\n);\nCREATE TYPE ks.out (\n    x frozen<\"in\">,\n    y frozen<list<text>>\n);\n"
        );
    }

    #[test]
    fn what_cql_cannot_define() {
        let name = TableName::parse("ks.t").unwrap();
        for table in [
            columns("Int32Type", &[], &[], &[("v", "CompositeType(Int32Type,UTF8Type)")]),
            columns("Int32Type", &[], &[], &[("v", "UserType(k,c3a9,61:Int32Type)")]),
            columns(
                "Int32Type",
                &[],
                &[],
                &[("u", "UserType(k,75,61:Int32Type)"), ("v", "UserType(l,75,61:LongType)")],
            ),
        ] {
            assert_eq!(table.definition(&name).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}
