from typing import Any, AsyncIterator, Callable, Optional, Sequence, Union

from . import Address, Addresses, Copied, Differences, Option, RecordBatch, Rows, Table

async def open(address: Addresses, **options: Option) -> Table: ...
def batches(table: Table) -> AsyncIterator[RecordBatch]: ...
async def count(table: Table) -> int: ...
async def diff(
    a: Union[Addresses, Rows],
    b: Union[Addresses, Rows],
    *,
    key: Optional[Sequence[str]] = None,
    threads: Optional[int] = None,
) -> Differences: ...
async def copy(
    source: Union[Addresses, Rows],
    to: Address,
    /,
    *,
    progress: Optional[Callable[[Copied], Any]] = None,
    **options: Option,
) -> Copied: ...
async def write(
    rows: Rows,
    to: Address,
    /,
    *,
    progress: Optional[Callable[[Copied], Any]] = None,
    **options: Option,
) -> Copied: ...
