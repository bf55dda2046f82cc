"""The examples of the documents are programs, and what they say is printed."""

import ast
import contextlib
import inspect
import io
import os
import re
import tempfile
import unittest

import marquetry as mq
import marquetry.aio
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

    def test_options_of_the_document_are_there(self):
        with open(os.path.join(os.environ["MARQUETRY_ROOT"], "docs/python.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| (`.*?) \|", file.read().split("| options | of |")[1].split("\n\n")[0], re.M)
        options = [option for row in rows for option in re.findall(r"`([a-z_0-9]+)`", row)]
        self.assertGreater(len(options), 90)
        for option in options:
            with self.subTest(option), self.assertRaises(mq.Error) as raised:
                mq.copy("none.parquet", "none.csv", **{option: "?"})
            self.assertNotIn("no option", str(raised.exception))
        with self.assertRaisesRegex(mq.InvalidArgument, "no option"):
            mq.copy("none.parquet", "none.csv", kodec="?")

    def test_stubs_have_what_is_there(self):
        for module, stubs in ((mq, "__init__.pyi"), (mq.aio, "aio.pyi")):
            with open(os.path.join(os.environ["MARQUETRY_ROOT"], "crates/python/python/marquetry", stubs), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            declared = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))}
            # What only tells the types of others is not there.
            self.assertEqual(set(declared) - {"ArrowStream", "ArrowArray"}, set(module.__all__) - {"__version__"})
            for name, node in declared.items():
                there = getattr(module, name, None)
                with self.subTest(name):
                    if isinstance(node, ast.ClassDef):
                        if there is not None and not issubclass(there, (BaseException, tuple)):
                            members = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                            self.assertEqual({it for it in members if it[0] != "_"}, {it for it in vars(there) if it[0] != "_"})
                    elif there not in (mq.open, mq.diff):
                        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                        own = [it for it in inspect.signature(there).parameters.values() if it.kind != inspect.Parameter.VAR_KEYWORD]
                        self.assertEqual([it.arg for it in arguments], [it.name for it in own])


if __name__ == "__main__":
    unittest.main()
