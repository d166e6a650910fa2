// Python. This worker is started from a blob inside the frame, so the frame's policy is its own: it may connect to
// nothing. Everything it needs comes as buffers.
"use strict";

const LOCK = { info: { abi_version: "2025_0", arch: "wasm32", platform: "emscripten_4_0_9", python: "3.13.2", version: "0.28.0.dev0" }, packages: {} };
const TYPES = { wasm: "application/wasm", js: "text/javascript", mjs: "text/javascript" };
const ADDRESS = "https://runtime.invalid/";
const FOLDER = "/files";
const RESULTS = "/results"; // apart from the files, one of which may have the name of a result
const SAMPLE = "howsure/data/fashion_mnist_cnn.npz";
let python, site;

async function start(runtime) {
  const began = performance.now();
  const stage = (stage) => postMessage({ stage, seconds: (performance.now() - began) / 1000 });
  const blob = (name) => new Blob([runtime[name]], { type: TYPES[name.split(".").at(-1)] ?? "application/zip" });
  const real = globalThis.fetch;
  globalThis.fetch = async (address) => new Response(blob(String(address).slice(ADDRESS.length)));
  const script = (name) => import(URL.createObjectURL(blob(name)));
  await script("pyodide.asm.js");
  const { loadPyodide } = await script("pyodide.mjs");
  python = await loadPyodide({ indexURL: ADDRESS, lockFileContents: LOCK, packageBaseUrl: ADDRESS, env: { HOME: FOLDER } });
  globalThis.fetch = real;
  stage("Python");
  site = python.runPython("import site; site.getsitepackages()[0]");
  const unpack = (name, extractDir = site) => python.unpackArchive(runtime[name], "zip", { extractDir });
  unpack("numpy.zip");
  python.runPython("import numpy");
  stage("NumPy");
  unpack("python.zip");
  unpack("scipy.zip");
  unpack("libopenblas.zip", "/usr/lib");
  python.FS.mkdirTree(FOLDER);
  python.FS.mkdirTree(RESULTS);
  python.FS.chdir(FOLDER);
  python.runPython("import importlib; importlib.invalidate_caches()");
  python.runPython("from howsure.cli.app import examine, group_names, run_command, run_example");
  stage("howsure");
}

function run({ id, files, gone, args, wanted }) {
  const results = (wanted ?? []).map((name) => `${RESULTS}/${name}`);
  for (const name of [...(gone ?? []), ...results]) if (python.FS.analyzePath(name).exists) python.FS.unlink(name);
  for (const [name, bytes] of files ?? []) python.FS.writeFile(name, new Uint8Array(bytes));
  if (!args) return postMessage({ id });
  const began = performance.now();
  const command = python.globals.get("run_command");
  const note = (note) => postMessage({ id, note });
  const working = (working) => postMessage({ id, working });
  let mistake = null;
  const [code, out, err] = command(python.toPy(args), note, working, (told) => (mistake = JSON.parse(told))).toJs();
  const made = (wanted ?? []).filter((_, i) => python.FS.analyzePath(results[i]).exists);
  const written = made.map((name) => [name, python.FS.readFile(`${RESULTS}/${name}`)]);
  postMessage({ id, code, out, err, mistake, written, seconds: (performance.now() - began) / 1000 });
}

addEventListener("message", async ({ data }) => {
  try {
    if (data.runtime) await start(data.runtime);
    else if (data.example) postMessage({ id: data.id, out: python.globals.get("run_example")(data.example) });
    else if (data.call) postMessage({ id: data.id, out: python.globals.get(data.call)(...data.values.map((value) => python.toPy(value))) });
    else if (data.sample) postMessage({ id: data.id, bytes: python.FS.readFile(`${site}/${SAMPLE}`) });
    else if (data.python) postMessage({ id: data.id, out: String(await python.runPythonAsync(data.python)) });
    else run(data);
  } catch (e) {
    postMessage({ id: data.id, failed: String(e.message ?? e).trim().split("\n").at(-1) });
  }
});
