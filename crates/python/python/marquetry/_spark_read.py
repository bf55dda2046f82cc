"""Reading a table with the tasks of Spark."""

import hashlib
import json
import os
import re
import time
import uuid
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union
from urllib.parse import quote, unquote

import pyarrow  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ._errors import Error, InvalidArgument, Unsupported
from ._spark_types import arrow_schema, cast, chosen, spark_schema
from ._spark_waiting import patience, patiently

if TYPE_CHECKING:
    from . import Table, open

    def shown(address: str) -> str: ...
else:
    from ._marquetry import Table, open, shown

#: The most partitions, unless the option `partitions` says otherwise: each is a task, which costs Spark some milliseconds.
PARTITIONS_MAX = 1024
#: Tables that a worker keeps open: tasks of one query come one after the other, and several queries may take turns.
TABLES_KEPT = 4

#: Options that are about what is read, in the order in which they are applied; all others are those of `open`.
_SHAPE = ("where", "types", "rename", "columns")
#: Options that are files of this machine.
_PATHS = ("password_file", "ca", "cert", "key_file", "bundle", "schema_cql", "rejects")
#: The file with the password, in an address of a cluster.
_RELATIVE_FILE = re.compile(r"([?&]password_file=)([^&]+)")
#: The scheme of an address whose path is absolute.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):(/.*)", re.IGNORECASE | re.DOTALL)
#: Options that are none of the table's.
_OWN = ("path", "paths", "partitions", "max_files_per_trigger", "pushdown")


def refused(text: str, option: Optional[str] = None) -> InvalidArgument:
    return InvalidArgument(text, message=text, option=option)


def addresses(options: Mapping[str, str]) -> List[str]:
    """What `load` or `save` was given. Paths of this machine are made absolute, because executors have another directory."""
    given = [options["path"]] if options.get("path") else []
    if options.get("paths"):
        given.extend(json.loads(options["paths"]))
    if not given:
        raise refused("an address is needed: load(\"cql://…\"), load(\"sstable:DIR\"), load(\"trips/*.parquet\")", "path")
    return [absolute(address) for address in given]


def absolute(address: str) -> str:
    if address == "-":
        raise refused("executors have no standard input or output", "path")
    if address[:4].lower() == "cql:":
        address = "cql:" + address[4:]
        return _RELATIVE_FILE.sub(lambda found: found[1] + quote(os.path.abspath(unquote(found[2]))), address)
    found = _SCHEME.fullmatch(address)
    if found and found[1].lower() == "file":
        # As Spark writes paths of this machine: file:/a and file:///a.
        path = re.sub("^//(?:localhost)?(?=/)", "", found[2])
        if path.startswith("//"):
            raise refused(f"{address} is a file of another machine", "path")
        return os.path.abspath(path)
    if "://" in address:
        return address
    if found and found[1].lower() != "sstable":
        # It would be a directory of this name.
        said = f"{found[1]}: is a scheme of Hadoop's file systems, which are not read or written: a path is, and s3://, gs:// and az:// are read"
        raise Unsupported(said, message=said)
    if address[:8].lower() == "sstable:":
        return "sstable:" + os.path.abspath(address[len("sstable:") :])
    return os.path.abspath(address)


def named(options: Mapping[str, str]) -> Dict[str, Any]:
    """Options by their names, as ``open`` and ``write`` take them. Files are named absolutely, too."""
    found: Dict[str, Any] = {name.lower(): value for name, value in options.items()}
    for name in _PATHS:
        if found.get(name):
            found[name] = absolute(found[name])
    return found


