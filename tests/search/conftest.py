import pytest

from synmask.pipeline.search import extension


@pytest.fixture(params=["C++", "PyTorch"])
def implementation(request, monkeypatch):
    """Both implementations, one after the other."""
    if request.param == "PyTorch":
        monkeypatch.setattr(extension, "LOADED", False)
    else:
        assert extension.LOADED, "the C++ operators were not built"
    return request.param
