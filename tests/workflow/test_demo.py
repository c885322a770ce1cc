"""The whole chain, in a tiny setting, through Snakemake. One worker runs these: they share what was built."""

import copy
import csv
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sacrebleu.metrics import BLEU

from synmask.pipeline.files import read_lines, write_lines

pytestmark = pytest.mark.xdist_group("demo")
RUNS = "results/demo/de-en"


@pytest.fixture
def restore(built):
    """Undo what a test changes in the configuration."""
    before = json.dumps(built.config)
    yield
    built.config = json.loads(before)


def test_everything_is_there(built):
    for system in ("transformer", "grammar"):
        run = built.folder / RUNS / system / "seed1"
        scores = json.loads((run / "scores.json").read_text())
        for split, sentences in (("valid", 20), ("test", 21)):  # not the same text
            hypotheses = (run / f"hypothesis.{split}.txt").read_text().splitlines()
            references = (built.folder / RUNS / f"text/{split}.en").read_text().splitlines()
            assert len(hypotheses) == len(references) == sentences
            expected = BLEU().corpus_score(hypotheses, [references]).score
            assert scores["scores"][split]["sacrebleu"] == pytest.approx(expected)
            assert scores["decoded_tokens"][split] > sentences
        assert scores["seed"] == 1
        assert scores["system"] == system
        assert scores["settings"]["training"]["max_epochs"] == 2
        assert scores["parameters"] > 0
        assert {"python", "torch", "fairseq"} <= scores["versions"].keys()
        assert scores["commit"]
        assert scores["decoding"]["beam"] == 5
        record = json.loads((run / "train.json").read_text())
        whose = {"corpus": "demo", "direction": "de-en", "system": system, "seed": 1, "averaged_epochs": 2}
        assert record | whose | {"settings": scores["settings"]} == record
        [stamp] = (run / "checkpoints").glob("*/stamp.json")
        assert record | json.loads(stamp.read_text()) == record
        assert len(list(csv.DictReader((run / "history.csv").open()))) == 2
    table = (built.folder / "results/tables/demo.md").read_text()
    assert table.index("| Transformer ") < table.index("| Grammar ")  # as in the experiment
    assert "by a paired bootstrap over sentences and seeds (1,000 samples)" in table
    assert "parameters (M)" in (built.folder / "results/tables/demo-cost.md").read_text()
    for name in ("demo-de-en-curves", "demo-de-en-distribution"):
        ElementTree.parse(built.folder / f"results/figures/{name}.svg")
    parse = json.loads((built.folder / RUNS / "grammar/seed1/parse.json").read_text())
    assert parse["protocols"].keys() == {"words", "paper", "evalb"}
    for name, protocol in parse["protocols"].items():
        assert protocol["sentences"] + protocol["skipped"] == 20 - parse["unparsed"]
        leaves = "" if name == "words" else "-with-punctuation"
        rows = {"induced", f"right-branching{leaves}", f"random{leaves}", "oracle"}
        assert rows <= protocol["rows"].keys()
    assert parse["dependencies"]["words"] > 100
    assert {"python", "torch"} <= parse["versions"].keys()
    assert parse["commit"]
    parsing = (built.folder / "results/tables/demo-parsing.md").read_text()
    for protocol in ("words", "paper", "evalb", "dependencies"):
        assert f"protocol “{protocol}”" in parsing
    page = (built.folder / "results/figures/demo-de-en-trees.html").read_text()
    assert page.count('<details class="tree-sentence"') == 20 - parse["unparsed"]
    assert not (built.folder / RUNS / "transformer/seed1/trees.jsonl").exists()


def test_odd_sentences_pass_all_steps(built):
    """Empty lines, single words, punctuation alone, repeated sentences (conftest.ODD)."""
    empty = [not line for line in read_lines(built.folder / "demo/de-en/test.de.gz")]
    assert sum(empty) == 3
    for ending in ("txt", "tok"):
        translated = read_lines(built.folder / f"{RUNS}/grammar/seed1/hypothesis.test.{ending}")
        assert not any(line for line, none in zip(translated, empty, strict=True) if none)
    parse = json.loads((built.folder / f"{RUNS}/grammar/seed1/parse.json").read_text())
    assert parse["unparsed"] == sum(empty)
    assert parse["punctuation"]["by_characters"] == 2
    page = (built.folder / "results/figures/demo-de-en-trees.html").read_text()
    assert '"tree-text" dir="auto">14. Ja<' in page
    assert not re.search(r"tree-text\" dir=\"auto\">\d+\. <", page)
    assert "(no words)" in built.synmask("tree", "--system", "grammar", "--number", "12")


