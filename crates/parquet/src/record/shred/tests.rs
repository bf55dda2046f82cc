use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use marquetry_base::ErrorKind;

use super::*;
use crate::batch::Values;
use crate::schema::{FieldDef, FieldType, LogicalType, PhysicalType};

fn leaf(name: &str, physical_type: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical_type, None))
}

fn list(name: &str, element: FieldDef) -> FieldDef {
    FieldDef::new(name, FieldType::List(Box::new(element)))
}

fn shredder(fields: &[FieldDef]) -> Shredder {
    let schema = Arc::new(Schema::of_fields(fields).unwrap());
    Shredder::plan(schema, None, ShredOptions::default()).at_once().unwrap()
}

fn take(shredder: &mut Shredder) -> Batch {
    loop {
        if let Some(batch) = shredder.take(&mut Budget::new(0)).unwrap() {
            return batch;
        }
    }
}

/// The levels of a column: definition, repetition.
fn levels(batch: &Batch, column: usize) -> (Vec<u8>, Vec<u8>) {
    let levels = batch.columns[column].levels.as_ref().unwrap();
    let repetition = levels.repetition.as_ref().map(|it| it.to_vec()).unwrap_or_default();
    (levels.definition.to_vec(), repetition)
}

/// The records and the columns of the paper's figures 2 and 3.
#[test]
fn the_papers_example() {
    let text =
        |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String)));
    let group = |name: &str, fields: Vec<FieldDef>| FieldDef::new(name, FieldType::Struct(fields, None));
    let languages = list("Language", group("l", vec![text("Code").required(), text("Country")]).required());
    let names = list("Name", group("n", vec![languages.required(), text("Url")]).required()).required();
    let backward = list("Backward", leaf("b", PhysicalType::Int64).required()).required();
    let forward = list("Forward", leaf("f", PhysicalType::Int64).required()).required();
    let fields =
        [leaf("DocId", PhysicalType::Int64).required(), group("Links", vec![backward, forward]), names];
    let mut s = shredder(&fields);
    // In the order of the schema: the record's fields, and what is below each.
    let [doc, links, backward, b, forward, f, name, n, language, l, code, country, url] =
        core::array::from_fn(|field| field);
    let document = |s: &mut Shredder, id: i64, back: &[i64], ahead: &[i64]| {
        s.start_record().unwrap();
        s.value(doc, Value::Int64(id)).unwrap();
        s.start_struct(links).unwrap();
        for (list, element, values) in [(backward, b, back), (forward, f, ahead)] {
            s.start_list(list).unwrap();
            values.iter().for_each(|value| s.value(element, Value::Int64(*value)).unwrap());
            s.end_list(list).unwrap();
        }
        s.end_struct(links).unwrap();
        s.start_list(name).unwrap();
    };
    let one_name = |s: &mut Shredder, languages: &[(&str, Option<&str>)], at: Option<&str>| {
        s.start_struct(n).unwrap();
        s.start_list(language).unwrap();
        for (the_code, the_country) in languages {
            s.start_struct(l).unwrap();
            s.value(code, Value::Bytes(the_code.as_bytes())).unwrap();
            if let Some(the_country) = the_country {
                s.value(country, Value::Bytes(the_country.as_bytes())).unwrap();
            }
            s.end_struct(l).unwrap();
        }
        s.end_list(language).unwrap();
        match at {
            Some(at) => s.value(url, Value::Bytes(at.as_bytes())).unwrap(),
            None => s.null(url).unwrap(),
        }
        s.end_struct(n).unwrap();
    };
    document(&mut s, 10, &[], &[20, 40, 60]);
    one_name(&mut s, &[("en-us", Some("us")), ("en", None)], Some("http://A"));
    one_name(&mut s, &[], Some("http://B"));
    one_name(&mut s, &[("en-gb", Some("gb"))], None);
    s.end_list(name).unwrap();
    s.end_record().unwrap();
    document(&mut s, 20, &[10, 30], &[80]);
    one_name(&mut s, &[], Some("http://C"));
    s.end_list(name).unwrap();
    s.end_record().unwrap();
    let batch = take(&mut s);
    assert_eq!((batch.rows, batch.first_row), (2, 0));
    assert_eq!(batch.columns[0].values, Values::Int64(vec![10, 20].into()));
    assert_eq!(batch.columns[0].levels, None);
    assert_eq!(levels(&batch, 1), (vec![1, 2, 2], vec![0, 0, 1]));
    assert_eq!(batch.columns[1].values, Values::Int64(vec![10, 30].into()));
    assert_eq!(levels(&batch, 2), (vec![2, 2, 2, 2], vec![0, 1, 1, 0]));
    // Name.Language.Code: en-us, en, NULL, en-gb, NULL.
    assert_eq!(levels(&batch, 3), (vec![2, 2, 1, 2, 1], vec![0, 2, 1, 1, 0]));
    // Name.Language.Country: us, NULL, NULL, gb, NULL.
    assert_eq!(levels(&batch, 4), (vec![3, 2, 1, 3, 1], vec![0, 2, 1, 1, 0]));
    // Name.Url: http://A, http://B, NULL, http://C.
    assert_eq!(levels(&batch, 5), (vec![2, 2, 1, 2], vec![0, 1, 1, 0]));
    let Values::ByteArray(urls) = &batch.columns[5].values else { panic!() };
    assert_eq!(urls.iter().collect::<Vec<_>>(), [b"http://A", b"http://B", b"http://C"]);
}

