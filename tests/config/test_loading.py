"""The project's files together, and the file and key that a fault names."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.yaml_source import command_line_values, read_yaml
from synmask.pipeline.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.chdir(ROOT)


def leaves(values, path=()):
    inner = values.items() if isinstance(values, dict) and values else ()
    return {leaf for key, value in inner for leaf in leaves(value, (*path, key))} or {path}


def test_config_yaml_is_short_and_lies_over_the_others():
    assert len(Path("config.yaml").read_text().splitlines()) <= 200
    files = project_files()
    assert files[0] == files[-1] == "config.yaml"
    assert files[1:-1] == sorted(f"config/{path.name}" for path in Path("config").glob("*.yaml"))


def test_no_key_is_in_two_of_the_projects_files():
    for one, other in combinations(map(read_yaml, {*project_files()}), 2):
        assert not leaves(one) & leaves(other)


def message_of(tmp_path, text, **given):
    """The fault of these values laid over the project's, `given` ones by --config."""
    (tmp_path / "mine.yaml").write_text(text)
    files = [*project_files(), tmp_path / "mine.yaml"]
    with pytest.raises(UserError) as error:
        load(merge(read_all(files), command_line_values(given)))
    return str(error.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("seeds: [1]\ntraining:\n  lr: -1", "mine.yaml, line 3: training.lr: must be above 0 (given: -1)"),
        ("systems: {grammar: {guide: pascal}}", "config/systems.yaml, line N: systems.grammar.options.bpe: unknown key 'bpe'"),
        # a section: the file that sets a key in it last
        ("systems:\n  transformer:\n    mlm_weight: 0.1", "mine.yaml, line 2: systems.transformer: mlm_weight needs a mask_rate"),
        ("experiments: {demo: {systems: [transformer]}}", "config.yaml, line N: experiments.demo.tables: no system here induces"),
        # of an inherited value the key that is written
        ("corpora: {multi30k: {pairs: {test: -1}}}", "mine.yaml, line 1: corpora.multi30k.pairs.test: must be above 0"),
        ("corpora:\n  demo:\n    decoding: {beam: 0}", "mine.yaml, line 3: corpora.demo.decoding.beam: must be above 0"),
        ("benchmarks: {nlu-demo: {finetuning: {dropout: 2}}}", "mine.yaml, line 1: benchmarks.nlu-demo.finetuning.dropout: must be below 1"),
        # << from another section: the line where it is written
        ("tables: {x: &x {lr: -1}}\ntraining:\n  <<: *x", "mine.yaml, line 1: training.lr: must be above 0"),
    ],
)  # fmt: skip
def test_the_file_and_line_that_set_the_key_last_are_named(tmp_path, text, begin):
    line = message_of(tmp_path, text)
    assert re.sub(r"(config.*yaml, line )\d+", r"\1N", line).startswith(begin), line
    file, number, key, _ = re.match(r"(\S+), line (\d+): (\S+?): (.*)", line).groups()
    path = tmp_path / file if file == "mine.yaml" else Path(file)
    assert key.rpartition(".")[2] in path.read_text().splitlines()[int(number) - 1]


def test_a_key_of_the_command_line_is_named_as_such(tmp_path):
    begin = "--config: training.lr: must be above 0"
    assert message_of(tmp_path, "training: {lr: 1}", training={"lr": -1}).startswith(begin)


def test_a_fault_in_a_file_of_the_project_names_that_file(tmp_path):
    (tmp_path / "config").mkdir()
    for file in project_files():
        (tmp_path / file).write_text(Path(file).read_text().replace("sigma: 1.0", "sigma: -1.0"))
    files = project_files(tmp_path)
    with pytest.raises(
        UserError, match=r"config/systems.yaml, line \d+: systems.pascal.options.sigma: must be"
    ):
        load(read_all(files))


def test_a_key_that_all_files_lack_is_reported_for_config_yaml():
    files = project_files()
    values = {key: value for key, value in read_all(files).items() if key != "targets"}
    with pytest.raises(UserError, match=r"^config.yaml: targets: this key is missing"):
        load(values)


@pytest.mark.parametrize(
    ("text", "value"),
    [("010", 10), ("0720", 720), ("1:30:00", "1:30:00"), ("1:30", "1:30"), ("no", "no"), ("on", "on"), ("y", "y"),
     ("1e-1", 0.1), ("5e-4", 0.0005), ("1_000", "1_000"), ("0x1F", 31), ("0o17", 15), ("0b1", "0b1"), ("-08", -8), ("1.", 1.0),
     ("2001-99-99", "2001-99-99"), ("=", "="), ("null", None), ("~", None), ("", None), ("True", True), ("'010'", "010"),
     (".inf", float("inf")), ("{url: https://example.org/x, t: 1:30}", {"url": "https://example.org/x", "t": "1:30"})],
)  # fmt: skip
def test_values_are_read_as_they_are_written(tmp_path, text, value):
    """By the core schema of YAML 1.2."""
    (tmp_path / "x.yaml").write_text(f"a: {text}\n")
    read = read_yaml(tmp_path / "x.yaml")["a"]
    assert (read, type(read)) == (value, type(value))


def test_norwegian_is_a_language(tmp_path):
    (tmp_path / "x.yaml").write_text("no: {a: 1}\n")
    assert read_yaml(tmp_path / "x.yaml") == {"no": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "given"),
    [("runtime: 1:30:00", "1:30:00"), ("threads: 1:00", "1:00"), ("tensorboard: maybe", "maybe")],
)
def test_text_for_a_number_is_refused_by_its_key(tmp_path, text, given):
    line = message_of(tmp_path, f"corpora: {{demo: {{resources: {{{text}}}}}}}")
    key = text.partition(":")[0]
    assert re.match(
        rf"mine.yaml, line 1: corpora\.demo\.resources\.{key}: must be .* \(given: '{given}'\)", line
    )


def test_numbers_that_begin_with_nought_are_decimal(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "corpora: {demo: {resources: {runtime: 0720}}}\nexperiments: {demo: {seeds: [010]}}\n"
    )
    config = load(read_all([*project_files(), tmp_path / "mine.yaml"]))
    assert config.corpora["demo"].resources.runtime == 720
    assert config.experiments["demo"].seeds == (10,)
