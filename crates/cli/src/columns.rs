//! Which columns are meant, in all files.

use std::fs;

use marquetry_parquet::schema::{DifferenceKind, NodeKind, PathError, PathPart, Projection, Schema};

use crate::dataset::{Gathered, TableArgs};
use crate::failure::{Failure, Outcome, plain};
use crate::nested;

/// The columns of a command.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// A schema of them alone, in the order of the output. `None` if they are all that there are.
    pub(crate) schema: Option<Schema>,
    /// Their names.
    pub(crate) names: Vec<String>,
}

/// A column that a person names.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    /// As it was written.
    text: String,
    path: Vec<PathPart>,
}

impl Wanted {
    /// Its names, joined with dots.
    pub(crate) fn dotted(&self) -> String {
        self.path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
    }
}

/// The columns that are named; `None` if none are.
pub(crate) fn wanted(args: &TableArgs) -> Outcome<Option<Vec<Wanted>>> {
    if let Some(path) = &args.columns_file {
        let name = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::unreachable(format!("{name}: {}", plain(&error.to_string()))))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let wanted = lines.map(|(number, line)| {
            let (wanted, rest) = parse_path(line).map_err(|why| (number, why))?;
            if rest.is_empty() { Ok(wanted) } else { Err((number, "a line names one column")) }
        });
        let wanted: Result<Vec<Wanted>, _> = wanted.collect();
        return match wanted {
            Ok(wanted) if wanted.is_empty() => Err(Failure::usage(format!("{name}: names no column"))),
            Ok(wanted) => Ok(Some(wanted)),
            Err((number, why)) => Err(Failure::usage(format!("{name}, line {}: {why}", number + 1))),
        };
    }
    args.columns.as_deref().map(|list| parse_list("--columns", list)).transpose()
}

/// Chooses columns, all if none are named, and makes sure that they can be read from all files together: which must have the same, unless
/// they may differ.
///
/// The work grows with the number of columns, not with its square: tables of machine learning have 100,000.
pub(crate) fn choose(gathered: &Gathered, wanted: Option<&[Wanted]>, may_differ: bool) -> Outcome<Chosen> {
    let all = &gathered.unified.schema;
    let mut projection = Projection::new(all);
    match wanted {
        Some(wanted) => {
            for wanted in wanted {
                projection.add(&wanted.path).map_err(|error| cannot_add(gathered, wanted, error))?;
            }
        }
        None => {
            for node in all.children(0) {
                // Each node is another one.
                let _ = projection.add_column(node);
            }
        }
    }
    check_differences(gathered, &projection, may_differ)?;
    let refused = |error| Failure::about(gathered.subject(), &error);
    let projected = wanted.map(|_| projection.schema().map_err(refused)).transpose()?;
    let schema = projected.as_ref().unwrap_or(all);
    let nodes: Vec<usize> = schema.children(0).collect();
    let names: Vec<String> = nodes.iter().map(|&node| schema.nodes()[node].name.clone()).collect();
    if names.is_empty() {
        return Err(Failure::refused(format!("{}: the file has no columns", gathered.subject())));
    }
    for &node in nodes.iter().filter(|node| flat_leaf(schema, **node).is_none()) {
        nested::shape(schema, node).map_err(refused)?;
    }
    Ok(Chosen { schema: projected, names })
}

/// Why a column that a person names cannot be taken.
fn cannot_add(gathered: &Gathered, wanted: &Wanted, error: PathError) -> Failure {
    let (schema, subject) = (&gathered.unified.schema, gathered.subject());
    match error {
        PathError::NoSuchField { name, node: None } => {
            no_such(&subject, "column", &name, "its columns", schema, schema.children(0))
        }
        PathError::NoSuchField { name, node: Some(node) } => {
            let place = schema.path(node);
            let subject = format!("{subject}: the column {place:?}");
            match schema.nodes()[node].kind {
                NodeKind::Leaf { .. } => {
                    Failure::usage(format!("{subject} holds values, and no field {name:?}"))
                }
                NodeKind::Group { .. } => {
                    no_such(&subject, "field", &name, "it holds", schema, schema.children(node))
                }
            }
        }
        PathError::Twice => Failure::usage(format!("--columns names {:?} twice", wanted.text)),
        PathError::Variant { node } => Failure::usage(format!(
            "{subject}: the column {:?} is a VARIANT, of which no part can be taken",
            schema.path(node)
        )),
        PathError::Broken(error) => Failure::about(subject, &error),
    }
}

fn no_such(
    subject: &str,
    what: &str,
    name: &str,
    they: &str,
    schema: &Schema,
    nodes: impl Iterator<Item = usize>,
) -> Failure {
    let mut nodes = nodes.map(|node| schema.nodes()[node].name.as_str());
    // Quoted where a comma or a space would mislead, as `--columns` reads them.
    let names: Vec<&str> = nodes.by_ref().take(NAMES_TOLD_MAX).collect();
    let are = if what == "column" { " are" } else { "" };
    let has = match (names.len(), nodes.count()) {
        (0, _) => "it has none".to_string(),
        (_, 0) => format!("{they}{are} {}", names_list(&names, ", ")),
        (_, more) => format!("{they}{are} {} and {more} more", names_list(&names, ", ")),
    };
    Failure::usage(format!("{subject}: there is no {what} {name:?}; {has}"))
}

