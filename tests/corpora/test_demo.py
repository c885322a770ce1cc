import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

import demo_grammar
from demo_grammar import derivation, generate, write_corpus
from demo_grammar.derivation import Use, sentence, side_of
from demo_grammar.inflection import ENGLISH, GERMAN
from demo_grammar.table import RULES, VALUES, read_rules
from demo_grammar.tasks import write_demo_task, write_text
from synmask.pipeline.files import read_lines
from synmask.pipeline.syntax.treebank import read_trees

ROOT = Path(__file__).parents[2]
SIZES = {"train": 1200, "valid": 150, "test": 150}
SMALL = {"train": 40, "valid": 10, "test": 10}
FINITE = {"VVFIN", "VAFIN", "VMFIN", "VBZ", "VBP", "VBD", "MD"}


@pytest.fixture(scope="module")
def corpus():
    return [pair for _, pair in generate(SIZES, seed=1)]


@pytest.fixture(scope="module")
def sides(corpus):
    return [side for pair in corpus for side in pair]


# The files.


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    script = (
        "import sys; from pathlib import Path; from demo_grammar import write_corpus;"
        f"write_corpus(Path(sys.argv[1]), {SMALL}, seed=3)"
    )
    digests = []
    for hash_seed in "12":
        folder = tmp_path / hash_seed
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "tools")}
        subprocess.run([sys.executable, "-c", script, str(folder)], check=True, env=environment)
        files = sorted(folder.iterdir())
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files])
    assert digests[0] == digests[1]
    write_corpus(tmp_path / "other", SMALL, seed=4)
    assert (tmp_path / "other/train.de.gz").read_bytes() != (tmp_path / "1/train.de.gz").read_bytes()


def test_the_files_of_a_split_are_aligned(tmp_path):
    write_corpus(tmp_path, SMALL, packed="")
    for split, size in SMALL.items():
        expected = [pair for name, pair in generate(SMALL, seed=1) if name == split]
        for number, language in enumerate(("de", "en")):
            path = tmp_path / f"{split}.{language}"
            heads = [tuple(map(int, line.split())) for line in read_lines(f"{path}.heads")]
            found = list(zip(read_lines(path), read_trees(f"{path}.trees"), heads, strict=True))
            assert found == [tuple(pair[number]) for pair in expected]
            assert len(found) == size
    assert len(list(tmp_path.iterdir())) == 18


def test_the_shipped_files_are_those_of_the_grammar(tmp_path):
    """The first sentences of them, and the number of all: a split starts where the one before it ends."""
    write_corpus(tmp_path, {"train": 300})
    for path in tmp_path.iterdir():
        shipped = [*read_lines(ROOT / "demo/de-en" / path.name)]
        assert shipped[:300] == [*read_lines(path)], path.name
        assert len(shipped) == demo_grammar.SIZES["train"]
    write_demo_task(tmp_path / "task", "entailment", {"train": 60})
    for path in (tmp_path / "task").iterdir():
        lines = [*read_lines(path)]
        assert [*read_lines(ROOT / "demo/tasks/entailment" / path.name)][: len(lines)] == lines, path.name
    write_text(tmp_path / "train.txt", 60)
    lines = [*read_lines(tmp_path / "train.txt")]
    assert [*read_lines(ROOT / "demo/text/train.txt.gz")][: len(lines)] == lines


# The sentences.


def test_no_sentence_comes_twice_and_all_have_4_to_30_tokens(corpus, sides):
    assert len({german.text for german, _ in corpus}) == len(corpus) == sum(SIZES.values())
    lengths = [len(side.heads) for side in sides]
    assert min(lengths) == 4
    assert 25 < max(lengths) <= 30


def test_a_german_sentence_has_one_translation(monkeypatch):
    """With so few words left that the same German sentence is drawn over and over."""
    few = {"Mann", "Frau", "Junge", "Tür", "Haus", "Kamera", "alt", "oft", "Garten", "weil"}
    for name, values in VALUES.items():
        words = [word for word in values if isinstance(word, str) or word.german[0] in few]
        kinds = {word.kind: word for word in values if not isinstance(word, str)}  # one verb of each
        monkeypatch.setitem(VALUES, name, words or list(kinds.values()))
    monkeypatch.setitem(VALUES, "d", [*VALUES["the"], *VALUES["an"]])
    rng, translations, drawn = random.Random(5), {}, 0
    while drawn < 4000:
        german, english = sentence(rng)
        if len(german.heads) < 15:
            drawn += 1
            translations.setdefault(german.text, set()).add(english.text)
    assert len(translations) < 3800
    assert [(text, found) for text, found in translations.items() if len(found) > 1] == []


