"""Words and heads of RoBERTa's tasks, and the systems that read them, from text to predictions."""

import itertools
import json
from argparse import Namespace

import numpy as np
import pytest
import torch

from demo_grammar.tasks import write_demo_task
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.corpora.task_sentences import write_sentences
from synmask.pipeline.corpora.tasks import read_task, write_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.guidance import GUIDES, Guidance, option_values, options_from
from synmask.pipeline.roberta.encode import annotate_task, encode_examples
from synmask.pipeline.roberta.examples import read_encoded, read_syntax, write_encoded
from synmask.pipeline.roberta.model import HEAD_NAME, GuidedRoberta
from synmask.pipeline.roberta.predict import predict
from synmask.pipeline.roberta.sentences import pad_words
from synmask.pipeline.roberta.weights import RobertaShape, load_weights

SHAPE = RobertaShape(layers=2, embed_dim=16, ffn_dim=24, heads=2, max_positions=512)
TRAINING = {
    "max_epochs": 1, "sentences": 8, "lr": 1e-2, "total_updates": 40, "warmup_updates": 4, "adam_betas": [0.9, 0.98],
    "adam_eps": 1e-6, "weight_decay": 0.1, "clip_norm": 0.0, "dropout": 0.1, "attention_dropout": 0.1,
    "max_tokens": 512, "precision": "fp32",
}  # fmt: skip


def system(guide, **options):
    options = option_values(options_from(GUIDES[guide], options))
    return Guidance(guide=guide, options=options, mask_rate=0.0, mlm_weight=0.0)


SYSTEMS = [
    system("sla", start=0.5),
    system("syntax", start=0.5),
]
NAMES = ["sla", "topical"]


@pytest.fixture(scope="module")
def weights(small_roberta, demo_lines):
    """A folder with a small random RoBERTa for the demo's English."""
    return small_roberta(SHAPE, demo_lines, 150, std=0.3)


def arguments():
    return Namespace(**vars(SHAPE.settings()), dropout=0.0, attention_dropout=0.0)


def encoded(folder, task, part, weights, most=512):
    path = folder / f"ids/{part}.npz"
    write_encoded(path, encode_examples(read_task(task, folder / f"{part}.tsv"), task, weights, most))
    return path


@pytest.fixture(scope="module")
def paraphrases(weights, tmp_path_factory):
    """A generated task with its parses, encoded and annotated."""
    folder, sizes = tmp_path_factory.mktemp("paraphrases"), {"train": 16, "dev": 8}
    write_demo_task(folder, "paraphrase", sizes, seed=2, packed="")
    for part in sizes:
        path = encoded(folder, "paraphrase", part, weights)
        annotate_task(
            task="paraphrase",
            input=folder / f"{part}.tsv",
            data=path,
            weights=weights,
            parses=[folder / part],
        )
    return folder


def test_both_sentences_have_their_own_trees_and_marks_have_none(paraphrases, weights):
    path = paraphrases / "ids/train.npz"
    found = read_encoded(path)
    table = read_syntax(path, found)
    assert table.dtype == np.int16
    assert isinstance(table, np.memmap)
    dictionary, examples = (
        load_weights(weights).dictionary,
        read_task("paraphrase", paraphrases / "train.tsv"),
    )
    vocabulary = {str(n): token for token, n in json.loads((weights / "encoder.json").read_text()).items()}
    gold = {
        text: (tokens.split(), [int(head) for head in heads.split()])
        for text, tokens, heads in zip(
            *(read_lines(paraphrases / f"train.{e}") for e in ("text", "tokens", "heads")), strict=True
        )
    }
    for index, texts in enumerate(examples.texts):
        rows = found.part(table, index)
        marks = found[index] <= dictionary.eos()
        assert (rows[marks] == [-1, -1, 0, 0]).all()
        pieces = [
            "" if mark else vocabulary[dictionary[int(i)]]
            for i, mark in zip(found[index], marks, strict=True)
        ]
        for number, text in enumerate(texts, start=1):
            words, heads = gold[text]
            rows_of_word = rows[rows[:, 2] == number]
            starts = list(dict.fromkeys(rows_of_word[:, 0].tolist()))  # the demo's words never share a piece
            words_read = {
                s: "".join(p for p, r in zip(pieces, rows, strict=True) if r[0] == s).strip("Ġ")
                for s in starts
            }
            assert list(words_read.values()) == words
            head_of = dict(rows_of_word[:, :2].tolist())
            assert [starts.index(head_of[s]) + 1 if head_of[s] != s else 0 for s in starts] == heads
            assert [
                bool(flag) for flag in dict(zip(rows_of_word[:, 0], rows_of_word[:, 3], strict=True)).values()
            ] == [word in ".," for word in words]


