"""Functions that a test's workers run. They stand here because a spawned process imports them by their module's name."""

import torch


def busy(rank):
    for _ in range(300):
        torch.distributed.all_reduce(torch.ones(1_000_000), async_op=True)


def failing(rank, error):
    if rank == 1:
        raise error
    torch.distributed.barrier()
