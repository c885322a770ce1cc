"""Exported translation models, loaded by transformers."""

import random
import re
import sys
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    FSMTForConditionalGeneration,
    dynamic_module_utils,
)

from synmask.pipeline.cli import main
from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.translation.beam import BeamSearch, search_batches
from synmask.pipeline.translation.forced import log_probabilities
from synmask.pipeline.translation.inputs import encode_lines
from synmask.pipeline.translation.model_file import load_model

DOCS = Path(__file__).parents[2] / "docs/models.md"
LINES = ["a bb d", "jj ef", "ghi a cc cc d", "a", "bb jj ghi ef d a a cc", "cc d a ef ef"]
RAW = [
    "Die U-Bahn „fährt“, d.h. sie steht …",
    "It's R&D [a] 'b' 3,5 % – well-known.",
    "  a   bb",
    "Ende bb. ",
    "<s> a</s> <pad> <unk> madeupword0000 @@ a@@",  # text, though the model has symbols of these names
]


def export(model, folder):
    main(["export", "--model", str(model), "--output", str(folder)])
    return folder


@pytest.fixture(scope="module")
def varied(models, tmp_path_factory):
    """A model file whose parameters, <pad>'s too, are drawn so that translations differ, and one has no end."""
    path = tmp_path_factory.mktemp("varied") / "average.pt"
    saved = torch.load(models / "plain.pt", weights_only=True)
    model, *_ = load_model(models / "plain.pt")
    torch.manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                torch.nn.init.normal_(parameter, std=0.4)
    torch.save(saved | {"model": model.cpu().state_dict()}, path)
    return path


@pytest.fixture(scope="module")
def exported(varied, tmp_path_factory):
    return export(varied, tmp_path_factory.mktemp("exported"))


def batch(rows):
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1)
    return {"input_ids": ids, "attention_mask": ids.ne(1).long()}


def test_logits_and_translations_are_the_same(varied, exported):
    model, task, text, _ = load_model(varied)
    *_, split = text.encode(LINES)
    sources, found = encode_lines(split, 1024, task.src_dict), {}
    search = BeamSearch([model], task.tgt_dict, Decoding())
    for results in search_batches(model, search, task.sources(sources), 4000):
        found |= {number: hypotheses[0].tokens for number, hypotheses in results.items()}
    best = [found[number] for number in range(len(LINES))]
    assert len({tuple(ids.tolist()) for ids in best}) >= 5
    assert max(map(len, best)) == 201  # one that had to end
    assert min(map(len, best)) == 4

    theirs, loading_info = FSMTForConditionalGeneration.from_pretrained(exported, output_loading_info=True)
    assert not any(loading_info.values())
    read, before = batch(sources), batch([ids.roll(1) for ids in best])["input_ids"]
    with torch.no_grad():
        here, _ = model(read["input_ids"], read["attention_mask"].sum(1), before, {})
        there = theirs.eval()(**read, decoder_input_ids=before).logits
        made = theirs.generate(**read)
    assert (here - there)[before.ne(1)].abs().max() < 1e-5
    assert [row[row.ne(1)].tolist()[1:] for row in made] == [ids.tolist() for ids in best]


@pytest.fixture
def tokenizer(monkeypatch, tmp_path):
    """Load the tokenizer of a folder, with the code that lies there."""
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        monkeypatch.delitem(sys.modules, name)  # of another test's folder
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", tmp_path / "modules")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    return lambda folder: AutoTokenizer.from_pretrained(folder, trust_remote_code=True)


@pytest.mark.parametrize("lowercase", [False, True])
def test_the_tokenizer_splits_text_as_ours(varied, tokenizer, tmp_path, lowercase):
    saved = torch.load(varied, weights_only=True)
    saved["text"]["lowercase"] = lowercase
    name = [*"madeupword000", "0</w>"]  # it becomes one sub-word
    merges = [f"{''.join(name[:n])} {name[n]}" for n in range(1, len(name))]
    saved["text"]["codes"] += "".join(f"{merge}\n" for merge in merges)
    torch.save(saved, tmp_path / "average.pt")
    theirs = tokenizer(export(tmp_path / "average.pt", tmp_path / "out"))
    _, task, text, _ = load_model(tmp_path / "average.pt")
    *_, split = text.encode([*LINES, *RAW])
    assert theirs([*LINES, *RAW])["input_ids"] == [
        ids.tolist() for ids in encode_lines(split, 1024, task.src_dict)
    ]
    for line, pieces in zip([*LINES, *RAW], split, strict=True):
        marked = [piece[:-2] if piece.endswith("@@") else f"{piece}</w>" for piece in pieces.split()]
        assert theirs.tokenize(line) == marked
    ids = [task.tgt_dict.index(piece) for piece in ("jj", "g@@", "h@@", "i", "e@@", "f", "a", "</s>")]
    assert theirs.decode(ids, skip_special_tokens=True) == "jj ghi ef a"


