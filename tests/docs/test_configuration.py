"""The page of all keys and the JSON schema for editors: in step with the code, and true of the project's files."""

import sys
from pathlib import Path

import pytest

from synmask.pipeline.config.yaml_source import read_yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import configuration  # noqa: E402

SCHEMA = configuration.schema()
FILES = [
    ROOT / "config.yaml",
    *sorted(ROOT.glob("config/*.yaml")),
    *sorted(ROOT.glob("studies/**/config.yaml")),
]


def test_every_key_is_explained():
    missing = [
        f"{heading}: {key}"
        for heading, section in configuration.sections(SCHEMA)
        for key, shape in section["properties"].items()
        if not shape.get("description")
    ]
    assert not missing


def test_page_and_schema_are_in_step():
    page = configuration.PAGE.read_text(encoding="utf-8")
    assert page == configuration.page(page, SCHEMA), "run `make configuration`"
    assert configuration.SCHEMA.read_text(encoding="utf-8") == configuration.as_file(SCHEMA), "the same"
    assert "| `sigma` | number (> 0) | `1.0` | standard deviation" in page


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_projects_files_name_the_schema_and_obey_it(path):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(read_yaml(path), SCHEMA, jsonschema.Draft202012Validator)
    if path.parent.name == "registered":  # registered as it is
        return
    place = path.read_text(encoding="utf-8").splitlines()[0].partition("# yaml-language-server: $schema=")[2]
    assert (path.parent / place).resolve() == configuration.SCHEMA


@pytest.mark.parametrize(
    "wrong",
    [
        {"sead": [1]},
        {"training": {"lr": 20}},
        {"training": {"warmup_updates": 0}},
        {"corpora": {"mine": {"bpe": {"merges": "many"}}}},
        {"systems": {"mine": {"guide": "gramar"}}},
        {"systems": {"mine": {"guide": "pascal", "options": {"bpe": "add"}}}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_is_wrong(wrong):
    jsonschema = pytest.importorskip("jsonschema")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA, jsonschema.Draft202012Validator)


def test_the_schema_lets_a_corpus_switch_off_its_trees():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate({"corpora": {"mine": {"trees": None}}}, SCHEMA, jsonschema.Draft202012Validator)
