//! The statement that writes a row.

use marquetry_scylla::bridge::{MappedColumn, Mapping};
use marquetry_scylla::cql::{CqlType, insert_prefix};
use marquetry_tables::stamps::Ttl;

/// The statement of a mapping's rows, and in which order their cells are bound.
#[derive(Debug, Clone)]
pub(crate) struct RowStatement {
    pub(crate) text: String,
    /// The columns of the mapping, in the order of the markers.
    pub(crate) columns: Vec<usize>,
    /// After them, a TTL is bound.
    pub(crate) binds_ttl: bool,
    pub(crate) kind: Kind,
    /// The statement of partitions that have only static values, if the table has such columns: it binds those of the columns that are the
    /// partition's.
    pub(crate) statics: Option<Statics>,
}

/// See [`RowStatement::statics`].
#[derive(Debug, Clone)]
pub(crate) struct Statics {
    pub(crate) text: String,
    /// How many columns it binds.
    pub(crate) columns: usize,
}

/// What it means to send a row again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The same row with the same write time: however often it is applied, the table is the same.
    Same,
    /// It has lists that are not frozen. They replace what is older, but elements of the same write time stay beside the new ones: each
    /// time that such a row is sent, it needs a later one.
    Lists,
    /// Counters are added to, each time.
    Counters,
}

impl RowStatement {
    /// The `INSERT` of all columns; of counters, the `UPDATE` that adds to them.
    pub(crate) fn of(mapping: &Mapping, ttl: Option<&Ttl>) -> RowStatement {
        let columns = mapping.columns();
        if columns.iter().any(is_counter) {
            return RowStatement::of_counters(mapping);
        }
        let insert = |columns: &[usize]| {
            let named = columns.iter().filter_map(|column| mapping.columns().get(*column));
            let mut text = insert_prefix(&mapping.table().table, named.map(|column| &column.name));
            text.push_str(&vec!["?"; columns.len()].join(", "));
            text.push(')');
            match ttl {
                Some(Ttl::Seconds(seconds)) => text.push_str(&format!(" USING TTL {seconds}")),
                Some(Ttl::Column(_)) => text.push_str(" USING TTL ?"),
                None => {}
            }
            text
        };
        let all: Vec<usize> = (0..columns.len()).collect();
        let of_partition: Vec<usize> =
            all.iter().copied().filter(|column| mapping.is_of_partition(*column)).collect();
        let has_statics = of_partition.len() > mapping.table().partition_key.len();
        let has_lists = columns.iter().any(|column| matches!(column.cql_type, CqlType::List(_)));
        RowStatement {
            text: insert(&all),
            statics: has_statics
                .then(|| Statics { text: insert(&of_partition), columns: of_partition.len() }),
            columns: all,
            binds_ttl: matches!(ttl, Some(Ttl::Column(_))),
            kind: if has_lists { Kind::Lists } else { Kind::Same },
        }
    }

    fn of_counters(mapping: &Mapping) -> RowStatement {
        let columns = mapping.columns();
        let (key, counters): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|at| columns.get(*at).is_some_and(|column| column.in_key));
        let each = |of: &[usize], print: &dyn Fn(&MappedColumn) -> String, between: &str| {
            let columns = of.iter().filter_map(|at| columns.get(*at));
            columns.map(print).collect::<Vec<_>>().join(between)
        };
        let text = format!(
            "UPDATE {} SET {} WHERE {}",
            mapping.table().table,
            each(&counters, &|column| format!("{name} = {name} + ?", name = column.name), ", "),
            each(&key, &|column| format!("{} = ?", column.name), " AND ")
        );
        RowStatement {
            text,
            columns: [counters, key].concat(),
            binds_ttl: false,
            kind: Kind::Counters,
            statics: None,
        }
    }
}

#[cfg(test)]
impl RowStatement {
    /// Markers.
    fn markers(&self) -> usize {
        self.columns.len() + usize::from(self.binds_ttl)
    }
}

pub(crate) fn is_counter(column: &MappedColumn) -> bool {
    column.cql_type == CqlType::Counter
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
    use marquetry_scylla::bridge::{Existing, MappingOptions};
    use marquetry_scylla::cql::{KeySpec, Name, TableName};

    fn statement(columns: &[(&str, &str)], key: &str, ttl: Option<&str>) -> RowStatement {
        let name = |text: &str| Name::new(text).unwrap();
        let field = |(name, cql_type): &(&str, &str)| {
            let int = FieldType::Leaf(PhysicalType::Int32, None);
            let list = || FieldType::List(Box::new(FieldDef::new("element", int.clone())));
            FieldDef::new(*name, if cql_type.contains("list") { list() } else { int.clone() })
        };
        let schema = Schema::of_fields(&columns.iter().map(field).collect::<Vec<_>>()).unwrap();
        let there = columns.iter().map(|(column, it)| (name(column), CqlType::parse(it).unwrap())).collect();
        let options = MappingOptions {
            key: Some(KeySpec::parse(key).unwrap()),
            existing: Some(Existing { columns: there, ..Existing::default() }),
            ..MappingOptions::default()
        };
        let mapping = Mapping::new(&Arc::new(schema), TableName::parse("k.t").unwrap(), &options).unwrap();
        RowStatement::of(&mapping, ttl.map(|ttl| ttl.parse().unwrap()).as_ref())
    }

    #[test]
    fn rows_are_inserted() {
        let of = statement(&[("a", "int"), ("b", "text")], "a", None);
        assert_eq!(of.text, "INSERT INTO k.t (a, b) VALUES (?, ?)");
        assert_eq!((of.columns.as_slice(), of.markers(), of.kind), (&[0, 1][..], 2, Kind::Same));
        let of = statement(&[("a", "int"), ("b", "list<int>")], "a", Some("60"));
        assert_eq!(of.text, "INSERT INTO k.t (a, b) VALUES (?, ?) USING TTL 60");
        assert_eq!((of.markers(), of.kind), (2, Kind::Lists));
        let of = statement(&[("a", "int"), ("b", "frozen<list<int>>")], "a", Some("ttl"));
        assert_eq!(of.text, "INSERT INTO k.t (a, b) VALUES (?, ?) USING TTL ?");
        assert_eq!((of.markers(), of.binds_ttl, of.kind), (3, true, Kind::Same));
    }

    #[test]
    fn counters_are_added_to() {
        let columns = [("k", "int"), ("c", "counter"), ("K", "text"), ("d", "counter")];
        let of = statement(&columns, "k, \"K\"", None);
        assert_eq!(of.text, "UPDATE k.t SET c = c + ?, d = d + ? WHERE k = ? AND \"K\" = ?");
        assert_eq!((of.columns.as_slice(), of.kind), (&[1, 3, 0, 2][..], Kind::Counters));
    }
}
