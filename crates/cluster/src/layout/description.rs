//! What a table says of the rows that it holds: its comment.

use std::sync::Arc;

use marquetry_base::print::{base64, of_base64, printable};
use marquetry_base::{Budget, Bytes, Detail, Error, Limits, Machine, Object, Result, Segmented, Step};
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::FooterReader;
use marquetry_parquet::schema::{Leaf, Meaning, Plan as _, Projection, Schema};
use marquetry_parquet::write::FooterWriter;
use marquetry_scylla::cql::KeySpec;
use marquetry_scylla::cql::ddl::KeyPart;
use marquetry_tables::text::Wanted;

use super::TableLayout;
use crate::cluster::Cluster;

/// The format of descriptions. Of later ones this version reads nothing.
const FORMAT: u32 = 1;
/// What a description begins with, before the format's number.
const MAGIC: &str = "marquetry-layout ";
/// The object that a schema is written to and read from.
const FILE: Object = Object(0);

/// The rows that a table holds, and which of its columns hold what of them.
///
/// As text it is lines: `marquetry-layout 1 wide` or `… blob`; `key N NAME` for a column of the key, which has the name of the rows' column;
/// `column N NAME …` for another one; `cell NAME` for the one that has records; and `schema BASE64`: a Parquet file without rows, whose schema is that of the
/// rows. N counts the schema's columns from 0. What follows a column's name is the rows' name, for those who read it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Description {
    pub(super) layout: TableLayout,
    pub(super) schema: Arc<Schema>,
    /// The table's columns, each with the number of the column that it holds; of the layout `blob`, those of the key.
    pub(super) columns: Vec<Held>,
    /// The column that holds records.
    pub(super) cell: Option<String>,
}

/// A column of the table that holds one of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// Its name in the table.
    pub(super) name: String,
    /// The number of the rows' column.
    pub(super) number: usize,
    pub(super) is_key: bool,
}

