//! How conditions are combined, and columns are named.

use alloc::format;
use alloc::string::String;

use super::{failed, parsed};

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(parsed(text), *expected, "{text}");
    }
}

#[test]
fn not_before_and_before_or() {
    check(&[
        ("x = 1 AND tiny = 2 OR big = 3", "((x [1] and tiny [2]) or big [3])"),
        ("x = 1 OR tiny = 2 AND big = 3", "(x [1] or (tiny [2] and big [3]))"),
        ("(x = 1 OR tiny = 2) AND big = 3", "((x [1] or tiny [2]) and big [3])"),
        ("NOT x = 1 AND tiny = 2", "(∀x [..0 2..] and tiny [2])"),
        ("NOT (x = 1 AND tiny = 2)", "(∀x [..0 2..] or ∀tiny [..1 3..])"),
        ("NOT (x = 1 OR tiny = 2) AND big = 3", "(∀x [..0 2..] and ∀tiny [..1 3..] and big [3])"),
        ("NOT NOT NOT x = 1", "∀x [..0 2..]"),
        ("NOT (NOT (x = 1))", "x [1]"),
        ("x = 1 AND (tiny = 2 AND (big = 3))", "(x [1] and tiny [2] and big [3])"),
        ("x = 1 and tiny = 2 oR big = 3 Or x In (4)", "((x [1] and tiny [2]) or big [3] or x [4])"),
        ("((x=1))", "x [1]"),
        ("x=1AND tiny=2", "1AND: 1AND is not a number"),
        ("NOT x IN (1)", "∀x [..0 2..]"),
        ("NOT x NOT IN (1)", "∀x [1]"),
        ("x BETWEEN 1 AND 2 AND tiny = 2", "(x [1..2] and tiny [2])"),
        ("x NOT BETWEEN 1 AND 2 OR tiny = 2", "(x [..0 3..] or tiny [2])"),
        ("\n x\t=\n5 \n", "x [5]"),
    ]);
}

