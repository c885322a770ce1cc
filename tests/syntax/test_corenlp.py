"""The driver of CoreNLP against a Java that only pretends; the real one is in test_parse.py."""

import json
import sys
import tempfile
import zipfile

import pytest

from synmask.pipeline.config.sections import ParserModels, ParserSettings
from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.syntax import corenlp
from synmask.pipeline.syntax.corenlp import parse_file, parser_words
from synmask.pipeline.syntax.jvm import parser_answers
from synmask.pipeline.syntax.treebank import read_trees

# Answers every sentence with a right-branching tree whose tags are the words it was asked for.
JAVA = f"""#!{sys.executable}
import json, os, signal, sys
faults = json.loads(os.environ["FAULTS"])
if "-version" in sys.argv:
    sys.exit('openjdk version "' + faults.get("version", "17.0.1") + '" 2021')
if "--list-modules" in sys.argv:
    sys.exit(print("java.base@17", *faults.get("modules", ["jdk.compiler@17"]), sep="\\n"))
if "start" in faults:
    sys.exit(faults["start"])
print("ready", "4.5", "17.0.1", sep="\\t", flush=True)
for line in sys.stdin:
    number, words = line.rstrip("\\n").split("\\t")
    words = words.split(" ")
    if number == faults.get("killed"):
        print(number + "\\tok\\t(RO", end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if number == faults.get("memory"):
        sys.exit(print(number + "\\tmemory", flush=True))
    if number == faults.get("failed"):
        print(number, "failed", "no parse", sep="\\t", flush=True)
        continue
    tree = "".join(f" (S ({{word}} {{leaf}})" for leaf, word in enumerate(words)) + ")" * len(words)
    print(number, "ok", "(ROOT" + tree + ")", " ".join(map(str, range(len(words)))), sep="\\t", flush=True)
"""


class Run:
    """Parses `text` in a folder, with the faults that Java shall have."""

    text = "Der Hund bellt\nDie Katze schläft\nEin Vogel\n"

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        (folder / "bin").mkdir()
        (folder / "bin/java").write_text(JAVA)
        (folder / "bin/java").chmod(0o755)
        self.jar()
        monkeypatch.setenv("PATH", str(folder / "bin"))

    def jar(self, comment=b""):
        with zipfile.ZipFile(self.folder / "parser.jar", "w") as jar:
            jar.comment = comment

    def __call__(self, tokens=None, max_words=10, language="de", parser="sr", **faults):
        self.monkeypatch.setenv("FAULTS", json.dumps(faults))
        (self.folder / "cased").write_text(self.text)
        (self.folder / "tokens").write_text(self.text.lower() if tokens is None else tokens)
        parse_file(
            input=self.folder / "cased",
            tokens=self.folder / "tokens",
            output=self.folder / "out",
            language=language,
            settings=ParserSettings(tagger="tagger", parser=parser, max_words=max_words),
            jars=[self.folder / "parser.jar"],
            memory=1000,
        )
        return json.loads((self.folder / "out.json").read_text())

    def refused(self, **kwargs):
        with pytest.raises(UserError) as error:
            self(**kwargs)
        assert "\n" not in str(error.value)
        return str(error.value).replace(f"{self.folder}/", "")

    def trees(self):
        return (self.folder / "out.trees").read_text().splitlines()

    def heads(self):
        return (self.folder / "out.heads").read_text().splitlines()


@pytest.fixture
def run(tmp_path, monkeypatch):
    return Run(tmp_path, monkeypatch)


def test_the_parser_sees_case_and_the_tree_holds_the_tokens(run):
    report = run()
    assert run.trees()[1] == "(ROOT (S (Die die) (S (Katze katze) (S (schläft schläft)))))"
    assert run.heads() == ["0 1 2", "0 1 2", "0 1"]
    assert (report["sentences"], report["parsed"], report["java"]) == (3, 3, "17.0.1")
    assert report["flat"] == {"empty": 0, "long": 0, "failed": 0}
    assert report["jars"]["parser.jar"].startswith("8739c76e")
    assert not (run.folder / "out.partial").exists()


def test_escapes_are_undone_for_the_parser_and_brackets_escaped_in_the_tree(run):
    run.text = "a &amp;lt; &quot; :( &#124;\n"
    run()
    assert run.trees() == [
        '(ROOT (S (a a) (S (&lt; &amp;lt;) (S (" &quot;) (S (:( :-LRB-) (S (| &#124;)))))))'
    ]
    run.text = "-LCB- a\n"
    run(tokens=run.text)
    assert run.trees() == ["(ROOT (S (-LCB- -=LCB-) (S (a a))))"]
    run.text = "a ( b ) &#91; c\n"
    run()
    (run.folder / "out.trees").write_text(run.trees()[0].replace("(( ", "(L ").replace("() ", "(R "))
    assert next(read_trees(run.folder / "out.trees")).leaves() == ["a", "(", "b", ")", "&#91;", "c"]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ("he isn &apos;t here", "he is n't here"),
        ("I CAN &apos;T", "I CA N'T"),
        ("n &apos;t", "n 't"),
        ("it &apos;s &apos;t", "it 's 't"),
    ],
)
def test_english_negation_as_in_the_penn_treebank(tokens, words):
    assert parser_words(tokens.split(), "en") == words.split()
    assert parser_words(tokens.split(), "de") == tokens.replace("&apos;", "'").split()


