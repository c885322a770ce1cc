import csv
import itertools
import json
import math
import shutil
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from small_models import fit, folder_of, model_text, typed
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.config.sections import Decoding, TrainingSettings
from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.errors import TryAgain, UserError
from synmask.pipeline.evaluation.bleu import bleu
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.guidance import GUIDES
from synmask.pipeline.provenance import commit
from synmask.pipeline.training.binarise import binarise, encode_line, read_dictionary, write_binary
from synmask.pipeline.training.checkpoints import load_epoch_model, trained_folder
from synmask.pipeline.training.loop import _count_processes, _Loop
from synmask.pipeline.training.stopping import Stop
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.decode import decode_files
from synmask.pipeline.translation.model_file import load_model, save_model
from synmask.pipeline.translation.parse import parse
from synmask.pipeline.translation.train import TranslationStage
from synmask.pipeline.translation.valid_bleu import valid_bleu

KEEP = 2
DOCS = Path(__file__).parents[2] / "docs/workflow.md"
UPDATES = 6  # per epoch


def run(corpus, folder, settings, seed=1, **kwargs):
    fit(corpus / "bin", folder, typed(settings), keep=KEEP, seed=seed, **kwargs)
    return {path.name: load_epoch_model(path) for path in trained_folder(folder).glob("epoch*.pt")}


def same(first, second):
    assert first.keys() == second.keys()
    return all(torch.equal(first[file][name], second[file][name]) for file in first for name in first[file])


def test_a_training_whose_data_did_not_count_dictionaries_is_taken_over(
    corpus, tmp_path, settings, capsys, monkeypatch
):
    """As version 0.2.0 trained it: with any_code, it is finished, and its record is written again."""
    now = TranslationStage.data_files
    with monkeypatch.context() as older:
        older.setattr(
            TranslationStage,
            "data_files",
            lambda self: [path for path in now(self) if "dict." not in path.name],
        )
        first = run(corpus, tmp_path, settings, code="1")
    (tmp_path / "train.json").unlink()
    assert same(first, run(corpus, tmp_path, settings, code="2", any_code=1))
    assert "all 3 epochs are done" in capsys.readouterr().err
    assert json.loads((tmp_path / "train.json").read_text())["code"] == "2"
    run(corpus, tmp_path, settings, code="2")
    assert "all 3 epochs are done" not in capsys.readouterr().err


def test_seed_and_settings_decide_the_result(corpus, tmp_path, settings):
    first = run(corpus, tmp_path / "a", settings)
    assert same(first, run(corpus, tmp_path / "b", settings))
    assert not same(first, run(corpus, tmp_path / "c", settings, seed=2))


def test_other_syntax_is_other_data(corpus, tmp_path, settings_of, capsys):
    shutil.copytree(corpus / "bin", tmp_path / "bin")
    first = run(tmp_path, tmp_path / "a", settings_of("pascal"))
    plain = run(tmp_path, tmp_path / "b", settings_of("none"))
    array = np.load(tmp_path / "bin/syntax.train.de.npy")
    array[:, :2] = -1
    np.save(tmp_path / "bin/syntax.train.de.npy", array)
    assert not same(first, run(tmp_path, tmp_path / "a", settings_of("pascal")))
    assert "a training with other data has done 3 epochs" in capsys.readouterr().err
    assert same(plain, run(tmp_path, tmp_path / "b", settings_of("none")))
    assert "all 3 epochs are done" in capsys.readouterr().err


def test_other_symbols_are_other_data(corpus, tmp_path, settings, capsys):
    shutil.copytree(corpus / "bin", tmp_path / "bin")
    run(tmp_path, tmp_path / "a", settings)
    path = tmp_path / "bin/dict.en.txt"
    path.write_text(path.read_text().replace("bb ", "x "))
    run(tmp_path, tmp_path / "a", settings)
    assert "a training with other data has done 3 epochs" in capsys.readouterr().err


