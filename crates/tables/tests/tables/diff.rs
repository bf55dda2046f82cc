//! Tables compared by value: of any types, in order and by key, as a comparison of the values in memory finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marquetry_base::{Detail, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema, TimeUnit};
use marquetry_tables::{
    Batches, ColumnPath, DiffOptions, Differences, Piece, PieceOptions, RowId, Source, Table, diff,
};

/// Batches in memory.
struct Memory {
    table: Table,
    pieces: [Piece; 1],
    batches: Vec<Batch>,
}

impl Memory {
    fn source(name: &str, fields: &[FieldDef], batches: Vec<Batch>) -> Arc<dyn Source> {
        let table = Table::new(name, Arc::new(Schema::of_fields(fields).unwrap()));
        Arc::new(Memory { table, pieces: [Piece::of(name)], batches })
    }
}

impl Source for Memory {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Stored(self.batches.clone().into_iter())))
    }
}

struct Stored(std::vec::IntoIter<Batch>);

impl Batches for Stored {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.next())
    }
}

/// Steele, Lea and Flood's SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// How a column stores small whole numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Int32,
    Int64,
    UInt64,
    Double,
    Float,
    Decimal32(i32),
    DecimalBytes(i32),
    Time(TimeUnit),
    Int96,
    Text,
    Bytes,
    Fixed,
}

/// Kinds that compare with each other.
const FAMILIES: [&[Kind]; 5] = [
    &[Kind::Int32, Kind::Int64, Kind::UInt64, Kind::Decimal32(0), Kind::Decimal32(3), Kind::DecimalBytes(20)],
    &[Kind::Int32, Kind::Double],
    &[Kind::Float, Kind::Double, Kind::UInt64],
    &[Kind::Time(TimeUnit::Millis), Kind::Time(TimeUnit::Micros), Kind::Time(TimeUnit::Nanos), Kind::Int96],
    &[Kind::Text, Kind::Bytes, Kind::Fixed],
];

impl Kind {
    fn field(self, name: &str) -> FieldDef {
        let decimal = |scale| Some(LogicalType::Decimal { scale, precision: 9.max(scale + 9) });
        let (physical, logical) = match self {
            Kind::Int32 => (PhysicalType::Int32, None),
            Kind::Int64 => (PhysicalType::Int64, None),
            Kind::UInt64 => {
                (PhysicalType::Int64, Some(LogicalType::Integer { bit_width: 64, is_signed: false }))
            }
            Kind::Double => (PhysicalType::Double, None),
            Kind::Float => (PhysicalType::Float, None),
            Kind::Decimal32(scale) => {
                (PhysicalType::Int32, Some(LogicalType::Decimal { scale, precision: 9 }))
            }
            Kind::DecimalBytes(scale) => (PhysicalType::ByteArray, decimal(scale)),
            Kind::Time(unit) => {
                (PhysicalType::Int64, Some(LogicalType::Timestamp { is_adjusted_to_utc: true, unit }))
            }
            Kind::Int96 => (PhysicalType::Int96, None),
            Kind::Text => (PhysicalType::ByteArray, Some(LogicalType::String)),
            Kind::Bytes => (PhysicalType::ByteArray, None),
            Kind::Fixed => (PhysicalType::FixedLenByteArray(3), None),
        };
        FieldDef::new(name, FieldType::Leaf(physical, logical))
    }

