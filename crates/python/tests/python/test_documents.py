"""The examples of the documents are programs, and what they say is printed."""

import contextlib
import io
import os
import re
import tempfile
import unittest

import pyarrow
import pyarrow.parquet


class Documents(unittest.TestCase):
    def test_each_example_runs(self):
        root = os.environ["MARQUETRY_ROOT"]
        for document in ("docs/python.md", "crates/python/README.md"):
            with open(os.path.join(root, document), encoding="utf-8") as file:
                programs = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
            self.assertTrue(programs, document)
            with tempfile.TemporaryDirectory() as folder:
                here = os.getcwd()
                os.chdir(folder)
                try:
                    trips = pyarrow.table(
                        {
                            "id": list(range(1000)),
                            "fare": [i / 10 for i in range(1000)],
                            "city": [["Rome", "Oslo"][i % 2] for i in range(1000)],
                        }
                    )
                    pyarrow.parquet.write_table(trips, "trips.parquet")
                    names = {"__name__": "__main__"}
                    for number, program in enumerate(programs):
                        with self.subTest(f"{document}, program {number}"):
                            printed = io.StringIO()
                            with contextlib.redirect_stdout(printed):
                                exec(compile(program, document, "exec"), names)
                            # `print(…)  # what it prints`
                            wanted = re.findall(r"^\s*print\(.*\)  # (.*)$", program, re.M)
                            self.assertEqual(printed.getvalue().splitlines()[: len(wanted)], wanted)
                finally:
                    os.chdir(here)


if __name__ == "__main__":
    unittest.main()
