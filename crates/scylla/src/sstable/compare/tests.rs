use super::*;
use marquetry_base::ErrorKind;

fn kind(text: &str) -> MarshalType {
    MarshalType::parse(text, 64).unwrap()
}

/// Each value of the list comes after those before it. Lists of one place are equal.
fn check(text: &str, ascending: &[&[&[u8]]]) {
    let comparators = [
        Comparator::new(&kind(text)).unwrap(),
        Comparator::new(&kind(&alloc::format!("ReversedType({text})"))).unwrap(),
    ];
    for (left_at, left) in ascending.iter().enumerate() {
        for (right_at, right) in ascending.iter().enumerate() {
            for left in *left {
                for right in *right {
                    let (found, expected) = (comparators[0].compare(left, right), left_at.cmp(&right_at));
                    assert_eq!(found, expected, "{text}: {left:02x?} {right:02x?}");
                    assert_eq!(comparators[1].compare(left, right), expected.reverse(), "{text} reversed");
                }
            }
        }
    }
}

#[test]
fn numbers_by_value() {
    check("Int32Type", &[&[&[]], &[&[0x80, 0, 0, 0]], &[&[0xff; 4]], &[&[0; 4]], &[&[0x7f, 0, 0, 0]]]);
    check("LongType", &[&[&[]], &[&[0x80; 8]], &[&[0xff; 8]], &[&[0; 8]], &[&[1; 8]]]);
    check("TimestampType", &[&[&[0xff; 8]], &[&[0; 8]]]);
    check("ByteType", &[&[&[]], &[&[0x80]], &[&[0xff]], &[&[0]], &[&[0x7f]]]);
    check("ShortType", &[&[&[0x80, 1]], &[&[0xff, 0]], &[&[0xff, 0xff]], &[&[0, 0xff]], &[&[1, 0]]]);
    check("BooleanType", &[&[&[]], &[&[0]], &[&[1], &[2], &[0xff]]]);
    check(
        "IntegerType",
        &[
            &[&[]],
            &[&[0x80, 0, 0]],
            &[&[0x80, 0], &[0xff, 0x80, 0]],
            &[&[0xff, 0x7f]],
            &[&[0xff], &[0xff, 0xff]],
            &[&[0], &[0, 0]],
            &[&[1]],
            &[&[0, 0x80]],
            &[&[1, 0, 0]],
        ],
    );
}

#[test]
fn floats_by_value_and_nan_last() {
    let floats = [f32::NEG_INFINITY, -1.5, -0.0, 0.0, 2.0, f32::INFINITY, f32::NAN].map(f32::to_be_bytes);
    let mut all: Vec<&[&[u8]]> = Vec::new();
    let ones: Vec<[&[u8]; 1]> = floats.iter().map(|float| [&float[..]]).collect();
    all.extend(ones.iter().take(6).map(|one| &one[..]));
    let nans: [&[u8]; 3] = [&floats[6], &[0xff, 0xc0, 0, 1], &[0x7f, 0x80, 0, 1]];
    all.push(&nans);
    check("FloatType", &all);
    let doubles = [-1e300, -0.0, 0.0, 1e-300].map(f64::to_be_bytes);
    let ones: Vec<[&[u8]; 1]> = doubles.iter().map(|double| [&double[..]]).collect();
    let mut all: Vec<&[&[u8]]> = ones.iter().map(|one| &one[..]).collect();
    let nans: [&[u8]; 2] = [&[0x7f, 0xf8, 0, 0, 0, 0, 0, 0], &[0xff, 0xff, 0, 0, 0, 0, 0, 1]];
    all.push(&nans);
    check("DoubleType", &all);
}

fn decimal(unscaled: i64, scale: i32) -> Vec<u8> {
    [&scale.to_be_bytes()[..], twos_complement::shortest(&unscaled.to_be_bytes())].concat()
}