    fn values(self, numbers: &[i32]) -> Values {
        let longs = |factor: i64| -> Values {
            numbers.iter().map(|n| i64::from(*n) * factor).collect::<Vec<_>>().into()
        };
        match self {
            Kind::Int32 => numbers.to_vec().into(),
            Kind::Int64 | Kind::UInt64 => longs(1),
            Kind::Double => numbers.iter().map(|n| f64::from(*n)).collect::<Vec<_>>().into(),
            // Exact: they are small.
            Kind::Float => {
                numbers.iter().map(|n| f32::from(u16::try_from(*n).unwrap())).collect::<Vec<_>>().into()
            }
            Kind::Decimal32(scale) => {
                let factor = 10_i32.pow(scale.try_into().unwrap());
                numbers.iter().map(|n| n * factor).collect::<Vec<_>>().into()
            }
            Kind::DecimalBytes(scale) => {
                let factor = 10_i128.pow(scale.try_into().unwrap());
                numbers.iter().map(|n| (i128::from(*n) * factor).to_be_bytes()).collect()
            }
            Kind::Time(TimeUnit::Millis) => longs(1),
            Kind::Time(TimeUnit::Micros) => longs(1_000),
            Kind::Time(TimeUnit::Nanos) => longs(1_000_000),
            Kind::Int96 => {
                let bytes = numbers.iter().flat_map(|n| {
                    let mut bytes = [0; 12];
                    bytes[..8].copy_from_slice(&(i64::from(*n) * 1_000_000).to_le_bytes());
                    bytes[8..].copy_from_slice(&2_440_588_i32.to_le_bytes());
                    bytes
                });
                Values::Int96(FixedBytes::new(12, numbers.len(), bytes.collect::<Vec<u8>>().into()))
            }
            Kind::Text | Kind::Bytes => numbers.iter().map(|n| format!("{n:03}")).collect(),
            Kind::Fixed => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|n| format!("{n:03}").into_bytes()).collect();
                Values::FixedLenByteArray(FixedBytes::new(3, numbers.len(), bytes.into()))
            }
        }
    }
}

fn flat(leaf: usize, values: Values, is_there: &[bool]) -> ColumnBatch {
    let nulls = is_there.iter().filter(|is_there| !**is_there).count();
    ColumnBatch {
        leaf,
        rows: is_there.len(),
        nulls,
        validity: (nulls > 0).then(|| is_there.iter().copied().collect()),
        values,
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    }
}

type Row = Vec<Option<i32>>;

/// A table of rows. `order` has the columns, in the order in which they are stored.
fn table(name: &str, rows: &[Row], kinds: &[Kind], order: &[usize], random: &mut Random) -> Arc<dyn Source> {
    let field = |column: &usize| {
        let field = kinds[*column].field(&format!("c{column}"));
        let has_null = rows.iter().any(|row| row[*column].is_none());
        if has_null || column.is_multiple_of(2) { field } else { field.required() }
    };
    let fields: Vec<FieldDef> = order.iter().map(field).collect();
    let mut batches = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let end = rows.len().min(at + 1 + random.below(40));
        let part = &rows[at..end];
        let columns = order.iter().enumerate().map(|(leaf, column)| {
            let numbers: Vec<i32> = part.iter().map(|row| row[*column].unwrap_or_default()).collect();
            let is_there: Vec<bool> = part.iter().map(|row| row[*column].is_some()).collect();
            flat(leaf, kinds[*column].values(&numbers), &is_there)
        });
        batches.push(Batch { row_group: 0, first_row: 0, rows: part.len(), columns: columns.collect() });
        at = end;
    }
    Memory::source(name, &fields, batches)
}

/// What a comparison in memory finds.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    compared: u64,
    changed: u64,
    only: [u64; 2],
    columns: Vec<u64>,
    repeated_keys: [u64; 2],
}

impl Expected {
    fn compare(&mut self, a: &Row, b: &Row) {
        self.compared += 1;
        self.changed += u64::from(a != b);
        self.columns.resize(a.len(), 0);
        for (count, (a, b)) in self.columns.iter_mut().zip(a.iter().zip(b)) {
            *count += u64::from(a != b);
        }
    }

    fn of([a, b]: [&[Row]; 2], key: usize) -> Expected {
        let mut expected = Expected::default();
        let count = |rows: usize| u64::try_from(rows).unwrap();
        if key == 0 {
            a.iter().zip(b).for_each(|(a, b)| expected.compare(a, b));
            expected.only = [count(a.len()) - expected.compared, count(b.len()) - expected.compared];
            return expected;
        }
        let by_key = |rows: &[Row]| {
            let mut groups: BTreeMap<Row, Vec<Row>> = BTreeMap::new();
            rows.iter().for_each(|row| groups.entry(row[..key].to_vec()).or_default().push(row.clone()));
            groups
        };
        let groups = [by_key(a), by_key(b)];
        expected.repeated_keys = [count(a.len() - groups[0].len()), count(b.len() - groups[1].len())];
        for key in groups.iter().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>() {
            let rows = |side: usize| groups[side].get(key).map_or(&[][..], |rows| rows);
            rows(0).iter().zip(rows(1)).for_each(|(a, b)| expected.compare(a, b));
            let both = rows(0).len().min(rows(1).len());
            expected.only[0] += count(rows(0).len() - both);
            expected.only[1] += count(rows(1).len() - both);
        }
        expected
    }
}

