import itertools
import math

import pytest
import torch

from small_models import fit, typed
from synmask.pipeline.cli.translate import translate
from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.tokens import ModelText
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.decode import decode_files
from synmask.pipeline.translation.model_file import load_model, save_model
from synmask.pipeline.translation.parse import parse_text
from synmask.pipeline.translation.translate import Candidate, Translator

LINES = ["a  bb d", "", "bb a", " ", "jj ef ghi a", "cc cc d", "a"]


@pytest.fixture(scope="module")
def more_models(corpus, models, all_settings, tmp_path_factory):
    """Model files that differ from plain.pt: another seed; other BPE; StructFormer; left padding."""
    folder = tmp_path_factory.mktemp("more")
    saved = torch.load(models / "plain.pt", weights_only=True)
    text = ModelText.model_validate(saved["text"])
    fit(corpus / "bin", folder / "two", typed(all_settings["plain"]), keep=1, seed=2)
    state = average(folder / "two", 1)
    save_model(folder / "two.pt", state, corpus / "bin", text, typed(all_settings["plain"]))
    options = {"conv_layers": 1, "conv_kernel": 3}
    system = all_settings["plain"]["system"] | {"guide": "structformer", "options": options}
    settings = all_settings["plain"] | {"system": system}
    fit(corpus / "bin", folder / "structformer", typed(settings), keep=1)
    state = average(folder / "structformer", 1)
    save_model(folder / "structformer.pt", state, corpus / "bin", text, typed(settings))
    torch.save(saved | {"text": saved["text"] | {"codes": "#version: 0.2\nb b</w>\n"}}, folder / "codes.pt")
    torch.save(saved | {"text": saved["text"] | {"target": "fr"}}, folder / "fr.pt")
    system = saved["settings"]["system"] | {"left_pad_source": True}
    torch.save(saved | {"settings": saved["settings"] | {"system": system}}, folder / "left.pt")
    saved = torch.load(models / "grammar.pt", weights_only=True)
    system = saved["settings"]["system"] | {"left_pad_source": True}
    system["options"] = system["options"] | {"calibration": "as-published"}
    torch.save(saved | {"settings": saved["settings"] | {"system": system}}, folder / "published.pt")
    return folder


def texts(translator, lines, **kwargs):
    return [best.text for best, *_ in translator(lines, **kwargs)]


@pytest.fixture
def written(tmp_path):
    """Write what `translate` answers to lines; its lines."""

    def call(models, lines, *, nbest=1, scores=False, batch=64, **kwargs):
        source, target = tmp_path / "in", tmp_path / "out"
        source.write_text("".join(f"{line}\n" for line in lines))
        kwargs = {
            "input": source,
            "output": target,
            "nbest": nbest,
            "scores": scores,
            "batch": batch,
        } | kwargs
        translate(model=models, **kwargs)
        return target.read_text().splitlines()

    return call


def test_raw_text_is_prepared_and_empty_lines_stay(models, tmp_path):
    found = texts(Translator([models / "plain.pt"]), LINES)
    assert found[1] == found[3] == ""
    (tmp_path / "bpe").write_text("a bb d\n\nbb a\n\njj e@@ f g@@ h@@ i a\ncc cc d\na\n")
    decode_files(
        model=models / "plain.pt",
        inputs=[tmp_path / "bpe"],
        outputs=[tmp_path / "h"],
        settings=Decoding(),
        threads=1,
    )
    assert found == (tmp_path / "h.txt").read_text().splitlines()
    assert len(set(found)) > 1


@pytest.mark.parametrize("name", ["plain.pt", "left.pt", "grammar.pt", "published.pt", "structformer.pt"])
def test_no_batch_changes_a_translation_or_a_score(models, more_models, written, name):
    path = models / name if (models / name).exists() else more_models / name
    kwargs = {"nbest": 3, "scores": True}
    alone = list(itertools.chain(*(written([path], [line], **kwargs) for line in LINES)))
    together = {batch: written([path], LINES, batch=batch, **kwargs) for batch in (1, 3, 64)}
    assert together[1] == together[3] == together[64]
    assert [line.partition("\t")[2] for line in together[1]] == [line.partition("\t")[2] for line in alone]


def test_columns(models, written):
    path = [models / "plain.pt"]
    plain = written(path, LINES[:3])
    scored = [line.split("\t") for line in written(path, LINES[:3], scores=True)]
    best = [line.split("\t") for line in written(path, LINES[:3], nbest=2)]
    both = [line.split("\t") for line in written(path, LINES[:3], nbest=2, scores=True)]
    assert [text for _, text in scored] == plain
    assert scored[1] == ["0.0000", ""]
    assert [number for number, _ in best] == ["1", "1", "2", "3", "3"]
    assert [text for number, text in best[:1] + best[2:4]] == plain
    assert [[number, text] for number, _, text in both] == best
    assert float(both[0][1]) >= float(both[1][1])
    assert both[0][1] == scored[0][0]


@pytest.mark.parametrize("penalty", [1.0, 0.6, 0.0])
def test_a_score_is_the_searchs_own(models, more_models, penalty):
    paths = [models / "plain.pt", models / "grammar.pt"]
    for chosen in (paths[:1], paths):
        translator = Translator(chosen, Decoding(length_penalty=penalty))
        scored = []
        translator._score = lambda source, _, tokens, scored=scored: scored.append((source, tokens)) or 0.0
        [found] = translator(["jj bb a"], nbest=5, scored=True)
        sample = scored[0][0].collater([scored[0][0][0]])
        [searched] = translator.search(sample)
        del translator._score
        assert len(found) == 5
        for (source, tokens), hypothesis in zip(scored, searched, strict=True):
            assert tokens.tolist() == hypothesis.tokens.tolist()
            assert translator._score(source, 0, tokens) == pytest.approx(hypothesis.score, abs=1e-5)


