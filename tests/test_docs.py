"""The pages of the documentation: links lead somewhere, and the English is plain."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load_project
from synmask.pipeline.workflow.targets import Targets

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *(ROOT / f"{name}.md" for name in ("results/README", "benchmarks/README", "tests/README")),
    ROOT / "studies/multi30k/trees.md",
]
CHANGES = ROOT / "CHANGELOG.md"
CODE = [
    *(ROOT / name for name in ("Snakefile", "config.yaml", "Makefile", "setup.py")),
    *sorted(
        path
        for folder in ("src", "tests", "benchmarks", "workflow", "profiles", "slurm")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".py", ".smk", ".yaml")
    ),
]
GENERATED = re.compile(r"<!-- (table|verdict) -->.*?<!-- end of \1 -->|```.*?```|<!--.*?-->", re.S)
AVOID_IN_CODE = re.compile(
    r"holds? against"
    r"|\b(?:a|one) (?:\w+ )?an? (?:rule|run|seed|line|row|sentence|system|step|direction)\b"  # one verb per rule
    r"|(?:^|[.:;] |\*\*|- )What [^?|\n]*$"  # the subject comes first: "Faults that were tried"
    r"|\banew\b|\bgoes on\b",
    re.M,
)
AVOID = re.compile(rf"{AVOID_IN_CODE.pattern}|\btrainings\b", re.M)


def prose(page: Path) -> str:
    return GENERATED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_a_file_and_a_heading(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        if "://" not in link:
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_map_of_the_code_names_files_that_exist():
    text = (ROOT / "docs/CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Set up")[0]
    places = [ROOT, ROOT / "src/synmask", ROOT / "src/synmask/pipeline"]
    paths = re.findall(r"`([\w/]+(?:\.(?:py|smk|yaml)|/))`", text)
    assert len(paths) > 20
    assert [path for path in paths if not any((place / path).exists() for place in places)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGES], ids=lambda page: page.name)
def test_the_english_is_plain(page):
    assert [found[0] for found in AVOID.finditer(prose(page))] == []


def docstrings_and_comments(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from re.findall(r'(?:^|\s)(?:#|""") *(.*)$', text, re.M)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def test_the_english_of_the_code_is_plain():
    texts = {path: "\n\n".join(docstrings_and_comments(path)) for path in CODE}
    assert {path: found[0] for path, text in texts.items() for found in AVOID_IN_CODE.finditer(text)} == {}


def test_headings_that_the_code_names_exist():
    """Code refers to a page, or to a heading of it by the heading's words: numbers go stale unseen."""
    wrong = []
    for path in CODE:
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for page, numbered, heading in re.findall(r'(\w+\.md)(?:,? (§|section \d)|, "([^"]+)")', text):
            there = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M)
            if numbered or not any(name.startswith(heading.strip()) for name in there):
                wrong.append((path.name, page, numbered or heading))
    assert not wrong


def test_the_stages_of_the_workflow_are_those_of_the_rules():
    """docs/workflow.md has a row per rule file, with all of its verbs."""
    verb_of, verbs = {}, {}
    for path in sorted(ROOT.glob("workflow/rules/*.smk")):
        for name, origin, body in re.findall(
            r"^(?:rule (\w+)|use rule (\w+) as \w+ with):\n(.*?)(?=^\S|\Z)", path.read_text(), re.M | re.S
        ):
            called = re.findall(r"synmask ([a-z][a-z0-9-]+)", body)
            verb_of[name] = called
            verbs.setdefault(path.name, []).append(called or origin)
    expected = {
        name: {verb for each in found for verb in (verb_of[each] if isinstance(each, str) else each)}
        for name, found in verbs.items()
    }
    page = (ROOT / "docs/workflow.md").read_text()
    rows = re.findall(r"^\| [\w -]+ \| `(\w+\.smk)` \| (.*?) \|", page, re.M)
    assert {name: set(re.findall(r"`([\w-]+)`", cell)) for name, cell in rows} == expected


def test_the_first_corpus_of_ones_own_has_a_small_model(tmp_path, monkeypatch):
    """As the page says, with the sizes of `multi30k-small`; the paper's would take hours on a laptop."""
    page = (ROOT / "docs/extending.md").read_text("utf-8")
    (tmp_path / "mine.yaml").write_text(re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1], "utf-8")
    monkeypatch.chdir(ROOT)
    config, *_ = load_project([tmp_path / "mine.yaml"])
    model = config.run_settings("mine", "de-en", "grammar").model
    assert f"{model.encoder_layers} layers in encoder and decoder, embeddings of {model.embed_dim}," in page
    assert (model.encoder_layers, model.embed_dim) == (model.decoder_layers, 256)
    assert not Targets(config).downloads("mine")  # no CoreNLP