fn found(differences: &Differences, columns: usize) -> Expected {
    let rows = &differences.rows;
    let mut counts = vec![0; columns];
    for column in &differences.values {
        let number: usize = column.name[1..].parse().unwrap();
        counts[number] = column.rows;
    }
    Expected {
        compared: rows.compared,
        changed: rows.changed,
        only: rows.only,
        columns: counts,
        repeated_keys: rows.repeated_keys,
    }
}

/// Random tables, of which one is the other after random edits.
#[test]
fn what_is_found_is_what_a_comparison_in_memory_finds() {
    for seed in 0..400 {
        let random = &mut Random(seed);
        let columns = 1 + random.below(4);
        let key = random.below(columns + 1);
        let cell = |random: &mut Random| (!random.one_in(6)).then(|| i32::try_from(random.below(7)).unwrap());
        let row = |random: &mut Random| -> Row { (0..columns).map(|_| cell(random)).collect() };
        let a: Vec<Row> = (0..random.below(150)).map(|_| row(random)).collect();
        let mut b = a.clone();
        for _ in 0..random.below(6) {
            let at = random.below(b.len() + 1);
            match random.below(3) {
                0 => b.insert(at, row(random)),
                1 if at < b.len() => drop(b.remove(at)),
                _ if at < b.len() => b[at][random.below(columns)] = cell(random),
                _ => {}
            }
        }
        if key > 0 {
            (1..b.len()).rev().for_each(|at| b.swap(at, random.below(at + 1)));
        }
        let mut kinds = [Vec::new(), Vec::new()];
        for _ in 0..columns {
            let family = FAMILIES[random.below(FAMILIES.len())];
            kinds.iter_mut().for_each(|kinds| kinds.push(family[random.below(family.len())]));
        }
        let order: Vec<usize> = (0..columns).collect();
        let mut other_order = order.clone();
        if random.one_in(2) {
            other_order.reverse();
        }
        let one = table("one", &a, &kinds[0], &order, random);
        let other = table("other", &b, &kinds[1], &other_order, random);
        let mut options = DiffOptions::default();
        options.key = order[..key].iter().map(|column| ColumnPath::of([format!("c{column}")])).collect();
        options.memory_bytes = if random.one_in(2) { 1 } else { 1 << 20 };
        let is_spilling = options.memory_bytes == 1 && key > 0 && a.len() + b.len() > 0;
        let differences = diff([&one, &other], &options, &mut |_| {}).unwrap();
        let mut expected = Expected::of([&a, &b], key);
        expected.columns.resize(columns, 0);
        let why = format!("seed {seed}, key of {key}, {kinds:?}");
        assert_eq!(found(&differences, columns), expected, "{why}");
        assert_eq!(
            differences.rows.total.map(|rows| usize::try_from(rows).unwrap()),
            [a.len(), b.len()],
            "{why}"
        );
        assert_eq!(differences.are_rows_equal(), expected.changed == 0 && expected.only == [0, 0], "{why}");
        assert_eq!(differences.schema.reordered.is_empty(), order == other_order, "{why}");
        assert_eq!(differences.sorted_by_way_of.is_some_and(|bytes| bytes > 0), is_spilling, "{why}");
        for column in &differences.values {
            assert_eq!(column.shown.len(), usize::try_from(column.rows.min(3)).unwrap(), "{why}");
            let is_key = |id: &RowId| matches!(id, RowId::Key(_));
            assert!(column.shown.iter().all(|row| is_key(&row.id) == (key > 0)), "{why}");
        }
    }
}

