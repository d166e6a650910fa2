// The frame: files, questions, answers. It sees the data and may connect to nothing.
"use strict";
const $ = (id) => document.getElementById(id);
const PARTS = ["logits", "probs", "confidence", "labels", "correct", "prediction", "ids", "group", "weight", "count"];
const KINDS = { html: "text/html", json: "application/json", md: "text/markdown", txt: "text/plain" };
const state = { runtime: null, worker: null, ready: false, files: new Map(), waiting: new Map(), next: 1, running: null };
window.howsure = { state, ask };

function make(tag, properties = {}, ...inside) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...inside);
  return e;
}

// ---- Python

function begin() {
  state.ready = false;
  const source = new Blob([state.runtime["worker.js"]], { type: "text/javascript" });
  const worker = new Worker(URL.createObjectURL(source));
  state.worker = worker;
  worker.onmessage = ({ data }) => worker === state.worker && hear(data);
  worker.onerror = (e) => worker === state.worker && doing(`Python could not be started: ${e.message}`);
  worker.postMessage({ runtime: state.runtime });
}

function hear(data) {
  if (data.stage) return started(data);
  if (data.id === undefined) return doing(`Python could not be started: ${data.failed}`);
  const asked = state.waiting.get(data.id);
  if (!asked) return;
  if (data.note) return asked.note(data.note);
  if (data.working) return asked.working(data.working);
  state.waiting.delete(data.id);
  asked.resolve(data);
}

async function started({ stage, seconds }) {
  (state.times ??= {})[stage] = seconds;
  if (stage !== "howsure") return doing(`${stage} is there …`);
  state.ready = true;
  state.worker.postMessage({ id: 0, files: [...state.files].map(([name, f]) => [name, f.bytes]) });
  doing(`ready, started in ${seconds.toFixed(1)} s`, true);
  if (state.files.size) await settle([...state.files.keys()]);
  else show();
}

function ask(message, note = () => {}, working = () => {}) {
  const id = state.next++;
  return new Promise((resolve) => {
    state.waiting.set(id, { resolve, note, working });
    state.worker.postMessage({ ...message, id });
  });
}

function doing(text, done = false) {
  $("doing").textContent = text;
  $("bar").hidden = done;
}

// ---- files

async function add(files) {
  for (const file of files) {
    const bytes = await file.arrayBuffer();
    state.files.set(file.name, { bytes, names: {}, found: null, all: [file.name] });
    if (state.ready) await ask({ files: [[file.name, bytes]] });
  }
  if (state.ready) await settle(files.map((file) => file.name));
  else show();
}

// NumPy files that belong together are one: the first stands for all. What a new file changes is looked at again.
async function settle(added) {
  const names = JSON.stringify([...state.files.keys()]);
  const { out } = await ask({ python: `import json; from howsure.formats.contents import group_files; json.dumps(group_files(${names}))` });
  const groups = JSON.parse(out);
  for (const [name, file] of state.files) file.all = groups[name];
  for (const [name, all] of Object.entries(groups)) if (all.some((one) => added.includes(one))) await look(name);
  show();
}

const heads = () => [...state.files.keys()].filter((name) => state.files.get(name).all);

async function sample() {
  const path = "/lib/python3.13/site-packages/howsure/data/fashion_mnist_cnn.npz";
  const { out } = await ask({ python: `import shutil; shutil.copy("${path}", "fashion_mnist_cnn.npz")` });
  state.files.set("fashion_mnist_cnn.npz", { bytes: new ArrayBuffer(0), names: {}, found: null, all: [], sample: out });
  await settle(["fashion_mnist_cnn.npz"]);
}

const named = (file) => Object.entries(file.names).flatMap(([item, part]) => ["--name", `${part}=${item}`]);

// A name that begins with a dash would be an option.
const path = (name) => (name.startsWith("-") ? `./${name}` : name);

async function look(name) {
  const file = state.files.get(name);
  const answer = await ask({ args: ["doctor", path(name), "--json", ...named(file)] });
  try {
    [file.found] = JSON.parse(answer.out);
  } catch {
    const said = (answer.err || answer.failed).trim().replace(/^howsure: /, "").replace(/\.$/, "");
    const [what, lacking] = said.split(": pip install ");
    const fix = lacking ? `Pyodide has none; save it as npz, csv or jsonl (${convert(name)}), or use howsure on the command line` : "";
    file.found = { holds: null, problems: [{ where: name, what, fix, stops: true }] };
  }
}

// A line that makes a file of another kind, where Python is: tables need no howsure there.
function convert(name) {
  const [, stem, kind] = /^(.*)\.(\w+)$/.exec(name) ?? [null, name, ""];
  const reader = { parquet: "read_parquet", arrow: "read_feather", feather: "read_feather" }[kind.toLowerCase()];
  if (reader) return `python -c "import pandas; pandas.${reader}('${name}').to_csv('${stem}.csv', index=False)"`;
  return `python -c "import howsure as hs; hs.write(hs.read('${name}'), '${stem}.npz')"`;
}

