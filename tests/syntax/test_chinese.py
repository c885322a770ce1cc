"""Chinese from text to what guides read, with the real segmenter and parser of CoreNLP."""

import json
from pathlib import Path

import numpy as np
import pytest

from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.files import write_lines
from synmask.pipeline.syntax.annotations import annotate_file
from synmask.pipeline.syntax.corenlp import parse_file
from synmask.pipeline.syntax.tree import counted_words
from synmask.pipeline.syntax.treebank import read_trees
from synmask.pipeline.text.tokenise import tokenise

pytestmark = pytest.mark.xdist_group("corenlp")

# Words, as the segmenter splits them.
SENTENCES = """
那 位 老人 喂 了 饿 着 的 狗 。
我 昨天 在 图书馆 里 看完 了 那 本 关于 历史 的 书 。
因为 下雨 ， 所以 我们 没有 去 公园 。
本文 提出 了 一 种 测量 薄膜 厚度 的 新 方法 。
结果 表明 ， 该 方法 的 精度 比 传统 方法 提高 了 约 20% 。
他 把 钥匙 放在 桌子 上 了 。
孩子们 在 院子 里 踢 足球 ， 他们 的 父母 坐 在 树 下 聊天 。
被 老师 批评 的 学生 低下 了 头 。
你 喜欢 喝 茶 还是 喝 咖啡 ？
上海 是 中国 最 大 的 城市 之一 （ 人口 超过 两千万 ） 。
“ 请进 ， ” 她 说 ， “ 把 门 关上 。 ”
用 X 射线 衍射 法 （ XRD ） 分析 了 样品 的 晶体 结构 ； 其 晶格 常数 为 0.543 nm 。
""".strip().split("\n")


@pytest.fixture(scope="module")
def parsed(chinese, tmp_path_factory):
    """The folder with out.trees, out.heads and out.json of the sentences."""
    folder = tmp_path_factory.mktemp("chinese")
    write_lines(folder / "tokens", SENTENCES)
    parse_file(
        input=folder / "tokens",
        tokens=folder / "tokens",
        output=folder / "out",
        language="zh",
        settings=DataFiles(chinese).corenlp_settings("zh"),
        jars=[*map(Path, DataFiles(chinese).corenlp_jars("zh"))],
        threads=2,
        memory=chinese.corenlp.mem_mb,
    )
    return folder


def test_the_segmenter_splits_words(chinese):
    jars = [*map(Path, DataFiles(chinese).tokeniser_jars("stanford"))]
    text = [sentence.replace(" ", "") for sentence in [*SENTENCES[:3], ""]]
    assert list(tokenise(text, "zh", tokeniser="stanford", jars=jars)) == [*SENTENCES[:3], ""]


def test_every_sentence_has_a_tree_of_its_words(parsed):
    trees = list(read_trees(parsed / "out.trees"))
    assert [tree.leaves() for tree in trees] == [sentence.split() for sentence in SENTENCES]
    assert json.loads((parsed / "out.json").read_text())["flat"] == {"empty": 0, "long": 0, "failed": 0}
    assert str(trees[0]) == (
        "(ROOT (IP (NP (DP (DT 那) (CLP (M 位))) (NP (NN 老人)))"
        " (VP (VV 喂) (AS 了) (NP (CP (IP (VP (VV 饿) (AS 着))) (DEC 的)) (NP (NN 狗)))) (PU 。)))"
    )
    assert (7, 13, "NP") in trees[1].spans()  # the book about history
    words = [word for word, counts in zip(trees[9].leaves(), counted_words(trees[9]), strict=True) if counts]
    assert " ".join(words) == "上海 是 中国 最 大 的 城市 之一 人口 超过 两千万"


def test_heads_are_converted_from_the_trees(parsed):
    lines = (parsed / "out.heads").read_text().splitlines()
    # 那 位 hang on 老人, that on 喂, the root; 饿 着 的 on 狗, the object
    assert lines[0] == "3 1 4 0 4 9 6 6 4 4"
    for line, sentence in zip(lines, SENTENCES, strict=True):
        heads = [0, *map(int, line.split())]
        assert len(heads) == len(sentence.split()) + 1
        assert heads[1:].count(0) == 1
        for word in range(1, len(heads)):
            above = {word}
            while word := heads[word]:
                assert word not in above  # no circle
                above.add(word)


def test_guides_can_read_them(parsed):
    counts = annotate_file(
        subwords=parsed / "tokens",
        output=parsed / "a.npy",
        trees=parsed / "out.trees",
        heads=parsed / "out.heads",
    )
    assert counts == {"sentences": len(SENTENCES), "without_heads": 0, "without_distances": 0}
    first = np.load(parsed / "a.npy")[: len(SENTENCES[0].split()) + 1]
    # heads as above, from 0, the root's its own; the last is </s>
    assert first[:, 0].tolist() == first[:, 1].tolist() == [2, 0, 3, 3, 3, 8, 5, 5, 3, 3, 10]
    # the subject 那位老人 and its verb are parted at 8, all before the full stop from it at 7
    assert first[:, 2].tolist() == [2, 3, 8, 6, 5, 2, 3, 4, 7, 2000, -1]
