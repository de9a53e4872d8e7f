// One job as its script sees it: what was asked for, what earlier attempts have done, and whom to tell.
import { Failure, Refused, SessionExpired } from "./failure.mjs";
import { textsOf } from "./payload.mjs";

/** What is listed of a result at most: an event must fit in a line of 64 KiB. */
const DETAILS_MAX = 200;
const DETAILS_BYTES_MAX = 48 * 1024;
/** Why something is not made that is there, and not by us. */
const THERE = "Already exists";

export class Job {
  #events;
  #checkpoints;
  #renew;
  #isRenewed = false;
  #secrets;

  constructor(payload, input, events) {
    this.#events = events;
    this.#checkpoints = new Map(Object.entries(payload.checkpoints ?? {}));
    this.#secrets = new Set(textsOf(payload.secrets));
    this.input = input;
    this.isDryRun = payload.dry_run === true;
    this.filesDir = payload.files_dir ?? "/tmp/uploads";
  }

  log(message, level = "info") {
    this.#events.log(level, message);
  }

  /** Texts that must not be seen. */
  get secrets() {
    return [...this.#secrets];
  }

  /** A secret that was born here: from now on nothing that is told holds it. */
  mask(value) {
    this.#secrets.add(value);
    this.#events.send({ t: "mask", value });
  }

  /** The steps to come, where they depend on the payload; otherwise the manifest names them. */
  plan(steps) {
    this.#events.send({ t: "plan", steps });
  }

  /** What is done when the site has ended the session. */
  onSessionExpired(renew) {
    this.#renew = renew;
  }

  /** Does a step and tells so. If the session ends in it, signs in again and does it once more, once in a job. */
  async step(id, deed) {
    const tell = (state) => this.#events.send({ t: "step", id, state });
    tell("started");
    try {
      const done = await this.#withSession(deed);
      tell("done");
      return done;
    } catch (error) {
      tell("failed");
      throw error;
    }
  }

  /** A step that needs not be done. */
  skip(id) {
    this.#events.send({ t: "step", id, state: "skipped" });
  }

  async #withSession(deed) {
    try {
      return await deed();
    } catch (error) {
      if (!(error instanceof SessionExpired) || !this.#renew || this.#isRenewed) throw error;
      this.#isRenewed = true;
      this.log("The site ended the session; signing in again.", "warn");
      await this.#renew();
      return deed();
    }
  }

  progress(done, total, message) {
    this.#events.send({ t: "progress", percent: Math.floor((100 * done) / Math.max(total, 1)), message, done, total });
  }

  /** What an attempt has left for the next one under this key. */
  checkpoint(key) {
    return this.#checkpoints.get(key);
  }

  /** Leaves something for the next attempt; no secret may be in it. */
  setCheckpoint(key, data) {
    this.#checkpoints.set(key, data);
    this.#events.send({ t: "checkpoint", key, data });
  }

  /** Whether an attempt was about to do this, and the site has not said no. */
  isIntended(key) {
    return this.checkpoint(key)?.status === "asked";
  }

  /** Does something that must not be done twice: the intent is written down first, and taken back if the site says no. */
  async intend(key, deed) {
    this.setCheckpoint(key, { status: "asked" });
    try {
      return await deed();
    } catch (error) {
      if (error instanceof Refused) this.setCheckpoint(key, { status: "refused" });
      throw error;
    }
  }

  /**
   * Makes each of these things once, whatever was interrupted. What may not be made twice is looked for first, and the
   * intent is written down before the deed: found later, a thing that was meant to be made is ours.
   */
  async each(kind, things, { exists, make }) {
    const details = [];
    for (const [at, thing] of things.entries()) {
      this.progress(at, things.length, `${thing.name} (${at + 1} of ${things.length})`);
      details.push({ name: thing.name, ...(await this.#once(`${kind}:${at}:${thing.name}`, thing, { exists, make })) });
    }
    this.progress(things.length, things.length, `${things.length} of ${things.length}`);
    return details;
  }

  async #once(key, thing, { exists, make }) {
    const known = this.checkpoint(key);
    if (known?.status && known.status !== "asked") return known;
    const isThere = exists ? await exists(thing) : false;
    if (isThere && known?.status === "asked") return this.#settle(key, { status: "created" });
    if (isThere) return { status: "failed", error: THERE };
    if (this.isDryRun) return { status: "planned" };
    if (exists) this.setCheckpoint(key, { status: "asked" });
    try {
      const more = await make(thing);
      return this.#settle(key, { status: "created", ...more });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.#settle(key, { status: "failed", error: error.message });
    }
  }

  #settle(key, outcome) {
    this.setCheckpoint(key, outcome);
    return outcome;
  }
}

/** As many of the details as fit, and how many do not; where not all do, those that failed come first. */
function listed(details) {
  const isFailed = ({ status }) => status === "failed";
  const isLong = details.length > DETAILS_MAX;
  const ordered = isLong ? [...details.filter(isFailed), ...details.filter((detail) => !isFailed(detail))] : details;
  let bytes = 0;
  const end = ordered.findIndex((detail, at) => {
    bytes += Buffer.byteLength(JSON.stringify(detail)) + 1;
    return at === DETAILS_MAX || bytes > DETAILS_BYTES_MAX;
  });
  if (end < 0) return { details: ordered };
  return { details: ordered.slice(0, end), detailsLeftOut: details.length - end };
}

/** What a job gives back that found everything there: nothing was left to do, which is as good as done. */
function allThere(details, [one, many], data) {
  const total = details.length;
  const shown = listed(details.map(({ name }) => ({ name, status: "exists" })));
  const message = total === 1 ? `The ${one} was there already` : `All ${total} ${many} were there already`;
  return { message, data: { ...data, itemsCreated: 0, itemsFailed: 0, ...shown } };
}

/** What the site said no to, where nothing at all was made. */
function refused(serious, total, [one, many], data) {
  const all = total === 1 ? `the ${one}` : `all ${total} ${many}`;
  const some = `${serious.length} of ${total} ${many}, and the others were there already`;
  const what = serious.length === total ? all : some;
  return new Failure("rejected", `The site refused ${what}: ${serious[0].error}.`, { data });
}

/** What a job gives back: how many things it made, and what became of each. */
export function outcome(details, [one, many], { verb = "created", data = {} } = {}) {
  const count = (status) => details.filter((detail) => detail.status === status).length;
  const [created, failed, planned] = ["created", "failed", "planned"].map(count);
  const total = details.length;
  const noun = total === 1 ? one : many;
  const told = { ...data, itemsCreated: created, itemsFailed: failed, ...listed(details) };
  if (planned > 0) return { message: `${planned} of ${total} ${noun} would be ${verb}`, data: told };
  const serious = details.filter(({ status, error }) => status === "failed" && error !== THERE);
  if (created === 0 && serious.length > 0) throw refused(serious, total, [one, many], told);
  if (total > 0 && created === 0) return allThere(details, [one, many], data);
  const Verb = verb[0].toUpperCase() + verb.slice(1);
  if (failed > 0) return { partial: true, message: `${Verb} ${created} of ${total} ${noun}`, data: told };
  return { message: `Successfully ${verb} ${total} ${noun}`, data: told };
}
