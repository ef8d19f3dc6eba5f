"use strict";
// Draws the charts of a page and opens the story behind a figure. Loads nothing.
const views = (window.tauscope = { views: {}, ready: null, errors: [] });
const narrow = () => document.documentElement.clientWidth < 640;

// The page's own paper is behind a chart and its inks are set by the style sheet, so
// light, dark and print need no second drawing. The width is the column's.
function fitted(spec, room) {
  const copy = structuredClone(spec);
  delete copy.$schema;
  delete copy.usermeta;
  if (copy.facet) {
    // Panels don't fit themselves: what their axis takes is left out.
    copy.spec.width = Math.max(160, room - 74);
  } else {
    copy.width = "container";
    copy.autosize = { type: "fit-x", contains: "padding" };
  }
  copy.config = copy.config || {};
  copy.config.background = null;
  if (narrow()) {
    copy.config.axis = { ...copy.config.axis, labelLimit: 136 };
    for (const layer of copy.layer || []) {
      const axis = layer.encoding?.y?.axis;
      if (axis?.labelExpr) axis.labelExpr = shortened(20, 6, 13);
    }
    copy.config.legend = { ...copy.config.legend, columns: 2, labelLimit: 120 };
    copy.config.title = { ...copy.config.title, fontSize: 13, frame: "bounds", limit: 340 };
  }
  return copy;
}

// Names of rows begin alike and differ at their ends, so they lose their middle.
const shortened = (longest, head, tail) =>
  `length(datum.label) > ${longest} ? slice(datum.label, 0, ${head}) + '…' + ` +
  `slice(datum.label, -${tail}) : datum.label`;

async function draw(holder) {
  const name = holder.dataset.chart;
  const spec = JSON.parse(document.getElementById(`spec-${name}`).textContent);
  try {
    const result = await vegaEmbed(holder, fitted(spec, holder.clientWidth), {
      mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false,
      tooltip: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" },
    });
    views.views[name] = result.view;
  } catch (error) {
    views.errors.push(`${name}: ${error.message}`);
    holder.textContent = `This chart can't be drawn here (${error.message}); its table is below.`;
  }
}

function story(figure) {
  const box = document.getElementById("story");
  box.querySelector("[data-part=value]").textContent = figure.textContent;
  box.querySelector("[data-part=about]").textContent = figure.dataset.about;
  const sql = box.querySelector("[data-part=sql]");
  sql.textContent = figure.dataset.sql;
  sql.parentElement.hidden = !figure.dataset.sql;
  box.showModal();
}

for (const figure of document.querySelectorAll(".fig")) {
  figure.tabIndex = 0;
  figure.setAttribute("role", "button");
  figure.addEventListener("click", () => story(figure));
  figure.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); story(figure); }
  });
}
document.querySelector("#story [data-part=copy]")?.addEventListener("click", async (event) => {
  const text = document.querySelector("#story [data-part=sql]").textContent;
  try { await navigator.clipboard.writeText(text); event.target.textContent = "copied"; }
  catch { getSelection().selectAllChildren(document.querySelector("#story [data-part=sql]")); }
});
for (const table of document.querySelectorAll(".ts-table table:has(td .long)")) {
  if (table.closest("#table-source")) continue;
  const heads = [...table.tHead.rows].at(-1).cells;
  for (const row of table.tBodies[0].rows)
    for (const cell of row.cells) cell.dataset.head = heads[cell.cellIndex]?.textContent.trim() ?? "";
  table.classList.add("stacked");
}
views.ready = Promise.all([...document.querySelectorAll(".vega")].map(draw));
