"""Snakemake's plans and messages, without running a job."""

import os
import re
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load
from synmask.pipeline.paths import table_file
from synmask.pipeline.runs import (
    TRAININGS,
    Run,
    Tuning,
    is_parsed,
    of_experiment,
    of_target,
    parts,
    trainings,
)

ROOT = Path(__file__).parents[2]
SEEDS = [3]  # Snakemake plans 2,759 jobs of the paper's five seeds in 40 s


def lines(output):
    return [line for line in output.splitlines() if line.strip()]


def test_a_faulty_configuration_is_one_line(project):
    project.config["sede"] = [1]
    done = project.snakemake(check=False)
    assert done.returncode == 1
    profile, line = lines(done.output)  # Snakemake names its profile first
    assert profile.startswith("Using workflow specific profile")
    message = "config.yaml, line N: sede: unknown key 'sede'; did you mean 'seeds'?"
    assert re.sub(r"line \d+", "line N", line) == message
    assert not (project.folder / "results").exists()


def test_other_configuration_files_and_words_are_named(project):
    (project.folder / "mine.yaml").write_text("trainng: {}\n")
    done = project.snakemake("--configfile", "config.yaml", "mine.yaml", check=False)
    assert done.returncode == 1
    assert lines(done.output)[-1].startswith("mine.yaml, line 1: trainng: unknown key")
    done = project.snakemake("--config", "trainng=3", check=False)
    assert done.returncode == 1
    assert lines(done.output)[-1].startswith("--config: trainng: unknown key")


@pytest.mark.parametrize("way", ["--configfile", "--config"])
def test_overriding_one_key(project, way):
    """As it is written, by YAML 1.2: Snakemake's own reader takes 010 for eight."""
    (project.folder / "mine.yaml").write_text("experiments: {demo: {seeds: [010]}}\n")
    words = {"--configfile": "mine.yaml", "--config": "experiments={demo: {seeds: [010]}}"}
    jobs = project.planned(way, words[way])
    assert len({output for rule, output in jobs if rule == "train"}) == 2
    assert all("seed10/" in output for rule, output in jobs if rule == "train")


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
    (project.folder / "mirror").mkdir()
    project.config["mirrors"] = {"multi30k": "mirror"}
    output = project.snakemake("-np", "multi30k-small").output
    assert (
        "--url https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.de.gz" in output
    )
    assert "--mirror mirror" in output
    assert "--sha256 726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6" in output


def test_the_paper_can_be_planned_without_its_licensed_corpus(project):
    project.config["seeds"] = SEEDS
    printed = project.snakemake("-np", "paper", "--profile", "slurm").output
    jobs = project.listed(printed)
    # `st-nmt` on IWSLT14 alone; on ASPEC those that read a parser are trained in one direction
    runs = (2 * 19 + 2 * 18 + 2 * 15 + 3) * len(SEEDS)
    assert len({output for rule, output in jobs if rule == "train"}) == runs
    submitted = {group: printed.count(f"Group job {group}") for group in ("text", "evaluate")}
    assert submitted == {"text": 6, "evaluate": runs}
    tables = {output.split(",")[0].split("/")[-1] for rule, output in jobs if rule == "table"}
    assert tables == {
        f"{name}.md"
        for name in (
            "iwslt14",
            "nc11",
            "aspec",
            "aspec-parsed",
            "bpe-labels",
            "parsing",
            "glue",
            "mlm",
            "glue-mlm",
            "controls",
            "cost",
        )
    }
    fetched = {output for rule, output in jobs if rule == "download_file"}
    archives = ["iwslt14/de-en.tgz", "nc11/training-parallel-nc-v11.tgz", "nc11/dev.tgz", "nc11/test.tgz"]
    licensed = ["aspec/train.txt", "aspec/dev.txt", "aspec/test.txt"]
    understanding = {file for file in fetched if file.startswith(("data/glue/", "data/roberta-base/"))}
    jars = {file for file in fetched if file.endswith(".jar")}
    assert fetched - understanding - jars == {f"data/{file}" for file in [*archives, *licensed]}
    assert len(understanding) == 9 + 4
    assert len({output for rule, output in jobs if rule == "finetune"}) == 8 * 7 * len(SEEDS)
    parsed = [output for rule, output in jobs if rule == "parse_sentences"]
    assert {output.split("/")[2] for output in parsed} == {*project.config["benchmarks"]["glue"]["tasks"]}
    assert len([output for output in parsed if "/mnli/" in output]) == 17  # of 50,000 sentences at most
    assert len([rule for rule, _ in jobs if rule == "annotate_task"]) == 8 + 9
    parts = ("", "-models-chinese", "-models-english", "-models-german")
    assert jars == {f"data/corenlp/stanford-corenlp-4.5.10{part}.jar" for part in parts}
    assert len([rule for rule, _ in jobs if rule == "prepare"]) == 3  # once for both directions


