//! Statements that define tables, read: a `schema.cql`, or what `DESCRIBE` prints.
//!
//! Snapshots have such a file beside their SSTables, and it is all that says what key columns are called. So everything is read that those
//! files are made of, and other statements (keyspaces, functions, roles) are passed over. What `ALTER TABLE` and `ALTER TYPE` say is
//! read to its end, or is an error: it changes what was defined.
//!
//! Sources: `SchemaCQLHelper.java` and `TableMetadata.java` of Cassandra, `schema.cc` of ScyllaDB.

mod alter;
mod index;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{ColumnDef, Order, TableDef, TypeDef};
use crate::cql::identifier::{Name, NameError, TableName, take_part, take_quoted};
use crate::cql::types::{CqlType, NESTING_MAX, TypeError};
use crate::sstable::marshal::MarshalType;

/// The tables, views and types that statements define, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    /// `CREATE TABLE`, with what `ALTER TABLE` added and dropped.
    pub tables: Vec<TableDef>,
    /// `CREATE MATERIALIZED VIEW`.
    pub views: Vec<ViewDef>,
    /// `CREATE TYPE`.
    pub types: Vec<TypeDef>,
    /// Columns that were dropped, and when: `ALTER TABLE … DROP … USING TIMESTAMP …`, or `DROPPED COLUMN RECORD …`. Those that were added again
    /// are columns of their table, too.
    pub dropped: Vec<DroppedColumn>,
    /// What `CREATE TABLE` says after the columns, and `ALTER TABLE … WITH`: of each of `tables`, in their order.
    pub options: Vec<TableOptions>,
    /// `CREATE INDEX` and `CREATE CUSTOM INDEX`.
    pub indexes: Vec<IndexDef>,
}

/// An index of a table, as a statement creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDef {
    /// Its table.
    pub table: TableName,
    /// Whether it is `CUSTOM`.
    pub is_custom: bool,
    /// Its name as it is written, in double quotes where it needs them. `None`: the server names it.
    pub name: Option<String>,
    /// What it is of, and how it is made, from the parenthesis after the table's name on.
    pub text: String,
}

/// What a `CREATE TABLE` says after the columns, as `ALTER TABLE` has changed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// `COMPACT STORAGE`.
    pub is_compact: bool,
    /// `default_time_to_live`: the seconds after which rows expire whose writes say nothing else; 0 is never.
    pub default_ttl_s: u32,
    /// All of it, from `WITH` on; as it is written, but for what was altered. Empty: nothing.
    pub text: String,
}

/// A column that was dropped at a time: what was written to it at or before that is not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedColumn {
    /// Its table.
    pub table: TableName,
    /// Its name.
    pub name: Name,
    /// The last write time that does not count: microseconds since 1970.
    pub timestamp: i64,
}

/// A materialized view: its name and its key. Its columns have the types that they have in its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDef {
    /// Its keyspace and name.
    pub view: TableName,
    /// The table whose rows it has.
    pub base: TableName,
    /// The columns of its partition key.
    pub partition_key: Vec<Name>,
    /// Its clustering columns.
    pub clustering: Vec<Name>,
}

/// The longest time to live that servers take (20 years, `MAX_TTL` of Cassandra's Attributes).
const TTL_SECONDS_MAX: u32 = 20 * 365 * 24 * 60 * 60;

impl Definitions {
    /// Reads statements. A table is in the keyspace that is named with it, or by the last `USE`.
    ///
    /// ```
    /// use marquetry_scylla::cql::Definitions;
    ///
    /// let text = "USE ks; CREATE TABLE t (a int, b text, c blob, PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (b DESC);";
    /// let table = &Definitions::parse(text).unwrap().tables[0];
    /// assert_eq!(table.table.to_string(), "ks.t");
    /// assert_eq!((&*table.partition_key, table.clustering.len()), (&[0][..], 1));
    /// ```
    ///
    /// # Errors
    ///
    /// A [`DefinitionError`], with the line, for a definition that cannot be understood.
    pub fn parse(text: &str) -> Result<Definitions, DefinitionError> {
        let mut parser = Parser { text, rest: text, keyspace: None, made: Definitions::default() };
        let read = parser.read_all();
        let line = 1 + text[..text.len() - parser.rest.len()].matches('\n').count();
        read.map_err(|fault| DefinitionError { line, fault })?;
        Ok(parser.made)
    }
}

