"""Other people's software stays as it is: importing our modules changes no function or class of other packages."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
# Settings that their packages document.
SETTINGS = {
    "DetectorFactory.seed",
    "torch.backends.cudnn.allow_tf32",
    # of our own options, and of the modules of one model
    "options.__doc__",
    "module.__class__",
}
# The last of a set of functions that a loop of the package's went through.
BY_CHANCE = {"scipy.sparse._data.npfunc"}
# Imports the modules that it reads, then prints every function, class and property of other packages: its name, and
# where its code stands.
LOOK = """
import importlib, json, sys, types, warnings
from contextlib import suppress

warnings.simplefilter("ignore")

def described(value):
    code = getattr(value, "__code__", None)
    where = [code.co_filename, code.co_firstlineno] if isinstance(code, types.CodeType) else []
    return [type(value).__name__, getattr(value, "__qualname__", ""), *where]

def parts(owner):
    kinds = (property, classmethod, staticmethod)
    return {name: described(value) for name, value in [*vars(owner).items()] if callable(value) or isinstance(value, kinds)}

for name in json.load(sys.stdin):
    with suppress(Exception):  # a part of a package may lack what it needs
        importlib.import_module(name)
found = {}
for name, module in [*sys.modules.items()]:
    if name.split(".")[0] not in ("synmask", "snakemake_logger_plugin_synmask") and isinstance(module, types.ModuleType):
        found[name] = parts(module)
        classes = [value for value in [*vars(module).values()] if isinstance(value, type) and value.__module__ == name]
        found |= {f"{name}.{one.__qualname__}": parts(one) for one in classes}
print(json.dumps(found))
"""


def parts_with(warm, modules):
    """The functions and classes of other packages, in a process that has imported these modules.

    It is a fork of `warm`: some packages define functions in the order of a set, which forks share.
    """
    command = [warm.python, "-c", LOOK]
    done = subprocess.run(
        command, input=json.dumps([*modules]), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_logger_plugin_changes_no_process_that_imports_it():
    """Every Snakemake in the environment does; variables are set where the plugin is used."""
    state = "[dict(os.environ), gc.get_threshold(), sys.excepthook]"
    program = f"import gc, os, sys; before = {state}; import snakemake_logger_plugin_synmask; sys.exit(before != {state})"
    nowhere = os.environ | {"XDG_CACHE_HOME": "/proc/nowhere"}
    subprocess.run([sys.executable, "-c", program], env=nowhere, check=True)


def test_importing_our_modules_changes_no_other_package(warm):
    files = [path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py")]
    ours = [".".join(path.parts).removesuffix(".__init__") for path in files if path.stem != "__main__"]
    fairseq = "synmask.pipeline.training.compat_fairseq"  # without which fairseq cannot be imported
    others = [
        "snakemake.cli",
        "snakemake_executor_plugin_slurm",
    ]  # which our modules import when they are used
    with_ours = parts_with(warm, [*others, *ours])
    alone = parts_with(warm, [fairseq, *with_ours])
    assert {"snakemake.dag", "snakemake_executor_plugin_slurm", "fairseq.data", "sacremoses"} <= {*alone}
    changed = [
        f"{owner}.{name}"
        for owner in with_ours.keys() & alone.keys()
        for name in with_ours[owner].keys() & alone[owner].keys()
        if with_ours[owner][name] != alone[owner][name]
    ]
    assert {*changed} <= BY_CHANCE


def changes(tree):
    """The attributes that a file sets of what it imports from other packages, and private ones of other objects."""
    others = {"mock"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            ours = isinstance(node, ast.ImportFrom) and node.module.startswith("synmask")
            names = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            others |= set() if ours else names
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("mock.patch", "mock.patch.object"):
            yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            root = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            name = root.id if isinstance(root, ast.Name) else ""
            private = node.attr.startswith("_") and name not in ("self", "leasing")  # a function of ours
            if name in others or private:
                yield ast.unparse(node)


def test_attributes_of_others_are_set_in_the_files_for_that_alone():
    files = [path for path in SOURCE.rglob("*.py") if not path.stem.startswith("compat_")]
    found = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in files
        for name in changes(ast.parse(path.read_text()))
        if name not in SETTINGS
    }
    assert not found
