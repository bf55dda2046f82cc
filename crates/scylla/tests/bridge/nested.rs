//! Nested columns: types, literals, cells, and what CQL cannot hold.

use marquetry_base::{Detail, ErrorKind};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::{
    ColumnSource, DuplicateKeys, Existing, Mapping, MappingOptions, NullElements,
};
use marquetry_scylla::cql::{CqlType, KeySpec, Name, TableName, TypeDef};

use crate::batch::{cell, keyed, mapping, numbered};
use crate::schema::{
    self, BYTE_ARRAY, Field, INT32, LIST, MAP, Note, UTF8, group, integer, leaf, list, logical, map,
    metadata, time,
};
use crate::shred::{Datum, batch, entries, items, text};

use Datum::{Group, Int, Null, Several};

fn int(name: &str) -> Field {
    leaf(name, INT32, Note::None)
}

fn string(name: &str) -> Field {
    leaf(name, BYTE_ARRAY, UTF8)
}

/// The literals of a batch's column after the row number, and its cells in hexadecimal digits.
#[track_caller]
fn check(mapping: &Mapping, batch: &Batch, expected: &[(&str, &str)]) {
    let statements: String = (0..)
        .zip(expected)
        .map(|(row, (literal, _))| match *literal {
            "" => format!("INSERT INTO t (n) VALUES ({row});\n"),
            literal => format!("INSERT INTO t (n, c) VALUES ({row}, {literal});\n"),
        })
        .collect();
    assert_eq!(crate::batch::text(mapping, batch).unwrap(), statements);
    for (row, (literal, digits)) in expected.iter().enumerate() {
        let cell = cell(mapping, 1, batch, row).unwrap();
        assert_eq!(cell.is_none(), literal.is_empty());
        let hex: String = cell.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, digits.replace(' ', ""), "{literal}");
    }
}

/// The column's type and the values of rows, whatever its spelling.
#[track_caller]
fn check_column(field: Field, options: &MappingOptions, cql: &str, rows: &[(Datum, &str, &str)]) {
    let fields = [field];
    let mapping = mapping(&fields, options).unwrap();
    assert_eq!(mapping.columns()[1].cql_type.to_string(), cql);
    let data: Vec<Vec<Datum>> = rows.iter().map(|(datum, ..)| vec![datum.clone()]).collect();
    let expected: Vec<(&str, &str)> = rows.iter().map(|(_, literal, digits)| (*literal, *digits)).collect();
    check(&mapping, &batch(&fields, &data), &expected);
}

const TWO: &str = "00000002  00000004 00000001  00000004 00000002";

#[test]
fn lists_in_every_spelling() {
    let options = numbered();
    let three_levels = || list("c", int("element"));
    check_column(
        three_levels(),
        &options,
        "list<int>",
        &[(items([Int(1), Int(2)]), "[1, 2]", TWO), (items([]), "[]", "00000000"), (Null, "", "")],
    );
    check_column(
        three_levels().required(),
        &MappingOptions { frozen: true, ..numbered() },
        "frozen<list<int>>",
        &[(items([Int(-1)]), "[-1]", "00000001 00000004 ffffffff")],
    );
    let two_levels = group("c", LIST, [int("array").repeated()]);
    let several = |numbers: &[i32]| Several(numbers.iter().copied().map(Int).collect());
    check_column(
        two_levels,
        &options,
        "list<int>",
        &[
            (Group(vec![several(&[1, 2])]), "[1, 2]", TWO),
            (Group(vec![several(&[])]), "[]", "00000000"),
            (Null, "", ""),
        ],
    );
    check_column(
        int("c").repeated(),
        &options,
        "list<int>",
        &[(several(&[1, 2]), "[1, 2]", TWO), (several(&[]), "[]", "00000000")],
    );
}

