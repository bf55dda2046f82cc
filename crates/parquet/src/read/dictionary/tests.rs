use super::*;
use crate::batch::Layout;
use crate::encoding::hybrid::Hybrid;
use crate::read::builder::Builder;
use alloc::string::String;

const ACCEPT: Accept = Accept { value_bytes_max: 1 << 20, width: None, only_text: true };

/// Decodes a page that comes in chunks of `chunk_bytes`, or as few more as are asked for, at a budget of `units` a step.
fn decode(
    physical_type: PhysicalType,
    page: &[u8],
    entries: usize,
    (chunk_bytes, units): (usize, u64),
) -> Result<Entries> {
    let limits = Limits::DEFAULT;
    let mut decoder =
        DictionaryDecoder::new(Encoding::Plain, physical_type, page.len(), entries, ACCEPT, &limits)?;
    let (mut supplied, mut steps) = (0, 0);
    loop {
        steps += 1;
        assert!(steps < 1_000_000, "no end");
        match decoder.step(&mut Memory::unlimited(), &mut Budget::new(units))? {
            Decoded::All => return Ok(decoder.finish(physical_type)),
            Decoded::Some => {}
            Decoded::Chunk { at, bytes } => {
                assert!(at + bytes > supplied && at <= supplied, "what was there is asked for");
                let end = (at + chunk_bytes.max(bytes)).min(page.len());
                assert!(end > supplied, "more than the page has");
                supplied = end;
                decoder.supply(Bytes::copy_from_slice(&page[at..end]));
            }
        }
    }
}

/// The values at `indices`, as a batch has them.
fn look_up(entries: &Entries, physical_type: PhysicalType, indices: &[u32]) -> Result<Values> {
    let mut runs = Vec::new();
    for index in indices {
        runs.push(2);
        runs.extend(index.to_le_bytes());
    }
    let mut builder = Builder::new(physical_type, indices.len(), Layout::Dense, false);
    let mut hybrid = Hybrid::new(Bytes::from(runs).into(), 32);
    match entries {
        Entries::Segmented(segmented) => {
            assert_eq!(builder.look_up(segmented, &mut hybrid, indices.len())?, indices.len());
        }
        Entries::Whole(_) => panic!("one array"),
    }
    builder.end_slice(indices.len(), indices.len())?;
    Ok(builder.finish(0, physical_type, Some(entries))?.values)
}

/// Long and short ones, and of no byte.
fn words(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("é{number} ").repeat(number % 5)).collect()
}

fn plain_strings(words: &[String]) -> Vec<u8> {
    let mut page = Vec::new();
    for word in words {
        page.extend(u32::try_from(word.len()).unwrap().to_le_bytes());
        page.extend(word.bytes());
    }
    page
}

#[test]
fn small_ones_are_one_array_whatever_the_chunks() {
    let numbers: Vec<i64> = (0..300).map(|number| number * 77 - 5).collect();
    let page: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let words = words(300);
    let strings = plain_strings(&words);
    for chunk_bytes in [1, 5, 13, 64, 700, usize::MAX / 2] {
        for units in [0, 100, u64::MAX] {
            let manner = (chunk_bytes, units);
            let found = decode(PhysicalType::Int64, &page, 300, manner).unwrap();
            assert_eq!(found.whole(), Some(&Values::Int64(numbers.clone().into())));
            let found = decode(PhysicalType::FixedLenByteArray(24), &page, 100, manner).unwrap();
            let Some(Values::FixedLenByteArray(values)) = found.whole() else { panic!("{found:?}") };
            assert_eq!((&**values.bytes(), values.width(), values.len()), (&page[..], 24, 100));
            let found = decode(PhysicalType::ByteArray, &strings, 300, manner).unwrap();
            let Some(Values::ByteArray(values)) = found.whole() else { panic!("{found:?}") };
            assert!(values.iter().eq(words.iter().map(String::as_bytes)));
            let buffers: usize = values.buffers().iter().map(Bytes::len).sum();
            assert_eq!(buffers, strings.len(), "each byte in one buffer");
            assert_eq!(values.buffers().len() > 1, chunk_bytes < strings.len());
            assert_eq!(found.held(), strings.len() + 300 * 16);
        }
    }
}