/// Why statements cannot be read as definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub fault: DefinitionFault,
}

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionFault {
    /// Something else was expected.
    Unexpected {
        /// What was expected.
        expected: &'static str,
        /// The text found, up to 20 characters; empty at the end.
        found: String,
    },
    /// A name is none in CQL.
    Name(NameError),
    /// A type is none in CQL.
    Type(TypeError),
    /// A type of somebody's own, which CQL has no name for.
    CustomType(String),
    /// A column of the key is not defined, or `ALTER TABLE` names none.
    NoSuchColumn(Name),
    /// `ALTER` names a table or type that is not defined before.
    NotDefined(String),
    /// A table without a primary key.
    NoKey,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.fault {
            DefinitionFault::Unexpected { expected, found } if found.is_empty() => {
                write!(f, "the text ends where {expected} is expected")
            }
            DefinitionFault::Unexpected { expected, found } => {
                write!(f, "{found:?} where {expected} is expected")
            }
            DefinitionFault::Name(error) => error.fmt(f),
            DefinitionFault::Type(error) => error.fmt(f),
            DefinitionFault::CustomType(class) => write!(f, "the type {class:?} has no name in CQL"),
            DefinitionFault::NoSuchColumn(name) => write!(f, "{name} is not a column of the table"),
            DefinitionFault::NotDefined(name) => write!(f, "{name} is altered, but not created before"),
            DefinitionFault::NoKey => f.write_str("a table without a primary key"),
        }
    }
}

impl core::error::Error for DefinitionError {}

impl From<NameError> for DefinitionFault {
    fn from(error: NameError) -> DefinitionFault {
        DefinitionFault::Name(error)
    }
}

impl From<TypeError> for DefinitionFault {
    fn from(error: TypeError) -> DefinitionFault {
        DefinitionFault::Type(error)
    }
}

type Parsed<T> = Result<T, DefinitionFault>;

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    keyspace: Option<Name>,
    made: Definitions,
}

/// The columns of a primary key, as they are named.
type KeyNames = (Vec<Name>, Vec<Name>);

impl<'a> Parser<'a> {
    fn read_all(&mut self) -> Parsed<()> {
        loop {
            self.skip_space();
            if self.rest.is_empty() {
                return Ok(());
            }
            if self.take_char(';') {
                continue;
            }
            if self.take_word("create") {
                self.read_create()?;
            } else if self.take_word("alter") {
                self.read_alter()?;
            } else if self.take_word("use") {
                self.keyspace = Some(self.read_keyspace()?);
            }
            self.skip_statement()?;
        }
    }

    fn read_create(&mut self) -> Parsed<()> {
        if self.take_word("table") || self.take_word("columnfamily") {
            self.take_if_not_exists()?;
            let table = self.read_table_name()?;
            let (read, options) = self.read_table(table)?;
            self.made.tables.push(read);
            self.made.options.push(options);
        } else if self.take_word("type") {
            self.take_if_not_exists()?;
            let read = self.read_type_definition()?;
            self.made.types.push(read);
        } else if self.take_word("materialized") {
            self.expect_word("view", "VIEW")?;
            self.take_if_not_exists()?;
            let view = self.read_table_name()?;
            let base = self.find_base()?;
            let (partition_key, clustering) = self.find_key()?;
            self.made.views.push(ViewDef { view, base, partition_key, clustering });
        } else {
            let is_custom = self.take_word("custom");
            if self.take_word("index") {
                self.read_index(is_custom)?;
            }
        }
        Ok(())
    }

    fn read_table(&mut self, table: TableName) -> Parsed<(TableDef, TableOptions)> {
        self.expect_char('(', "the columns in parentheses")?;
        let mut columns: Vec<ColumnDef> = Vec::new();
        let mut key: Option<KeyNames> = None;
        loop {
            if self.take_primary_key()? {
                key = Some(self.read_key()?);
            } else {
                let column = self.read_column()?;
                if self.take_primary_key()? {
                    key = Some((alloc::vec![column.name.clone()], Vec::new()));
                }
                columns.push(column);
            }
            if !self.take_char(',') {
                break;
            }
        }
        self.expect_char(')', "a comma or a closing parenthesis")?;
        let (partition, clustering) = key.ok_or(DefinitionFault::NoKey)?;
        let place = |name: &Name| {
            let found = columns.iter().position(|column| column.name == *name);
            found.ok_or_else(|| DefinitionFault::NoSuchColumn(name.clone()))
        };
        let partition_key = partition.iter().map(place).collect::<Parsed<Vec<usize>>>()?;
        let clustering = clustering.iter().map(|name| Ok((place(name)?, Order::Ascending)));
        let clustering = clustering.collect::<Parsed<Vec<_>>>()?;
        let mut made =
            TableDef { table, if_not_exists: false, columns, partition_key, clustering, comment: None };
        let options = self.read_options(&mut made)?;
        Ok((made, options))
    }