def test_counts_and_cut_empty_and_unparsed_sentences(weights, tmp_path):
    rows = [
        ("The dog sees me.", "", "1"),
        ("The dog sees me.", "A\x08b sees.", "0"),
        ("We see. " * 200, "He \ud83d".encode(errors="ignore").decode() + "👍 sees", "0"),
    ]
    write_task("paraphrase", rows, tmp_path / "dev.tsv")
    assert write_sentences(
        task="mrpc",
        inputs=[tmp_path / "dev.tsv"],
        output=tmp_path / "1.text",
        tokens=tmp_path / "1.tok",
        number=1,
        files=1,
    ) == {"sentences": 5}
    texts = ["The dog sees me.", "", "A\x08b sees.", "We see. " * 200, "He 👍 sees"]
    assert list(read_lines(tmp_path / "1.text")) == texts
    assert list(read_lines(tmp_path / "1.tok"))[0::2] == ["The dog sees me .", "Ab sees .", "He 👍 sees"]
    long = ["We", "see", "."] * 200
    tokens = ["The dog sees me .", "", "Ab sees .", " ".join(long), "He 👍 sees"]
    heads = ["2 3 0 3 3", "", "2 0 2", " ".join(["0", *["1"] * 599]), "3 1 0"]
    trees = ["(S x)", "(FLAT)", "(S x)", "(FLAT (X We))", "(S x)"]
    for ending, column in (("tokens", tokens), ("heads", heads), ("trees", trees)):
        write_lines(tmp_path / f"1.{ending}", column)
    path = encoded(tmp_path, "paraphrase", "dev", weights)
    counts = annotate_task(
        task="paraphrase", input=tmp_path / "dev.tsv", data=path, weights=weights, parses=[tmp_path / "1"]
    )
    assert counts == {"sentences": 6, "empty": 1, "unparsed": 1, "words": 16, "not_found": 1}
    assert json.loads((tmp_path / "ids/syntax.dev.json").read_text()) == counts
    found = read_encoded(path)
    table = read_syntax(path, found)
    assert found.sizes[2] == 512
    last = found.part(table, 2)
    assert (last[last[:, 2] == 1][:, :2] == -1).all()
    assert (last[last[:, 2] == 2][:, 0] >= 0).all()
    assert found.part(table, 0)[-3:].tolist() == [[-1, -1, 0, 0]] * 3
    loaded, tokens = load_weights(weights), pad(found)
    for chosen in SYSTEMS:
        model = GuidedRoberta.with_head(loaded, arguments(), chosen, outputs=2)
        outputs, _ = model(
            tokens,
            annotations=pad_words([found.part(table, i) for i in range(3)]),
            classification_head_name=HEAD_NAME,
        )
        outputs.sum().backward()
        assert outputs.isfinite().all()


def test_sentences_are_shared_out_and_none_comes_twice(tmp_path):
    rows = [(f"s{i % 7}", f"s{i % 3}", "1") for i in range(20)]
    write_task("mrpc", rows, tmp_path / "dev.tsv")
    found = []
    for number in (1, 2, 3):
        write_sentences(
            task="mrpc",
            inputs=[tmp_path / "dev.tsv"] * 2,
            output=tmp_path / "part",
            tokens=tmp_path / "part.tok",
            number=number,
            files=3,
        )
        found.append(list(read_lines(tmp_path / "part")))
    assert [len(part) for part in found] == [3, 3, 1]
    assert sorted(itertools.chain(*found)) == sorted({text for row in rows for text in row[:2]})


def pad(found):
    rows = [torch.from_numpy(found[i].astype(np.int64)) for i in range(len(found))]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1)


def outputs(model, found, table):
    with torch.no_grad():
        read = pad_words([found.part(table, i) for i in range(len(found))])
        return model.eval()(pad(found), annotations=read, classification_head_name=HEAD_NAME)[0]


