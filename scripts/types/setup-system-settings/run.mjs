// Sets up tax, receipts and notifications.
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";

/** The tabs of the settings: how the payload and the site call them and their fields. */
const TABS = {
  tax: ["Tax", { rate_percent: "Tax rate in percent", number: "Tax number" }],
  receipts: ["Receipts", { footer: "Receipt footer", copy_to: "Send a copy to" }],
  notifications: ["Notifications", { orders_to: "Tell about orders", sound: "Sound" }],
};

export default script(import.meta, async (context) => {
  const { job, input } = context;
  const admin = await enter(context);
  const tabs = Object.entries(input.settings).map(([name, values]) => {
    const [title, labels] = TABS[name];
    const fields = Object.fromEntries(Object.entries(values).map(([field, value]) => [labels[field], value]));
    return { name, make: () => admin.saveSettings(title, fields) };
  });
  const details = await job.step("settings", () => job.each("tab", tabs, { make: (tab) => tab.make() }));
  return outcome(details, ["group of settings", "groups of settings"], { verb: "saved" });
});
