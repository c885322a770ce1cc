"""The page on P_D computes what the literal definition does, and its parts react, in a real browser."""

import json
from pathlib import Path

import pytest
import torch

from synmask.induction.literal import literal_distribution
from synmask.pipeline.syntax.tree import word_heads

PAGE = Path(__file__).parents[2] / "docs/distribution.html"
MAP = "const map = () => [...document.querySelectorAll('#map tbody tr')].map((row) => [...row.querySelectorAll('td')].map((one) => Number(one.dataset.value)));"
HEADS = [2, 3, 0, 6, 6, 3, 3, 9, 7, 3]  # of "Der Mann sieht den dunkelbraunen Brief mit dieser Lupe ."
KEYS = """
  const key = (on, name) => { on.focus(); on.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true })); };
  const bar = (name) => document.querySelector(`[aria-label="${name}"]`);
  const preset = (name) => [...document.querySelectorAll("button")].find((one) => one.textContent === name).click();
  const lit = () => [...document.querySelectorAll(".lit")].map((one) => one.dataset.equation).join();
  const said = () => document.querySelector("#numbers").value;
"""


def of(heights, distances, a, b):
    """P_D in float64."""
    values = (torch.tensor([row], dtype=torch.float64) for row in (distances, heights))
    return literal_distribution(*values, distance_scale=a, height_scale=b)[0]


def states():
    """Random heights and distances of 1 to 12 words, some of them far apart, some equal."""
    rng = torch.Generator().manual_seed(1)
    for n in (1, 2, 3, 5, 8, 12, 12):
        scale, a, b = [*(10 ** (2 * torch.rand(3, generator=rng, dtype=torch.float64) - 1)).tolist()]
        height, distance = (
            (10 * scale * torch.randn(size, generator=rng, dtype=torch.float64)).round(decimals=1).tolist()
            for size in (n, n - 1)
        )
        yield {"words": [f"w{k}" for k in range(n)], "height": height, "distance": distance, "a": a, "b": b}


def test_its_numbers_are_those_of_the_literal_definition(open_page):
    """All of them, as the cells have them; those of the presets, too."""
    given = list(states())
    script = f"""{MAP}{KEYS}
      const seen = {json.dumps(given)}.map((each) => {{ show(each); return [each, map()]; }});
      for (const name of Object.keys(PRESETS)) {{ preset(name); seen.push([state, map()]); }}
      return JSON.stringify(seen);"""
    page = open_page(PAGE, script)
    seen = json.loads(page.result)
    assert len(seen) == len(given) + 4
    for state, shown in seen:
        expected = of(state["height"], state["distance"], state["a"], state["b"])
        torch.testing.assert_close(
            torch.tensor(shown, dtype=torch.float64), expected, rtol=0, atol=1e-6, msg=str(state)
        )
    assert not page.console


def test_the_gold_preset_has_the_heads_of_the_treebank(open_page):
    script = f"{MAP}{KEYS} preset('Gold tree'); return JSON.stringify([state.words, map()]);"
    words, shown = json.loads(open_page(PAGE, script).result)
    assert words[-1] == "</s>"
    assert word_heads(torch.tensor(shown).numpy(), words[:-1]) == HEADS


def test_a_bar_moves_by_keys_and_by_dragging(open_page):
    script = (
        KEYS
        + """
      const mann = bar("height of Mann"), now = () => mann.getAttribute("aria-valuenow");
      const at = (y) => ({ pointerId: 1, clientX: 1, clientY: mann.ownerSVGElement.getBoundingClientRect().top + y, bubbles: true });
      const seen = [now()];
      for (const name of ["ArrowUp", "PageDown", "Home", "End"]) { key(mann, name); seen.push(now()); }
      mann.setPointerCapture = () => { mann.hasPointerCapture = () => true; };  // no real pointer is there
      mann.dispatchEvent(new PointerEvent("pointerdown", at(20))); seen.push(now());
      mann.dispatchEvent(new PointerEvent("pointermove", at(175))); seen.push(now(), lit());
      return JSON.stringify(seen);"""
    )
    assert json.loads(open_page(PAGE, script).result) == [
        "7", "7.1", "6.1", "-1", "12", "12", "-1", "inside,parent",
    ]  # fmt: skip


