// The twelve types: what each is asked for, what the site must have stored then, and where it can be disturbed.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { order } from "./harness.mjs";

const required = ["menu", "website", "services", "payments"];
const advised = ["tags", "option-sets", "settings", "api-key"];

const tags = [
  { name: "Spicy", display_name: "Spicy", color: "#FF0000" },
  { name: "Vegan", display_name: "Vegan", color: "#00FF00" },
  { name: "New", display_name: "New!", color: "#0000FF" },
];
const size = {
  name: "Size",
  display_name: "Choose Size",
  is_required: true,
  multiple_selections_allowed: false,
  min_selections: 1,
  max_selections: 1,
  items: [
    { name: "Small", price: 0 },
    { name: "Medium", price: 2.0 },
    { name: "Large", price: 4.0 },
  ],
};
const extras = {
  name: "Extras",
  multiple_selections_allowed: true,
  max_selections: 2,
  items: [{ name: "Cheese", price: 1.5 }],
};
const csv = `name,category,price,description\n${Array.from({ length: 30 }, (_, at) => `Dish ${at + 1},Mains,${at + 5}.50,"Good, and ""hot"""`).join("\n")}\n`;
const website = {
  primaryColor: "#112233",
  accentColor: "#445566",
  headline: "Come in",
  domain: "www.best.example",
  publish: true,
};
const payments = {
  currency: "NZD",
  statementDescriptor: "BEST RESTAURANT",
  accountHolder: "Olive Owner",
  bankAccount: "NZ00-1234-5678-9012",
};
const services = [
  { name: "delivery", opens: "17:00", closes: "22:00", fee: 5, minimum_order: 20 },
  { name: "pickup", opens: "11:00", closes: "22:30" },
];
const settings = {
  tax: { rate_percent: 15, number: "12-345-678" },
  receipts: { footer: "Thank you!", copy_to: "books@best.example" },
  notifications: { orders_to: "kitchen@best.example", sound: "bell" },
};

const optionSet = (set) => ({
  display_name: set.name,
  is_required: false,
  multiple_selections_allowed: false,
  min_selections: 0,
  ...set,
  items: set.items.map(({ name, price }) => ({ name, price_cents: price * 100 })),
});

function holdsWebsite(theme) {
  return (site, { isPartial } = {}) =>
    assert.deepEqual(site.website, {
      theme,
      primary_color: "#112233",
      accent_color: "#445566",
      headline: "Come in",
      domain: isPartial ? "" : "www.best.example",
      published: true,
    });
}

function holdsPayments(linked) {
  return (site, { isPartial } = {}) => {
    const { account, ...rest } = site.payments;
    assert.match(account, /^acct_/);
    assert.equal(site.payment_account.id, account, "one account, the one that is connected");
    const settings = isPartial ? { currency: "", statement: "" } : { currency: "NZD", statement: "BEST RESTAURANT" };
    assert.deepEqual(rest, { ...settings, account_holder: "Olive Owner", linked });
  };
}

const configured = (theme) => ({
  input: website,
  path: "/website/theme",
  partly: { kind: "refuse", value: "www.best.example" },
  created: [4, 3],
  holds: holdsWebsite(theme),
});

const paid = (isLinked) => ({
  input: payments,
  path: "/connect/",
  expires: isLinked ? "/payments/link" : "/payments/connect",
  partly: { kind: "refuse", value: "BEST RESTAURANT" },
  created: isLinked ? [3, 2] : [2, 1],
  holds: holdsPayments(isLinked),
});

/**
 * `path` is where the faults strike, `partly` the fault that lets one thing fail, `created` how many things a whole and
 * a partial success count. `holds` looks at what is stored.
 */