def test_a_dry_run_asks_for_the_licensed_corpus(project):
    line = (
        "aspec is licensed and cannot be downloaded: get dev.txt, test.txt, train.txt, "
        "then set `mirrors: {aspec: FOLDER}` in config.yaml"
    )
    prepared = "results/aspec/raw/zh-ja/train.ja"
    for words in ("-n", "-np"):
        assert project.snakemake(words, prepared).output.count(line) == 1
    project.config["mirrors"] = {"aspec": "/nowhere"}
    assert "licensed" not in project.snakemake("-n", prepared).output


def test_the_licensed_corpus_is_asked_for_in_one_line(project):
    for folder, message in (
        (None, "train.txt is licensed"),
        ("/nowhere/ASPEC", "/nowhere/ASPEC: no such folder"),
    ):
        project.config["mirrors"] = {"aspec": folder} if folder else {}
        done = project.snakemake("data/aspec/train.txt", check=False)
        assert done.returncode == 1
        [line] = [line for line in done.output.splitlines() if line.startswith("synmask download: aspec: ")]
        assert message in line
        assert "mirrors: {aspec: " in line


def test_a_run_that_cannot_work_is_refused_in_one_line(project):
    done = project.snakemake("-n", "results/demo/de-en/grammar/seed1/metric.no.such.json", check=False)
    assert done.returncode == 1
    assert lines(done.output)[1:] == ["no.such: no module 'no', neither in this folder nor installed"]


def test_glue_comes_from_its_publisher_or_a_folder(project):
    jobs = project.planned("glue-data")
    assert len([rule for rule, _ in jobs if rule == "glue_task"]) == 17
    assert "data/glue/mrpc_dev_ids.tsv" in {output for rule, output in jobs if rule == "download_file"}
    (project.folder / "mine/CoLA").mkdir(parents=True)
    (project.folder / "mine/CoLA/dev.tsv").write_text("gj04\t1\t\tYes.\n")
    (project.folder / "mine/CoLA/train.tsv").write_text("gj04\t0\t*\tNo.\n")
    glue = project.config["benchmarks"]["glue"]
    cola = glue["tasks"]["cola"] | {"urls": [], "rows": {"train": 1, "dev": 1}}
    glue.update(folder="mine", tasks={"cola": cola})
    project.snakemake("glue-data", "-c1")
    assert (project.folder / "results/glue/cola/dev.tsv").read_text() == "sentence1\tlabel\nYes.\t1\n"


def test_glue_can_be_planned_task_by_task(project):
    archives = {"config.json", "model.safetensors", "vocab.json", "merges.txt"}
    project.config["targets"] = ["glue-rte", "nlu-demo"]
    needed = {output for rule, output in project.planned("download") if rule == "download_file"}
    tasks = (
        "RTE.zip",
        "CoLA.zip",
        "STS-B.zip",
        "msr_paraphrase_train.txt",
        "mrpc_dev_ids.tsv",
    )  # SynCLM's, too
    needed = {path for path in needed if not path.startswith("data/corenlp/")}
    assert needed == {f"data/glue/{file}" for file in tasks} | {
        f"data/roberta-base/{file}" for file in archives
    }
    project.config["weights"]["roberta-base"] = {"huggingface": "mine"}
    (project.folder / "mine").mkdir()
    single = project.planned("glue-rte")
    assert {output.split("/")[2] for rule, output in single if rule == "finetune"} == {"rte"}
    assert "convert_roberta" in {rule for rule, _ in single}
    assert not any("data/roberta-base/" in output for _, output in single)


