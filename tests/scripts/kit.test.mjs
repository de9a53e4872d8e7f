// What the kit promises to scripts and to ODE, whatever the type.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { photograph } from "../../scripts/kit/browser.mjs";
import { outcome } from "../../scripts/kit/job.mjs";
import { cases, newOwner } from "./cases.mjs";
import { attempt, demoSite, folderOf, job, launchBrowser, leftovers, start, startSpare } from "./harness.mjs";

const site = await demoSite({ after });
const owned = (type, input) => newOwner(site, type, { input, isKnown: true });

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "ode-kit-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

const refusal = async (type, order) => {
  const { attempts, last } = await job(type, order);
  assert.equal(attempts.length, 1, "it is not tried again");
  assert.equal(last.result.success, false);
  return last.result;
};

describe("the protocol", { concurrency: 2 }, () => {
  test("a script that is not started by ODE says how to start it", async (t) => {
    const child = start([join(folderOf("add-item-tags"), "run.mjs")], await folder(t), "ignore");
    child.stdin.end("{}");
    let told = "";
    child.stderr.on("data", (part) => (told += part));
    const [code] = await once(child, "exit");
    assert.notEqual(code, 0);
    assert.match(told, /is not a pipe\. Start this script with `ode scripts run`/);
  });

  test("a payload of another protocol is refused", async () => {
    const { order } = await owned("add-item-tags");
    const { result } = await attempt("add-item-tags", { ...order, protocol: 2 });
    assert.deepEqual(result.error, { code: "payload_wrong", retryable: false });
  });

  test("every step that is told is in the plan", async () => {
    for (const type of ["finalise-onboarding", "setup-services"]) {
      const { order } = await owned(type);
      const { events } = await attempt(type, order);
      const manifest = await readFile(join(folderOf(type), "script.toml"), "utf8");
      const steps =
        events.find(({ t }) => t === "plan")?.steps.map(({ id }) => id) ??
        [...manifest.matchAll(/id = "([^"]+)"/g)].map(([, id]) => id);
      const told = new Set(events.filter(({ t }) => t === "step").map(({ id }) => id));
      assert.deepEqual([...told], steps);
      assert.equal(events[0].t, "hello");
      assert.equal(events.filter(({ t }) => t === "result").length, 1);
    }
  });

  test("a spare does a job as well as a new process", async () => {
    const { owner, order } = await owned("add-item-tags");
    const { events, result, folder } = await attempt("add-item-tags", order, { spare: true });
    assert.equal(events[0].t, "ready");
    assert.equal(result.success, true, JSON.stringify(result));
    cases["add-item-tags"].holds(await site.restaurant(owner));
    assert.deepEqual(await leftovers(folder), []);
  });

  test("a spare that gets nothing to do goes, with its browser", async (t) => {
    const place = await folder(t);
    const child = startSpare(place);
    await once(child.stdio[3], "data");
    child.stdin.end();
    const [code] = await once(child, "exit");
    assert.equal(code, 0);
    assert.deepEqual(await leftovers(place), []);
  });

  test("a dry run changes nothing", async () => {
    for (const type of ["add-item-tags", "configure-website-dark", "create-api-key"]) {
      const { owner, order } = await owned(type);
      const before = await site.restaurant(owner);
      const { result } = await attempt(type, { ...order, dry_run: true });
      assert.equal(result.success, true, JSON.stringify(result));
      assert.ok(result.data.details.every(({ status }) => status === "planned"));
      assert.deepEqual(await site.restaurant(owner), before);
    }
  });
});

