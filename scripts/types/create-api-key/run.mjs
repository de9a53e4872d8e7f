// Makes an API key and hands it over, once.
import { Failure } from "../../kit/failure.mjs";
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";

/**
 * The value is shown once: a key that an earlier attempt has made and not handed over is of no use to anybody, so it is
 * revoked and made anew. A key that somebody else has made stays.
 */
async function makeRoom(job, admin, name) {
  const isThere = await admin.hasKey(name);
  if (isThere && !job.isIntended("key")) {
    throw new Failure("already_exists", `There is already a key called "${name}". Choose another name, or revoke it.`);
  }
  if (isThere) await admin.revokeKey(name);
}

export default script(import.meta, async (context) => {
  const { job, input } = context;
  const { keyName, permissions } = input;
  const admin = await enter(context);
  const { value, given } = await job.step("create", async () => {
    await makeRoom(job, admin, keyName);
    if (job.isDryRun) return { given: [] };
    const made = await job.intend("key", () => admin.createKey(keyName, permissions));
    job.mask(made.value);
    return made;
  });
  const details = permissions.map((name) => {
    if (job.isDryRun) return { name, status: "planned" };
    return given.includes(name)
      ? { name, status: "created" }
      : { name, status: "failed", error: "The site does not give this permission" };
  });
  return outcome(details, ["permission", "permissions"], {
    verb: "granted",
    data: { keyName, ...(value && { apiKey: value }) },
  });
});
