"""The files that a configuration names: raw text, downloads, trees, tasks and weights.

Of each the path, and of downloads the origin.
"""

import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from synmask.pipeline.config import base, sections
from synmask.pipeline.config.schema import Config
from synmask.pipeline.disk import size_of
from synmask.pipeline.files import SPLITS
from synmask.pipeline.languages import match_language
from synmask.pipeline.paths import CORPUS, PAIR, RESULTS, TASK, fill
from synmask.pipeline.tasks import GLUE_TASKS, TASKS

SENTENCES_PER_FILE = 50_000  # of a task; each file is parsed by a job of its own, in parallel
HUGGINGFACE = ("config.json", "model.safetensors", "vocab.json", "merges.txt")
GLUE_FOLDERS = {"cola": "CoLA"}  # the others are in capitals
DIAGNOSTIC = "diagnostic"


@dataclass(frozen=True)
class DataFiles:
    """The data files of a configuration."""

    config: Config

    def raw_files(self, corpus: str, split: str, language: str) -> list[str]:
        """Paths of a split's raw text (downloaded or the user's): one, or one per test set."""
        entry = self.config.corpora[corpus]
        if entry.format is not None:
            return [fill(f"{CORPUS}/raw/{'-'.join(entry.languages)}/{split}.{language}", corpus=corpus)]
        names = [name.replace("{language}", language) for name in entry.file_names(split)]
        return [f"{self.config.data_dir}/{entry.download}/{name}" if entry.url else name for name in names]

    def number_of_pairs(self, corpus: str, language: str) -> int | None:
        """The number of training pairs; None if it is not known.

        It is that of the configuration, or of the lines in the user's file in `language`.
        """
        entry = self.config.corpora[corpus]
        number = entry.pairs.get("train")
        if number is None and entry.files and (size := size_of(self.raw_files(corpus, "train", language))):
            number, _ = size
        return sum(number) // 2 if isinstance(number, tuple) else number

    def corpus_sources(self, corpus: str, languages: Iterable[str] = ()) -> list[str]:
        """Paths of a corpus' archives, or of its raw text in `languages`."""
        entry = self.config.corpora[corpus]
        if entry.format is not None:
            return [f"{self.config.data_dir}/{entry.download}/{archive}" for archive in entry.archives]
        places = itertools.product(SPLITS, languages)
        return [path for split, language in places for path in self.raw_files(corpus, split, language)]

    def task_sources(self, benchmark: str, task: str, *, test: bool = False, part: str = "") -> list[str]:
        """Paths of a task's sources: its downloads (`test`: also its test sets'), or its folder here.

        The diagnostic set, a `part` of mnli, has a folder of its own there.
        """
        entry = self.config.benchmarks[benchmark]
        if entry.folder is not None:
            name = GLUE_FOLDERS.get(task, task.upper()) if task in GLUE_TASKS else task
            return [f"{entry.folder}/{DIAGNOSTIC if part == 'ax' else name}"]
        urls = (*entry.tasks[task].urls, *(entry.tasks[task].test_urls if test else ()))
        return [f"{self.config.data_dir}/{benchmark}/{os.path.basename(url)}" for url in urls]

    def parsed_together(self, benchmark: str, task: str) -> dict[str, dict[str, int]]:
        """Prefix of file names → the parts of the task in these files of parsed sentences, with their rows.

        Training sentences are apart, so that pre-training reads none that systems are scored on, and so that
        no system trains again when test sets are added.
        """
        entry = self.config.benchmarks[benchmark].tasks[task]
        dev = {part: entry.rows[part] for part in entry.parts}
        return {"": {"train": entry.rows["train"]}, "dev-": dev, "test-": {**entry.test_rows}}

    def task_sentences(self, benchmark: str, task: str, start: str) -> int:
        """The number of sentences in the parts that are `parsed_together`, duplicates counted."""
        return sum(self.parsed_together(benchmark, task)[start].values()) * TASKS[task].sentences

    def task_parses(self, benchmark: str, task: str, part: str) -> list[str]:
        """Prefixes of the parsed sentences of a part: in the benchmark's folder, else `parsed_together`."""
        if self.config.benchmarks[benchmark].parsed:
            return [f"{folder}/{part}" for folder in self.task_sources(benchmark, task)]
        stem = fill(f"{TASK}/syntax", benchmark=benchmark, task=task)
        [start] = (name for name, parts in self.parsed_together(benchmark, task).items() if part in parts)
        files = -(-self.task_sentences(benchmark, task, start) // SENTENCES_PER_FILE)
        return [f"{stem}/{start}{number}" for number in range(1, files + 1)]

    def weights_sources(self, weights: str) -> list[str]:
        """Paths of a RoBERTa's files in Hugging Face's format, or its folder here; none if it is trained."""
        entry = self.config.weights[weights]
        if entry.huggingface is not None:
            return [entry.huggingface]
        return [f"{self.config.data_dir}/{weights}/{name}" for name in HUGGINGFACE if entry.url]

    @cached_property
    def origins(self) -> dict[str, dict[str, str | None]]:
        """Download → its files and their URLs (None: licensed, from a folder of the user's)."""

        def below(folder: str | None, files: Iterable[str]) -> dict[str, str | None]:
            return {file: folder and f"{folder}/{file}" for file in files}

        origins = {"corenlp": below(self.config.corenlp.url, self.config.corenlp.sha256)}
        for name, weights in self.config.weights.items():
            origins[name] = below(weights.url, HUGGINGFACE if weights.url else ())
        for name, entry in self.config.benchmarks.items():
            urls = (url for task in entry.tasks.values() for url in (*task.urls, *task.test_urls))
            origins[name] = {os.path.basename(url): url for url in urls}
        for name, corpus in self.config.corpora.items():  # those with one download have one URL
            fetched = corpus.url or corpus.format
            files = map(os.path.basename, self.corpus_sources(name, corpus.languages) if fetched else ())
            origins.setdefault(corpus.download, {}).update(below(corpus.url, files))
        return {name: files for name, files in origins.items() if files or name == "corenlp"}

    def origin(self, download: str, file: str) -> tuple[str | None, str | None]:
        """The URL of a file that is downloaded (None: licensed) and its sha256 (None: not known)."""
        config = self.config
        entries = [config.corenlp] if download == "corenlp" else []
        entries += [part[download] for part in (config.weights, config.benchmarks) if download in part]
        entries += [corpus for corpus in config.corpora.values() if corpus.download == download]
        sums = (entry.sha256[file] for entry in entries if file in entry.sha256)
        return self.origins[download].get(file), next(sums, None)

    def is_own(self, path: str) -> bool:
        """Whether a file is the user's: neither made nor downloaded."""
        fetched = (f"{self.config.data_dir}/{name}/" for name in self.origins)
        return not path.startswith((f"{RESULTS}/", *fetched))

    def tokeniser_jars(self, tokeniser: str) -> list[str]:
        """Paths of CoreNLP's jars that a tokeniser needs."""
        if tokeniser not in base.WITH_JARS:
            return []
        corenlp = self.config.corenlp
        chosen = [*corenlp.jars, *(corenlp.segmenter if tokeniser == "stanford" else ())]
        return [f"{self.config.data_dir}/corenlp/{jar}" for jar in chosen]

    def gold_trees(self, corpus: str, language: str) -> str | None:
        """Path of the validation set's trees, with which induced ones are compared; None: there are none."""
        return self.parses(corpus, "valid", language).get("trees")

    def parses(self, corpus: str, split: str, language: str) -> dict[str, str]:
        """Paths of a split's "trees" and "heads", which guides can read; {} if there are none.

        They cover all lines of the text; clean/kept.* has the lines that are in the training data.
        """
        if pair := self.parsed_pair(corpus, language):
            stem = fill(f"{PAIR}/syntax/{split}.{language}", pair, corpus=corpus)
            return {"trees": f"{stem}.trees", "heads": f"{stem}.heads"}
        entry = self.config.corpora[corpus]
        files = {"trees": {} if entry.trees == "corenlp" else entry.trees, "heads": entry.heads}
        own = {name: paths[split] for name, paths in files.items() if split in paths}
        return {name: path.replace("{language}", language) for name, path in own.items()}

    def parsed_pair(self, corpus: str, language: str) -> str | None:
        """The language pair in whose folder CoreNLP parses a language, once for all directions.

        The corpus' first language is paired with the second, every other language with the first. None if
        CoreNLP does not parse the language.
        """
        entry = self.config.corpora[corpus]
        if entry.trees != "corenlp" or not self.parser_code(language):
            return None
        first, second = entry.languages[:2]
        return f"{first}-{second if language == first else language}"

    def parser_code(self, language: str) -> str | None:
        """The key of `corenlp.languages` that is the same language; None if there is none."""
        return match_language(language, self.config.corenlp.languages)

    def corenlp_jars(self, language: str) -> list[str]:
        """Paths of the jars that parse a language."""
        models = self.config.corenlp.languages[self.parser_code(language)]
        return [f"{self.config.data_dir}/corenlp/{jar}" for jar in self.config.corenlp.jars | models.jars]

    def corenlp_settings(self, language: str) -> sections.ParserSettings:
        """CoreNLP's models for a language, and its limit."""
        models = self.config.corenlp.languages[self.parser_code(language)].model_dump(exclude={"jars"})
        return sections.ParserSettings(**models, max_words=self.config.corenlp.max_words)
