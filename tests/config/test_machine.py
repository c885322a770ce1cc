"""A target must be possible on this machine: files, mirrors, memory and disk are checked before any job starts."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from synmask.pipeline.config import Fault, check_machine, load, merge, project_files, read_all
from synmask.pipeline.config.machine import RESUMED, check_size, least_parameters
from synmask.pipeline.translation.plan import count_parameters

ROOT = Path(__file__).parents[2]
MINE = {
    "corpora": {"mine": {"languages": ["de", "en"], "files": {split: f"my/{split}.{{language}}" for split in ("train", "valid", "test")}}},
    "experiments": {"mine": {"title": "Mine", "corpus": "mine", "directions": ["de-en"], "systems": ["transformer", "grammar"]}},
}  # fmt: skip


@pytest.fixture
def configure(tmp_path, monkeypatch):
    values = read_all(project_files(ROOT)) | {"published": str(ROOT / "workflow/published.yaml")}
    monkeypatch.chdir(tmp_path)
    return lambda *over: load(merge(values, merge(MINE, *over)), [])


def fault(config, *words):
    with pytest.raises(Fault) as found:
        check_machine(config, words)
    return ".".join(found.value.path), str(found.value)


def fill(*names):
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x\n")


def test_a_missing_text_of_ones_own(configure):
    config = configure({})
    check_machine(config, ["-n", "demo"])  # nobody asked for it
    texts = [f"my/{split}.{language}" for split in ("train", "valid", "test") for language in ("de", "en")]
    for words in (["mine"], ["-c2", "results/mine/de-en/text/train.de"]):
        assert fault(config, *words) == ("corpora.mine.files.train", "my/train.de: no such file")
    assert fault(configure({"targets": ["mine"]}), "-n")[0] == "corpora.mine.files.train"
    fill(*texts[:-1])
    assert fault(config, "mine") == ("corpora.mine.files.test", "my/test.en: no such file")
    fill("results/mine/de-en/text/test.en")  # it was used before
    check_machine(config, ["mine"])


def test_missing_gold_trees_of_ones_own(configure):
    config = configure({"corpora": {"mine": {"trees": {"valid": "my/valid.{language}.trees"}}}})
    fill(*(f"my/{split}.{language}" for split in ("train", "valid", "test") for language in ("de", "en")))
    assert fault(config, "mine") == ("corpora.mine.trees.valid", "my/valid.de.trees: no such file")


def test_a_mirror_that_is_no_folder(configure):
    config = configure({"mirrors": {"multi30k": "nowhere", "iwslt14": "https://example.org/x"}})
    assert fault(config, "multi30k-small") == ("mirrors.multi30k", "nowhere: no such folder")
    check_machine(config, ["demo", "iwslt14"])
    Path("data/multi30k").mkdir(parents=True)  # fetched from there before
    check_machine(config, ["multi30k"])


@pytest.mark.parametrize(
    ("over", "target", "place"),
    [
        ({"benchmarks": {"glue": {"folder": "glue"}}}, "glue", "benchmarks.glue.folder"),
        ({"weights": {"roberta-demo": {"pretrain": {"generate": None, "text": {"train": ["mine.txt"], "valid": ["results/demo/raw/valid.en"]}}}}}, "nlu-demo", "weights.roberta-demo.pretrain.text.train"),
    ],
)  # fmt: skip
def test_missing_folders_and_texts_of_a_benchmark(configure, over, target, place):
    assert fault(configure(over), target)[0] == place
    check_machine(configure(over), ["demo"])


@pytest.mark.parametrize("corpus", ["demo", "iwslt14", "aspec"])
def test_the_estimate_is_that_of_the_plan(configure, corpus):
    """Of the plain Transformer, within 2 per cent, and below it."""
    config = configure({})
    entry, direction = config.corpora[corpus], "zh-ja" if corpus == "aspec" else "de-en"
    sizes = (entry.bpe.merges, entry.bpe.merges + 100)
    counted = count_parameters(config.run_settings(corpus, direction, "transformer"), *sizes)
    assert 0.98 * counted < least_parameters(entry.model, *sizes) < counted


def test_what_cannot_fit_is_refused_unless_forced(configure, monkeypatch):
    for experiment in configure({}).plain_experiments:
        check_size(configure({}), experiment)
    fill(*(f"my/{split}.{language}" for split in ("train", "valid", "test") for language in ("de", "en")))
    for over in (
        {"bpe": {"merges": 10**12}},
        {"model": {"embed_dim": 10**9, "heads": 1}},
        {"model": {"encoder_layers": 10**6}},
    ):
        where, what = fault(configure({"corpora": {"mine": over}}), "mine")
        assert where == "corpora.mine"
        assert (
            "GB of memory, resources.mem_mb asks for 8 GB; make it smaller, or override with --config force=true"
            in what
        )
        check_machine(configure({"corpora": {"mine": over}, "force": True}), ["mine"])
        check_machine(configure({"corpora": {"mine": over}}), ["demo"])
    for over in ({"merges": 10**12}, {"model": {"embed_dim": 10**9}}):
        over = {"weights": {"roberta-demo": {"pretrain": over}}}
        where, what = fault(configure(over), "nlu-demo")
        assert where == "weights.roberta-demo.pretrain"
        assert "GB of memory, resources.mem_mb asks for 3 GB; make it smaller" in what
        check_machine(configure(over | {"force": True}), ["nlu-demo"])
        check_machine(configure(over), ["demo"])
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**8))
    assert "GB of disk in training, results/ has 0.1 GB left" in fault(configure({}), "mine")[1]


def test_the_docs_state_the_disk_of_checkpoints():
    assert f"(`average` + {RESUMED})" in (ROOT / "docs/reliability.md").read_text()


@pytest.mark.parametrize("code", ["ko", "kor"])
def test_a_target_that_cannot_be_scored_here(configure, monkeypatch, code):
    over = {
        "corpora": {"mine": {"languages": ["de", code], "training": {"mlm_weight": 0.3}}},
        "experiments": {"mine": {"directions": [f"de-{code}"]}},
    }
    fill(*(f"my/{split}.{side}" for split in ("train", "valid", "test") for side in ("de", code)))
    config = configure(over)
    monkeypatch.setattr("synmask.pipeline.config.machine.find_spec", lambda name: None)
    said = f"sacreBLEU lacks its tokeniser of {code}; pip install sacrebleu[ko]"
    assert fault(config, "mine") == ("corpora.mine.languages", said)
    monkeypatch.setattr("synmask.pipeline.config.machine.find_spec", lambda name: name)
    check_machine(config, ["mine"])