#[test]
fn sets_are_in_order_and_without_doubles() {
    let sets = |paths: &[&str]| MappingOptions {
        sets: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..numbered()
    };
    let rows = [
        (
            items([Int(2), Int(-1), Int(2), Int(1)]),
            "{-1, 1, 2}",
            "00000003  00000004 ffffffff  00000004 00000001  00000004 00000002",
        ),
        (items([Int(1), Int(2)]), "{1, 2}", TWO),
        (items([]), "{}", "00000000"),
        (Null, "", ""),
    ];
    for path in ["c", "C"] {
        check_column(list("c", int("element")), &sets(&[path]), "set<int>", &rows);
    }
    let of_lists = || list("c", list("element", int("element")));
    let twice = items([items([Int(1)]), items([]), items([Int(1)])]);
    check_column(
        of_lists(),
        &sets(&["c"]),
        "set<frozen<list<int>>>",
        &[(twice.clone(), "{[], [1]}", "00000002  00000004 00000000  0000000c 00000001 00000004 00000001")],
    );
    // The schema's own spellings work too, and only named lists are sets.
    for inner in ["c.element", "c.list.element"] {
        check_column(of_lists(), &sets(&[inner]), "list<frozen<set<int>>>", &[(Null, "", "")]);
    }
    let in_group = || list("c", list("element", group("element", Note::None, [list("tags", int("e"))])));
    for inner in ["c.tags", "c.element.element.tags", "C.List.element.list.element.tags"] {
        let mapping = mapping(&[in_group()], &sets(&[inner, "c.element"])).unwrap();
        assert_eq!(mapping.columns()[1].cql_type.to_string(), "list<frozen<set<frozen<t_c>>>>");
        assert_eq!(mapping.types()[0].fields[0].1.to_string(), "set<int>");
    }
    // Equal sets are equal, whatever their order in the file.
    let swapped = items([items([Int(2), Int(1)]), items([Int(1), Int(2)])]);
    check_column(
        of_lists(),
        &sets(&["c", "c.element"]),
        "set<frozen<set<int>>>",
        &[(swapped, "{{1, 2}}", "00000001  00000014 00000002 00000004 00000001 00000004 00000002")],
    );
    let error = mapping(&[of_lists(), int("d")], &sets(&["d"])).unwrap_err();
    let message = "\"d\" is to be a set, but no list is called so; there are c, c.element";
    assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::Misuse));
}

#[test]
fn maps_with_values_and_without() {
    let rows = [
        (
            entries([(text("b'"), Int(1)), (text("a"), Int(2))]),
            "{'a': 2, 'b''': 1}",
            "00000002  00000001 61 00000004 00000002  00000002 6227 00000004 00000001",
        ),
        (entries([]), "{}", "00000000"),
        (Null, "", ""),
    ];
    check_column(map("c", string("key").required(), int("value")), &numbered(), "map<text, int>", &rows);
    let keys = group("c", MAP, [group("map", Note::None, [int("key").required()]).repeated()]);
    let of = |keys: &[i32]| Group(vec![Several(keys.iter().map(|key| Group(vec![Int(*key)])).collect())]);
    check_column(keys, &numbered(), "set<int>", &[(of(&[2, 1]), "{1, 2}", TWO), (of(&[]), "{}", "00000000")]);
}

#[test]
fn groups_are_types_of_their_own() {
    let fields = [
        group(
            "Place",
            Note::None,
            [
                int("lat"),
                list(
                    "Stops",
                    group(
                        "element",
                        Note::None,
                        [string("select"), map("by day", int("key"), group("value", Note::None, [int("a")]))],
                    ),
                ),
            ],
        ),
        // Called as another would be.
        group("place_stops", Note::None, [int("a")]),
        group(
            "Zürich!",
            Note::None,
            [
                leaf("at", schema::INT64, time(8, true, 2)),
                group(
                    "v",
                    logical(16),
                    [
                        leaf("metadata", BYTE_ARRAY, Note::None).required(),
                        leaf("value", BYTE_ARRAY, Note::None),
                    ],
                ),
            ],
        ),
    ];
    let mapping = mapping(&fields, &numbered()).unwrap();
    let types: String = mapping.types().iter().map(ToString::to_string).collect();
    assert_eq!(
        types + &mapping.table().to_string(),
        "CREATE TYPE t_place_stops_by_day_value (\n    a int\n);\n\
         CREATE TYPE t_place_stops (\n    \"select\" text,\n    \"by day\" frozen<map<int, frozen<t_place_stops_by_day_value>>>\n);\n\
         CREATE TYPE t_place (\n    lat int,\n    \"Stops\" frozen<list<frozen<t_place_stops>>>\n);\n\
         CREATE TYPE t_place_stops_2 (\n    a int\n);\n\
         CREATE TYPE t_z_rich_ (\n    at bigint,\n    v text\n);\n\
         CREATE TABLE t (\n    n bigint,\n    \"Place\" t_place,\n    place_stops t_place_stops_2,\n    \"Zürich!\" t_z_rich_,\n    \
         PRIMARY KEY (n)\n) WITH comment = 'Microseconds since 1970-01-01 00:00: Zürich!.at. Variants as JSON: Zürich!.v.';\n"
    );
    assert_eq!(mapping.columns()[2].source, ColumnSource::Nested { node: 12, position: 4 });
    assert_eq!(mapping.leaves(), [0, 1, 2, 3, 4, 5, 6, 7]);

    let point = || group("c", Note::None, [int("x"), string("Y")]);
    check_column(
        point(),
        &numbered(),
        "t_c",
        &[
            (Group(vec![Int(1), text("a")]), "{x: 1, \"Y\": 'a'}", "00000004 00000001 00000001 61"),
            (Group(vec![Null, text("")]), "{x: null, \"Y\": ''}", "ffffffff 00000000"),
            (Group(vec![Null, Null]), "{x: null, \"Y\": null}", "ffffffff ffffffff"),
            (Null, "", ""),
        ],
    );
    // Then its leaves are flat, and nulls have slots.
    let row = |x: Datum, y: &str| Group(vec![x, text(y)]);
    check_column(
        point().required(),
        &MappingOptions { frozen: true, ..numbered() },
        "frozen<t_c>",
        &[
            (row(Null, "a"), "{x: null, \"Y\": 'a'}", "ffffffff 00000001 61"),
            (row(Int(2), ""), "{x: 2, \"Y\": ''}", "00000004 00000002 00000000"),
        ],
    );
}