impl Description {
    /// Plans a table for these rows.
    ///
    /// # Errors
    ///
    /// `Misuse` for a key that is not among the columns; `Conversion` for one whose name has the end of a line.
    pub(crate) fn new(layout: TableLayout, schema: &Arc<Schema>, key: &KeySpec) -> Result<Description> {
        let names: Vec<&str> = schema.children(0).map(|node| &*schema.nodes()[node].name).collect();
        let mut keys = Vec::new();
        for part in key.parts() {
            let number = number_of(&names, part).ok_or_else(|| {
                let there = names.join(", ");
                let what = format!("the rows have no column {:?} for the key; they have {there}", part.text);
                Error::option("key", what)
            })?;
            if names[number].contains(['\n', '\r']) {
                let what = "the name of a key's column has the end of a line";
                return Err(Error::conversion(what).at(|place| place.column = Some(names[number].to_owned())));
            }
            keys.push(number);
        }
        let unique = |name: String| {
            let is_taken = |name: &str| keys.iter().any(|key| names[*key] == name);
            let mut name = name;
            while is_taken(&name) {
                name.push('_');
            }
            name
        };
        let mut columns = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let is_key = keys.contains(&number);
            match layout {
                _ if is_key => columns.push(Held { name: (*name).to_owned(), number, is_key }),
                TableLayout::Wide => {
                    columns.push(Held { name: unique(format!("c{number}")), number, is_key });
                }
                _ => {}
            }
        }
        let cell = (layout == TableLayout::Blob).then(|| unique("record".to_owned()));
        // As it is read again: names of fields are made unique then, and trees written as this library writes them.
        let schema = schema_of(&file_of(schema)?)?;
        Ok(Description { layout, schema, columns, cell })
    }

    /// As the table's comment.
    pub(crate) fn text(&self) -> Result<String> {
        let mut text = format!("{MAGIC}{FORMAT} {}\n", self.layout.name());
        for Held { name, number, is_key } in &self.columns {
            let node = self.schema.children(0).nth(*number).and_then(|node| self.schema.nodes().get(node));
            text.push_str(&match is_key {
                true => format!("key {number} {name}\n"),
                false => {
                    format!("column {number} {name} {}\n", printable(node.map_or("", |node| &*node.name)))
                }
            });
        }
        if let Some(cell) = &self.cell {
            text.push_str(&format!("cell {cell}\n"));
        }
        let mut encoded = Vec::new();
        base64(&mut encoded, &file_of(&self.schema)?);
        text.push_str("schema ");
        text.push_str(&String::from_utf8_lossy(&encoded));
        text.push('\n');
        Ok(text)
    }

    /// Reads a table's comment. `None`: it is none of these.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a later format, `Corrupt` for what contradicts itself.
    pub(crate) fn parse(comment: &str) -> Result<Option<Description>> {
        let Some(rest) = comment.strip_prefix(MAGIC) else { return Ok(None) };
        let wrong = |what: &str| {
            Error::corrupt(format!("the table's comment, which says what its rows hold, is damaged: {what}"))
        };
        let mut lines = rest.lines();
        let (format, layout) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or_default();
        match format.parse::<u32>() {
            Ok(FORMAT) => {}
            Ok(format) if format > FORMAT => {
                return Err(Error::unsupported(format!(
                    "the table has format {format} of layouts, and this version of Marquetry reads and writes format {FORMAT}"
                )));
            }
            _ => return Err(wrong("no format")),
        }
        let layout = match layout {
            "wide" => TableLayout::Wide,
            "blob" => TableLayout::Blob,
            _ => return Err(wrong("a layout that is not known")),
        };
        let (mut columns, mut cell, mut schema) = (Vec::new(), None, None);
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let held = |rest: &str, is_key: bool| {
                let (number, name) = rest.split_once(' ')?;
                let name = if is_key { name } else { name.split(' ').next()? };
                let name = name.to_owned();
                Some(Held { name, number: number.parse().ok()?, is_key })
            };
            match word {
                "key" | "column" => {
                    columns
                        .push(held(rest, word == "key").ok_or_else(|| wrong("a column without a number"))?);
                }
                "cell" => cell = Some(rest.to_owned()),
                "schema" => {
                    let bytes = of_base64(rest.as_bytes()).ok_or_else(|| wrong("the schema"))?;
                    schema = Some(schema_of(&bytes.into()).map_err(|error| wrong(error.message()))?);
                }
                _ => {}
            }
        }
        let schema = schema.ok_or_else(|| wrong("no schema"))?;
        let described = Description { layout, schema, columns, cell };
        described.check().map_err(wrong)?;
        Ok(Some(described))
    }

    /// The names of the rows' columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.schema.children(0).map(|node| &*self.schema.nodes()[node].name).collect()
    }

    /// What is wanted of text that goes there: text for what is text. Of numbers each is held as the type that it has, which is that of the rows.
    pub(crate) fn wanted(&self) -> Vec<(String, Wanted)> {
        let is_text = |node: &usize| {
            let is_leaf = |leaf: &&Leaf| leaf.node == *node;
            let leaf = self.schema.leaves().iter().find(is_leaf);
            leaf.is_some_and(|leaf| self.schema.meaning_of(leaf) == Meaning::String)
        };
        let texts = self.schema.children(0).filter(is_text);
        texts.map(|node| (self.schema.nodes()[node].name.clone(), Wanted::Text)).collect()
    }

    fn check(&self) -> Result<(), &'static str> {
        let count = self.schema.children(0).count();
        let mut is_held = vec![false; count];
        for held in &self.columns {
            match is_held.get_mut(held.number) {
                Some(is_held) if !*is_held => *is_held = true,
                Some(_) => return Err("a column that is there twice"),
                None => return Err("a column that the schema lacks"),
            }
        }
        match (self.layout, &self.cell) {
            (TableLayout::Wide, None) if is_held.iter().all(|it| *it) => Ok(()),
            (TableLayout::Blob, Some(_)) if self.columns.iter().all(|held| held.is_key) => Ok(()),
            _ => Err("columns that are missing, or of another layout"),
        }
    }
}

/// The description of the table that a cluster is connected for. `None`: its rows are rows.
///
/// # Errors
///
/// Those of [`Description::parse`], and the cluster's.
pub(crate) fn described(cluster: &Cluster) -> Result<Option<Description>> {
    let Some(comment) = cluster.comment()? else { return Ok(None) };
    let name = cluster.address().to_string();
    Description::parse(&comment).map_err(|error| error.at(|place| place.object = Some(name)))
}

/// A schema of these columns alone, by name; all if none are named.
///
/// # Errors
///
/// `Misuse` for a name that is not there, or twice.
pub(crate) fn chosen(schema: &Arc<Schema>, names: Option<&[String]>) -> Result<Arc<Schema>> {
    let Some(names) = names else { return Ok(Arc::clone(schema)) };
    let mut projection = Projection::new(Arc::clone(schema));
    for name in names {
        let node = schema.child_of_root(name).or_else(|| schema.child_of_root(&name.to_ascii_lowercase()));
        let added = node.map(|node| projection.add_column(node));
        if !matches!(added, Some(Ok(()))) {
            let what = format!("the rows have no column {name:?}, or it is named twice");
            return Err(Error::misuse(what).with(Detail::Option("columns")));
        }
    }
    Ok(Arc::new(projection.plan().at_once()?))
}

