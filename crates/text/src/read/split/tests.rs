use alloc::string::String;
use alloc::vec::Vec;

use marquetry_parquet::batch::{Batch, Values};

use super::super::{Read, ReadOptions, Sampled, TextForm, TextReader, TextSampler};
use super::*;
use crate::{Format, Header, Quote};

/// The rows of a text, as one field after the other; and the error that ends them.
type Rows = (Vec<Option<Vec<u8>>>, Option<Error>);

fn form(text: &[u8], format: Format, options: &TextOptions) -> Option<TextForm> {
    let mut sampler = TextSampler::new(format, options).unwrap();
    sampler.feed(Bytes::copy_from_slice(text)).unwrap();
    sampler.finish();
    loop {
        match sampler.step(&mut Budget::unlimited()).ok()? {
            Step::Ready(Sampled::Sample(sample)) => return sample.form().ok(),
            Step::Ready(Sampled::Room) => sampler.finish(),
            _ => {}
        }
    }
}

fn reader(form: &TextForm) -> TextReader {
    // So that of several errors it finds that of the first row.
    TextReader::new(form, ReadOptions { batch_rows: 1, ..ReadOptions::default() }).unwrap()
}

/// Reads what the reader was given to its end.
fn rest(reader: &mut TextReader, (rows, error): &mut Rows) {
    let field = |batch: &Batch, column: usize| {
        let column = &batch.columns[column];
        let Values::ByteArray(values) = &column.values else { panic!("{column:?}") };
        (!column.is_null(0)).then(|| values.get(0).to_vec())
    };
    loop {
        match reader.step(&mut Budget::new(1000)) {
            Ok(Step::Ready(Read::Rows(batch))) => {
                rows.extend((0..batch.columns.len()).map(|column| field(&batch, column)));
            }
            Ok(Step::Done) => return,
            Ok(Step::Ready(Read::Room)) => reader.finish(),
            Ok(_) => {}
            Err(wrong) => {
                *error = Some(wrong);
                return;
            }
        }
    }
}

fn whole(text: &[u8], form: &TextForm) -> Rows {
    let mut rows = Rows::default();
    let mut reader = reader(form);
    reader.feed(Bytes::copy_from_slice(text)).unwrap();
    rest(&mut reader, &mut rows);
    rows
}

/// Splits a text that comes in pieces.
fn blocks(text: &[u8], form: &TextForm, piece: usize, options: SplitOptions) -> Vec<Block> {
    let (blocks, error) = split(text, form, piece, options);
    assert_eq!(error, None);
    blocks
}

/// The same, and the error that ends it.
fn split(text: &[u8], form: &TextForm, piece: usize, options: SplitOptions) -> (Vec<Block>, Option<Error>) {
    let mut splitter = TextSplitter::new(form, options);
    let (mut pieces, mut blocks) = (text.chunks(piece), Vec::new());
    loop {
        let mut budget = Budget::new(if piece == 1 { 0 } else { 100_000 });
        let step = match splitter.step(&mut budget) {
            Ok(step) => step,
            Err(error) => {
                let again = splitter.step(&mut Budget::unlimited()).err();
                assert_eq!(again.as_ref(), Some(&error), "it stays");
                return (blocks, Some(error));
            }
        };
        assert!(budget.spent() < 175_000, "{}", budget.spent());
        match step {
            Step::Ready(Split::Room) => match pieces.next() {
                Some(piece) => assert_eq!(splitter.feed(Bytes::copy_from_slice(piece)), Ok(Fed::Taken)),
                None => splitter.finish(),
            },
            Step::Ready(Split::Block(block)) => blocks.push(block),
            Step::Done => return (blocks, None),
            _ => {}
        }
    }
}

fn text_of(block: &Block) -> Vec<u8> {
    block.pieces.iter().flat_map(|piece| piece.to_vec()).collect()
}

