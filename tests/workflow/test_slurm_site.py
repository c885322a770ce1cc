"""The slurm profile without a cluster: the site's file, what would be submitted."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.iocontainers import Wildcards
from snakemake_executor_plugin_slurm.submit_string import get_submit_command

from synmask.pipeline.config.loading import key_in_file, load, project_files, read_all
from synmask.pipeline.errors import UserError
from synmask.pipeline.runs import Run, Tuning
from synmask.pipeline.workflow import nodes, slurm, terminal
from synmask.pipeline.workflow.compat_slurm import _with_our_options
from synmask.pipeline.workflow.jobs import Jobs, by_attempt
from synmask.pipeline.workflow.nodes import nodes_of
from synmask.pipeline.workflow.slurm import (
    Site,
    check_requests,
    continuation_message,
    end_message,
    partition_of,
    read_site,
    refusal_message,
)

ROOT = Path(__file__).parents[2]
SLURM = ["-n", "--profile", "slurm"]
GPU_RULES = ("train", "decode", "parse", "score", "average", "finetune", "predict", "nlu_score", "pretrain")
SITE = """
partition: short
gpu_partition: a100
account: lab
extra: --exclude=node7
longest: 60
"""


@pytest.fixture(autouse=True)
def planned(monkeypatch):
    """Of the plan, what names the key of a resource."""
    stand_in = SimpleNamespace(key_to_change=lambda wildcards, name: f"`resources.{name}` in config.yaml")
    monkeypatch.setattr(terminal, "planned", stand_in)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partion: x", "slurm.local.yaml, line 1: partion: unknown key 'partion'; did you mean 'partition'?"),
        ("jobs: many", "slurm.local.yaml, line 1: jobs: must be a whole number (given: 'many')"),
        ("partition: a b", "slurm.local.yaml, line 1: partition: must be a name (given: 'a b')"),
        ("[main]", "slurm.local.yaml: expected keys and values, found a list"),
    ],
)
def test_a_wrong_site_file_is_one_line(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("slurm.local.yaml").write_text(text)
    with pytest.raises(UserError) as raised:
        read_site()
    assert str(raised.value) == message


def checked(project, *targets):
    """Each rule of a dry run: rule → (partition, account, options of sbatch)."""
    found, rule = {}, None
    for line in project.snakemake("-np", "--profile", "slurm", *targets).output.splitlines():
        if began := re.match(r" *rule (\w+):", line):
            rule = began[1]
        elif line.strip().startswith("resources: "):
            words = dict(word.partition("=")[::2] for word in line.split(": ", 1)[1].split(", "))
            found[rule] = tuple(words.get(f"slurm_{name}") for name in ("partition", "account", "extra"))
    return found


def test_the_site_file_is_laid_over_the_profile(project):
    without = checked(project, "demo", "nlu-demo")
    assert {rule for rule in GPU_RULES if without[rule] == ("gpu", None, None)} == {*GPU_RULES}
    (project.folder / "slurm.local.yaml").write_text(SITE)
    found = checked(project, "demo", "nlu-demo")
    assert {found[rule] for rule in GPU_RULES} == {("a100", "lab", "--exclude=node7")}
    assert found["subwords"] == ("short", "lab", "--exclude=node7")
    ignored = subprocess.run(["git", "check-ignore", "-q", "slurm.local.yaml"], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_a_dry_run_says_what_slurm_would_get(project):
    (project.folder / "slurm.local.yaml").write_text(SITE)
    project.config["experiments"]["demo"]["seeds"] = [1, 2, 3]
    lines = project.snakemake(*SLURM, "demo").output.splitlines()
    table = lines[lines.index("SLURM would get these jobs; each number is of one job:") + 1 :]
    rows = {line.split()[0]: line.split() for line in table}
    assert rows["train"] == ["train", "6", "short", "1", "0", "3,000", "30"]  # without a GPU
    assert {rows[name][2] for name in ("text", "evaluate")} == {"short"}
    assert [rows[name][1] for name in ("text", "evaluate")] == ["1", "6"]
    assert rows["evaluate"][-1] == "60"  # `longest`
    numbers = [(int(row[1]), int(row[-1])) for row in rows.values() if len(row) == 7 and row[-1].isdigit()]
    hours = sum(count * minutes for count, minutes in numbers) / 60
    assert f"at most {hours:.1f} node-hours" in "\n".join(table)
    assert "SLURM" not in project.snakemake("-n", "demo").output


def test_without_sbatch_it_says_so_at_once(project, monkeypatch, tmp_path_factory):
    bare = tmp_path_factory.mktemp("bare")
    for name in ("bash", "sh", "env", "git", "uname", "which"):
        (bare / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(bare))
    done = project.snakemake("--profile", "slurm", "results/demo/de-en/text/train.de", check=False)
    assert done.returncode == 1
    assert done.output.splitlines()[-1].startswith(
        "no sbatch, squeue, scancel on PATH: give this command on a login node"
    )
    assert "Traceback" not in done.output


def job(rule="subwords", **resources):
    kept = {"slurm_partition": "gpu", "mem_mb": 2000, "runtime": 30} | resources
    output = [f"results/demo/de-en/grammar/seed1/{name}" for name in ("train.json", "logs/x")]
    rule, wildcards = SimpleNamespace(name=rule), SimpleNamespace(corpus="demo", seed="1")
    facts = {"resources": kept, "rule": rule, "output": output, "wildcards": wildcards}
    return SimpleNamespace(threads=2, attempt=1, is_group=lambda: False, **facts)


def test_a_training_is_warned_before_its_limit_and_other_jobs_stay_under_the_longest():
    command = _with_our_options(
        lambda job, params: f"sbatch --comment {params['comment_str']} -t {job.resources['runtime']}"
    )
    name = "sbatch --comment synmask/demo/de-en/grammar/seed1"
    assert command(job("train"), {}) == f"{name}:train -t 30 --signal=TERM@300"
    assert command(job("train", runtime=4), {}) == f"{name}:train -t 4 --signal=TERM@60"
    assert command(job("train", runtime=4320), {}) == f"{name}:train -t 4320 --signal=TERM@300"
    assert command(job(runtime=480), {}) == f"{name}:subwords -t 240"


class Given(dict):
    """Resources as Snakemake has them: keys are attributes, too."""

    __getattr__ = dict.__getitem__


def test_a_training_on_several_nodes_has_a_worker_per_gpu(monkeypatch, tmp_path):
    values = read_all(project_files(ROOT))
    values["corpora"]["demo"]["resources"] |= {"gpus": 2, "nodes": 3, "threads": 4}
    values["corpora"]["demo"]["training"]["batch"]["gpus"] = 12
    run = {"corpus": "demo", "source": "de", "target": "en", "system": "grammar", "seed": "1"}
    jobs = Jobs(load(values))
    one = jobs(Wildcards(fromdict=run))
    training = job("train", **one.on_nodes(), gpu=one.gpus(), cpus_per_task=4)
    training.resources = Given(training.resources)
    facts = {"run_uuid": "u", "slurm_logfile": "log", "account": "", "partition": "", "workdir": None}
    command = _with_our_options(get_submit_command)(training, facts)
    launcher = "srun --nodes=3 --ntasks=6 --gpus-per-task=1 --kill-on-bad-exit=1 --cpus-per-task=4"
    assert f"--export=ALL,SYNMASK_LAUNCHER='{launcher}'" in command
    assert " --nodes=3 --ntasks=6 --cpus-per-task=4" in command
    assert slurm.amounts_of(training, Site())["GPU"] == 2  # on each node
    assert jobs.uneven_gpus([Run(**run)]) == ""
    values["corpora"]["demo"]["training"]["batch"]["gpus"] = 2
    uneven = Jobs(load(values)).uneven_gpus([Run(**run)] * 2)
    assert uneven.startswith("`corpora.demo.resources`: 6 GPUs cannot share an update of 2 batches evenly")
    values["benchmarks"]["nlu-demo"]["resources"]["gpus"] = 2
    tuned = {"benchmark": "nlu-demo", "task": "predicate", "system": "roberta", "seed": "1"}
    assert Jobs(load(values)).uneven_gpus([Tuning(**tuned)]) == (
        "`benchmarks.nlu-demo.resources`: fine-tuning uses one GPU of 2: ask for one"
    )
    values["corpora"]["demo"]["resources"] |= {"gpus": 1, "nodes": 1}
    one = Jobs(load(values))(Wildcards(fromdict=run))
    assert (one.on_nodes(), one.gpus()) == ({}, 1)

    # in its job, `synmask` is what srun starts
    monkeypatch.chdir(tmp_path)
    assert slurm.setup() == ""
    monkeypatch.setenv("SYNMASK_LAUNCHER", "echo srun -n 6")
    prefix = slurm.setup().format()
    done = subprocess.run(
        ["bash", "-c", f"{prefix} synmask train 'a b'"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "srun -n 6 synmask train a b\n"


def test_several_nodes_need_slurm(project):
    project.config["corpora"]["demo"]["resources"] |= {"gpus": 1, "nodes": 2}
    assert "2 GPUs cannot share an update of 1 batches" in project.snakemake("-n", "demo").output
    done = project.snakemake("results/demo/de-en/grammar/seed1/train.json", check=False)
    assert done.returncode == 1
    assert (
        "several nodes of one training need --profile slurm, and snakemake-executor-plugin-slurm 2.8.0"
        in done.output
    )


@pytest.mark.parametrize(
    ("expected", "key"),
    [
        ("sbatch: error: invalid partition specified: gpu", "`gpu_partition` in slurm.local.yaml"),
        ("Batch job submission failed: Invalid account or account/partition combination specified", "`account`"),
        ("Batch job submission failed: Invalid qos specification", "`qos` in slurm.local.yaml"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "`jobs`"),
        ("sbatch: error: AssocMaxSubmitJobLimit", "`jobs` in slurm.local.yaml"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "this job asks for 2,000 MB, 30 minutes"),
        ("Requested node configuration is not available", "no node of gpu fits: this job asks for 2,000 MB, 30 minutes, 2 CPUs"),
        ("Memory specification can not be satisfied", "`resources.mem_mb` in config.yaml"),
        ("Invalid generic resource (gres) specification", "`resources.gpus` in config.yaml"),
        ("sbatch: unrecognized option '--foo'", "`extra` in slurm.local.yaml"),
        ("allocation failure: More processors requested than permitted", "`resources.threads` in config.yaml"),
        ("Batch job submission failed: Invalid node name specified", "`extra` in slurm.local.yaml"),
    ],
)  # fmt: skip
def test_what_sbatch_says_comes_with_the_key_to_change(expected, key):
    message = (
        f"SLURM sbatch failed. The error message was '{expected}'.\n    sbatch call:\n        sbatch …\n"
    )
    first, *rest = refusal_message(message, job(gpu=1), Site()).splitlines()
    assert first == expected
    assert key in rest[0]


def test_a_lost_job_says_how_it_ended():
    message = "SLURM-job '7' failed, SLURM status is: 'FAILED'. Detailed failure reason unavailable"
    assert end_message(message, [], job(), Site()) == "SLURM job 7: FAILED"
    killed = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0"
    assert "over its memory: it asked for 2,000 MB" in end_message(message, [killed], job(), Site())


# The end of its Snakemake's log: first the job that failed, then all of the group.
FAILED_GROUP = """
Error in rule decode:
    message: None
    output: results/a/hypothesis.valid.txt, results/a/hypothesis.test.txt
