"""Sweeps vary one setting."""

import re
from pathlib import Path

import pytest

from synmask.pipeline.config import load, merge, project_files, read_all
from synmask.pipeline.files import UserError

ROOT = Path(__file__).parents[2]


def configure(over):
    return load(merge(read_all(project_files(ROOT)), over), [])


def swept(systems, setting, *tried):
    over = {"systems": systems, "sweep": {"setting": setting, "values": tried}}
    return configure({"experiments": {"demo": over}})


@pytest.mark.parametrize(
    ("setting", "tried"),
    [("model.ffn_dim", [32, 64]), ("training.dropout", [0, 0.2]), ("mask_rate", [0.05, 0.3])],
)
def test_any_setting_of_a_training_can_be_swept(setting, tried):
    assert swept(["grammar"], setting, *tried).swept_setting("demo").endswith(setting)


@pytest.mark.parametrize(
    ("setting", "systems"),
    [
        ("mlm_weight", ["grammar", "grammar-nobpe"]),  # which differ in the BPE labels, too
        ("training.average", ["grammar"]),  # which changes no training
    ],
)
def test_there_is_no_curve_of_systems_that_differ_otherwise(setting, systems):
    assert swept(systems, setting, 0.1 if setting == "mlm_weight" else 2).swept_setting("demo") is None


@pytest.mark.parametrize(
    ("system", "setting", "said"),
    [
        ("grammar", "layers", "sweep.setting: an option of the guide: write options.layers"),
        ("transformer", "options.layers", "sweep.setting: the guide of the first system, 'transformer', has no options"),
    ],
)  # fmt: skip
def test_a_setting_in_the_wrong_place_is_told_the_right_one(system, setting, said):
    with pytest.raises(UserError, match=re.escape(said)):
        swept([system], setting, 2)


def test_our_sweeps_of_numbers_have_a_curve():
    config = configure({})
    sweeps = [name for name, entry in config.plain_experiments.items() if entry.sweep]
    assert [name for name in sweeps if not config.swept_setting(name)] == ["sweep-bpe-labels"]
