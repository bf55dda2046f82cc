//! What literals are for columns of each type.

use alloc::format;
use alloc::string::{String, ToString};

use marquetry_parquet::prune::{Accepts, Predicate, Ranges};

use super::{failed, parsed, schema};
use crate::predicate::parse;

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(parsed(text), *expected, "{text}");
    }
}

/// All comparisons of a column with a literal: `= <> < <= > >=`.
fn compared(column: &str, literal: &str) -> [String; 6] {
    ["=", "<>", "<", "<=", ">", ">="].map(|operator| {
        let found = parsed(&format!("{column} {operator} {literal}"));
        found.strip_prefix(&format!("{column} ")).unwrap_or(&found).to_string()
    })
}

#[test]
fn integers_are_compared_exactly() {
    assert_eq!(compared("x", "5"), ["[5]", "[..4 6..]", "[..4]", "[..5]", "[6..]", "[5..]"]);
    assert_eq!(compared("x", "2.5"), ["[]", "[all]", "[..2]", "[..2]", "[3..]", "[3..]"]);
    assert_eq!(compared("x", "-2.5"), ["[]", "[all]", "[..-3]", "[..-3]", "[-2..]", "[-2..]"]);
    assert_eq!(compared("x", "-1e-9"), ["[]", "[all]", "[..-1]", "[..-1]", "[0..]", "[0..]"]);
    assert_eq!(compared("x", "1e99"), ["[]", "[all]", "[all]", "[all]", "[]", "[]"]);
    assert_eq!(compared("x", "-1e99999999999999999999"), ["[]", "[all]", "[]", "[]", "[all]", "[all]"]);
    check(&[
        ("x < 3000000000", "x [..2999999999]"),
        ("x = 2.50e1", "x [25]"),
        ("x = 1200e-2", "x [12]"),
        ("x = 0e999999999999999999999", "x [0]"),
        ("x = -0", "x [0]"),
        ("x = +007", "x [7]"),
        ("x = ' -7 '", "x [-7]"),
        ("x = .5", "x []"),
        ("x = 5.", "x [5]"),
        ("tiny = 300", "tiny [300]"),
        ("u8 >= -1", "u8 [-1..]"),
        ("u64 = 18446744073709551615", "u64 [18446744073709551615]"),
        ("big < 9223372036854775807.5", "big [..9223372036854775807]"),
        ("big BETWEEN 2.5 AND 7.5", "big [3..7]"),
        ("big BETWEEN 7 AND 2", "big []"),
        ("big NOT BETWEEN 2 AND 7", "big [..1 8..]"),
        ("x IN (3, 1, 2, 7.0, 0.5)", "x [1..3 7]"),
        ("x NOT IN (3, 1)", "x [..0 2 4..]"),
        ("x IN ()", "x []"),
        ("x NOT IN ()", "x [all]"),
    ]);
}

#[test]
fn numbers_at_the_end_of_128_bits() {
    let (most, least) = (i128::MAX.to_string(), i128::MIN.to_string());
    assert_eq!(parsed(&format!("x = {most}")), format!("x [{most}]"));
    assert_eq!(parsed(&format!("x <= {most}")), "x [all]");
    assert_eq!(parsed(&format!("x > {most}")), "x []");
    assert_eq!(parsed(&format!("x < {least}")), "x []");
    assert_eq!(parsed(&format!("x <= {least}")), format!("x [{least}]"));
    assert_eq!(parsed(&format!("x < {least}.5")), "x []");
    assert_eq!(parsed(&format!("x > {least}.5")), "x [all]");
    assert_eq!(parsed(&format!("x <= {most}.5")), "x [all]");
    assert_eq!(parsed(&format!("x >= {most}.5")), "x []");
    assert_eq!(parsed("x < 170141183460469231731687303715884105728"), "x [all]");
    assert_eq!(parsed("x > 999999999999999999999999999999999999999"), "x []");
}

