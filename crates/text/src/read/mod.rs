//! Machines that read text.
//!
//! Reading has two parts. A [`TextSampler`] examines the first rows of a text and infers its columns; a [`TextReader`]
//! turns all rows into batches. Both are fed the text from its start, in pieces of any size, and neither waits. The
//! result does not depend on the pieces. So that several readers can share the work, a [`TextSplitter`] splits a text
//! into blocks of complete rows.
//!
//! ```
//! use marquetry_base::{Budget, Bytes, Step};
//! use marquetry_text::read::{Read, ReadOptions, Sampled, TextReader, TextSampler};
//! use marquetry_text::{Format, TextOptions};
//!
//! let text = Bytes::from_static(b"id,name\n1,a\n2,b\n");
//! let mut budget = Budget::unlimited();
//!
//! let mut sampler = TextSampler::new(Format::Csv, &TextOptions::default())?;
//! sampler.feed(text.clone())?;
//! sampler.finish();
//! let Step::Ready(Sampled::Sample(sample)) = sampler.step(&mut budget)? else { panic!() };
//! let form = sample.form()?;
//! assert_eq!(form.columns().to_string(), "id bigint, name text");
//!
//! let mut reader = TextReader::new(&form, ReadOptions::default())?;
//! reader.feed(text)?;
//! reader.finish();
//! let Step::Ready(Read::Rows(batch)) = reader.step(&mut budget)? else { panic!() };
//! assert_eq!((batch.rows, batch.columns.len()), (2, form.schema().leaves().len()));
//! assert_eq!(reader.step(&mut budget)?, Step::Done);
//! # Ok::<(), marquetry_base::Error>(())
//! ```

mod delimited;
mod lines;
mod place;
mod quotes;
mod split;
mod window;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Failed, Limits, Result, Step};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::Fed;

use crate::{Columns, Format, TextOptions};

pub use split::{Block, Split, SplitOptions, TextSplitter};

use split::{Quotes, Rule};

/// Examines the first rows of a text to infer the names and types of its columns.
///
/// ```text
/// feed(bytes) -> Taken | Full(bytes)     when step answers Ready(Sampled::Room)
/// finish()                               after the last bytes
/// step(budget) -> Ready(Sampled::Room) | Ready(Sampled::Sample(sample)) | Yield | Done | error
/// ```
///
/// It examines about [`TextOptions::infer_bytes`], and at least one row; if the columns are given, only the first row
/// of delimited text, and none of JSON lines. After the sample, the rest need not be fed.
///
/// Errors are sticky. Errors in the text begin with the line, counted from 1.
#[derive(Debug)]
pub struct TextSampler {
    kind: SamplerKind,
    is_done: bool,
    failed: Failed,
}

#[derive(Debug)]
enum SamplerKind {
    Delimited(Box<delimited::Sampler>),
    Lines(Box<lines::Sampler>),
}

/// What a [`TextSampler`] returns.
#[derive(Debug, Clone)]
pub enum Sampled {
    /// It takes more bytes; at the text's end, [finish](TextSampler::finish) it.
    Room,
    /// The result.
    Sample(Sample),
}

/// The result of sampling a text. Samples of several texts can be [joined](Sample::join), so that their types hold the
/// values of all of them.
#[derive(Debug, Clone)]
pub struct Sample(SampleKind);

#[derive(Debug, Clone)]
enum SampleKind {
    Delimited(delimited::Sample),
    Lines(lines::Sample),
}

/// How a text becomes a table: its columns, and how to find them in the text.
#[derive(Debug, Clone)]
pub struct TextForm {
    columns: Columns,
    schema: Arc<Schema>,
    kind: FormKind,
}

#[derive(Debug, Clone)]
enum FormKind {
    Delimited(Arc<delimited::Form>),
    Lines(Arc<lines::Form>),
}

/// How rows are read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The leaves of the schema that batches contain, in this order. `None`: all.
    pub leaves: Option<Vec<usize>>,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
    /// Limits of sizes: see [`TextOptions::limits`].
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { leaves: None, batch_rows: 8192, limits: Limits::DEFAULT }
    }
}

