//! Types of some columns, by name: `fare=decimal(12, 2), place.lat=double`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use marquetry_base::{Error, Result};
use marquetry_parquet::schema::PathPart;

use crate::columns::Parser;
use crate::{ColumnType, Scalar};

/// Types of some columns.
///
/// ```
/// use marquetry_text::Types;
///
/// let types: Types = "fare=decimal(12,2), place.lat=double, \"a name\"=text".parse()?;
/// assert_eq!(types.as_slice().len(), 3);
/// assert_eq!(types.to_string(), "fare=decimal(12, 2), place.lat=double, a name=text");
/// assert!("fare".parse::<Types>().is_err());
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Types(Vec<TypeOf>);

/// The type of a column, or of a field of one.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeOf {
    /// Its path, as for a [`Projection`](marquetry_parquet::schema::Projection).
    pub path: Vec<PathPart>,
    /// Its type.
    pub column_type: ColumnType,
}

impl Types {
    /// The types, in the order in which they were given.
    pub fn as_slice(&self) -> &[TypeOf] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The type of the column, or the field of columns, with these names, joined with dots. As everywhere, what has no
    /// exact match is looked up in lower case.
    pub(crate) fn of(&self, dotted: &str) -> Option<&ColumnType> {
        let exact = self.0.iter().find(|it| it.is_named(dotted, str::to_string));
        let found = exact.or_else(|| self.0.iter().find(|it| it.is_named(dotted, str::to_ascii_lowercase)));
        found.map(|it| &it.column_type)
    }

    /// The type of a column of delimited text.
    ///
    /// # Errors
    ///
    /// `Misuse` for a list, a map or a struct.
    pub(crate) fn scalar_of(&self, name: &str) -> Result<Option<Scalar>> {
        match self.of(name) {
            None => Ok(None),
            Some(ColumnType::Scalar(scalar)) => Ok(Some(*scalar)),
            Some(_) => {
                let error = Error::option("types", "delimited text has no lists, maps or structs");
                Err(error.at(|place| place.column = Some(name.to_string())))
            }
        }
    }
}

impl TypeOf {
    /// Its names, joined with dots.
    pub fn dotted(&self) -> String {
        self.path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
    }

    fn is_named(&self, dotted: &str, spelled: fn(&str) -> String) -> bool {
        let mut rest = Some(dotted);
        for (at, part) in self.path.iter().enumerate() {
            let before = if at == 0 { rest } else { rest.and_then(|rest| rest.strip_prefix('.')) };
            rest = before.and_then(|rest| rest.strip_prefix(spelled(&part.text).as_str()));
        }
        rest == Some("")
    }
}

impl From<Vec<TypeOf>> for Types {
    fn from(types: Vec<TypeOf>) -> Types {
        Types(types)
    }
}

impl FromStr for Types {
    type Err = Error;

    /// Parses `fare=decimal(12, 2), place.lat=double`: paths as [`Columns`](crate::Columns) has names, with dots, and types
    /// as it has them.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `types`, with what was found in place of what was expected.
    fn from_str(text: &str) -> Result<Types> {
        let mut parser = Parser { rest: text };
        let mut types: Vec<TypeOf> = Vec::new();
        let mut next = || -> Result<bool, String> {
            let path = path(&mut parser)?;
            parser.expect('=')?;
            let column_type = parser.column_type(0)?;
            let new = TypeOf { path, column_type };
            if types.iter().any(|known| known.path == new.path) {
                return Err(format!("{} has two types", new.dotted()));
            }
            types.push(new);
            if parser.peek().is_none() {
                return Ok(false);
            }
            if !parser.take(',') {
                return Err(parser.unexpected("a comma"));
            }
            Ok(parser.peek().is_some())
        };
        loop {
            match next() {
                Ok(true) => {}
                Ok(false) => return Ok(Types(types)),
                Err(what) => return Err(Error::option("types", what)),
            }
        }
    }
}

/// Names separated by dots, each in double quotes or up to a dot or an equals sign.
fn path(parser: &mut Parser<'_>) -> Result<Vec<PathPart>, String> {
    let mut parts = Vec::new();
    parser.skip_space();
    loop {
        if let Some(text) = parser.quoted()? {
            parts.push(PathPart { text, is_whole: true });
        } else {
            let end = parser.rest.find(['.', '=', ',']).unwrap_or(parser.rest.len());
            let (name, rest) = parser.rest.split_at(end);
            let name = if rest.starts_with('.') { name } else { name.trim_end() };
            if name.is_empty() {
                return Err(parser.unexpected("a name"));
            }
            parser.rest = rest;
            parts.push(PathPart { text: name.to_string(), is_whole: false });
        }
        match parser.rest.strip_prefix('.') {
            Some(rest) => parser.rest = rest,
            None => return Ok(parts),
        }
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, of) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{}={}", of.dotted(), of.column_type)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        text.parse::<Types>().map_or_else(|error| error.message().to_string(), |it| it.to_string())
    }

    #[test]
    fn names_and_types_as_people_write_them() {
        assert_eq!(read("a=int"), "a=int");
        assert_eq!(read(" a b = int ,c.d=list< text >,"), "a b=int, c.d=list<text>");
        assert_eq!(read("\"x=y\".z=decimal(5)"), "x=y.z=decimal(5, 0)");
        for (text, said) in [
            ("", "a name is missing at the end"),
            ("a", "'=' is missing at the end"),
            ("a int", "'=' is missing at the end"),
            ("a=", "a type is missing at the end"),
            ("a=int b=int", "a comma is expected before \"b=int\""),
            ("a=int,a=text", "a has two types"),
            ("=int", "a name is expected before \"=int\""),
            ("a=integer", "there is no type integer"),
        ] {
            assert!(read(text).contains(said), "{text}: {}", read(text));
        }
    }

    #[test]
    fn columns_are_found_by_their_dotted_names() {
        let types: Types = "a.b=int, C=text, \"d.e\"=date".parse().unwrap();
        let found = |name: &str| types.of(name).map(ToString::to_string);
        assert_eq!(found("a.b").as_deref(), Some("int"));
        assert_eq!(found("d.e").as_deref(), Some("date"));
        assert_eq!(found("C").as_deref(), Some("text"));
        assert_eq!(found("c").as_deref(), Some("text"));
        assert_eq!((found("A.B"), found("a"), found("a.b.c"), found("ab")), (None, None, None, None));
    }
}
