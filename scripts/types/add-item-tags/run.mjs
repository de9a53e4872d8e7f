// Adds tags for the items of a menu.
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";

export default script(import.meta, async (context) => {
  const { job, input } = context;
  const admin = await enter(context);
  const exists = ({ name }) => admin.hasTag(name);
  const details = await job.step("add-tags", () =>
    job.each("tag", input.itemTags, { exists, make: (tag) => admin.addTag(tag) }),
  );
  return outcome(details, ["item tag", "item tags"]);
});