describe("what goes wrong", { concurrency: 2 }, () => {
  test("a button with another name is told by its name", async () => {
    const { owner, order } = await owned("add-item-tags");
    await site.fault({ kind: "rename", owner });
    const { message, error } = await refusal("add-item-tags", order);
    assert.equal(error.code, "element_missing");
    assert.match(message, /did not find the button "Add tag"/);
    assert.deepEqual((await site.restaurant(owner)).tags, []);
  });

  test("an account with a second factor is not for automations", async () => {
    const { owner, order } = await owned("setup-services");
    await site.fault({ kind: "two-factor", owner });
    assert.deepEqual((await refusal("setup-services", order)).error, { code: "two_factor_required", retryable: false });
  });

  test("a slow site is waited for, longer than for a part of a page", async () => {
    const { owner, order } = await owned("add-item-tags");
    await site.fault({ kind: "slow", milliseconds: 11_000, owner, path: "/sign-in", times: 1 });
    const { result } = await attempt("add-item-tags", order);
    assert.equal(result.success, true, JSON.stringify(result));
    assert.ok(result.duration_ms > 11_000);
  });

  test("what the browser itself would not send is told by the field", async () => {
    const [size, extras] = cases["add-option-sets"].input.optionSets;
    const { owner, order } = await owned("add-option-sets", { optionSets: [{ ...extras, max_selections: 0 }, size] });
    const { result } = await attempt("add-option-sets", order);
    assert.deepEqual([result.success, result.partial], [true, true], JSON.stringify(result));
    assert.match(result.data.details[0].error, /^Most selections: /);
    assert.deepEqual(
      (await site.restaurant(owner)).option_sets.map(({ name }) => name),
      ["Size"],
    );
  });

  test("a session that ends again and again is tried again later", async () => {
    const { owner, order } = await owned("add-item-tags");
    await site.fault({ kind: "expire", owner, path: "/tags", times: 2 });
    const { attempts } = await job("add-item-tags", order);
    assert.deepEqual(
      attempts.map(({ result }) => result.error?.code),
      ["session_expired", undefined],
    );
    cases["add-item-tags"].holds(await site.restaurant(owner));
  });

  test("a restaurant that the account does not have is not found", async () => {
    const { order } = await owned("add-item-tags", { restaurantName: "Another Restaurant" });
    assert.equal((await refusal("add-item-tags", order)).error.code, "restaurant_not_found");
  });

  test("a site that is not there is tried again", async () => {
    const { order } = await owned("add-item-tags", { siteUrl: "http://127.0.0.1:9" });
    const { result } = await attempt("add-item-tags", order);
    assert.deepEqual(result.error, { code: "site_unreachable", retryable: true });
  });

  test("a restaurant is not opened before it is set up", async () => {
    const { owner, order } = await owned("finalise-onboarding");
    await site.addOwner({
      email: owner,
      password: order.secrets.password,
      restaurant: "The Best Restaurant",
      set_up: ["menu"],
    });
    const { error, message, data } = await refusal("finalise-onboarding", order);
    assert.equal(error.code, "onboarding_incomplete");
    assert.match(message, /Website, Services, Payments/);
    assert.equal(data.live, false);
    assert.equal((await site.restaurant(owner)).live, false);
  });

  test("what was there before is not counted as made", async () => {
    const itemTags = [...cases["add-item-tags"].input.itemTags, { name: "Spicy", color: "#123456" }];
    const { owner, order } = await owned("add-item-tags", { itemTags });
    const { result } = await attempt("add-item-tags", order);
    assert.deepEqual([result.success, result.partial, result.message], [true, true, "Created 3 of 4 item tags"]);
    assert.deepEqual(result.data.details[3], { name: "Spicy", status: "failed", error: "Already exists" });
    cases["add-item-tags"].holds(await site.restaurant(owner));
  });

  test("what is all there already is done, and says so", () => {
    const there = ["Spicy", "Vegan"].map((name) => ({ name, status: "failed", error: "Already exists" }));
    const refused = { name: "Odd", status: "failed", error: "No such colour" };
    const told = outcome(there, ["item tag", "item tags"]);
    assert.deepEqual([told.message, told.partial], ["All 2 item tags were there already", undefined]);
    assert.deepEqual([told.data.itemsCreated, told.data.itemsFailed], [0, 0]);
    assert.deepEqual(told.data.details[0], { name: "Spicy", status: "exists" });
    const one = outcome(there.slice(1), ["item tag", "item tags"]);
    assert.equal(one.message, "The item tag was there already");
    const all = /refused 1 of 3 item tags, and the others were there already: No such colour/;
    assert.throws(() => outcome([...there, refused], ["item tag", "item tags"]), all);
    assert.throws(() => outcome([refused], ["item tag", "item tags"]), { code: "rejected" });
  });

  test("a job that is sent again finds what it made", async () => {
    const { owner, order } = await owned("add-item-tags");
    await attempt("add-item-tags", order);
    const { result } = await attempt("add-item-tags", order);
    assert.deepEqual([result.success, result.message], [true, "All 3 item tags were there already"]);
    cases["add-item-tags"].holds(await site.restaurant(owner));
  });

  test("somebody else's key of the same name stays", async () => {
    const { owner, order } = await owned("create-api-key", { keyName: "Prepared" });
    await site.addOwner({
      email: owner,
      password: order.secrets.password,
      restaurant: "The Best Restaurant",
      set_up: ["api-key"],
    });
    const before = await site.restaurant(owner);
    assert.equal((await refusal("create-api-key", order)).error.code, "already_exists");
    assert.deepEqual(await site.restaurant(owner), before);
  });
});

