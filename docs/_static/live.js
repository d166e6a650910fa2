// The page that evaluates files (app/), started by a click in the middle of another page. It is the same page: its inner
// frame has an origin and a policy of its own, so this site can neither read the data nor let them out.
"use strict";
for (const place of document.querySelectorAll(".live")) {
  const [address, button] = [place.querySelector("a").href, document.createElement("button")];
  Object.assign(button, { type: "button", className: "try", textContent: "Start it here" });
  const posters = [...place.querySelectorAll(".poster")];
  const start = () => {
    const frame = Object.assign(document.createElement("iframe"), { title: "howsure in your browser", src: address });
    place.append(frame);
    for (const gone of [button, ...posters]) gone.remove();
  };
  for (const one of [button, ...posters]) one.onclick = start;
  place.querySelector("p").prepend(button, " ");
}