#[test]
fn either_side() {
    check(&[
        ("5 = x", "x [5]"),
        ("5 <> x", "x [..4 6..]"),
        ("5 < x", "x [6..]"),
        ("5 <= x", "x [5..]"),
        ("5 > x", "x [..4]"),
        ("5 >= x", "x [..5]"),
        ("'a' != t", r#"t [.."a" 0x6100..]"#),
        ("-5==x", "x [-5]"),
        ("x<-5", "x [..-6]"),
        ("x=-.5e1", "x [-5]"),
        ("61626364-6566-6768-696a-6b6c6d6e6f70 = id", r#"id ["abcdefghijklmnop"]"#),
    ]);
}

#[test]
fn constants() {
    check(&[
        ("TRUE", "( and  of none)"),
        ("false", "( or  of none)"),
        ("NOT true", "( or  of none)"),
        ("x = 1 AND true", "x [1]"),
        ("x = 1 OR false", "x [1]"),
        ("x = 1 OR true", "(x [1] or ( and  of none))"),
        ("true AND true", "( and  of none)"),
        ("(false OR false) AND x = 1", "(( or  of none) and x [1])"),
    ]);
}

#[test]
fn names() {
    check(&[
        ("X = 1", "x [1]"),
        ("\"x\" = 1", "x [1]"),
        (
            "mixed = 1",
            "mixed: there is no column mixed: did you mean Mixed? the columns are flag, other, tiny, x, big, \
                       u8, u64, h, f, d, t, e, j, b, bs, fx, dt, t3, ut6, ts and 25 more",
        ),
        ("Mixed = 1", "Mixed [1]"),
        ("\"Mixed\" = 1", "Mixed [1]"),
        ("\"a b\" = 1", "a b [1]"),
        ("\"q\"\"q\" = 1", "q\"q [1]"),
        ("x.y = 1", "x.y [1]"),
        ("\"x.y\" = 1", "x.y [1]"),
        ("\"in\" IN (1)", "in [1]"),
        ("Größe >= 1", "Größe [1..]"),
        ("place.lat = 1", "place.lat [1]"),
        ("PLACE.\"lat\" = 1", "place.lat [1]"),
    ]);
}

#[test]
fn lists_and_maps() {
    check(&[
        ("tags = 'a'", r#"tags.list.element ["a"]"#),
        ("tags.element = 'a'", r#"tags.list.element ["a"]"#),
        ("tags.list.element = 'a'", r#"tags.list.element ["a"]"#),
        ("tags <> 'a'", r#"tags.list.element [.."a" 0x6100..]"#),
        ("NOT tags = 'a'", r#"∀tags.list.element [.."a" 0x6100..]"#),
        ("tags NOT IN ('a')", r#"∀tags.list.element [.."a" 0x6100..]"#),
        ("NOT tags NOT IN ('a')", r#"tags.list.element ["a"]"#),
        ("place.names = 'a'", r#"place.names.list.element ["a"]"#),
        ("items.price = 1", "items.list.element.price [10]"),
        ("items.list.element.price = 1", "items.list.element.price [10]"),
        ("items.sizes NOT BETWEEN 1 AND 2", "∀items.list.element.sizes.list.element [..0 3..]"),
        ("grid = 1", "grid.list.element.list.element [1]"),
        ("grid.element = 1", "grid.list.element.list.element [1]"),
        ("m.key = 'a'", r#"m.key_value.key ["a"]"#),
        ("m.value > 1", "m.key_value.value [2..]"),
        ("m.key_value.value > 1", "m.key_value.value [2..]"),
        ("maps.value > 1", "maps.list.element.key_value.value [2..]"),
    ]);
}

#[test]
fn nulls() {
    check(&[
        ("x IS NULL", "x null 0 1"),
        ("x is not null", "x present 0 1"),
        ("NOT x IS NULL", "∀x present 0 1"),
        ("must IS NULL", "must null 0 0"),
        ("tags IS NULL", "tags.list.element null 0 1"),
        ("tags IS NOT NULL", "tags.list.element present 0 1"),
        ("tags.element IS NULL", "tags.list.element null 2 3"),
        ("tags.element IS NOT NULL", "∀tags.list.element present 2 3"),
        ("m IS NULL", "m.key_value.key null 0 1"),
        ("m.key IS NULL", "m.key_value.key null 2 2"),
        ("m.value IS NULL", "m.key_value.value null 2 3"),
        ("place IS NULL", "place.lat null 0 1"),
        ("place.lon IS NULL", "place.lon null 0 2"),
        ("place.names IS NULL", "place.names.list.element null 0 2"),
        ("items.element IS NULL", "items.list.element.price null 2 3"),
        ("items.sizes IS NULL", "items.list.element.sizes.list.element null 2 4"),
        ("items.sizes.element IS NULL", "items.list.element.sizes.list.element null 5 6"),
        ("grid.element IS NULL", "grid.list.element.list.element null 2 3"),
        ("grid.element.element IS NULL", "grid.list.element.list.element null 4 5"),
        ("var IS NULL", "var.metadata null 0 1"),
        ("geo IS NOT NULL", "geo present 0 1"),
    ]);
}

#[test]
fn depth_is_limited_but_not_length() {
    let nested = |depth: usize, text: &str| format!("{}{text}{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(parsed(&nested(64, "x = 1")), "x [1]");
    let error = failed(&nested(65, "x = 1"));
    assert_eq!((error.at, &*error.message), (64..65, "parentheses are nested more than 64 deep"));
    assert_eq!(parsed(&format!("{}x = 1", "NOT ".repeat(100_000))), "x [1]");
    let long = format!("x = 1 OR {}", " ".repeat(1 << 20));
    assert_eq!(failed(&long).message, "a predicate of 1048585 bytes, more than 1048576");
}

/// Hosts have small stacks.
#[test]
fn a_stack_of_128_kib_is_enough() {
    #[cfg(test)]
    extern crate std;
    // Each group is another kind of combination than the one around it, so none is joined with it.
    let level = |text: String, at: usize| match at % 3 {
        0 => format!("x = 1 AND NOT ({text} OR x = 2)"),
        1 => format!("x = 1 OR x = 2 AND ({text})"),
        _ => format!("NOT (x = 2 OR {text} AND x = 1)"),
    };
    let deep = (0..64).fold(String::from("m.key = 'a' OR tags = 'b'"), level);
    let repeated = |text: &str, word: &str| [text].repeat(30_000).join(word);
    let texts = [
        deep,
        repeated("x=1", " AND "),
        repeated("NOT x = 1", " OR "),
        format!("x IN ({})", repeated("1", ",")),
        repeated("(x = 1 OR flag)", " AND "),
        "NOT ".repeat(100_000),
        "(".repeat(100_000),
        format!("a.{}b = 1", "b.".repeat(400_000)),
        format!("x{} = 1", ".\"\"".repeat(200_000)),
    ];
    let run = move || {
        let schema = super::schema();
        for (at, text) in texts.iter().enumerate() {
            let found = crate::predicate::parse(text, &schema);
            assert_eq!(found.is_ok(), at < 5, "{at}");
            if let Ok(predicate) = found {
                let twice = predicate.not().not();
                assert_eq!(twice, predicate);
                assert!(!twice.leaves().is_empty());
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(run).unwrap();
    thread.join().unwrap();
}
