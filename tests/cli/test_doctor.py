"""The findings of `synmask doctor`: on this machine, on downloads, on a cluster's nodes."""

import json
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from synmask.pipeline.cli import doctor, main
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.workflow import slurm
from synmask.pipeline.workflow.slurm import Site
from synmask.pipeline.workflow.targets import Targets

ROOT = Path(__file__).parents[2]


def test_all_that_is_missing_is_said_and_the_exit_code_is_1(monkeypatch, tmp_path, capsys):
    nowhere = tmp_path / "nowhere"
    (tmp_path / "mine.yaml").write_text(f"mirrors: {{multi30k: {nowhere}, corenlp: {nowhere}}}\n")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="1"):
        main(["doctor", "multi30k-small", "--profile", "slurm", "--configfile", f"{tmp_path}/mine.yaml"])
    output = capsys.readouterr().out
    assert "TO DO  Java for CoreNLP: install default-jdk-headless\n" in output
    assert output.count(f"TO DO  downloads from {nowhere}: cannot be reached: ") == 1
    assert "TO DO  SLURM: no sbatch, squeue, scancel on PATH" in output
    assert (
        "good   corpora.multi30k-small: tokeniser of de: moses (words have spaces between them)\n" in output
    )
    assert "partition" not in output  # nothing is asked without SLURM's commands


def test_a_job_needs_the_profile_of_a_cluster(capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "demo", "--job"])
    assert capsys.readouterr().err.startswith("synmask doctor: --job: give --profile slurm, too")


def test_what_is_here_need_not_be_reached(monkeypatch, tmp_path, capsys):
    for name in ("config", "config.yaml", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("mirrors: {multi30k: nowhere, corenlp: nowhere}\n")
    config = load(read_all(project_files(ROOT)))
    for path in map(Path, Targets(config).downloads("multi30k-small")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with suppress(SystemExit):  # a machine may lack Java
        main(["doctor", "multi30k-small", "--configfile", "mine.yaml"])
    assert "downloads from" not in capsys.readouterr().out


def test_tokenisers_are_named_with_the_reason(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    findings = dict(doctor._check_tokenisers(load(read_all(project_files(ROOT))), ["aspec"]))
    [(chinese, good), (japanese, todo)] = findings.items()
    assert (
        "corpora.aspec: tokeniser of zh: stanford (set in text.tokeniser; by default icu: no spaces"
        in chinese
    )
    assert (good, "tokeniser of ja: juman" in japanese) == ("", True)
    assert todo == "install Juman 7.0 as docs/corpora.md says"


def test_what_is_licensed_is_named(tmp_path):
    def files(**mirrors):
        values = read_all(project_files(ROOT)) | {"mirrors": mirrors, "data_dir": str(tmp_path)}
        return [line for line in doctor._check_files(load(values), ["aspec"]) if "mirrors" in line[1]]

    todo = "aspec is licensed and cannot be downloaded: get dev.txt, test.txt, train.txt, "
    assert files() == [("licensed data", todo + "then set `mirrors: {aspec: FOLDER}` in config.yaml")]
    [(what, todo)] = files(aspec="/nowhere")
    assert (what, todo.split(":")[0]) == ("downloads from /nowhere", "cannot be reached")
    assert files(aspec=str(tmp_path)) == []


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
        "TO DO  7 files of yours: missing: no/dev.de, no/dev.de.mrg, no/dev.en and 2 more: "
        "put them there, or change what the configuration names"
    )


def command(tmp_path, name, script):
    (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / name).chmod(0o755)


def test_requests_are_compared_with_the_nodes(monkeypatch, tmp_path):
    for name, script in (
        ("sinfo", "echo '512000 64 1-00:00:00 gpu:v100:2'"),
        ("sbatch", "exit 0"),
        ("squeue", ""),
        ("scancel", ""),
    ):
        command(tmp_path, name, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def findings(mem_mb, gpus=0, runtime=60):
        values = read_all(project_files(ROOT))
        resources = {"mem_mb": mem_mb, "gpus": gpus, "runtime": runtime}
        values["corpora"]["demo"]["resources"] |= resources
        return dict(doctor._check_cluster(load(values), ["demo"], job=False))

    good = ("SLURM's commands", "partition main", "partition gpu", "nodes for `corpora.demo.resources`")
    assert findings(3000) == dict.fromkeys(good, "")
    uneven = "`corpora.demo.resources`: 2 GPUs cannot share an update of 1 batches evenly"
    assert findings(3000, gpus=2)["GPUs of trainings"].startswith(uneven)
    todo = "no node of main has 900,000 MB, but at most 512,000: change `mem_mb` there"
    assert findings(900000) == dict.fromkeys(good[:3], "") | {good[3]: todo}
    todo = "partition main allows 1,440 minutes, and this job asks for 6,000: change `runtime` there"
    assert findings(3000, runtime=6000)[good[3]] == todo
    for model, fault in (
        ("v100", ""),
        ("a100", "no node of gpu has 1 GPU, but at most 0: change `gpus` there"),
    ):
        monkeypatch.setattr(slurm, "read_site", partial(Site, gpu_model=model))
        assert findings(3000, gpus=1)[good[3]] == fault
    command(tmp_path, "sinfo", "exit 1")
    assert findings(3000)[good[3]] == "not compared: `sinfo -p main` shows no node"


def test_what_slurm_says_is_shown(monkeypatch, tmp_path):
    """Of a partition that it refuses, and of a short job that fails or does not see this folder."""
    command(
        tmp_path,
        "sbatch",
        'case "$*" in *test-only*) echo "error: no such account" >&2; echo Sorry >&2;; esac; exit 1',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(slurm, "check_commands", lambda: None)
    found = dict(doctor._check_cluster(load(read_all(project_files(ROOT))), [], job=True))
    assert found["partition gpu"] == "error: no such account; Sorry; change slurm.local.yaml"
    assert found["a node sees this folder"].startswith("exit code 1; ")
    command(tmp_path, "sbatch", 'case "$*" in *"--comment=a b"*) exit 0; esac; exit 1')
    assert doctor._sbatch(Site(extra="--comment='a b'"), "main") == ""
    command(tmp_path, "sbatch", "exec sleep 9")
    assert doctor._sbatch(Site(), "main", timeout=0.1).startswith("no answer in 0 s")
