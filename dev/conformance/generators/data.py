"""Seeded values of every flat type, as Arrow arrays: edges first, then random ones, then null patterns."""

import zlib

import numpy as np
import pyarrow as pa

I64 = np.iinfo(np.int64)
MILLIS_PER_DAY = 86_400_000


def rng(name):
    """A generator of its own for every name, so that a new case does not change the others' values."""
    return np.random.default_rng(zlib.crc32(name.encode()))


# ---------------------------------------------------------------------------------------------------------
# Pools: `count` values of a type, the edges first. Each takes (generator, count) and gives an Arrow array.


def ints(arrow_type, low=None, high=None, step=1):
    """Any type whose values are plain integers of 1, 2, 4 or 8 bytes in Arrow's buffer."""

    def pool(random, count):
        bits = arrow_type.bit_width
        unsigned = pa.types.is_unsigned_integer(arrow_type)
        info = np.iinfo(f"{'u' if unsigned else 'i'}{bits // 8}")
        least = info.min if low is None else low
        most = info.max if high is None else high
        edges = {least, most, least + step, most - step, 0, 1 * step, -1 * step, 127, 128, 255, 256, 32767, 32768, -32769}
        edges = sorted(edge for edge in edges if least <= edge <= most and edge % step == 0)
        values = [edges[i % len(edges)] for i in range(min(count, 2 * len(edges)))]
        # Sizes spread evenly over the powers of two, not over the values: small ones are common in real data.
        while len(values) < count:
            top = int(random.integers(1, bits + 1))
            value = int(random.integers(0, 1 << min(top, 62))) * (1 if random.random() < 0.5 else -1)
            value -= value % step
            values.append(value if least <= value <= most else least + step * (abs(value) % ((most - least) // step + 1)))
        raw = np.array(values, info.dtype)
        return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(raw.tobytes())])

    return pool


FLOAT_EDGES = {
    16: [0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0x7FFF, 0x0001, 0x8001, 0x03FF, 0x7BFF, 0x3C00],
    32: [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC0BEEF, 0xFFFFFFFF,
         1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000],
    64: [0, 1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0xFFF8 << 48, (0x7FF << 52) + 1, (0x7FF8 << 48) + 0xDEADBEEF,
         (1 << 64) - 1, 1, (1 << 63) + 1, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0x3FF << 52],
}  # fmt: skip


def floats(arrow_type):
    """Zeros of both signs, infinities, quiet and signalling NaNs with payloads, denormals, then any bits."""

    def pool(random, count):
        bits = arrow_type.bit_width
        raw = random.integers(0, 1 << bits, count, dtype=f"u{bits // 8}", endpoint=False)
        # Half of them ordinary numbers: their exponents and mantissas compress as real ones do.
        ordinary = (np.round(random.normal(0, 1000, count), 2)).astype(f"f{bits // 8}").view(raw.dtype)
        raw[::2] = ordinary[::2]
        edges = np.array(FLOAT_EDGES[bits], raw.dtype)[:count]
        raw[: len(edges)] = edges
        return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(raw.tobytes())])

    return pool


def booleans(random, count):
    return pa.array(random.random(count) < 0.5)


def decimals(arrow_type):
    def pool(random, count):
        most, width = 10**arrow_type.precision - 1, arrow_type.byte_width
        values = [0, 1, -1, most, -most, most - 1, 127, 128, -128, -129, 255, 256, 32768, -32768]
        values = [value for value in values if abs(value) <= most][:count]
        while len(values) < count:
            digits = int(random.integers(1, arrow_type.precision + 1))
            value = int.from_bytes(random.bytes(40), "big") % 10**digits
            values.append(value if random.random() < 0.5 else -value)
        raw = b"".join(value.to_bytes(width, "little", signed=True) for value in values)
        return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(raw)])

    return pool


WORDS = ["", "a", "0", "\0", "a\0b\0", "'quoted'", 'say "x"', "line\nbreak", "tab\there", "\\", "twelve bytes",
         "thirteen byte", "exactly 16 bytes", "naïve café", "日本語テキスト", "😀", "👩‍👩‍👧‍👦 family", "e\u0301", "\u202eRTL", "\ufeffbom",
         "\uffff", "\U0010ffff", "a long string with a shared prefix 0001", "a long string with a shared prefix 0002",
         "a long string with a shared", "a long string with a shared prefix 0002 and then more", "ÿ" * 40, "z" * 300]  # fmt: skip


def texts(random, count):
    """A list of str: the edges, then keys with shared prefixes, words of every length to 40, and long ones."""
    values = WORDS[:count]
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789 _-äß€"))
    while len(values) < count:
        shape = random.random()
        if shape < 0.3:
            values.append(f"device/{int(random.integers(0, 50)):04}/sensor-{int(random.integers(0, 10**6)):06}")
        elif shape < 0.98:
            values.append("".join(random.choice(letters, int(random.integers(0, 41)))))
        else:
            values.append("".join(random.choice(letters, int(random.integers(100, 400)))))
    return values


def strings(arrow_type):
    return lambda random, count: pa.array(texts(random, count), type=arrow_type)


def binaries(arrow_type):
    def pool(random, count):
        values = [b"", b"\0", b"\xff", b"\x00" * 13, b"\xff\xfe not UTF-8 \x80", bytes(range(256))][:count]
        while len(values) < count:
            values.append(random.bytes(int(random.integers(0, 33))))
        return pa.array(values, type=arrow_type)

    return pool


