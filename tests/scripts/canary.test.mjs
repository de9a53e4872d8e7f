// Secrets that are nowhere else in the world are sent along with every type, and looked for everywhere afterwards. On
// SQLite, unless ODE_TEST_DATABASE names an empty PostgreSQL database.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFile, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { inflateRawSync } from "node:zlib";
import { cases } from "./cases.mjs";
import { demoSite } from "./harness.mjs";
import { Client, Installation, pause, receiver, worksWith } from "./server.mjs";

/** How often what runs is looked at. */
const LOOK_MS = 1000;

const site = await demoSite({ after });
const database = process.env.ODE_TEST_DATABASE;

/** A secret with characters that every encoding writes in another way, and a part that is nowhere else. */
function secret(start) {
  const tail = crypto.randomUUID().replaceAll("-", "");
  return { tail, text: start + tail };
}

const hex = (bytes, each) => [...bytes].map((byte) => each(byte.toString(16).padStart(2, "0"))).join("");
const html = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** What a secret may look like, each as bytes. */
function forms({ text, tail }) {
  const bytes = Buffer.from(text);
  const escaped = [...text].map((letter) =>
    letter > "~" ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}` : letter,
  );
  const texts = [
    ...[text, tail, tail.toUpperCase(), [...tail].reverse().join("")],
    ...[hex(bytes, (digits) => digits), hex(bytes, (digits) => digits.toUpperCase())],
    ...[hex(bytes, (digits) => `%${digits}`), hex(bytes, (digits) => `\\x${digits}`)],
    ...[encodeURIComponent(text), encodeURI(text), new URLSearchParams([["", text]]).toString().slice(1)],
    ...[JSON.stringify(text).slice(1, -1), JSON.stringify(escaped.join("")).slice(1, -1)],
    ...[html(text), html(text).replaceAll('"', "&quot;"), html(text).replaceAll('"', "&#34;")],
  ];
  // Base64 depends on what stands before: of each of the three ways, the part that all of it decides.
  for (const shift of [0, 1, 2]) {
    for (const encoding of ["base64", "base64url"]) {
      const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString(encoding);
      texts.push(encoded.slice(Math.ceil((shift * 8) / 6), 4 * Math.floor((shift + bytes.length) / 3)));
    }
  }
  const wide = Buffer.from(text, "utf16le");
  return [...texts.map((form) => Buffer.from(form)), wide, Buffer.from(wide).swap16()];
}

class Hunt {
  #forms = [];

  /** Makes a secret to look for. */
  add(start) {
    const made = secret(start);
    this.#forms.push(...forms(made));
    return made.text;
  }

  /** Looks for one that was made elsewhere. */
  addText(text) {
    this.#forms.push(...forms({ text, tail: text }));
  }

  /** Fails if any of them is in there, in any form. */
  search(place, ...contents) {
    const whole = contents.map((content) => Buffer.from(content));
    for (const content of whole.flatMap((content) => [content, ...unpacked(content)])) {
      const found = this.#forms.find((form) => content.includes(form));
      assert.equal(found?.toString(), undefined, `a secret is in ${place}`);
    }
  }
}

/** The files of an archive, by the table at its end. */
function unpacked(archive) {
  if (!archive.subarray(0, 4).equals(Buffer.from("PK\x03\x04"))) return [];
  const files = [];
  const [short, long] = [(at) => archive.readUInt16LE(at), (at) => archive.readUInt32LE(at)];
  const end = archive.lastIndexOf("PK\x05\x06");
  for (let row = long(end + 16); row < end; row += 46 + short(row + 28) + short(row + 30) + short(row + 32)) {
    const local = long(row + 42);
    const start = local + 30 + short(local + 26) + short(local + 28);
    const packed = archive.subarray(start, start + long(row + 20));
    files.push(short(row + 10) === 8 ? inflateRawSync(packed) : packed);
  }
  assert.ok(files.length > 0, "the archive has files");
  return files;
}

/** The secrets of all jobs: owners have addresses of their own, which have the secret part in common. */
function secretsOf(hunt) {
  const [email, password, bankAccount] = ["o+wner.", 'Cana"ry<&>/ü ', "NZ 00/"].map((start) => hunt.add(start));
  let owners = 0;
  return () => ({ email: `${email}.${(owners += 1)}@best.example`, password, bankAccount });
}

/** What a job is asked for. One that is to fail has a wrong password, or the site breaks down on what it got last. */
async function order({ email, password, bankAccount }, type, isToFail) {
  const { isNew, input, setUp = [], path } = cases[type];
  const restaurant = "The Best Restaurant";
  const isBroken = isToFail && input.bankAccount;
  const known = isToFail && !isBroken ? "Another-password-1" : password;
  if (!isNew || isToFail) await site.addOwner({ email, password: known, restaurant, set_up: setUp });
  if (isBroken) await site.fault({ kind: "error", owner: email, path });
  const own = input.bankAccount ? { bankAccount } : {};
  return { input: { email, password, restaurantName: restaurant, ...input, ...own }, max_retries: 0 };
}

/** Looks at everything that a machine shows of its processes, and at what ODE counts, until it is told to stop. */
function watch(hunt, installation, server) {
  let isOver = false;
  let browsers = 0;
  const look = async () => {
    const processes = await installation.processes();
    browsers += processes.filter(({ command }) => command.includes("--headless")).length;
    hunt.search("a process", ...processes.flatMap(({ command, environment }) => [command, environment]));
    hunt.search("what ps tells", (await promisify(execFile)("ps", ["axeww"], { maxBuffer: 1 << 26 })).stdout);
    hunt.search("the metrics", await (await fetch(server.metrics)).text());
  };
  const done = (async () => {
    while (!isOver) {
      await look();
      await pause(LOOK_MS);
    }
  })();
  // Awaited later; before that, it is not to be taken for an error that nobody looks at.
  done.catch(() => {});
  return async () => {
    isOver = true;
    await done;
    assert.ok(browsers > 0, "browsers were seen at work");
  };
}

/** The scripts, each with a trace of what it did when it failed. */
async function traced(installation) {
  const types = await installation.scripts();
  for (const type of Object.keys(cases)) await appendFile(join(types, type, "script.toml"), 'trace = "on-failure"\n');
  return types;
}

/** Everything that is stored in a directory. */
async function* filesBelow(folder) {
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile() && !path.startsWith(join(folder, "own"))) yield [path, await readFile(path)];
  }
}

async function inStore(hunt, { data }) {
  const all = [];
  for await (const [path, content] of filesBelow(data)) {
    hunt.search(path, content);
    all.push(content);
  }
  if (database) {
    const dump = join(process.env.ODE_TEST_PGBIN, "pg_dump");
    const { stdout } = await promisify(execFile)(dump, ["--dbname", database], { maxBuffer: 1 << 28 });
    hunt.search("the database's dump", stdout);
    all.push(Buffer.from(stdout));
  }
  assert.ok(
    all.some((content) => content.includes("The Best Restaurant")),
    "what is not secret is found in the database",
  );
}

/** ODE with everything that could tell a secret: messages to the owner, the stream of events, metrics, its own log. */
async function serve(test, installation) {
  const hooks = await receiver(test);
  const server = await installation.start(
    ...["serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--gateway", "off"],
    ...["--webhook-allow", "127.0.0.1", "--scripts-at-once", "3", ...worksWith(site, await traced(installation))],
  );
  const client = new Client(server.address, await installation.run("keys", "create", "--organisation", "acme"));
  await installation.run("webhooks", "add", "--organisation", "acme", hooks.address, "--webhook-allow", "127.0.0.1");
  return { hooks, server, client, stopListening: await listen(client) };
}

/** Follows the stream of events; gives back what it told. */
async function listen({ address, head }) {
  const told = [];
  const aborting = new AbortController();
  const { body } = await fetch(`${address}/api/stream`, { headers: head, signal: aborting.signal });
  const stream = (async () => {
    for await (const part of body) told.push(Buffer.from(part));
  })().catch(() => {}); // It ends by being aborted.
  return async () => {
    aborting.abort();
    await stream;
    return Buffer.concat(told);
  };
}

/** Asks for every type, once to go well and once to fail, and has its log followed. */
async function askForAll(hunt, client) {
  const asked = [];
  const secrets = secretsOf(hunt);
  for (const type of Object.keys(cases)) {
    for (const expected of ["completed", "failed"]) {
      const { id } = await client.ask(type, await order(secrets(), type, expected === "failed"));
      const log = client.get(`/v1/scripts/jobs/${id}/logs`, { accept: "text/event-stream" });
      asked.push({ type, id, log, expected });
    }
  }
  return asked;
}

/** Looks at what a job tells when it has ended. */
async function atItsEnd(hunt, client, { type, id, log, expected }) {
  const job = await client.ended(id);
  assert.equal(job.status, expected, `${type}: ${JSON.stringify(job)}`);
  const address = `/v1/scripts/jobs/${id}`;
  const parts = ["", "/logs?limit=1000", "/events", "/artifacts"];
  const pages = await Promise.all([...parts.map((part) => client.get(address + part)), log]);
  const { artifacts } = JSON.parse(pages[3]);
  assert.equal(artifacts.length, expected === "failed" ? 2 : 0, `${type}: a picture and a trace of a failure`);
  hunt.search(`what is told of ${type}`, ...pages, ...(await Promise.all(artifacts.map(({ url }) => client.get(url)))));
  if (type === "create-api-key" && expected === "completed") {
    hunt.addText((await client.post(`${address}/secrets`)).secrets.apiKey);
  }
}

test("a secret is found in every form", () => {
  const hunt = new Hunt();
  const text = hunt.add('a"+ü ');
  const encoded = ["base64", "base64url", "hex"].map((encoding) => Buffer.from(`.${text}.`).toString(encoding));
  for (const form of [text, ...encoded, encodeURIComponent(text), JSON.stringify({ text }), html(text)]) {
    assert.throws(() => hunt.search("it", `before ${form} after`), /a secret is in it/, form);
  }
  hunt.search("nothing of it", "before and after");
});

test("secrets of all types, with success and without, are nowhere but under seal", async (t) => {
  const hunt = new Hunt();
  const installation = await Installation.make(t, database);
  const { hooks, server, client, stopListening } = await serve(t, installation);
  const asked = await askForAll(hunt, client);
  const stopWatching = watch(hunt, installation, server);
  for (const job of asked) await atItsEnd(hunt, client, job);
  await stopWatching();
  hunt.search("the lists", await client.get("/v1/scripts/jobs?limit=100"), await client.get("/api/jobs"));
  while (hooks.bodies.length < asked.length) await pause(LOOK_MS);
  hunt.search("messages to the owner", ...hooks.bodies);
  const told = await stopListening();
  assert.ok(told.includes("complete"), "the stream of events told of the jobs");
  hunt.search("the stream of events", told);
  await server.stop();
  // A spare that waited in vain ends a moment later, with its directory.
  while ((await installation.processes()).length > 0) await pause(LOOK_MS);
  hunt.search("the program's own log", server.said);
  await inStore(hunt, installation);
});
