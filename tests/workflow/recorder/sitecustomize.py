"""At the end of a rule's `synmask VERB …`, write down which of our functions Python has entered, by their files.

A function comes with the file of the nearest function of ours among its callers. Also which files of the project it
has read that it had not written.
"""

import ast
import builtins
import inspect
import json
import os
import sys
from importlib.machinery import SourceFileLoader
from multiprocessing.util import Finalize
from pathlib import Path

FOLDER = os.environ.get("SYNMASK_LOADED")


def _ours(code) -> bool:
    """Whether it is a function of ours: not the body of a module or of a class."""
    return "/src/synmask/" in code.co_filename and bool(code.co_flags & inspect.CO_OPTIMIZED)


class _Calling(ast.NodeTransformer):
    """Let each function and lambda call `entered_` first: Python's own hooks would double the time of all code."""

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.body.insert(ast.get_docstring(node) is not None, ast.Expr(_CALL))
        return node

    def visit_Lambda(self, node):
        self.generic_visit(node)
        node.body = ast.BoolOp(ast.Or(), [_CALL, node.body])
        return node


_CALL = ast.Call(ast.Name("entered_", ast.Load()), [], [])


def _compiled(loader, data, path, **_):
    tree = ast.parse(data)
    if "/src/synmask/" in path:
        tree = ast.fix_missing_locations(_Calling().visit(tree))
    return compile(tree, path, "exec", dont_inherit=True)


def _opened() -> dict[str, bool]:
    """The files of the project that are opened from now on, and whether the first time was to read."""
    found, project = {}, f"{os.getcwd()}/"

    def look(event, arguments):
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            writes = (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if path.startswith(project):
                found.setdefault(path, not writes)

    sys.addaudithook(look)
    return found


def _watch() -> None:
    calls, entered, opened = set(), set(), _opened()

    def enter():
        frame = sys._getframe(1)
        if not frame.f_back or (call := (frame.f_code, frame.f_back.f_code)) in calls:
            return
        calls.add(call)
        caller = frame.f_back
        while caller and not _ours(caller.f_code):
            caller = caller.f_back
        name = frame.f_code.co_qualname.partition(".<")[0]  # a lambda's is its function's
        entered.add((frame.f_code.co_filename, name, caller.f_code.co_filename if caller else ""))

    def record():
        read = sorted(path for path, reads in opened.items() if reads)
        found = {"words": sys.argv, "entered": sorted(entered), "read": read}
        Path(FOLDER, f"{os.getpid()}.json").write_text(json.dumps(found))

    Finalize(None, record, exitpriority=0)  # atexit is not for the processes of warm.py
    builtins.entered_ = enter
    SourceFileLoader.source_to_code = _compiled
    sys.pycache_prefix = f"{FOLDER}-bytecode"


if FOLDER and Path(sys.argv[0]).name == "synmask" and len(sys.argv) > 1:
    _watch()
