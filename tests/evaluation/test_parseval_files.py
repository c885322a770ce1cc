import json

import pytest

from synmask.evaluation.parseval import evaluate_files, split_words
from synmask.files import UserError

GOLD = "(S (NP (D the) (N dogs)) (VP (V bark) (ADVP (A very) (A loudly))) (. .))\n"


def row(distances, tokens=("the", "do@@", "gs", "bark", "very", "loudly", ".")):
    return json.dumps({"tokens": list(tokens), "distances": distances}) + "\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold").write_text(GOLD)
    return tmp_path / "gold", tmp_path / "predicted"


def test_sub_words_are_joined_and_cut_words_counted(files):
    files[1].write_text(row([2, 1, 4, 3, 1, 5]))  # ((the dogs) (bark (very loudly))) .
    result = evaluate_files(*files)
    assert result["rows"]["induced"] == pytest.approx(result["rows"]["oracle"])
    assert result["cut_words"] == {"cut": 0, "split": 1}
    files[1].write_text(row([1, 2, 4, 3, 1, 5]))  # "the do@@" is a constituent
    assert evaluate_files(*files)["cut_words"] == {"cut": 1, "split": 1}
    assert evaluate_files(*files)["rows"]["induced"]["f1"] == result["rows"]["induced"]["f1"]


def test_split_words():
    assert split_words(["a@@", "b@@", "c", "d", "e@@", "f"]) == 2
    assert split_words([]) == 0


@pytest.mark.parametrize("text", ["no json\n", "{}\n", "[1]\n"])
def test_a_damaged_line_is_named(files, text):
    files[1].write_text(text)
    with pytest.raises(UserError, match=r"predicted, line 1: no tokens and distances"):
        evaluate_files(*files)


def test_other_words_are_named_with_both_files(files):
    files[1].write_text(row([1, 2, 3, 1, 1, 5], ["a", "do@@", "gs", "bark", "very", "loudly", "."]))
    with pytest.raises(UserError, match=r"gold, .*predicted: .*1"):
        evaluate_files(*files)
