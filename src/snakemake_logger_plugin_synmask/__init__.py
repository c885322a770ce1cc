"""Snakemake's `--logger synmask`, set in profiles/default: one line per training, and one for the whole run.

On a terminal these lines are updated in place. Elsewhere a line is printed when a training, or the last job
of a rule, has ended. Failures are printed with the ends of their logs. With `-p`, `--quiet`, `--verbose` or
`--debug-dag`, Snakemake's own output appears instead. Processes that Snakemake starts for jobs load no
logger.
"""

import getpass
import os
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from logging import WARNING, LogRecord, makeLogRecord
from typing import Any

from snakemake.common import get_appdirs
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from synmask.pipeline.display import duration
from synmask.pipeline.workflow import terminal
from synmask.pipeline.workflow.terminal import RunningJob, WorkflowRun

READ_SECONDS = 1.0  # seconds between two reads of the logs
NOTHING, STOPPING = "Nothing to be done", "Will exit after"
# Prefixes of messages: those before the start that are hidden, and those after it that are shown.
HIDDEN_PREFIXES = (
    "Assuming unrestricted shared filesystem", "Building DAG of jobs", "Config file ", "Reasons:",
)  # fmt: skip
SHOWN_PREFIXES = (
    "Creating conda", "Downloading and", "Trying to restart", NOTHING, "Waiting at most", STOPPING,
)  # fmt: skip
KILLED = "exit status 137"
INTERRUPTED = "Terminating processes on user request"
# The summary says this.
SUMMARISED_PREFIXES = ("Exiting because a job execution failed", "At least one job did not complete")


def set_user_and_cache() -> None:
    """Set variables that Snakemake needs if the user's id has no name, or the home folder cannot be written.

    Containers on shared machines often lack both; Snakemake ends in a traceback then. It creates its loggers
    before it reads these variables.
    """
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["USER"] = str(os.getuid())
    cache = get_appdirs().user_cache_dir
    with suppress(OSError):
        if os.path.isabs(cache):  # expanduser leaves "~/…" if there is no home folder
            os.makedirs(cache, exist_ok=True)
    if not (os.path.isabs(cache) and os.access(cache, os.W_OK | os.X_OK)):
        cache = os.path.abspath(".snakemake/cache")
        try:
            os.makedirs(f"{cache}/matplotlib", exist_ok=True)
            tempfile.TemporaryFile(dir=cache).close()
        except OSError as error:
            sys.exit(f"{cache}: {error.strerror}; snakemake keeps its cache there, since home has no place")
        os.environ["XDG_CACHE_HOME"] = cache
        os.environ.setdefault("MPLCONFIGDIR", f"{cache}/matplotlib")


