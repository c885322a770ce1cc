"""Sweeps vary one setting."""

import re
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import flatten

ROOT = Path(__file__).parents[2]


def configure(over):
    return load(merge(read_all(project_files(ROOT)), over))


def swept(systems, setting, *tried):
    over = {"systems": systems, "sweep": {"setting": setting, "values": tried}}
    return configure({"experiments": {"demo": over}})


@pytest.mark.parametrize(
    ("setting", "tried"),
    [("model.ffn_dim", [32, 64]), ("training.dropout", [0, 0.2]), ("mask_rate", [0.05, 0.3])],
)
def test_any_setting_of_a_training_can_be_swept(setting, tried):
    config = swept(["grammar"], setting, *tried)
    systems = config.experiments["demo"].systems
    runs = [flatten(config.run_settings("demo", "de-en", name).plain()) for name in systems]
    [key] = (key for key in runs[0] if len({str(run[key]) for run in runs}) > 1)
    assert key.endswith(setting)


@pytest.mark.parametrize(
    ("setting", "tried", "added"),
    [
        ("training.dropout", [0.2, "2e-1"], ["training-dropout-0.2"]),
        ("training.dropout", [0.2, 0.1], ["training-dropout-0.2"]),  # 0.1 is the corpus' own
        ("options.layers", [2, 1], ["layers-2"]),
        ("options.bpe_dim", [48, "48"], ["bpe-dim-48"]),
        ("training.average", [1, 3], ["training-average-1", "training-average-3"]),  # models of one training
    ],
)
def test_no_settings_are_trained_twice(setting, tried, added):
    systems = swept(["grammar"], setting, *tried).experiments["demo"].systems
    assert [*systems] == ["grammar", *(f"grammar-{name}" for name in added)]


def test_a_value_counts_as_there_only_if_it_is_there_in_all_directions():
    over = {"corpora": {"demo": {"training": {"mlm_weight": {"de-en": 0.1, "en-de": 0.2}}}}}
    sweep = {"setting": "mlm_weight", "values": [0.1]}
    for directions, added in ((["de-en"], []), (["de-en", "en-de"], ["grammar-mlm-weight-0.1"])):
        experiment = {"systems": ["grammar"], "directions": directions, "sweep": sweep}
        config = configure(over | {"experiments": {"demo": experiment}})
        assert [*config.experiments["demo"].systems] == ["grammar", *added]


def test_a_number_of_a_file_is_one_value(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "experiments: {demo: {sweep: {setting: training.dropout, values: [0.1, 1e-1]}}}"
    )
    with pytest.raises(
        UserError, match=r"mine.yaml, line 1: experiments.demo.sweep.values: 0.1 is given twice"
    ):
        configure(read_yaml(tmp_path / "mine.yaml"))


@pytest.mark.parametrize(
    ("system", "setting", "message"),
    [
        ("grammar", "layers", "sweep.setting: an option of the guide: write options.layers"),
        ("transformer", "options.layers", "sweep.setting: the guide of the first system, 'transformer', has no options"),
    ],
)  # fmt: skip
def test_a_setting_in_the_wrong_place_is_told_the_right_one(system, setting, message):
    with pytest.raises(UserError, match=re.escape(message)):
        swept([system], setting, 2)
