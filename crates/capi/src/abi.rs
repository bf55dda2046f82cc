//! The types that cross the border.
//!
//! Structs that may grow begin with `struct_size`, which the host sets to its `sizeof`. A library that is newer than the host takes what is
//! missing for 0, and one that is older refuses what it does not know, unless it is 0. So 0 always means the default.

use core::ffi::{c_char, c_void};

/// What a function or a step answers.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum marquetry_status {
    /// It is done as asked.
    Ok = 0,
    /// A step: a product is there; take it. (A writer: there is room; feed it, or finish.)
    Ready = 1,
    /// A step: bytes are needed. `marquetry_wants` lists them; supply them, then step again.
    Need = 2,
    /// A step: the budget is spent; step again.
    Yield = 3,
    /// A step of a writer: `marquetry_take_append` gives bytes to add to the file's end.
    Append = 4,
    /// A step: nothing more will come.
    Done = 5,
    /// Feeding: there is no room yet, nothing was taken; step.
    Full = 6,
    /// It failed; the error object says why.
    Error = 7,
}

/// Whose fault an error is.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum marquetry_error_kind {
    /// The file's: it contradicts its format or itself.
    Corrupt = 1,
    /// Nobody's: a part of the format that is not supported.
    Unsupported = 2,
    /// A limit is exceeded.
    LimitExceeded = 3,
    /// Input or output failed, as the host reported.
    Io = 4,
    /// The host's: a call against the contract, or for something impossible.
    Misuse = 5,
    /// The data's: a value does not fit the type that it is converted to.
    Conversion = 6,
    /// The library's: a bug. The handle is poisoned: free it.
    Internal = 7,
    /// The allocator refused.
    OutOfMemory = 8,
}

/// A text. It ends with a NUL, which is not in `length`; it may have others inside. Borrowed: see where it comes from.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_text {
    /// UTF-8. NULL if there is none.
    pub data: *const c_char,
    /// Bytes.
    pub length: usize,
}

/// What an error says. Texts are borrowed from the error.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_error_info {
    /// `sizeof(marquetry_error_info)`, set by the host.
    pub struct_size: usize,
    /// Whose fault it is.
    pub kind: marquetry_error_kind,
    /// What is wrong, without the place.
    pub message: marquetry_text,
    /// What is wrong, and where: for people.
    pub display: marquetry_text,
    /// The column's path; NULL if not known.
    pub column: marquetry_text,
    /// The row group; -1 if not known.
    pub row_group: i64,
    /// The page in its column chunk; -1 if not known.
    pub page: i64,
    /// The row in the file; -1 if not known.
    pub row: i64,
    /// The byte in the file; -1 if not known.
    pub offset: i64,
}

/// How much a step may do.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_budget {
    /// `sizeof(marquetry_budget)`, set by the host.
    pub struct_size: usize,
    /// Units of about a nanosecond of work, counted; 0: 150,000, about 0.15 ms. `UINT64_MAX`: no end.
    pub units: u64,
    /// Asked between slices of the work: the step ends soon if it returns another number than 0. May be NULL. It must not call the library.
    pub need_preempt: Option<extern "C" fn(context: *mut c_void) -> i32>,
    /// Passed to `need_preempt`.
    pub context: *mut c_void,
}

/// What kind of thing is wanted.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum marquetry_want_kind {
    /// The object's length, by `marquetry_supply_length`.
    Length = 1,
    /// A range without which the machine cannot go on.
    Now = 2,
    /// A range that it will want before long.
    Soon = 3,
}

/// Something that a machine wants.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_want {
    /// What kind of thing.
    pub kind: marquetry_want_kind,
    /// The object: 0, the file; of an SSTable, the number of the file in `marquetry_sstable_options`.
    pub object: u32,
    /// The first byte of the range.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

/// Bytes that the library hands over. Owned by the host, which calls `marquetry_bytes_release` once.
#[repr(C)]
#[derive(Debug)]
pub struct marquetry_bytes {
    /// The bytes.
    pub data: *const u8,
    /// Their number.
    pub length: usize,
    /// The library's; NULL once they are released.
    pub owner: *mut c_void,
}

