// The page of maps as people use it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { browser as open, check, map, once, reach, serve, visitor } from "./ode.mjs";

const here = { after };
const address = await serve(here, "--uploads-a-minute", "1000");
const browser = await open(here);

const row = (page, title) => page.locator("#queue tbody tr", { hasText: title });
const ready = (page, title) => row(page, title).locator("td > .badge", { hasText: "Ready" }).waitFor();

async function print(page, title, paper) {
  await page.locator("#files").setInputFiles(map(title, paper));
  await page.getByRole("button", { name: "Print", exact: true }).first().click();
  await row(page, title).waitFor();
}

test("a map is printed, looked at, downloaded and printed again", async (t) => {
  const { page, complaints } = await visitor(t, browser, address);
  await page.goto("/maps");
  await page.getByText("No maps yet").waitFor();
  await print(page, "Journeys");
  await ready(page, "Journeys");
  const picture = row(page, "Journeys").getByRole("img", { name: "Preview of Journeys" });
  await page.waitForFunction((img) => img.complete && img.naturalWidth === 224, await picture.elementHandle());
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    row(page, "Journeys").getByRole("link", { name: "Download Journeys" }).click(),
  ]);
  const png = await readFile(await download.path());
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  await row(page, "Journeys").getByRole("button", { name: "Reprint Journeys" }).click();
  await row(page, "Journeys").getByText("Earlier prints").click();
  await row(page, "Journeys").locator(".prints li").waitFor();
  await ready(page, "Journeys");
  assert.deepEqual(complaints, []);
});

test("everything can be done with the keyboard", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.goto("/maps");
  await print(page, "By hand");
  await ready(page, "By hand");
  await reach(page, "#queue [data-act=download]");
  await reach(page, "#queue [data-act=print]");
  await page.keyboard.press("Enter");
  await row(page, "By hand").getByText("Earlier prints").waitFor();
});

test("the page works without script", async (t) => {
  const { page } = await visitor(t, browser, address, { javaScriptEnabled: false });
  await page.goto("/maps");
  await print(page, "Plain");
  for (let looks = 0; looks < 100 && !(await row(page, "Plain").locator("td > .badge", { hasText: "Ready" }).count()); looks += 1) {
    await page.waitForTimeout(100);
    await page.goto("/maps");
  }
  await row(page, "Plain").getByRole("button", { name: "Reprint" }).click();
  await row(page, "Plain").getByText("Earlier prints").waitFor();
});

test("a file that is no map is told as a page", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.goto("/maps");
  await page.locator("#files").setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from('{"schema": 1, "shape": 2}') });
  await page.getByRole("button", { name: "Print", exact: true }).first().click();
  await page.getByText("shape").waitFor();
});

test("an organisation signs in, orders a print and signs out", async (t) => {
  const { key } = JSON.parse(once(here.data, "keys", "create", "--organisation", "acme", "--json"));
  once(here.data, "print", "cap", "acme", "--order", "60.00", "--month", "600.00");
  const { page, complaints } = await visitor(t, browser, address, { bypassCSP: true });
  await page.goto("/maps");
  await page.getByRole("link", { name: "sign in" }).click();
  await check(page, "signing in");
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Signed in as acme").waitFor();
  await print(page, "Ordered", { size: "18x24", dpi: 36 });
  await ready(page, "Ordered");
  await row(page, "Ordered").getByRole("link", { name: "Order Ordered" }).click();
  await page.getByLabel("Name").fill("Ada Lovelace");
  await page.getByLabel("Street and number").fill("12 Main St");
  await page.getByLabel("Town").fill("Springfield");
  await page.getByLabel("Country").fill("us");
  await page.getByLabel("May cost at most").fill("30.00");
  assert.equal(await page.getByLabel("Product").locator("option").textContent(), "Poster, 18 × 24 in");
  await check(page, "ordering");
  await page.getByRole("button", { name: "Order", exact: true }).click();
  await row(page, "Ordered").locator("td > .badge", { hasText: "To be ordered" }).waitFor();
  await row(page, "Ordered").getByText("Order: not placed yet, up to 30.00 USD").waitFor();
  assert.equal(await row(page, "Ordered").getByRole("link", { name: "Order Ordered" }).count(), 0);
  await check(page, "ordered");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "sign in" }).waitFor();
  assert.equal(await row(page, "Ordered").count(), 0);
  assert.deepEqual(complaints, []);
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [320, 1280]) {
    test(`nothing is out of reach in the ${colorScheme} theme at ${width} pixels`, async (t) => {
      const { page } = await visitor(t, browser, address, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
      await page.goto("/maps");
      await check(page, "empty");
      await print(page, "A map with a title that is too long for one line of a telephone");
      await ready(page, "A map");
      await row(page, "A map").getByRole("button", { name: "Reprint" }).click();
      await row(page, "A map").getByText("Earlier prints").click();
      await ready(page, "A map");
      await check(page, "printed twice");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "no sideways scrolling");
    });
  }
}
