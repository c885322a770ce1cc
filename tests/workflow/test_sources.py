"""The code behind a step: all that can change its result, and none of the words around it."""

import ast
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from synmask.pipeline import workflow
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.errors import UserError
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.normalise import normalise_python, normalise_text
from synmask.pipeline.workflow.sources import (
    BY_NAME,
    COUNTED,
    IGNORED,
    OPTIONAL,
    ROOT,
    definitions,
    digest,
    imports,
    is_ignored,
    path_of,
    sources,
)

PROJECT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(PROJECT) for path in (PROJECT / ROOT).rglob("*.py"))
MUTATED = ("text", "subwords", "score-run", "parseval")


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(PROJECT)


@pytest.fixture(scope="module")
def jobs():
    return Jobs(load(read_all(project_files(PROJECT))))


def behind(jobs, verb, **wildcards):
    """Source files of a job without folder and ending, such as translation/train; others as they are."""
    files = sources(verb, jobs(Wildcards(fromdict=wildcards)).optional_modules())
    return {file.removeprefix(f"{ROOT}/").removesuffix(".py") for file in files}


def of(text):
    return normalise_python(ast.parse(text), is_ignored, {"verb"})


def rules():
    """Rule → the verb whose sources it has, and the one that it runs."""
    for path in sorted(PROJECT.glob("workflow/rules/*.smk")):
        for name, text in re.findall(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", path.read_text(), re.S | re.M):
            code, shell = (
                re.search(r'code=code\("([\w-]+)"', text),
                re.search(r"synmask ([\w-]+) ", text),
            )
            if code or shell:
                yield name, code and code[1], shell and shell[1]


def without_sources(verb):
    return verb in ("download", "jar")  # what they fetch is known by its checksum


@pytest.mark.parametrize(("rule", "code", "shell"), [*rules()])
def test_a_rule_has_the_sources_of_the_verb_that_it_runs(rule, code, shell):
    assert code == (None if without_sources(shell) else shell)
    assert without_sources(shell) or sources(shell)


def test_all_rules_are_seen():
    assert len([*rules()]) > 30


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Work on a copy of the sources; a function that says a step's digest now."""
    shutil.copytree(ROOT, tmp_path / ROOT, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    monkeypatch.chdir(tmp_path)

    def now(verb):
        for kept in ("checksum", "digest", "sources", "_files", "_read"):
            getattr(workflow.sources, kept).cache_clear()
        return digest(verb)

    yield now
    monkeypatch.undo()
    now("text")


def test_a_digest_changes_with_the_code_of_its_sources_alone(copied):
    file = Path(ROOT, "pipeline/training/loop.py")
    train, score = copied("train"), copied("score-run")
    text = file.read_text()
    file.write_text(text + "# changed\n")
    assert copied("train") == train
    file.write_text(text + "CHANGED = 1\n")
    assert copied("train") != train
    assert copied("score-run") == score


@pytest.mark.parametrize("file", FILES, ids=str)
def test_words_and_layout_are_no_code(file):
    """Of each file: `ast.unparse` writes it without comments and in another layout."""
    tree = ast.parse(file.read_text())
    before = of(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body[0].value.value += " And more."
        if isinstance(node, ast.arg) and node.annotation:
            node.annotation = ast.Name("object")
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            reworded = [
                isinstance(word, ast.Constant) and isinstance(word.value, str) for word in node.exc.args
            ]
            node.exc.args = [
                ast.Constant("reworded") if other else word
                for word, other in zip(node.exc.args, reworded, strict=True)
            ]
    assert of(ast.unparse(tree)) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"""Doc."""\nx = 1', "x = 1  # a comment"),
        ("def f(a: int) -> str:\n    return a", "def f(a):\n    return (\n        a\n    )"),
        ("x: int = 1", "x = 1"),
        ("from typing import Any\nx = 1", "x = 1"),
        ("from synmask.pipeline.errors import TryAgain, UserError", "from synmask.pipeline.errors import UserError"),
        ("if TYPE_CHECKING:\n    import pandas\nx = 1", "x = 1"),
        ('def f(x):\n    raise UserError(f"{x}: bad")', 'def f(x):\n    raise UserError("no")'),
        ('def f(x):\n    why = f"bad {x}"\n    raise E(f"{why}!")', 'def f(x):\n    raise E("bad")'),
        ('def f(x):\n    why = "a" if x else "b"\n    raise E(f"{why}!")', 'def f(x):\n    why = "c" if x else "d"\n    raise E(f"{why}!")'),
        ('class A:\n    x: int = option(1, "one", gt=0)', 'class A:\n    x: int = option(1, "other words", gt=0)'),
        ('print("one", file=sys.stderr)', 'print(f"another {1}", file=sys.stderr)'),
        ("class A(E):\n    pass", 'class A(E):\n    """An error."""'),
        ("if TYPE_CHECKING:\n    x = 1\nelse:\n    y = 2", "y = 2"),
        ("def f(a: int): pass\ndef verb(a: int): pass", "def f(a: str): pass\ndef verb(a: int): pass"),
    ],
)  # fmt: skip
def test_what_is_equal(one, other):
    assert of(one) == of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = a + b", "x = a - b"),
        ("x = 'a'", "x = 'b'"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("from synmask.pipeline.cpu.bf16 import lacking as a", "from synmask.pipeline.cpu.bf16 import product as a"),
        ("def f(a, b=1): return a", "def f(a, b=2): return a"),
        ("print('one')", "print('two')"),
        ("class A:\n    x: ClassVar[int] = 1", "class A:\n    x: int = 1"),
        ('class A:\n    x: "ClassVar[int]" = 1', 'class A:\n    x: "int" = 1'),
        ("class A(BaseModel):\n    x: int", "class A(BaseModel):\n    x: float"),
        ("def verb(*, a: int): pass", "def verb(*, a: float): pass"),
        ("from synmask.pipeline.files import read_json as read", "from synmask.pipeline.files import read_lines as read"),
        ("import synmask.pipeline.files as x", "import synmask.pipeline.stamps as x"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    x = 1", "if TYPE_CHECKING:\n    pass\nelse:\n    x = 2"),
        ("class A:\n    x: int\n    y: int", "class A:\n    y: int\n    x: int"),
        ('class A:\n    x: int = option(1, "one", gt=0)', 'class A:\n    x: int = option(1, "one", gt=1)'),
        ('class A:\n    x: int = option(1, "one")', 'class A:\n    x: int = option(2, "one")'),
        ('def f(x):\n    y = "a" if x else "b"\n    return y', 'def f(x):\n    y = "a" if x else "c"\n    return y'),
        ("def f():\n    global x\n    x = 'a'", "def f():\n    global x\n    x = 'b'"),
        ("def f():\n    class A:\n        x = 'a'\n    return A", "def f():\n    class A:\n        x = 'b'\n    return A"),
        ("raise E(1)", "raise E(2)"),
        ("x = None", "x = True"),
        ("f(*a)", "f(**a)"),
        ("x = -1", "x = 1"),
    ],
)  # fmt: skip
def test_what_is_different(one, other):
    assert of(one) != of(other)


def test_comments_and_layout_of_other_languages_are_no_code():
    one = normalise_text(
        '#include <a>\n#define X 1\nint f(int a) { return a+1; } // one\nauto s = "a // b";\n', ".cpp"
    )
    other = (
        '#include <a>\n#define X 1\n/* two\n*/ int f( int a )\n{\n  return a + 1;\n}\nauto s = "a // b";\n'
    )
    assert normalise_text(other, ".cpp") == one
    assert normalise_text(other.replace("a + 1", "a - 1"), ".cpp") != one
    assert normalise_text(other.replace("a // b", "a // c"), ".cpp") != one
    assert normalise_text(other.replace("X 1\n", "X 1 "), ".cpp") != one  # a directive ends with its line
    assert normalise_text("a\n", ".txt") != normalise_text("a\n\n", ".txt")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("// note \\\nx = 1;\n", "// note\nx = 1;\n"),  # the first comments the second line out
        ("  #define X 1\nint a;\n", "  #define X 1 int a;\n"),
        ("#if A\n  # define X \\\n 1\n#endif\n", "#if A\n  # define X\n 1\n#endif\n"),
    ],
)
def test_lines_that_end_in_a_backslash_and_indented_directives_count(one, other):
    assert normalise_text(one, ".cpp") != normalise_text(other, ".cpp")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("from .beam import search", "a relative import"),
        ("from . import beam", "a relative import"),
        ("from synmask import dependency_distribution", "import dependency_distribution from the module"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from . import beam", "a relative import"),
    ],
)
def test_imports_that_hide_what_counts_are_refused(copied, line, words):
    file = Path(ROOT, "pipeline/text/tokenise.py")
    file.write_text(f"{file.read_text()}\n\n{line}\n")
    with pytest.raises(UserError, match=rf"tokenise\.py, line \d+: {words}"):
        copied("tokenise")


