"""The same for asyncio: long work is done by threads, and ends when its task is cancelled."""

import asyncio

from . import _marquetry
from . import open as _open

__all__ = ["batches", "copy", "count", "diff", "open", "write"]


async def open(address, **options):
    """As :func:`marquetry.open`."""
    return await _in_thread(lambda: _open(address, **options))


async def batches(table):
    """The rows of a table, a record batch at a time: ``async for batch in batches(table)``."""
    rows = await _in_thread(table.batches)
    while True:
        batch = await _in_thread(lambda: next(rows, None))
        if batch is None:
            return
        yield batch


async def count(table):
    """Counts the rows of a table, as :meth:`marquetry.Table.count`."""
    return await _in_thread(table.count)


async def diff(a, b, *, key=None, threads=None):
    """As :func:`marquetry.diff`."""
    return await _in_thread(lambda: _marquetry.diff(a, b, key=key, threads=threads))


async def copy(source, to, /, *, progress=None, **options):
    """As :func:`marquetry.copy`. When its task is cancelled, the copy is, and leaves nothing; ``progress`` is called in the loop's thread, and
    what it raises ends the copy."""
    loop = asyncio.get_running_loop()
    is_cancelled = False
    failed = None

    def stop():
        if is_cancelled:
            raise asyncio.CancelledError
        if failed is not None:
            raise failed

    def tell(copied):
        nonlocal failed
        if failed is None:
            try:
                progress(copied)
            except BaseException as error:
                failed = error

    def pass_on(copied):
        loop.call_soon_threadsafe(tell, copied)

    def run():
        # It may have waited for a thread.
        stop()
        return _marquetry.copy(source, to, options, pass_on if progress else None, stop)

    work = asyncio.ensure_future(_in_thread(run))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # What is in flight is waited for, also if it is cancelled again: when this returns, nothing is written any more.
        is_cancelled = True
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                pass
        if not work.cancelled():
            work.exception()
        raise


async def write(rows, to, /, *, progress=None, **options):
    """As :func:`marquetry.write`, and as :func:`copy`."""
    if not (hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")):
        raise TypeError(f"{type(rows).__name__} has neither __arrow_c_stream__ nor __arrow_c_array__")
    return await copy(rows, to, progress=progress, **options)


async def _in_thread(work):
    return await asyncio.get_running_loop().run_in_executor(None, work)
