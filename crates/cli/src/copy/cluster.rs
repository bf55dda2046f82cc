//! Rows into a table of a live cluster.

use std::num::NonZeroUsize;

use clap::Args;

use marquetry::cluster::{CONCURRENCY, CqlOptions};

use crate::args::RowArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::parse_count;

/// How a cluster is talked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Create the table and its types, unless they exist with the same columns and key
    #[arg(long, help_heading = "Table")]
    create: bool,

    /// Maximum number of rows in flight
    #[arg(
        long,
        value_parser = parse_count::<NonZeroUsize>,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = CONCURRENCY,
        help_heading = "Cluster"
    )]
    concurrency: NonZeroUsize,
}

impl ClusterArgs {
    /// An option that is given and has no meaning elsewhere.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [(self.create, "--create"), (self.concurrency != CONCURRENCY, "--concurrency")];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// How the table is created and the cluster talked to. Which columns there are is the rows' part.
    pub(super) fn options(&self, rows: &RowArgs) -> Outcome<CqlOptions> {
        let mut options = CqlOptions::default();
        if self.create {
            rows.expect_key()?;
        } else if rows.key.is_some() {
            return Err(Failure::usage(
                "--key is for a table that is created: add --create, or leave --key out if the table exists",
            ));
        } else if !rows.as_set.is_empty() || rows.frozen {
            return Err(Failure::usage(
                "--as-set and --frozen are for a table that is created: add --create; an existing table has its own types",
            ));
        }
        rows.table.connection.connect(&mut options.connect);
        (options.create, options.concurrency) = (self.create, self.concurrency);
        options.consistency = rows.table.connection.consistency;
        Ok(options)
    }
}