/// Checks that the blocks of a text have its rows and its errors, however large they are and however the text comes.
fn check(text: &[u8], form: &TextForm) {
    let (rows, error) = whole(text, form);
    let name = String::from_utf8_lossy(text);
    for block_bytes in [0, 1, 7, 30, 1000] {
        let options = SplitOptions { block_bytes: Some(block_bytes), ..SplitOptions::default() };
        let mut texts = Vec::new();
        for piece in [1, 3, 5000] {
            let blocks = blocks(text, form, piece, options.clone());
            let found: Vec<Vec<u8>> = blocks.iter().map(text_of).collect();
            assert_eq!(found.concat(), text, "{name:?} by {block_bytes}");
            if texts.is_empty() {
                texts.clone_from(&found);
            }
            assert_eq!(found, texts, "{name:?} by {block_bytes}, in pieces of {piece}");
            let long = |text: &Vec<u8>| text.len() > block_bytes && text.last() == Some(&b'\n');
            assert!(found.iter().rev().skip(1).all(long), "{found:?} by {block_bytes}");
            let mut found = Rows::default();
            let mut used = reader(form);
            for block in blocks {
                used.read_block(block).unwrap();
                rest(&mut used, &mut found);
                if found.1.is_some() {
                    break;
                }
            }
            assert_eq!(found.1, error, "{name:?} by {block_bytes}");
            assert_eq!(found.0, rows, "{name:?} by {block_bytes}");
        }
    }
}

/// A number below `end` that looks random.
fn random(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from((*state >> 33) % u64::try_from(end).unwrap()).unwrap()
}

#[test]
fn blocks_have_the_rows_of_the_text() {
    let mut state = 7;
    let mut read = 0;
    for turn in 0..3000 {
        let mut options = TextOptions::default();
        let delimiter = [b',', b';', b'\t', b'x', b'^', 1][random(&mut state, 6)];
        let quote = [Some(b'"'), Some(b'\''), None][random(&mut state, 3)];
        (options.delimiter, options.short_rows) = (Some(delimiter), true);
        options.quote = quote.map_or(Quote::None, Quote::Character);
        let comment = [None, Some(b'#'), Some(b'a')][random(&mut state, 3)];
        options.comment = comment;
        options.header = if turn % 2 == 0 { Header::Yes } else { Header::No };
        let quote = quote.unwrap_or(b'"');
        // Fields with a line end, of which one begins a row and one does not; and quotes that are text.
        let first = [b'\n', quote, b'n', b'\n', quote, quote, delimiter, b'\n', quote, delimiter];
        let second = [delimiter, quote, quote, quote, b'\r', b'\n', delimiter, quote, b'\n'];
        // Comments, and what looks like some inside of quotes.
        let comment = comment.unwrap_or(b'a');
        let third = [b'\n', comment, quote, b'\n', delimiter, quote, b'\n', comment, delimiter, quote, b'\n'];
        let fourth = [comment, delimiter, quote, b'\n'];
        let parts: [&[u8]; 14] = [
            &third,
            &fourth,
            b"a",
            b"\n",
            b"\r\n",
            b"\r",
            &[delimiter],
            &[quote],
            &[quote, quote],
            &[b'5', quote],
            &first,
            &second,
            &second,
            "é".as_bytes(),
        ];
        let mut text = Vec::new();
        let start = [comment, quote, b'\n'];
        for start in [&b"\xef\xbb\xbf"[..], &start, b"\n\r\n", b"h", &[delimiter, b'j'], b"\n"] {
            if random(&mut state, 3) == 0 || start == b"h" {
                text.extend_from_slice(start);
            }
        }
        for _ in 0..random(&mut state, 40) {
            text.extend_from_slice(parts[random(&mut state, parts.len())]);
        }
        // All columns are text.
        let Some(form) = form(&text, Format::Csv, &options) else { continue };
        let columns = form.columns().as_slice().iter().map(|column| crate::Column {
            name: column.name.clone(),
            column_type: crate::ColumnType::Scalar(crate::Scalar::Text),
        });
        options.schema = Some(columns.collect::<Vec<_>>().into());
        let Some(form) = self::form(&text, Format::Csv, &options) else { continue };
        check(&text, &form);
        read += usize::from(whole(&text, &form).1.is_none());
    }
    assert!(read > 500, "{read}");
}

