"""Why jobs run again, in words."""

import json

import pytest

from synmask.pipeline.workflow import sources
from synmask.pipeline.workflow.jobs import as_options
from synmask.pipeline.workflow.reasons import changed
from synmask.pipeline.workflow.sources import _digest as digest_of

UNKNOWN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "_sums", {})
    monkeypatch.setattr(sources, "_keeping", False)


def test_a_digest_is_told_by_the_files_behind_it():
    old = digest_of({"a.py": "1", "b.py": "1", "gone.py": "1"})
    sources.keep_records()  # as a run does
    sources._sums.clear()
    new = digest_of({"a.py": "2", "b.py": "1", "new.py": "1"})  # as the next call does
    assert [*changed([repr(old)], [repr(new)])] == ["a.py, gone.py, new.py changed"]


def test_what_is_known_later_is_kept_at_once(tmp_path):
    sources.keep_records()
    digest = digest_of({"a.py": "1"})
    assert json.loads((tmp_path / f"results/logs/sources/{digest}.json").read_text()) == {"a.py": "1"}


def test_a_plan_keeps_nothing(tmp_path):
    digest_of({"a.py": "1"})
    assert [*tmp_path.iterdir()] == []


def test_a_digest_without_a_record_says_so():
    new = digest_of({"a.py": "1"})
    found = [*changed([repr(UNKNOWN)], [repr(new)])]
    assert found == ["code changed since a version that kept no record of it"]


def test_settings_are_told_by_their_keys():
    old = {"decoding": {"beam": 5, "length_penalty": 1.0}, "settings": {"training": {"lr": 0.1}}, "gone": [1]}
    new = {"decoding": {"beam": 4, "length_penalty": 1.0}, "settings": {"training": {"lr": 0.2}}}
    found = [*changed([repr(json.dumps(old))], [repr(json.dumps(new))])]
    assert found == ["decoding.beam 5 → 4", "training.lr 0.1 → 0.2", "gone [1] → null"]


def test_other_parameters_are_told_by_their_names():
    assert [*changed(["300"], ["400"], {"400": "merges"})] == ["merges 300 → 400"]
    assert [*changed([], ["[1]"], {"[1]": "rows"})] == ["rows [1]"]


def test_the_json_of_options_is_told_by_its_keys_as_where_it_is_a_parameter():
    text, pairs = '{"max_ratio": 4.0, "tokeniser": null}', '{"train": 6000}'
    before, after = (as_options(settings=text.replace("4", ratio), pairs=pairs) for ratio in "45")
    assert [*changed([repr(before)], [repr(after)])] == ["max_ratio 4.0 → 5.0"]
    assert [*changed([repr(text), repr(pairs)], [repr(before)])] == []


def test_options_are_told_by_their_names():
    old, new = (
        "'--beam 5 --length-penalty 1.0 --precision fp32'",
        "'--beam 4 --length-penalty 1.0 --precision bf16'",
    )
    assert [*changed([old], [new])] == ["beam 5 → 4", 'precision "fp32" → "bf16"']
    assert [*changed([], ["'--lowercase'"])] == ["lowercase null → true"]


def test_long_lists_are_cut():
    old, new = (digest_of({f"{number}.py": checksum for number in range(9)}) for checksum in "12")
    assert [*changed([repr(old)], [repr(new)])] == ["0.py, 1.py, 2.py and 6 more changed"]
