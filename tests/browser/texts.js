// Every visible piece of text with its box and its size on the screen.
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode, e = node.parentElement;
  if (!node.textContent.trim() || e.closest("script, style") || !e.checkVisibility({ visibilityProperty: true })) continue;
  if (getComputedStyle(e.closest("thead") ?? e).clipPath !== "none") continue; // for screen readers only
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const b of range.getClientRects()) {
    if (b.width < 1) continue;
    const scale = e.namespaceURI.endsWith("svg") ? e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width : 1;
    const clip = e.closest(".scroll, figure")?.getBoundingClientRect();
    if (clip && b.left > clip.right) continue;
    found.push({ text: node.textContent.trim().slice(0, 40), size: parseFloat(getComputedStyle(e).fontSize) * scale,
      left: b.left, right: b.right, top: b.top + scrollY, bottom: b.bottom + scrollY, inSvg: e.namespaceURI.endsWith("svg") });
  }
}
return found;
