"""What Snakemake says and plans without running a job."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lines(output):
    return [line for line in output.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(sede=[1]), "config.yaml: sede: unknown key 'sede'; did you mean 'seeds'?"),
        (
            lambda c: c["corpora"]["demo"]["training"].update(warmup=3),
            "config.yaml: corpora.demo.training.warmup: unknown key 'warmup'; did you mean 'warmup_updates'?",
        ),
        (
            lambda c: c["experiments"]["demo"].update(systems=["gramar"]),
            "config.yaml: experiments.demo.systems: unknown system 'gramar'; did you mean 'grammar'?",
        ),
        (
            lambda c: c["experiments"]["demo"].update(corpus="dem"),
            "config.yaml: experiments.demo.corpus: unknown corpus 'dem'; did you mean 'demo'?",
        ),
        (lambda c: c.update(seeds="one"), "config.yaml: seeds: "),
    ],
)
def test_a_faulty_configuration_is_one_line(project, change, said):
    change(project.config)
    done = project.snakemake(check=False)
    assert done.returncode == 1
    profile, line = lines(done.output)  # Snakemake names its profile first
    assert profile.startswith("Using workflow specific profile")
    assert line.startswith(said)
    assert not (project.folder / "results").exists()


def test_other_configuration_files_and_words_are_named(project):
    (project.folder / "mine.yaml").write_text("trainng: {}\n")
    done = project.snakemake("--configfile", "config.yaml", "mine.yaml", check=False)
    assert done.returncode == 1
    assert lines(done.output)[-1].startswith("mine.yaml: trainng: unknown key")
    done = project.snakemake("--config", "trainng=3", check=False)
    assert done.returncode == 1
    assert "trainng: unknown key" in lines(done.output)[-1]


def test_overriding_one_key(project):
    (project.folder / "mine.yaml").write_text("experiments: {demo: {seeds: [7]}}\n")
    jobs = project.planned("--configfile", "mine.yaml")
    assert len({output for rule, output in jobs if rule == "train"}) == 2
    assert all("seed7" in output for rule, output in jobs if rule == "train")


def test_a_corpus_of_ones_own_needs_an_entry_only(project):
    for split in ("train", "dev", "test"):
        for language in ("de", "en"):
            (project.folder / f"{split}.{language}").write_text("a\n")
    project.config["corpora"]["mine"] = {
        "languages": ["de", "en"],
        "files": {"train": "train.{language}", "valid": "dev.{language}", "test": "test.{language}"},
    }
    project.config["experiments"]["mine"] = {
        "title": "Mine",
        "corpus": "mine",
        "directions": ["de-en"],
        "systems": ["grammar"],
    }
    jobs = project.planned("mine")
    assert len({output for rule, output in jobs if rule == "train"}) == 5  # the seeds


def test_multi30k_comes_from_its_publisher_or_a_mirror(project):
    project.config["mirrors"] = {"multi30k": "/mirror"}
    output = project.snakemake("-np", "multi30k-small").output
    assert (
        "--url https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.de.gz" in output
    )
    assert "--mirror /mirror" in output
    assert "--sha256 726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6" in output


def write_corpora(project, **corpora):
    """A line of text for each language of these corpora."""
    for corpus, languages in corpora.items():
        for split in ("train", "valid", "test"):
            for language in languages.split():
                path = project.folder / f"data/{corpus}/{split}.{language}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("a\n")


def test_the_paper_can_be_planned(project):
    write_corpora(project, iwslt14="de en", nc11="de en", aspec="zh ja")
    jobs = project.planned("paper")
    assert len({output for rule, output in jobs if rule == "train"}) == 6 * 8 * 5
    # each but the baseline against it; BPE labels and MLM against their own baselines
    assert len({output for rule, output in jobs if rule == "significance"}) == (6 * 7 + 6 + 4) * 5
    tables = {output.split(",")[0].split("/")[-1] for rule, output in jobs if rule == "table"}
    assert tables == {
        f"{name}.md"
        for name in (
            "iwslt14",
            "nc11",
            "aspec",
            "bpe-labels",
            "parsing",
            "glue",
            "mlm",
            "glue-mlm",
            "controls",
            "cost",
        )
    }


def test_sweeps_share_what_they_have_in_common(project):
    write_corpora(project, iwslt14="de en")
    trained = {output for rule, output in project.planned("sweeps") if rule == "train"}
    assert len(trained) == (1 + 5 + 8 + 2 + 5) * 3


def test_tables_of_no_runs_can_be_planned(project):
    jobs = project.planned("paper", "--config", "partial=true")
    assert {rule for rule, _ in jobs} == {"table"}
    assert len(jobs) == 10


def test_a_table_is_a_target(project):
    write_corpora(project, iwslt14="de en", nc11="de en")
    jobs = project.planned("mlm")
    assert {output.split("/")[3] for rule, output in jobs if rule == "train"} == {"grammar", "grammar-nomlm"}
    assert len({output for rule, output in jobs if rule == "train"}) == 4 * 2 * 5
    assert not {rule for rule, _ in jobs} & {"curves", "bleu_figure"}


def test_only_systems_that_read_a_parser_need_annotations(project):
    project.config["experiments"]["demo-all"]["seeds"] = [1]
    jobs = project.planned("demo-all")
    assert len({output for rule, output in jobs if rule == "train"}) == 13
    assert len([rule for rule, _ in jobs if rule == "annotate"]) == 3
    project.config["experiments"]["demo-all"]["systems"] = ["transformer", "lpsi", "structformer", "grammar"]
    assert not [rule for rule, _ in project.planned("demo-all") if rule == "annotate"]


def test_dry_run_for_slurm_needs_no_cluster(project):
    project.config["corpora"]["demo"]["resources"] |= {"threads": 64, "gpus": 1}
    output = project.snakemake("-n", "--profile", "slurm").output
    asked = [line for line in output.splitlines() if "slurm_partition=gpu" in line]
    assert (
        len([line for line in asked if "cpus_per_task=64" in line]) == 6
    )  # 2 trainings, 2 decodings, 1 parse, 1 speed
    assert (
        len([line for line in asked if "gpu=1" in line]) == 5
    )  # `parse` uses the GPU that `decode` asks for


def test_the_log_of_a_failed_job_is_shown(project):
    project.config["mirrors"] = {"multi30k": "nowhere"}
    project.config["targets"] = ["multi30k-small"]
    done = project.snakemake("downloads", check=False)
    assert done.returncode == 1
    assert "\nsynmask download: multi30k: " in done.output
    assert "nowhere" in done.output
    assert not (project.folder / "data").exists() or not list((project.folder / "data").rglob("*.gz"))


def test_profiles_name_rules_that_exist(project):
    import yaml

    rules = set(project.snakemake("--list-rules").output.split())
    for path in ROOT.glob("workflow/profiles/*/profile.yaml"):
        named = set(yaml.safe_load(path.read_text()).get("set-resources", {}))
        assert named <= rules


def test_the_readme_draws_every_rule(project):
    import re

    drawn = re.search(r"```mermaid(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    graph = project.snakemake("--rulegraph", "mermaid-js").output
    graph += project.snakemake("--rulegraph", "mermaid-js", "demo-all").output
    rules = set(re.findall(r"^\s*id\d+\[(\w+)\]", graph, re.M)) - {"all", "demo-all"}
    assert rules <= set(re.findall(r"\w+", drawn))


def test_lint(project):
    assert "Congratulations" in project.snakemake("--lint").output
