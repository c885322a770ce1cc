"""The workflow on SLURM: the site's settings, how jobs are submitted and watched, what would be submitted.

Snakemake's SLURM plugin does the work; compat_slurm.py fixes its faults (docs/slurm.md).
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from synmask.pipeline.config.base import Count, Int, Line, Section, matching
from synmask.pipeline.config.loading import read_section
from synmask.pipeline.display import first_names
from synmask.pipeline.errors import UserError, exit_on_user_error
from synmask.pipeline.paths import below_results
from synmask.pipeline.provenance import is_tried
from synmask.pipeline.runs import TRAININGS
from synmask.pipeline.workflow import compat_snakemake, terminal
from synmask.pipeline.workflow.nodes import RESOURCES, answer, nodes_of, quantity, shortage

FILE = Path("slurm.local.yaml")  # in the project, ignored by git
# A pattern in sbatch's message when it refuses a job → the settings to look at: keys of FILE, or others.
REFUSALS = {
    "partition (name )?specified": "`{partition_key}` in {file}; `sinfo -s` lists the cluster's",
    "SubmitJob|job submit limit": "`jobs` in {file} (fewer jobs at once), or `qos`: {asks}",
    "account": "`account` in {file} (and whether it may use the partition {partition})",
    "qos": "`qos` in {file}",
    "time limit": "{runtime}: {asks}",
    "gres": "{gpus}, `gpu_partition` or `gpu_model` in {file}: {asks}",
    "memory": "{mem_mb}: {asks}",
    "CPU count|processors": "{threads}: {asks}",
    "node configuration": "{mem_mb}, another resource there, or {file}: no node of {partition} fits: {asks}",
    "unrecognized option|node name|slurm_extra|constraint|feature": "`extra` in {file}",
}
# A part of SLURM's reason why a job waits → what to do; for other reasons, nothing.
WAITING = {
    "PartitionTimeLimit": "ask for less `runtime`",
    "Partition": "`sinfo -s` shows it",
    "QOS": "a limit of `qos` in {file}",
    "Assoc": "a limit of `account` in {file}",
    "NodeNotAvail": "`sinfo -R` says why nodes are away",
    "JobHeld": "`scontrol release` lets it start",
}
# an environment variable of jobs on several nodes: what starts a worker per GPU
LAUNCHER = "SYNMASK_LAUNCHER"
Name = Annotated[str, matching(r"[\w.,:@+-]+", "a name")]


class Site(Section):
    """Names of a site, and its limits. `FILE` holds the keys that differ from these.

    Attributes:
        partition, gpu_partition: for jobs without and with a GPU; trainings, decoding, parsing and
            fine-tuning need the latter.
        gpu_model: a kind of GPU, such as a100.
        extra: other options of sbatch, for every job.
        setup: lines of bash that run before each step, such as "module load gcc".
        jobs: the most jobs in the queue at once.
        longest: the longest time limit, in minutes, of jobs other than trainings.
        latency_wait: seconds that a file written on a node may take to appear here.
        status: the command that queries the states of jobs.
    """

    partition: Name = "main"
    gpu_partition: Name = "gpu"
    gpu_model: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    extra: Line | Literal[""] = ""
    setup: tuple[Line, ...] = ()
    jobs: Annotated[Int, Field(ge=1, le=10000)] = 100
    longest: Annotated[Int, Field(ge=10)] = 240
    latency_wait: Count = 60
    status: Literal["squeue", "sacct"] = "squeue"

    def resources(self, **others: Any) -> dict[str, Any]:
        """The profile's default resources: words for the plugin, and `others`."""
        words = {"slurm_partition": self.partition, "slurm_account": self.account, "qos": self.qos}
        return _quoted(words | {"slurm_extra": self.extra}) | others

    def on_gpus(self, **others: Any) -> dict[str, Any]:
        """The resources of rules that use a GPU, and `others`."""
        return _quoted({"slurm_partition": self.gpu_partition, "gpu_model": self.gpu_model}) | others


