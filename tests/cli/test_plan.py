import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from small_models import count_parameters, fit, model_text, typed
from synmask.pipeline.cli import plan
from synmask.pipeline.cli.plan import RESUMED_VALUES, parsing_lines, plan_lines, rows_of, text_lines
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.runs import Run, trainings
from synmask.pipeline.training import checkpoints
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.model_file import save_model
from synmask.pipeline.workflow.hours import Estimator

ROOT = Path(__file__).parents[2]
FILES = project_files(ROOT)


def configuration(change=lambda values: None):
    values = read_all(FILES)
    change(values)
    return load(values)


def test_trainings_are_those_of_the_experiments(tmp_path):
    rows = rows_of(configuration(), ["demo", "multi30k-small"], tmp_path)
    assert {row.name: row.count for row in rows} == {
        **{f"demo/de-en/{system}": 2 for system in ("transformer", "grammar-mended", "grammar")},
        **{f"multi30k-small/de-en/{system}": 1 for system in ("transformer", "grammar")},
    }


def test_what_two_experiments_share_is_counted_once(tmp_path):
    def changed(values):
        values["experiments"]["again"] = values["experiments"]["demo"] | {"seeds": [2, 3]}

    rows = rows_of(configuration(changed), ["demo", "again"], tmp_path)
    assert [row.count for row in rows] == [3] * 3


def test_a_table_is_planned_with_its_own_rows_alone(tmp_path):
    rows = rows_of(configuration(), ["mlm-core"], tmp_path)
    assert {row.name for row in rows} == {
        f"{corpus}/{direction}/{system}"
        for corpus in ("iwslt14", "nc11")
        for direction in ("de-en", "en-de")
        for system in ("transformer", "grammar-nomlm", "grammar")
    }
    assert {row.count for row in rows} == {5}


def test_the_papers_own_rows_need_no_other_systems(tmp_path):
    rows = rows_of(configuration(), ["paper-core"], tmp_path)
    translating = [row for row in rows if "-" in row.name.split("/")[1] and len(row.name.split("/")) == 3]
    systems = {row.name.split("/")[2] for row in translating}
    assert systems == {"transformer", "grammar-nobpe", "grammar-nomlm", "grammar"}
    assert sum(row.count for row in translating) == (2 * 2 * 4 + 2 * 3) * 5
    tuned = [job for job in trainings(configuration(), ["paper-core"]) if job.rule == "finetune"]
    systems = {job.wildcards["system"] for job in tuned}
    assert systems == {"roberta", "roberta-grammar", "roberta-grammar-mlm"}
    assert sum(row.count for row in rows if row.name.startswith("glue/")) == len(tuned) == 8 * 3 * 5


@pytest.mark.parametrize(
    ("corpus", "direction"),
    [("demo", "de-en"), ("multi30k-small", "de-en"), ("iwslt14", "de-en"), ("aspec", "zh-ja")],
)
def test_parameters_are_nearly_those_of_the_model(corpus, direction, tmp_path):
    """With vocabularies as large as the number of merges; guides of one's own are not counted."""
    config = configuration()
    merges, systems = config.corpora[corpus].bpe.merges, ["transformer", "pascal", "lisa", "distance", "lpsi"]
    for system in [*systems, "structformer", "grammar-nobpe", "grammar-mended", "grammar"]:
        row = Estimator(config, tmp_path).workload(Run(corpus, *direction.split("-"), system, 1))
        exact = count_parameters(config.run_settings(corpus, direction, system), merges, merges)
        assert row.parameters == pytest.approx(exact, rel=0.03), system


@pytest.mark.parametrize(
    ("system", "checkpoint"), [("plain", "average"), ("plain", "best"), ("grammar", "average")]
)
def test_the_forecast_is_what_a_training_takes(
    corpus, tmp_path, all_settings, valid_losses, system, checkpoint, monkeypatch
):
    """Bytes of checkpoints and of the averaged model within a few per cent, by the parameters."""
    settings = all_settings[system]
    settings = settings | {"model": settings["model"] | {"embed_dim": 128, "ffn_dim": 512}}
    run, keep, sizes = tmp_path / "run", 3 if checkpoint == "average" else 1, []
    if checkpoint == "best":
        valid_losses(3.0, 2.0, 1.0)  # each epoch is better than the one before, which takes most space
        settings = settings | {"training": settings["training"] | {"checkpoint": "best"}}
    replace = os.replace

    def measured(*paths):
        replace(*paths)
        sizes.append(sum(path.stat().st_size for path in run.glob("checkpoints/*/*.pt")))

    monkeypatch.setattr(os, "replace", measured)
    fit(corpus / "bin", run, typed(settings), keep=keep)
    parameters = json.loads((run / "train.json").read_text())["parameters"]
    text = model_text()
    save_model(run / "average.pt", average(run, keep), corpus / "bin", text, typed(settings))
    checkpoints.keep_final_only(
        checkpoints.trained_folder(run), run / "average.pt", checkpoints.average_file(keep)
    )
    kept = sum({path.stat().st_ino: path.stat().st_size for path in run.rglob("*.pt")}.values())

    def as_here(values):
        values["corpora"]["demo"]["training"] |= {"average": keep, "checkpoint": checkpoint}

    row = rows_of(configuration(as_here), ["demo"], tmp_path)[0]
    assert kept == pytest.approx(row.kept / row.parameters * parameters, rel=0.05)
    assert max(sizes) == pytest.approx(row.working / row.parameters * parameters, rel=0.05)


