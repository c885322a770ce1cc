"""A corpus with `trees: corenlp` through Snakemake, with the real CoreNLP."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from synmask.pipeline.files import write_lines
from synmask.pipeline.syntax.treebank import read_trees

pytestmark = pytest.mark.xdist_group("corenlp")

GERMAN = (
    """
Der alte Mann füttert den hungrigen Hund.
Die Frau, die den Hund sieht, kauft ein rotes Auto.
Im Garten hinter dem Haus spielen zwei kleine Kinder.
Er sagte: „Ich komme morgen (vielleicht) nicht.“ {}
Wenn es regnet, bleiben wir zu Hause.
Am 3. Mai zahlte Dr. Müller 1.234,56 € & ging.
Das Buch, das ich dir gegeben habe, gehört meiner Schwester.
Hast du den Schlüssel gefunden?
Weder der Lehrer noch die Schüler wollten länger warten.
Nach dem Essen ging sie müde, aber zufrieden nach Hause.
""".format("und so weiter " * 12)
    .strip()
    .split("\n")
)  # one of more tokens than `max_tokens`

# Goes before the real Java, which takes most of its time to load the models and to compile: it parses each sentence once.
# `parsed` holds its answers, by the models and the words.
JAVA = """#!{python} -IS
import json, subprocess, sys
from pathlib import Path

java, parsed = [{java!r}, "-XX:TieredStopAtLevel=1", *sys.argv[1:]], Path({parsed!r})
program = next((place for place, word in enumerate(java) if word.endswith("/Parse.java")), None)
if program is None:
    sys.exit(subprocess.run(java).returncode)
questions = [line.split("\\t") for line in sys.stdin.buffer.read().decode().splitlines()]
known = json.loads(parsed.read_text()) if parsed.exists() else {{}}
answers = known.setdefault(" ".join(java[program + 2 :]), {{}})
if new := dict.fromkeys(words for _, words in questions if words not in answers):
    asked = "".join(f"{{number}}\\t{{words}}\\n" for number, words in enumerate(new))
    done = subprocess.run(java, input=asked.encode(), stdout=subprocess.PIPE, check=True)
    ready, *lines = done.stdout.decode().splitlines()
    told = dict(line.split("\\t", 1) for line in lines)
    answers |= {{"ready": ready}} | {{words: told[str(number)] for number, words in enumerate(new)}}
    parsed.write_text(json.dumps(known))
lines = [answers["ready"], *(f"{{number}}\\t{{answers[words]}}" for number, words in questions)]
sys.stdout.buffer.write("".join(f"{{line}}\\n" for line in lines).encode())
"""


@pytest.fixture(scope="session")
def parsed(tmp_path_factory):
    return tmp_path_factory.mktemp("parsed") / "answers.json"


@pytest.fixture
def mine(project, parsed):
    """The project with a lower-cased corpus of one's own, and a Java that parses no sentence twice."""
    project.record()
    (project.folder / "bin").mkdir()
    java = JAVA.format(python=sys.executable, java=shutil.which("java"), parsed=str(parsed))
    (project.folder / "bin/java").write_text(java)
    (project.folder / "bin/java").chmod(0o755)
    for split in ("train", "valid", "test"):
        for language in ("de", "en"):
            write_lines(project.folder / f"{split}.{language}", GERMAN)
    project.config["corpora"]["mine"] = {
        "languages": ["de", "en"],
        "files": {split: f"{split}.{{language}}" for split in ("train", "valid", "test")},
        "trees": "corenlp",
        "text": {"lowercase": True},
    }
    project.config["experiments"]["mine"] = {
        "title": "Mine",
        "corpus": "mine",
        "directions": ["de-en", "en-de"],
        "systems": ["grammar"],
        "tables": ["translation", "parsing"],
    }
    return project


def test_german_trees_of_lower_cased_tokens(mine, corenlp):
    mine.config["mirrors"] = {"corenlp": f"{corenlp.data_dir}/corenlp"}
    trees = "results/mine/de-en/syntax/valid.de.trees"
    mine.snakemake("--cores", "2", trees)
    tokens = [line.split() for line in (mine.folder / "results/mine/de-en/tokens/valid.de").open()]
    parsed = list(read_trees(mine.folder / trees))
    assert tokens[0] == ["der", "alte", "mann", "füttert", "den", "hungrigen", "hund", "."]
    assert [tree.leaves() for tree in parsed] == tokens
    assert (0, 3, "NP") in parsed[0].spans()
    assert parsed[0].tags() == ["DET", "ADJ", "NOUN", "VERB", "DET", "ADJ", "NOUN", "PUNCT"]
    heads = [
        list(map(int, line.split())) for line in (mine.folder / trees.replace(".trees", ".heads")).open()
    ]
    assert heads[0][:7] == [3, 3, 4, 0, 7, 7, 4]
    assert [len(sentence) for sentence in heads] == [len(sentence) for sentence in tokens]
    report = json.loads((mine.folder / trees.replace(".trees", ".json")).read_text())
    assert report["flat"] == {"empty": 0, "long": 0, "failed": 0}
    assert report["sentences"] == report["parsed"] == len(GERMAN)
    assert not mine.planned("--cores", "2", trees)  # nothing is left to do


