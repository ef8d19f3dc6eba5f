"use strict";
// Draws the charts of a page and opens the story behind a figure. Loads nothing.
const views = (window.tauscope = { views: {}, ready: null, errors: [] });
const narrow = () => document.documentElement.clientWidth < 640;

// The page's own paper is behind a chart and its inks are set by the style sheet, so
// light, dark and print need no second drawing. The width is the column's.
function fitted(spec) {
  const copy = structuredClone(spec);
  delete copy.$schema;
  delete copy.usermeta;
  copy.width = "container";
  copy.autosize = { type: "fit-x", contains: "padding" };
  copy.config = copy.config || {};
  copy.config.background = null;
  if (narrow()) {
    copy.config.axis = { ...copy.config.axis, labelLimit: 96 };
    copy.config.legend = { ...copy.config.legend, columns: 2, labelLimit: 120 };
    copy.config.title = { ...copy.config.title, fontSize: 13, frame: "bounds", limit: 340 };
  }
  return copy;
}

async function draw(holder) {
  const name = holder.dataset.chart;
  const spec = JSON.parse(document.getElementById(`spec-${name}`).textContent);
  try {
    const result = await vegaEmbed(holder, fitted(spec), {
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
views.ready = Promise.all([...document.querySelectorAll(".vega")].map(draw));
