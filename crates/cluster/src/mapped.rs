//! A table that a source describes, as SSTables are: what its rows are, and whether a table that exists can have them.

use std::collections::HashMap;

use marquetry_base::{Detail, Error, Result};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_scylla::cql::{CqlType, Name, TableDef, TypeDef};
use marquetry_scylla::sstable::TableColumns;
use marquetry_tables::{Described, Table};

use crate::error::Difference;
use crate::schema;

/// What rows are, by what their source says.
pub(crate) enum RowsOf {
    /// Rows.
    Plain,
    /// What a `SELECT` of a table of these columns returned.
    Logical(TableColumns),
    /// Writes to such a table.
    Writes(TableColumns),
}

impl RowsOf {
    /// # Errors
    ///
    /// As [`Described::of`]; `Unsupported` for rows that are partitions.
    pub(crate) fn of(table: &Table) -> Result<RowsOf> {
        let Some(described) = Described::of(table)? else { return Ok(RowsOf::Plain) };
        match described.mapping {
            MutationMapping::Full => Ok(RowsOf::Writes(described.columns)),
            MutationMapping::Logical => Ok(RowsOf::Logical(described.columns)),
            other => {
                let message = format!(
                    "rows of the mapping {} are partitions, made to be compared, and cannot be loaded: make full or logical ones \
                     of the SSTables",
                    other.name()
                );
                let error = Error::unsupported(message).with(Detail::AdmittedBy(&["mapping"]));
                Err(error.at(|place| place.object = Some(table.name.clone())))
            }
        }
    }
}

/// Fails if a table that exists cannot have the writes of another one, with all that differs. It may have more columns, its types more
/// fields at their ends, its clustering columns another order, and `text` for `ascii`, `uuid` for `timeuuid`.
///
/// # Errors
///
/// `Conversion`.
pub(crate) fn expect_fitting(
    (existing, existing_types): (&TableDef, &[TypeDef]),
    (wanted, types): (&TableDef, &[TypeDef]),
) -> Result<()> {
    let mut differences = schema::compare(existing, wanted);
    let is_same_key = key_columns(existing) == key_columns(wanted);
    differences.retain(|difference| match difference {
        Difference::Extra(_) => false,
        Difference::Type { table, wanted, .. } => !has_values_of(table, wanted),
        Difference::Key { .. } => !is_same_key,
        _ => true,
    });
    let mut said: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let by_name: HashMap<&Name, &TypeDef> = types.iter().map(|it| (&it.name, it)).collect();
    let cut = existing_types.iter().filter_map(|there| {
        let fields = by_name.get(&there.name)?.fields.len();
        let mut there = there.clone();
        there.fields.truncate(fields);
        Some(there)
    });
    let differing = schema::compare_types(&cut.collect::<Vec<_>>(), types);
    said.extend(differing.iter().map(ToString::to_string));
    if said.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the writes do not fit the table {}, whose columns must have their types: {}",
        existing.table,
        said.join("; ")
    );
    Err(Error::conversion(message).with(Detail::AdmittedBy(&["mapping"])))
}

/// Whether a column's type was widened since values were written: they are the same values, byte by byte.
fn has_values_of(there: &CqlType, written: &CqlType) -> bool {
    matches!((there, written), (CqlType::Text, CqlType::Ascii) | (CqlType::Uuid, CqlType::Timeuuid))
}

/// The columns of the partition key, and the clustering columns.
fn key_columns(table: &TableDef) -> [Vec<Option<&Name>>; 2] {
    let name = |at: usize| table.columns.get(at).map(|column| &column.name);
    [
        table.partition_key.iter().map(|at| name(*at)).collect(),
        table.clustering.iter().map(|(at, _)| name(*at)).collect(),
    ]
}

