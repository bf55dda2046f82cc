from typing import Any, AsyncIterator, Callable, Optional, Union

from . import Address, Addresses, Copied, Option, RecordBatch, Rows, Table

async def open(address: Addresses, **options: Option) -> Table: ...
def batches(table: Table) -> AsyncIterator[RecordBatch]: ...
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
