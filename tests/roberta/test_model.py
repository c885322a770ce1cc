"""RoBERTa: plain it is fairseq's, guided it does what the formula says, fine-tuning keeps the best epoch."""

import csv
import itertools
import json
import re
import shutil
from argparse import Namespace
from dataclasses import asdict

import numpy as np
import pytest
import torch
from fairseq.data import TokenBlockDataset
from fairseq.models.roberta import RobertaModel
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootLRScheduleConfig
from fairseq.optim.lr_scheduler.polynomial_decay_schedule import PolynomialDecayLRScheduleConfig
from sklearn.metrics import matthews_corrcoef

from fairseq_trainer import fairseq_weights, groups_of, our_weights
from small_models import folder_of, slow_modules
from synmask.options.grammar import GrammarOptions
from synmask.pipeline.arguments import TrainingOptions
from synmask.pipeline.config.benchmarks import FinetuningSettings, PretrainingRun
from synmask.pipeline.corpora.tasks import Examples
from synmask.pipeline.cpu.modules import accelerate
from synmask.pipeline.errors import TryAgain, UserError
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.roberta.encode import encode_examples, join_sentences
from synmask.pipeline.roberta.examples import EncodedExamples, read_encoded, write_encoded
from synmask.pipeline.roberta.finetune import FinetuningStage, model_outputs
from synmask.pipeline.roberta.model import HEAD_NAME, GuidedRoberta
from synmask.pipeline.roberta.predict import load_finetuned, predict
from synmask.pipeline.roberta.pretrain import PretrainingStage, pretrain
from synmask.pipeline.roberta.pretraining_text import encode_text
from synmask.pipeline.roberta.sentences import Sentences
from synmask.pipeline.roberta.weights import RobertaShape, load_weights
from synmask.pipeline.text import gpt2
from synmask.pipeline.text.gpt2 import learn_byte_bpe
from synmask.pipeline.training import torch_files
from synmask.pipeline.training.batches import Batches
from synmask.pipeline.training.binarise import read_binary, read_dictionary
from synmask.pipeline.training.operators import FAIRSEQ_MODULES
from synmask.pipeline.training.stopping import Stop
from synmask.pipeline.training.torch_files import save_checkpoint

SHAPE = RobertaShape(layers=3, embed_dim=16, ffn_dim=24, heads=2, max_positions=20)
TEXT = [
    f"the {a} {verb} the {b} ."
    for a in ("dog", "cat", "cow")
    for b in ("man", "boy")
    for verb in ("sees", "saw")
]
PLAIN = {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0}
OPTIONS = {"bpe": "none", "conv_layers": 1, "conv_kernel": 3, "layers": 2, "activation": "softmax"}
GRAMMAR = PLAIN | {
    "guide": "grammar",
    "options": json.loads(json.dumps(asdict(GrammarOptions(**OPTIONS)))),
}
TRAINING = {
    "max_epochs": 3, "sentences": 4, "lr": 1e-3, "total_updates": 40, "warmup_updates": 4, "adam_betas": [0.9, 0.98],
    "adam_eps": 1e-6, "weight_decay": 0.1, "clip_norm": 0.0, "dropout": 0.1, "attention_dropout": 0.1,
    "max_tokens": 20, "precision": "fp32",
}  # fmt: skip


def arguments(dropout=0.0):
    return Namespace(**vars(SHAPE.settings()), dropout=dropout, attention_dropout=dropout)


@pytest.fixture(scope="session")
def weights(small_roberta):
    """A weights folder with a small random RoBERTa."""
    return small_roberta(SHAPE, TEXT, 20, std=0.3)


