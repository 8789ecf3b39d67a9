"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const remembered = {
    get() { try { return localStorage.getItem("accel-micro-theme"); } catch { return null; } },
    set(theme) { try { localStorage.setItem("accel-micro-theme", theme); } catch { /* not allowed here */ } },
  };
  const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  if (remembered.get()) root.dataset.theme = remembered.get();

  // Tables: a row has data-words, what it can be filtered by as data-NAME, what it can be sorted by as data-by-NAME.
  const tables = () => {
    const form = document.querySelector(".toolbar");
    if (!form) return;
    form.addEventListener("submit", (event) => event.preventDefault());
    const bodies = [...document.querySelectorAll("table.list")].map((table) => table.tBodies[0]);
    const rows = bodies.map((body) => [...body.rows]);
    const all = rows.flat();
    const selects = [...form.querySelectorAll("select")].filter((select) => select.name !== "sort");

    const filter = () => {
      const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
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

    // Rows without the figure come last, whichever way the others are sorted.
    const sort = (choice) => {
      const key = choice.replace("-", "");
      const sign = choice.startsWith("-") ? -1 : 1;
      const figure = (row) => parseFloat(row.getAttribute(`data-by-${key}`));
      bodies.forEach((body, number) => {
        const found = [...rows[number]];
        if (key) {
          found.sort((a, b) => {
            const [x, y] = [figure(a), figure(b)];
            if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
            return Number.isNaN(x) ? 0 : sign * (x - y);
          });
        }
        body.append(...found);
      });
      for (const button of document.querySelectorAll("thead button")) {
        const state = button.dataset.key !== key ? "none" : sign < 0 ? "descending" : "ascending";
        button.closest("th").setAttribute("aria-sort", state);
      }
      const select = form.elements.sort;
      select.value = choice;
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    };

    form.addEventListener("input", filter);
    form.elements.sort.addEventListener("change", () => sort(form.elements.sort.value));
    for (const button of document.querySelectorAll("thead button")) {
      button.addEventListener("click", () => {
        const state = button.closest("th").getAttribute("aria-sort");
        const key = button.dataset.key;
        sort(state === "none" ? `-${key}` : state === "descending" ? key : "");
      });
    }
    // A link can choose: significance.html#verdict=regression&machine=workshop
    const chosen = () => {
      if (location.hash.includes("=")) {
        for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
          if (form.elements[name] && name !== "sort") form.elements[name].value = value;
        }
      }
      filter();
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
    document.querySelector(".theme").addEventListener("click", () => {
      root.dataset.theme = (root.dataset.theme || system()) === "dark" ? "light" : "dark";
      remembered.set(root.dataset.theme);
    });
    tables();
    history();
  });
})();
