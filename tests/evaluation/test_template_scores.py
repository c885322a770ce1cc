import pytest
from sacrebleu.metrics import BLEU

from synmask.pipeline.evaluation.template_scores import score_templates
from synmask.pipeline.files import UserError, write_lines


def test_templates_are_scored_where_there_is_a_gold_one(tmp_path):
    write_lines(tmp_path / "ours", ["[NP] of [NP] .", "[NP] h@@ as [VP] [NP] .", "[S]", ""])
    write_lines(tmp_path / "gold", ["[NP] of [NP] .", "[NP] had [VP] [NP] .", "", "[NP] [VP]"])
    found = score_templates(tmp_path / "ours", tmp_path / "gold", "en")
    ours = ["[NP] of [NP] .", "[NP] has [VP] [NP] .", ""]
    gold = ["[NP] of [NP] .", "[NP] had [VP] [NP] .", "[NP] [VP]"]
    expected = BLEU(tokenize="none").corpus_score(ours, [gold]).score
    assert found["scores"] == {"bleu_tokenised": pytest.approx(expected), "exact": pytest.approx(100 / 3)}
    assert found["sentences"] == 3
    assert "tok:none" in found["signatures"]["bleu_tokenised"]


def test_no_gold_template_is_said(tmp_path):
    write_lines(tmp_path / "ours", ["[S]"])
    write_lines(tmp_path / "gold", [""])
    with pytest.raises(UserError, match="gold: no template in it; parse the text again"):
        score_templates(tmp_path / "ours", tmp_path / "gold", "en")
