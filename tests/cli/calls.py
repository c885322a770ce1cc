"""A valid call of every verb, in an order in which each finds what those before it have made.

IN/ is the folder of what was made, OUT/ where a call writes, RUN and TUNED the folders of the runs in them; @NAME is the JSON of `JSONS`. Calls that need a network,
CoreNLP or a published model are made without it: `UNABLE`.
"""

import json
import shlex
from itertools import pairwise

import torch

from demo_grammar import write_corpus
from demo_grammar.tasks import write_demo_task

GRAMMAR = {
    "bpe": "add", "bpe_dim": 8, "conv_layers": 1, "conv_kernel": 3, "attention": "published", "layers": 1,
    "relations": ["parent", "child"], "activation": "sigmoid", "calibration": "masked",
}  # fmt: skip
SYSTEM = {
    "guide": "grammar",
    "options": GRAMMAR,
    "mask_rate": 0.1,
    "mlm_weight": 0.3,
    "left_pad_source": False,
}
PLAIN = {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0}
TRAINING = {"max_epochs": 1, "lr": 0.001, "warmup_updates": 2}
RUN, TUNED = "results/demo/de-en/grammar/seed1", "results/nlu/acceptability/roberta/seed1"
JSONS = {
    "tokens": {"tokeniser": "moses", "lowercase": False},
    "prepared": {"tokeniser": "moses", "lowercase": False, "max_tokens": 60, "max_ratio": 4},
    "sizes": {"train": 40, "valid": [1, 12]},
    "settings": {
        "model": {"encoder_layers": 2, "decoder_layers": 1, "embed_dim": 8, "ffn_dim": 8, "heads": 2},
        "training": TRAINING | {"batch": {"gpus": 1, "updates": 1, "tokens": 400}},
        "system": SYSTEM,
    },
    "parser": {"tagger": "t", "parser": "p", "dependencies": None, "max_words": 100},
    "pairs": {"train": [1, 9], "valid": 2, "test": 2},
    "pretraining": {
        "model": {"layers": 1, "embed_dim": 8, "ffn_dim": 8, "heads": 2, "max_positions": 66},
        "training": TRAINING | {"batch": {"gpus": 1, "updates": 1, "tokens": 800}},
    },
    "continued": {"losses": ["phrase", "tree"], "training": TRAINING | {"total_updates": 9, "batch": {"gpus": 1, "updates": 1, "tokens": 400}}},
    "finetuning": {"task": "acceptability", "training": TRAINING | {"total_updates": 9}, "system": PLAIN},
    "cut": {"ratio": 0.15, "least": 3, "most": 6},
    "labels": [["grammar", "Grammar"]],
    "runs": [["de-en", "grammar", 1]],
    "columns": [{"corpus": "demo", "column": "de-en", "group": "", "runs": {"grammar": [1]}}],
    "task_labels": [["roberta", "RoBERTa"]],
    "task_columns": [{
        "corpus": "nlu", "column": "A", "group": "", "task": "acceptability", "part": "dev", "runs": {"roberta": [1]},
    }],
    "page": {
        "title": "R", "figures": ["IN/method.svg"],
        "experiments": [{
            "name": "demo", "title": "D", "systems": [["grammar", "Grammar"]],
            "columns": [{"corpus": "demo", "column": "de-en", "group": "", "runs": {"grammar": [1]}}],
            "tables": ["IN/table.md"], "figures": ["IN/curves.svg"],
        }],
    },
}  # fmt: skip

