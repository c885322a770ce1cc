"""The text that the terminal shows during a run of Snakemake: trainings, progress, failures, summary.

This module only makes text. `snakemake_logger_plugin_synmask` receives Snakemake's events and prints it.
"""

import os
import re
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from synmask.pipeline.config.base import nearest
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.display import count_of_jobs, duration, first_names
from synmask.pipeline.errors import UserError
from synmask.pipeline.paths import below_results
from synmask.pipeline.runs import TRAININGS

if TYPE_CHECKING:
    from synmask.pipeline.workflow.planned import Planned

TAIL = 16384  # bytes read from the end of a log
LOG_LINES = 30  # lines shown of a failed job's log
STOPPED = "stopped by a signal"  # in the last line of a training that the same command continues
CLOCK_SKEW_SECONDS = 30  # seconds that a file system's clock may lag
SUMMARY_FILES = re.compile(r"tables/[^/]+\.md$|/report[^/]*\.html$")  # files that the summary names
EPOCH = re.compile(r"epoch (\d+)/(\d+)(?: done|  batch (\d+)/(\d+)).*?(?:([\d:]+) left)?$")
RERUN_HINT = (
    "fix it, then give the same command again: what is done stays, trainings resume where they last saved"
)


# of Snakemake's command line
OPTIONS = ArgumentParser(add_help=False, allow_abbrev=False)
OPTIONS.add_argument("--config", "-C", nargs="*", action="extend", default=[])
OPTIONS.add_argument("--configfile", "--configfiles", nargs="*", action="extend", default=[])


planned: "Planned | None" = None  # the jobs of this call, once the Snakefile is read


@dataclass
class RunningJob:
    """A job that runs, or waits in a scheduler's queue.

    Attributes:
        share: the finished share of a training, 0 to 1; None before its log shows it.
        started, ends: start and expected end of the training, by `time.monotonic`.
        last_line: the last line of its log on an epoch.
    """

    rule: str
    outputs: list[str]
    logs: list[str]
    since: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    share: float | None = None
    ends: float | None = None
    last_line: str = ""

    @property
    def training(self) -> bool:
        return self.rule in TRAININGS

    @property
    def name(self) -> str:
        """The name of a training: its folder in results/."""
        return below_results(str(Path(self.outputs[0]).parent))

    def read_progress(self) -> None:
        """Read the training's progress from its log."""
        lines = (line for log in self.logs for line in reversed(last_lines(log, self.since)))
        match = next(filter(None, map(EPOCH.search, lines)), None)
        if match is None or match[0] == self.last_line:
            return
        first, self.last_line = not self.last_line, match[0]
        epoch, epochs, step, steps = (int(number) if number else None for number in match.groups()[:4])
        self.share = (epoch if steps is None else epoch - 1 + step / steps) / epochs
        self.ends = time.monotonic() + seconds_of(match[5]) if match[5] else None
        if first and self.left and self.share < 1:  # it may have waited in a queue, or resumed
            self.started = time.monotonic() - self.left * self.share / (1 - self.share)

    @property
    def epoch(self) -> str:
        return " ".join(self.last_line.split()[:2])

    @property
    def left(self) -> float | None:
        """Estimated seconds until the training ends."""
        return None if self.ends is None else max(0.0, self.ends - time.monotonic())