/// The column that a part of a key names.
fn number_of(names: &[&str], part: &KeyPart) -> Option<usize> {
    let exact = |text: &str| names.iter().position(|name| *name == text);
    exact(&part.text).or_else(|| if part.quoted { None } else { exact(&part.text.to_ascii_lowercase()) })
}

/// A Parquet file without rows.
fn file_of(schema: &Arc<Schema>) -> Result<Bytes> {
    let metadata = FileMetaData {
        version: 2,
        schema: Arc::clone(schema),
        rows: 0,
        row_groups: Segmented::new(),
        key_values: Segmented::new(),
        created_by: Some("marquetry".to_owned()),
        column_orders: Segmented::new(),
        encryption: None,
        footer_start: 0,
        footer_bytes: 0,
        is_partial: false,
    };
    let mut writer = FooterWriter::new(FILE, Arc::new(metadata))?;
    let mut file = b"PAR1".to_vec();
    loop {
        match writer.step(&mut Budget::unlimited())? {
            Step::Append(_, bytes) => file.extend_from_slice(&bytes),
            Step::Done => return Ok(file.into()),
            Step::Need(_) => return Err(Error::internal("a footer that needs input")),
            Step::Ready(()) | Step::Yield => {}
        }
    }
}

fn schema_of(file: &Bytes) -> Result<Arc<Schema>> {
    let source = ByteSources::new().with(FILE, Memory::new("its schema", file.clone()));
    let metadata = drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &source)?;
    let metadata = metadata.ok_or_else(|| Error::internal("a footer without an end"))?;
    let schema = Arc::clone(&metadata.schema);
    Ok(schema.with_unique_names().map_or(schema, Arc::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;
    use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType};

    fn schema() -> Arc<Schema> {
        let leaf = |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical));
        let element = leaf("element", PhysicalType::Int32, None);
        Arc::new(
            Schema::of_fields(&[
                leaf("Day", PhysicalType::Int32, Some(LogicalType::Date)).required(),
                leaf("a name\nof two lines", PhysicalType::FixedLenByteArray(7), None),
                leaf("id", PhysicalType::Int64, None).required(),
                FieldDef::new("c1", FieldType::List(Box::new(element))),
            ])
            .unwrap(),
        )
    }

    fn key(text: &str) -> KeySpec {
        KeySpec::parse(text).unwrap()
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        for layout in [TableLayout::Wide, TableLayout::Blob] {
            let made = Description::new(layout, &schema(), &key("\"Day\", id")).unwrap();
            let text = made.text().unwrap();
            assert_eq!(Description::parse(&text), Ok(Some(made.clone())));
            assert_eq!(Description::parse(&format!("{text}more lines\n")), Ok(Some(made.clone())));
            assert_eq!(*made.schema, *schema());
            assert_eq!(made.names(), ["Day", "a name\nof two lines", "id", "c1"]);
            assert!(
                text.starts_with(&format!("marquetry-layout 1 {}\nkey 0 Day\n", layout.name())),
                "{text}"
            );
        }
        let wide = Description::new(TableLayout::Wide, &schema(), &key("c1")).unwrap();
        let names: Vec<&str> = wide.columns.iter().map(|held| &*held.name).collect();
        assert_eq!(names, ["c0", "c1_", "c2", "c1"]);
        let none = Description::new(TableLayout::Wide, &schema(), &key("day")).unwrap_err();
        assert_eq!(none.detail(), Some(Detail::Option("key")), "{none}");
    }

    #[test]
    fn other_comments_are_none_and_damage_is_said() {
        assert_eq!(Description::parse(""), Ok(None));
        assert_eq!(Description::parse("column a holds microseconds"), Ok(None));
        let text = Description::new(TableLayout::Blob, &schema(), &key("id")).unwrap().text().unwrap();
        let kind = |text: &str| Description::parse(text).map_err(|error| error.kind());
        assert_eq!(kind(&text.replace("layout 1", "layout 2")), Err(ErrorKind::Unsupported));
        for wrong in [
            text.replace("layout 1", "layout 0"),
            text.replace("blob", "blub"),
            text.replace("blob", "wide"),
            text.replace("key 2", "key 9"),
            text.replace("key 2", "key"),
            text.replace("UEFSMQ==", "UEFTMQ=="),
            text.replace("schema UEFS", "schema ?EFS"),
            text.replace("schema ", "scheme "),
            text.replace("cell ", "cello "),
            format!("{text}key 2 id\n"),
        ] {
            assert_eq!(kind(&wrong), Err(ErrorKind::Corrupt), "{wrong}");
        }
    }
}