CALLS = """
text --name demo --source de --target en --splits train valid test --source-in IN/raw/train.de IN/raw/valid.de IN/raw/test.de --target-in IN/raw/train.en IN/raw/valid.en IN/raw/test.en --output OUT/. --settings @prepared --pairs @sizes
tokenise --input IN/raw/train.de --output OUT/train.tok --language de --settings @tokens --threads 1
subwords --input IN/. --source de --target en --sentencepiece '{"vocab_size":80}' --tokenisers none none --output OUT/pieces
subwords --input IN/. --source de --target en --merges 60 --vocabulary-threshold 2 --output OUT/.
annotate --subwords IN/bpe/valid.de --output OUT/syntax.npy --trees IN/raw/valid.de.trees --heads IN/raw/valid.de.heads
templates --input IN/. --source de --target en --train-trees IN/raw/train.en.trees --valid-trees IN/raw/valid.en.trees --settings @cut --output OUT/templates
train --data IN/bin --run OUT/RUN --source de --target en --settings @settings --seed 1 --keep 1 --again 1
average --run IN/RUN --data IN/bin --codes IN/bpe/codes --vocabulary IN/bpe/vocabulary.de --vocabulary-threshold 0 --tokenisers moses moses --output OUT/RUN/average.pt
decode --model IN/RUN/average.pt --inputs IN/bpe/valid.de IN/bpe/valid.de --outputs OUT/RUN/hypothesis.test OUT/RUN/hypothesis.valid --references IN/bpe/valid.en IN/bpe/valid.en --beam 2 --length-penalty 1 --max-tokens 400
predict-templates --model IN/RUN/average.pt --input IN/bpe/valid.de --output OUT/predicted --beam 2 --max-tokens 400
parse --model IN/RUN/average.pt --threads 1
parse --model IN/RUN/average.pt --subwords IN/bpe/valid.de --output OUT/RUN/trees.jsonl --distribution OUT/RUN/distribution.json --sentence 1
parseval IN/raw/valid.de.trees IN/raw/valid.de.trees
parseval --gold IN/raw/valid.de.trees --predicted IN/RUN/trees.jsonl --heads IN/raw/valid.de.heads --output OUT/RUN/parse.json --counts OUT/RUN/parse_counts.json
score IN/RUN/hypothesis.valid.txt IN/raw/valid.en --language en
score-run --run IN/RUN --splits test valid --references IN/raw/valid.en IN/raw/valid.en --reference-tokens IN/raw/valid.en IN/raw/valid.en --pairs IN/pairs.json
measure --run IN/RUN --metric ter --sources IN/raw/valid.de --references IN/raw/valid.en
translate --model IN/RUN/average.pt --beam 2 --threads 1
translate --model IN/RUN/average.pt IN/RUN/average.pt --input IN/raw/test.de --output OUT/translated.en --nbest 2 --scores --batch 5 --beam 2 --precision bf16 --threads 1
tree --model IN/RUN/average.pt --output OUT/one.svg "Der Arzt schläft ."
tree-page --gold IN/raw/valid.de.trees --trees IN/RUN/trees.jsonl --labels Grammar --title Trees --output OUT/page.html
table --title T --labels @labels --columns @columns --metrics bleu_tokenised sacrebleu --published workflow/published.yaml --scores IN/RUN/scores.json --parses --output OUT/table
parse-table --inputs IN/RUN/parse.json --output OUT/parsing --title T --labels @labels --columns @columns
curves --inputs IN/RUN/history.csv --labels @labels --output OUT/curves
distribution-figure --distribution IN/RUN/distribution.json --title T --output OUT/p_d
report --spec @page --captions workflow/report --output OUT/report.html
settings --corpus demo --direction de-en --system grammar
plan demo --configfile IN/mine.yaml --gpus 2
task-sentences --task acceptability --inputs IN/task/train.tsv IN/task/dev.tsv --output OUT/task.text --tokens OUT/task.tokens
pretraining-text --train IN/raw/train.en --valid IN/raw/valid.en --merges 40 --weights OUT/weights --output OUT/ids
pretrain --data IN/ids --weights IN/weights --run OUT/pretraining --settings @pretraining --seed 1 --again 1
encode-task --task acceptability --input IN/task/train.tsv --weights IN/weights --max-tokens 60 --output OUT/data/train.npz
encode-task --task acceptability --input IN/task/dev.tsv --weights IN/weights --max-tokens 60 --output OUT/data/dev.npz
annotate-task --task acceptability --input IN/task/dev.tsv --data IN/data/dev.npz --weights IN/weights --parses IN/task/dev
encode-parses --parses IN/task/train --weights IN/weights --max-tokens 60 --output OUT/parsed/train.npz
encode-parses --parses IN/task/dev --weights IN/weights --max-tokens 60 --output OUT/parsed/valid.npz
continue-pretraining --data IN/parsed --weights IN/weights --run OUT/continued --settings @continued --seed 1 --again 1
finetune --data IN/data --valid dev --weights IN/weights --run OUT/TUNED --settings @finetuning --seed 1 --again 1
predict --model IN/TUNED/best.pt --weights IN/weights --data IN/data/dev.npz --output OUT/TUNED/predictions.dev.txt
export --model IN/TUNED/best.pt --weights IN/weights --output OUT/exported
nlu-score --run IN/TUNED --task acceptability --parts dev --gold IN/task/dev.tsv
nlu-baselines --task acceptability --train IN/task/train.tsv --parts dev --gold IN/task/dev.tsv --corpus nlu --output OUT/baselines.json
table --title T --labels @task_labels --columns @task_columns --metrics glue --published workflow/published.yaml --scores --parses --tasks IN/TUNED/scores.json --output OUT/tasks
download --name demo --output OUT/test.de --mirror IN/raw
glue --task cola --part dev --sources IN/glue --output OUT/cola.tsv --rows 2
"""
UNABLE = """
prepare --name x --format nc11 --archives IN/no.tgz --output OUT/prepared --pairs @pairs
constituency --input IN/raw/valid.de --tokens IN/raw/valid.de --output OUT/parsed --language de --settings @parser --jars IN/no.jar
convert-roberta --input IN/raw --output OUT/roberta
glue-submission --benchmark IN/data --system roberta --seeds 1 --rows 2 2 2 2 2 2 2 2 2 2 --output OUT/submission.zip --summary OUT/submission.json
"""


