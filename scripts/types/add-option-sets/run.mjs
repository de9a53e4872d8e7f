// Adds option sets, each with what can be chosen and its price.
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";

export default script(import.meta, async (context) => {
  const { job, input } = context;
  const admin = await enter(context);
  const exists = ({ name }) => admin.hasOptionSet(name);
  const make = (set) => admin.addOptionSet(set);
  const details = await job.step("add-option-sets", () => job.each("option-set", input.optionSets, { exists, make }));
  return outcome(details, ["option set", "option sets"]);
});