function show() {
  $("files").replaceChildren(...heads().map((name) => card(name, state.files.get(name))));
  $("job").hidden = !state.files.size;
  $("hint").hidden = !!state.files.size;
  $("sample").disabled = !state.ready;
  options();
}

function card(name, file) {
  const shown = file.all.join(", ");
  const remove = make("button", { type: "button", textContent: "Remove", ariaLabel: `Remove ${shown}` });
  remove.onclick = () => {
    for (const one of file.all) state.files.delete(one);
    if (state.ready) ask({ gone: file.all });
    show();
  };
  const found = file.found;
  const head = make("h2", {}, shown, make("span", { textContent: found?.holds?.format ?? (found ? "" : "waiting for Python …") }), remove);
  const items = found?.holds ? [make("div", { className: "scroll" }, table(name, file, found.holds.items))] : [];
  const problems = (found?.problems ?? []).map(problem);
  const good = found?.holds && !found.problems.length ? [make("p", { textContent: "No problems." })] : [];
  return make("li", {}, head, ...items, ...problems, ...good);
}

function problem(p) {
  const text = `${p.stops ? "Stops: " : "Doubtful: "}${p.where}: ${p.what}${p.fix ? `; ${p.fix}` : ""}.`;
  const anyway = p.anyway ? ` Can be evaluated anyway: ${p.anyway}.` : "";
  return make("p", { className: p.stops ? "problem" : "problem doubtful", textContent: text + anyway });
}

