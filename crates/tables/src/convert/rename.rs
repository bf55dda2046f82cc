//! The columns of any table under other names.

use std::str::FromStr;
use std::sync::Arc;

use marquetry_base::{Error, Faults, Result};
use marquetry_parquet::batch::RowSelection;
use marquetry_parquet::schema::Schema;

use super::plan::child_of;
use crate::key_values::holds_for_any_columns;
use crate::source::{open_piece, open_piece_rows};
use crate::subject::named;
use crate::{Batches, Cancel, ColumnPath, Piece, PieceOptions, Source, Table, project};

/// Other names of columns, and of fields in them: `old=new, "an old name"="a new one", place.lat=latitude`.
///
/// ```
/// use marquetry_tables::Rename;
///
/// let rename: Rename = "fare=price, \"pick up\"=pickup".parse()?;
/// assert_eq!(rename.names(), [("fare".to_string(), "price".to_string()), ("pick up".into(), "pickup".into())]);
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    names: Vec<(String, String)>,
    /// What is wrong with the names is the fault of this option.
    option: &'static str,
}

impl Default for Rename {
    fn default() -> Rename {
        Rename::of([])
    }
}

impl Rename {
    /// Gives columns other names: pairs of the old and the new one.
    pub fn of(names: impl IntoIterator<Item = (String, String)>) -> Rename {
        Rename { names: names.into_iter().collect(), option: "rename" }
    }

    /// The same, given by another option than `rename`: errors name that one.
    ///
    /// ```
    /// use marquetry_tables::Rename;
    ///
    /// let names = Rename::of([("fare".to_string(), "price".to_string())]).by_option("map");
    /// assert_eq!(names.option(), "map");
    /// ```
    #[must_use]
    pub fn by_option(mut self, option: &'static str) -> Rename {
        self.option = option;
        self
    }

    /// The option that the names are given by.
    pub fn option(&self) -> &'static str {
        self.option
    }

    /// The old and the new names.
    pub fn names(&self) -> &[(String, String)] {
        &self.names
    }

    /// What a column is called before, that is called so after. `None` for a name that another column had, which has got a new one.
    ///
    /// ```
    /// use marquetry_tables::Rename;
    ///
    /// let names: Rename = "fare=price".parse()?;
    /// assert_eq!((names.before("price"), names.before("day")), (Some("fare"), Some("day")));
    /// assert_eq!(names.before("fare"), None);
    /// # Ok::<(), marquetry_base::Error>(())
    /// ```
    pub fn before<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self.names.iter().find(|(_, new)| new == name) {
            Some((old, _)) => Some(old),
            None if self.names.iter().any(|(old, _)| old == name) => None,
            None => Some(name),
        }
    }
}

impl FromStr for Rename {
    type Err = Error;

    /// Parses `old=new` and further ones after commas. A name with a comma, an equals sign or a space at an end is put in
    /// double quotes, which are doubled inside. An old name may lead to a field, with dots ([`ColumnPath`]); the new one is
    /// that of the field alone.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `rename`.
    fn from_str(text: &str) -> Result<Rename> {
        let mut rest = text;
        let mut names = Vec::new();
        let wrong = |what: &str| Error::option("rename", format!("{what} in {text:?}"));
        loop {
            let old = name(&mut rest).map_err(wrong)?;
            rest = rest.strip_prefix('=').ok_or_else(|| wrong("an equals sign is missing"))?;
            let new = name(&mut rest).map_err(wrong)?;
            names.push((old, new));
            match rest.strip_prefix(',') {
                Some(more) if !more.trim().is_empty() => rest = more,
                Some(_) => return Ok(Rename::of(names)),
                None if rest.is_empty() => return Ok(Rename::of(names)),
                None => return Err(wrong("a comma is missing")),
            }
        }
    }
}

/// A name: in double quotes, or up to an equals sign or a comma.
fn name(rest: &mut &str) -> Result<String, &'static str> {
    let start = rest.trim_start();
    let Some(mut inner) = start.strip_prefix('"') else {
        let end = start.find(['=', ',']).unwrap_or(start.len());
        let (name, after) = start.split_at(end);
        *rest = after;
        let name = name.trim_end();
        return if name.is_empty() { Err("a name is missing") } else { Ok(name.to_string()) };
    };
    let mut name = String::new();
    loop {
        let (before, after) = inner.split_once('"').ok_or("a quote is not closed")?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                inner = more;
            }
            None => {
                *rest = after.trim_start();
                return Ok(name);
            }
        }
    }
}

/// The same table, some of whose columns, or fields of them, have other names. A name that is not found exactly is looked up in
/// lower case.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Source, rename};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips.parquet"], &FilesOptions::default())?);
/// let renamed = rename(&trips, &"fare=price".parse()?)?;
/// assert!(renamed.table().schema.child_of_root("price").is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// All that is wrong, in one error: `Misuse` for columns that the table lacks, with a list of those that it has, and for
/// names that two columns would have.
pub fn rename(source: &Arc<dyn Source>, names: &Rename) -> Result<Arc<dyn Source>> {
    if names.names.is_empty() {
        return Ok(Arc::clone(source));
    }
    let all = source.table();
    let mut schema = Schema::clone(&all.schema);
    let mut faults = Faults::default();
    let (mut renamed, mut by_node) = (Vec::new(), Vec::new());
    for (old, new) in &names.names {
        let Some(node) = node_of(&all.schema, old, names.option, &mut faults) else { continue };
        if renamed.contains(&node) {
            faults.add(Error::option(names.option, format!("the column {old:?} gets two names")));
        }
        renamed.push(node);
        by_node.push((node, (old.clone(), new.clone())));
        schema.set_name(node, new)?;
    }
    let mut parents: Vec<usize> = renamed.iter().map(|node| schema.nodes()[*node].parent).collect();
    parents.sort_unstable();
    parents.dedup();
    for parent in parents {
        let mut known: Vec<&str> =
            schema.children(parent).map(|node| schema.nodes()[node].name.as_str()).collect();
        known.sort_unstable();
        for pair in known.windows(2) {
            if let [one, other] = pair
                && one == other
            {
                let what = match parent {
                    0 => format!("two columns would be called {one:?}"),
                    _ => format!("two fields of {:?} would be called {one:?}", schema.path(parent)),
                };
                faults.add(Error::option(names.option, what));
            }
        }
    }
    faults.into_result().map_err(|error| named(error, &all.name))?;
    let mut table = all.clone();
    table.schema = Arc::new(schema);
    table.key_values.retain(holds_for_any_columns);
    table.of_all_columns.clear();
    Ok(Arc::new(Renamed { source: Arc::clone(source), table, names: by_node }))
}