#[test]
fn decimals_by_their_unscaled_values() {
    assert_eq!(compared("de", "2.5"), ["[250]", "[..249 251..]", "[..249]", "[..250]", "[251..]", "[250..]"]);
    assert_eq!(compared("de", "2.505"), ["[]", "[all]", "[..250]", "[..250]", "[251..]", "[251..]"]);
    check(&[
        ("de = 1e3", "de [100000]"),
        ("de = '-0.010'", "de [-1]"),
        ("de < 99999999999999", "de [..9999999999999899]"),
        ("de38 = 99999999999999999999999999999999999999", "de38 [99999999999999999999999999999999999999]"),
        ("de38 > 1e39", "de38 []"),
        ("de60 = 12.34", "de60 []"),
        ("de60 < 12.34", "de60 [..123]"),
        ("items.price > 2.5", "items.list.element.price [26..]"),
    ]);
    // More than the keys of its values tell apart.
    for literal in ["1e38", "-1e38", "17014118346046923173168730371588410572.7"] {
        let error = failed(&format!("de60 > {literal}"));
        assert!(error.message.ends_with(" has too many digits to be compared"), "{error}");
    }
    assert_eq!(
        parsed("de60 < 17014118346046923173168730371588410572.6"),
        "de60 [..170141183460469231731687303715884105725]"
    );
}

/// Numbers with three digits after the point, against columns that have none and two.
#[test]
fn comparisons_are_those_of_the_numbers() {
    let schema = schema();
    for (column, thousandths_of_key) in [("x", 1000), ("de", 10)] {
        for thousandths in (-30..30).chain([-1001, -1000, -999, -501, 999, 1000, 1001, 1999, 2000]) {
            let sign = if thousandths < 0 { "-" } else { "" };
            let (whole, fraction) = (i32::abs(thousandths) / 1000, i32::abs(thousandths) % 1000);
            for operator in ["=", "<>", "<", "<=", ">", ">="] {
                let text = format!("{column} {operator} {sign}{whole}.{fraction:03}");
                let Ok(Predicate::Test(test)) = parse(&text, &schema) else { panic!("{text}") };
                let Accepts::Values(ranges) = test.accepts else { panic!("{text}") };
                for key in -210..210 {
                    let value = key * thousandths_of_key;
                    let expected = match operator {
                        "=" => value == thousandths,
                        "<>" => value != thousandths,
                        "<" => value < thousandths,
                        "<=" => value <= thousandths,
                        ">" => value > thousandths,
                        _ => value >= thousandths,
                    };
                    assert_eq!(ranges.has_key(key.into()), expected, "{text}: {key}");
                }
            }
        }
    }
}

#[test]
fn floating_point_numbers_are_the_nearest() {
    let largest = f64::MAX.to_string();
    check(&[
        ("d = 0.1", "d [0.1]"),
        ("d = -0.0", "d [0]"),
        ("d = NaN", "d [NaN]"),
        ("d = 'nan'", "d [NaN]"),
        ("d = infinity", "d [inf]"),
        ("d = -Infinity", "d [-inf]"),
        ("d = 1e400", "d []"),
        ("d = 1e-400", "d [0]"),
        ("d = 9007199254740993", "d [9007199254740992]"),
        ("d BETWEEN 1 AND 2", "d [1..2]"),
        ("d BETWEEN Infinity AND NaN", "d [inf..NaN]"),
        ("f = 16777217", "f [16777216]"),
        ("f = 0.1", &format!("f [{}]", f64::from(0.1_f32))),
        ("f BETWEEN 1e39 AND 1e40", "f []"),
        ("f BETWEEN 1e39 AND Infinity", "f [inf]"),
        ("f BETWEEN 3e38 AND 1e39", &format!("f [{}..{}]", f64::from(3e38_f32), f64::from(f32::MAX))),
        ("h = 0.1", "h [0.0999755859375]"),
        ("h BETWEEN 60000 AND 70000", "h [60000..65504]"),
        ("h BETWEEN -70000 AND 0.5", "h [-65504..0.5]"),
        ("d BETWEEN -1e400 AND 1e400", &format!("d [-{largest}..{largest}]")),
        ("place.lat = 1.5", "place.lat [1.5]"),
    ]);
    // NaN is the greatest.
    let of = |text| match parse(text, &schema()) {
        Ok(Predicate::Test(test)) => match test.accepts {
            Accepts::Values(ranges) => ranges,
            Accepts::Nulls { .. } => panic!("{text}"),
        },
        other => panic!("{text}: {other:?}"),
    };
    let nan = super::NAN_KEY;
    for (text, has) in [
        ("d > 1.5", true),
        ("d > Infinity", true),
        ("d >= NaN", true),
        ("d <> 1", true),
        ("d < 1.5", false),
        ("d <= Infinity", false),
        ("d < NaN", false),
        ("d <> NaN", false),
    ] {
        assert_eq!(of(text).has_key(nan), has, "{text}");
    }
    assert_eq!(of("d < 1.5"), Ranges::of_keys(i128::MIN, super::double_key(1.5) - 1));
    assert_eq!(of("d <= 1e400"), Ranges::of_keys(i128::MIN, super::double_key(f64::MAX)));
}

