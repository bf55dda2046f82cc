//! Rows into a table of a live cluster.

use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use marquetry_base::Error;
use marquetry_base::cast::u64_of;
use marquetry_cluster::{
    Address, CONCURRENCY, ConnectOptions, Consistency, Created, LoadOptions, Loaded, Loader, RowBlock,
    RowSource,
};
use marquetry_scylla::bridge::{Cell, Existing, MappedBatch, Mapping, MappingOptions};
use marquetry_scylla::cql::ddl::{KeyPart, TableDef};
use marquetry_scylla::cql::{CqlType, KeySpec, Name, TableName, TypeDef};
use marquetry_tables::{Reading, ReadingOptions, Source};

use super::Copying;
use crate::args::Nulls;
use crate::failure::{Exit, Failure, Outcome, located, plain};
use crate::numbers::thousands;
use crate::output::Interrupted;
use crate::progress::{Goes, Progress};
use crate::rows::rows_wanted;

/// How a cluster is talked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Make the table and its types, unless they are there already with the same columns and key
    #[arg(long, help_heading = "Table")]
    create: bool,

    /// Rows in flight at most
    #[arg(long, value_name = "N", default_value_t = CONCURRENCY, help_heading = "Cluster")]
    concurrency: NonZeroUsize,

    /// How many replicas must have a row: ONE, TWO, QUORUM, LOCAL_QUORUM, ALL, …
    #[arg(long, value_name = "LEVEL", default_value = "LOCAL_QUORUM", help_heading = "Cluster")]
    consistency: Consistency,

    /// Read the password from the first line of this file
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
    pub(super) fn copy(&self, copying: &Copying<'_>, address: Address) -> Outcome<String> {
        let Copying { from, rows, quiet, interrupted } = *copying;
        let mut mapping_options = rows.mapping_options()?;
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
        let connect = self.connect_options(address.user().is_some(), address.password().is_some())?;
        let source: Arc<dyn Source> = rows.table.open(from, interrupted)?;
        // With --create all that the files themselves can have wrong is found before a cluster is bothered.
        let early =
            if self.create { Some(mapping_of(&source, address.table(), &mapping_options)?) } else { None };
        interrupted.check()?;
        let table_name = address.table().clone();
        let mut loader = Loader::connect(address, &connect).map_err(|error| {
            // Whoever does not wait for a timeout is not interested in it.
            if interrupted.is_set() { Failure::Interrupted } else { failure(None, &error) }
        })?;
        interrupted.check()?;
        let mapping = match early {
            Some(mapping) => {
                let created = loader
                    .create_table(mapping.table(), mapping.types())
                    .map_err(|error| failure(None, &error))?;
                if created == Created::AlreadyThere && !quiet {
                    crate::failure::say(
                        "marquetry",
                        &format!("note: the table {table_name} is there already"),
                    );
                }
                mapping
            }
            None => {
                let table = loader.table().map_err(|error| failure(None, &error))?.ok_or_else(|| {
                    Failure::refused(format!("the cluster has no table {table_name}; --create makes it"))
                })?;
                mapping_options.key = Some(key_of(&table));
                let types = loader.types().map_err(|error| failure(None, &error))?;
                let columns = table.columns.into_iter().map(|it| (it.name, it.cql_type)).collect();
                mapping_options.existing = Some(Existing { columns, types });
                mapping_of(&source, &table_name, &mapping_options)?
            }
        };
        let total = self.load(&mut loader, &source, mapping, copying)?;
        Ok(total.summary(&table_name.to_string()))
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

    /// Loads the rows.
    fn load(
        &self,
        loader: &mut Loader,
        source: &Arc<dyn Source>,
        mapping: Mapping,
        copying: &Copying<'_>,
    ) -> Outcome<Total> {
        let Copying { rows, interrupted, .. } = *copying;
        let options = LoadOptions {
            concurrency: self.concurrency,
            consistency: self.consistency,
            nulls: match rows.nulls {
                Nulls::Unset => marquetry_cluster::Nulls::Unset,
                Nulls::Null => marquetry_cluster::Nulls::Tombstone,
            },
            ..LoadOptions::default()
        };
        let mapping = Arc::new(mapping);
        let mut reading = ReadingOptions::default();
        reading.piece.limit = rows.limit;
        reading.cancel = interrupted.cancel();
        let progress = Progress::new(rows_wanted(source.table(), rows.limit), copying.quiet, Goes::Elsewhere);
        let rows = ReadRows {
            name: source.table().name.clone(),
            columns: mapping.columns().iter().map(|it| (it.name.clone(), it.cql_type.clone())).collect(),
            mapping,
            reading: Reading::new(Arc::clone(source), reading)?,
            batch: None,
            rows: 0,
        };
        let mut total = Total { rows: 0, bytes: 0, retries: 0, started: Instant::now() };
        let mut report = |loaded: &Loaded| progress.update(loaded.rows, loaded.bytes);
        match loader.load(Box::new(rows), &options, &mut report) {
            Ok(loaded) => total.add(&loaded),
            Err(error) => {
                progress.clear();
                return Err(stopped(&source.table().name, &error, interrupted));
            }
        }
        Ok(total)
    }
}