@pytest.mark.parametrize(("source", "target"), [("char", "none"), ("moses", "char")])
def test_the_tokenizer_has_sentencepiece_s_pieces(with_pieces, tokenizer, tmp_path, source, target):
    path = with_pieces(tmp_path / "average.pt", de=source, en=target)
    theirs = tokenizer(export(path, tmp_path / "out"))
    _, task, text, _ = load_model(path)
    rng = random.Random(1)
    lines = [
        " ".join(rng.choices("abcdefghij", k=9)).replace(" ", rng.choice(["", " ", "  "])) for _ in range(990)
    ]
    lines += [*LINES, *RAW, "▁ a▁b ▁"]
    *_, split = text.encode(lines)
    assert theirs(lines)["input_ids"] == [ids.tolist() for ids in encode_lines(split, 1024, task.src_dict)]
    plain = [" ".join(line.split()) for line in lines[:990]]
    labels = theirs(text_target=plain)["input_ids"]
    assert [theirs.decode(ids, skip_special_tokens=True) for ids in labels] == plain
    theirs.save_pretrained(tmp_path / "again")
    assert tokenizer(tmp_path / "again")(lines)["input_ids"] == theirs(lines)["input_ids"]


def test_the_tokenizer_has_the_rules_of_its_languages(varied, tokenizer, tmp_path):
    saved = torch.load(varied, weights_only=True)
    saved["text"] |= {"source": "fin", "target": "cs"}
    torch.save(saved, tmp_path / "average.pt")
    theirs = tokenizer(export(tmp_path / "average.pt", tmp_path / "out"))
    words = "".join(theirs.tokenize("EU:ssa on 中文.")).replace("</w>", " ").split()
    assert words == ["EU:ssa", "on", "中文", "."]
    pieces = [f"{word}</w>" for word in ["Tým", "má", "11", "hráčů", "ve", "věku", "20"]]
    assert theirs.convert_tokens_to_string(pieces) == "Tým má 11 hráčů ve věku 20"


def test_translations_become_labels_and_one_step_of_fine_tuning_lowers_their_loss(
    varied, tokenizer, tmp_path
):
    """Labels are the target's ids, so that the loss of one pair is the mean log-probability of its sub-words."""
    saved = torch.load(varied, weights_only=True)
    first, *rest = saved["dictionaries"]["target"].splitlines(keepends=True)
    saved["dictionaries"]["target"] = "".join([*rest, first])  # unlike the source's
    torch.save(saved, tmp_path / "average.pt")
    folder = export(tmp_path / "average.pt", tmp_path / "out")
    theirs = tokenizer(folder)
    model, task, text, _ = load_model(tmp_path / "average.pt")
    *_, split = text.encode(LINES)
    sources, targets = (encode_lines(split, 1024, one) for one in (task.src_dict, task.tgt_dict))
    assert any(one.tolist() != other.tolist() for one, other in zip(sources, targets, strict=True))
    made = theirs(LINES, text_target=LINES)
    assert made["labels"] == [ids.tolist() for ids in targets]
    assert made["input_ids"] == theirs(LINES)["input_ids"] == [ids.tolist() for ids in sources]
    theirs.padding_side = "left"
    assert theirs(text_target=LINES[2:4], padding=True)["input_ids"][1][-1] == task.tgt_dict.pad()
    theirs.padding_side = "right"

    learner = FSMTForConditionalGeneration.from_pretrained(folder).eval()
    collate = DataCollatorForSeq2Seq(theirs, model=learner)
    (expected,) = log_probabilities(model, task.sources(sources[:1], references=targets[:1]), 4000)
    loss = learner(**collate([theirs(LINES[0], text_target=LINES[0])])).loss
    assert loss.item() == pytest.approx(-expected / len(targets[0]), abs=1e-4)  # it is rounded
    loss.backward()
    torch.optim.SGD(learner.parameters(), lr=1e-3).step()
    assert learner(**collate([theirs(LINES[0], text_target=LINES[0])])).loss < loss


def test_the_example_of_the_docs(varied, tokenizer, tmp_path, monkeypatch, capsys):
    export(varied, tmp_path / "exported")
    monkeypatch.chdir(tmp_path)
    exec(
        re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8").partition("### Translation")[2], re.S)[0],
        {},
    )
    assert re.fullmatch(r"\['.+', '.+'\]\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary": ["a", "b"]}, "have a vocabulary_threshold"),
        ({"tokeniser": {"de": "moses", "en": "corenlp"}}, "its target is tokenised by 'corenlp'"),
    ],
)
def test_no_tokenizer_where_it_would_split_otherwise(varied, tmp_path, capsys, change, message):
    saved = torch.load(varied, weights_only=True)
    saved["text"] |= change
    torch.save(saved, tmp_path / "average.pt")
    folder = export(tmp_path / "average.pt", tmp_path / "out")
    assert message in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "config.json", "generation_config.json", "model.safetensors", "vocab-src.json",
        "vocab-tgt.json",
    }  # fmt: skip
