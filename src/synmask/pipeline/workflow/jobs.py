"""Parameters and inputs of a job by its wildcards: settings as JSON, optional inputs, source files."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Protocol

from synmask.options import GuideOptions
from synmask.pipeline.config.base import SEGMENTERS
from synmask.pipeline.config.benchmarks import Benchmark, Continued, NluTask, Pretrain
from synmask.pipeline.config.data_files import DataFiles, module_file
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.config.sections import Corpus, System
from synmask.pipeline.files import SPLITS, plain_or_packed
from synmask.pipeline.languages import sides
from synmask.pipeline.paths import PAIR, TASK, WEIGHTS, filled
from synmask.pipeline.runs import Predictor, Pretraining, Run, Training, Tuning, of_submission
from synmask.pipeline.stamps import Stamp
from synmask.pipeline.tasks import SUBMISSION
from synmask.pipeline.workflow.sources import Modules, contents, digest, digest_of_file


class Wildcards(Protocol):
    """Snakemake's: values as attributes; `get` is for those that a rule may lack."""

    def __getattr__(self, name: str) -> str: ...

    def get(self, name: str, default: str | None = None) -> str | None: ...


class Values(dict[str, str]):
    """Wildcards where there is no Snakemake."""

    __getattr__ = dict.__getitem__


# The wildcards that name the entry with a job's resources, and their sections. Weights are looked for first:
# the job of a continued pre-training has them alone.
SECTIONS = {"weights": "weights", "benchmark": "benchmarks", "corpus": "corpora"}
VOCABULARY = [f"{WEIGHTS}/{name}" for name in ("encoder.json", "vocab.bpe", "dict.txt")]
MODEL = [f"{WEIGHTS}/model.pt", *VOCABULARY]  # of a RoBERTa
# Steps on text ask for this. Measured on Multi30k's 29,000 pairs on one core: 13 s for subwords, 5 s or less
# for others; 40 to 160 MB, 550 MB where fairseq's data are written. Snakemake itself takes 400 MB in a job.
PAIRS_A_MINUTE = {"subwords": 10_000, "": 20_000}
LEAST_MB = {"subwords": 1200, "templates": 1200, "": 600}
UNKNOWN_PAIRS = 200_000
MOST_TIMES = 3  # later attempts ask for so many times as much, at most
BELOW = "synmask"  # all modules are
PARSES = ("text", "tokens", "trees", "heads")  # one line each per parsed sentence


def entry_of(wildcards: Wildcards | Mapping[str, str]) -> tuple[str, str]:
    """Section and name of the entry that says what a training, and the steps after it, request."""
    return next((section, name) for key, section in SECTIONS.items() if (name := wildcards.get(key)))


