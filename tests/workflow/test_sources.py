"""A rule names the source files behind it: what these import belongs to them, or a change in it reruns nothing."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/synmask"
# What decides how a step is run or how it fails, and the settings, which are parameters of the rules.
NEUTRAL = re.compile(
    r"files|gpus|provenance|config/(?!published).*|(?!guides).*__init__|engine/(lock|stopping|progress)"
)
# What is imported for another use: how a model is trained, where one is only used; decoding where trees are
# induced; scores of other tasks; archives where none is read; the formats that a rule chooses from.
TRAINING = {f"engine/{name}" for name in ("checkpoints", "loop", "stage", "task", "train", "trainer")}
OTHER_USE = [
    (
        ("average", "decode", "speed", "parse", "predict", "encode_task", "encode_text", "annotate_task"),
        TRAINING,
    ),
    (("parse",), {"text/bpe", "text/tokenise"}),
    (
        ("predict", "encode_task", "encode_text", "annotate_task"),
        {"engine/criterion", "engine/roberta", "engine/weights"},
    ),
    (
        ("predict", "encode_task", "annotate_task", "finetune", "convert_roberta", "pretrain"),
        {"corpora/archive", "text/gpt2"},
    ),
    (("predict", "encode_task", "bleu_figure", "source_figure", "sweep_figure"), {"evaluation/nlu"}),
    (("finetune", "pretrain"), {"engine/task"}),
    (("prepare",), {"corpora/aspec", "corpora/iwslt14", "corpora/nc11"}),
]


def blocks():
    """Rule → what it says of its source files; with it what the functions say that collect them."""
    text = "".join(path.read_text() for path in sorted(ROOT.glob("workflow/rules/*.smk")))
    shared = {
        name: re.search(rf"^(def )?{name}\b.*?\n\n\n", text, re.S | re.M)[0]
        for name in ("engine_code", "roberta_code", "measured_code", "FIGURE_CODE")
    }
    for name, block in re.findall(r"^rule (\w+):\n(.*?)^    output:", text, re.S | re.M):
        if said := re.search(r"code=(.*)", block, re.S):
            more = [part for function, part in shared.items() if function in said[1]]
            yield name, said[1] + "".join(more)


def named(said):
    """Modules that a rule lists, such as engine/train."""
    found = set(re.findall(r'"([a-z0-9_]+/[a-z0-9_/]+)"', said))
    for prefix, names in re.findall(r'f"(\w+)/\{name\}" for name in \(?(.*?)\)', said, re.S):
        found |= {f"{prefix}/{name}" for name in re.findall(r'"(\w+)"', names)}
    for names in re.findall(r"(?:names|engine) = \((.*?)\)", said, re.S):
        found |= {f"engine/{name}" for name in re.findall(r'"(\w+)"', names)}
    return found


def imported(module):
    """The modules of synmask that a module needs to be imported."""
    for node in ast.parse((SRC / f"{module}.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("synmask."):
            base = node.module.removeprefix("synmask.").replace(".", "/")
            for name in [f"{base}/{alias.name}" for alias in node.names] + [base]:
                if (SRC / f"{name}.py").exists():
                    yield name
                elif (SRC / name / "__init__.py").exists():
                    yield f"{name}/__init__"


RULES = dict(blocks())


def test_all_rules_with_sources_are_seen():
    assert len(RULES) > 30
    assert "engine/train" in named(RULES["train"])


@pytest.mark.parametrize("rule", RULES)
def test_what_listed_sources_import_is_listed(rule):
    listed = named(RULES[rule])
    for module in sorted(listed):
        if (SRC / f"{module}.py").exists():
            missing = {name for name in imported(module) if not NEUTRAL.fullmatch(name)} - listed
            for rules, modules in OTHER_USE:
                missing -= modules if rule in rules else set()
            assert not missing, f"{module} imports {', '.join(sorted(missing))}"
