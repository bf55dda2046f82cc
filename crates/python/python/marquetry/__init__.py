"""Apache Parquet for ScyllaDB and Apache Cassandra.

>>> import marquetry as mq
>>> trips = mq.open("trips.parquet").select("id", "fare").where("fare > 20.5")  # doctest: +SKIP
>>> pyarrow.table(trips)  # doctest: +SKIP

What is opened speaks Arrow's PyCapsule interface: pyarrow, Polars, DuckDB and pandas take it without a copy.
"""

from . import _marquetry
from ._errors import (
    AlreadyExists,
    Cancelled,
    ConversionError,
    Error,
    InputOutputError,
    InternalError,
    InvalidArgument,
    InvalidFile,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    Place,
    Refused,
    Unsupported,
)
from ._finder import Finder
from ._marquetry import (
    Batches,
    ColumnStatistics,
    Copied,
    Differences,
    Piece,
    RecordBatch,
    Schema,
    Table,
    __version__,
    diff,
    open,
)

__all__ = [
    "AlreadyExists",
    "Batches",
    "Cancelled",
    "ColumnStatistics",
    "ConversionError",
    "Copied",
    "Differences",
    "Error",
    "Finder",
    "InputOutputError",
    "InternalError",
    "InvalidArgument",
    "InvalidFile",
    "LimitExceeded",
    "NotFound",
    "PermissionDenied",
    "Piece",
    "Place",
    "RecordBatch",
    "Refused",
    "Schema",
    "Table",
    "Unsupported",
    "__version__",
    "copy",
    "diff",
    "open",
    "write",
]


def copy(source, to, /, *, progress=None, **options):
    """Copies a table from any address, or several, to any other. See docs/python.md for the options."""
    return _marquetry.copy(source, to, options, progress, None)


def write(rows, to, /, *, progress=None, **options):
    """Writes the rows of anything that has ``__arrow_c_stream__`` or ``__arrow_c_array__``. They appear complete, or not at all."""
    if not (hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")):
        raise TypeError(
            f"{type(rows).__name__} has neither __arrow_c_stream__ nor __arrow_c_array__; copy() takes addresses"
        )
    return _marquetry.copy(rows, to, options, progress, None)


def __getattr__(name):
    # It needs PySpark, which who has no use for Spark need not have.
    if name == "spark":
        from importlib import import_module

        return import_module(".spark", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
