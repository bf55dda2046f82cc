//! Predicates as they are written: `price >= 2.5 AND NOT name LIKE 'a%'`.
//!
//! [`parse`] types the text against a schema and returns what the engine tests, a
//! [`Predicate`](marquetry_parquet::prune::Predicate).
//!
//! # Conditions
//!
//! ```text
//! predicate   conjunction { OR conjunction }
//! conjunction condition { AND condition }
//! condition   NOT condition | ( predicate ) | test | TRUE | FALSE
//! test        column operator literal | literal operator column        operator: = == <> != < <= > >=
//!             column [NOT] IN ( [literal { , literal }] )
//!             column [NOT] BETWEEN literal AND literal
//!             column [NOT] LIKE 'beginning%'
//!             column IS [NOT] NULL
//!             column                                                   of booleans
//! ```
//!
//! Keywords are in any case. A comparison with null is neither true nor false, and nor is its opposite, as in SQL; so
//! `x = NULL` would never be true, and is an error.
//!
//! `LIKE` takes a text whose only wildcard is a `%` at its end, and without it is `=`. There is no character that
//! escapes a wildcard, as in DuckDB: a backslash is a backslash.
//!
//! # Columns
//!
//! A bare name has letters, digits, `_` and `#`, and does not begin with a digit. Other names, and those that are
//! keywords, are in double quotes, which are doubled inside. Fields are named by paths with dots, as
//! [`Paths`](marquetry_parquet::schema::Paths) find them: `address.city`, `items.price`, `tags.element`, `m.key`,
//! `m.value`. A name that is not found exactly is looked up in lower case.
//!
//! A comparison of a list, or of fields in one, is true if it is for **any** of the elements: `tags = 'a'` finds rows
//! with the tag, and `tags <> 'a'` rows with another one. `NOT` is the opposite of a condition, wherever it is written:
//! `NOT tags = 'a'` and `tags NOT IN ('a')` are true if no element is `'a'` (for a null among them that is unknown, so
//! they are not true then). `tags IS NULL` is about the list, `tags.element IS NULL` about its elements.
//!
//! # Literals
//!
//! As in CQL, and typed by the column that they are compared with:
//!
//! | columns | literals |
//! |---|---|
//! | `boolean` | `true`, `false` |
//! | integers, decimals | `7`, `-2.50`, `1e6`, and the same in single quotes |
//! | `float16`, `float`, `double` | the same, `NaN`, `Infinity`, `-Infinity` |
//! | texts, enums, JSON | `'it''s'`, `$$it's$$` |
//! | blobs, fixed bytes, BSON, geometries | `0xcafe`, `'0xcafe'` |
//! | `uuid` | `550e8400-e29b-41d4-a716-446655440000`, also in single quotes |
//! | `date` | `'2024-02-29'`, or a time on that day |
//! | `time` | `'12:34'`, `'12:34:56.789'` |
//! | `timestamp`, `int96` | `'2024-02-29T12:34:56.5+01:00'`, `'2024-02-29 12:34'`, `'2024-02-29'`; integers: milliseconds since 1970, as in CQL |
//! | `interval` | `'P1M2DT3.004S'` |
//!
//! **Literals are never rounded to the type of a column**, except to floating-point numbers: `x < 2.5` of integers is
//! `x <= 2`, and `x = 2.5` is true for none. Times are compared likewise, whatever the column's unit. Columns of
//! floating-point numbers are compared with the nearest number of their own type, as in DuckDB: `x = 0.1` finds what
//! was 0.1 before it became a `float`. NaN is equal to NaN and greater than all others.
//!
//! A point in time without a zone is UTC for a `timestamp`; one with a zone cannot be compared with a local time.
//! Intervals and geometries have no order: only `=`, `<>` and `IN` are there for them.
//!
//! Source: Cassandra's CQL documentation, "Definitions" (constants, identifiers) and "SELECT" (the WHERE clause).

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;

