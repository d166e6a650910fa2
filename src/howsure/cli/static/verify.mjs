// Is a policy that howsure saved as it was saved, and does its bound follow from its counts?
//
//   import { verify } from "./verify.mjs";
//   const found = await verify(textOfTheFile, key);   // key: as in HOWSURE_KEY, or nothing
//   found.digest, found.bounds                        // true or false; bounds is null where no counts are held

const ALLOWED_ROUNDING = 1e-9;

export async function verify(text, key = "") {
  const document = JSON.parse(text);
  const canonical = writeCanonical(text);
  const digest = await computeDigest(canonical, key);
  const policy = document.value;
  const listed = policy.keys.length
    ? policy.keys.map((_, i) => [policy.thresholds[i], policy.guarantees[i]])
    : [[policy.threshold, policy.guarantee]];
  const held = listed.filter(([, guarantee]) => guarantee && guarantee.tested && guarantee.tested.length);
  const bounds = held.length ? held.every(([threshold, guarantee]) => follows(threshold, guarantee)) : null;
  return { digest: digest === document.digest, bounds };
}

async function computeDigest(text, key) {
  const encoder = new TextEncoder();
  const write = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
  if (!key) return "sha256:" + write(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
  const made = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", encoder.encode(key), made, false, ["sign"]);
  return "hmac-sha256:" + write(await crypto.subtle.sign("HMAC", secret, encoder.encode(text)));
}

// The text that the digest is of: sorted keys, no spaces, ASCII, numbers as they are written.
function writeCanonical(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\],:]|true|false|null/g);
  let at = 0;
  const writeText = (token) =>
    JSON.stringify(JSON.parse(token)).replace(
      /[^ -~]/g,
      (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
    );
  const read = (isTop) => {
    const token = tokens[at++];
    if (token === "[") {
      const items = [];
      while (tokens[at] !== "]") {
        items.push(read(false));
        if (tokens[at] === ",") at++;
      }
      at++;
      return `[${items.join(",")}]`;
    }
    if (token === "{") {
      const items = [];
      while (tokens[at] !== "}") {
        const key = JSON.parse(tokens[at]);
        const name = writeText(tokens[at]);
        at += 2;
        const value = read(false);
        if (!isTop || key !== "digest") items.push([key, `${name}:${value}`]);
        if (tokens[at] === ",") at++;
      }
      at++;
      items.sort(([a], [b]) => (a < b ? -1 : 1));
      return `{${items.map(([, item]) => item).join(",")}}`;
    }
    return token[0] === '"' ? writeText(token) : token;
  };
  return read(true);
}

// The upper limit of Clopper and Pearson from the errors among the kept at this threshold.
function follows(threshold, { tested, risk, delta, bound }) {
  const [thresholds, kept, errors] = tested;
  const row = thresholds.indexOf(threshold);
  if (row < 0) return false;
  const n = kept[row];
  const wrong = errors[row];
  let low = wrong / n;
  let high = 1;
  for (let i = 0; i < 200 && low < high; i++) {
    const middle = (low + high) / 2;
    if (computeChance(wrong, n, middle) > delta) low = middle;
    else high = middle;
  }
  return Math.abs(high - bound) <= ALLOWED_ROUNDING && bound <= risk;
}

// The chance of at most so many errors among n, each with probability p.
function computeChance(wrong, n, p) {
  if (p >= 1) return wrong >= n ? 1 : 0;
  if (p <= 0) return 1;
  let logTerm = n * Math.log1p(-p);
  let largest = logTerm;
  const terms = [logTerm];
  for (let i = 1; i <= wrong; i++) {
    logTerm += Math.log((n - i + 1) / i) + Math.log(p) - Math.log1p(-p);
    terms.push(logTerm);
    largest = Math.max(largest, logTerm);
  }
  return Math.exp(largest) * terms.reduce((sum, term) => sum + Math.exp(term - largest), 0);
}
