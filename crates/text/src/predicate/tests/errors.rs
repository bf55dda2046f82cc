//! What is no predicate, and where it is not.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{failed, schema};
use crate::predicate::{PredicateError, parse};

#[test]
fn errors_have_a_place() {
    for (text, at, said) in [
        ("", 0..0, "a column is missing at the end"),
        ("  ", 2..2, "a column is missing at the end"),
        ("x", 1..1, "a comparison of x, which is an int, is missing at the end"),
        ("x AND flag", 2..5, "a comparison of x, which is an int, is expected, not the keyword AND"),
        ("x 5", 2..3, "a comparison of x, which is an int, is expected, not 5"),
        ("x =", 3..3, "a literal is missing at the end"),
        ("x = y", 4..5, "a literal (as text, 'y' in single quotes) is expected, not y"),
        ("t = \"y\"", 4..7, "a literal (as text, 'y' in single quotes) is expected, not \"y\""),
        ("x = 5 tiny = 6", 6..10, "AND, OR or the end is expected, not tiny"),
        ("(x = 5 tiny = 6)", 7..11, "AND, OR or ) is expected, not tiny"),
        ("(x = 5", 0..1, "the parenthesis is not closed"),
        ("x = 5)", 5..6, "there is no parenthesis that it closes"),
        ("()", 1..2, "a column is expected, not )"),
        ("x = 5 AND", 9..9, "a column is missing at the end"),
        (
            "x = 5 OR OR x = 6",
            9..11,
            "a column is expected, not the keyword OR; a column of this name is put in",
        ),
        (
            "in = 5",
            0..2,
            "a column is expected, not the keyword IN; a column of this name is put in double quotes",
        ),
        ("5", 1..1, "a comparison of 5 is missing at the end"),
        ("NULL", 4..4, "a comparison of NULL is missing at the end"),
        ("5 < 6", 4..5, "a column on either side is expected, not 6"),
        ("'x' = 5", 6..7, "a column's name is put in double quotes, or in none"),
        ("x NOT = 5", 6..7, "IN, BETWEEN or LIKE is expected, not ="),
        ("x NOT IS NULL", 6..8, "IN, BETWEEN or LIKE is expected, not the keyword IS"),
        ("x IS 5", 5..6, "NULL or NOT NULL is expected, not 5"),
        ("x IS NOT 5", 9..10, "NULL is expected, not 5"),
        ("x IN 5", 5..6, "( is expected, not 5"),
        ("x IN (5", 7..7, "a comma or ) is missing at the end"),
        ("x IN (5 6)", 8..9, "a comma or ) is expected, not 6"),
        ("x IN (5,)", 8..9, "a literal is expected, not )"),
        ("x IN (,)", 6..7, "a literal is expected, not ,"),
        ("x BETWEEN 1 OR 2", 12..14, "AND, between the two bounds, is expected, not the keyword OR"),
        ("t = 'abc", 4..8, "the single quote is not closed"),
        ("t = $$abc$", 4..10, "$$ is missing at the end of the text"),
        ("\"x = 5", 0..6, "the double quote is not closed"),
        ("x.\"y = 5", 2..8, "the double quote is not closed"),
        ("x. = 5", 1..2, "a name is missing after the dot"),
        ("x = 5;", 5..6, "';' is not expected here"),
        (
            "x-a = 5",
            1..2,
            "'-' is not expected here; a column's name with other characters than letters, digits, _",
        ),
        ("x ! 5", 2..3, "'!' is not expected here"),
        ("x ≥ 5", 2..5, "'≥' is not expected here"),
        ("x = 5 && flag", 6..7, "'&' is not expected here"),
    ] {
        let error = failed(text);
        assert!(error.message.contains(said), "{text}: {}", error.message);
        assert_eq!(error.at, at, "{text}: {}", error.message);
    }
}

