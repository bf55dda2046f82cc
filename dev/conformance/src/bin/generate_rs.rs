//! Writes the conformance files of parquet-rs: `generate_rs OUTDIR` fills `OUTDIR/parquet-rs`.
//!
//! Every physical type × encoding × codec × writer version, with several pages and row groups, and with nulls. The
//! directory's `manifest.json` has the fields of the Python writers' manifests and, for every column, the count of
//! nulls and the CRC-32 of the values *given to the writer*, over the canonical bytes that `expect.py` documents.
//! So these files have two oracles: pyarrow, and what went in; those of ALP, which pyarrow does not read, the second alone.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use crc32fast::Hasher;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{
    AsBytes, BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::{
    DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties, WriterVersion,
};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let out = std::env::args_os().nth(1).ok_or("usage: generate_rs OUTDIR")?;
    let directory = Path::new(&out).join("parquet-rs");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let mut manifest = Manifest::default();
    for case in cases()? {
        manifest.add(write_file(&directory, &case)?);
    }
    fs::write(directory.join("manifest.json"), manifest.finish())?;
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------
// What to write

/// How a column is asked to be encoded.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Dictionary,
    Plain(Encoding),
}

/// Where a column has nulls.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Required,
    None,
    Some,
    Runs,
    First,
    All,
}

struct Column {
    name: String,
    /// The schema's line without repetition and name: the physical type, and `(ANNOTATION)` if there is one.
    physical: &'static str,
    annotation: &'static str,
    asked: Asked,
    nulls: Nulls,
    /// How many different values there are; `None`: as many as rows.
    distinct: Option<u64>,
}