#[test]
fn decimals_by_value() {
    let ascending: &[&[(i64, i32)]] = &[
        &[(-1, -300)],
        &[(-123, 1)],
        &[(-12, 0), (-120, 1), (-1_200_000_000_000, 11)],
        &[(-11_999_999_999_999, 12)],
        &[(0, 0), (0, 100), (0, -2_147_483_648)],
        &[(1, 2_147_483_647)],
        &[(1, 2), (10, 3), (1_000_000_000_000_000_000, 20)],
        &[(9, 0)],
        &[(10, 0), (1, -1), (1000, 2)],
        &[(i64::MAX, 0)],
        &[(1, -19), (100, -17)],
        &[(1, -2_147_483_648)],
    ];
    let all: Vec<Vec<Vec<u8>>> = ascending
        .iter()
        .map(|equal| equal.iter().map(|(unscaled, scale)| decimal(*unscaled, *scale)).collect())
        .collect();
    let slices: Vec<Vec<&[u8]>> = all.iter().map(|equal| equal.iter().map(Vec::as_slice).collect()).collect();
    let lists: Vec<&[&[u8]]> = slices.iter().map(Vec::as_slice).collect();
    check("DecimalType", &lists);
    // 10^2400 and a neighbour, with scales that differ.
    let mut digits = alloc::vec![1_u8];
    for _ in 0..2400 {
        let mut carry = 0;
        for digit in digits.iter_mut().rev() {
            let product = u32::from(*digit) * 10 + carry;
            *digit = u8::try_from(product & 0xff).unwrap();
            carry = product >> 8;
        }
        if carry > 0 {
            digits.insert(0, u8::try_from(carry).unwrap());
        }
    }
    let big = |last: u8| {
        let mut bytes = [&0_i32.to_be_bytes()[..], &[0], &digits].concat();
        *bytes.last_mut().unwrap() += last;
        bytes
    };
    check("DecimalType", &[&[&big(0), &decimal(1, -2400)], &[&big(1)], &[&decimal(11, -2399)]]);
    let comparator = Comparator::new(&kind("TupleType(DecimalType)")).unwrap();
    assert_eq!(comparator.check(&[0; 1025]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(comparator.check(&[0; 1024]).is_ok());
    assert!(Comparator::new(&kind("BytesType")).unwrap().check(&[0; 1025]).is_ok());
}

fn uuid(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

#[test]
fn uuids_by_version_and_time() {
    // Version 1 has the lowest bits of the time first.
    let early = uuid(0xffff_ffff_0000_1000, 0x80ff_0000_0000_0000);
    let late = uuid(0x0000_0000_0001_1000, 0x7f00_0000_0000_0000);
    let late_signed = uuid(0x0000_0000_0001_1000, 0x8000_0000_0000_0000);
    let latest = uuid(0x0000_0000_0000_1001, 0);
    let (random, random_signed) = (uuid(0x0000_0000_0000_4000, 0), uuid(0x8000_0000_0000_4000, 0));
    check(
        "UUIDType",
        &[&[&[]], &[&early], &[&late], &[&late_signed], &[&latest], &[&random], &[&random_signed]],
    );
    check("TimeUUIDType", &[&[&[]], &[&early], &[&late_signed], &[&late], &[&latest]]);
    let signed = |last: u8| uuid(0x1000, u64::from(last));
    check("TimeUUIDType", &[&[&signed(0x80)], &[&signed(0xff)], &[&signed(0)], &[&signed(0x7f)]]);
}

fn members(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
        bytes.extend(length.to_be_bytes());
        bytes.extend(value.unwrap_or_default());
    }
    bytes
}

fn collection(values: &[&[u8]], each: usize) -> Vec<u8> {
    let count = i32::try_from(values.len() / each).unwrap();
    let values: Vec<Option<&[u8]>> = values.iter().copied().map(Some).collect();
    [&count.to_be_bytes()[..], &members(&values)].concat()
}

#[test]
fn collections_and_tuples_by_their_parts() {
    let (minus, one, two) = (&[0xff; 4][..], &[0, 0, 0, 1][..], &[0, 0, 0, 2][..]);
    let list = |values: &[&[u8]]| collection(values, 1);
    for text in ["FrozenType(ListType(Int32Type))", "FrozenType(SetType(Int32Type))"] {
        check(
            text,
            &[
                &[&[]],
                &[&list(&[])],
                &[&list(&[minus])],
                &[&list(&[minus, two])],
                &[&list(&[one])],
                &[&list(&[two, minus])],
            ],
        );
    }
    let map = |values: &[&[u8]]| collection(values, 2);
    check(
        "FrozenType(MapType(Int32Type,UTF8Type))",
        &[
            &[&map(&[])],
            &[&map(&[minus, b"b"])],
            &[&map(&[one, b"a"])],
            &[&map(&[one, b"a", two, b""])],
            &[&map(&[one, b"b"])],
        ],
    );
    let text = "TupleType(Int32Type,UTF8Type)";
    check(
        text,
        &[
            &[&[], &[]],
            &[&members(&[None, Some(b"a")])],
            &[&members(&[Some(minus), None]), &members(&[Some(minus)])],
            &[&members(&[Some(minus), Some(b"")])],
            &[&members(&[Some(one), Some(b"a")])],
        ],
    );
    check(
        "UserType(ks,75,61:Int32Type,62:UTF8Type)",
        &[
            &[&members(&[None]), &members(&[None, None])],
            &[&members(&[Some(minus)])],
            &[&members(&[Some(one)])],
        ],
    );
    let vector = |numbers: [f32; 2]| numbers.map(f32::to_be_bytes).concat();
    check(
        "VectorType(FloatType,2)",
        &[&[&vector([-2.0, 1.0])], &[&vector([-1.0, -5.0])], &[&vector([-1.0, 0.0])]],
    );
    check("VectorType(UTF8Type,2)", &[&[b"\x01b\x01c"], &[b"\x02ba\x00"], &[b"\x01c\x00"]]);
}

#[test]
fn composites_by_their_parts_and_what_ends_them() {
    let part = |value: &[u8], end: u8| [&[0, u8::try_from(value.len()).unwrap()], value, &[end]].concat();
    let (minus, one) = ([0xff; 4], [0, 0, 0, 1]);
    let of_static = [&[0xff, 0xff][..], &part(&one, 0)].concat();
    check(
        "CompositeType(Int32Type,UTF8Type)",
        &[
            &[&[]],
            &[&of_static],
            &[&part(&minus, 0)],
            &[&[part(&minus, 0), part(b"x", 0)].concat()],
            &[&part(&one, 0xff)],
            &[&part(&one, 0)],
            &[&part(&one, 1)],
        ],
    );
}

#[test]
fn paths_by_what_they_are() {
    let compare = |text: &str, left: &[u8], right: &[u8]| {
        Comparator::of_paths(&kind(text)).unwrap().unwrap().compare(left, right)
    };
    assert_eq!(
        compare("ListType(Int32Type)", &uuid(0xffff_ffff_0000_1000, 0), &uuid(0x0001_1000, 0)),
        Ordering::Less
    );
    assert_eq!(compare("SetType(Int32Type)", &[0xff; 4], &[0; 4]), Ordering::Less);
    assert_eq!(compare("MapType(Int32Type,UTF8Type)", &[0xff; 4], &[0; 4]), Ordering::Less);
    assert_eq!(compare("UserType(ks,75,61:Int32Type)", &[0, 9], &[1, 0]), Ordering::Less);
    assert!(Comparator::of_paths(&kind("FrozenType(ListType(Int32Type))")).unwrap().is_none());
}

#[test]
fn types_without_an_order() {
    for text in
        ["DurationType", "CounterColumnType", "DynamicCompositeType(a=>BytesType)", "TupleType(DurationType)"]
    {
        assert_eq!(Comparator::new(&kind(text)).unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
    }
}

/// Values that are not of the type compare without a fault.
#[test]
fn any_bytes_compare() {
    let texts = [
        "Int32Type",
        "DoubleType",
        "DecimalType",
        "UUIDType",
        "FrozenType(MapType(Int32Type,DecimalType))",
        "TupleType(Int32Type,LongType)",
        "VectorType(UTF8Type,3)",
        "CompositeType(Int32Type,UTF8Type)",
    ];
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        u8::try_from(state >> 60).unwrap().wrapping_sub(3)
    };
    for text in texts {
        let comparator = Comparator::new(&kind(text)).unwrap();
        for length in 0..400 {
            let left: Vec<u8> = (0..length % 40).map(|_| next()).collect();
            let right: Vec<u8> = (0..length % 37).map(|_| next()).collect();
            assert_eq!(comparator.compare(&left, &right), comparator.compare(&right, &left).reverse());
            assert_eq!(comparator.compare(&left, &left), Ordering::Equal);
        }
    }
}

#[test]
fn arrays_compare_as_bytes_do() {
    let comparator = |text| Comparator::new(&kind(text)).unwrap();
    let four = Values::Four(alloc::vec![-1, 1]);
    assert_eq!(comparator("Int32Type").compare_at((&four, 0), (&four, 1)), Ordering::Less);
    assert_eq!(comparator("ReversedType(Int32Type)").compare_at((&four, 0), (&four, 1)), Ordering::Greater);
    assert_eq!(compare_bytes((&four, 0), (&four, 1)), Ordering::Greater);
    let vector = Values::Four(alloc::vec![bits(-1.0), bits(1.0)]);
    assert_eq!(comparator("VectorType(FloatType,1)").compare_at((&vector, 0), (&vector, 1)), Ordering::Less);
    let sixteen = Values::Sixteen(alloc::vec![uuid(0x1000, 0x80), uuid(0x1000, 0x7f)]);
    assert_eq!(comparator("TimeUUIDType").compare_at((&sixteen, 0), (&sixteen, 1)), Ordering::Less);
    assert_eq!(comparator("UUIDType").compare_at((&sixteen, 0), (&sixteen, 1)), Ordering::Greater);
}

fn bits(float: f32) -> i32 {
    i32::from_be_bytes(float.to_be_bytes())
}
