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

mod error;
mod literal;
mod parse;
mod tokens;

use alloc::format;
use alloc::sync::Arc;

use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;

pub use error::PredicateError;

/// Maximum bytes of a predicate.
const TEXT_BYTES_MAX: usize = 1 << 20;

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

#[cfg(test)]
mod tests;
