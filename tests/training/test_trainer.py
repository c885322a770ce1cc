"""The group of data-parallel workers."""

import subprocess
import sys

WORKER = """
import sys, torch
from synmask.pipeline.training.trainer import leave
rank, store = sys.argv[1:]
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
for _ in range(100):
    torch.distributed.all_reduce(torch.ones(100_000), async_op=True)
leave()
"""


def test_workers_end_well_though_threads_of_their_group_still_work(tmp_path):
    """Without `leave`, at least one of the two aborts in most attempts."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), str(tmp_path / "store")],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    output = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], output
