//! The first row of delimited text: whether it could be names, and the names of the columns.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Detail, Error, Price, Release, Result, release_all};

use super::super::place::{at_line, shown};
use super::scan::{Dialect, Field, unquote};
use super::style::Style;
use crate::Columns;
use crate::columns::NAME_BYTES_MAX;
use crate::scalar::Kinds;

/// The price of a column's name: it is copied, and looked up in sets.
pub(crate) const NAME_PRICE: Price = Price { kib: 512, kilovalue: 1500 << 10 };
/// What Hive, Impala and MySQL write for null, whatever the texts that mean null here.
const NULL_OF_OTHERS: &[u8] = b"\\N";

/// The first row, while it is examined. Names are shared, not copied: to free very many of them takes long, and some
/// allocators do much of it in one go.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// Its fields, except those that are too long for names, and the length of the first of those.
    pub(super) given: Vec<Arc<str>>,
    pub(super) too_long: Option<usize>,
    /// All fields could be names: none is a number, a date, a truth value or a null, has digits and no letter, or has a control
    /// character outside quotes.
    pub(super) is_text: bool,
    /// Its fields that are empty, ascending.
    pub(super) unnamed: Vec<usize>,
    /// All fields are names in the given schema; some are.
    pub(super) is_known: bool,
    pub(super) has_known: bool,
    pub(super) seen: BTreeSet<Arc<str>>,
    pub(super) twice: Option<Arc<str>>,
    /// Whether it is a header, once known.
    pub(super) is_header: Option<bool>,
    pub(super) taken: BTreeSet<Arc<str>>,
    /// The number that a name gets when it is repeated.
    pub(super) numbers: BTreeMap<Arc<str>, u64>,
    pub(super) names: Vec<Arc<str>>,
}

impl Release for Naming {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Naming { given, seen, taken, numbers, .. } = self;
        release_all(&mut [given, seen, taken, numbers], budget)
    }
}

impl Naming {
    pub(super) fn new() -> Naming {
        Naming { is_text: true, is_known: true, ..Naming::default() }
    }

    /// Looks at a field of the first row.
    pub(super) fn look(
        &mut self,
        field: &Field<'_>,
        dialect: &Dialect,
        (style, nulls): (Option<&Style>, &[Vec<u8>]),
        known: Option<&BTreeSet<String>>,
        line: u64,
    ) -> Result<()> {
        if field.text.is_empty() {
            self.unnamed.push(self.given.len());
        }
        let start = &field.text[..field.text.len().min(NAME_BYTES_MAX)];
        if !field.is_quoted && start.contains(&b'\r') {
            let what =
                "carriage returns without line feeds: rows end in LF or CRLF; `tr '\\r' '\\n'` mends that";
            return Err(at_line(line, Error::corrupt(what)));
        }
        if self.is_text {
            let mut kinds = Kinds::ANY;
            see(&mut kinds, field.text, style);
            let is_null = || field.text == NULL_OF_OTHERS || super::is_null(nulls, field);
            let is_unquoted_value =
                || start.iter().any(|byte| is_control(*byte)) || (!field.text.is_empty() && is_null());
            let is_value = has_digits_alone(start) || (!field.is_quoted && is_unquoted_value());
            self.is_text = kinds.is_text() && !is_value;
        }
        // Doubled quotes become half as many.
        let mut name = Cow::Borrowed(field.text);
        if let Some(quote) =
            dialect.quote.filter(|_| field.is_quoted && field.text.len() <= 2 * NAME_BYTES_MAX)
            && memchr::memchr(quote, field.text).is_some()
        {
            let (mut unquoted, mut is_second) = (Vec::with_capacity(field.text.len()), false);
            unquote(field.text, quote, &mut is_second, &mut unquoted);
            name = Cow::Owned(unquoted);
        }
        if name.len() > NAME_BYTES_MAX {
            self.too_long = self.too_long.or(Some(name.len()));
            self.given.push("".into());
            self.is_known = false;
            return Ok(());
        }
        let name: Arc<str> = String::from_utf8_lossy(&name).into();
        let is_known = known.is_some_and(|known| known.contains(&name.to_ascii_lowercase()));
        self.is_known &= is_known;
        self.has_known |= is_known;
        if !self.seen.insert(name.clone()) && self.twice.is_none() {
            self.twice = Some(name.clone());
        }
        self.given.push(name);
        Ok(())
    }

    /// The error for a first row with some names of the given schema, and others: probably a header that differs from it.
    #[cold]
    pub(super) fn almost_header(&self, schema: &Columns) -> Option<Error> {
        let own: BTreeSet<String> = self.given.iter().map(|name| name.to_ascii_lowercase()).collect();
        let known = lower_names(schema);
        let found = self.given.iter().find(|name| !known.contains(&name.to_ascii_lowercase()));
        let found = shown(found.filter(|_| self.has_known)?.as_bytes());
        let missing =
            schema.as_slice().iter().find(|column| !own.contains(&column.name.to_ascii_lowercase()));
        let what = match missing {
            Some(missing) => format!("the header has {found} where the schema has {:?}", missing.name),
            None => format!("the header's column {found} is missing from the schema"),
        };
        Some(Error::corrupt(what).with(Detail::AdmittedBy(&["schema", "header"])))
    }

    /// Names the next column. Without a name in the header it is named by its number; a repeated name gets a number,
    /// too, as columns of the same name do everywhere (`Schema::with_unique_names`).
    pub(super) fn name_next(&mut self, is_header: bool, budget: &mut Budget<'_>) {
        let at = self.names.len();
        if !is_header {
            budget.charge(NAME_PRICE, 0, 1);
            self.names.push(format!("column{}", at + 1).into());
            return;
        }
        let name = self.given.get(at).cloned().unwrap_or_default();
        let own: Arc<str> =
            if name.is_empty() { format!("column{}", at + 1).into() } else { Arc::clone(&name) };
        let is_free = |it: &Arc<str>, taken: &BTreeSet<Arc<str>>, seen: &BTreeSet<Arc<str>>| {
            !taken.contains(it) && (*it == name || !seen.contains(it))
        };
        let mut found = Arc::clone(&own);
        budget.charge(NAME_PRICE, own.len(), 1);
        while !is_free(&found, &self.taken, &self.seen) {
            let number = self.numbers.entry(Arc::clone(&own)).or_insert(2);
            found = format!("{own}#{number}").into();
            *number += 1;
            budget.charge(NAME_PRICE, 3 * own.len(), 1);
        }
        self.taken.insert(found.clone());
        self.names.push(found);
    }
}

/// Whether a text has digits and no letter: `007`, `29.02.2024`, `12:30`, `5 %`.
fn has_digits_alone(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    text.iter().any(u8::is_ascii_digit) && !text.iter().any(is_letter)
}

/// Whether no name has this byte outside quotes.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// Adds a value to what a column could be.
#[inline]
pub(super) fn see(kinds: &mut Kinds, text: &[u8], style: Option<&Style>) {
    match style {
        None => kinds.see(text),
        Some(style) => kinds.see(style.usual(text, &mut Vec::new())),
    }
}

pub(super) fn lower_names(schema: &Columns) -> BTreeSet<String> {
    schema.as_slice().iter().map(|column| column.name.to_ascii_lowercase()).collect()
}