#[test]
fn nested_keys_are_frozen() {
    let fields = [list("a", int("element")), group("b", Note::None, [string("x")]), int("c")];
    let by_both = mapping(&fields, &keyed("(a, b), c")).unwrap();
    let table = by_both.table().to_string();
    assert!(
        table.contains("a frozen<list<int>>,\n    b frozen<t_b>,\n    c int,\n    PRIMARY KEY ((a, b), c)"),
        "{table}"
    );
    let row = |a: Datum, x: &str| vec![a, Group(vec![text(x)]), Int(1)];
    let rows = batch(&fields, &[row(items([]), ""), row(Null, "x")]);
    let message = "a column of the primary key is null (column a, row 1001, row group 2)";
    assert_eq!(crate::batch::text(&by_both, &rows).unwrap_err().to_string(), message);
    assert_eq!(cell(&by_both, 0, &rows, 1).unwrap_err().to_string(), message);
    assert_eq!(cell(&by_both, 0, &rows, 0).unwrap(), Some(vec![0; 4]));
    // Its length is that of the servers' form: with four bytes for the text's length.
    let by_b = mapping(&fields, &keyed("b, c")).unwrap();
    let long = |length| batch(&fields, &[row(Null, &"x".repeat(length))]);
    assert!(crate::batch::text(&by_b, &long(65_531)).is_ok());
    let message = "a partition key of 65536 bytes, more than 65535 (column b, row 1000, row group 2)";
    assert_eq!(crate::batch::text(&by_b, &long(65_532)).unwrap_err().to_string(), message);
    assert_eq!(cell(&by_b, 1, &long(65_532), 0).unwrap_err().to_string(), message);
}

/// Text and cells are refused alike.
#[track_caller]
fn refused(fields: &[Field], options: &MappingOptions, data: Datum, kind: ErrorKind, message: &str) {
    let mapping = mapping(fields, options).unwrap();
    let rows = batch(fields, &[vec![Null], vec![data]]);
    for error in [crate::batch::text(&mapping, &rows).unwrap_err(), cell(&mapping, 1, &rows, 1).unwrap_err()]
    {
        assert_eq!((error.to_string().as_str(), error.kind()), (message, kind));
    }
}

#[test]
fn nulls_that_cql_cannot_hold() {
    use ErrorKind::Conversion;
    let cannot = "which CQL cannot hold; it can be left out with --null-elements drop";
    let drop = MappingOptions { null_elements: NullElements::Drop, ..numbered() };
    let lists = list("c", group("element", Note::None, [list("tags", int("element"))]));
    let tags = |tags: &[Datum]| items([Group(vec![Null]), Group(vec![items(tags.to_vec())])]);
    let message = format!("a null in a list, {cannot} (column c[1].tags[2], row 1001, row group 2)");
    let bad = tags(&[Int(1), Int(2), Null]);
    refused(std::slice::from_ref(&lists), &numbered(), bad.clone(), Conversion, &message);
    let cells = "00000002  00000004 ffffffff  00000018 00000014 00000002 00000004 00000001 00000004 00000002";
    check_column(lists, &drop, "list<frozen<t_c>>", &[(bad, "[{tags: null}, {tags: [1, 2]}]", cells)]);

    let map_of = || map("c", int("key"), list("value", int("element")));
    let bad = [(Int(1), Null), (Null, items([])), (Int(2), items([Null, Int(3)]))];
    for (first, part, path) in
        [(0, "a map's values", "[0].value"), (1, "a map's keys", "[0].key"), (2, "a list", "[0].value[0]")]
    {
        let message = format!("a null in {part}, {cannot} (column c{path}, row 1001, row group 2)");
        refused(&[map_of()], &numbered(), entries(bad[first..].to_vec()), Conversion, &message);
    }
    let cell = "00000001  00000004 00000002  0000000c 00000001 00000004 00000003";
    check_column(map_of(), &drop, "map<int, frozen<list<int>>>", &[(entries(bad), "{2: [3]}", cell)]);

    let set = |options: MappingOptions| MappingOptions { sets: vec!["c".to_owned()], ..options };
    let message = format!("a null in a set, {cannot} (column c[1], row 1001, row group 2)");
    refused(&[list("c", int("e"))], &set(numbered()), items([Int(1), Null]), Conversion, &message);
    let one = "00000001 00000004 00000001";
    check_column(list("c", int("e")), &set(drop), "set<int>", &[(items([Null, Int(1), Null]), "{1}", one)]);
}

