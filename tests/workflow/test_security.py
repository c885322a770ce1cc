"""A value of the configuration reaches a shell as one word only."""

import gzip
import json
import re
import shutil

import pytest

pytestmark = pytest.mark.xdist_group("demo")
HOSTILE = "a b'c\"; touch canary; $(touch canary) `touch canary` & # %s ~ ü"


def canaries(project):
    return list(project.folder.rglob("canary"))


def refused(project, *words):
    done = project.snakemake(*words, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.output
    assert not canaries(project)
    return done.output.splitlines()[-1]


@pytest.mark.parametrize("name", ["train", "glue-submission"])
def test_the_name_of_a_rule_is_refused(project, name):
    project.config["experiments"][name] = project.config["experiments"]["demo"]
    assert re.fullmatch(
        rf"config\.yaml, line \d+: experiments\.{name}: a rule has this name; take another", refused(project)
    )


def test_what_is_not_a_table_is_no_target_without_trainings(project):
    output = refused(project, "-n", "glue-submission", "--config", "partial=true")
    assert output.startswith("glue-submission: no such target; ")


def test_yaml_that_snakemake_cannot_read_is_one_line(project, monkeypatch):
    monkeypatch.setattr("yaml.safe_dump", lambda *_, **__: "targets: [demo\nseeds: [1]\n")
    assert refused(project) == "config.yaml, line 2: not YAML (did not find expected ',' or ']')"


def test_a_file_laid_over_that_snakemake_cannot_read_is_one_line(project):
    """Snakemake itself reads it before ours does, and says neither file nor line, or shows a traceback."""
    (project.folder / "mine.yaml").write_text("training:\n  lr: [1\n")
    line = "mine.yaml, line 3: not YAML (did not find expected ',' or ']')"
    assert refused(project, "--configfile", "mine.yaml", "-n") == line


def test_words_behind_config_that_are_no_key_and_value_are_one_line(project):
    """Snakemake itself ends in a traceback."""
    output = refused(project, "--config", "training.lr=1", "-n")
    assert (
        output
        == "--config training.lr=1: not KEY=VALUE; a key within a section is written 'training={\"lr\": 1}'"
    )


def test_paths_of_texts_and_gold_trees_are_words(project):
    folder = project.folder / HOSTILE
    folder.mkdir()
    for split in ("train", "valid", "test"):
        for language in ("de", "en"):
            (folder / f"{split}.{language}").write_text("ein Hund .\n" * 20)
    project.config["corpora"]["mine"] = {
        "languages": ["de", "en"],
        "files": {split: f"{HOSTILE}/{split}.{{language}}" for split in ("train", "valid", "test")},
        "trees": {"valid": f"{HOSTILE}/trees.{{language}}"},
    }
    for language in ("de", "en"):
        (folder / f"trees.{language}").write_text("(S (A ein) (B Hund) (C .))\n" * 20)
    row = '{"tokens": ["ein", "Hund", "."], "distances": [1.0, 2.0], "eos_distance": 3.0, "heights": [0, 0, 0], "heads": [2, 0, 2]}\n'
    run = project.folder / "results/mine/de-en/grammar/seed1"
    run.mkdir(parents=True)
    (run / "trees.jsonl").write_text(row * 20)
    (run / "trees.json").write_text("{}")  # it says nothing of whose the trees are
    names = {"corpus": "mine", "direction": "de-en", "system": "grammar", "seed": 1}
    (run / "train.json").write_text(json.dumps(names | {"settings": {}}))
    project.snakemake("results/mine/de-en/text/train.de")
    rule = ["--allowed-rules", "parseval"]
    project.snakemake(f"{run.relative_to(project.folder)}/parse.json", *rule)
    assert (run / "parse.json").exists()
    assert not canaries(project)


def test_download_folders_and_mirrors_are_words(project):
    mirror = project.folder / f"mirror {HOSTILE}"
    mirror.mkdir()
    (mirror / "train.de.gz").write_bytes(gzip.compress(b"x\n"))
    project.config |= {"mirrors": {"multi30k": str(mirror)}, "data_dir": HOSTILE}
    project.config["corpora"]["multi30k"] |= {
        "sha256": {},
        "url": f"https://example.org/{HOSTILE.replace('#', '')}",
    }
    project.snakemake(f"{HOSTILE}/multi30k/train.de.gz")
    assert (project.folder / HOSTILE / "multi30k/train.de.gz").exists()
    assert not canaries(project)


def test_titles_and_labels_are_words(built, tmp_path):
    import copy

    project = copy.copy(built)
    project.folder, project.config = tmp_path / "copy", copy.deepcopy(built.config)
    shutil.copytree(built.folder, project.folder, symlinks=True)
    hostile = HOSTILE + " {x} {wildcards}"
    project.config["experiments"]["demo"]["title"] = hostile
    project.config["systems"]["grammar"]["label"] = hostile
    project.snakemake()
    assert "touch canary" in (project.folder / "results/tables/demo.md").read_text()
    assert not canaries(project)
