//! Row groups are handed out as objects of their own.

use marquetry_base::{Codec, Fields, Frame};
use marquetry_ceph::{Method, call};
use marquetry_parquet::format::Compression;

use crate::{Object, found, rows_of, trips};

/// Row groups of an object, in pieces.
fn split(object: &Object, groups: [u64; 2]) -> Vec<u8> {
    let (mut file, mut cursor) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let mut frame = Frame::new(*b"MQQ1");
        frame.push(16, groups.map(u64::to_le_bytes).as_flattened()).push_u64(7, 10_000);
        if let Some(cursor) = cursor.take() {
            frame.push(5, &cursor);
        }
        let answer = call(Method::Split, &mut object.bytes.as_slice(), &frame.into_bytes());
        for field in Fields::of(&answer, *b"MQA1").unwrap() {
            let field = field.unwrap();
            match field.number {
                1 => file.extend_from_slice(field.bytes),
                2 => cursor = Some(field.bytes.to_vec()),
                7 => panic!("{}", String::from_utf8_lossy(field.bytes)),
                _ => {}
            }
        }
        if cursor.is_none() {
            return file;
        }
    }
}

#[test]
fn row_groups_are_handed_out_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let object = Object::new(trips(9_000, Compression::Codec(Codec::Zstd)));
    let rows = rows_of(folder.path(), &object.bytes);
    for groups in [[0, 1], [1, 3], [0, 3], [2, 2]] {
        let file = split(&object, groups);
        let [start, end] = groups.map(|group| 3000 * usize::try_from(group).unwrap());
        assert!(rows_of(folder.path(), &file) == rows.slice(start, end - start), "{groups:?}");
        // Their pages are found by their index, and their Bloom filters are theirs.
        let mut part = Object::new(file);
        let hits = found(&mut part, "fare BETWEEN 10 AND 20 AND city = 'a city, number 77'");
        let of_rows =
            |row: usize| (80..=160).contains(&(row % 4000)) && !row.is_multiple_of(7) && row % 100 == 77;
        assert_eq!(hits, (start..end).filter(|row| of_rows(*row)).count() as u64);
    }
}
