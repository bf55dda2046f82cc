//! Rows into a table of a live cluster.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use marquetry::cluster::{CONCURRENCY, Consistency, CqlOptions};

use crate::args::RowArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::parse_count;

/// How a cluster is talked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Create the table and its types, unless they exist with the same columns and key
    #[arg(long, help_heading = "Table")]
    pub(super) create: bool,

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

    /// Consistency level of writes: ONE, TWO, QUORUM, LOCAL_QUORUM, ALL, …
    #[arg(long, value_name = "LEVEL", default_value = "LOCAL_QUORUM", help_heading = "Cluster")]
    consistency: Consistency,

    /// File whose first line is the password
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    password_file: Option<PathBuf>,
}

impl ClusterArgs {
    /// An option that is given and has no meaning elsewhere.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.create, "--create"),
            (self.concurrency != CONCURRENCY, "--concurrency"),
            (self.consistency != Consistency::LocalQuorum, "--consistency"),
            (self.password_file.is_some(), "--password-file"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// How the table is created and the cluster talked to. Which columns there are is the rows' part.
    pub(super) fn options(&self, rows: &RowArgs) -> Outcome<CqlOptions> {
        let mut options = CqlOptions::default();
        if !self.create && rows.key.is_some() {
            return Err(Failure::usage(
                "--key is for a table that is created: add --create, or leave --key out if the table exists",
            ));
        }
        if !self.create && (!rows.as_set.is_empty() || rows.frozen) {
            return Err(Failure::usage(
                "--as-set and --frozen are for a table that is created: add --create; an existing table has its own types",
            ));
        }
        options.connect.password_file.clone_from(&self.password_file);
        options.connect.password_variable = Some(PASSWORD_VARIABLE.to_owned());
        (options.create, options.concurrency) = (self.create, self.concurrency);
        options.consistency = self.consistency;
        Ok(options)
    }
}

/// The variable that may hold the password.
const PASSWORD_VARIABLE: &str = "MARQUETRY_PASSWORD";
