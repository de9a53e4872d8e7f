// Looks through the checklist and opens the restaurant for orders.
import { Failure } from "../../kit/failure.mjs";
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";

export default script(import.meta, async (context) => {
  const { job, input } = context;
  const admin = await enter(context);
  const checks = await job.step("checklist", () => admin.checklist());
  const details = checks.map(({ name, isDone }) =>
    isDone ? { name, status: "created" } : { name, status: "failed", error: "Not set up yet" },
  );
  const missing = checks.filter((check) => check.isRequired && !check.isDone).map(({ name }) => name);
  if (missing.length) {
    const itemsFailed = details.filter(({ status }) => status === "failed").length;
    const data = { live: false, itemsCreated: details.length - itemsFailed, itemsFailed, details };
    throw new Failure(
      "onboarding_incomplete",
      `The restaurant cannot go live before these are set up: ${missing.join(", ")}.`,
      { data },
    );
  }
  const goesLive = input.goLive !== false && !job.isDryRun;
  if (!goesLive) job.skip("go-live");
  else {
    await job.step("go-live", async () => {
      if (!(await admin.isLive())) await admin.goLive();
    });
  }
  return outcome(details, ["part of the onboarding", "parts of the onboarding"], {
    verb: "completed",
    data: { live: await admin.isLive() },
  });
});
