"""`PYTHONPATH=tools python -m demo_grammar FOLDER` writes the demo's text: corpus, tasks, documents."""

import sys
from pathlib import Path

from demo_grammar import write_corpus
from demo_grammar.tasks import DOCUMENTS, WEIGHTS, write_demo_task, write_text

folder = Path(sys.argv[1])
write_corpus(folder / "de-en")
for task in WEIGHTS:
    write_demo_task(folder / "tasks" / task, task)
for split, count in DOCUMENTS.items():
    write_text(folder / f"text/{split}.txt.gz", count)
