"""SynCLM's losses against slow loops, and continued pre-training from text with parses to fine-tuned weights."""

import csv
import json
import math
from argparse import Namespace
from collections import Counter

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from demo_grammar.tasks import write_demo_task
from synmask.pipeline.arguments import TrainingOptions
from synmask.pipeline.config.benchmarks import ContinuedRun, FinetuningSettings
from synmask.pipeline.corpora.tasks import read_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.roberta import synclm
from synmask.pipeline.roberta.continued import ContrastiveRoberta, ParsedSentences, continue_pretraining
from synmask.pipeline.roberta.encode import encode_examples, encode_parses
from synmask.pipeline.roberta.examples import read_encoded, read_syntax, write_encoded
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.weights import RobertaShape, load_weights

SHAPE = RobertaShape(layers=2, embed_dim=16, ffn_dim=24, heads=2, max_positions=60)
RATES = {"dropout": 0.0, "attention_dropout": 0.0}
#        <s> The  old dog  in  the gar den see  s   the cat </s>
WORDS = [-1, 1, 2, 3, 4, 5, 6, 6, 8, 8, 10, 11, -1]
HEADS = [-1, 3, 3, 8, 6, 6, 3, 3, 8, 8, 11, 8, -1]
TREE = [-1, 3, 3, 8, 6, 6, 3, 6, 8, 8, 11, 8, -1]


@pytest.fixture
def words():
    """Annotations of one sentence, two of whose words have two tokens."""
    return np.array([WORDS, HEADS, [1] * 13, [0] * 13]).T


def test_each_token_has_a_head_and_a_span(words):
    heads = synclm.token_heads(words)
    assert heads.tolist() == TREE
    found = synclm.subtree_spans(heads)
    assert found[[1, 3, 6, 8, 11]].tolist() == [[1, 1], [1, 7], [4, 7], [1, 11], [10, 11]]
    assert found[[0, 12]].tolist() == [[0, 0], [12, 12]]


def test_a_circle_of_words_that_share_a_token_ends():
    assert synclm.subtree_spans(np.array([1, 2, 0, 2])).tolist() == [[0, 3], [0, 3], [0, 3], [3, 3]]


def below(head, heads):
    """The descendants of a token, and itself, by asking each token for all that is above it."""

    def above(token):
        while heads[token] != token:
            token = heads[token]
            yield token

    return {t for t, h in enumerate(heads) if h != -1 and (t == head or head in above(t))}


def drawn(draw, heads, times=400):
    random = np.random.default_rng(1)
    for _ in range(times):
        found = draw(np.array(heads), random)
        for row in range(len(found["anchors"])):
            yield (
                int(found["anchors"][row]),
                found["positives"][row].tolist(),
                found["negatives"][row].tolist(),
            )


def test_phrases_are_near_tokens_inside_and_outside():
    seen = {}
    for anchor, positive, negatives in drawn(synclm.draw_phrases, TREE):
        negatives = [token for token in negatives if token != -1]
        head, inside = (anchor, positive) if positive in below(anchor, TREE) else (positive, anchor)
        if head == anchor:
            span = range(min(below(head, TREE)), max(below(head, TREE)) + 1)
            around = {t for t in range(1, 12) if t not in span and t != TREE[head]}
            assert inside in span
            assert 1 <= abs(inside - head) <= 3
            assert set(negatives) == around if len(around) < 10 else set(negatives) <= around
        else:
            assert all((t - inside) * (inside - head) > 0 for t in negatives)
        assert len(negatives) == len(set(negatives)) > 0
        seen.setdefault((head == anchor, head), set()).add(inside)
    # the root's phrase has nothing outside; 3's own head is no negative of it
    assert {head for word, head in seen if word} == {3, 6, 11}
    assert seen[True, 3] == {1, 2, 4, 5, 6}
    assert {head for word, head in seen if not word} == {3, 6, 11}


