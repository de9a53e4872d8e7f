// Sets up card payments without their link at the checkout.
import { script } from "../../kit/script.mjs";
import { setUpPayments } from "../../pages/payments.mjs";

export default script(import.meta, (context) => setUpPayments(context, { link: false }));
