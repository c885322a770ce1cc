"""Memory for large tensors by kernel.cpp. Each test is a process of its own, since the kernel stays loaded."""

import json
import subprocess
from importlib.machinery import PathFinder

import pytest
import torch

import synmask.pipeline.training as training

pytestmark = pytest.mark.skipif(
    PathFinder.find_spec("kernel", training.__path__) is None, reason="no C++ kernel of training was built"
)
START = """
import random, resource, torch
from pathlib import Path
from synmask.pipeline.training.memory import save_memory

save_memory()
MB = 2**20
def new(size):
    return torch.empty(size, dtype=torch.uint8)
def taken(name):
    return int(Path("/proc/self/status").read_text().partition(name)[2].split()[0]) * 1024
"""


@pytest.fixture
def output_of(warm):
    """Run a program → the values that it prints, as it would read them."""

    def run(program):
        command = [warm.python, "-c", START + program]
        return eval(subprocess.run(command, text=True, capture_output=True, check=True).stdout)

    return run


def test_large_tensors_have_pages_of_their_own(output_of):
    assert (
        output_of("print([new(size).data_ptr() % 4096 == 0 for size in (MB // 4, MB, 3 * MB + 1)])")
        == [True] * 3
    )


def test_no_tensor_overwrites_another(output_of):
    """Of all sizes, small ones and none, too, also where they grow."""
    assert output_of("""
random.seed(1)
there, wrong = [], 0
for turn in range(600):
    if len(there) > 40:
        tensor, value = there.pop(random.randrange(len(there)))
        wrong += int((tensor != value).sum())
    size = random.choice((0, 100, random.randrange(MB), random.randrange(2 * MB)))
    tensor = new(size)
    if turn % 7 == 0:
        tensor.resize_(2 * size)
    there.append((tensor.fill_(turn % 251), turn % 251))
print(wrong)
""") == 0  # fmt: skip


def test_batches_of_other_sizes_find_room_in_the_memory_of_those_before(output_of):
    """At most 1/16 more than the largest needs, whatever comes after it."""
    largest, taken = output_of("""
random.seed(1)
def batch(size):
    for _ in range(60):
        kept.append(new(round(size * random.uniform(0.5, 1))).fill_(1))
        seen.append(taken("RssAnon:"))  # not VmHWM, in which pages of files count, too
kept, seen, most = [], [taken("RssAnon:")], 0
for largest in (4, *(random.uniform(1, 4) for _ in range(30))):
    batch(largest * MB)
    most = max(most, sum(each.numel() for each in kept))
    kept.clear()
print((most, max(seen) - seen[0]))
""")
    assert largest <= taken <= largest * (1 + 1 / 16) + 8 * 2**20


def test_later_batches_use_the_pages_of_those_before(output_of):
    """The system clears each new page: a tenth of a training's time, if all were new."""
    new, used = output_of("""
random.seed(1)
def batch():
    return sum(new(round(4 * MB * random.uniform(0.5, 1))).fill_(1).numel() for _ in range(10))
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
kept = [new(round(3 * MB)).fill_(1) for _ in range(10)]
del kept
before = faults()
used = sum(batch() for _ in range(20))
print((faults() - before, used // 4096))
""")
    assert new < used / 10


def test_free_blocks_are_given_back_before_memory_is_short(output_of):
    """And then the error is PyTorch's."""
    fits, error = output_of("""
kept = [new(40 * MB) for _ in range(5)]
taken_now = taken("VmSize:")
del kept
resource.setrlimit(resource.RLIMIT_AS, (taken_now + 5 * MB, taken_now + 5 * MB))
fits = new(10 * MB).numel() == 10 * MB
try:
    new(1000 * MB)
except RuntimeError as raised:
    print((fits, str(raised)))
""")
    assert fits
    assert "can't allocate memory" in error


TRAIN = """
import sys, torch
from synmask.pipeline import cli
from synmask.pipeline.training import loop
if sys.argv.pop(1) == "without":
    loop.save_memory = lambda: None
try:
    cli.main(sys.argv[1:])
finally:
    print(torch.empty(2**20).data_ptr() % 4096 == 0)
"""


def test_a_training_uses_it_and_gives_the_same_model(warm, corpus, tmp_path, grammar_settings):
    """Of a size that has large tensors."""
    grammar_settings["model"] |= {"embed_dim": 256, "ffn_dim": 1024}
    grammar_settings["training"]["max_epochs"] = 1
    models = []
    for kind in ("with", "without"):
        run = tmp_path / kind
        words = ["--data", corpus / "bin", "--run", run, "--settings", json.dumps(grammar_settings)]
        words = ["train", *words, "--source", "de", "--target", "en", "--seed", "1", "--keep", "1"]
        line = [warm.python, "-c", TRAIN, kind, *map(str, words)]
        output = subprocess.run(line, text=True, capture_output=True, check=True).stdout
        assert output.endswith(f"{kind == 'with'}\n")
        [saved] = run.glob("checkpoints/*/epoch*.pt")
        models.append(torch.load(saved, weights_only=False)["model"])
    one, other = models
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
