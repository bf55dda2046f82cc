//! What is skimmed, because it came in pieces, is what is read where it stands: the same structures, and the same errors.

use marquetry_base::{Bytes, Limits, Result};
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::{Struct, Table, V, end_file};
use marquetry_conformance::hostile::{self, Manner, Random};
use marquetry_parquet::read::{ChunkIndex, PageIndexReader, PageInfo, PageScanner, ReadOptions};

use super::{mutate, small_files};

const MANNERS: [Manner; 2] = [Manner::ONE_BYTE, Manner::DISORDERLY];

fn headers(bytes: &Bytes, manner: Manner) -> Result<Vec<PageInfo>> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let mut scanner = PageScanner::new(FILE, &metadata, 0, 0, Limits::DEFAULT)?;
    let mut found = Vec::new();
    hostile::run(&mut scanner, FILE, bytes, manner, |page| {
        found.push(page);
        Ok(())
    })?;
    Ok(found)
}

fn indexes(bytes: &Bytes, manner: Manner) -> Result<Vec<ChunkIndex>> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let mut reader = PageIndexReader::new(FILE, metadata, &ReadOptions::default())?;
    let mut found = Vec::new();
    hostile::run(&mut reader, FILE, bytes, manner, |index| {
        found.push(index);
        Ok(())
    })?;
    Ok(found)
}

/// Also where a coordinate is NaN, which is not equal to itself.
fn assert_same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T, what: impl Fn() -> String) {
    if found != expected {
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", what());
    }
}

fn in_pieces(cases: usize, seed: u64) {
    let mut random = Random(seed);
    let files: Vec<Vec<u8>> = small_files()
        .into_iter()
        .flat_map(|(_, table)| [table.clone(), Table { unknown_fields: true, ..table }])
        .map(|table| table.write().to_vec())
        .collect();
    let (mut good, mut bad) = (0, 0);
    let mut count = |is_good: bool| if is_good { good += 1 } else { bad += 1 };
    for number in 0..cases {
        let file = &files[number % files.len()];
        let tail = file.len() - 8;
        let footer_bytes = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) as usize;
        let (pages, footer) = file[..tail].split_at(tail - footer_bytes);
        let lying = end_file(pages.to_vec(), &mutate(footer, &mut random));
        let expected = canonical::metadata(&lying, Manner::KIND);
        count(expected.is_ok());
        for manner in MANNERS {
            assert_same(&canonical::metadata(&lying, manner), &expected, || {
                format!("footer {number}, {manner:?}")
            });
        }
        let lying = end_file([b"PAR1", &mutate(&pages[4..], &mut random)[..]].concat(), footer);
        let expected = headers(&lying, Manner::KIND);
        count(expected.is_ok());
        for manner in MANNERS {
            assert_same(&headers(&lying, manner), &expected, || format!("page headers {number}, {manner:?}"));
        }
    }
    println!("{good} good, {bad} bad");
    assert!(good > cases / 100 && bad > cases / 100);
}

#[test]
fn random_thrift_in_pieces() {
    in_pieces(500, 0x0dd0_5eed_1234_5678);
}

#[test]
#[ignore = "soak: a hundred thousand cases"]
fn much_random_thrift_in_pieces() {
    in_pieces(100_000, 0x5eed_0dd0_8765_4321);
}

/// A field that nobody knows, and that is longer than what is read where it stands.
fn long_unknown() -> V {
    let deep =
        (0..30).fold(Struct::default(), |inner, _| Struct::of([(1, V::Struct(inner)), (9, V::Bool(true))]));
    V::List(vec![
        V::Struct(Struct::of([
            (1, V::List(vec![V::Bool(true); 40_000])),
            (2, V::Map(vec![(V::I32(-7), V::Binary(vec![b'?'; 900])); 30])),
            (3, V::Set(vec![V::Uuid([3; 16]); 2_000])),
            (4, V::Struct(deep)),
            (5, V::Double(1.5)),
        ]));
        3
    ])
}

#[test]
fn long_unknown_fields_anywhere() {
    let mut compared = 0;
    for (name, table) in small_files() {
        let plain = table.write();
        let Ok(expected) = canonical::metadata(&plain, Manner::KIND) else { continue };
        let mut long = table.clone();
        long.footer.set(2000, long_unknown());
        for column in &mut long.columns {
            column.element.set(2000, long_unknown());
        }
        if let Some((_, elements)) = &mut long.tree {
            elements.iter_mut().for_each(|element| _ = element.set(2000, long_unknown()));
        }
        for chunk in long.groups.iter_mut().flat_map(|(_, chunks)| chunks) {
            chunk.metadata.set(2000, long_unknown());
            chunk.outer.set(2000, long_unknown());
            chunk.pages.iter_mut().for_each(|page| _ = page.header.set(2000, long_unknown()));
            for (_, index) in &mut chunk.indexes {
                index.set(2000, long_unknown());
                if let Some(V::List(pages)) = index.0.get_mut(&1) {
                    for page in pages {
                        if let V::Struct(page) = page {
                            page.set(2000, long_unknown());
                        }
                    }
                }
            }
        }
        let long = long.write();
        for manner in [Manner::KIND, Manner::USUAL, Manner::DISORDERLY] {
            let found =
                canonical::metadata(&long, manner).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(found.schema, expected.schema, "{name}");
            assert_eq!((found.rows, found.row_groups.len()), (expected.rows, expected.row_groups.len()));
            for (one, other) in found.row_groups.iter().zip(&expected.row_groups) {
                for (one, other) in one.columns.iter().zip(&other.columns) {
                    assert_eq!((&one.statistics, one.values), (&other.statistics, other.values), "{name}");
                    assert_eq!(one.encodings, other.encodings, "{name}");
                }
            }
            if expected.row_groups.is_empty() {
                continue;
            }
            let kinds = |pages: Result<Vec<PageInfo>>| {
                pages.map(|pages| pages.into_iter().map(|page| page.header).collect::<Vec<_>>())
            };
            let (one, other) = (headers(&long, manner), headers(&plain, Manner::KIND));
            assert_eq!(kinds(one).ok(), kinds(other).ok(), "{name}");
            let (one, other) = (indexes(&long, manner), indexes(&plain, Manner::KIND));
            assert_eq!(one.is_ok(), other.is_ok(), "{name}: {one:?}");
            for (one, other) in one.into_iter().flatten().zip(other.into_iter().flatten()) {
                assert_eq!(one.column_index, other.column_index, "{name}");
                assert_eq!(one.offset_index.pages.len(), other.offset_index.pages.len(), "{name}");
            }
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared} compared");
}

#[test]
fn what_is_nested_too_deep_is_so_in_pieces_too() {
    // Structures in the encryption algorithm, which is known only by a field's number; and then a type that nobody knows.
    for depth in 55..75 {
        let footer = [vec![0x8c; depth], vec![0x1f]].concat();
        let bytes = end_file(b"PAR1".to_vec(), &footer);
        let kind = canonical::metadata(&bytes, Manner::KIND).unwrap_err();
        for manner in [Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
            assert_eq!(canonical::metadata(&bytes, manner).unwrap_err(), kind, "{depth}, {manner:?}");
        }
        let too_deep = kind.message().ends_with("structures nested too deep");
        assert_eq!(too_deep, depth > 66, "{depth}: {kind:?}");
    }
}
