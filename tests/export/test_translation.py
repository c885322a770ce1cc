"""Guided translation models in a Python without synmask."""

import pytest
import torch

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.export.code import method_code, write_folder
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.translation.beam import BeamSearch, search_batches
from synmask.pipeline.translation.fsmt import export_translation
from synmask.pipeline.translation.inputs import encode_lines
from synmask.pipeline.translation.model_file import load_model

pytestmark = pytest.mark.xdist_group("exported")  # `exported` takes long, and once is enough
LINES = [
    "a bb d",
    "jj e@@ f",
    "g@@ h@@ i a cc cc d",
    "a",
    "bb jj g@@ h@@ i e@@ f d a a cc",
    "cc d a e@@ f e@@ f",
    "d d bb",
    "jj jj a g@@ h@@ i",
]
MODELS = {  # of every exportable kind: the guide, the seed of its parameters, options
    "grammar": ("grammar", 4, {"conv_layers": 1, "bpe_dim": 4}),
    "residual": (
        "grammar",
        1,
        {"bpe": "none", "attention": "residual", "layers": 2, "relations": ["parent"]},
    ),
    "softmax": ("grammar", 10, {"bpe": "concatenate", "attention": "none", "activation": "softmax"}),
    "structformer": ("structformer", 14, {}),
    "lpsi": ("lpsi", 6, {"heads": 1, "temperature": 1.0}),
    "lisa": ("lisa", 7, {}),
}
THERE = """
import torch
from transformers import AutoModelForSeq2SeqLM

def run(name, mixes, induces):
    model, told = AutoModelForSeq2SeqLM.from_pretrained(
        f"{folder}/{name}", trust_remote_code=True, output_loading_info=True)
    assert not any(told.values()), told
    read = torch.load(f"{folder}/{name}.inputs")
    with torch.no_grad():
        out = {side: model(read[side], decoder_input_ids=read["before"]).logits for side in ("right", "left")}
        if mixes:  # a sentence's attention depends on its batch
            out["made"] = [model.generate(row[None], attention_mask=torch.ones(1, len(row)))[0] for row in read["rows"]]
        else:
            out["made"] = model.generate(read["left"], attention_mask=read["left"].ne(1).long())
        if induces:
            out["syntax"] = vars(model.parse(read["right"]))
        for dtype in (torch.bfloat16, torch.float16):
            logits = model.to(dtype)(read["right"], decoder_input_ids=read["before"]).logits.float()
            out[str(dtype)] = logits
            model.generate(read["left"], attention_mask=read["left"].ne(1).long(), max_length=9)
    torch.save(out, f"{folder}/{name}.outputs")
"""
DISTRUST = """
try:
    AutoModelForSeq2SeqLM.from_pretrained(f"{folder}/lisa", trust_remote_code=False)
except ValueError as error:
    print(error)
"""


def padded(rows, side):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1, padding_side=side)


def trimmed(ids):
    return ids[ids.ne(1)].tolist()[1:]


@pytest.fixture(scope="module")
def exported(alone, drawn, tmp_path_factory):
    """A folder with the outputs of all models here and in a Python without synmask; what that one printed."""
    folder = tmp_path_factory.mktemp("exported")
    calls = ""
    for name, (guide, seed, options) in MODELS.items():
        path = drawn(folder / f"{name}.pt", guide, seed, **options)
        export_translation(path, folder / name)
        here = computed(path)
        torch.save(here, folder / f"{name}.inputs")
        calls += f"run({name!r}, {name == 'structformer'}, {'syntax' in here})\n"
    done = alone(f"folder = {str(folder)!r}\n{THERE}{DISTRUST}{calls}", "torch", "transformers")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def computed(path):
    """Inputs, logits, hypotheses of each sentence alone, and the syntax of a batch, by `synmask`'s own code."""
    model, task, *_ = load_model(path)
    rows = encode_lines(LINES, 1024, task.src_dict)
    search = BeamSearch([model], task.tgt_dict, Decoding())
    best = []
    for row in rows:
        (results,) = search_batches(model, search, task.sources([row]), 4000)
        best.append(results[0][0].tokens)
    before = padded([ids.roll(1) for ids in best], "right")
    sources = task.sources(rows)
    batch = sources.collater([sources[i] for i in range(len(rows))])
    back = batch["id"].argsort()
    read, lengths = batch["net_input"]["src_tokens"][back], batch["net_input"]["src_lengths"][back]
    annotations = {name: value[back] for name, value in batch["net_input"]["annotations"].items()}
    here = {"rows": rows, "right": read, "left": padded(rows, "left"), "before": before, "best": best}
    with torch.no_grad():
        here["logits"] = model(read, lengths, before, annotations)[0]
        if model.encoder.guide.options.induces:
            here["syntax"] = vars(model.encoder.induce(read, annotations))
    return here


