//! Which columns are meant, in one file and in all.

use std::fmt::Write;

use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::schema::{LogicalType, NodeKind, PhysicalType, Schema};

use crate::failure::{Failure, Outcome};
use crate::input::ParquetFile;

/// The columns of a command: for each file, the leaf of each column.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Their names, in the order of the output.
    pub(crate) names: Vec<String>,
    /// For each file, the leaves in the same order.
    pub(crate) leaves: Vec<Vec<usize>>,
}

impl Columns {
    /// Chooses columns, all if none are named, and makes sure that all files have them, flat, with the same types.
    ///
    /// Without names, all files must have exactly the columns of the first, in whatever order.
    pub(crate) fn choose(files: &[ParquetFile], wanted: Option<&str>) -> Outcome<Columns> {
        let Some(first) = files.first() else { return Ok(Columns { names: Vec::new(), leaves: Vec::new() }) };
        let schema = &first.metadata.schema;
        let names: Vec<String> = match wanted {
            Some(list) => split_names(list)?.into_iter().map(|name| resolve(schema, name)).collect(),
            None => schema.children(0).map(|node| schema.nodes()[node].name.clone()).collect(),
        };
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(Failure::refused(match wanted {
                    Some(_) => format!("--columns names {name:?} twice"),
                    None => format!("{}: two columns have the name {name:?}", first.name),
                })
                .blamed_on_usage(wanted.is_some()));
            }
        }
        if names.is_empty() {
            return Err(Failure::refused(format!("{}: the file has no columns", first.name)));
        }
        check_flat(first, &names)?;
        let mut leaves = vec![leaves_of(first, &names)?];
        for file in &files[1..] {
            check_flat(file, &names)?;
            check_same(first, file, &names, wanted.is_some())?;
            leaves.push(leaves_of(file, &names)?);
        }
        for (file, leaves) in files.iter().zip(&leaves) {
            file.check_readable(leaves)?;
        }
        Ok(Columns { names, leaves })
    }
}

/// The column of exactly this name, or else, as in CQL, the one of the name in lower case.
fn resolve(schema: &Schema, name: String) -> String {
    let folded = name.to_ascii_lowercase();
    if schema.child_of_root(&name).is_none() && schema.child_of_root(&folded).is_some() {
        folded
    } else {
        name
    }
}

impl Failure {
    /// The same, blamed on the command line.
    fn blamed_on_usage(self, is_usage: bool) -> Failure {
        match self {
            Failure::Said(_, message) if is_usage => Failure::usage(message),
            other => other,
        }
    }
}

fn leaves_of(file: &ParquetFile, names: &[String]) -> Outcome<Vec<usize>> {
    let schema = &file.metadata.schema;
    names
        .iter()
        .map(|name| match schema.child_of_root(name).map(|node| schema.nodes()[node].kind) {
            Some(NodeKind::Leaf { leaf }) => Ok(leaf),
            _ => Err(no_such_column(file, name)),
        })
        .collect()
}

fn no_such_column(file: &ParquetFile, name: &str) -> Failure {
    let schema = &file.metadata.schema;
    let mut has = String::new();
    for (at, node) in schema.children(0).enumerate() {
        if at == NAMES_TOLD_MAX {
            has.push_str(", …");
            break;
        }
        let comma = if at == 0 { "" } else { ", " };
        // Writing to memory does not fail.
        let _ = write!(has, "{comma}{}", schema.nodes()[node].name);
    }
    Failure::usage(format!("{}: there is no column {name:?}; its columns are {has}", file.name))
}

/// Names that an error lists. A table of a thousand columns is no help on one line.
const NAMES_TOLD_MAX: usize = 20;

/// Nested columns are named all at once, with the way to leave them out.
fn check_flat(file: &ParquetFile, names: &[String]) -> Outcome {
    let schema = &file.metadata.schema;
    let is_nested = |name: &&String| match schema.child_of_root(name) {
        Some(node) => {
            schema.leaves_of(node).next().is_none_or(|leaf| !schema.leaves()[leaf].is_flat())
                || matches!(schema.nodes()[node].kind, NodeKind::Group { .. })
        }
        None => false,
    };
    let nested: Vec<&str> = names.iter().filter(is_nested).map(String::as_str).collect();
    if nested.is_empty() {
        return Ok(());
    }
    let flat: Vec<&str> = names.iter().filter(|name| !is_nested(name)).map(String::as_str).collect();
    let (is_are, it_them) = if nested.len() == 1 { ("is", "it") } else { ("are", "them") };
    let advice = match flat.len() {
        0 => "there are no others".to_string(),
        1..=NAMES_TOLD_MAX => format!("leave {it_them} out with --columns {}", quote_list(&flat)),
        count => format!("leave {it_them} out by naming the {count} others with --columns"),
    };
    let told = nested[..nested.len().min(NAMES_TOLD_MAX)].join(", ");
    let more = match nested.len().saturating_sub(NAMES_TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Failure::refused(format!(
        "{}: {told}{more} {is_are} nested or repeated (a list, map or group), which is not supported yet; {advice}",
        file.name
    )))
}

