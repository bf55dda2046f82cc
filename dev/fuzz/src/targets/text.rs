//! Delimited text, cut anywhere, beside a reading character by character.

use marquetry_base::{Budget, Bytes, Step};
use marquetry_parquet::batch::Values;
use marquetry_text::read::{
    Block, Read, ReadOptions, Sampled, Split, SplitOptions, TextForm, TextReader, TextSampler, TextSplitter,
};
use marquetry_text::{Column, ColumnType, Format, Header, Quote, Scalar, TextOptions};

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;
use crate::meter;

/// How a text is written.
#[derive(Debug)]
struct Dialect {
    delimiter: u8,
    quote: Option<u8>,
    comment: Option<u8>,
    may_be_short: bool,
}

/// A text of few characters, mostly those that matter.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let mut dialect = Dialect {
        delimiter: choices.pick(b",\t|a"),
        quote: choices.pick(&[Some(b'"'), None, Some(b'\'')]),
        comment: None,
        may_be_short: choices.once_in(3),
    };
    let (pieces, rows_max) = (choices.bytes(8).to_vec(), choices.pick(&[1000, 1, 2, 3]));
    // Inputs that were kept mean what they did.
    dialect.comment = pieces.last().is_some_and(|last| last % 3 == 2).then_some(b'y');
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
    // A mark is no text.
    let bare = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let found = read(&dialect, &text, columns, &pieces, rows_max);
    let expected = expected(&dialect, bare, columns);
    assert_eq!(found, expected, "{dialect:?}, by {pieces:?}: {:?}", String::from_utf8_lossy(&text));
}

/// What rows have in their fields, `None` for null. `None` of a text that is refused.
type Rows = Option<Vec<Vec<Option<Vec<u8>>>>>;

/// What must come out.
fn expected(dialect: &Dialect, text: &[u8], columns: usize) -> Rows {
    let mut rows = naive(dialect, text, columns).ok()?;
    let is_returned =
        |(value, is_quoted, _): &Told| !is_quoted && value[..value.len().min(65_535)].contains(&b'\r');
    // Text of a Macintosh is known by its first row that is not empty.
    let is_blank = |row: &&Vec<Told>| matches!(&row[..], [(value, false, _)] if value.is_empty());
    if rows.iter().find(|row| !is_blank(row)).is_some_and(|row| row.iter().any(is_returned)) {
        return None;
    }
    if let (0, Some(first)) = (columns, rows.first()) {
        // Once it is known that rows have one field, empty lines before the first are rows, too.
        rows = naive(dialect, text, first.len()).ok()?;
    }
    // Nothing of which no columns are told; what is no text at all.
    if (rows.is_empty() && columns == 0) || std::str::from_utf8(text).is_err() {
        return None;
    }
    let field = |(value, is_quoted, _): Told| (is_quoted || !value.is_empty()).then_some(value);
    Some(rows.into_iter().map(|row| row.into_iter().map(field).collect()).collect())
}

/// A host that hands over pieces of these lengths, and gives the machines next to no time.
fn read(dialect: &Dialect, text: &[u8], columns: usize, pieces: &[u8], rows_max: usize) -> Rows {
    let mut options = TextOptions::default();
    options.delimiter = Some(dialect.delimiter);
    options.quote = dialect.quote.map_or(Quote::None, Quote::Character);
    options.header = Header::No;
    options.comment = dialect.comment;
    options.short_rows = dialect.may_be_short;
    let form = |options: &TextOptions| {
        let mut sampler = TextSampler::new(Format::Csv, options).unwrap();
        let mut host = Host { text, at: 0, turn: 0, pieces };
        loop {
            let budget = &mut Budget::new(host.units());
            match meter::call("TextSampler", 0, budget, |budget| sampler.step(budget)).ok()? {
                Step::Ready(Sampled::Sample(sample)) => return sample.form().ok(),
                Step::Ready(Sampled::Room) => match host.next() {
                    Some(bytes) => drop(sampler.feed(bytes).unwrap()),
                    None => sampler.finish(),
                },
                _ => {}
            }
        }
    };
    // All columns are text, as many as there are: so a text that is read is one that was sampled.
    let number = match columns {
        0 => form(&options)?.columns().as_slice().len(),
        columns => columns,
    };
    let column =
        |number| Column { name: format!("c{number}"), column_type: ColumnType::Scalar(Scalar::Text) };
    options.schema = Some((0..number).map(column).collect::<Vec<_>>().into());
    let form = form(&options)?;
    let mut options = ReadOptions::default();
    options.batch_rows = rows_max;
    let mut host = Host { text, at: 0, turn: 0, pieces };
    let whole = rows(&mut TextReader::new(&form, options.clone()).unwrap(), &mut host);
    // Blocks of it, one after the other, have the same rows.
    let mut reader = TextReader::new(&form, options).unwrap();
    let mut parts = Some(Vec::new());
    for block in blocks(&form, text, pieces) {
        reader.read_block(block).unwrap();
        parts = parts.and_then(|parts: Vec<_>| Some([parts, rows(&mut reader, &mut host)?].concat()));
        if parts.is_none() {
            break;
        }
    }
    assert_eq!(parts, whole, "{dialect:?}, in blocks by {pieces:?}: {:?}", String::from_utf8_lossy(text));
    whole
}

