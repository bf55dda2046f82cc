"""Filters of a query of Spark's as what ``where`` takes. Spark applies them to the rows once more, so what stands here may leave more rows, and never fewer."""

from typing import List, Optional, Sequence, Tuple

from pyspark.sql import datasource as filters
from pyspark.sql import types as spark

from ._errors import Error
from ._finder import literal
from ._spark_read import Reader, quoted, refused

#: Whether Spark keeps the filters of one query apart from those of others: since it has limits, too.
IS_APART = hasattr(filters.DataSourceReader, "pushLimit")

#: Types of which both sides have one order. NaN is another matter, and times with zones are those of a session.
_ORDERED = (
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.DecimalType,
    spark.StringType,
    spark.DateType,
    spark.TimestampNTZType,
)
_EQUAL = (*_ORDERED, spark.BooleanType, spark.BinaryType)

_COMPARED = (
    (filters.EqualTo, "=", _EQUAL),
    (filters.GreaterThan, ">", _ORDERED),
    (filters.GreaterThanOrEqual, ">=", _ORDERED),
    (filters.LessThan, "<", _ORDERED),
    (filters.LessThanOrEqual, "<=", _ORDERED),
)


class FilteringReader(Reader):
    """A reader that takes the filters of its query."""

    def pushFilters(self, filters: "List[filters.Filter]") -> "List[filters.Filter]":
        # `where` has the names and types of before.
        if "rename" not in self.plan.shape and "types" not in self.plan.shape:
            self.plan.narrow(there for there in (predicate(it, self.schema) for it in filters) if there)
        return filters


def reader_of(options: "dict[str, str]", schema: spark.StructType) -> Reader:
    """The reader for the option ``pushdown``."""
    options = dict(options)
    wanted = options.pop("pushdown", "false").lower()
    if wanted not in ("true", "false"):
        raise refused(f"pushdown is true or false, and not {wanted}", "pushdown")
    if wanted == "false":
        return Reader(options, schema)
    if not IS_APART:
        said = "this Spark keeps the filters of one query for the others of a data frame, which so lose rows: the option where is for one"
        raise refused(said, "pushdown")
    return FilteringReader(options, schema)


def predicate(it: filters.Filter, schema: spark.StructType) -> Optional[str]:
    """A filter as ``where`` has it. ``None``: there is no such thing."""
    if isinstance(it, filters.Not):
        # Of what also takes nulls, or more rows than it says, the opposite would take fewer.
        child = predicate(it.child, schema)
        is_exact = not isinstance(it.child, (filters.EqualNullSafe, filters.Not))
        return f"NOT ({child})" if child and is_exact else None
    column = _column(getattr(it, "attribute", ()), schema)
    if column is None:
        return None
    name, kind = column
    if isinstance(it, filters.IsNull):
        return f"{name} IS NULL"
    if isinstance(it, filters.IsNotNull):
        return f"{name} IS NOT NULL"
    try:
        for compared, sign, kinds in _COMPARED:
            if isinstance(it, compared) and isinstance(kind, kinds):
                return f"{name} {sign} {literal(it.value)}"
        if isinstance(it, filters.EqualNullSafe) and isinstance(kind, _EQUAL) and it.value is not None:
            return f"{name} = {literal(it.value)}"
        if isinstance(it, filters.In) and isinstance(kind, _EQUAL):
            values = [literal(value) for value in it.value if value is not None]
            return f"{name} IN ({', '.join(values)})" if values else None
        if isinstance(it, filters.StringStartsWith) and not set(it.value) & set("%_\\"):
            return f"{name} LIKE {literal(it.value + '%')}"
    except Error:
        # A value that no column has.
        pass
    return None


def _column(path: Sequence[str], schema: spark.StructType) -> Optional[Tuple[str, spark.DataType]]:
    """A column, or a field of a structure, by its name in quotes, and its type."""
    kind: spark.DataType = schema
    for part in path:
        if not isinstance(kind, spark.StructType) or part not in kind.names:
            return None
        kind = kind[part].dataType
    return (".".join(map(quoted, path)), kind) if path else None
