"""Small random RoBERTas, for tests of what is built on one."""

import pytest

import synmask.training  # noqa: F401 - makes fairseq importable for the tests that import it themselves


@pytest.fixture(scope="session")
def demo_lines(tmp_path_factory):
    """Text of a task generated from the demo's grammar, one example per line."""
    from synmask.corpora.demo.tasks import write_part
    from synmask.corpora.tasks import read_task

    path = tmp_path_factory.mktemp("text") / "text.tsv"
    write_part("paraphrase", "train", path, {"train": 60, "dev": 1}, seed=1)
    return ["\t".join(texts) for texts in read_task("paraphrase", path).texts]


@pytest.fixture(scope="session")
def small_roberta(tmp_path_factory):
    """Make a weights folder: a random RoBERTa of a shape, with a BPE learned from some lines.

    `std` redraws the weights of attention: as drawn, a layer of width 16 would add next to nothing.
    """
    import torch
    from fairseq.data import Dictionary

    from synmask.roberta.model import GuidedRoberta
    from synmask.roberta.weights import save_weights
    from synmask.text.gpt2 import learn

    def make(shape, lines, merges, std=None):
        folder = tmp_path_factory.mktemp("weights")
        learn(lines, merges, folder)
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
