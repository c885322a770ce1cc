"""ST-NMT: gate, second encoder, loss with and without templates, decoding, model files."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.modules import FairseqDropout, MultiheadAttention

from small_models import count_parameters, fit, model_text, typed
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_json, write_lines
from synmask.pipeline.guidance import TemplatesOptions, option_values
from synmask.pipeline.training.binarise import binarise, encode_line, read_dictionary
from synmask.pipeline.translation.average import average
from synmask.pipeline.translation.criterion import MixedLoss
from synmask.pipeline.translation.decode import decode_files, predict_templates
from synmask.pipeline.translation.model_file import load_model, load_template_model, save_model
from synmask.pipeline.translation.st_nmt import (
    CrossInputs,
    GatedAttention,
    TemplatedTransformer,
    read_template_ids,
)
from synmask.pipeline.translation.task import GuidedTranslation
from synmask.pipeline.translation.train import TranslationStage
from synmask.pipeline.translation.translate import Translator

ROOT = Path(__file__).parents[2]
CODES = "#version: 0.2\nb b</w>\n"


def template_of(line, number):
    """Every second word of a target sentence, labels for the others; every fifth sentence has no template."""
    words = line.replace("@@ ", "@@_").split()
    if number % 5 == 4:
        return ""
    return " ".join(w.replace("_", " ") if n % 2 else f"[{w[0].upper()}]" for n, w in enumerate(words))


@pytest.fixture(scope="session")
def templates(corpus, tmp_path_factory):
    """A folder with {train,valid,test}.en, and with bin/ of the pairs that have a template."""
    folder = tmp_path_factory.mktemp("templates")
    (folder / "bpe").mkdir()
    for split in ("train", "valid", "test"):
        source, target = (list(read_lines(corpus / f"bpe/{split}.{side}")) for side in ("de", "en"))
        made = [template_of(line, number) for number, line in enumerate(target)]
        write_lines(folder / f"{split}.en", made)
        write_lines(folder / f"bpe/{split}.de", itertools.compress(source, made))
        write_lines(folder / f"bpe/{split}.en", filter(None, made))
    binarise(text=folder / "bpe", output=folder / "bin", source="de", target="en")
    return folder


def given(folder):
    return {
        "train": folder / "train.en", "valid": folder / "valid.en", "dictionary": folder / "bin/dict.en.txt",
    }  # fmt: skip


def build(corpus, templates, settings, seed=1):
    """A model and its task, which reads the templates."""
    words = [read_dictionary(corpus / f"bin/dict.{language}.txt") for language in ("de", "en")]
    symbols = read_dictionary(templates / "bin/dict.en.txt")
    task = GuidedTranslation(*words, typed(settings), seed, symbols)
    torch.manual_seed(seed)
    return task.build_model().eval(), task


def pairs(corpus, templates, task, split="valid"):
    return task.pairs(corpus / "bin", split, "de", "en", templates / f"{split}.en")


def batch_of(corpus, templates, task, numbers=range(8)):
    data = pairs(corpus, templates, task)
    return data.collater([data[i] for i in numbers])


def test_the_gate_against_loops():
    torch.manual_seed(2)
    both = [MultiheadAttention(8, 2, encoder_decoder_attention=True) for _ in range(2)]
    attention = GatedAttention(*both).eval()
    query, source, template = torch.randn(3, 2, 8), torch.randn(5, 2, 8), torch.randn(4, 2, 8)
    pads = torch.tensor([[False] * 5, [False, False, False, True, True]])
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    sides = CrossInputs(source, template, padding)
    with torch.no_grad():
        found, weights = attention(query, sides, sides, pads, static_kv=True, need_weights=True)
        for b, (n, k) in enumerate(((5, 4), (3, 2))):
            read, alone = attention.source(query[:, [b]], source[:n, [b]], source[:n, [b]])
            attended, _ = attention.template(query[:, [b]], template[:k, [b]], template[:k, [b]])
            for i in range(3):
                for c in range(8):
                    gate = sum(
                        attention.from_source.weight[c, d] * read[i, 0, d]
                        + attention.from_template.weight[c, d] * attended[i, 0, d]
                        for d in range(8)
                    ).sigmoid()
                    expected = gate * read[i, 0, c] + (1 - gate) * attended[i, 0, c]
                    assert abs(found[i, b, c] - expected) < 1e-6
            torch.testing.assert_close(weights[b, :, :n], alone[0])


def plain_of(model, task, settings):
    """The Transformer without templates that has the same weights."""
    run = typed(settings | {"system": settings["system"] | {"guide": "none", "options": {}}})
    plain = GuidedTranslation(task.src_dict, task.tgt_dict, run).build_model()
    state = {
        name.replace("encoder_attn.source.", "encoder_attn."): value
        for name, value in model.state_dict().items()
        if "template" not in name and "from_source" not in name
    }
    plain.load_state_dict(state)
    return plain.eval()


def test_an_empty_template_is_plain_attention_and_others_are_not(corpus, templates, settings_of):
    settings = settings_of("templates")
    model, task = build(corpus, templates, settings)
    batch = batch_of(corpus, templates, task)["net_input"]
    empty = batch["annotations"]["template"].ne(1).sum(1) == 1
    assert 0 < empty.sum() < len(empty)
    plain = plain_of(model, task, settings)
    with torch.no_grad():
        ours, theirs = model(**batch)[0], plain(**batch)[0]
    assert torch.equal(ours[empty], theirs[empty])
    assert ((ours - theirs).abs().amax((1, 2))[~empty] > 1e-3).all()


def test_systems_of_one_seed_share_their_first_weights(corpus, templates, settings_of):
    model, _ = build(corpus, templates, settings_of("templates"))
    words = [read_dictionary(corpus / f"bin/dict.{language}.txt") for language in ("de", "en")]
    torch.manual_seed(1)
    plain = GuidedTranslation(*words, typed(settings_of("none"))).build_model()
    ours = {name.replace("encoder_attn.source.", "encoder_attn."): p for name, p in model.named_parameters()}
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, ours[name]), name


def test_batch_mates_and_their_templates_change_nothing(corpus, templates, settings_of):
    model, task = build(corpus, templates, settings_of("templates"))
    batch = batch_of(corpus, templates, task)
    together, task_batch = model(**batch["net_input"])[0], batch["id"].tolist()
    for row, number in enumerate(task_batch):
        alone = batch_of(corpus, templates, task, [number])["net_input"]
        length = alone["prev_output_tokens"].size(1)
        torch.testing.assert_close(model(**alone)[0][0], together[row, :length], rtol=0, atol=2e-6)


def test_step_by_step_is_the_whole_at_once(corpus, templates, settings_of):
    model, task = build(corpus, templates, settings_of("templates"))
    inputs = batch_of(corpus, templates, task, range(6))["net_input"]
    previous, state, steps = inputs["prev_output_tokens"], {}, []
    with torch.no_grad():
        whole = model(**inputs)[0]
        encoded = model.encoder(inputs["src_tokens"], annotations=inputs["annotations"])
        for end in range(previous.size(1)):
            prefix = previous[:, : end + 1]
            steps.append(model.decoder(prefix, encoder_out=encoded, incremental_state=state)[0])
    real = previous.ne(task.tgt_dict.pad())
    torch.testing.assert_close(torch.cat(steps, 1)[real], whole[real], rtol=0, atol=2e-6)


def left_out(data, epoch):
    data.set_epoch(epoch)
    rows = [data[i]["annotations"]["template"].tolist() for i in range(len(data))]
    return [i for i, row in enumerate(rows) if row == [2] and len(data.templates[i]) > 1]


def test_a_share_of_templates_is_left_out_in_training_alone(corpus, templates, settings_of):
    for share in (0.0, 0.3):
        _, task = build(corpus, templates, settings_of("templates", without=share))
        train, valid = (pairs(corpus, templates, task, split) for split in ("train", "valid"))
        assert left_out(valid, 1) == []
        count = sum(len(left_out(train, epoch)) for epoch in range(1, 21))
        whole = 20 * sum(len(template) > 1 for template in train.templates)
        assert abs(count - share * whole) < 4 * (share * (1 - share) * whole) ** 0.5 + 1e-9
        assert left_out(train, 3) == left_out(train, 3)
    assert left_out(train, 3) != left_out(train, 4)


def test_the_loss_mixes_translation_with_and_without_template(corpus, templates, settings_of):
    """Against a plain loop: each sentence alone, through the whole model or the plain one, as it was drawn."""
    settings = settings_of("templates", without=0.5)
    model, task = build(corpus, templates, settings)
    plain = plain_of(model, task, settings)
    data = pairs(corpus, templates, task, "train")
    data.set_epoch(2)
    numbers = list(range(24))
    criterion = MixedLoss(task.tgt_dict.pad(), settings["training"]["label_smoothing"], 0.0)
    with torch.no_grad():
        found, tokens, _ = criterion(model, data.collater([data[i] for i in numbers]))
        summed = drawn = 0.0
        for number in numbers:
            without = np.random.default_rng([1, 2, number, 1]).random() < 0.5
            drawn += without
            alone = data.collater([data[number]])
            ids = torch.tensor([[2]]) if without else data.templates[number][None]
            assert torch.equal(alone["net_input"]["annotations"]["template"], ids)
            chosen = plain if without or ids.size(1) == 1 else model
            logits = chosen(**alone["net_input"])[0][0].log_softmax(-1)
            for row, target in zip(logits, alone["target"][0], strict=True):
                smooth = 0.1 / (len(row) - 1)
                summed -= (1 - 0.1 - smooth) * row[target] + smooth * row.sum()
    assert 4 < drawn < 20
    assert tokens == sum(len(data.tgt[i]) for i in numbers)
    torch.testing.assert_close(found, summed, rtol=1e-5, atol=1e-4)


def test_all_that_is_new_learns(corpus, templates, settings_of):
    model, task = build(corpus, templates, settings_of("templates"))
    model(**batch_of(corpus, templates, task)["net_input"])[0].logsumexp(-1).sum().backward()
    new = {n: p for n, p in model.named_parameters() if "template" in n or "from_source" in n}
    assert {name.split(".")[0] for name in new} == {"encoder", "decoder"}
    for name, parameter in new.items():
        if not name.endswith("k_proj.bias"):  # softmax does not see it
            assert parameter.grad.abs().max() > 0, name


@pytest.fixture(scope="module")
def models(corpus, templates, all_settings, tmp_path_factory):
    """A file of a model that predicts templates, `first`, and of one that reads them, `second`."""
    folder, plain = tmp_path_factory.mktemp("st-nmt"), all_settings["plain"]
    plain = plain | {"training": plain["training"] | {"max_epochs": 6}}
    options = option_values(TemplatesOptions())
    system = plain["system"] | {"guide": "templates", "options": options}
    fit(templates / "bin", folder / "first", typed(plain), keep=1)
    text = model_text(CODES, tokeniser={"de": "moses", "en": "none"})
    save_model(folder / "first.pt", average(folder / "first", 1), templates / "bin", text, typed(plain))
    settings = plain | {"system": system}
    fit(corpus / "bin", folder / "second", typed(settings), keep=1, templates=[*given(templates).values()])
    state = average(folder / "second", 1)
    save_model(
        folder / "second.pt",
        state,
        corpus / "bin",
        model_text(CODES),
        typed(settings),
        folder / "first.pt",
    )
    return folder


def decode(folder, source, template, output, beam=3):
    settings = Decoding(beam=beam, max_tokens=60)
    decode_files(
        model=folder / "second.pt",
        inputs=[source],
        outputs=[output],
        settings=settings,
        threads=1,
        templates=[template],
    )
    return output.with_suffix(".tok").read_text().splitlines()


def test_the_first_model_is_in_the_seconds_file(models):
    first, second = load_model(models / "first.pt"), load_model(models / "second.pt")
    inside = load_template_model(second, models / "second.pt")
    assert isinstance(second[0], TemplatedTransformer)
    assert not isinstance(inside[0], TemplatedTransformer)
    same = dict(inside[0].named_parameters())  # fairseq leaves a buffer without a value
    for name, value in first[0].named_parameters():
        assert torch.equal(value, same.pop(name))
    assert not same
    assert second[1].template_dictionary.symbols == first[1].tgt_dict.symbols
    assert inside[2].settings.tokeniser == {"de": "moses", "en": "none"}


def test_greedy_decoding_is_a_plain_loop(corpus, templates, models, tmp_path):
    found = decode(models, corpus / "bpe/test.de", templates / "test.en", tmp_path / "h", beam=1)
    model, task, *_ = load_model(models / "second.pt")
    lines = zip(read_lines(corpus / "bpe/test.de"), read_lines(templates / "test.en"), found, strict=True)
    for source, template, hypothesis in lines:
        ids = encode_line(source, task.src_dict).long()[None]
        annotations = {"template": encode_line(template, task.template_dictionary).long()[None]}
        tokens = [2]
        with torch.no_grad():
            while len(tokens) == 1 or (tokens[-1] != 2 and len(tokens) <= 200):  # fairseq's limit
                logits = model(
                    ids, torch.tensor([ids.size(1)]), torch.tensor([tokens]), annotations=annotations
                )[0]
                logits[0, -1, 1] = -torch.inf  # <pad>; and, as fairseq, no </s> at the start
                logits[0, -1, 2] -= torch.inf if len(tokens) == 1 else 0
                tokens.append(int(logits[0, -1].argmax()))
        words = " ".join(task.tgt_dict[i] for i in tokens[1:] if i != 2)
        assert (words + " ").replace("@@ ", "").strip() == hypothesis
    assert len(set(found)) > 1


def test_hypotheses_follow_their_templates_not_their_batch_mates(corpus, templates, models, tmp_path):
    source = [*read_lines(corpus / "bpe/test.de")]
    template = [*read_lines(templates / "test.en")]
    together = decode(models, corpus / "bpe/test.de", templates / "test.en", tmp_path / "all")
    for number in range(6):
        write_lines(tmp_path / "one", [source[number]])
        write_lines(tmp_path / "its", [template[number]])
        assert decode(models, tmp_path / "one", tmp_path / "its", tmp_path / "o") == [together[number]]
    write_lines(tmp_path / "none", [""] * len(source))
    assert decode(models, corpus / "bpe/test.de", tmp_path / "none", tmp_path / "n") != together


def texts(translator, lines):
    return [best.text for best, *_ in translator(lines)]


def test_raw_text_is_translated_by_the_best_template(corpus, models, tmp_path):
    lines = ["a bb d", "", "jj a jj cc"]
    write_lines(tmp_path / "bpe", ["a bb d", "", "j@@ j a j@@ j c@@ c"])
    predict_templates(
        model=models / "first.pt",
        input=tmp_path / "bpe",
        output=tmp_path / "best",
        settings=Decoding(),
        threads=1,
    )
    predicted = (tmp_path / "best").read_text().splitlines()
    assert predicted[0]
    assert predicted[1] == ""
    found = texts(Translator([models / "second.pt"]), lines)
    assert found == decode(models, tmp_path / "bpe", tmp_path / "best", tmp_path / "h", beam=5)
    assert texts(Translator([models / "first.pt"]), lines) == [
        (line + " ").replace("@@ ", "").strip() for line in predicted
    ]


def test_what_is_missing_or_does_not_fit_is_one_line(corpus, templates, models, settings_of, tmp_path):
    settings = settings_of("templates")
    with pytest.raises(UserError, match=r"^this system reads templates of the target; give --templates$"):
        fit(corpus / "bin", tmp_path / "run", typed(settings), keep=1)
    files = given(templates) | {"train": templates / "valid.en"}
    with pytest.raises(UserError, match=r"valid\.en: 12 templates for 90 sentences; make them again"):
        fit(corpus / "bin", tmp_path / "run", typed(settings), keep=1, templates=[*files.values()])
    with pytest.raises(UserError, match=r"second\.pt: reads templates; give --templates"):
        decode_files(
            model=models / "second.pt",
            inputs=[corpus / "bpe/test.de"],
            outputs=[tmp_path / "h"],
            settings=Decoding(),
            threads=1,
        )
    with pytest.raises(
        UserError, match=r"second\.pt: reads template; templates are predicted from the source"
    ):
        predict_templates(
            model=models / "second.pt",
            input=corpus / "bpe/test.de",
            output=tmp_path / "h",
            settings=Decoding(),
            threads=1,
        )
    state = average(models / "second", 1)
    with pytest.raises(UserError, match="not what the model was trained on"):
        save_model(tmp_path / "x.pt", state, corpus / "bin", model_text(CODES), typed(settings))
    words = read_dictionary(templates / "bin/dict.en.txt")
    assert [row.tolist() for row in read_template_ids(templates / "valid.en", words, 12)][4] == [2]


def test_another_first_model_is_another_training(corpus, templates, models, settings_of, tmp_path):
    """Its templates are what the second is validated with."""
    stage = TranslationStage(
        typed(settings_of("templates")), 1, corpus / "bin", "de", "en", 1, given(templates)
    )
    assert {*given(templates).values()} <= {*stage.data_files()}
    assert stage.dataset("valid").templates[0].tolist()[-1] == 2


def test_st_nmt_starts_as_fairseq_and_its_gate_xavier(corpus, templates, settings_of):
    """The rows of tests/README.md; dropout is that of all systems."""
    settings = settings_of("templates")
    settings["model"] |= {"embed_dim": 128, "ffn_dim": 256}
    model, _ = build(corpus, templates, settings)
    assert FairseqDropout not in {type(module) for module in model.modules()}
    cross = model.decoder.layers[0].encoder_attn
    pairs = [
        *zip(model.encoder.template.layers.parameters(), model.encoder.layers.parameters(), strict=True),
        *zip(cross.template.parameters(), cross.source.parameters(), strict=True),
    ]
    for ours, stock in ((ours.detach(), stock.detach()) for ours, stock in pairs):
        assert ours.std() == pytest.approx(stock.std(), rel=0.25, abs=1e-9)
        assert abs(ours.mean() - stock.mean()) < 0.02
    for gate in (cross.from_source, cross.from_template):
        assert gate.bias is None
        assert gate.weight.detach().abs().max() == pytest.approx((6 / 256) ** 0.5, rel=0.01)


def test_added_parameters():
    """The table of docs/systems.md, at the paper's IWSLT14 size."""
    config = load(read_all(project_files(ROOT)))
    run, sizes = ("iwslt14", "de-en"), (8848, 6632)
    plain = count_parameters(config.run_settings(*run, "transformer"), *sizes)
    added = count_parameters(config.run_settings(*run, "st-nmt"), *sizes, 1000) - plain - 512 * 1000
    assert f"{added:,} + 512 for each symbol" in (ROOT / "docs/systems.md").read_text()


