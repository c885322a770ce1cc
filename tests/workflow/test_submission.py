"""`glue-submission` on tiny archives in GLUE's layout: what is planned, what is made, what runs again."""

import json
import shutil
import zipfile
from itertools import cycle, islice

import pytest

from synmask.pipeline.config.loading import load
from synmask.pipeline.files import write_json, write_lines
from synmask.pipeline.runs import Tuning
from synmask.pipeline.tasks import SUBMISSION, TASKS
from synmask.pipeline.workflow.jobs import Jobs

HEADERS = {  # of the labelled parts and of the test sets; tabs are written as |
    "cola": ("", "index|sentence"),
    "sst-2": ("sentence|label", "index|sentence"),
    "mnli": ("index|sentence1|sentence2|gold_label", "index|sentence1|sentence2"),
    "qnli": ("index|question|sentence|label", "index|question|sentence"),
    "rte": ("index|sentence1|sentence2|label", "index|sentence1|sentence2"),
    "mrpc": ("Quality|#1 ID|#2 ID|#1 String|#2 String",) * 2,
    "qqp": ("id|question1|question2|is_duplicate", "id|question1|question2"),
    "sts-b": ("index|sentence1|sentence2|score", "index|sentence1|sentence2"),
}
FOLDERS = {"cola": "CoLA"}  # the others are in capitals
SENTENCES = (
    "The old dog sees a cat .",
    "Many cats sleep .",
    'He said "no" , isn\'t it ?',
    "A man gives me it .",
)


def rows(task, part, count):
    """The lines of a part, its header first."""
    header = HEADERS[task][part.startswith(("test", "ax"))]
    if not header:
        made = (f"gj04\t{number % 2}\t\t{text}" for number, text in enumerate(cycle(SENTENCES)))
        return [*islice(made, count)]
    names, labels = header.split("|"), cycle(TASKS[task].labels or ("0.000", "5.000", "2.5"))
    texts, made = cycle(SENTENCES), []
    for number in range(count):
        values = {name: f"{part}{number}" for name in names}
        values |= {
            name: next(texts) for name in names if name.lower().rstrip("12") in ("sentence", "question")
        }
        values |= {name: next(texts) for name in names if name.endswith("String")}
        values |= {
            name: next(labels)
            for name in names
            if name in ("label", "gold_label", "Quality", "is_duplicate", "score")
        }
        made.append("\t".join(values.values()))
    return ["\t".join(names), *made]


def sizes(task, entry):
    """Tiny numbers of rows, a different one for each test set."""
    entry["rows"] = {part: 12 if part == "train" else 6 for part in entry["rows"]}
    for name, (other, part) in SUBMISSION.items():
        if other == task:
            entry["test_rows"][part] = 2 + len(name)


def archives(folder, tasks):
    """The publisher's files, for a mirror."""
    folder.mkdir()
    for task, entry in tasks.items():
        parts = {**entry["rows"], **entry["test_rows"]}
        texts = {part: "\n".join(rows(task, part, count)) + "\n" for part, count in parts.items()}
        if task == "mrpc":
            train, dev = (texts[part].splitlines() for part in ("train", "dev"))
            write_lines(folder / "msr_paraphrase_train.txt", [*train, *dev[1:]])
            write_lines(folder / "mrpc_dev_ids.tsv", ["\t".join(line.split("\t")[1:3]) for line in dev])
            (folder / "msr_paraphrase_test.txt").write_text(texts["test"])
            continue
        if "ax" in texts:
            (folder / "AX.tsv").write_text(texts.pop("ax"))
        with zipfile.ZipFile(folder / entry["urls"][0].rpartition("/")[2], "w") as archive:
            for part, text in texts.items():
                archive.writestr(f"{FOLDERS.get(task, task.upper())}/{part}.tsv", text)


@pytest.fixture
def glue(project):
    """A project with tiny archives of GLUE, and two seeds."""
    project.record()
    entry = project.config["benchmarks"]["glue"]
    for name, task in entry["tasks"].items():
        sizes(name, task)
    entry.update(seeds=[1, 2], resources={"gpus": 0, "threads": 1, "mem_mb": 2000})
    archives(project.folder / "mirror", entry["tasks"])
    project.config["mirrors"] = {"glue": "mirror"}
    return project


@pytest.fixture
def trained(glue, small_roberta, small_tuned):
    """The project after `roberta` was fine-tuned; its answers to all test sets but two are there, too."""
    from synmask.pipeline.roberta.weights import RobertaShape

    shape = RobertaShape(layers=1, embed_dim=16, ffn_dim=16, heads=2, max_positions=512)
    weights = glue.folder / "results/weights/roberta-base"
    (glue.folder / "published").mkdir()
    glue.config["weights"]["roberta-base"] = {"huggingface": "published"}
    shutil.copytree(glue.folder / "mirror", glue.folder / "data/glue")
    shutil.copytree(small_roberta(shape, SENTENCES, 10, std=0.3), weights)
    jobs = Jobs(load(glue.config))
    for task, entry in glue.config["benchmarks"]["glue"]["tasks"].items():

        def tuned(path, seed, task=task):
            run = {"benchmark": "glue", "task": task, "system": "roberta", "seed": seed}
            record = {"corpus": "glue", "task": str(task), "system": "roberta", "seed": seed}
            record |= {
                "settings": json.loads(jobs.settings(Tuning(**run))),
                "start": {"weights": "roberta-base"},
            }
            small_tuned(path, task, weights, seed, record)
            return record

        place(glue.folder / f"results/glue/{task}", task, entry["rows"], tuned)
    for name, (task, part) in SUBMISSION.items():
        if name not in ("RTE.tsv", "AX.tsv"):
            answer = TASKS[task].labels[0] if TASKS[task].labels else "2.5"
            folder = glue.folder / f"results/glue/{task}"
            for path in (folder / f"{part}.tsv", folder / f"ids/{part}.npz"):
                path.write_text("")
            for seed in (1, 2):
                answers = folder / f"roberta/seed{seed}/predictions.{part}.txt"
                write_lines(answers, [answer] * (2 + len(name)))
                write_json(answers.with_suffix(".json"), {})
    return glue


