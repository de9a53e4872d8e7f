// Sets up card payments: their settings, the connected account, and its link at the checkout.
import { script } from "../../kit/script.mjs";
import { setUpPayments } from "../../pages/payments.mjs";

export default script(import.meta, (context) => setUpPayments(context, { link: true }));
