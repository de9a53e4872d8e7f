// Every type in a real browser, with everything that is known to go wrong, judged by what the site has stored.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { cases, newOwner } from "./cases.mjs";
import { attempt, demoSite, job, leftovers } from "./harness.mjs";

const site = await demoSite({ after });
const owned = (type, options) => newOwner(site, type, options);

async function isWhole(type, owner, { attempts, last }, count) {
  const { result } = last;
  assert.equal(attempts.length, count, JSON.stringify(attempts.map((one) => one.result)));
  assert.equal(result?.success, true, JSON.stringify(result) + last.logs);
  assert.equal(result.partial, undefined);
  const [created] = cases[type].created;
  assert.deepEqual([result.data.itemsCreated, result.data.itemsFailed], [created, 0]);
  assert.equal(result.data.details.length, created);
  assert.ok(result.duration_ms > 0);
  cases[type].holds(await site.restaurant(owner), { result });
}

for (const [type, { path, expires = path, partly, setUpPartly, created }] of Object.entries(cases)) {
  describe(type, { concurrency: 2 }, () => {
    test("does what it is asked for", async () => {
      const { owner, order } = await owned(type);
      await isWhole(type, owner, await job(type, order), 1);
    });

    test("with a wrong password changes nothing, and is not tried again", async () => {
      const { owner, order } = await owned(type, { password: "Wrong-password-1", isKnown: true });
      const before = await site.restaurant(owner);
      const { attempts, last } = await job(type, order);
      assert.equal(attempts.length, 1);
      assert.equal(last.result.success, false);
      assert.deepEqual(last.result.error, { code: "login_rejected", retryable: false });
      assert.equal(last.pictures.length, 1);
      assert.deepEqual(await site.restaurant(owner), before);
    });

    test("signs in again when the session ends", async () => {
      const { owner, order } = await owned(type);
      await site.fault({ kind: "expire", owner, path: expires });
      await isWhole(type, owner, await job(type, order), 1);
    });

    for (const kind of ["error", "error-after"]) {
      test(`comes through a server error ${kind === "error" ? "before" : "after"} it was stored`, async () => {
        const { owner, order } = await owned(type);
        await site.fault({ kind, owner, path });
        const done = await job(type, order);
        assert.deepEqual(done.attempts[0].result.error, { code: "server_error", retryable: true });
        await isWhole(type, owner, done, 2);
      });
    }

    test("tells what the site refused, and does the rest", async () => {
      const { owner, order } = await owned(type, { setUp: setUpPartly });
      if (partly) await site.fault({ ...partly, owner });
      const { attempts, last } = await job(type, order);
      const { result } = last;
      assert.equal(attempts.length, 1);
      assert.deepEqual([result.success, result.partial], [true, true], JSON.stringify(result));
      assert.deepEqual([result.data.itemsCreated, result.data.itemsFailed], [created[1], created[0] - created[1]]);
      assert.ok(result.data.details.find(({ status }) => status === "failed").error);
      cases[type].holds(await site.restaurant(owner), { isPartial: true, result });
    });

    test("out of time, leaves no process, and is done by another try", async () => {
      const { owner, order } = await owned(type);
      await site.fault({ kind: "endless", owner, path });
      const checkpoints = {};
      const first = await attempt(type, order, { until: site.struck(owner), checkpoints });
      assert.equal(first.isTimedOut, true);
      assert.equal(first.result, undefined);
      assert.deepEqual(await leftovers(first.folder), []);
      await isWhole(type, owner, await job(type, order, { checkpoints }), 1);
    });
  });
}
