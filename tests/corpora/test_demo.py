import hashlib
import io
import os
import random
import re
import subprocess
import sys

import pytest
from sacremoses import MosesTokenizer
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from synmask.pipeline.config.sections import Generate
from synmask.pipeline.corpora.demo import generate, lexicon, linearise, sampling, write_corpus
from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.files import UserError, read_lines
from synmask.pipeline.syntax.treebank import read_trees

SIZES = {"train": 2400, "valid": 300, "test": 300}
SMALL = {"train": 40, "valid": 10, "test": 10}
NOUNS = {noun.german: noun for nouns in lexicon.NOUNS.values() for noun in nouns}
VERBS = {verb.particle + verb.infinitive: verb for verbs in lexicon.VERBS.values() for verb in verbs}


@pytest.fixture(scope="module")
def corpus():
    return list(generate(SIZES, seed=1))


@pytest.fixture(scope="module")
def sides(corpus):
    return [side for _, sentence in corpus for side in (sentence.source, sentence.target)]


def np(german, person=1, **rest):
    return Nominal(person, noun=NOUNS[german], **rest)


def accusative(nominal):
    return Complement("", "acc", "", nominal)


def clause(verb, subject, *complements, **rest):
    return Clause(VERBS[verb], subject.person, subject, complements=complements, **rest)


def texts(clause):
    sentence = linearise([(("", ""), clause)])
    return sentence.source.text, sentence.target.text


# The files.


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    script = (
        "import sys; from pathlib import Path; from synmask.pipeline.corpora.demo import Generate, write_corpus;"
        f"write_corpus(output=Path(sys.argv[1]), settings=Generate(seed=3, **{SMALL}))"
    )
    digests = []
    for hash_seed in "12":
        folder = tmp_path / hash_seed
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", script, str(folder)], check=True, env=environment)
        files = sorted(folder.iterdir())
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files])
    assert digests[0] == digests[1]
    write_corpus(output=tmp_path / "other", settings=Generate(seed=4, **SMALL))
    assert (tmp_path / "other" / "train.de").read_text() != (tmp_path / "1" / "train.de").read_text()


def test_the_files_of_a_split_are_aligned(tmp_path):
    write_corpus(output=tmp_path, settings=Generate(seed=1, **SMALL))
    for split, size in SMALL.items():
        expected = [sentence for name, sentence in generate(SMALL, seed=1) if name == split]
        for language, side in (("de", "source"), ("en", "target")):
            path = tmp_path / f"{split}.{language}"
            raw = list(read_lines(path))
            trees = list(read_trees(f"{path}.trees"))
            heads = [tuple(map(int, line.split())) for line in read_lines(f"{path}.heads")]
            assert len(raw) == len(trees) == len(heads) == size
            for line, tree, row, sentence in zip(raw, trees, heads, expected, strict=True):
                made = getattr(sentence, side)
                assert (line, tree, row) == (made.text, made.tree, made.heads)
    assert len(list(tmp_path.iterdir())) == 18


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"train": 5},
        {**SMALL, "dev": 5},
        {**SMALL, "test": 0},
        {**SMALL, "test": 1.5},
        {**SMALL, "test": True},
    ],
)
def test_wrong_sizes_are_refused_and_nothing_is_written(sizes, tmp_path):
    with pytest.raises(UserError, match="train, valid and test"):
        list(generate(sizes, seed=1))
    assert not list(tmp_path.iterdir())


# The sentences.


def test_no_sentence_comes_twice_and_all_have_4_to_30_tokens(corpus):
    assert [split for split, _ in corpus] == [split for split, size in SIZES.items() for _ in range(size)]
    assert len({sentence.source.text for _, sentence in corpus}) == len(corpus)
    for side in ("source", "target"):
        lengths = [len(getattr(sentence, side).heads) for _, sentence in corpus]
        assert min(lengths) == 4
        assert 25 < max(lengths) <= 30
        assert 11 < sum(lengths) / len(lengths) < 14


