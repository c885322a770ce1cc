"""The files of targets, and the settings of their jobs."""

import json
import re
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from synmask.pipeline.config.benchmarks import WeightsSource
from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.errors import UserError
from synmask.pipeline.paths import any_of
from synmask.pipeline.runs import TRAININGS
from synmask.pipeline.workflow.jobs import Jobs, as_options
from synmask.pipeline.workflow.targets import Targets

ROOT = Path(__file__).parents[2]


@pytest.fixture
def configure(monkeypatch):
    monkeypatch.chdir(ROOT)
    return lambda over=(): load(merge(read_all(project_files()), dict(over)))


STUDY = read_yaml(ROOT / "studies/multi30k/config.yaml")


@pytest.fixture
def targets(configure):
    return lambda over=(): Targets(configure(over))


@pytest.fixture
def jobs(configure):
    return lambda over=(): Jobs(configure(over))


def wildcards(**values):
    return Wildcards(fromdict=values)


DEMO = {
    "experiments": {"demo": {"systems": ["transformer", "grammar"], "seeds": [1, 2]}},
    "tables": {"demo-cost": {"systems": ["transformer", "grammar"]}},
}


def test_an_experiment_has_tables_figures_pages_and_models(targets):
    files = targets(DEMO).target_files("demo")
    tables = ["demo", "demo-parsing", "demo-cost"]
    assert files[:3] == [f"results/tables/{name}.md" for name in tables]
    figures = ("de-en-curves", "de-en-distribution")
    assert files[3:6] == [
        *(f"results/figures/demo-{name}.svg" for name in figures),
        "results/figures/demo-de-en-trees.html",
    ]
    runs = [f"{system}/seed{seed}" for system in ("transformer", "grammar") for seed in (1, 2)]
    assert files[6:] == [f"results/demo/de-en/{run}/average.pt" for run in runs]


def test_a_sweep_of_numbers_has_a_figure(targets):
    files = targets({}).target_files("sweep-bpe-dim")
    assert "results/figures/sweep-bpe-dim-sweep.svg" in files
    assert not [file for file in targets({}).target_files("sweep-bpe-labels") if file.endswith("-sweep.svg")]


def test_without_induced_trees_nothing_shows_any(targets):
    files = targets(
        {
            "experiments": {"demo": {"systems": ["transformer"], "tables": ["translation"]}},
            "tables": {"demo-cost": {"systems": ["transformer"]}},
        }
    ).target_files("demo")
    assert not [file for file in files if re.search("tree|distribution|parsing", file)]


def test_a_group_has_what_its_members_have_and_its_tables_once(targets):
    paper = targets()
    files = paper.target_files("paper")
    assert {*paper.target_files("iwslt14")} <= {*files}
    tables = [file for file in files if file.startswith("results/tables/")]
    assert len(tables) == len({*tables})


def test_a_group_takes_what_targets_takes(targets):
    """Also the table of one task."""
    files = targets({"experiments": {"mine": ["demo", "nlu-demo-predicate"]}}).target_files("mine")
    assert {"results/tables/demo.md", "results/tables/nlu-demo-predicate.md"} <= {*files}


def test_partial_targets_are_of_what_a_storage_holds(configure, tmp_path):
    held = ["results/demo/de-en/grammar/seed2/scores.json"]
    config = configure(merge(DEMO, {"partial": True}))
    partial = Targets(config, held.__contains__)
    assert partial.table_files("demo")["scores"] == held


def test_partial_targets_are_tables_of_what_is_there(targets, tmp_path, monkeypatch):
    partial, whole = targets(merge(DEMO, {"partial": True})), targets(DEMO)
    monkeypatch.chdir(tmp_path)
    for run in ("transformer/seed1", "transformer/seed2", "grammar/seed2"):
        folder = tmp_path / f"results/demo/de-en/{run}"
        folder.mkdir(parents=True)
        (folder / "scores.json").touch()
    found = [
        f"results/demo/de-en/{run}/scores.json"
        for run in ("transformer/seed1", "transformer/seed2", "grammar/seed2")
    ]
    assert partial.table_files("demo")["scores"] == found
    counts = tmp_path / "results/demo/de-en/grammar/seed2/sentences.csv"
    assert partial.table_files("demo")["counts"] == []
    counts.touch()
    assert partial.table_files("demo")["counts"] == [str(counts.relative_to(tmp_path))]
    assert partial.target_files("demo") == [
        "results/tables/demo.md",
        "results/tables/demo-cost.md",
    ]  # none is parsed
    assert partial.page("demo") == []
    assert whole.page("demo") == ["results/report-demo.html"]


