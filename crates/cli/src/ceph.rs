//! `marquetry ceph`: objects of a Ceph are changed where they are, by the object class.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use marquetry::rados::{Form, Pool, Recoding};
use marquetry::{Error, Result};

use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_count, plural, size};
use crate::output::{Interrupted, Output};
use crate::table::printable;

/// Change Parquet objects of a Ceph in their OSDs
#[derive(Debug, Args)]
#[command(
    long_about = "Change Parquet objects of a Ceph where they are, by the object class cls_marquetry, which their OSDs must have loaded. \
A change is many small calls, so that others need not wait for an OSD. Whenever an object is read that is compressed, indexed or merged into, it is whole; \
one that transform makes has some of the rows until it is done. Ctrl-C ends a change after the call that is under way.

The cluster is that of /etc/ceph/ceph.conf, or of the variable CEPH_CONF.",
    after_help = "\
Examples:
  marquetry ceph compress rados://lake/trips/ --codec zstd --level 3
  marquetry ceph index rados://lake/trips/ --column id
  marquetry ceph split rados://lake/trips.parquet rados://lake/trips/part-
  marquetry ceph merge rados://lake/trips.parquet today.parquet
  marquetry ceph transform rados://lake/old/rows rados://lake/old.parquet"
)]
pub(crate) struct Ceph {
    #[command(subcommand)]
    method: Method,
}

#[derive(Debug, Subcommand)]
enum Method {
    /// Compress the pages of objects in another way
    ///
    /// Their encodings, statistics, indexes and Bloom filters stay. One that was interrupted goes on if it is started again in the same way.
    Compress {
        #[command(flatten)]
        objects: Objects,

        /// Compression codec
        #[arg(long, value_name = "CODEC", value_parser = ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"])]
        codec: String,

        /// Compression level; higher is smaller and slower [default: the codec's usual one]
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        level: Option<i32>,
    },

    /// Index the values of a column, for queries of certain values
    ///
    /// The index is beside the object, in its omap, and of one column; an object that is changed loses it.
    Index {
        #[command(flatten)]
        objects: Objects,

        /// Column to index
        #[arg(long, value_name = "COLUMN")]
        column: String,
    },

    /// Write row groups of an object as objects of their own
    ///
    /// They are PREFIX00000.parquet and so on, and each is printed once it is written. The object stays; so do, if it fails or is interrupted, those
    /// that were printed.
    Split {
        /// Object, rados://POOL/NAME
        #[arg(value_name = "OBJECT")]
        from: String,

        /// What the addresses of the new objects begin with, in the same pool
        #[arg(value_name = "PREFIX")]
        to: String,

        /// Row groups of each
        #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>, default_value = "1")]
        row_groups: NonZeroU64,
    },

    /// Add the rows of a Parquet file to an object's, as row groups of their own
    ///
    /// The file has the object's columns, and 4 MiB at most. Nothing of the object travels. If the connection is lost, the rows may have been added
    /// or not: started again, it may add them twice, so count the object's rows first.
    Merge {
        /// Object, rados://POOL/NAME
        #[arg(value_name = "OBJECT")]
        object: String,

        /// Parquet file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },

    /// Make an object in another form: Parquet, an Arrow IPC stream, or the Skyhook project's rows
    ///
    /// Of the three, each is made of the others. `pyarrow.ipc.open_stream` reads an Arrow object as it is.
    ///
    /// If it fails or is interrupted, the new object is removed; ended at once, by a second Ctrl-C, it may stay with some of the rows.
    Transform {
        /// Object, rados://POOL/NAME
        #[arg(value_name = "OBJECT")]
        from: String,

        /// New object, in the same pool
        #[arg(value_name = "NEW")]
        to: String,

        /// Form of the new object
        #[arg(long = "to", value_enum, value_name = "FORM", default_value_t)]
        form: ToForm,
    },
}

#[derive(Debug, Args)]
struct Objects {
    /// Objects, rados://POOL/NAME, or all Parquet objects below rados://POOL/PREFIX/
    #[arg(value_name = "OBJECT", required = true)]
    addresses: Vec<String>,
}

/// What an object is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ToForm {
    /// A Parquet file
    #[default]
    Parquet,
    /// An Arrow IPC stream
    Arrow,
    /// Pieces of rows
    Rows,
}