def test_subtrees_and_the_spans_around_the_head():
    expected = {}
    for head in (3, 6, 11):  # all but the root
        first, last = min(below(head, TREE)), max(below(head, TREE))
        size = last - first + 1
        expected[head] = (
            [first, last],
            {
                (x, x + n - 1)
                for n in (size, size + 1, *([size - 1] if size > 3 else []))
                for x in range(1, 12)
                if x <= head <= x + n - 1 <= 11 and x != first
            },
        )
    seen = {
        head: (span, {tuple(n) for n in others if n[0] != -1})
        for head, span, others in drawn(synclm.draw_subtrees, TREE, 1)
    }
    # a span of another length is moved from the subtree's own start, so it may end before it by a token at most
    for head, (span, others) in seen.items():
        assert span == expected[head][0]
        assert others <= expected[head][1]
        assert {n for n in others if n[1] - n[0] == span[1] - span[0]} == {
            n for n in expected[head][1] if n[1] - n[0] == span[1] - span[0]
        }
    assert set(seen) == {3, 6, 11}


def test_a_subtree_of_more_than_ten_tokens_has_no_loss():
    chain = [-1, *range(2, 13), 14, *[14] * 2, -1]  # 1 → 2 → … → 12 → 14, the root
    assert max(head for head, _, _ in drawn(synclm.draw_subtrees, chain, 1)) == 10


def divergence(p, q):
    def half(a, b):
        return sum(x * math.log((x + 1e-6) / ((x + y) / 2 + 1e-6)) for x, y in zip(a, b, strict=True))

    return (half(p, q) + half(q, p)) / 2


def batch_of(draw, seed=1):
    """Choices of two sentences, the second shorter, as a batch has them."""
    random = np.random.default_rng(seed)
    trees = [np.array(TREE), np.array([-1, 2, 2, 4, 2, -1])]
    parts = [draw(heads, random) for heads in trees for _ in [0]]
    while not all(len(part["anchors"]) for part in parts):
        parts = [draw(heads, random) for heads in trees]
    return synclm.flatten_samples(parts, 13)


def test_phrase_loss_against_loops():
    chosen = batch_of(synclm.draw_phrases)
    attention = torch.rand(2, 13, 13, dtype=torch.float64).softmax(-1)
    attention[1, :, 6:] = 0
    rows, losses = attention.view(26, 13).tolist(), []
    for anchor, positive, negatives in zip(
        *(chosen[n].tolist() for n in ("anchors", "positives", "negatives")), strict=True
    ):
        near = math.exp(divergence(rows[anchor], rows[positive]) / 0.1)
        far = sum(math.exp(divergence(rows[anchor], rows[n]) / 0.1) for n in negatives if n != -1)
        losses.append(math.log(near / (near + far)))
    assert abs(synclm.phrase_loss(attention, **chosen) - sum(losses) / len(losses)) < 1e-9


def test_the_phrase_loss_falls_as_a_head_attends_like_its_phrase():
    logits = torch.randn(2, 13, 13, requires_grad=True)
    chosen = batch_of(synclm.draw_phrases)
    before = _near(logits, chosen)
    synclm.phrase_loss(logits.softmax(-1), **chosen).backward()
    assert _near(logits - 5 * logits.grad, chosen) < before


def _near(logits, chosen):
    rows = logits.detach().softmax(-1).view(26, 13)
    return synclm._divergence(rows[chosen["anchors"]], rows[chosen["positives"]]).mean()


def test_tree_loss_against_loops():
    chosen = batch_of(synclm.draw_subtrees)
    features = torch.randn(2, 13, 5, dtype=torch.float64)
    tokens, losses = features.view(26, 5), []

    def cosine(anchor, first, last):
        span = tokens[first : last + 1]
        pooled = (span @ tokens[anchor]).softmax(0) @ span
        return math.exp(torch.cosine_similarity(tokens[anchor], pooled, dim=0) / 0.1)

    for anchor, span, others in zip(
        *(chosen[n].tolist() for n in ("anchors", "positives", "negatives")), strict=True
    ):
        near = cosine(anchor, *span)
        far = sorted((cosine(anchor, *other) for other in others if other[0] != -1), reverse=True)[:3]
        losses.append(-math.log(near / (near + sum(far))))
    assert len({len([o for o in row if o[0] != -1]) for row in chosen["negatives"].tolist()}) > 1
    assert abs(synclm.tree_loss(features, **chosen) - sum(losses) / len(losses)) < 1e-9


