"""Arrow's types as Spark's, and back: exactly, or an error that says which column."""

from typing import Iterator, List, Tuple

import pyarrow  # type: ignore[import-untyped]
from pyarrow import types as kinds
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from ._errors import ConversionError, Unsupported

#: The most digits of Spark's decimals.
DIGITS_MAX = 38

#: Arrow's types that are one of Spark's as they are, or that one of Spark's has all values of.
_SAME = [
    (kinds.is_boolean, spark.BooleanType()),
    (kinds.is_int8, spark.ByteType()),
    (kinds.is_int16, spark.ShortType()),
    (kinds.is_int32, spark.IntegerType()),
    (kinds.is_int64, spark.LongType()),
    (kinds.is_uint8, spark.ShortType()),
    (kinds.is_uint16, spark.IntegerType()),
    (kinds.is_uint32, spark.LongType()),
    (kinds.is_float16, spark.FloatType()),
    (kinds.is_float32, spark.FloatType()),
    (kinds.is_float64, spark.DoubleType()),
    (kinds.is_string, spark.StringType()),
    (kinds.is_large_string, spark.StringType()),
    (kinds.is_string_view, spark.StringType()),
    (kinds.is_binary, spark.BinaryType()),
    (kinds.is_large_binary, spark.BinaryType()),
    (kinds.is_binary_view, spark.BinaryType()),
    (kinds.is_fixed_size_binary, spark.BinaryType()),
    (kinds.is_date, spark.DateType()),
    (kinds.is_null, spark.NullType()),
]

_LISTS = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view, kinds.is_large_list_view)


def spark_schema(schema: pyarrow.Schema, name: str) -> spark.StructType:
    """Spark's schema for that of a table with this name. All columns that Spark cannot hold are named."""
    faults: List[str] = []
    fields = _fields([schema.field(at) for at in range(len(schema.names))], "", faults)
    if faults:
        said = f"{name}: Spark has no type for " + "; ".join(faults)
        how = "leave them out by the option columns, or give them other types by the option types"
        raise Unsupported(f"{said}: {how}", message=said, address=name)
    return spark.StructType(fields)


def _fields(fields: List[pyarrow.Field], above: str, faults: List[str]) -> List[spark.StructField]:
    there = []
    for field in fields:
        path = f"{above}{field.name}"
        there.append(spark.StructField(field.name, _spark_type(field.type, path, faults), field.nullable))
    return there


def _spark_type(kind: pyarrow.DataType, path: str, faults: List[str]) -> spark.DataType:
    if isinstance(kind, pyarrow.BaseExtensionType):
        return _spark_type(kind.storage_type, path, faults)
    if kinds.is_dictionary(kind):
        return _spark_type(kind.value_type, path, faults)
    for is_it, same in _SAME:
        if is_it(kind):
            return same
    if any(is_it(kind) for is_it in _LISTS):
        element = kind.value_field
        return spark.ArrayType(_spark_type(element.type, f"{path}.element", faults), element.nullable)
    if kinds.is_map(kind):
        key = _spark_type(kind.key_type, f"{path}.key", faults)
        value = _spark_type(kind.item_type, f"{path}.value", faults)
        return spark.MapType(key, value, kind.item_field.nullable)
    if kinds.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return spark.StructType(_fields(fields, f"{path}.", faults))
    if kinds.is_decimal(kind) and kind.precision <= DIGITS_MAX and 0 <= kind.scale <= kind.precision:
        return spark.DecimalType(kind.precision, kind.scale)
    if getattr(kind, "unit", "ns") != "ns":
        if kinds.is_timestamp(kind):
            return spark.TimestampNTZType() if kind.tz is None else spark.TimestampType()
        if kinds.is_time(kind):
            return spark.TimeType(6)
        if kinds.is_duration(kind):
            return spark.DayTimeIntervalType()
    faults.append(f"{path}, which is {kind}")
    return spark.NullType()


def chosen(given: spark.StructType, table: spark.StructType, name: str, is_union: bool = False) -> List[str]:
    """The columns of a schema that somebody has given, which must be the table's: with its types, though they may be said to have nulls where they have none.
    In a union, groups may have fields that the table's lack, which are null."""
    for field in given.fields:
        if field.name not in table.names:
            said = f"{name} has no column {field.name}; it has {', '.join(table.names)}"
            raise ConversionError(said, message=said, address=name)
        own = table[field.name]
        if not _holds(field.dataType, own.dataType, is_union) or (own.nullable and not field.nullable):
            said = f"{name}: the column {field.name} is {_shown(own)}, and not {_shown(field)}"
            raise ConversionError(said, message=said, address=name)
    return given.fieldNames()


def paths(schema: pyarrow.Schema) -> Iterator[str]:
    """The names of all columns, and of all fields within them."""
    return _paths([schema.field(at) for at in range(len(schema.names))], "")


def _paths(fields: List[pyarrow.Field], above: str) -> Iterator[str]:
    for field in fields:
        path = f"{above}{field.name}"
        yield path
        yield from _within(field.type, path)


