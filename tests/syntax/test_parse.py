"""Parse.java with the real CoreNLP, in English; tests/workflow/test_corenlp.py parses German."""

import json
import subprocess
import sys
import time

import psutil
import pytest

from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.files import write_lines
from synmask.pipeline.syntax.treebank import read_trees

pytestmark = pytest.mark.xdist_group("corenlp")

# Moses tokens; the parser is the greedy one, which loads in seconds: the beam's model is 4 times as large.
SENTENCES = """
The old man fed the hungry dog .
The dog that barked at the postman is asleep now .
She put the red book on the table in the kitchen .
Do n&apos;t touch that !
He isn &apos;t here , and I can &apos;t wait .
&quot; Come in , &quot; she said , &quot; and close the door . &quot;
The train ( the last one ) left at 10 : 45 p.m. on platform 3 .
It &apos;s John &apos;s dog &#91; not mine &#93; .
Prices rose by 3.5 % to $ 1,200 last year .
R & D &amp; more &lt; less &#124; none
:-) -- ... ?
yes
Which of the two boys did the teacher say she had seen ?
If it rains tomorrow , we will stay at home and play chess .
Children were playing football in the park while their parents watched .
In 1994 Ms. Smith of Acme Corp. moved to New York , N.Y. , with her husband .
This is the cat that killed the rat that ate the malt that lay in the house that Jack built .
Neither the minister nor her deputies wanted to comment on the report .
ﬁ — “ naïve ” café 日本 \U0001f600 é
Buffalo buffalo Buffalo buffalo buffalo buffalo Buffalo buffalo .
*
a / b \\ c * d { e }
The bigger the better .
Yesterday , having finished her work , she went home .
There are many reasons why nobody likes to get up early .
Run !
""".strip("\n").split("\n")
SENTENCES += ["", " ".join(["so"] * 12) + " on", "the " * 60 + "end"]


@pytest.fixture(scope="module")
def settings(corenlp):
    """Words of the command line that do not change."""
    models = corenlp.corenlp.languages["en"]
    greedy = models.parser.replace(".beam", "")
    return [
        *("--language", "en", "--jars", *DataFiles(corenlp).corenlp_jars("en")),
        *("--settings", json.dumps({"tagger": models.tagger, "parser": greedy, "max_words": 50})),
    ]


class Parse:
    """`synmask constituency` as a process of its own, on sentences in a folder."""

    def __init__(self, folder, sentences, settings):
        self.output, self.sentences = folder / "out", sentences
        write_lines(folder / "cased", sentences)
        write_lines(folder / "tokens", (sentence.lower() for sentence in sentences))
        self.command = [sys.executable, "-m", "synmask.pipeline.cli", "constituency", *settings]
        for option, file in {"input": "cased", "tokens": "tokens", "output": "out"}.items():
            self.command += [f"--{option}", str(folder / file)]

    def start(self, memory=1700):
        return subprocess.Popen(
            [*self.command, "--threads", "2", "--memory", str(memory)], stderr=subprocess.PIPE, text=True
        )

    def lines(self, kind):
        return self.output.with_name(f"out.{kind}").read_text().splitlines()

    def report(self):
        return json.loads(self.output.with_name("out.json").read_text())


@pytest.fixture(scope="module")
def parsed(settings, tmp_path_factory):
    """The sentences, parsed in two parts: the first JVM is killed on its way."""
    parse = Parse(tmp_path_factory.mktemp("english"), SENTENCES, settings)
    process, side = parse.start(), parse.output.with_name("out.partial")
    while process.poll() is None and (not side.exists() or side.read_bytes().count(b"\n") < 5):
        time.sleep(0.01)
    (jvm,) = psutil.Process(process.pid).children()
    jvm.kill()
    output = process.communicate()[1]
    assert process.returncode == 1
    assert "cased: the JVM was killed (SIGKILL)" in output
    parse.finished = side.read_bytes().count(b"\n") - 1
    assert not parse.output.with_name("out.trees").exists()
    process = parse.start()
    parse.told = process.communicate()[1]
    assert process.returncode == 0
    return parse


def test_a_tree_a_line_with_the_very_tokens(parsed):
    trees = list(read_trees(f"{parsed.output}.trees"))
    assert [tree.leaves() for tree in trees] == [sentence.lower().split() for sentence in SENTENCES]
    assert len(parsed.lines("trees")) == len(parsed.lines("heads")) == len(SENTENCES)
    assert parsed.report()["flat"] == {"empty": 1, "long": 1, "failed": 0}
    assert parsed.lines("trees")[-3] == "(FLAT)"
    assert parsed.lines("trees")[-1].startswith("(FLAT (X the)")


def test_the_trees_are_sensible(parsed):
    assert parsed.lines("trees")[0] == (
        "(ROOT (S (NP (DT the) (JJ old) (NN man)) (VP (VBD fed) (NP (DT the) (JJ hungry) (NN dog))) (. .)))"
    )
    trees = list(read_trees(f"{parsed.output}.trees"))[4:7]
    tags = {word: tag for tree in trees for word, tag in zip(tree.leaves(), tree.tags(), strict=True)}
    assert (tags["isn"], tags["&apos;t"]) == ("VBZ", "RB")
    assert (tags["("], tags[")"]) == ("-LRB-", "-RRB-")


def test_every_word_has_a_head_and_one_is_the_root(parsed):
    assert parsed.lines("heads")[0] == "3 3 4 0 7 7 4 4"
    for line, sentence in zip(parsed.lines("heads"), SENTENCES, strict=True):
        heads = [0, *map(int, line.split())]
        assert len(heads) == len(sentence.split()) + 1
        assert heads[1:].count(0) == bool(sentence)
        for word in range(1, len(heads)):
            above = {word}
            while word := heads[word]:
                assert word not in above  # no circle
                above.add(word)


def test_a_killed_jvm_goes_on_where_it_was(parsed):
    assert parsed.finished >= 4
    assert "CoreNLP 4.5" in parsed.told
    assert f"{parsed.finished} sentences were finished before" in parsed.told
    assert parsed.report()["parsed"] == len(SENTENCES) - 2 - parsed.finished


def test_too_little_memory_for_the_models(settings, tmp_path):
    process = Parse(tmp_path, SENTENCES, settings).start(memory=40)
    assert process.communicate()[1] == (
        "synmask constituency: the models: out of memory with 2 threads in 40 MB; "
        "raise --memory (corenlp.mem_mb in config.yaml)\n"
    )


def test_a_model_that_is_in_no_jar(settings, tmp_path):
    wrong = [word.replace("bidirectional", "bidirectonal") for word in settings]
    output = Parse(tmp_path, SENTENCES, wrong).start().communicate()[1].splitlines()
    assert output[-1].startswith(f"synmask constituency: {tmp_path}/cased: CoreNLP failed (")
    assert "bidirectonal-distsim.tagger" in output[-1]