@pytest.mark.parametrize(("number", "language"), [(0, "de"), (1, "en")])
def test_the_leaves_are_the_moses_tokens_of_the_raw_line(corpus, number, language):
    moses = MosesTokenizer(language)
    for side in (pair[number] for pair in corpus[:500]):
        assert moses.tokenize(side.text) == side.tree.leaves()
        assert side.text[0].isupper()
        assert side.text.endswith(".")


# Trees and heads.


def test_heads_are_a_projective_tree_with_a_finite_verb_at_its_root(sides):
    for side in sides:
        root = side.heads.index(0) + 1
        assert side.heads.count(0) == 1
        assert side.tree.tags()[root - 1] in FINITE
        assert side.heads[-1] == root  # the full stop
        above = [set() for _ in side.heads]
        for token in range(1, len(side.heads) + 1):
            head = token
            while head:
                assert head not in above[token - 1], "a cycle"
                above[token - 1].add(head)
                head = side.heads[head - 1]
        for token, head in enumerate(side.heads, start=1):
            between = range(min(token, head) + 1, max(token, head)) if head else ()
            assert all(head in above[middle - 1] for middle in between), "a crossing arc"


def test_every_constituent_has_one_head(sides):
    for side in sides:
        for start, end, label in side.tree.spans():
            outside = [head for head in side.heads[start:end] if not start < head <= end]
            assert len(outside) == 1, (label, side.text)


# Agreement, checked on the finished sentences by tables that are written here.

NUMBERS = ("nom", "acc", "dat", "gen")
NOUNS = {  # nominative, accusative, dative, genitive in the singular; in the plural
    "m": ("Mann Mann Mann Mannes", "Männer Männer Männern Männer"),
    "m ": ("Junge Jungen Jungen Jungen", "Jungen Jungen Jungen Jungen"),
    "f": ("Frau Frau Frau Frau", "Frauen Frauen Frauen Frauen"),
    "m  ": ("Spiegel Spiegel Spiegel Spiegels", "Spiegel Spiegel Spiegeln Spiegel"),
    "f ": ("Kamera Kamera Kamera Kamera", "Kameras Kameras Kameras Kameras"),
    "n": ("Kind Kind Kind Kindes", "Kinder Kinder Kindern Kinder"),
    "n ": ("Buch Buch Buch Buches", "Bücher Bücher Büchern Bücher"),
}
STRONG = {"m": "er en em es", "f": "e e er er", "n": "es es em es", "pl": "e e en er"}
DEFINITE = {"m": "der den dem des", "f": "die die der der", "n": "das das dem des", "pl": "die die den der"}


def cells(form, table):
    """(case, gender) of which a table has this form."""
    return {
        (case, gender.strip())
        for gender, forms in table.items()
        for case, found in zip(NUMBERS, forms.split(), strict=True)
        if found == form
    }


def cells_of_noun(form):
    singular = cells(form, {gender: forms for gender, (forms, _) in NOUNS.items()})
    plural = cells(form, {gender: forms for gender, (_, forms) in NOUNS.items()})
    return singular | {(case, "pl") for case, _ in plural}


def cells_of_article(form):
    form = form.lower()
    for stem in ("ein", "kein", "mein"):
        if form == stem:
            return {("nom", "m"), ("nom", "n"), ("acc", "n")}
    for stem in ("ein", "kein", "mein", "dies", "jed", "all"):
        if form.startswith(stem):
            return cells(form.removeprefix(stem), STRONG)
    return cells(form, DEFINITE)


def ending(article, case, gender):
    """Of an adjective behind this article."""
    if article is None or article.lower() in ("ein", "kein", "mein"):
        return STRONG[gender].split()[NUMBERS.index(case)]
    return "e" if gender != "pl" and (case == "nom" or (case == "acc" and gender != "m")) else "en"


def walk(tree, *above):
    yield tree, above
    if not tree.is_preterminal():
        for child in tree.children:
            yield from walk(child, tree, *above)


def child(tree, *labels):
    return next((c for c in tree.children if c.label in labels), None)


def word(tree, label):
    found = child(tree, label)
    return found and found.leaves()[0]


