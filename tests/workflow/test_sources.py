"""The source files behind a step are all that it can reach by imports: no result is stale."""

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from synmask.pipeline import workflow
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.sources import PLUMBING, ROOT, digest, sources

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(PROJECT)


@pytest.fixture
def jobs():
    return Jobs(load(read_all(project_files()), []))


def behind(jobs, verb, **wildcards):
    """Source files of a job without folder and ending, such as translation/train; others as they are."""
    files = sources(verb, jobs.loaded_by_name(SimpleNamespace(**wildcards)))
    return {file.removeprefix(f"{ROOT}/").removesuffix(".py") for file in files}


def rules():
    """Rule → the verb whose sources it has, and the one that it runs."""
    for path in sorted(PROJECT.glob("workflow/rules/*.smk")):
        for name, text in re.findall(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", path.read_text(), re.S | re.M):
            code, shell = re.search(r'JOBS\.code\("([\w-]+)"', text), re.search(r"synmask ([\w-]+) ", text)
            if code or shell:
                yield name, code and code[1], shell and shell[1]


def without_sources(verb):
    return verb in ("download", "jar")  # what they fetch is known by its checksum


@pytest.mark.parametrize(("rule", "code", "shell"), [*rules()])
def test_a_rule_has_the_sources_of_the_verb_that_it_runs(rule, code, shell):
    assert code == (None if without_sources(shell) else shell)
    assert without_sources(shell) or sources(shell)


def test_all_rules_are_seen():
    assert len([*rules()]) > 40


def test_the_digest_changes_with_the_content_of_the_sources_alone(tmp_path, monkeypatch):
    shutil.copytree(ROOT, tmp_path / ROOT)
    monkeypatch.chdir(tmp_path)

    def digests():
        workflow.sources.checksum.cache_clear()
        workflow.sources.digest.cache_clear()
        return [digest(verb) for verb in ("train", "score-run")]

    train, score = digests()
    Path(ROOT, "pipeline/training/loop.py").touch()
    assert digests() == [train, score]
    with open(Path(ROOT, "pipeline/training/loop.py"), "a") as file:
        file.write("# changed\n")
    other, same = digests()
    assert other != train
    assert same == score


@functools.cache
def named(file):
    """The files of synmask that a file's imports name, wherever they stand, by another way than `imports`."""
    text = re.sub(r"^if TYPE_CHECKING:\n(?: .*\n)+", "", file.read_text(), flags=re.M)
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synmask"):
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    stems = {Path("src", *name.split(".")) for name in names}
    stems |= {parent for stem in stems for parent in stem.parents if ROOT in (parent, *parent.parents)}
    files = {path for stem in stems for path in (stem.with_suffix(".py"), stem / "__init__.py")}
    return {path for path in files if path.is_file() and path.stat().st_size}


@pytest.mark.parametrize("verb", sorted({code for _, code, _ in rules() if code}))
def test_a_change_in_any_file_that_a_step_reaches_is_a_change_of_the_step(verb):
    known = {Path(file) for file in sources(verb)}
    plumbing = {Path("src", *name.split(".")) for name in PLUMBING}
    plumbing = {path for stem in plumbing for path in (stem.with_suffix(".py"), stem / "__init__.py")}
    for file in [file for file in known if file.suffix == ".py"]:
        assert named(file) <= known | plumbing, file


def test_plumbing_writes_and_computes_nothing_that_steps_keep():
    """They import nothing that trains, decodes or scores."""
    rooms = {
        "training",
        "translation",
        "roberta",
        "evaluation",
        "text",
        "syntax",
        "reporting",
        "corpora",
        "config",
    }
    for name in PLUMBING:
        path = Path("src", *name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        imported = set(re.findall(r"synmask\.pipeline\.(\w+)", path.read_text()))
        assert not imported & rooms, name


def test_a_system_has_its_own_guide_alone(jobs):
    plain, grammar, pascal = (
        behind(jobs, "train", corpus="demo", system=name) for name in ("transformer", "grammar", "pascal")
    )
    induction = {"induction/distribution", "induction/kernel.cpp", "induction/parser"}
    assert grammar - plain == {"guides/grammar", "guides/attention", *induction}
    assert pascal - plain >= {"guides/pascal", "guides/attention"}
    assert {name for name in plain if name.startswith(("guides/", "induction/"))} == {"guides/__init__"}


def test_a_system_that_reads_templates_has_its_own_model_and_what_predicts_them_has_none(jobs):
    run = {"corpus": "demo", "system": "st-nmt"}
    plain = SimpleNamespace(corpus="demo", system="transformer")
    assert jobs.code("train", guided=False)(SimpleNamespace(**run)) == jobs.code("train")(plain)


def test_scores_do_not_depend_on_models(jobs):
    found = behind(jobs, "score-run", corpus="demo", system="grammar")
    assert {"pipeline/evaluation/bleu", "pipeline/evaluation/sentences", "pipeline/files"} <= found
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
    everything |= {*sources("train", jobs.loaded_by_name(SimpleNamespace(corpus="demo", system="grammar")))}
    others = {str(path) for kind in ("cpp", "java", "html", "css", "js") for path in ROOT.rglob(f"*.{kind}")}
    others -= {str(ROOT / "pipeline/reporting/page/compare.html")}  # of a verb for people
    assert len(others) == 13
    assert others <= everything


def test_plumbing_exists():
    for name in PLUMBING:
        stem = Path("src", *name.split("."))
        assert stem.with_suffix(".py").exists() or stem.is_dir(), name


def test_unknown_verbs_and_modules_are_faults():
    with pytest.raises(ValueError, match="trian: no such verb"):
        sources("trian")
    with pytest.raises(ValueError, match=r"synmask\.guides\.no: no such module"):
        sources("train", frozenset({("synmask.guides", "synmask.guides.no")}))


@pytest.mark.xdist_group("demo")
def test_the_steps_of_the_demo_load_their_sources(built, check_loaded):
    assert len(check_loaded(built)) >= 21  # all that the demo and its tests run


IMPORTING = """
import json, sys
from synmask.pipeline.verbs import module_of
for name in [module_of(sys.argv[1]), *sys.argv[2:]]:
    __import__(name)
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "synmask"]))
"""


@pytest.mark.parametrize(
    ("verb", "wildcards"),
    [("prepare", {"corpus": "nc11"}), ("constituency", {}), ("glue", {}), ("task-sentences", {}), ("annotate", {}), ("tree-page", {})],
)  # fmt: skip
def test_other_steps_load_their_sources(jobs, missed, verb, wildcards):
    chosen = [f"synmask.pipeline.corpora.{wildcards['corpus']}"] if wildcards else []
    command = [sys.executable, "-c", IMPORTING, verb, *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {name for name in json.loads(done.stdout) if not name.startswith("synmask.pipeline.workflow")}
    assert missed(jobs, verb, loaded, **wildcards) == set()


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