/// Turns a text's rows into batches.
///
/// ```text
/// feed(bytes) -> Taken | Full(bytes)     when step answers Ready(Read::Room)
/// finish()                               after the last bytes
/// step(budget) -> Ready(Read::Room) | Ready(Read::Rows(batch)) | Yield | Done | error
/// ```
///
/// Instead of the complete text it may read blocks of it, one after the other: [`read_block`](TextReader::read_block).
///
/// Flat columns of a batch are spaced, nested ones have levels. Texts stay where they were read: a batch keeps its
/// piece of the text alive, usually 512 KiB.
///
/// Errors are sticky. Errors in the text begin with the line, counted from 1, and name the column. An error with the
/// detail [`AdmittedBy`](marquetry_base::Detail::AdmittedBy) would not have occurred with another value of that
/// [option](TextOptions).
#[derive(Debug)]
pub struct TextReader {
    kind: ReaderKind,
    /// What is to come of a block, while one is read.
    block: Option<VecDeque<Bytes>>,
    /// Something was fed, and is not read to its end.
    is_reading: bool,
    failed: Failed,
}

#[derive(Debug)]
enum ReaderKind {
    Delimited(Box<delimited::Rows>),
    Planning(Box<lines::Planner>),
    Lines(Box<lines::Rows>),
}

/// What a [`TextReader`] returns.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// It takes more bytes; at the text's end, [finish](TextReader::finish) it.
    Room,
    /// The next rows.
    Rows(Batch),
}

impl TextSampler {
    /// A sampler of a text of this format.
    ///
    /// # Errors
    ///
    /// `Misuse`, as [`TextOptions::check`].
    pub fn new(format: Format, options: &TextOptions) -> Result<TextSampler> {
        let kind = match format {
            Format::Csv | Format::Tsv => {
                SamplerKind::Delimited(Box::new(delimited::Sampler::new(format, options)?))
            }
            Format::JsonLines => {
                options.check(format)?;
                SamplerKind::Lines(Box::new(lines::Sampler::new(options)))
            }
        };
        Ok(TextSampler { kind, is_done: false, failed: Failed::default() })
    }

    /// Passes the next bytes, if there is room. Bytes after the sample are dropped.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`TextSampler::finish`]; the error of a failed sampler.
    pub fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.failed.check()?;
        if self.is_done {
            return Ok(Fed::Taken);
        }
        match &mut self.kind {
            SamplerKind::Delimited(sampler) => sampler.feed(bytes),
            SamplerKind::Lines(sampler) => sampler.feed(bytes),
        }
    }

    /// Ends the text: nothing more will be fed.
    pub fn finish(&mut self) {
        match &mut self.kind {
            SamplerKind::Delimited(sampler) => sampler.finish(),
            SamplerKind::Lines(sampler) => sampler.finish(),
        }
    }

    /// Works until there is an answer or the budget is spent.
    ///
    /// # Errors
    ///
    /// What is wrong in the text, with its line; then the same again.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Sampled>> {
        Failed::run(self, |sampler| &mut sampler.failed, |sampler| sampler.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Sampled>> {
        if self.is_done {
            return Ok(Step::Done);
        }
        let step = match &mut self.kind {
            SamplerKind::Delimited(sampler) => {
                sampler.step(budget)?.map(|sample| sample.map(SampleKind::Delimited))
            }
            SamplerKind::Lines(sampler) => sampler.step(budget)?.map(|sample| sample.map(SampleKind::Lines)),
        };
        self.is_done = matches!(step, Step::Ready(Some(_)));
        Ok(step.map(|sample| sample.map_or(Sampled::Room, |sample| Sampled::Sample(Sample(sample)))))
    }
}

impl Sample {
    /// Whether the column types of another text can be joined with these: both are delimited text with the same names,
    /// in any order, or both are JSON lines.
    pub fn is_like(&self, other: &Sample) -> bool {
        match (&self.0, &other.0) {
            (SampleKind::Delimited(one), SampleKind::Delimited(other)) => one.is_like(other),
            (SampleKind::Lines(_), SampleKind::Lines(_)) => true,
            (SampleKind::Delimited(_) | SampleKind::Lines(_), _) => false,
        }
    }

    /// Whether the first row was taken for the names of columns although nothing tells it from the others
    /// ([`Header::Auto`](crate::Header::Auto)).
    pub fn is_header_guessed(&self) -> bool {
        match &self.0 {
            SampleKind::Delimited(sample) => sample.is_header_guessed(),
            SampleKind::Lines(_) => false,
        }
    }

