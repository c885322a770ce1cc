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
from synmask.pipeline.workflow.normalise import IGNORED, is_ignored
from synmask.pipeline.workflow.sources import (
    BY_NAME,
    OPTIONAL,
    ROOT,
    digest,
    digest_of_function,
    imports,
    path_of,
    sources,
)

PROJECT = Path(__file__).parents[2]
FILES = sorted(path.relative_to(PROJECT) for path in (PROJECT / ROOT).rglob("*.py"))


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


def rules():
    """Rule → the verb whose sources it has, and the one that it runs."""
    for path in sorted(PROJECT.glob("workflow/rules/*.smk")):
        for name, text in re.findall(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", path.read_text(), re.S | re.M):
            code, shell = re.search(r'code=code\("([\w-]+)"', text), re.search(r"synmask ([\w-]+) ", text)
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


OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
             ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
             ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.BitOr: ast.BitAnd}  # fmt: skip


def computing(node):
    """A node and those below it, without types and words."""
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.Expr) and "stderr" in ast.unparse(node):
        return
    yield node
    for name, part in ast.iter_fields(node):
        children = part if isinstance(part, list) else [part]
        for child, following in zip(children, [*children[1:], None], strict=False):
            is_word = isinstance(child, ast.Assign) and isinstance(following, ast.Raise)
            is_type = name in ("annotation", "returns", "decorator_list", "bases")
            if isinstance(child, ast.AST) and not is_word and not is_type:
                yield from computing(child)


def edited(tree, draw, *, flow=False):
    """Edit a number or an operator below, with `flow` also a condition or what is returned; whether one is there."""
    nodes = [*computing(tree)]
    for node in draw.sample(nodes, len(nodes)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            node.value = 2 * node.value + 1
        elif type(getattr(node, "op", None)) in OPERATORS:
            node.op = OPERATORS[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            node.ops[0] = OPERATORS[type(node.ops[0])]()
        elif flow and isinstance(node, ast.If | ast.IfExp):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        elif flow and isinstance(node, ast.Return) and node.value:
            node.value = ast.Constant(None)
        else:
            continue
        return True
    return False


@pytest.mark.parametrize("verb", ["text", "subwords", "score-run", "parseval"])
def test_another_number_or_operator_in_any_source_is_another_step(verb, copied):
    seed = random.randrange(10**6)
    before, changed = copied(verb), 0
    for file in map(Path, sources(verb)):
        text = file.read_text()
        if edited(tree := ast.parse(text), random.Random(seed)):
            file.write_text(ast.unparse(tree))
            assert copied(verb) != before, f"{file}, seed {seed}: {ast.unparse(tree)}"
            file.write_text(text)
            changed += 1
    assert changed >= 2
    assert copied(verb) == before


@pytest.mark.parametrize(
    ("verb", "system", "most"),
    [
        ("text", None, 11),
        ("subwords", None, 7),
        ("train", "transformer", 32),
        ("train", "grammar", 42),
        ("decode", None, 42),
        ("score-run", None, 6),
        ("table", None, 18),
    ],
)
def test_few_files_stand_behind_a_step(jobs, verb, system, most):
    wildcards = {"corpus": "demo", "language": "de"} | ({"system": system} if system else {})
    assert 4 < len(behind(jobs, verb, **wildcards)) <= most


def test_what_does_not_count_is_there_and_computes_nothing():
    """It imports none of the rooms that compute, but what plans and starts these."""
    rooms = {
        "corpora",
        "evaluation",
        "export",
        "reporting",
        "roberta",
        "search",
        "syntax",
        "text",
        "translation",
    }
    for name, reason in IGNORED.items():
        assert reason
        assert not {*name.split(".")} & {*rooms, "guides", "options", "induction"}, name
        path = path_of(name)
        for file in path.parent.rglob("*.py") if path.name == "__init__.py" else [path]:
            used = {*re.findall(r"^from synmask\.pipeline\.(\w+)", file.read_text(), re.M)}
            assert name.endswith((".cli", ".workflow")) or not used & rooms, file


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("training/loop", "def run_training(", "CHANGED = 1\n\n\ndef run_training(", {"train"}),
        ("guidance", "return self.guide_options.mixes(", "return not self.guide_options.mixes(", {"train", "average"}),
        ("guidance", "how syntax guides attention", "other words", set()),
        ("tokens", "return self.tokeniser[language]", "return 'none'", {"text", "average"}),
        ("config/sections", "the size of an update", "other words", set()),
        ("files", 'removesuffix("\\r")', 'rstrip()', {"text", "train", "average", "score-run", "table"}),
        ("disk", "fsync(", "fdatasync(", set()),
        ("display", '"→".join(', '"-".join(', {"table"}),
        ("tasks", 'AVERAGE = "average"', 'AVERAGE = "mean"', {"table"}),
        ("published", 'split(" ± ")[0]', 'split(" ± ")[-1]', {"table"}),
        ("metric_names", 'TESTED = ("sacrebleu", ', "TESTED = (", {"table"}),
    ],
)  # fmt: skip
def test_an_edit_counts_where_its_module_is_imported(copied, file, old, new, changed):
    verbs = ("text", "train", "average", "score-run", "table")
    before = {verb: copied(verb) for verb in verbs}
    path = Path(ROOT, f"pipeline/{file}.py")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert {verb for verb in verbs if copied(verb) != before[verb]} == changed