TELLING_VERBS = ("decode", "predict-templates")  # they say how they get on
TRAINING_VERBS = ("train", "pretrain", "continue-pretraining", "finetune")  # and these keep what they have


def calls(text):
    """The words of each call."""
    text = text.replace("/RUN", f"/{RUN}").replace("/TUNED", f"/{TUNED}")
    return [
        [json.dumps(JSONS[word[1:]]) if word.startswith("@") else word for word in shlex.split(line)]
        for line in text.strip().splitlines()
    ]


def placed(words, given, output):
    """The words with the folders that they read from and write into."""
    return [word.replace("IN/", f"{given}/").replace("OUT/", f"{output}/") for word in words]


def prepare(folder):
    """Make the files for `CALLS` that no verb makes."""
    (folder / "README.md").write_text("Results\n<!-- table -->\n<!-- end of table -->\n")
    (folder / "mine.yaml").write_text("experiments: {demo: {seeds: [7]}}\n")
    write_corpus(folder / "raw", {"train": 40, "valid": 12, "test": 12}, packed="")
    write_demo_task(folder / "task", "acceptability", {"train": 24, "dev": 8}, packed="")
    (folder / "glue").mkdir()
    (folder / "glue/dev.tsv").write_text("g\t1\t\tA good one.\ng\t0\t*\tOne a bad.\n")


def spoil(folder):
    """Put into the current folder of a call what `BAD` names."""
    (folder / "empty").write_text("")
    (folder / "garbage").write_bytes(bytes(range(256)) * 9)
    (folder / "number.json").write_text("7")
    (folder / "list.json").write_text('[{"a": null}]')
    (folder / "folder").mkdir()
    torch.save(torch.ones(2), folder / "tensor.pt")


def mutations(words, draw):
    """A call's wrong variants: an option left out, its values wrong in all ways, one of several missing."""
    starts = [place for place, word in enumerate(words) if word.startswith("--")]
    for start, end in pairwise([*(starts or [0]), len(words)]):
        before, values, after = words[: start + 1], words[start + 1 : end], words[end:]
        yield [*before[:-1], *after]
        yield [*before, *after]
        if not values:
            continue
        bad = [wrong for wrong in BAD if (words[0], words[start], wrong) not in RIGHT]
        for wrong in (*bad, *(damaged_json(values[0], draw) if values[0][:1] in "[{" else ())):
            yield [*before, wrong, *values[1:], *after]
        yield [*before, *values, values[-1], *after]
        if values[0].startswith("OUT/"):
            yield [*before, "/dev/full", *values[1:], *after]
        if values[0].startswith("IN/"):
            yield [*before, f"CUT/{values[0]}", *values[1:], *after]
            yield [*before, f"ZERO/{values[0]}", *values[1:], *after]


BAD = (
    "", "nonsense", "x" * 50_000, "ä\n\t💥", "-1", "0", "1.5", "99999999999999999999", "nan", "null", "[]", "{}",
    '{"a": 1}', "[" * 9999, "nowhere", "folder", "empty", "garbage", "garbage/below", "number.json", "list.json",
    "tensor.pt", "/dev/null",
)  # fmt: skip


RIGHT = {("pretrain", "--settings", "{}")}  # RoBERTa-base, which trains for hours


DEFAULTED = (JSONS["settings"], JSONS["pretraining"])
DEFAULTS = {("model",), ("training",), ("training", "max_epochs")}


def damaged_json(text, draw):
    """JSON in which a key is missing or unknown, or a value is of a wrong kind, however deep."""
    places, whole = [*_places(json.loads(text))], json.loads(text)
    for place in draw.sample(places, len(places)):
        for wrong in (None, [], {}, "x", -1, 0, True, float("nan"), 10**30, _places):
            if whole in DEFAULTED and place in DEFAULTS and wrong in ({}, _places):
                continue  # right: a large model, or many epochs
            yield json.dumps(_changed(json.loads(text), place, wrong))
    if text.startswith("{"):
        yield json.dumps({**json.loads(text), "unknown": 1})


def _places(value, path=()):
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from _places(value[key], (*path, key))


def _changed(value, place, new):
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    if new is _places:
        del inner[place[-1]]
    else:
        inner[place[-1]] = new
    return value
