"""Fixes for Snakemake's SLURM plugin 2.8.0: submission, states of jobs, messages on failures.

Our changes to it, and why:
- It drops the reason why a job of a group was refused or has failed, and waits for ever for a group that
  could not be submitted (snakemake/snakemake-executor-plugin-slurm#456): `Executor.run_job`,
  `report_job_error`, `print_job_error`.
- It forgets all jobs when SLURM does not answer its question for their states (#331), and then changes to
  sacct if SLURM does not say how long it keeps jobs: `query_job_status`, `get_min_job_age`.
- It takes `CANCELLED by …` and a lasting PREEMPTED for a job that runs (#109): `query_job_status`.
- It guesses an account and checks it with sacctmgr, which many sites do not let users ask (#233):
  `Executor.get_account_arg`.
- When all jobs are done, it sleeps until its next query, up to 3 minutes: `Executor.sleep`.
- It has no option for a job's comment, for the longest time limit, for a signal before it, for a job to
  wait for, or for what starts workers: `get_submit_command`.
- It does not say why a job waits: `Executor.check_active_jobs`.

Another version of the plugin is left unchanged. tests/workflow/test_compat_slurm.py fails when the plugin no
longer needs one of these.
"""

import asyncio
import os
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

from synmask.pipeline.errors import exit_on_user_error
from synmask.pipeline.provenance import is_tried
from synmask.pipeline.workflow import slurm, terminal

TRIED = "2.8.0"
WARNING = 300  # seconds from SIGTERM to the time limit of a training
MAX_UNREACHABLE_SECONDS = 600  # how long sbatch may fail to reach the controller
RETRY_SECONDS = 15  # between two attempts
MAX_UNANSWERED_SECONDS = 60  # how long one query of states is repeated
# how a training's log ends
STOPPED_AND_SAVED = "stopped by a signal, and saved"
STOPPED_BEFORE = "stopped by a signal before"
# States that more memory or time does not help against
SAME_REQUEST_STATES = ("CANCELLED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")
WORKED_ON = "works on this run"  # in the last line of a training that found another one
PENDING_SECONDS = 180  # how long a job waits before SLURM is asked why, and between two such questions
NO_CONTROLLER = (
    "Unable to contact slurm controller", "Connection refused", "timed out", "temporarily unable",
)  # fmt: skip


def adopt() -> None:
    """Make Snakemake submit with the fixed plugin."""
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

    registry = ExecutorPluginRegistry()
    if registry.is_installed("slurm") and is_tried("snakemake-executor-plugin-slurm", TRIED):
        import snakemake_executor_plugin_slurm as plugin

        if not is_adopted(plugin.Executor):
            plugin.query_job_status = _repeated(plugin.query_job_status)
            age = plugin.get_min_job_age  # None without an answer; then the plugin would change to sacct
            plugin.get_min_job_age = lambda: age() or sys.maxsize
            plugin.get_submit_command = _with_our_options(plugin.get_submit_command)
            plugin.Executor = _executor(plugin)
        registry.get_plugin("slurm").executor = plugin.Executor


def is_adopted(executor: type) -> bool:
    """Whether it is the fixed plugin's."""
    return executor.__module__ == __name__


def _with_our_options(get_submit_command: Any) -> Any:
    """The call of sbatch with a readable comment, the site's limit, and a warning before a training's."""

    def command(job: Any, params: dict[str, Any], **kwargs: Any) -> str:
        site = slurm.read_site()
        call = get_submit_command(job, params | {"comment_str": slurm.job_title(job)}, **kwargs)
        call = re.sub(r" -t \d+", f" -t {slurm.minutes_of(job, site)}", call, count=1)
        if launcher := job.resources.get("mpi"):
            call = call.replace("--export=ALL", f"--export=ALL,{slurm.LAUNCHER}={shlex.quote(launcher)}", 1)
        if number := getattr(job, "waits_for", None):
            call += f" --dependency=afterany:{number}"
        warning = min(WARNING, slurm.minutes_of(job, site) * 15)  # of a short limit, a quarter
        return f"{call} --signal=TERM@{warning}" if slurm.is_training(job) else call

    return command