def test_other_validation_data_are_other_data(corpus, tmp_path, settings):
    """Their losses are in the history, and choose the best model."""
    shutil.copytree(corpus / "bpe", tmp_path / "bpe")
    losses = []
    for _ in range(2):
        binarise(text=tmp_path / "bpe", output=tmp_path / "bin", source="de", target="en")
        run(tmp_path, tmp_path / "a", settings)
        losses.append([row["valid_loss"] for row in csv.DictReader((tmp_path / "a/history.csv").open())])
        for side in ("de", "en"):
            lines = (tmp_path / f"bpe/valid.{side}").read_text().splitlines()[:4]
            (tmp_path / f"bpe/valid.{side}").write_text("".join(f"{line}\n" for line in lines))
    assert losses[0] != losses[1]


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_training_has_its_own_folder_and_ends_that_of_the_one_before(
    corpus, tmp_path, settings, monkeypatch, capsys
):
    """Not before it is finished itself: to go back before then costs nothing, nor does it end the other."""
    a, epoch = tmp_path / "a", _Loop._epoch
    first = run(corpus, a, settings, code="1")
    before = content(folder_of(a))
    changed = {**settings, "training": settings["training"] | {"dropout": 0.4}}
    monkeypatch.setattr(_Loop, "_epoch", lambda loop, *args: epoch(loop, *args) if args[0] < 3 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(corpus, a, changed, code="2")
    monkeypatch.undo()
    output = capsys.readouterr().err
    assert f"with other settings and code has done 3 epochs; {trained_folder(a)} stays until" in output
    assert content(trained_folder(a)) == before
    (a / "train.json").unlink()  # as Snakemake does before a job
    assert same(first, run(corpus, a, settings, code="1"))
    output = capsys.readouterr().err
    assert "all 3 epochs are done" in output
    assert "done  loss" not in output
    assert content(trained_folder(a)) == before
    assert not same(first, run(corpus, a, changed, code="2"))
    output = capsys.readouterr().err
    assert "resuming after epoch 2 of 3" in output
    assert sorted(path.name for path in a.iterdir()) == ["checkpoints", "history.csv", "train.json"]
    assert folder_of(a) == trained_folder(a)


def interrupted(corpus, folder, settings, monkeypatch, epochs=2, **kwargs):
    """A training that is stopped after some epochs."""
    with monkeypatch.context() as context:
        calls = itertools.count(1)  # one per update
        context.setattr(Stop, "requested", lambda _: next(calls) >= epochs * UPDATES)
        with pytest.raises(TryAgain):
            run(corpus, folder, settings, **kwargs)


def test_a_half_done_training_goes_on_with_other_code_if_asked(
    corpus, tmp_path, settings, monkeypatch, capsys
):
    """It is the one that has come furthest, and from then on one of this code."""
    whole, a = run(corpus, tmp_path / "whole", settings), tmp_path / "a"
    interrupted(corpus, a, settings, monkeypatch, code="1")
    half = content(folder_of(a))
    interrupted(corpus, a, settings, monkeypatch, epochs=1, code="2")
    assert half.items() <= content(a).items()
    other = {**settings, "training": settings["training"] | {"dropout": 0.4}}
    interrupted(corpus, a, other, monkeypatch, epochs=1, code="1", any_code=1)  # not of these settings
    capsys.readouterr()
    interrupted(corpus, a, settings, monkeypatch, epochs=0.1, code="2", any_code=1)
    assert "going on with checkpoints that other code made" in capsys.readouterr().err
    assert same(whole, run(corpus, a, settings, code="2"))
    assert "resuming after update" in capsys.readouterr().err
    assert folder_of(a) == trained_folder(a)
    attempts = json.loads((a / "train.json").read_text())["attempts"]
    assert len(attempts) == 3
    assert all(attempt["commit"] == commit() for attempt in attempts)


def test_checkpoints_of_the_layout_before_are_found(corpus, tmp_path, settings, monkeypatch, capsys):
    """In checkpoints/ itself: those of a finished run are averaged, a half-done training continues."""
    a = tmp_path / "a"

    def flatten():
        folder = folder_of(a)
        for path in folder.iterdir():
            path.rename(a / "checkpoints" / path.name)
        folder.rmdir()

    interrupted(corpus, a, settings, monkeypatch, code="1")
    flatten()
    (a / "checkpoints/history.csv").unlink()
    whole = run(corpus, a, settings, code="2", any_code=1)
    assert "resuming after epoch 2 of 3" in capsys.readouterr().err
    expected = average(a, KEEP)
    flatten()
    values = json.loads((a / "train.json").read_text())
    del values["checkpoints"]
    (a / "train.json").write_text(json.dumps(values))
    assert all(torch.equal(value, expected[name]) for name, value in average(a, KEEP).items())
    assert same(whole, run(corpus, a, settings, code="2"))


def cut(data):
    path = data / "train.de-en.de.bin"
    path.write_bytes(path.read_bytes()[:-2])


def zero(data):
    path = data / "train.de-en.de.bin"
    path.write_bytes(bytes(path.stat().st_size))


def shorten(data):
    lines = (data / "dict.de.txt").read_text().splitlines(keepends=True)
    (data / "dict.de.txt").write_text("".join(lines[:2]))


WRONG = {
    "no such folder": shutil.rmtree,
    "no such language": lambda data: (data / "dict.en.txt").unlink(),
    "cut data": cut,
    "zeroed data": zero,
    "another dictionary": shorten,
    "a garbled dictionary": lambda data: (data / "dict.en.txt").write_bytes(b"a\xff 3\n"),
    "an empty dictionary": lambda data: (data / "dict.en.txt").write_text(""),
}


def test_data_are_checked_before_anything_is_touched(corpus, tmp_path, settings):
    settings["training"]["max_epochs"] = 2
    run(corpus, tmp_path / "a", settings)
    before = content(tmp_path / "a")
    for folder in ("a", "new"):
        for what, damage in WRONG.items():
            shutil.rmtree(tmp_path / "bin", ignore_errors=True)
            shutil.copytree(corpus / "bin", tmp_path / "bin")
            damage(tmp_path / "bin")
            with pytest.raises(UserError, match=str(tmp_path / "bin")) as error:
                run(tmp_path, tmp_path / folder, settings)
            assert "\n" not in str(error.value), what
            assert content(tmp_path / "a") == before, what
    assert not (tmp_path / "new").exists()


def test_a_pair_too_long_to_validate_on_is_counted_and_left_out(corpus, tmp_path, settings, capsys):
    """The rest is trained and validated on as if it were not there."""
    settings["training"]["max_epochs"] = 1
    shutil.copytree(corpus / "bin", tmp_path / "bin")
    for language in ("de", "en"):
        dictionary = read_dictionary(tmp_path / f"bin/dict.{language}.txt")
        lines = [*(corpus / f"bpe/valid.{language}").read_text().splitlines(), "a " * 1200]
        rows = (encode_line(line, dictionary) for line in lines)
        write_binary(tmp_path / f"bin/valid.de-en.{language}", rows, len(dictionary), "")
    rows = []
    for folder, name in ((corpus, "a"), (tmp_path, "b")):
        fit(folder / "bin", tmp_path / name, typed(settings), keep=1)
        rows.append(next(csv.DictReader((tmp_path / name / "history.csv").open())))
    assert "b: 1 examples of valid are too long and left out" in capsys.readouterr().err
    assert json.loads((tmp_path / "a/train.json").read_text())["left_out"] == {"train": 0, "valid": 0}
    assert json.loads((tmp_path / "b/train.json").read_text())["left_out"] == {"train": 0, "valid": 1}
    assert rows[0]["train_loss"] == rows[1]["train_loss"]
    assert float(rows[0]["valid_loss"]) == pytest.approx(float(rows[1]["valid_loss"]), abs=1e-4)


def test_a_pair_to_validate_on_may_be_longer_than_a_batch(corpus, tmp_path, settings):
    settings["training"] |= {"max_epochs": 2, "batch": {"gpus": 1, "updates": 1, "tokens": 6}}
    run(corpus, tmp_path / "a", settings)
    left_out = json.loads((tmp_path / "a/train.json").read_text())["left_out"]
    assert left_out["train"] > 0
    assert left_out["valid"] == 0


def test_batches_too_small_for_any_pair(corpus, tmp_path, settings):
    settings["training"]["batch"]["tokens"] = 1
    with pytest.raises(UserError, match="no pair of train has at most 1 sub-words a side"):
        run(corpus, tmp_path / "a", settings)
    assert not (tmp_path / "a").exists()


def test_more_epochs_to_average_than_there_will_be(corpus, tmp_path, settings):
    settings["training"]["max_epochs"] = 1
    with pytest.raises(
        UserError, match=r"2 epochs to average, but training.max_epochs is 1; lower training.average"
    ):
        run(corpus, tmp_path / "a", settings)


def test_a_finished_training_trains_no_more(corpus, tmp_path, settings, capsys):
    first = run(corpus, tmp_path / "a", settings)
    (tmp_path / "a/train.json").unlink()
    assert same(first, run(corpus, tmp_path / "a", settings))
    assert (tmp_path / "a/train.json").exists()
    assert "all 3 epochs are done" in capsys.readouterr().err


def test_progress_and_summary(corpus, tmp_path, settings, capsys):
    run(corpus, tmp_path / "a", settings)
    output = capsys.readouterr().err.splitlines()
    assert len(output) == 4
    for word in ("a  epoch 3/3 done", "loss", "validation loss", "tokens/s", "left"):
        assert word in output[2]
    summary = json.loads((tmp_path / "a/train.json").read_text())
    assert output[3].endswith(f"a  diverged: {summary['diverged']}; its scores are marked")
    assert f"word frequencies alone have {summary['unigram_ppl']:.4g}" in summary["diverged"]
    assert summary["epochs"] == 3
    assert summary["workers"] == 1
    assert summary["parameters"] > 1000
    assert summary["operators"] == (None if torch.cuda.is_available() else asdict(CPU))


def test_the_loss_falls(corpus, tmp_path, settings):
    settings["training"]["max_epochs"] = 8
    run(corpus, tmp_path / "a", settings)
    losses = [float(row["train_loss"]) for row in csv.DictReader((tmp_path / "a/history.csv").open())]
    assert losses[-1] < losses[0] - 0.5


def exploding(settings):
    """Settings with a learning rate that the configuration refuses."""
    training = typed(settings).training.model_copy(update={"lr": 1e30, "warmup_updates": 1})
    return typed(settings).model_copy(update={"training": training})


def test_a_diverging_training_says_what_to_do(corpus, tmp_path, settings):
    with pytest.raises(UserError, match=r"no longer finite at update \d+; lower training\.lr"):
        fit(corpus / "bin", tmp_path / "a", exploding(settings), keep=KEEP)
    assert not (tmp_path / "a/train.json").exists()


def test_missing_data(tmp_path, settings):
    with pytest.raises(UserError, match=r"dict\.de\.txt: no such file"):
        fit(tmp_path / "nowhere", tmp_path / "run", typed(settings), keep=1)


def test_workers_that_cannot_share_a_batch_are_refused(corpus, tmp_path, settings):
    settings["training"]["batch"] = {"gpus": 2, "updates": 1, "tokens": 100}
    with pytest.raises(UserError, match="--processes 3: cannot share the 2 batches"):
        run(corpus, tmp_path, settings, processes=3)


def test_two_workers_train_as_one_that_accumulates(forked_workers, corpus, tmp_path, settings):
    settings["training"] |= {"batch": {"gpus": 2, "updates": 1, "tokens": 120}, "dropout": 0.0}
    alone = run(corpus, tmp_path / "a", settings)
    together = run(corpus, tmp_path / "b", settings, processes=2)
    shares = [json.loads((tmp_path / name / "train.json").read_text()) for name in "ab"]
    assert [(share["workers"], share["accumulated_batches"]) for share in shares] == [(1, 2), (2, 1)]
    for name, value in alone["epoch3.pt"].items():
        torch.testing.assert_close(together["epoch3.pt"][name], value, rtol=0, atol=2e-3)


def test_a_workers_fault_is_one_line(forked_workers, corpus, tmp_path, settings):
    settings["training"] |= {"batch": {"gpus": 2, "updates": 1, "tokens": 120}}
    with pytest.raises(UserError, match="no longer finite") as error:
        fit(corpus / "bin", tmp_path / "a", exploding(settings), keep=KEEP, processes=2)
    assert "\n" not in str(error.value)


ROOT = Path(__file__).parents[2]
FILES = project_files(ROOT)


def different_systems():
    """Name → the settings of each system that trains in another way than those before it.

    One whose name ends in a digit is one of a sweep, and differs from its neighbours in a number alone; one with a
    `training` of its own has the model of another; one that reads words is a RoBERTa; test_st_nmt.py trains what
    reads templates.
    """
    config = load(read_all(FILES) | {"published": str(ROOT / "workflow/published.yaml")})
    different = {}
    for name, system in config.systems.items():
        alike = name[-1].isdigit() or system.training.model_fields_set
        if alike or "words" in GUIDES[system.guide].reads or system.templated:
            continue
        settings = config.run_settings("multi30k", "de-en", name).plain()["system"]
        if settings not in different.values():
            different[name] = settings
    return different


SYSTEMS = different_systems()


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_of_the_configuration_trains_and_decodes(corpus, tmp_path, settings, system):
    settings["system"] = SYSTEMS[system]
    settings["model"]["encoder_layers"] = 3  # as many as roberta-grammar guides
    epochs = run(corpus, tmp_path / "a", settings)
    assert all(value.isfinite().all() for value in epochs["epoch3.pt"].values())
    history = list(csv.DictReader((tmp_path / "a/history.csv").open()))
    assert float(history[-1]["valid_loss"]) < float(history[0]["valid_loss"])
    masks = [bool(row["mlm_loss"]) for row in history]
    assert masks == [settings["system"]["mlm_weight"] > 0] * len(masks)
    text = model_text("#version: 0.2\ne f</w>\n")
    save_model(tmp_path / "m.pt", average(tmp_path / "a", KEEP), corpus / "bin", text, typed(settings))
    source = corpus / "bpe/test.de"
    reads = GUIDES[settings["system"]["guide"]].reads
    decode_files(
        model=tmp_path / "m.pt", inputs=[source], outputs=[tmp_path / "h"], settings=Decoding(beam=2), threads=1,
        annotations=[corpus / "bin/syntax.test.de.npy"] if reads else [],
    )  # fmt: skip
    assert len((tmp_path / "h.tok").read_text().splitlines()) == 12
    if GUIDES[settings["system"]["guide"]].induces:
        parse(
            model=tmp_path / "m.pt", subwords=source, output=tmp_path / "trees", distribution=tmp_path / "p"
        )
        rows = [json.loads(line) for line in (tmp_path / "trees").read_text().splitlines()]
        assert all(abs(distance) < 1e4 for row in rows for distance in row["distances"])


def test_average_is_the_mean_of_the_last_epochs(corpus, tmp_path, settings):
    epochs = run(corpus, tmp_path / "a", settings)
    mean = average(tmp_path / "a", KEEP)
    for name, value in mean.items():
        expected = (epochs["epoch2.pt"][name].double() + epochs["epoch3.pt"][name].double()) / 2
        torch.testing.assert_close(value, expected.float(), rtol=0, atol=1e-7)
    with pytest.raises(UserError, match="epochs 2, 3 of 3 are there, the last 3 are to be averaged"):
        average(tmp_path / "a", 3)


def test_a_gap_in_the_last_epochs_is_not_averaged_over(corpus, tmp_path, settings):
    settings["training"]["max_epochs"] = 4
    fit(corpus / "bin", tmp_path / "a", typed(settings), keep=4)
    folder = folder_of(tmp_path / "a")
    average(tmp_path / "a", 3)
    for missing, there in ((3, "1, 2, 4"), (4, "1, 2, 3")):
        path = folder / f"epoch{missing}.pt"
        path.rename(tmp_path / "away")
        with pytest.raises(UserError, match=f"epochs {there} of 4 are there, the last 3 are to be averaged"):
            average(tmp_path / "a", 3)
        (tmp_path / "away").rename(path)


def test_the_model_of_another_seeds_epoch_is_not_averaged(corpus, tmp_path, settings):
    settings["training"]["max_epochs"] = 1
    for seed in (1, 2):
        fit(corpus / "bin", tmp_path / str(seed), typed(settings), keep=1, seed=seed)
    ours, theirs = (folder_of(tmp_path / seed) / "epoch1.pt" for seed in "12")
    shutil.copyfile(theirs, ours)
    with pytest.raises(
        UserError, match=r"1/checkpoints/\w+/epoch1.pt: a model of another training; move it away"
    ):
        average(tmp_path / "1", 1)
    ours.unlink()
    fit(corpus / "bin", tmp_path / "1", typed(settings), keep=1)
    average(tmp_path / "1", 1)


@pytest.mark.parametrize(
    ("losses", "best"), [([3.0, 1.0, 1.0], 2), ([3.0, 2.0, 1.0], 3), ([math.nan, 2.0, 3.0], 2)]
)
def test_the_best_checkpoint_is_that_of_the_lowest_validation_loss(
    corpus, tmp_path, settings, valid_losses, losses, best
):
    epochs = run(corpus, tmp_path / "a", settings)
    valid_losses(*losses)
    settings["training"]["checkpoint"] = "best"
    fit(corpus / "bin", tmp_path / "b", typed(settings), keep=1)
    chosen = average(tmp_path / "b", 1)
    assert all(torch.equal(value.float(), chosen[name]) for name, value in epochs[f"epoch{best}.pt"].items())
    assert not (folder_of(tmp_path / "b") / "epoch1.pt").exists()


def test_a_model_file_stands_alone(corpus, tmp_path, settings):
    run(corpus, tmp_path / "a", settings)
    state = average(tmp_path / "a", 1)
    text = model_text("#version: 0.2\ne f</w>\n")
    save_model(tmp_path / "model.pt", state, corpus / "bin", text, typed(settings))
    model, task, kept, _ = load_model(tmp_path / "model.pt")
    assert kept.settings == text
    assert not model.training
    parameters = dict(model.named_parameters())
    assert parameters.keys() <= state.keys()
    for name, value in parameters.items():
        assert torch.equal(value, state[name])
    assert task.src_dict.symbols[4:] == [
        line.split()[0] for line in (corpus / "bin/dict.de.txt").read_text().splitlines()
    ]


def test_damaged_models_are_named(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04 not a checkpoint")
    with pytest.raises(UserError, match=r"model\.pt: damaged checkpoint"):
        load_model(tmp_path / "model.pt")
    torch.save({"model": {}}, tmp_path / "other.pt")
    with pytest.raises(UserError, match=r"other\.pt: not a whole model file"):
        load_model(tmp_path / "other.pt")
    with pytest.raises(UserError, match="no such file"):
        load_model(tmp_path / "none.pt")


def test_a_model_needs_the_dictionaries_it_was_trained_with(corpus, tmp_path, settings):
    settings["training"]["max_epochs"] = 2
    run(corpus, tmp_path / "a", settings)
    shutil.copytree(corpus / "bin", tmp_path / "bin")
    (tmp_path / "bin/dict.en.txt").write_text("")
    text = model_text()
    state = average(tmp_path / "a", KEEP)
    with pytest.raises(UserError, match="bin: not what the model was trained on") as error:
        save_model(tmp_path / "model.pt", state, tmp_path / "bin", text, typed(settings))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "model.pt").exists()
    save_model(tmp_path / "model.pt", state, corpus / "bin", text, typed(settings))
    whole = torch.load(tmp_path / "model.pt")
    whole["model"]["encoder.embed_positions._float_tensor"] = torch.tensor([torch.nan])  # means nothing
    torch.save(whole, tmp_path / "memory.pt")
    load_model(tmp_path / "memory.pt")
    whole["model"]["encoder.embed_tokens.weight"][7, 0] = torch.nan
    torch.save(whole, tmp_path / "nan.pt")
    with pytest.raises(UserError, match=r"nan\.pt: .* is not finite; train again"):
        load_model(tmp_path / "nan.pt")
    for key in ("text", "settings", "dictionaries", "model"):
        torch.save({**whole, key: {}}, tmp_path / "lacks.pt")
        with pytest.raises(UserError, match=r"lacks\.pt: not a whole model file"):
            load_model(tmp_path / "lacks.pt")


@pytest.mark.parametrize("guide", ["none", "grammar", "lpsi", "structformer"])
def test_bf16_trains_on_a_cpu_and_averages_in_float32(corpus, tmp_path, settings_of, guide):
    settings = settings_of(guide)
    settings["training"] |= {"precision": "bf16", "validate_bleu": 3}
    models = run(corpus, tmp_path / "run", settings)
    assert {value.dtype for value in models["epoch3.pt"].values()} == {torch.bfloat16}
    mean = average(tmp_path / "run", KEEP)
    assert {value.dtype for value in mean.values()} == {torch.float32}
    with (tmp_path / "run/history.csv").open() as handle:
        losses = [float(row["valid_loss"]) for row in csv.DictReader(handle)]
    assert losses[-1] < losses[0]


def test_a_worker_with_one_batch_less_counts_the_others(forked_workers, corpus, tmp_path, settings):
    """Of 19 batches, four per update, the second worker has one and an empty one in the last update."""
    settings["training"] |= {"batch": {"gpus": 2, "updates": 2, "tokens": 27}, "dropout": 0.0}
    first = []
    for name, processes in (("a", 1), ("b", 2)):
        run(corpus, tmp_path / name, settings, processes=processes)
        first.append(next(csv.DictReader((tmp_path / name / "history.csv").open())))
    alone, together = first
    assert together["updates"] == alone["updates"]
    assert float(together["train_loss"]) == pytest.approx(float(alone["train_loss"]), abs=2e-4)
    assert float(together["valid_loss"]) == pytest.approx(float(alone["valid_loss"]), abs=2e-4)


def test_workers_draw_other_dropout_masks_as_the_docs_say(forked_workers, corpus, tmp_path, settings):
    settings["training"] |= {
        "batch": {"gpus": 2, "updates": 1, "tokens": 27},
        "dropout": 0.3,
        "max_epochs": 2,
    }
    losses = []
    for processes in (1, 2):
        run(corpus, tmp_path / str(processes), settings, processes=processes)
        losses.append(
            float(next(csv.DictReader((tmp_path / f"{processes}/history.csv").open()))["train_loss"])
        )
    assert abs(losses[0] - losses[1]) > 1e-4
    assert "Another number of workers also draws other dropout masks" in DOCS.read_text()


@pytest.mark.parametrize("rate", [0.15, 0.02])
def test_workers_with_and_without_masked_words_go_on_together(
    forked_workers, corpus, tmp_path, settings, rate
):
    """Of 19 batches, the second worker lacks one; at the low rate, a batch may have no masked word."""
    settings["training"] |= {"batch": {"gpus": 2, "updates": 1, "tokens": 27}, "max_epochs": 2}
    settings["system"] |= {"mask_rate": rate, "mlm_weight": 0.4}
    run(corpus, tmp_path / "run", settings, processes=2)
    assert (tmp_path / "run/train.json").exists()


def test_fp16_without_a_gpu_is_refused(corpus, tmp_path, settings, monkeypatch):
    """fairseq would train in fp32, and the model would say fp16."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    settings["training"]["precision"] = "fp16"
    with pytest.raises(UserError, match="fp16 needs a GPU, and none is visible; give bf16 or fp32"):
        run(corpus, tmp_path / "a", settings)
    assert not any(tmp_path.iterdir())


def test_gpus_that_stay_unused_are_named_with_the_key_to_change(monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 8)
    for batches, processes in ((2, 2), (16, 8)):
        stage = SimpleNamespace(batches=batches, settings=SimpleNamespace(training=TrainingSettings()))
        assert _count_processes(stage, None) == processes
    note = "note: 6 of 8 GPUs stay unused, since an update has 2 batches: ask for fewer (resources.gpus)"
    assert capsys.readouterr().err.splitlines()[0].startswith(note)


def test_a_training_that_explodes_is_marked_and_one_that_learns_is_not(corpus, tmp_path, settings):
    settings["training"] |= {"lr": 10.0, "max_epochs": 2}
    run(corpus, tmp_path / "a", settings)
    settings["training"] |= {"lr": 0.02, "max_epochs": 12}
    run(corpus, tmp_path / "b", settings)
    exploded, learned = (json.loads((tmp_path / name / "train.json").read_text()) for name in "ab")
    assert "word frequencies alone have" in exploded["diverged"]
    assert learned["diverged"] is None
    assert exploded["unigram_ppl"] == learned["unigram_ppl"] > 1


@pytest.mark.parametrize("guide", ["none", "lpsi"])
def test_bleu_of_the_validation_set_every_few_epochs(corpus, tmp_path, settings_of, guide):
    settings = settings_of(guide)
    plain = run(corpus, tmp_path / "plain", settings)
    assert "valid_bleu" not in (tmp_path / "plain/history.csv").read_text()
    settings["training"]["validate_bleu"] = 2
    assert same(plain, run(corpus, tmp_path / "bleu", settings))
    bleus = [row["valid_bleu"] for row in csv.DictReader((tmp_path / "bleu/history.csv").open())]
    assert bleus[0] == ""
    assert bleus[1] != "" != bleus[2]


@pytest.mark.parametrize("penalty", [-3.0, 1.0])
def test_bleu_of_the_validation_set_is_that_of_what_decode_makes_of_it(corpus, drawn, tmp_path, penalty):
    """With the corpus' decoding; with empty lines, and with words that the training text lacks."""
    path, decoding = (
        drawn(tmp_path / "model.pt", "none", seed=3),
        Decoding(beam=2, length_penalty=penalty),
    )
    sources = ["a bb d", "", "cc jj a", "d e@@ f d bb", "g@@ h@@ i jj a", "bb bb cc d"]
    write_lines(tmp_path / "valid.de", sources)
    decode_files(model=path, inputs=[tmp_path / "valid.de"], outputs=[tmp_path / "out"], settings=decoding)
    found = [*read_lines(tmp_path / "out.tok")]
    assert "<unk>" in " ".join(found)
    assert found[1] == ""
    references = [line.replace("<unk>", "zz") + " d" for line in found]
    expected = bleu("bleu_tokenised", "en").corpus_score(found, [references]).score
    assert 10 < expected < 99
    model, task, *_ = load_model(path)
    ids = [encode_line(line, task.src_dict).long() for line in sources]
    wanted = [encode_line(line, task.tgt_dict).long() for line in references]
    assert valid_bleu(model, task.sources(ids, references=wanted), decoding) == pytest.approx(
        expected, abs=1e-6
    )


def test_the_best_bleu_chooses_the_model_if_asked(corpus, tmp_path, settings, monkeypatch):
    scores = iter([4.0, 5.0, 5.0])
    monkeypatch.setattr("synmask.pipeline.translation.valid_bleu.valid_bleu", lambda *_: next(scores))
    settings["training"] |= {"checkpoint": "best-bleu", "validate_bleu": 1}
    fit(corpus / "bin", tmp_path / "a", typed(settings), keep=1)
    assert [path.name for path in folder_of(tmp_path / "a").glob("epoch*.pt")] == ["epoch2.pt"]
