"""Word segmenters: ICU and MeCab; and programs: Juman, and CoreNLP's tokenisers for English and Chinese."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import regex

from synmask.pipeline.disk import naming_write_errors
from synmask.pipeline.errors import UserError
from synmask.pipeline.languages import BLANK, SPACED_CHARACTER
from synmask.pipeline.text.parallel import map_chunks

JUMAN_LINES = 1000  # lines per process of Juman
STANFORD = "edu/stanford/nlp/models/segmenter/chinese"  # in CoreNLP's jar of Chinese models
STANFORD_MEMORY = "5g"  # its model needs over 2 GB
INSTALL_JUMAN = "install Juman 7.0 as docs/corpora.md says"


INSIDE_SPACED = regex.compile(rf"(?V1)(?<={SPACED_CHARACTER}) (?={SPACED_CHARACTER})")
BETWEEN_SPACED = regex.compile(rf"(?V1)(?<={SPACED_CHARACTER}) {BLANK} (?={SPACED_CHARACTER})")


def icu(language: str, line: str) -> str:
    """The words of a line by ICU's dictionaries: of Chinese, Japanese, Thai, Khmer, Lao and Burmese."""
    from icu4py.breakers import WordBreaker

    return _segment_parts(line, lambda text: WordBreaker(text, language))


def mecab(line: str) -> str:
    """The words of a Japanese line by MeCab with the dictionary ipadic."""
    return _segment_parts(line, lambda text: _tagger().parse(text).split())


@cache
def _tagger() -> Any:
    import ipadic
    import MeCab

    return MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")


def _segment_parts(line: str, split: Callable[[str], Iterable[str]]) -> str:
    """The words of a line, so that `detokenise` gives the line back.

    `BLANK` stands for a space, but between letters of scripts that have spaces; text of these is split at
    spaces alone.
    """
    parts = (INSIDE_SPACED.sub("", " ".join(split(part))) for part in line.split())
    return BETWEEN_SPACED.sub(" ", f" {BLANK} ".join(parts))


def juman(lines: Iterable[str], threads: int = 1) -> Iterator[str]:
    """Yield the words of Japanese lines, separated by spaces, by Juman (best path).

    White space in a line is not kept. `threads` processes of Juman run in parallel, in constant memory.

    Raises:
        UserError: Juman is missing, fails, or loses text.
    """
    if shutil.which("juman") is None:
        raise UserError(f"juman: no such program; {INSTALL_JUMAN}")
    with ThreadPoolExecutor(threads) as pool:
        yield from map_chunks(pool, _run_juman, lines, JUMAN_LINES, most=2 * threads)


def _run_juman(lines: list[str]) -> list[str]:
    done = _run_command(["juman", "-b"], "\n".join(lines) + "\n")
    if done.returncode:
        raise UserError(
            f"juman: stopped with code {done.returncode}: {_fault_line(done.stderr)}; {INSTALL_JUMAN}"
        )
    sentences, words = [], []
    for line in done.stdout.split("\n"):
        if line == "EOS":
            sentences.append(" ".join(words))
            words = []
        elif line[:1].strip():  # a line starts with a word; white space gets lines, too
            words.append(line.split(" ", 1)[0])
    if len(lines) != len(sentences):
        raise UserError(f"juman: gave {len(sentences)} lines for {len(lines)}; {INSTALL_JUMAN}")
    for line, sentence in zip(lines, sentences, strict=True):
        if "".join(line.split()) != sentence.replace(" ", ""):  # it only adds spaces between words
            raise UserError(f"juman: lost text of {line[:60]!r}; {INSTALL_JUMAN}")
    return sentences


def stanford(lines: Iterable[str], jars: Sequence[Path]) -> Iterator[str]:
    """Yield the words of Chinese lines, by the Stanford segmenter's Penn Chinese Treebank model.

    Args:
        jars: CoreNLP's main jar and its Chinese models.
    Raises:
        UserError: Java or a jar is missing, or the segmenter fails.
    """
    options = {
        "sighanCorporaDict": STANFORD,
        "serDictionary": f"{STANFORD}/dict-chris6.ser.gz",
        "loadClassifier": f"{STANFORD}/ctb.gz",
        "sighanPostProcessing": "true",
        "inputEncoding": "UTF-8",
        "outputEncoding": "UTF-8",
    }
    command = ["edu.stanford.nlp.ie.crf.CRFClassifier"]
    for name, value in options.items():
        command += [f"-{name}", value]
    yield from _run_java(lines, jars, STANFORD_MEMORY, [*command, "-textFile"])


def penn_tokens(lines: Iterable[str], jars: Sequence[Path]) -> Iterator[str]:
    """Yield the Penn Treebank tokens of lines, by CoreNLP's tokeniser, for English and German.

    Hyphens do not split words, as in CoreNLP 3.9, which PASCAL used; brackets and quotes are unchanged.

    Raises:
        UserError: Java or the jar is missing, or the tokeniser fails.
    """
    options = "ptb3Escaping=false,splitHyphenated=false,splitForwardSlash=false"
    command = ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-options", options]
    yield from _run_java(lines, jars, "500m", command)


def _run_java(lines: Iterable[str], jars: Sequence[Path], memory: str, command: list[str]) -> Iterator[str]:
    """Run a Java program on a file of `lines`, its last argument; yield a line of words for each."""
    program = command[0].rpartition(".")[2]
    if shutil.which("java") is None:
        raise UserError(f"{program}: no Java; install one (Debian: apt-get install default-jre-headless)")
    if missing := next((jar for jar in jars if not Path(jar).is_file()), None if jars else "the jars"):
        raise UserError(f"{program}: {missing}: no such file; give CoreNLP's jars with --jars")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text"
        filled: list[bool] = []  # programs treat empty lines differently, so they get none
        with naming_write_errors(text), open(text, "w", encoding="utf-8", newline="\n") as handle:
            for line in lines:
                filled.append(bool(line))
                handle.write(line and f"{line}\n")
        java = ["java", "-Dfile.encoding=UTF-8", f"-Xmx{memory}", "-cp", ":".join(map(str, jars))]
        done = _run_command([*java, *command, str(text)])
    words = done.stdout.split("\n")[:-1]
    if done.returncode or len(words) != sum(filled):
        raise UserError(
            f"{program}: stopped with code {done.returncode} after {len(words)} of {sum(filled)} lines: "
            f"{_fault_line(done.stderr)}; see its memory and jars"
        )
    sentences = iter(words)
    for full in filled:
        yield " ".join(next(sentences).split()) if full else ""


def _run_command(command: list[str], text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def _fault_line(text: str) -> str:
    """The most informative line of a program's errors: the first exception, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    faults = [line for line in lines if "Exception" in line or "Error" in line]
    return (faults or lines or ["it gave no message"])[0 if faults else -1]
