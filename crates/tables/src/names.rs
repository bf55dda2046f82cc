//! Columns as users write them: `a, b.c, "d.e".f`.

use std::sync::Arc;

use marquetry_base::{Budget, Detail, Error, Faults, Result};
use marquetry_parquet::schema::{NodeKind, PathError, PathPart, Projection, Schema};

/// A column as a user writes it: names separated by dots. A name with a comma, a dot, or a space at an end is put in
/// double quotes, which are doubled inside. Of several columns or fields called `a` the second is `a#2`, and so on:
/// tables have [unique names](marquetry_parquet::schema::Schema::with_unique_names).
///
/// ```
/// use marquetry_tables::ColumnPath;
///
/// let paths = ColumnPath::parse_list(r#"id, place.lat, "a,b""#).unwrap();
/// assert_eq!(paths[1].dotted(), "place.lat");
/// assert_eq!(paths[2].dotted(), "a,b");
/// assert!(ColumnPath::parse_list("id,").is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnPath {
    /// As it was written.
    pub(crate) text: String,
    pub(crate) parts: Vec<PathPart>,
}

impl ColumnPath {
    /// The column, or field of a column, with exactly these names.
    pub fn of<S: Into<String>>(names: impl IntoIterator<Item = S>) -> ColumnPath {
        let part = |name: S| PathPart { text: name.into(), is_whole: true };
        ColumnPath::of_parts(names.into_iter().map(part).collect())
    }

    /// The column with this path, as a predicate names it.
    pub(crate) fn of_parts(parts: Vec<PathPart>) -> ColumnPath {
        let names: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        ColumnPath { text: listed(&names, "."), parts }
    }

    /// The path of a leaf.
    pub(crate) fn of_leaf(schema: &Schema, leaf: usize) -> ColumnPath {
        let mut names = Vec::new();
        let mut at = schema.leaves().get(leaf).map_or(0, |leaf| leaf.node);
        while let Some(node) = schema.nodes().get(at).filter(|_| at != 0) {
            names.push(node.name.clone());
            at = node.parent;
        }
        names.reverse();
        ColumnPath::of(names)
    }

    /// These columns, and those of others that they do not include.
    pub fn joined(mut columns: Vec<ColumnPath>, others: &[ColumnPath]) -> Vec<ColumnPath> {
        for path in others {
            let name = path.dotted();
            let is_read = |column: &ColumnPath| {
                name.strip_prefix(&column.dotted())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if !columns.iter().any(is_read) {
                columns.push(path.clone());
            }
        }
        columns
    }

    /// Parses one path.
    ///
    /// # Errors
    ///
    /// `Misuse` for text that is not a path, or more than one.
    pub fn parse(text: &str) -> Result<ColumnPath> {
        match parse_path(text) {
            Ok((path, "")) => Ok(path),
            Ok(_) => Err(Error::misuse(format!("'{text}' names more than one column"))),
            Err(why) => Err(Error::misuse(format!("'{text}': {why}"))),
        }
    }

    /// Parses a list of paths, separated by commas.
    ///
    /// # Errors
    ///
    /// `Misuse` for text that is not a list of paths.
    pub fn parse_list(list: &str) -> Result<Vec<ColumnPath>> {
        let mut all = Vec::new();
        let mut rest = list;
        loop {
            let (path, after) = parse_path(rest).map_err(|why| Error::misuse(format!("'{list}': {why}")))?;
            all.push(path);
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => return Ok(all),
            }
        }
    }

    /// Its names, joined with dots.
    pub fn dotted(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
    }

    /// The leaves of this column: itself, or all leaves below it.
    ///
    /// # Errors
    ///
    /// `Misuse` if the schema has no such column.
    pub fn leaves(&self, schema: &Arc<Schema>) -> Result<Vec<usize>> {
        self.find(schema, true)
    }

