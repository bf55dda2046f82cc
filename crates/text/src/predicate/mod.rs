//! Predicates as they are written: `price >= 2.5 AND NOT name LIKE 'a%'`.
//!
//! [`parse`] types the text against a schema and returns what the engine tests, a [`Predicate`].
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
//! | blobs, fixed bytes | `0xcafe`, and texts, because many writers do not say that their bytes are text |
//! | BSON, geometries | `0xcafe`, `'0xcafe'` |
//! | `uuid` | `550e8400-e29b-41d4-a716-446655440000`, also in single quotes |
//! | `date` | `'2024-02-29'`, or a time on that day |
//! | `time` | `'12:34'`, `'12:34:56.789'` |
//! | `timestamp`, `int96` | `'2024-02-29T12:34:56.5Z'`, `'2024-02-29 12:34'`, `'2024-02-29'`, milliseconds since 1970 |
//! | `interval` | `'P1M2DT3.004S'` |
//!
//! **Literals are never rounded to the type of a column**, except to floating-point numbers: `x < 2.5` of integers is
//! `x <= 2`, and `x = 2.5` is true for none. Times are compared likewise, whatever the column's unit. Columns of
//! floating-point numbers are compared with the nearest number of their own type, as in DuckDB: `x = 0.1` finds what
//! was 0.1 before it became a `float`. NaN is equal to NaN and greater than all others.
//!
//! An integer that is compared with a point in time is in milliseconds, as in CQL, whatever the column's unit; dates and
//! times of day take no integers. A point in time without a zone is UTC for a `timestamp`; one with a zone cannot be
//! compared with a local time. Intervals and geometries have no order: only `=`, `<>` and `IN` are there for them.
//!
//! Source: Cassandra's CQL documentation, "Definitions" (constants, identifiers) and "SELECT" (the WHERE clause).

use alloc::format;
use alloc::vec::Vec;

use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::{PathPart, Schema};

mod columns;
mod error;
mod grammar;
mod lexer;
mod literal;
mod number;
#[cfg(test)]
mod tests;

pub use error::PredicateError;

/// Maximum bytes of a predicate's text: a list of some ten thousand keys.
const TEXT_BYTES_MAX: usize = 1 << 20;

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
    check_length(text)?;
    grammar::Parser::of(text, schema)?.predicate()
}

/// The columns, and fields of columns, that a predicate names, as often as it does: what has to be known of a table to parse it.
///
/// ```
/// use marquetry_text::predicate;
///
/// let names = predicate::names("price > 2.5 AND \"Home\".city IN ('Oslo', 'Rome')").unwrap();
/// let first: Vec<&str> = names.iter().map(|path| &*path[0].text).collect();
/// assert_eq!(first, ["price", "Home"]);
/// ```
///
/// # Errors
///
/// [`PredicateError`] for what has no words of a predicate.
pub fn names(text: &str) -> Result<Vec<Vec<PathPart>>, PredicateError> {
    check_length(text)?;
    let (mut lexer, mut names) = (lexer::Lexer::of(text), Vec::new());
    loop {
        let token = lexer.next()?;
        match token.kind {
            lexer::Kind::End => return Ok(names),
            lexer::Kind::Name => names.push(columns::path(text.get(token.at()).unwrap_or_default())),
            _ => {}
        }
    }
}

fn check_length(text: &str) -> Result<(), PredicateError> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a predicate of {} bytes, more than {TEXT_BYTES_MAX}", text.len());
        return Err(PredicateError { at: 0..0, message });
    }
    Ok(())
}
