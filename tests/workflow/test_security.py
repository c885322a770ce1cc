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


@pytest.mark.parametrize("kind", ["corpora", "systems", "experiments"])
def test_a_name_that_is_a_command_is_refused(project, kind):
    name = "x; touch canary"
    entries = project.config[kind]
    entries[name] = entries["demo" if "demo" in entries else "grammar"]
    assert f": {kind}.{name}: use lower-case letters and digits" in refused(project)


def test_a_language_or_target_that_is_a_command_is_refused(project):
    assert "targets.0: use lower-case letters" in refused(project, "--config", 'targets=["x; touch canary"]')
    project.config["experiments"]["demo"]["directions"] = ["de-en; touch canary"]
    assert "directions.0: must be two language codes" in refused(project)


@pytest.mark.parametrize("name", ["train", "download", "glue-data", "glue-submission"])
def test_the_name_of_a_rule_is_refused(project, name):
    project.config["experiments"][name] = project.config["experiments"]["demo"]
    assert re.fullmatch(
        rf"config\.yaml, line \d+: experiments\.{name}: a rule has this name; take another", refused(project)
    )


@pytest.mark.parametrize("target", ["glue-data", "glue-submission", "download"])
def test_what_is_not_a_table_is_no_target_without_trainings(project, target):
    output = refused(project, "-n", target, "--config", "partial=true")
    assert output.startswith(f"{target}: no such target; ")


def test_a_target_behind_configfile_is_told_its_place(project):
    (project.folder / "mine.yaml").write_text("seeds: [1]\n")
    for target, fault in (("demo", "Is a directory"), ("demo-all", "No such file or directory")):
        output = refused(project, "-n", "--configfile", "mine.yaml", target)
        assert output == f"{target}: {fault}; if it is a target, give it before --configfile"


def test_a_fault_in_a_file_laid_over_is_reported_for_that_file(project):
    (project.folder / "mine.yaml").write_text("seeds: [1]\ntraining: {lr: -1}\n")
    output = refused(project, "--configfile", "mine.yaml", "-n")
    assert output == "mine.yaml, line 2: training.lr: must be above 0 (given: -1)"


def test_yaml_that_snakemake_cannot_read_is_one_line(project, monkeypatch):
    monkeypatch.setattr("yaml.safe_dump", lambda *_, **__: "targets: [demo\nseeds: [1]\n")
    assert refused(project) == "config.yaml, line 2: not YAML (did not find expected ',' or ']')"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"training:\n  lr: [1\n", "mine.yaml, line 3: not YAML (did not find expected ',' or ']')"),
        (b"training:\n  lr: 1\n  lr: 2\n", "mine.yaml, line 3: the key 'lr' is given twice"),
        (b"a: 1\nb: \xff\n", "mine.yaml, line 2: not UTF-8; convert the file"),
        (b"a: x\0", "mine.yaml: not YAML (control characters are not allowed)"),
        (
            b"training:\n  lr:\t0.1\n",
            "mine.yaml, line 2: not YAML (found character '\\t' that cannot start any token)",
        ),
        (b"- 1\n", "mine.yaml: expected keys and values, found a list"),
        (b"", "mine.yaml: it is empty; leave it out, or write keys and values into it"),
        (None, "mine.yaml: No such file or directory"),
    ],
)
def test_a_file_laid_over_that_snakemake_cannot_read_is_one_line(project, text, line):
    """Snakemake itself reads it before ours does, and says neither file nor line, or shows a traceback."""
    if text is not None:
        (project.folder / "mine.yaml").write_bytes(text)
    assert refused(project, "--configfile", "mine.yaml", "-n") == line


def test_words_behind_config_that_are_no_key_and_value_are_one_line(project):
    """Snakemake itself ends in a traceback."""
    output = refused(project, "--config", "training.lr=1", "-n")
    assert (
        output
        == "--config training.lr=1: not KEY=VALUE; a key within a section is written 'training={\"lr\": 1}'"
    )


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31m"])
@pytest.mark.parametrize("kind", ["title", "label", "data_dir"])
def test_a_line_break_is_refused(project, kind, text):
    sections = {
        "title": project.config["experiments"]["demo"],
        "label": project.config["systems"]["grammar"],
        "data_dir": project.config,
    }
    sections[kind][kind] = text
    assert "a line break or another character" in refused(project)


def test_braces_in_a_path_are_refused(project):
    project.config["data_dir"] = "data/{corpus}"
    assert "data_dir: no braces in a path but {language}" in refused(project)


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