    /// As [`leaves`](ColumnPath::leaves); a column that is missing is a fault of this option.
    pub(crate) fn leaves_or(
        &self,
        schema: &Arc<Schema>,
        option: &'static str,
        faults: &mut Faults,
    ) -> Option<Vec<usize>> {
        let found = self.find(schema, faults.is_empty());
        faults.take(found.map_err(|error| error.with(Detail::Option(option))))
    }

    /// As [`flat_leaf`](ColumnPath::flat_leaf); an error is a fault of this option.
    pub(crate) fn flat_leaf_or(
        &self,
        schema: &Arc<Schema>,
        option: &'static str,
        faults: &mut Faults,
    ) -> Option<usize> {
        let found = self.find(schema, faults.is_empty()).and_then(|leaves| self.only(schema, &leaves));
        faults.take(found.map_err(|error| error.with(Detail::Option(option))))
    }

    /// Its leaves. The error may list the names that there are.
    fn find(&self, schema: &Arc<Schema>, lists_names: bool) -> Result<Vec<usize>> {
        let leaves = leaves_at(schema, &self.dotted());
        if !leaves.is_empty() {
            return Ok(leaves);
        }
        let mut projection = Projection::new(Arc::clone(schema));
        let added = projection.add(&self.parts, &mut Budget::unlimited());
        added.map_err(|error| self.fault(schema, error, lists_names))?;
        let leaves = schema.leaves().iter().enumerate().filter(|(_, leaf)| projection.has(leaf.node));
        Ok(leaves.map(|(at, _)| at).collect())
    }

    /// Why it cannot be taken from a schema. The error may list the names that there are: of several errors, the first
    /// one does.
    pub(crate) fn fault(&self, schema: &Schema, error: PathError, lists_names: bool) -> Error {
        let missing = |what: &str, name: &str, they: &str, node: usize| {
            let mut message = format!("there is no {what} {name:?}");
            if lists_names {
                message += &format!("; {}", names_of(schema, node, they));
            }
            message
        };
        Error::misuse(match error {
            PathError::NoSuchField { name, node: None } => missing("column", &name, "its columns are", 0),
            PathError::NoSuchField { name, node: Some(node) } => {
                let place = schema.path(node);
                match schema.nodes()[node].kind {
                    NodeKind::Leaf { .. } => {
                        format!("the column {place:?} holds values, and no field {name:?}")
                    }
                    NodeKind::Group { .. } => {
                        format!("the column {place:?}: {}", missing("field", &name, "it holds", node))
                    }
                }
            }
            PathError::Twice => format!("names {:?} twice", self.text),
            PathError::Variant { node } => {
                format!("the column {:?} is a VARIANT, of which no part can be taken", schema.path(node))
            }
            PathError::Broken(error) => return error,
        })
    }

    /// The leaf of this column, if it has one value or null per row.
    ///
    /// # Errors
    ///
    /// `Misuse` if the schema has no such column, or it is nested.
    pub fn flat_leaf(&self, schema: &Arc<Schema>) -> Result<usize> {
        self.only(schema, &self.leaves(schema)?)
    }

    /// The only one of its leaves.
    fn only(&self, schema: &Schema, leaves: &[usize]) -> Result<usize> {
        match *leaves {
            [leaf] if schema.leaves()[leaf].is_flat() => Ok(leaf),
            _ => Err(Error::misuse(format!("the column {} is nested", self.dotted()))),
        }
    }
}

/// Names that an error lists. A table of a thousand columns is no help on one line.
const NAMES_LISTED_MAX: usize = 20;

/// The names of a group's fields, after `they`. They are quoted where a comma or a space would mislead, as a list of
/// columns is read.
fn names_of(schema: &Schema, node: usize, they: &str) -> String {
    let mut nodes = schema.children(node).map(|node| schema.nodes()[node].name.as_str());
    let names: Vec<&str> = nodes.by_ref().take(NAMES_LISTED_MAX).collect();
    match (names.len(), nodes.count()) {
        (0, _) => "it has none".to_string(),
        (_, 0) => format!("{they} {}", listed(&names, ", ")),
        (_, more) => format!("{they} {} and {more} more", listed(&names, ", ")),
    }
}

