"""Which jobs a change runs again: each row of two tables, on a project whose jobs are done.

The jobs make empty files in place of what they make, so that all of them are done in seconds. Snakemake keeps
of them what it always keeps, and plans as always.
"""

import copy
import os
import re
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("reruns")  # the project is made once
PAGE = Path(__file__).parents[2] / "docs/workflow.md"
FURTHER = Path(__file__).parents[1] / "README.md"
TARGETS = ("demo", "mine", "nlu-demo")
EMPTY = """

def empty(input, output, *others, **more):
    for path in output:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()


for made in workflow.rules:
    if made.shellcmd:
        made.run_func = empty
"""
OTHER_CODE = ("pipeline/workflow/sources.py", "lines.encode()", 'f"other code {lines}".encode()')


def replaced(file, old, new):
    """An edit of a file of the project: below src/synmask, or of the folder."""

    def edit(project):
        path = project.folder / "src/synmask" / file
        path = path if path.exists() else project.folder / file
        text = path.read_text()
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new, 1))

    return edit


def appended(file, line="ONE = 1"):
    def edit(project):
        with open(project.folder / "src/synmask" / file, "a") as handle:
            handle.write(f"\n\n{line}\n")

    return edit


def set_to(value, *keys):
    """An edit of a key of the configuration."""

    def edit(project):
        section = project.config
        for key in keys[:-1]:
            section = section.setdefault(key, {})
        section[keys[-1]] = value

    return edit


def own_file(name, text=None, *, seconds):
    """An edit of a user's file: its text, and the seconds between its old and its new date."""

    def edit(project):
        path = project.folder / "data/mine" / name
        before = path.stat().st_mtime_ns
        path.write_text(path.read_text() if text is None else text)
        os.utime(path, ns=(before + seconds * 10**9,) * 2)

    return edit


def without_metadata(project):
    shutil.rmtree(project.folder / ".snakemake")


def moved(project):
    project.folder = project.folder.rename(project.folder.with_name("elsewhere"))


def other_code(project):
    """All code is another one, and there is no record of what it was."""
    replaced(*OTHER_CODE)(project)
    shutil.rmtree(project.folder / "results/logs/sources")


def kept(project):
    other_code(project)
    project.snakemake(*TARGETS, "--forceall", "--touch")


def lost(project):
    """Snakemake's records are lost, and those of code, too."""
    without_metadata(project)
    shutil.rmtree(project.folder / "results/logs/sources")


def dated_anew(project):
    shutil.move(project.folder / "results", project.folder / "old")
    shutil.copytree(project.folder / "old", project.folder / "results", copy_function=shutil.copyfile)
    without_metadata(project)


def accepted(copy, edit):
    """An edit of a copy of results/ that was accepted as docs/workflow.md says."""

    def edit_copy(project):
        copy(project)
        project.snakemake(*TARGETS, "--forceall", "--touch")
        edit(project)

    return edit_copy


def copied_system(name):
    def edit(project):
        project.config["systems"][name] = copy.deepcopy(project.config["systems"]["pascal"])

    return edit


def new_table(project):
    project.config["tables"]["another"] = project.config["tables"]["demo-cost"] | {"title": "Another"}


def new_guide(project):
    for folder in ("options", "guides"):
        place = project.folder / "src/synmask" / folder
        text = (place / "sla.py").read_text()
        (place / "near.py").write_text(text.replace("Sla", "Near").replace("options.sla", "options.near"))
    project.config["systems"]["near"] = {"label": "Near", "guide": "near"}


def new_key(line):
    """An edit of the code: one more key with a default, below this one."""
    return replaced("pipeline/config/sections.py", line, f"{line}\n    another: int = 1")


def new_page(project):
    """A page of its own: a rule, its verb, and its module."""
    rule = """

rule another_page:
    output:
        RESULTS / "another.html",
    params:
        code=code("another-page"),
    shell:
        "synmask another-page --output {output:q}"
"""
    replaced(
        "pipeline/verbs.py", '"Figures": {', '"Figures": {\n        "another-page": "reporting.another:page",'
    )(project)
    (project.folder / "src/synmask/pipeline/reporting/another.py").write_text("def page(*, output): pass\n")
    with open(project.folder / "workflow/rules/report.smk", "a") as file:
        file.write(rule)


def new_corpus(project):
    project.config["corpora"]["another"] = copy.deepcopy(project.config["corpora"]["mine"])


