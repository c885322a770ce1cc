// What the page does by script: sort tables, filter their rows, compare translations, open what a link leads to.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, head, column));
  });
}
for (const list of document.querySelectorAll("[data-filter]")) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  label.className = "controls";
  input.type = "search";
  label.append(`Only ${list.dataset.filter} containing`, input);
  list.before(label);
  input.addEventListener("input", () => {
    for (const row of list.querySelectorAll("tbody tr")) row.hidden = !has(row, input.value);
  });
}
for (const section of document.querySelectorAll(".compare")) {
  const form = section.querySelector("form");
  form.hidden = false;
  form.elements.most.value = Math.max(...[...section.querySelectorAll("article")].map((one) => one.dataset.length));
  const more = section.querySelector(".more");
  let limit = 10;
  form.addEventListener("input", () => compare(section, form, limit));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => compare(section, form, limit += 10));
  compare(section, form, limit);
}
addEventListener("hashchange", reveal);
reveal();

function has(element, words) {
  return words.toLowerCase().split(/\s+/).every((word) => element.textContent.toLowerCase().includes(word));
}

function sort(table, head, column) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const text = (row) => row.cells[column]?.textContent.trim() ?? "";
  const order = new Intl.Collator("en", { numeric: true });
  const number = (row) => parseFloat(text(row).replaceAll(",", ""));
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [number(a), number(b)];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    const difference = Number.isNaN(x) ? order.compare(text(a), text(b)) : x - y;
    return down ? -difference : difference;
  });
  table.tBodies[0].append(...rows);
}

function compare(section, form, limit) {
  const { system, seed, order, least, most, words } = Object.fromEntries(new FormData(form));
  const articles = [...section.querySelectorAll("article")];
  const rows = [...articles[0].querySelectorAll("[data-system]")];
  const place = rows.findIndex((row) => row.dataset.system === system && row.dataset.seed === seed);
  const gain = (article) => JSON.parse(article.dataset.gains)[place] ?? 0;
  const by = { gain: (a, b) => gain(b) - gain(a), loss: (a, b) => gain(a) - gain(b) }[order];
  articles.sort((a, b) => by?.(a, b) || a.dataset.number - b.dataset.number);
  section.append(...articles, section.querySelector(".more"));
  let fitting = 0;
  for (const article of articles) {
    const length = Number(article.dataset.length);
    const fits = length >= least && (!most || length <= most) && has(article, words);
    fitting += fits;
    article.hidden = !fits || fitting > limit;
    for (const row of article.querySelectorAll("[data-system]")) row.hidden = row.dataset.seed !== seed;
    for (const part of article.querySelectorAll("[data-lacking]")) {
      part.classList.toggle("lacking", part.dataset.lacking.split(" ").includes(String(place)));
    }
  }
  section.querySelector("output").value = `${Math.min(fitting, limit)} of ${fitting} sentences`;
  section.querySelector(".more").hidden = fitting <= limit;
}

function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let card = target.closest("details"); card; card = card.parentElement.closest("details")) card.open = true;
  target.scrollIntoView();
}
