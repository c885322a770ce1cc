"""Verbs of language understanding: RoBERTa's weights, pre-training, fine-tuning, predictions."""

import sys
from pathlib import Path

from synmask.pipeline.cli.options import (
    CountOption,
    Gpus,
    Identity,
    Json,
    Some,
    Switch,
    TaskName,
    Threads,
    TrainingOptions,
    run_of,
    tell,
    together,
)
from synmask.pipeline.config.benchmarks import ContinuedRun, FinetuningSettings, PretrainingRun
from synmask.pipeline.files import all_writing, json_text, read_lines
from synmask.pipeline.gpus import lease


def convert_roberta(*, input: Path, output: Path) -> None:
    """Convert a RoBERTa in Hugging Face's format to a weights folder.

    Args:
        input: Folder with config.json, model.safetensors, and vocab.json, merges.txt or tokenizer.json.
        output: The weights folder: model.pt, dict.txt, encoder.json, vocab.bpe.
    """
    from synmask.pipeline.roberta.huggingface import convert_huggingface

    print(convert_huggingface(input, output), file=sys.stderr)


def learn_gpt2_bpe(*, text: Some[Path], merges: CountOption, output: Path) -> None:
    """Learn a byte-level BPE in GPT-2's format.

    Args:
        text: Plain text files.
        merges: How many merge operations.
        output: Folder for encoder.json, vocab.bpe and dict.txt.
    """
    from synmask.pipeline.text.gpt2 import learn

    learn([line for path in text for line in read_lines(path)], merges, output)


def encode_text(*, train: Some[Path], valid: Some[Path], weights: Path, output: Path) -> None:
    """Write text as ids, for `pretrain`.

    Args:
        train: Plain text files to train on.
        valid: Plain text files to validate on.
        weights: Folder with encoder.json, vocab.bpe and dict.txt.
        output: Folder for {train,valid}.{bin,idx}.
    """
    from synmask.pipeline.roberta.pretrain import encode_text

    encode_text({"train": train, "valid": valid}, weights, output)


def pretrain(
    *,
    data: Path,
    weights: Path,
    run: Path,
    settings: Json[PretrainingRun],
    identity: Identity = None,
    training: TrainingOptions,
) -> None:
    """Pre-train a RoBERTa as a masked language model.

    Run it again to continue where it stopped. On SIGTERM, SIGHUP or Ctrl-C it saves and exits with 75.

    Args:
        data: Output of `encode-text`.
        weights: Folder with dict.txt; model.pt is written there.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json.
        settings: Model and training; `snakemake -np TARGET` shows them.
    """
    from synmask.pipeline.roberta.pretrain import pretrain

    with lease(training.gpus):
        pretrain(data, run, weights, settings, identity=run_of(identity), **training.how())


def encode_parses(*, parses: Some[Path], weights: Path, max_tokens: CountOption, output: Path) -> None:
    """Write parsed sentences as ids, with their dependency heads, for `continue-pretraining`.

    Args:
        parses: Prefixes of parsed sentences: PREFIX.text, .tokens, .trees, .heads.
        weights: A weights folder.
        max_tokens: Truncate longer sentences.
        output: PART.npz; beside it syntax.PART.npy and, with counts, .json.
    """
    from synmask.pipeline.roberta.task_syntax import encode_parses

    tell(encode_parses(parses, weights, max_tokens, output))


def continue_pretraining(
    *,
    data: Path,
    weights: Path,
    run: Path,
    settings: Json[ContinuedRun],
    identity: Identity = None,
    training: TrainingOptions,
) -> None:
    """Pre-train a RoBERTa further on parsed sentences, by SynCLM's contrastive losses.

    Run it again to continue where it stopped. On SIGTERM, SIGHUP or Ctrl-C it saves and exits with 75.

    Args:
        data: Folder with train.npz and valid.npz of `encode-parses`.
        weights: The weights folder to start from.
        run: Folder of the run: checkpoints/, history.csv, train.json; it becomes a weights folder.
        settings: Losses and training; `snakemake -np TARGET` shows them.
    """
    from synmask.pipeline.roberta.continued import continue_pretraining

    with lease(training.gpus):
        continue_pretraining(data, weights, run, settings, identity=run_of(identity), **training.how())


