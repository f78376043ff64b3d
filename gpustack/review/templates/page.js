"use strict";
(() => {
  const box = document.getElementById("filter");
  const rows = [...document.querySelectorAll("[data-row]")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const sections = [...document.querySelectorAll("main > section")];
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      count += row.hidden ? 0 : 1;
    });
    for (const each of sections) {
      const own = [...each.querySelectorAll("[data-row]")];
      each.classList.toggle("nothing", words.length > 0 && own.length > 0 && own.every((row) => row.hidden));
    }
    document.getElementById("shown").textContent = words.length ? count + " of " + rows.length + " shown" : "";
  };
  box.addEventListener("input", show);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  document.querySelector("search.filter").hidden = rows.length === 0;
})();
