// Decide in the page: by share, by cost or by guarantee; the command and the policy of it.
(() => {
  "use strict";
  const { $, all, state, set, follow, save, copy, general, pictures } = howsure;
  const slider = $("operating");
  if (!slider) return;
  const rows = JSON.parse($("rows").textContent), { deciding, reading, policy, calibrator, score } = rows.decide;
  const percent = (v, digits = 1) => `${(v * 100).toFixed(digits)} %`;
  const whole = (v) => Math.round(v).toLocaleString("en-US");
  const cases = (share) => { const v = 1000 * share; return v > 0 && v < 0.5 ? "fewer than 1" : `${Math.round(v)}`; };
  const bars = all("[data-class]");
  const shown = new Map(all("[data-shown]").map((e) => [e.dataset.shown, []]));
  for (const e of all("[data-shown]")) shown.get(e.dataset.shown).push(e);
  const put = (name, text) => { for (const e of shown.get(name) ?? []) e.textContent = text; };
  const shades = pictures.map((p) => [p, all(".deferred", p.svg)]).filter(([, e]) => e.length);
  const points = Object.fromEntries(["risk", "threshold"].map((n) => [n, pictures.find((p) => p.name === n)]));
  const markers = Object.fromEntries(Object.entries(points).map(([n, p]) => [n, [p.svg.querySelector(".point"), p.svg.querySelector(".point circle")]]));
  const move = (name, x, y) => { markers[name][0].setAttribute("transform", `translate(${points[name].x(x)} 0)`); markers[name][1].setAttribute("cy", points[name].y(y)); };

  const SHARES = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5];
  const COSTS = [0, ...[0.1, 1, 10, 100, 1000, 10000].flatMap((s) => [1, 1.5, 2, 3, 5, 7].map((m) => Number((m * s).toPrecision(3))))];
  const STOPS = { error: COSTS, deferral: COSTS.filter((c) => c <= 1000), expert: SHARES, risk: deciding?.guarantee ? [...new Set(deciding.guarantee.steps.map((s) => s.risk))] : SHARES.slice(1) };
  const dials = Object.fromEntries(Object.entries(STOPS).map(([name, stops]) => [name, { stops, box: $(name), range: document.querySelector(`[data-dial=${name}]`), usual: $(name).value }]));
  const value = (name) => { const v = Number(dials[name].box.value); return Number.isFinite(v) && v >= 0 ? v : 0; };
  const nearest = (stops, v) => stops.reduce((best, s, i) => Math.abs(s - v) < Math.abs(stops[best] - v) ? i : best, 0);

  // The point of each way: {threshold, kept, wrong, n, low, high, rule, options, guarantee}.
  const at = (p, i) => ({ threshold: p.threshold[i], kept: p.kept[i], wrong: p.wrong[i], n: deciding ? deciding.n : rows.n, low: p.low?.[i], high: p.high?.[i] });
  const NONE = { risk: NaN, delta: NaN, bound: NaN };
  const byShare = () => {
    const i = Number(slider.value), asked = rows.asked?.[i];
    const n = deciding ? deciding.n : rows.n, kept = rows.kept ? rows.kept[i] : rows.coverage[i] * n, wrong = rows.wrong ? rows.wrong[i] : kept * (1 - rows.accuracy[i]);
    const exact = { threshold: rows.threshold[i], kept, wrong, n, low: rows.low?.[i], high: rows.high?.[i] };
    return { ...exact, row: i, rule: `coverage at least ${general(asked ?? rows.coverage[i], 6)}`, options: `--coverage ${general(asked ?? rows.coverage[i], 6)}`, ...NONE };
  };
  const byCost = () => {
    const [error, deferral, expert] = ["error", "deferral", "expert"].map(value), { corners, n } = deciding;
    const asked = deferral + error * expert;
    const cost = corners.kept.map((k, i) => (error * corners.wrong[i] + asked * (n - k)) / n);
    const least = Math.min(...cost) + 1e-12 * Math.max(1, error, asked);
    let best = 0;
    cost.forEach((c, i) => { if (c <= least) best = i; });
    $("priced").textContent = `Per case: ${general(cost[best], 4)} at this threshold, ${general(cost[cost.length - 1], 4)} deciding everything, ${general(cost[0], 4)} deferring everything.`;
    const g = (v) => general(v, 6);
    return { ...at(corners, best), rule: `least cost: error ${g(error)}, deferral ${g(deferral)}, expert wrong ${g(expert)}`, options: `--error-cost ${g(error)} --deferral-cost ${g(deferral)} --expert-error ${g(expert)}`, ...NONE };
  };
  // Guarantees are those of the report: of the risk that is asked for, or of the next stricter one that was computed.
  const byGuarantee = () => {
    const asked = value("risk"), delta = Number($("delta").value), { guarantee, corners, n } = deciding, g = (v) => general(v, 6);
    const offered = (guarantee?.steps ?? []).filter((s) => s.delta === delta && s.risk <= asked), step = offered[offered.length - 1];
    const risk = step ? step.risk : asked, options = `--risk ${g(risk)} --delta ${g(delta)}`, rule = `risk of the accepted at most ${g(risk)} with probability ${g(1 - delta)} (joint limits)`;
    const nothing = { ...at(corners, 0), rule, options, risk, delta, bound: NaN, feasible: false }, say = (text) => { $("guaranteed").textContent = text; };
    if (!guarantee) { say(deciding.why); return nothing; }
    if (!step) { say(`Guarantees are offered for ${g(guarantee.steps[0].risk * 100)} % wrong and more; the command takes any.`); return nothing; }
    if (step.point === null) { say(`Not enough labels to guarantee at most ${g(risk * 100)} % errors: allow more, or collect more labels.`); return nothing; }
    say(`Guaranteed: at most ${g(risk * 100)} % wrong among such answers (${g((1 - delta) * 100)} % confidence where this limit was chosen beforehand; at this threshold alone at most ${percent(step.bound, 2)}). The labels must have trained neither model nor calibrator.`);
    return { ...at(guarantee.points, step.point), rule, options, risk, delta, bound: step.bound };
  };

  const way = () => all("input[name=way]").find((e) => e.checked).value;
  let now = null;
  const show = () => {
    const how = deciding ? way() : "share";
    for (const e of all(".way")) e.classList.toggle("gone", e.dataset.way !== how);
    for (const d of Object.values(dials)) { d.range.max = d.stops.length - 1; d.range.value = nearest(d.stops, Number(d.box.value)); d.range.setAttribute("aria-valuetext", d.box.value); }
    now = { share: byShare, cost: byCost, guarantee: byGuarantee }[how]();
    const coverage = now.kept / now.n, accuracy = now.kept ? (now.kept - now.wrong) / now.kept : NaN;
    const none = !(now.kept > 0);
    put("coverage", percent(coverage));
    put("threshold", none ? "defer all" : now.threshold === null ? "none" : general(now.threshold, now.threshold >= 0.99 && now.threshold < 1 ? 7 : 4));
    put("accuracy", none ? "none" : percent(accuracy, 2));
    put("limits", none || now.low === undefined ? "none" : `${(now.low * 100).toFixed(2)} … ${(now.high * 100).toFixed(2)} %`);
    put("wrong", `${whole(now.wrong)} of ${whole(now.kept)}`);
    put("errors", cases(now.wrong / now.n));
    put("deferred", cases(1 - coverage));
    slider.setAttribute("aria-valuetext", `${percent(coverage)} decided alone, ${none ? "none" : percent(accuracy, 2)} of these right`);
    move("risk", coverage, none ? 0 : 1 - accuracy);
    move("threshold", 1 - coverage, none ? 1 : accuracy);
    for (const [p, rects] of shades) for (const r of rects) r.setAttribute("width", Math.max(0, (none ? p.right : p.x(now.threshold)) - p.left));
    const row = now.row ?? nearest(rows.coverage, coverage);
    bars.forEach((e, c) => { const v = none ? 1 : rows.classes[c][row]; e.querySelector("progress").value = v; e.querySelector("span + span").textContent = percent(v); });
    const which = score === "max_prob" ? "" : ` --score ${score}`, corrected = calibrator ? ` --calibrator ${calibrator}` : "";
    $("command").textContent = `howsure threshold ${reading ?? "FILE"} ${now.options}${which}${corrected} -o policy.json`;
    $("download-policy").disabled = none || calibrator || now.feasible === false || policy.n !== now.n;
    if (parent !== window) parent.postMessage({ howsure: { threshold: none ? null : now.threshold, coverage, rule: now.rule } }, "*"); // a notebook that shows this page
    $("taken").textContent = calibrator ? "The policy holds the calibrator too: the command writes it." : "";
  };
  const moved = () => {
    const how = way();
    set("way", how, "share"); set("at", how === "share" ? slider.value : "", how === "share" ? slider.defaultValue : "");
    for (const [name, d] of Object.entries(dials)) set(name, d.box.value, d.usual);
    set("delta", $("delta").value, "0.05");
    show();
  };
  slider.addEventListener("input", moved);
  for (const e of all("input[name=way]")) e.addEventListener("change", moved);
  for (const d of Object.values(dials)) {
    d.range.addEventListener("input", () => { d.box.value = d.stops[d.range.value]; moved(); });
    d.box.addEventListener("input", moved);
  }
  $("delta").addEventListener("change", moved);
  if (!deciding) $("ways").remove();
  for (const [name, p] of Object.entries(points)) {
    const column = name === "risk" ? rows.coverage : rows.coverage.map((v) => 1 - v);
    const drag = (event) => {
      const box = p.svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * p.svg.viewBox.baseVal.width;
      slider.value = nearest(column.map(p.x), x);
      if ($("way-share")) $("way-share").checked = true;
      moved();
    };
    p.svg.addEventListener("pointerdown", (event) => { p.svg.setPointerCapture(event.pointerId); drag(event); });
    p.svg.addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });
  }

  // The policy as `howsure threshold` writes it, to the byte: Python's floats, its JSON, and the digest.
  class Float { constructor(v) { this.v = v; } }
  const python = (v) => { // repr of a float
    if (v === 0) return "0.0";
    const [m, e] = Math.abs(v).toExponential().split("e"), digits = m.replace(".", ""), x = Number(e), sign = v < 0 ? "-" : "";
    if (x < -4 || x >= 16) return `${sign}${digits[0]}${digits.length > 1 ? `.${digits.slice(1)}` : ""}e${x < 0 ? "-" : "+"}${`${Math.abs(x)}`.padStart(2, "0")}`;
    if (x < 0) return `${sign}0.${"0".repeat(-x - 1)}${digits}`;
    return digits.length > x + 1 ? `${sign}${digits.slice(0, x + 1)}.${digits.slice(x + 1)}` : `${sign}${digits.padEnd(x + 1, "0")}.0`;
  };
  const float = (v) => Number.isFinite(v) ? new Float(v) : { float: Number.isNaN(v) ? "nan" : v > 0 ? "inf" : "-inf" };
  const text = (v) => v instanceof Float ? python(v.v) : JSON.stringify(v);
  const ascii = (t) => t.replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const plain = (v) => v !== null && typeof v === "object" && !(v instanceof Float);
  const canonical = (v) => !plain(v) ? ascii(text(v)) : Array.isArray(v) ? `[${v.map(canonical).join(",")}]`
    : `{${Object.keys(v).sort().map((k) => `${ascii(JSON.stringify(k))}:${canonical(v[k])}`).join(",")}}`;
  const pretty = (v, start = "\n") => {
    if (!plain(v)) return text(v);
    if (Array.isArray(v)) return `[${v.map(text).join(", ")}]`;
    const inner = `${start} `, keys = Object.keys(v);
    return keys.length ? `{${inner}${keys.map((k) => `${JSON.stringify(k)}: ${pretty(v[k], inner)}`).join(`,${inner}`)}${start}}` : "{}";
  };
  const sha256 = (message) => { // FIPS 180-4; crypto.subtle is not everywhere
    const primes = [], K = [], H = [];
    for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
    const frac = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32);
    primes.forEach((p, i) => { K[i] = frac(Math.cbrt(p)); if (i < 8) H[i] = frac(Math.sqrt(p)); });
    const bytes = [...new TextEncoder().encode(message)], bits = bytes.length * 8;
    bytes.push(0x80);
    while (bytes.length % 64 !== 56) bytes.push(0);
    for (let i = 7; i >= 0; i--) bytes.push(Math.floor(bits / 2 ** (8 * i)) & 255);
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    for (let b = 0; b < bytes.length; b += 64) {
      const w = Array.from({ length: 16 }, (_, i) => bytes.slice(b + 4 * i, b + 4 * i + 4).reduce((a, c) => (a << 8) | c, 0));
      for (let i = 16; i < 64; i++) {
        const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3), s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
        w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
      }
      let [a, c, d, e, f, g, h, k] = H;
      for (let i = 0; i < 64; i++) {
        const one = (k + (turn(f, 6) ^ turn(f, 11) ^ turn(f, 25)) + ((f & g) ^ (~f & h)) + K[i] + w[i]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & c) ^ (a & d) ^ (c & d))) | 0;
        [k, h, g, f, e, d, c, a] = [h, g, f, (e + one) | 0, d, c, a, (one + two) | 0];
      }
      [a, c, d, e, f, g, h, k].forEach((x, i) => { H[i] = (H[i] + x) | 0; });
    }
    return H.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  };
  const document_ = () => {
    const kept = now.kept, digests = policy.sha256;
    const guarantee = { class: "Guarantee", rule: now.rule, risk: float(now.risk), delta: float(now.delta), bound: float(now.bound), feasible: kept > 0, labels_needed: null, groups: null, why: "", tested: [] };
    const basis = { class: "Basis", n: policy.n, coverage: float(kept / now.n), accuracy: float((kept - now.wrong) / kept), source: policy.source, sha256: digests.length === 1 ? digests[0] : digests.length ? sha256(digests.join("")) : "" };
    const made = { class: "Policy", score: policy.score, threshold: float(now.threshold), calibrator: null, by: null, keys: [], thresholds: [], costs: null, k: policy.k, class_names: policy.class_names, guarantee, guarantees: [], basis, read: null, asked: null, suggestions: null, following: [] };
    const head = { howsure: policy.howsure, schema: 1 }, digest = `sha256:${sha256(canonical({ ...head, value: made }))}`;
    return `${pretty({ ...head, digest, value: made })}\n`;
  };
  $("copy-command").addEventListener("click", async () => { await copy($("command").textContent); $("taken").textContent = "Copied."; });
  $("download-policy").addEventListener("click", () => { save("policy.json", document_(), "application/json"); $("taken").textContent = "Use it: howsure decide policy.json FILE"; });

  follow(() => {
    const chosen = $(`way-${state.get("way") ?? "share"}`);
    if (chosen) chosen.checked = true;
    slider.value = state.get("at") ?? slider.defaultValue;
    for (const [name, d] of Object.entries(dials)) d.box.value = state.get(name) ?? d.usual;
    $("delta").value = state.get("delta") ?? "0.05";
    if (!$("delta").value) $("delta").value = "0.05"; // an address may name one that is not offered
    show();
  });
  for (const e of all("input[name=bins]")) e.addEventListener("change", () => set("bins", e.id.slice(5), "equal_range"));
  follow(() => { const e = $(`bins-${state.get("bins") ?? "equal_range"}`); if (e) e.checked = true; });
})();

