//! A file before it is laid out: rows, how they are cut, encoded and compressed, and what of it is a lie.

use marquetry_base::{Bytes, Codec};
use marquetry_conformance::craft::{self, Chunk, Page, Struct, Table, V, end_file};

use crate::choices::Choices;
use crate::compress::{CODECS, compress};
use crate::edit::{Edit, any_value, lie};
use crate::encode::{Physical, bit_packed, encode, hybrid, indices, plain};
use crate::tree::{Entries, Leaf, Tree};

/// A file that is going to be.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The schema.
    pub tree: Tree,
    /// Rows and chunks of the row groups.
    pub groups: Vec<(usize, Vec<ChunkPlan>)>,
    /// What each leaf holds, row after row, as [`crate::host`] tells what it reads.
    pub expected: Vec<Vec<Vec<u8>>>,
    /// Choices of lies in the footer, and changes of the file's bytes.
    footer_lies: Vec<Vec<u8>>,
    edits: Vec<Edit>,
    unknown_fields: bool,
    /// How many lies there are.
    pub lies: usize,
}

/// A column chunk.
#[derive(Debug, Clone)]
pub struct ChunkPlan {
    codec: (i32, Option<Codec>),
    pages: Vec<PagePlan>,
    entries: usize,
    metadata: Struct,
    indexes: Vec<(i16, Struct)>,
}

