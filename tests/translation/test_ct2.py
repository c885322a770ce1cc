"""Models exported to CTranslate2, loaded by its engine."""

import pytest
from ctranslate2 import Translator

from synmask.pipeline.cli import main
from synmask.pipeline.files import UserError
from synmask.pipeline.text.bpe import join_subwords
from synmask.pipeline.translation.ct2 import export_ctranslate2
from synmask.pipeline.translation.model import Model

SEED = 4  # of parameters with which translations differ
LINES = ["a bb d", "jj ef", "ghi a cc cc d", "a", "bb jj ghi ef d a a cc", "cc d a ef ef"]
BPE = [
    "a bb d",
    "jj e@@ f",
    "g@@ h@@ i a cc cc d",
    "a",
    "bb jj g@@ h@@ i e@@ f d a a cc",
    "cc d a e@@ f e@@ f",
]


def test_its_engine_finds_our_translations(drawn, tmp_path):
    path = drawn(tmp_path / "average.pt", "none", seed=SEED)
    main(["export", str(path), "--output", str(tmp_path / "out"), "--format", "ctranslate2"])
    how = {"beam_size": 5, "length_penalty": 1, "max_decoding_length": 200, "min_decoding_length": 1}
    found = Translator(str(tmp_path / "out")).translate_batch([line.split() for line in BPE], **how)
    kept = [[token for token in one.hypotheses[0] if token != "<s>"] for one in found]
    theirs = [join_subwords(" ".join(tokens)) for tokens in kept]
    assert theirs == Model(path).translate(LINES)
    assert len(set(theirs)) >= 4
    assert (tmp_path / "out/codes.bpe").read_text().startswith("#version: 0.2")
    assert "library_name: ctranslate2" in (tmp_path / "out/README.md").read_text()


def test_a_guided_model_is_refused(models, tmp_path):
    with pytest.raises(UserError, match="guided by grammar, which CTranslate2 lacks"):
        export_ctranslate2(models / "grammar.pt", tmp_path / "out")
    assert not (tmp_path / "out").exists()
