// What pages on their own and those of the site share: colours, and a toolbar that filters and sorts tables.

const root = document.documentElement;
const remembered = {
  get() { try { return localStorage.getItem("accel-micro-theme"); } catch { return null; } },
  set(theme) { try { localStorage.setItem("accel-micro-theme", theme); } catch { /* not allowed here */ } },
};
const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
if (remembered.get()) root.dataset.theme = remembered.get();

const themeButton = () => {
  document.querySelector(".theme").addEventListener("click", () => {
    root.dataset.theme = (root.dataset.theme || system()) === "dark" ? "light" : "dark";
    remembered.set(root.dataset.theme);
  });
};

// What lacks the figure comes last, whichever way the others are sorted.
const byFigure = (figure, sign) => (a, b) => {
  const [x, y] = [figure(a), figure(b)];
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return Number.isNaN(x) ? 0 : sign * (x - y);
};

// filter(words) shows what has all these words; order(key, sign) puts things in order, as they came without a key.
const toolbar = (form, filter, order) => {
  form.addEventListener("submit", (event) => event.preventDefault());
  const filtered = () => filter(form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean));
  const buttons = [...document.querySelectorAll("thead button")];

  const sort = (choice) => {
    const key = choice.replace("-", "");
    const sign = choice.startsWith("-") ? -1 : 1;
    order(key, sign);
    for (const button of buttons) {
      const state = button.dataset.key !== key ? "none" : sign < 0 ? "descending" : "ascending";
      button.closest("th").setAttribute("aria-sort", state);
    }
    const select = form.elements.sort;
    select.value = choice;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  };

  form.addEventListener("input", filtered);
  form.elements.sort.addEventListener("change", () => sort(form.elements.sort.value));
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const state = button.closest("th").getAttribute("aria-sort");
      const key = button.dataset.key;
      sort(state === "none" ? `-${key}` : state === "descending" ? key : "");
    });
  }
  return filtered;
};
