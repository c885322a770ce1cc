"""Guides inside the model: what they leave alone, and beam search with a guided decoder."""

import numpy as np
import pytest
import torch

from small_models import fit, model_text, typed
from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.guidance import GUIDES, option_values
from synmask.pipeline.search.products import Products
from synmask.pipeline.search.slots import Paths
from synmask.pipeline.syntax.annotations import annotate_file
from synmask.pipeline.training.binarise import read_dictionary
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.decode import decode_files, predict_templates
from synmask.pipeline.translation.model_file import save_model
from synmask.pipeline.translation.parse import parse
from synmask.pipeline.translation.steps import DecoderSteps
from synmask.pipeline.translation.task import GuidedTranslation
from synmask.pipeline.translation.transformer import GuidedTransformer
from synmask.pipeline.translation.translate import Translator


def build(corpus, settings, seed=1):
    """A model and its task, initialised with `seed`."""
    words = [read_dictionary(corpus / f"bin/dict.{side}.txt") for side in ("de", "en")]
    task = GuidedTranslation(*words, typed(settings), seed)
    torch.manual_seed(seed)
    model = task.build_model()
    assert isinstance(model, GuidedTransformer)
    return model.eval(), task


def batch_of(corpus, task, count=8):
    data = task.pairs(corpus / "bin", "valid", "de", "en")
    return data.collater([data[i] for i in range(count)])["net_input"]


def logits(model, inputs):
    with torch.no_grad():
        return model(**{key: value for key, value in inputs.items() if key != "annotations"} | {
            "annotations": inputs.get("annotations")
        })[0]  # fmt: skip


def open_gates(model):
    """Set a guide's parameters, or what it prepares, so that it should change nothing."""
    guide, attention = model.encoder.guide, model.encoder.layers[0].self_attn
    name = type(guide).__name__
    if name == "LisaGuide":  # its parser = the first head's own scores; a large bias keeps leaky_relu linear
        width, shift = attention.q_proj.out_features // attention.num_heads, 40.0
        with torch.no_grad():
            for part, source in enumerate((attention.q_proj, attention.k_proj)):
                rows = slice(part * width, (part + 1) * width)
                guide.inputs.weight[rows] = source.weight[:width]
                guide.inputs.bias[rows] = source.bias[:width] + shift
            guide.bilinear[:width] = torch.eye(width) * attention.scaling
            guide.bilinear[width] = -shift * attention.scaling
    if name == "LpsiGuide":
        for one in (guide, model.decoder.guide):
            prepare = one.prepare

            def opened(x, padding, annotations, prepare=prepare):
                walls = prepare(x, padding, annotations)
                return type(walls)(walls.distance, walls.log_gate * 0, walls.padding, walls.outside)

            one.prepare = opened


@pytest.mark.parametrize("name", ["pascal", "distance", "lisa", "lpsi"])
def test_a_neutral_guide_changes_nothing(corpus, settings_of, name):
    plain, task = build(corpus, settings_of("none"))
    guided, guided_task = build(corpus, settings_of(name))
    inputs = batch_of(corpus, guided_task)
    plain_inputs = batch_of(corpus, task)
    assert torch.equal(plain_inputs["src_tokens"], inputs["src_tokens"])
    expected = logits(plain, plain_inputs)
    assert (logits(guided, inputs) - expected).abs().max() > 1e-4
    for value in inputs["annotations"].values():
        value.fill_(-1)
    open_gates(guided)
    real = inputs["prev_output_tokens"] != 1  # a guide masks pads, fairseq's layers none: only pads see them
    torch.testing.assert_close(logits(guided, inputs)[real], expected[real], rtol=0, atol=2e-5)


def test_a_guided_decoder_step_by_step_is_the_whole_at_once(corpus, settings_of):
    model, task = build(corpus, settings_of("lpsi"))
    inputs = batch_of(corpus, task, 4)
    source, previous = inputs["src_tokens"], inputs["prev_output_tokens"]
    with torch.no_grad():
        whole, extra = model(**inputs)
        encoded = model.encoder(source, annotations={})
        decoder = DecoderSteps(model.decoder, encoded, 9, Products())
        paths, steps = Paths.start(len(source), source.device), []
        for token in previous.split(1, dim=1):
            paths = paths.extend()
            steps.append(model.decoder.output_projection(decoder(token, paths)))
    real = previous.ne(task.tgt_dict.pad())
    torch.testing.assert_close(torch.cat(steps, 1)[real], whole[real], rtol=0, atol=2e-6)
    assert extra["attn"][0].shape == (*previous.shape, source.size(1))


