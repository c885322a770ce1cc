"""Beam search against fairseq's own: the same hypotheses in the same order, and their scores."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from small_models import typed
from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.search import extension
from synmask.pipeline.training.binarise import encode_line, read_dictionary
from synmask.pipeline.translation import beam
from synmask.pipeline.translation.beam import BeamSearch
from synmask.pipeline.translation.st_nmt import TemplatedEncoder
from synmask.pipeline.translation.task import GuidedTranslation
from synmask.pipeline.translation.transformer import TokenEncoder


@pytest.fixture
def built(corpus, settings_of):
    """A model of random weights with a guide, and its task. Its hypotheses are long."""

    def build(guide, seed=1, **options):
        settings = settings_of(guide, **options)
        wide = {"embed_dim": 32, "decoder_layers": 2}  # for search/fused.py
        settings = typed(settings | {"model": settings["model"] | wide})
        words = [read_dictionary(corpus / f"bin/dict.{language}.txt") for language in ("de", "en")]
        task = GuidedTranslation(*words, settings, seed, words[1])
        torch.manual_seed(seed)
        model = task.build_model().eval()
        for parameter in model.parameters():
            parameter.data.mul_(2 if parameter.dim() > 1 else 1)  # no two tokens are nearly as likely
        return model, task

    return build


@pytest.fixture(params=["C++ for AVX-512", "C++ for AVX2", "C++", "PyTorch"])
def implementation(request, monkeypatch):
    lanes = {"C++ for AVX-512": 16, "C++ for AVX2": 8}.get(request.param, 0)
    if lanes > CPU.lanes:
        pytest.skip(f"{request.param}, which this processor has not")
    monkeypatch.setattr(extension, "LOADED", request.param != "PyTorch")
    monkeypatch.setattr(extension, "LANES", lanes)


def batch_of(task, lines, templates=None):
    template_ids = templates and [encode_line(line, task.template_dictionary).long() for line in templates]
    sources = task.sources([encode_line(line, task.src_dict).long() for line in lines], None, template_ids)
    return sources.collater([sources[index] for index in range(len(sources))])


LINES = ["a bb cc d", "e@@ f", "jj", "a a a bb g@@ h@@ i d d cc", "d e@@ f", "bb cc bb cc bb"]


def both(models, task, batch, size=5, length_penalty=1.0, longest=beam.MAX_HYPOTHESIS_TOKENS):
    """fairseq's hypotheses and ours, as lists of (tokens, score)."""
    rival = SequenceGenerator(
        models, task.tgt_dict, beam_size=size, len_penalty=length_penalty, max_len_b=longest
    )
    theirs = rival.generate(models, batch)
    found = BeamSearch(models, task.tgt_dict, Decoding(beam=size, length_penalty=length_penalty))(batch)
    return (
        [[(one["tokens"].tolist(), float(one["score"])) for one in sentence] for sentence in theirs],
        [[(one.tokens.tolist(), one.score) for one in sentence] for sentence in found],
    )


def assert_same(theirs, ours):
    for expected, found in zip(theirs, ours, strict=True):
        assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("length_penalty", [1.0, 0.0])
def test_hypotheses_are_fairseqs(implementation, built, monkeypatch, size, length_penalty):
    monkeypatch.setattr(beam, "MAX_HYPOTHESIS_TOKENS", 40)
    model, task = built("none")
    theirs, ours = both([model], task, batch_of(task, LINES), size, length_penalty, 40)
    assert_same(theirs, ours)
    if size > 1:
        assert len({len(tokens) for sentence in ours for tokens, _ in sentence}) > 3


def test_the_longest_hypotheses_end_as_fairseqs(implementation, built):
    model, task = built("none")
    model.decoder.embed_tokens.weight.data[task.tgt_dict.eos()] = 0  # never likely
    theirs, ours = both([model], task, batch_of(task, LINES[:2]))
    assert_same(theirs, ours)
    assert {len(tokens) for sentence in ours for tokens, _ in sentence} >= {201}


@pytest.mark.parametrize("options", [{}, {"heads": 1, "temperature": 3.0}])
def test_a_guided_decoder_with_caches_is_as_without(implementation, built, monkeypatch, options):
    monkeypatch.setattr(beam, "MAX_HYPOTHESIS_TOKENS", 30)
    model, task = built("lpsi", **options)
    theirs, ours = both([model], task, batch_of(task, LINES), longest=30)
    assert_same(theirs, ours)


def test_templates(implementation, built, monkeypatch):
    monkeypatch.setattr(beam, "MAX_HYPOTHESIS_TOKENS", 30)

    def reordered(encoder, found, order):
        states, padding = found["template"]
        template = states.index_select(1, order), padding.index_select(0, order)
        return TokenEncoder.reorder_encoder_out(encoder, found, order) | {"template": template}

    monkeypatch.setattr(TemplatedEncoder, "reorder_encoder_out", reordered)  # for fairseq's search
    model, task = built("templates")
    batch = batch_of(task, LINES, ["a bb", "", "d d d", "cc", "", "jj"])
    assert_same(*both([model], task, batch, longest=30))


def test_an_ensemble(implementation, built, monkeypatch):
    monkeypatch.setattr(beam, "MAX_HYPOTHESIS_TOKENS", 30)
    (one, task), (two, _) = built("none"), built("lpsi", seed=2)
    theirs, ours = both([one, two], task, batch_of(task, LINES), longest=30)
    assert_same(theirs, ours)
    assert ours != both([one], task, batch_of(task, LINES), longest=30)[1]


@pytest.mark.parametrize("guide", ["none", "grammar", "structformer", "lpsi"])
def test_bf16_finds_hypotheses_that_are_nearly_as_good(implementation, built, monkeypatch, guide):
    monkeypatch.setattr(beam, "MAX_HYPOTHESIS_TOKENS", 30)
    monkeypatch.setattr(beam, "BF16_PAIRS", True)
    model, task = built(guide)
    batch = batch_of(task, LINES)
    found = [
        BeamSearch([model], task.tgt_dict, Decoding(precision=precision))(batch)
        for precision in ("fp32", "bf16")
    ]
    exact, rounded = ([sentence[0].score for sentence in sentences] for sentences in found)
    assert rounded != exact
    assert rounded == pytest.approx(exact, abs=0.1)


def test_without_instructions_for_bf16_the_search_is_in_fp32_and_says_so(built, monkeypatch, capsys):
    monkeypatch.setattr(beam, "BF16_PAIRS", False)
    beam._note_fp32_is_faster.cache_clear()
    model, task = built("none")
    for _ in range(2):
        assert BeamSearch([model], task.tgt_dict, Decoding(precision="bf16")).products.rounded is None
    assert capsys.readouterr().err.splitlines() == [
        "precision bf16: this processor is faster in fp32, so fp32 is taken"
    ]
