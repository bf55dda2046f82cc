//! Files made by hand: legal rarities that no writer makes, and every kind of lie.
//!
//! A [`Table`] has columns, row groups, chunks and pages; [`Table::write`] lays them out and fills in a true footer. All that
//! is Thrift is a [`Struct`], whose fields can be set to anything, of any type, or taken away, before it is written:
//!
//! ```
//! use marquetry_conformance::craft::{Chunk, Column, INT32, Page, Table, plain_i32, V};
//!
//! let mut page = Page::data(3, 0, plain_i32(&[1, 2, 3]));
//! page.header.set(3, V::I32(i32::MAX)); // a lie: compressed_page_size
//! let table = Table::new([Column::required("a", INT32)]).group(3, [Chunk::new(3, [page])]);
//! assert_eq!(&table.write()[..4], b"PAR1");
//! ```

mod values;

use std::collections::BTreeMap;

use marquetry_base::Bytes;

pub use values::*;

/// `Type` of the format.
pub const BOOLEAN: i32 = 0;
/// See [`BOOLEAN`].
pub const INT32: i32 = 1;
/// See [`BOOLEAN`].
pub const INT64: i32 = 2;
/// See [`BOOLEAN`].
pub const INT96: i32 = 3;
/// See [`BOOLEAN`].
pub const FLOAT: i32 = 4;
/// See [`BOOLEAN`].
pub const DOUBLE: i32 = 5;
/// See [`BOOLEAN`].
pub const BYTE_ARRAY: i32 = 6;
/// See [`BOOLEAN`].
pub const FIXED_LEN_BYTE_ARRAY: i32 = 7;

/// `CompressionCodec` of the format.
pub const UNCOMPRESSED: i32 = 0;
/// See [`UNCOMPRESSED`].
pub const SNAPPY: i32 = 1;
/// See [`UNCOMPRESSED`].
pub const GZIP: i32 = 2;
/// See [`UNCOMPRESSED`].
pub const LZO: i32 = 3;
/// See [`UNCOMPRESSED`].
pub const BROTLI: i32 = 4;
/// See [`UNCOMPRESSED`].
pub const LZ4: i32 = 5;
/// See [`UNCOMPRESSED`].
pub const ZSTD: i32 = 6;
/// See [`UNCOMPRESSED`].
pub const LZ4_RAW: i32 = 7;

/// `Encoding` of the format.
pub const PLAIN: i32 = 0;
/// See [`PLAIN`].
pub const PLAIN_DICTIONARY: i32 = 2;
/// See [`PLAIN`].
pub const RLE: i32 = 3;
/// See [`PLAIN`].
pub const BIT_PACKED: i32 = 4;
/// See [`PLAIN`].
pub const DELTA_BINARY_PACKED: i32 = 5;
/// See [`PLAIN`].
pub const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
/// See [`PLAIN`].
pub const DELTA_BYTE_ARRAY: i32 = 7;
/// See [`PLAIN`].
pub const RLE_DICTIONARY: i32 = 8;
/// See [`PLAIN`].
pub const BYTE_STREAM_SPLIT: i32 = 9;

/// A Thrift value.
#[derive(Debug, Clone, PartialEq)]
pub enum V {
    /// `bool`.
    Bool(bool),
    /// `i8`.
    I8(i8),
    /// `i16`.
    I16(i16),
    /// `i32`.
    I32(i32),
    /// `i64`.
    I64(i64),
    /// `double`.
    Double(f64),
    /// `binary` and `string`.
    Binary(Vec<u8>),
    /// `uuid`.
    Uuid([u8; 16]),
    /// `list`; its type is that of its first element.
    List(Vec<V>),
    /// `set`, likewise.
    Set(Vec<V>),
    /// `map`; its types are those of its first entry.
    Map(Vec<(V, V)>),
    /// A structure.
    Struct(Struct),
    /// Bytes that stand for a value of this type, as they are: for lies.
    Raw(u8, Vec<u8>),
}

/// A Thrift structure: fields by their number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Struct(pub BTreeMap<i16, V>);