struct Case {
    name: String,
    family: &'static str,
    codec: (&'static str, Compression),
    version: WriterVersion,
    columns: Vec<Column>,
    row_groups: Vec<usize>,
    page_bytes: usize,
    dictionary_bytes: usize,
    delta: Option<DeltaBinaryPackedEncoderOptions>,
}

const ALL_TYPES: [&str; 9] = [
    "boolean",
    "int32",
    "int64",
    "int96",
    "float",
    "double",
    "binary",
    "fixed_len_byte_array(5)",
    "fixed_len_byte_array(16)",
];

/// Physical type, annotation: what the Arrow-based writers do not write, or write with another carrier.
const ANNOTATED: [(&str, &str); 22] = [
    ("binary", "(STRING)"),
    ("binary", "(ENUM)"),
    ("binary", "(JSON)"),
    ("binary", "(BSON)"),
    ("binary", "(DECIMAL(20,4))"),
    ("fixed_len_byte_array(12)", "(INTERVAL)"),
    ("fixed_len_byte_array(16)", "(UUID)"),
    ("fixed_len_byte_array(2)", "(FLOAT16)"),
    ("fixed_len_byte_array(9)", "(DECIMAL(20,4))"),
    ("int32", "(INTEGER(8,true))"),
    ("int32", "(INTEGER(16,false))"),
    ("int32", "(INTEGER(32,false))"),
    ("int32", "(DECIMAL(9,2))"),
    ("int32", "(DATE)"),
    ("int32", "(TIME(MILLIS,true))"),
    ("int64", "(INTEGER(64,false))"),
    ("int64", "(DECIMAL(18,3))"),
    ("int64", "(TIME(NANOS,false))"),
    ("int64", "(TIME(MICROS,true))"),
    ("int64", "(TIMESTAMP(MILLIS,true))"),
    ("int64", "(TIMESTAMP(MICROS,false))"),
    ("int64", "(TIMESTAMP(NANOS,true))"),
];

fn cases() -> Result<Vec<Case>> {
    let codecs = [
        ("UNCOMPRESSED", Compression::UNCOMPRESSED),
        ("SNAPPY", Compression::SNAPPY),
        ("GZIP", Compression::GZIP(GzipLevel::default())),
        ("ZSTD", Compression::ZSTD(ZstdLevel::default())),
        ("LZ4_RAW", Compression::LZ4_RAW),
    ];
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let mut cases = Vec::new();
    for codec in codecs {
        for version in versions {
            cases.push(Case::new("plain", codec, version, plain_columns()));
            cases.push(Case::new("dictionary", codec, version, dictionary_columns(Some(29))));
            // The dictionary outgrows its limit inside a chunk; what follows is PLAIN in V1, delta encodings in V2.
            let fallback = Case::new("fallback", codec, version, dictionary_columns(None));
            cases.push(Case { dictionary_bytes: 700, ..fallback });
            cases.push(Case::new("delta", codec, version, delta_columns()));
            cases.push(Case::new("split", codec, version, split_columns()));
            cases.push(Case::new("annotated", codec, version, annotated_columns()));
            cases.push(Case::new("alp", codec, version, alp_columns()));
        }
    }
    for version in versions {
        // The deprecated LZ4, which parquet-rs frames as Hadoop does.
        cases.push(Case::new("plain", ("LZ4", Compression::LZ4), version, plain_columns()));
        for (block, miniblocks) in [(128, 1), (128, 2), (256, 8), (512, 2), (1024, 4), (4096, 128)] {
            let options = DeltaBinaryPackedEncoderOptions::try_new(block, miniblocks)?;
            let case = Case::new("delta", codecs[0], version, delta_columns());
            let name = format!("{}_block_{block}_of_{miniblocks}", case.name);
            cases.push(Case { name, delta: Some(options), page_bytes: 16 * 1024, ..case });
        }
        for rows in [0, 1, 8, 9, 32, 33, 128, 129, 257] {
            let mut columns = delta_columns();
            columns.extend(split_columns());
            columns.extend(plain_columns());
            let case = Case::new("mixed", codecs[1], version, columns);
            cases.push(Case { name: format!("{}_rows_{rows}", case.name), row_groups: vec![rows], ..case });
        }
        let no_group = Case::new("plain", codecs[0], version, plain_columns());
        cases.push(Case { name: format!("{}_no_row_group", no_group.name), row_groups: vec![], ..no_group });
        let empty_groups = Case::new("plain", codecs[1], version, plain_columns());
        cases.push(Case {
            name: format!("{}_empty_row_groups", empty_groups.name),
            row_groups: vec![0, 40, 0, 3, 0],
            ..empty_groups
        });
        let large = Case::new("dictionary", codecs[3], version, dictionary_columns(Some(5000)));
        cases.push(Case {
            name: format!("{}_large", large.name),
            row_groups: vec![60_000],
            page_bytes: 64 * 1024,
            dictionary_bytes: 1 << 20,
            ..large
        });
    }
    Ok(cases)
}

impl Case {
    fn new(
        family: &'static str,
        codec: (&'static str, Compression),
        version: WriterVersion,
        columns: Vec<Column>,
    ) -> Self {
        let name = format!("{family}_{}_v{}", codec.0.to_lowercase(), version.as_num());
        let row_groups = vec![900, 600];
        Self {
            name,
            family,
            codec,
            version,
            columns,
            row_groups,
            page_bytes: 1024,
            dictionary_bytes: 1 << 20,
            delta: None,
        }
    }
}

fn with_patterns(
    physical: &'static str,
    annotation: &'static str,
    asked: Asked,
    distinct: Option<u64>,
) -> impl Iterator<Item = Column> {
    let patterns = [
        ("required", Nulls::Required),
        ("none", Nulls::None),
        ("some", Nulls::Some),
        ("runs", Nulls::Runs),
        ("first", Nulls::First),
        ("all", Nulls::All),
    ];
    let asked_name = match asked {
        Asked::Dictionary => "dictionary".to_owned(),
        Asked::Plain(encoding) => encoding.to_string().to_lowercase(),
    };
    patterns.into_iter().map(move |(pattern, nulls)| {
        let kind: String =
            format!("{physical}{annotation}").chars().filter(char::is_ascii_alphanumeric).collect();
        Column {
            name: format!("{}_{asked_name}_{pattern}", kind.to_lowercase()),
            physical,
            annotation,
            asked,
            nulls,
            distinct,
        }
    })
}

fn plain_columns() -> Vec<Column> {
    ALL_TYPES
        .into_iter()
        .flat_map(|kind| with_patterns(kind, "", Asked::Plain(Encoding::PLAIN), None))
        .collect()
}

fn dictionary_columns(distinct: Option<u64>) -> Vec<Column> {
    ALL_TYPES.into_iter().flat_map(|kind| with_patterns(kind, "", Asked::Dictionary, distinct)).collect()
}

fn delta_columns() -> Vec<Column> {
    let pairs = [
        ("boolean", Encoding::RLE),
        ("int32", Encoding::DELTA_BINARY_PACKED),
        ("int64", Encoding::DELTA_BINARY_PACKED),
        ("binary", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("binary", Encoding::DELTA_BYTE_ARRAY),
        ("fixed_len_byte_array(5)", Encoding::DELTA_BYTE_ARRAY),
        ("fixed_len_byte_array(16)", Encoding::DELTA_BYTE_ARRAY),
    ];
    let many =
        pairs.into_iter().flat_map(|(kind, encoding)| with_patterns(kind, "", Asked::Plain(encoding), None));
    // Runs of equal values too: deltas of zero, prefixes of the whole value.
    let few = pairs
        .into_iter()
        .flat_map(|(kind, encoding)| with_patterns(kind, "", Asked::Plain(encoding), Some(3)));
    many.chain(few.map(|column| Column { name: format!("{}_few", column.name), ..column })).collect()
}

fn split_columns() -> Vec<Column> {
    let kinds = ["int32", "int64", "float", "double", "fixed_len_byte_array(5)", "fixed_len_byte_array(16)"];
    let asked = Asked::Plain(Encoding::BYTE_STREAM_SPLIT);
    kinds.into_iter().flat_map(|kind| with_patterns(kind, "", asked, None)).collect()
}

/// Each annotated type in a dictionary and in all encodings that its carrier may have.
fn annotated_columns() -> Vec<Column> {
    let mut columns = Vec::new();
    for (kind, annotation) in ANNOTATED {
        let encodings: &[Encoding] = match kind {
            "binary" => &[Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY],
            "int32" | "int64" => {
                &[Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT]
            }
            _ => &[Encoding::PLAIN, Encoding::DELTA_BYTE_ARRAY, Encoding::BYTE_STREAM_SPLIT],
        };
        let plain = encodings
            .iter()
            .flat_map(|&encoding| with_patterns(kind, annotation, Asked::Plain(encoding), None));
        let all = plain.chain(with_patterns(kind, annotation, Asked::Dictionary, Some(17)));
        columns.extend(all.filter(|column| matches!(column.nulls, Nulls::Required | Nulls::Some)));
    }
    columns
}

fn alp_columns() -> Vec<Column> {
    let alp = |distinct| {
        let kinds = ["float", "double"].into_iter();
        kinds.flat_map(move |kind| with_patterns(kind, "", Asked::Plain(Encoding::ALP), distinct))
    };
    let few = alp(Some(40)).map(|column| Column { name: format!("{}_few", column.name), ..column });
    alp(None).chain(few).collect()
}

// ---------------------------------------------------------------------------------------------------------------
// Writing

fn write_file(directory: &Path, case: &Case) -> Result<String> {
    let mut message = "message schema {\n".to_owned();
    for column in &case.columns {
        let repetition = if column.nulls == Nulls::Required { "required" } else { "optional" };
        writeln!(message, "  {repetition} {} {} {};", column.physical, column.name, column.annotation)?;
    }
    message.push('}');
    let schema = Arc::new(parse_message_type(&message)?);
    let path = directory.join(format!("{}.parquet", case.name));
    let mut writer = SerializedFileWriter::new(File::create(&path)?, schema, Arc::new(properties(case)))?;
    let mut sums: Vec<Sum> = case.columns.iter().map(|_| Sum::default()).collect();
    let mut randoms: Vec<Random> = case.columns.iter().map(|column| Random::named(&column.name)).collect();
    for (group, &rows) in case.row_groups.iter().enumerate() {
        let mut row_group = writer.next_row_group()?;
        for (index, column) in case.columns.iter().enumerate() {
            write_chunk(&mut row_group, column, group, rows, &mut randoms[index], &mut sums[index])?;
        }
        row_group.close()?;
    }
    writer.close()?;
    describe(case, &sums)
}

fn properties(case: &Case) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_writer_version(case.version)
        .set_compression(case.codec.1)
        .set_data_page_size_limit(case.page_bytes)
        .set_dictionary_page_size_limit(case.dictionary_bytes)
        .set_write_batch_size(64)
        .set_statistics_enabled(EnabledStatistics::Page);
    if let Some(options) = case.delta {
        builder = builder.set_delta_binary_packed_encoder_options(options);
    }
    for column in &case.columns {
        let path = ColumnPath::new(vec![column.name.clone()]);
        builder = match column.asked {
            Asked::Dictionary => builder.set_column_dictionary_enabled(path, true),
            Asked::Plain(encoding) => {
                builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding)
            }
        };
    }
    builder.build()
}

fn write_chunk(
    row_group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column,
    group: usize,
    rows: usize,
    random: &mut Random,
    sum: &mut Sum,
) -> Result<()> {
    let writer = row_group.next_column()?.ok_or("the schema has fewer columns than the case")?;
    let valid = validity(column.nulls, group, rows, random);
    let mut draw = Draw { random, column, edge: 0 };
    match column.physical {
        "boolean" => write_values::<BoolType>(writer, &valid, sum, column, || draw.bits().is_multiple_of(3)),
        "int32" => write_values::<Int32Type>(writer, &valid, sum, column, || draw.int32()),
        "int64" => write_values::<Int64Type>(writer, &valid, sum, column, || draw.int64()),
        "int96" => write_values::<Int96Type>(writer, &valid, sum, column, || draw.int96()),
        "float" => write_values::<FloatType>(writer, &valid, sum, column, || draw.float()),
        "double" => write_values::<DoubleType>(writer, &valid, sum, column, || draw.double()),
        "binary" => {
            write_values::<ByteArrayType>(writer, &valid, sum, column, || ByteArray::from(draw.bytes()))
        }
        fixed => {
            let width: usize = fixed.trim_matches(|c: char| !c.is_ascii_digit()).parse()?;
            write_values::<FixedLenByteArrayType>(writer, &valid, sum, column, || {
                FixedLenByteArray::from(draw.fixed(width))
            })
        }
    }
}

fn write_values<T: DataType>(
    mut writer: SerializedColumnWriter<'_>,
    valid: &[bool],
    sum: &mut Sum,
    column: &Column,
    mut next: impl FnMut() -> T::T,
) -> Result<()> {
    let mut values = Vec::with_capacity(valid.len());
    for &is_valid in valid {
        if is_valid {
            let value = next();
            sum.value(value.as_bytes());
            values.push(value);
        } else {
            sum.null();
        }
    }
    let levels: Vec<i16> = valid.iter().map(|&is_valid| i16::from(is_valid)).collect();
    let levels = (column.nulls != Nulls::Required).then_some(levels.as_slice());
    writer.typed::<T>().write_batch(&values, levels, None)?;
    writer.close()?;
    Ok(())
}

fn validity(nulls: Nulls, group: usize, rows: usize, random: &mut Random) -> Vec<bool> {
    let mut run = (0, true);
    (0..rows)
        .map(|row| match nulls {
            Nulls::Required | Nulls::None => true,
            Nulls::All => false,
            Nulls::Some => !random.next().is_multiple_of(6),
            Nulls::First => group > 0 || row >= rows / 2,
            Nulls::Runs => {
                if run.0 == 0 {
                    run = (1 + random.next() % 150, !run.1);
                }
                run.0 -= 1;
                run.1
            }
        })
        .collect()
}

// ---------------------------------------------------------------------------------------------------------------
// Values

/// SplitMix64: small, seeded by a name, the same everywhere.
struct Random(u64);

impl Random {
    fn named(name: &str) -> Self {
        Self(u64::from(crc32fast::hash(name.as_bytes())) << 17)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

const INT32_EDGES: [i32; 6] = [i32::MIN, i32::MAX, 0, -1, 1, i32::MIN];
const INT64_EDGES: [i64; 6] = [i64::MIN, i64::MAX, 0, -1, 1, i64::MIN];
const FLOAT_EDGES: [u32; 10] = [
    0,
    1 << 31,
    0x7F80_0000,
    0xFF80_0000,
    0x7FC0_0000,
    0x7F80_0001,
    0xFFFF_FFFF,
    1,
    0x007F_FFFF,
    0x7F7F_FFFF,
];
const DOUBLE_EDGES: [u64; 9] = [
    0,
    1 << 63,
    0x7FF0_0000_0000_0000,
    0xFFF0_0000_0000_0000,
    0x7FF8_0000_0000_0000,
    0x7FF0_0000_0000_0001,
    u64::MAX,
    1,
    0x000F_FFFF_FFFF_FFFF,
];
const TEXTS: [&str; 8] =
    ["", "a", "\0", "twelve bytes", "thirteen byte", "😀", "日本語", "naïve 'quote' \"double\""];

/// Draws one column's values: its edges first, then random ones, kept inside what its annotation allows.
struct Draw<'a> {
    random: &'a mut Random,
    column: &'a Column,
    edge: usize,
}

impl Draw<'_> {
    /// Random bits; when the column has few distinct values, one of so many fixed patterns.
    fn bits(&mut self) -> u64 {
        let bits = self.random.next();
        match self.column.distinct {
            Some(distinct) => Random(bits % distinct).next(),
            None => bits,
        }
    }