#[test]
fn equal_keys() {
    use ErrorKind::Conversion;
    let field = || map("c", string("key"), int("value"));
    let rows = [
        (text("b"), Int(1)),
        (text("it's"), Int(2)),
        (text("a"), Int(3)),
        (text("it's"), Int(4)),
        (text("b"), Int(5)),
    ];
    let message = "the key 'it''s' stands in the map at 1 already; its last entry can be taken with --duplicate-keys last \
                   (column c[3].key, row 1001, row group 2)";
    refused(&[field()], &numbered(), entries(rows.clone()), Conversion, message);
    let last = MappingOptions { duplicate_keys: DuplicateKeys::Last, ..numbered() };
    let cell = "00000003  00000001 61 00000004 00000003  00000001 62 00000004 00000005  00000004 69742773 00000004 00000004";
    check_column(field(), &last, "map<text, int>", &[(entries(rows), "{'a': 3, 'b': 5, 'it''s': 4}", cell)]);
    // A null leaves the entry before it as it was.
    let both = MappingOptions { null_elements: NullElements::Drop, ..last };
    let rows = entries([(text("a"), Int(1)), (text("a"), Null)]);
    let cell = "00000001  00000001 61 00000004 00000001";
    check_column(field(), &both, "map<text, int>", &[(rows, "{'a': 1}", cell)]);
    // Keys are compared in their CQL form, sets and maps included, and the message about a long one is short.
    let sets = MappingOptions { sets: vec!["c.key".to_owned()], ..numbered() };
    let keys = [[1, 2], [2, 1]].map(|key| (items(key.map(Int)), Int(0)));
    let message = "the key {1, 2} stands in the map at 0 already; its last entry can be taken with --duplicate-keys last \
                   (column c[1].key, row 1001, row group 2)";
    refused(
        &[map("c", list("key", int("element")), int("value"))],
        &sets,
        entries(keys),
        Conversion,
        message,
    );
    let long = text(&"é".repeat(1000));
    let message = format!(
        "the key '{}… stands in the map at 0 already; its last entry can be taken with --duplicate-keys last \
         (column c[1].key, row 1001, row group 2)",
        "é".repeat(99)
    );
    refused(&[field()], &numbered(), entries([(long.clone(), Int(1)), (long, Int(1))]), Conversion, &message);
    // Very many keys are fast: the work is not quadratic.
    let many = (0..200_000).map(|number| (text(&format!("{}", number * 7919 % 200_000)), Int(number)));
    let fields = [field()];
    let many = batch(&fields, &[vec![entries(many)]]);
    let printed = crate::batch::text(&mapping(&fields, &numbered()).unwrap(), &many).unwrap();
    assert_eq!(printed.matches(": ").count(), 200_000);
}

#[test]
fn values_in_collections_are_checked_as_columns_are() {
    use ErrorKind::Conversion;
    let tiny = list("c", leaf("element", INT32, integer(8, true)));
    let message = "300 is outside of the range of its type, INT(8) (column c[1], row 1001, row group 2)";
    refused(&[tiny], &numbered(), items([Int(1), Int(300)]), Conversion, message);
    let texts = map("c", string("key"), string("value"));
    let bad = entries([(text("a"), text("b")), (text("b"), Datum::Bytes(b"x\xff".to_vec()))]);
    let message = "text that is not UTF-8: the byte 0xff at 1 (column c[1].value, row 1001, row group 2)";
    refused(&[texts], &numbered(), bad, Conversion, message);
    let unknown = list("c", leaf("element", INT32, logical(11)));
    let message =
        "a value in a column of the type UNKNOWN, which is always null (column c[0], row 1001, row group 2)";
    refused(&[unknown], &numbered(), items([Int(1)]), Conversion, message);
}

