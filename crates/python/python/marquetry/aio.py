"""The same for asyncio: long work is done by threads, and ends when its task is cancelled."""

import asyncio

from . import _marquetry

__all__ = ["batches", "copy", "count", "diff", "open", "write"]


async def open(address, **options):
    """As :func:`marquetry.open`."""
    return await _until(lambda stop: _marquetry.open_until(address, options, stop))


async def batches(table):
    """The rows of a table, a record batch at a time: ``async for batch in batches(table)``."""
    rows = await _in_thread(table.batches)
    while True:
        ahead = asyncio.ensure_future(_in_thread(lambda: next(rows, None)))
        try:
            batch = await asyncio.shield(ahead)
        except asyncio.CancelledError:
            rows._cancel()
            await _ended(ahead)
            raise
        if batch is None:
            return
        yield batch


async def count(table):
    """Counts the rows of a table, as :meth:`marquetry.Table.count`."""
    return await _until(table._count_until)


async def diff(a, b, *, key=None, threads=None):
    """As :func:`marquetry.diff`."""
    return await _until(lambda stop: _marquetry.diff_until(a, b, key, threads, stop))


async def copy(source, to, /, *, progress=None, **options):
    """As :func:`marquetry.copy`. When its task is cancelled, the copy is, and leaves nothing; ``progress`` is called in the loop's thread, and
    what it raises ends the copy."""
    loop = asyncio.get_running_loop()
    failed = None

    def tell(copied):
        nonlocal failed
        if failed is None:
            try:
                progress(copied)
            except BaseException as error:
                failed = error

    def pass_on(copied):
        loop.call_soon_threadsafe(tell, copied)

    def run(stop):
        def stop_or_fail():
            stop()
            if failed is not None:
                raise failed

        return _marquetry.copy(source, to, options, pass_on if progress else None, stop_or_fail)

    return await _until(run)


async def write(rows, to, /, *, progress=None, **options):
    """As :func:`marquetry.write`, and as :func:`copy`."""
    if not (hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")):
        raise TypeError(f"{type(rows).__name__} has neither __arrow_c_stream__ nor __arrow_c_array__")
    return await copy(rows, to, progress=progress, **options)


async def _until(work):
    """Has a thread do ``work(stop)``, which calls ``stop`` now and then. If the task is cancelled, that raises; the task ends when the work has."""
    is_cancelled = False

    def stop():
        if is_cancelled:
            raise asyncio.CancelledError

    def run():
        # It may have waited for a thread.
        stop()
        return work(stop)

    future = asyncio.ensure_future(_in_thread(run))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        is_cancelled = True
        await _ended(future)
        raise


async def _ended(future):
    """Waits for what is in flight, also if its task is cancelled again: when this returns, nothing is read or written any more."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            pass
    if not future.cancelled():
        future.exception()


async def _in_thread(work):
    return await asyncio.get_running_loop().run_in_executor(None, work)
