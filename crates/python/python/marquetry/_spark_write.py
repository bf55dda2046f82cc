"""Writing a table with the tasks of Spark."""

import os
import shutil
import time
import uuid
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional

import pyarrow  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from . import open as open_table
from . import write
from ._errors import AlreadyExists, ConversionError, InvalidArgument, NotFound, Unsupported
from ._spark_read import addresses, named, refused, shown
from ._spark_types import cast, stored_schema
from ._spark_waiting import patience, patiently

#: Said of a directory that is complete, as Spark says it.
SUCCESS = "_SUCCESS"

#: Options of a table that is created: then it is there, and the tasks' rows go into it.
_OF_CREATION = ("create", "key", "frozen", "as_set")

#: Options that mean something for all rows of a copy, of which each task has some: row numbers, which would be the same in each; a number of rows; other formats
#: than the table's; and what takes the place of what other tasks write.
_OF_ALL_ROWS = ("key_row_number", "limit", "to", "overwrite", "partition_by")


def writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    there = addresses(options)
    if len(there) != 1:
        raise refused("rows are saved at one address", "path")
    address = there[0]
    rest = named(options)
    for name in ("path", "paths"):
        rest.pop(name, None)
    for name in _OF_ALL_ROWS:
        if rest.get(name) is not None:
            raise refused(f"{name} is not for the tasks of Spark, each of which writes some of the rows", name)
    if address.startswith("cql:"):
        return ClusterWriter(address, rest, schema, overwrite)
    if "://" in address or address.startswith("sstable:"):
        said = "Spark's tasks write Parquet files into a directory, which all of them see, and rows into clusters (cql://)"
        raise Unsupported(said, message=said, address=shown(address))
    return DirectoryWriter(address, rest, schema, overwrite)


@dataclass
class Written(WriterCommitMessage):
    """What a task has written."""

    rows: int
    #: Its file, if there are rows.
    file: Optional[str] = None
    #: How many rows do not fit, and are in the files of `rejects`.
    rejected: int = 0


def _attempt(job: str) -> str:
    """The name of an attempt at a task, which no other has."""
    context = TaskContext.get()
    return f"{context.partitionId() if context else 0:05}-{job}-{uuid.uuid4().hex[:8]}"