impl Struct {
    /// A structure of these fields.
    pub fn of(fields: impl IntoIterator<Item = (i16, V)>) -> Struct {
        Struct(fields.into_iter().collect())
    }

    /// Sets a field.
    pub fn set(&mut self, id: i16, value: V) -> &mut Struct {
        self.0.insert(id, value);
        self
    }

    /// Takes a field away.
    pub fn remove(&mut self, id: i16) -> &mut Struct {
        self.0.remove(&id);
        self
    }

    /// A field that is a structure, made if it is none.
    pub fn child(&mut self, id: i16) -> &mut Struct {
        let field = self.0.entry(id).or_insert_with(|| V::Struct(Struct::default()));
        if !matches!(field, V::Struct(_)) {
            *field = V::Struct(Struct::default());
        }
        match field {
            V::Struct(child) => child,
            _ => unreachable!("it was just made a structure"),
        }
    }

    /// In the compact protocol.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        let mut last = 0i16;
        for (&id, value) in &self.0 {
            let delta = i32::from(id) - i32::from(last);
            match u8::try_from(delta) {
                Ok(delta @ 1..=15) => out.push(delta << 4 | value.kind(true)),
                _ => {
                    out.push(value.kind(true));
                    zigzag(out, id.into());
                }
            }
            if !matches!(value, V::Bool(_)) {
                value.write_to(out);
            }
            last = id;
        }
        out.push(0);
    }

    /// This structure, and those in it, with a field of every type that no version of the format knows.
    #[must_use]
    pub fn with_unknown_fields(&self) -> Struct {
        let mut all = Struct::default();
        for (&id, value) in &self.0 {
            all.set(id, value.with_unknown_fields());
        }
        for (number, value) in unknown_values().into_iter().enumerate() {
            all.set(1000 + 40 * i16::try_from(number).unwrap_or(0), value);
        }
        all
    }
}

/// A value of every type.
fn unknown_values() -> Vec<V> {
    let inner = Struct::of([(1, V::Bool(false)), (2, V::List(vec![V::I32(-1); 20]))]);
    vec![
        V::Bool(true),
        V::Bool(false),
        V::I8(-5),
        V::I16(-300),
        V::I32(i32::MIN),
        V::I64(i64::MIN),
        V::Double(1.5),
        V::Binary(b"unknown".to_vec()),
        V::List(vec![]),
        V::List(vec![V::Bool(true), V::Bool(false)]),
        V::List(vec![V::Struct(inner.clone()), V::Struct(Struct::default())]),
        V::Set(vec![V::Binary(b"a".to_vec())]),
        V::Map(vec![]),
        V::Map(vec![(V::Binary(b"k".to_vec()), V::List(vec![V::Double(0.0)])); 2]),
        V::Struct(inner),
    ]
}

impl V {
    /// Text.
    pub fn text(text: &str) -> V {
        V::Binary(text.as_bytes().to_vec())
    }

    fn kind(&self, in_field: bool) -> u8 {
        match self {
            V::Bool(false) if in_field => 2,
            V::Bool(_) => 1,
            V::I8(_) => 3,
            V::I16(_) => 4,
            V::I32(_) => 5,
            V::I64(_) => 6,
            V::Double(_) => 7,
            V::Binary(_) => 8,
            V::List(_) => 9,
            V::Set(_) => 10,
            V::Map(_) => 11,
            V::Struct(_) => 12,
            V::Uuid(_) => 13,
            V::Raw(kind, _) => *kind,
        }
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            V::Bool(value) => out.push(if *value { 1 } else { 2 }),
            V::I8(value) => out.extend(value.to_le_bytes()),
            V::I16(value) => zigzag(out, (*value).into()),
            V::I32(value) => zigzag(out, (*value).into()),
            V::I64(value) => zigzag(out, *value),
            V::Double(value) => out.extend(value.to_le_bytes()),
            V::Binary(bytes) => {
                varint(out, bytes.len() as u64);
                out.extend(bytes);
            }
            V::Uuid(bytes) => out.extend(bytes),
            V::List(values) | V::Set(values) => {
                let kind = values.first().map_or(5, |value| value.kind(false));
                match u8::try_from(values.len()) {
                    Ok(short @ ..15) => out.push(short << 4 | kind),
                    _ => {
                        out.push(0xf0 | kind);
                        varint(out, values.len() as u64);
                    }
                }
                values.iter().for_each(|value| value.write_to(out));
            }
            V::Map(entries) => {
                varint(out, entries.len() as u64);
                if let Some((key, value)) = entries.first() {
                    out.push(key.kind(false) << 4 | value.kind(false));
                }
                for (key, value) in entries {
                    key.write_to(out);
                    value.write_to(out);
                }
            }
            V::Struct(fields) => fields.write_to(out),
            V::Raw(_, bytes) => out.extend(bytes),
        }
    }

    fn with_unknown_fields(&self) -> V {
        match self {
            V::Struct(fields) => V::Struct(fields.with_unknown_fields()),
            V::List(values) => V::List(values.iter().map(V::with_unknown_fields).collect()),
            other => other.clone(),
        }
    }
}

