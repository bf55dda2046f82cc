//! `CREATE INDEX`, and what else a table has besides columns and key.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::alter::{NO_PROPERTIES, parts_of, text_of};
use super::{Definitions, IndexDef, Parsed, Parser, TableOptions};
use crate::cql::ddl::{Order, TableDef, TypeDef};
use crate::cql::identifier::TableName;
use crate::cql::types::CqlType;

impl Parser<'_> {
    /// An index, after `INDEX`.
    pub(super) fn read_index(&mut self, is_custom: bool) -> Parsed<()> {
        self.take_if_not_exists()?;
        let mut name = None;
        if !self.is_word("on") {
            let start = self.rest;
            self.read_part()?;
            name = Some(start[..start.len() - self.rest.len()].to_string());
        }
        self.expect_word("on", "ON")?;
        let table = self.read_table_name()?;
        self.skip_space();
        let start = self.rest;
        let mut end = self.rest;
        // A comment after it is none of it.
        while !self.is_at_end_of_statement() {
            self.skip_token()?;
            end = self.rest;
        }
        let text = start[..start.len() - end.len()].to_string();
        self.made.indexes.push(IndexDef { table, is_custom, name, text });
        Ok(())
    }
}

impl IndexDef {
    /// Whether it is of this table. A name without a keyspace may be in any.
    pub fn is_of(&self, table: &TableName) -> bool {
        let TableName { keyspace, table: name } = &self.table;
        *name == table.table
            && (keyspace.is_none() || table.keyspace.is_none() || *keyspace == table.keyspace)
    }

    /// The statement that creates it, if it is not there, for a table that may have another name: then the server names it, because names of
    /// indexes are a keyspace's. It ends with a semicolon.
    pub fn statement(&self, table: &TableName) -> String {
        let custom = if self.is_custom { "CUSTOM " } else { "" };
        let own = self.name.as_ref().filter(|_| self.table.table == table.table);
        let name = own.map(|name| format!("{name} ")).unwrap_or_default();
        format!("CREATE {custom}INDEX IF NOT EXISTS {name}ON {table} {};", self.text)
    }
}

impl TableOptions {
    /// The options that are properties, such as `gc_grace_seconds = 3600`: each with its name in small letters, and as it is written. The clustering
    /// order, `COMPACT STORAGE`, `ID` and dropped columns are none.
    pub fn properties(&self) -> Vec<(String, String)> {
        self.parts(|name| !NO_PROPERTIES.contains(&name))
    }

    fn parts(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        // It was read before.
        let mut parts = parts_of(&self.text).unwrap_or_default();
        parts.retain(|(name, _)| is_wanted(name));
        parts
    }

    /// The statement that makes a table, with all that it says here.
    pub fn statement(&self, table: &TableDef) -> String {
        if self.text.is_empty() {
            return table.to_string();
        }
        let mut bare = TableDef { comment: None, ..table.clone() };
        bare.clustering.iter_mut().for_each(|(_, order)| *order = Order::Ascending);
        let made = bare.to_string();
        format!("{} {};\n", made.trim_end().trim_end_matches(';'), self.text)
    }
}

impl Definitions {
    /// The statements that make one of the tables again: the user-defined types that it needs, the table with its options, its indexes. Left out is
    /// what only a restored table has, the `ID` and records of dropped columns, and `COMPACT STORAGE`, which says how rows are stored. `None` if no
    /// table has this name.
    pub fn statements_of(&self, table: &TableName) -> Option<String> {
        let at = self.tables.iter().position(|it| it.table == *table)?;
        let (made, options) = (self.tables.get(at)?, self.options.get(at)?);
        let text = text_of(&options.parts(|name| !["id", "dropped", "compact"].contains(&name)));
        let kept = TableOptions { is_compact: false, default_ttl_s: options.default_ttl_s, text };
        let is_of_keyspace = |it: &&TypeDef| {
            it.keyspace.is_none() || made.table.keyspace.is_none() || it.keyspace == made.table.keyspace
        };
        let types: Vec<TypeDef> = self.types.iter().filter(is_of_keyspace).cloned().collect();
        let mut text: String = made.types_among(&types).iter().map(|it| format!("{it}\n")).collect();
        text.push_str(&kept.statement(made));
        for index in self.indexes.iter().filter(|index| index.is_of(table)) {
            text.push_str(&format!("\n{}\n", index.statement(table)));
        }
        Some(text)
    }
}

impl TableDef {
    /// Its `CREATE TABLE` with more properties, each as it is written: `gc_grace_seconds = 3600`.
    pub fn to_string_with<'a>(&self, properties: impl IntoIterator<Item = &'a str>) -> String {
        let made = self.to_string();
        let mut made = made.trim_end().trim_end_matches(';').to_string();
        let has_order = self.clustering.iter().any(|(_, order)| *order == Order::Descending);
        let mut word = if has_order || self.comment.is_some() { "\n  AND " } else { " WITH " };
        for property in properties {
            made.push_str(word);
            made.push_str(property);
            word = "\n  AND ";
        }
        made.push_str(";\n");
        made
    }

    /// The user-defined types that its columns need, each after those that it needs itself.
    pub fn types_among<'a>(&self, types: &'a [TypeDef]) -> Vec<&'a TypeDef> {
        let mut found = Vec::new();
        for column in &self.columns {
            add(&column.cql_type, types, &mut found, types.len());
        }
        found
    }
}

