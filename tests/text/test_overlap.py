from synmask.pipeline import languages
from synmask.pipeline.text.overlap import Overlap


def overlap_of(train, **held):
    overlap = Overlap()
    for split, pairs in held.items():
        overlap.add(split, pairs)
    for pair in train:
        overlap.add_training_pair(*pair)
    languages.print_note.cache_clear()
    overlap.note("mine de-en")
    return overlap.counts()


def test_pairs_are_counted_with_both_sides(capsys):
    train = [("a", "x"), ("b", "y"), ("c d", "z")]
    valid = [("a", "x"), ("a", "x"), ("b", "x"), ("c  d", "z")]
    assert overlap_of(train, valid=valid, test=[("e", "w"), ("b", "x")]) == {
        "valid in train": 3,
        "test in train": 0,
        "test in valid": 1,
    }
    assert capsys.readouterr().err.splitlines() == [
        "note: mine de-en: 3 of 4 pairs of valid are in train, too",
        "note: mine de-en: 1 of 2 pairs of test are in valid, too",
    ]


def test_a_few_pairs_are_no_note(capsys):
    rows = [(f"a{number}", "x") for number in range(200)]
    assert overlap_of(rows[:102], valid=rows[100:]) == {"valid in train": 2}
    assert overlap_of(rows[:101], valid=rows[100:]) == {"valid in train": 1}
    assert capsys.readouterr().err.count("\n") == 1
