"""A sweep that is asked for varies one setting; what others sweep is nobody's concern."""

import re
from pathlib import Path

import pytest

from synmask.pipeline.config import Fault, asked_sweeps, check_sweeps, load, merge, project_files, read_all
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
    check_sweeps(config, ["iwslt14", "sweep-layers"])
    with pytest.raises(Fault) as found:
        check_sweeps(config, ["demo"])
    assert found.value.path == ("experiments", "demo", "sweep")
    assert str(found.value) == said


@pytest.mark.parametrize(
    ("setting", "tried"),
    [("model.ffn_dim", [32, 64]), ("training.dropout", [0, 0.2]), ("mask_rate", [0.05, 0.3])],
)
def test_any_setting_of_a_training_can_be_swept(setting, tried):
    check_sweeps(swept(["grammar"], setting, *tried), ["demo"])


def test_what_changes_no_training_cannot_be_swept():
    with pytest.raises(Fault, match=r"training\.average changes no training"):
        check_sweeps(swept(["grammar"], "training.average", 2), ["demo"])


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
    check_sweeps(config, config.plain_experiments)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], []),
        (["demo", "-n"], []),
        (["sweep-bpe-dim"], ["sweep-bpe-dim"]),
        (["sweeps"], [f"sweep-{name}" for name in ("mlm-weight-iwslt14", "mlm-weight-nc11", "mlm-weight-aspec", "bpe-dim", "bpe-labels", "layers")]),
        (["results/tables/sweep-layers.md"], ["sweep-layers"]),
        (["results/tables/sweep-layers.runs.csv"], ["sweep-layers"]),
        (["results/figures/sweep-bpe-dim-sweep.svg", "results/report-sweep-layers.html"], ["sweep-bpe-dim", "sweep-layers"]),
        (["results/figures/sweep-bpe-labels-de-en-curves.pdf"], ["sweep-bpe-labels"]),
        (["results/figures/sweep-bpe-labels-2-bleu.svg", "results/tables/sweep.md"], []),
    ],
)  # fmt: skip
def test_what_a_command_line_asks_for(words, asked):
    assert asked_sweeps(configure({}), words) == asked


def test_without_a_target_the_configurations_own_count():
    assert asked_sweeps(configure({"targets": ["sweep-layers"]}), ["-n"]) == ["sweep-layers"]