def test_templates_of_another_run_are_not_read(corpus, templates, models, settings_of, tmp_path):
    """Neither changed ones, nor those of another seed, nor those of another training of the same name."""
    source, path = corpus / "bpe/test.de", tmp_path / "test.en"
    seed, owner = {"corpus": "c", "direction": "de-en", "system": "st-nmt", "seed": 1}, {}
    record = seed | {"settings": {"model": {}}}
    saved = torch.load(models / "first.pt")
    for training in ("this", "other"):
        torch.save(saved | {"run": record, "training": training}, tmp_path / "first.pt")
        given = {"model": tmp_path / "first.pt", "input": source, "settings": Decoding()}
        write_json(tmp_path / "train.json", record | {"training": training})
        predict_templates(**given, output=path)
        owner[training] = path.with_name("test.en.json").read_text()
    write_json(tmp_path / "train.json", record | {"seed": 2})
    with pytest.raises(UserError, match=r"first\.pt: of another run \(seed 1, here 2\)"):
        predict_templates(**given, output=path)
    second = torch.load(models / "second.pt")
    second |= {"run": record, "template_model": second["template_model"] | {"training": "this"}}
    torch.save(second, tmp_path / "second.pt")

    write_json(tmp_path / "train.json", record)

    def decoded():
        given = {"model": tmp_path / "second.pt", "inputs": [source], "outputs": [tmp_path / "h"]}
        decode_files(**given, templates=[path], settings=Decoding())

    with pytest.raises(UserError, match=r"second\.pt: of another training than .*test\.en\.json"):
        decoded()
    path.with_name("test.en.json").write_text(owner["this"].replace('"seed": 1', '"seed": 2'))
    with pytest.raises(UserError, match=r"test\.en\.json: of another run \(seed 2, here 1\)"):
        decoded()
    _, task = build(corpus, templates, settings_of("templates"), seed=3)
    with pytest.raises(UserError, match=r"of another run \(seed 2, here 3\)"):
        task.pairs(corpus / "bin", "valid", "de", "en", path)
    path.with_name("test.en.json").write_text(owner["this"])
    decoded()
    path.write_text(path.read_text().replace("\n", " x\n", 1))
    (tmp_path / "h.json").unlink()
    with pytest.raises(UserError, match=r"test\.en: not what test\.en\.json was written with"):
        decoded()
    assert not (tmp_path / "h.json").exists()
    path.with_name("test.en.json").unlink()
    decoded()  # made by hand
