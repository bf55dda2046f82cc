//! What an object has, from its footer alone.

use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::Result;
use marquetry_base::cast::u64_of;

use crate::answer::Answer;
use crate::host::Host;
use crate::output::schema_stream;

pub(crate) fn describe(host: &mut Host<'_>) -> Result<Answer> {
    let (metadata, _) = host.footer()?;
    let to_arrow = ToArrow::of_file(&metadata, None, ArrowOptions::default())?;
    Ok(Answer {
        data: Some(schema_stream(to_arrow.schema())?),
        rows: metadata.rows,
        row_groups: Some(u64_of(metadata.row_groups.len())),
        created_by: metadata.created_by.clone(),
        ..Answer::default()
    })
}
