"""The demo's tasks, checked by a reader of English that shares nothing with the grammar."""

import itertools
import re
from collections import Counter

import pytest

from demo_grammar import tasks as demo_tasks
from demo_grammar.tasks import WEIGHTS, write_demo_task, write_text
from synmask.pipeline.corpora.tasks import TASKS, Examples, read_task
from synmask.pipeline.evaluation.score_tasks import bag_of_words
from synmask.pipeline.evaluation.task_scores import majority
from synmask.pipeline.syntax.pieces import find_words, read_parsed_texts

SIZES = {"train": 700, "dev": 300}

ONE = "(?:man|doctor|cook|teacher|dog|king|neighbour|student|boy|woman|sister|daughter|cat|child|girl)"
MANY = f"(?:{ONE}s|men|women|children)"
ANY = f"(?:{MANY}|{ONE})"
DO = "(?:visit|ask|love|hate|call|invite|mock|see|observe|view|help|thank|chase)"  # with an object
REST = "(?:laugh|sleep|work|wake|return)"  # without
DOES, RESTS, DONE = f"{DO}s", f"{REST}s", f"(?:{DO}|seen)e?d?"
ADVERB = "(?:today|often|again|twice|here|outside)"
HOW = "(?:old|new|small|beautiful|strong|famous|unknown)"
KNOWS, SAYS = "(?:knows|realises)", "(?:believes|says|hopes)"

# acceptability: what is good English here
GOOD = re.compile(
    f"the {ONE} (?:of the {ANY}|whom the (?:{ONE} {DOES}|{MANY} {DO})) (?:{RESTS}|{DOES} the {ONE})"
    f"|the {MANY} (?:of the {ANY}|whom the (?:{ONE} {DOES}|{MANY} {DO})) (?:{REST}|{DO} the {ONE})"
    f"|the {ONE} {RESTS} and can {DO} the {ONE}|the {ONE} can {REST} and {DOES} the {ONE}"
    f"|the {ONE} {RESTS} because the {ONE} {DOES} the {ONE}"
)


def text_of(sentence):
    return sentence[0].lower() + sentence[1:].removesuffix(".")


def acceptability(sentence):
    return "1" if GOOD.fullmatch(text_of(sentence)) else "0"


def deed(text):
    """(who, does, to whom), negated of a simple clause, active or passive."""
    if found := re.fullmatch(f"(.*?) is (not )?({DONE}) by (.*)", text):
        patient, denied, done, agent = found.groups()
        base = next(
            base for base in (done, done[:-1], done[:-2]) if re.fullmatch(DO, base.replace("seen", "see"))
        )
        return (agent, base.replace("seen", "see"), patient), bool(denied)
    found = re.fullmatch(f"(.*?{ONE}) (does not )?({DO}|{REST})(s?)(?: (.*))?", text)
    agent, denied, base, _, patient = found.groups()
    return (agent, base, patient), bool(denied)


def facts(text):
    """{deed: negated} of what a sentence says is so."""
    if " and " in text:
        one, other = text.split(" and ")
        return facts(one) | facts(other)
    if found := re.fullmatch(f"the {ONE} ({KNOWS}|{SAYS}) that (.*)", text):
        return facts(found[2]) if re.fullmatch(KNOWS, found[1]) else {}
    if found := re.fullmatch("because (.*), (.*)|(.*) because (.*)", text):
        return {fact: no for part in filter(None, found.groups()) for fact, no in facts(part).items()}
    if found := re.fullmatch(f"(the {ONE}) whom (the {ONE}) ({DOES}) (.*)", text):
        head, agent, does, rest = found.groups()
        return facts(f"{agent} {does} {head}") | facts(f"{head} {rest}")
    if found := re.fullmatch(f"(the {ONE}) who (is {DONE} by the {ONE}) (.*)", text):
        return facts(f"{found[1]} {found[2]}") | facts(f"{found[1]} {found[3]}")
    return dict([deed(text)])


def paraphrase(one, other):
    """Whether both say the same facts, with the same reason and adverb."""

    def meaning(text):
        adverb = re.search(ADVERB, text)
        text = re.sub(f" ?{ADVERB} ?", "", text)
        reason = re.search("because ([^,]*)", text)
        return facts(text), adverb and adverb[0], reason and facts(reason[1])

    return "1" if meaning(text_of(one)) == meaning(text_of(other)) else "0"


# A model has up to three people of the noun: has it the adjective, does it. "the" means the first one.
PEOPLE = list(itertools.product((False, True), repeat=2))
MODELS = [model for size in (1, 2, 3) for model in itertools.product(PEOPLE, repeat=size)]


def is_true(text, model):
    """None, if nobody is there of whom "every" speaks."""
    determiner, adjective, rest = re.fullmatch(f"(\\w+) ({HOW} )?(.*)", text).groups()
    _, denied = deed(rest)
    meant = [does != denied for has, does in model if has or not adjective]
    if determiner == "every":
        return all(meant) if meant else None
    return {"no": not any(meant), "a": any(meant), "an": any(meant), "the": meant and meant[0]}[determiner]


