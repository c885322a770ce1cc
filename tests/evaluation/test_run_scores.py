"""Test sets are scored apart as each alone, and together; perplexity follows from the log-probabilities."""

import csv
import json
import math
import re

import numpy as np
import pytest

from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import COUNTS, TOKENISED, score
from synmask.pipeline.evaluation.score_run import score_run
from synmask.pipeline.evaluation.sentences import (
    PROBABILITY,
    SET,
    perplexity,
    read_probabilities,
    read_sentences,
)

REFERENCES = [
    "the old man walks home today",
    "a dog sleeps in the green wood",
    "the wood is green today",
    "no",
]
HYPOTHESES = ["the old man goes home today", "a dog sleeps in the green wood", "the dog is not green", "yes"]
PROBABLE = [(-8.0, 7), (-2.0, 8), (-9.5, 6), (-4.5, 2)]
RUN = {"corpus": "c", "direction": "de-en", "system": "s", "seed": 1}
RECORD = RUN | {"settings": {"model": {}}, "training": "this"}


def lines(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


@pytest.fixture
def scored(tmp_path):
    """Score a run with these sizes of named sets → its scores.json and sentences.csv."""
    lines(tmp_path / "hypothesis.test.txt", HYPOTHESES)
    lines(tmp_path / "hypothesis.test.tok", HYPOTHESES)
    rows = [PROBABILITY, *PROBABLE]
    lines(tmp_path / "hypothesis.test.forced.csv", [",".join(map(str, row)) for row in rows])
    parts = {kind: sha256(tmp_path / f"hypothesis.test.{kind}") for kind in ("txt", "tok", "forced.csv")}
    message = {
        "decode_seconds": 1.0,
        "decoding": {"beam": 3},
        "training": "this",
        "run": RUN,
        "sha256": parts,
    }
    (tmp_path / "hypothesis.test.json").write_text(json.dumps(message))
    (tmp_path / "train.json").write_text(json.dumps(RECORD))
    text = lines(tmp_path / "text", REFERENCES)

    def make(pairs=None, **sets):
        files = [lines(tmp_path / name, ["x"] * size) for name, size in sets.items()]
        given = {"splits": ("test",), "references": (text,), "reference_tokens": (text,)}
        score_run(run=tmp_path, **given, sets=tuple(sets), set_files=tuple(files), pairs=pairs)
        return json.loads((tmp_path / "scores.json").read_text()), tmp_path / "sentences.csv"

    return make


def test_sets_are_scored_as_each_alone_and_together(scored):
    scores, sentences = scored(news=1, talks=3)
    assert [*scores["test_sets"]] == ["news", "talks"]
    for name, part in (("news", slice(0, 1)), ("talks", slice(1, 4))):
        found, texts = scores["test_sets"][name], (HYPOTHESES[part], REFERENCES[part])
        assert found.pop("sentences") == len(texts[0])
        sums = np.sum(PROBABLE[part], axis=0)
        assert found.pop("perplexity") == pytest.approx(math.exp(-sums[0] / sums[1]))
        assert found == score(texts, texts, language="en")["scores"]
    both = (HYPOTHESES, REFERENCES)
    assert scores["scores"]["test"] == score(both, both, language="en")["scores"]
    assert scores["perplexity"]["test"] == pytest.approx(math.exp(24 / 23))
    table = read_sentences(sentences)
    assert table[SET].tolist() == ["news", "talks", "talks", "talks"]
    assert table[PROBABILITY].to_numpy().tolist() == [[*row] for row in PROBABLE]


def test_a_single_set_is_not_named(scored):
    scores, sentences = scored()
    assert "test_sets" not in scores
    head, *rows = csv.reader(sentences.open())
    assert head == [*COUNTS, *TOKENISED, *PROBABILITY]
    assert {len(row) for row in rows} == {len(head)}
    assert len(read_sentences(sentences)) == 4


def test_pairs_that_sets_share_and_dropped_ones_become_part_of_the_scores(scored, tmp_path):
    counts = {"overlap": {"test in train": 2}, "train": {"kept": 91, "too_short": 0, "ratio": 9}}
    (tmp_path / "pairs.json").write_text(json.dumps(counts))
    scores = scored(tmp_path / "pairs.json")[0]
    assert scores["overlap"] == {"test in train": 2}
    assert "dropped" not in scores
    counts["train"] = {"kept": 90, "too_short": 0, "too_long": 1, "ratio": 9, "long_word": 0}
    (tmp_path / "pairs.json").write_text(json.dumps(counts))
    scores = scored(tmp_path / "pairs.json")[0]
    assert scores["dropped"] == "10 of 100 training pairs are dropped: 1 too long, 9 of too different length"


def test_a_set_may_be_called_what_pandas_takes_for_missing(scored):
    _, sentences = scored(nan=2, null=2)
    assert read_sentences(sentences)[SET].tolist() == ["nan", "nan", "null", "null"]


def test_sets_of_another_size_are_refused(scored, tmp_path):
    with pytest.raises(UserError, match=r"news, .*talks: 5 lines for 4 sentences"):
        scored(news=2, talks=3)
    assert not (tmp_path / "scores.json").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a table"),
        ("1,2\n", "no column log_probability, tokens"),
        ("log_probability,tokens\n-1,2\n", "1 log-probabilities for 2 references"),
        ("log_probability,tokens\nx,2\n-1,2\n", "not a table"),
    ],
)
def test_damaged_log_probabilities_are_named(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(UserError, match=rf"p\.csv: {message}.*; decode again"):
        read_probabilities(tmp_path / "p.csv", 2)


def test_runs_without_log_probabilities_are_told_to_decode_again(tmp_path):
    with pytest.raises(UserError, match=r"p\.csv: no such file"):
        read_probabilities(tmp_path / "p.csv", 2)


def test_perplexity_of_a_uniform_model_is_the_size_of_its_vocabulary():
    sums = np.array([[-5 * math.log(40), 5], [-3 * math.log(7), 3]])
    assert perplexity(sums) == pytest.approx([40, 7])


@pytest.mark.parametrize("name", ["h.txt", "h.tok", "h.forced.csv", "train.json", "h.json"])
def test_no_part_of_another_run_is_scored(scored, tmp_path, name):
    path = tmp_path / name.replace("h.", "hypothesis.test.")
    changes = {
        "h.json": ('"seed": 1', '"seed": 2'),
        "train.json": ("this", "other"),
        "h.forced.csv": ("-", "-1"),
    }
    path.write_text(path.read_text().replace(*changes.get(name, ("the", "a")), 1))
    with pytest.raises(UserError, match=re.escape(str(path))):
        scored()
    assert not (tmp_path / "scores.json").exists()


def test_the_parts_of_older_versions_are_taken(scored, tmp_path):
    (tmp_path / "hypothesis.test.json").write_text('{"decoding": {"beam": 3}}')
    (tmp_path / "train.json").write_text(json.dumps(RUN | {"settings": {}}))
    assert scored()[0]["scores"]


def test_what_does_not_say_how_it_was_made_is_made_again(scored, tmp_path):
    """Records of the version before had neither the run nor how it was decoded."""
    train, hypotheses = tmp_path / "train.json", tmp_path / "hypothesis.test.json"
    before = train.read_text()
    train.write_text('{"training": "this"}')
    with pytest.raises(UserError, match=r"train\.json: no settings in it .*any_code=true"):
        scored()
    train.write_text(before)
    hypotheses.write_text('{"decode_seconds": 1.0}')
    with pytest.raises(UserError, match=r"test\.json: does not say how it was decoded; decode again"):
        scored()
    assert not (tmp_path / "scores.json").exists()


def test_splits_that_were_decoded_otherwise_are_not_scored_together(scored, tmp_path):
    scored()
    for path in tmp_path.glob("hypothesis.test.*"):
        path.with_name(path.name.replace("test", "valid")).write_bytes(path.read_bytes())
    record = tmp_path / "hypothesis.valid.json"
    (tmp_path / "scores.json").unlink()
    given = {"run": tmp_path, "splits": ("test", "valid"), "references": (tmp_path / "text",) * 2}
    record.write_text(record.read_text().replace('"beam": 3', '"beam": 4'))
    with pytest.raises(UserError, match=r"valid\.json: decoded with other settings; decode again"):
        score_run(**given, reference_tokens=(tmp_path / "text",) * 2)
    assert not (tmp_path / "scores.json").exists()


def test_scores_keep_the_commit_of_a_training_by_an_older_version(scored, tmp_path):
    """Its attempts had none, and that of train.json gives way to the one that scores."""
    older = RECORD | {"commit": "abc", "attempts": [{"updates": 4}, {"updates": 9}]}
    (tmp_path / "train.json").write_text(json.dumps(older))
    assert scored()[0]["attempts"] == [{"updates": 4}, {"updates": 9, "commit": "abc"}]
    (tmp_path / "train.json").write_text(json.dumps(older | {"attempts": [{"updates": 9, "commit": "abd"}]}))
    assert scored()[0]["attempts"] == [{"updates": 9, "commit": "abd"}]