/// Fails for the first difference of the files that matters.
fn check_differences(gathered: &Gathered, projection: &Projection<'_>, may_differ: bool) -> Outcome {
    let schema = &gathered.unified.schema;
    for difference in &gathered.unified.differences {
        if (may_differ && difference.kind.is_bridged()) || !projection.has(difference.node) {
            continue;
        }
        let name = |source: &usize| gathered.name_of(*source);
        let path = schema.path(difference.node);
        let what = if schema.nodes()[difference.node].parent == 0 { "column" } else { "field" };
        return Err(Failure::refused(match &difference.kind {
            DifferenceKind::Missing { with, without } => format!(
                "{}: there is no {what} {path:?}, which {} has; --union reads it as null there, --columns chooses others",
                name(without),
                name(with)
            ),
            DifferenceKind::Widened { one: (first, one), other: (second, other) } => format!(
                "{}: the {what} {path:?} is {other}, but {one} in {}; --union reads both as one type that holds all values",
                name(second),
                name(first)
            ),
            DifferenceKind::Clash { one: (first, one), other: (second, other) } => format!(
                "{}: the {what} {path:?} is {other}, but {one} in {}, and no type holds the values of both; --columns chooses \
                 others",
                name(second),
                name(first)
            ),
            DifferenceKind::Twice { source } if what == "column" => format!(
                "{}: two columns have the name {path:?}, so neither can be meant; name others with --columns",
                name(source)
            ),
            DifferenceKind::Twice { source } => {
                let node = &schema.nodes()[difference.node];
                format!(
                    "{}: a group with two fields of the name {:?}, which is not supported (column {})",
                    name(source),
                    node.name,
                    schema.path(node.parent)
                )
            }
            DifferenceKind::Broken { source, error } => {
                return Err(Failure::about(name(source), error));
            }
        }));
    }
    Ok(())
}

/// The leaf of a child of the root that has one value or null a row. `None` for what is nested or repeated.
pub(crate) fn flat_leaf(schema: &Schema, node: usize) -> Option<usize> {
    match schema.nodes()[node].kind {
        NodeKind::Leaf { leaf } if schema.leaves()[leaf].is_flat() => Some(leaf),
        _ => None,
    }
}

/// Names that an error lists. A table of a thousand columns is no help on one line.
const NAMES_TOLD_MAX: usize = 20;

/// Reads `a,b.c,"d,e".f`.
pub(crate) fn parse_list(option: &str, list: &str) -> Outcome<Vec<Wanted>> {
    let mut all = Vec::new();
    let mut rest = list;
    loop {
        let (wanted, after) =
            parse_path(rest).map_err(|why| Failure::usage(format!("{option} '{list}': {why}")))?;
        all.push(wanted);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(all),
        }
    }
}

/// Reads one path, up to a comma that is in no quotes; says what is behind it.
fn parse_path(text: &str) -> Result<(Wanted, &str), &'static str> {
    let mut path = Vec::new();
    let mut rest = text;
    loop {
        let part = if path.is_empty() { rest.trim_start() } else { rest };
        match part.strip_prefix('"') {
            Some(inner) => {
                let (name, after) = unquote(inner).ok_or("a quote is not closed")?;
                path.push(PathPart { text: name, is_whole: true });
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
                let name = if is_last {
                    part[..end - (rest.len() - part.len())].trim_end()
                } else {
                    &part[..end - (rest.len() - part.len())]
                };
                path.push(PathPart { text: name.to_string(), is_whole: false });
                rest = &rest[end..];
            }
        }
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None => break,
        }
    }
    if let [PathPart { text, is_whole: false }] = &path[..]
        && text.is_empty()
    {
        return Err("a name is empty; a column whose name is empty is written \"\"");
    }
    let written = &text[..text.len() - rest.len()];
    Ok((Wanted { text: written.trim().to_string(), path }, rest))
}

/// What stands before the closing quote, and what behind it.
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

/// Names as `--columns` reads them.
fn names_list(names: &[&str], separator: &str) -> String {
    let is_plain = |name: &str| !name.is_empty() && !name.contains([',', '"']) && name.trim() == name;
    let quoted = names.iter().map(|name| match is_plain(name) {
        true => (*name).to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    });
    quoted.collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_paths() {
        let parse = |list| match parse_list("--columns", list) {
            Ok(paths) => {
                let part = |part: &PathPart| match part.is_whole {
                    true => format!("<{}>", part.text),
                    false => part.text.clone(),
                };
                let path = |wanted: &Wanted| wanted.path.iter().map(part).collect::<Vec<_>>().join("/");
                paths.iter().map(path).collect::<Vec<_>>().join("|")
            }
            Err(Failure::Said(_, message)) => message,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(parse("a"), "a");
        assert_eq!(parse("a, b c ,\"d,\"\"e\" , f"), "a|b c|<d,\"e>|f");
        assert_eq!(parse("a,\"\",b"), "a|<>|b");
        assert_eq!(parse("a.b, \"x.y\".z ,c.\"d\".e"), "a/b|<x.y>/z|c/<d>/e");
        assert_eq!(parse(" a. b"), "a/ b");
        for list in ["", "a,", ",a", " "] {
            assert!(parse(list).starts_with(&format!("--columns '{list}': a name is empty")), "{list}");
        }
        assert_eq!(parse("\"a"), "--columns '\"a': a quote is not closed");
        assert_eq!(parse("\"a\"b"), "--columns '\"a\"b': a comma or a dot should follow a closing quote");
        assert_eq!(names_list(&["a", "b,c", "it's"], ","), r#"a,"b,c",it's"#);
    }
}
