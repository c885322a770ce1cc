"""Every task on files of the publishers' form."""

import gzip
import zipfile

import pytest

from synmask.corpora.glue import LAYOUTS, write_part
from synmask.corpora.tasks import TASKS
from synmask.files import UserError, read_lines

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


@pytest.mark.parametrize("task", [task for task in LAYOUTS if task != "mrpc"])
def test_every_task_from_its_archive(tmp_path, task):
    parts = {"train": None, "dev": None}
    if task == "mnli":
        parts = {"train": None, "dev_matched": MNLI_DEV, "dev_mismatched": MNLI_DEV}
    made = {part: table(task, header) for part, header in parts.items()}
    archive = write_zip(tmp_path / "T.zip", task, {f"{part}.tsv": text for part, (text, _) in made.items()})
    for part, (_, expected) in made.items():
        assert write_part(task, part, [archive], tmp_path / f"{part}.tsv", rows=4) == 0
        header, *lines = read_lines(tmp_path / f"{part}.tsv")
        texts = ["sentence1", "sentence2"][: len(LAYOUTS[task].texts)]
        assert header.split("\t") == [*texts, "label"]
        assert lines == expected


def test_mrpc_is_split_by_ids(tmp_path):
    text, expected = table("mrpc")
    (tmp_path / "msr_paraphrase_train.txt").write_text(text, encoding="utf-8")
    (tmp_path / "mrpc_dev_ids.tsv").write_text("#1 ID1\t#2 ID1\n#1 ID0\t#2 ID2\n")  # the second is no pair
    sources = [tmp_path / "mrpc_dev_ids.tsv", tmp_path / "msr_paraphrase_train.txt"]
    write_part("mrpc", "dev", sources, tmp_path / "dev.tsv", rows=1)
    write_part("mrpc", "train", sources, tmp_path / "train.tsv", rows=3)
    assert list(read_lines(tmp_path / "dev.tsv"))[1:] == [expected[1]]
    assert list(read_lines(tmp_path / "train.tsv"))[1:] == [expected[0], *expected[2:]]
    with pytest.raises(UserError, match=r"mrpc needs mrpc_dev_ids\.tsv"):
        write_part("mrpc", "dev", sources[1:], tmp_path / "dev.tsv", rows=1)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("task", LAYOUTS)
def test_an_unpacked_folder_will_do(tmp_path, task, ending):
    text, expected = table(task)
    (tmp_path / f"train.tsv{ending}").write_bytes(gzip.compress(text.encode()) if ending else text.encode())
    write_part(task, "train", [tmp_path], tmp_path / "out.tsv", rows=4)
    assert list(read_lines(tmp_path / "out.tsv"))[1:] == expected
    part = "dev_matched" if task == "mnli" else "dev"
    with pytest.raises(UserError, match=rf"{part}\.tsv: no such file"):
        write_part(task, part, [tmp_path], tmp_path / "out.tsv", rows=4)


def test_mnlis_dev_sets_are_told_apart(tmp_path):
    text, expected = table("mnli", MNLI_DEV)
    files = {"dev_matched.tsv": text, "dev_mismatched.tsv": text.replace("yes", "no")}
    archive = write_zip(tmp_path / "MNLI.zip", "mnli", files)
    for part in ("dev_matched", "dev_mismatched"):
        write_part("mnli", part, [archive], tmp_path / f"{part}.tsv", rows=4)
    matched, mismatched = (
        list(read_lines(tmp_path / f"{part}.tsv"))[1:] for part in ("dev_matched", "dev_mismatched")
    )
    assert matched == expected
    assert mismatched == [line.replace("yes", "no") for line in expected]
    assert matched != mismatched


def test_odd_rows_of_qqp_are_dropped_and_counted(tmp_path):
    text, expected = table("qqp")
    (tmp_path / "train.tsv").write_text(f"{text}\n7\tonly\tthree\n")
    assert write_part("qqp", "train", [tmp_path], tmp_path / "out.tsv", rows=4) == 1
    assert list(read_lines(tmp_path / "out.tsv"))[1:] == expected


@pytest.mark.parametrize(
    ("task", "text", "said"),
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
def test_bad_files_are_one_line(tmp_path, task, text, said):
    (tmp_path / "train.tsv").write_text(text)
    with pytest.raises(UserError) as error:
        write_part(task, "train", [tmp_path], tmp_path / "out.tsv", rows=2)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out.tsv").exists()


def test_a_broken_archive_is_one_line(tmp_path):
    (tmp_path / "RTE.zip").write_text("<html>moved</html>")
    with pytest.raises(UserError, match=r"RTE\.zip: a web page, not an archive"):
        write_part("rte", "train", [tmp_path / "RTE.zip"], tmp_path / "out.tsv", rows=2)


@pytest.mark.parametrize(("task", "part"), [("cola", "test"), ("mnli", "dev"), ("rte", "dev_matched")])
def test_a_part_without_labels_is_refused(task, part, tmp_path):
    with pytest.raises(UserError, match=rf"glue: {task} has no part '{part}' with labels"):
        write_part(task, part, [tmp_path], tmp_path / "out.tsv", 1)
    assert not (tmp_path / "out.tsv").exists()
