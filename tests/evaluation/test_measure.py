"""TER, and functions of the user's as metrics."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import TER

from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.measure import measure, metric_counts, ratio, read_metric
from synmask.pipeline.files import write_lines

HYPOTHESES = ["the old man goes home", "A dog sleeps in the green wood", "", "yes"]
REFERENCES = ["the old man walks home today", "a dog sleeps in the wood", "the wood is green", "no"]
SOURCES = ["s1", "s2", "s3", "s4"]
RUN = {"corpus": "c", "direction": "de-en", "system": "s", "seed": 1}
FUNCTIONS = """
import math
def share(hypotheses, references, sources):
    assert [*map(type, (hypotheses, references, sources))] == [list] * 3, "lists"
    return (len(h) / len(r) for h, r in zip(hypotheses, references))
def dogs(hypotheses, references, sources): return [float("A dog" in h) for h in hypotheses]
def knows(hypotheses, references, sources): return [sources is None] * len(hypotheses)
def one(*texts): return 0.5
def short(*texts): return [1.0]
def words(*texts): return ["0.5"] * 4
def none(*texts): return [1, 2, None, 3]
def infinite(*texts): return [1, math.nan, 2, 3]
def fails(*texts):
    return 1 / 0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A run's folder, and modules of the user's in the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("own_functions", "own_broken", "own_needy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("own_functions.py").write_text(FUNCTIONS)
    Path("own_broken.py").write_text("def f(:\n")
    Path("own_needy.py").write_text("import no_such_package\ndef f(): pass\n")
    write_lines("hypothesis.test.txt", HYPOTHESES)
    write_lines("references", REFERENCES)
    write_lines("sources", SOURCES)
    Path("train.json").write_text(json.dumps(RUN | {"settings": {}, "training": "this"}))
    made = {"run": RUN, "training": "this", "sha256": {"txt": sha256("hypothesis.test.txt")}}
    Path("hypothesis.test.json").write_text(json.dumps(made))
    return tmp_path


def test_ter_is_sacrebleus():
    counts, signature = metric_counts("ter", HYPOTHESES, REFERENCES, None, language="en")
    assert float(ratio(counts.sum(axis=0))) == pytest.approx(
        TER().corpus_score(HYPOTHESES, [REFERENCES]).score
    )
    assert counts[0].tolist() == [200, 6]
    assert signature.startswith("nrefs:1|case:lc|tok:tercom")
    texts = ["猫が好き", "犬"], ["猫が嫌い", "犬"]
    counts, signature = metric_counts("ter", *texts, None, language="ja")
    assert counts.tolist() == [[200, 4], [0, 1]]
    assert "asian:yes" in signature


def test_a_function_gets_all_segments_and_its_mean_is_the_score():
    counts, _ = metric_counts("own_functions.share", HYPOTHESES, REFERENCES, SOURCES, language="en")
    shares = [len(h) / len(r) for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    assert counts.tolist() == [[share, 1] for share in shares]
    assert float(ratio(counts.sum(axis=0))) == pytest.approx(np.mean(shares))
    lower = metric_counts("own_functions.dogs", HYPOTHESES, REFERENCES, None, language="en", lowercase=True)[
        0
    ]
    assert lower.sum() == 4
    assert metric_counts("own_functions.dogs", HYPOTHESES, REFERENCES, None, language="en")[0].sum() == 5
    assert metric_counts("own_functions.knows", HYPOTHESES, REFERENCES, None, language="en")[0].sum() == 8


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("no_such_module.f", "no module 'no_such_module', neither in this folder nor installed"),
        ("own_functions.shrae", r"no 'shrae' in .*own_functions.py; did you mean 'share'\?"),
        ("own_functions.math", "own_functions has no function 'math'"),
        ("own_broken.f", r".*own_broken.py, line 1: not Python \("),
        ("own_needy.f", r"ModuleNotFoundError: No module named 'no_such_package' \(.*own_needy.py, line 1\)"),
        ("own_functions.one", "TypeError: 'float' object is not iterable"),
        ("own_functions.short", "returned 1 values for 4 segments; return a number for each"),
        ("own_functions.words", "segment 1 has no finite number; return one for each"),
        ("own_functions.none", "segment 3 has no finite number; return one for each"),
        ("own_functions.infinite", "segment 2 has no finite number; return one for each"),
        ("own_functions.fails", r"ZeroDivisionError: division by zero \(.*own_functions.py, line 14\)"),
    ],
)
def test_a_function_that_cannot_be_used_is_one_line(metric, message):
    with pytest.raises(UserError, match=f"^{metric}: {message}") as error:
        metric_counts(metric, HYPOTHESES, REFERENCES, SOURCES, language="en")
    assert len(str(error.value).splitlines()) == 1


def test_a_run_is_measured_by_its_own_translations(folder):
    texts = {"sources": Path("sources"), "references": Path("references")}
    measure(run=folder, metric="own_functions.share", **texts)
    found = read_metric(folder / "metric.own_functions.share.json")
    assert np.array(found["counts"]).shape == (2, 4)
    assert found["score"] == pytest.approx(np.mean(found["counts"][0]))
    write_lines("hypothesis.test.txt", [*HYPOTHESES[:3], "others"])
    with pytest.raises(UserError, match=r"hypothesis\.test\.txt: not what hypothesis\.test\.json was "):
        measure(run=folder, metric="ter", **texts)
    assert not Path("metric.ter.json").exists()