/// A leaf of the schema.
#[derive(Debug, Clone)]
pub struct Column {
    /// The `SchemaElement`.
    pub element: Struct,
}

impl Column {
    /// A column without nulls.
    pub fn required(name: &str, physical_type: i32) -> Column {
        let fields = [(1, V::I32(physical_type)), (3, V::I32(0)), (4, V::text(name))];
        Column { element: Struct::of(fields) }
    }

    /// A column with nulls.
    pub fn optional(name: &str, physical_type: i32) -> Column {
        Column::required(name, physical_type).with(3, V::I32(1))
    }

    /// With another field of its element.
    #[must_use]
    pub fn with(mut self, id: i16, value: V) -> Column {
        self.element.set(id, value);
        self
    }
}

/// A page: its header, and whatever bytes follow it.
#[derive(Debug, Clone)]
pub struct Page {
    /// The `PageHeader`.
    pub header: Struct,
    /// The page's bytes in the file.
    pub body: Vec<u8>,
    /// How many of them, at the start, are levels that stay uncompressed (V2).
    levels_bytes: usize,
}

impl Page {
    fn new(page_type: i32, own: Option<(i16, Struct)>, body: Vec<u8>, levels_bytes: usize) -> Page {
        let length = V::I32(length_i32(&body));
        let mut header = Struct::of([(1, V::I32(page_type)), (2, length.clone()), (3, length)]);
        if let Some((id, own)) = own {
            header.set(id, V::Struct(own));
        }
        Page { header, body, levels_bytes }
    }

    /// A V1 data page; its body is levels with their lengths, and values.
    pub fn data(values: i32, encoding: i32, body: Vec<u8>) -> Page {
        let own = [(1, V::I32(values)), (2, V::I32(encoding)), (3, V::I32(RLE)), (4, V::I32(RLE))];
        Page::new(0, Some((5, Struct::of(own))), body, 0)
    }

