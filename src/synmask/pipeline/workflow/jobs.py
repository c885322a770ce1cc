"""The entries of the configuration, the inputs, parameters and resources of a job, by its wildcards."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from synmask.pipeline.config.base import SEGMENTERS
from synmask.pipeline.config.benchmarks import Benchmark, Continued, NluTask, Pretrain
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.config.sections import Corpus, Resources, System, TrainingSettings
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, existing_or_packed
from synmask.pipeline.languages import split_direction
from synmask.pipeline.paths import PAIR, TASK, WEIGHTS, fill
from synmask.pipeline.runs import Predictor, Pretraining, Run, Training, Tuning, check_request, of_submission
from synmask.pipeline.stamps import Stamp
from synmask.pipeline.tasks import SUBMISSION
from synmask.pipeline.workflow.sources import Modules, contents, digest

Wildcards = Mapping[str, str]  # or Snakemake's, which have `[…]` and `get`, too
VOCABULARY = [f"{WEIGHTS}/{name}" for name in ("encoder.json", "vocab.bpe", "dict.txt")]
MODEL = [f"{WEIGHTS}/model.pt", *VOCABULARY]  # of a RoBERTa
UNKNOWN_PAIRS = 200_000
MOST_TIMES = 3  # later attempts ask for so many times as much, at most
PARSES = ("text", "tokens", "trees", "heads")  # one line each per parsed sentence


def by_attempt(amount: int | Callable[[Any], int]) -> Callable[[Any, int], int]:
    """Memory or minutes that further attempts ask for two and three times: the first may have had too little.

    Args:
        amount: that of the first attempt, or a function of wildcards.
    """

    def requested(wildcards: Any, attempt: int) -> int:
        first = amount(wildcards) if callable(amount) else amount
        return first * min(max(attempt, 1), MOST_TIMES)

    return requested


def as_options(**values: Any) -> str:
    """Values as options of a verb: lists of words as words, other lists as JSON; none for what is empty."""
    words = []
    for key, value in values.items():
        listed = isinstance(value, list | tuple)
        if value if listed else value is not None and value is not False:
            plain = not listed or all(isinstance(part, str) for part in value)
            texts = map(str, (value if listed else [value]) if plain else [as_json(value)])
            words += [f"--{key.replace('_', '-')}", *(() if value is True else texts)]
    return shlex.join(words)


class Jobs:
    """The jobs of a configuration, each by its wildcards."""

    def __init__(self, config: Config) -> None:
        self.config, self.data = config, DataFiles(config)
        # of each corpus, run or task once, for the many jobs that ask
        self.number_of_pairs = cache(self.data.number_of_pairs)
        self.run_settings = cache(config.run_settings)
        self.template_settings = cache(config.template_settings)
        self.nlu_settings = cache(config.nlu_settings)
        self.training_of = cache(config.training_of)
        self.check = cache(lambda wildcards: check_request(config, dict(wildcards)))

    def __call__(self, wildcards: Wildcards) -> "Job":
        """The job of these wildcards.

        Raises:
            UserError: a file that was asked for by its name is of a run that cannot work.
        """
        self.check(frozenset(wildcards.items()))
        return Job(self, wildcards)

    def settings(self, training: Training) -> str:
        """All that a training depends on besides its data and seed, as JSON."""
        match training:
            case Predictor(corpus, source, target, system):
                return as_json(self.template_settings(corpus, f"{source}-{target}", system))
            case Run(corpus, source, target, system):
                return as_json(self.run_settings(corpus, f"{source}-{target}", system))
            case Tuning(benchmark, task, system):
                return as_json(self.nlu_settings(benchmark, task, system))
            case Pretraining():
                entry = self(training.wildcards).pretraining
                return as_json(entry.model_dump(mode="json", include={"model", "training", "losses"}))

    def stamp(self, training: Training) -> Stamp:
        """The stamp of a training, without the data, which may not exist yet."""
        job = self(training.wildcards)
        seed = job.pretraining.seed if isinstance(training, Pretraining) else training.seed
        code = job.code(training.verb, guided=training.guided)
        return {"settings": json.loads(self.settings(training)), "seed": seed, "code": code}

    def uneven_gpus(self, trainings: Iterable[Training]) -> str:
        """One line on GPUs that trainings would not use; empty if they use all."""
        return "; ".join(dict.fromkeys(filter(None, map(self._uneven_gpus, trainings))))

    def _uneven_gpus(self, training: Training) -> str:
        if (gpus := self(training.wildcards).gpus()) < 2:
            return ""
        key = ".".join(self.config.resources_key(training.wildcards))
        batch = json.loads(self.settings(training))["training"].get("batch")
        if batch is None:
            return f"`{key}`: fine-tuning uses one GPU of {gpus}: ask for one"
        if (batches := batch["gpus"] * batch["updates"]) % gpus == 0:
            return ""
        return (
            f"`{key}`: {gpus} GPUs cannot share an update of {batches} batches evenly, so some stay unused: "
            "ask for fewer, or raise training.batch.gpus (and lower updates or tokens there)"
        )


class Job:
    """Parameters and inputs of a job."""

    def __init__(self, jobs: Jobs, wildcards: Wildcards) -> None:
        self.jobs, self.config, self.data, self.wildcards = jobs, jobs.config, jobs.data, wildcards

    # ---- all jobs ------------------------------------------------------------------------------------------

    def code(self, verb: str, *, guided: bool = True) -> str:
        """A digest of the code behind a verb, with what the job asks for; or for a model without a guide.

        A job runs again when its parameters change, so this parameter reruns it when its code has changed.
        """
        return digest(verb, self.optional_modules(guided=guided))

    def inputs_checksum(self, *inputs: str | Sequence[str] | None) -> str:
        """A checksum of the user's own files and folders among these inputs.

        Snakemake compares time stamps, and a file may change under an older one (unpacked with its dates).
        Files that steps make or download are known otherwise. The checksum must not be computed from
        Snakemake's `input`: it takes such a parameter for one that changes with the input alone.
        """
        paths = chain(*([paths] if isinstance(paths, str) else paths or () for paths in inputs))
        return contents(filter(self.data.is_own, paths))

    def optional_modules(self, *, guided: bool = True) -> Modules:
        """The modules that count for this job and not for all (`sources.OPTIONAL`, `sources.BY_NAME`)."""
        names = {*self._modules_of_text()}
        if self.wildcards.get("system"):
            if guided:
                names |= {*self._modules_of_guide(self.system)}
            if self.system.mask_rate:
                names.add("pipeline.training.losses")
            if self.wildcards.get("corpus") and self.training.validate_bleu:
                names.add("pipeline.translation.valid_bleu")
        return frozenset(f"synmask.{name}" for name in names)

    def _modules_of_text(self) -> Iterator[str]:
        if self.wildcards.get("corpus") and (name := self.corpus.format):
            yield f"pipeline.corpora.{name}"
        if self.wildcards.get("corpus") and self.corpus.sentencepiece:
            yield from ("pipeline.text.spm", "pipeline.training.sentencepiece")
        if self.tokenisers() & {*SEGMENTERS}:
            yield "pipeline.text.segment"

    @staticmethod
    def _modules_of_guide(system: System) -> Iterator[str]:
        if system.templated:
            yield "pipeline.translation.st_nmt"
        elif system.guide != "none":
            yield from (f"guides.{system.guide}", f"options.{system.guide}", "pipeline.text.labels")
        if system.options_class.reads:
            yield "pipeline.syntax.annotations"

    # ---- resources -----------------------------------------------------------------------------------------

    @property
    def resources(self) -> Resources:
        return self.config.resources_of(self.wildcards)

    def gpus(self) -> int:
        """The GPUs of a training on all its nodes."""
        return self.resources.gpus * self.resources.nodes

    def on_nodes(self) -> dict[str, str | int]:
        """Resources of a training on several nodes, for Snakemake's SLURM plugin; empty for others.

        `mpi` starts a worker per GPU (slurm.setup); without `tasks_per_gpu`, the plugin takes `tasks` for it.
        """
        if (nodes := self.resources.nodes) == 1:
            return {}
        mpi = f"srun --nodes={nodes} --ntasks={self.gpus()} --gpus-per-task=1 --kill-on-bad-exit=1"
        mpi += f" --cpus-per-task={self.resources.threads}"
        return {"nodes": nodes, "tasks": self.gpus(), "tasks_per_gpu": 0, "mpi": mpi}

    def minutes(self, pairs_per_minute: int) -> int:
        """Minutes of a step that prepares text, by the number of pairs of its corpus."""
        return 3 + self._pairs() // pairs_per_minute

    def megabytes(self, least: int) -> int:
        """Memory of a step that prepares text, by the same."""
        return least + self._pairs() // 200

    def _pairs(self) -> int:
        source = self.wildcards.get("source", "")
        return self.jobs.number_of_pairs(self.wildcards["corpus"], source) or UNKNOWN_PAIRS

    # ---- corpora -------------------------------------------------------------------------------------------

    @property
    def corpus(self) -> Corpus:
        return self.config.corpora[self.wildcards["corpus"]]

    def raw_text(self, side: str) -> list[str]:
        """The raw text of a side ("source" or "target") of a corpus: of train, then of valid and test."""
        corpus, language = self.wildcards["corpus"], self.wildcards[side]
        return [path for split in SPLITS for path in self.data.raw_files(corpus, split, language)]

    def raw_splits(self) -> list[str]:
        """The split of each of these files."""
        corpus, source = self.wildcards["corpus"], self.wildcards["source"]
        return [split for split in SPLITS for _ in self.data.raw_files(corpus, split, source)]

    def test_set_files(self) -> list[str]:
        """The raw text of each of a corpus' test sets; none if it has a single one."""
        files = self.data.raw_files(self.wildcards["corpus"], "test", self.wildcards["target"])
        return files if self.corpus.test_sets else []

    def tokenisers(self) -> set[str]:
        """The tokenisers of a job's language, or of both of its pair; none if it has none of a corpus."""
        if not (name := self.wildcards.get("corpus")) or not self.wildcards.get("source"):
            return set()
        language = self.wildcards.get("language")
        languages = [language] if language else [self.wildcards["source"], self.wildcards["target"]]
        return {*map(self.config.corpora[name].text.tokeniser_of, languages)}

    def tokeniser_jars(self) -> list[str]:
        return sorted({jar for name in self.tokenisers() for jar in self.data.tokeniser_jars(name)})

    def cased(self) -> str:
        """The text that a parser reads: the tokens, or plain text if these are lower-cased."""
        return PAIR / ("text" if self.corpus.text.lowercase else "tokens") / "{split}.{language}"

    def cased_tokeniser(self) -> str | None:
        """The tokeniser of this plain text; None for tokens."""
        text = self.corpus.text
        return text.tokeniser_of(self.wildcards["language"]) if text.lowercase else None

    def parser_jars(self) -> list[str]:
        """CoreNLP's jars for a language, and those of the tokeniser of `cased` text."""
        jars = self.data.corenlp_jars(self.wildcards["language"])
        more = self.data.tokeniser_jars(self.cased_tokeniser() or "none")
        return [*jars, *(jar for jar in more if jar not in jars)]

    def target_trees(self, *splits: str) -> list[str]:
        """The trees of the target side of these splits."""
        corpus, target = self.wildcards["corpus"], self.wildcards["target"]
        return [self.data.parses(corpus, split, target)["trees"] for split in splits]

    def gold(self) -> dict[str, str]:
        """The validation set's gold trees as "gold" and, if there are any, gold heads as "heads".

        Raises:
            UserError: the corpus has no gold trees of the source language.
        """
        corpus, source = self.wildcards["corpus"], self.wildcards["source"]
        parses = self.data.parses(corpus, "valid", source)
        if "trees" not in parses:
            raise UserError(f"corpora.{corpus}.trees: none of {source}; give it some, or parse no {source}")
        return {"gold" if name == "trees" else name: path for name, path in parses.items()}

    def page_gold(self) -> str | None:
        """The gold trees beside an experiment's induced ones."""
        corpus = self.config.plain_experiments[self.wildcards["experiment"]].corpus
        return self.data.gold_trees(corpus, split_direction(self.wildcards["direction"])[0])

    # ---- trainings -----------------------------------------------------------------------------------------

    @property
    def system(self) -> System:
        return self.config.systems[self.wildcards["system"]]

    @property
    def training(self) -> TrainingSettings:
        """How its system is trained on its corpus."""
        return self.jobs.training_of(self.wildcards["corpus"], self.wildcards["system"])

    def annotations(self, *splits: str, training: bool = False) -> list[str]:
        """The annotations of these splits, if the system reads any: in training, or else in decoding."""
        guide = self.system.options_class
        files = [f"{PAIR}/bin/syntax.{split}.{{source}}.npy" for split in splits]
        return files if guide.reads and (training or not guide.parses_itself) else []

    def subword_options(self) -> str:
        """How sub-words are learned, as options."""
        if not (pieces := self.corpus.sentencepiece):
            return as_options(**self.corpus.bpe.plain())
        sides = map(self.corpus.text.tokeniser_of, (self.wildcards["source"], self.wildcards["target"]))
        return as_options(sentencepiece=as_json(pieces), tokenisers=[*sides])

    def text_options(self, target: str | None = None) -> str:
        """How a model's text becomes sub-words, as options; `target`: its tokeniser, if not the corpus'."""
        text = self.corpus.text
        source, default = map(text.tokeniser_of, (self.wildcards["source"], self.wildcards["target"]))
        return as_options(
            tokenisers=[source, target or default],
            lowercase=text.lowercase,
            vocabulary_threshold=self.corpus.bpe.vocabulary_threshold or None,
        )

    def if_templated(self, *paths: str) -> Sequence[str]:
        """These files for systems that read templates of the target; none for others."""
        return paths if self.system.templated else []

    # ---- language understanding ----------------------------------------------------------------------------

    @property
    def pretraining(self) -> Pretrain | Continued:
        return self.config.weights[self.wildcards["weights"]].trained

    def continued_parses(self) -> list[str]:
        """Files of the parsed sentences that continued pre-training reads."""
        return _files_of(self.pretraining.parses[self.wildcards["split"]])

    @property
    def benchmark(self) -> Benchmark:
        return self.config.benchmarks[self.wildcards["benchmark"]]

    @property
    def _place(self) -> tuple[str, str]:
        return self.wildcards["benchmark"], self.wildcards["task"]

    @property
    def task(self) -> NluTask:
        return self.benchmark.tasks[self.wildcards["task"]]

    @property
    def weights(self) -> str:
        """The weights that a training starts from; without a system, those that define the vocabulary."""
        if self.wildcards.get("weights"):  # that are pre-trained further
            return self.pretraining.weights
        entry = self.benchmark
        return entry.weights_of.get(self.wildcards.get("system"), entry.weights)

    def weights_folder(self) -> str:
        return fill(WEIGHTS, weights=self.weights)

    def weights_files(self) -> list[str]:
        """The model and vocabulary that a training starts from, and the record of a model trained here."""
        name = self.weights
        files = [*MODEL, f"{WEIGHTS}/train.json"] if self.config.weights[name].trained else MODEL
        return [fill(path, weights=name) for path in files]

    def vocabulary_files(self) -> list[str]:
        return [fill(path, weights=self.weights) for path in VOCABULARY]

    def submission_inputs(self) -> list[str]:
        """The files of which the submission of a system is made: the answers and scores of all its runs."""
        answered = of_submission(self.config, self.wildcards["benchmark"], self.wildcards["system"])
        names = ("train.json", "scores.json", "predictions.{part}.txt", "predictions.{part}.json")
        files = (run.file(name.replace("{part}", part)) for run, part in answered for name in names)
        return list(dict.fromkeys(files))

    def task_sources(self) -> list[str]:
        """The sources of a part of a task."""
        part = self.wildcards["part"]
        return self.data.task_sources(*self._place, test=part in self.task.test_rows, part=part)

    def submission_rows(self) -> list[int]:
        """How many rows each file of a submission must have."""
        tasks = self.benchmark.tasks
        return [tasks[task].test_rows[part] for task, part in SUBMISSION.values()]

    def parsed_parts(self) -> list[str]:
        """The parts of a task whose sentences a file of these holds."""
        start = self.wildcards["number"].rstrip("0123456789")
        return [*self.data.parsed_together(*self._place)[start]]

    def task_parses(self) -> list[str]:
        return self.data.task_parses(*self._place, self.wildcards["part"])

    def parse_files(self) -> list[str]:
        return _files_of(self.task_parses())

    def sentence_files(self) -> int:
        """The number of files that hold the sentences of these parts."""
        return len(self.data.task_parses(*self._place, self.parsed_parts()[0]))

    def task_syntax(self, *parts: str) -> list[str]:
        """The annotations of these parts that a system reads; "valid" is the part that chooses the epoch."""
        names = [self.task.parts[0] if part == "valid" else part for part in parts]
        return [f"{TASK}/ids/syntax.{part}.npy" for part in names] if self.system.options_class.reads else []


def _files_of(parses: Iterable[str]) -> list[str]:
    """The files of parsed sentences with these prefixes."""
    return [existing_or_packed(f"{prefix}.{kind}") for prefix in parses for kind in PARSES]