def test_german_articles_adjectives_and_nouns_agree_in_the_case_of_their_place(corpus):
    checked = dict.fromkeys(("any", "dat", "gen", "nom", "adjective"), 0)
    for german, _ in corpus:
        for tree, (parent, *_) in ((t, above) for t, above in walk(german.tree) if t.label == "NP" and above):
            found = cells_of_noun(word(tree, "NN"))
            if not found or word(parent, "APPRART"):
                continue
            if article := word(tree, "ART"):
                found &= cells_of_article(article)
            case = "any"
            if word(parent, "APPR") == "mit":
                case = "dat"
            elif parent.label == "NP" and not child(parent, "KON"):
                case = "gen"
            elif (
                parent.label == "S"
                and parent.children[0] is tree
                and not child(parent, "VVFIN", "VAFIN", "VMFIN")
            ):
                case = "nom"
            found = {cell for cell in found if case in ("any", cell[0])}
            assert found, (case, german.text)
            checked[case] += 1
            if adjective := word(tree, "ADJA"):
                assert any(adjective.endswith(ending(article, *cell)) for cell in found), german.text
                checked["adjective"] += 1
    assert min(checked.values()) > 20, checked


def is_plural(noun_phrase, language):
    """Whether a subject is in the plural; None where its form leaves it open."""
    if child(noun_phrase, "KON", "CC"):
        return True
    if language == "en":
        pronoun = word(noun_phrase, "PRP")
        return pronoun.lower() == "they" if pronoun else bool(child(head_of(noun_phrase), "NNS"))
    if not child(noun_phrase, "NN"):
        return {"er": False}.get(word(noun_phrase, "PPER").lower())
    genders = {gender for case, gender in cells_of_noun(word(noun_phrase, "NN")) if case == "nom"}
    return None if not genders else "pl" in genders


def head_of(noun_phrase):
    return noun_phrase if child(noun_phrase, "NN", "NNS") else head_of(child(noun_phrase, "NP"))


def test_english_verbs_agree_with_their_subjects_also_from_afar(corpus):
    checked = far = 0
    for _, english in corpus:
        for tree, above in walk(english.tree):
            subject, predicate = (child(tree, "NP"), child(tree, "VP")) if tree.label == "S" else (None, None)
            if predicate and not subject and child(above[0], "WHNP"):  # the subject is relativised
                subject = head_of(above[1])
            if not subject or not predicate or predicate.children[0].label not in ("VBZ", "VBP"):
                continue
            [verb] = predicate.children[0].leaves()
            assert is_plural(subject, "en") == (predicate.children[0].label == "VBP") == (verb[-1] != "s"), (
                verb
            )
            checked += 1
            far += len(subject.leaves()) > 5
    assert checked > 500
    assert far > 40


def test_german_verbs_agree_with_their_subjects_where_they_stand_last(corpus):
    checked = 0
    for german, _ in corpus:
        for tree, _ in walk(german.tree):
            if (
                tree.label == "S"
                and tree.children[0].label == "NP"
                and child(tree, "VP")
                and not child(tree, *FINITE)
            ):
                plural = is_plural(tree.children[0], "de")
                form = child(tree, "VP").children[-1].leaves()[-1]
                checked += plural is not None
                assert plural in (None, form.endswith("en") or form == "sind"), german.text
    assert checked > 100


# Each construction, spelt out.


def say(rule, **words):
    """Both sides of a rule; words are given by their first German form."""
    [[rule]] = read_rules("X =" + rule).values()
    by_form = {
        word.german[0]: word for values in VALUES.values() for word in values if not isinstance(word, str)
    }
    use = Use(random.Random(1), {name: by_form.get(form, form) for name, form in words.items()})
    roots = (use.nodes(side, language) for side, language in zip(rule.sides, (GERMAN, ENGLISH), strict=True))
    return [side_of(root).text for (root,) in roots]


@pytest.mark.parametrize(
    ("noun", "number", "article", "forms"),
    [
        ("Mann", "sg", "the", "Der alte Mann, Den alten Mann, Dem alten Mann, Des alten Mannes"),
        ("Mann", "sg", "an", "Ein alter Mann, Einen alten Mann, Einem alten Mann, Eines alten Mannes"),
        ("Frau", "sg", "the", "Die alte Frau, Die alte Frau, Der alten Frau, Der alten Frau"),
        ("Frau", "sg", "mine", "Meine alte Frau, Meine alte Frau, Meiner alten Frau, Meiner alten Frau"),
        ("Kind", "sg", "this", "Dieses alte Kind, Dieses alte Kind, Diesem alten Kind, Dieses alten Kindes"),
        ("Kind", "sg", "none", "Kein altes Kind, Kein altes Kind, Keinem alten Kind, Keines alten Kindes"),
        (
            "Junge",
            "sg",
            "every",
            "Jeder alte Junge, Jeden alten Jungen, Jedem alten Jungen, Jedes alten Jungen",
        ),
        ("Apfel", "pl", "every", "Alle alten Äpfel, Alle alten Äpfel, Allen alten Äpfeln, Aller alten Äpfel"),
        (
            "Frau",
            "pl",
            "none",
            "Keine alten Frauen, Keine alten Frauen, Keinen alten Frauen, Keiner alten Frauen",
        ),
        ("Kind", "pl", "an", "Alte Kinder, Alte Kinder, Alten Kindern, Alter Kinder"),
    ],
)
def test_declension(noun, number, article, forms):
    for case, expected in zip(NUMBERS, forms.split(", "), strict=True):
        rule = f"(NP Art.{case}.{number}.x.{article} Adj.{case}.{number}.x.{article}.e N.{case}.{number}.x) | (NP e:JJ)"
        assert say(rule, x=noun, e="alt")[0] == expected