def test_tables_read_what_their_metrics_need(targets):
    ours = targets()
    assert ours.table_files("bpe-labels")["scores"]
    assert len(ours.table_files("bpe-labels")["counts"]) == len(ours.table_files("bpe-labels")["scores"])
    assert ours.table_files("demo-cost")["counts"] == []  # nothing is tested
    assert ours.table_files("parsing")["scores"] == []
    assert ours.table_files("parsing")["parses"]
    assert ours.table_files("demo")["tasks"] == []
    assert "results/nlu-demo/acceptability/baselines.json" in ours.table_files("nlu-demo")["tasks"]


def test_a_page_shows_the_targets_and_benchmarks_that_were_built(targets, tmp_path, monkeypatch):
    ours = targets({"targets": ["demo"]})
    monkeypatch.chdir(tmp_path)
    assert "results/tables/nlu-demo.md" not in ours.page_files("report")
    (tmp_path / "results/tables").mkdir(parents=True)
    (tmp_path / "results/tables/nlu-demo.md").touch()
    assert "results/tables/nlu-demo.md" in ours.page_files("report")
    spec = json.loads(ours.page_spec("report"))
    assert [part["name"] for part in spec["experiments"]] == ["demo", "nlu-demo"]
    assert spec["title"] == "Report: " + " · ".join(part["title"] for part in spec["experiments"])
    assert json.loads(ours.page_spec("report-paper"))["title"] == "Report: paper"  # of many
    task = json.loads(ours.page_spec("report-nlu-demo"))
    assert [part["name"] for part in task["experiments"]] == ["nlu-demo"]
    assert task["experiments"][0]["columns"][0]["runs"]["roberta"] == [1, 2]
    assert ours.page_files("report-nlu-demo").count("results/tables/nlu-demo.md") == 1
    alone = json.loads(ours.page_spec("report-demo"))
    assert [part["name"] for part in alone["experiments"]] == ["demo"]
    systems = ("transformer", "grammar", "grammar-mended")
    assert [column["column"] for column in alone["experiments"][0]["columns"]] == ["de-en"]
    runs = alone["experiments"][0]["columns"][0]["runs"]
    assert [*runs.items()] == [(name, [1, 2]) for name in systems]  # in the order of rows
    assert alone["experiments"][0]["pages"] == [["Trees, De→En", "results/figures/demo-de-en-trees.html"]]


def test_a_page_tests_each_system_against_the_first_with_the_gain_that_the_paper_prints(targets):
    (tested,) = json.loads(targets().page_spec("report-demo"))["contrasts"]
    assert (tested["corpus"], tested["experiments"]) == ("demo", ["demo"])
    assert tested["contrasts"] == [
        {"system": "grammar", "rival": "transformer", "metric": "sacrebleu", "gain": {"de-en": 1.18, "en-de": 0.4}},
        {"system": "grammar-mended", "rival": "transformer", "metric": "sacrebleu", "gain": {}},
        {"system": "grammar", "rival": "right-branching", "trivial": True, "metric": "f1_words"},
        {"system": "grammar-mended", "rival": "right-branching", "trivial": True, "metric": "f1_words"},
    ]  # fmt: skip
    (nc11,) = json.loads(targets().page_spec("report-nc11"))["contrasts"]
    gains = {one["system"]: one["gain"] for one in nc11["contrasts"] if "gain" in one}
    assert gains["grammar"]["de-en"] == 0.65  # NC11's own


def test_the_users_files_are_those_that_are_read_and_not_fetched(targets):
    files = {"train": "t.{language}", "valid": "v.{language}", "test": "u.{language}"}
    corpus = {"languages": ["de", "en"], "files": files, "trees": {"valid": "v.{language}.mrg"}}
    entry = {"title": "M", "corpus": "mine", "directions": ["de-en"], "tables": ["translation"]}

    def own(*systems):
        experiments = {"mine": entry | {"systems": [*systems]}}
        return targets({"corpora": {"mine": corpus}, "experiments": experiments}).own_files("mine")

    text = ["t.de", "t.en", "u.de", "u.en", "v.de", "v.en"]
    assert own("transformer") == text
    assert own("grammar") == sorted([*text, "v.de.mrg"])  # on a page, without a table of their scores, too
    assert targets().own_files("multi30k-small") == []


