// Runs a script: reads its payload, opens its page, and tells how it ended.
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isAskedToStop, launch, openPage, photograph } from "./browser.mjs";
import { Events } from "./events.mjs";
import { Failure, asFailure } from "./failure.mjs";
import { Job } from "./job.mjs";
import { joined, readPayload } from "./payload.mjs";

const PROTOCOL = 1;
const KIT = "0.1.0";
/** What is told of a mistake in a script; the rest of a long stack is node's own. */
const STACK_LETTERS_MAX = 4000;

/**
 * Declares a script. `import.meta` of its file says what it is called, and whether it was started or is only looked at
 * by a spare. `run({ job, page, input, site })` gives back `{ message, data, partial }` or throws a Failure.
 */
export async function script(meta, run) {
  const file = fileURLToPath(meta.url);
  if (realpathSync(process.argv[1]) !== file) return run;
  const payload = await readPayload();
  await perform(run, basename(dirname(file)), payload, async () => openPage(await launch(payload?.browser)));
  return run;
}

/** Does one job on the page that `open` gives, and ends the process. */
export async function perform(run, name, payload, open) {
  const began = Date.now();
  const events = new Events();
  events.send({ t: "hello", protocol: PROTOCOL, kit: KIT, script: name });
  let page;
  try {
    const told = await attempt(run, payload, events, async () => (page = await open()));
    events.send({ t: "result", ...told, duration_ms: Date.now() - began });
  } finally {
    // Whoever started us ends what does not end by itself.
    await page?.context().browser().close().catch(() => {});
  }
  process.exit(0);
}

async function attempt(run, payload, events, open) {
  let job, page;
  try {
    if (payload?.protocol !== PROTOCOL) throw new Failure("payload_wrong", `This script speaks protocol ${PROTOCOL}.`);
    const input = joined(payload.input ?? {}, payload.secrets ?? {});
    job = new Job(payload, input, events);
    const site = input.siteUrl ?? payload.site;
    if (!site) {
      throw new Failure(
        "payload_wrong",
        "No site is named. Put siteUrl into the payload, or start the worker with --script-site.",
      );
    }
    page = await open();
    if (isTraced(payload)) await page.context().tracing.start({ snapshots: true });
    const { message, data, partial = false } = await run({ job, page, input, site });
    return { success: true, ...(partial && { partial }), message, data };
  } catch (error) {
    // The signal's handler ends the process; no result is better than one about a browser that we closed ourselves.
    if (isAskedToStop()) await new Promise(() => {});
    const failure = asFailure(error);
    if (page) await leavePicture(page, job, events);
    if (page && isTraced(payload)) await leaveTrace(page, job, events);
    return refusal(failure);
  }
}

const isTraced = ({ trace }) => trace === "on-failure";

function refusal({ code, message, retryable, data, cause, stack }) {
  const told = code === "script_error" ? (cause?.stack ?? stack) : undefined;
  const error = { code, retryable, ...(told && { stack: told.slice(0, STACK_LETTERS_MAX) }) };
  return { success: false, message, ...(data && { data }), error };
}

/** What the page looked like when it went wrong. */
async function leavePicture(page, job, events) {
  const folder = process.env.ODE_ARTIFACTS;
  const name = "failure.png";
  try {
    const { origin, pathname } = new URL(page.url());
    job.log(`The last page was ${origin}${pathname}.`, "warn");
    if (!folder) return;
    await photograph(page, join(folder, name), job.secrets);
    events.send({ t: "artifact", name, kind: "screenshot", path: name });
  } catch (error) {
    job.log(`There is no picture of the page: ${String(error.message).split("\n")[0]}`, "warn");
  }
}

/** What the browser did until it went wrong. ODE takes the secrets out before it keeps it. */
async function leaveTrace(page, job, events) {
  const folder = process.env.ODE_ARTIFACTS;
  const name = "trace.zip";
  if (!folder) return;
  try {
    await page.context().tracing.stop({ path: join(folder, name) });
    events.send({ t: "artifact", name, kind: "trace", path: name });
  } catch (error) {
    job.log(`There is no trace: ${String(error.message).split("\n")[0]}`, "warn");
  }
}
