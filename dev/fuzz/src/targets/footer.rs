//! Footers: Thrift of arbitrary structures, then changed; and all that is made of a footer before a page is read.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, Limits, Result};
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::craft::{Struct, V, end_file};
use marquetry_conformance::hostile::{self, Manner};
use marquetry_parquet::format::{FileMetaData, FooterColumns, RowGroup};
use marquetry_parquet::prune::LeafOrder;
use marquetry_parquet::read::{BloomProbe, ChunkIndex, Conform, PageIndexReader, ReadOptions};
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::{PathError, PathPart, Plan as _, Projection, Schema, Union};

use crate::choices::Choices;
use crate::edit::{Edit, any_value, lie};
use crate::host::{self, LIMITS, Watched, bounded, check_error};
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// A footer, and what is made of it.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let manner = host::manner(choices);
    let limits = Limits {
        nesting: choices.pick(&[64, 2, 5]),
        footer_bytes: choices.pick(&[1 << 20, 200]),
        page_index_bytes: choices.pick(&[1 << 20, 40]),
        ..LIMITS
    };
    let mut is_right = true;
    let (mut file, footer) = if choices.once_in(12) {
        is_right = false;
        (b"PAR1".to_vec(), choices.clone().rest().to_vec())
    } else {
        let tree = Tree::choose(choices, 6);
        let mut plan = Plan::choose(tree, 6, Only { uncompressed: true, one_page: false }, choices);
        plan.index(choices);
        let (file, mut footer) = plan.parts();
        is_right &= decorate(&mut footer, choices);
        for _ in 0..choices.below(6) {
            is_right = false;
            lie(&mut footer, choices);
        }
        let mut footer = footer.write();
        for _ in 0..choices.below(4) {
            is_right = false;
            Edit::choose(choices).apply(&mut footer);
        }
        (file, footer)
    };
    // Indexes may point anywhere: into pages, and into these bytes.
    file.extend(choices.bytes(60));
    let mut bytes = end_file(file, &footer).to_vec();
    if choices.once_in(10) {
        is_right = false;
        Edit::choose(choices).apply(&mut bytes);
    }
    let bytes = Bytes::from(bytes);
    let manner = host::for_file(manner, &bytes);
    is_right &= limits.nesting == 64 && footer.len() <= limits.footer_bytes as usize;
    let kind = bounded(&bytes, &limits, || host::footer(&bytes, limits, Manner::KIND));
    let hostile = bounded(&bytes, &limits, || host::footer(&bytes, limits, manner));
    assert_eq!(hostile, kind, "another footer by {manner:?}");
    match kind {
        Err(error) => {
            check_error(&error);
            assert!(!is_right, "a footer without a lie: {error:?}");
            let columns = FooterColumns::new([format!("c{}", choices.below(4))]);
            let _ = some_columns(&bytes, limits, columns, manner);
        }
        Ok(metadata) => {
            check_some(&bytes, &metadata, limits, choices, manner);
            bounded(&bytes, &limits, || make_all(&metadata, choices));
            let kind = bounded(&bytes, &limits, || indexes(&bytes, &metadata, limits, Manner::KIND));
            let hostile = bounded(&bytes, &limits, || indexes(&bytes, &metadata, limits, manner));
            assert_eq!(hostile, kind, "other indexes by {manner:?}");
            let kind = bounded(&bytes, &limits, || filters(&bytes, &metadata, Manner::KIND));
            let hostile = bounded(&bytes, &limits, || filters(&bytes, &metadata, manner));
            assert_eq!(hostile, kind, "other filters by {manner:?}");
        }
    }
}

/// The footer of some columns, which depends on nothing but the bytes.
fn some_columns(
    bytes: &Bytes,
    limits: Limits,
    columns: FooterColumns,
    manner: Manner,
) -> Result<Arc<FileMetaData>> {
    let kind = bounded(bytes, &limits, || host::footer_of(bytes, limits, columns.clone(), Manner::KIND));
    let hostile = bounded(bytes, &limits, || host::footer_of(bytes, limits, columns, manner));
    assert_eq!(hostile, kind, "another footer of some columns by {manner:?}");
    kind.inspect_err(check_error)
}

