//! A leaf's values as text of a form. How they are written is chosen once per batch, not once per value, and each entry of a dictionary is
//! formatted once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::print;

use super::InvalidUtf8;
use super::form::Form;
use super::piece::{Piece, append};
use super::value::timestamp;
use crate::batch::{ByteArrays, INLINE_BYTES_MAX, Value, Values};
use crate::schema::{Meaning, TimeUnit};

/// Values, and how they are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cells<'a> {
    values: &'a Values,
    meaning: Meaning,
    kind: Kind<'a>,
}

/// The frequent types; the others are written as [`Form::value`] does.
#[derive(Debug, Clone, Copy)]
enum Kind<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Double(&'a [f64]),
    Date(&'a [i32]),
    Timestamp(&'a [i64], TimeUnit, bool),
    Text(&'a ByteArrays),
    Other,
}

impl<'a> Cells<'a> {
    /// Values of a meaning.
    pub(super) fn new(values: &'a Values, meaning: Meaning) -> Cells<'a> {
        let kind = match (meaning, values) {
            (Meaning::Integer { is_signed: true, .. }, Values::Int32(values)) => Kind::Int32(values),
            (Meaning::Integer { is_signed: true, .. }, Values::Int64(values)) => Kind::Int64(values),
            (Meaning::Double, Values::Double(values)) => Kind::Double(values),
            (Meaning::Date, Values::Int32(values)) => Kind::Date(values),
            (Meaning::Timestamp { unit, is_adjusted_to_utc }, Values::Int64(values)) => {
                Kind::Timestamp(values, unit, is_adjusted_to_utc)
            }
            (Meaning::String | Meaning::Enum | Meaning::Json, Values::ByteArray(values)) => {
                Kind::Text(values)
            }
            _ => Kind::Other,
        };
        Cells { values, meaning, kind }
    }

    /// Appends a value. `None` beyond the last, and in the cases of [`Form::value`].
    #[inline]
    pub(super) fn write<F: Form>(
        &self,
        at: usize,
        invalid_utf8: InvalidUtf8,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        match self.kind {
            Kind::Int32(values) => print::integer(out, *values.get(at)?),
            Kind::Int64(values) => print::integer(out, *values.get(at)?),
            Kind::Double(values) => match *values.get(at)? {
                value if value.is_finite() => print::double(out, value),
                value => return F::value(out, self.meaning, Value::Double(value), invalid_utf8),
            },
            Kind::Date(values) => {
                let days = i64::from(*values.get(at)?);
                quote::<F>(out);
                print::date(out, days);
                quote::<F>(out);
            }
            Kind::Timestamp(values, unit, utc) => {
                let units = *values.get(at)?;
                quote::<F>(out);
                timestamp(out, units, unit, utc);
                quote::<F>(out);
            }
            Kind::Text(values) => {
                let view = *values.views().get(at)?;
                if !inline::<F>(out, view) {
                    return text::<F>(out, values.get(at), invalid_utf8);
                }
            }
            Kind::Other => {
                return F::value(out, self.meaning, Value::of_values(self.values, at)?, invalid_utf8);
            }
        }
        Some(())
    }
}

/// Appends a quotation mark where the form has words in them.
#[inline]
fn quote<F: Form>(out: &mut Vec<u8>) {
    if F::IS_QUOTED {
        out.push(b'"');
    }
}

fn text<F: Form>(out: &mut Vec<u8>, bytes: &[u8], invalid_utf8: InvalidUtf8) -> Option<()> {
    if F::is_plain(bytes) {
        quote::<F>(out);
        out.extend_from_slice(bytes);
        quote::<F>(out);
        return Some(());
    }
    match core::str::from_utf8(bytes) {
        Ok(text) => F::text(out, text),
        Err(_) => F::text(out, &invalid_utf8.text(bytes)?),
    }
}

/// Appends text that is stored in its view, if nothing in it needs escaping. Returns whether it did.
#[inline]
fn inline<F: Form>(out: &mut Vec<u8>, view: u128) -> bool {
    /// The same byte sixteen times.
    const fn each(byte: u8) -> u128 {
        u128::from_le_bytes([byte; 16])
    }
    /// Not zero if any byte is zero or above 0x7f.
    const fn has_zero(bytes: u128) -> u128 {
        bytes.wrapping_sub(each(1)) & each(0x80)
    }
    let [length, ..] = view.to_le_bytes();
    if view & 0xffff_ffff > INLINE_BYTES_MAX as u128 || (!F::IS_QUOTED && length == 0) {
        return false;
    }
    // Bytes beyond the text's end become spaces.
    let bits = u32::from(length) * 8;
    let text = view >> 32 | each(b' ') << bits;
    let [a, b, c] = F::SPECIAL;
    let special = text
        | has_zero(text & each(0xe0))
        | has_zero(text ^ each(a))
        | has_zero(text ^ each(b))
        | has_zero(text ^ each(c));
    if special & each(0x80) != 0 {
        return false;
    }
    if !F::IS_QUOTED {
        append(out, &(view >> 32).to_le_bytes(), 0, usize::from(length));
        return true;
    }
    let quoted = u128::from(b'"') | (view >> 32) << 8 | u128::from(b'"') << (bits + 8);
    append(out, &quoted.to_le_bytes(), 0, usize::from(length) + 2);
    true
}

/// The formatted entries of a column's dictionary, each with the text before it.
#[derive(Debug)]
pub(super) struct Memo {
    dictionary: Option<Arc<Values>>,
    /// Where each entry's text is in `texts`, and how long it is: 0 if it has not been formatted yet.
    places: Vec<(u32, u32)>,
    texts: Vec<u8>,
    bytes_max: usize,
}

/// Bytes that the memos of all columns may take. What does not fit is formatted anew each time.
const MEMO_BYTES_MAX: usize = 64 << 20;

impl Memo {
    /// For one of this many columns.
    pub(super) fn of(columns: usize) -> Memo {
        let bytes_max = MEMO_BYTES_MAX / columns.max(1);
        Memo { dictionary: None, places: Vec::new(), texts: Vec::new(), bytes_max }
    }

    /// Begins a batch with a dictionary: mostly the same as in the previous batch.
    pub(super) fn begin(&mut self, dictionary: &Arc<Values>) {
        if self.dictionary.as_ref().is_some_and(|known| Arc::ptr_eq(known, dictionary)) {
            return;
        }
        self.dictionary = Some(Arc::clone(dictionary));
        self.texts.clear();
        self.places.clear();
        if dictionary.len() <= self.bytes_max / size_of::<(u32, u32)>() / 2 {
            self.places.resize(dictionary.len(), (0, 0));
        }
    }

    /// Appends `before` and an entry. `None` in the cases of [`Cells::write`].
    #[inline]
    pub(super) fn write<F: Form>(
        &mut self,
        entries: &Cells<'_>,
        index: u32,
        before: &Piece,
        invalid_utf8: InvalidUtf8,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let index = usize_of_u32(index);
        match self.places.get(index) {
            Some(&(start, length)) if length > 0 => {
                append(out, &self.texts, usize_of_u32(start), usize_of_u32(length));
                Some(())
            }
            _ => self.first::<F>(entries, index, before, invalid_utf8, out),
        }
    }

    #[inline(never)]
    fn first<F: Form>(
        &mut self,
        entries: &Cells<'_>,
        index: usize,
        before: &Piece,
        invalid_utf8: InvalidUtf8,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        before.write(out);
        entries.write::<F>(index, invalid_utf8, out)?;
        let text = &out[start..];
        if let Some(place) = self.places.get_mut(index)
            && self.texts.len() + text.len() <= self.bytes_max / 2
            && let (Ok(start), Ok(length)) = (u32::try_from(self.texts.len()), u32::try_from(text.len()))
        {
            *place = (start, length);
            self.texts.extend_from_slice(text);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::{CommaSeparated, Json, TabSeparated};
    use super::*;
    use alloc::string::String;
    use alloc::{format, vec};
    use marquetry_base::Bytes;

    const SIGNED: Meaning = Meaning::Integer { bit_width: 64, is_signed: true };
    const UNSIGNED: Meaning = Meaning::Integer { bit_width: 32, is_signed: false };

    /// As [`Form::value`] writes it.
    fn plainly<F: Form>(values: &Values, meaning: Meaning, at: usize) -> Option<String> {
        let mut out = Vec::new();
        F::value(&mut out, meaning, Value::of_values(values, at)?, InvalidUtf8::Error)?;
        Some(String::from_utf8(out).unwrap())
    }

    fn check(values: &Values, meaning: Meaning) {
        check_form::<Json>(values, meaning);
        check_form::<CommaSeparated>(values, meaning);
        check_form::<TabSeparated>(values, meaning);
    }

    fn check_form<F: Form>(values: &Values, meaning: Meaning) {
        let cells = Cells::new(values, meaning);
        for at in 0..=values.len() {
            let mut out = b"before".to_vec();
            let found = cells.write::<F>(at, InvalidUtf8::Error, &mut out).map(|()| out.split_off(6));
            let found = found.map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found, plainly::<F>(values, meaning, at), "{meaning:?} {at}");
        }
    }

    #[test]
    fn numbers_and_times() {
        let ends = [i64::MIN, i64::MIN + 1, -100, -99, -10, -9, -1, 0, 1, 9, 10, 99, 100, 101, i64::MAX];
        let mut longs = ends.to_vec();
        for digits in 1..19 {
            let power = 10_i64.pow(digits);
            longs.extend([power - 1, power, power + 1, -power, 1 - power]);
        }
        check(&Values::Int64(longs.clone().into()), SIGNED);
        for unit in [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos] {
            check(
                &Values::Int64(longs.clone().into()),
                Meaning::Timestamp { unit, is_adjusted_to_utc: true },
            );
            check(
                &Values::Int64(longs.clone().into()),
                Meaning::Timestamp { unit, is_adjusted_to_utc: false },
            );
        }
        let ints: Vec<i32> = longs.iter().filter_map(|&long| i32::try_from(long).ok()).collect();
        for meaning in [SIGNED, Meaning::Date, UNSIGNED] {
            check(&Values::Int32([&ints[..], &[i32::MIN, i32::MAX]].concat().into()), meaning);
        }
        let doubles = vec![0.0, -0.0, 0.1, 1e300, -5.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        check(&Values::Double(doubles.into()), Meaning::Double);
    }

    #[test]
    fn text_of_every_byte() {
        let mut texts: Vec<Vec<u8>> = vec![b"".to_vec(), "é".into(), "“quoted” and long enough".into()];
        for length in [1, 2, 11, 12, 13, 30] {
            for byte in 0..=255 {
                for at in [0, length / 2, length - 1] {
                    let mut text = b"an inline text, or one that is longer"[..length].to_vec();
                    text[at] = byte;
                    texts.push(text);
                }
            }
        }
        let bytes: Vec<u8> = texts.concat();
        let mut offset = 0;
        let views: Vec<u128> = texts
            .iter()
            .map(|text| {
                let view = view_of(text, offset);
                offset += u32::try_from(text.len()).unwrap();
                view
            })
            .collect();
        let values = Values::ByteArray(ByteArrays::new(views.into(), Arc::new(vec![Bytes::from(bytes)])));
        check(&values, Meaning::String);
        check(&values, Meaning::Bytes);
        remembered::<Json>(&values);
        remembered::<CommaSeparated>(&values);
        remembered::<TabSeparated>(&values);
    }

    /// From a dictionary, twice, because it is remembered the second time.
    fn remembered<F: Form>(values: &Values) {
        let Values::ByteArray(entries) = values else { panic!() };
        let dictionary = Arc::new(Values::ByteArray(entries.clone()));
        let (cells, before) = (Cells::new(&dictionary, Meaning::String), F::before(1, "a"));
        let mut key = Vec::new();
        before.write(&mut key);
        let key = String::from_utf8(key).unwrap();
        let unprintable =
            (0..entries.len()).filter(|&at| plainly::<F>(&dictionary, Meaning::String, at).is_none()).count();
        // With room for all entries, for some, and for none.
        for columns in [1, 850, 1 << 20] {
            let mut memo = Memo::of(columns);
            memo.begin(&dictionary);
            for _ in 0..2 {
                memo.begin(&dictionary);
                for at in 0..=entries.len() {
                    let mut out = b"before".to_vec();
                    let index = u32::try_from(at).unwrap();
                    let found = memo.write::<F>(&cells, index, &before, InvalidUtf8::Error, &mut out);
                    let found = found.map(|()| String::from_utf8(out).unwrap());
                    let expected = plainly::<F>(&dictionary, Meaning::String, at);
                    assert_eq!(found, expected.map(|text| format!("before{key}{text}")), "{at}");
                }
            }
            assert_eq!(memo.places.len(), if columns < 1 << 20 { entries.len() } else { 0 });
            let missed = memo.places.iter().filter(|(_, length)| *length == 0).count();
            assert!(memo.texts.len() <= (64 << 20) / columns / 2);
            // Without keys and quotes all of them fit.
            let fits = columns == 1 || (columns == 850 && !F::IS_QUOTED);
            assert_eq!(fits, missed == unprintable, "{missed}");
        }
    }

    /// A view as the engine creates it.
    fn view_of(text: &[u8], offset: u32) -> u128 {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        if text.len() <= INLINE_BYTES_MAX {
            view[4..4 + text.len()].copy_from_slice(text);
        } else {
            view[4..8].copy_from_slice(&text[..4]);
            view[12..].copy_from_slice(&offset.to_le_bytes());
        }
        u128::from_le_bytes(view)
    }
}