def for_attempt(amount: int, attempt: int) -> int:
    """Memory or minutes of an attempt: a job that failed may have had too little."""
    return amount * min(max(attempt, 1), MOST_TIMES)


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

    def __call__(self, wildcards: Wildcards) -> "Job":
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
                entry = self(Values(training.wildcards)).pretraining
                return as_json(entry.model_dump(mode="json", include={"model", "training", "losses"}))

    def stamp(self, training: Training) -> Stamp:
        """The stamp of a training, without the data, which may not exist yet."""
        job = self(Values(training.wildcards))
        seed = job.pretraining.seed if isinstance(training, Pretraining) else training.seed
        code = job.code(training.verb, guided=training.guided)
        return {"settings": json.loads(self.settings(training)), "seed": seed, "code": code}

    def uneven_gpus(self, trainings: Iterable[Training]) -> str:
        """One line on GPUs that trainings would not use; empty if they use all."""
        return "; ".join(dict.fromkeys(filter(None, map(self._uneven_gpus, trainings))))

    def _uneven_gpus(self, training: Training) -> str:
        if (gpus := self(Values(training.wildcards)).gpus()) < 2:
            return ""
        key = ".".join(self.config.resources_key(*entry_of(training.wildcards)))
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

    def function(self) -> str:
        """The digest of the file with a metric that is a function of the user's; "" for others."""
        path = module_file(self.wildcards.metric) if "." in self.wildcards.metric else None
        return digest_of_file(path) if path else ""

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
        modules = {f"{BELOW}.{name}" for name in self._modules_of_text()}
        for name in self._systems():
            system = self.config.systems[name]
            if guided:
                modules |= {f"{BELOW}.{name}" for name in self._modules_of_guide(system)}
            if system.mask_rate:
                modules.add(f"{BELOW}.pipeline.training.losses")
            if self._validates_by_bleu(name):
                modules.add(f"{BELOW}.pipeline.translation.valid_bleu")
        return frozenset(modules)

    def _modules_of_text(self) -> Iterator[str]:
        if self.wildcards.get("corpus") and (name := self.corpus.format):
            yield f"pipeline.corpora.{name}"
        if self.wildcards.get("corpus") and self.corpus.sentencepiece:
            yield "pipeline.text.spm"
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

    def _validates_by_bleu(self, system: str) -> bool:
        corpus = self.wildcards.get("corpus")
        return corpus is not None and self.jobs.training_of(corpus, system).validate_bleu > 0

    def _systems(self) -> Iterable[str]:
        """The system of a run, or those of an experiment."""
        if system := self.wildcards.get("system"):
            return [system]
        experiment = self.wildcards.get("experiment")
        return self.config.plain_experiments[experiment].systems if experiment else []

    def resource(self, name: str) -> int:
        """One of the resources that this entry says."""
        return int(getattr(self.config.resources_of(*entry_of(self.wildcards)), name))

    def gpus(self) -> int:
        """The GPUs of a training on all its nodes."""
        return self.resource("gpus") * self.resource("nodes")

    def on_nodes(self) -> dict[str, str | int]:
        """Resources of a training on several nodes, for Snakemake's SLURM plugin; empty for others.

        `mpi` starts a worker per GPU (slurm.setup); without `tasks_per_gpu`, the plugin takes `tasks` for it.
        """
        if (nodes := self.resource("nodes")) == 1:
            return {}
        mpi = f"srun --nodes={nodes} --ntasks={self.gpus()} --gpus-per-task=1 --kill-on-bad-exit=1"
        mpi += f" --cpus-per-task={self.resource('threads')}"
        return {"nodes": nodes, "tasks": self.gpus(), "tasks_per_gpu": 0, "mpi": mpi}

    def preparing_minutes(self, rule: str) -> int:
        """Minutes of a step that prepares text, by the number of pairs of its corpus."""
        return 3 + self._pairs() // PAIRS_A_MINUTE.get(rule, PAIRS_A_MINUTE[""])

    def preparing_memory(self, rule: str) -> int:
        """Memory of a step that prepares text, in MB."""
        stanford = rule == "text" and "stanford" in self.tokenisers()
        least = 6000 if stanford else LEAST_MB.get(rule, LEAST_MB[""])
        return least + self._pairs() // 200

    def _pairs(self) -> int:
        source = self.wildcards.get("source", "")
        return self.jobs.number_of_pairs(self.wildcards.corpus, source) or UNKNOWN_PAIRS

    # ---- corpora -------------------------------------------------------------------------------------------

    @property
    def corpus(self) -> Corpus:
        return self.config.corpora[self.wildcards.corpus]

    def raw_text(self, side: str) -> list[str]:
        """The raw text of a side ("source" or "target") of a corpus: of train, then of valid and test."""
        language = getattr(self.wildcards, side)
        return [
            path for split in SPLITS for path in self.data.raw_files(self.wildcards.corpus, split, language)
        ]

    def raw_splits(self) -> list[str]:
        """The split of each of these files."""
        corpus, source = self.wildcards.corpus, self.wildcards.source
        return [split for split in SPLITS for _ in self.data.raw_files(corpus, split, source)]

    def test_set_files(self) -> list[str]:
        """The raw text of each of a corpus' test sets; none if it has a single one."""
        files = self.data.raw_files(self.wildcards.corpus, "test", self.wildcards.target)
        return files if self.corpus.test_sets else []

    def tokenisers(self) -> set[str]:
        """The tokenisers of a job's language, or of both of its pair; none if it has none of a corpus."""
        if not (name := self.wildcards.get("corpus")) or not self.wildcards.get("source"):
            return set()
        language = self.wildcards.get("language")
        languages = [language] if language else [self.wildcards.source, self.wildcards.target]
        return {*map(self.config.corpora[name].text.tokeniser_of, languages)}

    def tokeniser_jars(self) -> list[str]:
        return sorted({jar for name in self.tokenisers() for jar in self.data.tokeniser_jars(name)})

    def cased(self) -> str:
        """The text that a parser reads: the tokens, or plain text if these are lower-cased."""
        return PAIR / ("text" if self.corpus.text.lowercase else "tokens") / "{split}.{language}"

    def cased_tokeniser(self) -> str | None:
        """The tokeniser of this plain text; None for tokens."""
        text = self.corpus.text
        return text.tokeniser_of(self.wildcards.language) if text.lowercase else None

    def parser_jars(self) -> list[str]:
        """CoreNLP's jars for a language, and those of the tokeniser of `cased` text."""
        jars = self.data.corenlp_jars(self.wildcards.language)
        more = self.data.tokeniser_jars(self.cased_tokeniser() or "none")
        return [*jars, *(jar for jar in more if jar not in jars)]

    def target_trees(self, *splits: str) -> list[str]:
        """The trees of the target side of these splits."""
        return [
            self.data.parses(self.wildcards.corpus, split, self.wildcards.target)["trees"] for split in splits
        ]

    def parses(self) -> dict[str, str]:
        """The trees and heads of a split's source side."""
        return self.data.parses(self.wildcards.corpus, self.wildcards.split, self.wildcards.source)

    def gold(self) -> dict[str, str]:
        """The validation set's gold trees as "gold" and, if there are any, gold heads as "heads"."""
        place = (self.wildcards.corpus, "valid", self.wildcards.source)
        files = {"gold": self.data.gold_trees(*place), "heads": self.data.gold_heads(*place)}
        return {name: path for name, path in files.items() if path}

    def page_gold(self) -> str | None:
        """The gold trees beside an experiment's induced ones."""
        corpus = self.config.plain_experiments[self.wildcards.experiment].corpus
        return self.data.gold_trees(corpus, "valid", sides(self.wildcards.direction)[0])

    # ---- trainings -----------------------------------------------------------------------------------------

    @property
    def guide(self) -> type[GuideOptions]:
        """The options class of a system's guide: what it reads and induces."""
        return self.config.systems[self.wildcards.system].options_class

    def annotations(self, *splits: str, training: bool = False) -> list[str]:
        """The annotations of these splits, if the system reads any: in training, or else in decoding."""
        guide = self.guide
        files = [f"{PAIR}/bin/syntax.{split}.{{source}}.npy" for split in splits]
        return files if guide.reads and (training or not guide.parses_itself) else []

    def kept(self) -> int:
        """Number of epochs whose models make up the final one."""
        return self.jobs.training_of(self.wildcards.corpus, self.wildcards.system).kept

    def text_options(self, target: str | None = None) -> str:
        """How a model's text becomes sub-words, as options; `target`: its tokeniser, if not the corpus'."""
        text = self.corpus.text
        source, default = map(text.tokeniser_of, (self.wildcards.source, self.wildcards.target))
        return as_options(
            tokenisers=[source, target or default],
            lowercase=text.lowercase,
            vocabulary_threshold=self.corpus.bpe.vocabulary_threshold,
        )

    def decoding(self) -> str:
        """How a corpus is translated, as options."""
        return as_options(**self.corpus.decoding.plain())

    # ---- templates of the target --------------------------------------------------------------------------

    def if_templated(self, *paths: str) -> Sequence[str]:
        """These files for systems that read templates of the target; none for others."""
        return paths if self.config.systems[self.wildcards.system].templated else []

    # ---- language understanding ----------------------------------------------------------------------------

    @property
    def pretraining(self) -> Pretrain | Continued:
        entry = self.config.weights[self.wildcards.weights]
        return entry.pretrain or entry.continued

    def continued_parses(self) -> list[str]:
        """Files of the parsed sentences that continued pre-training reads."""
        return _files_of(self.pretraining.parses[self.wildcards.split])

    @property
    def benchmark(self) -> Benchmark:
        return self.config.benchmarks[self.wildcards.benchmark]

    @property
    def task(self) -> NluTask:
        return self.benchmark.tasks[self.wildcards.task]

    @property
    def weights(self) -> str:
        """The weights that a training starts from; without a system, those that define the vocabulary."""
        if self.wildcards.get("weights"):  # that are pre-trained further
            return self.pretraining.weights
        entry = self.benchmark
        return entry.weights_of.get(self.wildcards.get("system"), entry.weights)

    def weights_folder(self) -> str:
        return filled(WEIGHTS, weights=self.weights)

    def weights_files(self) -> list[str]:
        """The model and vocabulary that a training starts from, and the record of a model trained here."""
        name = self.weights
        trained = self.config.weights[name].pretrain or self.config.weights[name].continued
        files = [*MODEL, f"{WEIGHTS}/train.json"] if trained else MODEL
        return [filled(path, weights=name) for path in files]

    def vocabulary_files(self) -> list[str]:
        return [filled(path, weights=self.weights) for path in VOCABULARY]

    def fetched_weights(self) -> list[str]:
        """The files, or the user's folder, of weights in Hugging Face's format."""
        return self.data.weights_sources(self.wildcards.weights)

    def submitted(self) -> list[str]:
        """The files of which the submission of a system is made: the answers and scores of all its runs."""
        answered = of_submission(self.config, self.wildcards.benchmark, self.wildcards.system)
        names = ("train.json", "scores.json", "predictions.{part}.txt", "predictions.{part}.json")
        files = (run.file(name.replace("{part}", part)) for run, part in answered for name in names)
        return list(dict.fromkeys(files))

    def task_sources(self) -> list[str]:
        """The sources of a part of a task."""
        part = self.wildcards.part
        test = part in self.task.test_rows
        return self.data.task_sources(self.wildcards.benchmark, self.wildcards.task, test=test, part=part)

    def submitted_rows(self) -> list[int]:
        """How many rows each file of a submission must have."""
        tasks = self.benchmark.tasks
        return [tasks[task].test_rows[part] for task, part in SUBMISSION.values()]

    def parsed_parts(self) -> list[str]:
        """The parts of a task whose sentences a file of these holds."""
        start = self.wildcards.number.rstrip("0123456789")
        return [*self.data.parsed_together(self.wildcards.benchmark, self.wildcards.task)[start]]

    def task_parses(self) -> list[str]:
        return self.data.task_parses(self.wildcards.benchmark, self.wildcards.task, self.wildcards.part)

    def parse_files(self) -> list[str]:
        return _files_of(self.task_parses())

    def sentence_files(self) -> int:
        """The number of files that hold the sentences of these parts."""
        part = self.parsed_parts()[0]
        return len(self.data.task_parses(self.wildcards.benchmark, self.wildcards.task, part))

    def task_syntax(self, *parts: str) -> list[str]:
        """The annotations of these parts that a system reads; "valid" is the part that chooses the epoch."""
        names = [self.task.parts[0] if part == "valid" else part for part in parts]
        return [f"{TASK}/ids/syntax.{part}.npy" for part in names] if self.guide.reads else []


def _files_of(parses: Iterable[str]) -> list[str]:
    """The files of parsed sentences with these prefixes."""
    return [plain_or_packed(f"{prefix}.{kind}") for prefix in parses for kind in PARSES]
