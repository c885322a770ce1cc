"""The folders of results/: filled, recognised, and written in one place."""

import re
from pathlib import Path

from synmask.pipeline.paths import PAIR, RUN, TASK, as_regex, filled, run_file

ROOT = Path(__file__).parents[1]


def test_a_pattern_is_filled_and_keeps_other_wildcards():
    assert filled(TASK / "{part}.tsv", benchmark="glue", task="rte") == "results/glue/rte/{part}.tsv"
    assert (
        run_file("demo", "pt-BR-en", "lisa", 2, "train.json") == "results/demo/pt-BR-en/lisa/seed2/train.json"
    )


def test_a_path_tells_its_wildcards():
    found = re.match(
        as_regex(RUN / "", source="[a-z]{2}", target="[a-z]{2}"), "results/demo/de-en/lisa/seed2/train.json"
    )
    assert found.groupdict() == {
        "corpus": "demo",
        "source": "de",
        "target": "en",
        "system": "lisa",
        "seed": "2",
    }
    assert not re.match(
        as_regex(PAIR / "", source="[a-z]{2}", target="[a-z]{2}"), "results/weights/demo/model.pt"
    )


def test_no_rule_and_no_module_writes_a_folder_of_results_out():
    files = [ROOT / "Snakefile", *ROOT.glob("workflow/rules/*.smk"), *ROOT.glob("src/synmask/**/*.py")]
    told = {
        str(path.relative_to(ROOT))
        for path in files
        if re.search(r"""["']results/[^"' ]""", path.read_text())
    }
    assert told == set()
