// The outer page: it loads the runtime and hands it to the frame. It never sees data: the frame has an origin of its
// own, which this page cannot read, and the only message that is listened to is the frame's greeting.
"use strict";

async function main() {
  await sealed();
  const [html, manifest] = await Promise.all([text("frame.html"), text("manifest.json").then(JSON.parse)]);
  const frame = document.createElement("iframe");
  frame.title = "howsure";
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  const greeted = new Promise((resolve) => {
    addEventListener("message", (e) => e.source === frame.contentWindow && e.data === "hello" && resolve());
  });
  frame.srcdoc = html;
  document.body.replaceChildren(frame);
  await greeted;
  const tell = (message, moved = []) => frame.contentWindow.postMessage(message, "*", moved);
  const all = manifest.files.reduce((sum, f) => sum + f.bytes, 0);
  let loaded = 0;
  const more = (name, n) => tell({ name, loaded: (loaded += n), all });
  try {
    const buffers = await Promise.all(manifest.files.map((f) => buffer(f, more)));
    const runtime = Object.fromEntries(manifest.files.map((f, i) => [f.name, buffers[i]]));
    tell({ runtime }, buffers);
  } catch (e) {
    tell({ failed: String(e.message ?? e) });
  }
}

// The service worker hands this page out with a header that static files lack (sw.js): it is loaded once more through it.
async function sealed() {
  const worker = navigator.serviceWorker;
  if (!worker || worker.controller) return;
  try {
    await worker.register("sw.js");
    await worker.ready;
    if (sessionStorage.getItem("sealed")) return;
    sessionStorage.setItem("sealed", "tried");
  } catch (e) {
    return console.warn(String(e));
  }
  location.reload();
  await new Promise(() => {});
}

async function text(name) {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer.text();
}

async function buffer(file, more) {
  const answer = await fetch(`runtime/${file.name}`);
  if (!answer.ok) throw new Error(`runtime/${file.name}: ${answer.status}`);
  const parts = [];
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    more(file.name, value.length);
  }
  const found = await new Blob(parts).arrayBuffer();
  if (crypto.subtle && hex(await crypto.subtle.digest("SHA-256", found)) !== file.sha256) {
    throw new Error(`runtime/${file.name} is not the file that belongs here; load the page again`);
  }
  return found;
}

const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");

main();