#[test]
fn fields_in_any_order_and_missing_ones() {
    let pair =
        FieldType::Struct(vec![leaf("a", PhysicalType::Int32), leaf("b", PhysicalType::Boolean)], None);
    let mut s = shredder(&[leaf("x", PhysicalType::Double), FieldDef::new("p", pair)]);
    s.start_record().unwrap();
    s.start_struct(1).unwrap();
    s.value(3, Value::Boolean(true)).unwrap();
    s.value(2, Value::Int32(7)).unwrap();
    s.end_struct(1).unwrap();
    s.value(0, Value::Double(1.5)).unwrap();
    s.end_record().unwrap();
    s.start_record().unwrap();
    s.end_record().unwrap();
    let batch = take(&mut s);
    assert_eq!(batch.columns[0].values, Values::Double(vec![1.5].into()));
    assert_eq!(batch.columns[0].validity, Some([true, false].into_iter().collect()));
    assert_eq!(levels(&batch, 1), (vec![2, 0], vec![]));
    assert_eq!(levels(&batch, 2), (vec![2, 0], vec![]));
    // The next batch continues.
    s.start_record().unwrap();
    s.end_record().unwrap();
    let batch = take(&mut s);
    assert_eq!((batch.rows, batch.first_row, batch.columns[0].nulls), (1, 2, 1));
}

#[test]
fn maps_and_spaced_nulls() {
    let map = FieldType::Map(
        Box::new(leaf("k", PhysicalType::Int32).required()),
        Some(Box::new(leaf("v", PhysicalType::Int64))),
    );
    let schema =
        Arc::new(Schema::of_fields(&[FieldDef::new("m", map), leaf("i", PhysicalType::Int32)]).unwrap());
    let options = ShredOptions { layout: Layout::Spaced, ..ShredOptions::default() };
    let mut s = Shredder::plan(schema, None, options).at_once().unwrap();
    s.start_record().unwrap();
    s.start_map(0).unwrap();
    for (key, value) in [(1, Some(10)), (2, None)] {
        s.value(1, Value::Int32(key)).unwrap();
        match value {
            Some(value) => s.value(2, Value::Int64(value)).unwrap(),
            None => s.null(2).unwrap(),
        }
    }
    s.end_map(0).unwrap();
    s.null(3).unwrap();
    s.end_record().unwrap();
    for is_empty in [true, false] {
        s.start_record().unwrap();
        if is_empty {
            s.start_map(0).unwrap();
            s.end_map(0).unwrap();
        }
        s.value(3, Value::Int32(5)).unwrap();
        s.end_record().unwrap();
    }
    let batch = take(&mut s);
    assert_eq!(levels(&batch, 0), (vec![2, 2, 1, 0], vec![0, 1, 0, 0]));
    assert_eq!(levels(&batch, 1), (vec![3, 2, 1, 0], vec![0, 1, 0, 0]));
    assert_eq!((&batch.columns[1].values, batch.columns[1].nulls), (&Values::Int64(vec![10].into()), 3));
    assert_eq!(batch.columns[2].values, Values::Int32(vec![0, 5, 5].into()));
}