    fn edge<T: Copy>(&mut self, edges: &[T]) -> Option<T> {
        // Edges are as many values again; columns of few values go without.
        let edge = edges.get(self.edge).copied().filter(|_| self.column.distinct.is_none());
        self.edge += 1;
        edge
    }

    fn int32(&mut self) -> i32 {
        let value = self.bits().cast_signed();
        match self.column.annotation {
            "(INTEGER(8,true))" => clamp32(value % 128),
            "(INTEGER(16,false))" => clamp32(value.rem_euclid(65_536)),
            "(DECIMAL(9,2))" => clamp32(value % 1_000_000_000),
            "(TIME(MILLIS,true))" => clamp32(value.rem_euclid(86_400_000)),
            _ => self.edge(&INT32_EDGES).unwrap_or_else(|| clamp32(value >> (32 + value.rem_euclid(32)))),
        }
    }

    fn int64(&mut self) -> i64 {
        let value = self.bits().cast_signed();
        match self.column.annotation {
            "(DECIMAL(18,3))" => value % 1_000_000_000_000_000_000,
            "(TIME(NANOS,false))" => value.rem_euclid(86_400_000_000_000),
            "(TIME(MICROS,true))" => value.rem_euclid(86_400_000_000),
            _ => self.edge(&INT64_EDGES).unwrap_or(value >> value.rem_euclid(64)),
        }
    }

