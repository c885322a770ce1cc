"""The slurm profile with another executor: commands that submit a job and say how it is (here a stand-in for them)."""

import re

TEXT = "results/demo/de-en/text/train.de"


def test_jobs_go_to_another_scheduler_with_what_the_profile_says_and_a_failed_one_is_retried(project, queue):
    (project.folder / "bin").mkdir()
    verb = project.folder / "bin/synmask"  # fails once; then the real one, which comes after it in PATH
    verb.write_text('#!/bin/sh\nrm "$0"\nexit 1\n')
    verb.chmod(0o755)
    project.snakemake(TEXT, *queue(project))
    queued = (project.folder / "queued").read_text().splitlines()
    words = ["submit -q main -m 601 -t 3 -c 1 -g 0 ", "submit -q main -m 1202 -t 6 -c 1 -g 0 "]
    assert len(queued) == 2
    assert all(line.startswith(word) for line, word in zip(queued, words, strict=True))
    assert (project.folder / TEXT).stat().st_size


def test_a_file_that_is_seen_late_is_waited_for(project, queue, monkeypatch):
    monkeypatch.setenv("LATE", TEXT)
    once = (TEXT, *queue(project), "--retries", "0")
    done = project.snakemake(*once, "--latency-wait", "1", check=False)
    assert done.returncode == 1
    missing = rf"MissingOutputException.*\n.*(.*\n)*.*{TEXT}"
    assert re.search(missing, done.output)
    monkeypatch.setenv("SECONDS_LATE", "5")
    done = project.snakemake(*once, "--latency-wait", "60")
    assert f"Waiting at most 60 seconds for missing files:\n{TEXT}" in done.output
    assert (project.folder / TEXT).stat().st_size
