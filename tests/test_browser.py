"""The browser of the tests of pages: each that is there."""

import pytest

import browser

pytestmark = pytest.mark.parametrize("chromium", browser.found(), indirect=True, scope="session")

PAGE = """<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="img-src 'none'"></head>
<body><p id="one">text</p><script>console.log("said", 1); lacking();</script><img src="x.png"></body></html>"""


def test_a_page_has_its_width_its_messages_and_the_answer(open_page, tmp_path):
    (tmp_path / "a.html").write_text(PAGE)
    script = "document.body.append('more'); return new Promise((said) => setTimeout(said, 1, innerWidth));"
    page = open_page(tmp_path / "a.html", script, width=320)
    assert page.result == "320"
    assert page.of("p") == [{"id": "one"}]
    assert "more</body>" in page.html
    assert page.console[0] == "said 1"
    assert any("lacking is not defined" in line for line in page.console)
    assert any("Content Security Policy" in line for line in page.console)


def test_a_pages_own_scripts_may_be_left_out(open_page, tmp_path):
    (tmp_path / "a.html").write_text(PAGE)
    page = open_page(tmp_path / "a.html", "return 1", scripts=False)
    assert page.result == "1"
    assert not any("message" in line for line in page.console)