def test_the_users_files_of_every_target_are_there(targets):
    """Those that systems and tables of the demo read: text, parses of the validation set, tasks."""
    ours = targets()
    files = {name: ours.own_files(name) for name in (*ours.config.experiments, *ours.config.all_tables)}
    assert {path for paths in files.values() for path in paths if not (ROOT / path).exists()} == set()
    assert "demo/de-en/valid.de.heads.gz" in files["demo"]
    assert "demo/de-en/train.de.trees.gz" not in files["demo"]
    assert "demo/de-en/train.de.trees.gz" in files["demo-all"]  # systems that a parser guides
    assert {"demo/tasks/predicate", "demo/text/train.txt.gz"} <= {*files["nlu-demo-all"]}
    assert files["paper"] == []  # CoreNLP parses
    ours.config.weights["roberta-base"] = WeightsSource(huggingface="mine")
    assert ours.own_files("glue-rte") == ["mine"]


def test_what_is_downloaded_before_a_machine_goes_offline(targets):
    ours = targets()
    multi30k = ours.downloads("multi30k-small")
    assert "data/multi30k/train.de.gz" in multi30k
    assert "data/corenlp/stanford-corenlp-4.5.10-models-german.jar" in multi30k
    assert not [file for file in multi30k if "chinese" in file]
    assert ours.downloads("demo") == []
    assert {"data/roberta-base/vocab.json", "data/glue/RTE.zip"} <= {*ours.downloads("glue-rte")}
    plain, synclm = (
        targets({"tables": {"glue": {"systems": systems}}}).downloads("glue-rte")
        for systems in (["roberta", "roberta-grammar"], ["roberta", "synclm"])
    )
    extra = {*synclm} - {*plain}  # SynCLM reads parses of these tasks in its pre-training
    assert "data/corenlp/stanford-corenlp-4.5.10-models-english.jar" in extra
    assert {"data/glue/CoLA.zip"} <= extra


def test_a_system_that_reads_templates_needs_parses_of_the_target(targets):
    name = "multi30k-small-all"
    with_it, without = (
        targets({"experiments": {name: {"systems": ["transformer", *extra], "tables": ["translation"]}}})
        for extra in (["st-nmt"], [])
    )
    extra = {*with_it.downloads(name)} - {*without.downloads(name)}
    assert [path for path in extra if "english" in path] == [*extra] != []


def test_resources_are_those_of_what_the_wildcards_name(jobs):
    over = {
        "corpora": {"demo": {"resources": {"threads": 3}}},
        "benchmarks": {"nlu-demo": {"resources": {"threads": 5}}},
        "weights": {"roberta-demo": {"pretrain": {"resources": {"threads": 7}}}},
    }
    ours = jobs(over)
    assert ours(wildcards(corpus="demo", system="grammar")).resources.threads == 3
    assert ours(wildcards(benchmark="nlu-demo", task="predicate")).resources.threads == 5
    assert ours(wildcards(weights="roberta-demo")).resources.threads == 7


@pytest.mark.parametrize("rule", TRAININGS)
def test_what_identifies_a_training_is_what_its_rule_gives_it(rule):
    kind = TRAININGS[rule]
    text = "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
    text = re.search(rf"^(?:use )?rule (?:\w+ as )?{rule}(?: with)?:\n(.*?)(?=\n\n\n|\Z)", text, re.S | re.M)[
        1
    ]
    assert f'code=code("{kind.verb}"{"" if kind.guided else ", guided=False"})' in text
    assert f'settings=settings("{rule}"),' in text
    assert f'again=PLANNED.again("{rule}"),' in text


def test_annotations_are_for_systems_that_read_them(jobs):
    ours = jobs()
    splits = ("train", "valid")
    pair = "results/{corpus}/{source}-{target}/bin/"
    files = [f"{pair}syntax.{split}.{{source}}.npy" for split in splits]
    assert ours(wildcards(system="pascal")).annotations(*splits) == files
    assert ours(wildcards(system="grammar")).annotations(*splits) == []
    assert ours(wildcards(system="lisa")).annotations(*splits, training=True) == files
    assert ours(wildcards(system="lisa")).annotations(*splits) == []  # its head attends by its own prediction
    task = {"benchmark": "glue", "task": "mnli"}
    assert ours(wildcards(system="roberta", **task)).task_syntax(*splits) == []
    stem = "results/{benchmark}/{task}/ids/syntax."
    files = [f"{stem}train.npy", f"{stem}dev_matched.npy"]
    assert ours(wildcards(system="sla", **task)).task_syntax(*splits) == files