def test_what_only_some_jobs_use_is_imported_where_it_should_be():
    for module, optional in OPTIONAL.items():
        assert optional <= {*imports(module)}, module
    for loader, package in BY_NAME.items():
        assert "import_module" in path_of(loader).read_text()
        assert path_of(package)


PARTS = r"guides/\w|induction/|options/\w|pipeline/(search/|syntax/|text/(labels|segment)|translation/(st_nmt|valid_bleu))"
PLAIN = {"guides/__init__", "options/__init__"}
ATTENTION, LABELS = {"guides/attention"}, {"pipeline/text/labels"}
INDUCTION = {
    f"induction/{name}"
    for name in ("distribution", "in_pytorch", "in_triton", "kernel.cpp", "operators", "parser")
}
HEADS = {f"pipeline/syntax/{name}" for name in ("annotations", "tree", "treebank")}
TEMPLATES = {"pipeline/translation/st_nmt"}


@pytest.mark.parametrize(
    ("verb", "wildcards", "pattern", "files"),
    [
        ("train", {"system": "transformer"}, PARTS, PLAIN),
        ("train", {"system": "grammar"}, PARTS, PLAIN | {"guides/grammar", "options/grammar"} | ATTENTION | LABELS | INDUCTION),
        ("train", {"system": "pascal"}, PARTS, PLAIN | {"guides/pascal", "options/pascal"} | ATTENTION | LABELS | HEADS),
        ("train", {"system": "st-nmt"}, PARTS, PLAIN | TEMPLATES),
        ("average", {"system": "transformer"}, r".*st_nmt", set()),
        ("average", {"system": "st-nmt"}, r".*st_nmt", TEMPLATES),
        ("decode", {"system": "transformer"}, r".*st_nmt", set()),
        ("decode", {"system": "st-nmt"}, r".*st_nmt", TEMPLATES),
        ("score-run", {"system": "grammar"}, r"guides/|pipeline/(translation|training|evaluation)/", {f"pipeline/evaluation/{name}" for name in ("bleu", "score_run", "sentences")}),
        ("text", {"source": "de", "target": "en"}, r".*segment", set()),
        ("text", {"corpus": "nc11", "source": "de", "target": "en"}, r".*segment", {"pipeline/text/segment"}),
        ("prepare", {"corpus": "iwslt14"}, r".*/(aspec|iwslt14|nc11)", {"pipeline/corpora/iwslt14"}),
        ("constituency", {}, r".*\.java", {"pipeline/syntax/Parse.java"}),
        ("report", {}, r".*/(tree_)?page\.(html|css|js)", {f"pipeline/reporting/page/{name}" for name in ("page.html", "page.css", "page.js", "tree_page.js")}),
    ],
)  # fmt: skip
def test_a_job_has_the_parts_that_it_uses_alone(jobs, verb, wildcards, pattern, files):
    found = behind(jobs, verb, **{"corpus": "demo"} | wildcards)
    assert {file for file in found if re.match(pattern, file)} == files


