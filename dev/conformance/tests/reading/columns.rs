//! Footers that are read for some columns say the same of them as when all is read.

use std::sync::Arc;

use marquetry_base::{Bytes, ErrorKind, Limits, Result};
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::{self, Column, INT64, Struct, Table, V, end_file};
use marquetry_conformance::hostile::{self, Manner, Random, Report};
use marquetry_parquet::format::{FileMetaData, FooterColumns};
use marquetry_parquet::read::FooterReader;

const MANNERS: [Manner; 4] = [Manner::KIND, Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL];

fn read(file: &Bytes, columns: FooterColumns, manner: Manner) -> Result<(Arc<FileMetaData>, Report)> {
    let (mut reader, mut found) = (FooterReader::of_columns(FILE, Limits::DEFAULT, columns), None);
    let report = hostile::run(&mut reader, FILE, file, manner, |metadata| {
        found = Some(metadata);
        Ok(())
    })?;
    Ok((found.expect("a footer reader without metadata"), report))
}

/// The same, wherever it stands.
fn anywhere(metadata: &FileMetaData) -> FileMetaData {
    FileMetaData { footer_start: 0, footer_bytes: 0, ..metadata.clone() }
}

/// A field of a schema.
#[derive(Clone)]
struct Field {
    element: Struct,
    path: String,
    fields: Vec<Field>,
}

impl Field {
    /// Some fields of a group, at random.
    fn choose(random: &mut Random, prefix: &str, depth: usize) -> Vec<Field> {
        let count = 1 + random.index(if depth == 0 { 12 } else { 4 });
        let of = |at: usize, random: &mut Random| {
            // Some names are beginnings of others; some have what separates paths.
            let name = ["a", "ab", "a-b", "B", "b.c", "long name", "g", "x#2", "", "y", "z", "é", "w"][at];
            let path = format!("{prefix}{name}");
            let repetition = i32::from(random.byte() % 3);
            if depth < 4 && random.below(3) == 0 {
                let fields = Field::choose(random, &format!("{path}."), depth + 1);
                let mut element = craft::group(name, repetition, i32::try_from(fields.len()).unwrap());
                if random.below(4) == 0 {
                    element.set(6, V::I32(craft::LIST));
                }
                return Field { element, path, fields };
            }
            let mut element = craft::leaf(name, repetition, i32::from(1 + random.byte() % 2));
            if random.below(4) == 0 {
                element.set(9, V::I32(i32::from(random.byte())));
            }
            Field { element, path, fields: Vec::new() }
        };
        (0..count).map(|at| of(at, random)).collect()
    }

    fn is_leaf(&self) -> bool {
        self.element.0.contains_key(&1)
    }

    fn can_be_cut(&self) -> bool {
        !self.element.0.contains_key(&6) && self.element.0.get(&3) != Some(&V::I32(2))
    }

    /// What is left of it.
    fn keep(&self, wanted: &[String]) -> Option<Field> {
        let folded = self.path.to_ascii_lowercase();
        if wanted.iter().any(|path| path.to_ascii_lowercase() == folded) {
            return Some(self.clone());
        }
        let inside = format!("{folded}.");
        if self.is_leaf() || !wanted.iter().any(|path| path.to_ascii_lowercase().starts_with(&inside)) {
            return None;
        }
        if !self.can_be_cut() {
            return Some(self.clone());
        }
        let fields: Vec<Field> = self.fields.iter().filter_map(|field| field.keep(wanted)).collect();
        let mut element = self.element.clone();
        element.set(5, V::I32(i32::try_from(fields.len()).unwrap()));
        (!fields.is_empty()).then(|| Field { element, path: self.path.clone(), fields })
    }

    fn each(&self, take: &mut dyn FnMut(&Field)) {
        take(self);
        self.fields.iter().for_each(|field| field.each(take));
    }
}

fn all(fields: &[Field]) -> Vec<Field> {
    let mut found = Vec::new();
    fields.iter().for_each(|field| field.each(&mut |field| found.push(field.clone())));
    found
}