/// Fails for a source whose key columns have names that are made up: a table that is created would have them.
///
/// # Errors
///
/// `Misuse`.
pub(crate) fn expect_key_names(table: &Table) -> Result<()> {
    let Some(why) = &table.unnamed_key else { return Ok(()) };
    let error = Error::misuse(format!("{why}; no table is created with names that are made up"));
    Err(error.with(Detail::AdmittedBy(&["definition"])).at(|place| place.object = Some(table.name.clone())))
}

/// Fails for options that say how rows become rows of a table: writes are what they are.
///
/// # Errors
///
/// `Misuse`, about the option.
pub(crate) fn expect_no_mapping(options: &MappingOptions) -> Result<()> {
    let MappingOptions { timestamps_as_millis, columns, key, row_number, sets, frozen, existing, .. } =
        options;
    let given = [
        (key.is_some(), "key"),
        (row_number.is_some(), "row_number"),
        (!sets.is_empty(), "sets"),
        (*frozen, "frozen"),
        (columns.is_some(), "columns"),
        (*timestamps_as_millis, "timestamps_as_millis"),
        (existing.is_some(), "existing"),
    ];
    expect_none(&given)
}

/// Fails for the first of these options that is given.
pub(crate) fn expect_none(given: &[(bool, &'static str)]) -> Result<()> {
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => {
            let message = format!(
                "{name} has no meaning for rows of the mapping full: they are writes, with their own times, to a table that has its key and its types"
            );
            Err(Error::option(name, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;
    use marquetry_scylla::cql::Definitions;

    fn defined(text: &str) -> (TableDef, Vec<TypeDef>) {
        let mut made = Definitions::parse(text).unwrap();
        (made.tables.remove(0), made.types)
    }

    #[test]
    fn a_table_that_has_more_fits() {
        let wanted = defined(
            "CREATE TYPE k.u (a int, b text); CREATE TABLE k.t (p int, c int, s ascii STATIC, v u, PRIMARY KEY (p, c))",
        );
        let fits = |text: &str| {
            let there = defined(text);
            expect_fitting((&there.0, &there.1), (&wanted.0, &wanted.1)).map_err(|error| {
                assert_eq!(error.kind(), ErrorKind::Conversion);
                error.message().rsplit_once("types: ").unwrap().1.to_owned()
            })
        };
        let more = "CREATE TYPE k.u (a int, b text, c int); CREATE TYPE k.w (a int);
            CREATE TABLE k.t (p int, c int, s text STATIC, v u, x int, PRIMARY KEY (p, c)) WITH CLUSTERING ORDER BY (c DESC)";
        assert_eq!(fits(more), Ok(()));
        let other = "CREATE TYPE k.u (a int);
            CREATE TABLE k.t (p int, c int, s text, v int, x int, PRIMARY KEY ((p, c), x))";
        assert_eq!(
            fits(other),
            Err("s is static in only one of them; v is int, expected u; PRIMARY KEY is ((p, c), x), expected (p, c); \
                 the type u exists with a different definition: missing field b"
                .to_owned())
        );
    }

    #[test]
    fn no_table_is_created_with_names_that_are_made_up() {
        let schema = marquetry_parquet::schema::Schema::of_fields(&[]).unwrap();
        let mut table = Table::new("sstable:t", std::sync::Arc::new(schema));
        assert_eq!(expect_key_names(&table), Ok(()));
        table.unnamed_key =
            Some("the names of key columns are not known (pk0): there is no schema.cql".to_owned());
        let error = expect_key_names(&table).unwrap_err();
        assert_eq!(
            (error.kind(), error.detail()),
            (ErrorKind::Misuse, Some(Detail::AdmittedBy(&["definition"])))
        );
        assert!(error.message().starts_with("the names of key columns are not known (pk0)"), "{error}");
    }

    #[test]
    fn writes_have_no_options_of_rows() {
        assert_eq!(expect_no_mapping(&MappingOptions::default()), Ok(()));
        let frozen = MappingOptions { frozen: true, ..MappingOptions::default() };
        assert_eq!(expect_no_mapping(&frozen).unwrap_err().detail(), Some(Detail::Option("frozen")));
    }
}
