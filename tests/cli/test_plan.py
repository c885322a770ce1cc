import json
import os
import shutil
from pathlib import Path

import pytest

from small_models import fit, model_text, typed
from synmask.pipeline.cli.plan import RESUME, lines, parsing_lines, rows_of
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.training import checkpoints
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.model_file import save_model
from synmask.pipeline.translation.parameters import count_parameters
from synmask.pipeline.workflow.trainings import trainings

ROOT = Path(__file__).parents[2]
FILES = project_files(ROOT)


def configuration(change=lambda values: None):
    values = read_all(FILES)
    change(values)
    return load(values, FILES)


def symbols(count):
    return "".join(f"x{number} 1\n" for number in range(count))


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
    translating = [row for row in rows if row.parameters]
    systems = {row.name.split("/")[2] for row in translating}
    assert systems == {"transformer", "grammar-nobpe", "grammar-nomlm", "grammar"}
    assert sum(row.count for row in translating) == (2 * 2 * 4 + 2 * 3) * 5
    tuned = [job for job in trainings(configuration(), ["paper-core"]) if job.rule == "finetune"]
    systems = {job.wildcards["system"] for job in tuned}
    assert systems == {"roberta", "roberta-grammar", "roberta-grammar-mlm"}
    assert sum(row.count for row in rows if row.name.startswith("glue/")) == len(tuned) == 8 * 3 * 5


@pytest.mark.parametrize(
    ("system", "checkpoint"), [("plain", "average"), ("plain", "best"), ("grammar", "average")]
)
def test_the_forecast_is_what_a_training_takes(
    corpus, tmp_path, all_settings, valid_losses, system, checkpoint, monkeypatch
):
    """Parameters to the last one; bytes of checkpoints and of the averaged model within a few per cent."""
    settings = all_settings[system]
    settings = settings | {"model": settings["model"] | {"embed_dim": 128, "ffn_dim": 512}}
    run, keep, sizes = tmp_path / "run", 2 if checkpoint == "average" else 1, []
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
    symbols = [len((corpus / f"bin/dict.{side}.txt").read_text().splitlines()) + 4 for side in ("de", "en")]
    assert count_parameters(typed(settings), *symbols) == parameters
    text = model_text()
    save_model(run / "average.pt", average(run, keep), corpus / "bin", text, typed(settings))
    checkpoints.retire(checkpoints.trained(run), run / "average.pt", checkpoints.average_file(keep))
    kept = sum(path.stat().st_size for path in run.rglob("*.pt"))

    def as_here(values):
        values["corpora"]["demo"]["training"] |= {"average": keep, "checkpoint": checkpoint}

    row = rows_of(configuration(as_here), ["demo"], tmp_path)[0]
    assert kept == pytest.approx(row.kept / row.parameters * parameters, rel=0.05)
    assert max(sizes) == pytest.approx(row.working / row.parameters * parameters, rel=0.05)


def test_done_hours_and_vocabulary_come_from_results(tmp_path):
    run = tmp_path / "demo/de-en/grammar/seed1"
    run.mkdir(parents=True)
    summary = {"train_seconds": 1800.0, "workers": 2, "device": "H100"}
    (run / "train.json").write_text(json.dumps(summary))
    (tmp_path / "demo/de-en/bin").mkdir()
    for side, size in (("de", 996), ("en", 796)):
        (tmp_path / f"demo/de-en/bin/dict.{side}.txt").write_text(symbols(size))
    rows = {row.name.split("/")[2]: row for row in rows_of(configuration(), ["demo"], tmp_path)}
    assert (rows["grammar"].done, rows["grammar"].left, rows["grammar"].hours.gpu) == (1, 1, 1.0)
    assert rows["grammar"].hours.measured == {"gpu"}
    assert rows["transformer"].hours.measured == frozenset()
    settings = configuration().run_settings("demo", "de-en", "grammar")
    assert rows["grammar"].parameters == count_parameters(settings, 1000, 800)
    assert not rows["grammar"].estimated
    message = "\n".join(lines(list(rows.values()), results=tmp_path))
    assert "trainings  6, 1 of them done" in message
    cells = {line.split()[0].split("/")[2]: line.split() for line in message.splitlines()[1:4]}
    assert cells["grammar"][5] == "1.00"  # measured
    assert all(cells[system][6].startswith("~") for system in ("transformer", "grammar-mended"))


