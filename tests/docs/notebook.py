"""Runs docs/distribution.ipynb without Jupyter; `python tests/docs/notebook.py` renews the outputs in it."""

import base64
import contextlib
import io
import json
from pathlib import Path

import matplotlib

NOTEBOOK = Path(__file__).parents[2] / "docs/distribution.ipynb"


def read():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(cells):
    """Run cells in one namespace; what each printed and drew, as a notebook stores it."""
    matplotlib.use("Agg")
    names, outputs = {}, []
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec("".join(cell["source"]), names)
        outputs.append([*_text(printed.getvalue()), *_figures()])
    return outputs


def _text(printed):
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}


def _figures():
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        image = io.BytesIO()
        pyplot.figure(number).savefig(image, dpi=80, metadata={"Software": None})
        pyplot.close(number)
        data = {"image/png": base64.b64encode(image.getvalue()).decode()}
        yield {"data": data, "metadata": {}, "output_type": "display_data"}


if __name__ == "__main__":
    notebook = read()
    cells = code_cells(notebook)
    for number, (cell, outputs) in enumerate(zip(cells, run(cells), strict=True), start=1):
        cell.update(outputs=outputs, execution_count=number)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
