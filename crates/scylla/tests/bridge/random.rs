//! Random nested columns, as text and as cells, compared with a plain recursion over the values.

use std::collections::BTreeMap;

use marquetry_scylla::bridge::{InsertWriter, MappingOptions};

use crate::batch::{cell, mapping, numbered};
use crate::schema::{BYTE_ARRAY, Field, INT32, LIST, MAP, Note, UTF8, group, leaf, list, map};
use crate::shred::{Datum, batch, entries, items};

/// What a field means.
#[derive(Debug)]
enum Type {
    Int,
    Text,
    List(Box<Type>, Spelling),
    Set(Box<Type>),
    /// The values may be absent: then it is a set.
    Map(Box<Type>, Option<Box<Type>>),
    Group(Vec<(String, Type, bool)>),
}

#[derive(Debug, Clone, Copy)]
enum Spelling {
    ThreeLevels,
    TwoLevels,
    /// A repeated field, never null.
    Repeated,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// Less than all others, as in CQL's order of fields.
    Null,
    Int(i32),
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<Value, Value>),
    Group(Vec<Value>),
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }

    fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn cql_type(&mut self, depth: u64) -> Type {
        match self.below(if depth == 0 { 2 } else { 7 }) {
            0 => Type::Int,
            1 => Type::Text,
            2 | 3 => {
                let spelling =
                    [Spelling::ThreeLevels, Spelling::TwoLevels, Spelling::Repeated][self.below(3) as usize];
                Type::List(self.element(depth - 1), spelling)
            }
            4 => Type::Set(self.element(depth - 1)),
            5 => {
                let key = Box::new(self.cql_type(depth - 1));
                let value = if self.is(4) { None } else { Some(Box::new(self.cql_type(depth - 1))) };
                Type::Map(key, value)
            }
            _ => {
                let field = |nth| (format!("Field {nth}"), self.cql_type(depth - 1), self.is(3));
                Type::Group((0..3).map(field).collect())
            }
        }
    }

    /// Not a repeated field: if a list's group has only that, the group is the element.
    fn element(&mut self, depth: u64) -> Box<Type> {
        Box::new(match self.cql_type(depth) {
            Type::List(element, Spelling::Repeated) => Type::List(element, Spelling::ThreeLevels),
            other => other,
        })
    }

    fn value(&mut self, of: &Type) -> Value {
        match of {
            Type::Int => Value::Int(self.below(7) as i32 - 3),
            Type::Text => {
                Value::Text(["", "a", "it's", "é\n", "\0", "zz"][self.below(6) as usize].to_owned())
            }
            Type::List(element, _) => Value::List((0..self.below(4)).map(|_| self.value(element)).collect()),
            Type::Set(element) | Type::Map(element, None) => {
                // In any order, and perhaps twice.
                Value::List((0..self.below(5)).map(|_| self.value(element)).collect())
            }
            Type::Map(key, Some(value)) => {
                Value::Map((0..self.below(4)).map(|_| (self.value(key), self.value(value))).collect())
            }
            Type::Group(fields) => {
                let field = |(_, of, is_required): &(String, Type, bool)| {
                    let is_null = !is_required && !is_repeated(of) && self.is(3);
                    if is_null { Value::Null } else { self.value(of) }
                };
                Value::Group(fields.iter().map(field).collect())
            }
        }
    }
}

fn is_repeated(of: &Type) -> bool {
    matches!(of, Type::List(_, Spelling::Repeated))
}

/// The field of a type. `is_required` is ignored for a repeated one.
fn field(name: &str, of: &Type, is_required: bool) -> Field {
    let field = match of {
        Type::Int => leaf(name, INT32, Note::None),
        Type::Text => leaf(name, BYTE_ARRAY, UTF8),
        Type::List(element, Spelling::ThreeLevels) | Type::Set(element) => {
            list(name, self::field("element", element, false))
        }
        Type::List(element, Spelling::TwoLevels) => {
            group(name, LIST, [self::field("array", element, true).repeated()])
        }
        Type::List(element, Spelling::Repeated) => return self::field(name, element, true).repeated(),
        Type::Map(key, Some(value)) => {
            map(name, self::field("key", key, true), self::field("value", value, false))
        }
        Type::Map(key, None) => {
            group(name, MAP, [group("entries", Note::None, [self::field("key", key, true)]).repeated()])
        }
        Type::Group(fields) => group(
            name,
            Note::None,
            fields.iter().map(|(name, of, is_required)| field(name, of, *is_required)),
        ),
    };
    if is_required { field.required() } else { field }
}