    /// Reads a table's options up to the end of the statement: of them, the clustering order counts here, what was dropped, and
    /// what says how rows are stored.
    fn read_options(&mut self, table: &mut TableDef) -> Parsed<TableOptions> {
        let mut options = TableOptions::default();
        self.skip_space();
        let (start, mut end) = (self.rest, self.rest);
        // A comment after the last of them is none.
        while !self.is_at_end_of_statement() {
            self.read_option(table, &mut options)?;
            end = self.rest;
        }
        options.text = start[..start.len() - end.len()].to_string();
        Ok(options)
    }

    /// Reads an option that counts, or passes over a token of another.
    fn read_option(&mut self, table: &mut TableDef, options: &mut TableOptions) -> Parsed<()> {
        if self.take_word("compact") {
            options.is_compact |= self.take_word("storage");
            return Ok(());
        }
        if self.take_word("default_time_to_live") {
            self.expect_char('=', "an equals sign")?;
            options.default_ttl_s = self.read_ttl()?;
            return Ok(());
        }
        if self.take_word("dropped") {
            return self.read_dropped_record(&table.table);
        }
        if !self.take_word("clustering") {
            return self.skip_token();
        }
        self.expect_word("order", "ORDER BY")?;
        self.expect_word("by", "ORDER BY")?;
        self.expect_char('(', "columns in parentheses")?;
        loop {
            let name = self.read_name()?;
            let order = match self.take_word("desc") {
                true => Order::Descending,
                false => {
                    self.take_word("asc");
                    Order::Ascending
                }
            };
            let columns = &table.columns;
            let found = table.clustering.iter_mut().find(|(at, _)| columns[*at].name == name);
            found.ok_or(DefinitionFault::NoSuchColumn(name))?.1 = order;
            if !self.take_char(',') {
                break;
            }
        }
        self.expect_char(')', "a closing parenthesis")
    }

    fn read_ttl(&mut self) -> Parsed<u32> {
        self.skip_space();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let seconds = self.rest[..end].parse().ok().filter(|seconds| *seconds <= TTL_SECONDS_MAX);
        let Some(seconds) = seconds else {
            return Err(self.unexpected("a time in seconds, of at most 20 years"));
        };
        self.rest = &self.rest[end..];
        Ok(seconds)
    }

    /// `DROPPED COLUMN RECORD name type USING TIMESTAMP …`, after its first word.
    fn read_dropped_record(&mut self, table: &TableName) -> Parsed<()> {
        if !self.take_word("column") {
            return Ok(());
        }
        self.expect_word("record", "RECORD")?;
        let name = self.read_name()?;
        while !self.is_at_end_of_statement() && !self.is_word("using") {
            self.skip_token()?;
        }
        let timestamp = self.take_timestamp()?;
        self.note_dropped(table, [name], timestamp);
        Ok(())
    }

    /// `USING TIMESTAMP …`, if it is there.
    fn take_timestamp(&mut self) -> Parsed<Option<i64>> {
        if !self.take_word("using") {
            return Ok(None);
        }
        self.expect_word("timestamp", "TIMESTAMP")?;
        self.skip_space();
        let is_digit = |c: char| c == '-' || c.is_ascii_digit();
        let end = self.rest.find(|c| !is_digit(c)).unwrap_or(self.rest.len());
        let Ok(timestamp) = self.rest[..end].parse() else {
            return Err(self.unexpected("a time in microseconds"));
        };
        self.rest = &self.rest[end..];
        Ok(Some(timestamp))
    }

    fn note_dropped(
        &mut self,
        table: &TableName,
        names: impl IntoIterator<Item = Name>,
        timestamp: Option<i64>,
    ) {
        let Some(timestamp) = timestamp else { return };
        let dropped = |name| DroppedColumn { table: table.clone(), name, timestamp };
        self.made.dropped.extend(names.into_iter().map(dropped));
    }