def test_the_equation_of_each_value_lights_up_with_its_numbers(open_page):
    script = (
        KEYS
        + """
      const cell = (table, row, column) => document.querySelectorAll(`#${table} tbody tr`)[row].cells[column + 1];
      const seen = [];
      const point = (on) => { on.dispatchEvent(new PointerEvent("pointerenter")); seen.push([lit(), said()]); };
      point(cell("map", 3, 6));
      for (const row of [0, 1, 2, 3]) point(cell("row", row, 3));
      point(document.querySelector("[data-span='0 1']"));
      point(bar("distance between den and dunkel@@"));
      key(cell("map", 3, 6), "ArrowUp"); seen.push([lit(), said(), document.activeElement === cell("map", 2, 6)]);
      return JSON.stringify(seen);"""
    )
    assert json.loads(open_page(PAGE, script).result) == [
        ["sum", "P_D(Brief | den) = 0.982 · 1.000 [den … Brief] = 0.982"],
        ["inside", "p(den ∈ C(den)) = 1.000"],
        ["border", "p_L(den | den) = p(den ∈ C) − p(sieht ∈ C) = 1.000 − 0.000 = 1.000"],
        ["border", "p_R(den | den) = p(den ∈ C) − p(dunkel@@ ∈ C) = 1.000 − 0.982 = 0.018"],
        [
            "parent",
            "den … Brief is the constituent of den with p_L · p_R = 1.000 · 0.982 = 0.982. "
            "In it, p_Pr(den) = exp(4.00 · 3.00) / Σ exp(4.00 · h) = 0.000",
        ],
        ["tree", "Der Mann is split at its largest distance, 2.00: Der | Mann"],
        [
            "inside,tree",
            "The distance between den and dunkel@@ is 2.00: it ends the constituents of lower words on both sides, "
            "and splits the tree",
        ],
        ["sum", "P_D(Brief | sieht) = 0.018 · 0.000 [Der … .] = 0.000", True],
    ]


def test_a_sentence_of_ones_own(open_page):
    """Twelve words at most; words that stay keep their values, and equal distances split together."""
    script = (
        KEYS
        + """
      const type = (text) => { $("sentence").value = text; $("sentence").dispatchEvent(new Event("input")); };
      const seen = [];
      type("a b c d e f g h i j k l m n"); seen.push(state.words.length, $("note").textContent);
      type("a b"); seen.push(state.height.join(), state.distance.join());
      type("  "); seen.push(state.words.join());
      type("<b>x</b> y z"); preset("Flat");
      seen.push([...document.querySelectorAll("[data-span]")].map((one) => one.dataset.span).join(), document.querySelector("#map b"));
      preset("Right-branching");
      seen.push([...document.querySelectorAll("[data-span]")].map((one) => one.dataset.span).join());
      return JSON.stringify(seen);"""
    )
    assert json.loads(open_page(PAGE, script).result) == [
        12, "12 words at most: the first 12 are shown.", "3,7", "2", "a,b", "0 2", None, "1 2,0 2",
    ]  # fmt: skip


def test_the_line_at_the_bottom_is_of_the_sentence_and_temperatures_that_are_shown(open_page):
    script = (
        KEYS
        + """
      const set = (id, text) => { $(id).value = text; $(id).dispatchEvent(new Event("input")); };
      const seen = [];
      bar("height of Mann").focus();
      seen.push(said().startsWith("h of Mann = 7.00"));
      set("sentence", "Der Hund sieht den Brief");
      seen.push(said().split(" =")[0]);
      const before = said();
      set("a", "0.2");
      seen.push(said() !== before, $("a").ariaInvalid, $("note").textContent);
      return JSON.stringify(seen);"""
    )
    assert json.loads(open_page(PAGE, script).result) == [True, "P_D(sieht | Hund)", True, "false", ""]


@pytest.mark.parametrize("wrong", ["0", "-1", ""])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_temperature_that_is_none_is_said(open_page, name, wrong):
    script = (
        KEYS
        + f"""
      const set = (text) => {{ $("{name}").value = text; $("{name}").dispatchEvent(new Event("input")); }};
      set("{wrong}");
      const seen = [state.{name}, $("note").textContent, $("{name}").ariaInvalid];
      set("2");
      return JSON.stringify([...seen, state.{name}, $("note").textContent, $("{name}").ariaInvalid]);"""
    )
    note = f"{name} must be a number above 0; the page shows 4.000."
    assert json.loads(open_page(PAGE, script).result) == [4, note, "true", 2, "", "false"]


@pytest.mark.parametrize("preset", ["Gold tree", "Trained Grammar of the demo, seed 2"])
def test_it_fits_a_phone_and_loads_nothing(open_page, preset):
    script = f"{KEYS} preset('{preset}'); return document.scrollingElement.scrollWidth;"
    page = open_page(PAGE, script, width=400)
    assert (page.result, page.console) == ("400", [])
    text = PAGE.read_text(encoding="utf-8")
    assert "default-src 'none'" in text  # the browser refuses whatever the page would load
    assert not any(word in text for word in ("<link", "src=", "@import", "fetch("))


def test_no_row_shows_below_the_numbers(open_page):
    script = "return innerHeight - document.querySelector('#numbers').getBoundingClientRect().bottom;"
    assert open_page(PAGE, script, width=800).result == "0"


def test_its_texts_are_legible(open_page):
    """13 pixels at least."""
    script = """return Math.min(...[...document.querySelectorAll("svg text, th, td, small, #numbers")]
      .map((one) => parseFloat(getComputedStyle(one).fontSize)));"""
    assert float(open_page(PAGE, script, width=1280).result) >= 13
