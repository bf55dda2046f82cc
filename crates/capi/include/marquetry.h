/* Marquetry: Apache Parquet for ScyllaDB and Apache Cassandra. The interface for C and C++; docs/c.md is the guide.
 *
 * Generated from crates/capi by cbindgen: MARQUETRY_UPDATE=1 cargo test -p marquetry-capi --test interface header
 * SPDX-License-Identifier: Apache-2.0
 */

#ifndef MARQUETRY_H
#define MARQUETRY_H

#include <stddef.h>
#include <stdint.h>
/* Arrow's C Data Interface and C Stream Interface, as their specifications give them. */
#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

#endif

#ifdef __cplusplus
}
#endif


/**
 * What a function or a step answers.
 */
enum marquetry_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It is done as asked.
   */
  MARQUETRY_STATUS_OK = 0,
  /**
   * A step: a product is there; take it. (A writer: there is room; feed it, or finish.)
   */
  MARQUETRY_STATUS_READY = 1,
  /**
   * A step: bytes are needed. `marquetry_wants` lists them; supply them, then step again.
   */
  MARQUETRY_STATUS_NEED = 2,
  /**
   * A step: the budget is spent; step again.
   */
  MARQUETRY_STATUS_YIELD = 3,
  /**
   * A step of a writer: `marquetry_take_append` gives bytes to add to the file's end.
   */
  MARQUETRY_STATUS_APPEND = 4,
  /**
   * A step: nothing more will come.
   */
  MARQUETRY_STATUS_DONE = 5,
  /**
   * Feeding: there is no room yet, nothing was taken; step.
   */
  MARQUETRY_STATUS_FULL = 6,
  /**
   * It failed; the error object says why.
   */
  MARQUETRY_STATUS_ERROR = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum marquetry_status marquetry_status;
#else
typedef int32_t marquetry_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whose fault an error is.
 */
enum marquetry_error_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The file's: it contradicts its format or itself.
   */
  MARQUETRY_ERROR_KIND_CORRUPT = 1,
  /**
   * Nobody's: a part of the format that is not supported.
   */
  MARQUETRY_ERROR_KIND_UNSUPPORTED = 2,
  /**
   * A limit is exceeded.
   */
  MARQUETRY_ERROR_KIND_LIMIT_EXCEEDED = 3,
  /**
   * Input or output failed, as the host reported.
   */
  MARQUETRY_ERROR_KIND_IO = 4,
  /**
   * The host's: a call against the contract, or for something impossible.
   */
  MARQUETRY_ERROR_KIND_MISUSE = 5,
  /**
   * The data's: a value does not fit the type that it is converted to.
   */
  MARQUETRY_ERROR_KIND_CONVERSION = 6,
  /**
   * The library's: a bug. The handle is poisoned: free it.
   */
  MARQUETRY_ERROR_KIND_INTERNAL = 7,
  /**
   * The allocator refused.
   */
  MARQUETRY_ERROR_KIND_OUT_OF_MEMORY = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum marquetry_error_kind marquetry_error_kind;
#else
typedef int32_t marquetry_error_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What kind of thing is wanted.
 */
enum marquetry_want_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The object's length, by `marquetry_supply_length`.
   */
  MARQUETRY_WANT_KIND_LENGTH = 1,
  /**
   * A range without which the machine cannot go on.
   */
  MARQUETRY_WANT_KIND_NOW = 2,
  /**
   * A range that it will want before long.
   */
  MARQUETRY_WANT_KIND_SOON = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum marquetry_want_kind marquetry_want_kind;
#else
typedef int32_t marquetry_want_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A physical type of the format.
 */
enum marquetry_physical_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * BOOLEAN.
   */
  MARQUETRY_PHYSICAL_TYPE_BOOLEAN = 0,
  /**
   * INT32.
   */
  MARQUETRY_PHYSICAL_TYPE_INT32 = 1,
  /**
   * INT64.
   */
  MARQUETRY_PHYSICAL_TYPE_INT64 = 2,
  /**
   * INT96.
   */
  MARQUETRY_PHYSICAL_TYPE_INT96 = 3,
  /**
   * FLOAT.
   */
  MARQUETRY_PHYSICAL_TYPE_FLOAT = 4,
  /**
   * DOUBLE.
   */
  MARQUETRY_PHYSICAL_TYPE_DOUBLE = 5,
  /**
   * BYTE_ARRAY.
   */
  MARQUETRY_PHYSICAL_TYPE_BYTE_ARRAY = 6,
  /**
   * FIXED_LEN_BYTE_ARRAY.
   */
  MARQUETRY_PHYSICAL_TYPE_FIXED_LEN_BYTE_ARRAY = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum marquetry_physical_type marquetry_physical_type;
#else
typedef int32_t marquetry_physical_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What an event of a record is.
 */