/// A footer of these fields. Chunks are like those of other leaves only by chance.
fn footer(fields: &[Field], leaves: &[usize], groups: usize, sorted_by: &[i32], seed: u64) -> Struct {
    let elements = all(fields);
    let types: Vec<&Field> = elements.iter().filter(|field| field.is_leaf()).collect();
    let root = Struct::of([(4, V::text("schema")), (5, V::I32(i32::try_from(fields.len()).unwrap()))]);
    let schema = std::iter::once(root).chain(elements.iter().map(|field| field.element.clone()));
    let chunk = |group: usize, at: usize| {
        let mut random = Random(seed ^ (1 + (group * 1000 + leaves[at]) as u64) << 20 | 1);
        random.number();
        let bytes = |random: &mut Random| V::Binary((0..random.below(9)).map(|_| random.byte()).collect());
        let count = |random: &mut Random| V::I64(i64::try_from(random.below(1 << 40)).unwrap());
        let mut metadata = Struct::of([
            (1, types[at].element.0[&1].clone()),
            (2, V::List((0..1 + random.below(3)).map(|_| V::I32(random.byte().into())).collect())),
            (3, V::List(types[at].path.split('.').map(V::text).collect())),
            (4, V::I32(0)),
        ]);
        for id in [5, 6, 7, 9, 11, 14] {
            metadata.set(id, count(&mut random));
        }
        if random.below(2) == 0 {
            let mut statistics = Struct::of([(3, count(&mut random)), (7, V::Bool(true))]);
            statistics.set(5, bytes(&mut random)).set(6, bytes(&mut random));
            metadata.set(12, V::Struct(statistics));
        }
        if random.below(3) == 0 {
            metadata.set(16, V::Struct(Struct::of([(3, V::List(vec![count(&mut random); 17]))])));
        }
        let mut outer = Struct::of([(2, V::I64(0)), (3, V::Struct(metadata))]);
        if random.below(2) == 0 {
            outer.set(4, count(&mut random)).set(5, V::I32(7));
        }
        V::Struct(outer)
    };
    let group = |group: usize| {
        let chunks = (0..leaves.len()).map(|at| chunk(group, at)).collect();
        let rows = V::I64(i64::try_from(group * 3).unwrap());
        let by =
            |leaf: &i32| V::Struct(Struct::of([(1, V::I32(*leaf)), (2, V::Bool(true)), (3, V::Bool(false))]));
        let sorted_by = V::List(sorted_by.iter().map(by).collect());
        V::Struct(Struct::of([(1, V::List(chunks)), (2, V::I64(5)), (3, rows), (4, sorted_by)]))
    };
    let order = |leaf: &usize| {
        let id = i16::try_from(1 + leaf % 4).unwrap();
        V::Struct(Struct::of([(id, V::Struct(Struct::default()))]))
    };
    Struct::of([
        (1, V::I32(1)),
        (2, V::List(schema.map(V::Struct).collect())),
        (3, V::I64(9)),
        (4, V::List((0..groups).map(group).collect())),
        (5, V::List(vec![V::Struct(Struct::of([(1, V::text("key")), (2, V::text("value"))]))])),
        (6, V::text("a test")),
        (7, V::List(leaves.iter().map(order).collect())),
    ])
}

#[test]
fn the_same_as_the_footer_of_a_file_without_the_others() {
    let mut kept = [0; 2];
    for seed in 1..=400_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let fields = Field::choose(&mut random, "", 0);
        let elements = all(&fields);
        let leaves: Vec<usize> = (0..elements.iter().filter(|field| field.is_leaf()).count()).collect();
        let groups = random.index(4);
        let mut wanted: Vec<String> = Vec::new();
        for _ in 0..random.below(5) {
            let path = elements[random.index(elements.len())].path.clone();
            wanted.push(if random.below(3) == 0 { path.to_ascii_uppercase() } else { path });
        }
        let sorted_by: Vec<i32> =
            (0..random.below(3)).map(|_| i32::try_from(random.index(leaves.len())).unwrap()).collect();

        let left: Vec<Field> = fields.iter().filter_map(|field| field.keep(&wanted)).collect();
        // Paths are unique.
        let paths: Vec<String> =
            elements.iter().filter(|field| field.is_leaf()).map(|field| field.path.clone()).collect();
        let left_leaves: Vec<usize> = all(&left)
            .iter()
            .filter(|field| field.is_leaf())
            .map(|field| paths.iter().position(|path| *path == field.path).unwrap())
            .collect();
        let place = |leaf: &i32| {
            let at = left_leaves.iter().position(|left| *left == usize::try_from(*leaf).unwrap());
            at.map(|at| i32::try_from(at).unwrap())
        };
        let left_sorted_by: Vec<i32> = sorted_by.iter().map_while(place).collect();
        kept[usize::from(left_leaves.len() < leaves.len())] += 1;

        let mut full = footer(&fields, &leaves, groups, &sorted_by, seed);
        let mut less = footer(&left, &left_leaves, groups, &left_sorted_by, seed);
        if seed % 5 == 0 {
            (full, less) = (full.with_unknown_fields(), less.with_unknown_fields());
        }
        let full = end_file(b"PAR1".to_vec(), &full.write());
        let less = end_file(b"PAR1".to_vec(), &less.write());
        let expected = FileMetaData {
            is_partial: left_leaves.len() < leaves.len(),
            ..anywhere(&canonical::metadata(&less, Manner::KIND).unwrap())
        };
        for manner in MANNERS {
            let columns = FooterColumns::new(wanted.clone());
            let (found, report) = read(&full, columns, manner).unwrap();
            assert_eq!(anywhere(&found), expected, "seed {seed}, {wanted:?}, {manner:?}");
            assert!(manner.budget > 1 || report.units_max < 20_000, "{} units", report.units_max);
        }
    }
    assert!(kept.iter().all(|count| *count > 20), "{kept:?}");
}

