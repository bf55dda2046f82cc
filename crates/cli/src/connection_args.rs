//! The options of a live cluster, whether rows come from it or go to it.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use marquetry::cluster::{
    ConnectOptions, Consistency, PASSWORD_VARIABLE, RETRY_FOR, Rate, TlsOptions, UnloadOptions,
};

use crate::failure::{Failure, Outcome};
use crate::numbers::parse_duration;

/// How a cluster is talked to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConnectionArgs {
    /// Consistency level of reads and writes: ONE, TWO, QUORUM, LOCAL_QUORUM, ALL, …
    #[arg(long, value_name = "LEVEL", default_value = "LOCAL_QUORUM", help_heading = "Cluster")]
    pub(crate) consistency: Consistency,

    /// File whose first line is the password
    ///
    /// Of rows that go from one cluster to another, it is the password of both; an address that has a file of its own, as in
    /// cql://USER@HOST/KEYSPACE.TABLE?password_file=FILE, takes that.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    password_file: Option<PathBuf>,

    /// Datacenter whose nodes are read from and written to, and no others
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    local_datacenter: Option<String>,

    /// How long rows are sent, and pages asked for, again when a server is down or overloaded: 90s, 5m, 1h [default: 2m]
    #[arg(long, value_parser = parse_duration, value_name = "TIME", help_heading = "Failures")]
    retry_for: Option<Duration>,

    /// Maximum rows a second, bytes a second, or both, that are written or read: 20K · 10MB · 20K,10MB
    #[arg(long, value_name = "RATE", help_heading = "Cluster")]
    pub(crate) rate: Option<Rate>,

    /// Encrypt connections (TLS), as ?tls=yes in an address does
    ///
    /// The certificate of each node must be signed by an authority that the system trusts, or by one of --ca, and be for the node's IP address or
    /// for a host of the address. Of rows that go from one cluster to another, the options are for both.
    #[arg(long, help_heading = "Cluster")]
    tls: bool,

    /// PEM file with the authorities' certificates to trust; encrypts connections
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    ca: Option<PathBuf>,

    /// PEM file with the client's certificate, for clusters that ask for one; encrypts connections
    #[arg(long, value_name = "FILE", requires = "key_file", help_heading = "Cluster")]
    cert: Option<PathBuf>,

    /// PEM file with the key of --cert, not encrypted
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Cluster")]
    key_file: Option<PathBuf>,

    /// Believe a certificate whatever node it is for, if an authority of --ca signed it
    #[arg(long, requires = "ca", help_heading = "Cluster")]
    tls_any_host: bool,

    /// Secure connect bundle of a database such as DataStax Astra's (a ZIP file), whose address has no host: cql:///KEYSPACE.TABLE
    ///
    /// The bundle says where the nodes are, and how connections are encrypted. The user of an Astra token is `token`.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    bundle: Option<PathBuf>,

    /// Write times and TTLs of a table of a cluster, in a column `mutation`
    ///
    /// Rows have the columns that SSTables have with --mapping full. Servers do not tell everything: each row is taken to have a row marker
    /// as old as its oldest value; TTLs are what was left of them when they were read.
    #[arg(long, help_heading = "Cluster")]
    pub(crate) with_metadata: bool,

    /// Tokens whose rows were copied before.
    #[arg(skip)]
    pub(crate) done: Vec<RangeInclusive<i64>>,

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
            (self.retry_for.is_some(), "--retry-for"),
            (self.rate.is_some(), "--rate"),
            (self.tls, "--tls"),
            (self.ca.is_some(), "--ca"),
            (self.cert.is_some(), "--cert"),
            (self.bundle.is_some(), "--bundle"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// How long is tried again what may pass.
    pub(crate) fn retry_for(&self) -> Duration {
        self.retry_for.unwrap_or(RETRY_FOR)
    }

    /// How a table is read.
    pub(crate) fn unload_options(&self, mut options: UnloadOptions) -> UnloadOptions {
        self.connect(&mut options.connect);
        (options.consistency, options.with_metadata) = (self.consistency, self.with_metadata);
        (options.retry_for, options.rate) = (self.retry_for(), self.rate.unwrap_or_default());
        options.done.clone_from(&self.done);
        options
    }

    /// How to connect.
    pub(crate) fn connect(&self, options: &mut ConnectOptions) {
        options.password_file.clone_from(&self.password_file);
        options.local_datacenter.clone_from(&self.local_datacenter);
        options.bundle.clone_from(&self.bundle);
        options.password_variable = Some(PASSWORD_VARIABLE.to_owned());
        if self.tls || self.ca.is_some() || self.cert.is_some() {
            let mut tls = TlsOptions::default();
            tls.authorities.clone_from(&self.ca);
            (tls.certificate, tls.key) = (self.cert.clone(), self.key_file.clone());
            tls.verify_hosts = !self.tls_any_host;
            options.tls = Some(tls);
        }
    }
}
