use super::super::shape::tests::{schema, words};
use super::super::union::tests::in_steps;
use super::*;
use alloc::format;
use alloc::string::{String, ToString};

fn nested() -> Schema {
    schema(&[
        (1, '1', "id", ""),
        (1, '?', "a.b", ""),
        (2, '1', "c", ""),
        (2, '1', "d.e", ""),
        (1, '?', "a", ""),
        (2, '?', "b", ""),
        (3, '1', "x", ""),
        (2, '?', "Y", ""),
        (1, '?', "items", "LIST"),
        (2, '*', "list", ""),
        (3, '?', "element", ""),
        (4, '1', "price", ""),
        (4, '?', "tags", "LIST"),
        (5, '*', "array", ""),
        (1, '?', "m", "MAP"),
        (2, '*', "key_value", ""),
        (3, '1', "key", ""),
        (3, '?', "value", ""),
        (4, '1', "u", ""),
        (4, '1', "v", ""),
    ])
}

/// Adds a path, with a budget that is always spent.
fn add(projection: &mut Projection, path: &[PathPart]) -> Result<(), PathError> {
    loop {
        if let Some(()) = projection.add(path, &mut Budget::new(0))? {
            return Ok(());
        }
    }
}

/// The columns that paths select from the schema; parts in angle brackets are complete names.
fn cut(paths: &[&str]) -> String {
    let schema = Arc::new(nested());
    let mut projection = Projection::new(Arc::clone(&schema));
    for path in paths {
        let part = |part: &str| match part.strip_prefix('<').and_then(|part| part.strip_suffix('>')) {
            Some(whole) => PathPart { text: whole.replace('_', "."), is_whole: true },
            None => PathPart { text: part.to_string(), is_whole: false },
        };
        let path: Vec<PathPart> = path.split('.').map(part).collect();
        if let Err(error) = add(&mut projection, &path) {
            return match error {
                PathError::NoSuchField { name, node } => {
                    let node = node.map_or_else(|| "the root".to_string(), |node| schema.path(node));
                    format!("no {name} in {node}")
                }
                other => format!("{other:?}"),
            };
        }
    }
    let found = in_steps(projection.plan());
    let columns =
        found.children(0).map(|node| format!("{}: {}", found.nodes()[node].name, words(found.shape(node))));
    columns.collect::<Vec<_>>().join("; ")
}

#[test]
fn paths_cut_anywhere() {
    assert_eq!(cut(&["id"]), "id: int@0");
    assert_eq!(cut(&["items.price", "id"]), "items: [{price: int@3}?@3]?@1; id: int@0");
    for price in ["items.element.price", "items.list.element.price", "items.price"] {
        assert_eq!(cut(&[price]), "items: [{price: int@3}?@3]?@1");
    }
    assert_eq!(cut(&["items.element"]), cut(&["items"]));
    assert_eq!(cut(&["items.tags"]), cut(&["items.tags.element"]));
    assert_eq!(cut(&["m.key"]), "m: <int@2>?@1");
    assert_eq!(cut(&["m.value"]), "m: [{u: int@3, v: int@3}?@3]?@1");
    assert_eq!(cut(&["m.value.v", "m.key"]), "m: <int@2 -> {v: int@3}?@3>?@1");
    assert_eq!(cut(&["m.key_value.value.u"]), "m: [{u: int@3}?@3]?@1");
    assert_eq!(cut(&["<a>.Y", "<a>.b"]), cut(&["<a>"]));
    assert_eq!(cut(&["<a>.b.x"]), "a: {b: {x: int@2}?@2}?@1");
}

/// A group's own field takes precedence over the list's name for its elements.
#[test]
fn a_field_that_is_called_element() {
    let schema = Arc::new(schema(&[
        (1, '?', "l", "LIST"),
        (2, '*', "list", ""),
        (3, '?', "element", ""),
        (4, '1', "element", ""),
        (4, '1', "other", ""),
    ]));
    let leaves = |path: &[&str]| {
        let mut projection = Projection::new(Arc::clone(&schema));
        let path: Vec<PathPart> =
            path.iter().map(|part| PathPart { text: (*part).into(), is_whole: false }).collect();
        add(&mut projection, &path).map(|()| [0, 1].map(|leaf| projection.leaves.has(leaf)))
    };
    assert_eq!(leaves(&["l", "element"]), Ok([true, false]));
    assert_eq!(leaves(&["l", "list", "element"]), Ok([true, true]));
    assert_eq!(leaves(&["l", "list", "element", "other"]), Ok([false, true]));
    assert!(leaves(&["l", "element", "other"]).is_err());
}