fn check_same(first: &ParquetFile, file: &ParquetFile, names: &[String], is_chosen: bool) -> Outcome {
    for name in names {
        let Some(wanted) = type_of(&first.metadata, name) else { continue };
        match type_of(&file.metadata, name) {
            None => {
                return Err(Failure::refused(format!(
                    "{}: there is no column {name:?}, which {} has; files that are read together have the same columns",
                    file.name, first.name
                )));
            }
            Some(found) if found != wanted => {
                return Err(Failure::refused(format!(
                    "{}: the column {name:?} is {}, but {} in {}; files that are read together have the same types",
                    file.name,
                    describe(&found),
                    describe(&wanted),
                    first.name
                )));
            }
            Some(_) => {}
        }
    }
    let schema = &file.metadata.schema;
    let is_extra = |node: &usize| !names.contains(&schema.nodes()[*node].name);
    match schema.children(0).find(is_extra) {
        Some(extra) if !is_chosen => Err(Failure::refused(format!(
            "{}: the column {:?} is not in {}; choose those that both have with --columns",
            file.name,
            schema.nodes()[extra].name,
            first.name
        ))),
        _ => Ok(()),
    }
}

/// What two files must agree on. Whether a column may be null is not in it.
fn type_of(metadata: &FileMetaData, name: &str) -> Option<(PhysicalType, Option<LogicalType>)> {
    let schema: &Schema = &metadata.schema;
    let node = &schema.nodes()[schema.child_of_root(name)?];
    let NodeKind::Leaf { leaf } = node.kind else { return None };
    let physical_type = schema.leaves()[leaf].physical_type;
    // An annotation that only repeats the physical type is no difference.
    let repeats = matches!(
        (&node.logical_type, physical_type),
        (Some(LogicalType::Integer { bit_width: 32, is_signed: true }), PhysicalType::Int32)
            | (Some(LogicalType::Integer { bit_width: 64, is_signed: true }), PhysicalType::Int64)
    );
    Some((physical_type, node.logical_type.clone().filter(|_| !repeats)))
}

fn describe((physical, logical): &(PhysicalType, Option<LogicalType>)) -> String {
    match logical {
        Some(logical) => format!("{physical} {logical}"),
        None => physical.to_string(),
    }
}

/// Reads `a,b,"c,d"`: names between commas; one with a comma or a quote in it stands in quotes, which are doubled inside.
fn split_names(list: &str) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list;
    loop {
        let name = match rest.trim_start().strip_prefix('"') {
            Some(inner) => {
                let mut name = String::new();
                let mut inner = inner;
                rest = loop {
                    let Some((before, after)) = inner.split_once('"') else {
                        return Err(Failure::usage(format!("--columns {list}: a quote is not closed")));
                    };
                    name.push_str(before);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            name.push('"');
                            inner = more;
                        }
                        None => break after.trim_start(),
                    }
                };
                name
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let name = rest[..end].trim().to_string();
                rest = &rest[end..];
                name
            }
        };
        if name.is_empty() {
            return Err(Failure::usage(format!("--columns {list}: a name is empty")));
        }
        names.push(name);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(names),
            None => {
                return Err(Failure::usage(format!(
                    "--columns {list}: a comma should follow a closing quote"
                )));
            }
        }
    }
}

/// Names as `--columns` reads them, quoted for a shell.
fn quote_list(names: &[&str]) -> String {
    let mut list = String::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            list.push(',');
        }
        if name.contains([',', '"']) || name.trim() != *name {
            list.push_str(&format!("\"{}\"", name.replace('"', "\"\"")));
        } else {
            list.push_str(name);
        }
    }
    let is_bare = |c: char| c.is_alphanumeric() || "_-.,/:@%+=".contains(c);
    if list.chars().all(is_bare) { list } else { format!("'{}'", list.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names() {
        let split = |list| match split_names(list) {
            Ok(names) => names.join("|"),
            Err(Failure::Said(_, message)) => message,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(split("a"), "a");
        assert_eq!(split("a, b c ,\"d,\"\"e\" , f"), "a|b c|d,\"e|f");
        assert_eq!(split("a,"), "--columns a,: a name is empty");
        assert_eq!(split("\"a"), "--columns \"a: a quote is not closed");
        assert_eq!(split("\"a\"b"), "--columns \"a\"b: a comma should follow a closing quote");
        let quoted = quote_list(&["a", "b,c", "it's"]);
        assert_eq!(quoted, r#"'a,"b,c",it'\''s'"#);
        assert_eq!(quote_list(&["a", "b_1"]), "a,b_1");
    }
}
