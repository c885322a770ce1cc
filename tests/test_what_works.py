"""The features of PyTorch that work with the encoder and each guide: the table of docs/library/encoder.md."""

import copy
import io
import pickle
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from torch import nn

from synmask import GuidedEncoder, Shape, build_guide
from synmask.options import guide_names

PAGE = (Path(__file__).parents[1] / "docs/library/encoder.md").read_text("utf-8")
SHAPE = Shape(embed_dim=8, heads=2, ffn_dim=16, layers=1)
SMALL = {"conv_layers": 1, "conv_kernel": 3}
OPTIONS = {"grammar": {**SMALL, "bpe_dim": 4}, "structformer": SMALL}
QUICK = ("plain", "grammar")  # `make cluster` alone compiles and exports the others


class States(nn.Module):
    """An encoder that returns its states alone."""

    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        guide = None if name == "plain" else build_guide(name, OPTIONS.get(name, {}), SHAPE)
        self.encoder = GuidedEncoder(SHAPE, guide)

    def forward(self, x, padding, annotations):
        return self.encoder(x, padding, annotations)[0]


def inputs(name, size=3, n=6):
    """Embeddings, padding on both sides, and the annotations that the guide reads."""
    draw = torch.Generator().manual_seed(n)
    padding = torch.zeros(size, n, dtype=torch.bool)
    if n > 3:
        padding[0, n // 2 + 1 :] = padding[-1, :1] = True
    heads = torch.randint(n, (size, n, 1), generator=draw).expand(-1, -1, 2)
    first = torch.arange(n).expand(size, n)
    annotations = {
        "bpe_labels": (2 * torch.randint(2, (size, n), generator=draw)).masked_fill(padding, 1),
        "heads": heads.masked_fill(padding[:, :, None], -1),
        "distances": torch.randint(1, 9, (size, n), generator=draw).masked_fill(padding, -1),
        "words": torch.stack([first, (first - 1).clamp(min=0), 0 * first + 1, 0 * first], -1),
    }
    annotations["words"] = annotations["words"].masked_fill(padding[:, :, None], -1)
    needs = () if name == "plain" else build_guide(name, OPTIONS.get(name, {}), SHAPE).options
    needs = () if name == "plain" or needs.parses_itself else needs.needs
    x = torch.randn(size, n, SHAPE.embed_dim, generator=draw)
    return x, padding, {key: annotations[key] for key in sorted(needs)}


def gradients(model, *arguments):
    model.zero_grad()
    model(*arguments).square().mean().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def compiled(name):
    model, arguments, others = States(name), inputs(name), inputs(name, 2, 4)
    torch._dynamo.reset()
    fast = torch.compile(copy.deepcopy(model), fullgraph=True, dynamic=True, backend="eager")
    close(fast(*others), model(*others))
    found = {key.removeprefix("_orig_mod."): grad for key, grad in gradients(fast, *arguments).items()}
    close(found, gradients(model, *arguments))


@cache
def exported(name):
    x, padding, annotations = inputs(name)
    sizes = {0: torch.export.Dim("B"), 1: torch.export.Dim("n", min=3)}
    shapes = {"x": sizes, "padding": sizes, "annotations": dict.fromkeys(annotations, sizes)}
    return torch.export.export(States(name).eval(), (x, padding, annotations), dynamic_shapes=shapes)


def export(name):
    model, program = States(name), exported(name).module()
    for size, n in ((3, 6), (1, 3), (5, 11)):
        close(program(*inputs(name, size, n)), model(*inputs(name, size, n)))


def onnx(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    program = torch.onnx.export(exported(name), dynamo=True, optimize=False, verbose=False)
    program.save(file := io.BytesIO())
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    for size, n in ((3, 6), (1, 3), (5, 11)):
        x, padding, annotations = inputs(name, size, n)
        values = [x, padding, *annotations.values()]
        names = [argument.name for argument in session.get_inputs()]
        feeds = {key: value.numpy() for key, value in zip(names, values, strict=True)}
        states = torch.from_numpy(session.run(None, feeds)[0])
        expected = States(name)(x, padding, annotations)
        assert (states - expected)[~padding].abs().max() < 1e-5


def functional(name):
    model, arguments = States(name), inputs(name)

    def loss(parameters):
        return torch.func.functional_call(model, parameters, arguments).square().mean()

    found = torch.func.grad(loss)({key: value.detach() for key, value in model.named_parameters()})
    close(found, gradients(model, *arguments))


def vmap(name):
    model, (x, padding, annotations) = States(name), inputs(name)

    def one(x, padding, annotations):
        return model(x[None], padding[None], {key: value[None] for key, value in annotations.items()})[0]

    found = torch.func.vmap(one)(x, padding, annotations)
    for b in range(len(x)):
        close(found[b], one(x[b], padding[b], {key: value[b] for key, value in annotations.items()}))


def meta(name):
    model, arguments = States(name), inputs(name)
    with torch.device("meta"):
        empty = States(name)
    x, padding, annotations = arguments
    on_meta = {key: value.to("meta") for key, value in annotations.items()}
    states = empty(x.to("meta"), padding.to("meta"), on_meta)
    assert states.is_meta
    assert states.shape == x.shape
    empty.load_state_dict(model.state_dict(), assign=True)
    close(empty(*arguments), model(*arguments))


def trace(name):
    x, padding, annotations = inputs(name)
    torch.jit.trace(States(name), (x, padding, annotations) if annotations else (x, padding, {"": x}))


def autocast(name):
    model, arguments = States(name), inputs(name)
    expected, found = gradients(model, *arguments), {}
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model(*arguments).float(), model.float()(*arguments).float())
        states = model(*arguments)
    states.float().square().mean().backward()
    found = gradients(model, *arguments)
    assert found.keys() == expected.keys()


def distributed(name):
    model, arguments = States(name), inputs(name)
    expected = {key: grad.clone() for key, grad in gradients(model, *arguments).items()}
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        found = gradients(nn.parallel.DistributedDataParallel(model), *arguments)
    finally:
        torch.distributed.destroy_process_group()
    close({key.removeprefix("module."): grad for key, grad in found.items()}, expected)


def copied(name):
    model, arguments = States(name), inputs(name)
    assert torch.equal(copy.deepcopy(model)(*arguments), model(*arguments))


def pickled(name):
    model, arguments = States(name), inputs(name)
    assert torch.equal(pickle.loads(pickle.dumps(model))(*arguments), model(*arguments))


def twice(name):
    model, (x, *others) = States(name).double(), inputs(name, 2, 3)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(
            lambda x: model(x, *others), x.double().requires_grad_(), fast_mode=True
        )


FEATURES = {
    "`torch.compile(fullgraph=True)`": compiled,
    "`torch.export`, dynamic B and n": export,
    "ONNX, `dynamo=True`": onnx,
    "`torch.func.grad`, `functional_call`": functional,
    "`torch.func.vmap`": vmap,
    "meta device": meta,
    "`torch.jit.trace`": trace,
    "`torch.autocast`": autocast,
    "`DistributedDataParallel`": distributed,
    "`copy.deepcopy`": copied,
    "`pickle`": pickled,
    "second derivatives": twice,
}
WORKS = dict(re.findall(r"^\| (\S.*?) \| (yes|refused) \|$", PAGE, re.M))
CASES = [(feature, guide) for feature in FEATURES for guide in ("plain", *guide_names())]


def test_the_table_has_all_features():
    assert [*WORKS] == [*FEATURES]


def slow(feature, guide):
    test = FEATURES[feature]
    return test in (compiled, export, onnx) and guide not in QUICK


@pytest.mark.parametrize(
    ("feature", "guide"),
    [pytest.param(*case, marks=[pytest.mark.cluster] if slow(*case) else []) for case in CASES],
)
def test_a_line_with_a_guide(feature, guide):
    if WORKS[feature] == "yes":
        FEATURES[feature](guide)
    else:
        with pytest.raises(NotImplementedError, match=re.escape("use torch.export")):
            FEATURES[feature](guide)


def test_the_page_names_the_versions():
    for name in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(name)
        assert f"{name} {version(name).partition('+')[0]}" in PAGE


def test_the_lines_of_the_page_train_a_classifier(alone):
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    source = Path(__file__).parents[1] / "src"
    done = alone(f"sys.path.append({str(source)!r})\n{code}", "torch")
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"[\d.]+", done.stdout).group()) > 0.95