#[test]
fn names_with_dots() {
    // The longest name that exists.
    assert_eq!(cut(&["a.b"]), "a.b: {c: int@1, d.e: int@1}?@1");
    assert_eq!(cut(&["a.b.c"]), "a.b: {c: int@1}?@1");
    assert_eq!(cut(&["a.b.d.e"]), "a.b: {d.e: int@1}?@1");
    assert_eq!(cut(&["<a>.b"]), "a: {b: {x: int@2}?@2}?@1");
    assert_eq!(cut(&["<a_b>.<d_e>"]), "a.b: {d.e: int@1}?@1");
    assert_eq!(cut(&["A.Y"]), "a: {Y: int?@2}?@1", "in lower case, where there is no other");
}

#[test]
fn slots_are_those_of_the_innermost_list() {
    let (schema, mut paths) = (nested(), Paths::default());
    let mut at = |path: &str| {
        let parts = path.split('.').map(|part| PathPart { text: part.into(), is_whole: false });
        let found = paths.find(&schema, &parts.collect::<Vec<_>>(), &mut Budget::unlimited());
        found.map(|it| it.map(|it| (it.slot, it.shape.definition, it.shape.leaves())))
    };
    assert_eq!(at("id"), Ok(Some((0, 0, 0..1))));
    assert_eq!(at("a.Y"), Ok(Some((0, 2, 4..5))));
    assert_eq!(at("items"), Ok(Some((0, 1, 5..7))));
    assert_eq!(at("items.element"), Ok(Some((2, 3, 5..7))));
    assert_eq!(at("items.price"), Ok(Some((2, 3, 5..6))));
    assert_eq!(at("items.tags"), Ok(Some((2, 4, 6..7))));
    assert_eq!(at("items.list.element.tags.list.element"), Ok(Some((5, 5, 6..7))));
    assert_eq!(at("m.key"), Ok(Some((2, 2, 7..8))));
    assert_eq!(at("m.key_value.value.v"), Ok(Some((2, 3, 9..10))));
    assert!(at("m.v").is_err());
}

#[test]
fn paths_that_lead_nowhere() {
    assert_eq!(cut(&["nope"]), "no nope in the root");
    assert_eq!(cut(&["id.x"]), "no x in id");
    assert_eq!(cut(&["m.x"]), "no x in m");
    assert_eq!(cut(&["items.nope"]), "no nope in items.list.element");
    assert_eq!(cut(&["items.list"]), "no list in items.list.element");
    assert_eq!(cut(&["items.tags.x"]), "no x in items.list.element.tags");
    assert_eq!(cut(&["id", "id"]), "Twice");
    assert_eq!(cut(&["a", "a.Y"]), "Twice");
    assert_eq!(cut(&["items.price", "items.price"]), "Twice");
    assert_eq!(cut(&["items.price", "items"]), cut(&["items"]), "the rest is added");
}

/// The work is in proportion to the fields, not to their square: otherwise this takes minutes.
#[test]
fn wide_groups() {
    let mut schema = schema(&[(1, '?', "s", ""), (2, '1', "x", "")]);
    for number in 0..100_000 {
        let (mut node, mut leaf) = (schema.nodes[2].clone(), schema.leaves[0].clone());
        node.name = format!("f{number}");
        node.kind = super::super::NodeKind::Leaf { leaf: schema.leaves.len() };
        leaf.node = schema.nodes.len();
        schema.nodes.push(node);
        schema.leaves.push(leaf);
    }
    for group in [0, 1] {
        schema.nodes[group].kind = super::super::NodeKind::Group { end: schema.nodes.len() };
    }
    let mut projection = Projection::new(Arc::new(schema));
    for number in (0..100_000).step_by(2) {
        let part = |text: &str| PathPart { text: text.into(), is_whole: false };
        add(&mut projection, &[part("s"), part(&format!("f{number}"))]).unwrap();
    }
    assert_eq!(in_steps(projection.plan()).leaves().len(), 50_000);
}