/// The value as the field's schema has it.
fn datum(of: &Type, value: &Value) -> Datum {
    match (of, value) {
        (_, Value::Null) => Datum::Null,
        (Type::Int, Value::Int(number)) => Datum::Int(*number),
        (Type::Text, Value::Text(text)) => crate::shred::text(text),
        (Type::List(element, Spelling::ThreeLevels) | Type::Set(element), Value::List(values)) => {
            items(values.iter().map(|value| datum(element, value)))
        }
        (Type::List(element, Spelling::TwoLevels), Value::List(values)) => {
            Datum::Group(vec![Datum::Several(values.iter().map(|value| datum(element, value)).collect())])
        }
        (Type::List(element, Spelling::Repeated), Value::List(values)) => {
            Datum::Several(values.iter().map(|value| datum(element, value)).collect())
        }
        (Type::Map(key, Some(of)), Value::Map(map)) => {
            entries(map.iter().rev().map(|(k, v)| (datum(key, k), datum(of, v))))
        }
        (Type::Map(key, None), Value::List(values)) => {
            let keys = values.iter().map(|value| Datum::Group(vec![datum(key, value)]));
            Datum::Group(vec![Datum::Several(keys.collect())])
        }
        (Type::Group(fields), Value::Group(values)) => {
            Datum::Group(fields.iter().zip(values).map(|((_, of, _), value)| datum(of, value)).collect())
        }
        (of, value) => panic!("{value:?} of {of:?}"),
    }
}

/// A value as the servers keep it: sets are sorted, without duplicates.
fn normal(of: &Type, value: &Value) -> Value {
    match (of, value) {
        (Type::List(element, _), Value::List(values)) => {
            let wrap = |value: &Value| normal(element, value);
            Value::List(values.iter().map(wrap).collect())
        }
        (Type::Set(element) | Type::Map(element, None), Value::List(values)) => {
            let mut values: Vec<Value> = values.iter().map(|value| normal(element, value)).collect();
            values.sort();
            values.dedup();
            Value::List(values)
        }
        (Type::Map(key, Some(of)), Value::Map(map)) => {
            // Keys that became equal are the same: which one wins is another test's subject.
            Value::Map(map.iter().map(|(k, v)| (normal(key, k), normal(of, v))).collect())
        }
        (Type::Group(fields), Value::Group(values)) => {
            Value::Group(fields.iter().zip(values).map(|((_, of, _), value)| normal(of, value)).collect())
        }
        (_, value) => value.clone(),
    }
}

fn literal(of: &Type, value: &Value) -> String {
    let joined = |texts: Vec<String>| texts.join(", ");
    match (of, value) {
        (_, Value::Null) => "null".to_owned(),
        (_, Value::Int(number)) => number.to_string(),
        (_, Value::Text(text)) => format!("'{}'", text.replace('\'', "''")),
        (Type::List(inner, _), Value::List(values)) => {
            format!("[{}]", joined(values.iter().map(|value| literal(inner, value)).collect()))
        }
        (Type::Set(inner) | Type::Map(inner, None), Value::List(values)) => {
            format!("{{{}}}", joined(values.iter().map(|value| literal(inner, value)).collect()))
        }
        (Type::Map(key, Some(of)), Value::Map(map)) => {
            let entry = |(k, v): (&Value, &Value)| format!("{}: {}", literal(key, k), literal(of, v));
            format!("{{{}}}", joined(map.iter().map(entry).collect()))
        }
        (Type::Group(fields), Value::Group(values)) => {
            let field = |((name, of, _), value): (&(String, Type, bool), &Value)| {
                format!("\"{name}\": {}", literal(of, value))
            };
            format!("{{{}}}", joined(fields.iter().zip(values).map(field).collect()))
        }
        (of, value) => panic!("{value:?} of {of:?}"),
    }
}

fn bytes(of: &Type, value: &Value) -> Vec<u8> {
    let with_length = |bytes: Vec<u8>| [&(bytes.len() as i32).to_be_bytes()[..], &bytes].concat();
    let counted = |items: Vec<Vec<u8>>, each: usize| {
        [&((items.len() / each) as i32).to_be_bytes()[..], &items.concat()].concat()
    };
    match (of, value) {
        (_, Value::Int(number)) => number.to_be_bytes().to_vec(),
        (_, Value::Text(text)) => text.as_bytes().to_vec(),
        (Type::List(inner, _) | Type::Set(inner) | Type::Map(inner, None), Value::List(values)) => {
            let item = |value: &Value| with_length(bytes(inner, value));
            counted(values.iter().map(item).collect(), 1)
        }
        (Type::Map(key, Some(of)), Value::Map(map)) => {
            let both = map.iter().flat_map(|(k, v)| [bytes(key, k), bytes(of, v)]);
            counted(both.map(with_length).collect(), 2)
        }
        (Type::Group(fields), Value::Group(values)) => {
            let field = |((_, of, _), value): (&(String, Type, bool), &Value)| match value {
                Value::Null => (-1_i32).to_be_bytes().to_vec(),
                value => with_length(bytes(of, value)),
            };
            fields.iter().zip(values).flat_map(field).collect()
        }
        (of, value) => panic!("{value:?} of {of:?}"),
    }
}

