"""A sweep that is asked for varies one setting; what others sweep is nobody's concern."""

import re
from pathlib import Path

import pytest

from synmask.pipeline.config import Fault, check_sweep, load, merge, project_files, read_all
from synmask.pipeline.files import UserError

ROOT = Path(__file__).parents[2]


def configure(over):
    return load(merge(read_all(project_files(ROOT)), over), [])


def swept(systems, setting, *tried):
    over = {"systems": systems, "sweep": {"setting": setting, "values": tried}}
    return configure({"experiments": {"demo": over}})


@pytest.mark.parametrize(
    ("setting", "tried", "systems", "said"),
    [
        ("mlm_weight", [0.3], ["grammar"], "'grammar' and 'grammar-mlm-weight-0.3' are the same in de-en; leave one out"),
        ("mlm_weight", [0.1, 0], ["grammar", "grammar-mask"], "'grammar-mask' and 'grammar-mlm-weight-0' are the same in de-en; leave one out"),
        ("mlm_weight", [0.1], ["grammar", "grammar-nobpe"], "its systems differ in system.options.bpe, too; leave out those that do"),
    ],
)  # fmt: skip
def test_a_faulty_sweep_is_refused_when_it_is_asked_for(setting, tried, systems, said):
    config = swept(systems, setting, *tried)
    for other in ("iwslt14", "sweep-layers"):
        check_sweep(config, other)
    with pytest.raises(Fault) as found:
        check_sweep(config, "demo")
    assert found.value.path == ("experiments", "demo", "sweep")
    assert str(found.value) == said


@pytest.mark.parametrize(
    ("setting", "tried"),
    [("model.ffn_dim", [32, 64]), ("training.dropout", [0, 0.2]), ("mask_rate", [0.05, 0.3])],
)
def test_any_setting_of_a_training_can_be_swept(setting, tried):
    check_sweep(swept(["grammar"], setting, *tried), "demo")


def test_what_changes_no_training_cannot_be_swept():
    with pytest.raises(Fault, match=r"training\.average changes no training"):
        check_sweep(swept(["grammar"], "training.average", 2), "demo")


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


def test_our_sweeps_are_right():
    config = configure({})
    for name in config.plain_experiments:
        check_sweep(config, name)
