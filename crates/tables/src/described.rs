//! What a source says of the table that its rows were made of.

use marquetry_base::{Detail, Error, Limits, Result};
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_scylla::sstable::TableColumns;

use crate::{ColumnPath, Filter, Table};

/// A table of ScyllaDB or Cassandra, and how its writes became rows: as key-value metadata say it (`docs/full-mapping.md`).
///
/// A source has them where its rows are those of SSTables, or of a Parquet file that was made of SSTables, with all their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Described {
    /// What a row is.
    pub mapping: MutationMapping,
    /// The table's columns, with their names and exact types.
    pub columns: TableColumns,
}

impl Described {
    /// What the key-value metadata of a source say. `None`: they do not speak of such a table.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a mapping, a version of one, or a type that is not known; `Corrupt` for metadata that contradict themselves. They
    /// name the source.
    pub fn of(table: &Table) -> Result<Option<Described>> {
        let described = of_values(|key| {
            let value = table.key_values.iter().find(|it| it.key == key)?.value.as_ref()?;
            core::str::from_utf8(value).ok()
        });
        described.map_err(|error| error.at(|place| place.object = Some(table.name.clone())))
    }

    /// Fails for columns that are left out, converted or named otherwise by an option, of a source whose rows are writes that are to be
    /// executed: without all that says what a row deletes, deletions would become rows.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option, for rows of the mapping `full`.
    pub fn expect_columns(table: &Table, option: &'static str) -> Result<()> {
        match Described::of(table)? {
            Some(Described { mapping: MutationMapping::Full, .. }) => {
                let why = "these rows are writes, of the mapping full: with other columns, what they delete would become rows, and write times and TTLs \
                           would be lost. Leave it out; what a SELECT returns is made of the SSTables by the mapping logical";
                let error = Error::option(option, why);
                Err(error.at(|place| place.object = Some(table.name.clone())))
            }
            _ => Ok(()),
        }
    }

    /// Fails for a predicate that leaves out some of a partition's writes, for a source whose rows are writes that are to be executed: of two
    /// deleted ranges whose inner ends are left out, one would come.
    ///
    /// # Errors
    ///
    /// `Misuse` for a predicate over other columns than those of the partition key, of rows of the mapping `full`.
    pub fn expect_partitions(table: &Table, wanted: &Filter) -> Result<()> {
        let Some(Described { mapping: MutationMapping::Full, columns }) = Described::of(table)? else {
            return Ok(());
        };
        // The key is the first columns.
        let of_key = table.schema.children(0).take(columns.partition_key.len());
        let end = of_key.last().map_or(0, |node| table.schema.shape(node).leaves().end);
        let is_of_key = |path: &ColumnPath| {
            path.leaves(&table.schema).is_ok_and(|leaves| leaves.iter().all(|leaf| *leaf < end))
        };
        if wanted.columns().is_some_and(|all| all.iter().all(is_of_key)) {
            return Ok(());
        }
        let keys: Vec<&str> = columns.partition_key.iter().map(|key| &*key.name).collect();
        let what = format!(
            "a predicate over writes of which some of a partition would be left out, so that its deletions could become others: only columns of the \
             partition key can be asked for ({})",
            keys.join(", ")
        );
        Err(Error::misuse(what).with(Detail::AdmittedBy(&["mapping"])))
    }

    /// Whether a source describes such a table.
    pub fn is_there(table: &Table) -> bool {
        table.key_values.iter().any(|it| it.key == MAPPING)
    }
}

/// The columns of the table that a source [describes](Described), also where some of them were left out. `None` where that is not understood, too.
pub(crate) fn columns_of(table: &Table) -> Option<TableColumns> {
    let described = of_values(|key| {
        let mut all = table.key_values.iter().chain(&table.of_all_columns);
        core::str::from_utf8(all.find(|it| it.key == key)?.value.as_ref()?).ok()
    });
    described.ok().flatten().map(|described| described.columns)
}

const MAPPING: &str = "marquetry.mapping";

fn of_values<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Described>> {
    let Some(mapping) = value(MAPPING) else { return Ok(None) };
    let known = [MutationMapping::Full, MutationMapping::Logical, MutationMapping::Verbatim];
    let version = value("marquetry.mapping.version").unwrap_or_default();
    let known = known.into_iter().find(|known| known.name() == mapping).filter(|_| version == "1");
    let Some(mapping) = known else {
        return Err(Error::unsupported(format!(
            "rows of the mapping {mapping:?}, version {version:?}, which a later Marquetry may know"
        )));
    };
    let columns = value("marquetry.table.columns")
        .ok_or_else(|| Error::corrupt("rows of a mapping that do not say what the table's columns are"))?;
    Ok(Some(Described { mapping, columns: TableColumns::parse(columns, &Limits::DEFAULT)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    #[test]
    fn a_table_is_described_by_its_metadata() {
        let columns = r#"[{"name":"p","kind":"partition_key","type":"int","class":"Int32Type"}]"#;
        let of = |mapping: Option<&'static str>, version: &'static str, columns: Option<&'static str>| {
            of_values(move |key| match key {
                MAPPING => mapping,
                "marquetry.mapping.version" => Some(version),
                "marquetry.table.columns" => columns,
                _ => None,
            })
        };
        assert_eq!(of(None, "1", Some(columns)), Ok(None));
        for mapping in [MutationMapping::Full, MutationMapping::Logical, MutationMapping::Verbatim] {
            let described = of(Some(mapping.name()), "1", Some(columns)).unwrap().unwrap();
            assert_eq!((described.mapping, &*described.columns.partition_key[0].name), (mapping, "p"));
        }
        let kind = |mapping, version, columns| of(Some(mapping), version, columns).unwrap_err().kind();
        assert_eq!(kind("full", "2", Some(columns)), ErrorKind::Unsupported);
        assert_eq!(kind("other", "1", Some(columns)), ErrorKind::Unsupported);
        assert_eq!(kind("full", "1", None), ErrorKind::Corrupt);
        assert_eq!(kind("full", "1", Some("[]")), ErrorKind::Corrupt);
    }
}
