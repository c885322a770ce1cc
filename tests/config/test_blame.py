"""The project's files together, and whose key a fault is said of."""

import re
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.files import UserError

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
        load(merge(read_all(files), given), files)
    return str(error.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("text", "begin", "shown"),
    [
        ("seeds: [1]\ntraining: {max_epochs: 3}", "training.max_epochs: 5 epochs to average", "config.yaml: training.average"),
        ("systems: {grammar: {label: Transformer}}", "systems.grammar.label: system 'grammar' is called", "config.yaml: experiments.demo.systems"),
        ("corpora:\n  nc11:\n    trees: null", "corpora.nc11.trees: system 'pascal' reads heads", "config/paper.yaml: experiments.nc11.systems"),
        ("corpora: {nc11: {model: {heads: 2}}}", "corpora.nc11.model: system 'distance' guides 3 heads", "config/paper.yaml: experiments.nc11.systems"),
        ("corpora: {nc11: {languages: [de, fr]}}", "corpora.nc11.languages: unknown language 'en'", "config/paper.yaml: experiments.nc11.directions"),
        ("systems: {grammar: {guide: pascal}}", "systems.grammar.guide: unknown key 'bpe'", "config/systems.yaml: systems.grammar.options.bpe"),
        ("experiments: {demo: {systems: [transformer]}}", "experiments.demo.systems: no system here induces", "config.yaml: experiments.demo.tables"),
        # two faults: the cause of the first one
        ("corpora: {aspec: {trees: null}}\ntraining: {max_epochs: 3}", "corpora.aspec.trees: system 'pascal' reads", "config/paper.yaml: experiments.aspec-parsed.systems"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_for_the_users_key_that_causes_it(tmp_path, text, begin, shown):
    line = message_of(tmp_path, text)
    key, words = begin.rsplit(": ", 1)
    assert line.startswith(f"mine.yaml: {key}, against {shown}: {words}"), line


def test_a_fault_of_config_is_not_said_of_an_entry_that_it_breaks(tmp_path):
    mine = {"title": "M", "corpus": "demo", "directions": ["de-en"], "systems": ["mine", "grammar"]}
    text = yaml.safe_dump({"systems": {"mine": {"label": "Mine"}}, "experiments": {"mine": mine}})
    line = message_of(tmp_path, text, training={"max_epochs": 3})
    begin = r"--config: training.max_epochs, against config.yaml: training.average: 5 epochs"
    assert re.match(begin, line), line


def test_a_fault_in_a_file_of_the_project_names_that_file(tmp_path):
    (tmp_path / "config").mkdir()
    for file in project_files():
        (tmp_path / file).write_text(Path(file).read_text().replace("sigma: 1.0", "sigma: -1.0"))
    files = project_files(tmp_path)
    with pytest.raises(UserError, match=r"config/systems.yaml: systems.pascal.options.sigma: must be"):
        load(read_all(files), files)


def test_a_key_that_all_files_lack_is_reported_for_config_yaml():
    files = project_files()
    values = {key: value for key, value in read_all(files).items() if key != "targets"}
    with pytest.raises(UserError, match=r"^config.yaml: targets: this key is missing"):
        load(values, files)


def test_a_word_that_yaml_reads_as_a_truth_value_asks_for_quotes():
    values = read_all(project_files(ROOT))
    values["corpora"]["demo"]["languages"] = [False, "en"]
    with pytest.raises(UserError, match=r"languages\.0: must be text \(given: false\); YAML reads no, off,"):
        load(values, project_files(ROOT))