@dataclass
class WorkflowRun:
    """A run of Snakemake: the number of jobs per rule, those that run, those that are done.

    With `touching` (--touch), no job runs: those files that exist count as made.
    """

    counts: dict[str, int] = field(default_factory=dict)
    running: dict[int, RunningJob] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    trained: list[float] = field(default_factory=list)  # seconds of each training that is done
    failed: set[str] = field(default_factory=set)  # rules
    interrupted: bool = False
    touching: bool = False
    absent: int = 0  # touched jobs whose files do not all exist
    made: list[str] = field(default_factory=list)  # tables, pages
    last: list[str] = field(default_factory=list)  # outputs of the last job
    noted: set[str] = field(default_factory=set)  # notes of jobs that were shown
    at_once: int = 1  # the maximum number of trainings that ran in parallel
    log: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def trainings(self) -> int:
        return sum(self.counts.get(rule, 0) for rule in TRAININGS)

    @property
    def in_training(self) -> list[RunningJob]:
        return [job for job in self.running.values() if job.training]

    def start(self, number: int, job: RunningJob) -> None:
        self.running[number] = job
        self.at_once = max(self.at_once, len(self.in_training))

    def finish(self, number: int) -> RunningJob | None:
        """Record that a job is done → that job; None if its start was not reported."""
        job = self.running.pop(number, None)
        if job is None:
            return None
        self.done[job.rule] += 1
        self.absent += self.touching and not all(map(os.path.exists, job.outputs))
        self.last = job.outputs or self.last
        self.made += [path for path in job.outputs if SUMMARY_FILES.search(path)]
        if job.training:
            self.trained.append(time.monotonic() - job.started)
        return job

    def finish_message(self, job: RunningJob) -> str | None:
        """The message on a finished job, if it is a training or the last job of its rule."""
        if self.touching:
            return None
        if job.training:
            return f"{job.name} trained in {duration(time.monotonic() - job.started)}"
        if self.done[job.rule] == self.counts.get(job.rule) and job.outputs:
            return f"{job.rule} ({self.done[job.rule]})" if self.done[job.rule] > 1 else job.rule
        return None

    def notes(self, job: RunningJob) -> Iterator[str]:
        """The new notes in a finished job's logs, each shown once: lines that begin with "note: "."""
        for line in (line for log in job.logs for line in last_lines(log, job.since)):
            if line.startswith("note: ") and line not in self.noted:
                self.noted.add(line)
                yield line

    def drop(self, numbers: Iterable[int]) -> float:
        """Forget jobs that ended without success → when the first of them was started."""
        jobs = [self.running.pop(number, None) for number in numbers]
        return min((job.since for job in jobs if job), default=0.0)

    def left(self) -> float | None:
        """Estimated seconds until all trainings have ended; None before any has shown progress.

        Trainings that have not begun are assumed to take the mean time of the others, with as many in
        parallel as so far.
        """
        running = self.in_training
        known = [job for job in running if job.left is not None]
        lasting = [*self.trained, *(time.monotonic() - job.started + job.left for job in known)]
        if not lasting:
            return None
        typical = sum(lasting) / len(lasting)
        each = [job.left if job.left is not None else typical for job in running]
        waiting = self.trainings - len(self.trained) - len(running)
        return max([*each, (sum(each) + waiting * typical) / self.at_once])

    def progress(self) -> str:
        return f"{sum(self.done.values())} of {self.total} jobs"

    def full_progress(self) -> str:
        """One line on the progress of the whole run."""
        words = [self.progress()]
        if self.trainings:
            words.append(f"{len(self.trained)} of {self.trainings} trainings")
            left = self.left()
            if left is not None and len(self.trained) < self.trainings:
                words.append(f"about {duration(left)} of training left")
        return ", ".join(words)

    def other_rules(self) -> str:
        """The rules that run now, without trainings."""
        rules = [*dict.fromkeys(job.rule for job in self.running.values() if not job.training)]
        return first_names(rules)

    def ending(self) -> Iterator[tuple[str, str]]:
        """The summary at the end: heads and texts of its lines."""
        done, took = sum(self.done.values()), duration(time.monotonic() - self.started)
        tables = [path for path in self.made if path.endswith(".md")]
        if self.touching:
            yield "touched", f"{count_of_jobs(done - self.absent, 0)}, whose files now count as up to date"
            if self.absent:
                yield "missing", f"files of {count_of_jobs(self.absent, 0)}: without --touch, they are made"
        elif done == self.total:
            yield "done", f"{count_of_jobs(done, self.trainings)}, in {took}"
            yield ("tables", first_names(tables)) if tables else ("made", first_names(self.last))
        else:
            failed = f"; failed: {first_names(sorted(self.failed))}" if self.failed else ""
            yield "stopped", f"{done} of {self.total} jobs are done, in {took}{failed}"
            yield "to do", RERUN_HINT if self.failed else RERUN_HINT.removeprefix("fix it, then ")
        if self.log:
            yield "log", self.log
        for path in self.made if done == self.total and not self.touching else ():
            if path.endswith(".html"):
                yield "report", f"{path}: open it in a browser"


