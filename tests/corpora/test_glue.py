"""Every task on files of the publishers' form."""

import gzip
import zipfile

import pytest

from synmask.pipeline.corpora.glue import LAYOUTS, write_part
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines
from synmask.pipeline.tasks import GLUE_TASKS, TASKS

SENTENCES = ['He said "yes', "it 's fine . ", "don\u2019t\u2028stop", "a"]
HEADERS = {  # tabs are written as |
    "sst-2": "sentence|label",
    "mnli": "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse|"
    "sentence2_parse|sentence1|sentence2|label1|gold_label",
    "qnli": "index|question|sentence|label",
    "rte": "index|sentence1|sentence2|label",
    "mrpc": "\ufeffQuality|#1 ID|#2 ID|#1 String|#2 String",
    "qqp": "id|qid1|qid2|question1|question2|is_duplicate",
    "sts-b": "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2|score",
}
MNLI_DEV = HEADERS["mnli"].replace("label1|", "label1|label2|label3|label4|label5|")


def rows(task, header):
    """A row a sentence; sentence2 is the first with a question mark; every label occurs."""
    labels = TASKS[task].labels or ("0.000", "5.000", "3.8", "2")
    made = []
    for number, sentence in enumerate(SENTENCES):
        label = labels[number % len(labels)]
        if task == "cola":
            made.append((["gj04", label, "*" if label == "0" else "", sentence], (sentence, label)))
            continue
        values = {name: f"{name}{number}" for name in header}
        texts = (sentence, f"{sentence}?")[: len(LAYOUTS[task].texts)]
        for name, text in zip(LAYOUTS[task].texts, texts, strict=True):
            values[name] = text
        values[LAYOUTS[task].label] = label
        made.append(([values[name] for name in header], (*texts, label)))
    return made


def table(task, header=None):
    """A file of the task, without a line end at its end, and what should come of it."""
    names = (header or HEADERS.get(task, "")).lstrip("\ufeff").split("|")
    made = rows(task, names)
    lines = ["\t".join(fields) for fields, _ in made]
    if task != "cola":
        lines.insert(0, (header or HEADERS[task]).replace("|", "\t"))
    return "\n".join(lines), ["\t".join(expected) for _, expected in made]


