//! Predicates as people write them: `fare > 20.5 AND (city = 'Rome' OR tags = 'new')`.
//!
//! ```text
//! predicate   = conjunction {OR conjunction}
//! conjunction = negation {AND negation}
//! negation    = {NOT} ( "(" predicate ")" | test )
//! test        = column ( = | == | != | <> | < | <= | > | >= ) literal     or the other way round
//!             | column [NOT] IN "(" literal {"," literal} ")"
//!             | column [NOT] BETWEEN literal AND literal
//!             | column [NOT] LIKE 'prefix%'
//!             | column IS [NOT] NULL
//!             | column                                                     of type boolean
//! column      = name {"." name}
//! ```
//!
//! **Names** are those of the table; one that is not found exactly is looked up in lower case. A name that is a word of this
//! language, or has other characters than letters, digits, `_` and `#`, is put in double quotes, which are doubled
//! inside. Dots lead into structs, lists and maps, as in [`Projection`](marquetry_parquet::schema::Projection).
//!
//! **Literals** are CQL's: `42`, `-1.5e3`, `NaN`, `Infinity`, `true`, `'text'` (quotes are doubled), `$$text$$`, `0xcafe`, a
//! UUID, and quoted dates, times and timestamps. They are compared exactly with integers, decimals and times, and never rounded
//! to their type: of integers, `x < 2.5` is `x <= 2`, and `x = 2.5` is never true. Of floating-point numbers, a literal is the nearest number of the
//! column's type. An integer is a timestamp as in CQL: milliseconds since 1970. A timestamp without a zone is in UTC, if the column's are instants.
//!
//! **Order**: texts and bytes are compared byte by byte. NaN equals NaN, and is greater than all numbers; −0 equals 0.
//!
//! **Nulls**: a comparison with a null is neither true nor false, as in SQL, and rows are only wanted where the predicate
//! is true.
//!
//! **Lists and maps**: a comparison is true if one of a row's values makes it true. `NOT` negates all of it: `NOT tags =
//! 'new'` is true where no tag is `new`, but `tags <> 'new'` where one is something else. `NOT IN`, `NOT BETWEEN` and
//! `NOT LIKE` are negations, too. `tags IS NULL` asks for the list itself, `tags.element IS NULL` for its elements.
//!
//! Source: the grammar of CQL's `WHERE` and of SQL's `WHERE`, as far as both agree.

mod literal;
mod parse;
mod tokens;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;

/// Maximum bytes of a predicate.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum parentheses within each other: hosts have small stacks.
const DEPTH_MAX: usize = 64;

/// Parses a predicate over the columns of a schema.
///
/// ```
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_text::predicate;
///
/// # fn main() -> marquetry_base::Result<()> {
/// let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None));
/// let schema = Schema::of_fields(&[id])?.into();
/// assert_eq!(predicate::parse("id < 7 OR id IN (9, 12)", &schema).unwrap().leaves(), [0]);
///
/// let error = predicate::parse("id < 'seven'", &schema).unwrap_err();
/// assert_eq!(error.to_string(), "'seven' is not a bigint");
/// assert_eq!(error.picture("id < 'seven'"), "id < 'seven'\n     ^^^^^^^");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// What is wrong, and where: text that is no predicate, columns that are not there, literals that do not suit their
/// column.
pub fn parse(text: &str, schema: &Arc<Schema>) -> Result<Predicate, PredicateError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a predicate of more than {TEXT_BYTES_MAX} bytes");
        return Err(PredicateError { at: 0..0, message });
    }
    parse::Parser::new(text, schema)?.parse()
}

/// Why a text is no predicate of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PredicateError {
    /// Where in the text, in bytes.
    pub at: Range<usize>,
    /// Why.
    pub message: String,
}

/// Characters of the line in a picture, at most.
const SHOWN_CHARS_MAX: usize = 70;

impl PredicateError {
    /// The line of the text that it is about, and below it carets under the place: for terminals. Of a long line, the part around the
    /// place is shown.
    #[must_use]
    pub fn picture(&self, text: &str) -> String {
        let start = floor_of(text, self.at.start);
        let end = floor_of(text, self.at.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].split('\n').next().unwrap_or("");
        let before = text[line_start..start].chars().count();
        let skipped = before.saturating_sub(SHOWN_CHARS_MAX / 2);
        let printed = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = line.chars().skip(skipped).take(SHOWN_CHARS_MAX).map(printed).collect();
        let room = SHOWN_CHARS_MAX.saturating_sub(before - skipped).max(1);
        let carets = text[start..end].chars().take_while(|c| *c != '\n').count().clamp(1, room);
        let (indent, carets) = (" ".repeat(before - skipped), "^".repeat(carets));
        format!("{shown}\n{indent}{carets}")
    }
}

/// The beginning of the character that a byte is in.
fn floor_of(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for PredicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for PredicateError {}

#[cfg(test)]
mod tests;
