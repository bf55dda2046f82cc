"""Tasks of Spark that begin while a server is away."""

import random
import time
from typing import Any, Callable, Mapping, TypeVar

from ._errors import InputOutputError

#: Seconds for which a task tries to connect, unless the option `retry_for` says otherwise: as long as the engine sends rows, and asks for pages, again.
RETRY_SECONDS = 120.0
#: Seconds between two tries: first, and at most. They double.
_WAIT_SECONDS, _WAIT_SECONDS_MAX = 0.5, 5.0

Result = TypeVar("Result")


def patience(address: str, options: Mapping[str, Any]) -> float:
    """Seconds for which a task waits for what an address leads to: for a cluster. Files are there, or are not."""
    return float(options.get("retry_for") or RETRY_SECONDS) if address.startswith("cql:") else 0.0


def patiently(work: Callable[[], Result], seconds: float, has_begun: Callable[[], bool] = lambda: False) -> Result:
    """Does what begins by connecting to a cluster, and does it again while the cluster is away, unless rows have moved by then.

    The driver has connected before any task begins: a cluster that does not answer now is most likely coming back. Spark itself tries a task again at
    once, and three times only.
    """
    until = time.monotonic() + seconds
    wait = _WAIT_SECONDS
    while True:
        try:
            return work()
        except InputOutputError as error:
            # Its subclasses are about files, such as one with a password, which do not come back.
            if type(error) is not InputOutputError or has_begun() or time.monotonic() + wait > until:
                raise
        # Tasks that failed together do not come back together.
        time.sleep(wait * random.uniform(0.5, 1.0))
        wait = min(2 * wait, _WAIT_SECONDS_MAX)