def test_flat_trees_are_counted(run):
    run.text = "a b c\n\nd e\nf\n"
    report = run(max_words=2, failed="3")
    assert run.trees() == ["(FLAT (X a) (X b) (X c))", "(FLAT)", "(FLAT (X d) (X e))", "(ROOT (S (f f)))"]
    assert run.heads() == ["0 1 1", "", "0 1", "0"]
    assert report["flat"] == {"empty": 1, "long": 1, "failed": 1}
    leaves = [tree.leaves() for tree in read_trees(run.folder / "out.trees")]
    assert leaves == [["a", "b", "c"], [], ["d", "e"], ["f"]]


def test_a_killed_jvm_costs_one_sentence(run):
    assert run.refused(killed="3") == (
        "cased: the JVM was killed (SIGKILL), by you or for lack of memory; 2 sentences are kept; run again to resume"
    )
    with (run.folder / "out.partial").open("a") as side:
        side.write("3\tok\t(ROOT (S (cut")  # as if this process had been killed, too
    report = run(killed="2")  # it is not asked for again
    assert (report["parsed"], report["sentences"]) == (1, 3)
    assert run.trees()[2] == "(ROOT (S (Ein ein) (S (Vogel vogel))))"
    assert run.heads() == ["0 1 2", "0 1 2", "0 1"]


@pytest.mark.parametrize("change", ["text", "parser", "jar"])
def test_what_was_finished_of_something_else_is_dropped(run, change):
    run.refused(killed="3")
    if change == "text":
        run.text = run.text.replace("Hund", "Hahn")
    if change == "jar":
        run.jar(comment=b"another")
    assert run(parser="pcfg" if change == "parser" else "sr")["parsed"] == 3


def test_out_of_memory_names_the_line(run):
    assert run.refused(memory="2") == (
        "cased, line 2: out of memory with 1 threads in 1000 MB; raise --memory (corenlp.mem_mb in config.yaml)"
        " or lower corenlp.threads or max_words; 1 sentences are kept; run again to resume"
    )
    assert run()["parsed"] == 2


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (
            {"version": "1.8.0_382"},
            'java is too old (openjdk version "1.8.0_382" 2021); CoreNLP needs a JDK of',
        ),
        ({"version": "10"}, "is too old"),
        (
            {"modules": []},
            "java has no compiler, it is a JRE; CoreNLP needs a JDK of Java 11 or later (Debian:",
        ),
        ({"start": "Error: Could not find Parse\n\tat x"}, "cased: CoreNLP failed (Could not find Parse)"),
        ({"start": "odd"}, "cased: CoreNLP failed (exit code 1)"),
        (
            {"start": "Parse.java:1: error: x\nerror: compilation failed"},
            "CoreNLP failed (it is not in --jars); give",
        ),
    ],
)
def test_java_that_does_not_do(run, faults, message):
    assert message in run.refused(**faults)
    assert not [*run.folder.glob("out.*")]


def test_no_java(run, monkeypatch):
    (run.folder / "bin/java").unlink()
    assert run.refused().startswith("no java on the PATH; CoreNLP needs a JDK of Java 11")


def test_files_that_do_not_fit(run):
    assert run.refused(tokens="a b c\nd e f\n") == "cased has 3 lines, tokens has 2: tokenise both again"
    assert run.refused(tokens="a b c\nd e f\ng\n") == (
        "tokens, line 3: 1 tokens, but 2 in cased: tokenise both again"
    )
    (run.folder / "parser.jar").write_bytes((run.folder / "parser.jar").read_bytes()[:-9])
    assert run.refused() == "parser.jar: no jar, or not a whole one; fetch it again"
    (run.folder / "parser.jar").unlink()
    assert run.refused() == "parser.jar: no such jar; `snakemake parser.jar` fetches it"


def test_progress(run, monkeypatch, capsys):
    monkeypatch.setattr(corenlp, "PROGRESS_SECONDS", 0.0)
    run()
    assert "2/3 " in capsys.readouterr().err


def test_a_full_disk_names_the_file(run, full_disk):
    run.text = "Der Hund bellt\n" * 3000
    full_disk()
    with pytest.raises(OSError, match="too large") as error:
        run()
    assert machine_fault(error.value) == f"{run.folder}/out.partial: File too large"
    with pytest.raises(OSError, match="too large") as error:
        next(
            parser_answers(
                {1: ["Hund"] * 50_000},
                "name",
                ParserModels(tagger="tagger", parser="parser"),
                [],
                threads=1,
                memory=1000,
            )
        )
    assert machine_fault(error.value) == f"{tempfile.gettempdir()}: File too large"