def test_the_else_of_type_checking_is_imported(copied):
    file = Path(ROOT, "pipeline/text/tokenise.py")
    branch = "if TYPE_CHECKING:\n    pass\nelse:\n    from synmask.pipeline.text import gpt2"
    file.write_text(f"{file.read_text()}\n\n{branch}\n")
    copied("tokenise")
    assert str(ROOT / "pipeline/text/gpt2.py") in sources("tokenise")


DYNAMIC = {"import_module", "__import__", "exec", "get_annotations", "get_type_hints", "__annotations__"}


def test_no_source_imports_or_reads_annotations_in_another_way():
    """A digest sees neither; `import_module` stands where `BY_NAME` knows it."""
    for file in FILES:
        module = "synmask." + ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if is_ignored(module.removesuffix(".__init__")) or module in BY_NAME or module == "synmask.__init__":
            continue
        tree = ast.parse((PROJECT / file).read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & DYNAMIC, file
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert "__getattr__" not in functions, file


def test_types_that_check_values_stand_where_they_are_used():
    """Fields' annotations count in the file of their class: `TypeAdapter` of another file's class hides them."""
    for file in FILES:
        module = "synmask." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse((PROJECT / file).read_text())
        imported = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and is_ignored(node.module or "")
            for name in node.names
        }
        for node in ast.walk(tree) if not is_ignored(module) else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "TypeAdapter":
                used = {name.id for name in ast.walk(node.args[0]) if isinstance(name, ast.Name)}
                assert not used & imported, file


