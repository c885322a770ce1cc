"""help() of the encoder, each guide and its options names all arguments with shapes and ranges."""

import inspect
from dataclasses import fields

import pytest

import synmask
from synmask.checks import ANNOTATIONS
from synmask.options import guide_names, options_of


def test_the_encoder_hides_no_argument():
    signature = inspect.signature(synmask.GuidedEncoder)
    assert not [one for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD]
    assert all(f"    {name}: " in inspect.getdoc(synmask.GuidedEncoder) for name in signature.parameters)


@pytest.mark.parametrize("name", guide_names())
def test_a_guide_names_its_arguments_and_what_it_reads(name):
    guide, options = getattr(synmask, f"{name.capitalize()}Guide"), options_of(name)
    text = inspect.getdoc(guide)
    assert all(f"    {argument}: " in text for argument in inspect.signature(guide).parameters)
    assert f"`{options.__name__}`" in text
    for annotation in options().needs:
        shape = ", ".join(["B", "n", *map(str, ANNOTATIONS[annotation])])
        assert f'`annotations["{annotation}"]` ({shape}) int' in text
    for option in fields(options):
        assert f"    {option.name} (" in options.__doc__
        assert f"default {option.default!r}):" in options.__doc__
    if name == "grammar":
        assert "    conv_layers (int, at least 0, below 1024, default 3):" in options.__doc__