    /// A V1 data page of a nested leaf: levels of so many bits, the repetition levels first, and values.
    pub fn nested(levels: &[Levels<'_>], encoding: i32, values: &[u8]) -> Page {
        let entries = levels.first().map_or(0, |levels| levels.levels.len());
        let mut body = Vec::new();
        levels.iter().for_each(|levels| body.extend(prefixed(&levels.write())));
        body.extend(values);
        Page::data(i32::try_from(entries).expect("few entries"), encoding, body)
    }

    /// The same as a V2 data page of so many rows.
    pub fn nested_v2(repetition: &Levels<'_>, definition: &Levels<'_>, rows: i32, values: &[u8]) -> Page {
        let levels = [repetition.write(), definition.write()];
        let entries = i32::try_from(definition.levels.len()).expect("few entries");
        Page::data_v2(entries, 0, PLAIN, &levels.concat(), values)
            .with_own(3, V::I32(rows))
            .with_own(5, V::I32(length_i32(&levels[1])))
            .with_own(6, V::I32(length_i32(&levels[0])))
    }

    /// A V2 data page.
    pub fn data_v2(values: i32, nulls: i32, encoding: i32, levels: &[u8], body: &[u8]) -> Page {
        let own = [
            (1, V::I32(values)),
            (2, V::I32(nulls)),
            (3, V::I32(values)),
            (4, V::I32(encoding)),
            (5, V::I32(length_i32(levels))),
            (6, V::I32(0)),
        ];
        Page::new(3, Some((8, Struct::of(own))), [levels, body].concat(), levels.len())
    }

    /// A dictionary page.
    pub fn dictionary(entries: i32, body: Vec<u8>) -> Page {
        Page::new(2, Some((7, Struct::of([(1, V::I32(entries)), (2, V::I32(PLAIN))]))), body, 0)
    }

    /// A page of another type.
    pub fn other(page_type: i32, body: Vec<u8>) -> Page {
        Page::new(page_type, None, body, 0)
    }

    /// With another field of the header.
    #[must_use]
    pub fn with(mut self, id: i16, value: V) -> Page {
        self.header.set(id, value);
        self
    }

    /// With another field of the header's own structure: `DataPageHeader`, `DataPageHeaderV2` or `DictionaryPageHeader`.
    #[must_use]
    pub fn with_own(mut self, id: i16, value: V) -> Page {
        for own in [5, 7, 8] {
            if self.header.0.contains_key(&own) {
                self.header.child(own).set(id, value.clone());
            }
        }
        self
    }

    /// With its CRC.
    #[must_use]
    pub fn with_crc(self) -> Page {
        let crc = crc32fast::hash(&self.body).cast_signed();
        self.with(4, V::I32(crc))
    }

    /// Compressed; its levels, if V2, are not.
    ///
    /// # Panics
    ///
    /// For codecs that nothing is crafted with.
    #[must_use]
    pub fn compressed(mut self, codec: i32) -> Page {
        let values = self.body.split_off(self.levels_bytes);
        self.body.extend(compress(codec, &values));
        let length = length_i32(&self.body);
        self.with(3, V::I32(length))
    }
}

/// Bytes in a codec.
///
/// # Panics
///
/// For codecs that nothing is crafted with.
pub fn compress(codec: i32, bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    match codec {
        UNCOMPRESSED => bytes.to_vec(),
        SNAPPY => snap::raw::Encoder::new().compress_vec(bytes).expect("snappy takes any bytes"),
        GZIP => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(bytes).and_then(|()| gzip.finish()).expect("a Vec takes any bytes")
        }
        ZSTD => {
            let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
            let length = zstd_safe::compress(&mut out[..], bytes, 3).expect("there is room for the bound");
            out.truncate(length);
            out
        }
        other => panic!("nothing is crafted with codec {other}"),
    }
}

/// Levels of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Levels<'a> {
    /// Bits of each.
    pub width: u32,
    /// The levels.
    pub levels: &'a [u32],
}

impl Levels<'_> {
    /// As hybrid runs; nothing where they have no bits.
    pub fn write(&self) -> Vec<u8> {
        if self.width == 0 { Vec::new() } else { packed_run(self.levels, self.width) }
    }
}

/// A group of the schema: its repetition (0 required, 1 optional, 2 repeated) and how many children follow it.
pub fn group(name: &str, repetition: i32, children: i32) -> Struct {
    Struct::of([(3, V::I32(repetition)), (4, V::text(name)), (5, V::I32(children))])
}

/// A leaf of the schema.
pub fn leaf(name: &str, repetition: i32, physical_type: i32) -> Struct {
    Column::required(name, physical_type).with(3, V::I32(repetition)).element
}

/// A group annotated as a list, in the usual shape; its element follows.
pub fn list(name: &str, repetition: i32) -> [Struct; 2] {
    let mut outer = group(name, repetition, 1);
    outer.set(6, V::I32(LIST));
    [outer, group("list", 2, 1)]
}

/// `ConvertedType` of the format.
pub const MAP: i32 = 1;
/// See [`MAP`].
pub const MAP_KEY_VALUE: i32 = 2;
/// See [`MAP`].
pub const LIST: i32 = 3;