def test_no_raw_strings_in_cpp():
    """normalise.TOKEN does not know them."""
    assert not [path for path in ROOT.rglob("*.cpp") if 'R"' in path.read_text()]


OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
             ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
             ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.BitOr: ast.BitAnd}  # fmt: skip


def places(node):
    """Numbers and operators below a node as (node, name of the part, place in it), but in types and in words."""
    if isinstance(node, ast.Raise | ast.JoinedStr) or (
        isinstance(node, ast.Expr) and "stderr" in ast.unparse(node)
    ):
        return
    for name, part in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        parts = part if isinstance(part, list) else [part]
        for place, one in enumerate(parts):
            following = parts[place + 1] if place + 1 < len(parts) else None
            if isinstance(one, ast.Assign) and isinstance(following, ast.Raise):
                continue  # a word of that error
            number = isinstance(one, ast.Constant) and type(one.value) in (int, float)
            if number or type(one) in OPERATORS:
                yield node, name, place if isinstance(part, list) else None
            elif isinstance(one, ast.AST):
                yield from places(one)


def mutated(tree, seed):
    """A syntax tree with another number or operator somewhere, and the place; None if it has neither."""
    tree = copy.deepcopy(tree)
    found = [*places(tree)]
    if not found:
        return None
    node, name, place = random.Random(seed).choice(found)
    old = getattr(node, name) if place is None else getattr(node, name)[place]
    new = ast.Constant(2 * old.value + 1) if isinstance(old, ast.Constant) else OPERATORS[type(old)]()
    if place is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[place] = new
    return tree, f"{ast.unparse(node)}"


@pytest.mark.parametrize("verb", MUTATED)
def test_another_number_or_operator_in_any_source_is_another_step(verb, copied):
    seed = random.randrange(10**6)
    before = copied(verb)
    changed = 0
    partly = {str(path_of(module)) for module in COUNTED}  # most of these cannot change a result
    for file in map(Path, sorted({*sources(verb)} - partly)):
        text = file.read_text()
        if found := mutated(ast.parse(text), seed):
            file.write_text(ast.unparse(found[0]))
            assert copied(verb) != before, f"{file}, seed {seed}: {found[1]}"
            file.write_text(text)
            changed += 1
    print(f"{verb}: {changed} files with another number or operator, seed {seed}")
    assert changed >= 2
    assert copied(verb) == before