    fn read_column(&mut self) -> Parsed<ColumnDef> {
        let name = self.read_name()?;
        let cql_type = self.read_type()?;
        let is_static = self.take_word("static");
        // MASKED WITH f(…), of Cassandra 5.
        if self.take_word("masked") {
            while !matches!(self.peek_char(), None | Some(',' | ')' | ';')) && !self.is_word("primary") {
                self.skip_balanced()?;
            }
        }
        Ok(ColumnDef { name, cql_type, is_static })
    }

    fn read_type_definition(&mut self) -> Parsed<TypeDef> {
        let TypeName { keyspace, name } = self.read_type_name()?;
        self.expect_char('(', "the fields in parentheses")?;
        let mut fields = Vec::new();
        loop {
            fields.push((self.read_name()?, self.read_type()?));
            if !self.take_char(',') {
                break;
            }
        }
        self.expect_char(')', "a comma or a closing parenthesis")?;
        Ok(TypeDef { keyspace, name, if_not_exists: false, fields })
    }

    /// The table that follows somewhere in the statement, after `FROM`.
    fn find_base(&mut self) -> Parsed<TableName> {
        while !self.is_at_end_of_statement() {
            if self.take_word("from") {
                return self.read_table_name();
            }
            self.skip_token()?;
        }
        Err(self.unexpected("FROM"))
    }

    /// The key that follows somewhere in the statement.
    fn find_key(&mut self) -> Parsed<KeyNames> {
        while !self.is_at_end_of_statement() {
            if self.take_primary_key()? {
                return self.read_key();
            }
            self.skip_token()?;
        }
        Err(DefinitionFault::NoKey)
    }

    fn read_key(&mut self) -> Parsed<KeyNames> {
        self.expect_char('(', "the key in parentheses")?;
        let mut partition = Vec::new();
        if self.take_char('(') {
            loop {
                partition.push(self.read_name()?);
                if !self.take_char(',') {
                    break;
                }
            }
            self.expect_char(')', "a closing parenthesis")?;
        } else {
            partition.push(self.read_name()?);
        }
        let mut clustering = Vec::new();
        while self.take_char(',') {
            clustering.push(self.read_name()?);
        }
        self.expect_char(')', "a closing parenthesis")?;
        Ok((partition, clustering))
    }

    fn read_keyspace(&mut self) -> Parsed<Name> {
        let name = self.read_part()?;
        Ok(Name::new_keyspace(&name)?)
    }

    fn read_table_name(&mut self) -> Parsed<TableName> {
        let first = self.read_part()?;
        match self.take_char('.') {
            true => {
                let table = Name::new_table(&self.read_part()?)?;
                Ok(TableName { keyspace: Some(Name::new_keyspace(&first)?), table })
            }
            false => Ok(TableName { keyspace: self.keyspace.clone(), table: Name::new_table(&first)? }),
        }
    }

    fn read_type_name(&mut self) -> Parsed<TypeName> {
        let first = self.read_part()?;
        match self.take_char('.') {
            true => {
                let name = Name::new(&self.read_part()?)?;
                Ok(TypeName { keyspace: Some(Name::new_keyspace(&first)?), name })
            }
            false => Ok(TypeName { keyspace: self.keyspace.clone(), name: Name::new(&first)? }),
        }
    }

    fn read_name(&mut self) -> Parsed<Name> {
        Ok(Name::new(&self.read_part()?)?)
    }

    fn read_part(&mut self) -> Parsed<String> {
        self.skip_space();
        if !self.rest.starts_with(|first: char| first == '"' || first.is_ascii_alphabetic()) {
            return Err(self.unexpected("a name"));
        }
        let (name, rest) = take_part(self.rest)?;
        self.rest = rest;
        Ok(name)
    }

    /// A type: a name, perhaps of a keyspace, perhaps with parameters; or a class in quotes.
    fn read_type(&mut self) -> Parsed<CqlType> {
        self.skip_space();
        let start = self.rest;
        if start.starts_with('\'') {
            self.skip_token()?;
            let text = start[1..start.len() - self.rest.len()].trim_end_matches('\'');
            let depth = u32::try_from(NESTING_MAX).unwrap_or(u32::MAX);
            let class = MarshalType::parse(text, depth).ok().and_then(|class| class.cql());
            return class.ok_or_else(|| DefinitionFault::CustomType(text.to_string()));
        }
        self.read_part()?;
        if self.take_char('.') {
            self.read_part()?;
        }
        if self.peek_char() == Some('<') {
            let mut depth = 0_usize;
            loop {
                match self.peek_char() {
                    Some('<') => depth += 1,
                    Some('>') => depth -= 1,
                    None | Some('(' | ')' | ';') => return Err(self.unexpected("a type")),
                    Some(_) => {}
                }
                self.skip_token()?;
                if depth == 0 {
                    break;
                }
            }
        }
        let text = &start[..start.len() - self.rest.len()];
        Ok(CqlType::parse(text.trim_end())?)
    }