@pytest.fixture(scope="module")
def weights(small_roberta, demo_lines):
    """A folder with a small random RoBERTa for the demo's English."""
    return small_roberta(SHAPE, demo_lines, 150)


@pytest.fixture(scope="module")
def data(weights, tmp_path_factory):
    """Parsed sentences of a generated task as ids."""
    folder = tmp_path_factory.mktemp("data")
    write_demo_task(folder, "paraphrase", {"train": 24, "dev": 8}, seed=2, packed="")
    for part, split in (("train", "train"), ("dev", "valid")):
        counts = encode_parses(
            parses=[folder / part, folder / part],
            weights=weights,
            max_tokens=60,
            output=folder / f"{split}.npz",
        )
        assert counts["sentences"] == len(set((folder / f"{part}.text").read_text().splitlines()))
        assert counts["unparsed"] == counts["not_found"] == 0
    return folder


def run_settings(**changes):
    training = {
        "max_epochs": 6, "batch": {"gpus": 1, "updates": 1, "tokens": 200}, "lr": 5e-3, "total_updates": 200, "warmup_updates": 5,
    }  # fmt: skip
    return ContinuedRun.model_validate({"training": training} | changes)


def test_before_the_first_update_it_is_the_roberta_it_starts_from(weights, data):
    loaded = load_weights(weights)
    arguments = Namespace(**vars(SHAPE.settings()), **RATES)
    ours = ContrastiveRoberta.from_weights(loaded, arguments).eval()
    plain = GuidedRoberta.build(arguments, loaded.dictionary)
    plain.load_state_dict(loaded.state)
    tokens = torch.tensor([[0, 9, 8, 7, 6, 2], [0, 9, 5, 2, 1, 1]])
    found = ours(tokens, None, torch.arange(12))
    expected, _ = plain.eval()(tokens, features_only=False)
    torch.testing.assert_close(
        found["mlm_logits"].view_as(expected)[tokens != 1], expected[tokens != 1], rtol=0, atol=1e-5
    )
    attention = found["attention"]
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 6))
    assert (attention[1, :, 4:] == 0).all()


def test_it_learns_gives_the_same_bytes_and_can_be_fine_tuned(weights, data, tmp_path, tune):
    for name in ("one", "two"):
        continue_pretraining(
            data=data,
            weights=weights,
            run=tmp_path / name,
            settings=run_settings(),
            options=TrainingOptions(seed=1),
        )
    assert (tmp_path / "one/model.pt").read_bytes() == (tmp_path / "two/model.pt").read_bytes()
    with open(tmp_path / "one/history.csv") as lines:
        rows = list(csv.DictReader(lines))
    for loss in ("phrase_loss", "tree_loss", "mlm_loss"):
        assert float(rows[-1][loss]) < float(rows[0][loss]), loss
    assert load_weights(tmp_path / "one").shape == SHAPE
    for part in ("train", "dev"):
        examples = encode_examples(
            read_task("paraphrase", data / f"{part}.tsv"), "paraphrase", tmp_path / "one", 60
        )
        write_encoded(tmp_path / f"{part}.npz", examples)
    system = {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0}
    training = {"max_epochs": 1, "total_updates": 9, "warmup_updates": 1}
    settings = FinetuningSettings(task="paraphrase", training=training, system=system)
    tune(tmp_path, tmp_path / "tuned", settings, weights=tmp_path / "one")
    assert (tmp_path / "tuned/best.pt").exists()