export const cases = {
  "add-item-tags": {
    input: { itemTags: tags },
    path: "/tags",
    partly: { kind: "refuse", value: "Vegan" },
    created: [3, 2],
    holds: (site, { isPartial } = {}) =>
      assert.deepEqual(
        site.tags,
        tags.filter(({ name }) => !isPartial || name !== "Vegan"),
      ),
  },
  "add-option-sets": {
    input: { optionSets: [size, extras] },
    path: "/option-sets",
    partly: { kind: "refuse", value: "Extras" },
    created: [2, 1],
    holds: (site, { isPartial } = {}) =>
      assert.deepEqual(site.option_sets, (isPartial ? [size] : [size, extras]).map(optionSet)),
  },
  "import-csv-menu": {
    input: { csv },
    path: "/confirm",
    partly: { kind: "reject-row", row: 17 },
    created: [30, 29],
    holds(site, { isPartial } = {}) {
      const names = Array.from({ length: 30 }, (_, at) => at + 1).filter((at) => !isPartial || at !== 17);
      assert.deepEqual(
        site.menu.map(({ name }) => name),
        names.map((at) => `Dish ${at}`),
      );
      assert.deepEqual(site.menu[1], {
        name: "Dish 2",
        category: "Mains",
        description: 'Good, and "hot"',
        price_cents: 650,
      });
    },
  },
  "register-restaurant": {
    isNew: true,
    input: { address: "1 Main Street", phone: "+64 3 123 4567", cuisine: "Italian", timezone: "Pacific/Auckland" },
    path: "/sign-up",
    expires: "/profile",
    partly: { kind: "refuse", value: "+64 3 123 4567" },
    created: [2, 1],
    holds(site, { isPartial } = {}) {
      assert.equal(site.name, "The Best Restaurant");
      assert.equal(site.restaurants, 1);
      assert.deepEqual(site.profile, isPartial ? {} : this.input);
    },
  },
  "configure-website-dark": configured("dark"),
  "configure-website-light": configured("light"),
  "setup-stripe-payments": paid(true),
  "setup-stripe-payments-no-link": paid(false),
  "setup-services": {
    input: { services },
    path: "/services",
    partly: { kind: "refuse", value: "pickup" },
    created: [2, 1],
    holds(site, { isPartial } = {}) {
      const delivery = { enabled: true, opens: "17:00", closes: "22:00", fee_cents: 500, minimum_cents: 2000 };
      const pickup = { enabled: true, opens: "11:00", closes: "22:30", fee_cents: 0, minimum_cents: 0 };
      assert.deepEqual(site.services, isPartial ? { delivery } : { delivery, pickup });
    },
  },
  "setup-system-settings": {
    input: { settings },
    path: "/settings",
    partly: { kind: "refuse", value: "Thank you!" },
    created: [3, 2],
    holds(site, { isPartial } = {}) {
      const { receipts, ...rest } = { ...settings, tax: { ...settings.tax, rate_percent: "15" } };
      assert.deepEqual(site.settings, isPartial ? rest : { ...rest, receipts });
    },
  },
  "create-api-key": {
    input: { keyName: "Kitchen display", permissions: ["menu.read", "orders.write"] },
    path: "/api-keys",
    partly: { kind: "refuse", value: "orders.write" },
    created: [2, 1],
    holds(site, { isPartial, result } = {}) {
      assert.equal(site.api_keys.length, 1);
      const [{ name, permissions, sha256 }] = site.api_keys;
      assert.equal(name, "Kitchen display");
      assert.deepEqual(permissions, isPartial ? ["menu.read"] : ["menu.read", "orders.write"]);
      assert.equal(
        createHash("sha256").update(result.data.apiKey).digest("hex"),
        sha256,
        "the key that was handed over is the one that works",
      );
    },
  },
  "finalise-onboarding": {
    input: {},
    setUp: [...required, ...advised],
    setUpPartly: [...required, ...advised.slice(1)],
    path: "/onboarding",
    created: [8, 7],
    holds: (site) => assert.equal(site.live, true),
  },
};

let owners = 0;

/** An owner of one's own, known to the site unless the type opens the account, and the order for a job of theirs. */
export async function newOwner(site, type, { input, password, setUp, isKnown = !cases[type].isNew } = {}) {
  const owner = {
    email: `owner${(owners += 1)}@best.example`,
    password: `Pass-${crypto.randomUUID()}`,
    restaurant: "The Best Restaurant",
  };
  if (isKnown) await site.addOwner({ ...owner, set_up: setUp ?? cases[type].setUp ?? [] });
  const { email, restaurant: restaurantName } = owner;
  const sent = { email, password: password ?? owner.password, restaurantName, siteUrl: site.address };
  return { owner: email, order: await order(type, { ...sent, ...cases[type].input, ...input }) };
}
