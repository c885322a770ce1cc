from synmask.pipeline import languages
from synmask.pipeline.files import write_lines
from synmask.pipeline.text.overlap import overlaps


def sets(folder, **pairs):
    for name, rows in pairs.items():
        for side in (0, 1):
            write_lines(folder / f"{name}.{side}", [row[side] for row in rows])
    return [(name, folder / f"{name}.0", folder / f"{name}.1") for name in pairs]


def test_pairs_are_counted_with_both_sides(tmp_path, capsys):
    languages.note.cache_clear()
    train = [("a", "x"), ("b", "y"), ("c d", "z")]
    valid = [("a", "x"), ("a", "x"), ("b", "x"), ("c  d", "z")]
    found = overlaps(sets(tmp_path, train=train, valid=valid, test=[("e", "w"), ("b", "x")]))
    assert found == {"valid in train": 3, "test in train": 0, "test in valid": 1}
    output = capsys.readouterr().err.splitlines()
    assert output[0].startswith("note: 3 of 4 pairs of valid are in train, too: ")
    assert output[1].startswith("note: 1 of 2 pairs of test are in valid, too: ")
    assert len(output) == 2


def test_a_few_pairs_are_no_note(tmp_path, capsys):
    languages.note.cache_clear()
    rows = [(f"a{number}", "x") for number in range(200)]
    found = overlaps(sets(tmp_path, train=rows[:102], valid=rows[100:]))
    assert found == {"valid in train": 2}
    assert overlaps(sets(tmp_path, train=rows[:101], valid=rows[100:])) == {"valid in train": 1}
    assert capsys.readouterr().err.count("\n") == 1