#[test]
fn large_ones_are_segments_of_less_than_a_mebibyte() {
    const COUNT: usize = 200_000;
    let indices = [0, 1, 65_535, 65_536, 131_071, 131_072, 199_999, 32_767, 32_768];
    let beyond = |entries: &Entries, physical_type| {
        let error = look_up(entries, physical_type, &[200_000]).unwrap_err();
        assert_eq!(error.message(), "an index beyond a dictionary of 200000 entries");
    };
    let numbers: Vec<u64> = (0..COUNT as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let page: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    for manner in [(100_000, u64::MAX), (usize::MAX / 2, 10_000)] {
        let found = decode(PhysicalType::Int64, &page, COUNT, manner).unwrap();
        assert!(found.whole().is_none() && found.kept().is_none());
        let expected: Vec<i64> = indices.iter().map(|&at| numbers[at as usize].cast_signed()).collect();
        let values = look_up(&found, PhysicalType::Int64, &indices).unwrap();
        assert_eq!(values, Values::Int64(expected.into()));
        beyond(&found, PhysicalType::Int64);
        let Entries::Segmented(segmented) = &found else { panic!("{found:?}") };
        let Segments::Int64(segments) = &segmented.segments else { panic!("{segmented:?}") };
        assert!(segments.iter().all(|segment| segment.capacity() * 8 <= SEGMENT_BYTES_MAX));
        // The last one's may be less.
        assert_eq!(found.held(), segments.len() * SEGMENT_BYTES_MAX);

        let wide = PhysicalType::FixedLenByteArray(8);
        let found = decode(wide, &page, COUNT, manner).unwrap();
        let Values::FixedLenByteArray(values) = look_up(&found, wide, &indices).unwrap() else { panic!() };
        let expected = indices.iter().map(|&at| numbers[at as usize].to_le_bytes());
        assert!((0..indices.len()).map(|at| values.get(at)).eq(expected.map(|value| value.to_vec())));
        beyond(&found, wide);

        let words = words(COUNT);
        let found = decode(PhysicalType::ByteArray, &plain_strings(&words), COUNT, manner).unwrap();
        let Values::ByteArray(values) = look_up(&found, PhysicalType::ByteArray, &indices).unwrap() else {
            panic!()
        };
        assert!(values.iter().eq(indices.iter().map(|&at| words[at as usize].as_bytes())));
        assert_eq!(found.buffers().map(|buffers| buffers.len() > 10), Some(manner.0 == 100_000));
        beyond(&found, PhysicalType::ByteArray);
    }
}

#[test]
fn long_strings_are_checked_in_slices() {
    let long = "aé".repeat(100_000);
    for (cut, text) in [(0, true), (1, false)] {
        let mut value = long.clone().into_bytes();
        value.truncate(value.len() - cut);
        let mut page = u32::try_from(value.len()).unwrap().to_le_bytes().to_vec();
        page.extend(&value);
        page.extend([1, 0, 0, 0, b'x']);
        for manner in [(1000, 0), (usize::MAX / 2, 0), (usize::MAX / 2, u64::MAX)] {
            let found = decode(PhysicalType::ByteArray, &page, 2, manner);
            let text_found = found.as_ref().map_err(|error| error.message());
            assert_eq!(text_found.is_ok(), text, "{text_found:?}");
            if let Ok(Entries::Whole(values)) = &found
                && let Values::ByteArray(values) = &**values
            {
                assert!(values.iter().eq([&value[..], b"x"]));
            }
        }
    }
    // No character is that long.
    let page = [&100_000u32.to_le_bytes()[..], &[0x80; 100_000]].concat();
    let error = decode(PhysicalType::ByteArray, &page, 1, (usize::MAX / 2, 0)).unwrap_err();
    assert_eq!(error.message(), "text that is not UTF-8");
}

#[test]
fn what_is_refused() {
    let fails = |physical_type, page: &[u8], entries| {
        let error = decode(physical_type, page, entries, (3, 0)).map(|_| ()).unwrap_err();
        String::from(error.message())
    };
    let strings = PhysicalType::ByteArray;
    assert_eq!(fails(PhysicalType::Int32, &[0; 7], 2), "a dictionary of 2 entries in 7 bytes");
    assert_eq!(fails(PhysicalType::Boolean, &[0; 7], 2), "a dictionary of booleans");
    assert_eq!(fails(strings, &[5, 0, 0, 0, 1], 1), "a value reaches beyond the page's end");
    assert_eq!(fails(strings, &[5, 0, 0, 0, 1, 0, 0, 0], 2), "a value reaches beyond the page's end");
    assert_eq!(fails(strings, &[0xff; 5], 1), "a value of negative length");
    let all = decode(PhysicalType::FixedLenByteArray(0), &[], 7, (3, 0)).unwrap();
    assert_eq!(all.whole().map(Values::len), Some(7));
    assert_eq!(decode(strings, &[], 0, (3, 0)).unwrap().whole().map(Values::len), Some(0));
}