def write_zip(path, task, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{LAYOUTS[task].folder}/{name}", text)
        archive.writestr(f"{LAYOUTS[task].folder}/original/raw.txt", "more")
    return path


@pytest.mark.parametrize("task", [task for task in GLUE_TASKS if task != "mrpc"])
def test_every_task_from_its_archive(tmp_path, task):
    parts = {"train": None, "dev": None}
    if task == "mnli":
        parts = {"train": None, "dev_matched": MNLI_DEV, "dev_mismatched": MNLI_DEV}
    made = {part: table(task, header) for part, header in parts.items()}
    archive = write_zip(tmp_path / "T.zip", task, {f"{part}.tsv": text for part, (text, _) in made.items()})
    for part, (_, expected) in made.items():
        assert write_part(
            task=task, part=part, sources=[archive], output=tmp_path / f"{part}.tsv", rows=4
        ) == {"rows": 4, "malformed_rows_dropped": 0}
        header, *lines = read_lines(tmp_path / f"{part}.tsv")
        texts = ["sentence1", "sentence2"][: len(LAYOUTS[task].texts)]
        assert header.split("\t") == [*texts, "label"]
        assert lines == expected


def test_mrpc_is_split_by_ids(tmp_path):
    text, expected = table("mrpc")
    (tmp_path / "msr_paraphrase_train.txt").write_text(text, encoding="utf-8")
    (tmp_path / "mrpc_dev_ids.tsv").write_text("#1 ID1\t#2 ID1\n#1 ID0\t#2 ID2\n")  # the second is no pair
    sources = [tmp_path / "mrpc_dev_ids.tsv", tmp_path / "msr_paraphrase_train.txt"]
    write_part(task="mrpc", part="dev", sources=sources, output=tmp_path / "dev.tsv", rows=1)
    write_part(task="mrpc", part="train", sources=sources, output=tmp_path / "train.tsv", rows=3)
    assert list(read_lines(tmp_path / "dev.tsv"))[1:] == [expected[1]]
    assert list(read_lines(tmp_path / "train.tsv"))[1:] == [expected[0], *expected[2:]]
    with pytest.raises(UserError, match=r"mrpc needs mrpc_dev_ids\.tsv"):
        write_part(task="mrpc", part="dev", sources=sources[1:], output=tmp_path / "dev.tsv", rows=1)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("task", GLUE_TASKS)
def test_an_unpacked_folder_will_do(tmp_path, task, ending):
    text, expected = table(task)
    (tmp_path / f"train.tsv{ending}").write_bytes(gzip.compress(text.encode()) if ending else text.encode())
    write_part(task=task, part="train", sources=[tmp_path], output=tmp_path / "out.tsv", rows=4)
    assert list(read_lines(tmp_path / "out.tsv"))[1:] == expected
    part = "dev_matched" if task == "mnli" else "dev"
    with pytest.raises(UserError, match=rf"{part}\.tsv: no such file"):
        write_part(task=task, part=part, sources=[tmp_path], output=tmp_path / "out.tsv", rows=4)


def test_mnlis_dev_sets_are_told_apart(tmp_path):
    text, expected = table("mnli", MNLI_DEV)
    files = {"dev_matched.tsv": text, "dev_mismatched.tsv": text.replace("yes", "no")}
    archive = write_zip(tmp_path / "MNLI.zip", "mnli", files)
    for part in ("dev_matched", "dev_mismatched"):
        write_part(task="mnli", part=part, sources=[archive], output=tmp_path / f"{part}.tsv", rows=4)
    matched, mismatched = (
        list(read_lines(tmp_path / f"{part}.tsv"))[1:] for part in ("dev_matched", "dev_mismatched")
    )
    assert matched == expected
    assert mismatched == [line.replace("yes", "no") for line in expected]
    assert matched != mismatched


def test_odd_rows_of_qqp_are_dropped_and_counted(tmp_path):
    text, expected = table("qqp")
    (tmp_path / "train.tsv").write_text(f"{text}\n7\tonly\tthree\n")
    assert write_part(task="qqp", part="train", sources=[tmp_path], output=tmp_path / "out.tsv", rows=4) == {
        "rows": 4,
        "malformed_rows_dropped": 1,
    }
    assert list(read_lines(tmp_path / "out.tsv"))[1:] == expected


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("rte", "index\tsentence1\tsentence2\n", "train.tsv: no column 'label'; its header must be that of GLUE's RTE"),
        ("rte", "", "train.tsv: no column 'sentence1'"),
        ("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\ta\tb\n", "train.tsv, line 3: 3 columns, not 4"),
        ("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tneutral\n", "line 2: unknown label 'neutral'; expected entailment, not_entailment"),
        ("cola", "gj04\t1\t\tYes.\ngj04\t2\t\tNo.\n", "train.tsv, line 2: unknown label '2'; expected 0, 1"),
        ("cola", "gj04\t1\tYes.\n", "train.tsv, line 1: 3 columns, not 4"),
        ("sts-b", "sentence1\tsentence2\tscore\na\tb\t5.1\n", "line 2: unknown label '5.1'; expected a number from 0 to 5"),
        ("sts-b", "sentence1\tsentence2\tscore\na\tb\tnan\n", "unknown label 'nan'"),
        ("sst-2", "sentence\tlabel\na\t1\n", "glue: sst-2 train has 1 rows, not 2; fetch it again, or fix benchmarks.glue.tasks.sst-2.rows"),
        ("cola", "", "glue: cola train has 0 rows, not 2"),
        ("sst-2", "<html>", "no column 'sentence'"),
    ],
)  # fmt: skip
def test_bad_files_are_one_line(tmp_path, task, text, message):
    (tmp_path / "train.tsv").write_text(text)
    with pytest.raises(UserError) as error:
        write_part(task=task, part="train", sources=[tmp_path], output=tmp_path / "out.tsv", rows=2)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out.tsv").exists()


def test_a_broken_archive_is_one_line(tmp_path):
    (tmp_path / "RTE.zip").write_text("<html>moved</html>")
    with pytest.raises(UserError, match=r"RTE\.zip: a web page, not the file"):
        write_part(
            task="rte", part="train", sources=[tmp_path / "RTE.zip"], output=tmp_path / "out.tsv", rows=2
        )


@pytest.mark.parametrize(("task", "part"), [("mnli", "dev"), ("rte", "dev_matched"), ("rte", "other")])
def test_a_part_that_a_task_does_not_have_is_one_line(task, part, tmp_path):
    archive = write_zip(tmp_path / "T.zip", task, {"train.tsv": table(task)[0]})
    for sources, message in (
        ([tmp_path], rf"/{part}\.tsv: no such file"),
        ([archive], rf"no member .*/{part}\.tsv"),
    ):
        with pytest.raises(UserError, match=message):
            write_part(task=task, part=part, sources=sources, output=tmp_path / "out.tsv", rows=1)
    assert not (tmp_path / "out.tsv").exists()


TEST_HEADERS = {  # of the files in GLUE's archives, and of those that are published apart
    "cola": "index|sentence",
    "sst-2": "index|sentence",
    "mnli": HEADERS["mnli"].removesuffix("|label1|gold_label"),
    "qnli": "index|question|sentence",
    "rte": "index|sentence1|sentence2",
    "mrpc": HEADERS["mrpc"],
    "qqp": "id|question1|question2",
    "sts-b": HEADERS["sts-b"].removesuffix("|score"),
    "ax": "index|sentence1|sentence2",
}


