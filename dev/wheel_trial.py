"""What dev/wheel.sh tries of an installed package, without any other: `wheel_trial.py [MILLISECONDS]`, which an import may take. It runs in an empty folder,
and a type checker reads it, too."""

import asyncio
import platform
import subprocess
import sys
import time
from typing import TYPE_CHECKING, List

import marquetry as mq
import marquetry.aio

if TYPE_CHECKING:
    # What needs PySpark has types without it.
    source: type = mq.spark.Source


def write_and_read() -> None:
    with open("trips.csv", "w", encoding="utf-8") as file:
        file.write("id,fare,city\n" + "".join(f"{i},{i / 4},city {i % 13}\n" for i in range(10_000)))
    seen: List[int] = []
    copied = mq.copy("trips.csv", "trips.parquet", codec="zstd", bloom=["id"], verify=True, progress=lambda so_far: seen.append(so_far.rows))
    assert copied.rows == 10_000 and seen[-1] == 10_000, copied
    trips: mq.Table = mq.open("trips.parquet")
    assert trips.columns == ["id", "fare", "city"], trips.columns
    assert trips.where("city = 'city 3' AND id < 100").count() == 8
    assert sum(batch.num_rows for batch in trips.select("id").batches()) == 10_000
    assert mq.Finder(trips, "id").find(77).count() == 1
    assert mq.diff("trips.csv", trips, key=["id"]).rows_only == (0, 0)
    mq.write(trips.limit(3), "three.jsonl")
    assert asyncio.run(rows_of("three.jsonl")) == 3
    try:
        mq.open("none.parquet")
    except mq.NotFound as error:
        assert isinstance(error, FileNotFoundError) and error.address == "none.parquet"
    else:
        raise SystemExit("a file that is not there was opened")


async def rows_of(path: str) -> int:
    return sum([batch.num_rows async for batch in mq.aio.batches(await mq.aio.open(path))])


def milliseconds(program: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    write_and_read()
    imported = ""
    if len(sys.argv) > 1:
        taken = min(milliseconds("import marquetry") for _ in range(7)) - min(milliseconds("pass") for _ in range(7))
        assert taken < float(sys.argv[1]), f"importing takes {taken:.0f} ms"
        imported = f"imported in {taken:.0f} ms, "
    print(f"wheel: CPython {platform.python_version()}, {platform.machine()}: {imported}written and read", file=sys.stderr)


main()