/// A column chunk.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Its pages, in order.
    pub pages: Vec<Page>,
    /// Its codec.
    pub codec: i32,
    /// Values, nulls included.
    pub values: i64,
    /// Fields of `ColumnMetaData` that differ from what is laid out.
    pub metadata: Struct,
    /// Fields of `ColumnMetaData` that are not written.
    pub without: Vec<i16>,
    /// Indexes, by the field of `ColumnChunk` that says where they are; they are laid out behind the pages.
    pub indexes: Vec<(i16, Struct)>,
    /// Fields of `ColumnChunk` that differ.
    pub outer: Struct,
}

impl Chunk {
    /// An uncompressed chunk.
    pub fn new(values: i64, pages: impl IntoIterator<Item = Page>) -> Chunk {
        Chunk {
            pages: pages.into_iter().collect(),
            codec: UNCOMPRESSED,
            values,
            metadata: Struct::default(),
            without: Vec::new(),
            indexes: Vec::new(),
            outer: Struct::default(),
        }
    }

    /// In another file, so its metadata says.
    #[must_use]
    pub fn in_file(mut self, path: &str) -> Chunk {
        self.outer.set(1, V::text(path));
        self
    }

    /// With a page index.
    #[must_use]
    pub fn indexed(mut self, offset_index: Struct, column_index: Struct) -> Chunk {
        self.indexes = vec![(4, offset_index), (6, column_index)];
        self
    }

    /// With a codec, which the pages must have been compressed with.
    #[must_use]
    pub fn codec(mut self, codec: i32) -> Chunk {
        self.codec = codec;
        self
    }

    /// With another field of its metadata.
    #[must_use]
    pub fn with(mut self, id: i16, value: V) -> Chunk {
        self.metadata.set(id, value);
        self
    }

    /// Without a field of its metadata.
    #[must_use]
    pub fn without(mut self, id: i16) -> Chunk {
        self.without.push(id);
        self
    }
}

