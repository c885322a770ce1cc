"""Forced decoding: the log-probabilities of references are those that the model gives to each alone."""

import pytest

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.sentences import PROBABILITY, perplexity, read_probabilities
from synmask.pipeline.training.binarise import encode_line
from synmask.pipeline.translation.decode import decode_files
from synmask.pipeline.translation.translate import Translator


def forced(model, folder, output, references=None, source=None):
    """The file of log-probabilities of the test set's references, decoded in small batches."""
    decode_files(
        model=model,
        inputs=[source or folder / "bpe/test.de"],
        outputs=[output],
        references=[references or folder / "bpe/test.en"],
        settings=Decoding(beam=2, max_tokens=30),
    )
    return output.with_name(f"{output.name}.forced.csv")


@pytest.mark.parametrize("system", ["plain", "grammar"])
def test_log_probabilities_are_those_of_each_reference_alone(corpus, models, tmp_path, system):
    model = models / f"{system}.pt"
    path = forced(model, corpus, tmp_path / "test")
    assert path.read_bytes() == forced(model, corpus, tmp_path / "again").read_bytes()
    assert path.read_text().splitlines()[0] == ",".join(PROBABILITY)
    pairs = [(corpus / f"bpe/test.{side}").read_text().splitlines() for side in ("de", "en")]
    found = read_probabilities(path, len(pairs[0]))
    alone = Translator([model], Decoding(length_penalty=0.0))
    for (log_probability, tokens), source, target in zip(found, *pairs, strict=True):
        ids = encode_line(target, alone.task.tgt_dict).long()
        data = alone.task.sources([encode_line(source, alone.task.src_dict).long()])
        assert log_probability == pytest.approx(alone._score(data, 0, ids), abs=2e-4)
        assert tokens == len(target.split()) + 1
    assert len({*found[:, 0]}) > 6
    assert 1 < perplexity(found.sum(axis=0)) < 100


def test_without_references_there_is_no_file(corpus, models, tmp_path):
    given = {"inputs": [corpus / "bpe/test.de"], "outputs": [tmp_path / "test"]}
    decode_files(model=models / "plain.pt", **given, settings=Decoding(beam=2))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".tok", ".txt"]


@pytest.mark.parametrize("system", ["plain", "grammar"])
def test_empty_lines_have_their_end_alone(models, tmp_path, system):
    (tmp_path / "source").write_text("a bb\n\n\n")
    (tmp_path / "target").write_text("\na\n\n")
    files = {"references": tmp_path / "target", "source": tmp_path / "source"}
    found = read_probabilities(forced(models / f"{system}.pt", None, tmp_path / "out", **files), 3)
    assert found[:, 1].tolist() == [1, 2, 1]
    assert (found[:, 0] < 0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [("a\n", "target: 1 lines for 2 sentences"), ("a\n" + "a " * 1024, "line 2: longer than 1024 sub-words")],
)
def test_references_that_do_not_fit_are_refused(models, tmp_path, text, message):
    (tmp_path / "source").write_text("a\nbb\n")
    (tmp_path / "target").write_text(text)
    files = {"references": tmp_path / "target", "source": tmp_path / "source"}
    with pytest.raises(UserError, match=message):
        forced(models / "plain.pt", None, tmp_path / "out", **files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]