def test_without_the_losses_it_is_a_masked_language_model(weights, data, tmp_path):
    continue_pretraining(
        data=data,
        weights=weights,
        run=tmp_path / "run",
        settings=run_settings(losses=[]),
        options=TrainingOptions(seed=1),
    )
    with open(tmp_path / "run/history.csv") as lines:
        rows = list(csv.DictReader(lines))
    assert {float(row["phrase_loss"]) for row in rows} == {float(row["tree_loss"]) for row in rows} == {0.0}
    assert float(rows[-1]["mlm_loss"]) < float(rows[0]["mlm_loss"])
    assert (
        abs(float(rows[-1]["valid_loss"]) - float(rows[-1]["mlm_loss"])) < 0.1
    )  # means of batches and of tokens
    summary = json.loads((tmp_path / "run/train.json").read_text())
    train, valid = (
        Counter(id for id in read_encoded(data / f"{part}.npz").tokens.tolist() if id > 3)
        for part in ("train", "valid")
    )
    size = len(load_weights(weights).dictionary)
    shares = {id: (train[id] + 1) / (train.total() + size) for id in valid}
    nats = -sum(times * math.log(shares[id]) for id, times in valid.items()) / valid.total()
    assert abs(summary["unigram_ppl"] - math.exp(nats)) < 1e-3
    assert (summary["diverged"] is None) == (float(rows[-1]["mlm_loss"]) < nats)


def test_continued_pretraining_that_explodes_is_marked(weights, data, tmp_path):
    settings = run_settings(losses=[]).plain()
    settings["training"] |= {"lr": 5.0, "warmup_updates": 1}
    settings = ContinuedRun.model_validate(settings)
    kwargs = {"settings": settings, "options": TrainingOptions(seed=1)}
    continue_pretraining(data=data, weights=weights, run=tmp_path / "run", **kwargs)
    summary = json.loads((tmp_path / "run/train.json").read_text())
    assert "word frequencies alone have" in summary["diverged"]


def test_annotations_follow_their_sentences(weights, data):
    found = read_encoded(data / "valid.npz")
    table = read_syntax(data / "valid.npz", found)
    for index in range(len(found)):
        heads = synclm.token_heads(found.part(table, index))
        inner = found[index] > Dictionary().eos()
        assert ((heads == -1) == ~inner).all()
        roots = np.flatnonzero(heads == np.arange(len(heads)))
        assert len(roots) == 1
        assert synclm.subtree_spans(heads)[roots[0]].tolist() == [1, inner.sum()]


def test_what_cannot_be_is_one_line(weights, data, tmp_path):
    small = run_settings(training={"batch": {"gpus": 1, "updates": 1, "tokens": 10}})
    with pytest.raises(
        UserError, match=r"train\.npz: a sentence has \d+ tokens, batch\.tokens is 10; give more"
    ):
        continue_pretraining(
            data=data, weights=weights, run=tmp_path / "run", settings=small, options=TrainingOptions(seed=1)
        )
    for ending in ("text", "tokens", "trees", "heads"):
        (tmp_path / f"empty.{ending}").write_text("")
    with pytest.raises(UserError, match=r"empty: no sentence; give parses of some"):
        encode_parses(parses=[tmp_path / "empty"], weights=weights, max_tokens=60, output=tmp_path / "x.npz")
    assert not (tmp_path / "run").exists()


def test_masks_hide_draw_and_keep_tokens(weights, data):
    encoded, dictionary = read_encoded(data / "train.npz"), load_weights(weights).dictionary
    sentences = ParsedSentences(
        encoded, dictionary, order=np.arange(len(encoded)), syntax=read_syntax(data / "train.npz", encoded),
        mask_rate=0.15, seed=1, losses=[],
    )  # fmt: skip
    words = masked = hidden = kept = 0
    for epoch in range(1, 41):
        sentences.set_epoch(epoch)
        for index in range(len(encoded)):
            example = sentences[index]
            chosen = example["masked"].bool()
            assert (example["tokens"] == example["unmasked"])[~chosen].all()
            words += len(chosen) - 2
            masked += int(chosen.sum())
            hidden += int((example["tokens"] == dictionary.index("<mask>")).sum())
            kept += int((example["tokens"] == example["unmasked"])[chosen].sum())
    assert abs(masked / words - 0.15) < 0.01
    assert abs(hidden / masked - 0.8) < 0.03
    assert abs(kept / masked - 0.1) < 0.03