def test_an_ensemble_means_probabilities(models, more_models):
    paths = [models / "plain.pt", more_models / "two.pt"]
    one, two, both = (Translator(chosen) for chosen in (paths[:1], paths[1:], paths))
    source = both.task.sources([both.task.src_dict.encode_line("a bb d", add_if_not_exist=False).long()])
    tokens = torch.tensor([5, 6, 2])  # whatever they are
    net = source.collater([source[0]])["net_input"]
    expected = 1.0
    for position, token in enumerate(tokens.tolist()):
        before = torch.tensor([[2, *tokens[:position].tolist()]])
        each = []
        for translator in (one, two):
            with torch.no_grad():
                logits, _ = translator.models[0](net["src_tokens"], net["src_lengths"], before, {})
            each.append(float(logits[0, -1].softmax(-1)[token]))
        expected *= sum(each) / 2
    assert both._score(source, 0, tokens) == pytest.approx(math.log(expected) / 3, abs=1e-5)
    assert texts(Translator([paths[0], paths[0]]), LINES) == texts(one, LINES)
    found = {name: texts(translator, LINES) for name, translator in (("1", one), ("2", two), ("b", both))}
    assert found["1"] != found["2"]
    assert found["b"] == texts(Translator(paths[::-1]), LINES)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("codes.pt", "has other dictionaries or another preparation of text than"),
        ("fr.pt", "is of another direction than"),
        ("left.pt", "pads sentences on the other side than"),
    ],
)
def test_models_that_do_not_fit_are_no_ensemble(models, more_models, name, message):
    with pytest.raises(
        UserError, match=f"{name}: {message} .*plain.pt; an ensemble is of models of one corpus"
    ):
        Translator([models / "plain.pt", more_models / name])


def test_other_dictionaries_are_no_ensemble(models, tmp_path):
    saved = torch.load(models / "plain.pt", weights_only=True)
    source = saved["dictionaries"]["source"].splitlines()
    saved["dictionaries"]["source"] = "\n".join([source[1], source[0], *source[2:]]) + "\n"
    torch.save(saved, tmp_path / "turned.pt")
    with pytest.raises(UserError, match=r"turned\.pt: has other dictionaries"):
        Translator([models / "plain.pt", tmp_path / "turned.pt"])


def test_a_beam_holds_no_more_than_its_size(models):
    with pytest.raises(UserError, match="--nbest 4: the beam holds only 3 translations; raise --beam, too"):
        translate((models / "plain.pt",), beam=3, nbest=4)
    assert len(next(Translator([models / "plain.pt"], Decoding(beam=3))(["a"], nbest=3))) == 3


def test_too_long_a_line_is_named_before_any_is_translated(models, written, tmp_path, monkeypatch):
    (tmp_path / "out").write_text("before\n")
    monkeypatch.setattr(Translator, "_translate", None)
    monkeypatch.setattr(
        "synmask.pipeline.text.lines.CHECKED_LINES", 2
    )  # the line is in the third part of the file
    with pytest.raises(UserError, match=r"/in, line 5: longer than 1024 sub-words; split the sentence$"):
        written([models / "plain.pt"], ["a", "", "bb", "d", "a " * 1100, "a"], batch=2)
    assert (tmp_path / "out").read_text() == "before\n"


def test_odd_text(models):
    lines = ["\x00\x01", "\u2028a\u2028", "💥 ä ب", "a\tbb", "a" * 300, "<s> </s> <unk> <pad>", "@@ a@@ |"]
    found = [*Translator([models / "plain.pt"])(lines, nbest=2, scored=True)]
    assert len(found) == len(lines)
    assert all(math.isfinite(one.score) and "\n" not in one.text for line in found for one in line)


def test_a_line_of_unknown_words_is_hinted_at(models, capsys):
    translator = Translator([models / "plain.pt"])
    list(translator(["a bb", "", "a 我们 bb", "我们 a", "我们"], 7))
    message = "half of the words or more have parts that the training text lacks; the result says little"
    assert capsys.readouterr().err == f"line 10, 11: {message}\n"
    list(translator(["我们"] * 9))
    assert capsys.readouterr().err == f"line 1, 2, 3, 4, 5, …: {message}\n"
    parse_text(models / "grammar.pt", ["我们"])
    assert capsys.readouterr().err == f"line 1: {message}\n"


def test_an_empty_line_is_no_sentence(models):
    assert [*Translator([models / "plain.pt"])([""], nbest=3, scored=True)] == [[Candidate("", 0.0)]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("Ein Text, äöü\n" * 999), "no model file; give an average.pt"),
        (lambda path: path.write_bytes(bytes(999)), "damaged checkpoint"),
        (lambda path: path.write_bytes(b"PK\x03\x04" * 9), "damaged checkpoint"),
        (lambda path: path.write_bytes(b""), "damaged checkpoint"),
        (lambda path: path.mkdir(), "a folder; give the model file in it"),
        (lambda path: torch.save({"a.weight": torch.ones(2)}, path), "not a whole model file of `synmask average`"),
        (lambda path: torch.save({"extra_state": {}, "model": {}}, path), "not a whole model file"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_one_line(tmp_path, make, message):
    make(tmp_path / "x.pt")
    with pytest.raises(UserError, match=f"x.pt: {message}"):
        load_model(tmp_path / "x.pt")