/// Read for some of its columns, a footer says the same of them.
fn check_some(
    bytes: &Bytes,
    whole: &FileMetaData,
    limits: Limits,
    choices: &mut Choices<'_>,
    manner: Manner,
) {
    let paths: Vec<String> =
        (0..whole.schema.leaves().len()).map(|leaf| whole.schema.leaf_path(leaf)).collect();
    let wanted = paths.iter().filter(|_| choices.once_in(3)).cloned();
    let some = match some_columns(bytes, limits, FooterColumns::new(wanted), manner) {
        Ok(some) => some,
        // The order of the footer's parts is of importance only here.
        Err(error) => return assert!(error.message().contains("before the schema"), "{error:?}"),
    };
    assert_eq!((some.rows, some.row_groups.len()), (whole.rows, whole.row_groups.len()));
    assert_eq!(some.is_partial, some.schema.leaves().len() < paths.len());
    for leaf in 0..some.schema.leaves().len() {
        let path = some.schema.leaf_path(leaf);
        let mut same = paths.iter().enumerate().filter(|(_, other)| **other == path);
        // Where fields have the same name, or a name has dots, it is not known which this is.
        let (Some((other, _)), None) = (same.next(), same.next()) else { continue };
        for (some, whole) in some.row_groups.iter().zip(&whole.row_groups) {
            assert_eq!(some.columns[leaf], whole.columns[other], "of the column {path:?}");
        }
    }
}

/// Adds what footers may have besides; true if none of it is a lie.
fn decorate(footer: &mut Struct, choices: &mut Choices<'_>) -> bool {
    if choices.once_in(3) {
        let pair = Struct::of([
            (1, V::Binary(choices.bytes(10).to_vec())),
            (2, V::Binary(choices.bytes(10).to_vec())),
        ]);
        footer.set(5, V::List(vec![V::Struct(pair); choices.below(3)]));
    }
    if choices.once_in(3) {
        let order = |id: i16| V::Struct(Struct::of([(id, V::Struct(Struct::default()))]));
        let orders = (0..choices.below(8)).map(|_| order(1 + choices.below(3) as i16)).collect();
        footer.set(7, V::List(orders));
    }
    let encryption = choices.once_in(12);
    if encryption {
        footer.set(8, any_value(choices));
    }
    !encryption
}

/// All that is made of a footer's schema and statistics.
fn make_all(metadata: &FileMetaData, choices: &mut Choices<'_>) {
    let schema = &metadata.schema;
    check_schema(schema);
    for (number, _) in schema.leaves().iter().enumerate() {
        let order = LeafOrder::of(metadata, number).expect("the order of a leaf");
        for group in &metadata.row_groups {
            let known = order.of_chunk(&group.columns[number]);
            if let (Some(order), Some(min), Some(max)) = (order.order(), &known.min, &known.max) {
                assert!(order.is_valid(min.value) && order.is_valid(max.value), "a bound of another type");
            }
        }
    }
    let _ = Program::plan(Arc::clone(schema), None).at_once().inspect_err(check_error);
    let even = (0..schema.leaves().len()).step_by(2).collect();
    let _ = Program::plan(Arc::clone(schema), Some(even)).at_once().inspect_err(check_error);
    let projection = project(schema, choices);
    let mut union = Union::new();
    union.add(Arc::clone(schema));
    if let Some(projection) = &projection {
        check_schema(projection);
        union.add(Arc::clone(projection));
        // A part of a file can be read from the file.
        if let Err(error) = Conform::plan(Arc::clone(schema), Arc::clone(projection), &[]).at_once() {
            check_conform(&error);
        }
    }
    let unified = union.plan().at_once().expect("a union");
    check_schema(&unified.schema);
    let is_readable = unified.differences.iter().all(|difference| difference.kind.is_bridged());
    match Conform::plan(Arc::clone(schema), Arc::clone(&unified.schema), &[]).at_once() {
        Ok(conform) => assert!(conform.reads().iter().all(|&leaf| leaf < schema.leaves().len())),
        Err(error) => {
            check_conform(&error);
            assert!(!is_readable || error.kind() != marquetry_base::ErrorKind::Corrupt, "{error:?}");
        }
    }
}

fn check_conform(error: &Error) {
    if error.kind() != marquetry_base::ErrorKind::Conversion {
        check_error(error);
    }
}

