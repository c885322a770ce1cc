"""The whole workflow on raw text without spaces, with the tokeniser that its script takes."""

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
    config["corpora"]["mine"] = {
        "based_on": "demo",
        "languages": ["ja", "en"],
        "files": {split: f"mine/{split}.{{language}}" for split in ("train", "valid", "test")},
        "text": {"max_ratio": 6},
        "bpe": {"merges": 30},
    }
    config["corpora"]["mine"]["training"] = {"max_epochs": 1, "average": 1}
    mine = {"title": "Mine", "corpus": "mine", "directions": ["ja-en"], "systems": ["transformer", "grammar"]}
    config["experiments"] = {"mine": mine | {"seeds": [1]}}
    config["tables"], config["targets"] = {}, ["mine"]
    (project.folder / "mine").mkdir()
    rng = random.Random(1)
    for split, count in (("train", 120), ("valid", 12), ("test", 12)):
        for language, parts, between, end in (("ja", WORDS, "", "。"), ("en", ENGLISH, " ", ".")):
            lines = (between.join(map(rng.choice, parts)) + end for _ in range(count))
            path = project.folder / f"mine/{split}.{language}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    project.snakemake()
    results = project.folder / "results"
    tokens = (results / "mine/ja-en/tokens/test.ja").read_text(encoding="utf-8").splitlines()
    assert all(4 <= len(line.split()) <= 8 for line in tokens)
    assert "Grammar" in (results / "tables/mine.md").read_text(encoding="utf-8")
    assert (results / "report.html").exists()
    model = "results/mine/ja-en/grammar/seed1/average.pt"
    tree = project.synmask("parse", "--model", model, stdin="医者は海を見る。\n")
    assert re.findall(r"([^() ]+)\)", tree) == ["医者", "は", "海", "を", "見る", "。"]