#[test]
fn events_that_do_not_fit() {
    let fields = || {
        let map = FieldType::Map(
            Box::new(leaf("k", PhysicalType::Int32).required()),
            Some(Box::new(leaf("v", PhysicalType::Int64))),
        );
        [
            leaf("i", PhysicalType::Int32).required(),
            list("l", leaf("e", PhysicalType::FixedLenByteArray(3)).required()),
            FieldDef::new("m", map),
        ]
    };
    type Events = fn(&mut Shredder) -> Result<()>;
    let cases: [(Events, ErrorKind, &str, &str); 11] = [
        (|s| s.end_record(), ErrorKind::Conversion, "required", "i"),
        (|s| s.null(0), ErrorKind::Conversion, "null, where a value is required", "i"),
        (|s| s.value(0, Value::Int64(1)), ErrorKind::Misuse, "INT64, where INT32", "i"),
        (|s| s.start_list(0), ErrorKind::Misuse, "a list, where there is none", "i"),
        (|s| s.value(1, Value::Int32(1)), ErrorKind::Misuse, "a value, where there is", "l"),
        (|s| s.value(2, Value::Bytes(b"abc")), ErrorKind::Misuse, "not due", "l.list.element"),
        (
            |s| s.start_list(1).and_then(|()| s.value(2, Value::Bytes(b"ab"))),
            ErrorKind::Conversion,
            "2 bytes, where each value has 3",
            "l.list.element",
        ),
        (
            |s| s.value(0, Value::Int32(1)).and_then(|()| s.value(0, Value::Int32(1))),
            ErrorKind::Misuse,
            "comes twice",
            "i",
        ),
        (
            |s| s.start_map(3).and_then(|()| s.value(4, Value::Int32(1))).and_then(|()| s.end_map(3)),
            ErrorKind::Misuse,
            "ends with a key",
            "m",
        ),
        (
            |s| s.start_map(3).and_then(|()| s.value(5, Value::Int64(1))),
            ErrorKind::Misuse,
            "not due",
            "m.key_value.value",
        ),
        (|s| s.start_list(1).and_then(|()| s.end_record()), ErrorKind::Misuse, "the end of what", ""),
    ];
    for (events, kind, message, path) in cases {
        let mut s = shredder(&fields());
        s.start_record().unwrap();
        s.value(0, Value::Int32(1)).unwrap();
        s.end_record().unwrap();
        s.start_record().unwrap();
        let error = events(&mut s).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (kind, Some(1)), "{error}");
        assert!(error.message().contains(message), "{error}");
        assert_eq!(error.place().column.clone().unwrap_or_default(), path, "{error}");
        // It stays.
        assert_eq!(s.start_record(), Err(error.clone()));
        assert_eq!(s.value(0, Value::Int32(1)), Err(error.clone()));
        assert_eq!(s.take(&mut Budget::unlimited()), Err(error));
    }
    let mut s = shredder(&fields());
    assert!(s.value(0, Value::Int32(1)).is_err());
    let mut s = shredder(&fields());
    s.start_record().unwrap();
    assert!(s.take(&mut Budget::unlimited()).unwrap_err().message().contains("middle of a row"));
}

/// A row of very many elements is returned in slices, and nothing but the array itself is allocated in one go.
#[test]
fn one_large_row() {
    let mut s = shredder(&[
        list("l", leaf("e", PhysicalType::Int64)),
        list("s", leaf("e", PhysicalType::ByteArray)),
        list("b", leaf("e", PhysicalType::Boolean)),
    ]);
    const ELEMENTS: i64 = 300_000;
    let text = |at: i64| alloc::format!("the element of the number {at}");
    s.start_record().unwrap();
    s.start_list(0).unwrap();
    (0..ELEMENTS).for_each(|at| s.value(1, Value::Int64(at)).unwrap());
    assert!(s.is_full());
    s.end_list(0).unwrap();
    s.start_list(2).unwrap();
    (0..ELEMENTS).for_each(|at| s.value(3, Value::Bytes(text(at).as_bytes())).unwrap());
    s.end_list(2).unwrap();
    s.start_list(4).unwrap();
    (0..ELEMENTS).for_each(|at| s.value(5, Value::Boolean(at % 3 == 0)).unwrap());
    s.end_list(4).unwrap();
    s.end_record().unwrap();
    let mut charged = Budget::unlimited();
    s.charge(&mut charged);
    assert!(charged.spent() > 3 * u64::try_from(ELEMENTS).unwrap());
    let (mut steps, mut largest) = (0, 0);
    let batch = loop {
        let mut budget = Budget::new(0);
        let taken = s.take(&mut budget).unwrap();
        (steps, largest) = (steps + 1, largest.max(budget.spent()));
        if let Some(batch) = taken {
            break batch;
        }
    };
    assert!(steps > 200 && largest < 40_000, "{steps} steps, {largest} units");
    assert!(!s.is_full());
    let Values::Int64(numbers) = &batch.columns[0].values else { panic!() };
    assert!(numbers.iter().copied().eq(0..ELEMENTS));
    let Values::ByteArray(texts) = &batch.columns[1].values else { panic!() };
    assert!(texts.iter().zip(0..).all(|(found, at)| found == text(at).as_bytes()));
    let Values::Boolean(bits) = &batch.columns[2].values else { panic!() };
    assert!(bits.iter().zip(0..).all(|(bit, at)| bit == (at % 3 == 0)));
    assert_eq!(levels(&batch, 0).1.iter().filter(|level| **level == 0).count(), 1);
}

