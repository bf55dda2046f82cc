//! A table that a load creates: with the options of the source's, and its indexes at the end.

use marquetry_base::Result;
use marquetry_scylla::cql::{TableDef, TypeDef};
use marquetry_tables::Table;

use super::CqlTable;
use crate::cluster::{Cluster, Created};
use crate::made_like::MadeLike;
use crate::state::State as LoadState;

impl CqlTable {
    /// Makes the table, or compares it with the one that is there, and only that where nothing is to be done. If it is as the source's, it has that one's
    /// options, and gets its indexes after the rows.
    pub(super) fn create(
        &mut self,
        cluster: &Cluster,
        (table, types): (&TableDef, &[TypeDef]),
        source: &Table,
        state: Option<&mut LoadState>,
    ) -> Result<()> {
        let like = MadeLike::of(source);
        let fitting = like.as_ref().and_then(|like| like.as_ref().ok());
        let fitting = fitting.filter(|like| !self.is_laid() && like.fits(table));
        let properties = fitting.map(MadeLike::properties).unwrap_or_default();
        let compared = cluster.compare_table(table, types)?;
        let mut created = compared.created();
        // A table that an earlier run of this load has created waits for its indexes; another one may do without.
        let mut is_own = created == Created::New || state.as_ref().is_some_and(|state| state.makes_table);
        if !self.options.dry_run {
            let makes_table = created == Created::New;
            let mut state = state.filter(|_| makes_table);
            if let Some(state) = &mut state {
                state.make_table(true)?;
            }
            let made = cluster.create(compared, properties);
            if makes_table && !matches!(made, Ok(Created::New)) {
                is_own = false;
                let undone = state.map_or(Ok(()), |state| state.make_table(false));
                created = made?;
                undone?;
            } else {
                created = made?;
            }
        }
        self.created = Some(created);
        self.indexes = fitting.map(|like| like.indexes(self.address.table())).unwrap_or_default();
        self.makes_indexes = is_own;
        if is_own {
            self.default_ttl_s = fitting.map_or(0, MadeLike::default_ttl_s);
        }
        self.left_out = match &like {
            Some(Ok(like)) if fitting.is_none() => like.in_words(),
            Some(Err(why)) => Some(format!(
                "options and indexes that the source's table may have: its statements (schema.cql, or marquetry.table.schema in a file) {why}"
            )),
            _ => None,
        };
        if !self.options.dry_run {
            self.types = types.iter().map(|it| it.name.clone()).collect();
        }
        Ok(())
    }
}
