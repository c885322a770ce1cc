"""`synmask VERB …`: one verb a rule of the workflow; each also works by hand."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from synmask.files import UserError

Arguments = argparse.Namespace
Verb = Callable[[Arguments], None]


def main(words: list[str] | None = None) -> None:
    """Run one verb; a user's error is one line on stderr and exit code 1."""
    arguments = _parser().parse_args(words)
    try:
        arguments.verb(arguments)
    except UserError as error:
        sys.exit(f"synmask {arguments.verb_name}: {error}")
    except BrokenPipeError:  # the reader of a pipe went away: nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # no space, no permission, a folder that is a file
        sys.exit(f"synmask {arguments.verb_name}: {error.filename or 'writing'}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="synmask",
        description="The steps of the workflow, one verb each. `snakemake -np TARGET` prints the commands "
        "that a target needs; `synmask VERB --help` explains one.",
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for add in (_corpus_verbs, _text_verbs, _model_verbs, _evaluation_verbs, _report_verbs):
        add(verbs)
    return parser


def _add(verbs: argparse._SubParsersAction, name: str, verb: Verb, text: str, epilog: str = "") -> Callable:
    """Add a verb and return a shorthand for its options: paths unless `type` says otherwise, required."""
    parser = verbs.add_parser(name, help=text.split(";")[0].split(". ")[0], description=text, epilog=epilog)
    parser.set_defaults(verb=verb, verb_name=name)

    def option(flag: str, text: str, **how) -> None:  # noqa: ANN003
        if how.get("action") != "store_true":
            how.setdefault("type", Path)
            how.setdefault("required", "default" not in how)
        if how.get("default") is None and "default" in how:
            text += " (optional)"
        parser.add_argument(f"--{flag}", help=text, **how)

    return option


# ---- corpora -----------------------------------------------------------------------------------------------


def _corpus_verbs(verbs: argparse._SubParsersAction) -> None:
    option = _add(
        verbs, "demo-corpus", _demo_corpus, "Generate the demo corpus with its gold trees and heads."
    )
    option("output", "folder for {train,valid,test}.{de,en}, .trees and .heads")
    option(
        "settings",
        'sizes and seed: \'{"seed": 1, "train": 8000, "valid": 400, "test": 400}\'',
        type=json.loads,
    )

    option = _add(
        verbs,
        "download",
        _download,
        "Fetch one file of a corpus, checked and whole or not at all; an interrupted download goes on.",
    )
    option("name", "the corpus' name, for messages", type=str)
    option("url", "where its publisher keeps it", type=str)
    option("output", "where it goes")
    option("sha256", "its checksum", type=str, default=None)
    option("mirror", "folder or URL that holds the file instead", type=str, default=None)

    option = _add(
        verbs, "text", _text, "Check two aligned raw files (.gz or plain) and write them as clean plain text."
    )
    option("name", "the corpus' name, for messages", type=str)
    for side in ("source", "target"):
        option(f"{side}-in", f"raw {side} text")
        option(f"{side}-out", f"plain {side} text")


def _demo_corpus(a: Arguments) -> None:
    from synmask.corpora.demo import write_corpus

    sizes = dict(a.settings)
    write_corpus(a.output, seed=sizes.pop("seed"), sizes=sizes)


def _download(a: Arguments) -> None:
    from synmask.corpora.download import fetch

    fetch(a.name, a.url, a.output, sha256=a.sha256, mirror=a.mirror)


def _text(a: Arguments) -> None:
    from synmask.corpora.plain import write_pair

    count = write_pair(a.source_in, a.target_in, a.source_out, a.target_out, a.name)
    print(f"{a.name}: {count:,} pairs", file=sys.stderr)


# ---- text --------------------------------------------------------------------------------------------------


def _text_verbs(verbs: argparse._SubParsersAction) -> None:
    option = _add(
        verbs, "tokenise", _tokenise, "Tokenise plain text as Moses does; optionally lower-case it."
    )
    option("input", "plain text, a sentence a line")
    option("output", "tokens, separated by spaces")
    option("language", "its language code", type=str)
    option("settings", '\'{"tokenise": true, "lowercase": false}\'', type=json.loads)
    option("threads", "processes", type=int, default=1)

    option = _add(verbs, "clean", _clean, "Keep the pairs within limits of length and length ratio.")
    for side in ("source", "target"):
        option(f"{side}-in", f"{side} tokens")
        option(f"{side}-out", f"kept {side} tokens")
    option("settings", '\'{"min_tokens": 1, "max_tokens": 175, "max_ratio": 1.5}\'', type=json.loads)

    option = _add(
        verbs,
        "learn-bpe",
        _learn_bpe,
        "Learn joint BPE; write its codes and each file's sub-word vocabulary.",
    )
    option("inputs", "token files of all languages", nargs="+")
    option("codes", "output: the merge operations")
    option("vocabularies", "output: one file an input, 'sub-word count' a line", nargs="+")
    option("merges", "how many merge operations", type=int)

    option = _add(verbs, "apply-bpe", _apply_bpe, "Split words into sub-words.")
    option("input", "tokens")
    option("output", "sub-words; all but a word's last end in @@")
    option("codes", "the merge operations of learn-bpe")
    option("vocabulary", "the language's vocabulary of learn-bpe")
    option("vocabulary-threshold", "split rarer sub-words further; 0: no limit", type=int)
    option("threads", "processes", type=int, default=1)

    option = _add(verbs, "binarise", _binarise, "Write dictionaries and binary data as fairseq reads them.")
    option("text", "folder with {train,valid,test}.LANGUAGE in BPE")
    option("output", "folder for dict.LANGUAGE.txt and the data")
    _languages(option)


def _languages(option: Callable) -> None:
    option("source", "source language", type=str)
    option("target", "target language", type=str)


def _tokenise(a: Arguments) -> None:
    from synmask.text.tokenise import tokenise_file

    tokenise_file(a.input, a.output, a.language, threads=a.threads, **a.settings)


def _clean(a: Arguments) -> None:
    from synmask.text.clean import clean_files

    counts = clean_files(a.source_in, a.target_in, a.source_out, a.target_out, **a.settings)
    print(
        ", ".join(f"{fate.replace('_', ' ')}: {count:,}" for fate, count in counts.items()), file=sys.stderr
    )


def _learn_bpe(a: Arguments) -> None:
    from synmask.text.bpe import learn

    learn(a.inputs, a.codes, a.vocabularies, a.merges)


def _apply_bpe(a: Arguments) -> None:
    from synmask.text.bpe import apply_file

    apply_file(
        a.input,
        a.output,
        a.codes,
        vocabulary=a.vocabulary if a.vocabulary_threshold else None,
        vocabulary_threshold=a.vocabulary_threshold,
        threads=a.threads,
    )


def _binarise(a: Arguments) -> None:
    from synmask.engine.binarise import binarise

    binarise(a.text, a.output, a.source, a.target)


# ---- models ------------------------------------------------------------------------------------------------


def _model_verbs(verbs: argparse._SubParsersAction) -> None:
    option = _add(
        verbs,
        "settings",
        _settings,
        "Print the settings of a run as JSON, for --settings of `train`.",
        "Example: synmask settings --corpus demo --direction de-en --system grammar",
    )
    option("config", "configuration file", default=Path("config.yaml"))
    option("corpus", "a corpus of the configuration", type=str)
    option("direction", "source-target", type=str)
    option("system", "a system of the configuration", type=str)

    option = _add(
        verbs,
        "train",
        _train,
        "Train one system with one seed; called again it goes on after the last finished epoch, "
        "unless settings, data or code have changed.",
    )
    option("data", "folder of binarised data")
    option("run", "folder of the run: checkpoints/, history.csv, train.json")
    _languages(option)
    option("settings", "JSON, see `synmask settings`", type=json.loads)
    option("seed", "random seed", type=int)
    option("keep", "how many of the last epochs' models to keep for averaging", type=int)
    option("code", "source files whose change makes old checkpoints invalid", nargs="*", default=[])
    option("threads", "CPU threads a process; the same number gives the same bytes", type=int, default=1)
    option("processes", "data-parallel workers; default: one a visible GPU", type=int, default=None)

    option = _add(
        verbs, "average", _average, "Average the last epochs into one model file that stands alone."
    )
    option("run", "folder of the run")
    option("last", "how many epochs", type=int)
    option("data", "folder of binarised data (for its dictionaries)")
    option("codes", "the BPE codes")
    option("vocabulary", "the source vocabulary of learn-bpe")
    option("vocabulary-threshold", "as for apply-bpe", type=int)
    _languages(option)
    option("text", "the corpus' text settings as JSON", type=json.loads)
    option("settings", "the run's settings as JSON", type=json.loads)
    option("output", "the model file")

    option = _add(verbs, "decode", _decode, "Translate a BPE file by beam search.")
    option("model", "a model file of `average`")
    option("input", "source sentences in BPE")
    option("output", "prefix: .txt (detokenised), .tok (tokens), .json (time)")
    option("settings", '\'{"beam": 5, "length_penalty": 1.0, "max_tokens": 8000}\'', type=json.loads)
    option("threads", "CPU threads", type=int, default=1)

    option = _add(
        verbs,
        "translate",
        _translate,
        "Translate raw text from standard input with any trained system; a line in, a line out.",
        "Example: echo 'Ein Hund schläft.' | synmask translate --model results/…/seed1/average.pt",
    )
    option("model", "a model file of `average`")
    option("beam", "beam size", type=int, default=5)
    option("length-penalty", "below 1 favours short translations", type=float, default=1.0)
    option("threads", "CPU threads", type=int, default=os.cpu_count())


def _settings(a: Arguments) -> None:
    from synmask.config import load, read_yaml

    config = load(read_yaml(a.config), [a.config])
    for kind, name in (("corpora", a.corpus), ("systems", a.system)):
        if name not in getattr(config, kind):
            raise UserError(f"{a.config}: no {name!r} among the {kind}: {', '.join(getattr(config, kind))}")
    print(config.run_settings(a.corpus, a.direction, a.system))


def _train(a: Arguments) -> None:
    from synmask.engine.train import train

    train(
        a.data, a.run, a.source, a.target, a.settings, a.seed,
        keep=a.keep, code=a.code, threads=a.threads, processes=a.processes,
    )  # fmt: skip


def _average(a: Arguments) -> None:
    from synmask.engine.average import average, save_model
    from synmask.files import read_lines
    from synmask.text.bpe import frequent

    threshold = a.vocabulary_threshold
    text = a.text | {
        "source": a.source,
        "target": a.target,
        "codes": "\n".join(read_lines(a.codes)),
        "vocabulary": sorted(frequent(a.vocabulary, threshold)) if threshold else None,
    }
    save_model(a.output, average(a.run / "checkpoints", a.last), a.data, text, a.settings)


def _decode(a: Arguments) -> None:
    from synmask.engine.decode import decode_file

    decode_file(a.model, a.input, a.output, threads=a.threads, **a.settings)


def _translate(a: Arguments) -> None:
    from synmask.engine.decode import translate
    from synmask.files import read_lines

    lines = read_lines("/dev/stdin")
    for line in translate(a.model, lines, beam=a.beam, length_penalty=a.length_penalty, threads=a.threads):
        print(line)


# ---- evaluation --------------------------------------------------------------------------------------------


def _evaluation_verbs(verbs: argparse._SubParsersAction) -> None:
    option = _add(verbs, "score", _score, "Score a translation: sacreBLEU, BLEU on tokens, chrF.")
    option("hypothesis", "prefix of `decode`'s output")
    option("reference", "plain reference text")
    option("reference-tokens", "tokenised reference")
    option("lowercase", "compare without case", action="store_true")
    option("run", "what was run, as JSON: corpus, direction, system, seed, settings", type=json.loads)
    option("train", "train.json of the run")
    option("output", "scores.json")

    option = _add(verbs, "parse", _parse, "Induce distances, heights and heads of source sentences.")
    option("model", "a model file of `average` with a guide that induces syntax")
    option("input", "source sentences in BPE")
    option("output", "a JSON object a line")
    option("distribution", "output: P_D of one sentence, JSON")
    option(
        "sentence",
        "its number, from 1; default: the first of 8 to 14 words with a split one",
        type=int,
        default=None,
    )
    option("threads", "CPU threads", type=int, default=1)

    option = _add(
        verbs,
        "parseval",
        _parseval,
        "Score induced trees against gold trees, beside right-branching, random and other trivial trees.",
    )
    option("gold", "bracketed gold trees, one a line")
    option("predicted", "output of `parse`")
    option("run", "what was run, as JSON", type=json.loads)
    option("output", "parse.json")


def _score(a: Arguments) -> None:
    from synmask.evaluation.bleu import score
    from synmask.files import read_json, write_json
    from synmask.provenance import commit, versions

    sides = (f"{a.hypothesis}.txt", a.reference, f"{a.hypothesis}.tok", a.reference_tokens)
    result = score(*sides, lowercase=a.lowercase)
    made = {"versions": versions(), "commit": commit(), "command": " ".join(sys.argv)}
    write_json(a.output, a.run | read_json(a.train) | read_json(f"{a.hypothesis}.json") | result | made)


def _parse(a: Arguments) -> None:
    from synmask.engine.decode import parse_file

    parse_file(a.model, a.input, a.output, a.distribution, a.sentence, a.threads)


def _parseval(a: Arguments) -> None:
    from synmask.evaluation.parseval import evaluate_files
    from synmask.files import write_json

    write_json(a.output, a.run | evaluate_files(a.gold, a.predicted))


# ---- report ------------------------------------------------------------------------------------------------


def _report_verbs(verbs: argparse._SubParsersAction) -> None:
    for name, what, unit in (
        ("table", "translation scores", "scores.json"),
        ("parse-table", "parsing scores", "parse.json"),
    ):
        option = _add(
            verbs,
            name,
            _table,
            f"Make a table of {what}: mean and deviation over seeds, CSV, Markdown and LaTeX.",
        )
        option("inputs", f"{unit} of the runs", nargs="+")
        option("output", "prefix of .csv, .md and .tex")
        option("title", "heads the table", type=str)
        option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
        option("directions", "the directions in order", nargs="+", type=str)

    option = _add(verbs, "curves", _curves, "Plot training and validation loss by epoch.")
    option("inputs", "history.csv of the runs", nargs="+")
    option("runs", "system and seed of each input, as a JSON list of pairs", type=json.loads)
    option("output", "prefix of .svg, .pdf and .csv")

    option = _add(verbs, "bleu-figure", _bleu_figure, "Plot BLEU by system, with its spread over seeds.")
    option("inputs", "scores.json of the runs", nargs="+")
    option("labels", "the systems in order, as JSON pairs of name and label", type=_pairs)
    option("output", "prefix of .svg, .pdf and .csv")

    option = _add(verbs, "tree-figure", _tree_figure, "Draw one sentence's gold tree above the induced ones.")
    option("gold", "bracketed gold trees, one a line")
    option("trees", "output of `parse`, one file a system", nargs="+")
    option("labels", "what each of them is called", nargs="+", type=str)
    option("distribution", "output of `parse`: names the sentence")
    option("output", "prefix of .svg, .pdf and .csv")

    option = _add(
        verbs, "distribution-figure", _distribution_figure, "Draw P_D of one sentence as a heat map."
    )
    option("distribution", "output of `parse`")
    option("title", "heads the figure", type=str)
    option("output", "prefix of .svg, .pdf and .csv")


def _pairs(text: str) -> dict[str, str]:
    return dict(json.loads(text))


def _table(a: Arguments) -> None:
    from synmask.reporting import tables

    write = tables.write_table if a.verb_name == "table" else tables.write_parse_table
    outputs = [Path(f"{a.output}.{kind}") for kind in ("csv", "md", "tex")]
    write(a.inputs, *outputs, title=a.title, systems=a.labels, directions=a.directions)


def _curves(a: Arguments) -> None:
    from synmask.reporting.figures import curves

    curves({(system, seed): path for (system, seed), path in zip(a.runs, a.inputs, strict=True)}, a.output)


def _bleu_figure(a: Arguments) -> None:
    from synmask.reporting.figures import bleu_bars

    bleu_bars(a.inputs, a.output, a.labels)


def _tree_figure(a: Arguments) -> None:
    from synmask.files import read_json, read_lines
    from synmask.reporting.figures import trees
    from synmask.syntax.treebank import read_trees

    number = read_json(a.distribution)["sentence"] - 1
    induced = {}
    for label, path in zip(a.labels, a.trees, strict=True):
        row = json.loads(list(read_lines(path))[number])
        induced[label] = (row["tokens"], row["distances"])
    trees(list(read_trees(a.gold))[number], induced, a.output)


def _distribution_figure(a: Arguments) -> None:
    from synmask.files import read_json
    from synmask.reporting.figures import distribution

    value = read_json(a.distribution)
    distribution(value["tokens"], value["distribution"], a.output, a.title)


if __name__ == "__main__":
    main()
