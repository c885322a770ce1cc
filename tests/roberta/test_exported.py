"""Exported RoBERTas, loaded by transformers."""

import re
import shutil
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from synmask.pipeline.cli import main
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.corpora.tasks import Examples
from synmask.pipeline.roberta.encode import encode_examples
from synmask.pipeline.roberta.finetune import model_outputs
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.sentences import Sentences
from synmask.pipeline.roberta.weights import RobertaShape, load_weights, save_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.text.gpt2 import learn_byte_bpe
from synmask.pipeline.training.torch_files import save_checkpoint

TRAINING = {"total_updates": 9, "warmup_updates": 2, "max_tokens": 20, "lr": 1e-3}
DOCS = Path(__file__).parents[2] / "docs/models.md"
PLAIN = {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0}
PAIRS = [("the dog sees a cow .", 'It\'s "fine"!'), ("cow", "the the the " * 9), ("Straße 🙂", "ö")]


def small(folder, layers=2, width=16):
    """Write a small RoBERTa with drawn parameters into a folder with a vocabulary."""
    shape = RobertaShape(layers=layers, embed_dim=width, ffn_dim=24, heads=2, max_positions=40)
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dictionary.add_symbol("<mask>")
    torch.manual_seed(3)
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    model = GuidedRoberta.build(Namespace(**vars(shape.settings()), **rates), dictionary)
    for name, parameter in model.named_parameters():
        if "layers" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    save_weights(folder, model.state_dict(), shape, folder)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    learn_byte_bpe([sentence for pair in PAIRS for sentence in pair] * 2, 20, folder)
    small(folder)
    return folder


def tuned(path, weights, task, **system):
    """A best.pt with drawn parameters; the model."""
    settings = FinetuningSettings(task=task, training=TRAINING, system=PLAIN | system)
    loaded = load_weights(weights)
    outputs = max(1, len(TASKS[task].labels))
    torch.manual_seed(5)
    model = GuidedRoberta.with_head(
        loaded, loaded.shape.settings(settings.training), settings.system, outputs
    )
    for parameter in model.classification_heads.parameters():
        torch.nn.init.normal_(parameter)
    save_checkpoint(path, {"model": model.state_dict(), "settings": settings.plain(), "epoch": 1})
    return model


def export(model, weights, folder):
    main(["export", "--model", str(model), "--weights", str(weights), "--output", str(folder)])
    return folder


def test_names_of_special_tokens_in_a_text_are_text(tmp_path):
    text = "<s> a<pad> </s><unk> <mask> <mask>> madeupword0001"
    learn_byte_bpe([text] * 3, 200, tmp_path / "weights")
    small(tmp_path / "weights")
    tuned(tmp_path / "best.pt", tmp_path / "weights", "cola")
    tokenizer = AutoTokenizer.from_pretrained(
        export(tmp_path / "best.pt", tmp_path / "weights", tmp_path / "out")
    )
    encoded = encode_examples(Examples(((text,),), ("0",)), "cola", tmp_path / "weights", 99)[0].tolist()
    assert tokenizer(text)["input_ids"] == encoded
    assert set(encoded[1:-1]).isdisjoint(tokenizer.all_special_ids)
    assert tokenizer.decode(encoded[1:-1]) == text


@pytest.mark.parametrize(("task", "sentences"), [("cola", 1), ("mnli", 2), ("sts-b", 2)])
def test_outputs_are_the_same_from_text_on(weights, tmp_path, task, sentences):
    model = tuned(tmp_path / "best.pt", weights, task)
    folder = export(tmp_path / "best.pt", weights, tmp_path / "out")
    texts = [pair[:sentences] for pair in PAIRS]
    labels = TASKS[task].labels or ("1.5",)
    encoded = encode_examples(Examples(tuple(texts), labels[:1] * len(texts)), task, weights, 20)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    read = tokenizer(*map(list, zip(*texts, strict=True)), truncation=True, padding=True, return_tensors="pt")
    rows = [ids[ids != 1].tolist() for ids in read["input_ids"]]
    assert rows == [encoded[i].tolist() for i in range(len(texts))]
    assert (max(map(len, rows)) == 20) == (sentences == 2)  # cut
    theirs, loading_info = AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True
    )
    assert not any(loading_info.values())
    with torch.no_grad():
        there = theirs.eval()(**read).logits
    torch.testing.assert_close(
        there, model_outputs(model, Sentences(encoded, load_weights(weights).dictionary)), rtol=0, atol=1e-5
    )
    assert there.std() > 0.01
    assert [*theirs.config.id2label.values()] == [*(TASKS[task].labels or (task,))]


def test_pairs_are_cut_as_the_exported_tokenizer_cuts_them(weights, tmp_path):
    """Of every two lengths, and at even and odd room."""
    tuned(tmp_path / "best.pt", weights, "mnli")
    tokenizer = AutoTokenizer.from_pretrained(export(tmp_path / "best.pt", weights, tmp_path / "out"))
    pairs = tuple((" ".join("a" * one), " ".join("b" * two)) for one in range(1, 9) for two in range(1, 9))
    for most in range(8, 13):
        encoded = encode_examples(Examples(pairs, ("neutral",) * len(pairs)), "mnli", weights, most)
        for index, pair in enumerate(pairs):
            theirs = tokenizer(*pair, truncation=True, max_length=most)["input_ids"]
            assert encoded[index].tolist() == theirs, (pair, most)