#[test]
fn texts_and_bytes() {
    assert_eq!(
        compared("t", "'m'"),
        [r#"["m"]"#, r#"[.."m" 0x6d00..]"#, r#"[.."m"]"#, "[..0x6d00]", "[0x6d00..]", r#"["m"..]"#]
    );
    check(&[
        ("t = 'it''s'", r#"t ["it's"]"#),
        ("t = ''", r#"t [""]"#),
        ("t = ''''", r#"t ["'"]"#),
        ("t = $$it's $ ''$$", r#"t ["it's $ ''"]"#),
        ("t = ' ä '", r#"t [" ä "]"#),
        ("t < ''", "t []"),
        ("t >= ''", "t [all]"),
        ("t IN ('b', 'a', 'b')", r#"t ["a" "b"]"#),
        ("t BETWEEN 'a' AND 'b'", r#"t ["a"..0x6200]"#),
        ("e = 'a'", r#"e ["a"]"#),
        ("j > '{'", "j [0x7b00..]"),
        ("b = 0x", r#"b [""]"#),
        ("b = 0XCAFE", "b [0xcafe]"),
        ("b = 'it''s'", r#"b ["it's"]"#),
        ("b = '0xcafe'", r#"b ["0xcafe"]"#),
        ("fx = 'abcd'", r#"fx ["abcd"]"#),
        ("bs = '0xcafe'", "bs [0xcafe]"),
        ("b < 0x61", r#"b [.."a"]"#),
        ("bs = 0x05", "bs [0x05]"),
        ("fx = 0x61626364", r#"fx ["abcd"]"#),
        ("fx >= 0x61 AND fx < 0x62", r#"(fx ["a"..] and fx [.."b"])"#),
        ("geo = 0x01", "geo [0x01]"),
        ("geo NOT IN (0x61)", r#"geo [.."a" 0x6100..]"#),
        ("iv = 'P1DT1S'", "iv [0x0000000001000000e8030000]"),
        ("id = 61626364-6566-6768-696a-6b6c6d6e6f70", r#"id ["abcdefghijklmnop"]"#),
        ("id > 'E1626364-6566-6768-696A-6B6C6D6E6F70'", "id [0xe162636465666768696a6b6c6d6e6f7000..]"),
        ("id = e1626364-6566-6768-696a-6b6c6d6e6f70", "id [0xe162636465666768696a6b6c6d6e6f70]"),
    ]);
}

#[test]
fn like_is_for_beginnings() {
    check(&[
        ("t LIKE 'ab%'", r#"t ["ab".."ac"]"#),
        ("t LIKE 'ab%%'", r#"t ["ab".."ac"]"#),
        ("t NOT LIKE 'ab%'", r#"t [.."ab" "ac"..]"#),
        ("t LIKE '%'", "t [all]"),
        ("t LIKE 'ab'", r#"t ["ab"]"#),
        ("t LIKE ''", r#"t [""]"#),
        (r"t LIKE 'a\%'", r#"t ["a\\".."a]"]"#),
        ("t LIKE 'it''s%'", r#"t ["it's".."it't"]"#),
        ("tags LIKE 'a%'", r#"tags.list.element ["a".."b"]"#),
        ("tags NOT LIKE 'a%'", r#"∀tags.list.element [.."a" "b"..]"#),
        ("nothing LIKE 'a'", "nothing []"),
    ]);
    for (text, at, said) in [
        ("t LIKE 'a_b%'", 7..13, "_ stands for any character: only a % at the end is supported"),
        ("t LIKE '%a'", 7..11, "% stands for any text: only a % at the end is supported"),
        ("t LIKE 5", 7..8, "5 is not text; text is put in single quotes: '5'"),
        ("x LIKE '5%'", 2..6, "LIKE is for text, and x is an int"),
        ("b LIKE 0x61", 2..6, "LIKE is for text, and b is a blob"),
    ] {
        let error = failed(text);
        assert!(error.message.contains(said), "{text}: {}", error.message);
        assert_eq!(error.at, at, "{text}");
    }
}

#[test]
fn days_and_times() {
    assert_eq!(compared("dt", "'1970-01-03'"), ["[2]", "[..1 3..]", "[..1]", "[..2]", "[3..]", "[2..]"]);
    let noon = compared("dt", "'1970-01-03T12:00'");
    assert_eq!(noon, ["[]", "[all]", "[..2]", "[..2]", "[3..]", "[3..]"]);
    assert_eq!(
        compared("ts", "'1970-01-01T00:00:00.0005Z'"),
        ["[]", "[all]", "[..0]", "[..0]", "[1..]", "[1..]"]
    );
    assert_eq!(
        compared("ts", "'1969-12-31T23:59:59.9995Z'"),
        ["[]", "[all]", "[..-1]", "[..-1]", "[0..]", "[0..]"]
    );
    check(&[
        ("dt = '1969-12-31'", "dt [-1]"),
        ("dt = '1970-01-03T00:00:00'", "dt [2]"),
        ("dt < '+5881580-08-01'", "dt [..2147483667]"),
        ("t3 = '12:34:56.789'", "t3 [45296789]"),
        ("t3 = '12:34:56.7891'", "t3 []"),
        ("t3 <= '12:34:56.7891'", "t3 [..45296789]"),
        ("ut6 = '00:00:01Z'", "ut6 [1000000]"),
        ("ut6 = '00:01'", "ut6 [60000000]"),
        ("ts = '1970-01-02'", "ts [86400000]"),
        ("ts = '1970-01-01 01:00'", "ts [3600000]"),
        ("ts = '1970-01-01T01:00:00+01:00'", "ts [0]"),
        ("ts = 1234", "ts [1234]"),
        ("ts9 = 1234", "ts9 [1234000000]"),
        ("ts9 = -1", "ts9 [-1000000]"),
        ("ts9 > '2500-01-01'", "ts9 [16725225600000000001..]"),
        ("lt = 1", "lt [1000]"),
        ("lt = '1970-01-01T00:00:00.000001'", "lt [1]"),
        ("old = '1970-01-01T00:00:00.000000001'", "old [1]"),
        ("old < 1", "old [..999999]"),
    ]);
    for (text, at, said) in [
        ("dt = 5", 5..6, "5 is not a date; a date is written '2024-02-29'"),
        ("dt = '1970-01-03Z'", 5..18, "'1970-01-03Z' is not a date"),
        ("dt = '1970-01-03T00:00Z'", 5..24, "has a zone, and a date has none"),
        ("dt = '2023-02-29'", 5..17, "'2023-02-29' is not a date"),
        ("t3 < 5", 5..6, "5 is not a time(3); a time is written '12:34:56.789'"),
        ("t3 < '12:34:56Z'", 5..16, "has a zone, and a time(3) has none"),
        ("lt = '1970-01-01T00:00Z'", 5..24, "has a zone, and a localtimestamp(6) has none"),
        ("old = '1970-01-01T00:00+01'", 6..27, "has a zone, and an int96 has none"),
        (
            "ts = 1.5",
            5..8,
            "1.5 is not a timestamp(3); a point in time is written '2024-02-29T12:34:56Z', or",
        ),
        ("ts = 1e3", 5..8, "1e3 is not a timestamp(3)"),
        ("ts = '1e3'", 5..10, "'1e3' is not a timestamp(3)"),
        ("ts = 2024-02-29", 5..15, "dates and times are put in single quotes: '2024-02-29'"),
        ("ts = 2024-02-29T12:00:00.5Z", 5..27, "single quotes: '2024-02-29T12:00:00.5Z'"),
        ("t3 = 12:34:56", 5..13, "single quotes: '12:34:56'"),
    ] {
        let error = failed(text);
        assert!(error.message.contains(said), "{text}: {}", error.message);
        assert_eq!(error.at, at, "{text}");
    }
}

#[test]
fn booleans() {
    check(&[
        ("flag", "flag [1]"),
        ("NOT flag", "∀flag [..0 2..]"),
        ("flag AND NOT other", "(flag [1] and ∀other [..0 2..])"),
        ("flag = TRUE", "flag [1]"),
        ("false = flag", "flag [0]"),
        ("flag = 'True'", "flag [1]"),
        ("flag < true", "flag [..0]"),
        ("flags", "flags.list.element [1]"),
        ("NOT flags", "∀flags.list.element [..0 2..]"),
        ("flags = false", "flags.list.element [0]"),
    ]);
}

#[test]
fn nothing_equals_what_is_always_null() {
    check(&[
        ("nothing = 5", "nothing []"),
        ("nothing <> 'a'", "nothing []"),
        ("nothing < true", "nothing []"),
        ("nothing IN (0x00, 1)", "nothing []"),
        ("nothing BETWEEN 1 AND 2", "nothing []"),
        ("nothing IS NULL", "nothing null 0 1"),
    ]);
}

#[test]
fn literals_of_other_types() {
    for (text, at, said) in [
        ("x = 'abc'", 4..9, "'abc' is not an int"),
        ("big = true", 6..10, "true is not a bigint"),
        ("tiny IN (1, 0x02)", 12..16, "0x02 is not a tinyint"),
        ("u8 = NaN", 5..8, "NaN is not a uint8"),
        ("de < -Infinity", 5..14, "-Infinity is not a decimal(12, 2)"),
        ("d = 'much'", 4..10, "'much' is not a double"),
        ("f = 0x01", 4..8, "0x01 is not a float"),
        ("h = true", 4..8, "true is not a float16"),
        ("flag = 1", 7..8, "1 is not a boolean"),
        ("t = 5", 4..5, "5 is not text; text is put in single quotes: '5'"),
        ("e = true", 4..8, "true is not an enum"),
        ("b = 5", 4..5, "5 is not a blob; bytes are written 0x616263"),
        ("bs = 'abc'", 5..10, "'abc' is not a bson; bytes are written 0x616263"),
        ("fx = 5", 5..6, "5 is not a fixed(4); bytes are written 0x616263"),
        ("id = 0x00", 5..9, "0x00 is not a uuid; a UUID is written 550e"),
        ("iv = 'P'", 5..8, "'P' is not an interval; an interval is written 'P1M2DT3.004S'"),
        ("iv < 'P1D'", 3..4, "iv is an interval, which has no order: only =, <> and IN work"),
        ("'P1D' >= iv", 6..8, "iv is an interval, which has no order"),
        ("geo > 0x00", 4..5, "geo is a geometry, which has no order"),
        ("geo BETWEEN 0x00 AND 0x01", 4..11, "geo is a geometry, which has no order"),
        ("x = P1D", 4..7, "a literal (as text, 'P1D' in single quotes) is expected, not P1D"),
        ("x = 1d", 4..6, "1d is not a number"),
        ("x = 0x1", 4..7, "0x1 is not a blob: pairs of hexadecimal digits follow 0x"),
        ("x = NULL", 4..8, "a comparison with NULL is never true; IS NULL and IS NOT NULL are"),
        ("NULL = x", 0..4, "a comparison with NULL is never true"),
        ("x IN (1, NULL)", 9..13, "a comparison with NULL is never true"),
        ("nothing = NULL", 10..14, "a comparison with NULL is never true"),
    ] {
        let error = failed(text);
        assert!(error.message.contains(said), "{text}: {}", error.message);
        assert_eq!(error.at, at, "{text}");
    }
    let long = format!("x = '{}'", "1".repeat(20_000));
    assert!(failed(&long).message.ends_with("… is not an int"));
    let long = format!("x = {}", "1".repeat(20_000));
    assert_eq!(failed(&long).message, "a number of 20000 bytes, more than 16384");
    let long = format!("t = '{}'", "1".repeat(20_000));
    assert!(parsed(&long).starts_with("t [\"111"));
}