    /// A day within Arrow's 64-bit nanoseconds and a time of day, as three little-endian words.
    fn int96(&mut self) -> Int96 {
        let bits = self.bits();
        let nanos = bits % 86_400_000_000_000;
        let day = u32::try_from(2_440_588 - 100_000 + (bits >> 40) % 200_000).unwrap_or(0);
        let [a, b, c, d, e, f, g, h] = nanos.to_le_bytes();
        let mut value = Int96::new();
        value.set_data(u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]), day);
        value
    }

    fn float(&mut self) -> f32 {
        let value = clamp32(self.bits().cast_signed() >> 32);
        f32::from_bits(self.edge(&FLOAT_EDGES).unwrap_or(value.cast_unsigned()))
    }

    fn double(&mut self) -> f64 {
        let bits = self.bits();
        f64::from_bits(self.edge(&DOUBLE_EDGES).unwrap_or(bits))
    }

    fn bytes(&mut self) -> Vec<u8> {
        let bits = self.bits();
        match self.column.annotation {
            "(DECIMAL(20,4))" => minimal((i128::from(bits.cast_signed()) * 7) >> (bits % 60)),
            "(JSON)" => format!("{{\"k\":{bits}}}").into_bytes(),
            "" | "(BSON)" if bits.is_multiple_of(3) => {
                (0..bits % 40).map(|at| Random(bits ^ at).next().to_le_bytes()[0]).collect()
            }
            _ => match self.edge(&TEXTS) {
                Some(text) => text.as_bytes().to_vec(),
                None if bits.is_multiple_of(400) => "long ".repeat(200).into_bytes(),
                None => format!("shared/prefix/{:04}/{}", bits % 50, bits % 100_003).into_bytes(),
            },
        }
    }

    fn fixed(&mut self, width: usize) -> Vec<u8> {
        let bits = self.bits();
        if self.column.annotation == "(DECIMAL(20,4))" {
            let value = i128::from(bits.cast_signed()) * 5;
            return value.to_be_bytes()[16 - width..].to_vec();
        }
        let tail = Random(bits).next().to_be_bytes();
        bits.to_be_bytes().into_iter().chain(tail).take(width).collect()
    }
}