MOST_FILES = {
    "`text`": 14,
    "`subwords`": 11,
    "`train` (transformer)": 36,
    "`train` (grammar)": 45,
    "`decode`": 38,
    "`score-run`": 12,
    "`table`": 20,
}


def test_few_files_stand_behind_a_step_as_many_as_the_page_says(jobs):
    page = (PROJECT / "docs/workflow.md").read_text().partition("Files behind a step:")[2]
    names, _, counts = ([cell.strip() for cell in row.split("|")[1:-1]] for row in page.split("\n")[2:5])
    assert names == [*MOST_FILES]
    for name, count in zip(names, map(int, counts), strict=True):
        verb, system = re.fullmatch(r"`([\w-]+)`(?: \((\w+)\))?", name).groups()
        wildcards = {"corpus": "demo", "language": "de"} | ({"system": system} if system else {})
        assert len(behind(jobs, verb, **wildcards)) == count <= MOST_FILES[name], name


def test_what_does_not_count_is_there_and_computes_nothing():
    rooms = (
        "evaluation",
        "text",
        "syntax",
        "reporting",
        "corpora",
        "search",
        "translation",
        "roberta",
        "export",
    )
    for name, reason in IGNORED.items():
        assert reason
        assert not {*name.split(".")} & {*rooms, "guides", "options", "induction"}, name
        files = [path_of(name)]
        if files[0].name == "__init__.py":
            files = sorted(files[0].parent.rglob("*.py"))
        if name.rpartition(".")[2] in ("cli", "workflow"):
            continue  # they plan and start what the rooms do
        for file in files:
            found = re.findall(r"^from synmask\.pipeline\.(\w+)", file.read_text(), re.M)
            assert not {*found} & {*rooms}, file


def test_what_counts_of_ignored_modules_is_there():
    for module, names in COUNTED.items():
        assert is_ignored(module)
        assert names <= {name for name, _ in definitions(ast.parse(path_of(module).read_text()).body)}, module


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("config/sections", "return self.guide_options.mixes(", "return not self.guide_options.mixes(", {"train", "average"}),
        ("config/sections", "return self.tokeniser[language]", "return 'none'", {"text", "train", "average"}),
        ("config/sections", "the size of an update", "other words", set()),
        ("files", 'removesuffix("\\r")', 'rstrip()', {"text", "train", "average", "score-run", "table"}),
        ("disk", "fsync(", "fdatasync(", set()),
        ("runs", 'AVERAGE = "average"', 'AVERAGE = "mean"', {"table"}),
        ("config/published", 'split(" ± ")[0]', 'split(" ± ")[-1]', {"table"}),
        ("config/base", 'TESTED = ("sacrebleu", ', "TESTED = (", {"table"}),
    ],
)  # fmt: skip
def test_what_computes_in_ignored_modules_counts(copied, file, old, new, changed):
    verbs = ("text", "train", "average", "score-run", "table")
    before = {verb: copied(verb) for verb in verbs}
    path = Path(ROOT, f"pipeline/{file}.py")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert {verb for verb in verbs if copied(verb) != before[verb]} >= changed
    assert changed or all(copied(verb) == before[verb] for verb in verbs)


def test_what_only_some_jobs_use_is_imported_where_it_should_be():
    for module, optional in OPTIONAL.items():
        assert optional <= {*imports(module)}, module
    for loader, package in BY_NAME.items():
        assert "import_module" in path_of(loader).read_text()
        assert path_of(package)


def test_a_system_has_its_own_guide_alone(jobs):
    plain, grammar, pascal = (
        behind(jobs, "train", corpus="demo", system=name) for name in ("transformer", "grammar", "pascal")
    )
    modules = ("distribution", "in_pytorch", "kernel.cpp", "operators", "parser")
    induction = {f"induction/{name}" for name in modules}
    assert grammar - plain == {
        "guides/grammar",
        "guides/attention",
        "options/grammar",
        "pipeline/text/labels",
        *induction,
    }
    assert pascal - plain >= {"guides/pascal", "guides/attention", "pipeline/syntax/annotations"}
    assert {name for name in plain if name.startswith(("guides/", "induction/"))} == {"guides/__init__"}