def test_the_page_shows_what_was_run(built, open_page):
    script = """return JSON.stringify({
        width: document.scrollingElement.scrollWidth,
        missing: document.querySelectorAll(".missing").length,
        tables: document.querySelectorAll(".table table").length > 1,
        pictures: [...document.querySelectorAll("img")].filter((e) => e.naturalWidth > 0).length,
        runs: document.querySelectorAll(".card").length,
        result: document.querySelector(".effects h2").textContent,
    })"""
    page = open_page(built.folder / "results/report.html", script, width=400)
    assert not page.console
    content = json.loads(page.result)
    assert content.pop("result").startswith("De→En, sacreBLEU: difference from Transformer (")
    assert content == {"width": 400, "missing": 0, "tables": True, "pictures": 3, "runs": 2}


def test_an_experiment_has_a_page_of_its_own(built):
    assert built.planned("demo") == {("page", "results/report-demo.html")}


def test_the_same_command_again_does_nothing(built):
    assert "Nothing to be done" in built.snakemake().output


def change_grammar(project):
    project.config["systems"]["grammar"]["options"]["conv_kernel"] = 5


def test_an_option_reruns_its_system_and_what_depends_on_it(built, restore):
    change_grammar(built)
    jobs = built.planned()
    assert {rule for rule, _ in jobs} == {
        "train", "average", "decode", "score", "parse", "parseval", "table", "parse_table", "page",
        "curves", "tree_page", "distribution_figure",
    }  # fmt: skip
    runs = {output for rule, output in jobs if rule in ("train", "average", "decode", "score")}
    assert runs
    assert all("/grammar/" in output for output in runs)


def test_a_new_test_text_trains_nothing(built, tmp_path):
    """It makes all text again, and trainings end at once, for theirs has the same bytes."""
    copied = copy.copy(built)
    copied.folder, copied.loaded = tmp_path / "project", None
    shutil.copytree(built.folder, copied.folder)
    text = copied.folder / "demo/de-en/test.de.gz"
    write_lines(text, [f"{line} Ja ." for line in read_lines(text)])
    run = f"{RUNS}/grammar/seed1"
    planned = {rule for rule, _ in copied.planned(f"{run}/scores.json")}
    assert planned == {"text", "subwords", "train", "average", "decode", "score"}
    before = (copied.folder / run / "history.csv").read_bytes()
    copied.snakemake(f"{run}/train.json")
    assert "all 2 epochs are done" in (copied.folder / run / "train.log").read_text().splitlines()[-1]
    assert (copied.folder / run / "history.csv").read_bytes() == before
    assert (copied.folder / RUNS / "bpe/test.de").read_text() != (
        built.folder / RUNS / "bpe/test.de"
    ).read_text()


def test_a_system_that_reads_a_parser_gets_annotations(built):
    built.snakemake(f"{RUNS}/pascal/seed1/scores.json")
    pair = built.folder / RUNS
    for split, lines in (
        ("train", "clean/train.de"),
        ("valid", "tokens/valid.de"),
        ("test", "tokens/test.de"),
    ):
        counts = json.loads((pair / f"bin/syntax.{split}.de.json").read_text())
        sentences = len((pair / lines).read_text().splitlines())
        empty = sum(not line for line in (pair / lines).read_text().splitlines())
        assert counts == {"sentences": sentences, "without_heads": empty, "without_distances": empty}
    kept = (pair / "clean/kept.de-en").read_text().split()
    tokens = (pair / "tokens/train.de").read_text().splitlines()
    assert [tokens[int(number) - 1] for number in kept] == (pair / "clean/train.de").read_text().splitlines()
    assert (pair / "pascal/seed1/scores.json").exists()
    code = built.folder / "src/synmask/pipeline/syntax/annotations.py"
    before = code.read_text()
    code.write_text(before + "\nCHANGED = True\n")
    try:
        scores = [f"{RUNS}/{system}/seed1/scores.json" for system in ("pascal", "grammar")]
        jobs = built.planned(*scores)
    finally:
        code.write_text(before)
    assert {rule for rule, _ in jobs} == {"annotate", "train", "average", "decode", "score"}
    # a training of `grammar` reads none
    assert {output.split("/")[3] for rule, output in jobs if rule == "train"} == {"pascal"}


