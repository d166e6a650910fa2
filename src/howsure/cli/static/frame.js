// The frame: files, questions, answers. It sees the data and may connect to nothing. What a file holds, what is wrong
// with it and what its buttons do is decided by Python (howsure.cli.app); this script shows it.
"use strict";
const $ = (id) => document.getElementById(id);
const PARTS = ["logits", "probs", "confidence", "score", "labels", "correct", "prediction", "ids", "group", "weight", "count"];
const SHOWN_COLUMNS = 30;
const OPEN_COLUMNS = 8; // a longer table is folded where all is well
const STEPS = ["Python", "NumPy", "howsure"]; // what the worker says when each is there
const STARTING = ["Starting Python", "Loading NumPy", "Loading howsure"];
const DOWNLOAD_SHARE = 0.5; // of the bar
const KINDS = { html: "text/html", json: "application/json", md: "text/markdown" };
const WANTED = {
  evaluate: ["report.html", "report.json", "report.md"],
  compare: ["report.html", "report.json", "report.md"],
  calibrate: ["report.html", "calibrator.json"],
  threshold: ["policy.json"],
};
const VALUES = { risk: "Most errors among the accepted", accuracy: "Accuracy of the accepted", coverage: "Share accepted" };
const state = { runtime: null, worker: null, ready: false, files: new Map(), waiting: new Map(), next: 1, running: null };
window.howsure = { state, ask };

function make(tag, properties = {}, ...inside) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...inside);
  return e;
}

// ---- what it is doing

// The stage is read out by a screen reader, the detail beside it is not: it changes many times a second.
function doing(text, { detail = "", look = "", share } = {}) {
  if ($("doing").textContent !== text) $("doing").textContent = text;
  $("detail").textContent = detail;
  $("state").className = `card ${look}`;
  if (share === undefined) $("bar").removeAttribute("value");
  else $("bar").value = share;
}

function step(now) {
  [...$("steps").children].forEach((e, i) => (e.className = i < now ? "done" : i === now ? "now" : ""));
}

// ---- Python

function begin() {
  state.ready = false;
  const source = new Blob([state.runtime["worker.js"]], { type: "text/javascript" });
  const worker = new Worker(URL.createObjectURL(source));
  state.worker = worker;
  worker.onmessage = ({ data }) => worker === state.worker && hear(data);
  worker.onerror = (e) => worker === state.worker && fail(e.message);
  worker.postMessage({ runtime: state.runtime });
  $("steps").hidden = false;
  step(1);
  doing(STARTING[0], { share: DOWNLOAD_SHARE });
}

const fail = (why) => doing(`Python could not be started: ${why}`, { look: "failed" });

function hear(data) {
  if (data.stage) return started(data);
  if (data.id === undefined) return fail(data.failed);
  const asked = state.waiting.get(data.id);
  if (!asked) return;
  if (data.note) return asked.note(data.note);
  if (data.working) return asked.working(data.working);
  state.waiting.delete(data.id);
  asked.resolve(data);
}

async function started({ stage, seconds }) {
  (state.times ??= {})[stage] = seconds;
  const there = STEPS.indexOf(stage) + 1;
  step(there + 1);
  if (there < STEPS.length) return doing(STARTING[there], { share: DOWNLOAD_SHARE + ((1 - DOWNLOAD_SHARE) * there) / STEPS.length });
  state.ready = true;
  $("steps").hidden = true;
  doing("Python is ready", { look: "still", detail: `after ${seconds.toFixed(1)} s` });
  state.worker.postMessage({ id: 0, files: [...state.files].map(([name, f]) => [name, f.bytes]) });
  await settle([...state.files.keys()]);
}

function ask(message, note = () => {}, working = () => {}) {
  const id = state.next++;
  return new Promise((resolve) => {
    state.waiting.set(id, { resolve, note, working });
    state.worker.postMessage({ ...message, id });
  });
}

async function call(name, ...values) {
  const { out, failed } = await ask({ call: name, values });
  if (failed) throw new Error(failed);
  return JSON.parse(out);
}

// ---- files