def batch(dictionary, lengths, seed=5):
    torch.manual_seed(seed)
    tokens = torch.full((len(lengths), max(lengths)), dictionary.pad())
    for row, n in zip(tokens, lengths, strict=True):
        row[:n] = torch.randint(4, len(dictionary), (n,))
        row[0], row[n - 1] = dictionary.bos(), dictionary.eos()
    return tokens


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_plain_roberta_is_stock_fairseq(weights, mode):
    """Bit for bit with the same faster modules; within rounding without them."""
    loaded = load_weights(weights)
    ours = GuidedRoberta.with_head(loaded, arguments(0.2), Guidance(**PLAIN), outputs=3)
    stock = RobertaModel.build_model(arguments(0.2), Namespace(source_dictionary=loaded.dictionary))
    stock.register_classification_head(HEAD_NAME, num_classes=3)
    stock.load_state_dict(ours.state_dict(), strict=False)
    for layer in stock.encoder.sentence_encoder.layers:
        layer.can_use_fastpath = False  # fails in today's torch
    tokens = batch(loaded.dictionary, [9, 5, 7])
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(tokens)[0], stock.eval()(tokens)[0])
    accelerate(stock, FAIRSEQ_MODULES)
    assert not slow_modules(ours)
    found = []
    for model in (ours, stock):
        getattr(model, mode)()
        torch.manual_seed(1)
        model.zero_grad()
        outputs = model(tokens, features_only=True, classification_head_name=HEAD_NAME)[0]
        outputs.square().sum().backward()
        found.append((outputs, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1].keys() == found[1][1].keys()
    for name, grad in found[1][1].items():
        if name.endswith("k_proj.bias"):  # softmax ignores it; the rest is rounding, by the order of tokens
            assert max(grad.abs().max(), found[0][1][name].abs().max()) < 1e-6
        else:
            assert torch.equal(found[0][1][name], grad), name
    assert torch.equal(ours(tokens)[0], stock(tokens)[0]) or mode == "train"  # the language model's logits


def literal_layer(layer, x, length, mask, heads):
    """One layer of RoBERTa on one sentence, x (n, d), from the formula; `mask` (H, n, n) or None: plain."""
    attention, size = layer.self_attn, x.size(1) // heads
    query, key, value = (getattr(attention, f"{name}_proj")(x) for name in "qkv")
    rows = []
    for i in range(length):
        parts = []
        for h in range(heads):
            head = slice(h * size, (h + 1) * size)
            scores = [float(query[i, head] @ key[j, head]) / size**0.5 for j in range(length)]
            share = torch.tensor(scores).softmax(0)
            if mask is not None:
                share = share * (mask[h, i, :length] + 1)
            parts.append(sum(share[j] * value[j, head] for j in range(length)))
        rows.append(torch.cat(parts))
    x = layer.self_attn_layer_norm(x[:length] + attention.out_proj(torch.stack(rows)))
    return layer.final_layer_norm(x + layer.fc2(torch.nn.functional.gelu(layer.fc1(x))))


def test_the_first_layers_are_guided_as_the_formula_says_and_the_others_plain(weights):
    loaded = load_weights(weights)
    model = GuidedRoberta.with_head(loaded, arguments(), Guidance(**GRAMMAR), outputs=2).eval()
    encoder = model.encoder.sentence_encoder
    torch.manual_seed(2)
    for parameter in encoder.guide.parameters():  # away from its start
        torch.nn.init.normal_(parameter, std=0.4)
    tokens = batch(loaded.dictionary, [7, 4])
    features = model(tokens, features_only=True)[0]
    with torch.no_grad():
        x = encoder.forward_embedding(tokens)[0]
        padding = tokens == loaded.dictionary.pad()
        induced = encoder.guide.prepare(x.masked_fill(padding[..., None], 0), padding, {})
        parent = induced.distribution * (1 - torch.eye(7))
        for sentence, length in enumerate((7, 4)):
            state = x[sentence, :length]
            for number, layer in enumerate(encoder.layers):
                mask = None
                if number < 2:
                    shares = encoder.guide.relation_logits[number].softmax(-1)
                    mask = torch.stack([a * parent[sentence] + b * parent[sentence].T for a, b in shares])
                state = literal_layer(layer, state, length, mask, SHAPE.heads)
            assert torch.allclose(state, features[sentence, :length], atol=2e-5)


def test_a_guided_roberta_starts_near_the_plain_one(weights):
    loaded = load_weights(weights)
    guided = GuidedRoberta.with_head(loaded, arguments(), Guidance(**GRAMMAR), outputs=2).eval()
    encoder, tokens = guided.encoder.sentence_encoder, batch(loaded.dictionary, [18, 10])
    padding = tokens == loaded.dictionary.pad()
    prepared = encoder.guide.prepare(encoder.forward_embedding(tokens)[0], padding, {})
    sums = encoder.guide.attend(torch.randn(2, 2, 18, 18), prepared, 0).sum(-1)
    for sentence, n in enumerate((18, 10)):
        excess = sums[sentence, :, :n].detach() - 1
        assert 0 < excess.min() <= excess.max() < 1.1 / n
    outputs = guided(tokens, classification_head_name=HEAD_NAME)[0]
    outputs.square().sum().backward()
    grads = {name: p.grad for name, p in encoder.guide.named_parameters()}
    assert grads["parser.distance_output.weight"].abs().max() > 0
    assert grads["parser.height_output.weight"].abs().max() > 0


def test_runs_of_one_seed_share_all_but_the_guide(weights):
    loaded = load_weights(weights)
    states = []
    for system in (PLAIN, GRAMMAR):
        torch.manual_seed(4)
        states.append(
            GuidedRoberta.with_head(loaded, arguments(), Guidance(**system), outputs=2).state_dict()
        )
    assert all(
        torch.equal(value, states[1][name]) for name, value in states[0].items() if "_float_" not in name
    )


def test_pairs_are_marked_and_long_ones_lose_the_end_of_the_longer_sentence(weights):
    dictionary = load_weights(weights).dictionary
    pieces = [int(dictionary[number]) for number in range(4, 12)]
    ids = {piece: 4 + number for number, piece in enumerate(pieces)}

    def row(*sentences, most=20):
        return join_sentences([[ids[pieces[i]] for i in sentence] for sentence in sentences], most)

    def of(*numbers):
        return [ids[pieces[number]] for number in numbers]

    begin, end = dictionary.bos(), dictionary.eos()
    assert row([0, 1, 2]) == [begin, *of(0, 1, 2), end]
    assert row([0, 1], [2]) == [begin, *of(0, 1), end, end, *of(2), end]
    assert row([0, 1, 2, 3], most=4) == [begin, *of(0, 1), end]
    assert row([0, 1, 2, 3, 4], [5, 6], most=8) == [begin, *of(0, 1), end, end, *of(5, 6), end]
    assert row([0, 1, 2], [3, 4, 5], most=8) == [begin, *of(0, 1), end, end, *of(3, 4), end]
    assert row([0, 1], [2, 3, 4, 5], most=9) == [begin, *of(0, 1), end, end, *of(2, 3, 4), end]
    # at a tie, the one that was shorter
    assert row([0, 1, 2, 3], [4, 5, 6], most=9) == [begin, *of(0, 1, 2), end, end, *of(4, 5), end]
    assert row([0, 1, 2], [3, 4, 5, 6], most=9) == [begin, *of(0, 1), end, end, *of(3, 4, 5), end]


def test_blanks_around_a_sentence_are_no_tokens(weights):
    def rows(*texts):
        return encode_examples(Examples((texts,), ("0.5",)), "sts-b", weights, 20)[0].tolist()

    assert rows(" the dog . \u3000", "\xa0a cow .\t") == rows("the dog .", "a cow .")


def test_encoded_examples_survive_a_file_and_a_damaged_one_is_named(tmp_path):
    encoded = EncodedExamples(
        np.arange(7, dtype=np.int32), np.array([0, 3, 7]), np.array([1, 0], dtype=np.float32)
    )
    path = tmp_path / "train.npz"
    write_encoded(path, encoded)
    assert [read_encoded(path)[i].tolist() for i in range(2)] == [[0, 1, 2], [3, 4, 5, 6]]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"train\.npz: damaged encoded sentences"):
        read_encoded(path)


