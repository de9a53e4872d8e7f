// Signing up and in, and choosing a restaurant.
import { Failure } from "../kit/failure.mjs";
import { Screen } from "./screen.mjs";

export class Account extends Screen {
  async signIn(email, password) {
    if (!(await this.trySignIn(email, password))) {
      throw new Failure(
        "login_rejected",
        "The site does not accept this e-mail address and password. Correct them and send the job again.",
      );
    }
  }

  /** Whether the site let us in. */
  async trySignIn(email, password) {
    await this.open("/sign-in");
    await this.fill("E-mail address", email);
    await this.fill("Password", password);
    await this.send("Sign in");
    return new URL(this.page.url()).pathname !== "/sign-in";
  }

  /** Signs up, or gives back why not. */
  async signUp(restaurant, email, password) {
    await this.open("/sign-up");
    await this.fill("Restaurant name", restaurant);
    await this.fill("E-mail address", email);
    await this.fill("Password", password);
    await this.submit("Open account");
  }

  async restaurants() {
    await this.open("/");
    return this.page
      .getByRole("main")
      .getByRole("link")
      .evaluateAll((links) =>
        links.map((link) => ({ name: link.innerText.trim(), path: new URL(link.href).pathname })),
      );
  }

  /** The path of a restaurant of this name. */
  async find(name) {
    const all = await this.restaurants();
    const found = all.filter((one) => one.name === name);
    if (found.length === 1) return found[0].path;
    const trouble = found.length
      ? `The account has ${found.length} restaurants called "${name}"; rename all but one.`
      : `The account has no restaurant called "${name}".`;
    throw new Failure("restaurant_not_found", trouble);
  }
}
