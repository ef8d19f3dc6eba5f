"use strict";
// Sorts and filters the tables of the index. Loads nothing.
const key = (cell) => {
  const value = cell.dataset.sort ?? cell.textContent.trim();
  const number = Number(value);
  return value !== "" && Number.isFinite(number) ? number : value.toLowerCase();
};
const order = (a, b) =>
  typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b))
    : typeof a === "number" ? -1 : 1;

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => order(key(a.cells[column]), key(b.cells[column])) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
for (const box of document.querySelectorAll("input[data-filters]")) {
  const items = () => document.querySelectorAll(`#${box.dataset.filters} [data-item]`);
  const said = document.querySelector(`output[for="${box.id}"]`);
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items()) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      shown += !item.hidden;
    }
    said.textContent = words.length ? `${shown} of ${items().length}` : "";
  });
}