def _quoted(words: dict[str, str | None]) -> dict[str, str]:
    """The given options, quoted as Snakemake evaluates resources."""
    return {name: repr(word) for name, word in words.items() if word}


def read_site(path: Path = FILE) -> Site:
    """The site's settings; those of `Site` without such a file.

    Raises:
        UserError: an unknown key or a wrong value (one line).
    """
    return read_section(path, Site) if path.exists() else Site()


profile_site = exit_on_user_error()(read_site)  # for the profile, which Snakemake reads before all else


def setup() -> str:
    """The prefix of each step: the site's lines of bash, then Snakemake's own; empty without such."""
    lines = [*read_site().setup]
    if launcher := os.environ.get(LAUNCHER):
        lines.append(f'synmask() {{ {launcher} synmask "$@"; }}')
    lines = [line.replace("{", "{{").replace("}", "}}") for line in lines]  # Snakemake formats it
    return "\n".join([*lines, "set -euo pipefail; "]) if lines else ""


# ---- jobs, as Snakemake has them ---------------------------------------------------------------------------


def job_kind(job: Any) -> str:
    """The name of this kind of job: its group, or its rule."""
    return job.groupid if job.is_group() else job.rule.name


def job_title(job: Any) -> str:
    """The name of a job for people, such as synmask/iwslt14/de-en/grammar/seed3:train."""
    folder = os.path.commonpath([os.path.dirname(path) or "." for path in job.output])
    return f"synmask/{below_results(folder)}:{job_kind(job)}"


def is_training(job: Any) -> bool:
    return not job.is_group() and job.rule.name in TRAININGS


def minutes_of(job: Any, site: Site) -> int:
    """The time that a job asks for: less than `longest`, except for trainings, which resume."""
    minutes = int(job.resources.get("runtime") or 0)
    return minutes if is_training(job) else min(minutes, site.longest)


def partition_of(job: Any, site: Site) -> str:
    """The partition for a job: without a GPU (a training's `gpus: 0`) it is not that of the GPUs."""
    partition = str(job.resources.get("slurm_partition"))
    gpus = job.resources.get("gpu")
    return site.partition if partition == site.gpu_partition and not gpus else partition


def _partition_key(partition: str, site: Site) -> str:
    """The key of `FILE` that names a partition."""
    return "gpu_partition" if site.partition != partition == site.gpu_partition else "partition"


def amounts_of(job: Any, site: Site) -> dict[str, Any]:
    """The resources of a job on each of its nodes, by unit."""
    cpus = job.resources.get("cpus_per_task") or job.threads
    gpus, memory = job.resources.get("gpu") or 0, job.resources.get("mem_mb")
    gpus //= job.resources.get("nodes") or 1
    return {"CPU": cpus, "GPU": gpus, "MB": memory, "minute": minutes_of(job, site)}


def key_to_change(job: Any, resource: str) -> str:
    """The key to change for a job's threads, mem_mb, gpus or runtime, and its file."""
    first = next(iter(job.jobs)) if job.is_group() else job
    if is_training(job) or (resource != "runtime" and hasattr(first.wildcards, "seed")):
        return terminal.planned.key_to_change(first.wildcards, resource)
    if resource == "runtime":
        return f"`longest` in {FILE}"
    return f"`partition` in {FILE} (the workflow chooses the amounts of this job)"


def request_text(job: Any, site: Site) -> str:
    """The request of a job, in words."""
    amounts = amounts_of(job, site)
    units = ("MB", "minute", "CPU", "GPU")
    return ", ".join(quantity(amounts[unit], unit) for unit in units if amounts[unit])


# ---- messages ----------------------------------------------------------------------------------------------


def check_commands() -> None:
    """Check that SLURM's commands are installed.

    Raises:
        UserError: one is not on PATH.
    """
    if missing := [name for name in ("sbatch", "squeue", "scancel") if shutil.which(name) is None]:
        do = "give this command on a login node of the cluster, with SLURM's module (`module load slurm`)"
        raise UserError(
            f"no {', '.join(missing)} on PATH: {do}; without a cluster, leave out --profile slurm"
        )


