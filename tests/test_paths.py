"""The folders of results/: filled, recognised, and written in one place."""

import re
from pathlib import Path

from synmask.pipeline.paths import TASK, filled, run_file

ROOT = Path(__file__).parents[1]


def test_a_pattern_is_filled_and_keeps_other_wildcards():
    assert filled(TASK / "{part}.tsv", benchmark="glue", task="rte") == "results/glue/rte/{part}.tsv"
    assert (
        run_file("demo", "pt-BR-en", "lisa", 2, "train.json") == "results/demo/pt-BR-en/lisa/seed2/train.json"
    )


def test_no_rule_and_no_module_writes_a_folder_of_results_out():
    files = [ROOT / "Snakefile", *ROOT.glob("workflow/rules/*.smk"), *ROOT.glob("src/synmask/**/*.py")]
    told = {
        str(path.relative_to(ROOT))
        for path in files
        if re.search(r"""["']results/[^"' ]""", path.read_text())
    }
    assert told == set()
