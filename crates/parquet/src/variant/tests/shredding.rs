//! Shredding as the document describes it, and the results.

use super::*;

/// A pair of columns in one row.
#[derive(Debug, Clone)]
struct Pair {
    value: Option<Vec<u8>>,
    typed: Typed,
}

#[derive(Debug, Clone)]
enum Typed {
    Null,
    NullObject,
    Primitive(Primitive<'static>),
    Array(Vec<Pair>),
    Object(Vec<(&'static str, Pair)>),
}

impl<'a> ShreddedValue<'a> for &'a Pair {
    fn value(&self) -> Option<&'a [u8]> {
        self.value.as_deref()
    }

    fn typed_value(&self) -> Result<TypedValue<'a>> {
        Ok(match &self.typed {
            Typed::Null => TypedValue::Null,
            Typed::NullObject => TypedValue::NullObject,
            Typed::Primitive(value) => TypedValue::Primitive(*value),
            Typed::Array(elements) => TypedValue::Array(elements.len()),
            Typed::Object(fields) => TypedValue::Object(fields.len()),
        })
    }

    fn element(&self, index: usize) -> Result<&'a Pair> {
        match &self.typed {
            Typed::Array(elements) => Ok(&elements[index]),
            _ => panic!("no array"),
        }
    }

    fn field(&self, index: usize) -> Result<(&'a str, &'a Pair)> {
        match &self.typed {
            Typed::Object(fields) => Ok((fields[index].0, &fields[index].1)),
            _ => panic!("no object"),
        }
    }
}

/// The type of `typed_value`, if there is such a column.
#[derive(Debug)]
enum Schema {
    None,
    Like(Primitive<'static>),
    Array(alloc::boxed::Box<Schema>),
    Object(Vec<(&'static str, Schema)>),
}

fn schema(random: &mut Random, depth: usize) -> Schema {
    match random.below(if depth == 0 { 2 } else { 4 }) {
        0 => Schema::None,
        1 => Schema::Like(leaf(random)),
        2 => Schema::Array(schema(random, depth - 1).into()),
        _ => {
            let first = random.below(8);
            let fields = (first..8).step_by(1 + random.below(3));
            Schema::Object(fields.map(|at| (NAMES[at], schema(random, depth - 1))).collect())
        }
    }
}

struct NamesOf<'a>(Metadata<'a>);

impl Names for NamesOf<'_> {
    fn name_bytes(&self, id: u32) -> &[u8] {
        self.0.name_bytes(id as usize).unwrap()
    }
}

fn encode_with(tree: &Tree, metadata: Metadata<'_>, encoder: &mut Encoder) {
    match tree {
        Tree::Leaf(value) => encoder.primitive(*value).unwrap(),
        Tree::Array(elements) => {
            encoder.start(false).unwrap();
            elements.iter().for_each(|element| encode_with(element, metadata, encoder));
            assert_eq!(encoder.end(&NamesOf(metadata)).unwrap(), None);
        }
        Tree::Object(fields) => {
            encoder.start(true).unwrap();
            for (name, value) in fields {
                encoder.field(metadata.find(name).unwrap() as u32).unwrap();
                encode_with(value, metadata, encoder);
            }
            assert_eq!(encoder.end(&NamesOf(metadata)).unwrap(), None);
        }
    }
}

fn encoded(tree: &Tree, metadata: Metadata<'_>) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(&LIMITS);
    encode_with(tree, metadata, &mut encoder);
    Some(encoder.into_value())
}

fn shred(tree: Option<&Tree>, schema: &Schema, metadata: Metadata<'_>) -> Pair {
    let null = match schema {
        Schema::Object(_) => Typed::NullObject,
        _ => Typed::Null,
    };
    let Some(tree) = tree else { return Pair { value: None, typed: null } };
    let typed = match (tree, schema) {
        (Tree::Leaf(value), Schema::Like(like))
            if core::mem::discriminant(value) == core::mem::discriminant(like)
                && *value != Primitive::Null =>
        {
            Typed::Primitive(*value)
        }
        (Tree::Array(elements), Schema::Array(schema)) => {
            Typed::Array(elements.iter().map(|element| shred(Some(element), schema, metadata)).collect())
        }
        (Tree::Object(fields), Schema::Object(schemas)) => {
            let shredded =
                schemas.iter().map(|(name, schema)| (*name, shred(fields.get(*name), schema, metadata)));
            let mut others = fields.clone();
            others.retain(|name, _| schemas.iter().all(|(shredded, _)| shredded != name));
            let value = if others.is_empty() { None } else { encoded(&Tree::Object(others), metadata) };
            return Pair { value, typed: Typed::Object(shredded.collect()) };
        }
        _ => return Pair { value: encoded(tree, metadata), typed: null },
    };
    Pair { value: None, typed }
}

#[test]
fn random_values_shredded_in_random_ways() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut whole = 0;
    for _ in 0..2000 {
        let tree = tree(&mut random, 3);
        let schema = schema(&mut random, 3);
        let (metadata, _) = encode(&tree);
        let metadata = Metadata::new(&metadata).unwrap();
        let pair = shred(Some(&tree), &schema, metadata);
        let mut reassembler = Reassembler::new(&LIMITS);
        let value = reassembler.reassemble(metadata, &pair).unwrap().to_vec();
        assert_eq!(read(variant(metadata.bytes(), &value)), tree, "{schema:?}");
        whole += usize::from(pair.value.is_none());
        // One value at a time, after another row that was not finished.
        reassembler.start(metadata, &pair).unwrap();
        reassembler.advance(1).unwrap();
        reassembler.start(metadata, &pair).unwrap();
        while !reassembler.advance(1).unwrap() {}
        assert_eq!(reassembler.value(), value);
    }
    assert!(whole > 100, "{whole} shredded whole");
}