    fn take_if_not_exists(&mut self) -> Parsed<()> {
        if self.take_word("if") {
            self.expect_word("not", "NOT EXISTS")?;
            self.expect_word("exists", "EXISTS")?;
        }
        Ok(())
    }

    fn take_if_exists(&mut self) -> Parsed<()> {
        if self.take_word("if") { self.expect_word("exists", "EXISTS") } else { Ok(()) }
    }

    fn take_primary_key(&mut self) -> Parsed<bool> {
        // A column may be called `primary`; its type is not called `key`.
        let before = self.rest;
        if self.take_word("primary") {
            if self.take_word("key") {
                return Ok(true);
            }
            self.rest = before;
        }
        Ok(false)
    }

    /// Takes a word in any letter case.
    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        if is_there {
            self.rest = &self.rest[word.len()..];
        }
        is_there
    }

    fn is_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let end = self.rest.find(|c: char| !is_word_char(c)).unwrap_or(self.rest.len());
        self.rest[..end].eq_ignore_ascii_case(word)
    }

    fn expect_word(&mut self, word: &str, expected: &'static str) -> Parsed<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn peek_char(&mut self) -> Option<char> {
        self.skip_space();
        self.rest.chars().next()
    }

    fn take_char(&mut self, wanted: char) -> bool {
        let is_there = self.peek_char() == Some(wanted);
        if is_there {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        is_there
    }

    fn expect_char(&mut self, wanted: char, expected: &'static str) -> Parsed<()> {
        if self.take_char(wanted) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn is_at_end_of_statement(&mut self) -> bool {
        matches!(self.peek_char(), None | Some(';'))
    }

    /// Fails if the statement goes on: what it says would be left out.
    fn expect_end_of_statement(&mut self) -> Parsed<()> {
        if self.is_at_end_of_statement() { Ok(()) } else { Err(self.unexpected("the end of the statement")) }
    }

    fn skip_statement(&mut self) -> Parsed<()> {
        while !self.is_at_end_of_statement() {
            self.skip_token()?;
        }
        Ok(())
    }

    /// Skips a token, and what is in parentheses after it, if it opens some.
    fn skip_balanced(&mut self) -> Parsed<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek_char() {
                Some('(') => depth += 1,
                Some(')') => depth = depth.saturating_sub(1),
                None => return Ok(()),
                Some(_) => {}
            }
            self.skip_token()?;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips a word, a string, a name in quotes, or any other character.
    fn skip_token(&mut self) -> Parsed<()> {
        self.skip_space();
        let Some(first) = self.rest.chars().next() else { return Ok(()) };
        if let Some(inner) = self.rest.strip_prefix('"') {
            (_, self.rest) = take_quoted(inner)?;
        } else if let Some(inner) = self.rest.strip_prefix("$$") {
            self.rest = self.after(inner, "$$", "$$")?;
        } else if let Some(inner) = self.rest.strip_prefix('\'') {
            // A quote in a string is two, which look like two strings.
            self.rest = self.after(inner, "'", "a closing quote")?;
        } else if is_word_char(first) {
            self.rest = self.rest.trim_start_matches(is_word_char);
        } else {
            self.rest = &self.rest[first.len_utf8()..];
        }
        Ok(())
    }

    /// What is after the end of something.
    fn after(&mut self, inner: &'a str, end: &str, expected: &'static str) -> Parsed<&'a str> {
        match inner.split_once(end) {
            Some((_, rest)) => Ok(rest),
            None => {
                self.rest = "";
                Err(self.unexpected(expected))
            }
        }
    }

    /// Skips white space and comments. One that is not closed goes on to the end.
    fn skip_space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("--") || self.rest.starts_with("//") {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                return;
            }
        }
    }

    fn unexpected(&mut self, expected: &'static str) -> DefinitionFault {
        self.skip_space();
        debug_assert!(self.text.ends_with(self.rest));
        DefinitionFault::Unexpected { expected, found: self.rest.chars().take(20).collect() }
    }
}

struct TypeName {
    keyspace: Option<Name>,
    name: Name,
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