def _of_task(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Options for the rows of a task, which has as many processors as Spark gives it: others have the rest."""
    context = TaskContext.get()
    return {"threads": (context.cpus() if context else 0) or 1, **options}


def _reader(batches: Iterator[pyarrow.RecordBatch], schema: pyarrow.Schema, name: str) -> pyarrow.RecordBatchReader:
    return pyarrow.RecordBatchReader.from_batches(schema, (cast(batch, schema, name) for batch in batches))


def _valid(batch: pyarrow.RecordBatch, name: str) -> pyarrow.RecordBatch:
    """The same batch. Strings of Spark's may be no UTF-8, which text in a file is: nobody could read it."""
    for field, column in zip(batch.schema, batch.columns):
        try:
            column.validate(full=True)
        except pyarrow.ArrowInvalid as error:
            said = f"{name}: the column {field.name} has values that are not of its type, {field.type}: {error}"
            raise ConversionError(said, message=said, address=name) from error
    return batch


class DirectoryWriter(DataSourceArrowWriter):
    """Writes a directory of Parquet files.

    Each attempt of a task writes a file of its own into a directory that nobody reads. When all tasks have ended, those of the attempts that count
    become the table, and the others are removed.
    """

    def __init__(self, directory: str, options: Dict[str, Any], schema: StructType, overwrite: bool) -> None:
        self.directory = directory
        self.job = uuid.uuid4().hex
        self.schema = stored_schema(schema, directory)
        self.options = options
        must_be_new = self.options.pop("new", "false")
        if must_be_new not in ("true", "false"):
            raise refused(f"new is true or false, and not {must_be_new}", "new")
        union = self.options.pop("union", "false")
        if union not in ("true", "false"):
            raise refused(f"union is true or false, and not {union}", "union")
        if must_be_new == "true" and os.path.lexists(directory):
            said = f"{directory}: already exists"
            raise AlreadyExists(said, message="already exists", address=directory)
        if os.path.lexists(directory) and not os.path.isdir(directory):
            said = f"{directory} is no directory: Spark's tasks write a file each"
            raise InvalidArgument(said, message=said, address=directory)
        self.replaces = overwrite and os.path.isdir(directory)
        self.appends = not overwrite and os.path.isdir(directory)
        if self.replaces:
            # A link to a directory stays one.
            self.directory = os.path.realpath(directory)
            _expect_table(self.directory)
        # Beside what it replaces or becomes; inside what it is added to, which may be the only directory of its file system.
        # The name of a directory that is passed over has no "=", which those of Hive's partitions have.
        place = self.directory if self.appends else os.path.dirname(self.directory)
        self.temporary = os.path.join(place, f"_marquetry-{self.job}")
        #: What becomes the table, and what it replaces.
        self.table, self.old = f"{self.temporary}-table", f"{self.temporary}-old"
        # Options that are wrong are known before the first task begins.
        os.makedirs(self.temporary)
        try:
            probe = os.path.join(self.temporary, self._write(iter(()), "probe"))
            if self.appends:
                _expect_same_columns(self.directory, probe, union)
            os.remove(probe)
        except BaseException:
            shutil.rmtree(self.temporary, ignore_errors=True)
            raise

    def _write(self, batches: Iterator[pyarrow.RecordBatch], stem: str) -> str:
        file = f"{stem}.parquet"
        batches = (_valid(batch, self.directory) for batch in batches)
        write(_reader(batches, self.schema, self.directory), os.path.join(self.temporary, file), **_of_task(self.options))
        return file

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        if not os.path.isdir(self.temporary):
            said = f"{self.temporary}: not found: the directory must be on a file system that all executors share"
            raise NotFound(said, message=said, address=self.directory)
        rows = 0

        def counted() -> Iterator[pyarrow.RecordBatch]:
            nonlocal rows
            for batch in iterator:
                rows += batch.num_rows
                yield batch

        # Of two attempts at one task each has a file, whatever becomes of the other.
        file = self._write(counted(), f"part-{_attempt(self.job)}")
        if rows == 0:
            os.remove(os.path.join(self.temporary, file))
            return Written(0)
        return Written(rows, file)

    def commit(self, messages: List[Optional[WriterCommitMessage]]) -> None:
        files = [message.file for message in messages if isinstance(message, Written) and message.file is not None]
        if any(message is None for message in messages):
            raise refused("a task has not said what it wrote")
        if not files and not self.appends:
            # A table without rows has columns.
            files = [self._write(iter(()), f"part-00000-{self.job}")]
        if self.appends:
            self._append(files)
        else:
            self._become(files)

    def _append(self, files: List[str]) -> None:
        moved = []
        try:
            for file in files:
                os.rename(os.path.join(self.temporary, file), os.path.join(self.directory, file))
                moved.append(file)
            _succeeded(self.directory)
        except BaseException:
            for file in moved:
                os.remove(os.path.join(self.directory, file))
            raise
        self._clean()

    def _become(self, files: List[str]) -> None:
        # An attempt that does not count may still be writing: only what counts is in the directory that is moved.
        os.mkdir(self.table)
        for file in files:
            os.rename(os.path.join(self.temporary, file), os.path.join(self.table, file))
        _succeeded(self.table)
        above = os.path.dirname(self.directory)
        if self.replaces:
            _expect_table(self.directory)
            os.rename(self.directory, self.old)
        try:
            # Where nothing is to be replaced, this fails if something is there by now.
            os.rename(self.table, self.directory)
        except BaseException:
            if self.replaces:
                os.rename(self.old, self.directory)
            raise
        # It is there. Who is told that it is not would write its rows once more.
        with suppress(OSError):
            _sync(above)
        self._clean()

    def _clean(self) -> None:
        """Removes what is not the table. That it cannot be is no error of the rows', which are there: nobody must write them again."""
        for directory in (self.temporary, self.table, self.old):
            shutil.rmtree(directory, ignore_errors=True)

    def abort(self, messages: List[Optional[WriterCommitMessage]]) -> None:
        for directory in (self.temporary, self.table):
            shutil.rmtree(directory, ignore_errors=True)


def _expect_table(directory: str) -> None:
    """Fails for a directory with anything in it that no table has: it would be lost."""
    for entry in os.scandir(directory):
        is_of_table = entry.name.endswith(".parquet") or entry.name.startswith(("_", "."))
        if entry.is_symlink() or not is_of_table or not entry.is_file():
            said = f"{directory} is not replaced: {entry.name} in it is no Parquet file"
            raise InvalidArgument(said, message=said, address=directory)


def _expect_same_columns(directory: str, file: str, union: str) -> None:
    """Fails for a file whose columns are not those of a directory's files: together, they would be no table."""
    first = _first_file(directory)
    if first is None:
        return
    try:
        open_table([first, file], union=union)
    except ConversionError as error:
        why = str(error).replace(f"{file}: ", "")
        said = f"{directory}: the rows have other columns than the table that they are added to: {why}"
        raise ConversionError(said, message=said, address=directory, admitted_by=error.admitted_by) from error


def _first_file(directory: str) -> Optional[str]:
    """The first Parquet file in a directory or below it, where there is one; what is hidden is none of the table's."""
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        names = (name for name in files if name.endswith(".parquet") and not name.startswith(("_", ".")))
        first = min(names, default=None)
        if first is not None:
            return os.path.join(folder, first)
    return None


def _succeeded(directory: str) -> None:
    with open(os.path.join(directory, SUCCESS), "wb"):
        pass
    _sync(directory)


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ClusterWriter(DataSourceArrowWriter):
    """Writes rows into a table of a cluster.

    A task that is tried again writes its rows again, with the write times that they had: one that was written twice is as one that was written once.
    """

    def __init__(self, address: str, options: Dict[str, Any], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            said = "rows are added to a table of a cluster (mode append): truncate it before, if it is to have no others"
            raise Unsupported(said, message=said)
        if options.get("layout") == "columns":
            said = "a table of the layout columns holds one file, which one writer writes: save files, and copy them there"
            raise Unsupported(said, message=said, option="layout")
        self.address = address
        self.job = uuid.uuid4().hex[:8]
        self.schema = stored_schema(schema, "the rows")
        self.options = options
        # Of one job all rows have times from the same on. Counters have none.
        if self.options.get("counters_at_least_once") != "true":
            self.options.setdefault("timestamp", "now")
        if self.options.get("timestamp") == "now":
            self.options["timestamp"] = str(time.time_ns() // 1000)
        # The table is created here, once; and options that are wrong are known before the first task begins.
        write(self.schema.empty_table(), self.address, **self.options)
        # A trial creates none: its tasks' rows are for the table that would be there.
        if self.options.get("dry_run") != "true":
            for name in _OF_CREATION:
                self.options.pop(name, None)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        options = _of_task(self.options)
        if options.get("rejects"):
            # Each attempt has a file for those rows, if there are any.
            stem, ending = os.path.splitext(options["rejects"])
            options["rejects"] = f"{stem}-{_attempt(self.job)}{ending}"
        has_begun = False

        def taken() -> Iterator[pyarrow.RecordBatch]:
            nonlocal has_begun
            # Spark hands out each batch once, and none after an error.
            has_begun = True
            yield from iterator

        def load() -> Any:
            return write(_reader(taken(), self.schema, "the rows"), self.address, **options)

        written = patiently(load, patience(self.address, options), lambda: has_begun)
        return Written(written.rows_written, rejected=written.rows_rejected)

    def commit(self, messages: List[Optional[WriterCommitMessage]]) -> None:
        rejected = sum(message.rejected for message in messages if isinstance(message, Written))
        if rejected > 0:
            # What Spark shows nowhere: the rows are no rows of the table, and the job has not failed.
            said = f"{rejected} rows did not fit, and were not written: they are in the files of {self.options.get('rejects')}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