enum marquetry_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A row begins.
   */
  MARQUETRY_EVENT_KIND_START_RECORD = 1,
  /**
   * A row ends.
   */
  MARQUETRY_EVENT_KIND_END_RECORD = 2,
  /**
   * A struct that is not null begins.
   */
  MARQUETRY_EVENT_KIND_START_STRUCT = 3,
  /**
   * A struct ends.
   */
  MARQUETRY_EVENT_KIND_END_STRUCT = 4,
  /**
   * A list that is not null begins.
   */
  MARQUETRY_EVENT_KIND_START_LIST = 5,
  /**
   * A list ends.
   */
  MARQUETRY_EVENT_KIND_END_LIST = 6,
  /**
   * A map that is not null begins; keys and values alternate.
   */
  MARQUETRY_EVENT_KIND_START_MAP = 7,
  /**
   * A map ends.
   */
  MARQUETRY_EVENT_KIND_END_MAP = 8,
  /**
   * The field is null.
   */
  MARQUETRY_EVENT_KIND_NULL = 9,
  /**
   * A boolean, in `integer`.
   */
  MARQUETRY_EVENT_KIND_BOOLEAN = 10,
  /**
   * An INT32, in `integer`.
   */
  MARQUETRY_EVENT_KIND_INT32 = 11,
  /**
   * An INT64, in `integer`.
   */
  MARQUETRY_EVENT_KIND_INT64 = 12,
  /**
   * A FLOAT, in `real`.
   */
  MARQUETRY_EVENT_KIND_FLOAT = 13,
  /**
   * A DOUBLE, in `real`.
   */
  MARQUETRY_EVENT_KIND_DOUBLE = 14,
  /**
   * Bytes, in `data` and `length`.
   */
  MARQUETRY_EVENT_KIND_BYTES = 15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum marquetry_event_kind marquetry_event_kind;
#else
typedef int32_t marquetry_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * An error. Owned by the host: `marquetry_error_free`. Thread rules as of a machine.
 */
typedef struct marquetry_error marquetry_error;

/**
 * A machine: something that reads or writes in steps. Owned by the host: `marquetry_machine_free`.
 *
 * Of a machine one thread has the use at a time; between calls it may move to another.
 */
typedef struct marquetry_machine marquetry_machine;

/**
 * What the footer of a file says. Owned by the host: `marquetry_metadata_free`. Thread rules as of a machine.
 */
typedef struct marquetry_metadata marquetry_metadata;

/**
 * Memory, from the host. The functions may be called on any thread that uses the library, and are called with sizes that are not 0 and
 * alignments that are powers of two.
 */
typedef struct marquetry_allocator {
  /**
   * `sizeof(marquetry_allocator)`, set by the host.
   */
  size_t struct_size;
  /**
   * Passed to the functions.
   */
  void *context;
  /**
   * Allocates; NULL refuses.
   */
  void *(*alloc)(void *context,
                 size_t size,
                 size_t alignment);
  /**
   * Allocates bytes that are zero; NULL refuses.
   */
  void *(*alloc_zeroed)(void *context,
                        size_t size,
                        size_t alignment);
  /**
   * Changes the size of an allocation of `old_size` bytes, whose bytes stay. NULL refuses, and leaves it as it is.
   */
  void *(*realloc)(void *context,
                   void *memory,
                   size_t old_size,
                   size_t alignment,
                   size_t new_size);
  /**
   * Frees an allocation.
   */
  void (*free)(void *context,
               void *memory,
               size_t size,
               size_t alignment);
} marquetry_allocator;

/**
 * Bytes that the library hands over. Owned by the host, which calls `marquetry_bytes_release` once.
 */
typedef struct marquetry_bytes {
  /**
   * The bytes.
   */
  const uint8_t *data;
  /**
   * Their number.
   */
  size_t length;
  /**
   * The library's; NULL once they are released.
   */
  void *owner;
} marquetry_bytes;

/**
 * A range of rows, counted from the file's first.
 */
typedef struct marquetry_rows {
  /**
   * The first row.
   */
  uint64_t start;
  /**
   * The row after the last one.
   */
  uint64_t end;
} marquetry_rows;

/**
 * What a reader reads. All is borrowed during the call.
 */
typedef struct marquetry_reader_options {
  /**
   * `sizeof(marquetry_reader_options)`, set by the host.
   */
  size_t struct_size;
  /**
   * Paths of the columns to read, with dots: `address.city`, or `"a.b".c` if names contain dots. A group means all that is in it. Columns
   * come in the order of the file. NULL: all.
   */
  const char *const *columns;
  /**
   * The number of `columns`.
   */
  size_t columns_count;
  /**
   * The first row group to read.
   */
  uint64_t row_groups_start;
  /**
   * The number of row groups to read; 0: all that follow.
   */
  uint64_t row_groups_count;
  /**
   * Ranges of rows to read, ascending, which do not overlap; NULL: all.
   */
  const struct marquetry_rows *rows;
  /**
   * The number of `rows`.
   */
  size_t rows_count;
  /**
   * Which rows to read: `price >= 2.5 AND name LIKE 'a%'`; NULL: all. Row groups and pages that cannot have such rows are not read.
   */
  const char *predicate;
  /**
   * Maximum rows of a batch; 0: 8,192.
   */
  uint64_t batch_rows;
  /**
   * The approximate bytes of a batch; 0: 64 MiB.
   */
  uint64_t batch_bytes;
  /**
   * The bytes of a column chunk to ask for at a time; 0: 8 MiB.
   */
  uint64_t read_bytes;
  /**
   * Maximum bytes of memory; 0: 4 GiB, and less for small files.
   */
  uint64_t memory_bytes_max;
  /**
   * 1: dictionaries stay dictionaries, where the file has them; the type of a column then differs between batches.
   */
  int32_t keep_dictionaries;
  /**
   * 1: the CRCs of pages are not checked.
   */
  int32_t ignore_crc;
} marquetry_reader_options;

