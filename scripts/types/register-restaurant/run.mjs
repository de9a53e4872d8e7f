// Opens an account with a restaurant, and fills in its profile.
import { Failure, Refused } from "../../kit/failure.mjs";
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { Account } from "../../pages/account.mjs";
import { Admin } from "../../pages/admin.mjs";

const LABELS = { address: "Address", phone: "Phone", cuisine: "Cuisine", timezone: "Time zone" };

/** Opens the account. One that an earlier attempt has opened is ours; any other is somebody's. */
async function signUp({ job, page, input, site }) {
  const { restaurantName, email, password } = input;
  const account = new Account(page, site);
  if (job.isIntended("sign-up") && (await account.trySignIn(email, password))) return account.find(restaurantName);
  try {
    await job.intend("sign-up", () => account.signUp(restaurantName, email, password));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw await whyRefused(account, input, error);
  }
  return account.find(restaurantName);
}

/** An account that is there already is a mistake in the payload, but which one? */
async function whyRefused(account, { email, password }, refused) {
  if (!refused.message.includes("already an account")) return refused;
  return (await account.trySignIn(email, password))
    ? new Failure("already_registered", "There is already an account with this e-mail address and password.")
    : new Failure("login_rejected", "There is already an account with this e-mail address, and another password.");
}

export default script(import.meta, async (context) => {
  const { job, page, input, site } = context;
  if (job.isDryRun) {
    return { message: "The restaurant would be registered", data: { itemsCreated: 0, itemsFailed: 0, details: [] } };
  }
  job.onSessionExpired(() => new Account(page, site).signIn(input.email, input.password));
  const path = await job.step("sign-up", () => signUp(context));
  const admin = new Admin(page, site, path);
  const profile = Object.entries(LABELS).filter(([name]) => input[name] !== undefined);
  const fields = Object.fromEntries(profile.map(([name, label]) => [label, input[name]]));
  const parts = profile.length ? [{ name: "profile" }] : [];
  const details = await job.step("profile", () => job.each("part", parts, { make: () => admin.saveProfile(fields) }));
  return outcome(
    [{ name: "account", status: "created" }, ...details],
    ["part of the registration", "parts of the registration"],
    { verb: "completed" },
  );
});
