// Starts the real program for a test, opens real Chromium on it, and writes the PDFs that are sent to it.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import axe from "axe-core";
import { chromium } from "playwright-core";

const root = new URL("../..", import.meta.url).pathname;
export const program = process.env.ODE_TEST_PROGRAM ?? join(root, "target/debug/ode");
const database = process.env.ODE_TEST_DATABASE ? ["--database", process.env.ODE_TEST_DATABASE] : [];
const chromiumPath = process.env.ODE_TEST_CHROMIUM ?? "/usr/bin/chromium";

/** Runs `ode` once with these arguments, on what `ode serve` runs on, and gives what it printed. */
export function once(data, ...args) {
  return execFileSync(program, [...args, "--data", data, ...database], { encoding: "utf8" });
}

/** Runs `ode serve` on a data directory of its own, then in `test.data`, until the test ends; on SQLite, unless a database is named. */
export async function serve(test, ...args) {
  const data = await mkdtemp(join(tmpdir(), "ode-browser-"));
  test.data = data;
  const child = spawn(program, ["serve", "--data", data, "--listen", "127.0.0.1:0", "--gateway", "off", ...database, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    // How full this machine's disk is, is not what these tests are about.
    env: { ...process.env, ODE_DISK_PAUSE: "100" },
  });
  const ended = new Promise((done) => child.once("exit", done));
  test.after(async () => {
    child.kill("SIGTERM");
    await ended;
    await rm(data, { recursive: true, force: true });
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const address = line.match(/listening on (http:\S+)/)?.[1];
    if (address) return address;
  }
  throw new Error("ode serve ended before it listened");
}

/** One browser for a file of tests. */
export async function browser(test) {
  const launched = await chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox"],
  });
  test.after(() => launched.close());
  return launched;
}

/** A visitor with a cookie jar of their own; the test fails if the page complains in its console. */
export async function visitor(test, browser, address, options = {}) {
  const context = await browser.newContext({ baseURL: address, acceptDownloads: true, ...options });
  test.after(() => context.close());
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (told) => told.type() === "error" && complaints.push(told.text()));
  return { page, context, complaints };
}

/** A one-page PDF with a line of text for each entry, and a place for each. */
export function pdf(lines) {
  const text = lines
    .map(([x, y, words]) => `BT /F1 11 Tf ${x} ${y} Td (${words.replace(/[\\()]/g, "\\$&")}) Tj ET`)
    .join("\n");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${text.length} >>\nstream\n${text}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
  ];
  return assembled(objects);
}

/** A PDF of these objects, numbered from 1; the first is the catalog. */
export function assembled(objects) {
  let file = "%PDF-1.7\n";
  const places = objects.map((object, at) => {
    const place = file.length;
    file += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const xref = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n`;
  file += places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${xref}\n%%EOF\n`;
  return Buffer.from(file, "latin1");
}

/** An invoice as the default mapping knows them, with a number of its own. */
export function invoice(number) {
  return pdf([
    [60, 780, "PT SIMON"],
    [60, 760, "NPWP: 01.234.567.8-901.000"],
    [400, 780, "INVOICE"],
    [60, 700, `No. Invoice: ${number}`],
    [60, 680, "Tanggal: 15 Januari 2026"],
    [60, 640, "Deskripsi"], [300, 640, "Qty"], [360, 640, "Harga Satuan"], [470, 640, "Jumlah"],
    [60, 620, "Jasa konsultasi"], [300, 620, "2"], [360, 620, "Rp 500.000"], [470, 620, "Rp 1.000.000"],
    [360, 580, "DPP"], [470, 580, "Rp 1.000.000"],
    [360, 560, "PPN 11%"], [470, 560, "Rp 110.000"],
    [360, 540, "Total"], [470, 540, "Rp 1.110.000"],
  ]);
}

/** A file as a person would choose it. */
export const file = (name, buffer) => ({ name, mimeType: "application/pdf", buffer });

/** The specification of a small map, as a person would choose it. */
export const map = (title, page = { size: "A6", dpi: 72 }) => ({
  name: "map.json",
  mimeType: "application/json",
  buffer: Buffer.from(JSON.stringify({ schema: 1, page, base: { detail: "110m" }, title: { text: title } })),
});

/** Presses Tab until the keyboard is on something that matches. */
export async function reach(page, selector) {
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
  }
  assert.fail(`${selector} cannot be reached with Tab`);
}

/** axe-core finds nothing to complain about. */
export async function check(page, state) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
  assert.deepEqual(told, [], state);
}