/**
 * How a file becomes CQL text. All is borrowed during the call.
 */
typedef struct marquetry_cql_options {
  /**
   * `sizeof(marquetry_cql_options)`, set by the host.
   */
  size_t struct_size;
  /**
   * The table: `keyspace.table` or `table`. Must not be NULL.
   */
  const char *table;
  /**
   * The primary key: `id`, or `(day), hour`. NULL: the number of the row is the key.
   */
  const char *key;
  /**
   * The name of a column that numbers the rows; NULL: none, or `row_number` if there is no key.
   */
  const char *row_number;
  /**
   * 1: only the statements that create the table and its types.
   */
  int32_t only_schema;
  /**
   * 1: only `INSERT` statements.
   */
  int32_t only_rows;
  /**
   * 1: nulls are written as `null`, which deletes, not left out.
   */
  int32_t write_nulls;
  /**
   * 1: micro- and nanoseconds become `timestamp`, rounded down to milliseconds.
   */
  int32_t timestamps_as_millis;
} marquetry_cql_options;

/**
 * A text. It ends with a NUL, which is not in `length`; it may have others inside. Borrowed: see where it comes from.
 */
typedef struct marquetry_text {
  /**
   * UTF-8. NULL if there is none.
   */
  const char *data;
  /**
   * Bytes.
   */
  size_t length;
} marquetry_text;

/**
 * What an error says. Texts are borrowed from the error.
 */
typedef struct marquetry_error_info {
  /**
   * `sizeof(marquetry_error_info)`, set by the host.
   */
  size_t struct_size;
  /**
   * Whose fault it is.
   */
  marquetry_error_kind kind;
  /**
   * What is wrong, without the place.
   */
  struct marquetry_text message;
  /**
   * What is wrong, and where: for people.
   */
  struct marquetry_text display;
  /**
   * The column's path; NULL if not known.
   */
  struct marquetry_text column;
  /**
   * The row group; -1 if not known.
   */
  int64_t row_group;
  /**
   * The page in its column chunk; -1 if not known.
   */
  int64_t page;
  /**
   * The row in the file; -1 if not known.
   */
  int64_t row;
  /**
   * The byte in the file; -1 if not known.
   */
  int64_t offset;
} marquetry_error_info;

/**
 * How a footer is read. All is borrowed during the call.
 */
typedef struct marquetry_footer_options {
  /**
   * `sizeof(marquetry_footer_options)`, set by the host.
   */
  size_t struct_size;
  /**
   * Paths of the columns that the footer is read for, with dots: it is as if the file had no others. NULL: all.
   */
  const char *const *columns;
  /**
   * The number of `columns`.
   */
  size_t columns_count;
  /**
   * Maximum bytes of the footer; 0: 256 MiB.
   */
  uint64_t footer_bytes_max;
  /**
   * Maximum bytes of memory; 0: 4 GiB.
   */
  uint64_t memory_bytes_max;
} marquetry_footer_options;

/**
 * How much a step may do.
 */
typedef struct marquetry_budget {
  /**
   * `sizeof(marquetry_budget)`, set by the host.
   */
  size_t struct_size;
  /**
   * Units of about a nanosecond of work, counted; 0: 150,000, about 0.15 ms. `UINT64_MAX`: no end.
   */
  uint64_t units;
  /**
   * Asked between slices of the work: the step ends soon if it returns another number than 0. May be NULL. It must not call the library.
   */
  int32_t (*need_preempt)(void *context);
  /**
   * Passed to `need_preempt`.
   */
  void *context;
} marquetry_budget;

/**
 * Something that a machine wants.
 */
typedef struct marquetry_want {
  /**
   * What kind of thing.
   */
  marquetry_want_kind kind;
  /**
   * The object: 0, the file; of an SSTable, the number of the file in `marquetry_sstable_options`.
   */
  uint32_t object;
  /**
   * The first byte of the range.
   */
  uint64_t start;
  /**
   * The byte after the last one.
   */
  uint64_t end;
} marquetry_want;

/**
 * Called once when nothing needs supplied bytes any more: on whatever thread releases them last, from any function of the library or from the
 * release function of an Arrow array. It must not use the handle that is being used.
 */
typedef void (*marquetry_release)(void *context,
                                  const uint8_t *data,
                                  size_t length);

/**
 * What a file has.
 */
