"use strict";
(() => {
{% filter indent(2, true) %}
{% include "toolbar.js" %}
{% endfilter %}

  root.classList.add("js");

  // Tables: a row has data-words, what it can be filtered by as data-NAME, what it can be sorted by as data-by-NAME.
  const tables = () => {
    const form = document.querySelector(".toolbar");
    if (!form) return;
    const bodies = [...document.querySelectorAll("table.list")].map((table) => table.tBodies[0]);
    const rows = bodies.map((body) => [...body.rows]);
    const all = rows.flat();
    const selects = [...form.querySelectorAll("select")].filter((select) => select.name !== "sort");

    const filter = (words) => {
      let shown = 0;
      for (const row of all) {
        const fits = words.every((word) => row.dataset.words.includes(word))
          && selects.every((select) => !select.value || row.dataset[select.name] === select.value);
        row.classList.toggle("gone", !fits);
        shown += fits;
      }
      for (const table of document.querySelectorAll("table.list")) {
        table.classList.toggle("gone", !table.querySelector("tbody tr:not(.gone)"));
      }
      form.querySelector(".shown").value = `${shown} of ${all.length} ${form.dataset.noun}`;
    };
    const order = (key, sign) => {
      const figures = byFigure((row) => parseFloat(row.getAttribute(`data-by-${key}`)), sign);
      bodies.forEach((body, number) => body.append(...(key ? [...rows[number]].sort(figures) : rows[number])));
    };
    const filtered = toolbar(form, filter, order);

    // A link can choose: significance.html#verdict=regression&machine=workshop
    const chosen = () => {
      if (location.hash.includes("=")) {
        for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
          const field = form.elements[name];
          if (!field || name === "sort") continue;
          // What no row has is chosen all the same: none is shown then, and not all.
          if (field.options && ![...field.options].some((option) => option.value === value)) field.add(new Option(value));
          field.value = value;
        }
      }
      filtered();
    };
    addEventListener("hashchange", chosen);
    chosen();
  };

  // A case's plots: the slider, the pointer and the table name the same build.
  const history = () => {
    const slider = document.getElementById("build");
    if (!slider) return;
    const rows = [...document.querySelectorAll("table.builds tbody tr")].reverse(); // old to new, as plotted
    const clocks = [...document.querySelectorAll("table.builds thead th")].map((cell) => cell.textContent);
    const readout = document.querySelector(".readout");
    const show = (number) => {
      const row = rows[number];
      slider.value = number;
      document.querySelector("table.builds tr.current")?.classList.remove("current");
      row.classList.add("current");
      const texts = [...row.cells].map((cell, at) => {
        const text = cell.textContent.trim().replace(/\s+/g, " ");
        if (!text || at < 2) return text;
        return clocks[at] === "notes" ? text : clocks[at] === "processes" ? `${text} process${text === "1" ? "" : "es"}` : `${clocks[at]} ${text}`;
      });
      readout.value = texts.filter(Boolean).join(" · ");
      slider.setAttribute("aria-valuetext", readout.value);
      for (const cursor of document.querySelectorAll(".cursor")) {
        cursor.setAttribute("d", `M${10 * row.dataset.at} 0V1000`);
      }
    };
    slider.addEventListener("input", () => show(Number(slider.value)));
    for (const plot of document.querySelectorAll(".plot")) {
      const follow = (event) => {
        const box = plot.getBoundingClientRect();
        const at = (100 * (event.clientX - box.left)) / box.width;
        let nearest = 0;
        rows.forEach((row, number) => {
          if (Math.abs(row.dataset.at - at) < Math.abs(rows[nearest].dataset.at - at)) nearest = number;
        });
        show(nearest);
      };
      plot.addEventListener("pointermove", follow);
      plot.addEventListener("pointerdown", follow);
    }
    show(rows.length - 1);
  };

  addEventListener("DOMContentLoaded", () => {
    themeButton();
    tables();
    history();
  });
})();
