//! Files at the extremes of the format: every count, width, length and depth at its least, at its most, and at the edges of what a
//! reader does at once; any of them with any other. What they hold does not matter, only what it costs to read.

mod streams;
mod values;

use marquetry_base::Bytes;
use marquetry_conformance::craft::{self, Chunk, Page, Struct, Table, V};
use marquetry_text::Format;

use crate::choices::Choices;
use crate::encode::Physical;

/// Bytes of a page, about, at the most: enough for what is large to be large, and little enough for a run to be short.
const PAGE_BYTES: usize = 3 << 20;

/// Bytes of a file, about, at the most.
const FILE_BYTES: usize = 8 << 20;

/// Bytes of a text, about, at the most.
const TEXT_BYTES: usize = 1 << 20;

/// A file.
pub fn file(choices: &mut Choices<'_>) -> Bytes {
    let mut leaf = Leaf::choose(choices);
    let (pages, codec, entries) = match choices.byte() % 4 {
        0 => streams::pages(&mut leaf, choices),
        _ => values::pages(&leaf, choices),
    };
    let page_bytes: usize = pages.iter().map(|page| page.body.len() + page.header.write().len() + 40).sum();
    let fits = |most: usize, of: usize| most.min(FILE_BYTES / of).max(1);
    let times = fits(choices.pick(&[1, 2, 17, 300, 5_000]), page_bytes);
    let mut all: Vec<Page> = pages.iter().filter(|page| is_dictionary(page)).cloned().collect();
    let data = || pages.iter().filter(|page| !is_dictionary(page)).cloned();
    all.extend((0..times).flat_map(|_| data()));
    // Each page begins with a row.
    let rows = (leaf.rows(entries) * times) as i64;
    let entries = (entries * times) as i64;
    let mut chunk = Chunk::new(entries, all).codec(codec);
    decorate(&mut chunk, times, choices);
    let besides: usize = chunk.indexes.iter().map(|(_, index)| index.write().len()).sum();
    // What is small as Thrift is large before it is written.
    let chunk_bytes = page_bytes * times + 30 * (chunk.metadata.write().len() + besides + 20);
    let groups = fits(choices.pick(&[1, 1, 2, 100, 3_000]), chunk_bytes);
    let columns = fits(choices.pick(&[1, 1, 2, 60, 2_000]), chunk_bytes * groups);
    let mut table = Table::nested(0, leaf.elements(columns, choices));
    if let Some((children, _)) = &mut table.tree {
        *children = if leaf.depth > 0 { 1 } else { columns as i32 };
    }
    for _ in 0..groups {
        table = table.group(rows, vec![chunk.clone(); columns]);
    }
    in_footer(&mut table.footer, choices);
    table.unknown_fields = choices.once_in(16);
    table.write()
}

fn is_dictionary(page: &Page) -> bool {
    page.header.0.get(&1) == Some(&V::I32(2))
}

/// A column: what its values are, and what is around it.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    physical: Physical,
    shape: Shape,
    /// Groups above it.
    depth: usize,
}

/// How rows are made of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Required,
    Optional,
    /// Lists in lists, so deep; each of the innermost has so many entries.
    Lists(usize, usize),
}

impl Leaf {
    fn choose(choices: &mut Choices<'_>) -> Leaf {
        let physical = match choices.byte() % 10 {
            0 => Physical::Int32,
            1 => Physical::Int64,
            2 | 3 => Physical::Bytes,
            4 => Physical::Boolean,
            5 => Physical::Double,
            6 => Physical::Float,
            7 => Physical::Int96,
            _ => Physical::Fixed(choices.pick(&[16, 0, 1, 2, 3, 8, 255, 512, 513, 4_096, 65_536, 1 << 20])),
        };
        let row = |choices: &mut Choices<'_>| choices.pick(&[3, 1, 1_000, 100_000, usize::MAX]);
        let shape = match choices.byte() % 6 {
            0 | 1 => Shape::Required,
            2 => Shape::Optional,
            3 | 4 => Shape::Lists(1, row(choices)),
            _ => Shape::Lists(choices.pick(&[2, 7, 30]), row(choices)),
        };
        Leaf { physical, shape, depth: choices.pick(&[0, 0, 0, 1, 30]) }
    }