def entailment(premise, hypothesis):
    premise, hypothesis = map(text_of, (premise, hypothesis))
    if {premise.split()[0], hypothesis.split()[0]} <= {"the", "because"}:
        [(claim, denied)] = facts(hypothesis).items()
        known = facts(premise)
        return (
            "neutral" if claim not in known else "entailment" if known[claim] == denied else "contradiction"
        )
    values = {is_true(hypothesis, model) for model in MODELS if is_true(premise, model)} - {None}
    return "neutral" if len(values) > 1 else "entailment" if values == {True} else "contradiction"


def rows(task, sizes, seed):
    """Rows as text: (part, (sentence, ..., label))."""
    return [
        (part, (*(side.text for side in sides), label))
        for part, (sides, label) in demo_tasks.rows(task, sizes, seed)
    ]


@pytest.fixture(scope="module", params=WEIGHTS)
def drawn(request):
    return request.param, rows(request.param, SIZES, 1)


def test_the_reader_knows_what_is_reported():
    active, passive = "Today the man sees the dog.", "The dog is seen by the man today."
    assert paraphrase(active, passive) == "1"
    assert paraphrase(active, "The man is seen by the dog today.") == "0"
    assert acceptability("The dog whom the man sees sleep.") == "0"
    assert entailment("Every dog sleeps.", "Every old dog sleeps.") == "entailment"
    assert entailment("Every old dog sleeps.", "Every dog sleeps.") == "neutral"
    assert entailment("The man says that the dog sleeps.", "The dog sleeps.") == "neutral"


@pytest.mark.parametrize("drawn", [task for task in WEIGHTS if task != "predicate"], indirect=True)
def test_the_label_is_what_the_reader_finds(drawn):
    task, found = drawn
    wrong = [row for _, row in found if globals()[task](*row[:-1]) != row[-1]]
    assert not wrong, (len(wrong), wrong[0])


def test_a_predicate_is_the_first_verb_of_the_main_clause():
    for _, ((side,), label) in demo_tasks.rows("predicate", SIZES, 1):
        clause = side.tree
        while "VP" not in (labels := [child.label for child in clause.children]):
            clause = clause.children[labels.index("S")]  # the first of two: nothing stands before it
        before = sum(len(child.leaves()) for child in clause.children[: labels.index("VP")])
        assert label == f"{5 * before / (len(side.tree.leaves()) - 1):.3f}", side.text


def test_every_label_has_its_share_and_no_row_comes_twice(drawn):
    task, found = drawn
    assert Counter(part for part, _ in found) == SIZES
    assert len({frozenset(row[:-1]) for _, row in found}) == len(found)
    assert all(len(set(row[:-1])) == len(row) - 1 for _, row in found)
    counts = Counter(row[-1] for _, row in found)
    for label, share in zip(TASKS[task].labels, WEIGHTS[task], strict=False):
        assert abs(counts[label] / len(found) - share / sum(WEIGHTS[task])) < 0.05


def test_words_alone_do_not_tell(drawn):
    """The bag of words is far from the 100 that `test_the_label_is_what_the_reader_finds` reaches."""
    task, found = drawn
    parts = [[row for part, row in found if part == name] for name in SIZES]
    train, dev = (Examples(tuple(r[:-1] for r in part), tuple(r[-1] for r in part)) for part in parts)
    metric, most = {
        "acceptability": ("matthews", 25),
        "paraphrase": ("accuracy", 75),
        "entailment": ("accuracy", 75),
        "predicate": ("pearson", 75),
    }[task]
    assert bag_of_words(task, train, dev)[metric] < most
    assert majority(task, train.labels, dev.labels)[metric] < most


@pytest.mark.parametrize("task", WEIGHTS)
def test_the_files_have_the_rows_and_gold_parses_of_every_sentence_once(tmp_path, task):
    sizes = {"train": 40, "dev": 30}
    write_demo_task(tmp_path, task, sizes, seed=3)
    expected = rows(task, sizes, 3)
    assert rows(task, sizes, 4) != expected
    for part in sizes:
        examples = read_task(task, tmp_path / f"{part}.tsv.gz")
        found = [(*texts, label) for texts, label in zip(examples.texts, examples.labels, strict=True)]
        assert found == [row for name, row in expected if name == part]
        parsed = list(read_parsed_texts([tmp_path / part]))
        assert [text for text, _ in parsed] == list(dict.fromkeys(text for row in found for text in row[:-1]))
        for text, (words, heads) in parsed:
            assert "".join(words) == text.replace(" ", "")
            assert None not in find_words(text, words)
            assert heads.count(0) == 1
            if re.fullmatch(f"The {ONE} {DOES} the {ONE}.", text):
                assert heads == [2, 3, 0, 5, 3, 3]


def test_text_says_things_twice(tmp_path):
    for split, count in (("train", 60), ("valid", 10)):
        write_text(tmp_path / split, count)
    found = (tmp_path / "train").read_text()
    documents = [document.split("\n") for document in found.removesuffix("\n\n").split("\n\n")]
    pairs = [
        [{*re.findall(r"\w+", text.lower())} for text in document]
        for document in documents[:60]
        if document[1:]
    ]
    assert len(documents) == 60
    assert 30 < len(pairs) < 50
    assert all(len(one & other) >= len(one) / 2 for one, other in pairs)
    assert not {*documents[0]} & {*(tmp_path / "valid").read_text().splitlines()}