#[test]
fn what_is_not_there_is_an_error_unless_that_is_allowed() {
    let table = Table::new(["a", "b", "a", "a#7"].map(|name| Column::required(name, INT64)));
    let file = table.write();
    for manner in MANNERS {
        let error = read(&file, FooterColumns::new(["a", "nothing", "b.x"]), manner).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert_eq!(error.message(), "the file has no column \"b.x\", \"nothing\"");
        let names = |paths: &[&str]| {
            let columns = FooterColumns::new(paths.iter().copied()).allow_missing();
            let (metadata, _) = read(&file, columns, manner).unwrap();
            let nodes = metadata.schema.children(0).map(|node| metadata.schema.nodes()[node].name.clone());
            nodes.collect::<Vec<_>>()
        };
        assert_eq!(names(&["nothing", "b"]), ["b"]);
        assert_eq!(names(&[]), [""; 0]);
        // The first of a name and those that come after it are told apart by numbers.
        assert_eq!(names(&["a"]), ["a", "a"]);
        assert_eq!(names(&["a#2"]), ["a", "a", "a#7"]);
        assert_eq!(names(&["a#7"]), ["a#7"]);
    }
}

/// A footer that lies about what is skipped is read alike, however it arrives.
#[test]
fn faults_do_not_depend_on_pieces() {
    let mut random = Random(77);
    let fields = Field::choose(&mut random, "", 0);
    let leaves: Vec<usize> = (0..all(&fields).iter().filter(|field| field.is_leaf()).count()).collect();
    let full = footer(&fields, &leaves, 2, &[0], 5).write();
    let first = fields[0].path.clone();
    let mut counts = [0; 2];
    for at in 0..full.len() {
        for change in [1, 0x80, 0x0f] {
            let mut bytes = full.clone();
            bytes[at] ^= change;
            let file = end_file(b"PAR1".to_vec(), &bytes);
            let one = read(&file, FooterColumns::new([first.clone()]), Manner::KIND);
            counts[usize::from(one.is_ok())] += 1;
            for manner in [Manner::ONE_BYTE, Manner::DISORDERLY] {
                let other = read(&file, FooterColumns::new([first.clone()]), manner);
                match (&one, other) {
                    (Ok((one, _)), Ok((other, _))) => assert_eq!(*one, other, "byte {at}"),
                    (Err(one), Err(other)) => {
                        assert_eq!(one.kind(), other.kind(), "byte {at}: {one}; {other}")
                    }
                    (one, other) => panic!("byte {at}: {one:?}; {other:?}"),
                }
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

/// The count of a row group's chunks is checked, whichever are wanted.
#[test]
fn chunks_are_counted() {
    let table = Table::new(["a", "b"].map(|name| Column::required(name, INT64)));
    let (file, mut footer) = table.group(1, []).parts();
    footer.set(3, V::I64(1));
    let bytes = end_file(file, &footer.write());
    let error = read(&bytes, FooterColumns::new(["b"]), Manner::KIND).unwrap_err();
    assert_eq!(error.message(), "a row group of 0 column chunks, in a schema of 2 leaves");
    assert_eq!(error.place().row_group, Some(0));
}

/// Ten of very many columns: steps are as short as any.
#[test]
fn many_columns_that_nobody_asked_for() {
    let columns = (0..20_000).map(|number| Column::required(&format!("feature_{number}"), INT64));
    let chunks = |_| (0..20_000).map(|_| craft::Chunk::new(1, [])).collect::<Vec<_>>();
    let mut table = Table::new(columns);
    for group in 0..3 {
        table = table.group(1, chunks(group));
    }
    let file = table.write();
    let wanted = || FooterColumns::new((0..10).map(|at| format!("feature_{}", at * 1999 + 7)));
    let (metadata, report) = read(&file, wanted(), Manner { budget: 1, ..Manner::KIND }).unwrap();
    assert_eq!((metadata.schema.leaves().len(), metadata.row_groups.len()), (10, 3));
    println!(
        "{} units in the largest step, {} in all, of {} bytes",
        report.units_max,
        report.units,
        file.len()
    );
    assert!(report.units_max < 20_000);
    let (_, whole) = read(&file, wanted(), Manner::KIND).unwrap();
    assert!(whole.units < 40_000_000, "{} units", whole.units);
}