impl Ceph {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let mut output = Output::new(interrupted);
        match &self.method {
            Method::Compress { objects, codec, level } => {
                let how = Recoding { codec: codec.clone(), level: *level };
                objects.change(&mut output, |pool, object| {
                    let before = pool.stat(object)?.bytes;
                    pool.compress(object, &how)?;
                    Ok(format!("{} of {}", size(pool.stat(object)?.bytes), size(before)))
                })
            }
            Method::Index { objects, column } => objects.change(&mut output, |pool, object| {
                pool.index(object, column)?;
                Ok(format!("{column} is indexed"))
            }),
            Method::Split { from, to, row_groups } => {
                let (pool, from, to) = in_one_pool(from, to, &output)?;
                let (mut written, mut unsaid) = (0_u64, None);
                let split = pool.split(&from, &to, row_groups.get(), |part| {
                    written += 1;
                    say(&mut output, &address(&pool, part)).map_err(|failure| {
                        unsaid = Some(failure);
                        Error::cancelled()
                    })
                });
                let failure = match (split, unsaid) {
                    (Ok(_), _) => return Ok(()),
                    (Err(error), None) => failed(&pool, &from, &error),
                    (Err(_), Some(unsaid)) => unsaid,
                };
                Err(if written == 0 {
                    failure
                } else {
                    failure.and(format!("{} of it stay", plural(written, "new object")))
                })
            }
            Method::Merge { object, file } => {
                let (pool, name) = open(object, &output)?;
                let rows = marquetry::open(file).ok().and_then(|reader| reader.rows());
                pool.merge_file(&name, file).map_err(|error| failed(&pool, &name, &error))?;
                let more = rows.map_or_else(|| "rows".to_owned(), |rows| plural(rows, "row"));
                say(&mut output, &format!("{}: {more} more", address(&pool, &name)))
            }
            Method::Transform { from, to, form } => {
                let (pool, from, to) = in_one_pool(from, to, &output)?;
                let form = match form {
                    ToForm::Parquet => Form::Parquet,
                    ToForm::Arrow => Form::Arrow,
                    ToForm::Rows => Form::Rows,
                };
                let rows = pool.transform(&from, &to, form).map_err(|error| failed(&pool, &from, &error))?;
                say(&mut output, &format!("{}: {}", address(&pool, &to), plural(rows, "row")))
            }
        }
    }
}

impl Objects {
    /// Changes one object after the other, and prints what became of each.
    fn change(&self, output: &mut Output, change: impl Fn(&Pool, &str) -> Result<String>) -> Outcome {
        for given in &self.addresses {
            let (pool, name) = open(given, output)?;
            let objects = pool.parquet_objects(&name);
            for object in objects.map_err(|error| Failure::about(given, &error))? {
                let changed = change(&pool, &object).map_err(|error| failed(&pool, &object, &error))?;
                say(output, &format!("{}: {changed}", address(&pool, &object)))?;
            }
        }
        Ok(())
    }
}

/// The pool of an address, whose changes end when the program is asked to, and the name in it.
fn open(address: &str, output: &Output) -> Outcome<(Pool, String)> {
    let (pool, name) = Pool::at(address).map_err(|error| Failure::about(address, &error))?;
    let interrupted = output.interrupted().clone();
    Ok((pool.cancellable(Arc::new(move || interrupted.is_set())), name))
}

/// A pool, and the names in it of two addresses.
fn in_one_pool(from: &str, to: &str, output: &Output) -> Outcome<(Pool, String, String)> {
    let ((pool, from_name), (other, to_name)) = (open(from, output)?, open(to, output)?);
    if pool.name() != other.name() {
        return Err(Failure::usage(format!(
            "{from} and {to} are in different pools; copy moves rows between them"
        )));
    }
    Ok((pool, from_name, to_name))
}

fn address(pool: &Pool, object: &str) -> String {
    format!("rados://{}/{object}", pool.name())
}

fn failed(pool: &Pool, object: &str, error: &Error) -> Failure {
    Failure::about(address(pool, object), error)
}

/// Prints a line at once: the next object may take long.
fn say(output: &mut Output, line: &str) -> Outcome {
    output.text().extend_from_slice(format!("{}\n", printable(line)).as_bytes());
    output.flush()
}