/// The column with a name, or the field that a path leads to. What is wrong is a fault.
fn node_of(schema: &Arc<Schema>, name: &str, option: &'static str, faults: &mut Faults) -> Option<usize> {
    let path = match ColumnPath::parse(name) {
        Ok(path) if schema.child_of_root(name).is_none() => path,
        _ => ColumnPath::of([name]),
    };
    let found = path.leaves_or(schema, option, faults)?;
    let [.., last] = &*path.parts else { return None };
    if path.parts.len() == 1 {
        return schema.children(0).find(|node| schema.leaves_of(*node).any(|leaf| found.contains(&leaf)));
    }
    // The innermost group of these leaves with the last name: those of lists may have any.
    let mut node = schema.leaves().get(*found.first()?)?.node;
    while node != 0 && schema.leaves_of(node).len() <= found.len() {
        let it = &schema.nodes()[node];
        if schema.leaves_of(node).eq(found.iter().copied()) && it.name.eq_ignore_ascii_case(&last.text) {
            return Some(node);
        }
        node = it.parent;
    }
    faults.add(Error::option(option, format!("{name:?} leads to no field with this name")));
    None
}

/// A table under other names.
struct Renamed {
    source: Arc<dyn Source>,
    table: Table,
    /// The old and the new names, by the nodes that have them.
    names: Vec<(usize, (String, String))>,
}

impl Renamed {
    /// A column as the source calls it; all of it if fields in it have other names, too.
    fn old(&self, column: &ColumnPath) -> Option<ColumnPath> {
        let (node, used) = child_of(&self.table.schema, 0, &column.parts)?;
        let mut path = ColumnPath::of([&*self.source.table().schema.nodes().get(node)?.name]);
        path.text.clone_from(&column.text);
        if !self.names.iter().any(|(renamed, _)| *renamed != node && self.column_of(*renamed) == node) {
            path.parts.extend_from_slice(column.parts.get(used..)?);
        }
        Some(path)
    }

    /// What the source counts its lost values in, under the new names.
    fn counting(&self, options: &PieceOptions) -> PieceOptions {
        let [all, own] = [&self.source.table().schema, &self.table.schema];
        let names = all.children(0).zip(own.children(0));
        let names = names.filter_map(|(old, new)| all.nodes().get(old).zip(own.nodes().get(new)));
        let names = names.map(|(old, new)| (&*old.name, &*new.name));
        PieceOptions { lost: options.lost.of_columns(names), ..options.clone() }
    }

    /// The column that a node is in.
    fn column_of(&self, node: usize) -> usize {
        let parent =
            |node: &usize| self.table.schema.nodes().get(*node).map(|it| it.parent).filter(|it| *it != 0);
        std::iter::successors(Some(node), parent).last().unwrap_or(node)
    }
}

impl Source for Renamed {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        open_piece(self.source.as_ref(), piece, &self.counting(options))
    }

    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        open_piece_rows(self.source.as_ref(), piece, rows, &self.counting(options))
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        self.source.lines_of(piece, rows, cancel)
    }

    /// By the source, under the old names. What it lacks is reported under the new ones.
    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        let is_there = |column: &ColumnPath| column.leaves(&self.table.schema).is_ok();
        if !columns.iter().all(is_there) {
            return Ok(None);
        }
        let mut old: Vec<ColumnPath> = Vec::with_capacity(columns.len());
        for column in columns {
            let Some(path) = self.old(column) else { return Ok(None) };
            if !old.iter().any(|known| known.parts == path.parts) {
                old.push(path);
            }
        }
        let (all, narrow) = (&self.source.table().schema, project(&self.source, &old)?);
        if narrow.table().schema == *all {
            return Ok(None);
        }
        let has = |(node, _): &&(usize, (String, String))| {
            let column = &all.nodes()[self.column_of(*node)].name;
            narrow.table().schema.child_of_root(column).is_some()
        };
        let names = self.names.iter().filter(has).map(|(_, names)| names.clone());
        let renamed = rename(&narrow, &Rename::of(names))?;
        // What was needed to find the names is left out.
        project(&renamed, columns).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_people_write_them() {
        let read = |text: &str| match text.parse::<Rename>() {
            Ok(Rename { names, .. }) => format!("{names:?}"),
            Err(error) => error.message().to_string(),
        };
        assert_eq!(read("a=b"), r#"[("a", "b")]"#);
        assert_eq!(read(" a b = c , \"x=\"\"y\"=\"\","), r#"[("a b", "c"), ("x=\"y", "")]"#);
        for (text, said) in [
            ("", "a name is missing"),
            ("a", "an equals sign is missing"),
            ("a=", "a name is missing"),
            ("a=\"b", "a quote is not closed"),
            ("a=\"b\" c", "a comma is missing"),
        ] {
            assert!(read(text).contains(said), "{text}: {}", read(text));
        }
    }
}
