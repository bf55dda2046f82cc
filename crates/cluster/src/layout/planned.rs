//! A load into a table of another layout than `rows`: what is loaded, and by which description.

use std::sync::Arc;

use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::schema::Schema;
use marquetry_scylla::bridge::{Mapping, MappingOptions};
use marquetry_scylla::cql::{TableDef, TableName};
use marquetry_tables::Table;

use super::description::{Description, chosen, described};
use super::{Laying, TableLayout};
use crate::cluster::Cluster;
use crate::made_like::MadeLike;

/// How rows become those of a table whose rows hold others.
#[derive(Debug)]
pub(crate) struct Planned {
    described: Description,
    laying: Laying,
    /// The options of the mapping from the rows of the table to its columns.
    options: MappingOptions,
}

impl Planned {
    /// Plans a table of this layout for rows of this schema, of which the options may choose columns. `None` for the layout `rows`.
    ///
    /// # Errors
    ///
    /// `Misuse` for options that have no meaning, and without a key; `Conversion` for columns that cannot be in it.
    pub(crate) fn new(
        layout: Option<TableLayout>,
        schema: &Arc<Schema>,
        options: MappingOptions,
    ) -> Result<Option<Planned>> {
        let Some(layout) = layout.filter(|layout| *layout != TableLayout::Rows) else { return Ok(None) };
        let Some(key) = &options.key else {
            let what = format!("a table of the layout {} is created with a key", layout.name());
            return Err(Error::misuse(what).with(Detail::AdmittedBy(&["key"])));
        };
        let described = Description::new(layout, &chosen(schema, options.columns.as_deref())?, key)?;
        Planned::of(described, schema, options).map(Some)
    }

    /// Plans rows of this schema for a table that is there.
    ///
    /// # Errors
    ///
    /// As [`Planned::new`], for columns that are chosen and not there, and for those that the table lacks or has otherwise.
    pub(crate) fn of(
        described: Description,
        schema: &Arc<Schema>,
        options: MappingOptions,
    ) -> Result<Planned> {
        let name = described.layout.name();
        let given = [
            (options.row_number.is_some(), "row_number"),
            (!options.sets.is_empty(), "sets"),
            (options.frozen, "frozen"),
            (options.timestamps_as_millis, "timestamps_as_millis"),
        ];
        if let Some((_, option)) = given.iter().find(|(is_given, _)| *is_given) {
            let what = format!(
                "this is for the layout rows; a table of the layout {name} holds each value as it is"
            );
            return Err(Error::option(option, what));
        }
        chosen(schema, options.columns.as_deref())?;
        let laying = Laying::new(&described, schema, options.columns.as_deref())?;
        Ok(Planned { described, laying, options: MappingOptions { columns: None, ..options } })
    }

    /// The mapping to the table's columns: to those of one that is there, or to its own.
    ///
    /// # Errors
    ///
    /// Those of [`Mapping::new`].
    pub(crate) fn mapping(&self, name: TableName, existing: Option<&TableDef>) -> Result<Mapping> {
        let options = match existing {
            Some(existing) => &self.options.clone().defined_by(existing, Vec::new()),
            None => &self.options,
        };
        Mapping::new(self.laying.schema(), name, options)
    }

    /// The table that is created, with its description.
    ///
    /// # Errors
    ///
    /// If the description cannot be written.
    pub(crate) fn definition(&self, mapping: &Mapping) -> Result<TableDef> {
        Ok(TableDef { comment: Some(self.described.text()?), ..mapping.table().clone() })
    }

    /// Fails if the table that is there has another description.
    ///
    /// # Errors
    ///
    /// `Refused`; those of the cluster.
    pub(crate) fn expect_in(&self, cluster: &Cluster) -> Result<()> {
        if described(cluster)?.as_ref() == Some(&self.described) {
            return Ok(());
        }
        let name = self.described.layout.name();
        let what = format!("the table exists, and does not hold these rows in the layout {name}");
        Err(Error::refused(what))
    }

    /// What makes rows of the table of batches.
    pub(crate) fn into_laying(self) -> Laying {
        self.laying
    }
}

/// Fails if the layout that is asked for is not that of a table that is there.
///
/// # Errors
///
/// `Refused`.
pub(crate) fn expect_layout(wanted: Option<TableLayout>, there: Option<&Description>) -> Result<()> {
    let there = there.map_or(TableLayout::Rows, |it| it.layout);
    match wanted {
        Some(wanted) if wanted != there => {
            let [wanted, there] = [wanted, there].map(TableLayout::name);
            let what = format!(
                "the table has the layout {there}, not {wanted}; without this option, rows go into it as it has them"
            );
            Err(Error::refused(what).with(Detail::Option("layout")))
        }
        _ => Ok(()),
    }
}

/// Fails if the rows of a table that is there hold others, and those of a source are to be rows of it themselves: they would be none of its records.
/// A source may be such a table, as its SSTables are, with the same comment.
///
/// # Errors
///
/// `Refused`; those of the cluster.
pub(crate) fn expect_plain(cluster: &Cluster, source: &Table) -> Result<()> {
    let Some(comment) = cluster.comment()? else { return Ok(()) };
    let Some(described) = Description::parse(&comment)? else { return Ok(()) };
    let like = MadeLike::of(source).and_then(std::result::Result::ok);
    if like.is_some_and(|like| like.has_comment(&comment)) {
        return Ok(());
    }
    let name = described.layout.name();
    let what = format!(
        "the table exists, and has the layout {name}; without this option, rows go into it as it has them"
    );
    Err(Error::refused(what).with(Detail::Option("create")))
}

/// Fails for rows that are writes, if a layout other than `rows` is asked for.
///
/// # Errors
///
/// `Misuse`.
pub(crate) fn expect_rows(wanted: Option<TableLayout>) -> Result<()> {
    match wanted.filter(|it| *it != TableLayout::Rows) {
        Some(layout) => {
            let what = format!(
                "these rows are writes, with their own write times, TTLs and deletions, which the layout {} has no place for: \
                 make logical ones of the SSTables",
                layout.name()
            );
            Err(Error::misuse(what).with(Detail::AdmittedBy(&["mapping"])))
        }
        None => Ok(()),
    }
}