/// The variable that may hold the password.
const PASSWORD_VARIABLE: &str = "MARQUETRY_PASSWORD";

/// What was loaded of all files.
struct Total {
    rows: u64,
    bytes: u64,
    retries: u64,
    started: Instant,
}

impl Total {
    fn add(&mut self, loaded: &Loaded) {
        self.rows += loaded.rows;
        self.bytes += loaded.bytes;
        self.retries += loaded.retries;
    }

    fn summary(&self, table: &str) -> String {
        let again = match self.retries {
            0 => String::new(),
            retries => format!("{} sent again", thousands(retries)),
        };
        super::summary(self.rows, &format!("loaded into {table}"), self.started, &again)
    }
}

/// A table's rows as cells, for the loader.
struct ReadRows {
    name: String,
    columns: Vec<(Name, CqlType)>,
    mapping: Arc<Mapping>,
    reading: Reading,
    /// The batch at hand, its piece, and its next row.
    batch: Option<(usize, MappedBatch, usize)>,
    /// Rows so far.
    rows: u64,
}

impl RowSource for ReadRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[(Name, CqlType)] {
        &self.columns
    }

    fn types(&self) -> &[TypeDef] {
        self.mapping.types()
    }

    fn fill(&mut self, block: &mut RowBlock) -> Result<bool, Error> {
        loop {
            let (piece, mut batch, mut next) = match self.batch.take() {
                Some(at_hand) => at_hand,
                None => match self.reading.next()? {
                    Some((piece, batch)) => (piece, self.mapping.assemble(batch)?, 0),
                    None => return Ok(false),
                },
            };
            while next < batch.rows() && !block.is_full() {
                block.start_row(batch.first_row() + u64_of(next));
                for column in 0..self.columns.len() {
                    let written = block.cell(|out| {
                        self.mapping.write_cell(column, &mut batch, next, self.rows, out).map(Cell::is_value)
                    });
                    let name = self.reading.name_of(piece);
                    written.map_err(|error| error.at(|place| place.object = Some(name.to_string())))?;
                }
                self.rows += 1;
                next += 1;
            }
            if next < batch.rows() {
                self.batch = Some((piece, batch, next));
            }
            if block.is_full() {
                return Ok(true);
            }
        }
    }
}

/// How the table becomes one of the database. Whatever can be wrong before the first row is found here.
fn mapping_of(source: &Arc<dyn Source>, table: &TableName, options: &MappingOptions) -> Outcome<Mapping> {
    let mapping = Mapping::new(&source.table().schema, table.clone(), options);
    mapping.map_err(|error| Failure::about(&source.table().name, &error))
}

/// The primary key of a table that is there, as a person would type it.
fn key_of(table: &TableDef) -> KeySpec {
    let part = |at: &usize| KeyPart {
        text: table.columns.get(*at).map(|column| column.name.as_str().to_string()).unwrap_or_default(),
        quoted: true,
    };
    KeySpec {
        partition: table.partition_key.iter().map(part).collect(),
        clustering: table.clustering.iter().map(|(at, order)| (part(at), *order)).collect(),
    }
}

/// A load's error: with it, how far it came.
fn stopped(name: &str, error: &marquetry_cluster::Error, interrupted: &Interrupted) -> Failure {
    let (reason, loaded) = match error {
        marquetry_cluster::Error::Stopped { reason, loaded } => (&**reason, loaded.rows),
        other => (other, 0),
    };
    let had = format!("{} rows had been loaded", thousands(loaded));
    if interrupted.is_set() {
        return Failure::Said(Exit::Interrupted, format!("interrupted; {had}"));
    }
    match failure(Some(name), reason) {
        Failure::Said(exit, message) => Failure::Said(exit, format!("{message}; {had}")),
        other => other,
    }
}

/// A cluster's error, blamed on whom it concerns.
fn failure(file: Option<&str>, error: &marquetry_cluster::Error) -> Failure {
    use marquetry_cluster::Error as Cluster;
    match error {
        Cluster::Row(error) => match error.place().object.as_deref().or(file) {
            Some(file) => Failure::about(file, error),
            None => Failure::refused(located(error)),
        },
        Cluster::Unsupported(_) => Failure::usage(error.to_string()),
        Cluster::Start(_) | Cluster::Connect { .. } | Cluster::ConnectTimeout { .. } => {
            Failure::unreachable(plain(&error.to_string()))
        }
        Cluster::Internal(_) => Failure::bug(error.to_string()),
        _ => Failure::refused(error.to_string()),
    }
}