describe("files", { concurrency: 2 }, () => {
  test("a CSV file is read only below the directory for files", async (t) => {
    const place = await folder(t);
    const [inside, outside] = [join(place, "files"), join(place, "outside.csv")];
    await mkdir(inside);
    await Promise.all([
      writeFile(join(inside, "menu.csv"), "name,price\nTea,3\n"),
      writeFile(outside, "name,price\nSecret,1\n"),
    ]);
    await symlink(outside, join(inside, "link.csv"));
    const send = async (csvFilePath) => {
      const { owner, order } = await owned("import-csv-menu", { csv: undefined, csvFilePath });
      const { result } = await attempt("import-csv-menu", { ...order, files_dir: inside });
      return { result, menu: (await site.restaurant(owner)).menu };
    };
    const [read, ...refused] = await Promise.all(
      [
        join(inside, "menu.csv"),
        outside,
        join(inside, "link.csv"),
        join(inside, "../outside.csv"),
        join(inside, "none.csv"),
      ].map(send),
    );
    assert.deepEqual(
      read.menu.map(({ name }) => name),
      ["Tea"],
    );
    for (const { result, menu } of refused) {
      assert.equal(result.error.code, "file_refused", JSON.stringify(result));
      assert.deepEqual(menu, []);
    }
  });

  test("a long file is imported whole, and its result names what failed", async () => {
    const rows = Array.from(
      { length: 3000 },
      (_, at) => `${"Long name ".repeat(30)}${at},${at === 2500 ? "free" : "5"}`,
    );
    const { owner, order } = await owned("import-csv-menu", { csv: `name,price\n${rows.join("\n")}\n` });
    const { result } = await attempt("import-csv-menu", order);
    const { itemsCreated, itemsFailed, details, detailsLeftOut } = result.data;
    assert.deepEqual([itemsCreated, itemsFailed, details.length + detailsLeftOut], [2999, 1, 3000]);
    assert.match(details[0].error, /The price "free" is not an amount/);
    assert.equal((await site.restaurant(owner)).menu.length, 2999);
  });

  test("a picture of a failure has no secret in it", async (t) => {
    const browser = await launchBrowser(t);
    const page = await browser.newPage();
    const secret = "Canary-8472";
    await page.setContent(
      `<input type=password value="${secret}"><input value="x${secret}x"><p>Your key is ${secret}.</p><p>Fine</p><iframe srcdoc="<p>${secret}</p>"></iframe>`,
    );
    const path = join(await folder(t), "failure.png");
    await photograph(page, path, [secret]);
    const shown = await Promise.all(
      page
        .frames()
        .map((frame) =>
          frame.evaluate(
            () => document.body.innerText + [...document.querySelectorAll("input")].map(({ value }) => value),
          ),
        ),
    );
    assert.ok(!shown.join().includes(secret), shown.join());
    assert.match(shown.join(), /Fine/);
    assert.deepEqual([...(await readFile(path)).subarray(1, 4)], [...Buffer.from("PNG")]);
  });

  test("every type has its files, and marks its password", async () => {
    const types = await readdir(join(folderOf("add-item-tags"), ".."));
    assert.deepEqual(types.sort(), Object.keys(cases).sort());
    for (const type of types) {
      const files = await readdir(folderOf(type));
      assert.deepEqual(files.sort(), ["payload.json", "result.json", "run.mjs", "script.toml"]);
      const { properties, required } = JSON.parse(await readFile(join(folderOf(type), "payload.json"), "utf8"));
      assert.equal(properties.password["x-ode-secret"], true);
      assert.ok(
        Object.values(properties).every(({ description }) => description),
        `${type}: every field says what it is`,
      );
      assert.ok(required.includes("restaurantName"));
    }
  });
});