async function add(files) {
  for (const file of files) {
    const bytes = await file.arrayBuffer();
    state.files.set(file.name, { bytes, options: {}, found: null, all: [file.name] });
    if (state.ready) await ask({ files: [[file.name, bytes]] });
  }
  if (state.ready) await settle(files.map((file) => file.name));
  else show();
}

// NumPy files that belong together are one: the first stands for all. What a new file changes is looked at again; it
// may hold the labels of another one.
async function settle(added) {
  const names = [...state.files.keys()];
  const groups = await call("group_names", names);
  const known = (name) => state.files.get(name); // it may have been removed meanwhile
  for (const name of names) if (known(name)) known(name).all = groups[name];
  for (const name of Object.keys(groups)) {
    const file = known(name);
    if (!file) continue;
    if (!file.found?.judged || file.all.some((one) => added.includes(one))) await look(name);
  }
  show();
}

const heads = () => [...state.files.keys()].filter((name) => state.files.get(name).all);
const holders = () => heads().map((name) => state.files.get(name).options.labels?.[0]);
const judged = () => heads().filter((name) => !holders().includes(name));

async function look(name) {
  const file = state.files.get(name);
  const others = heads().filter((other) => other !== name);
  doing(`Reading ${name}`);
  try {
    file.found = await call("examine", name, JSON.stringify(file.options), others);
  } catch (e) {
    file.found = { problems: [{ text: `This is a bug in howsure (${e.message}).`, stops: true }] };
  }
  doing("Python is ready", { look: "still" });
}

// Everything on the page is written anew; who worked with the keyboard stays where he was.
function show() {
  const key = document.activeElement?.dataset.key;
  $("files").replaceChildren(...heads().map((name) => card(name, state.files.get(name))));
  $("job").hidden = !state.files.size;
  $("hint").hidden = !!state.files.size;
  $("result").hidden ||= !state.files.size;
  $("sample").disabled = !state.ready;
  options();
  if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function card(name, file) {
  const shown = file.all.join(", ");
  const remove = make("button", { type: "button", className: "small", textContent: "Remove", ariaLabel: `Remove ${shown}` });
  remove.onclick = async () => {
    for (const one of file.all) state.files.delete(one);
    for (const other of state.files.values()) if (other.options.labels?.[0] === name) delete other.options.labels;
    if (!state.ready) return show();
    await ask({ gone: file.all });
    await settle([]);
  };
  const found = file.found ?? { title: "waiting for Python …" };
  const inside = [make("h2", { className: "file" }, shown, make("span", { textContent: found.title ?? "" }), remove)];
  const owner = heads().find((other) => state.files.get(other).options.labels?.[0] === name);
  if (owner) inside.push(make("p", { textContent: `Holds the labels of ${owner}.` }));
  else if (file.found) inside.push(...reading(name, file, found));
  return make("li", {}, ...inside);
}

function reading(name, file, found) {
  const inside = [];
  if (found.receipt) inside.push(make("p", { className: "receipt", textContent: `Read as: ${found.receipt}.` }));
  for (const p of found.problems) inside.push(make("p", { className: p.stops ? "problem" : "", textContent: p.text }));
  if (found.choices?.length) inside.push(make("p", { textContent: "How is it meant? Each of these was tried on the file:" }), buttons([name], found.choices));
  if (found.judged && !found.problems.length) inside.push(make("p", { textContent: "No problems." }));
  if (found.unused?.length) inside.push(make("p", { textContent: "Not used, but it could be:" }), buttons([name], found.unused));
  if (Object.keys(file.options).length) inside.push(undo(name, file));
  if (found.columns?.length) inside.push(table(name, file, found.columns));
  return inside;
}

function undo(name, file) {
  const button = make("button", { type: "button", className: "small", textContent: "Read it as before", ariaLabel: `Read ${name} as before` });
  button.onclick = async () => {
    file.options = {};
    await look(name);
    show();
  };
  return make("p", {}, button);
}

// A click reads the files in this way, and the answer follows.
function buttons(names, choices) {
  const made = choices.map((choice) => {
    const button = make("button", { type: "button", textContent: choice.text });
    button.onclick = () => choose(names, choice);
    return button;
  });
  return make("div", { className: "choices" }, ...made);
}

async function choose(names, choice) {
  if (choice.task) document.querySelector(`input[value=${choice.task}]`).checked = true;
  for (const name of names) {
    const file = state.files.get(name);
    file.options = { ...file.options, ...choice.options };
    await look(name);
  }
  show();
  if (judged().every((name) => state.files.get(name).found.judged)) await run();
}

function table(name, file, columns) {
  const head = make("tr", {}, ...["name", "shape", "type", "read as"].map((t) => make("th", { scope: "col", textContent: t })));
  const rows = columns.slice(0, SHOWN_COLUMNS).map((column) => {
    const choice = make("select", { ariaLabel: `${column.shown} is read as` });
    choice.dataset.key = `${name}: ${column.shown}`;
    choice.append(new Option(column.part || "–", ""), ...PARTS.filter((p) => p !== column.part).map((p) => new Option(p, p)));
    choice.value = Object.entries(file.options.names ?? {}).find(([, given]) => given === column.names)?.[0] ?? "";
    choice.onchange = async () => {
      const names = Object.entries(file.options.names ?? {}).filter(([, given]) => given !== column.names);
      if (choice.value) names.push([choice.value, column.names]);
      file.options = { ...file.options, names: Object.fromEntries(names) };
      await look(name);
      show();
    };
    const cells = [column.shown, column.shape.map((n) => n.toLocaleString("en")).join(" × "), column.dtype];
    return make("tr", {}, ...cells.map((t) => make("td", { textContent: t })), make("td", {}, choice));
  });
  const left = columns.length - SHOWN_COLUMNS;
  if (left > 0) rows.push(make("tr", {}, make("td", { colSpan: 4, textContent: `and ${left} more` })));
  const inside = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const scroll = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `Columns of ${name}` }, inside);
  const open = columns.length <= OPEN_COLUMNS || !file.found.judged;
  return make("details", { open }, make("summary", { textContent: "What each column is read as" }), scroll);
}

