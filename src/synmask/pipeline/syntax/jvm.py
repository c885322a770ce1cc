"""The interface to Parse.java: start the JVM, read its answers, report failures."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from synmask.pipeline.config.sections import ParserModels
from synmask.pipeline.disk import naming_write_errors
from synmask.pipeline.errors import UserError

PROGRAM = Path(__file__).with_name("Parse.java")
OLDEST_JAVA = 11  # the first version that runs a source file
CAUSES = re.compile(r"^(?:Caused by: |Exception in .*?: ?|Error: |Error occurred .*\n)(.*)", re.M)
HEAP = 0.85  # the heap's share of memory; the JVM needs the rest


def parser_answers(
    sentences: Mapping[int, Sequence[str]],
    name: str,
    models: ParserModels,
    jars: Sequence[Path],
    threads: int,
    memory: int,
) -> Iterator[list[str]]:
    """Parse sentences; yield Parse.java's answers in the order of completion.

    Args:
        sentences: line number → words.
        name: the sentences' file, for messages.
        threads: sentences parsed at a time; `memory`: MB for the JVM in total.
    Yields:
        ["ready", CoreNLP's version, Java's version] when the models are loaded, then for each sentence
        [number, "ok", tree, heads] or [number, "failed", why].
    Raises:
        UserError: Java is missing or too old; CoreNLP does not start, was killed or ran out of memory.
    """
    command = [
        _find_java(),
        f"-Xmx{int(memory * HEAP)}m",
        "-XX:+UseParallelGC",
        "-cp",
        os.pathsep.join(map(str, jars)),
        str(PROGRAM),
        str(threads),
        models.tagger,
        models.parser,
        *([models.dependencies] if models.dependencies else []),
    ]
    with tempfile.TemporaryFile() as questions, tempfile.TemporaryFile() as stderr:
        with naming_write_errors(Path(tempfile.gettempdir())):
            for number, words in sentences.items():
                questions.write(f"{number}\t{' '.join(words)}\n".encode())
            questions.seek(0)
        with subprocess.Popen(command, stdin=questions, stdout=subprocess.PIPE, stderr=stderr) as jvm:
            try:
                for line in jvm.stdout:
                    if not line.endswith(b"\n"):  # the JVM was killed while writing
                        break
                    answer = line.decode().removesuffix("\n").split("\t")
                    if answer[1:] == ["memory"]:
                        raise UserError(_memory_error(name, answer[0], threads, memory))
                    yield answer
                if code := jvm.wait():
                    stderr.seek(0)
                    raise UserError(_jvm_error(name, code, stderr.read().decode(errors="replace")))
            finally:
                jvm.kill()


def _find_java() -> str:
    """The Java on the PATH, a JDK of version 11 or later."""
    requirement = f"CoreNLP needs a JDK of Java {OLDEST_JAVA} or later (Debian: default-jdk-headless)"
    java = shutil.which("java")
    if java is None:
        raise UserError(f"no java on the PATH; {requirement}")
    output = subprocess.run([java, "-version"], text=True, capture_output=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', output)  # 1.8.0 is Java 8
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise UserError(f"{java} is too old ({(output.splitlines() or ['no version'])[0]}); {requirement}")
    modules = subprocess.run([java, "--list-modules"], text=True, capture_output=True, check=False).stdout
    if "jdk.compiler" not in modules:
        raise UserError(f"{java} has no compiler, it is a JRE; {requirement}")
    return java


def _memory_error(name: str, number: str, threads: int, memory: int) -> str:
    where = f"{name}, line {number}: " if int(number) else "the models: "
    return (
        f"{where}out of memory with {threads} threads in {memory} MB; "
        "raise --memory (corenlp.mem_mb in config.yaml)"
        + (" or lower corenlp.threads or max_words" if int(number) else "")
    )


def _jvm_error(name: str, code: int, output: str) -> str:
    """Why the JVM ended early; its output goes to the log if it does not show the cause."""
    if code < 0:
        return f"{name}: the JVM was killed ({signal.Signals(-code).name}), by you or for lack of memory"
    if "error: compilation failed" in output:  # of Parse.java, which knows its classes
        return f"{name}: CoreNLP failed (it is not in --jars); give all of its jars"
    if causes := CAUSES.findall(output):
        return f"{name}: CoreNLP failed ({causes[-1].strip()})"
    sys.stderr.write(output)
    return f"{name}: CoreNLP failed (exit code {code})"