fn add<'a>(of: &CqlType, types: &'a [TypeDef], found: &mut Vec<&'a TypeDef>, depth: usize) {
    match of {
        CqlType::List(inner) | CqlType::Set(inner) | CqlType::Frozen(inner) | CqlType::Vector(inner, _) => {
            add(inner, types, found, depth);
        }
        CqlType::Map(key, value) => {
            add(key, types, found, depth);
            add(value, types, found, depth);
        }
        CqlType::Tuple(members) => members.iter().for_each(|member| add(member, types, found, depth)),
        CqlType::Udt { name, .. } => {
            let Some(of) = types.iter().find(|it| it.name == *name) else { return };
            let Some(depth) = depth.checked_sub(1).filter(|_| !found.contains(&of)) else { return };
            for (_, field) in &of.fields {
                add(field, types, found, depth);
            }
            if !found.contains(&of) {
                found.push(of);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Definitions {
        Definitions::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn types_come_before_what_needs_them() {
        let made = parse(
            "CREATE TYPE k.outer (a frozen<list<frozen<middle>>>, b frozen<inner>); CREATE TYPE k.unused (a int);
             CREATE TYPE k.inner (a int); CREATE TYPE k.middle (a frozen<tuple<int, frozen<inner>>>);
             CREATE TABLE k.t (p int PRIMARY KEY, v map<text, frozen<outer>>, w inner)",
        );
        let names = made.tables[0].types_among(&made.types);
        let names: Vec<&str> = names.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["inner", "middle", "outer"]);
    }

    #[test]
    fn indexes_are_made_again() {
        let text = "CREATE TABLE k.t (p int PRIMARY KEY, v text); CREATE INDEX i ON k.t (v); USE k;
            CREATE CUSTOM INDEX IF NOT EXISTS \"I;\" ON t (values(v)) USING 'sai' WITH OPTIONS = {'a': 'b;'} -- so
            ; CREATE INDEX ON \"T\"(v)";
        let made = parse(text);
        let table = |name: &str| TableName::parse(name).unwrap();
        let again: Vec<String> = made.indexes.iter().map(|index| index.statement(&index.table)).collect();
        assert_eq!(
            again,
            [
                "CREATE INDEX IF NOT EXISTS i ON k.t (v);",
                "CREATE CUSTOM INDEX IF NOT EXISTS \"I;\" ON k.t (values(v)) USING 'sai' WITH OPTIONS = {'a': 'b;'};",
                "CREATE INDEX IF NOT EXISTS ON k.\"T\" (v);",
            ]
        );
        // In a keyspace there may be one of this name.
        assert_eq!(made.indexes[0].statement(&table("k.u")), "CREATE INDEX IF NOT EXISTS ON k.u (v);");
        assert_eq!(made.indexes[0].statement(&table("j.t")), "CREATE INDEX IF NOT EXISTS i ON j.t (v);");
        let wrong = Definitions::parse("CREATE INDEX i (v)").unwrap_err().to_string();
        assert_eq!(wrong, "line 1: \"(v)\" where ON is expected");
    }

    #[test]
    fn the_statements_of_one_table() {
        let text = "CREATE TYPE k.u (a int); CREATE TYPE k.other (a int); CREATE TABLE k.a (p int PRIMARY KEY) WITH comment = 'a';
            CREATE TABLE k.t (p int, c int, v frozen<u>, PRIMARY KEY (p, c)) WITH ID = 4f6c3b70-0000-11ef-0000-000000000000 AND
            CLUSTERING ORDER BY (c DESC) AND DROPPED COLUMN RECORD old text USING TIMESTAMP 1000 AND COMPACT STORAGE AND gc_grace_seconds = 7
            AND compaction = {'class': 'x AND y'};
            CREATE INDEX i ON k.t (v); CREATE INDEX j ON k.a (p)";
        let made = parse(text);
        let statements = made.statements_of(&TableName::parse("k.t").unwrap()).unwrap();
        assert_eq!(
            statements,
            "CREATE TYPE k.u (\n    a int\n);\n\nCREATE TABLE k.t (\n    p int,\n    c int,\n    v frozen<u>,\n    PRIMARY KEY (p, c)\n) \
             WITH CLUSTERING ORDER BY (c DESC)\n    AND gc_grace_seconds = 7\n    AND compaction = {'class': 'x AND y'};\n\n\
             CREATE INDEX IF NOT EXISTS i ON k.t (v);\n"
        );
        let again = parse(&statements);
        assert_eq!((&again.tables[0], &again.indexes[..]), (&made.tables[1], &made.indexes[..1]));
        assert_eq!(made.statements_of(&TableName::parse("k.b").unwrap()), None);
        let properties = made.options[1].properties();
        let properties: Vec<&str> = properties.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(properties, ["gc_grace_seconds = 7", "compaction = {'class': 'x AND y'}"]);
        let made = made.tables[1].to_string_with(properties);
        assert!(
            made.ends_with(
                ") WITH CLUSTERING ORDER BY (c DESC)\n  AND gc_grace_seconds = 7\n  AND compaction = {'class': 'x AND y'};\n"
            ),
            "{made}"
        );
        let plain = parse("CREATE TABLE k.a (p int PRIMARY KEY)");
        let of = |properties: &[&str]| plain.tables[0].to_string_with(properties.iter().copied());
        assert_eq!(of(&[]), plain.tables[0].to_string());
        assert!(of(&["a = 1", "b = 2"]).ends_with("\n) WITH a = 1\n  AND b = 2;\n"));
    }
}
