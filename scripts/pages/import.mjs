// The import of a menu: a file is sent, confirmed, and followed until all its rows are seen to.
import { Admin } from "./admin.mjs";

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
  async report(id, timeout) {
    await this.visit(`menu/import/${id}`);
    await this.page.getByText(/^Imported \d+ of \d+ rows\.$/).waitFor({ timeout });
    return (await this.rows("Rows of the file")).map(([row, name, said]) => ({
      name: name || `Row ${row}`,
      ...(said === "Imported" ? { status: "created" } : { status: "failed", error: said }),
    }));
  }
}
