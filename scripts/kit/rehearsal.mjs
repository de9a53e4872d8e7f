// A sign-in at a site that is nowhere: what node and the browser do for the first time is done before the job comes.
import { Account } from "../pages/account.mjs";
import { openPage } from "./browser.mjs";

const FORM = `<!doctype html><title>Sign in</title><main><form method="post">
<label>E-mail address <input name="email"></label> <label>Password <input name="password" type="password"></label>
<button>Sign in</button></form></main>`;

/** Signs in once, in a context that is thrown away; no request leaves the browser. */
export async function rehearse(browser) {
  const page = await openPage(browser);
  await page.route("**", (route) => route.fulfill({ contentType: "text/html", body: FORM }));
  await new Account(page, "http://rehearsal.invalid").trySignIn("nobody@rehearsal.invalid", "nothing");
  await page.context().close();
}
