// What every page has: theme, sections, values under the pointer, files of pictures, tables, state in the address.
const howsure = (() => {
  "use strict";
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const all = (q, e = document) => [...e.querySelectorAll(q)];
  root.classList.add("scripted");

  // State: "#section&key=value"; a shared address opens the same view.
  const state = new URLSearchParams();
  let section = "";
  const read = () => {
    let text = location.hash.slice(1);
    try { text = decodeURI(text); } catch { /* an address that somebody cut short is read as it stands */ }
    const [first, ...rest] = text.split("&");
    const pairs = first.includes("=") ? [first, ...rest] : rest;
    section = first.includes("=") ? "" : first;
    for (const key of [...state.keys()]) state.delete(key);
    for (const [key, value] of new URLSearchParams(pairs.join("&"))) state.set(key, value);
  };
  let due = false; // one event may set many keys: the address is written once
  const write = () => { if (!due) { due = true; queueMicrotask(written); } };
  const written = () => {
    due = false;
    const text = [section, state.toString()].filter(Boolean).join("&");
    if (location.protocol !== "about:") history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };
  const set = (key, value, usual = "") => { if (`${value}` === `${usual}`) state.delete(key); else state.set(key, value); write(); };
  const watchers = [];
  const follow = (f) => { watchers.push(f); f(); };
  read();
  addEventListener("hashchange", () => { read(); watchers.forEach((f) => f()); });

  const save = (name, text, type) => {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], { type }));
    a.download = name;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };
  const copy = async (text) => {
    if (navigator.clipboard && isSecureContext) { try { await navigator.clipboard.writeText(text); return; } catch { /* not allowed here: the old way */ } }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  const button = (text, label, act) => {
    const b = document.createElement("button");
    b.type = "button"; b.textContent = text; b.setAttribute("aria-label", label); b.className = "small";
    b.addEventListener("click", async () => { await act(); if (text.startsWith("Copy")) { b.textContent = "Copied"; setTimeout(() => { b.textContent = text; }, 1500); } });
    return b;
  };

  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const toggle = $("theme");
  const named = () => { toggle.textContent = dark() ? "Light" : "Dark"; };
  toggle.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; named(); });
  named();
  addEventListener("beforeprint", () => all("details:not(figure *)").forEach((d) => { d.open = true; }));

  // Sections: a list that follows the reader.
  const headings = all("main h2[id]");
  const list = document.querySelector("#contents ul");
  const links = new Map(headings.map((h) => {
    const a = document.createElement("a");
    a.href = `#${h.id}`;
    a.textContent = h.firstChild.textContent.trim();
    const li = document.createElement("li");
    li.append(a); list.append(li);
    return [h.id, a];
  }));
  // On a phone sections below the first two are folded until they are asked for, and these where they are long.
  const sections = all("main > section"), phone = matchMedia("(max-width: 640px)").matches, FIRST_HEIGHT = 5800;
  const unfold = (e, open = true) => { e.classList.toggle("folded", !open); const b = e.querySelector("h2 .fold"); b.setAttribute("aria-expanded", `${open}`); b.textContent = open ? "Hide" : "Show"; };
  for (const s of sections) {
    const h = s.querySelector("h2"), b = document.createElement("button");
    b.type = "button"; b.className = "fold small"; b.setAttribute("aria-label", `Show ${h.firstChild.textContent.trim()}`);
    b.addEventListener("click", () => unfold(s, s.classList.contains("folded")));
    h.append(b); unfold(s);
  }
  const fold = () => {
    sections.slice(2).forEach((s) => unfold(s, false));
    for (const s of sections.slice(0, 2).reverse()) if (phone && root.scrollHeight > FIRST_HEIGHT) unfold(s, false);
  };
  if (phone) all(".deferral").forEach((d) => { d.open = false; });
  const reveal = (id) => { const s = $(id)?.closest("section"); if (s) unfold(s); };
  addEventListener("beforeprint", () => all("main > section").forEach((s) => unfold(s)));
  const go = (id) => { section = id; write(); reveal(id); $(id).scrollIntoView(); };
  for (const a of all("a[href^='#']")) a.addEventListener("click", (e) => { e.preventDefault(); go(a.getAttribute("href").slice(1)); });
  const current = () => {
    let here = headings[0];
    for (const h of headings) if (h.getBoundingClientRect().top < innerHeight / 3) here = h;
    for (const [id, a] of links) {
      if (here && id === here.id) {
        if (a.getAttribute("aria-current") !== "true") { a.setAttribute("aria-current", "true"); list.scrollLeft = a.offsetLeft - list.clientWidth / 2 + a.clientWidth / 2; }
      } else a.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", current, { passive: true });
  current();

  // Numbers in words, as the report writes them.
  const general = (v, digits) => { // as Python's %g
    if (v === 0) return "0";
    const e = Number(v.toExponential(digits - 1).split("e")[1]);
    if (e < -4 || e >= digits) { const [m, x] = v.toExponential(digits - 1).split("e"); return `${m.includes(".") ? m.replace(/\.?0+$/, "") : m}e${x[0]}${x.slice(1).padStart(2, "0")}`; }
    const t = v.toFixed(Math.max(0, digits - 1 - e));
    return t.includes(".") ? t.replace(/\.?0+$/, "") : t;
  };
  const units = {
    percent: (v) => `${(v * 100).toFixed(2)} %`, plain: (v) => general(v, 4),
    short: (v) => { for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) if (Math.abs(v) >= size) return general(v / size, 4) + unit; return general(v, 4); } };

  // Pictures: what is drawn under the pointer, by arrow keys, and as files.
  const drawn = $("drawn") ? JSON.parse($("drawn").textContent) : {};
  const NS = "http://www.w3.org/2000/svg";
  const scale = (svg) => {
    const ends = svg.dataset.scales.split(" ").map(Number), [kx, ky] = svg.dataset.kinds.split(" ");
    const place = (kind, v, a, b, p, q) => { if (kind === "log") [v, a, b] = [v, a, b].map((n) => Math.log10(Math.max(n, 1e-300))); if (kind === "root") [v, a, b] = [v, a, b].map(Math.sqrt); return p + Math.min(1, Math.max(0, (v - a) / (b - a || 1))) * (q - p); };
    const panel = ([x0, x1, left, right, y0, y1, bottom, top]) => ({ left, right, top, bottom, x: (v) => place(kx, v, x0, x1, left, right), y: (v) => place(ky, v, y0, y1, bottom, top) });
    const panels = Array.from({ length: ends.length / 8 }, (_, i) => panel(ends.slice(8 * i, 8 * i + 8)));
    return { svg, name: svg.dataset.picture, panels, ...panels[0] };
  };
  const pictures = all("svg[data-picture]").map(scale);
  const cell = (v) => { const t = v === null || v === undefined ? "" : `${v}`; const safe = typeof v === "string" && /^[=+\-@\t\r]/.test(t) ? `'${t}` : t; return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe; };
  const csv = (d) => {
    const keys = [...new Set(["x", "y", ...d.series.flatMap((s) => Object.keys(s.columns))])];
    const head = ["series", ...keys.map((k) => ({ x: d.labels[0] || "month", y: d.labels[1] || "row" })[k] ?? k)];
    const said = (k, v) => d.names?.[{ x: 0, y: 1 }[k]]?.[v - 1] ?? v;
    const rows = d.series.flatMap((s) => s.columns.x.map((_, i) => [s.name, ...keys.map((k) => said(k, s.columns[k]?.[i]))]));
    return [head, ...rows].map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-family"];
  const standalone = (svg) => {
    const made = svg.cloneNode(true), from = all("*", svg), to = all("*", made);
    from.forEach((e, i) => { const style = getComputedStyle(e); for (const k of KEPT) to[i].setAttribute(k, style.getPropertyValue(k)); to[i].removeAttribute("class"); });
    all(".cursor", svg).forEach((e) => to[from.indexOf(e)].remove());
    made.setAttribute("xmlns", NS);
    for (const k of ["tabindex", "class"]) made.removeAttribute(k);
    const paper = document.createElementNS(NS, "rect");
    for (const [k, v] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(svg.closest("figure") ?? svg).backgroundColor]]) paper.setAttribute(k, v);
    made.prepend(paper);
    return new XMLSerializer().serializeToString(made);
  };
  for (const p of pictures) {
    const d = drawn[p.name], svg = p.svg;
    if (!d) continue;
    const tools = document.createElement("p");
    tools.className = "tools";
    tools.append(button("SVG", `Download ${p.name} as SVG`, () => save(`${p.name}.svg`, standalone(svg), "image/svg+xml")), " ",
      button("CSV", `Download the data of ${p.name} as CSV`, () => save(`${p.name}.csv`, csv(d), "text/csv")));
    const tip = document.createElement("div");
    tip.className = "tip"; tip.setAttribute("role", "status");
    svg.after(tools); svg.after(tip);
    const cursor = document.createElementNS(NS, "g");
    cursor.setAttribute("class", "cursor");
    const line = document.createElementNS(NS, "path"), ring = document.createElementNS(NS, "circle");
    ring.setAttribute("r", 5);
    cursor.append(line, ring); svg.append(cursor);
    svg.setAttribute("tabindex", "0");
    const write = [0, 1].map((i) => d.names?.[i]?.length ? (v) => d.names[i][v - 1] : units[d.units[i]]);
    const lines = d.series.map((s) => { const q = p.panels[s.panel ?? 0]; return { ...s, box: q, at: s.columns.x.map((x, i) => [x, s.columns.y[i]]).map(([x, y]) => x === null ? null : [q.x(x), y === null ? q.top : q.y(y)]) }; });
    let chosen = null;
    const show = (s, i) => {
      chosen = [s, i];
      const { columns, name, at, box } = lines[s];
      const [x, y] = [columns.x[i], columns.y[i]];
      line.setAttribute("d", `M${at[i][0]} ${box.top}V${box.bottom}`);
      ring.setAttribute("cx", at[i][0]); ring.setAttribute("cy", at[i][1]);
      cursor.classList.add("on");
      const more = ["threshold", "answers"].filter((k) => columns[k] && columns[k][i] !== null).map((k) => `${k} ${general(columns[k][i], 6)}`);
      const ends = columns.low ? [columns.low[i], columns.high[i], write[1]] : columns.left ? [columns.left[i], columns.right[i], write[0]] : [null];
      const band = ends[0] !== null ? [`${d.band} ${ends[2](ends[0])} to ${ends[2](ends[1])}`] : [];
      tip.textContent = [lines.length > 1 ? name : "", `${d.names?.[0]?.length ? "" : d.labels[0]} ${write[0](x)}`.trim(), `${d.labels[1]} ${y === null ? "infinite" : write[1](y)}`.trim(), ...more, ...band].filter(Boolean).join(" · ");
      tip.classList.add("on");
      highlight(svg.closest("[data-models]") ? name : null);
    };
    const hide = () => { cursor.classList.remove("on"); tip.classList.remove("on"); highlight(null); };
    const near = (event) => {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const x = (event.clientX - box.left) / box.width * view.width, y = (event.clientY - box.top) / box.height * view.height;
      let best = null, least = Infinity;
      lines.forEach((s, j) => {
        if (svg.dataset.hidden?.split("\n").includes(s.name)) return;
        s.at.forEach((q, i) => { if (q === null) return; const away = Math.hypot((q[0] - x) * (d.names?.[1]?.length ? 0.05 : 1), (q[1] - y) * (lines.length > 1 || d.names?.[1]?.length ? 1 : 0.05)); if (away < least) { least = away; best = [j, i]; } });
      });
      if (best) show(...best);
    };
    svg.addEventListener("pointermove", near);
    svg.addEventListener("pointerdown", near);
    svg.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse" && document.activeElement !== svg) hide(); });
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -Infinity], End: [0, Infinity], Escape: null }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      if (step === null) { hide(); return; }
      const [s, i] = chosen ?? [0, -1];
      const j = (s + step[0] + lines.length) % lines.length, n = lines[j].at.length;
      let k = Math.min(n - 1, Math.max(0, i + step[1]));
      while (lines[j].at[k] === null && k > 0 && k < n - 1) k += step[1] < 0 ? -1 : 1;
      if (lines[j].at[k] !== null) show(j, k);
    });
  }

  // Models of a comparison: highlight one, look at chosen ones.
  const ofModels = all("[data-model]");
  const highlight = (name) => { for (const e of ofModels) { e.classList.toggle("faint", name !== null && e.dataset.model !== name); e.classList.toggle("strong", name !== null && e.dataset.model === name); } };
  for (const e of all(".legend [data-model], tr[data-model]")) {
    e.addEventListener("pointerenter", () => highlight(e.dataset.model));
    e.addEventListener("pointerleave", () => highlight(null));
    e.addEventListener("focusin", () => highlight(e.dataset.model));
    e.addEventListener("focusout", () => highlight(null));
  }
  const boxes = all("input[data-shows]");
  const choose = () => {
    const hidden = boxes.filter((b) => !b.checked).map((b) => b.dataset.shows);
    for (const e of ofModels) if (!e.closest(".legend")) e.classList.toggle("gone", hidden.includes(e.dataset.model));
    for (const e of all("[data-pair]")) e.classList.toggle("gone", JSON.parse(e.dataset.pair).some((m) => hidden.includes(m)));
    for (const p of pictures) p.svg.dataset.hidden = hidden.join("\n");
  };
  for (const b of boxes) b.addEventListener("change", () => { set("without", boxes.filter((x) => !x.checked).map((x) => x.dataset.shows).join("|")); choose(); });
  if (boxes.length) follow(() => { const off = (state.get("without") ?? "").split("|"); for (const b of boxes) b.checked = !off.includes(b.dataset.shows); choose(); });

  // Tables: sort by a column, search, copy.
  const numeric = (t) => { const m = t.replaceAll(",", "").replace(/−/g, "-").match(/-?\+?(\d+\.?\d*(e[+-]?\d+)?)\s*([kMG])?/); return m ? Number(m[0].replace(/\s*[kMG]$/, "")) * ({ k: 1e3, M: 1e6, G: 1e9 }[m[3]] ?? 1) : t === "infinite" ? Infinity : NaN; };
  all(".scroll table:not(.matrix)").forEach((table, number) => {
    const body = table.tBodies[0], rows = [...body.rows], key = `t${number}`;
    if (rows.length < 2) return;
    const heads = [...table.tHead.rows[0].cells];
    const bar = document.createElement("p");
    bar.className = "tools";
    const sort = (column, down) => {
      heads.forEach((h, i) => { if (i === column) h.setAttribute("aria-sort", down ? "descending" : "ascending"); else h.removeAttribute("aria-sort"); });
      const value = rows.map((r) => r.cells[column]?.textContent.trim() ?? "");
      const numbers = value.map(numeric), words = heads[column].classList.contains("n") ? 0 : value.filter((v) => v && !/^[-+−]?[\d.]/.test(v)).length;
      const order = rows.map((_, i) => i).sort((a, b) => {
        if (words) return (down ? -1 : 1) * value[a].localeCompare(value[b]) || a - b;
        if (Number.isNaN(numbers[a]) || Number.isNaN(numbers[b])) return Number.isNaN(numbers[a]) - Number.isNaN(numbers[b]) || a - b;
        return (down ? numbers[b] - numbers[a] : numbers[a] - numbers[b]) || a - b;
      });
      body.append(...order.map((i) => rows[i]));
    };
    heads.forEach((h, i) => {
      if (!h.textContent.trim()) return;
      const b = document.createElement("button");
      b.type = "button"; b.className = "sort"; b.append(...h.childNodes); h.append(b);
      b.addEventListener("click", () => { const down = h.getAttribute("aria-sort") === "ascending"; set(key, `${down ? "-" : ""}${i + 1}`); sort(i, down); });
    });
    if (rows.length > 7) {
      const box = document.createElement("input");
      box.type = "search"; box.placeholder = "Search"; box.setAttribute("aria-label", `Search ${table.closest(".scroll").ariaLabel}`);
      const look = () => { const q = box.value.trim().toLowerCase(); for (const r of rows) r.hidden = q !== "" && !r.textContent.toLowerCase().includes(q); };
      box.addEventListener("input", () => { set(`${key}q`, box.value); look(); });
      follow(() => { box.value = state.get(`${key}q`) ?? ""; look(); });
      bar.append(box, " ");
    }
    bar.append(button("Copy", `Copy ${table.closest(".scroll").ariaLabel}`, () => copy([table.tHead.rows[0], ...[...body.rows].filter((r) => !r.hidden && !r.classList.contains("gone"))].map((r) => [...r.cells].map((c) => c.textContent.trim()).join("\t")).join("\n"))));
    table.closest(".scroll").before(bar);
    follow(() => { const s = Number(state.get(key)); if (heads[Math.abs(s) - 1]) sort(Math.abs(s) - 1, s < 0); });
  });
  fold();
  if (section && $(section)) { reveal(section); $(section).scrollIntoView(); }
  for (const code of all(".steps code")) code.after(button("Copy", `Copy ${code.textContent}`, () => copy(code.textContent)));

  return { $, all, state, set, follow, save, copy, general, pictures };
})();