def fixed_binaries(width):
    def pool(random, count):
        raw = bytearray(random.bytes(width * count))
        for row, byte in enumerate([0x00, 0xFF, 0x80][:count]):
            raw[row * width : (row + 1) * width] = bytes([byte]) * width
        return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(bytes(raw))])

    return pool


def uuids(random, count):
    return pa.ExtensionArray.from_storage(pa.uuid(), fixed_binaries(16)(random, count))


def jsons(random, count):
    values = ["null", "{}", "[1,2,3]", '{"a":"\\u00e9","b":[true,null]}'][:count]
    values += [f'{{"id":{i},"score":{random.random():.4f}}}' for i in range(count - len(values))]
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(values, pa.string()))


def nulls(_random, count):
    return pa.nulls(count)


def arrow_types():
    """Name to pool, for every flat Arrow type that Parquet can hold."""
    types = {
        "bool": booleans,
        **{str(t): ints(t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
        **{str(t): ints(t) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
        "float16": floats(pa.float16()),
        "float32": floats(pa.float32()),
        "float64": floats(pa.float64()),
        "date32": ints(pa.date32()),
        # Whole days only: the file holds days.
        "date64": ints(pa.date64(), low=-(2**31) * MILLIS_PER_DAY, high=(2**31 - 1) * MILLIS_PER_DAY, step=MILLIS_PER_DAY),
        "time32_s": ints(pa.time32("s"), 0, 86_399),
        "time32_ms": ints(pa.time32("ms"), 0, MILLIS_PER_DAY - 1),
        "time64_us": ints(pa.time64("us"), 0, MILLIS_PER_DAY * 10**3 - 1),
        "time64_ns": ints(pa.time64("ns"), 0, MILLIS_PER_DAY * 10**6 - 1),
        # The file holds milliseconds: seconds beyond these would overflow.
        "timestamp_s": ints(pa.timestamp("s"), I64.min // 1000 + 1, I64.max // 1000 - 1),
        "timestamp_ms": ints(pa.timestamp("ms")),
        "timestamp_us": ints(pa.timestamp("us")),
        "timestamp_ns": ints(pa.timestamp("ns")),
        "timestamp_ms_utc": ints(pa.timestamp("ms", "UTC")),
        "timestamp_us_utc": ints(pa.timestamp("us", "UTC")),
        "timestamp_ns_zone": ints(pa.timestamp("ns", "Europe/Tallinn")),
        **{f"duration_{unit}": ints(pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
        "decimal32_5": decimals(pa.decimal32(5, 2)),
        "decimal64_18": decimals(pa.decimal64(18, 6)),
        "decimal128_5": decimals(pa.decimal128(5, 2)),
        "decimal128_9": decimals(pa.decimal128(9, 0)),
        "decimal128_18": decimals(pa.decimal128(18, 18)),
        "decimal128_38": decimals(pa.decimal128(38, 10)),
        "decimal256_76": decimals(pa.decimal256(76, 38)),
        "string": strings(pa.string()),
        "large_string": strings(pa.large_string()),
        "string_view": strings(pa.string_view()),
        "binary": binaries(pa.binary()),
        "large_binary": binaries(pa.large_binary()),
        "binary_view": binaries(pa.binary_view()),
        "fixed_5": fixed_binaries(5),
        "fixed_16": fixed_binaries(16),
        "fixed_1": fixed_binaries(1),
        "uuid": uuids,
        "json": jsons,
        "dictionary_string": lambda random, count: pa.array(texts(random, count)).dictionary_encode(),
        "bool8": lambda random, count: pa.ExtensionArray.from_storage(pa.bool8(), pa.array(random.random(count) < 0.5).cast(pa.int8())),
        "null": nulls,
    }  # fmt: skip
    return types


# ---------------------------------------------------------------------------------------------------------
# Null patterns: a mask of `rows`, True where the row is null.


def null_mask(pattern, random, rows):
    at = np.arange(rows)
    match pattern:
        case "required" | "none":
            return np.zeros(rows, bool)
        case "some":
            return random.random(rows) < 0.15
        case "half":
            return random.random(rows) < 0.5
        case "sparse":
            return random.random(rows) < 0.005
        case "alternate":
            return at % 2 == 0
        case "first":  # long enough to make the first pages null
            return at < rows // 3
        case "last":
            return at >= rows - rows // 3
        case "runs":  # long runs of both, of changing lengths
            return np.repeat(np.arange(rows) % 2 == 0, random.integers(1, 200, rows))[:rows]
        case "all":
            return np.ones(rows, bool)
    raise ValueError(pattern)


def with_nulls(array, mask):
    """The array with nulls where the mask is set."""
    if not mask.any():
        return array
    return pick(array, pa.array(np.arange(len(array)), mask=mask))


def pick(array, indices):
    """`take`, which pyarrow does not have for views."""
    owned = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(array.type)
    return array.cast(owned).take(indices).cast(array.type) if owned else array.take(indices)


def column(name, pool, rows, pattern="none", distinct=None):
    """An array of `rows`: all pool values in order, or `distinct` of them in random order with short runs."""
    random = rng(f"{name}/{pattern}/{rows}/{distinct}")
    if distinct is None:
        array = pool(random, rows)
    else:
        values = pool(random, distinct)
        picks = np.repeat(random.integers(0, distinct, rows), random.choice([1, 1, 1, 2, 30], rows))[:rows]
        array = pick(values, pa.array(picks))
    return with_nulls(array, null_mask(pattern, random, rows))