def check_requests(dag: Any, site: Site) -> None:
    """Check that each job's partition exists, and that its request fits on a node and into its time limit.

    SLURM may queue such a job for ever (reason PartitionTimeLimit).

    Raises:
        UserError: jobs ask for more (a line for each key to change).
    """
    if excesses := _excesses(jobs_of(dag), site):
        raise UserError("\n".join([*excesses, "nothing was submitted"]))


def _excesses(jobs: Iterable[Any], site: Site) -> list[str]:
    """Requests of jobs above what their partitions have: a line for each key to change."""
    nodes = cache(nodes_of)
    faults: dict[str, list[str]] = {}
    for job in jobs:
        partition, amounts = partition_of(job, site), amounts_of(job, site)
        present = nodes(partition, job.resources.get("gpu_model") if amounts["GPU"] else None)
        if present == []:
            key = _partition_key(partition, site)
            fault = f"no partition {partition}: change `{key}` in {FILE}; `sinfo -s` lists the cluster's"
        elif shortfall := shortage(amounts, present, partition):
            fault = f"{shortfall[1]}: change {key_to_change(job, RESOURCES[shortfall[0]])}"
        else:
            continue
        faults.setdefault(fault, []).append(job_title(job))
    return [f"{first_names([*dict.fromkeys(titles)])}: {fault}" for fault, titles in faults.items()]


def refusal_message(msg: str, job: Any, site: Site) -> str:
    """sbatch's message when it refused a job, and the key to change, if that is known."""
    match = re.search(r"The error message was '(.*?)'\.\n    sbatch call", msg, re.S)
    message = (match[1] if match else msg.removeprefix("Job submission failed with exception: ")).strip()
    where = next((where for part, where in REFUSALS.items() if re.search(part, message, re.I)), "")
    partition = partition_of(job, site)
    facts = {name: key_to_change(job, name) for name in RESOURCES.values()}
    facts |= {"partition": partition, "partition_key": _partition_key(partition, site)}
    asks = f"this job asks for {request_text(job, site)}"
    return f"{message}\nchange {where.format(file=FILE, asks=asks, **facts)}" if where else message


def state_of(msg: str) -> str:
    """SLURM's state of a job that has failed, in the plugin's message; "" if it names none."""
    match = re.search(r"SLURM status is: '(\S+)'", msg)
    return match[1] if match else ""


def end_message(msg: str, lines: Iterable[str], job: Any, site: Site) -> str:
    """How a job ended, by its state and by SLURM's `lines` in its log."""
    number, state = re.search(r"SLURM-job '(\S+)' failed", msg), state_of(msg)
    if not (number and state):
        return msg
    over = {"TIMEOUT": "time", "OUT_OF_MEMORY": "memory"}.get(state)
    if re.search("memory limit|oom.kill|out of memory", " ".join(lines), re.I):
        over = "memory"
    why = f", over its {over}: it asked for {request_text(job, site)}" if over else ""
    if state == "CANCELLED":
        why = "; to stop all jobs, press Ctrl-C here"
    return "\n".join([f"SLURM job {number[1]}: {state}{why}", *lines])


def failed_outputs(logs: Iterable[str]) -> list[str]:
    """The first output of each job that failed, by the logs of a group's Snakemake; none if it was killed."""
    texts = (Path(log).read_text(errors="replace") for log in logs if os.path.exists(log))
    return [
        path
        for text in texts
        for path in re.findall(r"^Error in rule .*?^    output: ([^,\n]+)", text, re.M | re.S)
    ]


def squeue(*words: str) -> str:
    """The lines of squeue; empty if SLURM does not answer, or does not know a job that is asked for."""
    return answer("squeue", *words) or ""


# ---- jobs of an earlier Snakemake, and jobs that wait ------------------------------------------------------


def earlier_jobs(folder: str) -> dict[str, str]:
    """The jobs of SLURM that a killed Snakemake has left in a folder: number → title."""
    rows = (line.split("|", 2) for line in squeue("--me", "--format=%i|%Z|%k").splitlines())
    return {number: name for number, place, name in rows if place == folder and name.startswith("synmask/")}