/// Names as [`ColumnPath::parse_list`] reads them.
fn listed(names: &[&str], separator: &str) -> String {
    let is_plain = |name: &str| !name.is_empty() && !name.contains([',', '"']) && name.trim() == name;
    let quoted = names.iter().map(|name| match is_plain(name) {
        true => (*name).to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    });
    quoted.collect::<Vec<_>>().join(separator)
}

/// Reads one path, up to a comma outside of quotes; returns what follows it.
fn parse_path(text: &str) -> Result<(ColumnPath, &str), &'static str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let part = if parts.is_empty() { rest.trim_start() } else { rest };
        match part.strip_prefix('"') {
            Some(inner) => {
                let (name, after) = unquote(inner).ok_or("a quote is not closed")?;
                parts.push(PathPart { text: name, is_whole: true });
                rest = after;
                if !rest.starts_with('.') {
                    rest = rest.trim_start();
                    if !rest.is_empty() && !rest.starts_with(',') {
                        return Err("a comma or a dot should follow a closing quote");
                    }
                }
            }
            None => {
                let end = rest.find([',', '.']).unwrap_or(rest.len());
                let is_last = !rest[end..].starts_with('.');
                let name = &part[..end - (rest.len() - part.len())];
                let name = if is_last { name.trim_end() } else { name };
                parts.push(PathPart { text: name.to_string(), is_whole: false });
                rest = &rest[end..];
            }
        }
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None => break,
        }
    }
    if let [PathPart { text, is_whole: false }] = &parts[..]
        && text.is_empty()
    {
        return Err("a name is empty; a column whose name is empty is written \"\"");
    }
    let written = &text[..text.len() - rest.len()];
    Ok((ColumnPath { text: written.trim().to_string(), parts }, rest))
}

/// What stands before the closing quote, and what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// The leaves at a [path](Schema::path) or below it. Names may have dots, so several nodes may be meant.
fn leaves_at(schema: &Schema, dotted: &str) -> Vec<usize> {
    let mut leaves = Vec::new();
    let mut open = vec![(0, dotted)];
    while let Some((node, rest)) = open.pop() {
        for child in schema.children(node) {
            match rest.strip_prefix(&*schema.nodes()[child].name) {
                Some("") => leaves.extend(schema.leaves_of(child)),
                Some(rest) => open.extend(rest.strip_prefix('.').map(|rest| (child, rest))),
                None => {}
            }
        }
    }
    leaves.sort_unstable();
    leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_paths() {
        let parse = |list| match ColumnPath::parse_list(list) {
            Ok(paths) => {
                let part = |part: &PathPart| match part.is_whole {
                    true => format!("<{}>", part.text),
                    false => part.text.clone(),
                };
                let path = |path: &ColumnPath| path.parts.iter().map(part).collect::<Vec<_>>().join("/");
                paths.iter().map(path).collect::<Vec<_>>().join("|")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(parse("a"), "a");
        assert_eq!(parse("a, b c ,\"d,\"\"e\" , f"), "a|b c|<d,\"e>|f");
        assert_eq!(parse("a,\"\",b"), "a|<>|b");
        assert_eq!(parse("a.b, \"x.y\".z ,c.\"d\".e"), "a/b|<x.y>/z|c/<d>/e");
        assert_eq!(parse(" a. b"), "a/ b");
        for list in ["", "a,", ",a", " "] {
            assert!(parse(list).starts_with(&format!("'{list}': a name is empty")), "{list}");
        }
        assert_eq!(parse("\"a"), "'\"a': a quote is not closed");
        assert_eq!(parse("\"a\"b"), "'\"a\"b': a comma or a dot should follow a closing quote");
        assert_eq!(listed(&["a", "b,c", "it's"], ","), r#"a,"b,c",it's"#);
        assert_eq!(ColumnPath::of(["a", "b,c"]).text, "a.\"b,c\"");
    }
}
