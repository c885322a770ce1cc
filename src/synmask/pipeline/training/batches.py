"""The batches of a data set: fairseq's batching, order and shares of workers, prepared ahead by a thread."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from fairseq.data import FairseqDataset, data_utils
from fairseq.data.iterators import EpochBatchIterator, GroupedIterator

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Which examples of a data set are used, and how many make a batch.

    Attributes:
        longest: the maximum number of tokens of an example, or of its source and its target; None: any.
        tokens, sentences: the maximum in a batch; None: any number.
        multiple: of which the number of sentences in a batch is rounded down to, if there are more.
    """

    longest: int | tuple[int, int] | None = None
    tokens: int | None = None
    sentences: int | None = None
    multiple: int = 8


class Batches:
    """The batches of a data set for one of `workers`, which take turns.

    They depend on data and `seed`, their order also on the epoch, as in fairseq (FairseqTask's
    get_batch_iterator).
    """

    def __init__(
        self, data: FairseqDataset, limits: Limits, seed: int, worker: int = 0, workers: int = 1
    ) -> None:
        self.data, self.seed, self.worker, self.workers = data, seed, worker, workers
        data.set_epoch(1)
        with data_utils.numpy_seed(seed):
            order = data.ordered_indices()
        if limits.longest is not None:
            order, _ = data.filter_indices_by_size(order, limits.longest)
        self.examples = data.batch_by_size(
            order,
            max_tokens=limits.tokens,
            max_sentences=limits.sentences,
            required_batch_size_multiple=limits.multiple,
        )

    def first(self) -> dict[str, Any]:
        """The first batch, whoever's turn it is."""
        return self.data.collater([self.data[index] for index in self.examples[0]])

    def updates(self, epoch: int, count: int, done: int = 0) -> tuple[int, Generator[list[dict], None, None]]:
        """The number of an epoch's updates, and this worker's `count` batches of each that is not yet `done`.

        Empty batches are left out, unless a worker has no other: it waits for those that have one more.
        """
        iterator = self._iterator(epoch)
        iterator.load_state_dict({"version": 2, "epoch": epoch, "iterations_in_epoch": done * count})
        groups = GroupedIterator(iterator.next_epoch_itr(), count)
        filled = ([batch for batch in group if batch] or group[:1] for group in groups)
        return len(groups), prefetch(filled)

    def in_order(self) -> Iterator[dict[str, Any]]:
        """This worker's batches, not shuffled: to validate on."""
        return prefetch(self._iterator(1).next_epoch_itr(shuffle=False, set_dataset_epoch=False))

    def _iterator(self, epoch: int) -> EpochBatchIterator:
        share = {"num_shards": self.workers, "shard_id": self.worker}
        return EpochBatchIterator(
            self.data, self.data.collater, self.examples, seed=self.seed, epoch=epoch, **share
        )


def prefetch(items: Iterator[T]) -> Generator[T, None, None]:
    """The items; a thread prepares the next while one is used, and ends when the generator is closed."""
    options = {}
    if torch.cuda.is_available():  # each thread has a current GPU of its own
        options = {"initializer": torch.cuda.set_device, "initargs": (torch.cuda.current_device(),)}
    with ThreadPoolExecutor(1, **options) as pool:
        future = pool.submit(next, items, None)
        while (item := future.result()) is not None:
            future = pool.submit(next, items, None)
            yield item