/// Rows beyond the memory that is granted are spilled, and found all the same.
#[test]
fn sorting_by_key_is_in_bounded_memory() {
    let rows: Vec<Row> = (0..60_000).map(|at| vec![Some(at), Some(at % 7)]).collect();
    let mut other = rows.clone();
    other.reverse();
    other[5][1] = None;
    let random = &mut Random(1);
    let (kinds, order) = ([Kind::Int64, Kind::Int32], [0, 1]);
    let one = table("one", &rows, &kinds, &order, random);
    let other = table("other", &other, &[Kind::DecimalBytes(20), Kind::Double], &order, random);
    let mut options = DiffOptions::default();
    options.key = ColumnPath::parse_list("c0").unwrap();
    options.memory_bytes = 256 << 10;
    let found = diff([&one, &other], &options, &mut |_| {}).unwrap();
    assert_eq!((found.rows.compared, found.rows.changed, found.rows.only), (60_000, 1, [0, 0]));
    // Far more than is held.
    assert!(found.sorted_by_way_of.unwrap() > 1 << 20, "{:?}", found.sorted_by_way_of);
    let RowId::Key(key) = &found.values[0].shown[0].id else { panic!("a row without its key") };
    assert_eq!(key.columns[0].values, vec![59_994_i64].into());
}

/// Lists whose levels count different things.
#[test]
fn nested_columns_are_compared_by_what_their_levels_mean() {
    let int = |physical| FieldType::Leaf(physical, None);
    let element = FieldDef::new("element", int(PhysicalType::Int32)).required();
    let strict = FieldDef::new("l", FieldType::List(Box::new(element))).required();
    let loose =
        FieldDef::new("l", FieldType::List(Box::new(FieldDef::new("element", int(PhysicalType::Int64)))));
    let list = |values: Values, definition: &[u8], repetition: &[u8]| {
        let rows = repetition.iter().filter(|level| **level == 0).count();
        let column = ColumnBatch {
            leaf: 0,
            rows,
            nulls: definition.len() - values.len(),
            validity: None,
            values,
            layout: Layout::Dense,
            levels: Some(Levels {
                definition: definition.to_vec().into(),
                repetition: Some(repetition.to_vec().into()),
            }),
            provisional: false,
        };
        vec![Batch { row_group: 0, first_row: 0, rows, columns: vec![column] }]
    };
    // [1, 2], [], [3]
    let one = list(vec![1, 2, 3].into(), &[1, 1, 0, 1], &[0, 1, 0, 0]);
    let one = Memory::source("one", &[strict], one);
    for (values, definition, repetition, differing) in [
        (vec![1_i64, 2, 3], &[3, 3, 1, 3][..], &[0, 1, 0, 0][..], 0),
        // null instead of the empty list.
        (vec![1, 2, 3], &[3, 3, 0, 3], &[0, 1, 0, 0], 1),
        // [null] instead of it, and of [3].
        (vec![1, 2], &[3, 3, 2, 2], &[0, 1, 0, 0], 2),
        // [1], [2], [3]
        (vec![1, 2, 3], &[3, 3, 3], &[0, 0, 0], 2),
        (vec![1, 2, 4], &[3, 3, 1, 3], &[0, 1, 0, 0], 1),
    ] {
        let other = Memory::source(
            "other",
            std::slice::from_ref(&loose),
            list(values.into(), definition, repetition),
        );
        for pair in [[&one, &other], [&other, &one]] {
            let found = diff(pair, &DiffOptions::default(), &mut |_| {}).unwrap();
            assert_eq!((found.rows.compared, found.rows.changed), (3, differing), "{definition:?}");
            assert_eq!(found.schema.fields.len(), 2, "{:?}", found.schema);
        }
    }
}