def test_tasks_are_parsed_for_systems_that_read_them_alone(project):
    jobs = project.planned("glue-mlm-rte")
    rules = {rule for rule, _ in jobs}
    assert "finetune" in rules
    assert not rules & {"task_sentences", "parse_sentences", "annotate_task"}
    assert not any("data/corenlp/" in output for _, output in jobs)


def test_tables_of_no_runs_can_be_planned(project):
    jobs = project.planned("paper", "--config", "partial=true")
    assert {rule for rule, _ in jobs} == {"table"}
    assert len(jobs) == 11


def test_a_table_is_a_target(project):
    project.config["seeds"] = SEEDS
    jobs = project.planned("mlm")
    systems = {output.split("/")[3] for rule, output in jobs if rule == "train"}
    assert systems == {"transformer", "grammar-nomlm", "grammar-mask", "grammar"}
    assert len({output for rule, output in jobs if rule == "train"}) == 4 * 4 * len(SEEDS)
    assert not {rule for rule, _ in jobs} & {"curves"}


def test_the_training_of_a_system_reaches_the_commands(project):
    printed = project.snakemake(
        "-np", *(f"results/demo/de-en/transformer{n}/seed1/scores.json" for n in ("", "-tuned"))
    ).output
    assert (printed.count(" --keep 2 "), printed.count(" --keep 1 ")) == (1, 1)
    # to train; later steps read them in its record
    assert printed.count('"attention_dropout": 0.2') == printed.count('"checkpoint": "best"') == 1
    later = re.findall(r"synmask (?:average|decode|score-run) .*", printed)
    assert len(later) == 6
    assert not [command for command in later if "{" in command]


def test_dry_run_for_slurm_needs_no_cluster(project):
    project.config["corpora"]["demo"]["resources"] |= {"threads": 64, "gpus": 2}
    output = project.snakemake("-np", "--profile", "slurm").output
    resources, rule = {}, None
    for line in map(str.strip, output.splitlines()):
        if line.startswith("rule "):
            rule = line.split()[1].rstrip(":")
        elif line.startswith("resources: "):
            resources[rule] = dict(
                pair.split("=", 1) for pair in line.removeprefix("resources: ").split(", ")
            )
    for rule, gpus in (("train", "2"), ("decode", "1"), ("parse", "0")):  # `parse` uses the GPU of `decode`
        assert resources[rule]["gpu"] == gpus
        assert resources[rule]["cpus_per_task"] == "64"
    evaluate = ("average", "decode", "score", "parse", "parseval")
    assert {resources[rule]["slurm_partition"] for rule in ("train", *evaluate)} == {"gpu"}
    assert resources["text"]["slurm_partition"] == "main"


def test_the_log_of_a_failed_job_is_shown(project):
    (project.folder / "nowhere").mkdir()
    project.config["mirrors"] = {"multi30k": "nowhere"}
    project.config["targets"] = ["multi30k-small"]
    done = project.snakemake("download", check=False)
    assert done.returncode == 1
    assert "\nsynmask download: multi30k: " in done.output
    assert "nowhere" in done.output
    assert not (project.folder / "data").exists() or not list((project.folder / "data").rglob("*.gz"))


def test_profiles_name_rules_that_exist(project):
    import yte

    rules = set(project.snakemake("--list-rules").output.split())
    for path in (ROOT / "profiles/default/profile.yaml", ROOT / "slurm/profile.yaml"):
        with path.open() as file:
            named = set(yte.process_yaml(file, require_use_yte=True).get("set-resources", {}))
        assert named <= rules


