// Everything that a page can send with; says of each whether it was sent or refused.
const [http, ws, done] = arguments, said = {}, wait = (ms) => new Promise((r) => setTimeout(r, ms));
const attempt = async (name, f) => { try { said[name] = (await f()) ? "sent" : "refused"; } catch { said[name] = "refused"; } };
const loads = (e, property) => new Promise((yes, no) => { e.onload = () => yes(true); e.onerror = no; e[property] = http; });
(async () => {
  await attempt("fetch", () => fetch(http, { method: "POST", body: "secret", mode: "no-cors" }));
  await attempt("xhr", () => new Promise((yes, no) => { const x = new XMLHttpRequest(); x.onload = yes; x.onerror = no; x.open("POST", http); x.send("secret"); }));
  await attempt("socket", () => new Promise((yes, no) => { const s = new WebSocket(ws); s.onopen = () => yes(true); s.onerror = no; }));
  await attempt("events", () => new Promise((yes, no) => { const s = new EventSource(http); s.onopen = () => yes(true); s.onerror = no; }));
  // The return value says only that it was queued; what counts is that nobody is connected to.
  await attempt("beacon", async () => { navigator.sendBeacon(http, "secret"); return false; });
  await attempt("image", () => loads(new Image(), "src"));
  await attempt("script", () => { const e = document.createElement("script"); const p = loads(e, "src"); document.head.append(e); return p; });
  await attempt("style", () => { const e = document.createElement("link"); e.rel = "stylesheet"; const p = loads(e, "href"); document.head.append(e); return p; });
  await attempt("worker", () => new Promise((yes, no) => { const w = new Worker(http); w.onmessage = yes; w.onerror = no; }));
  await attempt("child", async () => { const e = document.createElement("iframe"); e.src = http; document.body.append(e); await wait(500); e.remove(); return false; });
  await attempt("nested", async () => { const e = document.createElement("iframe"); e.srcdoc = "<p>"; document.body.append(e); await wait(200); e.contentWindow.location = http; await wait(500); e.remove(); return false; });
  await attempt("refresh", async () => { const e = document.createElement("iframe"); e.srcdoc = `<meta http-equiv=refresh content="0;url=${http}">`; document.body.append(e); await wait(500); e.remove(); return false; });
  await attempt("preconnect", async () => { const e = document.createElement("link"); e.rel = "preconnect"; e.href = http; document.head.append(e); await wait(300); return false; });
  await attempt("webrtc", async () => { const p = new RTCPeerConnection({ iceServers: [{ urls: `stun:${new URL(http).host}` }] }); p.createDataChannel("x"); await p.setLocalDescription(await p.createOffer()); return true; });
  await attempt("prefetch", async () => { const e = document.createElement("link"); e.rel = "prefetch"; e.href = http; document.head.append(e); await wait(300); return false; });
  await attempt("form", async () => { const e = document.createElement("form"); e.action = http; e.method = "post"; document.body.append(e); e.submit(); await wait(300); return false; });
  await attempt("navigate", async () => { const e = document.createElement("a"); e.href = http; e.target = "_top"; document.body.append(e); e.click(); await wait(300); return false; });
  await attempt("open", async () => window.open(http) !== null);
  done(said);
})();