def _within(kind: pyarrow.DataType, path: str) -> Iterator[str]:
    if isinstance(kind, pyarrow.BaseExtensionType):
        yield from _within(kind.storage_type, path)
    elif any(is_it(kind) for is_it in _LISTS):
        yield from _within(kind.value_type, f"{path}.element")
    elif kinds.is_map(kind):
        yield from _within(kind.key_type, f"{path}.key")
        yield from _within(kind.item_type, f"{path}.value")
    elif kinds.is_struct(kind):
        yield from _paths([kind.field(at) for at in range(kind.num_fields)], f"{path}.")


def _shown(field: spark.StructField) -> str:
    return field.dataType.simpleString() + ("" if field.nullable else " not null")


def _holds(given: spark.DataType, own: spark.DataType, is_union: bool) -> bool:
    """Whether one type is the other, with nulls where the other has none at most."""
    if isinstance(given, spark.ArrayType) and isinstance(own, spark.ArrayType):
        return given.containsNull >= own.containsNull and _holds(given.elementType, own.elementType, is_union)
    if isinstance(given, spark.MapType) and isinstance(own, spark.MapType):
        values = given.valueContainsNull >= own.valueContainsNull and _holds(given.valueType, own.valueType, is_union)
        return values and _holds(given.keyType, own.keyType, is_union)
    if isinstance(given, spark.StructType) and isinstance(own, spark.StructType):
        if is_union:
            return all(_takes(field, own) for field in given.fields)
        fields = zip(given.fields, own.fields)
        return given.names == own.names and all(
            a.nullable >= b.nullable and _holds(a.dataType, b.dataType, False) for a, b in fields
        )
    return given == own


def _takes(field: spark.StructField, group: spark.StructType) -> bool:
    """Whether a field has the values of a group's, or nulls if the group has none of its name."""
    if field.name not in group.names:
        return field.nullable
    own = group[field.name]
    return field.nullable >= own.nullable and _holds(field.dataType, own.dataType, True)


def arrow_schema(schema: spark.StructType) -> pyarrow.Schema:
    """What Spark takes for a schema of its own."""
    return to_arrow_schema(schema, timezone="UTC")


def cast(batch: pyarrow.RecordBatch, schema: pyarrow.Schema, name: str) -> pyarrow.RecordBatch:
    """The columns of a batch, in the order and with the types of a schema. A value that does not fit is an error."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if isinstance(column, pyarrow.ExtensionArray):
            column = column.storage
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except pyarrow.ArrowException as error:
                said = f"{name}: the column {field.name} does not become {field.type}: {error}"
                raise ConversionError(said, message=said, address=name) from error
        if not field.nullable and column.null_count:
            said = f"{name}: the column {field.name} has nulls, and is said to have none"
            raise ConversionError(said, message=said, address=name)
        columns.append(column)
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def stored_schema(schema: spark.StructType, name: str) -> pyarrow.Schema:
    """What columns of Spark's are written as. Types that files have no like for are errors."""
    faults: List[str] = []
    for field in schema.fields:
        faults.extend(_not_stored(field.dataType, field.name))
    if faults:
        said = f"{name}: " + "; ".join(faults)
        raise Unsupported(said, message=said, address=name)
    fields = [_stored(field) for field in arrow_schema(schema)]
    return pyarrow.schema(fields)


def _not_stored(kind: spark.DataType, path: str) -> Iterator[str]:
    if isinstance(kind, spark.ArrayType):
        yield from _not_stored(kind.elementType, f"{path}.element")
    elif isinstance(kind, spark.MapType):
        yield from _not_stored(kind.keyType, f"{path}.key")
        yield from _not_stored(kind.valueType, f"{path}.value")
    elif isinstance(kind, spark.StructType):
        for field in kind.fields:
            yield from _not_stored(field.dataType, f"{path}.{field.name}")
    elif not isinstance(kind, _STORED):
        yield f"the column {path} is {kind.simpleString()}, which is not written"


_STORED: Tuple[type, ...] = (
    spark.BooleanType,
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.FloatType,
    spark.DoubleType,
    spark.DecimalType,
    spark.StringType,
    spark.BinaryType,
    spark.DateType,
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.TimeType,
    spark.DayTimeIntervalType,
    spark.NullType,
)


def _stored(field: pyarrow.Field) -> pyarrow.Field:
    return pyarrow.field(field.name, _stored_type(field.type), field.nullable)


def _stored_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    # Spark's times of day have microseconds, and are handed over as nanoseconds, which it would not read.
    if kinds.is_time64(kind):
        return pyarrow.time64("us")
    if kinds.is_list(kind):
        return pyarrow.list_(_stored(kind.value_field))
    if kinds.is_map(kind):
        return pyarrow.map_(_stored(kind.key_field), _stored(kind.item_field))
    if kinds.is_struct(kind):
        return pyarrow.struct([_stored(kind.field(at)) for at in range(kind.num_fields)])
    return kind
