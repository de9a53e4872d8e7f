// The admin of one restaurant, signed in: the way into it, and its pages.
import { Account } from "./account.mjs";
import { Screen } from "./screen.mjs";

/** Signs in and finds the restaurant; signs in again when the site has ended the session. */
export async function enter({ job, page, input, site }) {
  const account = new Account(page, site);
  const signIn = () => account.signIn(input.email, input.password);
  job.onSessionExpired(signIn);
  return job.step("sign-in", async () => {
    await signIn();
    return new Admin(page, site, await account.find(input.restaurantName));
  });
}

/** A page below the restaurant's own path. */
export class Admin extends Screen {
  constructor(page, site, path) {
    super(page, site);
    this.path = path;
  }

  /** Goes to a page of the restaurant. */
  async visit(name) {
    await this.open(`${this.path}/${name}`);
  }

  /** Whether the first column of a table holds this. */
  async lists(name, page, caption) {
    await this.visit(page);
    return (await this.rows(caption)).some(([first]) => first === name);
  }

  // The profile.

  async saveProfile(fields) {
    await this.visit("profile");
    for (const [label, value] of Object.entries(fields)) await this.fill(label, value);
    await this.submit("Save profile");
  }

  // Tags and option sets.

  hasTag(name) {
    return this.lists(name, "tags", "Tags");
  }

  async addTag({ name, display_name, color }) {
    await this.visit("tags");
    await this.fill("Name", name);
    await this.fill("Display name", display_name ?? name);
    await this.fill("Colour", color);
    await this.submit("Add tag");
  }

  hasOptionSet(name) {
    return this.lists(name, "option-sets", "Option sets");
  }

  async addOptionSet(set) {
    await this.visit("option-sets/new");
    await this.fill("Name", set.name);
    await this.fill("Display name", set.display_name ?? set.name);
    await this.tick("Guests must choose", set.is_required ?? false);
    await this.tick("Guests may choose several", set.multiple_selections_allowed ?? false);
    await this.fill("Least selections", set.min_selections ?? (set.is_required ? 1 : 0));
    await this.fill("Most selections", set.max_selections ?? 1);
    for (const [at, { name, price }] of set.items.entries()) {
      if (at > 0) await this.press("Add option");
      const row = this.within(this.page.getByRole("group", { name: `Option ${at + 1}`, exact: true }));
      await row.fill("Option name", name);
      await row.fill("Option price", (price ?? 0).toFixed(2));
    }
    await this.submit("Save option set");
  }

  // The website.

  async saveTheme(theme, { primaryColor, accentColor }) {
    await this.visit("website");
    await this.tick(theme, true);
    if (primaryColor) await this.fill("Primary colour", primaryColor);
    if (accentColor) await this.fill("Accent colour", accentColor);
    await this.submit("Save theme");
  }

  async saveTexts({ headline, domain }) {
    await this.visit("website");
    if (headline !== undefined) await this.fill("Headline", headline);
    if (domain !== undefined) await this.fill("Web address", domain);
    await this.submit("Save texts");
  }

  async publish() {
    await this.visit("website");
    await this.submit("Publish website");
  }

  // Services and settings.

  async saveService(title, { enabled, opens, closes, fee, minimum_order }) {
    await this.visit("services");
    const form = this.within(this.page.getByRole("form", { name: title, exact: true }));
    await form.tick("Offered", enabled ?? true);
    if (opens) await form.fill("Opens", opens);
    if (closes) await form.fill("Closes", closes);
    if (fee !== undefined) await form.fill("Fee", fee.toFixed(2));
    if (minimum_order !== undefined) await form.fill("Smallest order", minimum_order.toFixed(2));
    await form.submit("Save service");
  }

  async saveSettings(tab, fields) {
    await this.visit("settings");
    await this.press(tab, "tab");
    const panel = this.within(this.page.getByRole("tabpanel", { name: tab, exact: true }));
    for (const [label, value] of Object.entries(fields)) await panel.fill(label, value);
    await panel.submit("Save settings");
  }

  // API keys.

  hasKey(name) {
    return this.lists(name, "api-keys", "Keys");
  }

  async revokeKey(name) {
    await this.visit("api-keys");
    const row = this.page.getByRole("row").filter({ has: this.page.getByRole("cell", { name, exact: true }) });
    await this.within(row).submit("Revoke");
  }

  /** Makes a key and reads it, which can be done once; also what the site would not give it. */
  async createKey(name, permissions) {
    await this.visit("api-keys");
    await this.fill("Key name", name);
    for (const permission of permissions) await this.tick(permission, true);
    await this.submit("Create key");
    const value = await this.field("New key").inputValue();
    const [, given = ""] = (await this.rows("Keys")).find(([first]) => first === name) ?? [];
    return { value, given: given.split(", ") };
  }

  // Onboarding.

  async checklist() {
    await this.visit("onboarding");
    return (await this.rows("Checklist")).map(([name, needed, state]) => ({
      name,
      isRequired: needed === "Required",
      isDone: state === "Done",
    }));
  }

  async isLive() {
    await this.visit("onboarding");
    return (
      (await this.button("Go live").count()) === 0 && (await this.page.getByText("The restaurant is live.").count()) > 0
    );
  }

  async goLive() {
    await this.visit("onboarding");
    await this.submit("Go live");
  }
}
