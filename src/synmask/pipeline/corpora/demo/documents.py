"""Text for pre-training, made from the demo's grammar: documents whose sentences belong together.

One document in three is a single sentence of the demo corpus' kind. The others say something and then say it
again in other words: in another style, and perhaps with another verb, adverb, subject or object. To predict a
masked word of such a pair, a model must find its counterpart in the other sentence, as it must for tasks on
pairs. The text has no labels, and it is drawn from another seed than the tasks.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from synmask.pipeline.config.benchmarks import GenerateText
from synmask.pipeline.corpora.demo.english import sentence
from synmask.pipeline.corpora.demo.meaning import Definite, restated
from synmask.pipeline.corpora.demo.nlu_tasks import LONGEST
from synmask.pipeline.corpora.demo.phrases import side_of
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.files import write_lines
from synmask.pipeline.options import Json


def documents(seed: int, split: str) -> Iterator[list[str]]:
    """Yield documents, each a list of one or two sentences, without end."""
    rng = random.Random(f"text {split} {seed}")
    grammar, definite = Grammar(rng), Definite(rng)
    while True:
        pair = grammar.chance(2 / 3)
        sides = restated(definite) if pair else [side_of(sentence(grammar.sentence()))]
        texts = [side.text for side in sides]
        if all(len(text.split()) <= LONGEST for text in texts):
            yield texts


def write_text(*, split: Literal["train", "valid"], settings: Json[GenerateText], output: Path) -> None:
    """Generate text for pre-training from the demo's grammar.

    Args:
        split: train or valid.
        settings: Numbers of documents and seed: '{"seed": 1, "train": 16000, "valid": 300}'.
        output: One sentence per line, an empty line after each document.
    """
    drawn = documents(settings.seed, split)
    write_lines(output, (line for _ in range(getattr(settings, split)) for line in (*next(drawn), "")))