def test_a_source_sentence_has_one_translation(monkeypatch):
    """With so few words left that the same source sentence is drawn over and over."""
    nouns = {
        kind: [noun for noun in nouns if noun.gender == "f"][:1] for kind, nouns in lexicon.NOUNS.items()
    }
    nouns["person"].append(NOUNS["Mann"])
    nouns["wear"] = [NOUNS["Tasche"]]
    monkeypatch.setattr(lexicon, "NOUNS", nouns)
    monkeypatch.setattr(lexicon, "VERBS", {frame: verbs[:1] for frame, verbs in lexicon.VERBS.items()})
    monkeypatch.setattr(lexicon, "COMPOUNDS", [("", "")])
    monkeypatch.setattr(lexicon, "ADJECTIVES", {True: [("alt", "old")], False: [("alt", "old")]})
    monkeypatch.setattr(lexicon, "COLOURS", [("alt", "old")])
    monkeypatch.setattr(lexicon, "SHADES", [("", "")])
    monkeypatch.setattr(lexicon, "MODALS", {"werden": "will"})
    monkeypatch.setattr(lexicon, "ADVERBS", dict.fromkeys(lexicon.ADVERBS, (("oft", "often"),)))
    monkeypatch.setattr(sampling, "DETERMINERS", {"der": 1})
    monkeypatch.setattr(sampling, "FRAMES", {**dict.fromkeys(sampling.FRAMES, 1), "perception": 40})
    drawing = Grammar(random.Random(5))
    translations = {}
    for number in range(12_000):
        laughs = clause("lachen", drawing.nominal(("person",), depth=1))
        drawn = drawing.main_clause(depth=1) if number % 2 else laughs
        sentence = linearise([(("", ""), drawn)])
        source = re.sub(r" (alt\w*|oft)\b", "", sentence.source.text)
        target = re.sub(r" (an|a|old|often)\b", "", sentence.target.text)
        translations.setdefault(source, set()).add(target)
    assert len(translations) < 6_000
    assert [(source, found) for source, found in translations.items() if len(found) > 1] == []


def test_what_could_be_an_instrument_is_never_drawn_inside_a_noun_phrase():
    drawing = Grammar(random.Random(5))
    drawn = [drawing.clause(1, frames=("perception",)) for _ in range(800)]
    nominals = [c.subject for c in drawn] + [c.complements[0].nominal for c in drawn]
    attributes = {nominal.attribute.english for nominal in nominals if nominal.attribute}
    assert attributes == {"from", "of"}


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_leaves_are_the_moses_tokens_of_the_raw_line(corpus, language):
    moses = MosesTokenizer(language)
    for _, sentence in corpus[:1200]:
        side = sentence.source if language == "de" else sentence.target
        assert moses.tokenize(side.text) == side.tree.leaves()
        assert side.text[0].isupper()
        assert side.text.endswith(".")


def test_bpe_splits_words_but_most_stay_whole(corpus):
    lines = [" ".join(side.tree.leaves()) for _, s in corpus for side in (s.source, s.target)]
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), codes, 600)
    codes.seek(0)
    bpe = BPE(codes)
    for side, low, high in (("source", 0.25, 0.5), ("target", 0.1, 0.4)):
        words = [word for _, s in corpus[:500] for word in getattr(s, side).tree.leaves()]
        split = sum(len(bpe.segment_tokens([word])) > 1 for word in words)
        assert low < split / len(words) < high
    types = {word for _, sentence in corpus for word in sentence.source.tree.leaves()}
    assert 1300 < len(types) < 3000


# Trees and heads.


def ancestors(heads, token):
    """The heads above a token, from 1, nearest first; fails on a cycle."""
    path = []
    while token:
        token = heads[token - 1]
        path.append(token)
        assert len(path) <= len(heads), "a cycle"
    return path


def test_heads_are_a_projective_tree_with_a_finite_verb_at_its_root(sides):
    for side in sides:
        above = [{token, *ancestors(side.heads, token)} for token in range(1, len(side.heads) + 1)]
        roots = [token for token, head in enumerate(side.heads, start=1) if head == 0]
        assert len(roots) == 1
        assert side.tree.tags()[roots[0] - 1] in {"VVFIN", "VAFIN", "VMFIN", "VBZ", "VBP", "VBD", "MD"}
        for token, head in enumerate(side.heads, start=1):
            between = range(min(token, head) + 1, max(token, head)) if head else ()
            assert all(head in above[middle - 1] for middle in between), "a crossing arc"
        assert side.heads[-1] == roots[0]  # the full stop


def test_every_constituent_has_one_head(sides):
    for side in sides:
        for start, end, label in side.tree.spans():
            outside = [head for head in side.heads[start:end] if not start < head <= end]
            assert len(outside) == 1, (label, side.text)


# Agreement, checked on the finished sentences.


def walk(tree):
    if not isinstance(tree.children[0], str):
        yield tree
        for child in tree.children:
            yield from walk(child)


def child(tree, *labels):
    return next((c for c in tree.children if c.label in labels), None)


def english_number(noun_phrase):
    """1 or 3 (singular), or "pl"."""
    if child(noun_phrase, "CC"):
        return "pl"
    if pronoun := child(noun_phrase, "PRP"):
        return {"i": 1, "he": 3, "she": 3, "we": "pl", "they": "pl"}[pronoun.leaves()[0].lower()]
    if child(noun_phrase, "NNS"):
        return "pl"
    return 3 if child(noun_phrase, "NN") else english_number(noun_phrase.children[0])