#[test]
fn errors_have_their_lines() {
    let options = TextOptions { quote: Quote::Character(b'"'), ..TextOptions::default() };
    let good = "n,s\n1,\"a\nb\"\n2,c\r\n3,\"d\"\"\n\"\n";
    let form = form(good.as_bytes(), Format::Csv, &options).unwrap();
    for bad in ["x,y\n", "4\n", "4,\"e\"f\n5,g\n", "4,\"open\n\n", "4,\u{fffd}\n", "4,\"\"\"\n"] {
        let mut text = good.as_bytes().to_vec();
        text.extend_from_slice(bad.as_bytes());
        if bad.contains('\u{fffd}') {
            text.truncate(text.len() - 2);
        }
        text.extend_from_slice(b"6,h\n");
        let mut whole = reader(&form);
        whole.feed(Bytes::copy_from_slice(&text)).unwrap();
        let wrong = error_of(&mut whole).unwrap();
        for block_bytes in [0, 10, 1000] {
            let options = SplitOptions { block_bytes: Some(block_bytes), ..SplitOptions::default() };
            let mut errors = Vec::new();
            for block in blocks(&text, &form, 5, options) {
                let mut reader = reader(&form);
                reader.read_block(block).unwrap();
                errors.extend(error_of(&mut reader));
            }
            assert_eq!(errors.first(), Some(&wrong), "{bad:?} by {block_bytes}");
            assert!(wrong.message().starts_with("line 7: "), "{wrong}");
        }
    }
}

fn error_of(reader: &mut TextReader) -> Option<Error> {
    loop {
        match reader.step(&mut Budget::unlimited()) {
            Ok(Step::Done) => return None,
            Ok(Step::Ready(Read::Room)) => reader.finish(),
            Ok(_) => {}
            Err(error) => return Some(error),
        }
    }
}

#[test]
fn json_lines_are_split_at_every_line_feed() {
    let text = b"\xef\xbb\xbf{\"s\":\"a\"}\n\n{\"s\":\"b\\n\"}\r\n{\"s\":null}\n  {\"s\":\"}{\"}";
    let form = form(text, Format::JsonLines, &TextOptions::default()).unwrap();
    check(text, &form);
    check(&text[3..], &form);
    let mut wrong = text.to_vec();
    wrong.extend_from_slice(b"\n{\"s\":\"c\"}\n{\"s\":\"d\"\n{\"s\":1}\n");
    check(&wrong, &form);
}

/// The empty first line of a text of one column is its header, and comments are before it.
#[test]
fn a_header_after_comments() {
    let (mut options, schema) = (TextOptions::default(), "h text");
    (options.header, options.comment) = (Header::Yes, Some(b'#'));
    options.schema = Some(schema.parse().unwrap());
    let form = form(b"#c\nh\n#c\nb\n", Format::Csv, &options).unwrap();
    let text = b"#c\n#\"c\nh\n#c\n\nb\n#";
    assert_eq!(whole(text, &form).0, [None, Some(b"b".to_vec())]);
    check(text, &form);
}

/// A row that is too long is one block: its reader finds that it is too long. If that has other limits, the text still
/// does not end as if there was nothing more.
#[test]
fn a_row_that_is_too_long() {
    let mut options = SplitOptions::default();
    (options.block_bytes, options.limits.value_bytes) = (Some(1000), 1 << 20);
    for format in [Format::Csv, Format::JsonLines] {
        let start = if format == Format::Csv { "s\na\n\"b" } else { "{\"s\":\"a\"}\n{\"s\":\"" };
        let form =
            form(&start.as_bytes()[..start.rfind('\n').unwrap()], format, &TextOptions::default()).unwrap();
        let mut text = start.as_bytes().to_vec();
        text.resize(5 << 20, b'x');
        let (blocks, error) = split(&text, &form, 10_000, options.clone());
        let error = error.unwrap();
        assert_eq!(error.kind(), marquetry_base::ErrorKind::LimitExceeded, "{error}");
        assert!(error.message().starts_with("line 1: "), "{error}");
        assert_eq!(blocks.len(), 1);
        assert!(blocks[0].bytes() < 3 << 20);
        let mut read = ReadOptions::default();
        read.limits.value_bytes = 1 << 20;
        let mut reader = TextReader::new(&form, read).unwrap();
        reader.read_block(blocks[0].clone()).unwrap();
        assert!(reader.read_block(blocks[0].clone()).is_err() && reader.feed(Bytes::new()).is_err());
        let error = error_of(&mut reader).unwrap();
        assert_eq!(error.kind(), marquetry_base::ErrorKind::LimitExceeded, "{error}");
        assert!(error.message().starts_with(if format == Format::Csv { "line 3: " } else { "line 2: " }));
    }
}
