// Jobs that go well, hang, ignore every signal, have their browser frozen or lose their worker, all mixed: in the end
// each has ended, and nothing of any is left. ODE_TEST_SCRIPT_JOBS says how many; a hundred take about five minutes.
import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { demoSite } from "./harness.mjs";
import { Client, Installation, pause, worksWith } from "./server.mjs";

const JOBS = Number(process.env.ODE_TEST_SCRIPT_JOBS ?? 6);
/** So many jobs end before each worker is killed. */
const JOBS_FOR_EACH_WORKER = 20;
const TIMEOUT_MS = 6_000;
/** Everything is gone by then, even on a busy machine. */
const GONE_MS_MAX = 120_000;
/** A worker sweeps when it starts. */
const SWEEP_MS = 5_000;
const LOOK_MS = 100;

const site = await demoSite({ after });

/** Ignores what it is asked, and starts something that has left its session, its group and its parents. */
const STUBBORN = `trap '' INT TERM HUP
(setsid sh -c "trap '' INT TERM HUP; sleep 1000 & sleep 1000" > /dev/null 2>&1 3>&- &)
sleep 1000
`;

/** The types that come with ODE, and a stubborn one. */
async function scripts(installation) {
  const types = await installation.scripts();
  await mkdir(join(types, "stubborn"));
  await writeFile(join(types, "stubborn/run.sh"), STUBBORN);
  await writeFile(
    join(types, "stubborn/script.toml"),
    'type = "stubborn"\ntitle = "Stay"\nversion = 1\ncommand = ["sh", "run.sh"]\n[payload]\ntype = "object"\n',
  );
  return types;
}

/** Asks for job number `at`: what it is, and how it is to end. */
async function ask(client, at) {
  const kind = ["well", "hung", "well", "frozen", "well", "stubborn"][at % 6];
  if (kind === "stubborn") {
    const { id } = await client.ask("stubborn", { input: {}, timeout_ms: TIMEOUT_MS });
    return { id, kind, status: "timed_out" };
  }
  const owner = { email: `left${at}@best.example`, password: "SecurePass123!", restaurant: "The Best Restaurant" };
  await site.addOwner(owner);
  if (kind !== "well") await site.fault({ kind: "endless", owner: owner.email, path: "/tags", times: 1000 });
  const { email, password, restaurant: restaurantName } = owner;
  const input = { email, password, restaurantName, itemTags: [{ name: "Vegan", color: "#00FF00" }] };
  const { id } = await client.ask("add-item-tags", { input, ...(kind !== "well" && { timeout_ms: TIMEOUT_MS }) });
  return { id, kind, status: kind === "well" ? "completed" : "timed_out" };
}

/** Every process below this one. */
async function below(pid) {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const pids = children.split(" ").filter(Boolean);
  return [...pids, ...(await Promise.all(pids.map(below))).flat()];
}

/** Freezes the browser of a job as soon as it has one, unless the job has ended before. */
async function freeze(client, id) {
  for (let job = {}; !job.completed_at; job = await client.job(id)) {
    const browsers = job.status === "in_progress" ? await browsersBelow(job.process_pid) : [];
    for (const pid of browsers) {
      try {
        process.kill(pid, "SIGSTOP");
      } catch {
        // It has just ended by itself.
      }
    }
    if (browsers.length > 0) return;
    await pause(LOOK_MS);
  }
}

async function browsersBelow(pid) {
  const commandOf = (pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  const all = await Promise.all((await below(pid)).map(async (pid) => ({ pid, command: await commandOf(pid) })));
  return all.filter(({ command }) => command.includes("--headless")).map(({ pid }) => Number(pid));
}

test(`${JOBS} jobs that end in every way leave no process and no directory`, async (t) => {
  const installation = await Installation.make(t);
  const types = await scripts(installation);
  const web = await installation.start("web", "--listen", "127.0.0.1:0", "--scripts", types);
  const works = ["worker", "--scripts-at-once", "4", ...worksWith(site, types)];
  let worker = await installation.start(...works);
  const client = new Client(web.address, await installation.run("keys", "create", "--organisation", "acme"));
  const jobs = [];
  for (let at = 0; at < JOBS; at += 1) jobs.push(await ask(client, at));
  const frozen = jobs.filter(({ kind }) => kind === "frozen").map(({ id }) => freeze(client, id));
  for (const [at, { id, kind, status }] of jobs.entries()) {
    if (at % JOBS_FOR_EACH_WORKER === 1) {
      await client.until(id, ({ status }) => status !== "queued");
      await worker.stop("SIGKILL");
      worker = await installation.start(...works);
    }
    const job = await client.ended(id);
    assert.equal(job.status, status, `${kind}: ${JSON.stringify(job)}`);
  }
  await Promise.all(frozen);
  await worker.stop();
  const runs = join(installation.data, "script-runs");
  const late = Date.now() + GONE_MS_MAX;
  const isLeft = async () => (await installation.processes()).some(({ pid }) => pid !== web.child.pid);
  while ((await isLeft()) && Date.now() < late) await pause(LOOK_MS);
  // What a worker had just begun to make when it was killed is removed by a later one, a minute after.
  while ((await readdir(runs)).length > 0 && Date.now() < late) {
    worker = await installation.start(...works);
    await pause(SWEEP_MS);
    await worker.stop();
  }
  await web.stop();
  assert.deepEqual(await installation.processes(), [], "no process is left");
  assert.deepEqual(await readdir(runs), [], "no directory is left");
});
