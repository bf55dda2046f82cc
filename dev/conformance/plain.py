"""Values of many readers in one form, so that they can be compared."""

import datetime
import math

import pandas as pd


def plain(value):
    """A value as all readers can have it."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, (list, tuple)) or type(value).__name__ in ("Series", "ndarray"):
        return [plain(element) for element in value]
    if isinstance(value, dict) and list(value) == ["key", "value"]:
        # A map, to those who have none: a list of structs.
        return [plain(value["key"]), plain(value["value"])]
    if isinstance(value, dict):
        return {name: plain(field) for name, field in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("latin-1")
    if isinstance(value, str):
        return value.encode().decode("latin-1")
    if isinstance(value, pd.Timestamp):
        value = value.to_pydatetime(warn=False)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value
