"""Model cards: their numbers are those of the run's files."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from synmask.guides import grammar
from synmask.pipeline.evaluation.bleu import COUNTS, bleu_of_counts
from synmask.pipeline.export.card import model_card
from synmask.pipeline.guidance import Guidance

HEADER = {"pipeline_tag": "translation", "language": ["de", "en"]}


def run(folder, system, seed, bleu, matches):
    """A run's folder with scores and the counts of two sentences, of whose 4 words `matches` match."""
    path = folder / system / f"seed{seed}"
    path.mkdir(parents=True)
    scores = {"test": {"sacrebleu": bleu, "chrf": 50.0}, "valid": {"sacrebleu": bleu + 1}}
    facts = {
        "parameters": 1234,
        "commit": "abc",
        "train_seconds": 9.6,
        "device": "CPU",
        "epochs": 3,
        "updates": 30,
    }
    whose = {"corpus": "demo", "direction": "de-en", "system": system, "seed": seed}
    saved = {"scores": scores, "signatures": {"sacrebleu": "tok:13a"}} | facts | whose
    (path / "scores.json").write_text(json.dumps(saved))
    (path / "history.csv").write_text("epoch,mlm_loss,valid_ppl\n2,,4.5\n3,,4.25\n")
    row = [matches, 3, 2, 1, 4, 3, 2, 1, 4, 4]
    lines = [",".join(COUNTS), *[",".join(map(str, row))] * 2]
    (path / "sentences.csv").write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_card_has_the_numbers_of_its_run_and_of_its_system(tmp_path):
    for seed, matches in ((1, 3), (2, 2)):
        run(tmp_path, "transformer", seed, 30.0 + seed, matches)
    run(tmp_path, "grammar", 2, 42.0, 4)
    path = run(tmp_path, "grammar", 1, 40.0, 4)
    for system in ("transformer", "grammar"):
        for copy in ("seed1.old", "seed01"):  # no seeds
            shutil.copytree(tmp_path / system / "seed1", tmp_path / system / copy)
    bleu = [float(bleu_of_counts(2 * np.array([one, 3, 2, 1, 4, 3, 2, 1, 4, 4]))) for one in (4, 3, 2)]
    difference = bleu[0] - sum(bleu[1:]) / 2
    system = Guidance(guide="grammar", options={"bpe": "none"})
    card = model_card(path / "average.pt", HEADER, system, "load()\n", ["Short."], {})
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head) == HEADER | {
        "library_name": "transformers",
        "tags": ["synmask", "grammar", "grammar-induction"],
    }
    assert "license: yours to fill in" in head
    for text in (
        "# grammar, demo de-en, seed 1",
        "Grammar induction as a guide (Kai et al. 2024, §3)",
        "Options: bpe none.",
        "| test | sacrebleu | 40.00 | 41.00 ± 1.41 | 2 |",
        "| valid | sacrebleu | 41.00 | 42.00 ± 1.41 | 2 |",
        "sacrebleu: `tok:13a`",
        f"Against `transformer` with 2 seeds: test sacreBLEU {difference:+.2f} (95% interval",
        "1,234 parameters; commit abc",
        "Last epoch: epoch 3, valid_ppl 4.25",
        "```python\nload()\n```",
        "- Short.",
    ):
        assert text in body, text


def test_a_model_without_a_run_has_a_card_without_numbers(tmp_path):
    card = model_card(tmp_path / "average.pt", HEADER, Guidance(), "load()\n", [], {})
    assert "# average\n\nSelf-attention is not guided by syntax." in card
    assert "no `scores.json` of this run was beside average.pt" in card
    assert "## Training" not in card


ORIGIN = {"corpus": "demo", "direction": "de-en", "system": "grammar", "seed": 1, "settings": {}}


def test_a_model_that_was_moved_alone_keeps_its_name(tmp_path):
    card = model_card(tmp_path / "average.pt", HEADER, Guidance(), "load()\n", [], ORIGIN)
    assert "# grammar, demo de-en, seed 1\n" in card


def test_a_run_that_was_moved_keeps_its_scores_and_takes_no_other_s(tmp_path, monkeypatch):
    """Beside copies of another system, of another corpus' baseline; from inside its folder."""
    moved = run(tmp_path / "moved", "all", 1, 40.0, 4)
    for seed, folder, changed in (
        (1, "all", {"system": "grammar"}),
        (2, "all", {}),
        (1, "transformer", {"corpus": "x"}),
    ):
        path = moved.parents[1] / folder / f"seed{seed}"
        if not path.exists():
            run(moved.parents[1], folder, seed, 30.0, 2)
        scores = json.loads((path / "scores.json").read_text()) | changed
        (path / "scores.json").write_text(json.dumps(scores))
    monkeypatch.chdir(moved)
    card = model_card(Path("average.pt"), HEADER, Guidance(), "load()\n", [], ORIGIN)
    assert "# grammar, demo de-en, seed 1\n" in card
    assert "| test | sacrebleu | 40.00 | 40.00 | 1 |" in card
    assert "Against" not in card
    other = model_card(Path("average.pt"), HEADER, Guidance(), "load()\n", [], ORIGIN | {"seed": 2})
    assert "no `scores.json` of this run" in other


def test_a_card_has_its_words_without_docstrings(tmp_path):
    """As under python -OO."""
    call = (
        "from pathlib import Path; from synmask.pipeline.guidance import Guidance; "
        "from synmask.pipeline.export.card import model_card; "
        f"print(model_card(Path({str(tmp_path / 'a.pt')!r}), {{}}, Guidance(guide='grammar'), '', [], {{}}))"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", call], capture_output=True, text=True, check=True)
    assert ast.get_docstring(ast.parse(Path(grammar.__file__).read_text())).splitlines()[0] in done.stdout