typedef struct marquetry_file_info {
  /**
   * `sizeof(marquetry_file_info)`, set by the host.
   */
  size_t struct_size;
  /**
   * Rows.
   */
  uint64_t rows;
  /**
   * Row groups.
   */
  uint64_t row_groups;
  /**
   * Columns: the leaves of the schema.
   */
  uint64_t columns;
  /**
   * Pairs of key-value metadata.
   */
  uint64_t key_values;
  /**
   * Bytes of the file.
   */
  uint64_t file_bytes;
  /**
   * Who wrote it. Borrowed from the metadata.
   */
  struct marquetry_text created_by;
} marquetry_file_info;

/**
 * A column: a leaf of the schema.
 */
typedef struct marquetry_column_info {
  /**
   * `sizeof(marquetry_column_info)`, set by the host.
   */
  size_t struct_size;
  /**
   * Its path, with dots. Borrowed from the metadata.
   */
  struct marquetry_text path;
  /**
   * How its values are stored.
   */
  marquetry_physical_type physical_type;
  /**
   * Bytes of a value of FIXED_LEN_BYTE_ARRAY, otherwise 0.
   */
  uint32_t type_length;
  /**
   * The definition level of a value that is present.
   */
  uint32_t definition_level_max;
  /**
   * The largest repetition level; 0: it is in no list.
   */
  uint32_t repetition_level_max;
  /**
   * The number that the schema gave its field; -1 if none.
   */
  int64_t field_id;
} marquetry_column_info;

/**
 * A column chunk: a column's part of a row group.
 */
typedef struct marquetry_chunk_info {
  /**
   * `sizeof(marquetry_chunk_info)`, set by the host.
   */
  size_t struct_size;
  /**
   * Values, nulls included.
   */
  uint64_t values;
  /**
   * Where its first page starts in the file.
   */
  uint64_t offset;
  /**
   * Bytes in the file.
   */
  uint64_t compressed_bytes;
  /**
   * Bytes before compression.
   */
  uint64_t uncompressed_bytes;
  /**
   * The codec, by the format's number: 0 none, 1 SNAPPY, 2 GZIP, 3 LZO, 4 BROTLI, 5 LZ4, 6 ZSTD, 7 LZ4_RAW.
   */
  int32_t codec;
  /**
   * Nulls; -1 if not known.
   */
  int64_t nulls;
  /**
   * Distinct values; -1 if not known.
   */
  int64_t distinct;
  /**
   * A lower bound, PLAIN-encoded; NULL if there is none. Borrowed from the metadata.
   */
  const uint8_t *min;
  /**
   * Its bytes.
   */
  size_t min_length;
  /**
   * An upper bound.
   */
  const uint8_t *max;
  /**
   * Its bytes.
   */
  size_t max_length;
} marquetry_chunk_info;

/**
 * What is known of a batch besides its values.
 */
typedef struct marquetry_batch_info {
  /**
   * `sizeof(marquetry_batch_info)`, set by the host.
   */
  size_t struct_size;
  /**
   * Its row group.
   */
  uint64_t row_group;
  /**
   * Its first row, counted from the file's first. If rows were selected, the following ones may lie apart.
   */
  uint64_t first_row;
  /**
   * Its rows.
   */
  uint64_t rows;
} marquetry_batch_info;

/**
 * A field that events are about.
 */
typedef struct marquetry_field_info {
  /**
   * `sizeof(marquetry_field_info)`, set by the host.
   */
  size_t struct_size;
  /**
   * Its path in the schema. Borrowed from the machine.
   */
  struct marquetry_text path;
  /**
   * Its column; -1 if it is a struct, a list or a map.
   */
  int64_t column;
} marquetry_field_info;

/**
 * An event of a record. What `data` points to is borrowed until the step after the events were fetched.
 */
typedef struct marquetry_event {
  /**
   * What it is.
   */
  marquetry_event_kind kind;
  /**
   * The field that it is about: `marquetry_records_field` describes it.
   */
  uint32_t field;
  /**
   * A boolean or an integer.
   */
  int64_t integer;
  /**
   * A floating-point number.
   */
  double real;
  /**
   * Bytes.
   */
  const uint8_t *data;
  /**
   * Their number.
   */
  size_t length;
} marquetry_event;

/**
 * Which SSTable is read. All is borrowed during the call.
 */
typedef struct marquetry_sstable_options {
  /**
   * `sizeof(marquetry_sstable_options)`, set by the host.
   */
  size_t struct_size;
  /**
   * The names of the SSTable's files, without their folder: `nb-1-big-Data.db`, `nb-1-big-Statistics.db`, …: all that there are. The number of a
   * file here is the `object` of what is wanted of it. Data.db and Statistics.db must be there, and of CompressionInfo.db, CRC.db,
   * Digest.crc32 and Scylla.db all that exist; if TOC.txt is there, the machine checks that. Others are never asked for.
   */
  const char *const *files;
  /**
   * The number of `files`.
   */
  size_t files_count;
  /**
   * `CREATE TABLE` of the table, with `CREATE TYPE` of its types before it, as `DESCRIBE` prints them; other tables may be there, too. SSTables
   * lack the names of key columns, and which columns were dropped. NULL: key columns are called as Scylla.db says, or else `pk0`, …,
   * `ck0`, …, and all columns are there.
   */
  const char *definition;
  /**
   * Which table of `definition` it is: `keyspace.table` or `table`. NULL: the only one, or the only one that fits.
   */
  const char *table;
  /**
   * Maximum bytes of memory; 0: 4 GiB.
   */
  uint64_t memory_bytes_max;
} marquetry_sstable_options;