/// A page.
#[derive(Debug, Clone)]
struct PagePlan {
    kind: PageKind,
    /// Levels, each with its length before it in V1, where the encoding wants one.
    repetition: Vec<u8>,
    definition: Vec<u8>,
    values: Vec<u8>,
    entries: usize,
    nulls: usize,
    rows: usize,
    encoding: i32,
    level_encoding: i32,
    is_compressed: bool,
    has_crc: bool,
    how: u8,
    /// Changes of the compressed bytes; sizes and CRC follow them.
    body_edits: Vec<Edit>,
    /// Fields of the header that lie; those of its own structure, if so.
    header_lies: Vec<(bool, i16, Option<V>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageKind {
    V1,
    V2,
    Dictionary,
    Other,
}

/// What kinds of pages there are, where a target looks at some of them only.
#[derive(Debug, Clone, Copy, Default)]
pub struct Only {
    /// No compression.
    pub uncompressed: bool,
    /// One page a chunk, in one row group.
    pub one_page: bool,
}

impl Plan {
    /// A file of this schema, without a lie.
    pub fn choose(tree: Tree, rows_max: usize, only: Only, choices: &mut Choices<'_>) -> Plan {
        let mut random = choices.random();
        let nulls_in = choices.pick(&[4, 1, 2, 50, 1_000_000]);
        let groups = if only.one_page { 1 } else { choices.pick(&[1, 1, 2, 0, 3]) };
        let mut expected = vec![Vec::new(); tree.leaves().len()];
        let groups = (0..groups)
            .map(|_| {
                let rows = choices.below(rows_max + 1);
                let entries = tree.rows(rows, nulls_in, &mut random);
                let chunks = tree
                    .leaves()
                    .iter()
                    .zip(&entries)
                    .zip(&mut expected)
                    .map(|((leaf, entries), expected)| {
                        tell(leaf, entries, expected);
                        chunk(leaf, entries, only, choices)
                    })
                    .collect();
                (rows, chunks)
            })
            .collect();
        Plan {
            tree,
            groups,
            expected,
            footer_lies: Vec::new(),
            edits: Vec::new(),
            unknown_fields: choices.once_in(8),
            lies: 0,
        }
    }

    /// Tells up to so many lies anywhere in the file.
    pub fn lie(&mut self, most: usize, choices: &mut Choices<'_>) {
        for _ in 0..choices.below(most + 1) {
            self.lies += 1;
            match choices.byte() % 10 {
                0 => self.footer_lies.push(choices.bytes(16).to_vec()),
                1 => self.edits.push(Edit::choose(choices)),
                2 => self.lie_in_chunk(choices),
                _ => self.lie_in_page(choices),
            }
        }
    }

    /// Tells a lie about a page, or in it.
    pub fn lie_in_page(&mut self, choices: &mut Choices<'_>) {
        self.lies = self.lies.max(1);
        let Some(chunk) = self.any_chunk(choices) else { return };
        let pages = chunk.pages.len();
        let at = choices.below(pages);
        match choices.byte() % 16 {
            0 if pages > 0 => drop(chunk.pages.remove(at)),
            1 if pages > 0 => chunk.pages.insert(at, chunk.pages[at].clone()),
            2 if pages > 1 => chunk.pages.swap(at, 0),
            3 => chunk.pages.insert(at, PagePlan::other(choices)),
            action => {
                let Some(page) = chunk.pages.get_mut(at) else { return };
                match action {
                    4 | 5 => page.header_lies.push(header_lie(choices)),
                    6 => page.entries = choices.number() as u32 as usize,
                    7 => page.encoding = choices.below(12) as i32,
                    8 => page.body_edits.push(Edit::choose(choices)),
                    9 => Edit::choose(choices).apply(&mut page.repetition),
                    10 | 11 => Edit::choose(choices).apply(&mut page.definition),
                    _ => Edit::choose(choices).apply(&mut page.values),
                }
            }
        }
    }

    /// Puts other bytes in the place of all values.
    pub fn replace_values(&mut self, values: Vec<u8>) {
        self.lies += 1;
        for page in self.pages() {
            page.values.clone_from(&values);
        }
    }

    /// Changes a few bytes of the values, which then decide the rest.
    pub fn edit_values(&mut self, choices: &mut Choices<'_>) {
        self.lies += 1;
        let edits = Edit::several(choices, 4);
        for page in self.pages() {
            edits.iter().for_each(|edit| edit.apply(&mut page.values));
        }
    }

    fn pages(&mut self) -> impl Iterator<Item = &mut PagePlan> {
        self.groups.iter_mut().flat_map(|(_, chunks)| chunks).flat_map(|chunk| &mut chunk.pages)
    }

    fn lie_in_chunk(&mut self, choices: &mut Choices<'_>) {
        let Some(chunk) = self.any_chunk(choices) else { return };
        match choices.byte() % 6 {
            0 => chunk.entries = chunk.entries.wrapping_add(choices.number() as usize) % (1 << 40),
            1 => chunk.codec.0 = choices.below(9) as i32,
            2 => drop(chunk.metadata.set(9, V::I64(choices.number()))),
            3 => drop(chunk.metadata.set(11, V::I64(choices.number()))),
            4 => drop(chunk.metadata.set(7, V::I64(choices.number()))),
            _ => drop(chunk.metadata.set(1 + choices.below(16) as i16, any_value(choices))),
        }
    }

    fn any_chunk(&mut self, choices: &mut Choices<'_>) -> Option<&mut ChunkPlan> {
        let groups = self.groups.len();
        let (_, chunks) = self.groups.get_mut(choices.below(groups))?;
        let count = chunks.len();
        chunks.get_mut(choices.below(count))
    }

    /// Gives a column chunk indexes, which say of its pages what they like.
    pub fn index(&mut self, choices: &mut Choices<'_>) {
        for (rows, chunks) in &mut self.groups {
            for chunk in chunks {
                if !choices.once_in(3) {
                    chunk.indexes = indexes(*rows, chunk.pages.len(), choices);
                }
            }
        }
    }

    /// The bytes before the footer, and the footer, with its lies.
    pub fn parts(&self) -> (Vec<u8>, Struct) {
        let mut table = Table::nested(self.tree.fields.len() as i32, self.tree.elements());
        table.unknown_fields = self.unknown_fields;
        for (rows, chunks) in &self.groups {
            table = table.group(*rows as i64, chunks.iter().map(ChunkPlan::render));
        }
        let (file, mut footer) = table.parts();
        for lies in &self.footer_lies {
            lie(&mut footer, &mut Choices::new(lies));
        }
        (file, footer)
    }

    /// The file.
    pub fn write(&self) -> Bytes {
        let (file, footer) = self.parts();
        let mut bytes = end_file(file, &footer.write()).to_vec();
        self.edits.iter().for_each(|edit| edit.apply(&mut bytes));
        bytes.into()
    }
}

impl ChunkPlan {
    fn render(&self) -> Chunk {
        let mut chunk =
            Chunk::new(self.entries as i64, self.pages.iter().map(|page| page.render(self.codec.1)));
        chunk.codec = self.codec.0;
        chunk.metadata = self.metadata.clone();
        chunk.indexes = self.indexes.clone();
        chunk
    }
}

impl PagePlan {
    fn other(choices: &mut Choices<'_>) -> PagePlan {
        PagePlan {
            kind: choices.pick(&[PageKind::Other, PageKind::Dictionary, PageKind::V1]),
            repetition: Vec::new(),
            definition: Vec::new(),
            values: choices.bytes(60).to_vec(),
            entries: choices.below(20),
            nulls: 0,
            rows: 0,
            encoding: craft::PLAIN,
            level_encoding: craft::RLE,
            is_compressed: true,
            has_crc: false,
            how: 0,
            body_edits: Vec::new(),
            header_lies: Vec::new(),
        }
    }

    fn render(&self, codec: Option<Codec>) -> Page {
        let levels = [&self.repetition[..], &self.definition].concat();
        let (levels, packed) = match self.kind {
            PageKind::V2 => (levels, self.values.clone()),
            _ => (Vec::new(), [&levels[..], &self.values].concat()),
        };
        let uncompressed = levels.len() + packed.len();
        let mut body = match codec.filter(|_| self.is_compressed) {
            Some(codec) => compress(codec, &packed, self.how),
            None => packed,
        };
        self.body_edits.iter().for_each(|edit| edit.apply(&mut body));
        let (entries, nulls) = (self.entries as u32 as i32, self.nulls as i32);
        let mut page = match self.kind {
            PageKind::V1 => Page::data(entries, self.encoding, body)
                .with_own(3, V::I32(self.level_encoding))
                .with_own(4, V::I32(self.level_encoding)),
            PageKind::V2 => {
                let page = Page::data_v2(entries, nulls, self.encoding, &levels, &body)
                    .with_own(3, V::I32(self.rows as i32))
                    .with_own(5, V::I32(self.definition.len() as i32))
                    .with_own(6, V::I32(self.repetition.len() as i32));
                if self.is_compressed { page } else { page.with_own(7, V::Bool(false)) }
            }
            PageKind::Dictionary => Page::dictionary(entries, body),
            PageKind::Other => Page::other(1, body),
        };
        page = page.with(2, V::I32(uncompressed as i32));
        if self.has_crc {
            page = page.with_crc();
        }
        for (is_own, id, value) in &self.header_lies {
            match (is_own, value) {
                (true, Some(value)) => page = page.with_own(*id, value.clone()),
                (false, Some(value)) => page = page.with(*id, value.clone()),
                (_, None) => drop(page.header.remove(*id)),
            }
        }
        page
    }
}

fn header_lie(choices: &mut Choices<'_>) -> (bool, i16, Option<V>) {
    let is_own = choices.once_in(2);
    let id = 1 + choices.below(9) as i16;
    let value = match choices.byte() % 8 {
        0 => None,
        1 => Some(any_value(choices)),
        _ => Some(V::I32(choices.number() as i32)),
    };
    (is_own, id, value)
}

/// What a leaf holds, row after row: of each entry its levels, and its value if there is one.
fn tell(leaf: &Leaf, entries: &Entries, rows: &mut Vec<Vec<u8>>) {
    let is_flat = leaf.repetition_max == 0 && leaf.definition_max <= 1;
    let mut values = entries.values.iter();
    for (&repetition, &definition) in entries.repetition.iter().zip(&entries.definition) {
        if repetition == 0 {
            rows.push(Vec::new());
        }
        let Some(row) = rows.last_mut() else { continue };
        let is_there = definition == leaf.definition_max;
        if is_flat {
            row.push(u8::from(is_there));
        } else {
            row.extend([repetition as u8, definition as u8]);
        }
        if is_there && let Some(value) = values.next() {
            crate::host::tell_value(value, row);
        }
    }
}

fn chunk(leaf: &Leaf, entries: &Entries, only: Only, choices: &mut Choices<'_>) -> ChunkPlan {
    let codec = if only.uncompressed { CODECS[0] } else { choices.pick(&CODECS) };
    let has_dictionary = leaf.physical != Physical::Boolean && !only.one_page && choices.once_in(3);
    let mut dictionary: Vec<Vec<u8>> = Vec::new();
    if has_dictionary {
        dictionary.clone_from(&entries.values);
        dictionary.sort();
        dictionary.dedup();
    }
    let mut pages = Vec::new();
    if has_dictionary {
        let mut page = PagePlan::other(&mut Choices::new(&[]));
        page.kind = PageKind::Dictionary;
        page.values = plain(leaf.physical, &dictionary);
        page.entries = dictionary.len();
        (page.has_crc, page.how) = (choices.once_in(2), choices.byte());
        pages.push(page);
    }
    let total = entries.definition.len();
    let (mut at, mut value) = (0, 0);
    while at < total {
        let mut end =
            if only.one_page || choices.once_in(2) { total } else { at + 1 + choices.below(total - at) };
        // Where there is a V2 page, or a page index, pages begin with rows.
        while end < total && entries.repetition[end] > 0 {
            end += 1;
        }
        let there = entries.definition[at..end].iter().filter(|&&level| level == leaf.definition_max).count();
        let part = Part {
            leaf,
            repetition: &entries.repetition[at..end],
            definition: &entries.definition[at..end],
            values: &entries.values[value..value + there],
        };
        pages.push(part.page(&dictionary, choices));
        (at, value) = (end, value + there);
    }
    if choices.once_in(16) {
        pages.push(PagePlan { kind: PageKind::Other, ..PagePlan::other(choices) });
    }
    let metadata = if choices.once_in(4) { statistics(choices) } else { Struct::default() };
    ChunkPlan { codec, pages, entries: total, metadata, indexes: Vec::new() }
}

/// Entries of a page.
struct Part<'a> {
    leaf: &'a Leaf,
    repetition: &'a [u32],
    definition: &'a [u32],
    values: &'a [Vec<u8>],
}

impl Part<'_> {
    fn page(&self, dictionary: &[Vec<u8>], choices: &mut Choices<'_>) -> PagePlan {
        let is_v2 = choices.once_in(2);
        let is_bit_packed = !is_v2 && choices.once_in(6);
        let random = &mut choices.random();
        let mut levels = |levels: &[u32], most: u32| {
            let width = 32 - most.leading_zeros();
            match width {
                0 => Vec::new(),
                _ if is_bit_packed => bit_packed(levels, width),
                _ if is_v2 => hybrid(levels, width, random),
                _ => craft::prefixed(&hybrid(levels, width, random)),
            }
        };
        let repetition = levels(self.repetition, self.leaf.repetition_max);
        let definition = levels(self.definition, self.leaf.definition_max);
        let (encoding, values) = if !dictionary.is_empty() && !choices.once_in(5) {
            let index_of = |value: &Vec<u8>| dictionary.binary_search(value).unwrap_or(0) as u32;
            let found: Vec<u32> = self.values.iter().map(index_of).collect();
            (choices.pick(&[craft::RLE_DICTIONARY, craft::PLAIN_DICTIONARY]), indices(&found, choices))
        } else {
            let encoding = choices.pick(self.leaf.physical.encodings());
            (encoding, encode(encoding, self.leaf.physical, self.values, choices))
        };
        PagePlan {
            kind: if is_v2 { PageKind::V2 } else { PageKind::V1 },
            repetition,
            definition,
            values,
            entries: self.definition.len(),
            nulls: self.definition.len() - self.values.len(),
            rows: self.repetition.iter().filter(|&&level| level == 0).count(),
            encoding,
            level_encoding: if is_bit_packed { craft::BIT_PACKED } else { craft::RLE },
            is_compressed: !(is_v2 && choices.once_in(4)),
            has_crc: choices.once_in(2),
            how: choices.byte(),
            body_edits: Vec::new(),
            header_lies: Vec::new(),
        }
    }
}

