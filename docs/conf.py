"""The site that `make docs` builds: the pages of the repository and the docstrings of its library."""

import re
import sys
from pathlib import Path

from griffe import GriffeLoader, Parser, patch_loggers
from griffe2md import render_object_docs
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

sys.path.insert(0, str(Path(__file__).parent))
import pages

# Pages are read where they lie, so that links between them, and to other files, are those of the repository.
ROOT = Path(__file__).parents[1]
project = "synmask"
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/library/*.md",
    "results/README.md",
    "benchmarks/README.md",
    "tests/README.md",
    "src/synmask/pipeline/translation/demo.md",  # the card of the shipped model
    "studies/multi30k/*.md",
    "studies/multi30k/registered/README.md",  # not the registration: it stays as it was, with old links
]
exclude_patterns = [".*", "site", "data", "build"]
external_toc_path = "docs/_toc.yml"  # the navigation
html_extra_path = ["redirect"]  # index.html, which leads to README.html

extensions = ["myst_parser", "sphinx_external_toc"]
myst_heading_anchors = 4  # GitHub's
html_theme = "furo"
html_title = "synmask"
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False

PACKAGE = re.compile(r"^<!-- library: (\S+) -->$", re.M)
LINK = re.compile(r"\[([^\]]*)\]\(#[\w.]*\)")  # of types, to nowhere
DOCSTRINGS = {
    "returns_multiple_items": False,
    "returns_named_value": False,
    "warn_unknown_params": False,  # "hypothesis, reference: …" are two
    "warn_missing_types": False,
}
LAYOUT = {
    "heading_level": 3,
    "inherited_members": False,
    "line_length": 88,
    "members_order": "source",
    "show_if_no_docstring": False,
    "show_object_full_path": False,
    "show_root_heading": False,
    "show_root_members_full_path": False,
    "show_signature_annotations": True,
    "show_submodules": False,
    "summary": False,
}


def documentation(package: str) -> str:
    """The docstrings of a package and its modules, which are read and not imported, as Markdown."""
    loader = GriffeLoader(
        search_paths=[ROOT / "src"], docstring_parser=Parser.google, docstring_options=DOCSTRINGS
    )
    whole = loader.load(package)
    modules = [whole, *(whole.modules[name] for name in sorted(whole.modules))]
    parts = (f"## `{each.path}`\n\n{render_object_docs(each, LAYOUT)}" for each in modules if each.docstring)
    return LINK.sub(r"\1", "\n\n".join(parts))


def complete(app: Sphinx, name: str, content: list[str]) -> None:
    """Link reports; put a package's documentation where a page has the line `<!-- library: PACKAGE -->`."""
    linked = pages.with_links(content[0], ROOT)
    content[0] = PACKAGE.sub(lambda found: documentation(found[1]), linked)


def publish(app: Sphinx, fault: Exception | None) -> None:
    if fault is None:
        pages.publish(ROOT, Path(app.outdir))


def setup(app: Sphinx) -> None:
    patch_loggers(getLogger)  # its warnings are errors, too
    app.connect("source-read", complete)
    app.connect("build-finished", publish)