/**
 * Reads `length` bytes at `offset` of a file into `data`. 0, or another number if that failed. It may wait.
 */
typedef int32_t (*marquetry_read_at)(void *context,
                                     uint64_t offset,
                                     uint8_t *data,
                                     size_t length);

/**
 * How one column is written. 0 is what the options of all columns say.
 */
typedef struct marquetry_column_options {
  /**
   * `sizeof(marquetry_column_options)`, set by the host.
   */
  size_t struct_size;
  /**
   * The column's path, with dots. Must not be NULL.
   */
  const char *path;
  /**
   * `SNAPPY`, `ZSTD`, `GZIP`, `LZ4_RAW`, `BROTLI`, `LZ4`, `NONE`; NULL: as all.
   */
  const char *compression;
  /**
   * 1: `level` is the codec's level; 0: its own default.
   */
  int32_t has_level;
  /**
   * The codec's level.
   */
  int32_t level;
  /**
   * 1: no dictionary.
   */
  int32_t no_dictionary;
  /**
   * 1: a Bloom filter.
   */
  int32_t bloom_filter;
  /**
   * 1: no bounds of its values.
   */
  int32_t no_bounds;
} marquetry_column_options;

/**
 * How a file is written. All is borrowed during the call.
 */
typedef struct marquetry_writer_options {
  /**
   * `sizeof(marquetry_writer_options)`, set by the host.
   */
  size_t struct_size;
  /**
   * `SNAPPY`, `ZSTD`, `GZIP`, `LZ4_RAW`, `BROTLI`, `LZ4`, `NONE`; NULL: `SNAPPY`.
   */
  const char *compression;
  /**
   * 1: `level` is the codec's level; 0: its own default.
   */
  int32_t has_level;
  /**
   * The codec's level.
   */
  int32_t level;
  /**
   * The version of data pages, 1 or 2; 0: 1.
   */
  int32_t page_version;
  /**
   * Maximum rows of a row group; 0: 1,048,576.
   */
  uint64_t row_group_rows;
  /**
   * The approximate bytes of a row group; 0: 256 MiB.
   */
  uint64_t row_group_bytes;
  /**
   * Maximum rows of a page; 0: 20,000.
   */
  uint64_t page_rows;
  /**
   * Maximum bytes of a page; 0: 896 KiB.
   */
  uint64_t page_bytes;
  /**
   * How single columns are written, an array of pointers; NULL: as all.
   */
  const struct marquetry_column_options *const *columns;
  /**
   * The number of `columns`.
   */
  size_t columns_count;
  /**
   * 1: no CRCs of pages.
   */
  int32_t no_crc;
  /**
   * 1: no page index.
   */
  int32_t no_page_index;
  /**
   * 1: what is fed is not checked against its types: for hosts that made it themselves. An array that contradicts itself is then undefined
   * behaviour. Otherwise the steps that follow check every array, column by column.
   */
  int32_t trust_arrays;
  /**
   * 1: the Arrow schema is not stored in the footer.
   */
  int32_t no_arrow_schema;
} marquetry_writer_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sets the allocator of everything that the library allocates from now on. Once, before any other call: afterwards memory of another
 * allocator is in use, and it is an error.
 *
 * * `allocator`: in, copied. All four functions must be there. They must not call the library: that is a misuse, which the call answers with.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_set_allocator(const struct marquetry_allocator *allocator,
                                         struct marquetry_error **error);

/**
 * Releases bytes that the library handed over, and empties the struct, so that a second call does nothing.
 *
 * * `bytes`: in and out, owned by the host. NULL does nothing.
 */
marquetry_status marquetry_bytes_release(struct marquetry_bytes *bytes);

/**
 * Makes a machine that turns a file into CQL: `CREATE TYPE` and `CREATE TABLE`, then an `INSERT` for each row. Its products are texts:
 * `marquetry_take_text`.
 *
 * * `metadata`: in, borrowed during the call.
 * * `rows`: in, borrowed; NULL: all rows. Its `columns` must be NULL: what a footer was read for is written.
 * * `options`: in, borrowed; must not be NULL.
 * * `machine`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_cql_new(const struct marquetry_metadata *metadata,
                                   const struct marquetry_reader_options *rows,
                                   const struct marquetry_cql_options *options,
                                   struct marquetry_machine **machine,
                                   struct marquetry_error **error);

/**
 * Takes text, after a machine of CQL was `READY`: complete statements, in order.
 *
 * * `machine`: in, borrowed.
 * * `text`: out, owned by the host: `marquetry_bytes_release`. UTF-8, without a NUL at its end.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_take_text(struct marquetry_machine *machine,
                                     struct marquetry_bytes *text,
                                     struct marquetry_error **error);

/**
 * Says what an error is.
 *
 * * `error`: in, borrowed. Texts in `info` are borrowed from it, until it is freed.
 * * `info`: out; `struct_size` must be set.
 */
