//! What a kind of address is.

use std::sync::Arc;

use marquetry_base::Result;
use marquetry_tables::{Address, Destination, Source};

use crate::options::{DestinationOptions, OptionGroup, OutputFormat, SourceOptions};

type OpenSource = fn(&[Address], &SourceOptions) -> Result<OpenedSource>;
type OpenDestination =
    fn(&Address, Option<OutputFormat>, &DestinationOptions) -> Result<Box<dyn Destination>>;

/// Addresses that rows are read from.
pub(crate) struct SourceKind {
    /// How they are written, for the list of what is supported.
    pub(crate) spelled: &'static str,
    pub(crate) is_of: fn(&Address) -> bool,
    /// Opens several as one table.
    pub(crate) open: OpenSource,
}

/// What addresses were opened as.
pub(crate) struct OpenedSource {
    pub(crate) source: Arc<dyn Source>,
    /// The options that have a meaning. What is behind an address may decide it: files of one format or another.
    pub(crate) takes: &'static [OptionGroup],
}

/// Addresses that rows are written to.
pub(crate) struct DestinationKind {
    /// How they are written, for the list of what is supported.
    pub(crate) spelled: &'static str,
    /// Whether an address is of this kind, in the format that was asked for, if any was.
    pub(crate) is_of: fn(&Address, Option<OutputFormat>) -> bool,
    /// What is wrong with the address itself.
    pub(crate) check: fn(&Address) -> Result<()>,
    /// The options that have a meaning, in that format.
    pub(crate) takes: fn(Option<OutputFormat>) -> &'static [OptionGroup],
    /// The destination. Nothing is created or connected to yet.
    pub(crate) open: OpenDestination,
}

/// Of addresses that are never wrong.
pub(crate) fn any(_: &Address) -> Result<()> {
    Ok(())
}
