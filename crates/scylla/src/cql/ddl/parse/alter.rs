//! `ALTER TABLE` and `ALTER TYPE`, of what is defined before.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{DefinitionFault, Parsed, Parser, TypeName, is_word_char};
use crate::cql::ddl::{Order, TableDef, TypeDef};
use crate::cql::identifier::Name;

/// What follows `WITH` in a `CREATE TABLE`, and is no property: `ALTER TABLE` cannot set it.
pub(super) const NO_PROPERTIES: [&str; 4] = ["clustering", "compact", "dropped", "id"];

impl Parser<'_> {
    pub(super) fn read_alter(&mut self) -> Parsed<()> {
        if self.take_word("table") || self.take_word("columnfamily") {
            self.take_if_exists()?;
            let name = self.read_table_name()?;
            let found = self.made.tables.iter().position(|table| table.table == name);
            let Some(at) = found else {
                return Err(DefinitionFault::NotDefined(name.to_string()));
            };
            self.read_alter_table(at)?;
            self.expect_end_of_statement()
        } else if self.take_word("type") {
            self.take_if_exists()?;
            let TypeName { keyspace, name } = self.read_type_name()?;
            let is_it = |def: &TypeDef| def.name == name && def.keyspace == keyspace;
            let Some(at) = self.made.types.iter().position(is_it) else {
                return Err(DefinitionFault::NotDefined(name.to_string()));
            };
            self.read_alter_type(at)?;
            self.expect_end_of_statement()
        } else {
            Ok(())
        }
    }

    fn read_alter_type(&mut self, at: usize) -> Parsed<()> {
        if self.take_word("add") {
            let is_if_new = self.is_word("if");
            self.take_if_not_exists()?;
            loop {
                let (name, kind) = (self.read_name()?, self.read_type()?);
                let fields = &mut self.made.types[at].fields;
                if !(is_if_new && fields.iter().any(|(before, _)| *before == name)) {
                    fields.push((name, kind));
                }
                if !self.take_word("and") {
                    return Ok(());
                }
            }
        }
        self.expect_word("rename", "ADD or RENAME")?;
        for (old, new) in self.read_renamings()? {
            let field = self.made.types[at].fields.iter_mut().find(|(name, _)| *name == old);
            field.ok_or(DefinitionFault::NoSuchColumn(old))?.0 = new;
        }
        Ok(())
    }

    fn read_alter_table(&mut self, at: usize) -> Parsed<()> {
        if self.take_word("add") {
            let is_if_new = self.is_word("if");
            self.take_if_not_exists()?;
            let is_list = self.take_char('(');
            loop {
                let column = self.read_column()?;
                let columns = &mut self.made.tables[at].columns;
                if !(is_if_new && columns.iter().any(|before| before.name == column.name)) {
                    columns.push(column);
                }
                if !self.take_char(',') {
                    break;
                }
            }
            if is_list {
                self.expect_char(')', "a closing parenthesis")?;
            }
            Ok(())
        } else if self.take_word("drop") {
            self.read_drop(at)
        } else if self.take_word("rename") {
            for (old, new) in self.read_renamings()? {
                let column = self.made.tables[at].columns.iter_mut().find(|column| column.name == old);
                column.ok_or(DefinitionFault::NoSuchColumn(old))?.name = new;
            }
            self.name_order(at)
        } else if self.take_word("alter") {
            let name = self.read_name()?;
            // What may be seen of a column: MASKED WITH …, DROP MASKED.
            if self.is_word("masked") || self.is_word("drop") {
                return self.skip_statement();
            }
            self.expect_word("type", "TYPE")?;
            let cql_type = self.read_type()?;
            let column = self.made.tables[at].columns.iter_mut().find(|column| column.name == name);
            column.ok_or(DefinitionFault::NoSuchColumn(name))?.cql_type = cql_type;
            Ok(())
        } else {
            self.expect_word("with", "ADD, DROP, RENAME, ALTER or WITH")?;
            self.read_properties(at)
        }
    }

    fn read_drop(&mut self, at: usize) -> Parsed<()> {
        // DROP COMPACT STORAGE changes no column that has a name.
        let before = self.rest;
        if self.take_word("compact") {
            if self.take_word("storage") {
                return Ok(());
            }
            self.rest = before;
        }
        let is_if_there = self.is_word("if");
        self.take_if_exists()?;
        let is_list = self.take_char('(');
        let mut names = Vec::new();
        loop {
            let name = self.read_name()?;
            let is_there = self.made.tables[at].columns.iter().any(|column| column.name == name);
            if is_there || !is_if_there {
                self.drop_column(at, name.clone())?;
                names.push(name);
            }
            if !self.take_char(',') {
                break;
            }
        }
        if is_list {
            self.expect_char(')', "a closing parenthesis")?;
        }
        let timestamp = self.take_timestamp()?;
        let table = self.made.tables[at].table.clone();
        self.note_dropped(&table, names, timestamp);
        Ok(())
    }

    fn drop_column(&mut self, at: usize, name: Name) -> Parsed<()> {
        let table = &mut self.made.tables[at];
        let is_key = |place: &usize| {
            table.partition_key.contains(place) || table.clustering.iter().any(|(at, _)| at == place)
        };
        let found = table.columns.iter().position(|column| column.name == name);
        let Some(place) = found.filter(|place| !is_key(place)) else {
            return Err(DefinitionFault::NoSuchColumn(name));
        };
        table.columns.remove(place);
        let moved = |at: &mut usize| *at -= usize::from(*at > place);
        table.partition_key.iter_mut().for_each(moved);
        table.clustering.iter_mut().for_each(|(at, _)| moved(at));
        Ok(())
    }

    /// `IF EXISTS a TO b AND c TO d`.
    fn read_renamings(&mut self) -> Parsed<Vec<(Name, Name)>> {
        self.take_if_exists()?;
        let mut all = Vec::new();
        loop {
            let old = self.read_name()?;
            self.expect_word("to", "TO")?;
            all.push((old, self.read_name()?));
            if !self.take_word("and") {
                return Ok(all);
            }
        }
    }

    /// What follows `ALTER TABLE … WITH`: properties, which replace those of the same names.
    fn read_properties(&mut self, at: usize) -> Parsed<()> {
        let mut options = parts_of(&self.made.options[at].text)?;
        loop {
            self.skip_space();
            let start = self.rest;
            let name = start[..start.find(|c| !is_word_char(c)).unwrap_or(start.len())].to_ascii_lowercase();
            if name.is_empty() || NO_PROPERTIES.contains(&&*name) {
                return Err(self.unexpected("a property that ALTER TABLE can set"));
            }
            self.skip_token()?;
            self.expect_char('=', "an equals sign")?;
            if name == "default_time_to_live" {
                self.made.options[at].default_ttl_s = self.read_ttl()?;
            } else {
                self.expect_value()?;
            }
            let text = start[..start.len() - self.rest.len()].to_string();
            match options.iter_mut().find(|(before, _)| *before == name) {
                Some((_, before)) => *before = text,
                None => options.push((name, text)),
            }
            if !self.take_word("and") {
                break;
            }
        }
        self.made.options[at].text = text_of(&options);
        Ok(())
    }

    /// Skips a property's value; a comment after it stays.
    fn expect_value(&mut self) -> Parsed<()> {
        if self.is_at_end_of_statement() || self.is_word("and") {
            return Err(self.unexpected("a value"));
        }
        loop {
            self.skip_token()?;
            let end = self.rest;
            if self.is_at_end_of_statement() || self.is_word("and") {
                self.rest = end;
                return Ok(());
            }
        }
    }

    /// Says by what columns a table is ordered, after one of them got another name.
    fn name_order(&mut self, at: usize) -> Parsed<()> {
        let mut options = parts_of(&self.made.options[at].text)?;
        let Some((_, text)) = options.iter_mut().find(|(name, _)| name == "clustering") else {
            return Ok(());
        };
        *text = order_of(&self.made.tables[at]);
        self.made.options[at].text = text_of(&options);
        Ok(())
    }
}