def test_english_verbs_agree_with_their_subjects_also_from_afar(corpus):
    checked = far = 0
    for _, sentence in corpus:
        for node in walk(sentence.target.tree):
            subject, predicate = child(node, "NP"), child(node, "VP")
            if node.label == "NP" and (clause := child(node, "SBAR")):  # the subject is relativised
                inner = child(clause, "S")
                if inner and child(inner, "NP") is None:
                    subject, predicate = node.children[0], child(inner, "VP")
                else:
                    continue
            elif node.label != "S" or subject is None or predicate is None:
                continue
            verb = predicate.children[0]
            if verb.label not in ("VBZ", "VBP"):
                continue
            number = english_number(subject)
            form = verb.leaves()[0]
            assert (verb.label == "VBZ") == (number == 3) == (form.endswith("s") and form != "miss"), str(
                node
            )
            assert form != "am" or number == 1
            checked += 1
            far += len(subject.leaves()) > 5
    assert checked > 1500
    assert far > 100


def german_number(noun_phrase):
    """As english_number, for a subject; None where form and article leave it open."""
    if child(noun_phrase, "KON"):
        return "pl"
    if pronoun := child(noun_phrase, "PPER"):
        return {"ich": 1, "er": 3, "wir": "pl"}.get(pronoun.leaves()[0].lower())
    form = child(noun_phrase, "NN").leaves()[0].lower()
    matches = [
        (len(ending), number)
        for noun in NOUNS.values()
        for ending, number in ((noun.german.lower(), 3), (noun.plural.lower(), "pl"))
        if form.endswith(ending)
    ]
    longest = {number for length, number in matches if length == max(matches, key=lambda match: match[0])[0]}
    return longest.pop() if len(longest) == 1 else None


def test_german_verbs_agree_at_the_end_of_subordinate_clauses(corpus):
    checked = far = 0
    for _, sentence in corpus:
        for node in walk(sentence.source.tree):
            if node.label != "S" or child(node, "VVFIN", "VAFIN", "VMFIN") or node.children[0].label != "NP":
                continue
            number = german_number(node.children[0])
            if number is None:
                continue
            form = child(node, "VP").children[-1].leaves()[-1]
            assert (form.endswith("en") or form == "sind") == (number == "pl"), str(node)
            checked += 1
            far += len(node.children[1].leaves()) > 4
    assert checked > 300
    assert far > 50


# Each construction, spelt out.


def test_the_verb_number_tells_she_from_they():
    she, they = (Nominal(person, pronoun=("sie", english)) for person, english in ((1, "she"), (2, "they")))
    main = np("Frau")
    for subject, verb, english in ((she, "anruft", "she calls"), (they, "anrufen", "they call")):
        inner = clause("anrufen", subject, accusative(np("Kind")))
        source, target = texts(clause("lachen", main, subordinate=(("weil", "because"), inner)))
        assert source == f"Die Frau lacht, weil sie das Kind {verb}."
        assert target == f"The woman laughs because {english} the child."


def test_separable_verbs_in_every_position():
    cook, wheel = np("Koch"), accusative(np("Rad", determiner="ein", adjectives=(("rot", "red"),)))
    take = clause("mitnehmen", cook, wheel, adverb=("heute", "today"))
    assert texts(take) == ("Der Koch nimmt heute ein rotes Rad mit.", "The cook takes a red wheel today.")
    perfect = clause("mitnehmen", cook, wheel, tense="perfect", negated=True)
    assert texts(perfect) == (
        "Der Koch hat ein rotes Rad nicht mitgenommen.",
        "The cook did not take a red wheel.",
    )
    modal = clause("annehmen", np("Koch", 2), wheel, tense="müssen", adverb=("bald", "soon"), front="adverb")
    assert texts(modal) == (
        "Bald müssen die Köche ein rotes Rad annehmen.",
        "The cooks must accept a red wheel soon.",
    )
    tries = clause("versuchen", cook, infinitive=Clause(VERBS["annehmen"], 1, None, complements=(wheel,)))
    assert texts(tries) == (
        "Der Koch versucht, ein rotes Rad anzunehmen.",
        "The cook tries to accept a red wheel.",
    )
    fronted = clause("aufwachen", cook, subordinate=(("wenn", "when"), take), front="subordinate")
    assert texts(fronted) == (
        "Wenn der Koch heute ein rotes Rad mitnimmt, wacht der Koch auf.",
        "When the cook takes a red wheel today, the cook wakes.",
    )