/// Statistics of any kind: nothing that is read depends on them.
fn statistics(choices: &mut Choices<'_>) -> Struct {
    let mut bounds = Struct::default();
    for id in [1, 2, 5, 6] {
        if choices.once_in(2) {
            bounds.set(id, V::Binary(choices.bytes(20).to_vec()));
        }
    }
    bounds.set(3, V::I64(choices.below(100) as i64)).set(7, V::Bool(choices.once_in(2)));
    let sizes = Struct::of([
        (1, V::I64(choices.below(1000) as i64)),
        (2, V::List(vec![V::I64(1); choices.below(4)])),
        (3, V::List(vec![V::I64(2); choices.below(4)])),
    ]);
    Struct::of([(12, V::Struct(bounds)), (16, V::Struct(sizes))])
}

/// An offset index and a column index of so many pages.
fn indexes(rows: usize, pages: usize, choices: &mut Choices<'_>) -> Vec<(i16, Struct)> {
    let mut first = 0;
    let locations: Vec<V> = (0..pages)
        .map(|_| {
            let page = Struct::of([
                (1, V::I64(4 + choices.below(2000) as i64)),
                (2, V::I32(choices.below(1000) as i32)),
                (3, V::I64(first)),
            ]);
            first += choices.below(rows + 1) as i64;
            V::Struct(page)
        })
        .collect();
    let bounds = |choices: &mut Choices<'_>| -> V {
        V::List((0..pages).map(|_| V::Binary(choices.bytes(12).to_vec())).collect())
    };
    let nulls: Vec<V> = (0..pages).map(|_| V::Bool(choices.once_in(4))).collect();
    let column = Struct::of([
        (1, V::List(nulls)),
        (2, bounds(choices)),
        (3, bounds(choices)),
        (4, V::I32(choices.below(3) as i32)),
        (5, V::List((0..pages).map(|_| V::I64(choices.below(50) as i64)).collect())),
    ]);
    let mut all = vec![(4, Struct::of([(1, V::List(locations))])), (6, column)];
    for (_, index) in &mut all {
        if choices.once_in(3) {
            lie(index, choices);
        }
    }
    all
}