def test_masks_depend_on_seed_epoch_and_example_and_spare_the_marks(weights):
    dictionary = load_weights(weights).dictionary
    rows = batch(dictionary, [18] * 50)
    encoded = EncodedExamples(rows.flatten().numpy(), np.arange(51) * 18, np.zeros(50, dtype=np.float32))

    def masked(seed, epoch):
        data = Sentences(encoded, dictionary, order=np.arange(50), mask_rate=0.3, seed=seed)
        data.set_epoch(epoch)
        return data.collater([data[i] for i in (3, *range(4, 50))])

    one = masked(1, 1)
    tokens, places = one["net_input"]["src_tokens"].flatten(), one["net_input"]["masked"]
    assert (tokens[places] == dictionary.index("<mask>")).all()
    assert torch.equal(one["masked_target"], rows[3:].flatten()[places])
    assert not {dictionary.bos(), dictionary.eos()} & {*one["masked_target"].tolist()}
    assert 0.2 < len(places) / (47 * 16) < 0.4
    assert torch.equal(masked(1, 1)["net_input"]["masked"], places)
    assert not all(torch.equal(masked(*key)["net_input"]["masked"], places) for key in ((1, 2), (2, 1)))


@pytest.fixture(scope="session")
def task(weights, tmp_path_factory):
    """A folder with train.npz and dev.npz: is it about a cow?"""
    folder = tmp_path_factory.mktemp("task")
    for part, lines in (("train", TEXT * 2), ("dev", TEXT)):
        labels = tuple(str(int("cow" in line)) for line in lines)
        examples = Examples(tuple((line,) for line in lines), labels)
        write_encoded(folder / f"{part}.npz", encode_examples(examples, "cola", weights, 20))
    return folder