def test_case_decides_who_acts_and_what_in_means():
    woman, doctor = np("Frau", adjectives=(("alt", "old"),)), np("Arzt", adjectives=(("jung", "young"),))
    fronted = clause("sehen", woman, accusative(doctor), front="object")
    assert texts(fronted) == ("Den jungen Arzt sieht die alte Frau.", "The old woman sees the young doctor.")
    forest = np("Wald", compound=("Stadt", "city"))
    into = clause("laufen", woman, Complement("in", "acc", "into", forest), tense="perfect")
    assert texts(into) == (
        "Die alte Frau ist in den Stadtwald gelaufen.",
        "The old woman ran into the city forest.",
    )
    inside = clause("laufen", woman, Complement("in", "dat", "in", forest))
    assert texts(inside) == ("Die alte Frau läuft im Stadtwald.", "The old woman runs in the city forest.")
    old = np("Wald", adjectives=(("alt", "old"),))
    contracted = linearise(
        [(("", ""), clause("laufen", np("Frau"), Complement("in", "dat", "in", old)))]
    ).source
    assert (contracted.text, contracted.heads) == ("Die Frau läuft im alten Wald.", (2, 3, 0, 3, 6, 4, 3))
    gives = clause(
        "geben", woman, Complement("", "dat", "to", np("Kind", 2)), accusative(np("Apfel", determiner="ein"))
    )
    assert texts(gives) == (
        "Die alte Frau gibt den Kindern einen Apfel.",
        "The old woman gives an apple to the children.",
    )


def test_number_decides_who_acts_in_a_relative_clause():
    sees = Clause(VERBS["sehen"], 1, None, complements=(accusative(np("Kind", 2)),))
    subject = np("Frau", relative=sees)
    seen = np("Frau", relative=clause("sehen", np("Kind", 2)), relative_case="acc")
    assert texts(clause("lachen", subject)) == (
        "Die Frau, die die Kinder sieht, lacht.",
        "The woman who sees the children laughs.",
    )
    assert texts(clause("lachen", seen)) == (
        "Die Frau, die die Kinder sehen, lacht.",
        "The woman whom the children see laughs.",
    )
    helped = np("Mann", 2, relative=clause("helfen", np("König")), relative_case="dat")
    assert texts(clause("lachen", helped))[0] == "Die Männer, denen der König hilft, lachen."


def test_the_verb_decides_where_the_camera_attaches():
    camera = np("Kamera", determiner="mein")
    through = clause(
        "sehen", np("Arzt"), accusative(np("Nachbar")), Complement("mit", "dat", "through", camera)
    )
    having = accusative(np("Nachbar", attribute=Complement("mit", "dat", "with", camera)))
    knows = clause("kennen", np("Arzt"), having)
    assert texts(through) == (
        "Der Arzt sieht den Nachbarn mit meiner Kamera.",
        "The doctor sees the neighbour through my camera.",
    )
    assert texts(knows) == (
        "Der Arzt kennt den Nachbarn mit meiner Kamera.",
        "The doctor knows the neighbour with my camera.",
    )
    trees = [linearise([(("", ""), c)]) for c in (through, knows)]
    assert [(2, 7) in {s[:2] for s in t.target.tree.spans()} for t in trees] == [False, False]
    assert [(3, 8) in {s[:2] for s in t.target.tree.spans()} for t in trees] == [False, True]
    assert [t.source.heads[5] for t in trees] == [3, 5]


def test_genitives_plurals_and_coordination():
    keys = np("Schlüssel", 2, attribute=Complement("", "gen", "of", np("König", determiner="ein")))
    both = Nominal(2, conjuncts=(np("Frau"), np("Hund", determiner="unser")))
    assert texts(clause("lieben", both, accusative(keys))) == (
        "Die Frau und unser Hund lieben die Schlüssel eines Königs.",
        "The woman and our dog love the keys of a king.",
    )
    first, second = (
        clause("sein", np("Hut", 2), predicate=("hellrot", "light red")),
        clause("lachen", np("Frau")),
    )
    sentence = linearise([(("", ""), first), (("aber", "but"), second)])
    assert sentence.source.text == "Die Hüte sind hellrot, aber die Frau lacht."
    assert sentence.target.text == "The hats are light red, but the woman laughs."
    assert sentence.source.heads == (2, 3, 0, 3, 3, 3, 8, 9, 3, 3)


def test_all_constructions_are_in_the_corpus(corpus):
    counts = dict.fromkeys(
        ("verb last", "particle", "zu", "object first", "compound", "through", "relative"), 0
    )
    for _, sentence in corpus:
        tags, words = sentence.source.tree.tags(), sentence.source.tree.leaves()
        counts["verb last"] += "KOUS" in tags
        counts["particle"] += "PTKVZ" in tags
        counts["zu"] += "PTKZU" in tags or "VVIZU" in tags
        counts["object first"] += words[0] in ("Den", "Einen", "Diesen")
        counts["compound"] += any(word.startswith("Garten") for word in words)
        counts["through"] += "through" in sentence.target.tree.leaves()
        counts["relative"] += "PRELS" in tags
    assert min(counts.values()) > len(corpus) / 100, counts
    assert counts["verb last"] > len(corpus) / 5
    assert counts["relative"] > len(corpus) / 8
