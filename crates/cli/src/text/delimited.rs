//! Fields of delimited text: where they are, eight bytes at a time.
//!
//! Source: RFC 4180, "Common Format and MIME Type for CSV Files"; of tab-separated values, whose fields have no quotes, IANA's
//! `text/tab-separated-values`. Lines end with LF or CRLF. A quote that is not at its field's start is text.

use std::borrow::Cow;

/// What stands between fields, and around some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    /// Records may have fewer fields than the ones before: the others are missing.
    pub(super) may_be_short: bool,
}

/// The records that were found in a text, all of as many fields.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Fields of a record; 0 before the first.
    columns: usize,
    /// Where each record begins.
    starts: Vec<u32>,
    /// Where each field ends: at a delimiter, a line end, or the text's end.
    ends: Vec<u32>,
}

/// What is wrong in a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The start of the record.
    pub(super) at: usize,
    pub(super) what: String,
}

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field<'a> {
    /// What is in the quotes, where there are any.
    pub(super) text: &'a [u8],
    /// Where that begins in the whole text.
    pub(super) start: usize,
    pub(super) is_quoted: bool,
    /// The record has fewer fields.
    pub(super) is_missing: bool,
}

impl Dialect {
    /// Finds the whole records of a text from `at` on, `rows_max` at most, and says where the next one begins. A record that the text
    /// ends in the middle of is left, unless nothing follows (`is_last`).
    ///
    /// Lines of nothing are passed over, but where records have one field, which is then empty.
    ///
    /// # Errors
    ///
    /// A record of another number of fields than the ones before; a quote that is not closed, or not closed at a field's end.
    pub(super) fn scan(
        &self,
        text: &[u8],
        at: usize,
        is_last: bool,
        rows_max: usize,
        records: &mut Records,
    ) -> Result<usize, Wrong> {
        records.starts.clear();
        records.ends.clear();
        let patterns =
            [self.delimiter, b'\n', self.quote.unwrap_or(b'\n')].map(|byte| u64::from(byte) * ONES);
        let [delimiters, line_ends, quotes] = patterns;
        let (mut record, mut field, mut first) = (at, at, 0);
        let mut block = at;
        'blocks: while block < text.len() {
            let word = match text.get(block..block + 8).and_then(|bytes| bytes.try_into().ok()) {
                Some(bytes) => u64::from_le_bytes(bytes),
                None => {
                    let mut last = [0; 8];
                    last[..text.len() - block].copy_from_slice(&text[block..]);
                    u64::from_le_bytes(last)
                }
            };
            let mut found = zeros(word ^ delimiters) | zeros(word ^ line_ends);
            if self.quote.is_some() {
                found |= zeros(word ^ quotes);
            }
            while found != 0 {
                let place = block + (found.trailing_zeros() / 8) as usize;
                found &= found - 1;
                let Some(&byte) = text.get(place) else { break };
                if byte == self.delimiter {
                    records.ends.push(low(place));
                    field = place + 1;
                } else if byte == b'\n' {
                    let is_blank =
                        first == records.ends.len() && matches!(&text[record..place], [] | [b'\r']);
                    if !is_blank || records.columns == 1 {
                        records.end(record, first, place, self.may_be_short)?;
                    }
                    (record, field, first) = (place + 1, place + 1, records.ends.len());
                    if records.starts.len() == rows_max {
                        return Ok(record);
                    }
                } else if place == field {
                    match self.closing(text, place + 1, is_last) {
                        Closing::At(behind) => block = behind,
                        Closing::Open if !is_last => break 'blocks,
                        Closing::Open => return Err(Wrong::new(record, "a quote that is not closed")),
                        Closing::Text => {
                            let what = "text behind a closing quote (quotes inside of quotes are doubled)";
                            return Err(Wrong::new(record, what));
                        }
                    }
                    continue 'blocks;
                }
            }
            block += 8;
        }
        if is_last && record < text.len() {
            if records.columns == 1 || text[record..] != *b"\r" {
                records.end(record, first, text.len(), self.may_be_short)?;
            }
            return Ok(text.len());
        }
        records.ends.truncate(first);
        Ok(record)
    }

    /// Finds the quote that closes what begins at `at`.
    fn closing(&self, text: &[u8], mut at: usize, is_last: bool) -> Closing {
        let Some(quote) = self.quote else { return Closing::Text };
        loop {
            let Some(length) = text[at..].iter().position(|byte| *byte == quote) else {
                return Closing::Open;
            };
            let behind = at + length + 1;
            match text.get(behind) {
                Some(byte) if *byte == quote => at = behind + 1,
                Some(byte) if *byte == self.delimiter || *byte == b'\n' => return Closing::At(behind),
                Some(b'\r') => match text.get(behind + 1) {
                    Some(b'\n') => return Closing::At(behind),
                    None if is_last => return Closing::At(behind),
                    None => return Closing::Open,
                    Some(_) => return Closing::Text,
                },
                Some(_) => return Closing::Text,
                None if is_last => return Closing::At(behind),
                // Another may follow.
                None => return Closing::Open,
            }
        }
    }

    /// A field of a record.
    #[inline]
    pub(super) fn field<'a>(
        &self,
        records: &Records,
        text: &'a [u8],
        row: usize,
        column: usize,
    ) -> Field<'a> {
        let at = row * records.columns + column;
        let start = match column {
            0 => wide(records.starts[row]),
            _ => wide(records.ends[at - 1]) + 1,
        };
        let end = wide(records.ends[at]);
        // Those that are missing end where the record does, as the last one that is there.
        let Some(mut field) = text.get(start..end) else {
            return Field { text: &[], start: end, is_quoted: false, is_missing: true };
        };
        let is_last =
            column + 1 == records.columns || self.may_be_short && records.ends[at + 1] == records.ends[at];
        if is_last && let [before @ .., b'\r'] = field {
            field = before;
        }
        match (field, self.quote) {
            ([first, inner @ .., _], Some(quote)) if *first == quote => {
                Field { text: inner, start: start + 1, is_quoted: true, is_missing: false }
            }
            _ => Field { text: field, start, is_quoted: false, is_missing: false },
        }
    }

    /// The text that a field stands for.
    pub(super) fn unquoted<'a>(&self, field: Field<'a>) -> Cow<'a, [u8]> {
        let Some(quote) = self.quote.filter(|quote| field.is_quoted && field.text.contains(quote)) else {
            return Cow::Borrowed(field.text);
        };
        let mut text = Vec::with_capacity(field.text.len());
        let mut is_second = false;
        for byte in field.text {
            is_second = *byte == quote && !is_second;
            if !is_second {
                text.push(*byte);
            }
        }
        Cow::Owned(text)
    }
}

