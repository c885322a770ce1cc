# Language understanding: where its files lie, and what its rules are told.

WEIGHTS = "results/weights/{weights}"
VOCABULARY = [f"{WEIGHTS}/{name}" for name in ("encoder.json", "vocab.bpe", "dict.txt")]
MODEL = [f"{WEIGHTS}/model.pt", *VOCABULARY]


def weights_of(kind):
    """Names of the weights that come from an archive, from Hugging Face or from a pre-training."""
    return any_of(name for name, entry in CONFIG.weights.items() if getattr(entry, kind))


def pretraining(wildcards):
    return CONFIG.weights[wildcards.weights].pretrain


def pretraining_need(name):
    return lambda wildcards: getattr(pretraining(wildcards).resources, name)


def roberta_code(*stage):
    """Source files behind a RoBERTa and a stage: the guide's own only for the systems that have it."""

    def files(wildcards):
        engine = (
            "binarise",
            "compat",
            "criterion",
            "layers",
            "model",
            "roberta",
            "sentences",
            "trainer",
            "weights",
        )
        guide = guide_of(wildcards.system).code if hasattr(wildcards, "system") else ()
        return code(*(f"engine/{name}" for name in engine), "guides/__init__", *guide, *stage)

    return files


wildcard_constraints:
    weights=any_of(CONFIG.weights),


TASK = "results/{benchmark}/{task}"
FINETUNING = f"{TASK}/{{system}}/seed{{seed}}"
SENTENCES = f"{TASK}/syntax/{{number}}"
PARSES = ("text", "tokens", "trees", "heads")  # a line each of a parsed sentence


def benchmark_of(wildcards):
    return CONFIG.benchmarks[wildcards.benchmark]


def task_of(wildcards):
    return benchmark_of(wildcards).tasks[wildcards.task]


def weights_folder(wildcards):
    return f"results/weights/{benchmark_of(wildcards).weights}"


def weights_files(wildcards):
    """The weights that a benchmark's systems start from."""
    return expand(MODEL, weights=benchmark_of(wildcards).weights)


def of_task(path):
    return f"{TASK}/{path}"


def of_parts(path):
    """A file of each part of a task that is predicted."""
    return lambda wildcards: [
        path.replace("{part}", part).format(**wildcards) for part in task_of(wildcards).parts
    ]


def task_parses(wildcards):
    """Prefixes of the parsed sentences of a part."""
    return CONFIG.task_parses(wildcards.benchmark, wildcards.task, wildcards.part)


def task_syntax(parts):
    """The annotations that a system reads of the parts that a function of the wildcards names: none, or a file each."""

    def files(wildcards):
        reads = guide_of(wildcards.system).reads
        return [of_task(f"ids/syntax.{part}.npy") for part in parts(wildcards)] if reads else []

    return files


def finetuning_need(name):
    return lambda wildcards: getattr(benchmark_of(wildcards).resources, name)


def finetuning_settings(wildcards):
    return CONFIG.nlu_settings(wildcards.benchmark, wildcards.task, wildcards.system)


wildcard_constraints:
    benchmark=any_of(CONFIG.benchmarks),
    task=any_of({task for entry in CONFIG.benchmarks.values() for task in entry.tasks}),
    part="[a-z_]+",
    number=r"[0-9]+",