def test_what_predicts_templates_has_no_guide(jobs):
    run, plain = (
        Wildcards(fromdict={"corpus": "demo", "system": name}) for name in ("st-nmt", "transformer")
    )
    assert jobs(run).code("train", guided=False) == jobs(plain).code("train")


def test_the_search_counts_for_trainings_that_validate_by_bleu(jobs):
    corpus = jobs.config.corpora["demo"]
    training = corpus.training.model_copy(update={"validate_bleu": 1})
    corpora = jobs.config.corpora | {"demo": corpus.model_copy(update={"training": training})}
    found = behind(
        Jobs(jobs.config.model_copy(update={"corpora": corpora})),
        "train",
        corpus="demo",
        system="transformer",
    )
    assert {
        f"pipeline/{name}" for name in ("translation/valid_bleu", "translation/beam", "search/kernel.cpp")
    } <= found


def test_other_files_are_sources_of_what_reads_them(jobs):
    everything = {file for _, code, _ in rules() if code for file in sources(code)}
    grammar = jobs(Wildcards(fromdict={"corpus": "demo", "system": "grammar"}))
    everything |= {*sources("train", grammar.optional_modules())}
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
    assert len(check_loaded(built)) >= 14  # all that the demo runs, whatever tests ran before


@pytest.mark.xdist_group("demo")
def test_the_steps_of_the_demo_read_what_their_rules_name(built, check_read):
    verbs = check_read(built, "results/report.html")
    assert verbs >= {"train", "average", "decode", "parse", "score-run", "table", "report"}


def test_the_code_of_a_metric_of_the_users_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "src").symlink_to(PROJECT / "src")

    def now(code, metric="counted.f"):
        (tmp_path / "counted.py").write_text(code)
        workflow.sources.checksum.cache_clear()
        workflow.sources._read.cache_clear()
        return digest_of_function(metric)

    first = now("def f(h, r, s):\n    return [1]\n")
    assert now("from . import x\ndef f(h, r, s):\n    return [1]\n") != first
    assert now("def f(h: list, r, s):\n    # one\n    return [ 1 ]\n") == first
    assert now("def f(h, r, s):\n    return [2]\n") != first
    assert now("", metric="ter") == ""


NOTES = {"code", "command", "commit", "run", "sha256", "training", "versions"}  # of a record: no results


def results_in(folder):
    """Each file of results/ but logs → its contents, without notes."""
    return {path: _result(path) for path in folder.glob("results/**/*.*") if "logs" not in path.parts}


def _result(path):
    if path.suffix == ".json" and isinstance(values := json.loads(path.read_bytes()), dict):
        return {key: value for key, value in values.items() if key not in NOTES}
    return path.read_bytes()


def ignored(entered):
    """Of the functions that a step entered those of modules in `IGNORED`, by their files below ROOT."""
    for file, name, _ in entered:
        file = Path(file.rpartition(f"{ROOT}/")[2])
        if is_ignored(".".join((ROOT.name, *file.with_suffix("").parts))):
            yield file, name


def function_in(tree, name):
    for part in name.split("."):
        tree = next((node for node in tree.body if getattr(node, "name", None) == part), None)
        if tree is None:  # a lambda
            return None
    return tree


@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize("verb", ["score-run"])
def test_an_edit_of_an_ignored_function_leaves_a_steps_result(built, tmp_path, verb):
    """The step fails, or gives the same."""
    project = copy.copy(built)
    project.folder = tmp_path / "copy"
    shutil.copytree(built.folder, project.folder, ignore=shutil.ignore_patterns(".snakemake"))
    traces = (json.loads(path.read_text()) for path in sorted(built.loaded.iterdir()))
    step = next(trace for trace in traces if trace["words"][1] == verb)
    before, environment = results_in(project.folder), project.environment(warm=True)
    del environment["SYNMASK_LOADED"]
    command = ["synmask", *step["words"][1:]]
    kwargs = {"cwd": project.folder, "env": environment, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=True, **kwargs)
    assert results_in(project.folder) == before
    draw = random.Random(1)
    for file, name in sorted({*ignored(step["entered"])}):
        path = project.folder / ROOT / file
        text = path.read_text()
        function = function_in(tree := ast.parse(text), name)
        if function and edited(function, draw, flow=True):
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
