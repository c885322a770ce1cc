"""Functions that a test's workers run. They stand here because a spawned process imports them by their module's name."""

import torch


def busy(rank, turn):
    for _ in range(100):
        torch.distributed.all_reduce(torch.ones(100_000), async_op=True)


def failing(rank, error):
    if rank == 1:
        raise error
    torch.distributed.barrier()
