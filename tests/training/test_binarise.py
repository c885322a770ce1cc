import errno
import gc
from pathlib import Path

import numpy as np
import pytest
from fairseq.data import Dictionary, data_utils

from synmask.pipeline.errors import UserError
from synmask.pipeline.training.binarise import binarise, encode_line, read_binary


def test_dictionary_equals_fairseqs_own(corpus, tmp_path):
    expected = Dictionary()
    Dictionary.add_file_to_dictionary(
        str(corpus / "bpe/train.de"), expected, tokenize=lambda line: line.split(), num_workers=1
    )
    expected.finalize(threshold=0, nwords=-1, padding_factor=8)
    expected.save(str(tmp_path / "dict.txt"))
    assert (corpus / "bin/dict.de.txt").read_text() == (tmp_path / "dict.txt").read_text()


@pytest.mark.parametrize("split", ["train", "valid"])
def test_data_are_the_text(corpus, split):
    dictionary = Dictionary.load(str(corpus / "bin/dict.en.txt"))
    data = data_utils.load_indexed_dataset(str(corpus / f"bin/{split}.de-en.en"), dictionary, "mmap")
    lines = (corpus / f"bpe/{split}.en").read_text().splitlines()
    assert [dictionary.string(ids) for ids in data] == lines
    assert all(ids[-1] == dictionary.eos() for ids in data)


def test_the_test_set_concerns_no_training(corpus):
    assert not list((corpus / "bin").glob("test.*"))


def test_unknown_symbols_and_double_spaces(corpus):
    dictionary = Dictionary.load(str(corpus / "bin/dict.de.txt"))
    assert encode_line("a  nowhere", dictionary).tolist() == [
        dictionary.index("a"),
        dictionary.unk(),
        dictionary.eos(),
    ]


def test_missing_and_empty_files_are_named(tmp_path):
    with pytest.raises(UserError, match=r"train\.de: no such file"):
        binarise(text=tmp_path, output=tmp_path / "bin", source="de", target="en")
    for split in ("train", "valid"):
        for language in ("de", "en"):
            (tmp_path / f"{split}.{language}").write_text("a b\n" if split == "train" else "")
    with pytest.raises(UserError, match=r"valid\.de: empty"):
        binarise(text=tmp_path, output=tmp_path / "bin", source="de", target="en")


def test_data_that_cannot_be_read_are_named_and_leave_no_other_message(corpus, monkeypatch, capfd):
    def failing(*_, **kwargs):
        raise OSError(errno.EACCES, "Permission denied")

    dictionary, prefix = Dictionary.load(str(corpus / "bin/dict.de.txt")), corpus / "bin/train.de-en.de"
    for where, end in (((np, "memmap"), "bin"), ((Path, "read_bytes"), "idx")):
        with monkeypatch.context() as context:
            context.setattr(*where, failing)
            with pytest.raises(PermissionError) as error:
                read_binary(prefix, dictionary)
        assert error.value.filename == f"{prefix}.{end}"
    del error
    gc.collect()
    assert capfd.readouterr().err == ""
