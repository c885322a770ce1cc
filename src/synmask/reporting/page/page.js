// All that the page does by script: sorting tables and filtering their rows and the examples.
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
  label.className = "filter";
  input.type = "search";
  label.append(`Only ${list.dataset.filter} with`, input);
  list.before(label);
  input.addEventListener("input", () => filter(list, input.value.toLowerCase()));
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

function filter(list, words) {
  for (const item of list.querySelectorAll("tbody tr, article")) {
    item.hidden = !words.split(/\s+/).every((word) => item.textContent.toLowerCase().includes(word));
  }
}
