use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use marquetry_parquet::prune::{Accepts, NAN_KEY, Quantifier, Ranges, Test, double_key};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, TimeUnit};

use super::parse::DEPTH_MAX;
use super::*;

/// A table with a column of each kind; its leaves have the numbers in the comments.
fn schema() -> Arc<Schema> {
    use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64, Int96};
    let leaf = |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical));
    let timestamp = |is_adjusted_to_utc, unit| Some(LogicalType::Timestamp { is_adjusted_to_utc, unit });
    let fields = [
        leaf("id", Int64, None), // 0
        leaf("small", Int32, Some(LogicalType::Integer { bit_width: 8, is_signed: false })), // 1
        leaf("name", ByteArray, Some(LogicalType::String)), // 2
        leaf("active", Boolean, None), // 3
        leaf("price", Int64, Some(LogicalType::Decimal { scale: 2, precision: 12 })), // 4
        leaf("rate", Float, None), // 5
        leaf("score", Double, None), // 6
        leaf("day", Int32, Some(LogicalType::Date)), // 7
        leaf("at", Int64, timestamp(true, TimeUnit::Millis)), // 8
        leaf("local", Int64, timestamp(false, TimeUnit::Micros)), // 9
        leaf("clock", Int64, Some(LogicalType::Time { is_adjusted_to_utc: false, unit: TimeUnit::Micros })), // 10
        leaf("old", Int96, None),                                         // 11
        leaf("key", FixedLenByteArray(16), Some(LogicalType::Uuid)),      // 12
        leaf("raw", ByteArray, None),                                     // 13
        leaf("span", FixedLenByteArray(12), Some(LogicalType::Interval)), // 14
        leaf("and", Int32, None),                                         // 15
        leaf("a.b", Int32, None),                                         // 16
        FieldDef::new(
            "address",
            FieldType::Struct(
                vec![leaf("city", ByteArray, Some(LogicalType::String)), leaf("zip", Int32, None)],
                None,
            ),
        ), // 17, 18
        FieldDef::new("tags", FieldType::List(leaf("element", ByteArray, Some(LogicalType::String)).into())), // 19
        FieldDef::new(
            "m",
            FieldType::Map(
                leaf("key", ByteArray, Some(LogicalType::String)).required().into(),
                Some(leaf("value", Int32, None).into()),
            ),
        ), // 20, 21
        leaf("half", FixedLenByteArray(2), Some(LogicalType::Float16)), // 22
        leaf("Ünï", Int32, None),                                       // 23
    ];
    Arc::new(Schema::of_fields(&fields).unwrap())
}

fn parsed(text: &str) -> Predicate {
    parse(text, &schema()).unwrap_or_else(|error| panic!("{error}\n{}", error.picture(text)))
}

fn fault(text: &str) -> (&str, String) {
    let error = parse(text, &schema()).expect_err(text);
    (&text[error.at.clone()], error.message)
}

fn test(leaf: usize, ranges: Ranges) -> Predicate {
    Predicate::Test(Test::accepting(leaf, ranges))
}

fn keys(leaf: usize, first: i128, last: i128) -> Predicate {
    test(leaf, Ranges::of_keys(first, last))
}

fn bytes(text: &str) -> marquetry_base::Bytes {
    marquetry_base::Bytes::copy_from_slice(text.as_bytes())
}

const MIN: i128 = i128::MIN;
const MAX: i128 = i128::MAX;

