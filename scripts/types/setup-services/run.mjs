// Sets up the ways in which guests are served.
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";

const TITLES = { delivery: "Delivery", pickup: "Pickup", "dine-in": "Dine-in" };

export default script(import.meta, async (context) => {
  const { job, input } = context;
  const steps = input.services.map(({ name }, at) => ({ id: `service-${at}`, title: TITLES[name] }));
  job.plan([{ id: "sign-in", title: "Sign in" }, ...steps]);
  const admin = await enter(context);
  const details = [];
  for (const [at, service] of input.services.entries()) {
    const make = () => admin.saveService(TITLES[service.name], service);
    details.push(...(await job.step(`service-${at}`, () => job.each(`service-${at}`, [service], { make }))));
    job.progress(at + 1, input.services.length, `${at + 1} of ${input.services.length} services`);
  }
  return outcome(details, ["service", "services"], { verb: "set up" });
});