    /// The definition level of a value, and the largest repetition level.
    fn levels(&self) -> (u32, u32) {
        match self.shape {
            Shape::Required => (0, 0),
            Shape::Optional => (1, 0),
            Shape::Lists(deep, _) => (2 * deep as u32 + 1, deep as u32),
        }
    }

    /// Rows of so many entries of pages that each begin with one.
    fn rows(&self, entries: usize) -> usize {
        match self.shape {
            Shape::Lists(_, row) => entries.div_ceil(row),
            _ => entries,
        }
    }

    /// The schema's elements: so many columns of this kind.
    fn elements(&self, columns: usize, choices: &mut Choices<'_>) -> Vec<Struct> {
        // Names take a part of the footer.
        let name_bytes =
            choices.pick(&[1, 1, 100, 5_000, 60_000]).min((1 << 20) / columns / (1 + self.depth)).max(1);
        let name = |number: usize| format!("{}{number}", "n".repeat(name_bytes));
        let mut elements = Vec::new();
        for above in 0..self.depth {
            let children = if above + 1 == self.depth { columns } else { 1 };
            elements.push(craft::group(&name(above), 0, children as i32));
        }
        for number in 0..columns {
            let (name, mut repetition) = (name(number), 0);
            match self.shape {
                Shape::Required => {}
                Shape::Optional => repetition = 1,
                Shape::Lists(deep, _) => {
                    (0..deep).for_each(|_| elements.extend(craft::list(&name, 1)));
                    repetition = 1;
                }
            }
            let mut element = craft::leaf(&name, repetition, self.physical.number());
            if let Physical::Fixed(width) = self.physical {
                element.set(2, V::I32(width as i32));
            }
            elements.push(element);
        }
        elements
    }
}

/// Bytes that nobody looks at, of lengths that matter.
fn some_bytes(choices: &mut Choices<'_>) -> Vec<u8> {
    vec![b'b'; choices.pick(&[8, 0, 1, 64, 5_000, 100_000, 1 << 20])]
}

/// A number of small things.
fn count(choices: &mut Choices<'_>) -> usize {
    choices.pick(&[3, 0, 1, 100, 5_000, 30_000])
}

/// Statistics, and an index of so many pages, or of any number.
fn decorate(chunk: &mut Chunk, pages: usize, choices: &mut Choices<'_>) {
    let numbers = |count: usize| V::List(vec![V::I64(1 << 40); count]);
    if choices.once_in(4) {
        let bound = V::Binary(some_bytes(choices));
        chunk.metadata.set(12, V::Struct(Struct::of([(3, V::I64(0)), (5, bound.clone()), (6, bound)])));
    }
    if choices.once_in(8) {
        let histograms = [(2, numbers(count(choices))), (3, numbers(count(choices)))];
        chunk.metadata.set(16, V::Struct(Struct::of(histograms)));
    }
    if choices.once_in(8) {
        chunk.metadata.set(2, V::List(vec![V::I32(craft::RLE); count(choices)]));
    }
    if choices.once_in(8) {
        let pair = Struct::of([(1, V::Binary(some_bytes(choices))), (2, V::Binary(Vec::new()))]);
        // Thousands of pairs in a chunk take two allocations for five bytes, and are charged for the bytes: not mended yet.
        let pairs = count(choices).min(100);
        chunk.metadata.set(8, V::List(vec![V::Struct(pair); pairs]));
    }
    if choices.once_in(4) {
        let bound = some_bytes(choices);
        let pages =
            if choices.once_in(2) { pages } else { count(choices) }.min(FILE_BYTES / (bound.len() + 30));
        let location = |at: usize| {
            V::Struct(Struct::of([(1, V::I64(4 + at as i64)), (2, V::I32(1)), (3, V::I64(at as i64))]))
        };
        let offsets = Struct::of([(1, V::List((0..pages).map(location).collect()))]);
        let bounds = || V::List(vec![V::Binary(bound.clone()); pages]);
        let mut column = Struct::of([
            (1, V::List(vec![V::Bool(false); pages])),
            (2, bounds()),
            (3, bounds()),
            (4, V::I32(1)),
            (5, numbers(pages)),
        ]);
        if choices.once_in(2) {
            let numbers = numbers((pages * choices.pick(&[1, 2, 60])).min(200_000));
            column.set(6, numbers.clone()).set(7, numbers);
        }
        chunk.indexes = vec![(4, offsets), (6, column)];
    }
}