class LogHandler(LogHandlerBase):
    """Receives Snakemake's events and prints those that matter to users."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False  # use Snakemake's, which knows its options
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        if problem := terminal.config_problem(sys.argv[1:]) or terminal.configfile_problem(sys.argv[1:]):
            sys.exit(problem)
        set_user_and_cache()
        if os.environ.get("COLUMNS") == "0":  # rich would print nothing
            del os.environ["COLUMNS"]
        common = self.common_settings
        stream = sys.stdout if common.stdout else sys.stderr
        self.plain_handler = None
        if common.printshellcmds or common.verbose or common.debug_dag or common.quiet:
            from snakemake.logging import ColorizingTextHandler

            self.plain_handler = ColorizingTextHandler(nocolor=common.nocolor, stream=stream)
            self.counted = False  # a dry run has its counts above its jobs and below them
            return
        from rich.console import Console

        plain = {"markup": False, "highlight": False, "emoji": False, "force_jupyter": False}
        colour = {"no_color": True} if common.nocolor else {}
        live = bool(stream and stream.isatty())  # None: it is closed
        self.console = Console(file=stream, force_terminal=live, **plain, **colour)
        self.run = WorkflowRun()
        self.live, self.ended = None, threading.Event()
        self.executing = False
        self.handlers = {
            None: self._text,
            LogEvent.WORKFLOW_STARTED: self._started,
            LogEvent.RUN_INFO: self._counted,
            LogEvent.JOB_INFO: None if common.dryrun else self._begun,
            LogEvent.JOB_FINISHED: self._finished,
            LogEvent.JOB_ERROR: self._failed,
            LogEvent.GROUP_ERROR: self._group_failed,
            LogEvent.ERROR: self._exception,
        }

    def emit(self, record: LogRecord) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.ERROR and (line := terminal.in_one_line(record.getMessage())):
            record.msg, record.args = line, None
        if self.plain_handler:
            if event == LogEvent.JOB_INFO:
                record.reason = terminal.planned.because(record.jobid) or record.reason
            self.plain_handler.setFormatter(self.formatter)
            self.plain_handler.emit(record)
            if record.getMessage().startswith(NOTHING) and (line := terminal.planned.unrecorded()):
                self.plain_handler.emit(makeLogRecord({"msg": line, "levelno": WARNING}))
            if event == LogEvent.RUN_INFO and self.common_settings.dryrun and not self.counted:
                self.counted = True
                for line in terminal.planned.notices():
                    # not by `logger`: its queue may have been closed before this record came out of it
                    self.plain_handler.emit(makeLogRecord({"msg": line, "levelno": WARNING}))
            return
        try:
            if handle := self.handlers.get(event):
                handle(record)
        except Exception:  # as all of logging's handlers: a message must not end the run
            self.handleError(record)

    def close(self) -> None:
        """Remove the live lines and print the summary."""
        if not self.plain_handler and not self.ended.is_set():
            with self.lock:
                self.ended.set()
                if self.live:
                    self.live.stop()
                try:
                    for line in self._ending():
                        self._print(line)
                except Exception:  # Snakemake swallows all that `close` raises
                    traceback.print_exc()
        super().close()

    def _ending(self) -> list[str]:
        if not self.run.counts:
            return []
        if self.common_settings.dryrun:
            return [*terminal.planned.dry_run_lines(self.run.counts)]
        return [f"{head:<8} {words}" for head, words in self.run.ending()]

    def _print(self, text: str, style: str | None = None) -> None:
        self.console.print(text, style=style, soft_wrap=True)

    def _text(self, record: LogRecord) -> None:
        """A plain message: a warning, an error, or the output of a command that runs no jobs."""
        text = self.format(record).strip()
        if text.startswith("Complete log(s): "):
            self.run.log = os.path.relpath(text.removeprefix("Complete log(s): "))
        elif text.startswith(INTERRUPTED):
            self.run.interrupted = True
            self._print("stopping: trainings save where they are")
        elif text.startswith("Trying to restart") and terminal.planned.on_slurm:
            pass  # workflow/compat_slurm.py prints it, with the job's new request
        elif text.startswith(STOPPING) and text in self.run.noted:
            pass  # Snakemake repeats it when a job ends
        elif record.levelno < WARNING and self.executing and not text.startswith(SHOWN_PREFIXES):
            pass
        elif text and not text.startswith((*HIDDEN_PREFIXES, *SUMMARISED_PREFIXES)):
            self._print(text)
            self.run.noted.add(text)
            if text.startswith(NOTHING) and (line := terminal.planned.unrecorded()):
                self._print(line)

    def _started(self, record: Any) -> None:
        self.executing = True

    def _counted(self, record: Any) -> None:
        """The number of jobs per rule."""
        self.run.touching = terminal.planned.workflow.touch
        self.run.counts = {rule: count for rule, count in record.stats.items() if rule != "total"}
        if not self.common_settings.dryrun:
            for line in terminal.planned.expected_work(self.run.counts):
                self._print(line)
            if self.console.is_terminal and not self.console.is_dumb_terminal:
                self._go_live()
            threading.Thread(target=self._watch, daemon=True).start()

    def _begun(self, record: Any) -> None:
        self.run.start(record.jobid, RunningJob(record.rule_name, list(record.output), list(record.log)))

    def _finished(self, record: Any) -> None:
        job = self.run.finish(record.job_id)
        for note in self.run.notes(job) if job else ():
            self._print(note)
        message = self.run.finish_message(job) if job else None
        if message and self.live is None:
            self._print(f"{self.run.full_progress() if job.training else self.run.progress()}: {message}")
        elif message and job.training:
            self._print(message)

    def _failed(self, record: Any) -> None:
        if getattr(record, "indent", False) or self.run.interrupted:
            return  # `_group_failed` reports jobs of a group; or Ctrl-C ended it
        job = {"rule_name": record.rule_name, "jobid": record.jobid, "output": record.output}
        self._report([job], [*record.log], record.rule_msg, record.aux.get("brief"))

    def _group_failed(self, record: Any) -> None:
        jobs = sorted(record.job_error_info, key=lambda job: job["output"])  # Snakemake has a set
        # `failed`, `explanation` and `brief` come from workflow/compat_slurm.py
        failed = [job for job in jobs if job["output"][0] in getattr(record, "failed", ())] or jobs
        logs = dict.fromkeys([*record.aux_logs, *(log for job in failed for log in job["log"])])
        message = getattr(record, "explanation", record.getMessage())
        for job in jobs:
            if job not in failed:
                self.run.running.pop(job["jobid"], None)
        self._report(failed, [*logs], message, getattr(record, "brief", None))

    def _report(self, jobs: list[dict], logs: list[str], message: str | None, brief: str | None) -> None:
        """Print a failure, or only `brief`, one more of a kind; a training that a signal stopped is none."""
        rules = ", ".join(dict.fromkeys(job["rule_name"] for job in jobs))
        since = self.run.drop(job["jobid"] for job in jobs)
        ends = (line for log in logs for line in terminal.last_lines(log, since)[-1:])
        stopped = next((line for line in ends if terminal.STOPPED in line), None)
        if stopped and not message:  # SLURM's says more
            return self._print(stopped)
        self.run.failed.add(rules)
        outputs = [path for job in jobs for path in job["output"]]
        self._print(brief or terminal.failure(rules, outputs, logs, message, since), None if brief else "red")

    def _exception(self, record: Any) -> None:
        """Print an exception, unless a command failed: `_failed` reports that with its log."""
        text = self.format(record).strip()
        if KILLED in text:
            self._print(
                "killed (SIGKILL): most often since memory was short; run fewer jobs at once (-c1)", "red"
            )
        elif "CalledProcessError" not in text and not any(words in text for words in SUMMARISED_PREFIXES):
            self._print(text, "red")

    def _go_live(self) -> None:
        from rich.live import Live

        elsewhere = {"redirect_stdout": False, "redirect_stderr": False}
        self.live = Live(console=self.console, auto_refresh=False, transient=True, **elsewhere)
        self.live.start()
        self.console.show_cursor(True)  # so that it is visible if Snakemake is killed

    def _watch(self) -> None:
        """Until the end, read the progress of trainings and update the live lines."""
        while not self.ended.wait(READ_SECONDS):
            with self.lock:
                for job in self.run.in_training:
                    job.read_progress()
                if self.live and not self.ended.is_set():
                    self.live.update(live_lines(self.run, self.console.size.height), refresh=True)


def live_lines(run: WorkflowRun, height: int) -> Any:
    """One line per training, as many as fit, and one for the whole run."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    jobs = sorted(run.in_training, key=lambda job: job.share is None)
    room = max(1, height - 4)
    table = Table.grid(padding=(0, 2))
    for job in jobs[:room]:
        bar = ProgressBar(total=1.0, completed=job.share or 0.0, width=20)
        done = "waiting" if job.share is None else f"{job.share:.0%}"
        left = "" if job.left is None else f"{duration(job.left)} left"
        table.add_row(job.name, bar, done, job.epoch, left)
    hidden = [f"and {len(jobs) - room} more trainings"] if len(jobs) > room else []
    now = run.other_rules()
    return Group(table, *hidden, run.full_progress() + (f"; now: {now}" if now else ""))