/// The paths of the sets below a field.
fn sets(of: &Type, path: &str, found: &mut Vec<String>) {
    match of {
        Type::Int | Type::Text => {}
        Type::List(element, _) | Type::Set(element) => {
            if matches!(of, Type::Set(_)) {
                found.push(path.to_owned());
            }
            sets(element, &format!("{path}.element"), found);
        }
        Type::Map(key, value) => {
            sets(key, &format!("{path}.key"), found);
            if let Some(value) = value {
                sets(value, &format!("{path}.value"), found);
            }
        }
        Type::Group(fields) => {
            fields.iter().for_each(|(name, of, _)| sets(of, &format!("{path}.{name}"), found));
        }
    }
}

#[test]
fn random_nested_columns() {
    const SCHEMAS: u64 = 600;
    const ROWS: usize = 12;
    let (mut kinds, mut longest) = ([0_usize; 4], 0);
    for seed in 1..=SCHEMAS {
        let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let types: Vec<Type> = (0..2).map(|_| random.cql_type(4)).collect();
        let fields: Vec<Field> =
            types.iter().enumerate().map(|(at, of)| field(&format!("c{at}"), of, false)).collect();
        let mut options = MappingOptions {
            frozen: random.is(2),
            duplicate_keys: marquetry_scylla::bridge::DuplicateKeys::Last,
            ..numbered()
        };
        for (at, of) in types.iter().enumerate() {
            sets(of, &format!("c{at}"), &mut options.sets);
        }
        let mapping = mapping(&fields, &options).unwrap();
        let value = |of: &Type, random: &mut Random| {
            if !is_repeated(of) && random.is(5) { Value::Null } else { random.value(of) }
        };
        let rows: Vec<Vec<Value>> =
            (0..ROWS).map(|_| types.iter().map(|of| value(of, random)).collect()).collect();
        let data: Vec<Vec<Datum>> = rows
            .iter()
            .map(|row| types.iter().zip(row).map(|(of, value)| datum(of, value)).collect())
            .collect();
        let batch = batch(&fields, &data);
        let mapped = mapping.assemble(batch.clone()).unwrap();
        let mut writer = InsertWriter::new(&mapping);
        for (at, row) in rows.iter().enumerate() {
            let (mut names, mut literals) = ("n".to_owned(), at.to_string());
            for (column, (of, value)) in types.iter().zip(row).enumerate() {
                let expected = match value {
                    Value::Null => None,
                    value if has_equal_keys(of, value) => {
                        // Which one wins depends on the file's order, which this test does not know.
                        kinds[3] += 1;
                        continue;
                    }
                    value => {
                        let value = normal(of, value);
                        names += &format!(", c{column}");
                        literals += &format!(", {}", literal(of, &value));
                        Some(bytes(of, &value))
                    }
                };
                kinds[usize::from(expected.is_some())] += 1;
                longest = longest.max(expected.as_ref().map_or(0, Vec::len));
                assert_eq!(
                    cell(&mapping, column + 1, &batch, at).unwrap(),
                    expected,
                    "{seed}: {of:?} {value:?}"
                );
            }
            if types.iter().zip(row).any(|(of, value)| has_equal_keys(of, value)) {
                continue;
            }
            let mut out = Vec::new();
            writer.write(&mapped, at..at + 1, 0, &mut out, usize::MAX).unwrap();
            let statement = format!("INSERT INTO t ({names}) VALUES ({literals});\n");
            assert_eq!(String::from_utf8(out).unwrap(), statement, "{seed}: {types:?}");
            kinds[2] += 1;
        }
    }
    assert!(kinds[0] > 500 && kinds[1] > 5000 && kinds[2] > 3000 && kinds[3] < 600, "{kinds:?}");
    assert!(longest > 300, "{longest}");
}

/// Whether a map has keys that differ as values, but are equal as sets.
fn has_equal_keys(of: &Type, value: &Value) -> bool {
    match (of, value) {
        (Type::List(of, _) | Type::Set(of) | Type::Map(of, None), Value::List(values)) => {
            values.iter().any(|value| has_equal_keys(of, value))
        }
        (Type::Map(key, Some(of)), Value::Map(map)) => {
            let mut keys: Vec<Value> = map.keys().map(|k| normal(key, k)).collect();
            keys.sort();
            let distinct = keys.windows(2).all(|pair| pair[0] != pair[1]);
            !distinct || map.iter().any(|(k, v)| has_equal_keys(key, k) || has_equal_keys(of, v))
        }
        (Type::Group(fields), Value::Group(values)) => {
            fields.iter().zip(values).any(|((_, of, _), value)| has_equal_keys(of, value))
        }
        _ => false,
    }
}
