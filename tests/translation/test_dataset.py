import numpy as np
import pytest
import torch

from small_models import typed
from synmask.pipeline.errors import UserError
from synmask.pipeline.training.binarise import read_dictionary
from synmask.pipeline.translation.task import GuidedTranslation


def task_of(corpus, settings, seed=1):
    dictionaries = [read_dictionary(corpus / f"bin/dict.{language}.txt") for language in ("de", "en")]
    return GuidedTranslation(*dictionaries, typed(settings), seed)


def pairs(corpus, settings, split="train", seed=1):
    return task_of(corpus, settings, seed).pairs(corpus / "bin", split, "de", "en")


@pytest.mark.parametrize("left", [False, True])
def test_annotations_follow_their_sentences(corpus, grammar_settings, left):
    grammar_settings["system"] |= {"mask_rate": 0.0, "mlm_weight": 0.0, "left_pad_source": left}
    data = pairs(corpus, grammar_settings)
    batch = data.collater([data[i] for i in (3, 0, 7, 5, 11)])
    tokens, labels = batch["net_input"]["src_tokens"], batch["net_input"]["annotations"]["bpe_labels"]
    assert (tokens == data.src_dict.pad()).any()
    for ids, row in zip(tokens, labels, strict=True):
        symbols = [data.src_dict[i] for i in ids]
        real = [symbol for symbol in symbols if symbol != "<pad>"]
        pieces = [one.endswith("@@") or before.endswith("@@") for before, one in zip(["", *real], real)]  # noqa: B905
        expected = [2 if piece and one != "</s>" else 0 for piece, one in zip(pieces, real, strict=True)]
        pads = [1] * (len(symbols) - len(real))
        assert row.tolist() == (pads + expected if left else expected + pads)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("name", "key"), [("pascal", "heads"), ("distance", "distances")])
def test_syntax_follows_its_sentences(corpus, settings_of, name, key, left):
    settings = settings_of(name)
    settings["system"]["left_pad_source"] = left
    data = pairs(corpus, settings)
    chosen = [3, 0, 7, 5, 11, 2]
    batch = data.collater([data[i] for i in chosen])
    assert sorted(batch["id"].tolist()) == sorted(chosen)
    assert batch["id"].tolist() != chosen
    assert set(batch["net_input"]["annotations"]) == {key}
    found, width = batch["net_input"]["annotations"][key], batch["net_input"]["src_tokens"].size(1)
    table = np.load(corpus / "bin/syntax.train.de.npy").astype(int)
    starts = np.cumsum([0, *data.src_sizes])
    unknown = 0
    for row, sentence in zip(found, batch["id"].tolist(), strict=True):
        rows = table[starts[sentence] : starts[sentence + 1]]
        pads = width - len(rows)
        unknown += (rows[:, 0] < 0).all()
        for position in range(width):
            inside = position - pads if left else position
            value = row[position].tolist()
            if not 0 <= inside < len(rows):
                assert value == ([-1, -1] if key == "heads" else -1)
            elif key == "heads":
                moved = pads if left and rows[inside, 0] >= 0 else 0
                assert value == (rows[inside, :2] + moved).tolist()
            else:
                assert value == rows[inside, 2]
    assert unknown > 0
    assert (found.view(len(chosen), -1) == -1).any()


def test_syntax_of_other_data_is_refused(corpus, settings_of, tmp_path):
    (tmp_path / "bin").mkdir()
    for path in (corpus / "bin").iterdir():
        (tmp_path / "bin" / path.name).symlink_to(path)
    with_none = tmp_path / "bin/syntax.train.de.npy"
    with_none.unlink()
    with pytest.raises(UserError, match=r"syntax\.train\.de\.npy: no such file; annotate"):
        pairs(tmp_path, settings_of("pascal"))
    with_none.symlink_to(corpus / "bin/syntax.valid.de.npy")
    with pytest.raises(UserError, match="annotations of another text"):
        pairs(tmp_path, settings_of("pascal"))


def test_masked_positions_hold_the_mask_symbol_and_their_targets(corpus, grammar_settings):
    grammar_settings["system"]["mask_rate"] = 0.5
    masked = pairs(corpus, grammar_settings)
    grammar_settings["system"] |= {"mask_rate": 0.0, "mlm_weight": 0.0}
    plain = pairs(corpus, grammar_settings)
    chosen = [3, 0, 7, 5, 11]
    batch, original = (data.collater([data[i] for i in chosen]) for data in (masked, plain))
    order = [original["id"].tolist().index(i) for i in batch["id"].tolist()]
    before = original["net_input"]["src_tokens"][order].view(-1)
    after = batch["net_input"]["src_tokens"].view(-1)
    where = batch["net_input"]["masked"]
    assert 0 < len(where) < len(after)
    assert torch.equal((before != after).nonzero().view(-1), where)
    assert (after[where] == masked.src_dict.bos()).all()
    assert torch.equal(batch["masked_target"], before[where])
    assert (before[where] != masked.src_dict.pad()).all()
    labels = batch["net_input"]["annotations"]["bpe_labels"].view(-1)
    assert (labels[where] == 0).all()
    unmasked = torch.ones_like(after, dtype=torch.bool).index_fill(0, where, False)
    assert torch.equal(
        labels[unmasked], original["net_input"]["annotations"]["bpe_labels"][order].view(-1)[unmasked]
    )


def test_masking_depends_on_seed_epoch_and_sentence_alone(corpus, grammar_settings):
    data = pairs(corpus, grammar_settings)
    first = [data[i]["source"].tolist() for i in range(len(data))]
    assert [data[i]["source"].tolist() for i in reversed(range(len(data)))] == first[::-1]
    data.set_epoch(2)
    assert [data[i]["source"].tolist() for i in range(len(data))] != first
    data.set_epoch(1)
    assert [data[i]["source"].tolist() for i in range(len(data))] == first
    other = pairs(corpus, grammar_settings, seed=2)
    assert [other[i]["source"].tolist() for i in range(len(other))] != first


def test_mask_rate(corpus, grammar_settings):
    data = pairs(corpus, grammar_settings)
    masked = total = 0
    for epoch in range(1, 31):
        data.set_epoch(epoch)
        rows = [data[i]["masked"] for i in range(len(data))]
        masked, total = masked + sum(int(row.sum()) for row in rows), total + sum(map(len, rows))
    assert abs(masked / total - 0.15) < 0.01


def test_nothing_is_masked_outside_training(corpus, grammar_settings):
    data = pairs(corpus, grammar_settings, "valid")
    batch = data.collater([data[i] for i in range(4)])
    assert "masked" not in batch["net_input"]
    assert (batch["net_input"]["src_tokens"] != data.src_dict.bos()).all()
