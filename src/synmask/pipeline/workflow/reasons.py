"""Why jobs run again: which files changed, which settings have other values.

Snakemake 9.27 keeps the parameters of each output's job and says which of them differ, without names. Here
digests among them become the files behind them (`sources`), and JSON the keys whose values differ.
"""

import json
import re
import shlex
from ast import literal_eval
from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from synmask.pipeline.display import first_names
from synmask.pipeline.files import flatten
from synmask.pipeline.paths import RESULTS
from synmask.pipeline.runs import TRAININGS, training
from synmask.pipeline.workflow.half_done import next_epoch
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.sources import DIGITS, files_behind

MAX_CHARACTERS = 60  # characters of a value


def grouped(dag: Any, jobs: Jobs) -> list[str]:
    """A line for the jobs of a rule that run again for the same reason: "train (6): … changed"."""
    planned = dag.needrun_jobs(exclude_finished=False)
    counts = Counter((job.rule.name, because(dag, job, jobs)) for job in planned)
    return [f"{rule} ({count}): {words}" for (rule, words), count in counts.items() if words]


def because(dag: Any, job: Any, jobs: Jobs) -> str:
    """Why a job runs again that is done already; empty: it is new, or runs since another one does."""
    return first_names([*dict.fromkeys(_reasons(dag, job, jobs))])


def unrecorded(dag: Any) -> str:
    """One line on finished jobs of which Snakemake has no record, as after a copy of results/ alone.

    It then compares dates alone. Files outside results/ are downloads, which are known by their checksums.
    """
    count = sum(
        (dag.reason(job).no_metadata or dag.reason(job).outdated_metadata) and not dag.needrun(job)
        for job in dag.jobs
        if job.output and job.output[0].startswith(f"{RESULTS}/")
    )
    if not count:
        return ""
    jobs = "1 finished job has" if count == 1 else f"{count:,} finished jobs have"
    return (
        f"{jobs} no record of settings and code (.snakemake/metadata), so no change of these is seen there; "
        "to accept the files as made with the present ones, add --forceall --touch to this command, once"
    )


def _reasons(dag: Any, job: Any, jobs: Jobs) -> Iterator[str]:
    reason, persistence = dag.reason(job), dag.workflow.persistence
    if reason.forced and not _is_incomplete(dag, job):
        yield "forced"
    elif not reason.updated_input and (epoch := _next_epoch(job, jobs)):
        yield f"interrupted; resumes at epoch {epoch}"
    elif reason.forced:
        yield "interrupted"
    for path in sorted(map(str, reason.updated_input - reason.updated_input_run)):
        yield f"{path} changed"
    if reason.params_changed:
        names = {repr(value): name for name, value in job.params.items()}
        yield from changed(reason.params_changed.only_old, reason.params_changed.only_new, names)
    if reason.input_changed:
        before = {path for output in job.output for path in persistence.input(output) or ()}
        now = {*map(str, job.input)}
        yield from (f"{path} is no longer read" for path in sorted(before - now))
        yield from (f"{path} is read, too" for path in sorted(now - before))
    if reason.code_changed:
        yield "its command changed"
    if reason.software_stack_changed:
        yield "its environment changed"


def _next_epoch(job: Any, jobs: Jobs) -> int | None:
    """The epoch at which a job's training resumes; None if it starts, or trains nothing."""
    name = job.rule.name
    return next_epoch(jobs, training(name, job.wildcards_dict)) if name in TRAININGS else None


def _is_incomplete(dag: Any, job: Any) -> bool:
    """Whether Snakemake itself forces a job, since it was killed while the job ran."""
    settings = dag.workflow.dag_settings
    forced = {*settings.forcerun, *(settings.targets if settings.forcetargets else ())}
    return job.rule not in dag.forcerules and forced.isdisjoint(job.output)


def changed(old: Iterable[str], new: Iterable[str], names: Mapping[str, str] | None = None) -> Iterator[str]:
    """Differences between a job's parameters in words; Snakemake keeps parameters as Python literals.

    Args:
        names: parameter → its name.

    >>> [*changed(["'{\\"beam\\": 5}'"], ["'{\\"beam\\": 4}'"])]
    ['beam 5 → 4']
    >>> [*changed(["300"], ["400"], {"400": "merges"})]
    ['merges 300 → 400']
    """
    names = names or {}
    old_files, old_keys, old_others = _sorted(old)
    new_files, new_keys, new_others = _sorted(new)
    if None in (old_files, new_files):
        yield "code changed since a version that kept no record of it"
    elif files := _differing(old_files, new_files):
        yield f"{first_names(files)} changed"
    for key in _differing(old_keys, new_keys):
        values = (_short(json.dumps(keys.get(key))) for keys in (old_keys, new_keys))
        yield f"{key.removeprefix('settings.')} {' → '.join(values)}"
    if len(old_others) == len(new_others) == 1:
        name = names.get(new_others[0], "a parameter")
        yield f"{name} {_short(old_others[0])} → {_short(new_others[0])}"
    else:
        yield from (f"{names.get(value, 'a parameter')} {_short(value)}" for value in new_others)
        yield from (f"no longer {_short(value)}" for value in old_others if not new_others)


def _sorted(values: Iterable[str]) -> tuple[dict[str, str] | None, dict[str, Any], list[str]]:
    """Parameters by their kind: the files behind digests (None: a digest has no record), keys, and others."""
    files: dict[str, str] | None = {}
    keys: dict[str, Any] = {}
    others = []
    for value in sorted(values):
        text = literal_eval(value)
        if isinstance(text, str) and re.fullmatch(rf"[0-9a-f]{{{DIGITS}}}", text):
            behind = files_behind(text)
            files = None if None in (files, behind) else files | behind
        elif isinstance(read := _read(text), dict):
            keys |= flatten(read)
        else:
            others.append(value)
    return files, keys, others


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The keys with other values."""
    return [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]


def _read(text: Any) -> Any:
    """The value of a JSON text, or name → value of options ("--beam 5"); None: it is neither.

    The keys of an option's JSON stand beside the other options.
    """
    if not (isinstance(text, str) and text.startswith("--")):
        with suppress(TypeError, ValueError):
            return json.loads(text)
        return None
    words: dict[str, list[str]] = {}
    for word in shlex.split(text):
        if word.startswith("--"):
            last = words.setdefault(word[2:].replace("-", "_"), [])
        else:
            last.append(word)
    values = {name: _value(" ".join(value)) for name, value in words.items()}
    inner = [values.pop(name) for name, value in [*values.items()] if isinstance(value, dict)]
    return dict(ChainMap(values, *inner))


def _value(text: str) -> Any:
    try:
        return json.loads(text or "true")
    except ValueError:
        return text


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
