// A spare: node with playwright-core and our pages loaded and a browser with a page open, waiting for one payload of any
// type. Used once.
//
//   node spare.mjs [--browser PATH] [--no-sandbox]
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { launch, openPage } from "./browser.mjs";
import { Events } from "./events.mjs";
import { readPayload } from "./payload.mjs";
import { perform } from "./script.mjs";

const { values } = parseArgs({ options: { browser: { type: "string" }, "no-sandbox": { type: "boolean" } } });
const page = await openPage(await launch({ executable: values.browser, sandbox: !values["no-sandbox"] }));
await import("../pages/admin.mjs");
new Events().send({ t: "ready" });

const payload = await readPayload();
if (payload) {
  const file = payload.script
    ? pathToFileURL(payload.script)
    : new URL(`../types/${encodeURIComponent(payload.type)}/run.mjs`, import.meta.url);
  const { default: run } = await import(file.href);
  await perform(await run, payload.type, payload, async () => page);
} else {
  await page.context().browser().close();
}