@pytest.mark.parametrize("chosen", SYSTEMS, ids=NAMES)
def test_without_parses_and_near_the_start_it_is_plain_roberta(paraphrases, weights, chosen):
    loaded, path = load_weights(weights), paraphrases / "ids/dev.npz"
    found = read_encoded(path)
    table = np.array(read_syntax(path, found))
    torch.manual_seed(1)
    guided = GuidedRoberta.with_head(loaded, arguments(), chosen, outputs=2)
    plain = GuidedRoberta.with_head(loaded, arguments(), system("none"), outputs=2)
    plain.load_state_dict(guided.state_dict(), strict=False)
    expected = outputs(plain, found, table)
    assert (outputs(guided, found, table) - expected).abs().max() > 1e-3
    nothing = table.copy()
    nothing[:, :2] = -1
    torch.testing.assert_close(outputs(guided, found, nothing), expected, rtol=0, atol=1e-6)
    near = chosen.model_copy(update={"options": chosen.options | {"start": 1e-8}})
    guided.encoder.sentence_encoder.guide = GuidedRoberta.with_head(
        loaded, arguments(), near, outputs=2
    ).encoder.sentence_encoder.guide
    torch.testing.assert_close(outputs(guided, found, table), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("chosen", SYSTEMS, ids=NAMES)
def test_it_is_fine_tuned_and_predicts(paraphrases, weights, tmp_path, chosen, tune):
    settings = FinetuningSettings(task="paraphrase", training=TRAINING, system=chosen)
    data = paraphrases / "ids"
    tune(data, tmp_path / "run", settings)
    predict(
        model=tmp_path / "run/best.pt", weights=weights, data=data / "dev.npz", output=tmp_path / "answers"
    )
    assert len(list(read_lines(tmp_path / "answers"))) == 8


def test_annotations_that_do_not_fit_are_one_line(paraphrases, weights, tmp_path, tune):
    settings = FinetuningSettings(task="paraphrase", training=TRAINING, system=SYSTEMS[0])
    for part in ("train", "dev"):
        (tmp_path / f"{part}.npz").symlink_to(paraphrases / f"ids/{part}.npz")
    part = tmp_path / "dev.npz"
    with pytest.raises(UserError, match=r"syntax\.dev\.npy: no such file; annotate the task again"):
        read_syntax(part, read_encoded(part))
    for part, other in (("train", "dev"), ("dev", "train")):
        (tmp_path / f"syntax.{part}.npy").symlink_to(paraphrases / f"ids/syntax.{other}.npy")
    with pytest.raises(UserError, match="annotations of other examples; annotate the task again"):
        tune(tmp_path, tmp_path / "run", settings)
    train = paraphrases / "train.tsv"
    with pytest.raises(UserError, match=r"train\.tsv: no parse of '.*'; parse the task again"):
        annotate_task(
            task="paraphrase",
            input=train,
            data=paraphrases / "ids/train.npz",
            weights=weights,
            parses=[paraphrases / "dev"],
        )
    with pytest.raises(UserError, match=r"dev\.npz: 8 examples, .*train\.tsv has 16; encode it again"):
        annotate_task(
            task="paraphrase",
            input=train,
            data=paraphrases / "ids/dev.npz",
            weights=weights,
            parses=[paraphrases / "train"],
        )


def test_a_sentence_finds_its_parse_after_a_file_of_lines(weights, tmp_path):
    """`read_lines` drops a carriage return at a line's end and a byte order mark at a file's start."""
    sentences = ["\ufeffthe dog sees it", "a cat sees it\r\r", "the cat sleeps\r", "\ufeffa dog sleeps"]
    write_task(
        "paraphrase",
        [(one, other, "0") for one, other in zip(sentences, sentences[::-1], strict=True)],
        tmp_path / "dev.tsv",
    )
    write_sentences(
        task="paraphrase",
        inputs=[tmp_path / "dev.tsv"],
        output=tmp_path / "p.text",
        tokens=tmp_path / "p.tok",
    )
    lines = [line.split() for line in read_lines(tmp_path / "p.text")]
    write_lines(tmp_path / "p.tokens", map(" ".join, lines))
    write_lines(tmp_path / "p.trees", (f"(S {' '.join(f'(X {word})' for word in line)})" for line in lines))
    write_lines(tmp_path / "p.heads", (" ".join(["0", *"1" * (len(line) - 1)]) for line in lines))
    data = encoded(tmp_path, "paraphrase", "dev", weights)
    counts = annotate_task(
        task="paraphrase", input=tmp_path / "dev.tsv", data=data, weights=weights, parses=[tmp_path / "p"]
    )
    assert counts == {"sentences": 8, "empty": 0, "unparsed": 0, "words": 28, "not_found": 0}
