//! Aggregates as people write them: `count(*), avg(fare)`.

use marquetry_base::{Detail, Error, Result};

use crate::ColumnPath;

/// What is computed of the rows of a table: `count(*)`, and `count`, `sum`, `avg`, `min` and `max` of columns; of all of them, or of each group
/// of rows that have the same values in some columns.
///
/// ```
/// use marquetry_tables::{Aggregates, ColumnPath};
///
/// let aggregates = Aggregates::parse("count(*), avg(fare)")?;
/// let by_city = aggregates.by(ColumnPath::parse_list("city")?);
/// assert!(Aggregates::parse("median(fare)").is_err());
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregates {
    pub(super) wanted: Vec<Wanted>,
    pub(super) groups: Vec<ColumnPath>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    /// As it was written.
    pub(super) text: String,
    pub(super) function: Function,
    /// `None` for `count(*)`.
    pub(super) column: Option<ColumnPath>,
}

/// What is computed of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

impl Aggregates {
    /// Parses aggregates, separated by commas. Columns are written as in [`ColumnPath`].
    ///
    /// # Errors
    ///
    /// `Misuse` for text that is none.
    pub fn parse(text: &str) -> Result<Aggregates> {
        let mut wanted = Vec::new();
        let mut rest = text;
        loop {
            let (one, after) = Wanted::parse(rest)?;
            wanted.push(one);
            match after.trim_start() {
                "" => return Ok(Aggregates { wanted, groups: Vec::new() }),
                after => rest = after.strip_prefix(',').ok_or_else(|| none(after))?,
            }
        }
    }

    /// The same, of each group of rows with the same values in these columns.
    #[must_use]
    pub fn by(self, groups: Vec<ColumnPath>) -> Aggregates {
        Aggregates { groups, ..self }
    }
}

impl Wanted {
    /// The first of a text, and what follows.
    fn parse(text: &str) -> Result<(Wanted, &str)> {
        let (name, inner) = text.split_once('(').ok_or_else(|| none(text))?;
        let end = closing(inner).ok_or_else(|| none(text))?;
        let function = match name.trim().to_ascii_lowercase().as_str() {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "avg" => Function::Avg,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return Err(none(text)),
        };
        let column = match inner[..end].trim() {
            "*" if function == Function::Count => None,
            "*" => return Err(none(text)),
            path => Some(ColumnPath::parse(path).map_err(|error| error.with(Detail::Option(OPTION)))?),
        };
        let (written, after) = text.split_at(name.len() + 1 + end + 1);
        Ok((Wanted { text: written.trim().to_owned(), function, column }, after))
    }
}

/// The option that they are one of.
pub(super) const OPTION: &str = "aggregate";
/// The one of the columns that make groups.
pub(super) const GROUPS_OPTION: &str = "group_by";

fn none(text: &str) -> Error {
    let message =
        format!("'{}' is none of count(*), count(x), sum(x), avg(x), min(x) and max(x)", text.trim());
    Error::option(OPTION, message)
}

/// Where the parenthesis closes: not in a name in quotes.
fn closing(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.char_indices().find_map(|(at, letter)| {
        is_quoted ^= letter == '"';
        (letter == ')' && !is_quoted).then_some(at)
    })
}