/// Where a quoted field ends.
enum Closing {
    /// The place behind the quote.
    At(usize),
    /// Not in this text.
    Open,
    /// With more text.
    Text,
}

impl Records {
    /// Of records of so many fields; of however many the first has, for 0.
    pub(super) fn of(columns: usize) -> Records {
        Records { columns, ..Records::default() }
    }

    /// Records there.
    pub(super) fn rows(&self) -> usize {
        self.starts.len()
    }

    /// Fields of each.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Where a record begins.
    pub(super) fn start(&self, row: usize) -> usize {
        wide(self.starts[row])
    }

    /// The record that began at `start`, and whose ends from `first` on are known but for the last, ends.
    fn end(&mut self, start: usize, first: usize, end: usize, may_be_short: bool) -> Result<(), Wrong> {
        self.ends.push(low(end));
        let fields = self.ends.len() - first;
        if self.columns == 0 {
            self.columns = fields;
        }
        if fields < self.columns && may_be_short {
            self.ends.resize(first + self.columns, low(end));
        } else if fields != self.columns {
            let (one, columns) = (if fields == 1 { "field" } else { "fields" }, self.columns);
            let hint = match fields < columns {
                _ if may_be_short => "; --schema tells more columns",
                true => "; --short-rows null takes the others for null",
                false => "; --schema tells all columns, and --short-rows null that rows may have fewer",
            };
            let what = format!("{fields} {one}, where the rows before have {columns}{hint}");
            return Err(Wrong { at: start, what });
        }
        self.starts.push(low(start));
        Ok(())
    }
}

impl Wrong {
    fn new(at: usize, what: &str) -> Wrong {
        Wrong { at, what: what.to_string() }
    }
}

/// Eight bytes of 1.
const ONES: u64 = u64::MAX / 255;

/// The highest bit of each byte that is zero, and of no other.
#[inline]
fn zeros(word: u64) -> u64 {
    const LOW: u64 = 0x7f * ONES;
    !(((word & LOW) + LOW) | word | LOW)
}