/// A schema's tree is one, whatever the file says.
fn check_schema(schema: &Schema) {
    use marquetry_parquet::schema::NodeKind;
    for (number, node) in schema.nodes().iter().enumerate().skip(1) {
        assert!(node.parent < number, "a parent behind its child");
        match node.kind {
            NodeKind::Leaf { leaf } => assert_eq!(schema.leaves()[leaf].node, number),
            NodeKind::Group { end } => assert!(end > number && end <= schema.nodes().len()),
        }
    }
    for leaf in schema.leaves() {
        assert!(leaf.repetition_max <= leaf.definition_max);
    }
    let below: usize = schema.children(0).map(|node| schema.leaves_of(node).count()).sum();
    assert_eq!(below, schema.leaves().len());
}

/// A projection by paths of the schema, and others.
fn project(schema: &Arc<Schema>, choices: &mut Choices<'_>) -> Option<Arc<Schema>> {
    let mut projection = Projection::new(Arc::clone(schema));
    let columns: Vec<usize> = schema.children(0).collect();
    for _ in 0..1 + choices.below(4) {
        let Some(&column) = columns.get(choices.below(columns.len())) else { break };
        if choices.once_in(2) {
            let _ = projection.add_column(column);
            continue;
        }
        let leaves: Vec<usize> = schema.leaves_of(column).collect();
        let Some(&leaf) = leaves.get(choices.below(leaves.len())) else { continue };
        let whole = choices.once_in(2);
        let part = |text: &str| PathPart { text: text.to_string(), is_whole: whole };
        let mut path: Vec<PathPart> = schema.leaf_path(leaf).split('.').map(part).collect();
        if choices.once_in(3) {
            path.truncate(1 + choices.below(path.len()));
        }
        if choices.once_in(4) && !path.is_empty() {
            let at = choices.below(path.len());
            path[at].text = choices.pick(&["element", "list", "key", "", "X"]).to_string();
        }
        if let Err(PathError::Broken(error)) = projection.add(&path, &mut Budget::unlimited()) {
            check_error(&error);
        }
    }
    projection.plan().at_once().inspect_err(check_error).ok().map(Arc::new)
}

/// What Bloom filters say of some hashes: those of the first chunks that have any.
fn filters(bytes: &Bytes, metadata: &Arc<FileMetaData>, manner: Manner) -> Vec<Result<Vec<bool>>> {
    let leaves = 0..metadata.schema.leaves().len();
    let groups = metadata.row_groups.iter().enumerate();
    let chunks = groups.flat_map(|(number, group)| leaves.clone().map(move |leaf| (number, group, leaf)));
    let with = chunks.filter(|(_, group, leaf)| group.columns[*leaf].bloom_filter.is_some());
    let ask = |(group, _, leaf): (usize, &RowGroup, usize)| {
        let mut found = Vec::new();
        let hashes = vec![0, u64::MAX, 0x5555_5555_5555_5555];
        let probe = BloomProbe::new(FILE, metadata, group, leaf, hashes).inspect_err(check_error)?;
        let asked = hostile::run(&mut Watched::new(probe), FILE, bytes, manner, |is_there| {
            found.push(is_there);
            Ok(())
        });
        asked.inspect_err(check_error).map(|_| found)
    };
    with.take(FILTERS_MAX).map(ask).collect()
}

/// Filters that are asked.
const FILTERS_MAX: usize = 10;

/// The page indexes, until one is wrong.
fn indexes(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    limits: Limits,
    manner: Manner,
) -> (Vec<ChunkIndex>, Option<Error>) {
    let mut found = Vec::new();
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let result = PageIndexReader::new(FILE, Arc::clone(metadata), &options).and_then(|reader| {
        hostile::run(&mut Watched::new(reader), FILE, bytes, manner, |index: ChunkIndex| {
            let order = LeafOrder::of(metadata, index.leaf).expect("the order of a leaf");
            let pages = index.offset_index.pages.len();
            if let Some(bounds) = &index.column_index {
                assert_eq!(bounds.pages(), pages);
                for page in 0..pages {
                    let _ = order.of_page(bounds, page);
                }
            }
            found.push(index);
            Ok(())
        })
    });
    let error = result.err().inspect(check_error);
    (found, error)
}