#[test]
fn comparisons_of_integers_are_exact() {
    for (text, expected) in [
        ("id = 5", keys(0, 5, 5)),
        ("id == -5", keys(0, -5, -5)),
        ("id < 5", keys(0, MIN, 4)),
        ("id <= 5", keys(0, MIN, 5)),
        ("id > 5", keys(0, 6, MAX)),
        ("id >= 5", keys(0, 5, MAX)),
        ("5 < id", keys(0, 6, MAX)),
        ("5 >= id", keys(0, MIN, 5)),
        ("id<>5", test(0, Ranges::of_keys(5, 5).complement())),
        ("id != 5", test(0, Ranges::of_keys(5, 5).complement())),
        ("id = '5'", keys(0, 5, 5)),
        ("id = +5", keys(0, 5, 5)),
        ("id = 5.00", keys(0, 5, 5)),
        ("id = 0.5e1", keys(0, 5, 5)),
        ("id = 50e-1", keys(0, 5, 5)),
        ("id < 2.5", keys(0, MIN, 2)),
        ("id <= 2.5", keys(0, MIN, 2)),
        ("id > 2.5", keys(0, 3, MAX)),
        ("id >= 2.5", keys(0, 3, MAX)),
        ("id = 2.5", keys(0, 1, 0)),
        ("id <> 2.5", test(0, Ranges::of_keys(1, 0).complement())),
        ("id > -2.5", keys(0, -2, MAX)),
        ("id < -2.5", keys(0, MIN, -3)),
        ("id < 1e400", keys(0, MIN, MAX)),
        ("id > 1e-400", keys(0, 1, MAX)),
        ("id > -1e-400", keys(0, 0, MAX)),
        ("small < 3000000000", keys(1, MIN, 2_999_999_999)),
        ("price = 12.34", keys(4, 1234, 1234)),
        ("price >= 12.345", keys(4, 1235, MAX)),
        ("price < 12", keys(4, MIN, 1199)),
        ("id IN (3, 1, 2, 9)", test(0, Ranges::Numbers(vec![[1, 3], [9, 9]]))),
        ("id BETWEEN 3 AND 7.5", keys(0, 3, 7)),
        ("id between 7 and 3", keys(0, 1, 0)),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
    let digits = "9".repeat(60);
    assert_eq!(parsed(&alloc::format!("id < 0.{digits}")), keys(0, MIN, 0));
    assert_eq!(parsed(&alloc::format!("id < {digits}")), keys(0, MIN, MAX));
    assert_eq!(parsed(&alloc::format!("id = 5.{}1", "0".repeat(50))), keys(0, 1, 0));
}

#[test]
fn literals_of_each_type() {
    let day = 19_782; // 2024-02-29
    let midnight = day * 86_400_000;
    for (text, expected) in [
        ("active = true", keys(3, 1, 1)),
        ("active", keys(3, 1, 1)),
        ("NOT active", keys(3, 1, 1).not()),
        ("rate = 0.1", keys(5, double_key(f64::from(0.1_f32)), double_key(f64::from(0.1_f32)))),
        ("score = 0.1", keys(6, double_key(0.1), double_key(0.1))),
        ("score >= -Infinity", keys(6, double_key(f64::NEG_INFINITY), MAX)),
        ("score = NaN", keys(6, NAN_KEY, NAN_KEY)),
        ("half < 0.5", keys(22, MIN, double_key(0.5) - 1)),
        ("day = '2024-02-29'", keys(7, day, day)),
        ("day < '2024-02-29T00:00:01'", keys(7, MIN, day)),
        ("day = '2024-02-29 12:00'", keys(7, 1, 0)),
        ("at = '2024-02-29'", keys(8, midnight, midnight)),
        ("at = '2024-02-29T01:00:00+01:00'", keys(8, midnight, midnight)),
        ("at > '2024-02-29T00:00:00.0005Z'", keys(8, midnight + 1, MAX)),
        ("at >= 1709164800000", keys(8, midnight, MAX)),
        ("at < 0.5", keys(8, MIN, 0)),
        ("local < '2024-02-29'", keys(9, MIN, midnight * 1000 - 1)),
        ("local < 0.5", keys(9, MIN, 500)),
        ("clock >= '12:34:56.789'", keys(10, 45_296_789_000, MAX)),
        ("old = '2024-02-29'", keys(11, midnight * 1_000_000, midnight * 1_000_000)),
        ("name = 'O''Hara'", test(2, Ranges::of_bytes(bytes("O'Hara")))),
        ("name = $$O'Hara$$", test(2, Ranges::of_bytes(bytes("O'Hara")))),
        ("name < 'b'", test(2, Ranges::bytes_before(&bytes("b"), false))),
        ("name >= 'b'", test(2, Ranges::bytes_before(&bytes("b"), false).complement())),
        ("name LIKE 'ab%'", test(2, Ranges::with_prefix(bytes("ab")))),
        ("name LIKE '%'", test(2, Ranges::with_prefix(bytes("")))),
        ("name LIKE 'ab'", test(2, Ranges::of_bytes(bytes("ab")))),
        ("name NOT LIKE 'ab%'", test(2, Ranges::with_prefix(bytes("ab"))).not()),
        ("raw = 0x6162", test(13, Ranges::of_bytes(bytes("ab")))),
        ("raw = 'ab'", test(13, Ranges::of_bytes(bytes("ab")))),
        ("key = 61626364-6566-6768-696a-6b6c6d6e6f70", test(12, Ranges::of_bytes(bytes("abcdefghijklmnop")))),
        (
            "key = '61626364-6566-6768-696a-6b6c6d6e6f70'",
            test(12, Ranges::of_bytes(bytes("abcdefghijklmnop"))),
        ),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
    assert!(matches!(parsed("span = 'P1M2DT3S'"), Predicate::Test(test) if test.leaf == 14));
}

#[test]
fn words_bind_as_in_sql() {
    let (a, b, c) = (keys(0, 1, 1), keys(15, 2, 2), keys(16, 3, 3));
    for (text, expected) in [
        (
            "id = 1 AND \"and\" = 2 OR \"a.b\" = 3",
            Predicate::Or(vec![Predicate::And(vec![a.clone(), b.clone()]), c.clone()]),
        ),
        (
            "id = 1 or \"and\" = 2 and a.b = 3",
            Predicate::Or(vec![a.clone(), Predicate::And(vec![b.clone(), c.clone()])]),
        ),
        (
            "(id = 1 OR \"and\" = 2) AND a.b=3",
            Predicate::And(vec![Predicate::Or(vec![a.clone(), b.clone()]), c.clone()]),
        ),
        ("NOT id = 1 AND \"and\"=2", Predicate::And(vec![a.not(), b.clone()])),
        ("NOT (id = 1 AND \"and\" = 2)", Predicate::Or(vec![a.not(), b.not()])),
        ("not not id=1", a.clone()),
        ("ID = 1", a.clone()),
        ("id NOT IN (1)", a.not()),
        ("((id = 1))", a),
        ("Ünï = 4", keys(23, 4, 4)),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn nested_fields_and_nulls() {
    let nulls = |leaf, slot, definition, are_wanted| {
        let accepts = Accepts::Nulls { slot, definition, are_wanted };
        Predicate::Test(Test { leaf, quantifier: Quantifier::Any, accepts })
    };
    for (text, expected) in [
        ("id IS NULL", nulls(0, 0, 1, true)),
        ("id IS NOT NULL", nulls(0, 0, 1, false)),
        ("address.city = 'Rome'", test(17, Ranges::of_bytes(bytes("Rome")))),
        ("address IS NULL", nulls(17, 0, 1, true)),
        ("address.zip IS NULL", nulls(18, 0, 2, true)),
        ("tags = 'new'", test(19, Ranges::of_bytes(bytes("new")))),
        ("tags.element = 'new'", test(19, Ranges::of_bytes(bytes("new")))),
        ("tags.list.element = 'new'", test(19, Ranges::of_bytes(bytes("new")))),
        ("tags IS NULL", nulls(19, 0, 1, true)),
        ("tags.element IS NULL", nulls(19, 2, 3, true)),
        ("m.key = 'a'", test(20, Ranges::of_bytes(bytes("a")))),
        ("m.value > 3", keys(21, 4, MAX)),
        ("m.value IS NOT NULL", nulls(21, 2, 3, false)),
    ] {
        assert_eq!(parsed(text), expected, "{text}");
    }
    let Predicate::Test(all) = parsed("NOT tags = 'new'") else { panic!() };
    assert_eq!(all.quantifier, Quantifier::All);
    let Predicate::Test(any) = parsed("tags <> 'new'") else { panic!() };
    assert_eq!((any.quantifier, any.accepts), (Quantifier::Any, all.accepts));
}

#[test]
fn faults_have_their_place() {
    for (text, place, message) in [
        ("", "", "a column is expected here"),
        ("id", "", "\"id\" is a bigint, so a comparison is expected here"),
        ("id =", "", "a literal is expected here"),
        ("id = 'abc'", "'abc'", "'abc' is not a bigint"),
        ("id = true", "true", "true is not a bigint"),
        ("id = NaN", "NaN", "NaN is not a bigint"),
        ("id = NULL", "NULL", "nothing compares with NULL; id IS NULL asks for it"),
        (
            "id = nmae",
            "nmae",
            "\"nmae\" is no literal; a text is put in single quotes, and columns are not compared with each other",
        ),
        ("name = \"x\"", "\"x\"", "a literal is expected here; a text is put in single quotes: 'x'"),
        ("name = 7", "7", "7 is not a text; a text is put in single quotes"),
        (
            "name LIKE '%a'",
            "'%a'",
            "only a prefix can be searched for: LIKE 'prefix%', without other '%' and '_'",
        ),
        ("id LIKE 'a%'", "id", "LIKE is for texts, and \"id\" is a bigint"),
        ("day = 5", "5", "5 is not a date; a date is written like '2024-02-29'"),
        ("day = '2023-02-29'", "'2023-02-29'", "'2023-02-29' is not a date"),
        ("local = '2024-02-29Z'", "'2024-02-29Z'", "'2024-02-29Z' is not a localtimestamp(6)"),
        (
            "local = '2024-02-29T00:00Z'",
            "'2024-02-29T00:00Z'",
            "'2024-02-29T00:00Z' has a zone, but the column's times are local: leave the zone out",
        ),
        ("span < 'P1D'", "'P1D'", "values like an interval have no order, only = and <>"),
        ("address = 3", "address", "\"address\" is a struct; its fields can be compared: city, zip"),
        ("m = 3", "m", "\"m\" is a map: m.key or m.value can be compared"),
        ("address.town = 'x'", "address.town", "\"address\" has no field \"town\"; it holds city, zip"),
        ("id.x = 3", "id.x", "\"id\" holds values, and no field \"x\""),
        ("id = 1 AND", "", "a column is expected here"),
        ("id = 1 id = 2", "id", "the predicate ends before this; AND or OR may be missing"),
        ("(id = 1", "(", "a parenthesis that is not closed"),
        ("id = 1)", ")", "the predicate ends before this; AND or OR may be missing"),
        ("id IN 1", "1", "a '(' is expected here"),
        ("id IN ()", ")", "a literal is expected here"),
        ("id IS 3", "3", "NULL is expected here, or NOT NULL"),
        ("id NOT 3", "3", "IN, BETWEEN or LIKE is expected here"),
        ("and = 3", "and", "a column is expected here; one that is called \"and\" is put in double quotes"),
        (
            "id = 12ab",
            "12ab",
            "\"12ab\" is no number, UUID or blob; a name like this is put in double quotes",
        ),
        ("name = 'abc", "'abc", "a text without its closing '"),
        ("id = 3 ; x", ";", "the predicate ends before this; AND or OR may be missing"),
        ("id = ?", "?", "'?' has no meaning here"),
    ] {
        assert_eq!(fault(text), (place, message.to_string()), "{text}");
    }
    let (place, message) = fault("nope = 1");
    assert_eq!(place, "nope");
    assert!(message.starts_with("there is no column \"nope\"; its columns are id, small, name"), "{message}");
    assert!(message.ends_with(", …"), "{message}");
}

#[test]
fn pictures_point_at_the_place() {
    let text = "name = 'é' AND\n\tid = 'x'";
    let error = parse(text, &schema()).unwrap_err();
    assert_eq!(error.picture(text), " id = 'x'\n      ^^^");
    let long = alloc::format!("{}id = 'x'", "id = 1 AND ".repeat(100));
    let picture = parse(&long, &schema()).unwrap_err().picture(&long);
    let lines: Vec<&str> = picture.lines().collect();
    assert_eq!(lines.len(), 2);
    let place = lines[1].find('^').unwrap();
    assert_eq!(&lines[0][place..], "'x'");
    assert!(lines.iter().all(|line| line.chars().count() <= 70), "{picture}");
}

#[test]
fn depth_and_length_are_limited() {
    let nested = |depth: usize| alloc::format!("{}id = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(DEPTH_MAX), &schema()).is_ok());
    assert!(fault(&nested(DEPTH_MAX + 1)).1.contains("64 parentheses"));
    let chain = "id = 1 OR NOT NOT id = 2 AND ".repeat(10_000) + "id = 3";
    assert!(parse(&chain, &schema()).is_ok());
    let list = alloc::format!("id IN ({}7)", "1, ".repeat(100_000));
    assert_eq!(parsed(&list), test(0, Ranges::Numbers(vec![[1, 1], [7, 7]])));
    assert!(parse(&" ".repeat(TEXT_BYTES_MAX + 1), &schema()).is_err());
}

#[test]
fn any_words_are_parsed_or_a_fault() {
    const WORDS: [&str; 34] = [
        "id", "name", "\"and\"", "address", ".", "city", "tags", "m", "key", "=", "<", ">=", "<>", "IN", "(",
        ")", ",", "NOT", "AND", "OR", "IS", "NULL", "LIKE", "BETWEEN", "5", "-1.5e3", "'a%'", "0xab", "true",
        "NaN", "$$x$$", "é", "'", ";",
    ];
    let (schema, mut seed, mut parsed) = (schema(), 7_u64, 0);
    for _ in 0..60_000 {
        let mut text = String::new();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for _ in 0..(seed >> 33) % 7 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(WORDS[usize::try_from(seed >> 33).unwrap() % WORDS.len()]);
            text.push(' ');
        }
        match parse(&text, &schema) {
            Ok(predicate) => {
                parsed += 1;
                assert_eq!(predicate.not().not(), predicate, "{text}");
            }
            Err(error) => {
                assert!(!error.picture(&text).is_empty() && text.get(error.at.clone()).is_some(), "{text}")
            }
        }
    }
    assert!(parsed > 10, "{parsed}");
}