def test_a_steps_own_settings_are_options(jobs):
    ours, run = (
        jobs(),
        wildcards(corpus="multi30k-small", source="de", target="en", system="grammar", seed="2"),
    )
    decoding = as_options(**ours(run).corpus.decoding.plain())
    assert decoding == "--beam 5 --length-penalty 1.0 --max-tokens 8000 --precision fp32"
    assert ours(run).text_options() == "--tokenisers moses moses --lowercase"
    assert ours(run).text_options(target="none") == "--tokenisers moses none --lowercase"
    rare = jobs({"corpora": {"multi30k-small": {"bpe": {"vocabulary_threshold": 5}}}})(run)
    assert rare.text_options() == "--tokenisers moses moses --lowercase --vocabulary-threshold 5"
    assert rare.subword_options() == "--merges 6000 --vocabulary-threshold 5"


def test_true_case_comes_from_the_corpus_unless_it_is_lower_cased(jobs):
    for lowercase, file, tokeniser in (
        (False, "tokens/{split}.{language}", None),
        (True, "text/{split}.{language}", "moses"),
    ):
        ours = jobs({"corpora": {"demo": {"text": {"lowercase": lowercase}}}})
        read = wildcards(corpus="demo", language="de")
        assert ours(read).cased().endswith(file)
        assert ours(read).cased_tokeniser() == tokeniser


def test_the_parser_of_lower_cased_text_has_its_tokenisers_jars(jobs):
    read = wildcards(corpus="aspec", language="zh")
    plain, lower = (
        jobs({"corpora": {"aspec": {"text": {"lowercase": lowercase}}}})(read).parser_jars()
        for lowercase in (False, True)
    )
    assert plain == jobs().data.corenlp_jars("zh")
    assert {*lower} == {*plain, *jobs().data.tokeniser_jars("stanford")}
    assert len(lower) == len({*lower})


def test_gold_heads_stand_beside_gold_trees_where_there_are_some(jobs):
    place = {"source": "de", "target": "en"}
    assert jobs()(wildcards(corpus="demo", **place)).gold().keys() == {"gold", "heads"}
    mine = {"based_on": "multi30k", "trees": {"valid": "mine.{language}"}}
    ours = jobs({"corpora": {"mine": mine}})
    assert ours(wildcards(corpus="mine", **place)).gold() == {"gold": "mine.de"}


def test_names_match_as_a_whole():
    assert re.fullmatch(any_of(["a.b", "c"]), "a.b")
    assert not re.fullmatch(any_of(["a.b", "c"]), "axb")
    assert not re.fullmatch(any_of([]), "")


@pytest.mark.parametrize(
    ("place", "run", "message"),
    [
        ("demo de fr", "grammar", "unknown direction 'de-fr'; did you mean 'de-en'?"),
        ("demo de en", "roberta-grammar", "guides 3 layers, the model has 2"),
        ("multi30k fr cs", "st-nmt", "corpus 'multi30k' has no trees of cs"),
        ("nlu-demo cola", "roberta", "unknown task 'cola'; known: acceptability"),
        ("nlu-demo entailment test", "roberta", "unknown part 'test'; known: dev, train"),
        ("nlu-demo entailment dev", "grammar", "system 'grammar' cannot be a RoBERTa"),
        ("glue rte dev 99", "roberta", "unknown file of sentences '99'; known: 1, dev-1, test-1"),
        ("demo de en 2147483648", "grammar", "seed 2147483648: must be below 2147483648"),
    ],
)
def test_a_file_of_a_run_that_cannot_work_is_refused(jobs, place, run, message):
    """No experiment has it, but a user may ask for it by its name."""
    nlu = place.startswith(("nlu", "glue"))
    names = ("benchmark", "task", "part", "number") if nlu else ("corpus", "source", "target", "seed")
    with pytest.raises(UserError, match=re.escape(message)):
        jobs()(wildcards(**{"seed": "1", "system": run} | dict(zip(names, place.split(), strict=False))))


def test_archives_hold_their_own_pair_of_languages(jobs):
    with pytest.raises(UserError, match="unknown language pair 'en-de'; known: de-en"):
        jobs()(wildcards(corpus="iwslt14", first="en", second="de"))


def test_trees_are_scored_against_gold_trees_only(jobs):
    run = wildcards(corpus="multi30k", source="cs", target="fr", system="grammar", seed="1")
    with pytest.raises(UserError, match=r"corpora\.multi30k\.trees: none of cs"):
        jobs()(run).gold()
