"""C++ operators are used only if they were built from the present source."""

import pytest

from synmask import kernels


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "search/kernel.cpp"
    path.parent.mkdir()
    path.write_text("int main() {}\n")
    return path


def test_operators_of_another_source_are_not_used(monkeypatch, source):
    module = type("kernel", (), {"SOURCE": "another"})
    monkeypatch.setattr(kernels, "import_module", lambda name: module)
    with pytest.warns(UserWarning, match="of synmask.search are out of date: build them anew with `make`"):
        assert not kernels.load("synmask.search", source)
    module.SOURCE = kernels.sha256(source.read_bytes()).hexdigest()
    assert kernels.load("synmask.search", source)


def test_without_operators_nothing_is_said(monkeypatch, source, recwarn):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(kernels, "import_module", missing)
    assert not kernels.load("synmask.search", source)
    assert not recwarn