#[test]
fn columns_that_cannot_be() {
    use ErrorKind::{Conversion, Misuse, Unsupported};
    #[track_caller]
    fn wrong(field: Field, options: &MappingOptions, kind: ErrorKind, message: &str) {
        let error = mapping(&[int("k"), field], options).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (message, kind));
    }
    let interval = |name: &str| leaf(name, schema::fixed(12), Note::Converted(21));
    let sets = MappingOptions { sets: vec!["c".to_owned()], ..numbered() };
    wrong(list("c", interval("e")), &sets, Conversion, "CQL allows no duration in a set (column c.element)");
    let in_map = map("c", interval("key"), int("value"));
    wrong(in_map, &numbered(), Conversion, "CQL allows no duration as the key of a map (column c.key)");
    // Nested more deeply it is allowed, but not in the primary key.
    let wrapped = || list("c", group("element", Note::None, [interval("waits")]));
    assert!(mapping(&[int("k"), wrapped()], &sets).is_ok());
    let message = "c cannot be in the key: it has durations, which have no order";
    wrong(wrapped(), &keyed("k, c"), Misuse, message);
    let empty = list("c", group("element", Note::None, []));
    let message = "a group without fields, of which no column tells anything (column c.element)";
    wrong(empty, &numbered(), Unsupported, message);
    let twice = group("c", Note::None, [int("a"), group("d", Note::None, [int("x"), int("x")])]);
    wrong(twice, &numbered(), Conversion, "two fields of the group are called \"x\" (column c.d)");
    let nameless = group("c", Note::None, [int("a"), int("")]);
    let message = "CQL cannot have the name of field 2 of the group: a name is empty (column c)";
    wrong(nameless, &numbered(), Conversion, message);
    let deep = (0..17).fold(int("x"), |inner, _| list("c", inner));
    let message = "types more than 32 deep in each other, with what is frozen counted twice";
    let error = mapping(&[deep], &numbered()).unwrap_err();
    assert_eq!((error.message(), error.kind()), (message, Unsupported));
    let deep = (0..16).fold(int("x"), |inner, _| list("c", inner));
    let cql_type = mapping(&[deep], &numbered()).unwrap().columns()[1].cql_type.to_string();
    assert!(CqlType::parse(&cql_type).is_ok(), "{cql_type}");
    let odd = group("c", LIST, [int("a"), int("b")]);
    wrong(odd, &numbered(), ErrorKind::Corrupt, "a LIST that is not one repeated field (column c)");
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// An existing table with a column `c`.
fn existing(cql_type: &str, types: &[(&str, &[(&str, &str)])]) -> MappingOptions {
    let type_def = |(of, fields): &(&str, &[(&str, &str)])| TypeDef {
        keyspace: None,
        name: name(of),
        if_not_exists: false,
        fields: fields.iter().map(|(of, it)| (name(of), CqlType::parse(it).unwrap())).collect(),
    };
    let columns = vec![(name("n"), CqlType::Bigint), (name("c"), CqlType::parse(cql_type).unwrap())];
    MappingOptions {
        existing: Some(Existing {
            columns,
            types: types.iter().map(type_def).collect(),
            ..Existing::default()
        }),
        ..numbered()
    }
}

#[test]
fn a_table_that_is_there_decides() {
    let rows = [(items([Int(2), Int(1), Int(2)]), "{1, 2}", TWO)];
    for cql_type in ["set<int>", "frozen<set<int>>"] {
        check_column(list("c", int("element")), &existing(cql_type, &[]), cql_type, &rows);
    }
    let keys = group("c", MAP, [group("map", Note::None, [int("key").required()]).repeated()]);
    let of = |keys: &[i32]| Group(vec![Several(keys.iter().map(|key| Group(vec![Int(*key)])).collect())]);
    check_column(keys, &existing("list<int>", &[]), "list<int>", &[(of(&[1, 2]), "[1, 2]", TWO)]);
    let types: &[(&str, &[(&str, &str)])] =
        &[("p", &[("y", "text"), ("more", "int"), ("x", "set<int>")]), ("unused", &[("a", "int")])];
    let point = || list("c", group("element", Note::None, [list("x", int("e")), string("y")]));
    let options = existing("list<frozen<p>>", types);
    let cell = "00000001  00000019  00000001 61  ffffffff  0000000c 00000001 00000004 00000007";
    let row = items([Group(vec![items([Int(7), Int(7)]), text("a")])]);
    check_column(point(), &options, "list<frozen<p>>", &[(row, "[{y: 'a', more: null, x: {7}}]", cell)]);
    let mapping = mapping(&[point()], &options).unwrap();
    assert_eq!(mapping.types().len(), 1);
    assert_eq!(
        mapping.types()[0].to_string(),
        "CREATE TYPE p (\n    y text,\n    more int,\n    x frozen<set<int>>\n);\n"
    );

    let refused = |cql_type: &str, types, message: &str| {
        let schema = &metadata(&[point()]).schema;
        let error =
            Mapping::new(schema, TableName::parse("t").unwrap(), &existing(cql_type, types)).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::Conversion));
    };
    refused("map<int, int>", &[], "the table has map<int, int> there, the values are a list (column c)");
    refused("list<int>", &[], "the table has int there, the values are a group (column c.element)");
    let of_map = "the table has map<text, int> there, the values are a group: the objects of JSON are maps where their type says so";
    refused("list<frozen<map<text, int>>>", &[], &format!("{of_map} (column c.element)"));
    refused("set<frozen<p>>", &[], "the keyspace does not have the type p (column c.element)");
    refused(
        "list<frozen<p>>",
        &[("p", &[("x", "list<int>")])],
        "the type p of the table has no field y (column c.element)",
    );
    let types: &[(&str, &[(&str, &str)])] = &[("p", &[("y", "set<int>"), ("x", "list<int>")])];
    let message = "the table has set<int> there, the values are text (column c.element.y)";
    refused("list<frozen<p>>", types, message);
}

