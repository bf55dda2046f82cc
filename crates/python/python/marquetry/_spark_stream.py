"""Reading the files that appear in a directory, as a stream of Spark's."""

import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import pyarrow  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ._errors import ConversionError, NotFound, Unsupported
from ._spark_read import PARTITIONS_MAX, Plan, addresses, quoted, refused, rows, shares, whole
from ._spark_types import arrow_schema, chosen, paths, spark_schema

#: What an offset has: the files that were read, each with its bytes.
Files = Dict[str, int]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Each file once. An offset has the names of all files up to it, because names have no order in which they appear, and nor have times."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        there = addresses(options)
        if len(there) != 1 or "://" in there[0] or there[0].startswith("sstable:"):
            said = "a stream is of the Parquet files that appear in one directory of a file system"
            raise Unsupported(said, message=said)
        self.directory = there[0]
        for name in ("where", "types", "rename", "columns"):
            if options.get(name):
                raise refused("this is not for streams: Spark's own select and filter are", name)
        limit = options.get("max_files_per_trigger")
        self.files_max = None if limit is None else whole(limit, "max_files_per_trigger")
        self.options = dict(options)
        self.partitions_max = whole(options.get("partitions") or str(PARTITIONS_MAX), "partitions")
        self.schema = schema
        self.until: Optional[Files] = None
        # What is not in the schema was known when the query began, and is not wanted.
        self.known = set(paths(arrow_schema(schema)))
        files = [os.path.join(self.directory, name) for name in self._there()]
        if files:
            table = Plan({**self.options, "union": "true"}, files).open()
            self.known.update(paths(pyarrow.schema(table.schema)))

    def _there(self) -> Files:
        """The files that are complete: those that have their names."""
        try:
            entries = list(os.scandir(self.directory))
        except FileNotFoundError:
            said = f"{self.directory}: not found"
            raise NotFound(said, message="not found", address=self.directory) from None
        is_file = [entry for entry in entries if entry.name.endswith(".parquet") and entry.name[0] not in "._"]
        found = {}
        for entry in is_file:
            try:
                if entry.is_file():
                    found[entry.name] = entry.stat().st_size
            except FileNotFoundError:
                # It was removed meanwhile.
                continue
        return found

    def initialOffset(self) -> Dict[str, Any]:
        return {"files": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.files_max is None else ReadMaxFiles(self.files_max)

    def latestOffset(self, start: Dict[str, Any], limit: ReadLimit) -> Dict[str, Any]:
        seen: Files = start["files"]
        there = self._there() if self.until is None else self.until
        new = sorted(set(there) - set(seen))
        if isinstance(limit, ReadMaxFiles):
            new = new[: limit.max_files]
        files = {**seen, **{name: there[name] for name in new}}
        return {"files": dict(sorted(files.items()))}

    def prepareForTriggerAvailableNow(self) -> None:
        self.until = self._there()

    def partitions(self, start: Dict[str, Any], end: Dict[str, Any]) -> Sequence[InputPartition]:
        found: List[InputPartition] = []
        for name, size in end["files"].items():
            if name in start["files"]:
                continue
            path = os.path.join(self.directory, name)
            if not os.path.exists(path) or os.path.getsize(path) != size:
                said = f"{path}: it was removed or replaced before its rows were read"
                raise NotFound(said, message=said, address=path)
            found.extend(shares(self._plan(path), self.partitions_max))
        return found

    def _plan(self, path: str) -> Plan:
        """How a file is read as rows of the schema."""
        plan = Plan(self.options, [path])
        table = plan.open()
        columns = [name for name in self.schema.names if name in table.columns]
        if not columns:
            said = f"{path} has no column of the stream's: it has {', '.join(table.columns)}"
            raise ConversionError(said, message=said, address=path)
        wanted = table.select(*map(quoted, columns))
        # Of columns that are left out, it makes no difference what is within them.
        there = [*table.columns, *paths(pyarrow.schema(wanted.schema))]
        more = [name for name in dict.fromkeys(there) if name not in self.known]
        if more:
            said = f"{path} has columns that the stream has not: {', '.join(more)}; a query that begins anew has them"
            raise ConversionError(said, message=said, address=path)
        absent = [field.name for field in self.schema.fields if field.name not in columns and not field.nullable]
        if absent:
            said = f"{path} lacks columns that have no nulls: {', '.join(absent)}"
            raise ConversionError(said, message=said, address=path)
        given = StructType([field for field in self.schema.fields if field.name in columns])
        plan.columns = chosen(given, spark_schema(pyarrow.schema(wanted.schema), path), path, is_union=True)
        return plan

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        schema = arrow_schema(self.schema)
        names = getattr(getattr(partition, "plan", None), "columns", None) or schema.names
        for batch in rows(partition, pyarrow.schema([schema.field(name) for name in names])):
            columns = [
                batch.column(field.name) if field.name in names else pyarrow.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)