EDITS = {
    "`corpora.demo.bpe.merges`": set_to(200, "corpora", "demo", "bpe", "merges"),
    "`corpora.demo.text.max_ratio`": set_to(3, "corpora", "demo", "text", "max_ratio"),
    "`corpora.demo.training.lr`": set_to(0.004, "corpora", "demo", "training", "lr"),
    "`corpora.demo.training.average`, fewer epochs": set_to(1, "corpora", "demo", "training", "average"),
    "an option of the system `grammar`": set_to(7, "systems", "grammar", "options", "conv_kernel"),
    "`corpora.demo.decoding.beam`": set_to(4, "corpora", "demo", "decoding", "beam"),
    "`decoding.length_penalty`, of all corpora": set_to(0.9, "decoding", "length_penalty"),
    "the title of an experiment": set_to("Other", "experiments", "demo", "title"),
    "a system's label": set_to("Other", "systems", "grammar", "label"),
    "`benchmarks.nlu-demo.finetuning.lr`": set_to(0.002, "benchmarks", "nlu-demo", "finetuning", "lr"),
    "a key of RoBERTa's pre-training": set_to(0.002, "weights", "roberta-demo", "pretrain", "training", "lr"),
    "`resources.threads`, of a corpus": set_to(2, "corpora", "demo", "resources", "threads"),
    "`resources.checkpoint_minutes`": set_to(30, "resources", "checkpoint_minutes"),
    "`mirrors`": set_to({"multi30k": "https://example.org/"}, "mirrors"),
    "one seed more": set_to([1, 2], "experiments", "demo", "seeds"),
    "one system more in an experiment": set_to(["transformer", "grammar", "pascal"], "experiments", "demo", "systems"),
    "a new system, in no experiment": copied_system("another"),
    "a new corpus, in no experiment": new_corpus,
    "a new table of an experiment's runs": new_table,
    "a new page, not asked for": new_page,
    "a new key of corpora, with a default": new_key('    pairs: dict[Split, Pairs] = key("how many there must be: a number, or [least, most]", {})'),
    "a new key of `decoding`, with a default": new_key('    max_tokens: base.Count = key("source tokens per batch", 8000)'),
    "your own text, newer, the same bytes": own_file("train.de", seconds=60),
    "your own text, older, other bytes": own_file("train.de", "andere Wörter\n" * 40, seconds=-60),
    "one line more in your own treebank": own_file("valid.trees", "(S (N a) (N b))\n" * 20, seconds=60),
    "the pinned environment": replaced("workflow/envs/synmask.yaml", "python", "python "),
    "a comment, a docstring, an annotation": replaced(
        "pipeline/text/tokenise.py", '"""From raw text', '"""In other words: from raw text'
    ),
    "an error's words": replaced("pipeline/text/bpe.py", "not a list of BPE merges", "no BPE"),
    "code that reads the configuration": replaced("pipeline/config/base.py", "le=1000", "le=1001"),
    "code that shows progress": appended("pipeline/training/progress.py"),
    "a new verb": replaced("pipeline/verbs.py", '"Figures": {', '"Figures": {\n        "new": "cli:new",'),
    "a new guide, in no experiment": new_guide,
    "a guide's code": appended("guides/grammar.py"),
    "code of the training loop": appended("pipeline/training/loop.py"),
    "CoreNLP's code, of which nothing is asked": appended("pipeline/syntax/corenlp.py"),
    "code of the search": replaced("pipeline/translation/beam.py", "MAX_HYPOTHESIS_TOKENS = 200", "MAX_HYPOTHESIS_TOKENS = 201"),
    "code of BLEU": appended("pipeline/evaluation/bleu.py"),
    "the page's style": appended("pipeline/reporting/page/page.css", "p { margin: 0 }"),
    "a moved project folder": moved,
    "a fresh clone with a copy of `results/`": without_metadata,
    "all code, by an update": other_code,
    "all code, then `snakemake --forceall --touch`": kept,
    "a copy with new dates (`rsync -r`), accepted; then `corpora.demo.training.lr`": accepted(dated_anew, set_to(0.004, "corpora", "demo", "training", "lr")),
    "a lost `.snakemake`, accepted; then an option of the system `grammar`": accepted(lost, set_to(7, "systems", "grammar", "options", "conv_kernel")),
}  # fmt: skip
NOTHING = ("none", 0, 0)
HIDING = (
    "a fresh clone with a copy of `results/`",
    "all code, then `snakemake --forceall --touch`",
)  # other edits