def settings(system=PLAIN, task="cola", **training):
    return FinetuningSettings(task=task, training=TRAINING | training, system=system)


def outcome(run):
    history = (run / "history.csv").read_text().splitlines()
    losses = [line.rsplit(",", 2)[0] for line in history]  # without times
    return losses, (run / "best.pt").read_bytes()


@pytest.mark.parametrize(
    "system", [PLAIN, GRAMMAR | {"mask_rate": 0.3, "mlm_weight": 0.4}], ids=["plain", "mlm"]
)
def test_fine_tuning_learns_keeps_the_best_epoch_and_gives_the_same_bytes(
    task, weights, tmp_path, system, tune
):
    for name in ("one", "two"):
        tune(task, tmp_path / name, settings(system, max_epochs=20, total_updates=140, lr=0.01))
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
    with open(tmp_path / "one/history.csv") as lines:
        history = list(csv.DictReader(lines))
    scores = [float(row["matthews"]) for row in history]
    assert max(scores) > 60
    assert (history[0]["mlm_loss"] != "") == (system["mlm_weight"] > 0)
    best = scores.index(max(scores)) + 1
    assert json.loads((tmp_path / "one/train.json").read_text())["best_epoch"] == best
    assert json.loads((tmp_path / "one/train.json").read_text())["diverged"] is None
    predict(
        model=tmp_path / "one/best.pt", weights=weights, data=task / "dev.npz", output=tmp_path / "answers"
    )
    gold, answers = read_encoded(task / "dev.npz").targets, (tmp_path / "answers").read_text().split()
    assert 100 * matthews_corrcoef(gold.astype(int), [*map(int, answers)]) == pytest.approx(
        max(scores), abs=0.01
    )
    again = folder_of(tmp_path / "one")
    assert {path.name for path in again.glob("epoch*.pt")} == {f"epoch{best}.pt"}