marquetry_status marquetry_error_get(const struct marquetry_error *error,
                                     struct marquetry_error_info *info);

/**
 * Frees an error. `error`: in, owned; NULL does nothing.
 */
marquetry_status marquetry_error_free(struct marquetry_error *error);

/**
 * Makes a machine that reads a file's footer. It wants the file's length first. Its product is the metadata: `marquetry_take_metadata`.
 *
 * * `options`: in, borrowed; NULL: the defaults.
 * * `machine`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_footer_new(const struct marquetry_footer_options *options,
                                      struct marquetry_machine **machine,
                                      struct marquetry_error **error);

/**
 * Takes the metadata, after a footer's machine was `READY`.
 *
 * * `machine`: in, borrowed.
 * * `metadata`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_take_metadata(struct marquetry_machine *machine,
                                         struct marquetry_metadata **metadata,
                                         struct marquetry_error **error);

/**
 * Works until there is an answer or the budget is spent.
 *
 * After `ERROR` the machine stays failed and answers with the same error again, unless the error is of kind `MISUSE` and about this call alone.
 * What a step made and nobody took (a batch, bytes to append, text, metadata, events that were not fetched) is answered again.
 *
 * * `machine`: in, borrowed.
 * * `budget`: in, borrowed; NULL: the default.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_step(struct marquetry_machine *machine,
                                const struct marquetry_budget *budget,
                                struct marquetry_error **error);

/**
 * What the machine wants, after `NEED`: the most urgent first. One that is `NOW` or `LENGTH` must be supplied before it can go on.
 *
 * * `machine`: in, borrowed.
 * * `wants`, `count`: out; the array is borrowed from the machine until its next step or until it is freed.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_wants(struct marquetry_machine *machine,
                                 const struct marquetry_want **wants,
                                 size_t *count,
                                 struct marquetry_error **error);

/**
 * Supplies bytes of a file: all of a range that is wanted or a piece of it, in any order. They are not copied.
 *
 * * `machine`: in, borrowed.
 * * `object`: 0, the file; of an SSTable, the number of the file in `marquetry_sstable_options`.
 * * `offset`: where the bytes start in the file.
 * * `data`, `length`: in, borrowed until `release` is called. They must not change meanwhile: arrays may point into them.
 * * `release`, `context`: called once with `context`, `data` and `length` when the library does not need the bytes any more: also if this call
 *   fails, and on whatever thread that is. NULL: the bytes stay for as long as the process, or all that was made of them.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_supply(struct marquetry_machine *machine,
                                  uint32_t object,
                                  uint64_t offset,
                                  const uint8_t *data,
                                  size_t length,
                                  marquetry_release release,
                                  void *context,
                                  struct marquetry_error **error);

/**
 * Answers a want of the kind `LENGTH` with the length of that file in bytes.
 *
 * * `machine`: in, borrowed.
 * * `object`: 0, the file; of an SSTable, the number of the file in `marquetry_sstable_options`.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_supply_length(struct marquetry_machine *machine,
                                         uint32_t object,
                                         uint64_t length,
                                         struct marquetry_error **error);

/**
 * Reports that input or output failed: bytes that cannot be read, or appended. The machine fails with this reason.
 *
 * * `machine`: in, borrowed.
 * * `reason`: in, borrowed during the call; NULL: none is given.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_fail(struct marquetry_machine *machine,
                                const char *reason,
                                struct marquetry_error **error);

/**
 * The error that the machine has failed with.
 *
 * * `machine`: in, borrowed.
 * * `error`: out, owned by the host; NULL is written if the machine has not failed.
 */
marquetry_status marquetry_machine_error(struct marquetry_machine *machine,
                                         struct marquetry_error **error);

/**
 * Takes the bytes that a writer wants to append to the file, after `APPEND`. They are the file's next, in order.
 *
 * * `machine`: in, borrowed.
 * * `bytes`: out, owned by the host: `marquetry_bytes_release`.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_take_append(struct marquetry_machine *machine,
                                       struct marquetry_bytes *bytes,
                                       struct marquetry_error **error);

/**
 * Releases what a machine holds, as much as the budget pays for: `YIELD` means that there is more, `DONE` that freeing it is cheap. For hosts
 * that must not stall; others free it at once. Afterwards it can only be released further, or freed.
 *
 * * `machine`: in, borrowed.
 * * `budget`: in, borrowed; NULL: the default.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_machine_release(struct marquetry_machine *machine,
                                           const struct marquetry_budget *budget,
                                           struct marquetry_error **error);

/**
 * Frees a machine. `machine`: in, owned; NULL does nothing. Batches, bytes and metadata that were taken stay.
 */
marquetry_status marquetry_machine_free(struct marquetry_machine *machine);