/// A file.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The leaves.
    pub columns: Vec<Column>,
    /// The schema's elements after the root, and how many of them are its children, where they are other than the leaves.
    pub tree: Option<(i32, Vec<Struct>)>,
    /// Rows and chunks of the row groups.
    pub groups: Vec<(i64, Vec<Chunk>)>,
    /// Fields of `FileMetaData` that differ.
    pub footer: Struct,
    /// Whether every structure has fields that no reader knows.
    pub unknown_fields: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), ..Table::default() }
    }

    /// A table of a nested schema: of `children` of the root, and all `elements` below it, depth-first. Those with a type are the
    /// leaves.
    pub fn nested(children: i32, elements: impl IntoIterator<Item = Struct>) -> Table {
        let elements: Vec<Struct> = elements.into_iter().collect();
        let leaves = elements.iter().filter(|element| element.0.contains_key(&1));
        let columns = leaves.map(|element| Column { element: element.clone() }).collect();
        Table { columns, tree: Some((children, elements)), ..Table::default() }
    }

    /// With another row group.
    #[must_use]
    pub fn group(mut self, rows: i64, chunks: impl IntoIterator<Item = Chunk>) -> Table {
        self.groups.push((rows, chunks.into_iter().collect()));
        self
    }

    /// Lays the file out.
    pub fn write(&self) -> Bytes {
        let (file, footer) = self.parts();
        end_file(file, &footer.write())
    }

    /// What stands before the footer, and the footer: [`end_file`] puts them together.
    pub fn parts(&self) -> (Vec<u8>, Struct) {
        let mut file = b"PAR1".to_vec();
        let footer = self.lay_out(&mut file);
        let footer = if self.unknown_fields { footer.with_unknown_fields() } else { footer };
        (file, footer)
    }

    /// Writes the pages; makes the footer.
    fn lay_out(&self, file: &mut Vec<u8>) -> Struct {
        let mut groups = Vec::new();
        for (rows, chunks) in &self.groups {
            let chunks: Vec<V> = chunks
                .iter()
                .zip(&self.columns)
                .map(|(chunk, column)| self.chunk(file, chunk, column))
                .collect();
            let bytes = V::I64(i64_of(file.len() - 4));
            groups.push(V::Struct(Struct::of([(1, V::List(chunks)), (2, bytes), (3, V::I64(*rows))])));
        }
        let (children, elements) = self.tree.clone().unwrap_or_else(|| {
            let children = i32::try_from(self.columns.len()).expect("few columns");
            (children, self.columns.iter().map(|column| column.element.clone()).collect())
        });
        let root = Struct::of([(4, V::text("schema")), (5, V::I32(children))]);
        let schema = std::iter::once(root).chain(elements).map(V::Struct).collect();
        let mut footer = Struct::of([
            (1, V::I32(2)),
            (2, V::List(schema)),
            (3, V::I64(self.groups.iter().map(|(rows, _)| rows).fold(0, |a, &b| a.wrapping_add(b)))),
            (4, V::List(groups)),
            (6, V::text("marquetry craft")),
        ]);
        footer.0.extend(self.footer.0.clone());
        footer
    }

    fn chunk(&self, file: &mut Vec<u8>, chunk: &Chunk, column: &Column) -> V {
        let start = file.len();
        let (mut data_at, mut dictionary_at, mut uncompressed) = (None, None, 0);
        let mut encodings = vec![V::I32(RLE)];
        for page in &chunk.pages {
            let header = if self.unknown_fields { &page.header.with_unknown_fields() } else { &page.header };
            let is_dictionary = header.0.get(&1) == Some(&V::I32(2));
            let place = if is_dictionary { &mut dictionary_at } else { &mut data_at };
            place.get_or_insert(file.len());
            for own in [5, 8] {
                if let Some(V::Struct(own_header)) = header.0.get(&own)
                    && let Some(encoding) = own_header.0.get(if own == 5 { &2 } else { &4 })
                    && !encodings.contains(encoding)
                {
                    encodings.push(encoding.clone());
                }
            }
            let written = header.write();
            uncompressed += i64_of(written.len());
            if let Some(V::I32(bytes)) = header.0.get(&2) {
                uncompressed += i64::from(*bytes);
            }
            file.extend(written);
            file.extend(&page.body);
        }
        let name = column.element.0.get(&4).cloned().unwrap_or_else(|| V::text(""));
        let mut metadata = Struct::of([
            (1, column.element.0.get(&1).cloned().unwrap_or(V::I32(0))),
            (2, V::List(encodings)),
            (3, V::List(vec![name])),
            (4, V::I32(chunk.codec)),
            (5, V::I64(chunk.values)),
            (6, V::I64(uncompressed)),
            (7, V::I64(i64_of(file.len() - start))),
            (9, V::I64(i64_of(data_at.unwrap_or(start)))),
        ]);
        if let Some(dictionary_at) = dictionary_at {
            metadata.set(11, V::I64(i64_of(dictionary_at)));
        }
        metadata.0.extend(chunk.metadata.0.clone());
        for &id in &chunk.without {
            metadata.remove(id);
        }
        let mut outer = Struct::of([(2, V::I64(0)), (3, V::Struct(metadata))]);
        for (field, index) in &chunk.indexes {
            let index = if self.unknown_fields { index.with_unknown_fields() } else { index.clone() }.write();
            outer.set(*field, V::I64(i64_of(file.len())));
            outer.set(field + 1, V::I32(length_i32(&index)));
            file.extend(index);
        }
        outer.0.extend(chunk.outer.0.clone());
        V::Struct(outer)
    }
}

/// A file of these bytes and this footer.
pub fn end_file(mut file: Vec<u8>, footer: &[u8]) -> Bytes {
    file.extend(footer);
    file.extend(u32::try_from(footer.len()).expect("a small footer").to_le_bytes());
    file.extend(b"PAR1");
    file.into()
}

/// An unsigned LEB128 number.
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// A signed number, as Thrift has it.
pub fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// A length or offset as Thrift has it.
fn i64_of(length: usize) -> i64 {
    i64::try_from(length).expect("a file below 2^63 bytes")
}

fn length_i32(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).expect("a page below 2 GiB")
}
