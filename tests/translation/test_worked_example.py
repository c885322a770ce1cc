"""The guide that docs/systems.md writes out, in its own words."""

import re
import sys
from pathlib import Path

import yaml

from small_models import fit, folder_of, typed
from synmask import guides as classes
from synmask import options as method_options
from synmask.pipeline.config import guides
from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.training.checkpoints import epoch_model

ROOT = Path(__file__).parents[2]
BLOCKS = re.compile(r"```(python|yaml)\n(.*?)```", re.S)


def test_the_worked_example_trains(corpus, tmp_path, settings, monkeypatch):
    text = (ROOT / "docs/systems.md").read_text().split("## Adding one")[1]
    (_, options), (_, guide), (kind, entry) = BLOCKS.findall(text)
    assert kind == "yaml"
    assert sum(block.count("\n") for block in (options, guide, entry)) < 40
    for package, block in ((method_options, options), (classes, guide)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "bonus.py").write_text(block)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        monkeypatch.delitem(sys.modules, f"{package.__name__}.bonus", raising=False)
    monkeypatch.setitem(guides.GUIDES, "bonus", method_options.options_of("bonus"))
    config = load(merge(read_all(project_files(ROOT)), yaml.safe_load(entry)))
    settings["system"] = config.run_settings("demo", "de-en", "bonus").plain()["system"]
    settings["training"]["max_epochs"] = 1
    fit(corpus / "bin", tmp_path / "run", typed(settings), keep=1)
    model = epoch_model(folder_of(tmp_path / "run") / "epoch1.pt")
    bonus = model["encoder.guide.bonus"]
    assert bonus.shape == (2, 1, 1)
    assert (bonus != 0.5).all()  # learnt
