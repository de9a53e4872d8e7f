// An installation of ODE that runs the scripts as jobs, as another system meets it.
import { execFile, spawn } from "node:child_process";
import { cp, mkdtemp, readFile, readdir, rm, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { program, root } from "./harness.mjs";

const ENDED = ["completed", "failed", "cancelled", "timed_out"];
const JOBS_MS_MAX = 600_000;
const LOOK_MS = 200;
const isRoot = process.getuid() === 0; // As root, Chromium has no sandbox.
/** For whatever runs scripts. */
export const worksWith = (site, scripts) => [
  ...["--scripts", scripts, "--script-site", site.address],
  ...(isRoot ? ["--browser-no-sandbox"] : []),
];

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** A data directory and what runs on it, until the test ends. On SQLite, unless a database is named. */
export class Installation {
  #processes = [];

  static async make(test, database) {
    const made = new Installation();
    made.data = await mkdtemp(join(tmpdir(), "ode-installation-"));
    made.settings = ["--data", made.data, ...(database ? ["--database", database] : [])];
    test.after(async () => {
      await Promise.all(made.#processes.map((running) => running.stop("SIGKILL")));
      await rm(made.data, { recursive: true, force: true });
    });
    return made;
  }

  /** The scripts that come with ODE, to be changed; where their types are. */
  async scripts() {
    const folder = join(this.data, "own");
    for (const part of ["kit", "pages", "types"]) {
      await cp(join(root, "scripts", part), join(folder, part), { recursive: true });
    }
    await symlink(join(root, "scripts/node_modules"), join(folder, "node_modules"));
    return join(folder, "types");
  }

  /** What a command answers. */
  async run(...args) {
    const { stdout } = await promisify(execFile)(program, [...args, ...this.settings]);
    return stdout.trim();
  }

  async start(...args) {
    const child = spawn(program, [...args, ...this.settings], {
      stdio: ["ignore", "pipe", "pipe"],
      // How full this machine's disk is, is not what these tests are about.
      env: { ...process.env, ODE_DISK_PAUSE: "100" },
    });
    const running = new Running(child);
    this.#processes.push(running);
    await running.started;
    return running;
  }

  /** Processes that were told of the data directory, or have their home in it: even one that left its parents has. */
  async processes() {
    const numbers = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const about = async (number) => {
      const [command, environment] = await Promise.all(
        ["cmdline", "environ"].map((file) => readFile(`/proc/${number}/${file}`, "utf8").catch(() => "")),
      );
      return { pid: Number(number), command, environment };
    };
    const isOurs = ({ command, environment }) => (command + environment).includes(this.data);
    return (await Promise.all(numbers.map(about))).filter(isOurs);
  }
}

/** A process of ODE and everything it says. */
class Running {
  said = "";

  constructor(child) {
    this.child = child;
    this.ended = new Promise((done) => child.once("close", done));
    child.stderr.on("data", (part) => (this.said += part));
    const lines = createInterface({ input: child.stdout });
    this.started = new Promise((done, fail) => {
      lines.on("line", (line) => {
        this.said += `${line}\n`;
        this.address ??= line.match(/listening on (http:\S+)/)?.[1];
        this.metrics ??= line.match(/metrics are at (http:\S+)/)?.[1];
        if (line.includes("Stop it with")) done();
      });
      child.once("close", () => fail(new Error(`ode ended before it had started: ${this.said}`)));
    });
  }

  async stop(signal = "SIGTERM") {
    this.child.kill(signal);
    await this.ended;
  }
}

/** Somebody with a key to the API. */
export class Client {
  constructor(address, key) {
    Object.assign(this, { address, head: { authorization: `Bearer ${key}` } });
  }

  async get(path, head = {}) {
    const answer = await fetch(this.address + path, { headers: { ...this.head, ...head } });
    return Buffer.from(await answer.arrayBuffer());
  }

  async post(path, body) {
    const headers = { ...this.head, "content-type": "application/json" };
    const answer = await fetch(this.address + path, { method: "POST", headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  ask(type, body) {
    return this.post(`/v1/scripts/${type}`, body);
  }

  async job(id) {
    return JSON.parse(await this.get(`/v1/scripts/jobs/${id}`));
  }

  /** The job once it stands like that. */
  async until(id, isMeant) {
    const late = Date.now() + JOBS_MS_MAX;
    for (;;) {
      const job = await this.job(id);
      if (isMeant(job)) return job;
      if (Date.now() > late) throw new Error(`it never came to that: ${JSON.stringify(job)}`);
      await pause(LOOK_MS);
    }
  }

  ended(id) {
    return this.until(id, ({ status }) => ENDED.includes(status));
  }
}

/** Takes messages, and keeps what they say. */
export async function receiver(test) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    const parts = [JSON.stringify(request.headers)];
    for await (const part of request) parts.push(part);
    bodies.push(parts.join("\n"));
    response.end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  test.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { bodies, address: `http://127.0.0.1:${server.address().port}/hook` };
}
