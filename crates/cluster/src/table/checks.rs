//! What the options of a load have no meaning for, or mean only for whoever says that he knows.

use marquetry_base::{Detail, Error, Result};
use marquetry_scylla::bridge::Mapping;
use marquetry_scylla::cql::CqlType;
use marquetry_tables::stamps::WriteTimes;

use super::CqlTable;
use crate::options::CqlOptions;
use crate::rejects;
use crate::statement::is_counter;

impl CqlTable {
    /// What the options have no meaning for, each by its name.
    pub(super) fn check_options(&self) -> Result<()> {
        let CqlOptions { create, mapping, timestamp, .. } = &self.options;
        timestamp.clone().checked()?;
        if self.options.dry_run && self.options.state.is_some() {
            return Err(Error::option("dry_run", "nothing is loaded, so there is no state to keep"));
        }
        if let Some(path) = &self.options.rejects
            && !self.options.state.as_ref().is_some_and(|state| state.resume)
        {
            rejects::expect_new(path)?;
        }
        let given =
            [(mapping.key.is_some(), "key"), (!mapping.sets.is_empty(), "sets"), (mapping.frozen, "frozen")];
        match given.into_iter().find(|(is_given, _)| *is_given && !*create) {
            Some((_, name)) => {
                let message = format!(
                    "{name} is for a table that is created; one that exists has its own key and types"
                );
                Err(Error::option(name, message))
            }
            None => Ok(()),
        }
    }

    /// Counters are added to only by whoever knows what that means.
    pub(super) fn check_counters(&self, mapping: &Mapping) -> Result<()> {
        let columns = mapping.columns();
        let Some(counter) = columns.iter().find(|column| is_counter(column)) else { return Ok(()) };
        let of_partition = columns
            .iter()
            .enumerate()
            .find(|(at, column)| is_counter(column) && mapping.is_of_partition(*at));
        if let Some((_, counter)) = of_partition {
            let message = format!(
                "{} is a static counter, which each row of a partition has: each of them would add it",
                counter.name
            );
            return Err(Error::refused(message).with(Detail::AdmittedBy(&["columns"])));
        }
        let CqlOptions { timestamp, ttl, counters_at_least_once, .. } = &self.options;
        let none = |option: &'static str| {
            Err(Error::option(option, "rows of counters have neither write times nor TTLs"))
        };
        if *timestamp != WriteTimes::Now {
            return none("timestamp");
        }
        if ttl.is_some() {
            return none("ttl");
        }
        if *counters_at_least_once {
            return Ok(());
        }
        let message = format!(
            "{} is a counter: loading adds to it, and a row that is sent again, because its answer was lost, may be added twice",
            counter.name
        );
        Err(Error::refused(message).with(Detail::AdmittedBy(&["counters_at_least_once"])))
    }

    /// Lists whose write times are given are doubled by a second load of the same rows: only for whoever knows that.
    pub(super) fn check_lists(&self, mapping: &Mapping) -> Result<()> {
        let is_fixed = self.options.timestamp != WriteTimes::Now;
        let list = mapping.columns().iter().find(|column| matches!(column.cql_type, CqlType::List(_)));
        let Some(list) = list.filter(|_| is_fixed && !self.options.lists_at_least_once) else {
            return Ok(());
        };
        let message = format!(
            "{} is a list that is not frozen: the databases keep its elements under keys of their own, so rows that are loaded \
             again with the same write times have them twice",
            list.name
        );
        Err(Error::refused(message).with(Detail::AdmittedBy(&["lists_at_least_once"])))
    }
}