#[test]
fn columns_that_are_not_there() {
    for (text, at, said) in [
        ("flg", 0..3, "there is no column flg: did you mean flag? the columns are flag, other, tiny, x, "),
        ("tgs = 5", 0..3, "did you mean tags? the columns are"),
        ("zzzzzzz = 5", 0..7, "there is no column zzzzzzz: the columns are flag, "),
        ("plce.lat = 5", 0..8, "there is no column \"plce.lat\": did you mean place? "),
        ("5 = \"A  B\"", 4..10, "there is no column \"A  B\": did you mean \"a b\"? "),
        ("place.lot = 5", 0..9, "place has no field lot: did you mean lat? the fields are lat, lon, names"),
        ("place.z = 5", 0..7, "place has no field z: the fields are lat, lon, names"),
        ("x.z = 5", 0..3, "x holds values, and no field z"),
        ("tags.z = 5", 0..6, "tags is a list, of which only tags.element is a part"),
        ("m.z = 5", 0..3, "m is a map, whose parts are m.key and m.value"),
        ("m['a'] = 5", 1..2, "'[' is not expected here"),
        ("items.z = 5", 0..7, "items.list.element has no field z: the fields are price, sizes"),
        ("var.value = 5", 0..9, "var is a VARIANT, whose parts cannot be compared"),
        (
            "place = 5",
            0..5,
            "place is a struct, and a field is compared: the fields are place.lat, place.lon, place.names",
        ),
        (
            "5 = items",
            4..9,
            "items is a list, whose elements are each a struct, and a field is compared: the fields are items.price, ",
        ),
        ("m IN (5)", 0..1, "m is a map: compare m.key or m.value"),
        ("maps > 5", 0..4, "maps is a list, whose elements are each a map: compare maps.key or maps.value"),
        ("var = 5", 0..3, "var is a VARIANT, which cannot be compared"),
        ("place", 0..5, "place is a struct"),
    ] {
        let error = failed(text);
        assert!(error.message.contains(said), "{text}: {}", error.message);
        assert_eq!(error.at, at, "{text}: {}", error.message);
    }
    let long = format!("{} = 5", ["a"].repeat(300).join("."));
    assert_eq!(failed(&long).message, "a path of more than 256 names");
    let long = failed(&format!("\"{}\" = 5", "\u{1b}".repeat(60_000)));
    assert!(long.message.len() < 300 && !long.message.contains('\u{1b}'), "{long}");
}

#[test]
fn pictures() {
    let picture = |text: &str| failed(text).picture(text);
    assert_eq!(picture("x = 'abc' AND flag"), "x = 'abc' AND flag\n    ^^^^^");
    assert_eq!(picture("x ="), "x =\n   ^");
    assert_eq!(picture(""), "\n^");
    assert_eq!(picture("Größe = 1 AND x = 'ä'"), "Größe = 1 AND x = 'ä'\n                  ^^^");
    assert_eq!(picture("flag AND\n\tx = 5 y\nAND flag"), " x = 5 y\n       ^");
    assert_eq!(picture("flag AND t = 'a\nb' AND x = 'z'"), "b' AND x = 'z'\n           ^^^");
    assert_eq!(picture("t = 'ab\ncd"), "t = 'ab\n    ^^^");
    let long = format!("{}x = y{}", "flag AND ".repeat(20), " ".repeat(100) + "OR flag");
    let shown = picture(&long);
    let (line, carets) = shown.split_once('\n').unwrap();
    assert!(line.starts_with('…') && line.ends_with('…') && line.chars().count() <= 122, "{shown}");
    assert_eq!(line.chars().nth(carets.chars().count() - 1), Some('y'));
    // Of another text, it is still a picture.
    let error = PredicateError { at: 7..9, message: String::new() };
    assert_eq!(error.picture("short"), "short\n     ^");
    assert_eq!(PredicateError { at: 1..2, message: String::new() }.picture("ä"), "ä\n ^");
    assert_eq!(failed("x = 'abc'").to_string(), "'abc' is not an int");
}

/// Tokens in any order: an error has a place in the text, and a predicate is its opposite's opposite.
#[test]
fn random_tokens() {
    let tokens = [
        "x",
        "t",
        "flag",
        "tags",
        "m.key",
        "place",
        "d",
        "de",
        "ts",
        "id",
        "nothing",
        "nope",
        "\"a b\"",
        "=",
        "<>",
        "<",
        ">=",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "IS",
        "NULL",
        "(",
        ")",
        ",",
        "5",
        "-2.5",
        "1e400",
        "NaN",
        "'a'",
        "'a%'",
        "'2024-02-29'",
        "0xcafe",
        "550e8400-e29b-41d4-a716-446655440000",
        "true",
        "$$",
        "'",
        "\"",
        ".",
        "ä",
        "\n",
        "$",
        "0x",
        "-",
        "é\u{301}",
        "1e",
        "2024-02-29",
    ];
    let schema = schema();
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut valid = 0;
    for round in 0..40_000 {
        let length = 1 + random(12);
        let spaces = if round % 2 == 0 { " " } else { "" };
        let parts: Vec<&str> = (0..length).map(|_| tokens[random(tokens.len())]).collect();
        check(&parts.join(spaces), &schema, &mut valid);
        // Mostly right ones.
        let tests = ["x = 5", "NOT flag", "t LIKE 'a%'", "x IN (1, 2)", "tags IS NULL", "(", ")", "d < 2"];
        let parts: Vec<&str> = (0..length).map(|_| tests[random(tests.len())]).collect();
        check(&parts.join([" AND ", " OR ", " "][random(3)]), &schema, &mut valid);
    }
    assert!(valid > 1000, "{valid}");
}

fn check(text: &str, schema: &marquetry_parquet::schema::Schema, valid: &mut usize) {
    match parse(text, schema) {
        Ok(predicate) => {
            *valid += 1;
            assert_eq!(predicate.not().not(), predicate, "{text}");
        }
        Err(error) => {
            assert!(text.get(error.at.clone()).is_some(), "{text}: {error:?}");
            assert!(!error.picture(text).is_empty() && !error.message.is_empty());
        }
    }
}