def test_a_system_that_reads_templates_is_two_trainings(tmp_path):
    def changed(values):
        values["experiments"]["demo"] |= {"systems": ["st-nmt"], "tables": ["translation"]}

    folder = tmp_path / "demo/de-en"
    sizes = {"bin/dict.de": 1000, "bin/dict.en": 800}
    sizes |= {"st-nmt/templates/bin/dict.de": 990, "st-nmt/templates/bin/dict.en": 500}
    for name, size in sizes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_text(symbols(size - 4))
    run = folder / "st-nmt/seed1/template"
    run.mkdir(parents=True)
    (run / "train.json").write_text(
        json.dumps({"train_seconds": 36.0, "workers": 1, "threads": 2, "device": "CPU"})
    )
    config = configuration(changed)
    rows = rows_of(config, ["demo"], tmp_path)
    assert [(row.name, row.done, row.hours.measured) for row in rows] == [
        ("demo/de-en/st-nmt/template", 1, {"cpu"}),
        ("demo/de-en/st-nmt", 0, set()),
    ]
    assert rows[0].hours.cpu == pytest.approx(0.02)
    run = ("demo", "de-en", "st-nmt")
    first = count_parameters(config.template_settings(*run), 990, 500)
    assert (
        rows[0].parameters
        == first
        == count_parameters(config.run_settings(*run[:2], "transformer"), 990, 500)
    )
    assert rows[1].parameters == count_parameters(config.run_settings(*run), 1000, 800, 500)
    assert not any(row.estimated for row in rows)
    message = "\n".join(lines(rows, results=tmp_path))
    assert "trainings  4, 1 of them done" in message


def test_too_little_disk_or_memory_is_told(tmp_path, monkeypatch):
    rows = rows_of(configuration(), ["demo"], tmp_path)
    assert "WARNING" not in "\n".join(lines(rows, results=tmp_path))
    few = shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: few)
    message = list(lines(rows, results=tmp_path / "not there yet"))
    assert any(line.startswith("WARNING") and line.endswith("not enough space") for line in message)

    def wide(values):
        values["corpora"]["demo"]["model"] |= {"embed_dim": 8192, "ffn_dim": 8192}

    rows = rows_of(configuration(wide), ["demo"], tmp_path)
    message = "\n".join(lines(rows, results=tmp_path))
    needed = f"{rows[0].parameters * 16 / 1e9:.3g} GB"  # itself, its gradient and Adam's two moments
    assert f"demo/de-en/transformer takes {needed} of memory at least; it asks for 3,000 MB" in message


def test_the_docs_state_the_disk_of_checkpoints():
    resumed = 3 * RESUME  # of last.pt, previous.pt and one that is being written
    assert f"(`average` + {resumed})" in (ROOT / "docs/reliability.md").read_text()


def test_hours_of_parsing_are_said_for_each_task():
    config = configuration()
    assert not list(parsing_lines(config, ["glue-mlm", "nlu-demo"]))
    found = list(parsing_lines(config, ["glue"]))
    assert len(found) == 8
    mnli = next(line for line in found if "glue/mnli" in line)
    count = (392702 + 9815 + 9832) * 2
    hours = count / 11 / config.corenlp.threads / 3600
    assert f"at most {count:,} sentences in 17 files: {hours:.2f} hours with 2 threads" in mnli


def test_hours_of_parsing_for_pre_training_are_said():
    """Of a table whose systems read no parses, but whose weights are pre-trained on those of four tasks."""

    def synclm(values):
        values["benchmarks"]["glue"]["weights_of"] = {"roberta": "roberta-base-synclm"}
        values["tables"]["glue-attention"]["systems"] = ["roberta"]

    found = [line.split()[1] for line in parsing_lines(configuration(synclm), ["glue-attention"])]
    assert found == ["glue/cola:", "glue/rte:", "glue/mrpc:", "glue/sts-b:"]


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
    made = {row.name: (row.done, row.hours.measured) for row in rows if row.name.startswith("weights/")}
    assert made == {
        "weights/roberta-demo": (1, {"cpu"}),
        "weights/roberta-demo-continued": (0, set()),
        "weights/roberta-demo-synclm": (0, set()),
    }
    assert rows[0].name == "weights/roberta-demo"
    assert rows[0].hours.cpu == pytest.approx(120 / 3600)
    message = "\n".join(lines(rows, results=tmp_path))
    assert f"trainings  {3 + 4 * 7 * 2}, 1 of them done" in message


def test_models_of_unknown_size_are_not_said_to_need_no_disk(tmp_path):
    """Those of RoBERTa-base, whose sizes come with its weights."""

    def disk(*targets):
        rows = rows_of(configuration(), targets, tmp_path)
        return next(line for line in lines(rows, results=tmp_path) if line.startswith("disk"))

    assert "0 B are needed for models still to come (without 10 of unknown size), " in disk("glue-core-rte")
    assert "unknown" not in disk("demo")
