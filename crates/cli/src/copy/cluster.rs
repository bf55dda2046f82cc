//! Rows into a table of a live cluster.

use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use marquetry::cluster::{
    CONCURRENCY, ConnectOptions, Consistency, CqlAddress, CqlOptions, CqlTable, Created,
};
use marquetry::tables::{CopyOptions, Destination, Source, Written, copy};

use super::Copying;
use crate::args::RowArgs;
use crate::failure::{Failure, Outcome, plain, say};
use crate::numbers::thousands;
use crate::progress::{Goes, Progress};

/// How a cluster is talked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Create the table and its types, unless they exist with the same columns and key
    #[arg(long, help_heading = "Table")]
    create: bool,

    /// Maximum number of rows in flight
    #[arg(long, value_name = "N", default_value_t = CONCURRENCY, help_heading = "Cluster")]
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

    /// Copies; says what was done.
    pub(super) fn copy(&self, copying: &Copying<'_>, address: CqlAddress) -> Outcome<String> {
        let Copying { from, rows, quiet, interrupted } = *copying;
        let options = self.options(rows, &address)?;
        let source: Arc<dyn Source> = rows.table.open(from, interrupted)?;
        let name = address.table().to_string();
        let mut table = CqlTable::new(address, options);
        let mut how = CopyOptions::default();
        how.limit = rows.limit;
        how.cancel = interrupted.cancel();
        let bar = Progress::of_copy(source.table(), &how, false, quiet, Goes::Elsewhere);
        let started = Instant::now();
        let copied = copy(&source, &mut table, &how, &mut |copied| bar.copied(copied));
        bar.clear();
        if !quiet && table.created() == Some(Created::AlreadyThere) {
            say("marquetry", &format!("note: the table {name} already exists"));
        }
        match (copied, table.progress()) {
            (Ok(copied), _) => Ok(summary(&name, &copied.written, started)),
            (Err(error), None) => Err(error.into()),
            (Err(error), Some(Written { rows, .. })) => {
                Err(Failure::from(error).and(format_args!("{} rows had been loaded", thousands(rows))))
            }
        }
    }

    fn options(&self, rows: &RowArgs, address: &CqlAddress) -> Outcome<CqlOptions> {
        let mut options = CqlOptions::default();
        options.mapping = rows.mapping_options()?;
        if self.create {
            rows.expect_key()?;
        } else if rows.key.is_some() {
            return Err(Failure::usage(
                "--key is for a table that is made: add --create, or leave --key out where the table is there",
            ));
        } else if !rows.as_set.is_empty() || rows.frozen {
            return Err(Failure::usage(
                "--as-set and --frozen are for a table that is made: add --create; a table that is there has its own types",
            ));
        }
        options.connect = self.connect_options(address.user().is_some(), address.password().is_some())?;
        (options.create, options.concurrency) = (self.create, self.concurrency);
        options.consistency = self.consistency;
        Ok(options)
    }

    fn connect_options(&self, has_user: bool, has_password: bool) -> Outcome<ConnectOptions> {
        let mut options = ConnectOptions::default();
        if let Some(path) = &self.password_file {
            if !has_user {
                return Err(Failure::usage("--password-file needs a user in the address: cql://USER@HOST/…"));
            }
            if has_password {
                return Err(Failure::usage(
                    "there are two passwords: one in the address, and one in --password-file; leave one of them out",
                ));
            }
            let name = path.display();
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::unreachable(format!("{name}: {}", plain(&error.to_string()))))?;
            let password = text.lines().next().unwrap_or_default();
            if password.is_empty() {
                return Err(Failure::usage(format!("{name}: the first line, the password, is empty")));
            }
            options.password = Some(password.to_string());
        } else if has_user && !has_password {
            match env::var(PASSWORD_VARIABLE) {
                Ok(password) => options.password = Some(password),
                Err(env::VarError::NotPresent) => {}
                Err(env::VarError::NotUnicode(_)) => {
                    return Err(Failure::usage(format!("the variable {PASSWORD_VARIABLE} is not UTF-8")));
                }
            }
        }
        Ok(options)
    }
}

/// The variable that may hold the password.
const PASSWORD_VARIABLE: &str = "MARQUETRY_PASSWORD";

fn summary(table: &str, loaded: &Written, started: Instant) -> String {
    let again = match loaded.retries {
        0 => String::new(),
        retries => format!("{} sent again", thousands(retries)),
    };
    super::summary(loaded.rows, &format!("loaded into {table}"), started, &again)
}
