(() => {
  "use strict";
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  root.classList.add("scripted");

  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const toggle = $("theme");
  const named = () => { toggle.textContent = dark() ? "Light" : "Dark"; };
  toggle.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; named(); });
  named();
  addEventListener("beforeprint", () => document.querySelectorAll("details:not(figure *)").forEach((d) => { d.open = true; }));

  const slider = $("operating");
  if (!slider) return;
  const rows = JSON.parse($("rows").textContent);
  const pictures = [...document.querySelectorAll("[data-picture]")].map((svg) => {
    const [x0, x1, left, right, y0, y1, bottom, top] = svg.dataset.scales.split(" ").map(Number);
    const place = (v, a, b, p, q) => p + Math.min(1, Math.max(0, (v - a) / (b - a || 1))) * (q - p);
    return { svg, name: svg.dataset.picture, left, right, x: (v) => place(v, x0, x1, left, right), y: (v) => place(v, y0, y1, bottom, top) };
  });
  const move = (p, x, y) => {
    const g = p.svg.querySelector(".point");
    g.setAttribute("transform", `translate(${p.x(x)} 0)`);
    g.querySelector("circle").setAttribute("cy", p.y(y));
  };
  const bars = [...document.querySelectorAll("[data-class]")];

  const show = () => {
    const i = Number(slider.value);
    const at = Object.fromEntries(Object.entries(rows.shown).map(([name, column]) => [name, column[i]]));
    for (const [name, text] of Object.entries(at)) for (const e of document.querySelectorAll(`[data-shown="${name}"]`)) e.textContent = text;
    slider.setAttribute("aria-valuetext", at.said);
    for (const p of pictures) {
      if (p.name === "risk") move(p, rows.coverage[i], 1 - rows.accuracy[i]);
      else if (p.name === "threshold") move(p, 1 - rows.coverage[i], rows.accuracy[i]);
      else for (const r of p.svg.querySelectorAll(".deferred")) r.setAttribute("width", Math.max(0, p.x(rows.threshold[i]) - p.left));
    }
    bars.forEach((e, c) => {
      e.querySelector("progress").value = rows.classes[c][i];
      e.querySelector("span + span").textContent = `${(rows.classes[c][i] * 100).toFixed(1)} %`;
    });
  };
  slider.addEventListener("input", show);

  for (const p of pictures.filter((q) => q.name === "risk" || q.name === "threshold")) {
    const column = p.name === "risk" ? rows.coverage : rows.coverage.map((v) => 1 - v);
    const follow = (event) => {
      const box = p.svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * p.svg.viewBox.baseVal.width;
      let best = 0;
      column.forEach((v, i) => { if (Math.abs(p.x(v) - x) < Math.abs(p.x(column[best]) - x)) best = i; });
      slider.value = best;
      show();
    };
    p.svg.addEventListener("pointerdown", (event) => { p.svg.setPointerCapture(event.pointerId); follow(event); });
    p.svg.addEventListener("pointermove", (event) => { if (event.buttons) follow(event); });
  }
  show();
})();
