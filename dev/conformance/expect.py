#!/usr/bin/env python3
"""The oracle: what pyarrow reads from Parquet files, in a form that Rust can check cheaply.

    expect.py OUT.json FILE...        one JSON array, one entry a file, in the order given
    expect.py OUT.json @LIST          the same; LIST holds one path a line

For every leaf column that is not repeated the entry holds a CRC-32 (zlib's) over the canonical bytes of
all its rows, and its first rows in clear. A row's canonical bytes are

    00                              a null, at whichever level it is null
    01 LENGTH(u32, LE) VALUE        a value: exactly the bytes PLAIN would hold, without PLAIN's own length

where VALUE is one byte 0 or 1 for BOOLEAN; 4 or 8 bytes, little-endian, for INT32, FLOAT, INT64, DOUBLE; 12
bytes for INT96; the bytes themselves for BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.

The bytes are computed from pyarrow's *logical* reading (decimals, timestamps, dates, ...) and converted back
here, so the oracle shares no code with any decoder under test. Two physical forms cannot be told from the
logical reading; a column's "canon" names them, and the checker must bring its own bytes to the same form:

    decimal_minimal    BYTE_ARRAY decimals: the shortest two's complement, big-endian (zero is one byte 00)
    int96_normalised   INT96 timestamps: nanoseconds within 0..86,400e9, the rest carried into the Julian day. Both
                       words are taken as unsigned, as pyarrow takes them: with n (u64) and d (u32) of the file,
                       n % 86,400e9 and d + n / 86,400e9. (Spark may write a negative n.)

Entry: {"file", "rows", "columns": [...], "skipped": [{"path", "reason"}]} or {"file", "error"}.
Column: {"index", "path", "physical_type", "type_length", "logical_type", "max_definition_level", "nulls",
"crc32", "head": [hex or null, ...]}, plus "canon" where it applies; or {"index", "path", "error"} when
pyarrow reads the file but not that column. "index" is the leaf's place in the schema: paths need not be unique.

DuckDB's V2 files hold INT32 deltas of more than 32 bits, which pyarrow refuses. A column of a file *by DuckDB*
that pyarrow cannot read is therefore read with DuckDB itself, and says so: "oracle": "duckdb", "pyarrow_error". So are all
columns of a file whose Arrow schema has types that pyarrow does not (Polars' integers of 128 bits).
"""

import json
import multiprocessing
import os
import sys
import uuid
import zlib
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HEAD_ROWS = 20
# A value in "head" is cut to this many bytes; the CRC covers all of it.
HEAD_VALUE_BYTES_MAX = 64
# A file that pyarrow does not finish in this time counts as unreadable.
FILE_SECONDS_MAX = 60

EPOCH_JULIAN_DAY = 2_440_588
SECONDS_PER_DAY = 86_400
MILLIS_PER_DAY = 86_400_000

FIXED_BYTES = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "INT96": 12}
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class CannotExpress(Exception):
    """pyarrow read the column, but its physical bytes cannot be computed back."""


# ---------------------------------------------------------------------------------------------------------
# One file


def expect_file(path):
    """The entry of one file. Never raises: what pyarrow refuses becomes an "error"."""
    try:
        try:
            reader = open_file(path)
        except pa.ArrowException as error:
            reader = WithoutArrow(path, error)
        # Not the footer's total: repeated_no_annotation.parquet of parquet-testing has a wrong one.
        groups = reader.metadata.num_row_groups
        rows = sum(reader.metadata.row_group(group).num_rows for group in range(groups))
        columns, skipped = [], []
        for index in range(len(reader.schema)):
            leaf = reader.schema.column(index)
            if leaf.max_repetition_level > 0:
                skipped.append({"index": index, "path": leaf.path, "reason": "repeated"})
                continue
            columns.append(expect_column(path, reader, index, leaf, rows))
        if columns and all("error" in column for column in columns):
            return {"file": path, "error": columns[0]["error"]}
        return {"file": path, "rows": rows, "columns": columns, "skipped": skipped}
    except Exception as error:  # the oracle's "cannot read" is data, whatever its type
        return {"file": path, "error": one_line(error)}