/// What differs in schemas is reported apart from values, and only counts where values cannot be compared.
/// A VARIANT is compared as JSON, and what is beside it by value.
/// A file beside a live table is what a load makes of it: sets in their order and without duplicates, keys that are two for servers.
#[test]
fn a_file_is_compared_as_it_is_loaded() {
    let fields = |element: PhysicalType| {
        let element = FieldDef::new("element", FieldType::Leaf(element, None));
        [
            FieldDef::new("k", FieldType::Leaf(PhysicalType::Double, None)).required(),
            FieldDef::new("s", FieldType::List(Box::new(element))),
        ]
    };
    let rows = |keys: &[f64], elements: Values, definition: &[u8], repetition: &[u8]| {
        let tags = ColumnBatch {
            leaf: 1,
            rows: keys.len(),
            nulls: definition.len() - elements.len(),
            validity: None,
            values: elements,
            layout: Layout::Dense,
            levels: Some(Levels {
                definition: definition.to_vec().into(),
                repetition: Some(repetition.to_vec().into()),
            }),
            provisional: false,
        };
        let keys = flat(0, keys.to_vec().into(), &vec![true; keys.len()]);
        vec![Batch { row_group: 0, first_row: 0, rows: keys.rows, columns: vec![keys, tags] }]
    };
    // [3, 1, 2, 1], [5], []
    let elements = Values::from(vec![3_i64, 1, 2, 1, 5]);
    let file = rows(&[0.0, -0.0, 2.0], elements, &[3, 3, 3, 3, 3, 1], &[0, 1, 1, 1, 0, 0]);
    let file = Memory::source("file", &fields(PhysicalType::Int64), file);
    let live = |elements: Vec<i32>, definition: &[u8], repetition: &[u8]| {
        let mut table =
            Table::new("live", Arc::new(Schema::of_fields(&fields(PhysicalType::Int32)).unwrap()));
        table.identity = Some("7".to_owned());
        let said = r#"[{"name":"k","kind":"partition_key","type":"double","class":"DoubleType"},
            {"name":"s","kind":"regular","type":"set<int>","class":"SetType(Int32Type)"}]"#;
        let said = [
            ("marquetry.mapping", "logical"),
            ("marquetry.mapping.version", "1"),
            ("marquetry.table.columns", said),
        ];
        table.key_values = said
            .map(|(key, value)| KeyValue {
                key: key.to_owned(),
                value: Some(value.as_bytes().to_vec().into()),
            })
            .to_vec();
        let batches = rows(&[-0.0, 2.0, 0.0], elements.into(), definition, repetition);
        Arc::new(Memory { table, pieces: [Piece::of("live")], batches }) as Arc<dyn Source>
    };
    let mut options = DiffOptions::default();
    (options.as_loaded, options.key) = (true, ColumnPath::parse_list("k").unwrap());
    let differing = |live: &Arc<dyn Source>| {
        let mut all = [[&file, live], [live, &file]].map(|tables| {
            let found = diff(tables, &options, &mut |_| {}).unwrap();
            assert!(found.schema.incomparable.is_empty());
            assert_eq!(found.rows.repeated_keys, [0, 0]);
            assert_eq!((found.rows.only, found.rows.compared), ([0, 0], 3));
            found.rows.changed
        });
        all.sort_unstable();
        assert_eq!(all[0], all[1]);
        all[0]
    };
    // [5], null, [1, 2, 3]
    assert_eq!(differing(&live(vec![5, 1, 2, 3], &[3, 0, 3, 3, 3], &[0, 0, 0, 1, 1])), 0);
    // The sets of the two zeros are each other's.
    assert_eq!(differing(&live(vec![1, 2, 3, 5], &[3, 3, 3, 0, 3], &[0, 1, 1, 0, 0])), 2);
    // [5], [2], [1, 2]
    assert_eq!(differing(&live(vec![5, 2, 1, 2], &[3, 3, 3, 3], &[0, 0, 0, 1])), 2);
}

#[test]
fn a_variant_is_a_value_of_its_own() {
    let leaf =
        |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical)).required();
    let number = |scale: Option<i32>| {
        let decimal = scale.map(|scale| LogicalType::Decimal { scale, precision: 9 });
        leaf("n", PhysicalType::Int32, decimal)
    };
    let bytes = |name: &str| leaf(name, PhysicalType::ByteArray, None);
    let group = |name: &str, fields: Vec<FieldDef>, logical| {
        FieldDef::new(name, FieldType::Struct(fields, logical)).required()
    };
    let variant = || {
        let version = Some(LogicalType::Variant { version: None });
        group("v", vec![bytes("metadata"), bytes("value")], version)
    };
    // Metadata without names; values are integers of one byte, and of two.
    let variants = |values: [&[u8]; 3]| -> [Values; 2] {
        [[&[1_u8, 0, 0][..]; 3].into_iter().collect(), values.into_iter().collect()]
    };
    let short: [&[u8]; 3] = [&[0x0c, 7], &[0x0c, 8], &[0x0c, 9]];
    let long: [&[u8]; 3] = [&[0x10, 7, 0], &[0x10, 8, 0], &[0x10, 1, 0]];
    let source = |name: &str, n: FieldDef, numbers: [i32; 3], v: FieldDef, values: [Values; 2]| {
        let [metadata, value] = values;
        let batch = Batch::of_values([numbers.to_vec().into(), metadata, value]).unwrap();
        Memory::source(name, &[group("s", vec![n, v], None)], vec![batch])
    };
    let a = source("a", number(None), [1, 2, 3], variant(), variants(short));
    // 1.0, 2.5, 3.0
    let b = source("b", number(Some(1)), [10, 25, 30], variant(), variants(long));
    let differences = diff([&a, &b], &DiffOptions::default(), &mut |_| {}).unwrap();
    let rows = |differences: &Differences| -> Vec<u64> {
        let shown = differences.values.iter().flat_map(|column| &column.shown);
        shown.map(|row| if let RowId::Number(row) = row.id { row } else { panic!() }).collect()
    };
    assert_eq!(rows(&differences), [1, 2], "the second differs in n, the third in v");
    assert!(differences.schema.incomparable.is_empty());
    // Beside anything else it cannot be compared, and the rest is all the same.
    let plain = group("v", vec![bytes("metadata"), bytes("value")], None);
    let c = source("c", number(Some(1)), [10, 20, 31], plain, variants(short));
    let differences = diff([&a, &c], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(rows(&differences), [2]);
    let [(path, kinds)] = &differences.schema.incomparable[..] else { panic!() };
    assert_eq!(
        (path.as_str(), kinds[0].as_str(), kinds[1].as_str()),
        ("s.v", "required VARIANT", "required group")
    );
}

