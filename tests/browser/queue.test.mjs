// The queue page as people use it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { browser as open, file, invoice, reach, serve, visitor } from "./ode.mjs";

const here = { after };
const address = await serve(here);
const browser = await open(here);

const row = (page, name) => page.locator("#queue tbody tr", { hasText: name });
const badge = (page, name, label) => row(page, name).locator(".badge", { hasText: label });
const ready = (page, name) => badge(page, name, "Ready").waitFor();

async function content(page, deed) {
  const [download] = await Promise.all([page.waitForEvent("download"), deed()]);
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") };
}

test("an empty queue says what to do", async (t) => {
  const { page, complaints } = await visitor(t, browser, address);
  await page.goto("/");
  await page.getByText("No files yet. Drop PDFs here to convert").waitFor();
  assert.deepEqual(complaints, []);
});

test("a chosen file is sent, followed and downloaded", async (t) => {
  const { page, complaints } = await visitor(t, browser, address);
  await page.goto("/");
  await page.locator("#files").setInputFiles([file("first.pdf", invoice("INV/1")), file("second.pdf", invoice("INV/2"))]);
  await ready(page, "first.pdf");
  await ready(page, "second.pdf");
  const got = await content(page, () => row(page, "second.pdf").getByRole("link", { name: "Download" }).click());
  assert.equal(got.name, "second.xml");
  assert.match(got.text, /INV\/2/);
  assert.deepEqual(complaints, []);
});

test("once everything has ended, nothing is asked any more", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.clock.install();
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("last.pdf", invoice("INV/20")));
  await ready(page, "last.pdf");
  // What was under way when it ended may still be asked for.
  await page.clock.runFor(1000);
  await page.waitForLoadState("networkidle");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.clock.runFor(120_000);
  assert.deepEqual(asked, []);
});

test("dropped files are sent as chosen ones are", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.goto("/");
  const carried = await page.evaluateHandle((bytes) => {
    const carried = new DataTransfer();
    carried.items.add(new File([new Uint8Array(bytes)], "dropped.pdf", { type: "application/pdf" }));
    return carried;
  }, [...invoice("INV/3")]);
  await page.dispatchEvent("#upload", "drop", { dataTransfer: carried });
  await ready(page, "dropped.pdf");
});

test("everything can be done with the keyboard", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.goto("/");
  await reach(page, "#files");
  const chooser = await chooserBy(page, "Space");
  await chooser.setFiles(file("keyboard.pdf", invoice("INV/4")));
  await ready(page, "keyboard.pdf");
  await reach(page, "#queue [data-act=download]");
  const got = await content(page, () => page.keyboard.press("Enter"));
  assert.match(got.text, /INV\/4/);
});

/** The chooser that a key opens. A busy browser may miss a key, as it may miss a person's: it is pressed again. */
async function chooserBy(page, key) {
  let isOpen = false;
  const opened = page.waitForEvent("filechooser").finally(() => (isOpen = true));
  while (!isOpen) {
    await page.keyboard.press(key);
    await Promise.race([opened, new Promise((resolve) => setTimeout(resolve, 2000))]);
  }
  return opened;
}

test("the page works without script", async (t) => {
  const { page } = await visitor(t, browser, address, { javaScriptEnabled: false });
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("plain.pdf", invoice("INV/5")));
  await page.getByRole("button", { name: "Convert" }).click();
  for (let looks = 0; looks < 100 && !(await badge(page, "plain.pdf", "Ready").count()); looks += 1) {
    await page.waitForTimeout(100);
    await page.goto("/");
  }
  const got = await content(page, () => row(page, "plain.pdf").getByRole("link", { name: "Download" }).click());
  assert.match(got.text, /INV\/5/);
  await row(page, "plain.pdf").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Delete plain.pdf?" }).waitFor();
  await page.getByRole("link", { name: "Keep it" }).click();
  await row(page, "plain.pdf").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("No files yet").waitFor();
});

test("what a form without script was refused for is told, and the page can be reloaded", async (t) => {
  const { page } = await visitor(t, browser, address, { javaScriptEnabled: false });
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("letter.pdf", Buffer.from("Dear Sir or Madam")));
  await page.getByRole("button", { name: "Convert" }).click();
  await page.getByText("Only PDF files are supported").first().waitFor();
  await page.goto("/upload");
  await page.getByText("No files yet").waitFor();
  assert.equal(new URL(page.url()).pathname, "/");
});