def expect_column(path, reader, index, leaf, rows):
    second = {}
    try:
        try:
            array = flatten(read_leaf(reader, index))
        except (OSError, pa.ArrowException) as error:
            array = flatten(read_with_duckdb(path, reader, leaf, error))
            second = {"oracle": "duckdb", "pyarrow_error": one_line(error)}
        if len(array) != rows:
            raise CannotExpress(f"pyarrow gives {len(array)} rows, the row groups say {rows}")
        valid = validity(array)
        lengths, data, canon = physical(leaf, array, valid, lambda: flatten(read_leaf(open_file(path, int96_unit="s"), index)))
        stream, starts = canonical_bytes(valid, lengths, data)
    except Exception as error:
        return {"index": index, "path": leaf.path, "error": one_line(error)}
    column = {
        "index": index,
        "path": leaf.path,
        "physical_type": leaf.physical_type,
        "type_length": leaf.length,
        "logical_type": str(leaf.logical_type),
        "max_definition_level": leaf.max_definition_level,
        "nulls": int(rows - valid.sum()),
        "crc32": zlib.crc32(stream),
        "head": head(stream, starts),
    }
    if canon:
        column["canon"] = canon
    return column | second


def open_file(path, int96_unit=None):
    return pq.ParquetFile(
        path,
        pre_buffer=False,
        coerce_int96_timestamp_unit=int96_unit,
        page_checksum_verification=True,
    )


class WithoutArrow:
    """A file of flat columns whose Arrow schema pyarrow has no types for: DuckDB says what it holds, and reads it."""

    def __init__(self, path, error):
        import duckdb

        self.error = error
        with duckdb.connect(config={"threads": 1}) as connection:
            elements = connection.execute("SELECT name, type, type_length, repetition_type, num_children FROM parquet_schema(?)", [path])
            _, *leaves = elements.fetchall()
            if any(children for *_, children in leaves):
                raise error
            groups = connection.execute("SELECT DISTINCT row_group_id, row_group_num_rows FROM parquet_metadata(?) ORDER BY 1", [path])
            rows = [rows for _, rows in groups.fetchall()]
        columns = [
            SimpleNamespace(path=name, physical_type=kind, length=int(length or 0), logical_type="None",
                            max_definition_level=int(repetition == "OPTIONAL"), max_repetition_level=int(repetition == "REPEATED"))
            for name, kind, length, repetition, _ in leaves
        ]  # fmt: skip
        self.schema = Columns(columns)
        row_group = lambda group: SimpleNamespace(num_rows=rows[group])
        self.metadata = SimpleNamespace(num_row_groups=len(rows), row_group=row_group, created_by=None)


class Columns(list):
    def column(self, index):
        return self[index]


def read_leaf(reader, index):
    """One leaf by its index, so that names need not be unique nor free of dots."""
    if isinstance(reader, WithoutArrow):
        raise reader.error
    table = reader.reader.read_all(column_indices=[index], use_threads=False)
    return one_chunk(table.column(0))


def read_with_duckdb(path, reader, leaf, error):
    """The column as DuckDB reads it, if DuckDB wrote it or pyarrow has no such type; otherwise pyarrow's error stands."""
    is_by_duckdb = "DuckDB" in (reader.metadata.created_by or "")
    if not (is_by_duckdb or isinstance(reader, WithoutArrow)) or leaf.max_definition_level > 1:
        raise error
    import duckdb

    name, file = leaf.path.replace('"', '""'), path.replace("'", "''")
    with duckdb.connect(config={"threads": 1}) as connection:
        query = f"SELECT \"{name}\" FROM read_parquet('{file}', file_row_number = true) ORDER BY file_row_number"
        return one_chunk(connection.sql(query).to_arrow_table().column(0))


def one_chunk(column):
    # Strings beyond 2 GiB do not fit one chunk; the corpus holds none, and pyarrow would say so.
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], type=column.type)
    return pa.concat_arrays(unify(column.chunks))