/// What is in collections is converted as columns are, and is in the order of the table's type then.
#[test]
fn elements_have_the_tables_types() {
    let long = "a".repeat(200);
    let (printed_long, cell_long) = (format!("['{long}', '']"), format!("80c8 {} 00", "61".repeat(200)));
    let check = |field, cql_type, row, printed, cell| {
        check_column(field, &existing(cql_type, &[]), cql_type, &[(row, printed, cell)]);
    };
    let numbers = || items([Int(2), Int(-1)]);
    let cell = "00000002  00000002 ffff  00000002 0002";
    check(list("c", int("element")), "set<smallint>", numbers(), "{-1, 2}", cell);
    let cell = "00000002  00000001 ff  00000001 02";
    check(list("c", int("element")), "set<varint>", numbers(), "{-1, 2}", cell);
    let texts = items([text("10.0.0.1"), text("::1"), text("9.0.0.1")]);
    let cell = "00000003  00000010 00000000000000000000000000000001  00000004 09000001  00000004 0a000001";
    check(list("c", string("element")), "set<inet>", texts, "{'::1', '9.0.0.1', '10.0.0.1'}", cell);
    let cell = "3f800000 c0000000";
    let vector = "vector<float, 2>";
    check(list("c", int("element")), vector, items([Int(1), Int(-2)]), "[1.0, -2.0]", cell);
    let refused = |datum: Datum| {
        let fields = [list("c", int("element"))];
        let mapping = mapping(&fields, &existing(vector, &[])).unwrap();
        crate::batch::cell(&mapping, 1, &batch(&fields, &[vec![datum]]), 0).unwrap_err().to_string()
    };
    let row = "(column c, row 1000, row group 2)";
    assert_eq!(refused(items([Int(1)])), format!("a vector has 2 elements, and the list 1 {row}"));
    let null = "a null in a vector, which CQL cannot hold (column c[1], row 1000, row group 2)";
    assert_eq!(refused(items([Int(1), Null])), null);
    // Elements whose length differs have it before them, as vectors have it.
    let row = items([text(&long), text("")]);
    check(list("c", string("element")), "vector<text, 2>", row, &printed_long, &cell_long);
    let row = items([Int(1), Int(-2)]);
    check(list("c", int("element")), "vector<smallint, 2>", row, "[1, -2]", "02 0001 02 fffe");
    let row = items([items([Int(1), Int(2)]), items([Int(3), Int(4)])]);
    let of_vectors = || list("c", list("element", int("element")));
    let printed = "[[1, 2], [3, 4]]";
    let cell = "00000001 00000002 00000003 00000004";
    check(of_vectors(), "vector<vector<int, 2>, 2>", row, printed, cell);
    let row = items([items([Int(1)]), items([])]);
    let cell = "0c 00000001 00000004 00000001 04 00000000";
    check(of_vectors(), "vector<frozen<list<int>>, 2>", row, "[[1], []]", cell);
    // Decimals by what they are worth: of 1.5 and 1.50 the first is kept.
    let row = items([text("1.5"), text("-2"), text("1.50"), text("1E-3")]);
    let printed = "{-2, 0.001, 1.5}";
    let cell = "00000003  00000005 00000000 fe  00000005 00000003 01  00000005 00000001 0f";
    check(list("c", string("element")), "set<decimal>", row, printed, cell);
}

