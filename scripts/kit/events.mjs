// What is told to ODE while a script runs: one JSON object to a line, on the descriptor that ODE_EVENTS_FD names.
import { fstatSync, writeSync } from "node:fs";

/** A longer line is not read. */
const LINE_BYTES_MAX = 64 * 1024;

/** The descriptor, if it is a pipe: written blindly, it might be one that node uses for itself. */
function descriptor() {
  const fd = Number(process.env.ODE_EVENTS_FD);
  const help = "Start this script with `ode scripts run`.";
  if (!Number.isInteger(fd) || fd < 3) throw new Error(`ODE_EVENTS_FD names no descriptor. ${help}`);
  let about;
  try {
    about = fstatSync(fd);
  } catch {
    throw new Error(`The descriptor ${fd} that ODE_EVENTS_FD names is not open. ${help}`);
  }
  if (!about.isFIFO() && !about.isSocket()) throw new Error(`The descriptor ${fd} is not a pipe. ${help}`);
  return fd;
}

export class Events {
  #fd = descriptor();

  /** Tells one event; one that is too long is not told, and the log says so. */
  send(event) {
    const line = Buffer.from(`${JSON.stringify(event)}\n`);
    if (line.length > LINE_BYTES_MAX) {
      if (event.t === "result") {
        throw new Error(`The result has ${line.length} bytes; at most ${LINE_BYTES_MAX} are read.`);
      }
      this.log("warn", `An event "${event.t}" of ${line.length} bytes was left out.`);
      return;
    }
    for (let sent = 0; sent < line.length;) {
      try {
        sent += writeSync(this.#fd, line, sent);
      } catch (error) {
        // The pipe is full for now: its reader will make room, or end us.
        if (error.code !== "EAGAIN") throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      }
    }
  }

  log(level, msg) {
    this.send({ t: "log", level, msg: msg.slice(0, 8000) });
  }
}
