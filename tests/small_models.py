"""Fixtures of the rooms that train: a small binarised corpus and settings that train in seconds.

fairseq is imported inside the fixtures: most tests need none of it.
"""

import copy
import multiprocessing
import random
from functools import partial

import pytest

from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.tokens import ModelText

SETTINGS = {
    "model": {"encoder_layers": 2, "decoder_layers": 1, "embed_dim": 16, "ffn_dim": 32, "heads": 2},
    "training": {
        "max_epochs": 3,
        "batch": {"gpus": 1, "updates": 1, "tokens": 120},
        "lr": 0.005,
        "warmup_updates": 10,
        "adam_betas": [0.9, 0.98],
        "weight_decay": 1e-4,
        "clip_norm": 0.0,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "label_smoothing": 0.1,
        "precision": "fp32",
    },
    "system": {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0, "left_pad_source": False},
}
GRAMMAR = {
    "guide": "grammar",
    "options": {
        "bpe": "add",
        "bpe_dim": 8,
        "conv_layers": 2,
        "conv_kernel": 3,
        "attention": "published",
        "layers": 1,
        "relations": ["parent", "child"],
        "activation": "sigmoid",
        "calibration": "masked",
    },
    "mask_rate": 0.15,
    "mlm_weight": 0.4,
    "left_pad_source": False,
}


def model_text(codes: str = "", **kwargs) -> ModelText:
    """How a model's input is made of German text."""
    return ModelText(source="de", target="en", codes=codes, vocabulary=None, **kwargs)


typed = RunSettings.model_validate


def count_parameters(settings, *sizes):
    """The parameters of a run's model, built without weights, with vocabularies of these sizes: source, target, templates."""
    import torch
    from fairseq.data import Dictionary

    from synmask.pipeline.translation.task import GuidedTranslation

    symbols = (map(str, range(size - Dictionary().nspecial)) for size in sizes)
    source, target, *templates = (Dictionary(extra_special_symbols=each) for each in symbols)
    with torch.device("meta"):
        model = GuidedTranslation(source, target, settings, 1, *templates).build_model()
    return sum(parameter.numel() for parameter in model.parameters())


def slow_modules(model):
    """The names of a model's modules that compute as torch's or fairseq's."""
    from fairseq.modules import FairseqDropout, MultiheadAttention
    from torch import nn

    slow = (FairseqDropout, MultiheadAttention, nn.Dropout, nn.Linear)
    return [name for name, module in model.named_modules() if type(module) in slow]


@pytest.fixture
def settings():
    """Settings of a plain Transformer; a test may change its copy."""
    return copy.deepcopy(SETTINGS)


@pytest.fixture
def grammar_settings(settings):
    return settings | {"system": copy.deepcopy(GRAMMAR)}


@pytest.fixture(scope="session")
def all_settings():
    """Settings of a plain and of a guided system, for what is trained once."""
    return {"plain": copy.deepcopy(SETTINGS), "grammar": copy.deepcopy(SETTINGS | {"system": GRAMMAR})}


@pytest.fixture
def settings_of(settings):
    """Settings of a system with the guide `name`, with its default options but for those given."""

    from synmask.pipeline.guidance import GUIDES, option_values, options_from

    def make(name, **options):
        whole = option_values(options_from(GUIDES[name], options))
        return copy.deepcopy(settings | {"system": settings["system"] | {"guide": name, "options": whole}})

    return make