srun: error: node1: task 0: Exited with exit code 1
    message: Error in group evaluate
    Error in rule average:
        output: results/a/average.pt
"""
SINFO = """256000 64 1-00:00:00 gpu:2
512000 32 1-00:00:00 (null)
128000+ 16 1-00:00:00 gpu:a100:4(S:0-1),gpu:v100:2
"""


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """A stand-in for sinfo, of a partition of three nodes."""
    (tmp_path / "sinfo").write_text(
        f"#!/bin/sh\ncase $* in *--partition=gpu\\ *) echo '{SINFO}';; *silent*) exit 1;; esac\n"
    )
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_nodes_have_what_sinfo_says(cluster):
    assert [tuple(node.values()) for node in nodes_of("gpu")] == [
        (256000, 64, 2, 1440),
        (512000, 32, 0, 1440),
        (128000, 16, 6, 1440),
    ]
    assert [node["GPU"] for node in nodes_of("gpu", "a100")] == [0, 0, 4]
    assert nodes_of("unknown") == []
    assert nodes_of("silent") is None


@pytest.mark.parametrize(
    ("limit", "minutes"),
    [("infinite", sys.maxsize), ("30:00", 30), ("4:00:00", 240), ("1-12:30:00", 2190), ("n/a", sys.maxsize)],
)
def test_time_limits_of_partitions_are_read_in_all_forms(limit, minutes):
    assert nodes._minutes(limit) == minutes


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"mem_mb": 512000}, None),
        ({"mem_mb": 900000}, "no node of gpu has 900,000 MB, but at most 512,000: change `resources.mem_mb` in config.yaml"),
        ({"cpus_per_task": 65}, "no node of gpu has 65 CPUs, but at most 64: change `resources.threads` in config.yaml"),
        ({"gpu": 7}, "no node of gpu has 7 GPUs, but at most 6: change `resources.gpus` in config.yaml"),
        ({"gpu": 3, "gpu_model": "v100"}, "no node of gpu has 3 GPUs, but at most 2: change `resources.gpus` in config.yaml"),
        ({"gpu": 1, "mem_mb": 300000}, "no node of gpu has so many CPUs, GPUs and so much memory together: "
         "change `resources.mem_mb` in config.yaml"),
        ({"runtime": 1440}, None),
        ({"runtime": 6000}, "partition gpu allows 1,440 minutes, and this job asks for 6,000: change `resources.runtime` in config.yaml"),
        ({"mem_mb": 900000, "slurm_partition": "silent"}, None),
        ({"slurm_partition": "unknown"}, "no partition unknown: change `partition` in slurm.local.yaml; `sinfo -s` lists the cluster's"),
    ],
)  # fmt: skip
def test_requests_that_no_node_can_satisfy_stop_before_the_first_job(cluster, resources, message):
    jobs = [job("train", **resources), job("train", **resources), job("train"), job("pretrain", **resources)]
    for one in jobs:
        one.is_local = False
    dag = SimpleNamespace(needrun_jobs=lambda **_: jobs, get_job_group=lambda job: None)
    site = Site(gpu_partition="other")
    if message is None:
        return check_requests(dag, site)
    with pytest.raises(UserError) as raised:
        check_requests(dag, site)
    names = ", ".join(f"synmask/demo/de-en/grammar/seed1:{rule}" for rule in ("train", "pretrain"))
    assert str(raised.value) == f"{names}: {message}\nnothing was submitted"
    return None


def test_a_job_without_a_gpu_is_not_where_the_gpus_are():
    site = Site(partition="main", gpu_partition="gpu")
    assert [partition_of(job("train", gpu=gpus), site) for gpus in (0, 2)] == ["main", "gpu"]
    assert partition_of(job("train", slurm_partition="mine"), site) == "mine"


def test_jobs_of_an_earlier_snakemake_are_known_by_their_folder_and_title(monkeypatch):
    rows = "3|/here|synmask/demo/de-en/grammar/seed1:train\n4|/there|synmask/demo:text\n5|/here|(null)\n"
    monkeypatch.setattr(slurm, "squeue", lambda *_: rows)
    assert slurm.earlier_jobs("/here") == {"3": "synmask/demo/de-en/grammar/seed1:train"}


def test_a_failed_group_is_named_by_the_jobs_that_failed(tmp_path):
    log = tmp_path / "7.log"
    log.write_text(FAILED_GROUP)
    assert slurm.failed_outputs([str(log), str(tmp_path / "none")]) == ["results/a/hypothesis.valid.txt"]


def test_jobs_that_wait_are_named_with_the_reason_and_what_to_do():
    reasons = {"a:train": "PartitionTimeLimit", "b:train": "PartitionTimeLimit", "c:text": "Priority"}
    assert [*slurm.waiting_messages(reasons, Site())] == [
        "in SLURM's queue for PartitionTimeLimit: a:train, b:train; ask for less `runtime`",
        "in SLURM's queue for Priority: c:text",
    ]


def test_a_request_is_blamed_on_the_file_that_sets_it(tmp_path):
    mine = tmp_path / "mine.yaml"
    files = [*project_files(ROOT), mine]
    config = load(read_all(files[:-1]))

    def blamed(text, key="mem_mb"):
        mine.write_text(text)
        return key_in_file((*config.resources_key({"corpus": "demo"}), key), read_all(files))

    key, common = "`corpora.demo.resources.mem_mb`", "`resources.gpus`"
    assert blamed("corpora: {demo: {resources: {mem_mb: 900000}}}") == f"{key} in {mine}, line 1"
    assert blamed("resources: {gpus: 8}", "gpus") == f"{common} in {mine}, line 1"
    assert blamed("seeds: [1]").startswith(key)
    assert str(mine) not in blamed("seeds: [1]")


LOG = "grammar/seed1  epoch 22/400 done  loss 1.2  900 tokens/s  11:00 left\nstopped by a signal, and saved\n"


def test_a_training_that_continues_says_where_and_in_which_time():
    assert continuation_message("3", job("train", runtime=1), Site(), LOG.splitlines()) == (
        "SLURM job 3 was stopped in epoch 22 of 400, and saved; it continues in the next job "
        "(1 min: `resources.runtime` in config.yaml)"
    )


def test_requests_follow_from_the_corpus_and_grow_with_the_attempt():
    jobs = Jobs(load(read_all(project_files(ROOT))))
    small, large = (Wildcards(fromdict={"corpus": name, "source": "de"}) for name in ("demo", "nc11"))
    assert jobs(small).minutes(10_000) == 3
    assert 20 < jobs(large).minutes(10_000) < 60
    assert jobs(large).megabytes(1200) > jobs(small).megabytes(1200)
    assert [by_attempt(100)({}, attempt) for attempt in (1, 2, 3, 9)] == [100, 200, 300, 300]
