"""Translate raw text with one model or an ensemble."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from fairseq import utils

from synmask.pipeline.config.sections import DEFAULT_DECODING, Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_lines
from synmask.pipeline.syntax.annotations import Annotations, annotate_file
from synmask.pipeline.training.binarise import encode_line
from synmask.pipeline.translation.beam import BeamSearch, search_batches
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.decode import predict_best_templates
from synmask.pipeline.translation.inputs import encode_lines, report_unknown_words
from synmask.pipeline.translation.model_file import LoadedModel, load_model, load_template_model
from synmask.pipeline.translation.raw_text import Jars, no_jars

# A parser: (language, file of sentences in true case, file of the corpus' tokens, prefix of the output).
Parser = Callable[[str, Path, Path, Path], None]


@dataclass(frozen=True)
class Candidate:
    """A translation and its score: the sum of the natural log-probabilities of its sub-words and `</s>`,
    divided by their number to the power of the length penalty (0 for an empty line)."""

    text: str
    score: float | None = None


class Translator:
    """Translates raw text, prepared like the model's training text, and detokenises the translations.

    Several models form an ensemble as in fairseq: the mean of their probabilities for each next sub-word.

    Args:
        models: model files of one corpus and direction.
        settings: see `BeamSearch`.
        parse: a parser of new text, for models that read parses.
        jars: tokeniser → the jars of CoreNLP that it needs (see text/tokenise.py).
        name: the file of the text, for messages.
    Raises:
        UserError: the models cannot form an ensemble, or a parser is needed and missing.
    """

    def __init__(
        self,
        models: Sequence[Path],
        settings: Decoding = DEFAULT_DECODING,
        *,
        threads: int = 1,
        parse: Parser | None = None,
        jars: Jars = no_jars,
        name: Path | None = None,
    ) -> None:
        torch.set_num_threads(threads)
        members = _load_ensemble(models, jars)
        self.models, self.loaded = [member.model for member in members], members[0]
        _, self.task, self.text, _ = members[0]
        if self.task.parser_annotations and parse is None:
            needs = " and ".join(sorted(self.task.parser_annotations))
            raise UserError(f"{models[0]}: reads {needs}, which only a parser gives; there is none")
        self.templates = None
        if self.task.template_dictionary is not None:
            self.templates = load_template_model(self.loaded, models[0])
        self.parse, self.name = parse, name
        self.settings: Decoding | None = None
        self.use(settings)

    def use(self, settings: Decoding) -> None:
        """Translate with these settings from now on."""
        if settings != self.settings:
            self.settings, self.search = settings, BeamSearch(self.models, self.task.tgt_dict, settings)

    @property
    def starts_programs(self) -> bool:
        """Whether preparing text starts an external program, which takes seconds for any number of lines."""
        return bool(self.task.parser_annotations) or self.text.starts_program

    def __call__(
        self, lines: list[str], first: int = 1, *, batch: int = 64, nbest: int = 1, scored: bool = False
    ) -> Iterator[list[Candidate]]:
        """Yield the translations of each line, `batch` lines at a time; an empty line stays empty.

        Args:
            first: the number of the first line, for messages.
            nbest: number of translations per line, best first; at most `settings.beam`.
            scored: whether translations have scores.

        Raises:
            UserError: a line is too long.
        """
        plain, tokens, split, sentences = self.encode(lines, first)
        report_unknown_words(split, self.task.src_dict, first)
        syntax = None
        if self.task.parser_annotations and sentences:
            cased = self.text.tokenise(plain, self.text.source, lowercase=False)
            syntax = _annotate(self.text.source, cased, tokens, split, self.parse)
        templates = None
        if self.templates is not None:
            predicted = predict_best_templates(self.templates, split, self.settings)
            templates = [encode_line(line, self.task.template_dictionary).long() for line in predicted]
        for start in range(0, len(sentences), batch):
            part = slice(start, start + batch)
            rows = [rows and rows[part] for rows in (syntax, templates)]
            yield from self._translate(self.task.sources(sentences[part], *rows), nbest, scored)

    def encode(
        self, lines: list[str], first: int = 1
    ) -> tuple[list[str], list[str], list[str], list[torch.Tensor]]:
        """Lines with single spaces, as tokens, in BPE, and as ids with `</s>`; raises as `__call__` does."""
        texts = self.text.encode(lines)
        limit = min(model.encoder.max_positions() for model in self.models)
        return *texts, encode_lines(texts[-1], limit, self.task.src_dict, first, self.name)

    def _translate(self, sources: AnnotatedPairs, nbest: int, scored: bool) -> list[list[Candidate]]:
        candidates = [[Candidate("", 0.0 if scored else None)] for _ in range(len(sources))]
        for results in search_batches(self.models[0], self.search, sources, self.settings.max_tokens):
            for number, hypotheses in results.items():
                ids = [hypothesis.tokens for hypothesis in hypotheses[:nbest]]
                plain = self.text.decode(map(self.task.tgt_dict.string, ids))[1]
                scores = [self._score(sources, number, tokens) if scored else None for tokens in ids]
                candidates[number] = [*map(Candidate, plain, scores)]
        return candidates

    @torch.no_grad()
    def _score(self, sources: AnnotatedPairs, number: int, tokens: torch.Tensor) -> float:
        """The score of a translation, (m,) ids with `</s>`, of the sentence with this number.

        Beam search computes scores, too, but their last digits depend on the batch.
        """
        batch = sources.collater([sources[number]])
        net = (utils.move_to_cuda(batch) if tokens.is_cuda else batch)["net_input"]
        before = tokens.roll(1)[None]  # fairseq's decoders start from </s>
        logs = []
        for model in self.models:
            output = model(net["src_tokens"], net["src_lengths"], before, net["annotations"])
            logs.append(model.get_normalized_probs(output, log_probs=True)[0])
        mean = torch.logsumexp(torch.stack(logs), dim=0) - math.log(len(logs))
        total = mean.double().gather(1, tokens[:, None]).sum().item()
        return round(total / len(tokens) ** self.settings.length_penalty, 6) + 0.0  # no -0


def _load_ensemble(paths: Sequence[Path], jars: Jars) -> list[LoadedModel]:
    """The models of model files, if they can form an ensemble; the first one's task makes its batches."""
    loaded = [load_model(path, jars=jars) for path in paths]
    _, task, text, _ = loaded[0]
    for path, (_, other, its_text, _) in zip(paths[1:], loaded[1:], strict=True):
        fault = None
        if (its_text.source, its_text.target) != (text.source, text.target):
            fault = "is of another direction"
        elif (
            other.src_dict != task.src_dict
            or other.tgt_dict != task.tgt_dict
            or its_text.settings != text.settings
        ):
            fault = "has other dictionaries or another preparation of text"
        elif other.settings.system.left_pad_source != task.settings.system.left_pad_source:
            fault = "pads sentences on the other side"
        if fault:
            raise UserError(f"{path}: {fault} than {paths[0]}; an ensemble is of models of one corpus")
    if len(paths) > 1 and any(member.template_dictionary is not None for _, member, *_ in loaded):
        raise UserError(f"{', '.join(map(str, paths))}: models that read templates cannot be an ensemble")
    task.needs = frozenset().union(*(member.needs for _, member, *_ in loaded))
    task.mixes = any(member.mixes for _, member, *_ in loaded)
    return loaded


def _annotate(
    language: str, cased: list[str], tokens: list[str], split: list[str], parse: Parser
) -> list[np.ndarray]:
    """The annotations of sentences from a parser that reads `cased` and returns trees over `tokens`."""
    with TemporaryDirectory() as folder:
        prefix = Path(folder) / "new"
        for name, lines in (("cased", cased), ("tokens", tokens), ("bpe", split)):
            write_lines(f"{prefix}.{name}", lines)
        parse(language, Path(f"{prefix}.cased"), Path(f"{prefix}.tokens"), prefix)
        files = {name: Path(f"{prefix}.{name}") for name in ("trees", "heads")}
        annotate_file(subwords=Path(f"{prefix}.bpe"), output=Path(f"{prefix}.npy"), **files)
        sizes = [len(line.split()) + 1 for line in split]
        return [np.array(rows) for rows in Annotations(Path(f"{prefix}.npy"), sizes)]