#[test]
fn a_batch_has_so_many_rows() {
    let schema = Arc::new(Schema::of_fields(&[leaf("i", PhysicalType::Int32)]).unwrap());
    let options = ShredOptions { batch_rows: 2, ..ShredOptions::default() };
    let mut s = Shredder::plan(schema, Some([0].into()), options).at_once().unwrap();
    for first_row in [0, 2] {
        for rows in 1..=2 {
            assert!(!s.is_full());
            s.start_record().unwrap();
            s.end_record().unwrap();
            assert_eq!(s.rows(), rows);
        }
        assert!(s.is_full());
        let batch = take(&mut s);
        assert_eq!((batch.rows, batch.first_row, s.rows()), (2, first_row, 0));
    }
}

/// Values of 100,000 bytes, and nulls that take as many: in pieces of one size, and a batch ends before its array is large.
#[test]
fn wide_values_are_in_pieces() {
    const WIDTH: usize = 100_000;
    let field = leaf("f", PhysicalType::FixedLenByteArray(100_000));
    let schema = Arc::new(Schema::of_fields(&[field]).unwrap());
    let options = ShredOptions { layout: Layout::Spaced, ..ShredOptions::default() };
    let mut s = Shredder::plan(schema, None, options).at_once().unwrap();
    let value: Vec<u8> = (1..=251).cycle().take(WIDTH).collect();
    for round in 0..2 {
        let mut rows = 0;
        while !s.is_full() {
            let mut budget = Budget::unlimited();
            s.charge(&mut budget);
            s.start_record().unwrap();
            if rows % 2 == 0 { s.value(0, Value::Bytes(&value)) } else { s.null(0) }.unwrap();
            s.end_record().unwrap();
            let mut budget = Budget::unlimited();
            s.charge(&mut budget);
            assert!(budget.spent() >= COPY_PRICE.of(WIDTH, 0), "a null is as wide as a value");
            rows += 1;
        }
        assert_eq!(rows, 6, "round {round}");
        let batch = take(&mut s);
        let Values::FixedLenByteArray(values) = &batch.columns[0].values else { panic!() };
        for row in 0..rows {
            let expected = if row % 2 == 0 { &value[..] } else { &[0; WIDTH] };
            assert!(values.get(row) == expected, "row {row}");
        }
    }
}

#[test]
fn long_values_are_kept() {
    let mut s =
        shredder(&[leaf("s", PhysicalType::ByteArray), leaf("f", PhysicalType::FixedLenByteArray(2))]);
    let long = Bytes::from(vec![7; 9 << 20]);
    for _ in 0..2 {
        assert!(!s.is_full());
        s.start_record().unwrap();
        s.shared(0, long.clone()).unwrap();
        s.shared(1, Bytes::from_static(b"ab")).unwrap();
        s.end_record().unwrap();
    }
    assert!(s.is_full(), "16 MiB of strings");
    s.start_record().unwrap();
    s.shared(0, Bytes::from_static(b"short")).unwrap();
    s.end_record().unwrap();
    let batch = take(&mut s);
    let Values::ByteArray(values) = &batch.columns[0].values else { panic!() };
    assert_eq!(values.get(1).as_ptr(), long.as_ptr());
    assert_eq!(values.get(2), b"short");
    assert_eq!(batch.columns[1].values.len(), 2);
    assert!(s.shared(0, long).unwrap_err().to_string().contains("outside of a record"));
}
