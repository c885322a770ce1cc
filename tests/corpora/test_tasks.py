import pytest

from synmask.pipeline.corpora.tasks import Examples, read_task, write_task
from synmask.pipeline.errors import UserError


def test_what_is_written_is_read(tmp_path):
    rows = [('He said "no', "It 's\u2028fine .", "entailment"), ("", "a", "neutral")]
    write_task("mnli", rows, tmp_path / "dev.tsv")
    assert (tmp_path / "dev.tsv").read_text().splitlines()[0] == "sentence1\tsentence2\tlabel"
    texts = tuple(row[:2] for row in rows)
    assert read_task("mnli", tmp_path / "dev.tsv") == Examples(texts, ("entailment", "neutral"))
    write_task("sts-b", [("a", "b", "3.800")], tmp_path / "dev.tsv")
    assert read_task("sts-b", tmp_path / "dev.tsv").labels == ("3.800",)


def test_a_test_set_has_no_labels_and_is_read_where_it_is_asked_for(tmp_path):
    for task, rows in (("mnli", [("a", "b"), ("", "c")]), ("cola", [("a",), ("",)])):
        write_task(task, rows, tmp_path / "test.tsv", labelled=False)
        assert read_task(task, tmp_path / "test.tsv", test=True) == Examples(tuple(rows), ())
        with pytest.raises(UserError, match=rf"columns .*; {task} has .*label"):
            read_task(task, tmp_path / "test.tsv")
    write_task("cola", [("a", "1")], tmp_path / "dev.tsv")
    assert read_task("cola", tmp_path / "dev.tsv", test=True).labels == ("1",)


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("cola", "", "dev.tsv: no rows; expected cola's header and rows"),
        ("cola", "sentence1\tlabel\n", "dev.tsv: no rows; expected"),
        ("cola", "sentence1\tsentence2\tlabel\na\tb\t1\n", "dev.tsv: columns 'sentence1, sentence2, label'; cola has sentence1, label"),
        ("mrpc", "sentence1\tlabel\na\t1\n", "mrpc has sentence1, sentence2, label"),
        ("mrpc", "sentence1\tsentence2\tlabel\na\tb\t1\na\tb\n", "dev.tsv, line 3: 2 columns, not 3"),
        ("paraphrase", "sentence1\tsentence2\tlabel\na\tb\tyes\n", "dev.tsv, line 2: unknown label 'yes'; expected 0, 1"),
        ("sts-b", "sentence1\tsentence2\tlabel\na\tb\t5.5\n", "line 2: unknown label '5.5'; expected a number from 0 to 5"),
        ("wnli", "sentence1\tlabel\na\t1\n", "no task 'wnli'; there are cola"),
    ],
)  # fmt: skip
def test_bad_files_are_one_line(tmp_path, task, text, message):
    (tmp_path / "dev.tsv").write_text(text)
    with pytest.raises(UserError) as error:
        read_task(task, tmp_path / "dev.tsv")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
