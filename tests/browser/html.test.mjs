// Converted documents in the browser that people would open them in: selected, copied, searched, followed, filled in,
// printed, read out, and all of it under a strict policy.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import { assembled, browser as open, program, visitor } from "./ode.mjs";

const here = { after };
const browser = await open(here);
const policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'";
const types = { ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2" };
const pageCount = 12;

/** Converts a PDF with the real program and gives the folder of the result. */
async function converted(t, pdf, ...options) {
  const folder = await mkdtemp(join(tmpdir(), "ode-html-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "in.pdf"), pdf);
  const ended = spawnSync(program, ["convert", join(folder, "in.pdf"), "--to", "html", "--out", join(folder, "out"), ...options]);
  assert.equal(ended.status, 0, ended.stderr.toString());
  return join(folder, "out");
}

/** Serves a result under the strict policy; gives its address and the paths that are asked for. */
async function served(t, folder) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = request.url === "/" ? "/index.html" : request.url;
    asked.push(path);
    const bytes = await readFile(join(folder, path)).catch(() => undefined);
    response.writeHead(bytes ? 200 : 404, { "content-type": types[extname(path)] ?? "text/plain", "content-security-policy": policy });
    response.end(bytes);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(async () => {
    const ended = new Promise((done) => server.close(done));
    // A browser keeps a connection ready that it never used: the server would wait for it, for minutes or for ever.
    server.closeAllConnections();
    await ended;
  });
  return { address: `http://127.0.0.1:${server.address().port}`, asked };
}

/** A visitor on a converted document; the test fails where the policy is broken or anything else is asked for. */
async function reader(t, pdf, { zoom = "1", ...options } = {}) {
  const heard = [];
  // Asked before anything is removed: what is still being loaded then is not there any more.
  t.after(() => assert.deepEqual(heard.flat(), [], "no complaint and no request elsewhere"));
  const { address, asked } = await served(t, await converted(t, pdf, "--zoom", zoom));
  const { page, context, complaints } = await visitor(t, browser, address, options);
  const foreign = [];
  heard.push(complaints, foreign);
  page.on("request", (request) => {
    const isOwn = request.url().startsWith(address) || request.url().startsWith("data:");
    if (!isOwn) foreign.push(request.url());
  });
  await page.goto("/");
  // Letters stand where they stay once the fonts are there.
  await page.evaluate(async () => void (await document.fonts.ready));
  return { page, context, asked };
}

const stream = (content, entries = "") => `<< /Length ${content.length} ${entries} >>\nstream\n${content}\nendstream`;
const hostile = "</script><img src=x onerror=alert\\(1\\)>";

/** A document with everything that a reader does something with. */
function report() {
  const objects = [];
  const add = (object) => objects.push(object);
  const pageNumber = (index) => 20 + index * 2;
  const kids = Array.from({ length: pageCount }, (_, index) => `${pageNumber(index)} 0 R`).join(" ");
  add(`<< /Type /Catalog /Pages 2 0 R /Lang (en) /Outlines 4 0 R /AcroForm << /Fields [8 0 R 9 0 R 10 0 R 11 0 R 12 0 R] /DR << /Font << /F1 3 0 R >> >> >> >>`);
  add(`<< /Type /Pages /Kids [${kids}] /Count ${pageCount} >>`);
  add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
  add("<< /Type /Outlines /First 5 0 R /Last 5 0 R /Count 2 >>");
  add(`<< /Title (Outer ${hostile}) /Parent 4 0 R /Dest [${pageNumber(0)} 0 R /Fit] /First 6 0 R /Last 6 0 R >>`);
  add(`<< /Title (Inner) /Parent 5 0 R /Dest [${pageNumber(1)} 0 R /Fit] >>`);
  add(stream("0 0 m 10 10 l S", "/Type /XObject /Subtype /Form /BBox [0 0 15 15]"));
  const widget = (entries, x, y, width) =>
    `<< /Type /Annot /Subtype /Widget /Rect [${x} ${y} ${x + width} ${y + 15}] /F 4 ${entries} >>`;
  add(widget("/FT /Tx /T (name) /TU (Your name) /V (Ada) /DA (/F1 10 Tf 0 g)", 50, 600, 200));
  const ticked = (on) => `/AP << /N << /${on} 7 0 R /Off 7 0 R >> >> /AS /Off`;
  add(widget(`/FT /Btn /T (agree) /TU (I agree) ${ticked("Yes")}`, 50, 570, 15));
  const choice = (on, x) => widget(`/FT /Btn /Ff 32768 /T (colour) /TU (${on}) ${ticked(on)}`, x, 540, 15);
  add(choice("Red", 50));
  add(choice("Blue", 80));
  add(widget("/FT /Ch /Ff 131072 /T (land) /TU (Country) /Opt [(Austria) (Benin)] /V (Austria) /DA (/F1 10 Tf 0 g)", 50, 510, 120));
  const link = (entries, y) => `<< /Type /Annot /Subtype /Link /Rect [50 ${y} 250 ${y + 15}] /Border [0 0 0] ${entries} >>`;
  add(link(`/Dest [${pageNumber(1)} 0 R /Fit]`, 680));
  add(link("/A << /S /URI /URI (https://example.org/a) >>", 660));
  add(link("/A << /S /URI /URI (javascript:alert\\(1\\)) >>", 640));
  while (objects.length < 18) add("null");
  for (let index = 0; index < pageCount; index += 1) {
    const line = (y, size, text) => `BT /F1 ${size} Tf 50 ${y} Td (${text}) Tj ET`;
    const first = [
      line(780, 24, "The report"),
      line(750, 11, `Plain words that go over a para-`),
      line(737, 11, `graph end ${hostile}`),
      line(683, 11, "See the second page"),
      line(663, 11, "See elsewhere"),
    ];
    // Too much to be in the page itself: a file that is loaded when somebody comes near.
    const curves = Array.from({ length: 3000 }, (_, at) => `${at % 590} ${(at * 7) % 700} m ${(at * 13) % 590} ${(at * 29) % 700} ${(at * 3) % 590} 50 300 ${at % 300} c S`);
    const last = index === pageCount - 1 ? curves : [];
    add(stream([...(index === 0 ? first : [line(700, 11, `This is page ${index + 1} with a needle${index + 1} in it`)]), ...last].join("\n")));
    const annotations = index === 0 ? "/Annots [13 0 R 14 0 R 15 0 R 8 0 R 9 0 R 10 0 R 11 0 R 12 0 R]" : "";
    add(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents ${pageNumber(index) - 1} 0 R /Resources << /Font << /F1 3 0 R >> >> ${annotations} >>`);
  }
  return assembled(objects);
}

/** A tagged document: a heading, a list, a table with a cell over two columns, a figure with its alternative text. */
function tagged() {
  const words = ["Heading", "First item", "Second item", "Wide", "Left", "Right", "The end"];
  const content = words
    .map((text, at) => `/P << /MCID ${at} >> BDC BT /F1 12 Tf 50 ${750 - 30 * at} Td (${text}) Tj ET EMC`)
    .join("\n");
  const element = (kind, kids, more = "") => `<< /S /${kind} /Pg 5 0 R ${more} /K [${kids}] >>`;
  const item = (number) => element("LI", element("LBody", number));
  const wide = element("TH", "3", "/A << /O /Table /ColSpan 2 >>");
  const kids = [
    element("H1", "0"),
    element("L", item("1") + item("2")),
    element("Table", element("TR", wide) + element("TR", element("TD", "4") + element("TD", "5"))),
    `<< /S /Figure /Pg 5 0 R /Alt (A drawing of a cat) >>`,
    element("P", "6"),
  ].join(" ");
  return assembled([
    "<< /Type /Catalog /Pages 2 0 R /Lang (en) /MarkInfo << /Marked true >> /StructTreeRoot 6 0 R >>",
    "<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    stream(content),
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> /StructParents 0 >>",
    `<< /Type /StructTreeRoot /K ${element("Document", kids)} >>`,
  ]);
}

/** A document in a script from right to left, in one without spaces, and downwards. */
function scripts() {
  const map = (pairs) => stream(`1 begincodespacerange <00> <ff> endcodespacerange ${pairs.length} beginbfchar ${pairs.map(([code, text]) => `<${code}> <${text}>`).join(" ")} endbfchar`);
  const font = (table) => `<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode ${table} 0 R >>`;
  const content = "BT /F1 20 Tf 50 700 Td (12 CBA) Tj ET BT /F2 20 Tf 50 650 Td (AB) Tj ET BT /F2 20 Tf 0 -1 1 0 300 700 Tm (AB) Tj ET";
  return assembled([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 7 0 R >> >> >>",
    stream(content),
    font(6),
    map([["41", "05d0"], ["42", "05d1"], ["43", "05d2"], ["31", "0031"], ["32", "0032"]]),
    font(8),
    map([["41", "6f22"], ["42", "5b57"]]),
  ]);
}

test("text is selected by the mouse and copied as it is read", async (t) => {
  const { page, context } = await reader(t, report());
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const place = await page.evaluate(() => {
    const line = [...document.querySelectorAll("#page-1 .l")].find((one) => one.textContent.includes("The report"));
    const range = document.createRange();
    range.selectNodeContents(line);
    const { left, right, top, height } = range.getBoundingClientRect();
    return { left, right, y: top + height / 2 };
  });
  await page.mouse.move(place.left + 1, place.y);
  await page.mouse.down();
  await page.mouse.move(place.right - 1, place.y, { steps: 5 });
  await page.mouse.up();
  assert.equal(await page.evaluate(() => String(getSelection())), "The report");
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Control+C");
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /The report/);
  assert.match(text, /Plain words that go over a paragraph\s+end <\/script><img src=x onerror=alert\(1\)>/);
  assert.match(text, /This is page 12 with a needle12 in it/);
  assert.equal(text.match(/Ada/g).length, 1, "a field's value is copied with the page, once");
});

test("text is found wherever it is", async (t) => {
  const { page } = await reader(t, report());
  for (const words of ["paragraph", "needle7", "needle12"]) {
    assert.ok(await page.evaluate((wanted) => window.find(wanted, false, false, true), words), words);
  }
  assert.ok(!(await page.evaluate(() => window.find("haystack", false, false, true))));
});

test("links lead to pages and to addresses, never to a script", async (t) => {
  const { page, context } = await reader(t, report());
  await page.getByRole("link", { name: "See the second page" }).click();
  await page.waitForURL(/#page-2$/);
  assert.ok(await page.locator("#page-2").evaluate((one) => Math.abs(one.getBoundingClientRect().top) < 50));
  await page.getByText("Contents").click();
  await page.getByRole("link", { name: "Inner" }).click();
  assert.deepEqual(await page.locator("a[href^='javascript'], a[href^='data']").count(), 0);
  const outside = page.getByRole("link", { name: "See elsewhere" });
  assert.equal(await outside.getAttribute("href"), "https://example.org/a");
  assert.match(await outside.getAttribute("rel"), /noopener/);
  const elsewhere = await context.newPage();
  await elsewhere.route("https://example.org/**", (route) => route.fulfill({ body: "here" }));
  await elsewhere.goto(page.url());
  await elsewhere.getByRole("link", { name: "See elsewhere" }).click();
  await elsewhere.waitForURL("https://example.org/a");
});

test("a form is filled in with the keyboard", async (t) => {
  const { page } = await reader(t, report());
  await page.locator("body").click({ position: { x: 2, y: 2 } });
  const reached = [];
  while (reached.length < 12 && reached.at(-1) !== "Country") {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.tagName));
    const label = reached.at(-1);
    if (label === "Your name") await page.keyboard.type("Grace");
    if (label === "I agree") await page.keyboard.press("Space");
    if (label === "Red") await page.keyboard.press("ArrowDown");
    if (label === "Country") await page.keyboard.press("B");
  }
  const fields = reached.filter((label) => ["Your name", "I agree", "Red", "Blue", "Country"].includes(label));
  assert.deepEqual(fields, ["Your name", "I agree", "Red", "Country"], reached.join(", "));
  assert.equal(await page.getByLabel("Your name").inputValue(), "Grace");
  assert.ok(await page.getByLabel("I agree").isChecked());
  assert.ok(await page.getByLabel("Blue").isChecked());
  assert.equal(await page.getByLabel("Country").inputValue(), "Benin");
});

test("all of a page can be reached that is wider than the window", async (t) => {
  const { page } = await reader(t, report(), { zoom: "3" });
  const edges = () => page.locator("#page-1").evaluate((one) => {
    const { left, right } = one.getBoundingClientRect();
    return { left, right, window: document.documentElement.clientWidth };
  });
  const first = await edges();
  assert.ok(first.left >= 0 && first.right > first.window, JSON.stringify(first));
  await page.evaluate(() => window.scrollTo(1e6, 0));
  const last = await edges();
  assert.ok(last.right <= last.window, JSON.stringify(last));
});

test("only what is near is loaded", async (t) => {
  const { page, asked } = await reader(t, report());
  await page.waitForLoadState("networkidle");
  assert.ok(!asked.includes(`/drawings/${pageCount}.svg`) && !asked.some((path) => path.endsWith(`/${pageCount}.svg`)), asked.join(" "));
  const drawing = page.waitForResponse((response) => response.url().endsWith(`/${pageCount}.svg`));
  await page.locator(`#page-${pageCount}`).scrollIntoViewIfNeeded();
  assert.equal((await drawing).status(), 200);
});

test("each page is printed on a sheet of its own", async (t) => {
  const { page } = await reader(t, report());
  await page.emulateMedia({ media: "print" });
  assert.ok(!(await page.locator("nav").isVisible()));
  const printed = await page.pdf({ preferCSSPageSize: true });
  assert.equal(printed.toString("latin1").match(/\/Type\s*\/Page\b/g).length, pageCount);
  const { stdout } = spawnSync(program, ["convert", "-", "--to", "text"], { input: printed });
  for (const words of ["The report", "See elsewhere", "needle2 ", "needle12 "]) assert.match(stdout.toString(), new RegExp(words));
});

test("the frame follows the theme and the paper stays white", async (t) => {
  const { page } = await reader(t, report(), { colorScheme: "dark" });
  const colour = (selector) => page.locator(selector).first().evaluate((one) => getComputedStyle(one).backgroundColor);
  assert.equal(await colour("#page-1"), "rgb(255, 255, 255)");
  assert.equal(await colour("body"), "rgb(28, 28, 30)");
});

test("one file needs nothing else", async (t) => {
  const file = await converted(t, report(), "--single-file");
  await rename(file, `${file}.html`);
  const { page, complaints } = await visitor(t, browser);
  const asked = [];
  page.on("request", (request) => !request.url().startsWith("data:") && asked.push(request.url()));
  const address = pathToFileURL(`${file}.html`).href;
  await page.goto(address);
  await page.getByText("The report").first().waitFor();
  assert.ok(await page.evaluate(() => document.fonts.size > 1 && [...document.fonts].some((font) => font.status === "loaded")));
  assert.deepEqual([complaints, asked], [[], [address]]);
});

test("every script is copied in the order of reading", async (t) => {
  const { page } = await reader(t, scripts());
  const text = await page.locator("#page-1").innerText();
  assert.match(text, /\u05d0\u05d1\u05d2 12/);
  assert.equal(text.match(/漢字/g).length, 2, text);
  assert.ok(await page.evaluate(() => window.find("\u05d0\u05d1\u05d2")));
});

test("letters from right to left stand where the document has them", async (t) => {
  const { page } = await reader(t, scripts());
  const places = await page.locator("#page-1 .l[dir=rtl]").evaluate((line) => {
    const edge = document.querySelector("#page-1").getBoundingClientRect().left;
    const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    const places = {};
    while (texts.nextNode()) {
      [...texts.currentNode.data].forEach((letter, at) => {
        const range = document.createRange();
        range.setStart(texts.currentNode, at);
        range.setEnd(texts.currentNode, at + 1);
        const { left, right } = range.getBoundingClientRect();
        // In points.
        places[letter] = [left, right].map((x) => ((x - edge) * 72) / 96);
      });
    }
    return places;
  });
  // The widths of Helvetica, in thousandths of 20 points.
  const expected = { 1: [50, 61.12], 2: [61.12, 72.24], "\u05d2": [77.8, 92.24], "\u05d1": [92.24, 105.58], "\u05d0": [105.58, 118.92] };
  for (const [letter, edges] of Object.entries(expected)) {
    const far = edges.map((edge, at) => Math.abs(edge - places[letter][at]));
    assert.ok(Math.max(...far) < 0.5, `${letter} stands at ${places[letter]} instead of ${edges}`);
  }
});

test("tags are heard as what they are", async (t) => {
  const { page } = await reader(t, tagged());
  await page.getByRole("heading", { level: 1, name: "Heading" }).waitFor({ state: "attached" });
  assert.equal(await page.getByRole("listitem").count(), 2);
  assert.equal(await page.locator("th", { hasText: "Wide" }).getAttribute("colspan"), "2");
  assert.deepEqual(await page.locator("td").allInnerTexts(), ["Left", "Right"]);
  await page.getByRole("img", { name: "A drawing of a cat" }).waitFor({ state: "attached" });
});

for (const colorScheme of ["light", "dark"]) {
  for (const [name, pdf] of Object.entries({ report, tagged, scripts })) {
    test(`axe finds nothing in the ${name} in the ${colorScheme} theme`, async (t) => {
      const { page } = await reader(t, pdf(), { colorScheme, bypassCSP: true });
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() =>
        window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
      );
      const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
      assert.deepEqual(told, []);
    });
  }
}