@pytest.fixture
def valid_losses(monkeypatch):
    """Give the next training these validation losses, one per epoch."""

    from synmask.pipeline.translation.train import TranslationStage

    def pretend(*losses):
        rest = iter(losses)

        def row(*_):
            return {"train_loss": 1.0, "mlm_loss": "", "valid_loss": next(rest), "valid_ppl": 1.0}

        monkeypatch.setattr(TranslationStage, "validate", row)

    return pretend


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with bpe/ and bin/: 1 to 4 words per sentence, some split; the target is the reverse.

    Every third sentence has no heads, every fourth a flat tree; the syntax is drawn at random.
    """
    from synmask.pipeline.syntax.annotations import annotate_file
    from synmask.pipeline.training.binarise import binarise

    folder = tmp_path_factory.mktemp("corpus")
    (folder / "bpe").mkdir()
    draw = random.Random(7)
    words = ["a", "bb", "cc", "d", "e@@ f", "g@@ h@@ i", "jj"]
    for split, size in (("train", 90), ("valid", 12), ("test", 12)):
        source = [[draw.choice(words) for _ in range(draw.randint(1, 4))] for _ in range(size)]
        for language, order in (("de", 1), ("en", -1)):
            lines = "".join(" ".join(sentence[::order]) + "\n" for sentence in source)
            (folder / "bpe" / f"{split}.{language}").write_text(lines)
    binarise(text=folder / "bpe", output=folder / "bin", source="de", target="en")
    for split in ("train", "valid", "test"):
        heads, trees = [], []
        for number, line in enumerate((folder / "bpe" / f"{split}.de").read_text().splitlines()):
            words = line.replace("@@ ", "").split()
            heads.append("" if number % 3 == 2 else " ".join(str(draw.randint(0, len(words))) for _ in words))
            leaves = [f"(T {word})" for word in words]
            cut = draw.randint(1, len(words))
            tree = f"(S (A {' '.join(leaves[:cut])}) {' '.join(leaves[cut:])})"
            trees.append(f"(FLAT {' '.join(leaves)})" if number % 4 == 3 else tree)
        for name, rows in (("heads", heads), ("trees", trees)):
            (folder / f"{split}.{name}").write_text("".join(f"{row}\n" for row in rows))
        annotate_file(
            subwords=folder / f"bpe/{split}.de",
            output=folder / f"bin/syntax.{split}.de.npy",
            trees=folder / f"{split}.trees",
            heads=folder / f"{split}.heads",
        )
    return folder


def fit(data, run, settings, *, keep, templates=(), processes=None, **training):
    """Train a German–English system with seed 1, or another one."""
    from synmask.pipeline.arguments import TrainingOptions
    from synmask.pipeline.translation.train import train

    kwargs = {"keep": keep, "templates": templates, "processes": processes}
    options = TrainingOptions(**{"seed": 1} | training)
    train(data=data, run=run, source="de", target="en", settings=settings, **kwargs, options=options)


def folder_of(run):
    """The folder of the checkpoints of a run with a single training."""
    [folder] = (run / "checkpoints").iterdir()
    return folder


@pytest.fixture(scope="session")
def forks():
    """The context of processes that have imported what a training needs."""
    context = multiprocessing.get_context("forkserver")
    # the last: two seconds in each of several workers
    context.set_forkserver_preload(
        ["synmask.pipeline.translation.train", "synmask.pipeline.cli", "torch._dynamo"]
    )
    return context


@pytest.fixture
def forked_workers(forks, monkeypatch):
    """Data-parallel workers start as forks. Those of tests/training/test_workers.py start as a training's do."""
    import torch

    start = partial(torch.multiprocessing.start_processes, start_method="forkserver")
    monkeypatch.setattr(torch.multiprocessing, "spawn", start)


@pytest.fixture(scope="session")
def models(corpus, all_settings, tmp_path_factory):
    """A folder with model files of a plain and of a guided system."""
    from synmask.pipeline.translation.average import average
    from synmask.pipeline.translation.model_file import save_model

    folder = tmp_path_factory.mktemp("models")
    for name, settings in all_settings.items():
        fit(corpus / "bin", folder / name, typed(settings), keep=1)
        state = average(folder / name, 1)
        save_model(
            folder / f"{name}.pt",
            state,
            corpus / "bin",
            model_text("#version: 0.2\nb b</w>\nc c</w>\nj j</w>\n"),
            typed(settings),
        )
    return folder


@pytest.fixture(scope="session")
def drawn(corpus, all_settings):
    """Write a model file of a guide whose parameters, <pad>'s too, are drawn so that translations differ.

    The decoder leans towards `</s>`: without that, hardly any translation would end.
    """
    import torch

    from synmask.pipeline.guidance import GUIDES, option_values, options_from
    from synmask.pipeline.training.binarise import read_dictionary
    from synmask.pipeline.translation.model_file import save_model
    from synmask.pipeline.translation.task import GuidedTranslation

    words = [read_dictionary(corpus / f"bin/dict.{side}.txt") for side in ("de", "en")]
    text = model_text("#version: 0.2\nb b</w>\nc c</w>\nj j</w>\n")

    def make(path, guide, seed=0, left_pad_source=False, **options):
        whole = option_values(options_from(GUIDES[guide], options))
        system = all_settings["plain"]["system"] | {"guide": guide, "options": whole}
        system["left_pad_source"] = left_pad_source
        settings = typed(all_settings["plain"] | {"system": system})
        torch.manual_seed(seed)
        task = GuidedTranslation(*words, settings)
        model = task.build_model()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" not in name:
                    torch.nn.init.normal_(parameter, std=0.4)
            end = model.decoder.embed_tokens.weight[task.tgt_dict.eos()]
            model.decoder.layers[-1].final_layer_norm.bias.copy_(1.5 * end)
        save_model(path, model.state_dict(), corpus / "bin", text, settings)
        return path

    return make


