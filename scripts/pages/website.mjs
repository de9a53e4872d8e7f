// What both types for a restaurant's website do, but for the theme.
import { outcome } from "../kit/job.mjs";
import { enter } from "./admin.mjs";

export async function configureWebsite(context, theme) {
  const { job, input } = context;
  const admin = await enter(context);
  const { headline, domain, publish = true } = input;
  const parts = [{ name: "theme", make: () => admin.saveTheme(theme, input) }];
  if (headline !== undefined) parts.push({ name: "headline", make: () => admin.saveTexts({ headline }) });
  if (domain !== undefined) parts.push({ name: "domain", make: () => admin.saveTexts({ domain }) });
  const make = (part) => part.make();
  const saved = await job.step("configure", () => job.each("part", parts, { make }));
  if (!publish || saved[0].status === "failed") {
    job.skip("publish");
    return outcome(saved, ["part of the website", "parts of the website"], { verb: "configured" });
  }
  const publishing = [{ name: "publication", make: () => admin.publish() }];
  const published = await job.step("publish", () => job.each("publish", publishing, { make }));
  return outcome([...saved, ...published], ["part of the website", "parts of the website"], { verb: "configured" });
}
