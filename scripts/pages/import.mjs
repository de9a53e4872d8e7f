// The import of a menu: a file is sent, confirmed, and followed until all its rows are seen to.
import { Admin } from "./admin.mjs";

/** The site works through thousands of rows in less: sixty looks of four seconds. */
const LOOK_MS = 4_000;
const LOOKS_MAX = 60;

const appears = (locator) =>
  locator.waitFor({ timeout: LOOK_MS }).then(
    () => true,
    (error) => (error.name === "TimeoutError" ? false : Promise.reject(error)),
  );

export class MenuImport extends Admin {
  /** Sends a file, and gives back the id of the import that now waits to be confirmed. */
  async upload(name, csv) {
    await this.visit("menu/import");
    await this.field("CSV file").setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(csv) });
    await this.submit("Upload file");
    return new URL(this.page.url()).pathname.split("/").at(-1);
  }

  /** Confirms, unless that was done; to confirm twice would be harmless. */
  async confirm(id) {
    await this.visit(`menu/import/${id}`);
    const isBegun = (await this.page.getByText(/^Import(ing\.|ed \d)/).count()) > 0;
    if (!isBegun) await this.submit("Confirm import");
  }

  /** Waits for the end and tells what became of each row. */
  async report(id) {
    const isDone = this.page.getByText(/^Imported \d+ of \d+ rows\.$/);
    // The page reloads itself when all is done; it is opened again in case it does not, or the session has ended.
    for (let looks = 0; looks < LOOKS_MAX && !(await appears(isDone)); looks += 1) {
      await this.visit(`menu/import/${id}`);
    }
    await isDone.waitFor();
    return (await this.rows("Rows of the file")).map(([row, name, said]) => ({
      name: name || `Row ${row}`,
      ...(said === "Imported" ? { status: "created" } : { status: "failed", error: said }),
    }));
  }
}
