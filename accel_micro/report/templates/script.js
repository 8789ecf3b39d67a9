"use strict";
(() => {
  const root = document.documentElement;
  const remembered = {
    get() { try { return localStorage.getItem("accel-micro-theme"); } catch { return null; } },
    set(theme) { try { localStorage.setItem("accel-micro-theme", theme); } catch { /* not allowed here */ } },
  };
  const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  if (remembered.get()) root.dataset.theme = remembered.get();
  document.querySelector(".theme").addEventListener("click", () => {
    root.dataset.theme = (root.dataset.theme || system()) === "dark" ? "light" : "dark";
    remembered.set(root.dataset.theme);
  });

  const setOpen = (body, open) => {
    body.querySelector(".more").hidden = !open;
    body.querySelector(".open").setAttribute("aria-expanded", String(open));
  };
  const bodies = [...document.querySelectorAll("tbody")];
  for (const body of bodies) {
    const more = body.querySelector(".more");
    body.querySelector(".open").addEventListener("click", () => setOpen(body, more.hidden));
  }
  const openTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "TBODY") setOpen(target, true);
  };
  addEventListener("hashchange", openTarget);
  openTarget();

  const form = document.querySelector(".toolbar");
  if (!form) return;
  form.addEventListener("submit", (event) => event.preventDefault());

  const filter = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const launch = form.elements.launch && form.elements.launch.checked;
    const flagged = form.elements.flagged.checked;
    let shown = 0;
    for (const body of bodies) {
      const fits = words.every((word) => body.dataset.words.includes(word))
        && (!launch || body.dataset.bound === "launch-bound")
        && (!flagged || body.dataset.flagged === "1");
      body.classList.toggle("gone", !fits);
      shown += fits;
    }
    for (const family of document.querySelectorAll(".family")) {
      family.classList.toggle("gone", !family.querySelector("tbody:not(.gone)"));
    }
    form.querySelector(".shown").value = `${shown} of ${bodies.length} cases`;
  };

  // Cases without the figure come last, whichever way the others are sorted.
  const sort = (choice) => {
    const key = choice.replace("-", "");
    const sign = choice.startsWith("-") ? -1 : 1;
    const order = (a, b) => {
      if (key) {
        const [x, y] = [a, b].map((body) => parseFloat(body.dataset[key]));
        if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        if (x !== y && !Number.isNaN(x)) return sign * (x - y);
      }
      return bodies.indexOf(a) - bodies.indexOf(b);
    };
    for (const table of document.querySelectorAll("table")) {
      table.append(...[...table.tBodies].sort(order));
      for (const button of table.querySelectorAll("thead button")) {
        const state = button.dataset.key !== key ? "none" : sign < 0 ? "descending" : "ascending";
        button.closest("th").setAttribute("aria-sort", state);
      }
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
  filter();
})();