@pytest.mark.parametrize("name", MODELS)
def test_logits_hypotheses_and_trees_are_the_same(exported, name):
    folder, _ = exported
    here, there = (torch.load(folder / f"{name}.{end}") for end in ("inputs", "outputs"))
    best = [ids.tolist() for ids in here["best"]]
    assert len(set(map(tuple, best))) >= 4
    real = here["before"].ne(1)
    for side in ("right", "left"):
        assert (here["logits"] - there[side])[real].abs().max() < 1e-5
    assert [trimmed(ids) for ids in there["made"]] == best
    for dtype, most in ((torch.bfloat16, 0.5), (torch.float16, 0.05)):
        assert 0 < (here["logits"] - there[str(dtype)])[real].abs().mean() < most
    assert ("syntax" in here) == (name != "lisa")
    for part, value in here.get("syntax", {}).items():
        if value is None:
            assert (name, there["syntax"][part]) == ("lpsi", None)
        else:
            torch.testing.assert_close(there["syntax"][part], value, rtol=0, atol=1e-5)


def test_a_folder_holds_one_guide_and_runs_no_code_without_trust(exported):
    folder, message = exported
    assert "trust_remote_code=True" in message
    assert {path.name for path in (folder / "lisa").glob("*.py")} == {
        "modeling_translation.py", "synmask_checks.py", "synmask_encoder.py", "synmask_guides.py",
        "synmask_guides_attention.py", "synmask_guides_lisa.py", "synmask_options.py",
        "synmask_options_lisa.py", "synmask_pipeline_text_moses.py", "tokenization_moses.py",
    }  # fmt: skip


def test_what_needs_a_parser_is_refused(drawn, tmp_path):
    for guide, reads in (("pascal", "heads"), ("distance", "distances")):
        with pytest.raises(UserError, match=f"{guide} reads {reads} of a parser"):
            export_translation(drawn(tmp_path / "average.pt", guide), tmp_path / "out")
    with pytest.raises(UserError, match="reads templates of a second model"):
        method_code(tmp_path / "average.pt", Guidance(guide="templates"), "translation", "", "")
    assert not (tmp_path / "out").exists()


def test_other_files_stay(tmp_path):
    """A folder that holds the same kind of export is written again; one that holds anything else is refused."""
    new = tmp_path / "new"
    write_folder(new, {"config.json": "{}", "merges.txt": ""})
    (new / ".gitattributes").touch()
    write_folder(new, {"config.json": "[]", "merges.txt": "", "README.md": ""})
    assert (new / "config.json").read_text() == "[]"
    with pytest.raises(UserError, match=r"new: holds other files, such as merges\.txt; give a new folder"):
        write_folder(new, {"config.json": "{}", "README.md": ""})  # its tokenizer would be the earlier one's
    assert (new / "config.json").read_text() == "[]"
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UserError, match=r"holds other files, such as README\.md; give a new folder"):
        write_folder(tmp_path, {"config.json": "{}", "README.md": "", "new": ""})
    assert (tmp_path / "README.md").read_text() == "mine"
    with pytest.raises(UserError, match=r"README\.md: a file; give the name of a folder"):
        write_folder(tmp_path / "README.md", {"config.json": "{}"})
    assert not (tmp_path / "config.json").exists()