/// `CLUSTERING ORDER BY …`.
fn order_of(table: &TableDef) -> String {
    let columns = table.clustering.iter().filter_map(|(at, order)| {
        let order = if *order == Order::Ascending { "ASC" } else { "DESC" };
        Some(format!("{} {order}", table.columns.get(*at)?.name))
    });
    format!("CLUSTERING ORDER BY ({})", columns.collect::<Vec<_>>().join(", "))
}

/// The options of a text from `WITH` on: each with the word that it begins with, in small letters.
pub(super) fn parts_of(text: &str) -> Parsed<Vec<(String, String)>> {
    let mut parser = Parser { text, rest: text, keyspace: None, made: super::Definitions::default() };
    let mut parts = Vec::new();
    if !parser.take_word("with") {
        return Ok(parts);
    }
    while !parser.is_at_end_of_statement() {
        let start = parser.rest;
        let name = start[..start.find(|c| !is_word_char(c)).unwrap_or(start.len())].to_ascii_lowercase();
        parser.expect_value()?;
        parts.push((name, start[..start.len() - parser.rest.len()].to_string()));
        parser.take_word("and");
    }
    Ok(parts)
}

pub(super) fn text_of(options: &[(String, String)]) -> String {
    let all: Vec<&str> = options.iter().map(|(_, text)| text.as_str()).collect();
    if all.is_empty() { String::new() } else { format!("WITH {}", all.join("\n    AND ")) }
}
