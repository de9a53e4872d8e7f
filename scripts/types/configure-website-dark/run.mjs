// Gives the restaurant's website the dark theme, and publishes it.
import { script } from "../../kit/script.mjs";
import { configureWebsite } from "../../pages/website.mjs";

export default script(import.meta, (context) => configureWebsite(context, "Dark"));
