//! Machines that read text.
//!
//! Reading has two parts. A [`TextSampler`] looks at the first rows of a text, and tells what its columns are; a [`TextReader`] makes
//! batches of all rows. Both are fed the text from its start, in pieces of any size, and neither waits. What they make does not depend on
//! how the text is cut.
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
mod window;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Failed, Limits, Result, Step};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::Fed;

use crate::{Columns, Format, TextOptions};

/// Looks at the first rows of a text: what its columns are called, and what their types could be.
///
/// ```text
/// feed(bytes) -> Taken | Full(bytes)     when step answers Ready(Sampled::Room)
/// finish()                               after the last bytes
/// step(budget) -> Ready(Sampled::Room) | Ready(Sampled::Sample(sample)) | Yield | Done | error
/// ```
///
/// It looks at [`TextOptions::infer_bytes`], about, and at one row at least; of delimited text whose columns are given, at the first
/// row, and of such JSON lines at none. Whoever has a sample need not feed the rest.
///
/// After an error it stays failed. Errors in the text begin with the line, counted from 1.
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

/// What a [`TextSampler`] answers.
#[derive(Debug, Clone)]
pub enum Sampled {
    /// There is room for bytes; or it is time to [finish](TextSampler::finish).
    Room,
    /// What was found out.
    Sample(Sample),
}

/// What was found out of a text. Samples of several texts can be [joined](Sample::join), so that all have types that hold the values
/// of all.
#[derive(Debug, Clone)]
pub struct Sample(SampleKind);

#[derive(Debug, Clone)]
enum SampleKind {
    Delimited(delimited::Sample),
    Lines(lines::Sample),
}

/// How a text is a table: its columns, and how they are found in it.
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
    /// The leaves of the schema that batches have, in this order. `None`: all.
    pub leaves: Option<Vec<usize>>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// What may be large: see [`TextOptions::limits`].
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { leaves: None, batch_rows: 8192, limits: Limits::DEFAULT }
    }
}

/// Makes batches of a text's rows.
///
/// ```text
/// feed(bytes) -> Taken | Full(bytes)     when step answers Ready(Read::Room)
/// finish()                               after the last bytes
/// step(budget) -> Ready(Read::Room) | Ready(Read::Rows(batch)) | Yield | Done | error
/// ```
///
/// Flat columns of a batch are spaced, nested ones have their levels. Texts stand where they were read: a batch holds the piece of the
/// text that it is from, 512 KiB mostly.
///
/// After an error it stays failed. Errors in the text begin with the line, counted from 1, and tell the column. One whose detail is
/// [`AdmittedBy`](marquetry_base::Detail::AdmittedBy) would not have arisen with another value of one of those [options](TextOptions).
#[derive(Debug)]
pub struct TextReader {
    kind: ReaderKind,
    failed: Failed,
}

#[derive(Debug)]
enum ReaderKind {
    Delimited(Box<delimited::Rows>),
    Lines(Box<lines::Rows>),
}

/// What a [`TextReader`] answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// There is room for bytes; or it is time to [finish](TextReader::finish).
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
            Format::JsonLines => SamplerKind::Lines(Box::new(lines::Sampler::new(options))),
        };
        Ok(TextSampler { kind, is_done: false, failed: Failed::default() })
    }

    /// Hands over the next bytes, if there is room. What comes after the sample is dropped.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`TextSampler::finish`]; the sampler's own failure.
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

    /// Nothing more will be fed.
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
    /// What is wrong in the text, with its line. The same again, ever after.
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
    /// Whether the types of another text's columns can be joined with these: it is delimited text with the same names, or both are JSON
    /// lines.
    pub fn is_like(&self, other: &Sample) -> bool {
        match (&self.0, &other.0) {
            (SampleKind::Delimited(one), SampleKind::Delimited(other)) => one.is_like(other),
            (SampleKind::Lines(_), SampleKind::Lines(_)) => true,
            (SampleKind::Delimited(_) | SampleKind::Lines(_), _) => false,
        }
    }

    /// Takes the values of another text into account, which [is like](Sample::is_like) this. Of JSON lines, its fields are added.
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

    /// How the text is a table, of the columns that were found out or given.
    ///
    /// # Errors
    ///
    /// `Misuse` for given columns that are not those of the header; `Corrupt` for JSON lines without a field, and objects without one; what
    /// [`Columns::schema`] refuses.
    pub fn form(&self) -> Result<TextForm> {
        self.form_as(self)
    }

    /// The same, with the columns and types of a sample that this one was [joined](Sample::join) with.
    ///
    /// # Errors
    ///
    /// As [`Sample::form`]; `Misuse` for a sample that is not like this.
    pub fn form_as(&self, joined: &Sample) -> Result<TextForm> {
        let (columns, kind) = match (&self.0, &joined.0) {
            (SampleKind::Delimited(sample), SampleKind::Delimited(joined)) if sample.is_like(joined) => {
                let form = sample.form(joined)?;
                (form.columns(), FormKind::Delimited(Arc::new(form)))
            }
            (SampleKind::Lines(_), SampleKind::Lines(joined)) => {
                let columns = joined.columns()?;
                let form = lines::Form { columns: columns.clone(), is_given: joined.is_given() };
                (columns, FormKind::Lines(Arc::new(form)))
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

    /// The same as a Parquet schema, which batches have.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
}

impl TextReader {
    /// A reader of a text of this form.
    ///
    /// # Errors
    ///
    /// `Misuse` for leaves that the schema lacks, or that are the same.
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
                ReaderKind::Lines(Box::new(lines::Rows::new(lines, schema, &reads, rows, &options.limits)?))
            }
        };
        Ok(TextReader { kind, failed: Failed::default() })
    }

    /// Hands over the next bytes, if there is room.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`TextReader::finish`]; the reader's own failure.
    pub fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.failed.check()?;
        match &mut self.kind {
            ReaderKind::Delimited(rows) => rows.feed(bytes),
            ReaderKind::Lines(rows) => rows.feed(bytes),
        }
    }

    /// Nothing more will be fed.
    pub fn finish(&mut self) {
        match &mut self.kind {
            ReaderKind::Delimited(rows) => rows.finish(),
            ReaderKind::Lines(rows) => rows.finish(),
        }
    }

    /// Works until there is an answer or the budget is spent.
    ///
    /// # Errors
    ///
    /// What is wrong in the text, with its line. The same again, ever after.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Read>> {
        Failed::run(self, |reader| &mut reader.failed, |reader| reader.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Read>> {
        let step = match &mut self.kind {
            ReaderKind::Delimited(rows) => rows.step(budget)?,
            ReaderKind::Lines(rows) => rows.step(budget)?,
        };
        Ok(step.map(|batch| batch.map_or(Read::Room, Read::Rows)))
    }
}

#[cfg(test)]
mod tests;