def test_checkpoints_that_are_kept_take_their_space(tmp_path):
    def kept(values):
        values["corpora"]["demo"]["training"] |= {"average": 3}
        values["corpora"]["demo"]["resources"]["keep_checkpoints"] = True

    row = rows_of(configuration(kept), ["demo"], tmp_path)[0]
    assert row.kept == 4 * row.parameters * (1 + 3 + 2 * RESUMED_VALUES)


def test_done_and_hours_come_from_results(tmp_path):
    run = tmp_path / "demo/de-en/grammar/seed1"
    run.mkdir(parents=True)
    summary = {"train_seconds": 1800.0, "workers": 2, "device": "H100"}
    (run / "train.json").write_text(json.dumps(summary))
    rows = {row.name.split("/")[2]: row for row in rows_of(configuration(), ["demo"], tmp_path)}
    assert (rows["grammar"].count, rows["grammar"].left, rows["grammar"].hours.gpu) == (2, 1, 1.0)
    message = "\n".join(plan_lines(list(rows.values()), results=tmp_path))
    assert "trainings  6, 1 of them done" in message
    cells = {line.split()[0].split("/")[2]: line.split() for line in message.splitlines()[1:4]}
    assert cells["grammar"][1:6] == ["2", "1", "1.6", "M", "1.00"]


def test_a_system_that_reads_templates_is_two_trainings(tmp_path):
    def changed(values):
        values["experiments"]["demo"] |= {"systems": ["st-nmt"], "tables": ["translation"]}

    run = tmp_path / "demo/de-en/st-nmt/seed1/template"
    run.mkdir(parents=True)
    (run / "train.json").write_text(
        json.dumps({"train_seconds": 36.0, "workers": 1, "threads": 2, "device": "CPU"})
    )
    config = configuration(changed)
    rows = rows_of(config, ["demo"], tmp_path)
    assert [(row.name, row.count, row.left) for row in rows] == [
        ("demo/de-en/st-nmt/template", 2, 1),
        ("demo/de-en/st-nmt", 2, 2),
    ]
    assert rows[0].hours.cpu == pytest.approx(0.02)
    merges = config.corpora["demo"].bpe.merges
    first = count_parameters(config.template_settings("demo", "de-en", "st-nmt"), merges, merges)
    assert rows[0].parameters == pytest.approx(first, rel=0.01)
    both = count_parameters(config.run_settings("demo", "de-en", "st-nmt"), *[merges] * 3)
    assert rows[1].parameters == pytest.approx(both, rel=0.25)
    assert "trainings  4, 1 of them done" in "\n".join(plan_lines(rows, results=tmp_path))


def test_too_little_disk_or_memory_is_told(tmp_path, monkeypatch):
    rows = rows_of(configuration(), ["demo"], tmp_path)
    assert "WARNING" not in "\n".join(plan_lines(rows, results=tmp_path))
    few = shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: few)
    message = list(plan_lines(rows, results=tmp_path / "not there yet"))
    assert any(line.startswith("WARNING") and line.endswith("not enough space") for line in message)

    def wide(values):
        values["corpora"]["demo"]["model"] |= {"embed_dim": 8192, "ffn_dim": 8192}

    rows = rows_of(configuration(wide), ["demo"], tmp_path)
    message = "\n".join(plan_lines(rows, results=tmp_path))
    needed = f"{rows[0].parameters * 16 / 1e9:.1f} GB"  # itself, its gradient and Adam's two moments
    assert f"demo/de-en/transformer takes {needed} of memory at least; it asks for 3,000 MB" in message


def test_the_docs_state_the_disk_of_checkpoints():
    resumed = 3 * RESUMED_VALUES  # of last.pt, previous.pt and one that is being written
    assert f"(`average` + {resumed})" in (ROOT / "docs/reliability.md").read_text()


