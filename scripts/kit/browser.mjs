// The browser: found, started, and photographed without its secrets.
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { Failure } from "./failure.mjs";

/** The headless shell starts in two thirds of the time and needs a fifth less memory. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
/** An element that is not there by now will not come. */
const ELEMENT_MS_MAX = 10_000;
/** A page of a slow site; past it, another try is better than to wait. */
export const PAGE_MS_MAX = 60_000;
/** A page that cannot be drawn in this time hangs. */
const SCREENSHOT_MS_MAX = 5_000;

function findBrowser() {
  const folders = (process.env.PATH ?? "").split(":").filter(Boolean);
  const found = PROGRAMS.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) {
    throw new Failure(
      "setup_missing",
      "No browser was found. Install chromium-headless-shell or chromium on the worker.",
    );
  }
  return found;
}

let isStopping = false;

/** Whether somebody asked the process to end: what goes wrong from then on is no news. */
export const isAskedToStop = () => isStopping;

/** Closes the browser and ends the process when a signal asks for it. Whoever sent it ends what hangs. */
function endOnSignal(browser) {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ]) {
    process.once(signal, async () => {
      isStopping = true;
      await browser.close().catch(() => {});
      process.exit(code);
    });
  }
}

/** Starts a browser of one's own, which ends with the process. */
export async function launch({ executable, sandbox = true } = {}) {
  let playwright;
  try {
    playwright = await import("playwright-core");
  } catch (cause) {
    throw new Failure(
      "setup_missing",
      "playwright-core is not installed on the worker. Run `ode scripts setup` there.",
      { cause },
    );
  }
  const browser = await playwright.chromium.launch({
    executablePath: executable ?? findBrowser(),
    chromiumSandbox: sandbox,
    args: ["--disable-dev-shm-usage"],
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  endOnSignal(browser);
  return browser;
}

/** A page in a context that nobody has used. */
export async function openPage(browser) {
  const context = await browser.newContext({ acceptDownloads: false, serviceWorkers: "block" });
  context.setDefaultTimeout(ELEMENT_MS_MAX);
  context.setDefaultNavigationTimeout(PAGE_MS_MAX);
  return context.newPage();
}

/** Takes every secret out of what a page shows. Runs in the page. */
function cover(secrets) {
  const holds = (text) => secrets.some((secret) => text?.includes(secret));
  for (const field of document.querySelectorAll("input, textarea")) {
    if (field.type === "password" || holds(field.value)) field.value = "***";
    if (holds(field.placeholder)) field.placeholder = "***";
  }
  const texts = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    if (holds(texts.currentNode.data)) texts.currentNode.data = "***";
  }
}

/** A picture of the page with no secret in it, or none: a page that cannot be covered is not photographed. */
export async function photograph(page, path, secrets) {
  for (const frame of page.frames()) await withinTime(frame.evaluate(cover, secrets), SCREENSHOT_MS_MAX);
  const mask = [page.locator("input[type=password]")];
  await page.screenshot({ path, fullPage: true, mask, timeout: SCREENSHOT_MS_MAX });
}

function withinTime(work, ms) {
  let timer;
  const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error("the page hangs")), ms)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
