"""Look-ups of rows by their keys."""

import datetime
import decimal
import uuid
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

from ._errors import InvalidArgument

if TYPE_CHECKING:
    from . import Addresses, Table, open
else:
    from ._marquetry import Table, open


class Finder:
    """Finds the rows of a table by keys: values of one column, or tuples of values of several.

    The table stays open, with the footers of its files: a look-up reads what statistics, Bloom filters and page indexes leave of it,
    on the thread that asks.
    """

    def __init__(
        self,
        table: "Union[Table, Addresses]",
        key: Union[str, Sequence[str]],
        *,
        columns: Optional[Sequence[str]] = None,
    ) -> None:
        if not isinstance(table, Table):
            table = open(table)
        self._key = [key] if isinstance(key, str) else list(key)
        if not self._key:
            raise _invalid("a Finder needs a column at least")
        # An unknown column is an error here, not at the first look-up.
        table.select(*self._key)
        columns_there = set(table.columns)
        #: As ``where`` has them.
        self._names = [_quoted(name, is_whole=name in columns_there) for name in self._key]
        self._table = table.threads(0)
        self._columns = None if columns is None else list(columns)

    @property
    def key(self) -> List[str]:
        """The names of the columns."""
        return list(self._key)

    def find(self, *keys: Any) -> "Table":
        """The rows that have one of these keys, in the order of the table: a ``Table``, which reads them when it is asked for rows."""
        if not keys:
            raise _invalid("find() needs a key at least")
        found = self._table.where(self._predicate(keys))
        return found if self._columns is None else found.select(*self._columns)

    def __contains__(self, key: Any) -> bool:
        return self._table.where(self._predicate([key])).select(self._key[0]).limit(1).count() > 0

    def __repr__(self) -> str:
        return f"<marquetry.Finder: {self._table.name} by {', '.join(self._key)}>"

    def _predicate(self, keys: Sequence[Any]) -> str:
        if len(self._key) == 1:
            literals = [literal(key[0] if isinstance(key, tuple) and len(key) == 1 else key) for key in keys]
            name = self._names[0]
            return f"{name} = {literals[0]}" if len(literals) == 1 else f"{name} IN ({', '.join(literals)})"
        return " OR ".join(self._conjunction(key) for key in keys)

    def _conjunction(self, key: Any) -> str:
        if not isinstance(key, (tuple, list)) or len(key) != len(self._key):
            raise _invalid(f"a key of this Finder is a tuple of {len(self._key)} values")
        terms = (f"{name} = {literal(value)}" for name, value in zip(self._names, key))
        return f"({' AND '.join(terms)})"


def literal(value: Any) -> str:
    """A value as ``where`` spells it: a literal of CQL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(float(value))
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise _invalid(f"{value} is no number that a column of decimals has")
        return f"{value:f}"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "0x" + bytes(value).hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        if value != value:
            # That of pandas.
            raise _invalid("NaT is no point in time")
        if value.tzinfo is None:
            return f"'{value.isoformat()}'"
        return f"'{value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat()}Z'"
    if isinstance(value, (datetime.date, datetime.time)):
        return f"'{value.isoformat()}'"
    if value is None:
        raise _invalid("no key is null: use where(\"… IS NULL\")")
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind == "M" and str(value) != "NaT":
        # NumPy's datetime64, which turns into a number without its unit.
        return f"'{value}'"
    if kind is not None and kind in "biufSU":
        item = value.item()
        if type(item) is not type(value):
            return literal(item)
    if hasattr(value, "as_py"):
        # A scalar of pyarrow.
        return literal(value.as_py())
    raise _invalid(f"a {type(value).__name__} is no key")


def _quoted(name: str, is_whole: bool) -> str:
    """A column that is named as ``select`` takes it: by its name, by names with dots between them, or in double quotes."""
    if not is_whole and '"' in name:
        return name
    return ".".join('"' + part.replace('"', '""') + '"' for part in ([name] if is_whole else name.split(".")))


def _invalid(text: str) -> InvalidArgument:
    return InvalidArgument(text, message=text)
