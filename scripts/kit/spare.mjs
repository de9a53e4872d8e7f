// A spare: node with playwright-core loaded and a browser open, waiting for one payload of any type. Used once.
//
//   node spare.mjs [--browser PATH] [--no-sandbox]
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { launch } from "./browser.mjs";
import { Events } from "./events.mjs";
import { readPayload } from "./payload.mjs";
import { perform } from "./script.mjs";

const { values } = parseArgs({ options: { browser: { type: "string" }, "no-sandbox": { type: "boolean" } } });
const browser = await launch({ executable: values.browser, sandbox: !values["no-sandbox"] });
new Events().send({ t: "ready" });

const payload = await readPayload();
if (payload) {
  const file = payload.script
    ? pathToFileURL(payload.script)
    : new URL(`../types/${encodeURIComponent(payload.type)}/run.mjs`, import.meta.url);
  const { default: run } = await import(file.href);
  await perform(await run, payload.type, payload, async () => browser);
} else {
  await browser.close();
}