def rows():
    """Edit → the jobs that have a reason to run again, their number with all that follow, and the trainings."""
    first = PAGE.read_text().partition("### What a change reruns")[2].partition("\n### ")[0]
    further = FURTHER.read_text().partition("## Further changes, and what they rerun")[2]
    for row in re.findall(r"^\| (.+?) \| (.*?) \| (\d+) \| (\d+) \|$", first + further, re.M):
        yield row[0], (row[1], int(row[2]), int(row[3]))


@pytest.fixture(scope="module")
def done(new_project, small_nlu):
    """A project whose jobs are done: the demo, a corpus of the user's own with his trees, and nlu-demo."""
    project = new_project("done")
    with open(project.folder / "Snakefile", "a") as file:
        file.write(EMPTY)
    config, mine = project.config, project.folder / "data/mine"
    mine.mkdir(parents=True)
    for name in ("train.de", "train.en", "valid.de", "valid.en", "test.de", "test.en"):
        (mine / name).write_text("ein Wort\n" * 20)
    (mine / "valid.trees").write_text("(S (N ein) (N Wort))\n" * 20)
    demo = config["corpora"]["demo"]
    files = {split: f"data/mine/{split}.{{language}}" for split in ("train", "valid", "test")}
    corpus = {
        key: copy.deepcopy(demo[key])
        for key in ("text", "bpe", "model", "training", "resources")
        if key in demo
    }
    config["corpora"]["mine"] = corpus | {
        "languages": ["de", "en"], "files": files, "trees": {"valid": "data/mine/valid.trees"},
    }  # fmt: skip
    config["experiments"]["mine"] = {
        "title": "Mine", "corpus": "mine", "directions": ["de-en"], "systems": ["transformer", "grammar"],
        "seeds": [1], "tables": ["translation", "parsing"],
    }  # fmt: skip
    small_nlu(project)
    for name in ("nlu-demo-all", "nlu-demo-attention"):
        del config["tables"][name]
    project.snakemake(*TARGETS, "-j", "4")
    return project


def planned(done, folder, *edits):
    """The plan after edits of a copy: as a row of the table has it."""
    project = copy.copy(done)
    project.config = copy.deepcopy(done.config)
    project.folder = folder / "project"
    shutil.copytree(done.folder, project.folder)
    for edit in edits:
        edit(project)
    printed = project.snakemake("-n", *TARGETS).output
    shutil.rmtree(project.folder)
    reasons = Counter()
    for rule, count in re.findall(r"^(\w+) \((\d+)\): ", printed, re.M):
        reasons[rule] += int(count)
    total = re.search(r"^([\d,]+) jobs?(?:, (\d+|a) of them (?:a )?training)?", printed, re.M)
    jobs = int(total[1]) - len(re.findall(rf"^(?:{'|'.join(TARGETS)}) +1$", printed, re.M)) if total else 0
    return (
        ", ".join(f"{rule} ({count})" for rule, count in sorted(reasons.items())) or "none",
        jobs,
        int(total[2] or 0) if total else 0,
    )


@pytest.fixture(scope="module")
def plans(done, tmp_path_factory):
    """Edit → its plan; two at a time. Edits that together rerun nothing are planned but once."""
    idle = [name for name, row in rows() if row == NOTHING and name in EDITS and name not in HIDING]
    if planned(done, tmp_path_factory.mktemp("idle"), *(EDITS[name] for name in idle)) != NOTHING:
        idle = []
    with ThreadPoolExecutor(2) as pool:
        plans = {
            name: pool.submit(planned, done, tmp_path_factory.mktemp("edit"), edit)
            for name, edit in EDITS.items()
            if name not in idle
        }
        return dict.fromkeys(idle, NOTHING) | {name: plan.result() for name, plan in plans.items()}


def test_each_edit_has_a_row():
    assert sorted(name for name, _ in rows()) == sorted(EDITS)


def test_done_is_done(done):
    assert done.snakemake("-n", *TARGETS).output.endswith(
        "Nothing to be done (all requested files are present and up to date).\n"
    )


@pytest.mark.parametrize("words", [["-n"], ["-p"], ["--touch"]])
def test_files_without_a_record_are_said_where_nothing_is_done(done, tmp_path, words):
    project = copy.copy(done)
    project.folder = tmp_path / "project"
    shutil.copytree(done.folder, project.folder)
    without_metadata(project)
    output = project.snakemake("demo", *words).output
    assert output.count("finished jobs have no record of settings and code") == 1


@pytest.mark.parametrize("name", EDITS)
def test_a_change_reruns_what_its_row_says(plans, name):
    assert plans[name] == dict(rows())[name]