// ---- questions

const task = () => document.querySelector("input[name=task]:checked").value;
const splits = (name) => (state.files.get(name)?.found?.splits ?? []).filter(Boolean);

function pick(id, label, values, preferred) {
  const old = $(id)?.value;
  const e = make("select", { id });
  e.dataset.key = id;
  e.append(...values.map((v) => new Option(v, v)));
  e.value = values.includes(old) ? old : values.includes(preferred) ? preferred : (values[0] ?? "");
  e.onchange = show;
  return [make("label", {}, label, e), e];
}

function number(id, label, value) {
  const e = make("input", { id, value: $(id)?.value ?? value });
  e.oninput = command;
  return make("label", {}, label, e);
}

function options() {
  const names = judged();
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
      const [rule, chosen] = pick("rule", "What must hold?", Object.keys(VALUES), "risk");
      parts.push(rule, number("value", VALUES[chosen.value], "0.05"));
    }
    from("on", task() === "calibrate" ? "Judge on" : "Check on", "test", names.at(-1));
  }
  $("options").replaceChildren(...parts);
  command();
}

function words() {
  const value = (id) => $(id)?.value ?? "";
  const path = (name) => state.files.get(name)?.found?.path ?? name;
  const option = (name, id) => (value(id) ? [name, value(id)] : []);
  const both = task() === "calibrate" || task() === "threshold";
  const names = both ? [...new Set([value("fit"), value("on")])] : judged();
  const same = value("fit") === value("on") && value("fit_split") === value("on_split");
  const on = ["--on", path(value("on")), ...option("--on-split", "on_split")];
  const shown = {
    evaluate: () => ["evaluate", ...names.map(path), ...option("--split", "split")],
    compare: () => ["compare", ...names.map(path), ...option("--split", "split")],
    calibrate: () => ["calibrate", "--fit", path(value("fit")), ...option("--split", "fit_split"), ...on],
    threshold: () => ["threshold", path(value("fit")), ...option("--split", "fit_split"), `--${value("rule")}`, value("value"), ...(same ? [] : on)],
  }[task()]();
  // Two files that are read alike say so once.
  const given = new Set(names.map((name) => JSON.stringify(state.files.get(name)?.found?.arguments ?? [])));
  const reading = [...given].flatMap((text) => JSON.parse(text));
  return [...shown, ...reading, ...$("more").value.trim().split(/\s+/).filter(Boolean)];
}