def _repeated(query: Any) -> Any:
    """The query of states, repeated while SLURM does not answer: the plugin would forget all jobs.

    `CANCELLED by …`, which the plugin does not know, and a lasting PREEMPTED become CANCELLED.
    """
    preempted: Counter[str] = Counter()
    reported = False  # that SLURM does not answer

    async def states(command: str, logger: Any) -> tuple[dict[str, str], float]:
        nonlocal reported
        asked_at = time.monotonic()
        while (answer := await query(command, logger))[0] is None:
            if not reported:
                logger.warning("SLURM does not answer; it is asked again, and jobs go on meanwhile")
                reported = True
            if (away := time.monotonic() - asked_at) > MAX_UNANSWERED_SECONDS:
                return {}, away
            await asyncio.sleep(3)
        job_states, seconds = answer
        if reported:
            logger.warning("SLURM answers again")
            reported = False
        for job, state in job_states.items():
            preempted[job] = preempted[job] + 1 if state == "PREEMPTED" else 0
            if state.startswith("CANCELLED") or preempted[job] > 2:
                job_states[job] = "CANCELLED"
        return job_states, seconds

    return states


def _executor(plugin: Any) -> type:
    from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

    class Executor(plugin.Executor):
        """The plugin's executor; it reports errors of groups and a refusal once, and continues trainings."""

        site: slurm.Site

        def __init__(self, workflow: Any, logger: Any) -> None:
            with exit_on_user_error():
                slurm.check_commands()
                self.site = slurm.read_site()
                slurm.check_requests(workflow.dag, self.site)
            self.refusals: set[str] = set()
            self.waits: Counter[Any] = Counter()
            self.since: dict[Any, float] = {}  # when each job was last submitted
            self.failures: Counter[Any] = Counter()  # of each job that was submitted
            self.leaving = False
            self.reasons: dict[str, str] = {}  # why jobs wait, as was said
            self.asked = time.monotonic()
            jobs = slurm.jobs_of(workflow.dag)
            self.earlier = slurm.earlier_jobs(os.getcwd())
            for number, name in self.earlier.items():
                if any(slurm.may_overlap(name, slurm.job_title(job)) for job in jobs):
                    logger.warning(
                        f"{name}: an earlier SLURM job, {number}, works on it; the new one waits for its end"
                    )
            super().__init__(workflow, logger)

        def run_job(self, job: Any) -> None:
            self.since[job], title = time.time(), slurm.job_title(job)
            if failures := self.failures[job]:
                message = f"{title}: attempt {failures + 1} of {job.restart_times + 1}"
                self.logger.warning(f"{message} asks for {slurm.request_text(job, self.site)}")
            known = (number for number, name in self.earlier.items() if slurm.may_overlap(name, title))
            job.waits_for = next((number for number in known if slurm.squeue(f"--jobs={number}")), None)
            try:
                plugin.validate_slurm_extra(job)
                super().run_job(job)
            except Exception as error:  # which the plugin fails to report for groups (its issue 456)
                cause = error.__context__ or error
                self._report_job_error_threadsafe(SubmittedJobInfo(job), str(cause))

        def get_account_arg(self, job: Any) -> Iterator[str]:
            """The account as given: the plugin would guess one, and may hang at that."""
            account = job.resources.get("slurm_account")
            yield f" -A {shlex.quote(str(account))}" if account else ""

        def get_partition_arg(self, job: Any) -> str:
            return f" -p {shlex.quote(slurm.partition_of(job, self.site))}"

        async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
            self._say_why_jobs_wait(active_jobs)
            async for job_info in super().check_active_jobs(active_jobs):
                yield job_info

        def _say_why_jobs_wait(self, active_jobs: list[Any]) -> None:
            """Name SLURM's reason for jobs that have waited for some minutes, each reason of a job once."""
            now = time.time()
            if time.monotonic() - self.asked < PENDING_SECONDS:
                return
            self.asked = time.monotonic()
            late = {
                info.external_jobid: slurm.job_title(info.job)
                for info in active_jobs
                if now - self.since.get(info.job, now) > PENDING_SECONDS
            }
            rows = (
                line.split("|", 1)
                for line in slurm.squeue("--me", "--states=PENDING", "--format=%i|%r").splitlines()
            )
            reasons = {late[number]: reason for number, reason in rows if number in late}
            new = {name: reason for name, reason in reasons.items() if self.reasons.get(name) != reason}
            self.reasons |= new
            for line in slurm.waiting_messages(new, self.site):
                self.logger.warning(line)

        def _report_job_error_threadsafe(self, job_info: Any, msg: str) -> None:
            """A job that could not be submitted: if there was no controller, submit it again."""
            if any(words in msg for words in NO_CONTROLLER) and self._wait(job_info.job):
                return self.run_job(job_info.job)
            return super()._report_job_error_threadsafe(job_info, msg)

        def _wait(self, job: Any) -> bool:
            """Wait for a controller that does not answer → whether to try again."""
            self.waits[job] += 1
            if self.waits[job] == 1:
                self.logger.warning("SLURM's controller does not answer; jobs wait until it does")
            for _ in range(RETRY_SECONDS):
                if self.leaving:
                    return False
                time.sleep(1)
            return self.waits[job] * RETRY_SECONDS < MAX_UNREACHABLE_SECONDS

        def report_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
            """Continue a training that saved; else report why the job failed, and decide whether to retry."""
            job, slurm_logs = job_info.job, kwargs.get("aux_logs") or []
            if job_info.external_jobid is not None and self._has_saved(job_info, msg or ""):
                lines = terminal.last_lines(job.log[0], self.since.get(job, 0.0))
                message = slurm.continuation_message(job_info.external_jobid, job, self.site, lines)
                self.logger.warning(f"{slurm.job_title(job)}: {message}")
                return self.run_jobs([job])  # to Snakemake, it is still the same attempt
            if job_info.external_jobid is None:
                reason = slurm.refusal_message(msg or "", job, self.site)
                job.attempt = job.restart_times + 1  # the next would be refused, too
                if reason in self.refusals:
                    kwargs["brief"] = f"FAILED   {slurm.job_title(job)}: refused in the same way"
                self.refusals.add(reason)
            else:
                reason, kwargs["aux_logs"] = self._ended(job_info, msg or "", slurm_logs)
                self._choose_attempt(job, slurm.state_of(msg or ""))
            if job.is_group():  # which Snakemake reports without a reason, and as if all its jobs had failed
                kwargs |= {"explanation": reason, "failed": slurm.failed_outputs(slurm_logs)}
            self.logger.info(reason)  # for the log
            super().report_job_error(job_info, msg=reason, **kwargs)

        def _choose_attempt(self, job: Any, state: str) -> None:
            """Let the next attempt request more only if that can help.

            The request of a job follows from `attempt`, to which Snakemake adds one before it tries again.
            """
            self.failures[job] += 1
            if self.failures[job] > job.restart_times:
                job.attempt = job.restart_times + 1
            elif state in SAME_REQUEST_STATES or WORKED_ON in self._last_line(job):
                job.attempt -= job.attempt <= job.restart_times

        def print_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
            """Without the plugin's sentence that details are elsewhere."""
            job_info.job.log_error(msg, **kwargs)

        def _has_saved(self, job_info: Any, msg: str) -> bool:
            """Whether a training saved and was stopped by a signal after progress, but was not cancelled."""
            job = job_info.job
            cancelled = slurm.state_of(msg) == "CANCELLED"
            return STOPPED_AND_SAVED in self._last_line(job) and bool(job.restart_times) and not cancelled

        def _last_line(self, job: Any) -> str:
            """The last line of a training's log, if it has written since it was submitted."""
            lines = (
                terminal.last_lines(job.log[0], self.since.get(job, 0.0)) if slurm.is_training(job) else []
            )
            own = [line for line in lines if not line.startswith(("srun: ", "slurmstepd"))]
            return own[-1] if own else ""

        def _ended(self, job_info: Any, msg: str, logs: list[str]) -> tuple[str, list[str]]:
            """Why a job failed; the logs of SLURM to show."""
            job = job_info.job
            lines = [
                line for log in logs for line in terminal.last_lines(log) if line.startswith("slurmstepd")
            ]
            reason = slurm.end_message(msg, dict.fromkeys(lines), job, self.site)
            if slurm.state_of(msg) != "CANCELLED" and self._untrained(job, reason):
                too_few = f"its {slurm.minutes_of(job, self.site)} minutes were too few for one update"
                job.attempt = job.restart_times + 1
                return f"{reason}\nraise {slurm.key_to_change(job, 'runtime')}: {too_few}", []
            written = any(terminal.last_lines(path, self.since.get(job, 0.0)) for path in job.log)
            return reason, [] if written or ", over its " in reason else logs

        def _untrained(self, job: Any, reason: str) -> bool:
            """Whether a training was sent a signal before its first update, perhaps while it loaded."""
            last = self._last_line(job)
            # as SLURM's log says of a step before its limit; of a job that was killed, it says "*** JOB"
            stopped = "*** STEP" in reason and "CANCELLED" in reason and "memory" not in reason
            return STOPPED_BEFORE in last or (slurm.is_training(job) and not last and stopped)

        async def sleep(self) -> None:
            """Until the next question for states, or until Snakemake ends."""
            until = time.monotonic() + self.next_seconds_between_status_checks
            while self.wait and time.monotonic() < until:
                await asyncio.sleep(0.5)

        def shutdown(self) -> None:
            self.leaving = True
            super().shutdown()

    return Executor
