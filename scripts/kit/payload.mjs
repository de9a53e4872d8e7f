// The payload: one JSON document on stdin, its secrets apart from the rest.

/** Reads stdin to its end; nothing, if nothing came. */
export async function readPayload() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  const text = Buffer.concat(parts).toString("utf8");
  return text.trim() ? JSON.parse(text) : null;
}

/** The input with its secrets where they belong. */
export function joined(value, secrets) {
  if (Array.isArray(value)) return value.map((entry) => joined(entry, secrets));
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$secret === "string") return secrets[value.$secret];
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, joined(entry, secrets)]));
}

/** Every text below a value that is long enough to be looked for. */
export function textsOf(value) {
  if (value === null || value === undefined) return [];
  if (typeof value === "object") return Object.values(value).flatMap(textsOf);
  return String(value).length >= 4 ? [String(value)] : [];
}
