use super::super::shape::tests::{schema, words};
use super::super::{LogicalType, NodeKind, PhysicalType, Plan, Schema};
use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;

/// What a plan makes, with a budget that is always spent.
pub(in crate::schema) fn in_steps<P: Plan>(mut plan: P) -> P::Made {
    loop {
        if let Some(made) = plan.step(&mut Budget::new(0)).unwrap() {
            return made;
        }
    }
}

type Line = (usize, char, &'static str, &'static str);

/// A schema whose leaves have these types, in order; INT32 where none is given.
fn typed(lines: &[Line], types: &[(PhysicalType, Option<LogicalType>)]) -> Schema {
    let mut schema = schema(lines);
    for (leaf, (physical, logical)) in types.iter().enumerate() {
        schema.leaves[leaf].physical_type = *physical;
        let node = schema.leaves[leaf].node;
        schema.nodes[node].logical_type = logical.clone();
    }
    schema
}

fn unify(schemas: &[Schema]) -> Unified {
    let mut union = Union::new();
    for (number, schema) in schemas.iter().enumerate() {
        assert_eq!(union.add(Arc::new(schema.clone())), number);
    }
    in_steps(union.plan())
}

/// All columns in words, and the differences with their paths.
fn told(schemas: &[Schema]) -> (String, Vec<String>) {
    let Unified { schema, differences } = unify(schemas);
    let columns = schema
        .children(0)
        .map(|node| format!("{}: {}", schema.nodes()[node].name, words(schema.shape(node))));
    let differences = differences.iter().map(|difference| {
        let path = schema.path(difference.node);
        match &difference.kind {
            DifferenceKind::Missing { with, without } => format!("{path} in {with} not {without}"),
            DifferenceKind::Widened { one, other } => format!("{path} {one:?} {other:?}"),
            DifferenceKind::Clash { one, other } => format!("{path} CLASH {one:?} {other:?}"),
            DifferenceKind::Twice { source } => format!("{path} twice in {source}"),
            DifferenceKind::Broken { source, error } => {
                format!("{path} broken in {source}: {}", error.message())
            }
        }
    });
    (columns.collect::<Vec<_>>().join("; "), differences.collect())
}

#[test]
fn fields_are_the_same_by_name() {
    let one = schema(&[(1, '1', "a", ""), (1, '1', "s", ""), (2, '1', "x", ""), (2, '?', "y", "")]);
    let other = schema(&[(1, '?', "b", ""), (1, '1', "s", ""), (2, '?', "z", ""), (2, '1', "x", "")]);
    let third = schema(&[(1, '1', "a", ""), (1, '1', "s", ""), (2, '1', "x", "")]);
    let (columns, differences) = told(&[one.clone(), other, third]);
    assert_eq!(columns, "a: int?@1; s: {x: int@0, y: int?@1, z: int?@1}@0; b: int?@1");
    assert_eq!(differences, ["a in 0 not 1", "s.y in 0 not 2", "s.z in 1 not 0", "b in 1 not 0"]);
    let (columns, differences) = told(&[one.clone(), one]);
    assert_eq!((columns.as_str(), differences), ("a: int@0; s: {x: int@0, y: int?@1}@0", vec![]));
}

#[test]
fn a_column_that_only_the_last_lacks() {
    let both = schema(&[(1, '1', "a", ""), (1, '1', "b", "")]);
    let short = schema(&[(1, '1', "b", "")]);
    let (columns, differences) = told(&[both, short]);
    assert_eq!(columns, "a: int?@1; b: int@0");
    assert_eq!(differences, ["a in 0 not 1"]);
}

#[test]
fn spellings_make_no_difference() {
    let spellings: [&[Line]; 5] = [
        &[(1, '*', "l", "")],
        &[(1, '1', "l", "LIST"), (2, '*', "element", "")],
        &[(1, '1', "l", "LIST"), (2, '*', "list", ""), (3, '1', "element", "")],
        &[(1, '1', "l", "LIST"), (2, '*', "bag", ""), (3, '1', "array_element", "")],
        &[(1, '1', "l", "LIST"), (2, '*', "array", "")],
    ];
    for spelling in spellings {
        for other in spellings {
            let (columns, differences) = told(&[schema(spelling), schema(other)]);
            assert_eq!((columns.as_str(), differences), ("l: [int@1]@0", vec![]), "{spelling:?} {other:?}");
        }
    }
    // An element that is nullable in one source is nullable in the union.
    let optional = schema(&[(1, '?', "l", "LIST"), (2, '*', "list", ""), (3, '?', "element", "")]);
    assert_eq!(told(&[schema(spellings[0]), optional]).0, "l: [int?@3]?@1");
    let maps: [&[Line]; 2] = [
        &[(1, '?', "m", "MKV"), (2, '*', "map", ""), (3, '1', "k", ""), (3, '?', "v", "")],
        &[(1, '1', "m", "MAP"), (2, '*', "key_value", ""), (3, '1', "key", ""), (3, '1', "value", "")],
    ];
    assert_eq!(told(&maps.map(schema)), ("m: <int@2 -> int?@3>?@1".to_string(), vec![]));
}