def encode_task(*, task: TaskName, input: Path, weights: Path, max_tokens: CountOption, output: Path) -> None:
    """Write one part of a task, or a test set, as ids for RoBERTa.

    Args:
        input: Output of `glue` or `demo-task`.
        weights: Folder with encoder.json, vocab.bpe and dict.txt.
        max_tokens: Truncate longer examples.
        output: PART.npz.
    """
    from synmask.pipeline.corpora.tasks import read_task
    from synmask.pipeline.roberta.encoded import encode_file, write_encoded

    write_encoded(output, encode_file(read_task(task, input, test=True), task, weights, max_tokens))


def task_sentences(
    *, task: TaskName, inputs: Some[Path], output: Path, number: CountOption = 1, files: CountOption = 1
) -> None:
    """Write each distinct sentence of a task once, for a parser.

    Args:
        inputs: Outputs of `glue`, one per part.
        output: One sentence per line.
        number: Which of the files to write, from 1.
        files: Into how many files of similar length the sentences are split.
    """
    from synmask.pipeline.corpora.tasks import write_sentences

    count = write_sentences(task, inputs, output, number, files)
    print(f"{task}: {count:,} different sentences", file=sys.stderr)


def annotate_task(*, task: TaskName, input: Path, data: Path, weights: Path, parses: Some[Path]) -> None:
    """Write words and dependency heads of a part's sub-words, for systems that read them.

    Args:
        input: Output of `glue` or `demo-task`.
        data: Output of `encode-task`, PART.npz; makes syntax.PART.npy and, with counts, .json.
        weights: Folder with encoder.json and vocab.bpe.
        parses: Prefixes of parsed sentences: PREFIX.text, .tokens, .trees, .heads.
    """
    from synmask.pipeline.roberta.task_syntax import annotate_task

    tell(annotate_task(task, input, data, weights, parses))


def finetune(
    *,
    data: Path,
    valid: str,
    weights: Path,
    keep_checkpoints: Switch = 1,
    run: Path,
    settings: Json[FinetuningSettings],
    identity: Identity = None,
    training: TrainingOptions,
) -> None:
    """Fine-tune one system on one task with one seed; keep the model of the best epoch.

    Run it again to continue where it stopped. On SIGTERM, SIGHUP or Ctrl-C it saves and exits with 75.

    Args:
        data: Folder with PART.npz of each part, and syntax.PART.npy if the system reads it.
        valid: The part that chooses the best epoch.
        weights: A folder with RoBERTa's weights.
        keep_checkpoints: 0: remove all but the best epoch's model.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json, best.pt.
        settings: Task, training and system; `snakemake -np TARGET` shows them.
    """
    from synmask.pipeline.roberta.finetune import finetune

    with lease(training.gpus):
        how = {"keep_checkpoints": bool(keep_checkpoints), "identity": run_of(identity)} | training.how()
        finetune(data, valid, run, weights, settings, **how)


def predict(
    *,
    model: Path,
    weights: Path,
    data: Path,
    output: Path,
    threads: Threads = 1,
    gpus: Gpus = 0,
    identity: Identity = None,
) -> None:
    """Predict the answers to a task: one label or number per line.

    Args:
        model: best.pt of a fine-tuning.
        weights: The weights that its training started from.
        data: PART.npz.
        output: Text, one line per example.
    """
    from synmask.pipeline.roberta.finetune import predict

    with lease(gpus):
        predict(model, weights, data, output, threads, identity=run_of(identity))


def predict_test(
    *,
    task: TaskName,
    valid: str,
    models: Some[Path],
    scores: Some[Path],
    weights: Path,
    data: Path,
    output: Path,
    chosen: Path,
    threads: Threads = 1,
    gpus: Gpus = 0,
    identity: Identity = None,
) -> None:
    """Predict the answers to a test set with the seed that is best on the development set.

    Args:
        valid: The part that chooses.
        models: best.pt of each seed.
        scores: scores.json of each seed.
        weights: The weights that their training started from.
        data: PART.npz.
        output: Text, one line per example.
        chosen: Output: the seed, and the scores of all, as JSON.
    """
    from synmask.pipeline.evaluation.submission import best_seed
    from synmask.pipeline.roberta.finetune import predictions

    runs = together(models=models, scores=scores)
    best = best_seed(task, valid, [path for _, path in runs])
    whose = run_of(identity)
    whose |= {"seed": best["seed"]} if whose else {}
    with lease(gpus):
        lines = predictions(models[best.pop("place")], weights, data, threads, identity=whose)
    with all_writing([output, chosen]) as (answers, said):
        answers.writelines(f"{line}\n" for line in lines)
        said.write(json_text(best))