def test_pre_trainings_of_a_benchmark_are_planned(tmp_path):
    config = configuration()

    def pretrained(target):
        return [job.wildcards["weights"] for job in trainings(config, [target]) if "weights" in job.wildcards]

    assert pretrained("demo") == []
    assert pretrained("glue-mlm") == []  # published weights
    assert pretrained("glue") == ["roberta-base-synclm"]
    (tmp_path / "weights/roberta-demo").mkdir(parents=True)
    summary = {"train_seconds": 120.0, "workers": 1, "threads": 1, "device": "CPU"}
    (tmp_path / "weights/roberta-demo/train.json").write_text(json.dumps(summary))
    rows = rows_of(config, ["nlu-demo-all"], tmp_path)
    assert [(row.name, row.left) for row in rows if row.name.startswith("weights/")] == [
        ("weights/roberta-demo", 0),
        ("weights/roberta-demo-continued", 1),
        ("weights/roberta-demo-synclm", 1),
    ]
    assert rows[0].name == "weights/roberta-demo"
    assert rows[0].hours.cpu == pytest.approx(120 / 3600)
    message = "\n".join(plan_lines(rows, results=tmp_path))
    assert f"trainings  {3 + 4 * 7 * 2}, 1 of them done" in message


def test_fine_tunings_of_roberta_base_need_its_size(tmp_path):
    """Its 124.6 million parameters, though only its files, which are not here, say them."""
    [row] = rows_of(configuration(), ["glue-core-rte"], tmp_path)
    assert (row.name, row.count) == ("glue/rte", 10)
    assert row.parameters == pytest.approx(124.6e6, rel=0.01)
    needed = row.parameters * 4 * (10 + 12)  # each, and the checkpoints of one
    disk = next(line for line in plan_lines([row], results=tmp_path) if line.startswith("disk"))
    assert f"{needed / 1e9:.1f} GB are needed for models still to come, " in disk


def test_hours_of_parsing_are_said_for_each_task():
    config = configuration()
    assert not list(parsing_lines(config, ["glue-mlm", "nlu-demo"]))
    found = list(parsing_lines(config, ["glue"]))
    assert len(found) == 8
    mnli = next(line for line in found if "glue/mnli" in line)
    count = (392702 + 9815 + 9832) * 2
    hours = count / 11 / config.corenlp.threads / 3600
    assert f"at most {count:,} sentences, {hours:.2f} hours with 2 threads" in mnli


def test_hours_of_parsing_for_pre_training_are_said():
    """Of a table whose systems read no parses, but whose weights are pre-trained on those of four tasks."""

    def synclm(values):
        values["benchmarks"]["glue"]["weights_of"] = {"roberta": "roberta-base-synclm"}
        values["tables"]["glue-attention"]["systems"] = ["roberta"]

    found = {line.split()[1] for line in parsing_lines(configuration(synclm), ["glue-attention"])}
    assert found == {"glue/cola:", "glue/rte:", "glue/mrpc:", "glue/sts-b:"}


def test_text_that_will_be_dropped_is_warned_of_by_a_sample(tmp_path, monkeypatch):
    def own(values, **limits):
        files = {split: f"{tmp_path}/{split}.{{language}}" for split in ("train", "valid", "test")}
        text = {"tokeniser": "moses", **limits}
        values["corpora"]["mine"] = {"languages": ["ja", "en"], "files": files, "text": text}
        systems = {"directions": ["ja-en"], "systems": ["transformer", "grammar"], "seeds": [1, 2]}
        values["experiments"]["mine"] = {"title": "Mine", "corpus": "mine", **systems}

    config = configuration(own)
    assert [*text_lines(config, ["mine", "demo"])] == []  # no file is there
    for language, rows in (("ja", ["ネコが好きです。", "犬"]), ("en", ["I am very fond of cats.", "A dog"])):
        (tmp_path / f"train.{language}").write_text("".join(f"{row}\n" for row in rows * 50))
    reasons = "100 of 100 training pairs are dropped: 100 of too different length"
    advice = "raise corpora.mine.text.max_ratio (null: no limit)"
    assert [*text_lines(config, ["mine"])] == [f"WARNING    mine/ja-en: in a sample {reasons}; {advice}"]
    monkeypatch.setattr(plan, "SAMPLED_PAIRS", 40)
    assert [line.partition("sample ")[2][:9] for line in text_lines(config, ["mine"])] == ["40 of 40 "]
    assert [*text_lines(configuration(partial(own, max_ratio=9)), ["mine"])] == []
    assert [
        *text_lines(configuration(partial(own, tokeniser=None, max_ratio=2)), ["mine"])
    ] == []  # MeCab's words


def test_a_sample_is_of_the_whole_text():
    chosen = [
        int(source)
        for source, _ in plan.reservoir_sample(((str(number), "") for number in range(10_000)), 100)
    ]
    assert len({*chosen}) == 100
    assert 4000 < sum(chosen) / 100 < 6000