const VALUE: Option<&[u8]> = Some(b"\x05x");

fn pair(value: Option<&[u8]>, typed: Typed) -> Pair {
    Pair { value: value.map(<[u8]>::to_vec), typed }
}

/// Metadata of the names `a` and `b`.
const A_B: &[u8] = &[0x11, 2, 0, 1, 2, b'a', b'b'];

fn shown(pair: &Pair) -> Result<String> {
    let metadata = Metadata::new(A_B).unwrap();
    let mut reassembler = Reassembler::new(&LIMITS);
    let value = reassembler.reassemble(metadata, pair).map(<[u8]>::to_vec);
    if let Err(error) = &value {
        assert_eq!(reassembler.advance(1).as_ref(), Err(error), "it stays failed");
        assert!(reassembler.value().is_empty());
    }
    json(A_B, &value?)
}

/// The tables under "Value Shredding" and "Objects".
#[test]
fn every_pair_of_the_tables() {
    let missing = || pair(None, Typed::Null);
    let one = || pair(None, Typed::Primitive(Primitive::Int64(1)));
    let object = |a: Pair, b: Pair| Typed::Object(vec![("b", b), ("a", a)]);
    let only_a: &[u8] = &[2, 1, 0, 0, 1, 4];
    let only_b: &[u8] = &[2, 1, 1, 0, 1, 4];
    let empty: &[u8] = &[2, 0, 0];
    for (pair, wanted) in [
        (missing(), "null"),
        (pair(None, Typed::NullObject), "null"),
        (pair(VALUE, Typed::Null), r#""x""#),
        (pair(VALUE, Typed::NullObject), r#""x""#),
        (pair(Some(&[0]), Typed::Null), "null"),
        (one(), "1"),
        (pair(Some(only_a), Typed::Null), r#"{"a":true}"#),
        // Arrays: elements cannot be missing, so a missing one is null.
        (pair(None, Typed::Array(vec![one(), missing(), pair(Some(&[0]), Typed::Null)])), "[1,null,null]"),
        (pair(None, Typed::Array(vec![])), "[]"),
        // Objects.
        (pair(None, object(one(), one())), r#"{"a":1,"b":1}"#),
        (pair(None, object(missing(), one())), r#"{"b":1}"#),
        (pair(None, object(pair(Some(&[0]), Typed::Null), missing())), r#"{"a":null}"#),
        (pair(None, object(missing(), missing())), "{}"),
        (pair(Some(empty), object(missing(), missing())), "{}"),
        (pair(Some(only_b), Typed::Object(vec![("a", one())])), r#"{"a":1,"b":true}"#),
        (pair(Some(only_b), Typed::Object(vec![("a", pair(None, Typed::NullObject))])), r#"{"b":true}"#),
        (pair(None, Typed::Object(vec![])), "{}"),
    ] {
        assert_eq!(shown(&pair).unwrap(), wanted, "{pair:?}");
    }
    let both = "a shredded variant has both a value and a typed_value";
    let no_object = "a shredded variant has fields, but its value is no object";
    let unshredded =
        "a shredded variant's value is an object, but its typed_value, which should hold it, is null";
    for (wrong, message) in [
        (pair(VALUE, Typed::Primitive(Primitive::Int64(1))), both),
        (pair(Some(&[0]), Typed::Primitive(Primitive::Int64(1))), both),
        (pair(VALUE, Typed::Array(vec![])), both),
        (pair(Some(&[3, 0, 0]), Typed::Array(vec![])), both),
        (pair(VALUE, object(one(), one())), no_object),
        (pair(Some(&[0]), object(missing(), missing())), no_object),
        (pair(Some(only_a), Typed::NullObject), unshredded),
        (pair(Some(empty), Typed::NullObject), unshredded),
        (
            pair(Some(only_a), object(one(), one())),
            r#"the field "a" of a shredded variant is in its value too"#,
        ),
        (
            pair(Some(only_a), object(missing(), one())),
            r#"the field "a" of a shredded variant is in its value too"#,
        ),
        (
            pair(None, Typed::Object(vec![("c", one())])),
            r#"the field "c" of a shredded variant is not in its metadata"#,
        ),
        (
            pair(None, Typed::Object(vec![("a", one()), ("a", one())])),
            r#"two fields of the name "a" in an object of a variant"#,
        ),
        (
            pair(Some(&[2, 1, 1, 0, 9, 4]), Typed::Object(vec![("a", one())])),
            "a variant's value reaches beyond its end",
        ),
        (pair(Some(&[]), Typed::Null), "a variant's value reaches beyond its end"),
    ] {
        // As a row, as an element, as a field of an object.
        for nested in [
            wrong.clone(),
            pair(None, Typed::Array(vec![one(), wrong.clone()])),
            pair(None, Typed::Object(vec![("b", wrong.clone())])),
        ] {
            let error = shown(&nested).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, message), "{nested:?}");
        }
    }
}

#[test]
fn names_are_counted_as_often_as_they_occur() {
    let one = || pair(None, Typed::Primitive(Primitive::Boolean(true)));
    let object = || pair(None, Typed::Object(vec![("a", one())]));
    let rows = pair(None, Typed::Array((0..11).map(|_| object()).collect()));
    let metadata = Metadata::new(A_B).unwrap();
    let limits = Limits { value_bytes: 10, ..LIMITS };
    let error = Reassembler::new(&limits).reassemble(metadata, &rows).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    let mut deep = one();
    for _ in 0..65 {
        deep = pair(None, Typed::Array(vec![deep]));
    }
    let error = Reassembler::new(&LIMITS).reassemble(metadata, &deep).unwrap_err();
    assert_eq!(error.message(), "65 is more than the limit nesting of 64");
}

/// DuckDB 1.5 and 2.0 write `{"b":6,"":5}` so: its structs have no empty names, its metadata has.
#[test]
fn a_field_with_an_empty_name_by_duckdb() {
    let field = |value| pair(None, Typed::Primitive(Primitive::Int64(value)));
    let row = |fields: &[&'static str]| {
        pair(None, Typed::Object(fields.iter().zip(5..).map(|(name, value)| (*name, field(value))).collect()))
    };
    let shown = |metadata: &[u8], fields: &[&'static str]| {
        let (metadata, row) = (Metadata::new(metadata)?, row(fields));
        let mut reassembler = Reassembler::new(&LIMITS);
        let value = reassembler.reassemble(metadata, &row)?;
        let mut out = Vec::new();
        Variant::new(metadata, value, &LIMITS)?.to_json(&LIMITS, &mut out)?;
        Ok::<_, marquetry_base::Error>(String::from_utf8(out).unwrap())
    };
    let (with, without): (&[u8], &[u8]) = (&[1, 2, 0, 0, 1, b'b'], &[1, 1, 0, 1, b'b']);
    assert_eq!(shown(with, &["b", "element2"]).unwrap(), r#"{"":6,"b":5}"#);
    assert_eq!(shown(with, &["element1", "b"]).unwrap(), r#"{"":5,"b":6}"#);
    // A name that is in the metadata is meant, whatever it looks like.
    let real = &[1, 2, 0, 0, 8, b'e', b'l', b'e', b'm', b'e', b'n', b't', b'2'];
    assert_eq!(shown(real, &["element1", "element2"]).unwrap(), r#"{"":5,"element2":6}"#);
    for (metadata, fields) in [
        (without, ["b", "element2"]),
        (with, ["b", "element1"]),
        (with, ["b", "element02"]),
        (with, ["b", "element"]),
        (with, ["b", "2"]),
    ] {
        let error = shown(metadata, &fields).unwrap_err();
        assert!(error.message().ends_with("is not in its metadata"), "{error}");
    }
}