    /// Adds the values of another text, which must be [like](Sample::is_like) this one. For JSON lines, its fields are
    /// added.
    ///
    /// # Errors
    ///
    /// `Misuse` for a text that is not like this; `Conversion` for values of JSON lines that no type holds together.
    pub fn join(&mut self, other: &Sample) -> Result<()> {
        match (&mut self.0, &other.0) {
            (SampleKind::Delimited(one), SampleKind::Delimited(other)) if one.is_like(other) => {
                one.join(other);
                Ok(())
            }
            (SampleKind::Lines(one), SampleKind::Lines(other)) => one.join(other),
            (SampleKind::Delimited(_) | SampleKind::Lines(_), _) => {
                Err(Error::misuse("samples of texts that are not alike"))
            }
        }
    }

    /// The form of the text, with the columns that were inferred or given. This is planning work, in one call.
    ///
    /// # Errors
    ///
    /// `Misuse` for given columns that differ from the header's; `Corrupt` for JSON lines without a row, and
    /// structs without a field; the errors of [`Columns::schema`].
    pub fn form(&self) -> Result<TextForm> {
        self.form_as(self)
    }

    /// The same, with the columns and types of a sample that this one was [joined](Sample::join) with.
    ///
    /// # Errors
    ///
    /// Those of [`Sample::form`]; `Misuse` for a sample that is not like this one.
    pub fn form_as(&self, joined: &Sample) -> Result<TextForm> {
        let (columns, kind) = match (&self.0, &joined.0) {
            (SampleKind::Delimited(sample), SampleKind::Delimited(joined)) if sample.is_like(joined) => {
                let form = sample.form(joined)?;
                (form.columns(), FormKind::Delimited(Arc::new(form)))
            }
            (SampleKind::Lines(_), SampleKind::Lines(joined)) => {
                let form = joined.form()?;
                (form.columns.clone(), FormKind::Lines(Arc::new(form)))
            }
            (SampleKind::Delimited(_) | SampleKind::Lines(_), _) => {
                return Err(Error::misuse("samples of texts that are not alike"));
            }
        };
        let schema = Arc::new(columns.schema()?);
        Ok(TextForm { columns, schema, kind })
    }
}

impl TextForm {
    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The same as a Parquet schema, which is the schema of the batches.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Bytes of a piece of a reader's window.
    fn piece_bytes(&self) -> usize {
        match &self.kind {
            FormKind::Delimited(form) => form.piece_bytes(),
            FormKind::Lines(_) => window::PIECE_BYTES,
        }
    }
}

impl TextForm {
    /// What ends rows. All that a form knows of quotes and comments must be here: where it disagrees with the reader of
    /// rows, a block ends within a row.
    fn splits(&self) -> Rule {
        match &self.kind {
            FormKind::Delimited(form) => {
                let (dialect, has_header, has_empty_rows) = form.splits();
                let quotes = dialect.quote.map(|quote| Quotes { delimiter: dialect.delimiter, quote });
                Rule { quotes, comment: dialect.comment, has_header, has_empty_rows }
            }
            // Comments, too, are lines.
            FormKind::Lines(_) => Rule::default(),
        }
    }
}

impl TextSplitter {
    /// A splitter of a text of this form.
    pub fn new(form: &TextForm, options: SplitOptions) -> TextSplitter {
        TextSplitter::of(form.splits(), form.piece_bytes(), &options)
    }
}