/// Memory, from the host. The functions may be called on any thread that uses the library, and are called with sizes that are not 0 and
/// alignments that are powers of two.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_allocator {
    /// `sizeof(marquetry_allocator)`, set by the host.
    pub struct_size: usize,
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Allocates; NULL refuses.
    pub alloc: Option<extern "C" fn(context: *mut c_void, size: usize, alignment: usize) -> *mut c_void>,
    /// Allocates bytes that are zero; NULL refuses.
    pub alloc_zeroed:
        Option<extern "C" fn(context: *mut c_void, size: usize, alignment: usize) -> *mut c_void>,
    /// Changes the size of an allocation of `old_size` bytes, whose bytes stay. NULL refuses, and leaves it as it is.
    pub realloc: Option<
        extern "C" fn(
            context: *mut c_void,
            memory: *mut c_void,
            old_size: usize,
            alignment: usize,
            new_size: usize,
        ) -> *mut c_void,
    >,
    /// Frees an allocation.
    pub free: Option<extern "C" fn(context: *mut c_void, memory: *mut c_void, size: usize, alignment: usize)>,
}

/// A range of rows, counted from the file's first.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_rows {
    /// The first row.
    pub start: u64,
    /// The row after the last one.
    pub end: u64,
}

/// How a footer is read. All is borrowed during the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_footer_options {
    /// `sizeof(marquetry_footer_options)`, set by the host.
    pub struct_size: usize,
    /// Paths of the columns that the footer is read for, with dots: it is as if the file had no others. NULL: all.
    pub columns: *const *const c_char,
    /// The number of `columns`.
    pub columns_count: usize,
    /// Maximum bytes of the footer; 0: 256 MiB.
    pub footer_bytes_max: u64,
    /// Maximum bytes of memory; 0: 4 GiB.
    pub memory_bytes_max: u64,
}

/// What a reader reads. All is borrowed during the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_reader_options {
    /// `sizeof(marquetry_reader_options)`, set by the host.
    pub struct_size: usize,
    /// Paths of the columns to read, with dots: `address.city`, or `"a.b".c` if names contain dots. A group means all that is in it. Columns
    /// come in the order of the file. NULL: all.
    pub columns: *const *const c_char,
    /// The number of `columns`.
    pub columns_count: usize,
    /// The first row group to read.
    pub row_groups_start: u64,
    /// The number of row groups to read; 0: all that follow.
    pub row_groups_count: u64,
    /// Ranges of rows to read, ascending, which do not overlap; NULL: all.
    pub rows: *const marquetry_rows,
    /// The number of `rows`.
    pub rows_count: usize,
    /// Which rows to read: `price >= 2.5 AND name LIKE 'a%'`; NULL: all. Row groups and pages that cannot have such rows are not read.
    pub predicate: *const c_char,
    /// Maximum rows of a batch; 0: 8,192.
    pub batch_rows: u64,
    /// The approximate bytes of a batch; 0: 64 MiB.
    pub batch_bytes: u64,
    /// The bytes of a column chunk to ask for at a time; 0: 8 MiB.
    pub read_bytes: u64,
    /// Maximum bytes of memory; 0: 4 GiB, and less for small files.
    pub memory_bytes_max: u64,
    /// 1: dictionaries stay dictionaries, where the file has them; the type of a column then differs between batches.
    pub keep_dictionaries: i32,
    /// 1: the CRCs of pages are not checked.
    pub ignore_crc: i32,
}

/// Which SSTable is read. All is borrowed during the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_sstable_options {
    /// `sizeof(marquetry_sstable_options)`, set by the host.
    pub struct_size: usize,
    /// The names of the SSTable's files, without their folder: `nb-1-big-Data.db`, `nb-1-big-Statistics.db`, …: all that there are. The number of a
    /// file here is the `object` of what is wanted of it. Data.db and Statistics.db must be there, and of CompressionInfo.db, CRC.db,
    /// Digest.crc32 and Scylla.db all that exist; if TOC.txt is there, the machine checks that. Others are never asked for.
    pub files: *const *const c_char,
    /// The number of `files`.
    pub files_count: usize,
    /// `CREATE TABLE` of the table, with `CREATE TYPE` of its types before it, as `DESCRIBE` prints them; other tables may be there, too. SSTables
    /// lack the names of key columns, and which columns were dropped. NULL: key columns are called as Scylla.db says, or else `pk0`, …,
    /// `ck0`, …, and all columns are there.
    pub definition: *const c_char,
    /// Which table of `definition` it is: `keyspace.table` or `table`. NULL: the only one, or the only one that fits.
    pub table: *const c_char,
    /// Maximum bytes of memory; 0: 4 GiB.
    pub memory_bytes_max: u64,
}