def test_both_directions_share_the_parses(mine):
    jobs = mine.planned("mine")
    assert {output.split(",")[0] for rule, output in jobs if rule == "constituency"} == {
        "results/mine/de-en/syntax/valid.de.trees",
        "results/mine/de-en/syntax/valid.en.trees",
    }
    assert {Path(output).name for rule, output in jobs if rule == "download_file"} == {
        "stanford-corenlp-4.5.10.jar",
        "stanford-corenlp-4.5.10-models-german.jar",
        "stanford-corenlp-4.5.10-models-english.jar",
    }


def test_text_is_tokenised_again_only_where_its_tokens_lost_their_case(mine):
    read = "--input results/mine/de-en/{}/valid.de --tokens results/mine/de-en/tokens/valid.de"
    printed = mine.snakemake("-np", "results/mine/de-en/syntax/valid.de.trees").output
    assert read.format("text") in printed
    assert "--tokeniser moses" in printed
    mine.config["corpora"]["mine"]["text"]["lowercase"] = False
    printed = mine.snakemake("-np", "results/mine/de-en/syntax/valid.de.trees").output
    assert read.format("tokens") in printed
    assert "--tokeniser" not in printed


def test_downloads_fetch_the_jars(mine):
    mine.config["targets"] = ["mine"]
    mine.config["experiments"]["mine"]["directions"] = ["de-en"]
    jobs = mine.planned("download")
    assert {(rule, Path(output).name) for rule, output in jobs} == {
        ("download_file", "stanford-corenlp-4.5.10.jar"),
        ("download_file", "stanford-corenlp-4.5.10-models-german.jar"),
    }


def test_threads_memory_and_mirror_reach_the_commands(mine):
    plain = mine.snakemake("-np", "results/mine/de-en/syntax/valid.de.trees").output
    mine.config["corenlp"].update(threads=7, mem_mb=2500)
    (mine.folder / "mirror").mkdir()
    mine.config["mirrors"] = {"corenlp": "mirror"}
    changed = mine.snakemake("-np", "results/mine/de-en/syntax/valid.de.trees").output
    assert "--threads 7 --memory 2500" in changed
    assert "--mirror mirror" in changed
    assert "--mirror" not in plain


def test_a_system_that_reads_a_parser_trains_decodes_and_translates(mine, corenlp, check_loaded):
    """Training text is parsed before it is cleaned, and only what is kept counts."""
    for language in ("de", "en"):
        write_lines(mine.folder / f"train.{language}", GERMAN * 2)
    mine.config["data_dir"] = str(corenlp.data_dir)
    mine.config["corpora"]["mine"] |= {
        key: mine.config["corpora"]["demo"][key] for key in ("model", "training")
    }
    mine.config["corpora"]["mine"]["text"]["max_tokens"] = 30
    mine.config["experiments"]["mine"] |= {
        "systems": ["pascal"],
        "directions": ["en-de"],
        "tables": ["translation"],
    }
    run, pair = "results/mine/de-en/pascal/seed1", mine.folder / "results/mine/de-en"
    mine.snakemake("--cores", "2", f"{run}/hypothesis.test.txt")
    assert len((pair / "syntax/train.de.trees").read_text().splitlines()) == 2 * len(GERMAN)
    counts = json.loads((pair / "bin/syntax.train.de.json").read_text())
    assert counts == {"sentences": 2 * len(GERMAN) - 2, "without_heads": 0, "without_distances": 0}
    text = "".join(f"{line}\n" for line in GERMAN)
    translated = mine.synmask("translate", "--model", f"{run}/average.pt", "--threads", "1", stdin=text)
    assert translated == (mine.folder / run / "hypothesis.test.txt").read_text()
    assert check_loaded(mine) >= {"text", "subwords", "constituency", "annotate", "train", "decode"}
