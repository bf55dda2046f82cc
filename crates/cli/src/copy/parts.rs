//! A table of a cluster into a directory, file by file, so that a copy that was interrupted goes on.

use std::path::Path;
use std::time::Instant;

use marquetry::Target;
use marquetry::tables::parquet::DirectoryOptions;
use marquetry::tables::{Address, Copied, CopyOptions, Parts};

use super::Copying;
use super::file::FileArgs;
use super::of_rows::of_rows;
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, size};
use crate::progress::{Goes, Progress};
use crate::table::printable;
use crate::table_args::{noted, say_notes};

impl FileArgs {
    /// Copies; returns what is said of it.
    pub(super) fn copy_in_parts(
        &self,
        copying: &Copying<'_>,
        target: &Target,
        (state, resume): (&Path, bool),
        directory: &DirectoryOptions,
    ) -> Outcome<String> {
        let started = Instant::now();
        let is_table = |path: &std::path::PathBuf| Address::parse(path).scheme() == Some("cql");
        if !copying.from.iter().all(is_table) {
            return Err(Failure::usage(
                "--state is for rows into a table of a cluster, and for those of one into a directory",
            ));
        }
        let Address::Path(path) = target.address() else {
            return Err(Failure::usage(
                "--state is for local directories: objects of stores cannot be looked at for what is missing",
            ));
        };
        let given = [
            (self.is_sorted(), "--sort"),
            (!directory.partition_by.is_empty(), "--partition-by"),
            (directory.file_rows.is_some(), "--file-rows"),
            (directory.file_bytes.is_some(), "--file-bytes"),
            (directory.parquet.overwrite, "--overwrite"),
            (copying.rows.limit.is_some(), "--limit"),
        ];
        if let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::usage(format!(
                "{option} has no meaning with --state: rows are in files by their tokens, and each file appears when it is complete"
            )));
        }
        let mut parts = Parts::open(state, path, resume, &of_rows(copying.rows))?;
        let mut rows = copying.rows.clone();
        rows.table.connection.done = parts.done();
        let source = rows.table.open_for(target.address(), copying.from, copying.interrupted)?;
        if !copying.quiet {
            say_notes(source.table());
        }
        let mut options = CopyOptions::default();
        options.verify = self.verifies();
        (options.threads, options.cancel) = (copying.threads.get(), copying.interrupted.cancel());
        let was_finished = parts.is_finished();
        let progress = Progress::of_copy(source.table(), &options, false, copying.quiet, Goes::Elsewhere);
        let metrics = copying.metrics(None)?;
        let mut report = |copied: &Copied| {
            progress.copied(copied);
            metrics.iter().for_each(|metrics| metrics.copied(copied));
        };
        let copied = parts.copy(&source, &directory.parquet, &options, &mut report);
        progress.clear();
        let in_all = format!("{} in {}", plural(parts.rows(), "row"), plural(parts.files(), "file"));
        let copied = copied.map_err(|error| {
            Failure::from(error).and(format_args!("{in_all} are complete; --resume goes on with the others"))
        })?;
        let mut notes = noted(Vec::new(), &options.lost, copying.quiet);
        if copying.json {
            notes.insert(0, format!("{in_all} are complete"));
            return super::summary_json(copying, &copied, &path.display().to_string(), notes, started);
        }
        if was_finished {
            return Ok(format!(
                "this copy was finished before: {in_all}; remove {} to copy again\n",
                printable(&state.display().to_string())
            ));
        }
        let what =
            format!("written to {}: {},", printable(&path.display().to_string()), size(copied.written.bytes));
        Ok(super::summary(copied.rows, &what, started, &format!("{in_all} in all")))
    }
}