/// What is known of a batch besides its values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_batch_info {
    /// `sizeof(marquetry_batch_info)`, set by the host.
    pub struct_size: usize,
    /// Its row group.
    pub row_group: u64,
    /// Its first row, counted from the file's first. If rows were selected, the following ones may lie apart.
    pub first_row: u64,
    /// Its rows.
    pub rows: u64,
}

/// What a file has.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_file_info {
    /// `sizeof(marquetry_file_info)`, set by the host.
    pub struct_size: usize,
    /// Rows.
    pub rows: u64,
    /// Row groups.
    pub row_groups: u64,
    /// Columns: the leaves of the schema.
    pub columns: u64,
    /// Pairs of key-value metadata.
    pub key_values: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Who wrote it. Borrowed from the metadata.
    pub created_by: marquetry_text,
}

/// A physical type of the format.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum marquetry_physical_type {
    /// BOOLEAN.
    Boolean = 0,
    /// INT32.
    Int32 = 1,
    /// INT64.
    Int64 = 2,
    /// INT96.
    Int96 = 3,
    /// FLOAT.
    Float = 4,
    /// DOUBLE.
    Double = 5,
    /// BYTE_ARRAY.
    ByteArray = 6,
    /// FIXED_LEN_BYTE_ARRAY.
    FixedLenByteArray = 7,
}

/// A column: a leaf of the schema.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_column_info {
    /// `sizeof(marquetry_column_info)`, set by the host.
    pub struct_size: usize,
    /// Its path, with dots. Borrowed from the metadata.
    pub path: marquetry_text,
    /// How its values are stored.
    pub physical_type: marquetry_physical_type,
    /// Bytes of a value of FIXED_LEN_BYTE_ARRAY, otherwise 0.
    pub type_length: u32,
    /// The definition level of a value that is present.
    pub definition_level_max: u32,
    /// The largest repetition level; 0: it is in no list.
    pub repetition_level_max: u32,
    /// The number that the schema gave its field; -1 if none.
    pub field_id: i64,
}

/// A column chunk: a column's part of a row group.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_chunk_info {
    /// `sizeof(marquetry_chunk_info)`, set by the host.
    pub struct_size: usize,
    /// Values, nulls included.
    pub values: u64,
    /// Where its first page starts in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub compressed_bytes: u64,
    /// Bytes before compression.
    pub uncompressed_bytes: u64,
    /// The codec, by the format's number: 0 none, 1 SNAPPY, 2 GZIP, 3 LZO, 4 BROTLI, 5 LZ4, 6 ZSTD, 7 LZ4_RAW.
    pub codec: i32,
    /// Nulls; -1 if not known.
    pub nulls: i64,
    /// Distinct values; -1 if not known.
    pub distinct: i64,
    /// A lower bound, PLAIN-encoded; NULL if there is none. Borrowed from the metadata.
    pub min: *const u8,
    /// Its bytes.
    pub min_length: usize,
    /// An upper bound.
    pub max: *const u8,
    /// Its bytes.
    pub max_length: usize,
}

/// What an event of a record is.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum marquetry_event_kind {
    /// A row begins.
    StartRecord = 1,
    /// A row ends.
    EndRecord = 2,
    /// A struct that is not null begins.
    StartStruct = 3,
    /// A struct ends.
    EndStruct = 4,
    /// A list that is not null begins.
    StartList = 5,
    /// A list ends.
    EndList = 6,
    /// A map that is not null begins; keys and values alternate.
    StartMap = 7,
    /// A map ends.
    EndMap = 8,
    /// The field is null.
    Null = 9,
    /// A boolean, in `integer`.
    Boolean = 10,
    /// An INT32, in `integer`.
    Int32 = 11,
    /// An INT64, in `integer`.
    Int64 = 12,
    /// A FLOAT, in `real`.
    Float = 13,
    /// A DOUBLE, in `real`.
    Double = 14,
    /// Bytes, in `data` and `length`.
    Bytes = 15,
}

