"""Trees for the terminal: one line per leaf, the root at the left, bars for heights and distances."""

from rich.cells import cell_len

from synmask.pipeline.display import isolate, pad, printable
from synmask.pipeline.reporting.tree_nodes import Drawing, SentenceTrees, bars
from synmask.pipeline.syntax.parses import Parse

THIN, THICK = "┬├└│", "┳┣┗┃"  # thick: constituents of the gold tree
EMPTY = "(no words)"
BAR = 12  # characters of the longest bar


def draw(sentence: SentenceTrees, parses: dict[str, Parse]) -> str:
    """All trees of a sentence.

    Beside each sub-word of an induced tree are bars for its height and the distance to the next one, scaled
    from the least to the largest. Constituents of the gold tree are drawn thick.
    """
    lines = []
    for title, drawing in sentence.drawings.items():
        texts = _tree(drawing) or [EMPTY]
        if title in parses and drawing.leaves:
            texts = _with_bars(texts, parses[title])
        lines += [sentence.heading(title, "drawn thick"), *texts, ""]
    return "\n".join(lines)


def _with_bars(texts: list[str], parse: Parse) -> list[str]:
    """Add to each line the height, if there are heights, and the distance to the next sub-word."""
    columns = bars(parse)
    width = max(map(cell_len, texts))
    heads = [f"  {'distance to the next' if name == 'distance' else name:<{BAR}}" for name in columns]
    lines = [" " * width + "".join(heads)]
    for text, *values in zip(texts, *columns.values(), strict=True):
        drawn = "".join(f"  {'▇' * round(BAR * value):<{BAR}}" for value in values)
        lines.append(pad(text, width) + drawn)
    return [line.rstrip() for line in lines]


def _tree(drawing: Drawing) -> list[str]:
    """Lines of leaves with their branches: one column per depth, as wide as its widest label."""
    nodes = [node._replace(label=isolate(printable(node.label))) for node in drawing.nodes]
    depth = [0] * len(nodes)
    for number in reversed(range(len(nodes))):
        for child in nodes[number].children:
            if child >= 0:
                depth[child] = depth[number] + 1
    columns = max(depth, default=-1) + 1
    width = [
        max(cell_len(node.label) for node, d in zip(nodes, depth, strict=True) if d == c)
        for c in range(columns)
    ]
    cells = [[" " * (width[c] + 1) for c in range(columns)] for _ in drawing.leaves]
    deepest = [0] * len(drawing.leaves)  # columns that branches of each leaf take
    line_of = {start: line for line, (start, _) in enumerate(drawing.bounds)}
    for node, column in zip(nodes, depth, strict=True):
        first, fork, last, through = THICK if node.right else THIN
        starts = [~child if child < 0 else line_of[nodes[child].start] for child in node.children]
        deepest[starts[0]] = max(deepest[starts[0]], column + 1)
        branch = first if len(starts) > 1 else "─"
        cells[starts[0]][column] = pad(node.label, width[column], sign="─") + branch
        for line in range(starts[0] + 1, starts[-1] + 1):
            mark = last if line == starts[-1] else fork if line in starts else through
            cells[line][column] = " " * width[column] + mark
            if line in starts:
                deepest[line] = max(deepest[line], column + 1)
    return [
        "".join(row[:used])
        + "".join("─" * (width[c] + 1) for c in range(used, columns))
        + f"─ {isolate(printable(leaf))}"
        for row, used, leaf in zip(cells, deepest, drawing.leaves, strict=True)
    ]