impl TextReader {
    /// A reader of a text of this form. Its first steps plan how fields become columns.
    ///
    /// # Errors
    ///
    /// `Misuse` for leaves that the schema lacks, or that are repeated.
    pub fn new(form: &TextForm, options: ReadOptions) -> Result<TextReader> {
        let leaves = form.schema.leaves().len();
        let reads = options.leaves.unwrap_or_else(|| (0..leaves).collect());
        let mut is_read = alloc::vec![false; leaves];
        for leaf in &reads {
            match is_read.get_mut(*leaf) {
                Some(is_read) if !*is_read => *is_read = true,
                _ => {
                    return Err(Error::option(
                        "leaves",
                        "a leaf that is not in the schema, or appears twice",
                    ));
                }
            }
        }
        let row_bytes = TextOptions { limits: options.limits, ..TextOptions::default() }.row_bytes();
        let kind = match &form.kind {
            FormKind::Delimited(form) => {
                let form = Arc::clone(form);
                ReaderKind::Delimited(Box::new(delimited::Rows::new(
                    form,
                    &reads,
                    options.batch_rows,
                    row_bytes,
                )))
            }
            FormKind::Lines(lines) => {
                let schema = Arc::clone(&form.schema);
                let rows = (options.batch_rows, row_bytes);
                let lines = Arc::clone(lines);
                ReaderKind::Planning(Box::new(lines::Planner::new(
                    lines,
                    schema,
                    reads,
                    rows,
                    options.limits,
                )))
            }
        };
        Ok(TextReader { kind, block: None, is_reading: false, failed: Failed::default() })
    }

    /// Reads a block of a text of this form, then is done until the next one. Blocks can be read in any order. The rows
    /// of each are numbered from 0; errors have the same lines as if the complete text was read.
    ///
    /// # Errors
    ///
    /// `Misuse` before all of the last block, or of a text that was fed, is read; the error of a failed reader.
    pub fn read_block(&mut self, block: Block) -> Result<()> {
        self.failed.check()?;
        if self.is_reading {
            return Err(Error::misuse("a block before the last one is read"));
        }
        match &mut self.kind {
            ReaderKind::Delimited(rows) => rows.restart(block.start),
            ReaderKind::Planning(planner) => planner.restart(block.start),
            ReaderKind::Lines(rows) => rows.restart(block.start),
        }
        (self.block, self.is_reading) = (Some(block.pieces), true);
        Ok(())
    }

    /// Passes the next bytes, if there is room.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`TextReader::finish`], and while a block is read; the error of a failed reader.
    pub fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.failed.check()?;
        if self.block.is_some() {
            return Err(Error::misuse("bytes beside a block"));
        }
        self.is_reading = true;
        self.kind.feed(bytes)
    }

    /// Ends the text: nothing more will be fed.
    pub fn finish(&mut self) {
        self.is_reading = true;
        self.kind.finish();
    }

    /// Works until there is an answer or the budget is spent.
    ///
    /// # Errors
    ///
    /// What is wrong in the text, with its line; then the same again.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Read>> {
        Failed::run(self, |reader| &mut reader.failed, |reader| reader.advance(budget))
    }

    /// The line, counted from 1, in which the first of the rows begins that were returned last: a row's own line if
    /// [batches](ReadOptions::batch_rows) have one row. 0 before the first rows.
    pub fn line(&self) -> u64 {
        match &self.kind {
            ReaderKind::Delimited(rows) => rows.line(),
            ReaderKind::Planning(_) => 0,
            ReaderKind::Lines(rows) => rows.line(),
        }
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Read>> {
        if let ReaderKind::Planning(planner) = &mut self.kind {
            if !planner.step(budget)? {
                return Ok(Step::Yield);
            }
            self.kind = ReaderKind::Lines(Box::new(lines::Rows::of(planner)?));
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        loop {
            let step = match &mut self.kind {
                ReaderKind::Planning(_) => return Err(Error::internal("rows that are not planned")),
                ReaderKind::Delimited(rows) => rows.step(budget)?,
                ReaderKind::Lines(rows) => rows.step(budget)?,
            };
            match (step, &mut self.block) {
                (Step::Ready(None), Some(block)) => match block.pop_front() {
                    Some(bytes) => drop(self.kind.feed(bytes)?),
                    None => self.kind.finish(),
                },
                (Step::Done, block) => {
                    (*block, self.is_reading) = (None, false);
                    return Ok(Step::Done);
                }
                (step, _) => return Ok(step.map(|batch| batch.map_or(Read::Room, Read::Rows))),
            }
        }
    }
}

impl ReaderKind {
    fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        match self {
            ReaderKind::Delimited(rows) => rows.feed(bytes),
            ReaderKind::Planning(planner) => planner.feed(bytes),
            ReaderKind::Lines(rows) => rows.feed(bytes),
        }
    }

    fn finish(&mut self) {
        match self {
            ReaderKind::Delimited(rows) => rows.finish(),
            ReaderKind::Planning(planner) => planner.finish(),
            ReaderKind::Lines(rows) => rows.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