// A second threshold, on the probability of the positive class.
(() => {
  "use strict";
  const { $, all, state, set, follow } = howsure;
  const slider = $("calling");
  if (!slider || !$("calls")) return;
  const c = JSON.parse($("calls").textContent);
  const share = (a, b) => b ? `${(100 * a / b).toFixed(1)} % (${Math.round(a).toLocaleString("en-US")} of ${Math.round(b).toLocaleString("en-US")})` : "none";
  const show = () => {
    const i = Number(slider.value) - 1, [tp, fp, fn, tn] = ["true_positive", "false_positive", "false_negative", "true_negative"].map((k) => c[k][i]);
    const said = { threshold: c.threshold[i].toFixed(2), missed: share(fn, tp + fn), sensitivity: share(tp, tp + fn), specificity: share(tn, tn + fp), ppv: share(tp, tp + fp), npv: share(tn, tn + fn), counts: share(tp + fp, tp + fp + fn + tn) };
    for (const e of all("[data-called]")) e.textContent = said[e.dataset.called];
    slider.setAttribute("aria-valuetext", `from ${said.threshold} on: sensitivity ${said.sensitivity}, specificity ${said.specificity}`);
  };
  slider.addEventListener("input", () => { set("call", slider.value, slider.defaultValue); show(); });
  follow(() => { slider.value = state.get("call") ?? slider.defaultValue; show(); });
})();
