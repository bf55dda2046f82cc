//! `-`: standard output, in the format that is asked for. (Standard input is a file to those that read it.)

use std::io;

use marquetry_base::{Error, Result};
use marquetry_tables::parquet::ParquetOutput;
use marquetry_tables::text::TextOutput;
use marquetry_tables::{Address, CqlText, Destination};

use super::kind::{DestinationKind, any};
use crate::options::{DestinationOptions, OptionGroup, OutputFormat};

/// What messages call it.
const NAME: &str = "standard output";

pub(crate) const OUTPUT: DestinationKind = DestinationKind {
    spelled: "- with a format",
    is_of: |address, format| *address == Address::Standard && format.is_some(),
    check: any,
    takes: |format| match format {
        Some(OutputFormat::Parquet) => &[OptionGroup::Parquet, OptionGroup::Order],
        Some(OutputFormat::Cql) => &[OptionGroup::Mapping, OptionGroup::CqlText, OptionGroup::Order],
        _ => &[OptionGroup::Text, OptionGroup::Order],
    },
    open,
};

fn open(
    _: &Address,
    format: Option<OutputFormat>,
    options: &DestinationOptions,
) -> Result<Box<dyn Destination>> {
    let out = io::stdout();
    if format == Some(OutputFormat::Parquet) {
        return Ok(Box::new(ParquetOutput::new(out, options.directory.parquet.clone())?.named(NAME)));
    }
    if let Some(format) = format.and_then(OutputFormat::text) {
        return Ok(Box::new(TextOutput::new(out, format, options.text.clone()).named(NAME)));
    }
    let table = options.table.clone();
    let table = table.ok_or_else(|| Error::option("table", "CQL text needs the name of a table"))?;
    Ok(Box::new(CqlText::new(out, table, options.cql_text.clone()).named(NAME)))
}
