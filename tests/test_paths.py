"""The folders of results/: filled, recognised, and written in one place."""

import re
from pathlib import Path

from synmask.pipeline.paths import RUN, TASK, TUNED, existing, fill, run_of_folder

ROOT = Path(__file__).parents[1]


def test_a_pattern_is_filled_and_keeps_other_wildcards():
    assert fill(TASK / "{part}.tsv", benchmark="glue", task="rte") == "results/glue/rte/{part}.tsv"
    run = fill(RUN / "train.json", "pt-BR-en", corpus="demo", system="lisa", seed=2)
    assert run == "results/demo/pt-BR-en/lisa/seed2/train.json"


def test_what_people_keep_beside_runs_is_no_run(tmp_path):
    runs = ["demo/de-en/grammar/seed1", "demo/pt-BR-en/lisa/seed10", "glue/rte/lisa/seed2"]
    kept = [
        "seed1.old",
        "seed1.bak2",
        "seed01",
        "seed0",
        "seed",
        "seeds",
        "seed-1",
        "seed1 (copy)",
        "old.seed1",
    ]
    kept = [f"demo/de-en/grammar/{name}" for name in kept] + ["demo/de-en.old/grammar/seed1"]
    for name in runs + kept:
        (tmp_path / name).mkdir(parents=True)
    assert existing(RUN, tmp_path) == [tmp_path / name for name in runs[:2]]
    assert existing(fill(RUN, corpus="demo", system="grammar"), tmp_path) == [tmp_path / runs[0]]
    assert existing(fill(TUNED, benchmark="glue", task="rte"), tmp_path) == [tmp_path / runs[2]]
    assert existing("seed{seed}/train.json", tmp_path / "demo/de-en/grammar") == []


def test_the_folder_of_a_run_says_which_it_is():
    translation = {"corpus": "demo", "direction": "pt-BR-en", "system": "st-nmt", "seed": 12}
    expected = {
        "results/demo/pt-BR-en/st-nmt/seed12": translation,
        "/tmp/a project/results/demo/pt-BR-en/st-nmt/seed12/template": translation,
        "results/glue/rte/lisa/seed2": {"corpus": "glue", "task": "rte", "system": "lisa", "seed": 2},
        "results/weights/roberta-demo": {"weights": "roberta-demo"},
        "results/demo/de-en/grammar/seed1.old": {},
        "results/demo/de-en/grammar": {},
        "old/demo/de-en/grammar/seed1": {},
        "run": {},
    }
    assert {folder: run_of_folder(Path(folder)) for folder in expected} == expected


def test_no_rule_and_no_module_writes_a_folder_of_results_out():
    files = [ROOT / "Snakefile", *ROOT.glob("workflow/rules/*.smk"), *ROOT.glob("src/synmask/**/*.py")]
    undocumented = {
        str(path.relative_to(ROOT))
        for path in files
        if re.search(r"""["']results/[^"' ]""", path.read_text())
    }
    assert undocumented == set()