def test_the_slurm_profile_gives_each_rule_the_partition_it_needs():
    """Where a rule uses a GPU, and one for all rules of a group: else Snakemake refuses to submit it."""
    import yte

    rules = "".join(path.read_text() for path in sorted(ROOT.glob("workflow/rules/*.smk")))
    kinds, groups = {}, {}
    for name, text in re.findall(r"^rule (\w+):\n(.*?)(?=^\S)", rules + "\n.", re.M | re.S):
        kinds[name] = re.search(r"\*\*(TRAINING|INFERENCE)", text)
        if group := re.search(r'group:\n\s+"(.*)"', text):
            groups.setdefault(group[1], []).append(name)
    with (ROOT / "slurm/profile.yaml").open() as file:
        resources = yte.process_yaml(file, require_use_yte=True)["set-resources"]
    for name, kind in kinds.items():
        if kind:
            assert resources.get(name, {}).get("slurm_partition") == "'gpu'", name
            assert kind[1] == "INFERENCE" or name in TRAININGS  # which SLURM warns before their time limit
    assert "parseval" in groups["evaluate"]
    for members in groups.values():
        assert len({resources.get(name, {}).get("slurm_partition") for name in members}) == 1, members


def test_unlock_needs_no_texts(project):
    texts = {split: f"mine/{split}.{{language}}" for split in ("train", "valid", "test")}
    project.config["corpora"]["mine"] = {"languages": ["de", "en"], "files": texts}
    project.config["experiments"]["demo"] |= {"corpus": "mine", "tables": ["translation"]}
    printed = project.snakemake("-n", check=False).output
    assert re.search(
        r"mine/(train|valid|test)\.(de|en): no such file", printed
    )  # Snakemake keeps both in a set
    project.snakemake("--unlock")


def test_lint(project):
    assert "Congratulations" in project.snakemake("--lint").output


def test_what_is_planned_is_the_list_of_runs(project):
    """Of all experiments, also those whose systems read CoreNLP's parses, between two steps of the group `text`."""
    experiments = project.config["experiments"]
    targets = [name for name, entry in experiments.items() if isinstance(entry, dict)]
    assert {"demo-all", "multi30k-small-all"} <= {*targets}
    for name in targets:
        experiments[name]["seeds"] = [1]
    targets += ["nlu-demo-all"]  # pre-trained and fine-tuned RoBERTas
    jobs = project.planned(*targets)
    annotated = {out for rule, out in jobs if rule == "annotate"}
    assert len([out for out in annotated if "multi30k-small" in out]) == 3
    config = load(project.config)
    shown = {run for target in targets for run in of_target(config, target)}
    translated, tuned = ({run for run in shown if isinstance(run, kind)} for kind in (Run, Tuning))
    parsed = [name for name, entry in config.plain_experiments.items() if "parsing" in entry.tables]
    steps = {(training.rule, training.folder) for training in trainings(config, targets)}
    steps |= {(rule, run.folder) for rule in ("average", "decode", "score") for run in translated}
    steps |= {(rule, run.folder) for rule in ("predict", "nlu_score") for run in tuned}
    steps |= {
        ("parseval", run.folder)
        for name in parsed
        for run in of_experiment(config, name)
        if is_parsed(config, run)
    }
    rules = {*TRAININGS, "average", "decode", "score", "predict", "nlu_score", "parseval"}
    # the first file that each writes is in its run's folder
    assert {(rule, os.path.dirname(out.split(", ")[0])) for rule, out in jobs if rule in rules} == steps
    tables = {name for target in targets for part in parts(config, target) for name in part}
    planned = {out.split(",")[0] for rule, out in jobs if rule == "table"}
    assert planned == {table_file(name) for name in tables}


def test_a_new_corpus_can_be_planned(project):
    for language in ("fr", "en"):
        lines = "".join(f"{language} {number}\n" for number in range(500))
        (project.folder / f"mine.{language}").write_text(lines)
    project.write_config()
    project.synmask("new-corpus", "talks", "--files", "mine.fr", "mine.en")
    files = [files for _, files in project.planned("talks")]
    assert any("results/tables/talks-scores.md" in each for each in files)