/**
 * Says what a file has.
 *
 * * `metadata`: in, borrowed. Texts in `info` are borrowed from it.
 * * `info`: out; `struct_size` must be set.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_file(const struct marquetry_metadata *metadata,
                                         struct marquetry_file_info *info,
                                         struct marquetry_error **error);

/**
 * The number of a column, by its path: the one with exactly this path, or else in lower case.
 *
 * * `metadata`: in, borrowed.
 * * `path`: in, borrowed: names with dots. It must lead to a leaf.
 * * `column`: out.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_find_column(const struct marquetry_metadata *metadata,
                                                const char *path,
                                                uint64_t *column,
                                                struct marquetry_error **error);

/**
 * Says what a column is.
 *
 * * `metadata`: in, borrowed. Texts in `info` are borrowed from it.
 * * `column`: from 0.
 * * `info`: out; `struct_size` must be set.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_column(const struct marquetry_metadata *metadata,
                                           uint64_t column,
                                           struct marquetry_column_info *info,
                                           struct marquetry_error **error);

/**
 * The rows of a row group.
 *
 * * `metadata`: in, borrowed.
 * * `row_group`: from 0.
 * * `first_row`, `rows`: out; either may be NULL.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_row_group(const struct marquetry_metadata *metadata,
                                              uint64_t row_group,
                                              uint64_t *first_row,
                                              uint64_t *rows,
                                              struct marquetry_error **error);

/**
 * Says what a column chunk is, and what its statistics say. Bounds that cannot be relied on, because the format's older writers ordered them
 * otherwise, are left out.
 *
 * * `metadata`: in, borrowed. Bounds in `info` are borrowed from it.
 * * `row_group`, `column`: from 0.
 * * `info`: out; `struct_size` must be set.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_chunk(const struct marquetry_metadata *metadata,
                                          uint64_t row_group,
                                          uint64_t column,
                                          struct marquetry_chunk_info *info,
                                          struct marquetry_error **error);

/**
 * A pair of key-value metadata.
 *
 * * `metadata`: in, borrowed.
 * * `number`: from 0.
 * * `key`: out, borrowed from the metadata.
 * * `value`, `value_length`: out, borrowed from the metadata; NULL if the key has no value. Bytes: some writers store no text.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_key_value(const struct marquetry_metadata *metadata,
                                              uint64_t number,
                                              struct marquetry_text *key,
                                              const uint8_t **value,
                                              size_t *value_length,
                                              struct marquetry_error **error);

/**
 * The file's schema as Arrow's, with the types that its writer stored, if it did.
 *
 * * `metadata`: in, borrowed.
 * * `schema`: out, owned by the host: its `release`.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_schema(const struct marquetry_metadata *metadata,
                                           struct ArrowSchema *schema,
                                           struct marquetry_error **error);

/**
 * Another handle of the same metadata, for another thread.
 *
 * * `metadata`: in, borrowed.
 * * `other`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_metadata_share(const struct marquetry_metadata *metadata,
                                          struct marquetry_metadata **other,
                                          struct marquetry_error **error);

/**
 * Frees metadata. `metadata`: in, owned; NULL does nothing. Readers that were made with it go on.
 */
marquetry_status marquetry_metadata_free(struct marquetry_metadata *metadata);

