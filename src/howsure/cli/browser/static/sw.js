// After the first visit the page works without a network: everything it consists of is kept, and nothing else.
"use strict";
const CACHE = "howsure-VERSION";
const FILES = NAMES;

addEventListener("install", (e) => {
  e.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => skipWaiting()));
});
addEventListener("activate", (e) => {
  const old = (keys) => keys.filter((key) => key.startsWith("howsure-") && key !== CACHE);
  e.waitUntil(caches.keys().then((keys) => Promise.all(old(keys).map((key) => caches.delete(key)))).then(() => clients.claim()));
});
addEventListener("fetch", (e) => {
  if (e.request.method !== "GET") return;
  const kept = caches.open(CACHE).then((cache) => cache.match(e.request, { ignoreSearch: true }));
  e.respondWith(kept.then((found) => found ?? fetch(e.request)));
});