/// The blocks of a text, some of few bytes.
fn blocks(form: &TextForm, text: &[u8], pieces: &[u8]) -> Vec<Block> {
    let mut options = SplitOptions::default();
    options.block_bytes = Some(pieces.first().map_or(30, |it| usize::from(*it)));
    let mut splitter = TextSplitter::new(form, options);
    let (mut host, mut blocks) = (Host { text, at: 0, turn: 0, pieces }, Vec::new());
    loop {
        let budget = &mut Budget::new(host.units());
        match meter::call("TextSplitter", 0, budget, |budget| splitter.step(budget)).unwrap() {
            Step::Ready(Split::Block(block)) => blocks.push(block),
            Step::Ready(Split::Room) => match host.next() {
                Some(bytes) => drop(splitter.feed(bytes).unwrap()),
                None => splitter.finish(),
            },
            Step::Done => return blocks,
            _ => {}
        }
    }
}

fn rows(reader: &mut TextReader, host: &mut Host<'_>) -> Rows {
    let mut rows = Vec::new();
    loop {
        let budget = &mut Budget::new(host.units());
        let step = match meter::call("TextReader", 0, budget, |budget| reader.step(budget)) {
            Ok(step) => step,
            Err(error) => {
                assert_eq!(reader.step(&mut Budget::unlimited()), Err(error), "it stays");
                return None;
            }
        };
        match step {
            Step::Ready(Read::Rows(batch)) => {
                assert!(batch.rows > 0);
                for row in 0..batch.rows {
                    let field = |column: &marquetry_parquet::batch::ColumnBatch| {
                        let Values::ByteArray(values) = &column.values else { panic!("{column:?}") };
                        (!column.is_null(row)).then(|| values.get(row).to_vec())
                    };
                    rows.push(batch.columns.iter().map(field).collect());
                }
            }
            Step::Ready(Read::Room) => match host.next() {
                Some(bytes) => drop(reader.feed(bytes).unwrap()),
                None => reader.finish(),
            },
            Step::Done => return Some(rows),
            _ => {}
        }
    }
}

struct Host<'a> {
    text: &'a [u8],
    at: usize,
    turn: usize,
    pieces: &'a [u8],
}

impl Host<'_> {
    fn next(&mut self) -> Option<Bytes> {
        let piece =
            self.pieces.get(self.turn % self.pieces.len().max(1)).map_or(64, |it| usize::from(*it) + 1);
        self.turn += 1;
        let end = self.text.len().min(self.at + piece);
        let mut bytes = self.text[self.at..end].to_vec();
        if is_planted(Canary::Bytes) && bytes.len() == 13 {
            bytes.pop();
        }
        self.at = end;
        (!bytes.is_empty()).then(|| bytes.into())
    }

    fn units(&self) -> u64 {
        u64::from(self.pieces.get((self.turn + 1) % self.pieces.len().max(1)).copied().unwrap_or_default())
    }
}

/// A field: what it stands for, and whether it has quotes, or is missing.
type Told = (Vec<u8>, bool, bool);

/// Character by character, as the rules are told.
fn naive(dialect: &Dialect, text: &[u8], mut columns: usize) -> Result<Vec<Vec<Told>>, usize> {
    let (mut rows, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if dialect.comment == Some(text[at]) {
            at = text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| at + end + 1);
            continue;
        }
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