@pytest.fixture(scope="session")
def with_pieces(all_settings, tmp_path_factory):
    """Write a model file with drawn parameters whose sub-words are sentencepiece's, by the tokenisers of de and en."""
    import torch

    from synmask.pipeline.config.sections import SentencePiece
    from synmask.pipeline.files import write_lines
    from synmask.pipeline.text.tokenise import tokenise
    from synmask.pipeline.training.binarise import read_dictionary
    from synmask.pipeline.training.subwords import write_subwords
    from synmask.pipeline.translation.model_file import save_model
    from synmask.pipeline.translation.task import GuidedTranslation

    def make(path, **tokenisers):
        folder, rng = tmp_path_factory.mktemp("pieces"), random.Random(1)
        lines = [" ".join("".join(rng.choices("abcdefghij", k=3)) for _ in range(5)) for _ in range(200)]
        for name in ("clean/train", "tokens/valid", "tokens/test"):
            for language, tokeniser in tokenisers.items():
                write_lines(folder / f"{name}.{language}", tokenise(lines, language, tokeniser=tokeniser))
        used = (tokenisers["de"], tokenisers["en"])
        pieces = {"sentencepiece": SentencePiece(vocab_size=60), "tokenisers": used}
        write_subwords(input=folder, output=folder, source="de", target="en", **pieces)
        text = ModelText(
            source="de", target="en", tokeniser=tokenisers, vocabulary=None,
            codes=(folder / "bpe/codes").read_text().strip(),
        )  # fmt: skip
        settings = typed(all_settings["plain"])
        torch.manual_seed(1)
        words = [read_dictionary(folder / f"bin/dict.{language}.txt") for language in ("de", "en")]
        model = GuidedTranslation(*words, settings).build_model()
        save_model(path, model.state_dict(), folder / "bin", text, settings)
        return path

    return make


@pytest.fixture(scope="session")
def small_roberta(tmp_path_factory):
    """Make a weights folder: a random RoBERTa of a shape, with a BPE learned from some lines.

    `std` redraws the weights of attention: as drawn, a layer of width 16 would add next to nothing.
    """
    import torch

    from synmask.pipeline.roberta.model import GuidedRoberta
    from synmask.pipeline.roberta.weights import save_weights
    from synmask.pipeline.text.gpt2 import learn_byte_bpe  # isort: split

    from fairseq.data import Dictionary  # the first of these makes it importable

    def make(shape, lines, merges, std=None):
        folder = tmp_path_factory.mktemp("weights")
        learn_byte_bpe(lines, merges, folder)
        dictionary = Dictionary.load(str(folder / "dict.txt"))
        dictionary.add_symbol("<mask>")
        torch.manual_seed(3)
        model = GuidedRoberta.build(shape.settings(), dictionary)
        for layer in model.encoder.sentence_encoder.layers if std else ():
            for name in ("v_proj", "out_proj", "q_proj", "k_proj"):
                torch.nn.init.normal_(getattr(layer.self_attn, name).weight, std=std)
        save_weights(folder, model.state_dict(), shape, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def small_tuned():
    """Write best.pt of a fine-tuning that never began: a plain system with a random head for each seed."""
    import torch

    from synmask.pipeline.config.benchmarks import FinetuningSettings
    from synmask.pipeline.record import model_identity
    from synmask.pipeline.roberta.model import GuidedRoberta
    from synmask.pipeline.roberta.weights import load_weights
    from synmask.pipeline.tasks import TASKS
    from synmask.pipeline.training.torch_files import save_checkpoint

    def make(path, task, weights, seed, run=None):
        settings = FinetuningSettings.model_validate({
            "task": task,
            "training": {"total_updates": 9, "warmup_updates": 1},
            "system": {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0},
        })  # fmt: skip
        loaded, outputs = load_weights(weights), max(1, len(TASKS[task].labels))
        torch.manual_seed(seed)
        arguments = loaded.shape.settings(settings.training)
        model = GuidedRoberta.with_head(loaded, arguments, settings.system, outputs)
        for parameter in model.classification_heads.parameters():
            torch.nn.init.normal_(parameter, std=3.0)  # so that answers differ, and numbers leave 0 to 5
        save_checkpoint(
            path,
            {"model": model.state_dict(), "settings": settings.plain(), "epoch": 1}
            | model_identity(run or {}),
        )

    return make