/// A group that a `SELECT` of a tuple became is that tuple again; one of months, days and nanoseconds is a duration.
#[test]
fn tuples_and_durations_are_groups() {
    let check = |field, cql_type, rows: &[(Datum, &str, &str)]| {
        check_column(field, &existing(cql_type, &[]), cql_type, rows);
    };
    let pair = || group("c", Note::None, [int("_0"), string("_1")]);
    let rows = [
        (Group(vec![Int(1), text("b'")]), "(1, 'b''')", "00000004 00000001  00000002 6227"),
        (Group(vec![Null, text("")]), "(null, '')", "ffffffff  00000000"),
        (Group(vec![Null, Null]), "(null, null)", "ffffffff ffffffff"),
        (Null, "", ""),
    ];
    for cql_type in ["tuple<int, text>", "frozen<tuple<int, text>>"] {
        check(pair(), cql_type, &rows);
    }
    // In any order; those that the group lacks at its end are null; elements have the table's types.
    let swapped = group("c", Note::None, [string("_1"), int("_0")]);
    let row = (Group(vec![text("2"), Int(1)]), "(1, 2, null)", "00000001 01  00000005 00000000 02  ffffffff");
    check(swapped, "tuple<tinyint, decimal, blob>", &[row]);
    // In everything, and everything in it.
    let of_tuples =
        list("c", group("element", Note::None, [int("_0"), list("_1", group("e", Note::None, [int("_0")]))]));
    let row = items([Group(vec![Int(1), items([Group(vec![Int(2)])])]), Group(vec![Int(-1), Null])]);
    let cell = "00000002  0000000c 00000004 ffffffff ffffffff
        0000001c 00000004 00000001 00000010 00000001 00000008 00000004 00000002";
    let cql_type = "set<frozen<tuple<int, frozen<list<frozen<tuple<int>>>>>>>";
    check(of_tuples, cql_type, &[(row, "{(-1, null), (1, [(2)])}", &cell.replace('\n', ""))]);
    let types: &[(&str, &[(&str, &str)])] = &[("p", &[("t", "frozen<tuple<int, text>>"), ("d", "duration")])];
    let parts = || [int("months"), int("days"), int("nanoseconds")].map(Field::required);
    let fields = [group("t", Note::None, [int("_0"), string("_1")]), group("d", Note::None, parts())];
    let row = Group(vec![Group(vec![Int(1), Null]), Group(vec![Int(-1), Int(0), Int(-1)])]);
    check_column(
        group("c", Note::None, fields),
        &existing("p", types),
        "p",
        &[(row, "{t: (1, null), d: -1mo1ns}", "0000000c 00000004 00000001 ffffffff  00000003 01 00 01")],
    );
    let months = |months, days, nanos| Group(vec![Int(months), Int(days), Int(nanos)]);
    check(
        group("c", Note::None, parts()),
        "duration",
        &[
            (months(14, 2, 3), "14mo2d3ns", "1c 04 06"),
            (months(0, 0, -3), "-3ns", "00 00 05"),
            (Null, "", ""),
        ],
    );
    let of_durations = list("c", group("element", Note::None, parts()));
    check(
        of_durations,
        "list<duration>",
        &[(items([months(1, 0, 0)]), "[1mo]", "00000001 00000003 02 00 00")],
    );

    let refused = |field: Field, cql_type: &str, message: &str| {
        let schema = &metadata(&[field]).schema;
        let error =
            Mapping::new(schema, TableName::parse("t").unwrap(), &existing(cql_type, &[])).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::Conversion));
    };
    let message = "the table has tuple<int> there, whose members are called _0 to _0; the group has a field \"_1\" (column c)";
    refused(pair(), "tuple<int>", message);
    // What counts from one is not moved by one member.
    let message = "the group lacks _0, and has members of a tuple after it (column c)";
    refused(group("c", Note::None, [int("_1"), string("_2")]), "tuple<text, int, text>", message);
    let message = "the table has tuple<int, int> there, whose members are called _0 to _1; the group has a field \"_01\" (column c)";
    refused(group("c", Note::None, [int("_0"), int("_01")]), "tuple<int, int>", message);
    let message = "the table has uuid there, the values are int (column c._0)";
    refused(group("c", Note::None, [int("_0")]), "tuple<uuid>", message);
    let others = "of others than months, days and nanoseconds (column c)";
    let message = format!("the table has duration there, the values are a group {others}");
    refused(pair(), "duration", &message);
    refused(group("c", Note::None, [int("months"), int("days")]), "duration", &message);
    refused(
        group("c", Note::None, [int("months"), int("days"), string("nanoseconds")]),
        "duration",
        &message,
    );
    let fields = [group("c", Note::None, parts())];
    let mapping = mapping(&fields, &existing("duration", &[])).unwrap();
    let batch = batch(&fields, &[vec![months(1, -1, 0)]]);
    let error = crate::batch::cell(&mapping, 1, &batch, 0).unwrap_err();
    let message = "a duration of 1 months, -1 days and 0 ns, which have not all one sign (column c, row 1000, row group 2)";
    assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::Conversion));
}

