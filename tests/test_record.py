"""A step of a run takes that run's model alone; by hand any model is fine."""

import shutil

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_json
from synmask.pipeline.record import (
    check_model,
    check_owner,
    check_start,
    model_identity,
    new_record,
    new_run,
    read_record,
    read_run,
    read_training_digest,
    run_beside,
    scores_of,
    training_digest,
    weights_identity,
)

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
    saved = model_identity(RUN | {part: value})
    assert saved["run"]["commit"]
    with pytest.raises(UserError) as error:
        check_model(tmp_path / "average.pt", saved, RUN)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/average.pt: ")
    check_owner(tmp_path, saved, {key: value for key, value in RUN.items() if key != part})
    check_model(tmp_path, saved, {})
    check_model(tmp_path, model_identity(RUN), RUN)


def test_a_model_of_another_training_of_the_same_name_is_refused(tmp_path):
    """Such as one on other data, whose train.json was put back with an older date."""
    saved = model_identity(RUN | {"training": "this"})
    check_model(tmp_path / "average.pt", saved, RUN | {"training": "this"})
    with pytest.raises(UserError, match=r"train\.json: of another training than .*average\.pt"):
        check_model(tmp_path / "average.pt", saved, RUN | {"training": "other"})


def test_the_record_of_a_run_is_that_of_its_folder(tmp_path):
    """A folder that was copied to another seed's is refused, whatever it contains."""
    folder = tmp_path / "results/demo/de-en/grammar/seed1"
    assert run_beside(folder / "average.pt") == {}
    write_json(folder / "train.json", RUN)
    assert read_run(folder) == run_beside(folder / "average.pt") == RUN
    copied = shutil.copytree(folder, folder.with_name("seed2"))
    with pytest.raises(UserError, match=r"seed2/train\.json: of another run \(seed 1, here 2\)"):
        read_run(copied)
    assert read_run(shutil.copytree(folder, tmp_path / "elsewhere")) == RUN


def test_a_folder_of_another_run_is_refused_before_anything_is_trained(tmp_path):
    folder, facts = tmp_path / "results/demo/de-en/grammar/seed1", {"seed": 1, "direction": "de-en"}
    assert new_run(folder, facts) == {"corpus": "demo", "system": "grammar"} | facts
    with pytest.raises(UserError, match=r"seed1: of seed 1, not 2; give --run another folder"):
        new_run(folder, facts | {"seed": 2})
    assert new_run(tmp_path, facts) == facts


def test_a_record_by_an_older_version_says_what_to_do(tmp_path):
    write_json(tmp_path / "train.json", {"training": "this", "epochs": 3})
    with pytest.raises(UserError, match=r"train\.json: no settings in it .*any_code=true"):
        read_run(tmp_path)
    write_json(tmp_path / "train.json", RUN)
    with pytest.raises(UserError, match=r"train\.json: no averaged_epochs in it"):
        read_run(tmp_path, "seed", "averaged_epochs")


def test_a_model_that_does_not_say_whose_it_is_is_refused_in_a_run_alone(tmp_path):
    assert model_identity({}) == {}
    with pytest.raises(UserError, match="names no run"):
        check_owner(tmp_path, {"model": {}}, RUN)
    check_owner(tmp_path, {"model": {}}, {})


def test_weights_that_were_trained_here_are_those_of_their_name(tmp_path):
    check_start(tmp_path, {}, {"weights": "base"})
    check_start(
        tmp_path, model_identity({"weights": "small"}), {"weights": "base"}
    )  # their name where they were trained
    start = {"weights": "base", "seed": 1, "settings": {}}
    check_start(tmp_path, model_identity(start), start)
    with pytest.raises(UserError, match=r"model.pt: of another run \(weights small, here base\)"):
        check_start(tmp_path, model_identity(start | {"weights": "small"}), start)
    with pytest.raises(UserError, match="names no run"):
        check_start(tmp_path, {}, start)


@pytest.mark.parametrize("part", ["settings", "seed", "data"])
def test_other_settings_data_or_another_seed_are_another_training_and_other_code_is_not(part):
    stamp = {"settings": {"lr": 0.1}, "seed": 1, "data": "a", "code": "b"}
    assert training_digest(stamp | {"code": "c"}) == training_digest(stamp)
    assert training_digest(stamp | {part: 2}) != training_digest(stamp)


def test_a_model_that_started_from_other_weights_is_refused(tmp_path):
    run = RUN | {"start": {"weights": "base", "seed": 1}}
    with pytest.raises(UserError, match=r"of another run \(start seed: 2, here seed: 1\)"):
        check_model(
            tmp_path / "model.pt", model_identity(run | {"start": {"weights": "base", "seed": 2}}), run
        )


def test_weights_say_how_they_were_trained_if_they_were_trained_here(tmp_path):
    folder = tmp_path / "results/weights/base"
    assert weights_identity(folder) == {"weights": "base"}
    write_json(folder / "train.json", {"weights": "base", "seed": 1, "settings": {}, "epochs": 3})
    assert weights_identity(folder) == {"weights": "base", "seed": 1, "settings": {}}


def test_files_of_another_training_of_the_same_run_are_refused(tmp_path):
    """Such as hypotheses of before the data changed."""
    assert read_training_digest(tmp_path) == {}
    write_json(tmp_path / "train.json", {"training": "new", "epochs": 3})
    assert read_training_digest(tmp_path) == {"training": "new"}
    path, text = tmp_path / "hypothesis.test.json", tmp_path / "hypothesis.test.txt"
    for training in ("new", "old"):
        write_json(path, new_record(path, RUN, training, {text: "ja\n"}))
        if training == "new":
            assert read_record(path, [text], RUN | read_training_digest(tmp_path)) == {}
    with pytest.raises(UserError, match=r"train\.json: of another training than .*hypothesis\.test\.json"):
        read_record(path, [text], RUN | read_training_digest(tmp_path))


def test_scores_say_the_commit_of_the_last_attempt_of_an_older_version():
    attempts = [{"updates": 1}, {"updates": 2}]
    scores = scores_of(RUN | {"commit": "abc", "attempts": attempts}, {"scores": {}}, {})
    assert scores["attempts"] == [{"updates": 1}, {"updates": 2, "commit": "abc"}]


@pytest.mark.parametrize("part", RUN)
def test_a_model_that_does_not_say_all_of_its_run_is_refused(tmp_path, part):
    saved = model_identity({key: value for key, value in RUN.items() if key != part})
    with pytest.raises(UserError, match=rf"of another run \({part} None, here "):
        check_owner(tmp_path / "average.pt", saved, RUN)
