"""How long trainings take: from reference machines, from those that ran here."""

import gzip
import json
import re
import tarfile
from pathlib import Path

import pytest

from synmask.pipeline.config.benchmarks import WeightsSource
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.config.sections import Batch
from synmask.pipeline.errors import UserError
from synmask.pipeline.guidance import GUIDES
from synmask.pipeline.runs import Pretraining, Run, Tuning
from synmask.pipeline.workflow.hours import MULTIPLIED, REFERENCE, Estimator, Hours, total

ROOT = Path(__file__).parents[2]


def estimator(results, **changes):
    values = read_all(project_files(ROOT))
    for corpus, keys in changes.items():
        values["corpora"][corpus.replace("_", "-")] |= keys
    return Estimator(load(values), results)


def translation(corpus, direction, system):
    source, target = direction.split("-")
    return Run(corpus, source, target, system, 1)


def tuning(benchmark, task):
    return Tuning(benchmark, task, "roberta", 1)


def weights(name):
    return Pretraining(name)


def ran(results, run, seconds, device, threads=1, workers=1):
    path = results / run / "train.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        json.dumps({"train_seconds": seconds, "device": device, "threads": threads, "workers": workers})
    )


def test_the_reference_model_takes_the_reference_s_seconds(tmp_path):
    """At the size of the benchmark: hours are the number of batches times the seconds of a step."""
    found = estimator(tmp_path).hours(translation("iwslt14", "de-en", "transformer"))
    batches = 160239 * 24.9 * 60 / (4096 * 0.85)
    assert found.gpu == pytest.approx(batches * 0.055 / 3600)
    assert found.cpu == pytest.approx(batches * 4 * 1.326 / 3600)  # of 1,024 tokens, on a core
    grammar = estimator(tmp_path).hours(translation("iwslt14", "de-en", "grammar"))
    assert grammar.gpu / found.gpu == pytest.approx(0.176 / 0.055)


@pytest.mark.parametrize("text", ["[]", "{}", '{"train_seconds": "x"}', "x"])
def test_a_record_that_is_none_is_one_line(tmp_path, text):
    ran(tmp_path, "demo/de-en/grammar/seed1", 60, "CPU")
    path = tmp_path / "demo/de-en/grammar/seed1/train.json"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}: .*delete it and rerun$"):
        estimator(tmp_path).hours(translation("demo", "de-en", "grammar"))


def test_a_copy_beside_a_run_is_not_measured(tmp_path):
    ran(tmp_path, "demo/de-en/grammar/seed1", 3600, "CPU")
    for copy in ("de-en/grammar/seed1.old", "de-en/grammar/seed01", "de-en.old/grammar/seed1"):
        ran(tmp_path, f"demo/{copy}", 7200, "CPU")
    assert estimator(tmp_path).hours(translation("demo", "de-en", "grammar")).cpu == pytest.approx(1.0)


def test_every_system_on_every_corpus_has_hours(tmp_path):
    here = estimator(tmp_path)
    for experiment in here.config.plain_experiments.values():
        for direction in experiment.directions:
            for system in experiment.systems:
                found = here.hours(translation(experiment.corpus, direction, system))
                assert found.gpu > 0
                assert found.cpu > 0
    guides = set(GUIDES) - {"sla", "syntax"}  # these are RoBERTa's
    assert guides == {"none", "grammar", *REFERENCE["like"]}


def test_a_small_model_is_bound_by_its_calls(tmp_path):
    found = estimator(tmp_path).hours(translation("multi30k-small", "de-en", "transformer"))
    assert found.gpu == pytest.approx(29000 * 15.5 * 10 / (2000 * 0.85) * 0.041 / 3600)


@pytest.mark.parametrize(("system", "measured"), [("transformer", 0.436), ("grammar", 0.599)])
def test_a_small_model_takes_a_core_what_was_measured(tmp_path, system, measured):
    """Seconds of a step of multi30k-small on 1,024 tokens: reference.yaml, `power`, on the reference machine.

    docs/performance.md is measured on whatever machine there is: it may differ by a factor of 1.5.
    """
    page = (ROOT / "docs/performance.md").read_text()
    rows = dict(re.findall(r"\| AVX-512 \| (transformer|grammar) \| [\d.]+ M \| ([\d.]+) \(", page)[:2])
    steps = 29000 * 15.5 * 10 / (2000 * 0.85)
    hours = estimator(tmp_path).hours(translation("multi30k-small", "de-en", system)).cpu
    seconds = hours * 3600 / steps * 1024 / 2000
    assert seconds == pytest.approx(measured, rel=0.15)
    assert 2 / 3 < seconds / float(rows[system]) < 3 / 2