def test_an_interrupted_fine_tuning_ends_as_an_undisturbed_one(task, tmp_path, monkeypatch, tune):
    """Stopped after every second update; the checkpoints' models are dropped and kept as the best changes."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    tune(task, whole, settings(GRAMMAR, lr=0.01), seed=2)
    stops = 0
    while True:
        calls = itertools.count(1)  # one per update
        monkeypatch.setattr(Stop, "requested", lambda _, calls=calls: next(calls) >= 2)
        try:
            tune(task, parts, settings(GRAMMAR, lr=0.01), seed=2, keep_checkpoints=False)
            break
        except TryAgain:
            stops += 1
            assert stops < 30
    assert stops >= 5
    assert outcome(parts) == outcome(whole)
    assert {path.name for path in folder_of(parts).glob("*.pt")} == {"best.pt", "finished.pt"}
    (parts / "best.pt").unlink()
    tune(task, parts, settings(GRAMMAR, lr=0.01), seed=2)  # trains nothing
    assert outcome(parts) == outcome(whole)
    kept = folder_of(parts) / "best.pt"
    save_checkpoint(kept, torch.load(kept) | {"training": "of another seed"})
    with pytest.raises(
        UserError, match=r"/best\.pt: the model of another training; move it away, then rerun"
    ):
        tune(task, parts, settings(GRAMMAR, lr=0.01), seed=2)


def test_a_regression_predicts_numbers(weights, tmp_path, tune):
    pairs = tuple((line, other) for line in TEXT[:6] for other in TEXT[:4])
    examples = Examples(pairs, tuple(f"{(i % 11) / 2}" for i in range(len(pairs))))
    for part in ("train", "dev"):
        write_encoded(tmp_path / f"{part}.npz", encode_examples(examples, "sts-b", weights, 20))
    run = tmp_path / "run"
    tune(tmp_path, run, settings(task="sts-b"))
    predict(model=run / "best.pt", weights=weights, data=tmp_path / "dev.npz", output=tmp_path / "answers")
    answers = [float(line) for line in (tmp_path / "answers").read_text().split()]
    assert len(answers) == len(pairs)
    assert len(set(answers)) > 5
    # learned from 0 to 1, as fairseq's recipe does; answered from 0 to 5
    targets = read_encoded(tmp_path / "train.npz").targets
    assert targets.tolist() == pytest.approx([float(label) / 5 for label in examples.labels])
    tuned, *_ = load_finetuned(run / "best.pt", weights)
    outputs = model_outputs(
        tuned, Sentences(read_encoded(tmp_path / "dev.npz"), load_weights(weights).dictionary)
    )
    assert answers == [round(5 * value, 4) for [value] in outputs.tolist()]
    with open(run / "history.csv") as lines:
        loss = [*csv.DictReader(lines)][json.loads((run / "train.json").read_text())["best_epoch"] - 1][
            "valid_loss"
        ]
    errors = [(value - target) ** 2 for [value], target in zip(outputs.tolist(), targets, strict=True)]
    assert float(loss) == pytest.approx(np.mean(errors), abs=1e-4)


def test_models_of_an_older_version_with_scores_from_0_to_5_still_answer(weights, tmp_path, tune):
    examples = Examples((("the dog .", "a cow ."),) * 2, ("0", "5"))
    for part in ("train", "dev"):
        write_encoded(tmp_path / f"{part}.npz", encode_examples(examples, "sts-b", weights, 20))
    tune(tmp_path, tmp_path / "run", settings(task="sts-b"))
    saved = torch.load(tmp_path / "run/best.pt", weights_only=True)
    for name in [name for name in saved["model"] if "out_proj" in name and "head" in name]:
        saved["model"][name] *= saved["unit"]
    del saved["unit"]
    save_checkpoint(tmp_path / "old.pt", saved)
    answers = []
    for model in (tmp_path / "run/best.pt", tmp_path / "old.pt"):
        predict(model=model, weights=weights, data=tmp_path / "dev.npz", output=tmp_path / "answers")
        answers.append([float(line) for line in (tmp_path / "answers").read_text().split()])
    assert answers[0] == pytest.approx(answers[1], abs=2e-4)


@pytest.mark.parametrize(("examples", "sentences", "sizes"), [(13, 8, [8, 5]), (13, 6, [6, 6, 1])])
def test_the_last_batch_of_an_epoch_is_whole(weights, tmp_path, examples, sentences, sizes):
    """fairseq would split it at a multiple of 8; its recipe for GLUE does not."""
    data = Examples((("the dog .",),) * examples, ("0", "1") * (examples // 2) + ("1",))
    for part in ("train", "dev"):
        write_encoded(tmp_path / f"{part}.npz", encode_examples(data, "cola", weights, 20))
    stage = FinetuningStage(settings(sentences=sentences), 1, tmp_path, weights, "dev")
    batches = Batches(stage.dataset("train"), stage.batch_limits("train"), 1).in_order()
    assert [batch["nsentences"] for batch in batches] == sizes


def test_an_unknown_task_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="unknown task 'colla'; did you mean 'cola'"):
        settings(task="colla")


def test_a_fine_tuning_no_better_than_one_constant_answer_is_marked(task, tmp_path, tune):
    tune(task, tmp_path / "a", settings(lr=1e-9, max_epochs=1))
    summary = json.loads((tmp_path / "a/train.json").read_text())
    assert re.fullmatch(r"matthews -?\d+.\d\d, the best constant answer has 0.00", summary["diverged"])


def test_a_fine_tuning_that_always_gives_the_answer_for_the_best_f1_is_marked(weights, tmp_path):
    """The training set's most frequent label, 0, has F1 0; always 1 has 40."""
    pairs = (("the dog .", "the cat ."),) * 4
    for part, labels in (("train", "0000"), ("dev", "0001")):
        write_encoded(
            tmp_path / f"{part}.npz", encode_examples(Examples(pairs, tuple(labels)), "qqp", weights, 20)
        )
    stage = FinetuningStage(settings(task="qqp"), 1, tmp_path, weights, "dev")
    assert stage.summary([{"f1": 40.0}])["diverged"] == "f1 40.00, the best constant answer has 40.00"
    assert stage.summary([{"f1": 40.0}, {"f1": 50.0}])["diverged"] is None


