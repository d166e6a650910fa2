// After the first visit the page works without a network: everything it consists of is kept, and nothing else. Pages are
// handed out with a header that lets them, and all inside them, connect to their own server only: no other connection is
// opened, not even one that stays silent. Where the browser does not know the header, the policies of the pages hold.
"use strict";
const CACHE = "howsure-VERSION";
const FILES = NAMES;
const kept = () => caches.open(CACHE);
const large = (name) => name.startsWith("runtime/");

addEventListener("install", (e) => {
  e.waitUntil(kept().then((cache) => cache.addAll(FILES.filter((name) => !large(name)))).then(() => skipWaiting()));
});
addEventListener("activate", (e) => {
  const old = (keys) => keys.filter((key) => key.startsWith("howsure-") && key !== CACHE);
  e.waitUntil(caches.keys().then((keys) => Promise.all(old(keys).map((key) => caches.delete(key)))).then(() => clients.claim()));
});
addEventListener("fetch", (e) => {
  if (e.request.method === "GET") e.respondWith(e.request.mode === "navigate" ? answer(e).then(sealed) : answer(e));
});

async function answer(e) {
  const cache = await kept();
  const found = await cache.match(e.request, { ignoreSearch: true });
  if (found) return found;
  const fresh = await fetch(e.request);
  const ours = FILES.some((name) => large(name) && new URL(name, registration.scope).href === e.request.url);
  if (ours && fresh.ok) e.waitUntil(cache.put(e.request, fresh.clone()));
  return fresh;
}

function sealed(page) {
  const headers = new Headers(page.headers);
  headers.set("Connection-Allowlist", "(response-origin)");
  return new Response(page.body, { status: page.status, statusText: page.statusText, headers });
}