#[test]
fn schemas_are_compared_apart() {
    let long = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None));
    let text =
        |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String)));
    let numbers = |columns: usize| vec![Batch::of_values((0..columns).map(|_| vec![1_i64].into())).unwrap()];
    let mut identified = long("b");
    identified.field_id = Some(7);
    let group = |fields: Vec<FieldDef>| FieldDef::new("g", FieldType::Struct(fields, None)).required();
    let leaf = |name: &str| long(name).required();
    let a = Memory::source(
        "a",
        &[leaf("a"), leaf("b"), leaf("c"), group(vec![leaf("x"), leaf("y"), leaf("z")])],
        numbers(6),
    );
    let mut batch = numbers(6);
    batch[0].columns[1].values = ["1"].into_iter().collect();
    let b = Memory::source(
        "b",
        &[identified, text("c").required(), leaf("d"), leaf("a"), group(vec![leaf("z"), leaf("x")])],
        batch,
    );
    let found = diff([&a, &b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.values.is_empty() && !found.are_rows_equal());
    let schema = &found.schema;
    assert_eq!(schema.only, [vec!["g.y".to_string()], vec!["d".to_string()]]);
    assert_eq!(schema.reordered, ["", "g"].map(str::to_string));
    let words = |all: &[(String, [String; 2])]| {
        all.iter().map(|(name, [a, b])| format!("{name}: {a} | {b}")).collect::<Vec<_>>()
    };
    assert_eq!(words(&schema.incomparable), ["c: required INT64 | required BYTE_ARRAY STRING"]);
    assert_eq!(words(&schema.fields), ["b: required INT64, no field id | optional INT64, field id 7"]);
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let leaf = |name: &str, physical| FieldDef::new(name, FieldType::Leaf(physical, None)).required();
    let batch = |values: [Values; 2]| vec![Batch::of_values(values).unwrap()];
    let a = [leaf("a", PhysicalType::Int64), leaf("b", PhysicalType::Int64)];
    let a = Memory::source("one", &a, batch([vec![1_i64].into(), vec![1_i64].into()]));
    let b = [leaf("a", PhysicalType::Boolean), leaf("c", PhysicalType::Int64)];
    let bits = Values::Boolean([true].into_iter().collect());
    let b = Memory::source("other", &b, batch([bits, vec![1_i64].into()]));
    for (key, expected) in [
        ("a", "values of the two columns a cannot be compared"),
        ("b", "there is no column \"b\"; its columns are a, c"),
    ] {
        let mut options = DiffOptions::default();
        options.key = ColumnPath::parse_list(key).unwrap();
        let error = diff([&a, &b], &options, &mut |_| {}).unwrap_err();
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Misuse, Some(Detail::Option("key"))));
        assert_eq!(error.message(), expected);
    }
    let mut options = DiffOptions::default();
    options.key = ColumnPath::parse_list("a, a").unwrap();
    let error = diff([&a, &a], &options, &mut |_| {}).unwrap_err();
    assert_eq!(error.message(), "the column a is named twice");
}