def unify(chunks):
    """Chunks of a dictionary type each have their own dictionary: decode before they are joined."""
    if pa.types.is_dictionary(chunks[0].type):
        return [chunk.dictionary_decode() for chunk in chunks]
    return chunks


def flatten(array):
    """Goes down through extension types, dictionaries and one-child structs; an outer null makes a null."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_struct(array.type):
            if array.type.num_fields != 1:
                raise CannotExpress(f"a single leaf was read as {array.type}")
            array = pc.struct_field(array, [0])
        elif pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
            array = array.cast(pa.large_binary())
        else:
            return array


def validity(array):
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


# ---------------------------------------------------------------------------------------------------------
# From the logical reading to physical bytes


def physical(leaf, array, valid, read_seconds):
    """(lengths of the valid values, their bytes end to end, canon), computed from the Arrow array.

    `read_seconds` gives the same array read with INT96 as seconds; it is called for INT96 only.
    """
    kind = leaf.physical_type
    if pa.types.is_null(array.type):
        if valid.any():
            raise CannotExpress("a null array with valid rows")
        return np.zeros(0, np.int64), np.zeros(0, np.uint8), None
    dense = array.drop_null()
    if kind == "BYTE_ARRAY" and pa.types.is_decimal(dense.type):
        return (*minimal_decimals(dense), "decimal_minimal")
    if kind == "BYTE_ARRAY":
        return (*var_bytes(dense), None)
    canon = None
    if kind == "BOOLEAN":
        require(pa.types.is_boolean(dense.type), leaf, dense)
        fixed = dense.to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1)
    elif kind == "INT96":
        fixed, canon = int96_bytes(dense, read_seconds().drop_null()), "int96_normalised"
    elif kind == "FIXED_LEN_BYTE_ARRAY":
        fixed = fixed_bytes(leaf, dense)
    elif kind in ("FLOAT", "DOUBLE"):
        require(pa.types.is_floating(dense.type), leaf, dense)
        fixed = buffer_rows(dense, FIXED_BYTES[kind])
    else:
        fixed = int_bytes(leaf, dense)
    require(fixed.shape[0] == len(dense), leaf, dense)
    lengths = np.full(len(dense), fixed.shape[1], np.int64)
    return lengths, np.ascontiguousarray(fixed).reshape(-1), canon


def require(holds, leaf, array):
    if not holds:
        raise CannotExpress(f"{leaf.physical_type} was read as {array.type}")


def int_bytes(leaf, dense):
    """INT32 and INT64: integers, dates, times, timestamps, durations, decimals."""
    width = FIXED_BYTES[leaf.physical_type]
    target = np.dtype(f"<i{width}")
    kind = dense.type
    if pa.types.is_decimal(kind):
        rows = buffer_rows(dense, kind.byte_width)
        check_sign_extension(rows, width)
        return rows[:, :width]
    if pa.types.is_integer(kind):
        values = buffer_rows(dense, kind.bit_width // 8).view(kind.to_pandas_dtype()).reshape(-1)
        # Unsigned ones keep their bits: uint32 in INT32 wraps, uint8 is widened with zeros.
        return values.astype(target, casting="unsafe").view(np.uint8).reshape(-1, width)
    values = buffer_rows(dense, kind.bit_width // 8).view(f"<i{kind.bit_width // 8}").reshape(-1)
    if pa.types.is_date64(kind):
        if (values % MILLIS_PER_DAY).any():
            raise CannotExpress("a date64 that is no whole day")
        values = values // MILLIS_PER_DAY
    elif not pa.types.is_date32(kind):
        require(pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind), leaf, dense)
        values = rescale(leaf, kind.unit, values)
    narrow = values.astype(target)
    if (narrow != values).any():
        raise CannotExpress(f"{kind} does not fit {leaf.physical_type}")
    return narrow.view(np.uint8).reshape(-1, width)


def rescale(leaf, unit, values):
    """Into the file's unit, exactly; a duration has no unit in the file, there Arrow's unit is the file's."""
    logical = json.loads(leaf.logical_type.to_json())
    file_unit = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}.get(logical.get("timeUnit"), unit)
    have, want = UNITS_PER_SECOND[unit], UNITS_PER_SECOND[file_unit]
    if want >= have:
        factor = want // have
        scaled = values.astype(np.int64) * factor
        if (scaled // factor != values).any():
            raise CannotExpress(f"{unit} values do not fit {file_unit}")
        return scaled
    if (values % (have // want)).any():
        raise CannotExpress(f"{unit} values are finer than {file_unit}")
    return values // (have // want)


def fixed_bytes(leaf, dense):
    width, kind = leaf.length, dense.type
    if pa.types.is_decimal(kind):
        rows = buffer_rows(dense, kind.byte_width)
        if width <= kind.byte_width:
            check_sign_extension(rows, width)
            return rows[:, :width][:, ::-1]
        sign = np.where(rows[:, -1:] & 0x80, 0xFF, 0).astype(np.uint8)
        return np.hstack([np.repeat(sign, width - kind.byte_width, axis=1), rows[:, ::-1]])
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_float16(kind):
        require(kind.bit_width == 8 * width, leaf, dense)
        return buffer_rows(dense, width)
    if pa.types.is_string(kind) and str(leaf.logical_type) == "UUID":
        # DuckDB hands UUIDs on as text.
        dense = pa.array([uuid.UUID(text).bytes for text in dense.to_pylist()], pa.binary())
    # An Arrow schema in the footer may ask for a variable-size type instead.
    lengths, data = var_bytes(dense)
    if (lengths != width).any():
        raise CannotExpress(f"a value is not {width} bytes long")
    return data.reshape(-1, width)


def check_sign_extension(rows, width):
    """Little-endian two's complement `rows` must not lose anything when cut to `width` bytes."""
    sign = np.where(rows[:, width - 1] & 0x80, 0xFF, 0).astype(np.uint8)
    if (rows[:, width:] != sign[:, None]).any():
        raise CannotExpress(f"a decimal does not fit {width} bytes")


def minimal_decimals(dense):
    rows = buffer_rows(dense, dense.type.byte_width)
    values = [int.from_bytes(row.tobytes(), "little", signed=True) for row in rows]
    parts = [value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True) for value in values]
    return np.array([len(part) for part in parts], np.int64), np.frombuffer(b"".join(parts), np.uint8)


def int96_bytes(dense_ns, dense_s):
    """INT96 from two readings: nanoseconds wrap around in 64 bits, seconds do not; together they are exact."""
    for array, unit in ((dense_ns, "ns"), (dense_s, "s")):
        if not pa.types.is_timestamp(array.type) or array.type.unit != unit:
            raise CannotExpress(f"INT96 was read as {array.type}, not as timestamp[{unit}]")
    seconds = buffer_rows(dense_s, 8).view("<i8").reshape(-1)
    wrapped = buffer_rows(dense_ns, 8).view("<u8").reshape(-1)
    below_second = wrapped - seconds.astype(np.uint64) * np.uint64(10**9)
    if (below_second >= 10**9).any():
        raise CannotExpress("pyarrow's two readings of INT96 disagree")
    julian_day = seconds // SECONDS_PER_DAY + EPOCH_JULIAN_DAY
    if ((julian_day < 0) | (julian_day > 0xFFFF_FFFF)).any():
        raise CannotExpress("an INT96's Julian day is out of range")
    nanos = (seconds % SECONDS_PER_DAY).astype(np.uint64) * np.uint64(10**9) + below_second
    out = np.empty((len(seconds), 12), np.uint8)
    out[:, :8] = nanos.astype("<u8").view(np.uint8).reshape(-1, 8)
    out[:, 8:] = julian_day.astype("<u4").view(np.uint8).reshape(-1, 4)
    return out


def buffer_rows(dense, width):
    """The values of an array without nulls, as Arrow's buffer holds them: (rows, width) bytes."""
    if len(dense) == 0:
        return np.zeros((0, width), np.uint8)
    data = np.frombuffer(dense.buffers()[1], np.uint8)
    return data[dense.offset * width : (dense.offset + len(dense)) * width].reshape(-1, width)


def var_bytes(dense):
    kind = dense.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        dense = dense.cast(pa.large_string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        dense = dense.cast(pa.large_binary())
    elif pa.types.is_fixed_size_binary(kind):
        rows = buffer_rows(dense, kind.byte_width)
        return np.full(len(rows), kind.byte_width, np.int64), rows.reshape(-1)
    else:
        raise CannotExpress(f"BYTE_ARRAY was read as {kind}")
    if len(dense) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    _, offsets, data = dense.buffers()
    offsets = np.frombuffer(offsets, "<i8")[dense.offset : dense.offset + len(dense) + 1]
    data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return np.diff(offsets), data[offsets[0] : offsets[-1]]


# ---------------------------------------------------------------------------------------------------------
# The canonical stream


def canonical_bytes(valid, lengths, data):
    """The concatenated canonical rows, and where each row starts (with the end as last element)."""
    sizes = np.ones(len(valid), np.int64)
    sizes[valid] += 4 + lengths
    starts = np.concatenate([[0], np.cumsum(sizes)])
    stream = np.zeros(int(starts[-1]), np.uint8)
    value_starts = starts[:-1][valid]
    stream[value_starts] = 1
    for byte in range(4):
        stream[value_starts + 1 + byte] = (lengths >> (8 * byte)) & 0xFF
    # Each value's bytes move from its place in `data` to its place in the stream.
    source_starts = np.cumsum(lengths) - lengths
    shift = np.repeat(value_starts + 5 - source_starts, lengths)
    stream[np.arange(len(data), dtype=np.int64) + shift] = data
    return stream, starts


def head(stream, starts):
    rows = []
    for row in range(min(HEAD_ROWS, len(starts) - 1)):
        begin, end = int(starts[row]), int(starts[row + 1])
        is_null = end - begin == 1
        rows.append(None if is_null else stream[begin + 5 : min(end, begin + 5 + HEAD_VALUE_BYTES_MAX)].tobytes().hex())
    return rows


def one_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


# ---------------------------------------------------------------------------------------------------------
# Many files


def expect_files(paths, expect_file):
    """Entries in the order of `paths`. A file that kills or stalls the reading process is an "error" too."""
    pa.set_cpu_count(1)
    try:
        with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=multiprocessing.get_context("fork")) as pool:
            return list(pool.map(expect_file, paths, chunksize=4, timeout=FILE_SECONDS_MAX * 4))
    except (BrokenProcessPool, TimeoutError):
        return [expect_alone(path, expect_file) for path in paths]


def expect_alone(path, expect_file):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: sender.send(expect_file(path)))
    child.start()
    sender.close()
    try:
        if receiver.poll(FILE_SECONDS_MAX):
            return receiver.recv()
        return {"file": path, "error": f"pyarrow did not finish within {FILE_SECONDS_MAX} s"}
    except EOFError:
        return {"file": path, "error": "the process reading it with pyarrow died"}
    finally:
        child.kill()
        child.join()


def files_of(arguments):
    """Paths, of which @LIST stands for those in LIST."""
    paths = []
    for argument in arguments:
        if argument.startswith("@"):
            with open(argument[1:], encoding="utf-8") as lines:
                paths += [line.rstrip("\n") for line in lines if line.strip()]
        else:
            paths.append(argument)
    return paths


def write_entries(out, entries):
    with open(out + ".tmp", "w", encoding="utf-8") as file:
        json.dump(entries, file, indent=None, separators=(",", ":"))
    os.replace(out + ".tmp", out)


def main(arguments, expect_file, usage):
    if len(arguments) < 2:
        print(usage, file=sys.stderr)
        return 2
    out = arguments[0]
    entries = expect_files(files_of(arguments[1:]), expect_file)
    write_entries(out, entries)
    failed = sum("error" in entry for entry in entries)
    print(f"{len(entries)} files, {failed} that pyarrow {pa.__version__} cannot read: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], expect_file, __doc__))