#[test]
fn what_does_not_go_together() {
    use PhysicalType::*;
    let leaf = |types| typed(&[(1, '1', "a", "")], &[types]);
    let text = Some(LogicalType::String);
    let (columns, differences) =
        told(&[leaf((Int32, None)), leaf((Int64, None)), leaf((ByteArray, text.clone()))]);
    assert_eq!(columns, "a: int@0");
    assert_eq!(
        differences,
        [r#"a (0, "INT32") (1, "INT64")"#, r#"a CLASH (1, "INT64") (2, "BYTE_ARRAY STRING")"#]
    );
    let list = schema(&[(1, '1', "a", "LIST"), (2, '*', "list", ""), (3, '1', "element", "")]);
    let group = schema(&[(1, '1', "a", ""), (2, '1', "x", "")]);
    assert_eq!(told(&[list.clone(), group]).1, [r#"a CLASH (0, "a list") (1, "a group")"#]);
    let keys = schema(&[(1, '1', "a", "MAP"), (2, '*', "kv", ""), (3, '1', "key", "")]);
    let map = schema(&[(1, '1', "a", "MAP"), (2, '*', "kv", ""), (3, '1', "key", ""), (3, '1', "v", "")]);
    assert_eq!(told(&[keys, map]).1, [r#"a CLASH (0, "a map without values") (1, "a map")"#]);

    let twice = schema(&[
        (1, '1', "a", ""),
        (1, '1', "s", ""),
        (2, '1', "x", ""),
        (2, '1', "x", ""),
        (1, '1', "a", ""),
    ]);
    let (columns, differences) = told(&[twice]);
    assert_eq!(columns, "a: int@0; s: {x: int@0}@0");
    assert_eq!(differences, ["a twice in 0", "s.x twice in 0"]);

    let broken = schema(&[(1, '1', "a", "LIST"), (2, '1', "list", ""), (3, '1', "element", "")]);
    for schemas in [[broken.clone(), list.clone()], [list, broken]] {
        let at = usize::from(schemas[1].nodes()[2].repetition == super::super::Repetition::Required);
        let differences = told(&schemas).1;
        assert_eq!(differences, [format!("a broken in {at}: a LIST that is not one repeated field")]);
    }
}

#[test]
fn nothing_but_nulls_goes_with_all() {
    let unknown = typed(&[(1, '?', "a", "")], &[(PhysicalType::Int32, Some(LogicalType::Unknown))]);
    let group = schema(&[(1, '1', "a", ""), (2, '1', "x", "")]);
    let wider = schema(&[(1, '1', "a", ""), (2, '1', "x", ""), (2, '1', "y", "")]);
    let (columns, differences) = told(&[unknown.clone(), group.clone(), wider.clone(), unknown.clone()]);
    assert_eq!(columns, "a: {x: int@1, y: int?@2}?@1");
    assert_eq!(differences.len(), 2, "{differences:?}");
    assert_eq!(differences[1], "a.y in 2 not 1");
    assert_eq!(told(&[group, unknown, wider]).0, "a: {x: int@1, y: int?@2}?@1");
}

#[test]
fn columns_beside_the_files() {
    let mut union = Union::new();
    union.add(schema(&[(1, '1', "a", ""), (1, '1', "day", "")]).into());
    union.add(schema(&[(1, '1', "b", "")]).into());
    let day = Column {
        name: "day".into(),
        physical_type: PhysicalType::Int32,
        logical_type: Some(LogicalType::Date),
    };
    let Unified { schema, differences } = in_steps(union.with([day]).plan());
    let names: Vec<&str> = schema.children(0).map(|node| schema.nodes()[node].name.as_str()).collect();
    assert_eq!(names, ["a", "b", "day"]);
    let NodeKind::Leaf { leaf } = schema.nodes()[3].kind else { panic!("no leaf") };
    assert_eq!((leaf, schema.nodes()[3].logical_type.clone()), (2, Some(LogicalType::Date)));
    assert_eq!(differences.len(), 2);
}

/// The work is in proportion to the columns, not to their square: otherwise this takes minutes.
#[test]
fn wide_tables() {
    let names: Vec<String> = (0..100_000).map(|number| format!("c{number}")).collect();
    let wide = |offset: usize| {
        let mut wide = schema(&[]);
        for name in &names[offset..offset + 60_000] {
            let node = wide.nodes.len();
            wide.nodes.push(super::super::Node {
                name: name.clone(),
                is_numbered: false,
                parent: 0,
                kind: NodeKind::Leaf { leaf: wide.leaves.len() },
                ..wide.nodes[0].clone()
            });
            wide.leaves.push(super::super::Leaf {
                node,
                physical_type: PhysicalType::Int32,
                definition_max: 0,
                repetition_max: 0,
            });
        }
        wide.nodes[0].kind = NodeKind::Group { end: wide.nodes.len() };
        wide
    };
    let parts = [wide(0), wide(40_000)];
    let unified = unify(&parts);
    assert_eq!((unified.schema.leaves().len(), unified.differences.len()), (100_000, 80_000));
    for part in &parts {
        let (part, unified) = (Arc::new(part.clone()), Arc::clone(&unified.schema));
        let conform = in_steps(crate::read::Conform::plan(part, unified, &[]));
        assert_eq!(conform.reads().len(), 60_000);
    }
    let mut projection = super::super::Projection::new(Arc::clone(&unified.schema));
    for name in names.iter().rev() {
        let path = [super::super::PathPart { text: name.clone(), is_whole: false }];
        projection.add(&path, &mut Budget::unlimited()).unwrap().unwrap();
    }
    assert_eq!(in_steps(projection.plan()).leaf_path(0), "c99999");
}