def made_table(task, header):
    """A file of a test set, and the texts in it."""
    names = header.lstrip("\ufeff").split("|")
    columns = ("sentence",) if task == "cola" else LAYOUTS[task].texts
    texts = [(sentence, f"{sentence}?")[: len(columns)] for sentence in SENTENCES]
    lines = [header.replace("|", "\t")]
    for number, row in enumerate(texts):
        values = {name: f"{name}{number}" for name in names} | dict(zip(columns, row, strict=True))
        lines.append("\t".join(values.values()))
    return "\n".join(lines), ["\t".join(row) for row in texts]


PLACES = [(task, "test") for task in GLUE_TASKS if task != "mnli"]
PLACES += [("mnli", "test_matched"), ("mnli", "test_mismatched"), ("mnli", "ax")]


@pytest.mark.parametrize(("task", "part"), PLACES)
def test_every_test_set_from_its_source_without_labels(tmp_path, task, part):
    text, expected = made_table(task, TEST_HEADERS[part if part == "ax" else task])
    sources = [write_zip(tmp_path / "T.zip", task, {f"{part}.tsv": text})]
    if task == "mrpc" or part == "ax":  # published apart
        sources.append(tmp_path / ("AX.tsv" if part == "ax" else "msr_paraphrase_test.txt"))
        sources[-1].write_text(text, encoding="utf-8")
        sources[0].write_bytes(b"")
    assert write_part(task=task, part=part, sources=sources, output=tmp_path / "out.tsv", rows=4) == {
        "rows": 4,
        "malformed_rows_dropped": 0,
    }
    header, *lines = read_lines(tmp_path / "out.tsv")
    assert header.split("\t") == ["sentence1", "sentence2"][: TASKS[task].sentences]
    assert lines == expected


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(("task", "part"), PLACES)
def test_an_unpacked_folder_has_test_sets_too(tmp_path, task, part, ending):
    name = "mrpc test" if task == "mrpc" else part if part == "ax" else task
    headers = TEST_HEADERS | {"mrpc test": "index|#1 ID|#2 ID|#1 String|#2 String"}
    text, expected = made_table(task, headers[name])
    folder = tmp_path / "T"
    folder.mkdir()
    place = folder / ("diagnostic.tsv" if part == "ax" else f"{part}.tsv")
    with pytest.raises(UserError, match=rf"{place.name}: no such file"):
        write_part(task=task, part=part, sources=[folder], output=tmp_path / "out.tsv", rows=4)
    place = place.with_name(place.name + ending)
    place.write_bytes(gzip.compress(text.encode()) if ending else text.encode())
    write_part(task=task, part=part, sources=[folder], output=tmp_path / "out.tsv", rows=4)
    assert list(read_lines(tmp_path / "out.tsv"))[1:] == expected


@pytest.mark.parametrize(
    ("task", "part", "text", "message"),
    [
        ("qqp", "test", "id\tquestion1\tquestion2\n0\ta\tb\n1\ta\n", "test.tsv, line 3: 2 columns, not 3"),
        ("rte", "test", "index\tsentence1\n0\ta\n", "test.tsv: no column 'sentence2'"),
        ("cola", "test", "gj04\t1\t\tYes.\n", "test.tsv: no column 'sentence'"),
        ("sst-2", "test", "index\tsentence\n0\ta\n", "sst-2 test has 1 rows, not 2; fetch it again, or fix "
         "benchmarks.glue.tasks.sst-2.test_rows"),
    ],
)  # fmt: skip
def test_bad_test_sets_are_one_line(tmp_path, task, part, text, message):
    """The server counts rows: none is dropped."""
    (tmp_path / f"{part}.tsv").write_text(text)
    with pytest.raises(UserError) as error:
        write_part(task=task, part=part, sources=[tmp_path], output=tmp_path / "out.tsv", rows=2)
    assert message in str(error.value)
    assert not (tmp_path / "out.tsv").exists()


def test_a_source_that_is_not_given_is_named(tmp_path):
    for task, part, message in (
        ("mnli", "ax", r"mnli needs AX\.tsv; name it in benchmarks\.glue\.tasks\.mnli\.test_urls"),
        ("mrpc", "test", r"mrpc needs msr_paraphrase_test\.txt; name it in .*test_urls"),
    ):
        (tmp_path / "T.zip").write_bytes(b"")
        with pytest.raises(UserError, match=message):
            write_part(
                task=task, part=part, sources=[tmp_path / "T.zip"], output=tmp_path / "out.tsv", rows=2
            )
    archive = write_zip(tmp_path / "RTE.zip", "rte", {"train.tsv": table("rte")[0]})
    with pytest.raises(UserError, match=r"RTE\.zip: has no member RTE/test\.tsv"):
        write_part(task="rte", part="test", sources=[archive], output=tmp_path / "out.tsv", rows=4)
