"""A whole training by fairseq's own command and by ours: time, memory, and the perplexity that it reaches.

    snakemake results/demo/de-en/bin/dict.en.txt && python benchmarks/loops.py
    python benchmarks/loops.py --corpus multi30k-small --epochs 1 --pairs 2200 --turns 1  # peaks of memory

The rival is what `fairseq-train` runs (fairseq 0.12.2): its own model, criterion, Adam, loop and checkpoints,
with the corpus's settings, on the same binarised data. Ours is `synmask train`. They take turns. Each is a
process of its own, with its start, validation after each epoch, and checkpoints.
Prints peak memory and the perplexity of the validation set after the last epoch, which tells whether the
models of one system are equally good; of several turns also medians of CPU seconds (user and system) and of
the turns' ratios.
"""

import argparse
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import torch

import machine
from machine import ROOT, TURNS, Times, run

STOCK = "fairseq-train"


def settings_of(corpus, direction, system, epochs, precision):
    """A run's settings as JSON, from config.yaml."""
    from synmask.pipeline.config.loading import load, project_files, read_all

    training = {"precision": precision} | ({"max_epochs": epochs, "average": 1} if epochs else {})
    plan = read_all(project_files(ROOT))
    plan["corpora"][corpus].setdefault("training", {}).update(training)
    return load(plan).run_settings(corpus, direction, system).model_dump_json()


def fairseq_train(data, place, source, target, settings):
    """Train as `fairseq-train` does, in this process."""
    from synmask.pipeline.run_settings import RunSettings
    from synmask.pipeline.translation.task import transformer_config  # isort: split

    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.optim.adam import FairseqAdamConfig
    from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootLRScheduleConfig
    from fairseq.tasks.translation import TranslationConfig
    from fairseq_cli.train import main as train
    from omegaconf import OmegaConf

    settings = RunSettings.model_validate_json(settings)
    training, batch = settings.training, settings.training.batch
    sections = {
        "common": {"no_progress_bar": True, "seed": 1, "cpu": True, "bf16": training.precision == "bf16"},
        "checkpoint": {"save_dir": str(place)},
        "dataset": {
            "num_workers": 0, "max_tokens": batch.tokens, "skip_invalid_size_inputs_valid_test": True,
        },
        "optimization": {
            "max_epoch": training.max_epochs, "lr": [training.lr], "clip_norm": training.clip_norm,
            "update_freq": [batch.gpus * batch.updates],
        },
        "distributed_training": {"distributed_world_size": 1},
    }  # fmt: skip
    cfg = OmegaConf.merge(OmegaConf.structured(FairseqConfig), sections)
    betas = str(tuple(training.adam_betas))
    parts = {
        "optimizer": (FairseqAdamConfig(adam_betas=betas, weight_decay=training.weight_decay), "adam"),
        "lr_scheduler": (
            InverseSquareRootLRScheduleConfig(
                warmup_updates=training.warmup_updates, warmup_init_lr=1e-7
            ),
            "inverse_sqrt",
        ),
        "criterion": (
            LabelSmoothedCrossEntropyCriterionConfig(label_smoothing=training.label_smoothing),
            "label_smoothed_cross_entropy",
        ),
        "task": (TranslationConfig(data=str(data), source_lang=source, target_lang=target), "translation"),
        "model": (transformer_config(settings), "transformer"),
    }  # fmt: skip
    for section, (part, name) in parts.items():
        part._name = name
        cfg[section] = part
    OmegaConf.set_struct(cfg, True)
    train(cfg)


def cut(data, place, languages, pairs):
    """A copy of binarised data with so many pairs of the training data."""
    from synmask.pipeline.training.binarise import read_binary, read_dictionary, write_binary

    shutil.copytree(data, place)
    for language in languages:
        name = f"train.{'-'.join(languages)}.{language}"
        words = read_dictionary(data / f"dict.{language}.txt")
        sentences = read_binary(data / name, words)
        write_binary(place / name, [sentences[number] for number in range(pairs)], len(words), name)
    return place


def trained(name, data, languages, settings, threads, times):
    """MB, and the validation perplexity after the last epoch; the time is a turn of `times`."""
    source, target = languages
    words = ["--data", str(data), "--source", source, "--target", target, "--settings", settings]
    with tempfile.TemporaryDirectory() as place:
        if name == STOCK:
            memory, output = run([__file__, "--stock", place, *words, "--threads", str(threads)], times)
            return memory, float(re.findall(r"valid on .*?\| ppl ([\d.]+)", output)[-1])
        words += ["--run", place, "--seed", "1", "--keep", "1", "--threads", str(threads)]
        memory, _ = run(["-m", "synmask", "train", *words], times)
        last = (Path(place) / "history.csv").read_text().splitlines()
        row = dict(zip(last[0].split(","), last[-1].split(","), strict=True))
        return memory, float(row["valid_ppl"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="demo", help="of config.yaml")
    parser.add_argument("--source", default="de")
    parser.add_argument("--target", default="en")
    parser.add_argument("--data", type=Path, help="its binarised text, if not below results/")
    parser.add_argument("--systems", nargs="+", default=["transformer", "grammar"])
    parser.add_argument("--epochs", type=int, help="if not those of the corpus")
    parser.add_argument("--pairs", type=int, help="train on the first so many")
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=("fp32", "bf16"))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--threads", type=int, default=1)
    for hidden in ("--stock", "--settings"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    languages = (args.source, args.target)
    data = args.data or ROOT / "results" / args.corpus / "-".join(languages) / "bin"
    if args.stock:
        torch.set_num_threads(args.threads)
        return fairseq_train(data, Path(args.stock), *languages, args.settings)
    if not data.exists():
        sys.exit(f"{data}: no such folder; make it with snakemake (see --help), or give --data")
    if args.pairs:
        folder = tempfile.TemporaryDirectory()  # goes with this process
        data = cut(data, Path(folder.name) / "bin", languages, args.pairs)
    contestants = [(STOCK, "transformer", precision) for precision in args.precisions]
    contestants += [(system, system, precision) for system in args.systems for precision in args.precisions]
    print(machine.described("torch", "fairseq", threads=args.threads), flush=True)
    torch.set_num_threads(args.threads)
    measured, times = {one: [] for one in contestants}, {one: Times() for one in contestants}
    for turn in range(args.turns):
        for number in range(len(contestants)):
            name, system, precision = one = contestants[(turn + number) % len(contestants)]
            settings = settings_of(args.corpus, "-".join(languages), system, args.epochs, precision)
            measured[one].append(trained(name, data, languages, settings, args.threads, times[one]))
    print(f"{args.corpus}, {'-'.join(languages)}\n")
    timed = args.turns > 1  # a time without its spread says little
    columns = ["CPU s (clock)", "of fairseq-train"] if timed else []
    columns = ["training", "precision", *columns, "MB", "validation perplexity"]
    print(f"| {' | '.join(columns)} |\n|---|---|{'---:|' * (len(columns) - 2)}")
    for one, turns in measured.items():
        memory, perplexity = map(statistics.median, zip(*turns, strict=True))
        cells = [times[one].shown(1), f"{times[one].of(times[contestants[0]])}"] if timed else []
        cells = [one[0], one[2], *cells, f"{memory:,.0f}", f"{perplexity:.2f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
