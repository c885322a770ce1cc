"""Parse.java with the real CoreNLP, in English; tests/workflow/test_corenlp.py parses German."""

import json
import shutil
import subprocess

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


# Goes before the real Java. A minute without answers ends the sentences.
JAVA = """#!/bin/sh
case "$*" in *Parse.java*) ;; *) exec {java} "$@" ;; esac
{{
  for n in 1 2 3 4 5; do IFS= read -r line; printf '%s\\n' "$line"; done
  while [ "$(wc -l < {partial})" -lt 6 ]; do sleep 0.1; n=$((n + 1)); [ $n -lt 600 ] || exit; done
  cat
}} | {java} "$@"
"""


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
    """`synmask constituency` on sentences in a folder."""

    def __init__(self, python, folder, sentences, settings):
        self.output = folder / "out"
        write_lines(folder / "cased", sentences)
        write_lines(folder / "tokens", (sentence.lower() for sentence in sentences))
        self.command = [python, "-m", "synmask", "constituency", *settings, "--threads", "2"]
        for option, file in {"input": "cased", "tokens": "tokens", "output": "out"}.items():
            self.command += [f"--{option}", str(folder / file)]

    def run(self, memory=1700):
        """Its messages."""
        command = [*self.command, "--memory", str(memory)]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False).stderr

    def lines(self, kind):
        return self.output.with_name(f"out.{kind}").read_text().splitlines()


@pytest.fixture(scope="module")
def parsed(warm, settings, tmp_path_factory):
    """The sentences, parsed; the JVM gets all but the first five when the answers to these are kept in a file."""
    folder = tmp_path_factory.mktemp("english")
    parse = Parse(warm.python, folder, SENTENCES, settings)
    with pytest.MonkeyPatch.context() as patch:
        java = JAVA.format(java=shutil.which("java"), partial=folder / "out.partial")
        patch.setenv("PATH", str(folder), prepend=":")
        (folder / "java").write_text(java)
        (folder / "java").chmod(0o755)
        assert "CoreNLP 4.5" in parse.run()
    return parse


def test_a_tree_a_line_with_the_very_tokens(parsed):
    trees = list(read_trees(f"{parsed.output}.trees"))
    assert [tree.leaves() for tree in trees] == [sentence.lower().split() for sentence in SENTENCES]
    assert len(parsed.lines("trees")) == len(parsed.lines("heads")) == len(SENTENCES)
    report = json.loads(parsed.output.with_name("out.json").read_text())
    assert report["flat"] == {"empty": 1, "long": 1, "failed": 0}
    assert report["parsed"] == len(SENTENCES) - 2
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


def test_too_little_memory_for_the_models(warm, settings, tmp_path):
    assert Parse(warm.python, tmp_path, SENTENCES, settings).run(memory=40) == (
        "synmask constituency: the models: out of memory with 2 threads in 40 MB; "
        "raise --memory (corenlp.mem_mb in config.yaml)\n"
    )


def test_a_model_that_is_in_no_jar(warm, settings, tmp_path):
    wrong = [word.replace("bidirectional", "bidirectonal") for word in settings]
    output = Parse(warm.python, tmp_path, SENTENCES, wrong).run().splitlines()
    assert output[-1].startswith(f"synmask constituency: {tmp_path}/cased: CoreNLP failed (")
    assert "bidirectonal-distsim.tagger" in output[-1]