mod columns;
mod grammar;
mod lexer;
mod literal;
mod number;
#[cfg(test)]
mod tests;

/// Maximum bytes of a predicate's text: a list of some ten thousand keys.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of a literal other than text and blobs, as of values elsewhere in texts.
const LITERAL_BYTES_MAX: usize = crate::parse::VALUE_BYTES_MAX;
/// Maximum nesting of parentheses: what walks a predicate recurses, and hosts have stacks of 128 KiB. Types and JSON
/// may be as deep.
const DEPTH_MAX: usize = 64;

/// Parses a predicate over the columns of a schema.
///
/// This is planning work, in one call, in proportion to the text.
///
/// ```
/// use marquetry_parquet::prune::{Predicate, Ranges, Test};
/// use marquetry_text::{Columns, predicate};
///
/// let schema = "id bigint, name text, price decimal(12, 2)".parse::<Columns>()?.schema()?;
/// let wanted = predicate::parse("price > 2.5 AND name LIKE 'a%'", &schema).unwrap();
/// assert_eq!(
///     wanted,
///     Predicate::And(vec![
///         Predicate::Test(Test::accepting(2, Ranges::of_keys(251, i128::MAX))),
///         Predicate::Test(Test::accepting(1, Ranges::with_prefix("a".into()))),
///     ])
/// );
///
/// let error = predicate::parse("id = 'abc'", &schema).unwrap_err();
/// assert_eq!(error.message, "'abc' is not a bigint");
/// assert_eq!(error.picture("id = 'abc'"), "id = 'abc'\n     ^^^^^");
/// # Ok::<(), marquetry_base::Error>(())
/// ```
///
/// # Errors
///
/// [`PredicateError`], with the place of what is wrong.
pub fn parse(text: &str, schema: &Schema) -> Result<Predicate, PredicateError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a predicate of {} bytes, more than {TEXT_BYTES_MAX}", text.len());
        return Err(PredicateError { at: 0..0, message });
    }
    grammar::Parser::of(text, schema)?.predicate()
}

/// Why a text is not a predicate over a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredicateError {
    /// The bytes of the text that are wrong; empty at its end, if something is missing there.
    pub at: Range<usize>,
    /// What is wrong with them.
    pub message: String,
}

/// Maximum characters of a line that a picture shows before the place of an error, and from there on.
const PICTURE_CHARS_MAX: usize = 60;

impl PredicateError {
    /// The line of the text with the error, and below it a line of carets: for terminals. A long line is cut.
    pub fn picture(&self, text: &str) -> String {
        let (before, after) = text.split_at_checked(self.at.start).unwrap_or((text, ""));
        let before = before.rsplit('\n').next().unwrap_or("");
        let after = after.split('\n').next().unwrap_or("");
        let chars_before = before.chars().count();
        let skipped = chars_before.saturating_sub(PICTURE_CHARS_MAX);
        let (mut picture, mut carets) = (String::new(), String::new());
        if skipped > 0 {
            picture.push('…');
            carets.push(' ');
        }
        // A tab would not be as wide below, and other control characters are nothing for a terminal.
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        for c in before.chars().skip(skipped) {
            picture.push(shown(c));
            carets.push(' ');
        }
        carets.push('^');
        for (at, (byte, c)) in after.char_indices().enumerate() {
            if at == PICTURE_CHARS_MAX {
                picture.push('…');
                break;
            }
            picture.push(shown(c));
            if at > 0 && self.at.start + byte < self.at.end {
                carets.push('^');
            }
        }
        format!("{}\n{carets}", picture.trim_end())
    }
}

impl fmt::Display for PredicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.at.start)
    }
}

impl core::error::Error for PredicateError {}

/// Maximum characters of the text, or of a name, that a message repeats.
const EXCERPT_CHARS_MAX: usize = 40;

/// The beginning of a part of the text, for messages.
fn excerpt(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(EXCERPT_CHARS_MAX).map(shown).collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}