def may_overlap(name: str, other: str) -> bool:
    """Whether jobs with these titles may write the same files: of a group, a part may be left to do.

    >>> may_overlap("synmask/demo:text", "synmask/demo/de-en:text")
    True
    >>> may_overlap("synmask/demo/de-en/a/seed1:train", "synmask/demo/de-en/a/seed10:train")
    False
    """
    (folder, kind), (other_folder, other_kind) = (text.rsplit(":", 1) for text in (name, other))
    short, long = sorted((f"{folder}/", f"{other_folder}/"), key=len)
    return kind == other_kind and long.startswith(short)


def waiting_messages(reasons: Mapping[str, str], site: Site) -> Iterator[str]:
    """A line per reason for which SLURM lets jobs wait: title → reason."""
    for reason in dict.fromkeys(reasons.values()):
        names = first_names([name for name, other in reasons.items() if other == reason])
        change = next((change for part, change in WAITING.items() if part in reason), "")
        yield f"in SLURM's queue for {reason}: {names}{change and f'; {change.format(file=FILE)}'}"


def continuation_message(number: str, job: Any, site: Site, lines: Iterable[str]) -> str:
    """The message about a training that saved and stopped, by the number and the last lines of its job."""
    epoch = next(filter(None, map(terminal.EPOCH.search, reversed([*lines]))), None)
    place = f" in epoch {epoch[1]} of {epoch[2]}" if epoch else ""
    limit = f"{minutes_of(job, site):,} min: {key_to_change(job, 'runtime')}"
    return f"SLURM job {number} was stopped{place}, and saved; it continues in the next job ({limit})"


# ---- the table of a dry run --------------------------------------------------------------------------------


def table(workflow: Any) -> list[str]:
    """The lines of a dry run: SLURM's jobs by kind, and what each asks for; none without the profile."""
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    registry = ExecutorPluginRegistry()
    profiled = any("slurm_partition" in rule.resources for rule in workflow.rules)
    if not workflow.dag or not profiled or not registry.is_installed("slurm"):
        return []
    if not is_tried("snakemake", compat_snakemake.TRIED):
        return []
    with compat_snakemake.as_executed_by(registry.get_plugin("slurm"), workflow):
        return _table(workflow.dag)


def _table(dag: Any) -> list[str]:
    site, jobs = read_site(), jobs_of(dag)
    if not any(job.resources.get("slurm_partition") for job in jobs):
        return []
    kinds: dict[str, list[Any]] = {}
    for job in jobs:
        kinds.setdefault(job_kind(job), []).append(job)
    rows = [("job", "how many", "partition", "CPUs", "GPUs", "MB", "minutes")]
    for kind, same_kind in sorted(kinds.items()):
        partitions = ", ".join(sorted({partition_of(job, site) for job in same_kind}))
        amounts = zip(*(amounts_of(job, site).values() for job in same_kind), strict=True)
        rows.append((kind, f"{len(same_kind):,}", partitions, *map(_range, amounts)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    hours = sum(minutes_of(job, site) * (job.resources.get("nodes") or 1) for job in jobs) / 60
    return [
        "",
        "SLURM would get these jobs; each number is of one job:",
        *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows),
        f"at most {hours:,.{hours < 10:d}f} node-hours, if each takes all its time; "
        "a training may take several such jobs",
        *_excesses(jobs, site),
    ]


def jobs_of(dag: Any) -> list[Any]:
    """The jobs of SLURM that are to be done."""
    chosen = [job for job in dag.needrun_jobs(exclude_finished=False) if not job.is_local]
    jobs = {id(job): job for job in (dag.get_job_group(job) or job for job in chosen)}
    for job in jobs.values():
        # its setter forgets the resources of a dry run's groups, which count otherwise
        job.attempt = job.attempt
    return list(jobs.values())


def _range(amounts: tuple[Any, ...]) -> str:
    """One number, or the least and the greatest."""
    known = sorted({amount for amount in amounts if isinstance(amount, int)})
    return "–".join(f"{amount:,}" for amount in (*known[:1], *known[1:][-1:])) or "?"