@pytest.mark.parametrize(
    ("verb", "tense", "expected"),
    [
        ("mit+nehmen", "now", "Er nimmt mit. He takes."),
        ("mit+nehmen", "past", "Er hat mitgenommen. He took."),
        ("mit+nehmen", "können", "Er kann mitnehmen. He can take."),
        ("zurück+kommen", "past", "Er ist zurückgekommen. He returned."),
        ("tragen", "past", "Er hat getragen. He carried."),
        ("lachen", "now", "Er lacht. He laughs."),
    ],
)
def test_the_verb_in_main_clauses(verb, tense, expected, monkeypatch):
    monkeypatch.setitem(RULES, "O", [])
    monkeypatch.setitem(RULES, "R", RULES["R"][:1] + RULES["R"][2:])  # without "not"
    rule = "(S er/PPER F.sg.v.w* R.sg.v.w.bare ./$.) | (S he/PRP R.sg.v.w.bare* ./.)"
    assert " ".join(say(rule, v=verb, w=tense)) == expected


@pytest.mark.parametrize(
    ("rule", "words", "expected"),
    [
        (
            "(S NP.acc.sg.y V.now.u.n* NP.nom.n.p V.part.u) | (S NP.nom.n.p (VP V.now.u.n* NP.acc.sg.y))",
            {"u": "an+sehen", "n": "sg", "p": "Frau"},
            "Den Arzt sieht die Frau an. The woman views the doctor.",
        ),
        (
            "(S er/PPER V.now.v.sg* IN.acc) | (S he/PRP (VP V.now.v.sg* IN.acc))",
            {"v": "laufen"},
            "Er läuft ins Haus. He runs into the house.",
        ),
        (
            "(S er/PPER V.now.v.sg* IN.dat) | (S he/PRP (VP V.now.v.sg* IN.dat))",
            {"v": "laufen"},
            "Er läuft im Haus. He runs in the house.",
        ),
        (
            "(S er/PPER V.now.v.sg* Z.v) | (S he/PRP (VP V.now.v.sg* Z.v))",
            {"v": "versuchen"},
            "Er versucht, aufzuwachen. He tries to wake.",
        ),
        (
            "(S (NP NB.nom.sg.p* (SBAR ,/$, Rel.acc.sg.p.the DEED.pl.u* ,/$,)) lacht/VVFIN*)"
            " | (S (NP NB.nom.sg.p* (SBAR whom/WP DEED.pl.u)) laughs/VBZ*)",
            {"p": "Frau", "u": "an+rufen"},
            "Die Frau, die die Ärzte anrufen, lacht. The woman whom the doctors call laughs.",
        ),
    ],
)
def test_constructions(rule, words, expected, monkeypatch):
    """With plain noun phrases, the first rule of each part, and one word for each variable."""
    monkeypatch.setattr(derivation, "MAX_DEPTH", -1)
    chosen = {"y": "Arzt", "p": "Arzt", "l": "Haus", "b": "auf+wachen", "d": "der"}
    for name, form in chosen.items():
        monkeypatch.setitem(VALUES, name, [word for word in VALUES[name] if word.german[0] == form])
    monkeypatch.setitem(VALUES, "n", ["sg"])
    german, english = say(rule.replace(") |", " ./$.) |")[:-1] + " ./.)", **words)
    assert f"{german} {english}" == expected


def test_all_constructions_are_in_the_corpus(corpus):
    counts = dict.fromkeys(("KOUS", "PTKVZ", "zu", "Den", "Garten", "through", "PRELS", "PTKNEG"), 0)
    for german, english in corpus:
        tags, words = german.tree.tags(), german.tree.leaves()
        for tag in ("KOUS", "PTKVZ", "PRELS", "PTKNEG"):
            counts[tag] += tag in tags
        counts["zu"] += "PTKZU" in tags or "VVIZU" in tags
        counts["Den"] += words[0] in ("Den", "Einen", "Diesen")  # an object first
        counts["Garten"] += any(w.startswith("Garten") for w in words)  # compounds
        counts["through"] += "through" in english.tree.leaves()
    assert min(counts.values()) > len(corpus) / 100, counts
