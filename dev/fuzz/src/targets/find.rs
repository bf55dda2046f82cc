//! Predicates, and the rows that they find in files, right or not.

use std::sync::Arc;

use marquetry_base::{Bytes, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::finding::Runs;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_parquet::find::{FindOptions, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::schema::Schema;
use marquetry_text::predicate;

use crate::choices::Choices;
use crate::host::{self, LIMITS, Watched, bounded, check_error};
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// Ranges of rows that are looked at.
const RUNS_MAX: usize = 3_000;

/// A file of any schema, and a predicate over its columns; or any text as one.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let manner = host::manner(choices);
    let tree = Tree::choose(choices, 4);
    let rows_max = choices.pick(&[20, 3, 100, 400]);
    let mut plan = Plan::choose(tree, rows_max, Only::default(), choices);
    // Indexes say of pages what they like.
    let has_indexes = !choices.once_in(3);
    if has_indexes {
        plan.index(choices);
    }
    if choices.once_in(2) {
        plan.lie(4, choices);
    }
    let bytes = plan.write();
    let Ok(metadata) = host::footer(&bytes, LIMITS, Manner::KIND).inspect_err(check_error) else { return };
    let mut options = FindOptions::default();
    options.read.limits = LIMITS;
    options.structures.statistics = !choices.once_in(4);
    options.structures.index = !choices.once_in(4);
    options.structures.dictionary = !choices.once_in(4);
    let text = text(&metadata.schema, choices);
    let predicate = match predicate::parse(&text, &metadata.schema) {
        Ok(predicate) => predicate,
        Err(error) => {
            assert!(!error.message.is_empty() && error.at.end <= text.len(), "{error:?} of {text:?}");
            drop(error.picture(&text));
            return;
        }
    };
    let manner = host::for_file(manner, &bytes);
    let search = |options: &FindOptions, manner| {
        bounded(&bytes, &LIMITS, || rows(&bytes, &metadata, &predicate, options, manner))
    };
    let kind = search(&options, Manner::KIND);
    let hostile = search(&options, manner);
    // A wrong file has several errors, and which is met first depends on how far columns are read ahead.
    match (&kind, &hostile) {
        (Ok(kind), Ok(hostile)) => assert_eq!(hostile, kind, "{text}, by {manner:?}"),
        (kind, hostile) => assert_eq!(hostile.is_ok(), kind.is_ok(), "{text}, by {manner:?}"),
    }
    if plan.lies == 0 && !has_indexes {
        options.structures.statistics = false;
        options.structures.index = false;
        options.structures.dictionary = false;
        let all = search(&options, Manner::KIND).expect("a file without a lie");
        assert_eq!(kind.expect("a file without a lie"), all, "{text}");
    }
}

/// The rows of each row group, as runs.
type Rows = Vec<(usize, Vec<[u64; 2]>)>;

fn rows(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    predicate: &Predicate,
    options: &FindOptions,
    manner: Manner,
) -> Result<Rows> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut finder = RowFinder::new(FILE, Arc::clone(metadata), codecs, predicate.clone(), options.clone())
        .inspect_err(check_error)?;
    let mut rows = Vec::new();
    let enough = || Error::io("enough");
    let mut watched = Watched::at_once(Runs(&mut finder), host::at_once(metadata));
    let found = hostile::run(&mut watched, FILE, bytes, manner, |found| {
        rows.push(found);
        if rows.iter().map(|(_, runs)| runs.len()).sum::<usize>() > RUNS_MAX { Err(enough()) } else { Ok(()) }
    });
    match found {
        Err(error) if error != enough() => {
            check_error(&error);
            Err(error)
        }
        _ => Ok(rows),
    }
}

/// A text that is nearly a predicate, of the columns that there are.
fn text(schema: &Schema, choices: &mut Choices<'_>) -> String {
    if choices.once_in(8) {
        return String::from_utf8_lossy(choices.rest()).into_owned();
    }
    let mut text = String::new();
    let mut depth = 0;
    loop {
        while choices.once_in(4) {
            let opening = choices.pick(&["NOT ", "(", "NOT ("]);
            depth += usize::from(opening.contains('('));
            text += opening;
        }
        let leaf = choices.below(schema.leaves().len().max(1));
        match schema.leaves().len() {
            0 => text += "nothing",
            _ => text += &schema.leaf_path(leaf).replace(".list.element", ""),
        }
        text += choices.pick(&[
            " = ",
            " < ",
            " >= ",
            " != ",
            " IS NULL",
            " IS NOT NULL",
            " IN (1, 2, ",
            " BETWEEN 0 AND ",
            " LIKE ",
            " NOT IN (",
        ]);
        if !text.ends_with("NULL") {
            text += choices.pick(&[
                "0",
                "1",
                "-1",
                "7",
                "1.5",
                "NaN",
                "true",
                "'a'",
                "'a%'",
                "''",
                "0x00",
                "0xffff",
                "1e300",
                "'1970-01-01'",
                "'1970-01-01T00:00Z'",
                "123456789012345678901234567890",
                "null",
                "'0'",
                "-0.0",
                "'z%'",
            ]);
        }
        if text.rfind('(').is_some_and(|at| text[at..].starts_with("(1, 2, ") || text[..at].ends_with("IN "))
        {
            text.push(')');
        }
        while depth > 0 && choices.once_in(2) {
            text.push(')');
            depth -= 1;
        }
        if !choices.once_in(2) || text.len() > 2_000 {
            break;
        }
        text += choices.pick(&[" AND ", " OR "]);
    }
    text + &")".repeat(depth)
}