/// An event of a record. What `data` points to is borrowed until the step after the events were fetched.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_event {
    /// What it is.
    pub kind: marquetry_event_kind,
    /// The field that it is about: `marquetry_records_field` describes it.
    pub field: u32,
    /// A boolean or an integer.
    pub integer: i64,
    /// A floating-point number.
    pub real: f64,
    /// Bytes.
    pub data: *const u8,
    /// Their number.
    pub length: usize,
}

/// A field that events are about.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_field_info {
    /// `sizeof(marquetry_field_info)`, set by the host.
    pub struct_size: usize,
    /// Its path in the schema. Borrowed from the machine.
    pub path: marquetry_text,
    /// Its column; -1 if it is a struct, a list or a map.
    pub column: i64,
}

/// How one column is written. 0 is what the options of all columns say.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_column_options {
    /// `sizeof(marquetry_column_options)`, set by the host.
    pub struct_size: usize,
    /// The column's path, with dots. Must not be NULL.
    pub path: *const c_char,
    /// `SNAPPY`, `ZSTD`, `GZIP`, `LZ4_RAW`, `BROTLI`, `LZ4`, `NONE`; NULL: as all.
    pub compression: *const c_char,
    /// 1: `level` is the codec's level; 0: its own default.
    pub has_level: i32,
    /// The codec's level.
    pub level: i32,
    /// 1: no dictionary.
    pub no_dictionary: i32,
    /// 1: a Bloom filter.
    pub bloom_filter: i32,
    /// 1: no bounds of its values.
    pub no_bounds: i32,
}

/// How a file is written. All is borrowed during the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_writer_options {
    /// `sizeof(marquetry_writer_options)`, set by the host.
    pub struct_size: usize,
    /// `SNAPPY`, `ZSTD`, `GZIP`, `LZ4_RAW`, `BROTLI`, `LZ4`, `NONE`; NULL: `SNAPPY`.
    pub compression: *const c_char,
    /// 1: `level` is the codec's level; 0: its own default.
    pub has_level: i32,
    /// The codec's level.
    pub level: i32,
    /// The version of data pages, 1 or 2; 0: 1.
    pub page_version: i32,
    /// Maximum rows of a row group; 0: 1,048,576.
    pub row_group_rows: u64,
    /// The approximate bytes of a row group; 0: 256 MiB.
    pub row_group_bytes: u64,
    /// Maximum rows of a page; 0: 20,000.
    pub page_rows: u64,
    /// Maximum bytes of a page; 0: 896 KiB.
    pub page_bytes: u64,
    /// How single columns are written, an array of pointers; NULL: as all.
    pub columns: *const *const marquetry_column_options,
    /// The number of `columns`.
    pub columns_count: usize,
    /// 1: no CRCs of pages.
    pub no_crc: i32,
    /// 1: no page index.
    pub no_page_index: i32,
    /// 1: what is fed is not checked against its types: for hosts that made it themselves. An array that contradicts itself is then undefined
    /// behaviour. Otherwise the steps that follow check every array, column by column.
    pub trust_arrays: i32,
    /// 1: the Arrow schema is not stored in the footer.
    pub no_arrow_schema: i32,
}

/// How a file becomes CQL text. All is borrowed during the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct marquetry_cql_options {
    /// `sizeof(marquetry_cql_options)`, set by the host.
    pub struct_size: usize,
    /// The table: `keyspace.table` or `table`. Must not be NULL.
    pub table: *const c_char,
    /// The primary key: `id`, or `(day), hour`. NULL: the number of the row is the key.
    pub key: *const c_char,
    /// The name of a column that numbers the rows; NULL: none, or `row_number` if there is no key.
    pub row_number: *const c_char,
    /// 1: only the statements that create the table and its types.
    pub only_schema: i32,
    /// 1: only `INSERT` statements.
    pub only_rows: i32,
    /// 1: nulls are written as `null`, which deletes, not left out.
    pub write_nulls: i32,
    /// 1: micro- and nanoseconds become `timestamp`, rounded down to milliseconds.
    pub timestamps_as_millis: i32,
}
