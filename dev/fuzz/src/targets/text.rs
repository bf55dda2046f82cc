//! Delimited text, cut anywhere, beside a reading character by character.

// The command's own, which is no library: this file needs nothing of it.
#[path = "../../../../crates/cli/src/text/delimited.rs"]
#[allow(dead_code, reason = "what the command alone uses")]
mod delimited;

use delimited::{Dialect, Records};

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;

/// A text of few characters, mostly those that matter.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let dialect = Dialect {
        delimiter: choices.pick(b",\t|a"),
        quote: choices.pick(&[Some(b'"'), None, Some(b'\'')]),
        may_be_short: choices.once_in(3),
    };
    let (pieces, rows_max) = (choices.bytes(8).to_vec(), choices.pick(&[1000, 1, 2, 3]));
    let columns = choices.pick(&[0, 0, 1, 2, 3]);
    let mut text = Vec::new();
    if choices.once_in(4) {
        text.extend_from_slice(choices.rest());
    }
    while !choices.is_empty() && text.len() < 3_000 {
        match choices.byte() {
            byte @ 0..=31 => text.extend(std::iter::repeat_n(b'x', usize::from(byte))),
            byte @ 32..=79 => text.push([dialect.delimiter, b'y', b'"', b'\''][usize::from(byte) % 4]),
            80..=109 => text.push(b'\n'),
            110..=129 => text.extend_from_slice(b"\r\n"),
            130..=139 => text.push(b'\r'),
            140..=189 => text.push(dialect.quote.unwrap_or(b'"')),
            190..=209 => text.extend([dialect.quote.unwrap_or(b'"'); 2]),
            byte => text.push(byte),
        }
    }
    let whole = naive(&dialect, &text, columns);
    let found = in_pieces(&dialect, &text, columns, &pieces, rows_max);
    assert_eq!(found, whole, "{dialect:?}, by {pieces:?}: {:?}", String::from_utf8_lossy(&text));
}

/// A field: what it stands for, and whether it has quotes, or is missing.
type Told = (Vec<u8>, bool, bool);

/// Records, or where the one begins that is wrong.
type Rows = Result<Vec<Vec<Told>>, usize>;

/// As a host does it that reads a piece at a time, and keeps what was no whole record.
fn in_pieces(dialect: &Dialect, text: &[u8], columns: usize, pieces: &[u8], rows_max: usize) -> Rows {
    let (mut rows, mut records) = (Vec::new(), Records::of(columns));
    let (mut base, mut at, mut turn) = (0, 0, 0);
    let mut more = |end: usize| {
        turn += 1;
        let piece = pieces.get(turn % pieces.len().max(1)).map_or(64, |piece| usize::from(*piece) + 1);
        (end + piece).min(text.len())
    };
    let mut end = more(0);
    loop {
        let is_last = end == text.len() || (is_planted(Canary::Bytes) && end - base == 13);
        let piece = &text[base..end];
        let next = dialect.scan(piece, at - base, is_last, rows_max, &mut records);
        let next = base + next.map_err(|wrong| base + wrong.at)?;
        assert!(at <= next && next <= end && records.rows() <= rows_max);
        for row in 0..records.rows() {
            assert!((at..next).contains(&(base + records.start(row))));
            let fields = (0..records.columns()).map(|column| {
                let field = dialect.field(&records, piece, row, column);
                let is_there = piece[field.start..].starts_with(field.text);
                assert!(is_there || field.is_missing, "a field that is elsewhere");
                (dialect.unquoted(field).into_owned(), field.is_quoted, field.is_missing)
            });
            rows.push(fields.collect());
        }
        at = next;
        if records.rows() == 0 {
            if is_last {
                assert_eq!(next, end, "text behind the last record");
                return Ok(rows);
            }
            (base, end) = (next, more(end));
        }
    }
}

/// Character by character, as the rules are told.
fn naive(dialect: &Dialect, text: &[u8], mut columns: usize) -> Rows {
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let record = at;
        let mut fields: Vec<Told> = Vec::new();
        loop {
            let start = at;
            let quote = dialect.quote.filter(|quote| text.get(start) == Some(quote));
            let mut value = Vec::new();
            if let Some(quote) = quote {
                at += 1;
                loop {
                    match (text.get(at), text.get(at + 1)) {
                        (None, _) => return Err(record),
                        (Some(one), Some(two)) if *one == quote && *two == quote => {
                            value.push(quote);
                            at += 2;
                        }
                        (Some(one), _) if *one == quote => break,
                        (Some(one), _) => {
                            value.push(*one);
                            at += 1;
                        }
                    }
                }
                at += 1;
                if text.get(at) == Some(&b'\r') && matches!(text.get(at + 1), None | Some(b'\n')) {
                    at += 1;
                }
                let is_end = text.get(at).is_none_or(|byte| *byte == dialect.delimiter || *byte == b'\n');
                if !is_end {
                    return Err(record);
                }
            } else {
                while text.get(at).is_some_and(|byte| *byte != dialect.delimiter && *byte != b'\n') {
                    value.push(text[at]);
                    at += 1;
                }
                if text.get(at).is_none_or(|byte| *byte == b'\n') && value.last() == Some(&b'\r') {
                    value.pop();
                }
            }
            fields.push((value, quote.is_some(), false));
            at += 1;
            if text.get(at - 1) != Some(&dialect.delimiter) {
                break;
            }
        }
        let is_blank = matches!(&fields[..], [(value, false, _)] if value.is_empty());
        if is_blank && columns != 1 {
            continue;
        }
        columns = if columns == 0 { fields.len() } else { columns };
        if dialect.may_be_short && fields.len() < columns {
            fields.resize(columns, (Vec::new(), false, true));
        }
        if fields.len() != columns {
            return Err(record);
        }
        rows.push(fields);
    }
    Ok(rows)
}
