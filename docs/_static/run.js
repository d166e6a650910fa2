// "Run it here": an example of the gallery in the browser, in the Python of the page that evaluates files (app/). The
// runtime is loaded by the first click; the code may be changed before it is run.
"use strict";
(() => {
  const home = new URL("../app/", document.currentScript.src);
  let python = null;

  async function load(say) {
    const { files } = await (await fetch(new URL("manifest.json", home))).json();
    const all = files.reduce((sum, f) => sum + f.bytes, 0);
    let loaded = 0;
    const buffer = async (file) => {
      const answer = await fetch(new URL(`runtime/${file.name}`, home));
      if (!answer.ok) throw new Error(`${file.name}: ${answer.status}`);
      const found = await answer.arrayBuffer();
      say(`loading Python … ${((loaded += found.byteLength) / 1e6).toFixed(1)} of ${(all / 1e6).toFixed(1)} MB`);
      return [file.name, found];
    };
    const runtime = Object.fromEntries(await Promise.all(files.map(buffer)));
    const worker = new Worker(URL.createObjectURL(new Blob([runtime["worker.js"]], { type: "text/javascript" })));
    const waiting = new Map();
    await new Promise((ready, failed) => {
      worker.onerror = (e) => failed(new Error(e.message));
      worker.onmessage = ({ data }) => {
        if (data.stage === "howsure") ready();
        else if (data.stage) say(`${data.stage} is there …`);
        else if (data.id === undefined) failed(new Error(data.failed));
        else waiting.get(data.id)(data);
      };
      worker.postMessage({ runtime });
    });
    return (example) => {
      const id = waiting.size + 1;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        worker.postMessage({ id, example });
      });
    };
  }

  async function run(code, button, out) {
    const say = (text) => (out.textContent = text);
    out.hidden = false;
    button.disabled = true;
    say("loading Python …");
    try {
      python ??= load(say);
      const call = await python;
      say("running …");
      const { out: printed, failed } = await call(code.textContent);
      say(failed ?? printed);
      out.dataset.state = failed ? "failed" : "done";
    } catch (e) {
      python = null;
      say(`Python could not be started: ${e.message}`);
      out.dataset.state = "failed";
    }
    button.disabled = false;
  }

  for (const block of document.querySelectorAll(".here")) {
    const code = block.querySelector("pre");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Run it here" });
    const out = Object.assign(document.createElement("pre"), { className: "ran", hidden: true });
    out.setAttribute("aria-live", "polite");
    code.setAttribute("contenteditable", "plaintext-only");
    code.setAttribute("spellcheck", "false");
    code.setAttribute("aria-label", "The example; you may change it before you run it");
    button.className = "run";
    button.onclick = () => run(code, button, out);
    const below = Object.assign(document.createElement("div"), { className: "runner" });
    below.append(button, out);
    block.after(below);
  }
})();