/// The value, which the caller has brought into 32 bits; the nearest one were it not.
fn clamp32(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

/// The shortest two's complement of a value, big-endian.
fn minimal(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xFF } else { 0 };
    let skip = bytes.windows(2).take_while(|pair| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0).count();
    bytes[skip..].to_vec()
}

// ---------------------------------------------------------------------------------------------------------------
// The second oracle and the manifest

/// The canonical CRC of one column over all its row groups.
#[derive(Default)]
struct Sum {
    hasher: Hasher,
    nulls: usize,
}

impl Sum {
    fn null(&mut self) {
        self.hasher.update(&[0]);
        self.nulls += 1;
    }

    fn value(&mut self, bytes: &[u8]) {
        // No value here comes near 4 GiB; a longer one would make a wrong sum, which the comparison reports.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.hasher.update(&[1]);
        self.hasher.update(&length.to_le_bytes());
        self.hasher.update(bytes);
    }
}

#[derive(Default)]
struct Manifest {
    files: Vec<String>,
}

impl Manifest {
    fn add(&mut self, entry: String) {
        self.files.push(entry);
    }

    fn finish(self) -> String {
        let brotli = r#"{"feature":"BROTLI","error":"left out: its encoder is a large dependency"}"#;
        format!(
            "{{\"writer\":\"parquet-rs\",\"version\":\"60\",\"files\":[\n{}\n],\"not_written\":[{brotli}]}}\n",
            self.files.join(",\n")
        )
    }
}

/// One file's entry. Names here are plain ASCII without quotes: nothing needs escaping.
fn describe(case: &Case, sums: &[Sum]) -> Result<String> {
    let mut asked: Vec<String> = Vec::new();
    let mut columns = Vec::new();
    for (column, sum) in case.columns.iter().zip(sums) {
        let encoding = match column.asked {
            Asked::Dictionary => "DICTIONARY".to_owned(),
            Asked::Plain(encoding) => encoding.to_string(),
        };
        if !asked.contains(&encoding) {
            asked.push(encoding);
        }
        let crc = sum.hasher.clone().finalize();
        columns.push(format!(r#"{{"path":"{}","nulls":{},"crc32":{crc}}}"#, column.name, sum.nulls));
    }
    let mut entry = String::new();
    write!(
        entry,
        r#"{{"file":"{}.parquet","case":"{}","codec":"{}","page_version":"v{}","rows":{},"encodings":["{}"],"columns":[{}]}}"#,
        case.name,
        case.family,
        case.codec.0,
        case.version.as_num(),
        case.row_groups.iter().sum::<usize>(),
        asked.join("\",\""),
        columns.join(",")
    )?;
    Ok(entry)
}
