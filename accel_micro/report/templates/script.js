"use strict";
(() => {
{% filter indent(2, true) %}
{% include "toolbar.js" %}
{% endfilter %}

  themeButton();

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

  const filter = (words) => {
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
  const order = (key, sign) => {
    const figures = byFigure((body) => parseFloat(body.dataset[key]), sign);
    const sorted = key ? [...bodies].sort(figures) : bodies;
    for (const table of document.querySelectorAll("table")) {
      table.append(...sorted.filter((body) => body.parentElement === table));
    }
  };
  toolbar(form, filter, order)();
})();
