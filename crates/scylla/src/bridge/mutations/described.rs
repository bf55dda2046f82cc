//! The columns of a table as metadata say them (`marquetry.table.columns`), read.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Error, Limit, Limits, Result};

use crate::sstable::marshal::MarshalType;
use crate::sstable::statistics::HeaderColumn;
use crate::sstable::{KeyColumn, TableColumns};

impl TableColumns {
    /// The columns that the value of `marquetry.table.columns` says: what [`Mapper::key_values`](super::Mapper::key_values) has of them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a text that no mapper makes;
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for classes that are not known;
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for too long a text, and types nested too deeply.
    pub fn parse(text: &str, limits: &Limits) -> Result<TableColumns> {
        limits.check(Limit::StructureBytes, marquetry_base::cast::u64_of(text.len()))?;
        let mut reader = Reader { rest: text };
        let mut lists = [const { Vec::new() }; 4];
        reader.expect('[')?;
        while !reader.take(']') {
            if lists.iter().any(|list: &Vec<_>| !list.is_empty()) {
                reader.expect(',')?;
            }
            let [name, kind, class] = reader.column()?;
            let list = KINDS.iter().position(|known| *known == kind);
            let list = list.and_then(|at| lists.get_mut(at)).ok_or_else(wrong)?;
            list.push((name, MarshalType::parse(&class, limits.nesting)?));
        }
        if !reader.rest.trim_end().is_empty() {
            return Err(wrong());
        }
        let [partition_key, clustering, statics, regulars] = lists;
        let keys = |all: Vec<_>| all.into_iter().map(|(name, kind)| KeyColumn { name, kind }).collect();
        let cells = |all: Vec<(String, _)>| {
            all.into_iter().map(|(name, kind)| HeaderColumn { name: name.into_bytes(), kind }).collect()
        };
        if partition_key.is_empty() {
            return Err(wrong());
        }
        Ok(TableColumns::of(keys(partition_key), keys(clustering), cells(statics), cells(regulars)))
    }
}

/// The kinds of columns, in the order of their lists.
const KINDS: [&str; 4] = ["partition_key", "clustering", "static", "regular"];

/// A list of objects of strings.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Name, kind and class of a column; other members are passed over.
    fn column(&mut self) -> Result<[String; 3]> {
        let mut found = [const { None }; 3];
        self.expect('{')?;
        let mut is_first = true;
        while !self.take('}') {
            if !core::mem::take(&mut is_first) {
                self.expect(',')?;
            }
            let key = self.string()?;
            self.expect(':')?;
            let value = self.string()?;
            if let Some(at) = ["name", "kind", "class"].iter().position(|known| *known == key) {
                found[at] = Some(value);
            }
        }
        let [Some(name), Some(kind), Some(class)] = found else { return Err(wrong()) };
        Ok([name, kind, class])
    }

    /// A string, which the rest begins with.
    fn string(&mut self) -> Result<String> {
        self.expect('"')?;
        let mut out = String::new();
        loop {
            let end = self.rest.find(['"', '\\']).ok_or_else(wrong)?;
            out.push_str(self.rest.get(..end).unwrap_or_default());
            self.rest = self.rest.get(end..).unwrap_or_default();
            if self.take('"') {
                return Ok(out);
            }
            let mut letters = self.rest.chars();
            letters.next();
            let letter = match letters.next().ok_or_else(wrong)? {
                letter @ ('"' | '\\' | '/') => letter,
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    self.rest = letters.as_str();
                    out.push(self.escaped()?);
                    continue;
                }
                _ => return Err(wrong()),
            };
            out.push(letter);
            self.rest = letters.as_str();
        }
    }

    /// A letter after `\u`: one or two units of UTF-16.
    fn escaped(&mut self) -> Result<char> {
        let mut units = alloc::vec![self.unit()?];
        if matches!(units.first(), Some(0xd800..=0xdbff)) {
            self.rest = self.rest.strip_prefix("\\u").ok_or_else(wrong)?;
            units.push(self.unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(letter)) => Ok(letter),
            _ => Err(wrong()),
        }
    }

    fn unit(&mut self) -> Result<u16> {
        let (digits, rest) = self.rest.split_at_checked(4).ok_or_else(wrong)?;
        self.rest = rest;
        u16::from_str_radix(digits, 16).map_err(|_| wrong())
    }

    /// Takes a letter, after white space, if it is the next.
    fn take(&mut self, letter: char) -> bool {
        let trimmed = if letter == '"' { self.rest } else { self.rest.trim_start() };
        let rest = trimmed.strip_prefix(letter);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, letter: char) -> Result<()> {
        self.rest = self.rest.trim_start();
        if self.take(letter) { Ok(()) } else { Err(wrong()) }
    }
}

fn wrong() -> Error {
    Error::corrupt(format!("what is said of the table's columns ({KEY}) is no list of columns"))
}

const KEY: &str = "marquetry.table.columns";

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use marquetry_base::ErrorKind;

    use crate::bridge::mutations::{Mapper, MapperOptions, MutationMapping};

    fn kind(text: &str) -> MarshalType {
        MarshalType::parse(text, 64).unwrap()
    }

    #[test]
    fn columns_are_those_that_a_mapper_says() {
        let key = |name: &str, text: &str| KeyColumn { name: name.into(), kind: kind(text) };
        let column = |name: &str, text: &str| HeaderColumn { name: name.into(), kind: kind(text) };
        let table = TableColumns::of(
            alloc::vec![key("p", "Int32Type"), key("q \"x\\\n\u{1}é😀\u{202e}", "UTF8Type")],
            alloc::vec![key("c", "ReversedType(LongType)")],
            alloc::vec![column("s", "SetType(Int32Type)")],
            alloc::vec![column("a", "TupleType(Int32Type)"), column("u", "UserType(k,75,61:Int32Type)")],
        );
        let mapper =
            Mapper::new(MutationMapping::Full, Arc::new(table.clone()), &MapperOptions::default()).unwrap();
        let all = mapper.key_values().unwrap();
        let said = all.iter().find(|it| it.key == KEY).and_then(|it| it.value.clone()).unwrap();
        let text = core::str::from_utf8(&said).unwrap();
        assert_eq!(TableColumns::parse(text, &Limits::DEFAULT).unwrap(), table);
        for end in 0..text.len() {
            let Some(part) = text.get(..end) else { continue };
            let error = TableColumns::parse(part, &Limits::DEFAULT).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{part}");
        }
        let spaced = text.replace("\":\"", "\" : \"").replace("},{", "} , {");
        assert_eq!(TableColumns::parse(&spaced, &Limits::DEFAULT).unwrap(), table);
    }

    #[test]
    fn what_is_no_list_of_columns() {
        let of = |text: &str| TableColumns::parse(text, &Limits::DEFAULT).unwrap_err().kind();
        let column = r#"{"name":"p","kind":"partition_key","class":"Int32Type"}"#;
        for text in ["[]", "{}", "[{}]", "[1]", &format!("[{column}]x"), &format!("[{column}{column}]")] {
            assert_eq!(of(text), ErrorKind::Corrupt, "{text}");
        }
        assert_eq!(of(&format!("[{}]", column.replace("partition_key", "other"))), ErrorKind::Corrupt);
        assert_eq!(of(&format!("[{}]", column.replace('p', "\\ud800"))), ErrorKind::Corrupt);
        assert_eq!(of(&format!("[{}]", column.replace("Int32Type", "com.x.Mine"))), ErrorKind::Unsupported);
    }
}
