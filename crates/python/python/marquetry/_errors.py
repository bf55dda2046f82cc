"""Errors, by whose fault they are."""

import errno
from typing import Any, Dict, List, NamedTuple, Optional


class Place(NamedTuple):
    """Where an error occurred, as far as is known. Numbers are counted from 0."""

    row_group: Optional[int] = None
    column: Optional[str] = None
    page: Optional[int] = None
    row: Optional[int] = None
    offset: Optional[int] = None


class Error(Exception):
    """What Marquetry raises. ``str`` of it has all; the fields are for programs."""

    def __init__(
        self,
        text: str = "",
        *,
        message: Optional[str] = None,
        address: Optional[str] = None,
        place: Optional[Dict[str, Any]] = None,
        limit: Optional[str] = None,
        option: Optional[str] = None,
        admitted_by: Optional[List[str]] = None,
        parts: Optional[List["Error"]] = None,
    ) -> None:
        super().__init__(text)
        #: What is wrong, without the place.
        self.message = text if message is None else message
        #: The file, object or table.
        self.address = address
        self.place = Place(**(place or {}))
        #: Of LimitExceeded: the limit's name.
        self.limit = limit
        #: The option that is wrong.
        self.option = option
        #: Options another value of which would admit it.
        self.admitted_by = list(admitted_by or [])
        #: The errors that this one lists.
        self.parts = list(parts or [])

    def __str__(self) -> str:
        # OSError would make another text of `errno` and `filename`.
        return str(self.args[0]) if self.args else ""


class InvalidFile(Error):
    """A file contradicts its format or itself."""


class Unsupported(Error):
    """A part of a format, or an address, that is not supported."""


class LimitExceeded(Error):
    """A limit is exceeded that protects from broken and hostile files: its name is in ``limit``."""


class InputOutputError(Error, OSError):
    """Something cannot be read or written. As of each OSError, ``filename`` is the address; ``errno`` is what the class stands for, if it does."""

    _errno: Optional[int] = None

    def __init__(self, text: str = "", **fields: Any) -> None:
        super().__init__(text, **fields)
        self.errno = self._errno
        self.filename = self.address

    def __setstate__(self, state: Dict[str, Any]) -> None:
        # Of one that was pickled or copied, which is made of its text alone at first.
        super().__setstate__(state)
        self.filename = self.address


class NotFound(InputOutputError, FileNotFoundError):
    """It does not exist."""

    _errno = errno.ENOENT


class AlreadyExists(InputOutputError, FileExistsError):
    """It exists, and may not be replaced."""

    _errno = errno.EEXIST


class PermissionDenied(InputOutputError, PermissionError):
    """Whoever runs this may not use it so."""

    _errno = errno.EACCES


class InvalidArgument(Error, ValueError):
    """An argument or an option that is wrong, or has no meaning here."""


class ConversionError(Error, ValueError):
    """A value does not fit the type that it is converted to."""


class Refused(Error):
    """A server was reached, and refuses or fails."""


class Cancelled(Error):
    """The work was cancelled."""


class InternalError(Error):
    """A check has found a bug in Marquetry."""
