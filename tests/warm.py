"""`snakemake`, `synmask` and `python` without their start: a process that has imported what they import forks one for each call.

Each call is a process of its own, with the caller's words, folder, environment and files. It shares with others the
modules of other packages, and Python's order of sets; it imports modules of synmask itself, but for one, which knows the
normal forms of our files by their text. If the caller dies, so does it;
a SIGTERM or SIGCONT to the caller reaches it and what it has started.
"""

import contextlib
import gc
import importlib
import json
import logging
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import wait
from pathlib import Path

LOADED = (
    "snakemake.cli", "snakemake.profiles", "snakemake.report.html_reporter", "rich.live", "yte", "requests", "smart_open",
    "torch", "pandas", "scipy.stats", "matplotlib.pyplot", "sacrebleu.metrics", "sacremoses", "cyclopts", "langcodes",
    "synmask.pipeline.training",  # for fairseq
)  # fmt: skip
PROGRAMS = {"snakemake": "snakemake.cli", "synmask": "synmask.__main__"}
NORMALISE = "synmask.pipeline.workflow.normalise"
SOCKET = "socket"
CALLER = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({socket!r})
call = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(call).to_bytes(8)], [0, 1, 2])
server.sendall(call)
answer = server.makefile()
if group := int(answer.readline() or 0):
    for number in signal.SIGTERM, signal.SIGCONT:
        signal.signal(number, lambda number, frame: os.killpg(group, number))
sys.exit(int(answer.read() or 1))
"""


class Warm:
    """The process; `folder` holds the programs of PROGRAMS, and goes before others in PATH; `python` is the third's file.

    It runs under another command, if there are `words` of one.
    """

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.python = folder, folder / "python/python"
        self.python.parent.mkdir()
        for name in (*PROGRAMS, "python/python"):
            (folder / name).write_text(CALLER.format(python=sys.executable, socket=str(folder / SOCKET)))
            (folder / name).chmod(0o755)
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
        }
        environment.pop("PYTHONPATH", None)
        self.server = subprocess.Popen(
            [*words, sys.executable, __file__, folder], env=environment, stdout=subprocess.PIPE
        )
        self.server.stdout.readline()  # it listens

    def close(self) -> None:
        self.server.terminate()
        self.server.wait()


def serve(folder: Path) -> None:
    """Answer each call from a process of its own."""
    sys.path[:] = sys.path[1:]  # without this file's folder
    for name in LOADED:
        importlib.import_module(name)
    normalise = importlib.import_module(NORMALISE)
    for path in Path(__file__).parents[1].glob("src/synmask/**/*.py"):
        normalise.normalise_python(path.read_text())
    for name in [name for name in sys.modules if name.split(".")[0] == "synmask" and name != NORMALISE]:
        del sys.modules[name]
    gc.collect()
    gc.freeze()  # what is here is shared for as long as no one writes to it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what answers
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / SOCKET))
    server.listen()
    print("ready", flush=True)
    while True:
        caller, _ = server.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.close()
            return answer(caller)
        caller.close()


def answer(caller: socket.socket) -> None:
    """Run what is called in a fork of this process; send its process group, then its exit code; or kill it when the caller is gone."""
    head, files, *_ = socket.recv_fds(caller, 8, 3)
    call = json.loads(caller.makefile("rb").read(int.from_bytes(head)))
    # Its processes end like Python's own, but without taking all modules down, which would take most of their time.
    process = multiprocessing.get_context("fork").Process(target=run, args=(caller, *call, files))
    process.start()
    with contextlib.suppress(BrokenPipeError):
        caller.sendall(f"{process.pid}\n".encode())
    if caller in wait([process.sentinel, caller]):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    with contextlib.suppress(BrokenPipeError):
        code = process.exitcode
        caller.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def run(
    caller: socket.socket, words: list[str], folder: str, environment: dict[str, str], files: list[int]
) -> None:
    """Run the program as its script does, in a process like those that a shell starts.

    Snakemake starts jobs elsewhere by `sys.executable`: PYTHON_OF_JOBS, if it is set.
    """
    caller.close()
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.argv = words
    sys.executable = environment.get("PYTHON_OF_JOBS", sys.executable)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(":"))
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    try:
        program = PROGRAMS.get(Path(words[0]).name)
        code = importlib.import_module(program).main() if program else python(*words[1:])
    except SystemExit as end:
        code = end.code
    except Exception:  # multiprocessing would print it past the hook that words errors
        sys.excepthook(*sys.exc_info())
        code = 1
    logging.shutdown()  # now that no exception keeps a handler that was never finished
    sys.exit(code)


def python(first: str, *words: str) -> None:
    """Run `python -c CODE WORDS…`, `python -m MODULE WORDS…` or `python FILE WORDS…`; nothing runs when it ends (`atexit`)."""
    named = first in ("-c", "-m")
    sys.argv = [first, *words[named:]]
    sys.path.insert(0, "" if named else str(Path(first).resolve().parent))
    if first == "-m":
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
