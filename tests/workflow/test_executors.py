"""The slurm profile with another executor: commands that submit a job and say how it is (here a stand-in for them)."""

import re

QUEUE = """#!/bin/sh
# A queue whose jobs start at once. `queue submit WORDS JOBSCRIPT` prints a number, `queue status NUMBER` a word.
# $LATE: a file that is seen $SECONDS_LATE after its job is known to have ended, as on some shared file systems;
# without $SECONDS_LATE it never is.
case $1 in
  submit)
    number=$(($(wc -l < queued) + 1))
    echo "$@" >> queued
    for script; do :; done
    (
      "$script" && end=success || end=failed
      [ -z "$LATE" ] || mv "$LATE" hidden
      echo $end > state.$number
    ) > log.$number 2>&1 < /dev/null &
    echo $number ;;
  status)
    cat state.$2 2> /dev/null || { echo running; exit; }
    [ -z "$SECONDS_LATE" ] || (sleep $SECONDS_LATE; mv hidden "$LATE") > /dev/null 2>&1 < /dev/null & ;;
esac
"""
SUBMIT = (
    "./queue submit -q {resources.slurm_partition} -m {resources.mem_mb} -t {resources.runtime} -c {threads}"
    " -g {resources.gpu}"
)
GENERIC = ["--profile", "slurm", "--executor", "cluster-generic", "--cluster-generic-submit-cmd", SUBMIT]
GENERIC += ["--cluster-generic-status-cmd", "./queue status", "--seconds-between-status-checks", "1"]
TEXT = "results/demo/raw/train.de"


def with_queue(project):
    (project.folder / "queue").write_text(QUEUE)
    (project.folder / "queue").chmod(0o755)
    (project.folder / "queued").touch()
    return project


def test_jobs_go_to_another_scheduler_with_what_the_profile_says_and_a_failed_one_is_retried(project):
    with_queue(project)
    (project.folder / "bin").mkdir()
    verb = project.folder / "bin/synmask"  # fails once; then the real one, which comes after it in PATH
    verb.write_text('#!/bin/sh\nrm "$0"\nexit 1\n')
    verb.chmod(0o755)
    project.snakemake(TEXT, *GENERIC)
    queued = (project.folder / "queued").read_text().splitlines()
    words = ["submit -q main -m 601 -t 3 -c 1 -g 0 ", "submit -q main -m 1202 -t 6 -c 1 -g 0 "]
    assert len(queued) == 2
    assert all(line.startswith(word) for line, word in zip(queued, words, strict=True))
    assert (project.folder / TEXT).stat().st_size


def test_a_file_that_is_seen_late_is_waited_for(project, monkeypatch):
    with_queue(project)
    monkeypatch.setenv("LATE", TEXT)
    once = (TEXT, *GENERIC, "--retries", "0")
    done = project.snakemake(*once, "--latency-wait", "1", check=False)
    assert done.returncode == 1
    missing = rf"MissingOutputException.*\n.*(.*\n)*.*{TEXT}"
    assert re.search(missing, done.output)
    monkeypatch.setenv("SECONDS_LATE", "5")
    done = project.snakemake(*once, "--latency-wait", "60")
    assert f"Waiting at most 60 seconds for missing files:\n{TEXT}" in done.output
    assert (project.folder / TEXT).stat().st_size
