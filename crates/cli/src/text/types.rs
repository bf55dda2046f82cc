//! `--schema`: columns and their types as a person writes them, in CQL's words.

use marquetry_parquet::schema::{FieldDef, FieldType, TimeUnit};

use super::kind::Kind;

/// A column that is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) name: String,
    pub(super) told_type: ToldType,
}

/// Its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ToldType {
    Leaf(Kind),
    List(Box<ToldType>),
    Map(Kind, Box<ToldType>),
    Struct(Vec<Told>),
}

/// Types in each other, at most: as many as a schema may have, each list being two levels.
const NESTING_MAX: usize = 30;

/// Reads `id bigint, "a name" text, tags list<text>`.
///
/// # Errors
///
/// What stands where something else should, in words.
pub(super) fn parse(text: &str) -> Result<Vec<Told>, String> {
    let mut parser = Parser { rest: text };
    let columns = parser.fields(0)?;
    parser.skip_space();
    if parser.rest.is_empty() { Ok(columns) } else { Err(parser.unexpected("a comma")) }
}

impl Told {
    /// The field that it is in a schema.
    pub(super) fn field(&self) -> FieldDef {
        FieldDef::new(&*self.name, self.told_type.field_type())
    }
}

impl ToldType {
    fn field_type(&self) -> FieldType {
        let below = |name: &str, told: &ToldType| FieldDef::new(name, told.field_type());
        match self {
            ToldType::Leaf(kind) => kind.field_type(),
            ToldType::List(element) => FieldType::List(Box::new(below("element", element))),
            ToldType::Map(key, value) => {
                let key = FieldDef::new("key", key.field_type()).required();
                FieldType::Map(Box::new(key), Some(Box::new(below("value", value))))
            }
            ToldType::Struct(fields) => FieldType::Struct(fields.iter().map(Told::field).collect(), None),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn fields(&mut self, depth: usize) -> Result<Vec<Told>, String> {
        let mut fields: Vec<Told> = Vec::new();
        loop {
            let name = self.name()?;
            if fields.iter().any(|field| field.name == name) {
                return Err(format!("the name {name:?} stands twice"));
            }
            let told_type = self.told_type(depth)?;
            fields.push(Told { name, told_type });
            // A comma may stand behind the last one, as it does in files.
            if !self.take(',') || self.peek().is_none_or(|next| next == '>') {
                return Ok(fields);
            }
        }
    }

    /// A name: in double quotes, or up to a space.
    fn name(&mut self) -> Result<String, String> {
        self.skip_space();
        if let Some(mut inner) = self.rest.strip_prefix('"') {
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
                        self.rest = after;
                        return Ok(name);
                    }
                }
            }
        }
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '<' | '>' | '(' | ')' | '"');
        let (name, rest) = self.rest.split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Err(self.unexpected("a name"));
        }
        self.rest = rest;
        Ok(name.to_string())
    }

    fn told_type(&mut self, depth: usize) -> Result<ToldType, String> {
        if depth > NESTING_MAX {
            return Err(format!("types are nested more than {NESTING_MAX} deep"));
        }
        self.skip_space();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.to_ascii_lowercase();
        if word.is_empty() {
            return Err(self.unexpected("a type"));
        }
        self.rest = rest;
        Ok(match &*word {
            "list" | "set" => {
                self.expect('<')?;
                let element = self.told_type(depth + 1)?;
                self.expect('>')?;
                ToldType::List(Box::new(element))
            }
            "frozen" => {
                self.expect('<')?;
                let inner = self.told_type(depth + 1)?;
                self.expect('>')?;
                inner
            }
            "map" => {
                self.expect('<')?;
                let ToldType::Leaf(key) = self.told_type(depth + 1)? else {
                    return Err("the keys of a map are text, or what is written as text".to_string());
                };
                self.expect(',')?;
                let value = self.told_type(depth + 1)?;
                self.expect('>')?;
                ToldType::Map(key, Box::new(value))
            }
            "struct" => {
                self.expect('<')?;
                let fields = self.fields(depth + 1)?;
                self.expect('>')?;
                ToldType::Struct(fields)
            }
            _ => ToldType::Leaf(self.kind(&word)?),
        })
    }

    fn kind(&mut self, word: &str) -> Result<Kind, String> {
        Ok(match word {
            "boolean" => Kind::Boolean,
            "tinyint" => Kind::Integer(8),
            "smallint" => Kind::Integer(16),
            "int" => Kind::Integer(32),
            "bigint" => Kind::Integer(64),
            "float" => Kind::Float,
            "double" => Kind::Double,
            "text" | "varchar" | "ascii" => Kind::Text,
            "blob" => Kind::Blob,
            "date" => Kind::Date,
            "time" => Kind::Time,
            "uuid" | "timeuuid" => Kind::Uuid,
            "timestamp" | "localtimestamp" => {
                let unit = match self.numbers()?[..] {
                    // CQL's own has milliseconds.
                    [] | [3] => TimeUnit::Millis,
                    [6] => TimeUnit::Micros,
                    [9] => TimeUnit::Nanos,
                    _ => return Err(format!("{word} has 3, 6 or 9 digits of seconds: {word}(6)")),
                };
                Kind::Timestamp { unit, is_instant: word == "timestamp" }
            }
            "decimal" => match self.numbers()?[..] {
                [precision @ 1..=38, scale] if scale <= precision => Kind::Decimal { precision, scale },
                [precision @ 1..=38] => Kind::Decimal { precision, scale: 0 },
                _ => {
                    return Err(
                        "a decimal has its digits, up to 38, and those behind the point: decimal(12, 2)"
                            .into(),
                    );
                }
            },
            "varint" | "inet" | "duration" | "counter" | "tuple" | "vector" => {
                return Err(format!("{word} is no type of a Parquet file; text holds it"));
            }
            other => {
                return Err(format!(
                    "there is no type {other}; there are boolean, tinyint, smallint, int, bigint, float, double, decimal(p, s), text, \
                     blob, uuid, date, time, timestamp, timestamp(6), timestamp(9), localtimestamp(3, 6 or 9), list<…>, map<…, …> and \
                     struct<name type, …>"
                ));
            }
        })
    }

    /// Numbers in parentheses; none where there are none.
    fn numbers(&mut self) -> Result<Vec<u32>, String> {
        let mut numbers = Vec::new();
        if !self.take('(') {
            return Ok(numbers);
        }
        loop {
            self.skip_space();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            numbers.push(digits.parse().map_err(|_| self.unexpected("a number"))?);
            self.rest = rest;
            if !self.take(',') {
                self.expect(')')?;
                return Ok(numbers);
            }
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        is_there
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("'{wanted}'"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        match found.is_empty() {
            true => format!("{wanted} is missing at the end"),
            false => format!("{wanted} should stand before {found:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(told: &ToldType) -> String {
        match told {
            ToldType::Leaf(kind) => kind.name(),
            ToldType::List(element) => format!("list<{}>", words(element)),
            ToldType::Map(key, value) => format!("map<{}, {}>", key.name(), words(value)),
            ToldType::Struct(fields) => format!("struct<{}>", all(fields)),
        }
    }

    fn all(told: &[Told]) -> String {
        told.iter().map(|it| format!("{} {}", it.name, words(&it.told_type))).collect::<Vec<_>>().join(", ")
    }

    fn read(text: &str) -> String {
        parse(text).map_or_else(|error| error, |told| all(&told))
    }

    #[test]
    fn types_as_people_write_them() {
        assert_eq!(read("a bigint"), "a bigint");
        assert_eq!(read(" Id BIGINT ,\n \"a \"\"b\"\"\" VarChar,\n"), "Id bigint, a \"b\" text");
        assert_eq!(
            read("t timestamp, u timestamp(6), v localtimestamp ( 9 )"),
            "t timestamp(3), u timestamp(6), v localtimestamp(9)"
        );
        assert_eq!(read("d decimal(12,2), e decimal(5)"), "d decimal(12, 2), e decimal(5, 0)");
        assert_eq!(
            read("l list<frozen<set<int>>>, m map<text, double>, s struct<a int, b struct<c text>>"),
            "l list<list<int>>, m map<text, double>, s struct<a int, b struct<c text>>"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("", "a name is missing at the end"),
            ("a", "a type is missing at the end"),
            ("a int b text", "a comma should stand before \"b text\""),
            ("a int, a text", "the name \"a\" stands twice"),
            ("a list<int", "'>' is missing at the end"),
            ("a varint", "varint is no type of a Parquet file"),
            ("a integer", "there is no type integer; there are boolean"),
            ("a decimal", "a decimal has its digits"),
            ("a decimal(2, 3)", "a decimal has its digits"),
            ("a timestamp(4)", "3, 6 or 9 digits"),
            ("\"a int", "a quote is not closed"),
            ("m map<list<int>, int>", "the keys of a map"),
        ] {
            assert!(read(text).contains(said), "{text}: {}", read(text));
        }
        assert!(read(&format!("a {}int", "list<".repeat(100_000))).contains("nested"));
    }
}