function table(name, file, items) {
  const head = make("tr", {}, ...["name", "shape", "type", "read as"].map((t) => make("th", { scope: "col", textContent: t })));
  const many = items.length > 30;
  const rows = items.slice(0, 30).map((item) => {
    const choice = make("select", { ariaLabel: `${item.name} is read as` });
    choice.append(new Option(item.part || "–", ""), ...PARTS.filter((p) => p !== item.part).map((p) => new Option(p, p)));
    choice.value = file.names[item.name] ?? "";
    choice.onchange = async () => {
      if (choice.value) file.names[item.name] = choice.value;
      else delete file.names[item.name];
      await look(name);
      show();
    };
    const cells = [item.name, item.shape.map((n) => n.toLocaleString("en")).join(" × "), item.dtype];
    return make("tr", {}, ...cells.map((t) => make("td", { textContent: t })), make("td", {}, choice));
  });
  if (many) rows.push(make("tr", {}, make("td", { colSpan: 4, textContent: `and ${items.length - 30} more` })));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

// ---- questions

const task = () => document.querySelector("input[name=task]:checked").value;
const splits = (name) => (state.files.get(name)?.found?.holds?.splits ?? []).filter(Boolean);

function pick(id, label, values, preferred) {
  const old = $(id)?.value;
  const e = make("select", { id });
  e.append(...values.map((v) => new Option(v, v)));
  e.value = values.includes(old) ? old : values.includes(preferred) ? preferred : (values[0] ?? "");
  e.onchange = options;
  return [make("label", {}, label, e), e];
}

function number(id, label, value) {
  const e = make("input", { id, value: $(id)?.value ?? value });
  e.oninput = command;
  return make("label", {}, label, e);
}

function options() {
  const names = heads();
  const parts = [];
  const from = (id, label, preferred, file) => {
    const [of, chosen] = pick(id, label, names, file);
    parts.push(of);
    if (splits(chosen.value).length > 1) parts.push(pick(`${id}_split`, "its split", splits(chosen.value), preferred)[0]);
  };
  if (task() === "evaluate" || task() === "compare") {
    const every = [...new Set(names.flatMap(splits))];
    if (every.length > 1) parts.push(pick("split", "Split", every, "test")[0]);
  } else {
    from("fit", task() === "calibrate" ? "Fit on" : "Choose on", "val", names[0]);
    if (task() === "threshold") {
      parts.push(pick("rule", "What must hold?", ["risk", "accuracy", "coverage"], "risk")[0]);
      parts.push(number("value", { risk: "Most errors among the accepted", accuracy: "Accuracy of the accepted", coverage: "Share accepted" }[parts.at(-1).lastChild.value], "0.05"));
    }
    from("on", task() === "calibrate" ? "Judge on" : "Check on", "test", names.at(-1));
  }
  $("options").replaceChildren(...parts);
  command();
}

function arguments_() {
  const names = heads();
  const value = (id) => $(id)?.value ?? "";
  const chosen = (id) => path(value(id));
  const option = (name, id) => (value(id) ? [name, value(id)] : []);
  const naming = names.flatMap((name) => named(state.files.get(name)));
  const more = $("more").value.trim().split(/\s+/).filter(Boolean);
  const shown = {
    evaluate: () => ["evaluate", ...names.map(path), ...option("--split", "split")],
    compare: () => ["compare", ...names.map(path), ...option("--split", "split")],
    calibrate: () => ["calibrate", "--fit", chosen("fit"), ...option("--split", "fit_split"), "--on", chosen("on"), ...option("--on-split", "on_split")],
    threshold: () => ["threshold", chosen("fit"), ...option("--split", "fit_split"), `--${value("rule")}`, value("value"), ...(same() ? [] : ["--on", chosen("on"), ...option("--on-split", "on_split")])],
  }[task()]();
  return [...shown, ...naming, ...more];
}

const same = () => $("fit")?.value === $("on")?.value && ($("fit_split")?.value ?? "") === ($("on_split")?.value ?? "");
const WANTED = {
  evaluate: ["report.html", "report.json", "report.md"],
  compare: ["report.html", "report.json", "report.md"],
  calibrate: ["report.html", "calibrator.json"],
  threshold: ["policy.json"],
};

function outputs() {
  const wanted = WANTED[task()].map((name) => `/results/${name}`); // where the worker looks for them
  if (task() === "calibrate") return ["--html", wanted[0], "-o", wanted[1]];
  return wanted.flatMap((name) => ["-o", name]);
}

function command() {
  const quoted = (a) => (/^[\w./=,:+-]+$/.test(a) ? a : `'${a.replaceAll("'", "'\\''")}'`);
  $("command").textContent = ["howsure", ...arguments_()].map(quoted).join(" ");
  $("run").disabled = !state.ready || !!state.running;
}

// ---- answers

async function run() {
  const began = performance.now();
  state.stages = [];
  const tick = () => doing(`${state.stages.at(-1) ?? "starting"} … ${((performance.now() - began) / 1000).toFixed(0)} s`);
  const reached = (stage) => {
    state.stages.push(stage);
    const [, part, of] = / (\d+) of (\d+): /.exec(stage) ?? [];
    if (of) $("bar").value = (part - 1) / of;
    else $("bar").removeAttribute("value");
    tick();
  };
  const clock = setInterval(tick, 500);
  state.running = clock;
  $("cancel").hidden = false;
  $("result").hidden = true;
  $("bar").removeAttribute("value");
  tick();
  command();
  const notes = [];
  const note = (line) => line.startsWith("wrote ") || ($("notes").textContent = (notes.push(line), notes.join("\n")));
  $("notes").textContent = "";
  const answer = await ask({ args: [...arguments_(), ...outputs()], wanted: WANTED[task()] }, note, reached);
  stop(`done in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  answered(answer);
}

function stop(text) {
  clearInterval(state.running);
  state.running = null;
  $("cancel").hidden = true;
  doing(text, true);
  command();
}

function answered({ code, out, err, written, failed }) {
  const bad = failed ?? (code === 0 || code === 1 || code === 3 ? "" : err.trim() || `exit code ${code}`);
  $("result").hidden = false;
  $("error").hidden = !bad;
  $("error").textContent = bad.replace(/^howsure: /, "");
  $("notes").hidden = !!bad;
  $("text").hidden = !out?.trim();
  $("text").textContent = out ?? "";
  $("downloads").replaceChildren(...(written ?? []).map(([name, bytes]) => download(name, bytes)));
  const html = (written ?? []).find(([name]) => name.endsWith(".html"));
  $("report").replaceChildren(...(html ? [view(new TextDecoder().decode(html[1]))] : []));
  $("text").hidden ||= !!html && task() !== "calibrate";
  state.answer = { code, out, err, failed, written: Object.fromEntries((written ?? []).map(([n, b]) => [n, new TextDecoder().decode(b)])) };
  $("result").scrollIntoView({ block: "start" });
}

function download(name, bytes) {
  const type = KINDS[name.split(".").at(-1)] ?? "application/octet-stream";
  return make("a", { href: URL.createObjectURL(new Blob([bytes], { type })), download: name, textContent: `Download ${name}` });
}

function view(html) {
  const frame = make("iframe", { title: "Report" });
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.srcdoc = html.replace("<head>", `<head><script>${$("guard").textContent}<\/script>`);
  return frame;
}

function cancel() {
  state.worker.terminate();
  state.waiting.clear();
  stop("stopped; Python starts again …");
  $("bar").hidden = false;
  for (const [name, file] of state.files) if (file.sample) state.files.delete(name);
  begin();
  command();
}

// ---- events

$("pick").onchange = (e) => add([...e.target.files]).then(() => (e.target.value = ""));
$("sample").onclick = sample;
$("sample").disabled = true;
$("run").onclick = run;
$("job").onchange = (e) => e.target.name === "task" && options();
$("more").oninput = command;
$("cancel").onclick = cancel;
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  addEventListener(kind, (e) => {
    e.preventDefault();
    $("drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop") add([...e.dataTransfer.files]);
  });
}
addEventListener("message", ({ source, data }) => {
  if (source !== parent) return;
  if (data.loaded) {
    $("bar").value = data.loaded / data.all;
    doing(`loading Python … ${(data.loaded / 1e6).toFixed(1)} of ${(data.all / 1e6).toFixed(1)} MB`);
  }
  if (data.failed) doing(`Python could not be loaded: ${data.failed}`, true);
  if (data.runtime) {
    state.runtime = data.runtime;
    begin();
  }
});
parent.postMessage("hello", "*");