def last_lines(path: str, since: float = 0.0) -> list[str]:
    """The last lines of a log; none if it does not exist or was last written before `since`."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL))
            text = file.read().decode(errors="replace")
        old = Path(path).stat().st_mtime < since - CLOCK_SKEW_SECONDS
        return [] if old else text.splitlines()[size > TAIL :]
    except OSError:
        return []


def failure(rule: str, outputs: list[str], logs: list[str], message: str | None, since: float = 0.0) -> str:
    """The message on a failed job: its rule, the ends of its logs, how to see its command."""
    lines = [f"FAILED   {rule}: {outputs[0]}" if outputs else f"FAILED   {rule}"]
    lines += [f"         {line}" for line in message.splitlines()] if message else []
    for log in logs:
        if end := last_lines(log, since)[-LOG_LINES:]:
            lines += [f"         the end of {log}:", *end]
    if len(lines) == 1:
        lines.append("         it wrote no log")
    if outputs:
        lines.append(f"         the commands behind it: snakemake -np {outputs[0]}")
    return "\n".join(lines)


def in_one_line(text: str) -> str | None:
    """One line for Snakemake's messages on a target or input that no rule makes, and on a damaged record.

    None for other messages.
    """
    if "validation error for MetadataRecord" in text:
        return (
            ".snakemake/metadata: a record in it is damaged; remove the folder, then add --forceall --touch "
            "to this command, once, to accept the files as made with the present settings and code"
        )
    if match := re.search(r"Missing input files for rule (\w+):.*affected files:\s+(.*)", text, re.S):
        first = min(map(str.strip, match[2].strip().splitlines()))  # Snakemake lists a set
        return f"{first}: no such file, and no rule makes it; rule {match[1]} needs it"
    match = re.search(r"No rule to produce (\S+) \(", text)
    if match is None:
        return None
    if "/" in match[1]:
        return f"{match[1]}: no rule makes this file; see results/README.md for what there is"
    return f"{match[1]}: no such target{nearest(match[1], planned.targets)}"


def configfile_problem(words: Sequence[str]) -> str | None:
    """One line for the first file after --configfile that cannot be read; None if all can.

    Snakemake's own message names neither the file nor the line.
    """
    for path in OPTIONS.parse_known_args(words)[0].configfile:
        try:
            if not read_yaml(path):
                return f"{path}: it is empty; leave it out, or write keys and values into it"
        except UserError as error:
            target = not os.path.isfile(path) and not os.path.splitext(path)[1]
            return f"{error}{'; if it is a target, give it before --configfile' if target else ''}"
    return None


def config_problem(words: Sequence[str]) -> str | None:
    """One line for the first word after --config that is not KEY=VALUE: Snakemake would print a traceback.

    >>> config_problem(["--config", "training.lr=1"])
    '--config training.lr=1: not KEY=VALUE; a key within a section is written \\'training={"lr": 1}\\''
    >>> config_problem(["--config", "partial=true", "demo"])
    '--config demo: not KEY=VALUE; a target stands before --config, a switch is written KEY=true'
    >>> config_problem(["demo", "--config", "partial=true", 'training={"lr": 1}', "-n"])
    """
    for word in OPTIONS.parse_known_args(words)[0].config:
        if not re.match(r"[a-zA-Z_][\w-]*\w=", word):
            advice = "a target stands before --config, a switch is written KEY=true"
            if match := re.fullmatch(r"(\w+)\.([\w-]+)=(.*)", word):
                advice = f"a key within a section is written '{match[1]}={{\"{match[2]}\": {match[3]}}}'"
            return f"--config {word}: not KEY=VALUE; {advice}"
    return None


def seconds_of(clock: str) -> int:
    """`2:05` or `1:02:05` in seconds."""
    return reduce(lambda seconds, part: 60 * seconds + int(part), clock.split(":"), 0)
