//! Orders as people write them: `day, fare desc nulls first`.

use std::sync::Arc;

use marquetry_base::{Error, Faults, Result};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::Schema;

use crate::ColumnPath;

/// A column that rows are sorted by, as a person names it. Its values have the order that the format defines for their type
/// ([`prune`](marquetry_parquet::prune)); nulls are last, unless they are to be first.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_tables::{CopyOptions, SortBy};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let leaf = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None));
/// let schema = Arc::new(Schema::of_fields(&[leaf("day"), leaf("fare")])?);
/// let mut options = CopyOptions::default();
/// options.sort = SortBy::resolve(&SortBy::parse_list("fare desc, day")?, &schema)?;
/// assert_eq!(options.sort.iter().map(|by| by.column).collect::<Vec<_>>(), [1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SortBy {
    /// The column, which may not be nested.
    pub column: ColumnPath,
    /// From the largest value to the smallest.
    pub descending: bool,
    /// Nulls come before all values.
    pub nulls_first: bool,
}

impl SortBy {
    /// Reads `a, b desc, "c" asc nulls first`.
    ///
    /// ```
    /// use marquetry_tables::SortBy;
    ///
    /// let by = SortBy::parse_list("day, fare desc nulls first").unwrap();
    /// assert_eq!((by.len(), by[1].descending, by[1].nulls_first), (2, true, true));
    /// ```
    ///
    /// # Errors
    ///
    /// `Misuse` for what is no list of columns.
    pub fn parse_list(list: &str) -> Result<Vec<SortBy>> {
        split(list).into_iter().map(|item| SortBy::parse(item.trim(), list)).collect()
    }

    fn parse(item: &str, list: &str) -> Result<SortBy> {
        let (mut text, mut descending, mut nulls_first) = (item, false, false);
        if let Some(rest) = without_words(text, &["nulls", "first"]) {
            (text, nulls_first) = (rest, true);
        } else if let Some(rest) = without_words(text, &["nulls", "last"]) {
            text = rest;
        }
        if let Some(rest) = without_words(text, &["desc"]) {
            (text, descending) = (rest, true);
        } else if let Some(rest) = without_words(text, &["asc"]) {
            text = rest;
        }
        let mut columns = ColumnPath::parse_list(text)?;
        match (columns.pop(), columns.is_empty()) {
            (Some(column), true) => Ok(SortBy { column, descending, nulls_first }),
            _ => Err(Error::misuse(format!("'{list}': '{item}' is no column"))),
        }
    }

    /// The leaves of a schema that are meant.
    ///
    /// # Errors
    ///
    /// `Misuse` for columns that are missing or nested, and for those that are named twice; all of them at once.
    pub fn resolve(by: &[SortBy], schema: &Arc<Schema>) -> Result<Vec<SortingColumn>> {
        let mut resolved: Vec<SortingColumn> = Vec::with_capacity(by.len());
        let mut faults = Faults::default();
        for SortBy { column, descending, nulls_first } in by {
            let Some(leaf) = column.flat_leaf_or(schema, "sort", &mut faults) else { continue };
            let number = u32::try_from(leaf).map_err(|_| Error::misuse("a column beyond the 2^32nd"))?;
            if resolved.iter().any(|before| before.column == number) {
                faults.add(Error::option("sort", format!("the column {} is named twice", column.dotted())));
                continue;
            }
            resolved.push(SortingColumn {
                column: number,
                descending: *descending,
                nulls_first: *nulls_first,
            });
        }
        faults.into_result()?;
        Ok(resolved)
    }
}

/// The parts between commas outside of quotes.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// What stands before these words at the end, in whatever case, if there is something.
fn without_words<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let mut rest = text;
    for word in words.iter().rev() {
        let start = rest.rfind(char::is_whitespace)?;
        let (before, last) = rest.split_at(start);
        if !last.trim_start().eq_ignore_ascii_case(word) {
            return None;
        }
        rest = before.trim_end();
    }
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_columns() {
        let parse = |list: &str| match SortBy::parse_list(list) {
            Ok(all) => {
                let one = |by: &SortBy| {
                    let down = if by.descending { "-" } else { "+" };
                    format!("{down}{}{}", if by.nulls_first { "0" } else { "" }, by.column.dotted())
                };
                all.iter().map(one).collect::<Vec<_>>().join("|")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(parse("a"), "+a");
        assert_eq!(parse("a, b desc ,c ASC nulls FIRST,d Desc Nulls  Last"), "+a|-b|+0c|-d");
        assert_eq!(parse("\"b desc\", \"x,y\" desc, s.t nulls first"), "+b desc|-x,y|+0s.t");
        assert_eq!(parse("desc, first"), "+desc|+first");
        assert!(parse("a,,b").contains("a name is empty"), "{}", parse("a,,b"));
        assert!(parse("\"a").contains("a quote is not closed"));
    }
}
