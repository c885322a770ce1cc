"""The demo's tasks, checked by a reader of English that shares nothing with the grammar but the lexicon."""

import hashlib
import re
from collections import Counter

import pytest

import english_reader
from synmask.pipeline.config.benchmarks import GenerateTask, GenerateText
from synmask.pipeline.corpora.demo.documents import write_text
from synmask.pipeline.corpora.demo.nlu_tasks import KINDS, Kind, write_part
from synmask.pipeline.corpora.demo.nlu_tasks import rows as drawn_rows
from synmask.pipeline.corpora.demo.phrases import Side
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.corpora.tasks import Examples, read_task
from synmask.pipeline.evaluation.task_scores import bag_of_words, majority
from synmask.pipeline.files import UserError
from synmask.pipeline.syntax.pieces import find_words, read_parsed
from synmask.pipeline.tasks import TASKS

DIGESTS = {
    "acceptability": "627da339",
    "paraphrase": "dabadf8a",
    "entailment": "0aba9944",
    "predicate": "96a8479c",
}  # of 30 and 10 rows, seed 3
TEXT_DIGEST = "bc53a86e"  # of 40 documents, seed 1
SIZES = {"train": 700, "dev": 300}


def rows(*how):
    """Rows as text: (part, (sentence, ..., label))."""
    return ((part, (*(side.text for side in sides), label)) for part, (sides, label) in drawn_rows(*how))


def test_the_reader_knows_what_is_said():
    [[active]], [[passive]] = (
        english_reader.read(f"{text}.")
        for text in ("Today he saw my old dogs", "My old dogs were seen by him today")
    )
    assert active == passive
    assert active[:3] == ("see", "past", False)
    assert dict(active[3]) == {"agent": "he", "patient": ("my", ("old",), "dog", 2)}
    assert not english_reader.read("He see my old dogs.")
    assert english_reader.read("The dog the man sees.") == set()


@pytest.fixture(scope="module", params=KINDS)
def drawn(request):
    return request.param, list(rows(request.param, SIZES, 1))


@pytest.mark.parametrize("drawn", [task for task in KINDS if task != "predicate"], indirect=True)
def test_the_label_is_what_the_reader_finds(drawn):
    task, found = drawn
    oracle = getattr(english_reader, task)
    wrong = [row for _, row in found if oracle(*row[:-1]) != row[-1]]
    assert not wrong, (len(wrong), wrong[0])


def test_a_predicate_is_the_first_verb_of_the_main_clause():
    for _, ((side,), label) in drawn_rows("predicate", SIZES, 1):
        clause = side.tree
        while "VP" not in (labels := [child.label for child in clause.children]):
            clause = clause.children[labels.index("S")]  # the first of two: nothing stands before it
        before = sum(len(child.leaves()) for child in clause.children[: labels.index("VP")])
        assert label == f"{5 * before / (len(side.tree.leaves()) - 1):.3f}", side.text


def test_every_label_has_its_share(drawn):
    task, found = drawn
    counts = Counter(row[-1] for _, row in found)
    if task == "predicate":
        scores = [float(row[-1]) for _, row in found]
        assert all(sum(low < score < low + 1 for score in scores) > len(scores) / 25 for low in range(5))
        return
    shares = {"acceptability": (1, 1), "paraphrase": (1, 2), "entailment": (1, 1, 1)}[task]
    for label, share in zip(TASKS[task].labels, shares, strict=True):
        assert abs(counts[label] / len(found) - share / sum(shares)) < 0.05


def test_no_row_comes_twice(drawn):
    _, found = drawn
    assert len({frozenset(row[:-1]) for _, row in found}) == len(found)
    assert Counter(part for part, _ in found) == SIZES
    for _, row in found:
        assert all(text[0].isupper() and text.endswith(".") and len(text.split()) <= 30 for text in row[:-1])
        assert len(set(row[:-1])) == len(row) - 1


def test_neither_a_pair_nor_the_same_the_other_way_round_is_drawn_again(monkeypatch):
    def draw(grammar, label):
        return tuple(Side(text, None, ()) for text in grammar.rng.sample(["A.", "B.", "C.", "D."], 2)), label

    monkeypatch.setitem(KINDS, "paraphrase", Kind(Grammar, draw, (1, 1)))
    found = [{*row[:2]} for _, row in rows("paraphrase", {"train": 4, "dev": 2}, 1)]
    assert all(found.count(pair) == 1 for pair in found)