def test_too_many_tokens_for_the_weights_are_refused(weights, task, tmp_path, tune):
    """Encoding does not know: it may come before the weights are there."""
    vocabulary = tmp_path / "vocabulary"
    shutil.copytree(weights, vocabulary, ignore=shutil.ignore_patterns("model.pt"))
    long = Examples(((" ".join(["dog"] * 40),),), ("1",))
    for part, examples in (("train", Examples((("the dog .",),), ("1",))), ("dev", long)):
        write_encoded(tmp_path / f"{part}.npz", encode_examples(examples, "cola", vocabulary, 64))
    message = r"dev\.npz: \d\d tokens in an example, the weights take 20; lower max_tokens"
    with pytest.raises(UserError, match=message):
        tune(tmp_path, tmp_path / "run", settings())
    tune(task, tmp_path / "whole", settings())
    with pytest.raises(UserError, match=message):
        predict(
            model=tmp_path / "whole/best.pt",
            weights=weights,
            data=tmp_path / "dev.npz",
            output=tmp_path / "answers",
        )


def test_blocks_of_pretraining_end_with_their_document(tmp_path):
    one, two = TEXT[:2]
    (tmp_path / "text").write_text(f"\n{one}\n{two}\n\n \n{two}\n")
    (tmp_path / "more").write_text(f"{one}\n")
    learn_byte_bpe(TEXT, 20, tmp_path)
    encode_text(
        train=[tmp_path / "text", tmp_path / "more"],
        valid=[tmp_path / "more"],
        weights=tmp_path,
        output=tmp_path / "ids",
    )
    dictionary = read_dictionary(tmp_path / "dict.txt")
    sentences = read_binary(tmp_path / "ids/train", dictionary)
    stage = PretrainingStage(PretrainingRun(), 1, tmp_path / "ids", tmp_path)
    mode = stage._task.cfg.sample_break_mode
    blocks = TokenBlockDataset(
        sentences, sentences.sizes, 500, dictionary.pad(), dictionary.eos(), break_mode=str(mode)
    )
    pieces = gpt2.encode_batch([one, two], tmp_path)
    first, second = ([*(dictionary.index(str(piece)) for piece in row), dictionary.eos()] for row in pieces)
    assert [block.tolist() for block in blocks] == [first + second, second, first]