test("a value is corrected on the job's page", async (t) => {
  const { page, complaints } = await visitor(t, browser, address);
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("wrong.pdf", invoice("INV/10")));
  await ready(page, "wrong.pdf");
  await row(page, "wrong.pdf").getByRole("link", { name: "Review" }).click();
  const value = page.locator(".values tr", { hasText: "invoice number" });
  await value.locator("summary").click();
  await value.getByLabel("Should be").fill("INV/11");
  await value.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Corrections" }).waitFor();
  assert.equal(await page.locator(".values ins").textContent(), "INV/11");
  assert.match(await page.locator("#values .story li").textContent(), /INV\/10.*INV\/11.*page 1/s);
  assert.deepEqual(complaints, []);
});

test("two visitors do not see each other's files", async (t) => {
  const one = await visitor(t, browser, address);
  const other = await visitor(t, browser, address);
  await one.page.goto("/");
  await one.page.locator("#files").setInputFiles(file("mine.pdf", invoice("INV/6")));
  await ready(one.page, "mine.pdf");
  const link = await row(one.page, "mine.pdf").getByRole("link", { name: "mine.pdf", exact: true }).getAttribute("href");
  await other.page.goto("/");
  await other.page.getByText("No files yet").waitFor();
  const foreign = await other.page.goto(link);
  assert.equal(foreign.status(), 404);
  const foreignText = await other.page.locator("main").textContent();
  await other.page.goto("/jobs/01890000-0000-7000-8000-000000000000");
  assert.equal(await other.page.locator("main").textContent(), foreignText);
});

test("a text file with the name of a PDF is refused in a sentence", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("letter.pdf", Buffer.from("Dear Sir or Madam")));
  await page.getByText("Only PDF files are supported").first().waitFor();
});

test("files beyond the limit wait for their turn and none is lost", async (t) => {
  const slow = await serve(t, "--uploads-a-minute", "30");
  const { page } = await visitor(t, browser, slow);
  await page.goto("/");
  const names = Array.from({ length: 36 }, (_, at) => `many-${at}.pdf`);
  let refused = 0;
  page.on("response", (response) => (refused += response.status() === 429 ? 1 : 0));
  await page.locator("#files").setInputFiles(names.map((name) => file(name, invoice(`INV/M/${name}`))));
  await page.getByText("Waiting its turn").first().waitFor();
  for (const name of names) await row(page, name).first().waitFor();
  await page.waitForFunction(() => document.getElementById("sending").hidden);
  // Three were on their way when the limit was met; the others are not sent just to be refused.
  assert.ok(refused <= 4, `${refused} were refused`);
});

test("what is done in another window shows in this one", async (t) => {
  const { page, context } = await visitor(t, browser, address);
  await page.goto("/");
  await page.getByText("No files yet").waitFor();
  const other = await context.newPage();
  await other.goto("/");
  await other.locator("#files").setInputFiles(file("elsewhere.pdf", invoice("INV/21")));
  await ready(page, "elsewhere.pdf");
  other.on("dialog", (dialog) => dialog.accept());
  await row(other, "elsewhere.pdf").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No files yet").waitFor();
});

test("a job has a page with its history", async (t) => {
  const { page } = await visitor(t, browser, address);
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("story.pdf", invoice("INV/7")));
  await ready(page, "story.pdf");
  await row(page, "story.pdf").getByRole("link", { name: "story.pdf", exact: true }).click();
  await page.getByRole("heading", { name: "What happened" }).waitFor();
  const told = await page.locator("ol.story li").allTextContents();
  assert.ok(told.length >= 3, told.join("\n"));
});

test("a deleted file leaves the list and its page", async (t) => {
  const { page } = await visitor(t, browser, address);
  page.on("dialog", (dialog) => dialog.accept());
  await page.goto("/");
  await page.locator("#files").setInputFiles(file("gone.pdf", invoice("INV/8")));
  await ready(page, "gone.pdf");
  const link = await row(page, "gone.pdf").getByRole("link", { name: "gone.pdf", exact: true }).getAttribute("href");
  await row(page, "gone.pdf").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No files yet").waitFor();
  assert.equal((await page.goto(link)).status(), 404);
});