def test_the_search_counts_for_trainings_that_validate_by_bleu(jobs):
    plain = {"corpus": "demo", "system": "transformer"}
    assert not [name for name in behind(jobs, "train", **plain) if "/search/" in name or "bleu" in name]
    corpus = jobs.config.corpora["demo"]
    training = corpus.training.model_copy(update={"validate_bleu": 1})
    changed = corpus.model_copy(update={"training": training})
    config = jobs.config.model_copy(update={"corpora": {**jobs.config.corpora, "demo": changed}})
    found = behind(Jobs(config), "train", **plain)
    assert {
        "pipeline/translation/valid_bleu",
        "pipeline/translation/beam",
        "pipeline/search/kernel.cpp",
    } <= found


def test_external_tokenisers_count_where_they_run(jobs):
    assert "pipeline/text/segment" not in behind(jobs, "text", corpus="demo", source="de", target="en")
    assert "pipeline/text/segment" in behind(jobs, "text", corpus="nc11", source="de", target="en")


def test_a_system_that_reads_templates_has_its_own_model_and_what_predicts_them_has_none(jobs):
    run, plain = (
        Wildcards(fromdict={"corpus": "demo", "system": system}) for system in ("st-nmt", "transformer")
    )
    assert jobs(run).code("train", guided=False) == jobs(plain).code("train")
    for verb in ("train", "average", "decode"):
        reads = [
            system
            for system in ("st-nmt", "transformer")
            if "pipeline/translation/st_nmt" in behind(jobs, verb, corpus="demo", system=system)
        ]
        assert reads == ["st-nmt"], verb


def test_scores_do_not_depend_on_models(jobs):
    found = behind(jobs, "score-run", corpus="demo", system="grammar")
    assert {"pipeline/evaluation/bleu", "pipeline/evaluation/sentences"} <= found
    assert not [
        name for name in found if name.startswith(("guides/", "pipeline/translation/", "pipeline/training/"))
    ]


def test_a_corpus_has_its_own_archives_alone(jobs):
    archives = {f"pipeline/corpora/{name}" for name in ("aspec", "iwslt14", "nc11")}
    assert behind(jobs, "prepare", corpus="iwslt14") & archives == {"pipeline/corpora/iwslt14"}


def test_other_files_are_sources_of_what_reads_them(jobs):
    assert "pipeline/syntax/Parse.java" in behind(jobs, "constituency")
    page = {f"pipeline/reporting/page/page.{kind}" for kind in ("html", "css", "js")}
    assert page | {"pipeline/reporting/page/tree_page.js"} <= behind(jobs, "report")
    everything = {file for _, code, _ in rules() if code for file in sources(code)}
    everything |= {
        *sources(
            "train", jobs(Wildcards(fromdict={"corpus": "demo", "system": "grammar"})).optional_modules()
        )
    }
    others = {str(path) for kind in ("cpp", "java", "html", "css", "js") for path in ROOT.rglob(f"*.{kind}")}
    others -= {str(ROOT / "pipeline/reporting/page/compare.html")}  # of a verb for people
    assert len(others) > 10
    assert others <= everything


def test_unknown_verbs_and_modules_are_faults():
    with pytest.raises(ValueError, match="trian: no such verb"):
        sources("trian")
    with pytest.raises(ValueError, match=r"synmask\.guides\.no: no such module"):
        sources("train", frozenset({"synmask.guides.no"}))


@pytest.mark.xdist_group("demo")
def test_the_steps_of_the_demo_enter_their_sources_alone(built, check_loaded):
    assert len(check_loaded(built)) >= 15  # all that the demo runs, whatever tests ran before


@pytest.mark.xdist_group("demo")
def test_the_steps_of_the_demo_read_what_their_rules_name(built, check_read):
    verbs = check_read(built, "results/report.html")
    assert verbs >= {"train", "average", "decode", "parse", "score-run", "table", "report"}