def whole(text: str, option: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise refused(f"{option} is a number of one and more, and not {text}", option)
    return int(text)


def split(columns: str) -> List[str]:
    """The names of a list of columns. In double quotes a comma is one of a name."""
    names, name, is_quoted = [], "", False
    for character in columns:
        is_quoted ^= character == '"'
        if character == "," and not is_quoted:
            names.append(name)
            name = ""
        else:
            name += character
    return [name.strip() for name in [*names, name]]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Plan:
    """What is read: the same for all tasks of a query, which open it each for itself."""

    def __init__(self, options: Mapping[str, str], only: Optional[Sequence[str]] = None) -> None:
        #: Tells this plan from others in a worker, which keeps tables open.
        self.id = uuid.uuid4().hex
        self.addresses = list(only) if only is not None else addresses(options)
        self.shape = {name: options[name] for name in _SHAPE if options.get(name)}
        self.options = named(options)
        for name in (*_SHAPE, *_OWN):
            self.options.pop(name, None)
        if any(address.startswith("sstable:") for address in self.addresses):
            # Rows, as a query would return them; all tasks at one time.
            self.options.setdefault("mapping", "logical")
            if self.options["mapping"] == "logical":
                self.options.setdefault("at", _now())
        #: Of those, the only ones.
        self.columns: Optional[List[str]] = None
        #: What the table was when the query was planned.
        self.fingerprint: Optional[str] = None

    @property
    def name(self) -> str:
        """What errors call it, without passwords and signatures."""
        return ", ".join(shown(address) for address in self.addresses)

    def open(self) -> "Table":
        """Opens the table."""
        return self.shaped(self.whole())

    def whole(self) -> "Table":
        """Opens the table, with all of its columns and rows."""
        # One address is not a list of one: what is opened by a list is files.
        address: Union[str, List[str]] = self.addresses[0] if len(self.addresses) == 1 else self.addresses
        return open(address, **self.options)

    def shaped(self, table: "Table") -> "Table":
        """Of the table, or of a part of it, what is read."""
        if "where" in self.shape:
            table = table.where(self.shape["where"])
        if "types" in self.shape:
            table = table.types(self.shape["types"])
        if "rename" in self.shape:
            table = table.rename(self.shape["rename"])
        if "columns" in self.shape:
            table = table.select(*split(self.shape["columns"]))
        if self.columns is not None:
            table = table.select(*map(quoted, self.columns))
        return table

    def narrow(self, terms: Iterable[str]) -> None:
        """Only rows of which all of these are true, as far as the table takes them for predicates."""
        found = [f"({self.shape['where']})"] if "where" in self.shape else []
        table = None
        for term in terms:
            table = self.open() if table is None else table
            try:
                table.where(term)
            except Error:
                continue
            found.append(f"({term})")
        if found:
            self.shape["where"] = " AND ".join(found)
            self.forget()

    def kept(self) -> "Table":
        """What is read, which stays open for other tasks of this worker."""
        return self._opened().table

    def within(self, tokens: Tuple[int, int]) -> "Table":
        """What is read of a range of tokens, by the connection that stays open."""
        return self.shaped(self._opened().whole.token_range(_token_range(*tokens)))

    def forget(self) -> None:
        """Lets go of the table: it is opened anew."""
        _kept.pop((self.id, os.getpid()), None)

    def _opened(self) -> "Opened":
        # A child that was forked cannot use all that its parent has open.
        key = (self.id, os.getpid())
        opened = _kept.get(key)
        if opened is None:
            whole = self.whole()
            opened = Opened(whole, self.shaped(whole))
            if self.fingerprint not in (None, fingerprint(opened.table)):
                said = f"{self.name}: it was changed after the query was planned: load it again"
                raise Error(said, message=said, address=self.name)
            self.keep(opened)
        _kept.move_to_end(key)
        return opened

    def keep(self, opened: "Opened") -> None:
        """Keeps a table that was opened by this plan, as it is now."""
        _kept[self.id, os.getpid()] = opened
        while len(_kept) > TABLES_KEPT:
            _kept.popitem(last=False)


class Opened(NamedTuple):
    """A table with all that it has, and what is read of it."""

    whole: "Table"
    table: "Table"


_kept: "OrderedDict[Tuple[str, int], Opened]" = OrderedDict()


def _now() -> str:
    return str(int(time.time()))


def _token_range(first: int, last: int) -> str:
    after = "" if first == -(2**63) else str(first - 1)
    return f"{after}:{last}"


def fingerprint(table: "Table") -> str:
    """A text that is another one, most likely, if a table has other columns or pieces. Those of a cluster, which it splits by its own estimates, are left out."""
    pieces = [(piece.name, piece.rows, piece.bytes, piece.tag) for piece in table.pieces if piece.tokens is None]
    return hashlib.sha256(f"{table.schema.fields!r}{pieces!r}".encode()).hexdigest()


class Share(InputPartition):
    """The pieces of a table that one task reads: by their numbers, or, of a cluster, whose ring may be split otherwise a moment later, by their tokens."""

    def __init__(self, plan: Plan, start: int, end: int, tokens: Optional[List[Tuple[int, int]]]) -> None:
        super().__init__((start, end))
        self.plan = plan
        self.start = start
        self.end = end
        self.tokens = tokens

    def tables(self) -> Iterator["Table"]:
        """For a task: a cluster that is away for a while is waited for."""
        seconds = patience(self.plan.addresses[0], self.plan.options)
        if self.tokens is None:
            yield patiently(self.plan.kept, seconds).only(self.start, self.end)
        else:
            for tokens in self.tokens:
                yield patiently(partial(self.plan.within, tokens), seconds)


def shares(plan: Plan, partitions: int) -> List[Share]:
    """All of a table, in so many partitions at most."""
    table = plan.kept()
    plan.fingerprint = fingerprint(table)
    pieces = table.pieces
    count = min(len(pieces), partitions)
    ends = [len(pieces) * (at + 1) // count for at in range(count)]
    found = []
    for start, end in zip([0, *ends], ends):
        tokens = [piece.tokens for piece in pieces[start:end]]
        ranges = [it for it in tokens if it is not None]
        is_by_tokens = len(ranges) == len(tokens)
        found.append(Share(plan, start, end, _joined(ranges) if is_by_tokens else None))
    return found


def _joined(ranges: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """Ranges in order, those that follow one another as one."""
    joined: List[Tuple[int, int]] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def rows(share: InputPartition, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a share, as Spark takes them. Of a table without pieces, Spark asks for a partition all the same."""
    if not isinstance(share, Share):
        return
    try:
        for table in share.tables():
            # A task has one processor, and this thread is on it.
            for batch in table.threads(0).batches():
                yield cast(pyarrow.record_batch(batch), schema, share.plan.name)
    except Error:
        # Who tries it again connects anew: to a cluster that may be elsewhere by now.
        share.plan.forget()
        raise


class Reader(DataSourceReader):
    """Reads all columns of a schema.

    It has no `pushFilters`, which `FilteringReader` has: up to 4.3 at least, Spark keeps the filters of one query for the others of a data frame, which so
    lose rows; and refuses readers that have it unless `spark.sql.python.filterPushdown.enabled` is set.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.partitions_max = whole(options.get("partitions") or str(PARTITIONS_MAX), "partitions")
        if "max_files_per_trigger" in options:
            raise refused("this is for streams", "max_files_per_trigger")
        self.plan = Plan(options)
        whole_table = self.plan.whole()
        table = self.plan.shaped(whole_table)
        columns = chosen(schema, spark_schema(pyarrow.schema(table.schema), self.plan.name), self.plan.name)
        if columns != table.columns:
            if "columns" in self.plan.shape:
                raise refused("a schema that is given has the columns that are read: leave the option out", "columns")
            self.plan.columns = columns
            table = table.select(*map(quoted, columns))
        # Partitions are planned next.
        self.plan.keep(Opened(whole_table, table))
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return shares(self.plan, self.partitions_max)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return rows(partition, arrow_schema(self.schema))