function outputs() {
  const wanted = WANTED[task()].map((name) => `/results/${name}`); // where the worker looks for them
  if (task() === "calibrate") return ["--html", wanted[0], "-o", wanted[1]];
  return wanted.flatMap((name) => ["-o", name]);
}

function command() {
  const quoted = (a) => (/^[\w./=,:+-]+$/.test(a) ? a : `'${a.replaceAll("'", "'\\''")}'`);
  $("command").textContent = ["howsure", ...words()].map(quoted).join(" ");
  $("run").disabled = !state.ready || !!state.running;
}

// ---- answers

async function run() {
  const began = performance.now();
  const seconds = (digits) => `${((performance.now() - began) / 1000).toFixed(digits)} s`;
  let share;
  state.stages = [];
  const tick = () => {
    const stage = state.stages.at(-1) ?? "starting";
    doing(stage[0].toUpperCase() + stage.slice(1), { detail: seconds(0), share });
  };
  const reached = (stage) => {
    state.stages.push(stage);
    const [, part, of] = / (\d+) of (\d+): /.exec(stage) ?? [];
    share = of ? (part - 1) / of : undefined;
    tick();
  };
  const notes = [];
  const note = (line) => line.startsWith("wrote ") || notes.push(line.replace(/^howsure: /, ""));
  state.running = setInterval(tick, 500);
  $("cancel").hidden = false;
  $("result").hidden = true;
  tick();
  command();
  const answer = await ask({ args: [...words(), ...outputs()], wanted: WANTED[task()] }, note, reached);
  $("notes").textContent = notes.join("\n");
  stop(`Done in ${seconds(1)}`);
  answered(answer);
}

function stop(text) {
  clearInterval(state.running);
  state.running = null;
  $("cancel").hidden = true;
  doing(text, { look: "still" });
  command();
}

function answered({ code, out, err, mistake, written = [], failed }) {
  const good = !failed && (code === 0 || code === 1 || code === 3);
  const bad = good ? "" : (failed ?? mistake?.text ?? (err.trim().replace(/^howsure: /, "") || `exit code ${code}`));
  const html = written.find(([name]) => name.endsWith(".html"));
  const texts = written.map(([name, bytes]) => [name, new TextDecoder().decode(bytes)]);
  $("result").hidden = false;
  $("error").hidden = good;
  $("error").textContent = bad;
  $("ways").replaceChildren(...(mistake ? buttons(judged(), mistake.choices).children : []));
  $("notes").hidden = !good;
  $("text").hidden = !out?.trim() || (!!html && task() !== "calibrate");
  $("text").textContent = out ?? "";
  $("downloads").replaceChildren(...written.map(([name, bytes]) => download(name, bytes)));
  $("report").replaceChildren(...(html ? [view(new TextDecoder().decode(html[1]))] : []));
  state.answer = { code, out, err, failed, written: Object.fromEntries(texts) };
  $("result").focus({ preventScroll: true });
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
  stop("Stopped");
  begin();
  command();
}

// ---- events

$("pick").onchange = (e) => add([...e.target.files]).then(() => (e.target.value = ""));
$("sample").onclick = async () => add([new File([(await ask({ sample: true })).bytes], "fashion_mnist_cnn.npz")]);
$("run").onclick = run;
$("job").onchange = (e) => e.target.name === "task" && options();
$("job").onsubmit = (e) => e.preventDefault();
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
    const [loaded, all] = [data.loaded, data.all].map((bytes) => (bytes / 1e6).toFixed(1));
    step(0);
    doing("Loading Python", { detail: `${loaded} of ${all} MB: ${data.name}`, share: (DOWNLOAD_SHARE * data.loaded) / data.all });
  }
  if (data.failed) doing(`Python could not be loaded: ${data.failed}`, { look: "failed" });
  if (data.runtime) {
    state.runtime = data.runtime;
    begin();
  }
});
parent.postMessage("hello", "*");