/// A place in a text, none of which is longer than 4 GiB: see `Stream`.
#[inline]
fn low(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[inline]
fn wide(place: u32) -> usize {
    marquetry_base::cast::usize_of_u32(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Dialect = Dialect { delimiter: b',', quote: Some(b'"'), may_be_short: false };
    const TSV: Dialect = Dialect { delimiter: b'\t', quote: None, may_be_short: false };

    /// All fields, each record in one string, the fields apart by `|`; or what is wrong.
    fn read(dialect: Dialect, text: &str, piece: usize) -> Result<Vec<String>, String> {
        let bytes = text.as_bytes();
        let (mut at, mut end, mut rows) = (0, piece.min(bytes.len()), Vec::new());
        let mut records = Records::default();
        loop {
            let is_last = end == bytes.len();
            let next =
                dialect.scan(&bytes[..end], at, is_last, 3, &mut records).map_err(|wrong| wrong.what)?;
            for row in 0..records.rows() {
                let field = |column| {
                    let field = dialect.field(&records, bytes, row, column);
                    let text = String::from_utf8(dialect.unquoted(field).into_owned()).unwrap();
                    match (field.is_quoted, field.is_missing) {
                        (true, _) => format!("<{text}>"),
                        (_, true) => "-".to_string(),
                        _ => text,
                    }
                };
                rows.push((0..records.columns()).map(field).collect::<Vec<_>>().join("|"));
            }
            if is_last && records.rows() == 0 {
                assert_eq!(next, bytes.len());
                return Ok(rows);
            }
            at = next;
            if records.rows() == 0 {
                end = (end + piece).min(bytes.len());
            }
        }
    }

    #[track_caller]
    fn check(dialect: Dialect, text: &str, expected: &[&str]) {
        for piece in [1, 2, 3, 7, 8, 9, 1000] {
            assert_eq!(read(dialect, text, piece).unwrap(), expected, "{text:?} by {piece}");
        }
    }

    #[test]
    fn fields_and_lines() {
        check(CSV, "a,b,c\n1,,3\n", &["a|b|c", "1||3"]);
        check(CSV, "a,b\r\n1,2\r\n", &["a|b", "1|2"]);
        check(CSV, "a,b\n1,", &["a|b", "1|"]);
        check(CSV, "", &[]);
        check(CSV, "\n\na,b\n\r\n1,2\n\n", &["a|b", "1|2"]);
        check(CSV, "a\n\n1", &["a", "", "1"]);
        check(TSV, "a\t\"b\nc\td\"\n", &["a|\"b", "c|d\""]);
        check(TSV, &"x\t0123456789\ty\n".repeat(20), &["x|0123456789|y"; 20]);
    }

    #[test]
    fn quotes() {
        check(CSV, "\"a\",\"b,c\"\n\"d\ne\",\"\"\r\n", &["<a>|<b,c>", "<d\ne>|<>"]);
        check(CSV, "\"a \"\"b\"\"\",\"\"\"\"\n", &["<a \"b\">|<\">"]);
        check(CSV, "a\"b,c\"\"d\n", &["a\"b|c\"\"d"]);
        check(CSV, "x,\"a\"", &["x|<a>"]);
        check(CSV, "\"0123456789,\n0123456789\",1\n\"\n\n\",2", &["<0123456789,\n0123456789>|1", "<\n\n>|2"]);
        for (text, what) in [
            ("a,\"b\n", "a quote that is not closed"),
            ("\"a\"b,c\n", "text behind a closing quote"),
            ("\"a\"\rb,c\n", "text behind a closing quote"),
            (
                "a,b\n1\n",
                "1 field, where the rows before have 2; --short-rows null takes the others for null",
            ),
            ("a,b\n1,2,3\n", "3 fields, where the rows before have 2"),
        ] {
            for piece in [1, 3, 8, 1000] {
                let wrong = read(CSV, text, piece).unwrap_err();
                assert!(wrong.contains(what), "{text:?} by {piece}: {wrong}");
            }
        }
    }

    #[test]
    fn short_records() {
        let (csv, tsv) = (Dialect { may_be_short: true, ..CSV }, Dialect { may_be_short: true, ..TSV });
        check(csv, "a,b,c\n1,2\n3\n4,5,6\n", &["a|b|c", "1|2|-", "3|-|-", "4|5|6"]);
        check(csv, "a,b,c\r\n1,\r\n\"3\"\r\n\r\n4", &["a|b|c", "1||-", "<3>|-|-", "4|-|-"]);
        check(tsv, "a\tb\tc\n\t\n\r\nd", &["a|b|c", "||-", "d|-|-"]);
        let wrong = read(csv, "a,b\n1\n1,2,3\n", 100).unwrap_err();
        assert_eq!(wrong, "3 fields, where the rows before have 2; --schema tells more columns");
    }

    #[test]
    fn bytes_that_are_zero() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                let mut bytes = [0x80, 1, 0x7f, 0xff, 2, 0x81, 3, 0xfe];
                bytes[place] = byte;
                let found = zeros(u64::from_le_bytes(bytes));
                assert_eq!(found, if byte == 0 { 0x80 << (8 * place) } else { 0 });
            }
        }
    }

    /// As a reading character by character, on texts of the characters that matter.
    #[test]
    fn any_text_by_any_piece() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..3000 {
            let length = random(40);
            let text: String = (0..length)
                .map(|_| ["a", ",", "\n", "\"", "\r\n", "bc", "\"\""][usize::try_from(random(7)).unwrap()])
                .collect();
            let whole = read(CSV, &text, 1000);
            for piece in [1, 5, 8] {
                assert_eq!(read(CSV, &text, piece), whole, "{text:?} by {piece}");
            }
        }
    }
}
