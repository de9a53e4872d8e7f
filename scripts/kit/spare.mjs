// A spare: node with playwright-core and our pages loaded and a browser with a page open, waiting for one payload of any
// type. Used once.
//
//   node spare.mjs [--browser PATH] [--no-sandbox]
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import "../pages/admin.mjs";
import { launch, openPage } from "./browser.mjs";
import { Events } from "./events.mjs";
import { readPayload } from "./payload.mjs";
import { rehearse } from "./rehearsal.mjs";
import { perform } from "./script.mjs";

const { values } = parseArgs({ options: { browser: { type: "string" }, "no-sandbox": { type: "boolean" } } });
const asked = readPayload();
const browser = await launch({ executable: values.browser, sandbox: !values["no-sandbox"] });
const page = await openPage(browser);
// A job that is there already does not wait for it; one that comes later is quicker for it, and needs it not.
await Promise.race([asked, rehearse(browser).catch(() => {})]);
new Events().send({ t: "ready" });

const payload = await asked;
if (payload) {
  const file = payload.script
    ? pathToFileURL(payload.script)
    : new URL(`../types/${encodeURIComponent(payload.type)}/run.mjs`, import.meta.url);
  const { default: run } = await import(file.href);
  await perform(await run, payload.type, payload, async () => page);
} else {
  await browser.close();
}