/// All mismatches with an existing table are reported together, wherever they are.
#[test]
fn all_misfits_are_said_at_once() {
    let schema = metadata(&[
        int("flat"),
        string("fine"),
        string("nowhere"),
        group("c", Note::None, [int("a"), list("b", int("e")), list("x", int("e")), string("fine")]),
        list("deep", map("element", string("key"), int("value"))),
    ]);
    let mut options = existing("p", &[("p", &[("a", "boolean"), ("b", "map<int, int>"), ("fine", "text")])]);
    let type_of = |text: &str| CqlType::parse(text).unwrap();
    let there = options.existing.as_mut().unwrap();
    there.columns[0].1 = CqlType::Int;
    there.columns.extend(
        [("flat", "date"), ("fine", "text"), ("deep", "set<frozen<map<text, uuid>>>")]
            .map(|(of, it)| (name(of), type_of(it))),
    );
    options.key = Some(KeySpec::parse("fine, gone, n, away").unwrap());
    let error = Mapping::new(&schema.schema, TableName::parse("t").unwrap(), &options).unwrap_err();
    let expected = [
        "missing from the table: nowhere",
        "the table has int there, the values are bigint (column n)",
        "the table has date there, the values are int (column flat)",
        "the type p of the table has no field x (column c)",
        "the table has boolean there, the values are int (column c.a)",
        "the table has map<int, int> there, the values are a list (column c.b)",
        "the table has uuid there, the values are int (column deep.element.value)",
        "the rows have no column \"gone\", which is in the table's primary key",
        "the rows have no column \"away\", which is in the table's primary key",
    ];
    assert_eq!(error.to_string(), expected.join("; "));
    assert_eq!(error.kind(), ErrorKind::Conversion);
    // Integers are no timestamps until somebody says what they count.
    let integers = std::sync::Arc::clone(&metadata(&[int("c")]).schema);
    let error =
        Mapping::new(&integers, TableName::parse("t").unwrap(), &existing("timestamp", &[])).unwrap_err();
    let said = "the table has timestamp there, the values are int, which do not say their unit: timestamp is of milliseconds";
    assert!(error.message().contains(said), "{error}");
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["types"])));
    // Of many, the first ones.
    let many: Vec<_> = (0..300).map(|at| int(&format!("c{at}"))).collect();
    let error = Mapping::new(&metadata(&many).schema, TableName::parse("t").unwrap(), &options).unwrap_err();
    assert!(error.message().contains("c18, c19, and 280 more; the table has int there"), "{error}");
}

#[test]
fn many_columns_and_fields_are_no_trouble() {
    let fields: Vec<Field> = (0..2000).map(|at| list(&format!("c{at}"), int("e"))).collect();
    let mapping = mapping(&fields, &numbered()).unwrap();
    assert_eq!(mapping.leaves().len(), 2000);
    let row = (0..2000).map(|at| items([Int(at)])).collect();
    let printed = crate::batch::text(&mapping, &batch(&fields, &[row])).unwrap();
    assert!(printed.ends_with("[1998], [1999]);\n"));
    // Names that differ only in characters that a type's name cannot have.
    let fields: Vec<Field> = (0..3000).map(|at| group(&"é".repeat(at + 1), Note::None, [int("e")])).collect();
    let mapping = crate::batch::mapping(&fields, &numbered()).unwrap();
    let names: std::collections::BTreeSet<&Name> = mapping.types().iter().map(|it| &it.name).collect();
    assert_eq!(names.len(), 3000);
}

#[test]
fn batches_of_another_shape() {
    let fields = [list("c", int("e"))];
    let mapping = mapping(&fields, &numbered()).unwrap();
    let fine = batch(&fields, &[vec![items([Int(1)])]]);
    let mut other = fine.clone();
    other.columns[0].leaf = 7;
    let error = mapping.assemble(other).unwrap_err();
    assert_eq!(error.to_string(), "the batch lacks leaves of Mapping::leaves (column c, row group 2)");
    let mut cut = fine.clone();
    cut.columns[0].levels.as_mut().unwrap().definition = vec![2_u8].into();
    let error = mapping.assemble(cut).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.place().column.as_deref(), Some("c.list.element"));
}
