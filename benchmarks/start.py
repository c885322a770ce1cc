"""How long `synmask` takes to start, beside `import torch` alone: with the model that is shipped, in turns.

python benchmarks/start.py
"""

import argparse
import tempfile
from pathlib import Path

import torch

import machine

LINE = "Der Arzt sieht die Frau ."


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=machine.TURNS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(machine.described("torch", "fairseq"))
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text"
        text.write_text(f"{LINE}\n")
        files = ["--input", str(text), "--output", f"{folder}/out"]
        commands = {
            "import torch": ["-c", "import torch"],
            "synmask translate": ["-m", "synmask", "translate", "--model", "demo", "--threads", "1", *files],
            "synmask tree": ["-m", "synmask", "tree", "--model", "demo", LINE],
        }
        times = {name: machine.Times() for name in commands}
        for _ in range(args.turns):
            for name, command in commands.items():
                machine.run(command, times[name])
    print("\n| command | CPU s (clock) | of `import torch` |\n|---|---:|---:|")
    for name, contestant in times.items():
        print(f"| `{name}` | {contestant.shown(2)} | {contestant.of(times['import torch'])} |")


if __name__ == "__main__":
    main()
