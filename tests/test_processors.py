"""Operators, a training and decoding as on each lesser kind of processor that this machine's can be.

PyTorch's libraries do without the instructions that the environment forbids, but nothing adds any. Kinds that this
machine cannot be are skipped, and so named when the tests end.
"""

import os
import platform
import signal
import subprocess
from pathlib import Path

import pytest

from synmask.pipeline.cpu import processor

OPERATORS = ("training/test_operators.py", "search/test_products.py", "search/test_fused.py")
METHOD = (
    "induction/test_parser.py",
    "search/test_continuations.py",
    "translation/test_decode.py::test_hypotheses_keep_their_order_and_do_not_depend_on_batch_mates",
    "translation/test_train.py::test_bf16_trains_on_a_cpu_and_averages_in_float32[grammar]",
    "translation/test_train.py::test_bleu_of_the_validation_set_every_few_epochs[lpsi]",
    f"training/test_interruption.py::test_a_signal_saves_and_exits_with_75[{signal.SIGTERM:d}]",  # and resumes
)
TESTS = {
    "Intel's AVX-512": OPERATORS,
    "AVX-512": OPERATORS,
    "AVX2": OPERATORS + METHOD,
    "none of AVX2 and AVX-512": OPERATORS,
}
APART = "not fused_adam"  # it needs fairseq, seconds to import; the training on AVX2 has it
MASKS = {  # kinds, from the most able → what makes a processor of one before it one of this
    "AMX": {},
    "Intel's AVX-512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
    "AVX-512 with bf16": {},
    "AVX-512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # which MKL obeys on Intel's; on AMD's it never takes more
    },
    "none of AVX2 and AVX-512": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
    "ARM": {},
}
X86 = [*MASKS][:-1]
INTELS, OTHERS = X86[:2], X86[2:4]
PROGRAM = """
import sys, pytest
from synmask.pipeline.cpu import processor
print(processor.capability(), flush=True)
sys.exit(pytest.main(sys.argv[1:]))
"""


def own():
    return processor.capability() if platform.machine() in ("x86_64", "AMD64") else "ARM"


def test_every_kind_is_one_that_operators_are_chosen_for():
    assert [*processor.CHOICES] == X86


@pytest.mark.parametrize("kind", [kind for kind in MASKS if kind != own()])
def test_a_lesser_processor_passes_the_tests(kind, warm):
    """In a fork of `warm`, which has imported PyTorch, but computed nothing: its libraries look at the processor then."""
    here = own()
    apart = {here, kind} & {*INTELS} and {here, kind} & {*OTHERS}
    if kind not in X86 or here not in X86 or X86.index(kind) < X86.index(here) or apart:
        pytest.skip(f"not tested on a processor of the kind {kind}: this one is {here}")
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS[kind], "-k", APART]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [warm.python, "-c", PROGRAM, *words],
        cwd=Path(__file__).parent,
        env=inherited | MASKS[kind],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert done.stdout.splitlines()[0] == kind