def place(folder, task, parts, tuned):
    """Write the files that fine-tuning `roberta` on a task leaves behind; those that nothing here reads are empty."""
    (folder / "ids").mkdir(parents=True)
    for file in ("{}.tsv", "ids/{}.npz"):
        for part in parts:
            (folder / file.format(part)).write_text("")
    for seed in (1, 2):
        run = folder / f"roberta/seed{seed}"
        run.mkdir(parents=True)
        record = tuned(run / "best.pt", seed)
        write_json(run / "train.json", record)
        for file in ("history.csv", *(f"predictions.{part}.txt" for part in parts)):
            (run / file).write_text("")
        value = dict.fromkeys(("matthews", "accuracy", "f1", "pearson"), 50.0 + seed)
        scores = {part: value for part in parts}
        write_json(run / "scores.json", record | {"task": task, "seed": seed, "scores": scores})


def test_the_chain_reaches_from_the_archives_to_a_zip_for_each_system(glue):
    jobs = glue.planned("glue-submission")
    packed = {output.split(",")[0] for rule, output in jobs if rule == "glue_submission"}
    systems = ("roberta", "sla", "syntax-roberta", "synclm", "roberta-grammar")
    assert packed == {f"results/glue/submission/{system}.zip" for system in systems}
    answered = [output for rule, output in jobs if rule == "predict" and "dev" not in output]
    assert len(answered) == 10 * len(systems) * 2  # by both seeds
    assert len([rule for rule, _ in jobs if rule == "finetune"]) == 8 * 5 * 2
    parsed = {output.split(",")[0] for rule, output in jobs if rule == "parse_sentences"}
    assert parsed == {
        f"results/glue/{task}/syntax/{n}.trees" for task in HEADERS for n in ("1", "dev-1", "test-1")
    }
    annotated = {output.split(",")[0].rpartition("/")[2] for rule, output in jobs if rule == "annotate_task"}
    assert {"syntax.test.npy", "syntax.ax.npy", "syntax.test_matched.npy"} <= annotated
    fetched = {output for rule, output in jobs if rule == "download_file" and "/glue/" in output}
    assert {"data/glue/AX.tsv", "data/glue/msr_paraphrase_test.txt"} <= fetched


def test_training_reads_no_test_set(glue):
    printed = glue.snakemake("-np", "glue").output
    files = {output.split(",")[0] for _, output in glue.listed(printed)}
    assert not [path for path in files if "test" in path or path.endswith("AX.tsv")]
    assert "/test-1" not in printed  # with the slash: pytest names folders pytest-1…
    assert "mrpc_dev_ids.tsv" in printed


def test_a_benchmark_without_a_test_set_is_one_line(glue):
    del glue.config["benchmarks"]["glue"]["tasks"]["mnli"]["test_rows"]["ax"]
    done = glue.snakemake("-n", "glue-submission", check=False)
    assert done.returncode == 1
    message = (
        "benchmarks.glue.tasks.mnli.test_rows.ax: missing; GLUE's server wants the answers to all test sets"
    )
    assert [line for line in done.output.splitlines() if "missing" in line] == [message]


def test_the_best_seed_answers_and_nothing_trains_again(trained, check_loaded):
    glue, folder = trained, trained.folder / "results/glue"
    target = "results/glue/submission/roberta.zip"
    jobs = glue.planned(target)
    rules = [rule for rule, _ in jobs]
    assert {*rules} == {"glue_task", "encode_task", "predict", "glue_submission"}
    assert len(rules) == 2 * 2 + 2 * 2 + 1
    glue.snakemake("-c1", target)
    tasks = glue.config["benchmarks"]["glue"]["tasks"]
    counts = {name: tasks[task]["test_rows"][part] for name, (task, part) in SUBMISSION.items()}
    content = json.loads((folder / "submission/roberta.json").read_text())["files"]
    assert [content[name]["seed"] for name in ("RTE.tsv", "AX.tsv")] == [2, 2]
    with zipfile.ZipFile(glue.folder / target) as archive:
        for name, rows in (counts | {"WNLI.tsv": 146}).items():
            head, *lines = archive.read(name).decode().splitlines()
            assert head == "index\tprediction"
            assert [line.split("\t")[0] for line in lines] == [*map(str, range(rows))]
        assert len(archive.namelist()) == 11
        lines = archive.read("AX.tsv").decode().splitlines()[1:]
    assert [line.split("\t")[1] for line in lines] == (
        folder / "mnli/roberta/seed2/predictions.ax.txt"
    ).read_text().split()
    assert not glue.planned(target)
    assert {"predict", "glue-submission"} <= check_loaded(glue)
