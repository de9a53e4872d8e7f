// Reads one JSON document on stdin, and tells what happens on the descriptor that ODE_EVENTS_FD names.
import { readFileSync, writeSync } from "node:fs";

const tell = (event) => writeSync(Number(process.env.ODE_EVENTS_FD), `${JSON.stringify(event)}\n`);
const { input, secrets, checkpoints } = JSON.parse(readFileSync(0, "utf8"));

tell({ t: "step", id: "prepare", state: "started" });
if (!checkpoints.prepared) tell({ t: "checkpoint", key: "prepared", data: {} });
tell({ t: "step", id: "prepare", state: "done" });

tell({ t: "step", id: "greet", state: "started" });
console.log(`The password has ${secrets.password.length} characters; it is hidden here: ${secrets.password}`);
tell({ t: "progress", percent: 50, message: "Half way" });
tell({ t: "step", id: "greet", state: "done" });

tell({ t: "result", success: true, message: `Greeted ${input.name}`, data: { greeting: `Hello, ${input.name}!` } });