def test_pretraining_learns_and_its_weights_can_be_fine_tuned(task, tmp_path, tune):
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in TEXT * 4))
    learn_byte_bpe(TEXT, 20, tmp_path)
    encode_text(
        train=[tmp_path / "text"], valid=[tmp_path / "text"], weights=tmp_path, output=tmp_path / "ids"
    )
    shared = set(TRAINING) - {"sentences", "total_updates", "max_tokens"}
    training = {name: TRAINING[name] for name in shared} | {
        "max_epochs": 6,
        "batch": {"gpus": 1, "updates": 1, "tokens": 100},
        "mask_rate": 0.15,
        "lr": 0.01,
    }
    model = {"layers": 2, "embed_dim": 16, "ffn_dim": 24, "heads": 2, "max_positions": 20}
    pretrain(
        data=tmp_path / "ids",
        run=tmp_path / "run",
        weights=tmp_path,
        settings=PretrainingRun(model=model, training=training),
        options=TrainingOptions(seed=1),
    )
    with open(tmp_path / "run/history.csv") as lines:
        losses = [float(row["valid_loss"]) for row in csv.DictReader(lines)]
    assert losses[-1] < 0.8 * losses[0]
    assert torch_files.load_checkpoint(tmp_path / "model.pt")["args"].encoder_layers == 2
    assert load_weights(tmp_path).shape == RobertaShape(
        layers=2, embed_dim=16, ffn_dim=24, heads=2, max_positions=20
    )
    tune(task, tmp_path / "tuned", settings(max_epochs=1), weights=tmp_path)
    assert (tmp_path / "tuned/best.pt").exists()


def polynomial_decay(training):
    scheduler = PolynomialDecayLRScheduleConfig(
        warmup_updates=training.warmup_updates, total_num_update=training.total_updates
    )
    scheduler._name = "polynomial_decay"
    return scheduler


def assert_as_fairseqs_trainer(stage, folder, scheduler):
    groups = groups_of(stage, 12)
    expected, rates = fairseq_weights(stage, groups, folder, scheduler)
    found, ours = our_weights(stage, groups)
    assert ours == rates
    assert [name for name, value in found.items() if not torch.equal(value, expected[name])] == []


def test_fine_tuning_makes_the_updates_of_fairseqs_trainer(task, weights, tmp_path):
    system = GRAMMAR | {"mask_rate": 0.3, "mlm_weight": 0.4}
    stage = FinetuningStage(settings(system, clip_norm=0.5, lr=0.01), 1, task, weights, "dev")
    assert_as_fairseqs_trainer(stage, tmp_path, polynomial_decay(stage.settings.training))


def test_pretraining_makes_the_updates_of_fairseqs_trainer(weights, tmp_path):
    """Its sizes are tensors."""
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in TEXT * 4))
    encode_text(
        train=[tmp_path / "text"], valid=[tmp_path / "text"], weights=weights, output=tmp_path / "ids"
    )
    model = {"layers": 2, "embed_dim": 16, "ffn_dim": 24, "heads": 2, "max_positions": 20}
    training = {"batch": {"gpus": 1, "updates": 2, "tokens": 100}, "mask_rate": 0.15, "lr": 0.01}
    run = PretrainingRun(model=model, training=training)
    scheduler = InverseSquareRootLRScheduleConfig(warmup_updates=run.training.warmup_updates)
    scheduler._name = "inverse_sqrt"
    assert_as_fairseqs_trainer(PretrainingStage(run, 1, tmp_path / "ids", weights), tmp_path, scheduler)
