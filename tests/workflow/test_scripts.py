"""The whole workflow on raw text without spaces: with the tokeniser that its script takes, and by sentencepiece."""

import json
import random
import re

WORDS = (["医者は", "先生は", "子供は"], ["本を", "町を", "海を"], ["見る", "愛する", "聞く"])
ENGLISH = (
    ["The doctor", "The teacher", "The child"],
    ["sees", "loves", "hears"],
    ["a book", "a town", "a sea"],
)


def test_raw_japanese_becomes_a_table_and_a_page(project):
    config = project.config
    corpus = {
        "based_on": "demo",
        "languages": ["ja", "en"],
        "files": {split: f"mine/{split}.{{language}}" for split in ("train", "valid", "test")},
        "text": {"max_ratio": 6},
        "bpe": {"merges": 30},
        "training": {"max_epochs": 1, "average": 1},
    }
    pieces = {"text": {"max_ratio": 6, "tokeniser": "sentencepiece"}, "sentencepiece": {"vocab_size": 50}}
    config["corpora"] |= {"words": corpus, "pieces": corpus | pieces}
    config["experiments"] = {
        name: {"title": name, "corpus": name, "directions": ["ja-en"], "systems": [system], "seeds": [1]}
        for name, system in (("words", "transformer"), ("pieces", "grammar"))
    }
    config["tables"], config["targets"] = {}, ["words", "pieces"]
    scores = "results/words/ja-en/transformer/seed1/scores.json"
    (project.folder / "mine").mkdir()
    rng = random.Random(1)
    for split, count in (("train", 120), ("valid", 12), ("test", 12)):
        for language, parts, between, end in (("ja", WORDS, "", "。"), ("en", ENGLISH, " ", ".")):
            lines = (between.join(map(rng.choice, parts)) + end for _ in range(count))
            path = project.folder / f"mine/{split}.{language}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    project.snakemake("pieces", scores)
    results = project.folder / "results"
    tokens = (results / "words/ja-en/tokens/test.ja").read_text(encoding="utf-8").splitlines()
    assert all(4 <= len(line.split()) <= 8 for line in tokens)
    assert "Grammar" in (results / "tables/pieces.md").read_text(encoding="utf-8")
    assert (results / "report-pieces.html").exists()
    assert json.loads((project.folder / scores).read_text())["signatures"]
    model = "results/pieces/ja-en/grammar/seed1/average.pt"
    sources = (project.folder / "mine/test.ja").read_text(encoding="utf-8")
    trees = project.synmask("parse", "--model", model, stdin=sources).splitlines()
    words = [re.findall(r"([^() ]+)\)", tree) for tree in trees]
    pieces = (results / "pieces/ja-en/bpe/test.ja").read_text(encoding="utf-8").splitlines()
    assert [*map(len, words)] == [len(line.split()) for line in pieces]
    assert ["".join(line).replace("▁", "") for line in words] == [
        line.replace(" ", "") for line in sources.splitlines()
    ]
    hypotheses = (results / "pieces/ja-en/grammar/seed1/hypothesis.test.txt").read_text(encoding="utf-8")
    assert project.synmask("translate", "--model", model, stdin=sources) == hypotheses