def test_the_code_of_a_metric_of_the_users_counts(tmp_path, monkeypatch, jobs):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "src").symlink_to(PROJECT / "src")

    def now(code, metric="counted.f"):
        (tmp_path / "counted.py").write_text(code)
        workflow.sources.checksum.cache_clear()
        return jobs(Wildcards(fromdict={"metric": metric})).function()

    first = now("def f(h, r, s):\n    return [1]\n")
    assert now("from . import x\ndef f(h, r, s):\n    return [1]\n") != first
    assert now("def f(h: list, r, s):\n    # one\n    return [ 1 ]\n") == first
    assert now("def f(h, r, s):\n    return [2]\n") != first
    assert now("", metric="ter") == ""


NOTES = {"code", "command", "commit", "run", "sha256", "training", "versions"}  # of a record: no results
EDITED_STEP = "score-run"


def edited(function, draw):
    """Edit a function somewhere: a number, an operator, a condition, or what it returns; False: nothing fits."""
    nodes = [*ast.walk(function)]
    for node in draw.sample(nodes, len(nodes)):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            node.value = 2 * node.value + 1
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
            node.op = OPERATORS[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            node.ops[0] = OPERATORS[type(node.ops[0])]()
        elif isinstance(node, ast.If | ast.IfExp):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.Return) and node.value:
            node.value = ast.Constant(None)
        else:
            continue
        return True
    return False


def results_in(folder):
    """Each file of results/ but logs → its contents, without notes."""
    return {path: _result(path) for path in folder.glob("results/**/*.*") if "logs" not in path.parts}


def _result(path):
    if path.suffix == ".json" and isinstance(values := json.loads(path.read_bytes()), dict):
        return {key: value for key, value in values.items() if key not in NOTES}
    return path.read_bytes()


def harmless(entered):
    """Of the functions that a step entered those that do not count, by their files below ROOT."""
    for file, name, _ in entered:
        file = Path(file.rpartition(f"{ROOT}/")[2])
        module = ".".join((ROOT.name, *file.with_suffix("").parts))
        if is_ignored(module) and name not in COUNTED.get(module, ()) and "config" not in file.parts:
            yield file, name


@pytest.mark.xdist_group("demo")
def test_an_edit_of_an_ignored_function_leaves_a_steps_result(built, tmp_path):
    """The step fails, or gives the same."""
    project = copy.copy(built)
    project.folder = tmp_path / "copy"
    shutil.copytree(built.folder, project.folder, ignore=shutil.ignore_patterns(".snakemake"))
    traces = (json.loads(path.read_text()) for path in sorted(built.loaded.iterdir()))
    step = next(trace for trace in traces if trace["words"][1] == EDITED_STEP)
    before, environment = results_in(project.folder), project.environment(warm=True)
    del environment["SYNMASK_LOADED"]
    command = ["synmask", *step["words"][1:]]
    kwargs = {"cwd": project.folder, "env": environment, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=True, **kwargs)
    assert results_in(project.folder) == before
    draw = random.Random(1)
    for file, name in sorted({*harmless(step["entered"])}):
        path = project.folder / ROOT / file
        text = path.read_text()
        tree = ast.parse(text)
        function = next((node for other, node in definitions(tree.body) if other == name), None)
        if function and edited(function, draw):
            path.write_text(ast.unparse(tree))
            with suppress(subprocess.TimeoutExpired):  # it waits for ever, which gives no other result either
                subprocess.run(command, check=False, timeout=20, **kwargs)
            after = {path: result for path, result in results_in(project.folder).items() if path in before}
            assert after == before, f"{file} {name}: {ast.unparse(function)}"
            path.write_text(text)


def test_the_users_own_files_count_by_their_content(tmp_path):
    file = tmp_path / "train.de"
    file.write_text("eins\n")
    before = workflow.sources.contents([str(file)])
    old = file.stat().st_mtime_ns
    file.write_text("zwei\n")
    os.utime(file, ns=(old - 10**10, old - 10**10))  # unpacked with its dates
    assert workflow.sources.contents([str(file)]) != before
    assert workflow.sources.contents([str(tmp_path)]) == workflow.sources.contents([str(file)])
    assert workflow.sources.contents([str(tmp_path / "nothing")]) == ""