/**
 * Makes a machine that reads rows of a file. Its products are batches: `marquetry_take_batch`.
 *
 * * `metadata`: in, borrowed during the call.
 * * `options`: in, borrowed; NULL: the defaults, all rows of all columns.
 * * `machine`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_reader_new(const struct marquetry_metadata *metadata,
                                      const struct marquetry_reader_options *options,
                                      struct marquetry_machine **machine,
                                      struct marquetry_error **error);

/**
 * The schema of a reader's batches: a struct whose fields are the columns.
 *
 * * `machine`: in, borrowed.
 * * `schema`: out, owned by the host: its `release`.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_reader_schema(struct marquetry_machine *machine,
                                         struct ArrowSchema *schema,
                                         struct marquetry_error **error);

/**
 * Takes a batch, after a reader, of a file or of an SSTable, was `READY`. The array shares the memory that the batch was decoded into, or the bytes that
 * were supplied; what Arrow lays out otherwise was copied in the steps before. What this costs depends on the number of columns alone.
 *
 * * `machine`: in, borrowed.
 * * `array`: out, owned by the host: its `release`, on any thread. A struct whose fields are the columns.
 * * `schema`: out, owned by the host; may be NULL. It is `marquetry_reader_schema`'s (`marquetry_sstable_schema`'s), but for dictionaries that were kept.
 * * `info`: out; may be NULL, otherwise `struct_size` must be set.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_take_batch(struct marquetry_machine *machine,
                                      struct ArrowArray *array,
                                      struct ArrowSchema *schema,
                                      struct marquetry_batch_info *info,
                                      struct marquetry_error **error);

/**
 * Makes a machine that reads rows of a file as records. Its products are events: `marquetry_events`.
 *
 * * `metadata`: in, borrowed during the call.
 * * `options`: in, borrowed; NULL: the defaults, all rows of all columns.
 * * `machine`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_records_new(const struct marquetry_metadata *metadata,
                                       const struct marquetry_reader_options *options,
                                       struct marquetry_machine **machine,
                                       struct marquetry_error **error);

/**
 * The number of fields that events are about: `field` is below it, but for the beginning and the end of a record.
 *
 * * `machine`: in, borrowed.
 * * `count`: out.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_records_fields(struct marquetry_machine *machine,
                                          uint64_t *count,
                                          struct marquetry_error **error);

/**
 * Says what a field is.
 *
 * * `machine`: in, borrowed. Texts in `info` are borrowed from it, until it is freed.
 * * `field`: from 0. A field comes before those in it.
 * * `info`: out; `struct_size` must be set.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_records_field(struct marquetry_machine *machine,
                                         uint64_t field,
                                         struct marquetry_field_info *info,
                                         struct marquetry_error **error);

/**
 * The events that a step has made, after `READY`. They need not end where a record does. Until they are fetched, steps answer `READY` again; the step
 * after that goes on.
 *
 * * `machine`: in, borrowed.
 * * `events`, `count`: out; the array, and what it points to, is borrowed until the machine's next step or release, or until it is freed.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_events(struct marquetry_machine *machine,
                                  const struct marquetry_event **events,
                                  size_t *count,
                                  struct marquetry_error **error);

/**
 * Makes a machine that reads one SSTable, of Cassandra or ScyllaDB, from start to end. Its products are batches: `marquetry_take_batch`, of which
 * `row_group` is always 0. Rows are those of the mapping `full`: rows of the table and deletions, with all write times, TTLs and tombstones
 * (docs/full-mapping.md).
 *
 * What it wants are lengths and ranges of the files that `options` names: `object` is the number of the file there.
 *
 * * `options`: in, borrowed during the call; must not be NULL.
 * * `machine`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_sstable_new(const struct marquetry_sstable_options *options,
                                       struct marquetry_machine **machine,
                                       struct marquetry_error **error);

/**
 * The schema of an SSTable's batches: a struct whose fields are the columns. It is known when the first batch is `READY`, or at `DONE`; before, this
 * is an error of kind `MISUSE`. Its metadata have the mapping (`marquetry.mapping`, …), which files of these batches keep.
 *
 * * `machine`: in, borrowed.
 * * `schema`: out, owned by the host: its `release`.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_sstable_schema(struct marquetry_machine *machine,
                                          struct ArrowSchema *schema,
                                          struct marquetry_error **error);

/**
 * Opens a file as Arrow's stream, which reads what it needs by `read_at`: when it is opened, the footer, and the rest in `get_next`. For hosts that may
 * wait. An error of the stream is the same in all later calls.
 *
 * * `read_at`, `context`: called by this function and by the stream's, until it is released. It must not call that stream: such a call fails with
 *   `EINVAL`. If it releases the stream, that is freed at the end of the call that is at work.
 * * `file_bytes`: the file's length.
 * * `options`: in, borrowed; NULL: the defaults, all rows of all columns. `keep_dictionaries` is refused, because a stream has one schema.
 * * `stream`: out, owned by the host: its `release`. One thread at a time.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_stream_new(marquetry_read_at read_at,
                                      void *context,
                                      uint64_t file_bytes,
                                      const struct marquetry_reader_options *options,
                                      struct ArrowArrayStream *stream,
                                      struct marquetry_error **error);

/**
 * The library's version: `0.1.0`. It ends with a NUL and is never freed.
 */
const char *marquetry_version(void);

/**
 * Makes a machine that writes a file. `READY` means that it has room for rows: `marquetry_feed`, or `marquetry_finish`; `APPEND`, that
 * `marquetry_take_append` has bytes for the file.
 *
 * * `schema`: in, borrowed during the call: a struct whose fields are the columns.
 * * `options`: in, borrowed; NULL: the defaults.
 * * `machine`: out, owned by the host.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_writer_new(const struct ArrowSchema *schema,
                                      const struct marquetry_writer_options *options,
                                      struct marquetry_machine **machine,
                                      struct marquetry_error **error);

/**
 * Hands rows over. `FULL` means that there is no room yet: then nothing was taken; step, and feed again. The array's shape is checked at once: its
 * numbers, and the pointers that must be there. Its values are checked, unless `trust_arrays` is set, and converted by the steps that follow, whose error
 * then says what is wrong.
 *
 * * `machine`: in, borrowed.
 * * `array`: in; taken (its `release` is then NULL) unless the answer is `FULL` or the call is a misuse of the machine. A struct of the
 *   writer's schema. It is released when it is not needed any more, on a thread that uses the machine.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_feed(struct marquetry_machine *machine,
                                struct ArrowArray *array,
                                struct marquetry_error **error);

/**
 * Ends the rows: after `APPEND`s a step then answers `DONE`, and the file is complete.
 *
 * * `machine`: in, borrowed.
 * * `error`: out, owned by the host; may be NULL.
 */
marquetry_status marquetry_finish(struct marquetry_machine *machine,
                                  struct marquetry_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MARQUETRY_H */
