//! Whether a table is still the one that rows go to: somebody may drop it meanwhile, and create another one of its name.

use std::time::Duration;

use marquetry_scylla::cql::{TableDef, TableName};
use marquetry_tables::Table;
use scylla::client::session::Session;

use crate::error::{Difference, Error, Result};
use crate::retry::{Patience, is_passing};
use crate::schema;

/// A table as it was when its rows began to be sent.
#[derive(Debug)]
pub(crate) struct SameTable {
    name: TableName,
    id: String,
    cluster: Option<String>,
    definition: TableDef,
}

impl SameTable {
    /// The table as it is.
    ///
    /// # Errors
    ///
    /// [`Error::NoTable`], and the cluster's errors.
    pub(crate) async fn of(session: &Session, name: TableName) -> Result<SameTable> {
        let id = schema::read_id(session, &name).await?;
        let definition = schema::read(session, &name).await?;
        let definition = definition.ok_or_else(|| Error::NoTable(name.clone()))?;
        Ok(SameTable { name, id, cluster: cluster_of(session), definition })
    }

    /// Whether a source's rows are this table's.
    pub(crate) fn is(&self, source: &Table) -> bool {
        source.identity.as_ref() == Some(&self.id) && source.cluster == self.cluster
    }

    /// What the cluster knows it by.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Looks whether rows still go to it. A cluster that does not answer is asked again, for so long.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`] if it was dropped, also if another one has its name by now, or lacks columns, or has them with other types; the
    /// cluster's errors.
    pub(crate) async fn check(&self, session: &Session, retry_for: Duration) -> Result<()> {
        let may_pass = |error: &Error| matches!(error, Error::Statement { reason, .. } if is_passing(reason));
        Patience::new(retry_for, 0).send(may_pass, |_| self.look(session)).await
    }

    async fn look(&self, session: &Session) -> Result<()> {
        let changed = |how: String| Err(Error::Changed { table: self.name.clone(), how });
        match schema::read_id(session, &self.name).await {
            Ok(id) if id == self.id => {}
            Ok(_) => return changed("dropped, and created again: rows sent before are not in it".to_owned()),
            Err(Error::NoTable(_)) => return changed("dropped".to_owned()),
            Err(error) => return Err(error),
        }
        let Some(now) = schema::read(session, &self.name).await? else {
            return changed("dropped".to_owned());
        };
        let mut differences = schema::compare(&now, &self.definition);
        differences.retain(|difference| !matches!(difference, Difference::Extra(_)));
        match differences.is_empty() {
            true => Ok(()),
            false => {
                let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
                changed(format!("altered: {}", all.join("; ")))
            }
        }
    }
}

/// What tells a cluster from others: the least of its nodes' identifiers.
pub(crate) fn cluster_of(session: &Session) -> Option<String> {
    let state = session.get_cluster_state();
    state.get_nodes_info().iter().map(|node| node.host_id).min().map(|id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::schema::Schema;
    use marquetry_scylla::cql::Definitions;
    use std::sync::Arc;

    /// A snapshot's schema is restored with the identifier that the table had.
    #[test]
    fn a_table_of_another_cluster_is_another() {
        let some = |text: &str| Some(text.to_owned());
        let definition = Definitions::parse("CREATE TABLE k.t (k int PRIMARY KEY)").unwrap().tables.remove(0);
        let name = definition.table.clone();
        let same = SameTable { name, id: "7".to_owned(), cluster: some("a"), definition };
        let mut source = Table::new("cql://db1/k.t", Arc::new(Schema::of_fields(&[]).unwrap()));
        assert!(!same.is(&source));
        (source.identity, source.cluster) = (some("7"), some("a"));
        assert!(same.is(&source));
        source.cluster = some("b");
        assert!(!same.is(&source));
        (source.identity, source.cluster) = (some("8"), some("a"));
        assert!(!same.is(&source));
    }
}
