// Runs scripts as ODE does, by the protocol alone, against a demo site of their own.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launch } from "../../scripts/kit/browser.mjs";

export const root = new URL("../..", import.meta.url).pathname;
export const program = process.env.ODE_TEST_PROGRAM ?? join(root, "target/debug/ode");
const browser = process.env.ODE_TEST_CHROMIUM;
/** Attempts that ODE makes of a job. */
const ATTEMPTS_MAX = 4;
/** A script that works does so by then, even on a busy machine. */
const ATTEMPT_MS_MAX = 90_000;

export const folderOf = (type) => join(root, "scripts/types", type);

/** Starts `ode demo-site` until the tests end. */
export async function demoSite(test) {
  const child = spawn(program, ["demo-site", "--listen", "127.0.0.1:0", "--payments", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((done) => child.once("exit", done));
  test.after(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const address = line.match(/restaurant is listening on (http:\S+)/)?.[1];
    if (address) return new Site(address);
  }
  throw new Error("ode demo-site ended before it listened");
}

class Site {
  constructor(address) {
    this.address = address;
  }

  async #post(path, body) {
    const answer = await fetch(this.address + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }

  addOwner(owner) {
    return this.#post("/__owners", owner);
  }

  fault(fault) {
    return this.#post("/__faults", fault);
  }

  /** Resolves once the one fault of an owner has struck. */
  async struck(owner) {
    const isWaiting = async () =>
      (await (await fetch(`${this.address}/__faults`)).json()).some((fault) => fault.owner === owner);
    while (await isWaiting()) await new Promise((done) => setTimeout(done, 50));
  }

  /** What is stored for an owner: the restaurant's part. */
  async restaurant(email) {
    const state = await (await fetch(`${this.address}/__state?owner=${encodeURIComponent(email)}`)).json();
    return (
      state && {
        ...state.restaurants[0],
        restaurants: state.restaurants.length,
        payment_account: state.payment_account,
      }
    );
  }
}

/** A payload as ODE hands it on: the secrets that its schema marks stand apart. */
export async function order(type, payload) {
  const { properties } = JSON.parse(await readFile(join(folderOf(type), "payload.json"), "utf8"));
  const isSecret = ([name]) => properties[name]?.["x-ode-secret"];
  const fields = Object.entries(payload);
  const input = fields.map((field) => (isSecret(field) ? [field[0], { $secret: field[0] }] : field));
  return { input: Object.fromEntries(input), secrets: Object.fromEntries(fields.filter(isSecret)) };
}

/** One attempt: what it told, what it left, and how it ended. `until` says when its time is over. */
export async function attempt(type, order, { until, checkpoints = {}, spare = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "ode-script-"));
  try {
    const done = await run(type, { ...order, checkpoints }, folder, { until, spare });
    for (const { t, key, data } of done.events) if (t === "checkpoint") checkpoints[key] = data;
    checkSecrets(done, Object.values(order.secrets));
    return { ...done, folder };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A job to its end: tried again, with what was done before, as long as that may help. */
export async function job(type, order, options = {}) {
  const checkpoints = options.checkpoints ?? {};
  const attempts = [];
  while (attempts.length < ATTEMPTS_MAX) {
    attempts.push(await attempt(type, { ...order, attempt: attempts.length + 1 }, { ...options, checkpoints }));
    if (!attempts.at(-1).result?.error?.retryable) break;
  }
  return { attempts, last: attempts.at(-1) };
}

/** Commands of processes that were started in this directory and still run. */
export async function leftovers(folder) {
  const numbers = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(
    numbers.map((number) => readFile(`/proc/${number}/cmdline`, "utf8").catch(() => "")),
  );
  return commands.filter((command) => command.includes(folder));
}

const isSandboxed = process.getuid() !== 0; // As root, Chromium has no sandbox.
const spareCommand = [
  join(root, "scripts/kit/spare.mjs"),
  ...(browser ? ["--browser", browser] : []),
  ...(isSandboxed ? [] : ["--no-sandbox"]),
];

export function start(argv, folder, events = "pipe") {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    TMPDIR: folder,
    LANG: "C.UTF-8",
    ODE_PROTOCOL: "1",
    ODE_EVENTS_FD: "3",
    ODE_ARTIFACTS: folder,
  };
  return spawn(process.execPath, argv, { cwd: folder, env, stdio: ["pipe", "pipe", "pipe", events] });
}

/** A browser for a test's own use. */
export async function launchBrowser(test) {
  const launched = await launch({ executable: browser, sandbox: isSandboxed });
  test.after(() => launched.close());
  return launched;
}

export const startSpare = (folder) => start(spareCommand, folder);

async function run(type, order, folder, { until, spare }) {
  const child = spare ? startSpare(folder) : start([join(folderOf(type), "run.mjs")], folder);
  const told = { events: [], logs: "", isTimedOut: false };
  const texts = [child.stdout, child.stderr].map(async (pipe) => {
    for await (const part of pipe) told.logs += part;
  });
  const lines = createInterface({ input: child.stdio[3] });
  const closed = once(lines, "close");
  lines.on("line", (line) => told.events.push(JSON.parse(line)));
  if (spare) await once(lines, "line");
  child.stdin.on("error", () => {}); // A script that ends early has said why.
  child.stdin.end(
    JSON.stringify({
      protocol: 1,
      type,
      job_id: "JOB_TEST",
      attempt: 1,
      browser: { executable: browser, sandbox: isSandboxed },
      ...order,
    }),
  );
  const interrupt = () => {
    told.isTimedOut = true;
    child.kill("SIGINT");
  };
  const late = setTimeout(interrupt, ATTEMPT_MS_MAX);
  until?.then(interrupt);
  const [code, signal] = await once(child, "exit");
  clearTimeout(late);
  await Promise.all([closed, ...texts]);
  const files = (await readdir(folder)).filter((name) => name.endsWith(".png"));
  const pictures = await Promise.all(files.map((name) => readFile(join(folder, name))));
  return { ...told, code, signal, pictures, result: told.events.find(({ t }) => t === "result") };
}

/** Nothing that is told or logged may hold a secret, but for the ones in a result and those that are told to be masked. */
function checkSecrets({ events, logs }, secrets) {
  const masked = events.filter(({ t }) => t === "mask").map(({ value }) => value);
  const told = events
    .filter(({ t }) => t !== "mask")
    .map((event) => JSON.stringify({ ...event, data: { ...event.data, apiKey: undefined } }));
  for (const secret of [...secrets, ...masked])
    assert.ok(![...told, logs].some((text) => text.includes(secret)), "a secret was told");
}
