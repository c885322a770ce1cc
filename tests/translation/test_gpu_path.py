"""The path of a training step on a GPU, without one: fake tensors have a device and a shape, no numbers."""

from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from synmask.pipeline.config.loading import load, project_files, read_all

ROOT = Path(__file__).parents[2]
# of each guide that translates, and no guide
SYSTEMS = ["transformer", "grammar", "pascal", "lisa", "distance", "lpsi", "structformer", "st-nmt"]


@pytest.fixture(scope="module")
def config():
    return load(read_all(project_files(ROOT)))


@pytest.fixture(autouse=True)
def shapes_as_numbers(monkeypatch):
    """fairseq's positions ask for a shape as a tensor, which lies on the host and is no reason to wait."""
    monkeypatch.setattr(torch.onnx.operators, "shape_as_tensor", lambda x: x.shape)


def fake_step(config, system):
    """The loss of a batch of 3 source and target sentences, 7 and 6 tokens long, on a fake GPU."""
    from fairseq.data import Dictionary

    from synmask.pipeline.translation.criterion import MixedLoss
    from synmask.pipeline.translation.task import GuidedTranslation

    settings = config.run_settings("demo", "de-en", system)
    with torch.device("cuda"):
        model = GuidedTranslation(Dictionary(), Dictionary(), settings, 1, Dictionary()).build_model()
        for module in model.modules():  # fairseq makes them on the CPU, and a trainer moves them
            module._buffers |= {name: value.cuda() for name, value in module._buffers.items()}
        source, target = (torch.ones(3, length, dtype=torch.long) for length in (7, 6))
        annotations = {"bpe_labels": source, "heads": source[..., None].repeat(1, 1, 2), "distances": source}
        net = {"src_tokens": source, "src_lengths": source[:, 0], "prev_output_tokens": target}
        net |= {"annotations": annotations | {"template": target}, "masked": source[0, :2]}
        batch = {"net_input": net, "target": target, "masked_target": source[0, :2]}
    return MixedLoss(1, 0.1, settings.system.mlm_weight)(
        model.train(), batch | {"ntokens": 18, "nsentences": 3}
    )[0]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_stays_on_the_gpu_and_never_waits(config, system):
    with FakeTensorMode():
        assert fake_step(config, system).device.type == "cuda"


def test_waiting_and_another_device_are_noticed(config, monkeypatch):
    """The test above can fail."""
    from synmask.guides.grammar import GrammarGuide

    prepare = GrammarGuide.prepare
    for fault in (lambda x: x.sum().item(), lambda x: x + torch.ones(x.shape, device="cpu")):
        monkeypatch.setattr(
            GrammarGuide, "prepare", lambda s, x, *args, f=fault: (f(x), prepare(s, x, *args))[1]
        )
        with FakeTensorMode(), pytest.raises((DataDependentOutputException, RuntimeError)):
            fake_step(config, "grammar")