/// What a footer has besides.
fn in_footer(footer: &mut Struct, choices: &mut Choices<'_>) {
    if choices.once_in(8) {
        let pair = Struct::of([(1, V::Binary(some_bytes(choices))), (2, V::Binary(some_bytes(choices)))]);
        let pairs = count(choices).min(FILE_BYTES / pair.write().len());
        footer.set(5, V::List(vec![V::Struct(pair); pairs]));
    }
    if choices.once_in(8) {
        let order = V::Struct(Struct::of([(1, V::Struct(Struct::default()))]));
        footer.set(7, V::List(vec![order; count(choices)]));
    }
    if choices.once_in(8) {
        footer.set(6, V::Binary(some_bytes(choices)));
    }
    if choices.once_in(8) {
        let unknown = match choices.byte() % 4 {
            0 => V::List(vec![V::Bool(true); count(choices)]),
            1 => V::List(vec![V::Struct(Struct::default()); count(choices)]),
            2 => V::List(vec![V::I64(i64::MIN); count(choices)]),
            _ => V::Map(vec![(V::Binary(some_bytes(choices)), V::Double(0.0)); 2]),
        };
        footer.set(1_000, unknown);
    }
}

/// A text: rows of fields, or lines of JSON.
pub fn text(choices: &mut Choices<'_>) -> (Format, Vec<u8>) {
    let format = choices.pick(&[Format::Csv, Format::Tsv, Format::JsonLines]);
    let delimiter: &[u8] = if format == Format::Tsv { b"\t" } else { b"," };
    let fields = choices.pick(&[4, 1, 0, 2, 1_000, 50_000]);
    let rows = choices.pick(&[100, 1, 2, 5_000, 100_000]).min(TEXT_BYTES / (fields + 1)).max(1);
    let is_new = choices.once_in(3);
    let repeats =
        choices.pick(&[1, 1, 4, 100, 10_000, 1_000_000]).min(TEXT_BYTES / (rows * (fields + 1))).max(1);
    let unit: &[u8] = match format {
        Format::JsonLines => choices.pick(&[
            &b"1"[..],
            b"null",
            b"\"\"",
            b"\"s\"",
            b"\"\\u00e9\\n\"",
            b"[]",
            b"[[",
            b"{\"k\":1}",
            b"1e300",
            b"\"\xf0\x9f\x98\x80\"",
        ]),
        _ => choices.pick(&[
            &b"1"[..],
            b"",
            b"x",
            b"\"\"",
            b"\"a\"\"b\"",
            b"2024-02-29T12:34:56.123456Z",
            b"1.5e300",
            b"0x00ff",
            b"\xf0\x9f\x98\x80",
            b"\"",
        ]),
    };
    let ends: &[u8] = choices.pick(&[&b"\n"[..], b"\r\n", b"\n\n"]);
    let key_bytes = choices.pick(&[1, 1, 0, 100, 60_000]).min(TEXT_BYTES / (rows * (fields + 1)));
    let mut text = Vec::new();
    for row in 0..rows {
        if format == Format::JsonLines {
            text.push(b'{');
        }
        for field in 0..fields {
            if field > 0 {
                text.extend(delimiter);
            }
            if format == Format::JsonLines {
                let number = if is_new { row * fields + field } else { field };
                text.push(b'"');
                text.extend(vec![b'k'; key_bytes]);
                text.extend(format!("{number}\":").bytes());
                text.extend(nested(unit, repeats));
            } else {
                text.extend(unit.repeat(if is_new && row == 0 { 1 } else { repeats }));
            }
            if text.len() > 2 * TEXT_BYTES {
                break;
            }
        }
        if format == Format::JsonLines {
            text.push(b'}');
        }
        text.extend(ends);
        if text.len() > 2 * TEXT_BYTES {
            break;
        }
    }
    (format, text)
}

/// A value of JSON that is so much of something: a long string, a list, deep lists.
fn nested(unit: &[u8], repeats: usize) -> Vec<u8> {
    match unit {
        b"[[" => [&b"[".repeat(repeats)[..], &b"]".repeat(repeats)].concat(),
        _ if repeats == 1 => unit.to_vec(),
        [b'"', inner @ .., b'"'] => [b"\"", &inner.repeat(repeats)[..], b"\""].concat(),
        b"1" => b"1".repeat(repeats),
        _ => [b"[", &vec![unit; repeats].join(&b","[..])[..], b"]"].concat(),
    }
}