def test_the_synchronisation_loss_trains_both_towers(corpus, settings_of):
    settings = settings_of("lpsi", sync="rank")
    model, task = build(corpus, settings)
    inputs = batch_of(corpus, task)
    _, extra = model.train()(**inputs)
    model.encoder.guide.loss(extra["loss_inputs"]).backward()
    assert model.encoder.guide.output.weight.grad.abs().max() > 0
    assert model.decoder.layers[0].encoder_attn.q_proj.weight.grad.abs().max() > 0


@pytest.fixture(scope="module")
def models(corpus, all_settings, tmp_path_factory):
    """Model files of a system that reads heads, one with a guided decoder, and one that depends on its batch."""
    folder = tmp_path_factory.mktemp("guided")
    plain = all_settings["plain"]
    for name, epochs in (("pascal", 3), ("lpsi", 6)):  # enough not to say the same of every sentence
        options = option_values(GUIDES[name]())
        settings = plain | {
            "system": plain["system"] | {"guide": name, "options": options},
            "training": plain["training"] | {"max_epochs": epochs},
        }
        fit(corpus / "bin", folder / name, typed(settings), keep=1)
        state = average(folder / name, 1)
        save_model(
            folder / f"{name}.pt",
            state,
            corpus / "bin",
            model_text("#version: 0.2\nb b</w>\n"),
            typed(settings),
        )
    return folder


def decode(model, source, output, beam=3, annotations=()):
    settings = Decoding(beam=beam, max_tokens=60)
    decode_files(
        model=model, inputs=[source], outputs=[output], settings=settings, threads=1, annotations=annotations
    )
    return output.with_suffix(".tok").read_text().splitlines()


def test_syntax_follows_its_sentence_when_decoding(corpus, models, tmp_path):
    source, array = corpus / "bpe/test.de", corpus / "bin/syntax.test.de.npy"
    lines = source.read_text().splitlines()
    (tmp_path / "all").write_text("\n" + source.read_text())  # an empty line, which is not decoded
    table = np.load(array)
    np.save(tmp_path / "all.npy", np.concatenate([np.array([[0, 0, -1]], dtype=np.int16), table]))
    together = decode(
        models / "pascal.pt", tmp_path / "all", tmp_path / "h", annotations=[tmp_path / "all.npy"]
    )
    assert together[0] == ""
    ends = np.cumsum([len(line.split()) + 1 for line in lines])
    for number, line in enumerate(lines):
        (tmp_path / "one").write_text(line + "\n")
        np.save(tmp_path / "one.npy", table[ends[number] - len(line.split()) - 1 : ends[number]])
        alone = decode(
            models / "pascal.pt", tmp_path / "one", tmp_path / "o", annotations=[tmp_path / "one.npy"]
        )
        assert alone == [together[number + 1]]


def test_each_file_has_its_own_syntax(corpus, models, tmp_path):
    splits = ("valid", "test")
    sources = [corpus / f"bpe/{split}.de" for split in splits]
    arrays = [corpus / f"bin/syntax.{split}.de.npy" for split in splits]
    model, settings = models / "pascal.pt", Decoding(beam=3, max_tokens=60)
    outputs = [tmp_path / split for split in splits]
    decode_files(
        model=model, inputs=sources, outputs=outputs, settings=settings, threads=1, annotations=arrays
    )
    for source, array, output in zip(sources, arrays, outputs, strict=True):
        alone = decode(model, source, tmp_path / "alone", annotations=[array])
        assert output.with_suffix(".tok").read_text().splitlines() == alone
    with pytest.raises(UserError, match="annotations of each or none"):
        decode_files(
            model=model, inputs=sources, outputs=outputs, settings=settings, threads=1, annotations=arrays[:1]
        )


