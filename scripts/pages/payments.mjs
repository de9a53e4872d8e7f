// Payments: their settings, the connection made on the payments company's own pages, and the link at the checkout.
import { Refused } from "../kit/failure.mjs";
import { outcome } from "../kit/job.mjs";
import { Admin, enter } from "./admin.mjs";

export class Payments extends Admin {
  async saveSettings({ currency, statementDescriptor }) {
    await this.visit("payments");
    await this.select("Currency", currency);
    if (statementDescriptor !== undefined) await this.fill("Statement text", statementDescriptor);
    await this.submit("Save payment settings");
  }

  /** The account that is connected, if one is. */
  async account() {
    await this.visit("payments");
    const account = this.page.getByLabel("Connected account", { exact: true });
    return (await account.count()) ? account.innerText() : null;
  }

  /** Connects: to the company and back. An account that the owner has there already is used. */
  async connect({ accountHolder, bankAccount }) {
    await this.visit("payments");
    await this.send("Connect payments account");
    if (await this.field("Account holder").count()) {
      await this.fill("Account holder", accountHolder);
      await this.fill("Bank account", bankAccount);
    }
    await this.submit("Authorise");
    if (!(await this.account())) throw new Refused("The account is not connected");
  }

  async isLinked() {
    await this.visit("payments");
    return (await this.page.getByText("Card payments are linked to the checkout.").count()) > 0;
  }

  async link() {
    if (await this.isLinked()) return;
    await this.submit("Link to checkout");
  }
}

/** What both types for payments do; only one of them links the account. */
export async function setUpPayments(context, { link }) {
  const { job, page, input, site } = context;
  const { path } = await enter(context);
  const payments = new Payments(page, site, path);
  const once = (id, name, make) => job.step(id, () => job.each(id, [{ name }], { make }));
  const details = await once("settings", "settings", () => payments.saveSettings(input));
  details.push(
    ...(await once("connect", "account", async () => {
      if (!(await payments.account())) await payments.connect(input);
    })),
  );
  const isConnected = details.at(-1).status === "created";
  if (link && isConnected) details.push(...(await once("link", "checkout link", () => payments.link())));
  const data = isConnected ? { accountId: await payments.account() } : {};
  return outcome(details, ["part of the payments", "parts of the payments"], { verb: "set up", data });
}
