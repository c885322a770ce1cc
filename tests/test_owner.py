"""A step of a run takes that run's model alone; by hand any model is fine."""

import pytest

from synmask.pipeline.files import UserError
from synmask.pipeline.owner import check_owner, check_start, owned

RUN = {
    "corpus": "demo", "direction": "de-en", "system": "grammar", "seed": 1, "settings": {"training": {"lr": 0.1}},
}  # fmt: skip
OTHERS = [
    ("corpus", "multi30k", "of another run (corpus multi30k, here demo)"),
    ("direction", "en-de", "of another run (direction en-de, here de-en)"),
    ("system", "transformer", "of another run (system transformer, here grammar)"),
    ("seed", 2, "of another run (seed 2, here 1)"),
    ("settings", {"training": {"lr": 0.2}}, "(settings training.lr: 0.2, here training.lr: 0.1)"),
]


@pytest.mark.parametrize(("part", "value", "message"), OTHERS)
def test_a_model_of_another_run_is_refused_and_by_hand_any_is_fine(tmp_path, part, value, message):
    saved = owned(RUN | {part: value})
    assert saved["run"]["commit"]
    with pytest.raises(UserError) as error:
        check_owner(tmp_path / "average.pt", saved, RUN)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/average.pt: ")
    check_owner(tmp_path, saved, RUN, part)
    check_owner(tmp_path, saved, {})
    check_owner(tmp_path, owned(RUN), RUN)


def test_a_model_that_does_not_say_whose_it_is_is_refused_in_a_run_alone(tmp_path):
    assert owned({}) == {}
    with pytest.raises(UserError, match="names no run"):
        check_owner(tmp_path, {"model": {}}, RUN)
    check_owner(tmp_path, {"model": {}}, {})


def test_weights_that_were_trained_here_are_those_of_their_name(tmp_path):
    fetched = RUN | {"start": {"weights": "base"}}
    check_start(tmp_path, {}, fetched)
    check_start(tmp_path, owned({"weights": "small"}), fetched)  # their name where they were trained
    trained = RUN | {"start": {"weights": "base", "seed": 1, "settings": {}}}
    check_start(tmp_path, owned(trained["start"]), trained)
    with pytest.raises(UserError, match=r"model.pt: of another run \(weights small, here base\)"):
        check_start(tmp_path, owned(trained["start"] | {"weights": "small"}), trained)
    with pytest.raises(UserError, match="names no run"):
        check_start(tmp_path, {}, trained)