def test_a_regression_trained_on_0_to_1_is_exported_with_its_own_scores(weights, tmp_path):
    model = tuned(tmp_path / "best.pt", weights, "sts-b")
    saved = torch.load(tmp_path / "best.pt", weights_only=True)
    save_checkpoint(tmp_path / "best.pt", saved | {"unit": 5.0})
    folder = export(tmp_path / "best.pt", weights, tmp_path / "out")
    read = AutoTokenizer.from_pretrained(folder)(*PAIRS[0], return_tensors="pt")
    with torch.no_grad():
        here, _ = model.eval()(read["input_ids"], classification_head_name="task")
        there = AutoModelForSequenceClassification.from_pretrained(folder).eval()(**read).logits
    torch.testing.assert_close(there, 5 * here, rtol=0, atol=1e-5)


def test_guided_models_are_the_same_without_synmask(alone, weights, tmp_path):
    models = {}
    for attention in ("published", "none"):
        (folder := tmp_path / attention).mkdir()
        options = {"bpe": "none", "conv_layers": 2, "conv_kernel": 5, "layers": 2, "activation": "softmax"}
        guide = {"guide": "grammar", "options": options | {"attention": attention}}
        models[folder] = tuned(folder / "best.pt", weights, "mnli", **guide)
        export(folder / "best.pt", weights, folder / "out")
    encoded = encode_examples(Examples(tuple(PAIRS), ("neutral",) * len(PAIRS)), "mnli", weights, 20)
    rows = [torch.as_tensor(encoded[i]).long() for i in range(len(PAIRS))]
    sides = {
        side: torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1, padding_side=side)
        for side in ("right", "left")
    }
    torch.save(sides, tmp_path / "inputs")
    done = alone(
        f"""
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
read = torch.load({str(tmp_path / "inputs")!r})
for folder in {[*map(str, models)]!r}:
    model, told = AutoModelForSequenceClassification.from_pretrained(
        folder + "/out", trust_remote_code=True, output_loading_info=True)
    assert not any(told.values()), told
    with torch.no_grad():
        out = {{side: model(ids, attention_mask=ids.ne(1).long()).logits for side, ids in read.items()}}
        out["syntax"] = vars(model.parse(read["right"]))
        assert model.bfloat16()(read["right"]).logits.isfinite().all()
    tokenizer = AutoTokenizer.from_pretrained(folder + "/out")
    out["ids"] = tokenizer(*map(list, zip(*{PAIRS!r})), truncation=True).input_ids
    torch.save(out, folder + "/outputs")
""",
        "torch",
        "transformers",
    )
    assert done.returncode == 0, done.stderr
    for folder, model in models.items():
        there = torch.load(folder / "outputs")
        expected = model_outputs(model, Sentences(encoded, load_weights(weights).dictionary))
        for side in ("right", "left"):
            torch.testing.assert_close(
                there[side], expected, rtol=0, atol=1e-5, msg=lambda m, s=side: f"{s}: {m}"
            )
        assert expected.std() > 0.01
        assert there["ids"] == [row.tolist() for row in rows]
        with torch.no_grad():
            syntax = model.encoder.sentence_encoder.induce(sides["right"], {})
        for name, value in vars(syntax).items():
            torch.testing.assert_close(there["syntax"][name], value, rtol=0, atol=1e-5)


def test_the_example_of_the_docs(weights, tmp_path, monkeypatch, capsys):
    tuned(tmp_path / "best.pt", weights, "cola")
    export(tmp_path / "best.pt", weights, tmp_path / "exported")
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8").partition("### RoBERTa")[2], re.S)[0], {})
    assert re.search(r"'label': '[01]', 'score': 0\.\d+", capsys.readouterr().out)


def test_what_needs_a_parser_and_other_files_are_refused(weights, tmp_path, capsys):
    def refused(model, folder=weights):
        with pytest.raises(SystemExit):
            export(model, folder, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    tuned(tmp_path / "guided.pt", weights, "cola", guide="sla", options={"edges": 1, "start": 0.01})
    assert "guided.pt: sla reads words of a parser" in refused(tmp_path / "guided.pt")
    assert "model.pt: not the model of a fine-tuning" in refused(weights / "model.pt")
    tuned(tmp_path / "best.pt", weights, "cola")
    other = shutil.copytree(weights, tmp_path / "other")
    small(other, layers=1, width=8)
    assert "not the model of a fine-tuning from" in refused(tmp_path / "best.pt", other)
    with pytest.raises(SystemExit):
        main(["export", "--model", str(tmp_path / "best.pt"), "--output", str(tmp_path / "out")])
    assert "best.pt: a fine-tuned RoBERTa; give it to `synmask predict`" in capsys.readouterr().err