def test_more_layers_and_epochs_take_longer(tmp_path):
    plain = estimator(tmp_path).hours(translation("multi30k", "de-en", "grammar"))
    epochs = estimator(tmp_path, multi30k={"training": {"max_epochs": 80}}).hours(
        translation("multi30k", "de-en", "grammar")
    )
    assert epochs.cpu == pytest.approx(2 * plain.cpu)
    model = {"encoder_layers": 12, "decoder_layers": 12, "embed_dim": 512, "ffn_dim": 1024, "heads": 4}
    layers = estimator(tmp_path, multi30k={"model": model}).hours(translation("multi30k", "de-en", "grammar"))
    assert 1.7 < layers.cpu / plain.cpu < 2


def test_the_text_is_counted_once_it_is_prepared(tmp_path):
    (tmp_path / "demo/de-en/bpe").mkdir(parents=True)
    (tmp_path / "demo/de-en/bpe/train.en").write_text("a b@@ c\nd\n" * 500)  # 4 sub-words and 2 ends
    found = estimator(tmp_path).hours(translation("demo", "de-en", "transformer"))
    assert found.gpu == pytest.approx(3000 * 6 / (1000 * 0.85) * 0.041 / 3600)


def test_trainings_that_ran_here_take_the_place_of_estimates(tmp_path):
    ran(tmp_path, "demo/de-en/grammar/seed1", 1800, "CPU", threads=4)
    ran(tmp_path, "demo/de-en/grammar/seed2", 3600, "CPU", threads=4)
    ran(tmp_path, "demo/de-en/transformer/seed1", 60, "A100", workers=2)
    here = estimator(tmp_path)
    found = here.hours(translation("demo", "de-en", "grammar"))
    assert found.cpu == pytest.approx(3.0)
    assert here.hours(translation("demo", "de-en", "transformer")).gpu == pytest.approx(120 / 3600)
    other = "multi30k", "de-en", "lpsi"  # no such training ran: the reference's, as before
    assert here.hours(translation(*other)) == estimator(tmp_path / "nothing").hours(translation(*other))


def test_the_size_of_ones_own_corpus_is_counted_or_asked_for(tmp_path):
    files = {part: str(tmp_path / f"{part}.{{language}}") for part in ("train", "valid", "test")}
    values = read_all(project_files(ROOT))
    values["corpora"]["mine"] = {"languages": ["de", "en"], "files": files}
    here = Estimator(load(values), tmp_path)
    assert here.hours(translation("mine", "de-en", "grammar")).gpu is None
    (tmp_path / "train.en").write_text(f"{'a' * 89}\n" * 1000)  # 20 sub-words per pair, its end included
    found = Estimator(here.config, tmp_path).hours(translation("mine", "de-en", "grammar"))
    like = estimator(tmp_path, iwslt14={"pairs": {"train": 1000}}).hours(
        translation("iwslt14", "de-en", "grammar")
    )
    assert found.cpu == pytest.approx(like.cpu * 20 / 24.9)


def test_a_truncated_text_has_no_size(tmp_path):
    values = read_all(project_files(ROOT))
    files = {part: str(tmp_path / f"{part}.{{language}}.gz") for part in ("train", "valid", "test")}
    values["corpora"]["mine"] = {"languages": ["de", "en"], "files": files}
    (tmp_path / "train.en.gz").write_bytes(gzip.compress(b"a\n" * 1000)[:-10])
    assert DataFiles(load(values)).number_of_pairs("mine", "en") is None


def test_fine_tunings_take_the_paper_s_hours(tmp_path):
    here = estimator(tmp_path)
    tasks = here.config.benchmarks["glue"].tasks
    assert sum(here.hours(tuning("glue", task)).gpu for task in tasks) == pytest.approx(7, rel=0.02)
    assert here.hours(tuning("nlu-demo", "acceptability")).gpu == pytest.approx(250 * 0.041 / 3600)
    assert here.hours(tuning("nlu-demo", "acceptability")).cpu == pytest.approx(250 * 0.165 / 3600, rel=0.01)
    ran(tmp_path, "glue/rte/roberta/seed1", 1800, "A100")
    assert here.hours(tuning("glue", "rte")).gpu == pytest.approx(0.5)


