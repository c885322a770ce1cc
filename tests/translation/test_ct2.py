"""Models exported to CTranslate2, loaded by its engine."""

import pytest
from ctranslate2 import Translator
from sentencepiece import SentencePieceProcessor

from synmask.pipeline.cli import main
from synmask.pipeline.errors import UserError
from synmask.pipeline.translation.ct2 import export_ctranslate2
from synmask.pipeline.translation.model import TrainedModel

LINES = ["a bb d", "jj ef", "ghi a cc cc d", "a", "bb jj ghi ef d a a cc", "cc d a ef ef"]
BPE = [
    "a bb d",
    "jj e@@ f",
    "g@@ h@@ i a cc cc d",
    "a",
    "bb jj g@@ h@@ i e@@ f d a a cc",
    "cc d a e@@ f e@@ f",
]


def test_its_engine_computes_our_probabilities(drawn, tmp_path):
    path = drawn(tmp_path / "average.pt", "none")
    main(["export", str(path), "--output", str(tmp_path / "out"), "--format", "ctranslate2"])
    engine = Translator(str(tmp_path / "out"))
    pieces = [line.split() for line in BPE]
    found = engine.score_batch(pieces, pieces[::-1])
    expected = TrainedModel(path).score(LINES, LINES[::-1])
    assert [sum(one.log_probs) for one in found] == pytest.approx(expected, abs=1e-3)
    assert max(expected) - min(expected) > 1
    assert len(engine.translate_batch(pieces)) == len(pieces)
    assert (tmp_path / "out/codes.bpe").read_text().startswith("#version: 0.2")
    assert "library_name: ctranslate2" in (tmp_path / "out/README.md").read_text()


def test_vocabularies_of_pieces_have_the_library_s_names(with_pieces, tmp_path):
    model = TrainedModel(with_pieces(tmp_path / "average.pt", de="none", en="none"))
    export_ctranslate2(model.path, tmp_path / "out")
    sides = [
        SentencePieceProcessor(model_file=str(tmp_path / f"out/{side}.spm")) for side in ("source", "target")
    ]
    found = Translator(str(tmp_path / "out")).score_batch(
        *(side.encode(lines, out_type=str) for side, lines in zip(sides, (LINES, LINES[::-1]), strict=True))
    )
    expected = model.score(LINES, LINES[::-1])
    assert [sum(result.log_probs) for result in found] == pytest.approx(expected, abs=1e-3)
    assert "SentencePieceProcessor" in (tmp_path / "out/README.md").read_text()


def test_a_guided_model_is_refused(models, tmp_path):
    with pytest.raises(UserError, match="guided by grammar, which CTranslate2 lacks"):
        export_ctranslate2(models / "grammar.pt", tmp_path / "out")
    assert not (tmp_path / "out").exists()