def test_words_alone_do_not_tell(drawn):
    """The bag of words is far from the 100 that `test_the_label_is_what_the_reader_finds` reaches."""
    task, found = drawn
    parts = [[row for part, row in found if part == name] for name in SIZES]
    train, dev = (Examples(tuple(r[:-1] for r in part), tuple(r[-1] for r in part)) for part in parts)
    metric, most = {
        "acceptability": ("matthews", 25),
        "paraphrase": ("accuracy", 75),
        "entailment": ("accuracy", 72),
        "predicate": ("pearson", 75),
    }[task]
    assert bag_of_words(task, train, dev)[metric] < most
    assert majority(task, train, dev)[metric] < most


@pytest.mark.parametrize("task", KINDS)
def test_the_same_settings_give_the_same_bytes(tmp_path, task):
    sizes = {"train": 30, "dev": 10}
    for part in sizes:
        write_part(task=task, part=part, output=tmp_path / part, settings=GenerateTask(seed=3, **sizes))
    expected = [(part, row) for part, row in rows(task, sizes, 3)]
    for part in sizes:
        examples = read_task(task, tmp_path / part)
        assert [(*t, label) for t, label in zip(examples.texts, examples.labels, strict=True)] == [
            row for name, row in expected if name == part
        ]
    assert list(rows(task, sizes, 4)) != expected
    assert list(rows(task, {"train": 30, "dev": 20}, 3))[:40] == expected
    digest = hashlib.sha256((tmp_path / "train").read_bytes() + (tmp_path / "dev").read_bytes()).hexdigest()
    assert digest[:8] == DIGESTS[task]


def test_bad_settings_are_one_line(tmp_path):
    for sizes in (
        {"train": 3},
        {"train": 3, "dev": 0},
        {"train": 3, "dev": 1.5},
        {"train": 3, "dev": 1, "test": 1},
    ):
        with pytest.raises(
            UserError, match=r"acceptability: sizes .*; give train and dev a positive whole number"
        ):
            next(rows("acceptability", sizes, 1))
    with pytest.raises(UserError, match="no demo task 'cola'; there are acceptability, paraphrase"):
        write_part(task="cola", part="train", output=tmp_path / "out", settings=GenerateTask(train=3, dev=1))
    with pytest.raises(UserError, match="no part 'test'; there are train, dev"):
        write_part(
            task="predicate", part="test", output=tmp_path / "out", settings=GenerateTask(train=3, dev=1)
        )


@pytest.mark.parametrize("task", KINDS)
def test_gold_parses_of_every_sentence_once(tmp_path, task):
    write_part(
        task=task,
        part="dev",
        output=tmp_path / "dev.tsv",
        settings=GenerateTask(seed=3, train=40, dev=30),
        parses=tmp_path / "dev",
    )
    texts = [text for example in read_task(task, tmp_path / "dev.tsv").texts for text in example]
    parsed = list(read_parsed([tmp_path / "dev"]))
    assert [text for text, _ in parsed] == list(dict.fromkeys(texts))
    for text, (words, heads) in parsed:
        assert "".join(words) == text.replace(" ", "")
        assert heads.count(0) == 1
        tops = [head - 1 for head in heads]
        for place in range(len(words)):
            for _ in words:
                place = tops[place] if tops[place] >= 0 else place
            assert heads[place] == 0  # every way up ends at the root
        assert None not in find_words(text, words)
        verb = re.match(r"The (\w+) (\w+) the \w+\.$", text)
        if verb:
            assert heads == [2, 3, 0, 5, 3, 3]


def test_text_says_things_twice(tmp_path):
    for split in ("train", "valid"):
        write_text(output=tmp_path / split, split=split, settings=GenerateText(train=40, valid=10))
    found = (tmp_path / "train").read_text()
    assert hashlib.sha256(found.encode()).hexdigest()[:8] == TEXT_DIGEST
    documents = [document.split("\n") for document in found.removesuffix("\n\n").split("\n\n")]
    assert len(documents) == 40
    assert {len(document) for document in documents} == {1, 2}
    pairs = [document for document in documents if len(document) == 2]
    assert len(pairs) > 20
    for one, two in pairs:
        words = [{*re.findall(r"\w+", text.lower())} for text in (one, two)]
        assert len(words[0] & words[1]) >= len(words[0]) / 3
    assert not {*documents[0]} & {*(tmp_path / "valid").read_text().splitlines()}
