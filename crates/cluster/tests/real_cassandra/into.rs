//! Rows into tables that are there, whose types are others than the rows'.

use marquetry_base::ErrorKind;
use marquetry_cluster::{CqlOptions, CqlTable};
use scylla::value::{CqlValue, CqlVarint};

use crate::made::{Cell, Made, int, text};
use crate::server::Server;

pub(crate) fn all(server: &Server) {
    text_is_read_by_the_tables_types(server);
    numbers_fit_or_are_told(server);
    bytes_are_text_if_they_are(server);
    types_of_keys_are_converted(server);
}

fn table(server: &Server, name: &str) -> CqlTable {
    CqlTable::new(server.address(name), CqlOptions::default())
}

/// What plain CQL inserts and what is loaded from the same text are the same.
fn text_is_read_by_the_tables_types(server: &Server) {
    let values = [
        ("v_asc", "ascii", "it is", "'it is'"),
        ("v_big", "bigint", "-9223372036854775808", "-9223372036854775808"),
        ("v_blo", "blob", "0xCAfe", "0xCAfe"),
        ("v_boo", "boolean", "TRUE", "TRUE"),
        ("v_dat", "date", "2024-02-29", "'2024-02-29'"),
        ("v_dec", "decimal", "-12.50e3", "-12.50e3"),
        ("v_dou", "double", "1e-3", "1e-3"),
        ("v_dur", "duration", "1y2mo3w4d5h6m7s8ms9us10ns", "1y2mo3w4d5h6m7s8ms9us10ns"),
        ("v_flo", "float", "0.1", "0.1"),
        ("v_ine", "inet", "2001:db8::1", "'2001:db8::1'"),
        ("v_int", "int", "2147483647", "2147483647"),
        ("v_sma", "smallint", "-32768", "-32768"),
        ("v_tim", "time", "01:02:03.000000004", "'01:02:03.000000004'"),
        ("v_tis", "timestamp", "2024-02-29T12:00:00.123+01:00", "'2024-02-29T12:00:00.123+0100'"),
        ("v_tiu", "timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
        ("v_tin", "tinyint", "-128", "-128"),
        ("v_uui", "uuid", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174000"),
        ("v_var", "varint", "-123456789012345678901234567890", "-123456789012345678901234567890"),
    ];
    let columns: Vec<String> = values.iter().map(|(name, it, ..)| format!("{name} {it}")).collect();
    server.run(&format!("CREATE TABLE cluster_test.of_text (k int PRIMARY KEY, {})", columns.join(", ")));
    let names: Vec<&str> = values.iter().map(|(name, ..)| *name).collect();
    let literals: Vec<&str> = values.iter().map(|(.., literal)| *literal).collect();
    server.run(&format!(
        "INSERT INTO cluster_test.of_text (k, {}) VALUES (1, {})",
        names.join(", "),
        literals.join(", ")
    ));
    let columns: Vec<(&str, &str)> =
        [("k", "text")].into_iter().chain(names.iter().map(|name| (*name, "text"))).collect();
    let row: Vec<Cell> =
        [text(" 2")].into_iter().chain(values.iter().map(|(_, _, value, _)| text(value))).collect();
    assert_eq!(Made::new(&columns, [row]).load(&mut table(server, "of_text")).1, Ok(1));
    let mut rows = server.select("SELECT * FROM cluster_test.of_text");
    assert_eq!(rows.len(), 2);
    for row in &mut rows {
        row.remove("k");
        assert!(row.values().all(Option::is_some), "{row:?}");
    }
    assert_eq!(rows[0], rows[1]);
}

fn numbers_fit_or_are_told(server: &Server) {
    server.run("CREATE TABLE cluster_test.narrow (k int PRIMARY KEY, a tinyint, b varint, c text, d float)");
    let columns = [("k", "bigint"), ("a", "int"), ("b", "bigint"), ("c", "int"), ("d", "int")];
    let row = |k: i64, a: i32| vec![Cell::Big(k), int(a), Cell::Big(-1 << 40), int(7), int(1 << 20)];
    let made = Made::new(&columns, [row(1, 127)]);
    assert_eq!(made.load(&mut table(server, "narrow")).1, Ok(1));
    let read = server.select("SELECT * FROM cluster_test.narrow").remove(0);
    assert_eq!(read["a"], Some(CqlValue::TinyInt(127)));
    let number = CqlVarint::from_signed_bytes_be(vec![0xff, 0, 0, 0, 0, 0]);
    assert_eq!(read["b"], Some(CqlValue::Varint(number)));
    assert_eq!(read["c"], Some(CqlValue::Text("7".to_owned())));
    assert_eq!(read["d"], Some(CqlValue::Float(1_048_576.0)));
    let made = Made::new(&columns, [row(2, 0), row(3, 128)]);
    let (loaded, ended) = made.load(&mut table(server, "narrow"));
    let error = ended.unwrap_err();
    assert_eq!((loaded.rows, error.kind()), (1, ErrorKind::Conversion));
    let told = "128 does not fit the table's type there, tinyint (column a, row 1, made 0)";
    assert_eq!(error.to_string(), told);
    let (_, ended) = Made::new(&columns, [row(1 << 31, 0)]).load(&mut table(server, "narrow"));
    assert!(ended.unwrap_err().to_string().contains("(column k, row 0"));
}

/// What is not UTF-8 is told before a server would refuse it.
fn bytes_are_text_if_they_are(server: &Server) {
    server.run("CREATE TABLE cluster_test.of_bytes (k int PRIMARY KEY, v text)");
    let columns = [("k", "int"), ("v", "blob")];
    let row = |k: i32, v: &[u8]| vec![int(k), Cell::Bytes(v.to_vec())];
    let made = Made::new(&columns, [row(1, "é".as_bytes()), row(2, b"not \xff UTF-8")]);
    let (loaded, ended) = made.load(&mut table(server, "of_bytes"));
    let error = ended.unwrap_err();
    assert_eq!((loaded.rows, error.kind()), (1, ErrorKind::Conversion), "{error}");
    assert!(error.to_string().contains("(column v, row 1, made 0)"), "{error}");
    assert_eq!(server.value("SELECT v FROM cluster_test.of_bytes"), Some(CqlValue::Text("é".to_owned())));
}

/// The partition key of a row decides where it goes: it is that of the converted value.
fn types_of_keys_are_converted(server: &Server) {
    server.run("CREATE TABLE cluster_test.keyed (k inet, c timeuuid, v counter, PRIMARY KEY (k, c))");
    server
        .run("CREATE TABLE cluster_test.keyed2 (k varint, c smallint, v set<bigint>, PRIMARY KEY ((k, c)))");
    let columns = [("k", "text"), ("c", "bigint")];
    let rows = (0..500).map(|row| vec![text(&format!("{row}")), Cell::Big(row)]);
    assert_eq!(Made::new(&columns, rows).load(&mut table(server, "keyed2")).1, Ok(500));
    for row in [0, 1, 127, 128, 255, 256, 499] {
        let found =
            server.select(&format!("SELECT c FROM cluster_test.keyed2 WHERE k = {row} AND c = {row}"));
        assert_eq!(found.len(), 1, "{row}");
    }
    // Counters are refused before anything is sent.
    let columns = [("k", "text"), ("c", "text"), ("v", "int")];
    let row = vec![text("::1"), text("50554d6e-29bb-11e5-b345-feff819cdc9f"), int(3)];
    let error = Made::new(&columns, [row.clone()]).load(&mut table(server, "keyed")).1.unwrap_err();
    assert!(error.to_string().starts_with("v is a counter: "), "{error}");
    let mut options = CqlOptions::default();
    options.counters_at_least_once = true;
    let rows = [row.clone(), row.clone(), vec![row[0].clone(), row[1].clone(), Cell::Null]];
    let mut table = CqlTable::new(server.address("keyed"), options.clone());
    assert_eq!(Made::new(&columns, rows).load(&mut table).1, Ok(3));
    let found = server.select("SELECT v FROM cluster_test.keyed WHERE k = '::1'");
    assert_eq!(found[0]["v"], Some(CqlValue::Counter(scylla::value::Counter(6))));
    // Those of a partition would be added once a row.
    server.run("CREATE TABLE cluster_test.keyed3 (k inet, c timeuuid, s counter static, v counter, PRIMARY KEY (k, c))");
    let columns_with = [("k", "text"), ("c", "text"), ("s", "int"), ("v", "int")];
    let row_with = vec![row[0].clone(), row[1].clone(), int(7), int(3)];
    let mut table = CqlTable::new(server.address("keyed3"), options.clone());
    let error = Made::new(&columns_with, [row_with]).load(&mut table).1.unwrap_err();
    assert!(error.to_string().starts_with("s is a static counter"), "{error}");
    let mut table = CqlTable::new(server.address("keyed3"), options.clone());
    assert_eq!(Made::new(&columns, [row.clone()]).load(&mut table).1, Ok(1));
    options.ttl = Some("60".parse().unwrap());
    let mut table = CqlTable::new(server.address("keyed"), options);
    let error = Made::new(&columns, [row]).load(&mut table).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
}
