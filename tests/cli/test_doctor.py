"""The findings of `synmask doctor`: on this machine, on downloads, on a cluster's nodes."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from synmask.pipeline.cli import doctor, main
from synmask.pipeline.config.loading import load, project_files, read_all, read_published
from synmask.pipeline.workflow.slurm import Site
from synmask.pipeline.workflow.targets import Targets

ROOT = Path(__file__).parents[2]
TRAIN, DEV = "data/aspec/train.txt", "data/aspec/dev.txt"


def mirrored(**mirrors):
    return load(read_all(project_files(ROOT)) | {"mirrors": mirrors}, [])


def origins(*paths, **mirrors):
    return {path: doctor._origin(mirrored(**mirrors), path) for path in paths}


def sinfo(folder, monkeypatch, command):
    """A `sinfo` that is found before SLURM's own."""
    (folder / "sinfo").write_text(f"#!/bin/sh\n{command}\n")
    (folder / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_all_that_is_missing_is_said_and_the_exit_code_is_1(monkeypatch, tmp_path, capsys):
    nowhere = tmp_path / "nowhere"
    (tmp_path / "mine.yaml").write_text(f"mirrors: {{multi30k: {nowhere}, corenlp: {nowhere}}}\n")
    sinfo(tmp_path, monkeypatch, "exit 1")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="1"):
        main(["doctor", "multi30k-small", "--profile", "slurm", "--configfile", f"{tmp_path}/mine.yaml"])
    output = capsys.readouterr().out
    assert "TO DO  no java for CoreNLP: install default-jdk-headless\n" in output
    assert f"TO DO  cannot be reached: {nowhere}: download on" in output
    assert "TO DO  no sbatch, squeue, scancel on PATH" in output
    assert "TO DO  what trainings ask for is not compared: `sinfo -p " in output
    assert "good   no licensed data is missing\n" in output
    assert " are needed for models still to come" in output


def test_what_is_here_need_not_be_reached(monkeypatch, tmp_path, capsys):
    for name in ("config", "config.yaml", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("mirrors: {multi30k: nowhere, corenlp: nowhere}\n")
    config = load(read_all(project_files(ROOT)), [])
    for path in map(Path, Targets(config, read_published(config.published)).downloads("multi30k-small")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with suppress(SystemExit):  # a machine may lack Java
        main(["doctor", "multi30k-small", "--configfile", "mine.yaml"])
    assert "good   all that can be downloaded is here\n" in capsys.readouterr().out


def test_what_is_licensed_is_named():
    missing = origins(TRAIN, DEV, "data/multi30k/train.de.gz")
    assert missing[TRAIN] is None
    assert doctor._licensed(mirrored(), missing) == (
        False,
        "aspec is licensed and cannot be downloaded: get dev.txt, train.txt, "
        "then set `mirrors: {aspec: FOLDER}` in config.yaml",
    )
    assert doctor._mirrors(origins(TRAIN))[0]
    named = origins(TRAIN, aspec="/nowhere")
    assert doctor._licensed(mirrored(aspec="/nowhere"), named)[0]
    assert not doctor._mirrors(named)[0]


def test_the_users_files_that_are_missing_are_named(tmp_path, monkeypatch, capsys):
    corpus = {
        "languages": ["de", "en"],
        "files": {
            "train": f"{tmp_path}/train.{{language}}",
            "valid": "no/dev.{language}",
            "test": {"news": "no/news.{language}"},
        },
        "trees": {"valid": "no/dev.{language}.mrg"},
    }
    experiment = {"title": "M", "corpus": "mine", "directions": ["de-en"], "systems": ["grammar"]}
    experiment["tables"] = ["translation", "parsing"]
    mine = tmp_path / "mine.yaml"
    mine.write_text(json.dumps({"corpora": {"mine": corpus}, "experiments": {"mine": experiment}}))
    for language in ("de", "en"):
        (tmp_path / f"train.{language}").touch()
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit, match="1"):
        main(["doctor", "mine", "--configfile", str(mine)])
    [line] = [line for line in capsys.readouterr().out.splitlines() if "yours" in line]
    assert line == (
        "TO DO  files of yours are missing: no/dev.de, no/dev.de.mrg, no/dev.en and 2 more: "
        "put them there, or change the corpus' `files` or `trees`"
    )


def test_requests_are_compared_with_the_nodes(monkeypatch, tmp_path):
    sinfo(tmp_path, monkeypatch, "echo '512000 64 gpu:v100:2'")
    config = load(read_all(project_files(ROOT)), [])
    fits = config.corpora["demo"].resources
    large = fits.model_copy(update={"mem_mb": 900000})

    def is_set_in(key):
        return f"`{'.'.join(key)}` in mine.yaml"

    key = ("corpora", "demo", "resources")
    assert doctor._nodes(Site(), {key: fits}, is_set_in) == (True, "nodes of gpu have what trainings ask for")
    assert doctor._nodes(Site(), {("x",): fits, key: large}, is_set_in) == (
        False,
        "no node of gpu has 900,000 MB, but at most 512,000: change `corpora.demo.resources.mem_mb` in mine.yaml",
    )
    gpu = fits.model_copy(update={"gpus": 1})
    assert doctor._nodes(Site(gpu_model="v100"), {key: gpu}, is_set_in)[0]
    assert not doctor._nodes(Site(gpu_model="a100"), {key: gpu}, is_set_in)[0]
    sinfo(tmp_path, monkeypatch, "exit 1")
    assert doctor._nodes(Site(), {key: fits}, is_set_in) == (
        False,
        "what trainings ask for is not compared: `sinfo -p gpu` shows no node",
    )
