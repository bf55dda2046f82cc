//! The options of a live cluster, whether rows come from it or go to it.

use std::path::PathBuf;

use clap::Args;

use marquetry::cluster::{ConnectOptions, Consistency, UnloadOptions};

use crate::failure::{Failure, Outcome};

/// How a cluster is talked to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConnectionArgs {
    /// Consistency level of reads and writes: ONE, TWO, QUORUM, LOCAL_QUORUM, ALL, …
    #[arg(long, value_name = "LEVEL", default_value = "LOCAL_QUORUM", help_heading = "Cluster")]
    pub(crate) consistency: Consistency,

    /// File whose first line is the password
    ///
    /// Of rows that go from one cluster to another, it is the password of both.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    password_file: Option<PathBuf>,

    /// Datacenter whose nodes are read from and written to, and no others
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    local_datacenter: Option<String>,

    /// Write times and TTLs of a table of a cluster, in a column `mutation`
    ///
    /// Rows have the columns that SSTables have with --mapping full. Servers do not tell everything: each row is taken to have a row marker
    /// as old as its oldest value; TTLs are what was left of them when they were read.
    #[arg(long, help_heading = "Cluster")]
    with_metadata: bool,

    /// The rows go to a cluster, too.
    #[arg(skip)]
    pub(crate) has_destination: bool,
}

impl ConnectionArgs {
    /// Fails if there are options, and no cluster that they are for.
    pub(crate) fn check(&self, is_source: bool) -> Outcome {
        if self.with_metadata && !is_source {
            return Err(Failure::usage(
                "--with-metadata is for tables of a cluster: cql://HOST/KEYSPACE.TABLE",
            ));
        }
        match self.given().filter(|_| !is_source && !self.has_destination) {
            Some(option) => Err(Failure::usage(format!("{option} is for tables of a cluster"))),
            None => Ok(()),
        }
    }

    /// An option that is given, and is for sources and destinations.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.consistency != Consistency::default(), "--consistency"),
            (self.password_file.is_some(), "--password-file"),
            (self.local_datacenter.is_some(), "--local-datacenter"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// How a table is read.
    pub(crate) fn unload_options(&self, mut options: UnloadOptions) -> UnloadOptions {
        self.connect(&mut options.connect);
        (options.consistency, options.with_metadata) = (self.consistency, self.with_metadata);
        options
    }

    /// How to connect.
    pub(crate) fn connect(&self, options: &mut ConnectOptions) {
        options.password_file.clone_from(&self.password_file);
        options.local_datacenter.clone_from(&self.local_datacenter);
        options.password_variable = Some(PASSWORD_VARIABLE.to_owned());
    }
}

/// The variable that may hold the password.
const PASSWORD_VARIABLE: &str = "MARQUETRY_PASSWORD";
