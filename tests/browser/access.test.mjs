// axe-core finds nothing to complain about, in both themes, wide and narrow, in every state of the pages.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { browser as open, check, file, invoice, serve, visitor } from "./ode.mjs";

const here = { after };
const address = await serve(here);
const browser = await open(here);

for (const colorScheme of ["light", "dark"]) {
  for (const width of [320, 1280]) {
    test(`nothing is out of reach in the ${colorScheme} theme at ${width} pixels`, async (t) => {
      const { page } = await visitor(t, browser, address, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
      await page.goto("/");
      await check(page, "empty");
      await page.locator("#files").setInputFiles([
        file("good.pdf", invoice("INV/9")),
        file("bad.pdf", Buffer.from("no PDF at all")),
      ]);
      await page.locator("#queue .badge", { hasText: "Ready" }).waitFor();
      await page.getByText("Only PDF files are supported").first().waitFor();
      await check(page, "one ready, one refused");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "no sideways scrolling");
      await page.getByRole("link", { name: "good.pdf", exact: true }).click();
      await page.getByRole("heading", { name: "What happened" }).waitFor();
      await page.locator(".values summary").first().click();
      await check(page, "a job");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "no sideways scrolling");
      await page.goto(`${page.url()}/delete`);
      await check(page, "a question");
      await page.goto("/jobs/nothing");
      await check(page, "a page that is not there");
    });
  }
}
