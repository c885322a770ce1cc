import pytest

from synmask.search import operators


@pytest.fixture(params=["C++", "PyTorch"])
def implementation(request, monkeypatch):
    """Both implementations, one after the other."""
    if request.param == "PyTorch":
        monkeypatch.setattr(operators, "LOADED", False)
    else:
        assert operators.LOADED, "the C++ operators were not built"
    return request.param