def test_pre_training_takes_as_long_as_its_tokens(tmp_path):
    here = estimator(tmp_path)

    def updates(read):  # of 1,000 tokens each
        return read / (1000 * 0.85)

    found = here.hours(weights("roberta-demo"))  # 16,000 documents, 3 epochs, 1,500 tokens per batch
    demo = here.config.weights["roberta-demo"].pretrain
    size = len(gzip.decompress((ROOT / demo.text["train"][0]).read_bytes()))
    assert found.gpu == pytest.approx(updates(size / 4.5 * 3) / 1.5 * 0.041 / 3600)
    plain = {"train": (str(tmp_path / "train.en"),), "valid": (str(tmp_path / "valid.en"),)}
    training = demo.training.model_copy(update={"max_epochs": 4, "batch": Batch(gpus=1, tokens=1000)})
    here.config.weights["roberta-demo"] = WeightsSource(
        pretrain=demo.model_copy(update={"text": plain, "training": training})
    )
    assert here.hours(weights("roberta-demo")).gpu is None  # its text is not there
    (tmp_path / "train.en").write_text("x" * 90_000)
    found = here.hours(weights("roberta-demo"))
    assert found.gpu == pytest.approx(updates(20_000 * 4) * 0.041 / 3600)
    assert found.cpu == pytest.approx(updates(20_000 * 4) * 0.11 / 3600, rel=0.3)
    ran(tmp_path, "weights/roberta-demo", 1800, "CPU", threads=4)
    assert here.hours(weights("roberta-demo")).cpu == 2.0
    for name in ("continued", "synclm"):
        assert here.hours(weights(f"roberta-demo-{name}")).gpu == pytest.approx(400 * 0.041 / 3600)


def test_pre_training_of_a_large_model_takes_as_long_as_its_parameters(tmp_path):
    """900 batches of 6,250 tokens, of RoBERTa-base: 12 layers of 4 d² + 2 d ffn parameters, d 768, ffn 3,072."""
    found = estimator(tmp_path).hours(weights("roberta-base-synclm"))
    size = 12 * (4 * 768**2 + 2 * 768 * 3072) / MULTIPLIED
    assert found.gpu == pytest.approx(900 * size / 3600 * 0.055 * 6250 / 4096)
    assert found.cpu == pytest.approx(900 * size / 3600 * 1.326 * 6250 / 1024)


def test_pre_training_on_text_of_an_unknown_size(tmp_path):
    values = read_all(project_files(ROOT))
    pretrain = values["weights"]["roberta-demo"]["pretrain"]
    pretrain["text"] = {"train": [str(tmp_path / "nowhere")], "valid": [str(tmp_path / "nowhere")]}
    assert Estimator(load(values), tmp_path).hours(weights("roberta-demo")).gpu is None


def test_what_the_reference_takes_from_the_shipped_runs_is_in_them(tmp_path):
    with tarfile.open(ROOT / "studies/multi30k/runs.tar.xz") as archive:
        names = [name for name in archive.getnames() if name.endswith(("de-en/train.json", "train.json"))]
        runs = {name: json.load(archive.extractfile(name)) for name in names if "/de-en/" in name}
    assert runs
    seconds = {}
    for name, summary in runs.items():
        seconds.setdefault(name.split("/")[-3], []).append(summary["train_seconds"])
    means = {system: sum(each) / len(each) for system, each in seconds.items()}
    for guide, (like, times) in REFERENCE["like"].items():
        if guide != "templates":
            base = {"none": "transformer", "grammar": "grammar"}[like]
            assert means[guide] / means[base] == pytest.approx(times, abs=0.006), guide
    [updates] = {summary["updates"] / summary["epochs"] for summary in runs.values()}
    assert updates == 263
    tokens = [
        run["tokens_per_second"] * run["train_seconds"] / run["epochs"] / 29000 for run in runs.values()
    ]
    assert sum(tokens) / len(tokens) == pytest.approx(REFERENCE["subwords"]["multi30k"], abs=0.2)
    assert sum(tokens) / len(tokens) * 29000 / 2000 / updates == pytest.approx(REFERENCE["filled"], abs=0.01)


def test_what_the_reference_takes_from_the_docs_stands_there():
    page, steps = ((ROOT / name).read_text() for name in ("docs/performance.md", "benchmarks/README.md"))
    words = re.search(
        r"`transformer` took ([\d.]+) s,.*`grammar` ([\d.]+) s .* launches, (\d+) and (\d+) ms", page, re.S
    )
    *seconds, least_none, least_grammar = map(float, words.groups())
    assert seconds == [REFERENCE["gpu"]["seconds"][guide] for guide in ("none", "grammar")]
    assert REFERENCE["gpu"]["least"] == {"none": least_none / 1000, "grammar": least_grammar / 1000}
    for guide, system in (("none", "transformer"), ("grammar", "grammar")):
        rows = [line for line in steps.splitlines() if line.startswith(f"| | | {system} | ")]
        assert str(REFERENCE["cpu"]["seconds"][guide]) in [row.split(" | ")[2] for row in rows]


def test_several_gpus_share_trainings_but_none_of_them():
    hours = [Hours(4.0, 8.0), *[Hours(1.0, 2.0)] * 2, Hours(None, None)]
    assert total(hours).startswith("about 6 h of training on one GPU, ")
    assert total(hours, 2).startswith("about 4 h of training on 2 GPUs, ")
    assert total([Hours(None, None)]) == ""
