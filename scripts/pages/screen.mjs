// What all pages have in common: where they are, how their parts are found, and what became of what was sent.
import { PAGE_MS_MAX } from "../kit/browser.mjs";
import { Failure, Refused, SessionExpired, passing } from "../kit/failure.mjs";

/** What keeps the browser itself from sending the form of this button. Runs in the page. */
function whatBrowserRefuses(button) {
  const field = [...(button.form?.elements ?? [])].find((field) => field.willValidate && !field.checkValidity());
  return field && `${field.labels?.[0]?.innerText.trim() || field.name}: ${field.validationMessage}`;
}

export class Screen {
  constructor(page, site, root = page) {
    Object.assign(this, { page, site, root });
  }

  /** The same page, but only the part of it that is found there. */
  within(root) {
    return new Screen(this.page, this.site, root);
  }

  async open(path) {
    const go = () => this.page.goto(new URL(path, this.site).href, { waitUntil: "domcontentloaded" });
    // A page that reloads by itself just now is in the way once.
    const isInTheWay = (error) => error.message.includes("interrupted by another navigation");
    this.#look(await go().catch((error) => (isInTheWay(error) ? go() : Promise.reject(error))));
  }

  button(name) {
    return this.root.getByRole("button", { name, exact: true });
  }

  field(label) {
    return this.root.getByLabel(label, { exact: true });
  }

  async fill(label, value) {
    await this.#reach(`the field "${label}"`, this.field(label).fill(String(value)));
  }

  async tick(label, isOn) {
    await this.#reach(`the box "${label}"`, this.field(label).setChecked(isOn));
  }

  async select(label, option) {
    const list = this.field(label);
    await this.#reach(`the list "${label}"`, list.waitFor());
    const options = await list.locator("option").allTextContents();
    if (!options.includes(option)) throw new Refused(`There is no ${option} in the list "${label}"`);
    await list.selectOption(option);
  }

  /** Presses something that changes the page only. */
  async press(name, role = "button") {
    // Without waiting for a page it may lead to: that is not what this time is for.
    const click = this.root.getByRole(role, { name, exact: true }).click({ noWaitAfter: true });
    await this.#reach(`the ${role} "${name}"`, click);
  }

  /** Presses a button that sends its form, and waits for the page that it leads to. */
  async send(name) {
    await this.#reach(`the button "${name}"`, this.button(name).waitFor());
    const trouble = await this.button(name).evaluate(whatBrowserRefuses);
    if (trouble) throw new Refused(trouble);
    // The page to come may have the same address as this one, so that waiting for an address would not do.
    const answer = this.page.waitForNavigation({ waitUntil: "domcontentloaded", timeout: PAGE_MS_MAX });
    // Awaited below; before that, it is not to be taken for an error that nobody looks at.
    answer.catch(() => {});
    await this.press(name);
    this.#look(await answer);
  }

  /** Sends, and takes the site at its word: what it refuses is refused. */
  async submit(name) {
    await this.send(name);
    const alert = this.page.getByRole("alert");
    if (await alert.count()) throw new Refused((await alert.first().innerText()).trim());
  }

  /** The cells of a table, row by row. */
  async rows(caption) {
    const table = this.root.getByRole("table", { name: caption, exact: true });
    await this.#reach(`the table "${caption}"`, table.waitFor());
    return table
      .locator("tbody tr")
      .evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
  }

  async #reach(what, deed) {
    try {
      return await deed;
    } catch (cause) {
      if (cause?.name !== "TimeoutError") throw cause;
      const { pathname } = new URL(this.page.url());
      throw new Failure(
        "element_missing",
        `On ${pathname} the script did not find ${what}. The site may have changed: compare the picture with the ` +
          "page object and mend it.",
        { cause },
      );
    }
  }

  /** What the site answered with, apart from a page. */
  #look(response) {
    const status = response?.status() ?? 200;
    const { pathname, searchParams } = new URL(response?.url() ?? this.page.url());
    if (status >= 500) throw passing("server_error", `The site answered ${pathname} with status ${status}.`);
    if (status === 404) {
      throw new Failure("element_missing", `The site has no page ${pathname}. The site may have changed.`);
    }
    if (pathname === "/two-factor") {
      throw new Failure(
        "two_factor_required",
        "The account asks for a two-factor code. Use an account without it for automations.",
      );
    }
    if (pathname === "/sign-in" && searchParams.has("next")) throw new SessionExpired();
  }
}
