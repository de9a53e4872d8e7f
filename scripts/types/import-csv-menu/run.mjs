// Imports a menu from a CSV file.
import { readFile, realpath, stat } from "node:fs/promises";
import { basename, sep } from "node:path";
import { Failure } from "../../kit/failure.mjs";
import { outcome } from "../../kit/job.mjs";
import { script } from "../../kit/script.mjs";
import { enter } from "../../pages/admin.mjs";
import { MenuImport } from "../../pages/import.mjs";

/** What the site takes. */
const FILE_BYTES_MAX = 2 * 1024 * 1024;

/** The file, only if it lies where the operator keeps files for scripts: a payload must not read the rest of the machine. */
async function read(path, filesDir) {
  const refuse = (why) => new Failure("file_refused", `The file ${path} ${why}`);
  const [file, folder] = await Promise.all([realpath(path), realpath(filesDir)]).catch(() => {
    throw refuse(`is not there, or is not below ${filesDir}. Put it there and send the job again.`);
  });
  if (!file.startsWith(folder + sep)) throw refuse(`is not below ${filesDir}. Put it there and send the job again.`);
  const { size } = await stat(file);
  if (size > FILE_BYTES_MAX) throw refuse("is larger than 2 MB. Split it.");
  return readFile(file, "utf8");
}

export default script(import.meta, async (context) => {
  const { job, input, page, site } = context;
  const csv = input.csv ?? (await read(input.csvFilePath, job.filesDir));
  const { path } = await enter(context);
  const menu = new MenuImport(page, site, path);
  if (job.isDryRun) {
    return { message: "The file would be imported", data: { itemsCreated: 0, itemsFailed: 0, details: [] } };
  }

  const uploaded = job.checkpoint("uploaded");
  if (uploaded) job.skip("upload");
  const name = input.csvFilePath ? basename(input.csvFilePath) : "menu.csv";
  const id = uploaded?.import ?? (await job.step("upload", () => menu.upload(name, csv)));
  if (!uploaded) job.setCheckpoint("uploaded", { import: id });
  await job.step("confirm", () => menu.confirm(id));
  const details = await job.step("import", () => menu.report(id));
  return outcome(details, ["menu item", "menu items"], { verb: "imported" });
});
