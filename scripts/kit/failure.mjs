// How a script fails: with a code, a sentence for people, and whether another try may help.

export class Failure extends Error {
  constructor(code, message, { retryable = false, data, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: "Failure", code, retryable, data });
  }
}

/** Another try may help. */
export const passing = (code, message, more) => new Failure(code, message, { ...more, retryable: true });

/** The site said no to one thing; the rest may go on. */
export class Refused extends Error {}

/** The site wants to know again who is there. */
export class SessionExpired extends Error {}

/** What playwright-core threw, as a failure. */
export function asFailure(error) {
  if (error instanceof Failure) return error;
  const cause = error;
  const text = String(error?.message ?? error);
  if (error instanceof SessionExpired) {
    return passing(
      "session_expired",
      "The site ended the session twice. Try again when nobody else signs in with this account.",
      { cause },
    );
  }
  if (error instanceof Refused) return new Failure("rejected", `The site refused it: ${text}.`, { cause });
  if (/net::ERR_|NS_ERROR_|ECONNREFUSED/.test(text)) {
    return passing(
      "site_unreachable",
      "The site cannot be reached. Look whether its address is right and it is running.",
      { cause },
    );
  }
  if (/has been closed|browser has disconnected|Target crashed|Page crashed/.test(text)) {
    return passing("browser_lost", "The browser ended before the script did.", { cause });
  }
  if (error?.name === "TimeoutError") {
    return passing("site_timeout", "The site did not answer in time.", { cause });
  }
  return new Failure("script_error", `The script has a mistake: ${text.split("\n")[0]}`, { cause });
}