def test_hypotheses_of_a_guided_decoder_do_not_depend_on_batch_mates(corpus, models, tmp_path):
    source = corpus / "bpe/test.de"
    together = decode(models / "lpsi.pt", source, tmp_path / "all")
    assert len(set(together)) > 1
    for number, line in enumerate(source.read_text().splitlines()[:6]):
        (tmp_path / "one").write_text(line + "\n")
        assert decode(models / "lpsi.pt", tmp_path / "one", tmp_path / "alone") == [together[number]]


def texts(translator, lines):
    return [best.text for best, *_ in translator(lines)]


def by_hand(language, cased, tokens, output):
    """A parser: the last word heads the others."""
    assert language == "de"
    lines = [line.split() for line in tokens.read_text().splitlines()]
    assert cased.read_text().lower().split() == tokens.read_text().split()
    heads = [" ".join([str(len(words))] * (len(words) - 1) + ["0"]) if words else "" for words in lines]
    output.with_suffix(".heads").write_text("".join(f"{line}\n" for line in heads))
    trees = [f"(S {' '.join(f'(T {word})' for word in words)})" if words else "(FLAT)" for words in lines]
    output.with_suffix(".trees").write_text("".join(f"{line}\n" for line in trees))


def test_new_text_is_parsed_for_a_system_that_reads_a_parser(corpus, models, tmp_path):
    lines = ["a bb d", "", "jj a jj cc"]
    found = texts(Translator([models / "pascal.pt"], parse=by_hand), lines)
    split = ["a bb d", "", "j@@ j a j@@ j c@@ c"]
    (tmp_path / "bpe").write_text("".join(f"{line}\n" for line in split))
    (tmp_path / "new.tokens").write_text("".join(f"{line}\n" for line in lines))
    by_hand("de", tmp_path / "new.tokens", tmp_path / "new.tokens", tmp_path / "new")
    annotate_file(
        subwords=tmp_path / "bpe",
        output=tmp_path / "new.npy",
        trees=tmp_path / "new.trees",
        heads=tmp_path / "new.heads",
    )
    assert found == decode(
        models / "pascal.pt", tmp_path / "bpe", tmp_path / "h", beam=5, annotations=[tmp_path / "new.npy"]
    )
    assert found[0]
    assert found[1] == ""


def test_a_file_without_sentences_has_no_translations(models, tmp_path):
    (tmp_path / "bpe").touch()
    np.save(tmp_path / "none.npy", np.zeros((0, 3), dtype=np.int16))
    decode(models / "pascal.pt", tmp_path / "bpe", tmp_path / "h", annotations=[tmp_path / "none.npy"])
    assert (tmp_path / "h.txt").read_text() == ""
    np.save(tmp_path / "none.npy", np.zeros((3, 3), dtype=np.int16))
    with pytest.raises(UserError, match=r"none\.npy: annotations of another text"):
        decode(models / "pascal.pt", tmp_path / "bpe", tmp_path / "h", annotations=[tmp_path / "none.npy"])
    assert texts(Translator([models / "pascal.pt"], parse=lambda *_: 1 / 0), []) == []


def test_what_a_parser_must_give_is_reported(corpus, models, tmp_path):
    with pytest.raises(UserError, match=r"pascal\.pt: reads heads of a parser; give --annotations"):
        decode(models / "pascal.pt", corpus / "bpe/test.de", tmp_path / "h")
    with pytest.raises(UserError, match=r"pascal\.pt: reads heads; templates are predicted from the source"):
        predict_templates(
            model=models / "pascal.pt",
            input=corpus / "bpe/test.de",
            output=tmp_path / "h",
            settings=Decoding(),
            threads=1,
        )
    assert not (tmp_path / "h").exists()
    with pytest.raises(UserError, match=r"pascal\.pt: reads heads, which only a parser gives; there is none"):
        Translator([models / "pascal.pt"])
    with pytest.raises(UserError, match="this system induces no syntax"):
        parse(
            model=models / "pascal.pt",
            subwords=corpus / "bpe/valid.de",
            output=tmp_path / "t",
            distribution=tmp_path / "p",
        )
    assert texts(Translator([models / "lpsi.pt"]), ["a bb"])