def test_a_system_that_reads_templates_has_a_model_that_predicts_them(built, restore):
    run = built.folder / RUNS / "st-nmt/seed1"
    files = ("scores.json", "template/average.pt")
    wanted = [f"{RUNS}/st-nmt/seed1/{name}" for name in files]
    built.snakemake(*wanted)
    gold = [(run.parent / f"templates/{split}.en").read_text().splitlines() for split in ("train", "valid")]
    assert [len(lines) for lines in gold] == [
        len((built.folder / RUNS / f"bpe/{split}.en").read_text().splitlines())
        for split in ("train", "valid")
    ]
    assert all("[" in line for line in gold[0])
    first, second = (json.loads((run / name).read_text()) for name in ("template/train.json", "scores.json"))
    assert second["parameters"] > first["parameters"]
    text = (built.folder / RUNS / "text/test.de").read_text()
    translated = built.synmask("translate", "--model", str(run / "average.pt"), "--threads", "1", stdin=text)
    assert translated == (run / "hypothesis.test.txt").read_text()  # by the same templates

    def jobs(**options):
        built.config["systems"]["st-nmt"]["options"] = options
        found = built.planned(*wanted, f"{RUNS}/grammar/seed1/scores.json")
        assert all("/st-nmt/" in output for _, output in found)
        return {rule for rule, _ in found}

    of_run = {"train", "average", "decode", "score"}
    first = {"train_templates", "average_templates", "predict_templates"}
    assert jobs() == set()
    assert jobs(without=0.4) == of_run
    assert jobs(least=2) == of_run | first | {"templates"}
    (run / "template/average.pt").rename(run / "aside.pt")
    assert jobs() == of_run | first - {"train_templates"}
    (run / "aside.pt").rename(run / "template/average.pt")


def test_a_deleted_average_rebuilds_its_branch_alone(built):
    average = built.folder / RUNS / "grammar/seed1/average.pt"
    aside = average.with_suffix(".aside")
    average.rename(aside)
    try:
        jobs = built.planned()
        assert {rule for rule, _ in jobs} == {
            "average", "decode", "score", "parse", "parseval", "table", "parse_table", "page",
            "tree_page", "distribution_figure",
        }  # fmt: skip
        assert not [output for _, output in jobs if "/transformer/" in output]
    finally:
        aside.rename(average)


def test_translate_raw_text(built):
    run = f"{RUNS}/grammar/seed1"
    text = (built.folder / RUNS / "text/test.de").read_text()
    translated = built.synmask(
        "translate", "--model", f"{run}/average.pt", "--threads", "1", stdin=text + "\n"
    )
    assert translated == (built.folder / run / "hypothesis.test.txt").read_text() + "\n"


def test_trees_of_raw_text_and_of_a_numbered_sentence(built):
    def tree(*words):
        return built.synmask("tree", "--system", "grammar", *words)

    text = (built.folder / RUNS / "text/valid.de").read_text().splitlines()[2]
    numbered = tree("--number", "3").splitlines()
    assert re.fullmatch(r"gold \(\d+ constituents? that counts?\)", numbered[0])
    start = next(number for number, line in enumerate(numbered) if line.startswith("Grammar ("))
    raw = tree("--seed", "1", text).splitlines()
    assert raw[0] == "Grammar"
    thin = str.maketrans("┳┣┗┃", "┬├└│")  # without a gold tree nothing is right
    assert raw[1:] == [line.translate(thin) for line in numbered[start + 1 :]]
    assert tree("--number", "3", "--output", "drawn/tree.svg") == ""
    assert (built.folder / "drawn/tree.svg").read_text().startswith("<svg")
    shutil.rmtree(built.folder / "drawn")


def test_snakemakes_report_is_one_file_without_outside_addresses(built):
    built.snakemake("--report", "report.html")
    page = (built.folder / "report.html").read_text()
    assert "demo-de-en-curves.svg" in page
    assert "Training and validation loss" in page  # captions
    for loader in ('src="http', "src='http", 'rel="stylesheet" href="http', "@import"):
        assert loader not in page


def test_tables_of_what_is_there_train_nothing(built, restore):
    """Neither for what is missing nor for what would have to run again."""
    built.config["experiments"]["demo"]["seeds"] = [1, 2]
    change_grammar(built)
    partial = ("tables", "--config", "partial=true")
    both = {"table", "parse_table"}  # they name what is missing
    assert {rule for rule, _ in built.planned(*partial)} == both
    built.snakemake(*partial)
    table = (built.folder / "results/tables/demo.md").read_text()
    assert "[1 of 2" in table  # and diverged
    assert (
        "Missing: Transformer De→En (seed 2); Grammar De→En (seed 2). "
        "To make what is missing: snakemake results/tables/demo.md" in table
    )
    partial = ("results/report-demo.html", "--config", "partial=true")
    assert {rule for rule, _ in built.planned(*partial)} == {"page"}
    built.snakemake(*partial)
    page = (built.folder / "results/report-demo.html").read_text()
    assert "2 of 4" in page
    assert f"snakemake {RUNS}/grammar/seed2/scores.json" in page


def test_nothing_is_written_outside_results(built):
    there = {path.name for path in Path(built.folder).iterdir()} - {"report.html"}
    assert there <= {
        "src", "demo", "workflow", "profiles", "slurm", "Snakefile", "config.yaml", "results", ".snakemake",
    }  # fmt: skip
