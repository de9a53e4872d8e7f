// What the pages with a list do beyond plain forms: the list is kept as the server tells it, and on the queue page files
// are sent one by one. Without this script the pages work the same, by submitting and reloading.

const $ = (id) => document.getElementById(id);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// ---- What changed is said once in a while, in one sentence.
const news = { complete: 0, failed: 0 };
let telling = 0;
function tell(kind) {
  news[kind] += 1;
  telling ||= setTimeout(() => {
    const parts = [];
    if (news.complete) parts.push(`${news.complete} ready`);
    if (news.failed) parts.push(`${news.failed} failed`);
    $("news").textContent = parts.join(", ");
    news.complete = news.failed = telling = 0;
  }, 1500);
}

// ---- The list: the server draws it, here rows are exchanged where they differ.
let refreshing = null;
let again = false;
async function refresh() {
  if (refreshing) {
    again = true;
    return refreshing;
  }
  refreshing = draw().catch(() => {}).finally(() => {
    refreshing = null;
    if (again) {
      again = false;
      refresh();
    }
  });
  return refreshing;
}

async function draw() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  times(fresh);
  const now = $("queue");
  const next = fresh.getElementById("queue");
  if (!next || !now) return;
  for (const row of next.querySelectorAll("tr[data-state]")) {
    const old = $(row.id);
    if (old && old.dataset.state !== row.dataset.state && row.dataset.state in news) tell(row.dataset.state);
  }
  if (now.isEqualNode(next)) return;
  const held = document.activeElement?.closest("#queue") ? keyOf(document.activeElement) : null;
  const table = now.querySelector("tbody");
  const rows = next.querySelector("tbody");
  if (table && rows) {
    exchange(table, rows);
    for (const part of [".head", ".waits", ".pages"]) swap(now.querySelector(part), next.querySelector(part));
    now.dataset.active = next.dataset.active;
  } else {
    now.replaceWith(document.adoptNode(next));
  }
  if (held) regain(held);
}

function exchange(table, rows) {
  const old = new Map([...table.children].map((row) => [row.id, row]));
  const wanted = [...rows.children].map((row) => {
    const same = old.get(row.id);
    return same && same.isEqualNode(row) ? same : document.adoptNode(row);
  });
  const now = [...table.children];
  if (now.length === wanted.length && now.every((row, at) => row === wanted[at])) return;
  table.replaceChildren(...wanted);
}

function swap(old, fresh) {
  if (old && fresh && !old.isEqualNode(fresh)) old.replaceWith(document.adoptNode(fresh));
}

// Which control of which row had the keyboard.
function keyOf(element) {
  const row = element.closest("tr");
  return { row: row?.id, act: element.dataset.act, place: row ? row.sectionRowIndex : 0 };
}
function regain({ row, act, place }) {
  if (!row || document.activeElement?.closest("#queue")) return;
  const rows = document.querySelectorAll("#queue tbody tr");
  const kept = $(row) ?? rows[Math.min(place, rows.length - 1)];
  const control = kept?.querySelector(`[data-act="${act}"]`) ?? kept?.querySelector("a, button");
  (control ?? $("files"))?.focus();
}

// ---- Live: told by the server; asked for where that does not work; neither once everything has ended. What is done in another
// window is heard from there, and what was done elsewhere is seen when somebody comes back to this one.
const others = "BroadcastChannel" in window ? new BroadcastChannel("ode") : null;
let source = null;
let poll = 0;
function follow() {
  const active = Number($("queue")?.dataset.active ?? 0) > 0;
  clearTimeout(poll);
  if (!active) {
    source?.close();
    source = null;
    return;
  }
  if (!source) {
    source = new EventSource("/api/stream");
    source.addEventListener("job", () => soon());
    source.addEventListener("resync", () => soon());
    source.onopen = () => soon();
  }
  if (source.readyState !== EventSource.OPEN) {
    poll = setTimeout(update, document.hidden ? 10_000 : 2_000);
  } else {
    // Percentages and times left change without an event of their own.
    poll = setTimeout(update, document.hidden ? 30_000 : 5_000);
  }
}
let due = 0;
function soon() {
  due ||= setTimeout(() => {
    due = 0;
    update();
  }, 120);
}
async function update() {
  await refresh();
  follow();
}

// ---- Sending: three at a time. When the server asks to wait, everything waits, and then goes on one by one, no faster than
// the server lets files in.
const queue = [];
let sending = 0;
let atOnce = 3;
let resume = 0;
let pace = 0;

function take(files) {
  for (const file of files) queue.push({ file, line: lineFor(file) });
  next();
}

function next() {
  while (!resume && sending < atOnce && queue.length) {
    sending += 1;
    send(queue.shift()).finally(() => {
      sending -= 1;
      if (!sending && !queue.length) [atOnce, pace] = [3, 0];
      next();
      soon();
    });
  }
}

// So many at once, too busy, no room: each passes by itself.
const PASSES = { 429: "Waiting its turn", 503: "The server is busy", 507: "Storage is full" };

async function send(item) {
  const { file, line } = item;
  const answer = await post(file, line);
  if (answer.status in PASSES) {
    const seconds = Math.max(1, Number(answer.retryAfter) || 5);
    queue.unshift(item);
    if (answer.status === 429) pace = seconds;
    pause(seconds, PASSES[answer.status]);
  } else if (answer.status >= 200 && answer.status < 300) {
    line.done();
    const isKnown = answer.body.files?.[0]?.is_duplicate;
    $("news").textContent = isKnown ? `${file.name} was sent before, it is in the list` : `${file.name} was sent`;
    if (isKnown) show(answer.body.job?.id);
    if (pace && queue.length) pause(pace, PASSES[429]);
    others?.postMessage("changed");
  } else {
    line.fail(answer.detail);
  }
}

function pause(seconds, why) {
  atOnce = 1;
  clearTimeout(resume);
  resume = setTimeout(() => {
    resume = 0;
    next();
  }, seconds * 1000);
  for (const { line } of queue) line.say(`${why}, goes on by itself`);
}

// A file that was sent before is pointed at.
async function show(id) {
  await refresh();
  const row = $(`job-${id}`);
  row?.scrollIntoView({ block: "nearest" });
  row?.classList.add("known");
  setTimeout(() => row?.classList.remove("known"), 3000);
}

function post(file, line) {
  return new Promise((done) => {
    const form = new FormData();
    for (const choice of choices()) form.append(choice.name, choice.value);
    form.append("file", file);
    const request = new XMLHttpRequest();
    line.stop = () => request.abort();
    request.open("POST", "/api/upload");
    request.setRequestHeader("accept", "application/json");
    request.upload.onprogress = (told) => told.lengthComputable && line.at(told.loaded / told.total);
    request.onload = () => done(read(request));
    request.onabort = () => done({ status: 0, detail: "Sending was cancelled." });
    request.onerror = () => done({ status: 0, detail: "The connection broke. Send the file again." });
    request.send(form);
  });
}

function read(request) {
  let body = {};
  try {
    body = JSON.parse(request.responseText);
  } catch {
    // Not ours; the status says enough.
  }
  return {
    body,
    status: request.status,
    retryAfter: request.getResponseHeader("retry-after"),
    detail: body.detail ?? body.title ?? `The server answered ${request.status}. Try again.`,
  };
}

// A line of the list of files on their way.
function lineFor(file) {
  const item = $("sending-line").content.firstElementChild.cloneNode(true);
  const [name, told, bar, stop] = ["name", "told", "bar", "stop"].map((part) => item.querySelector(`[data-part=${part}]`));
  name.textContent = file.name;
  $("sending").hidden = false;
  $("sending").querySelector("tbody").append(item);
  const line = {
    stop() {
      const place = queue.findIndex((waiting) => waiting.line === line);
      if (place >= 0) queue.splice(place, 1);
      line.done();
    },
    at(part) {
      bar.value = part;
      told.textContent = part < 1 ? `Sending, ${Math.floor(part * 100)} %` : "Checking";
    },
    say(text) {
      bar.value = 0;
      told.textContent = text;
    },
    done() {
      item.remove();
      $("sending").hidden = !$("sending").querySelector("tbody tr");
    },
    fail(text) {
      bar.remove();
      told.textContent = text;
      told.classList.add("why");
      stop.textContent = "Dismiss";
      stop.setAttribute("aria-label", `Dismiss ${file.name}`);
      line.stop = line.done;
      $("news").textContent = `${file.name}: ${text}`;
    },
  };
  stop.setAttribute("aria-label", `Cancel sending ${file.name}`);
  stop.addEventListener("click", () => line.stop());
  return line;
}

// ---- What was chosen stays chosen, in this browser.
const choices = () => ["mapping", "output"].map($).filter(Boolean);
function remember() {
  for (const choice of choices()) {
    try {
      const kept = localStorage.getItem(choice.id);
      if (kept !== null && [...choice.options].some((option) => option.value === kept)) choice.value = kept;
      choice.addEventListener("change", () => localStorage.setItem(choice.id, choice.value));
    } catch {
      // A browser that keeps nothing offers what the server offers.
    }
  }
}

function dropping() {
  const form = $("upload");
  const files = $("files");
  form.querySelector("button.main").hidden = true;
  form.classList.add("at-once");
  files.addEventListener("change", () => {
    take(files.files);
    files.value = "";
  });
  let depth = 0;
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => {
    if (carries(event)) document.body.classList.toggle("dropping", (depth += 1) > 0);
  });
  document.addEventListener("dragleave", (event) => {
    if (carries(event)) document.body.classList.toggle("dropping", (depth -= 1) > 0);
  });
  document.addEventListener("dragover", (event) => carries(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("dropping");
    take(event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files.length) take(event.clipboardData.files);
  });
}

// ---- Deeds on a row: the form says where to, the list shows what came of it.
function deeds() {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("#queue .acts form")) return;
    event.preventDefault();
    const ask = form.dataset.ask;
    if (ask && !confirm(ask)) return;
    const answer = await fetch(form.action, { method: "POST", headers: { accept: "text/html" }, body: new URLSearchParams(new FormData(form)) });
    if (answer.ok) {
      $("news").textContent = form.dataset.done;
    } else {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      $("news").textContent = page.querySelector("main p")?.textContent ?? "That did not work. Reload the page.";
    }
    await update();
    others?.postMessage("changed");
  });
}

// ---- Times as the reader writes them.
function times(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const timeStyle = time.dataset.exact === undefined ? "short" : "medium";
    if (!Number.isNaN(at.valueOf())) time.textContent = at.toLocaleString([], { dateStyle: "medium", timeStyle });
  }
}

times();
if ($("upload")) {
  remember();
  dropping();
}
if ($("queue")) {
  deeds();
  follow();
  others?.addEventListener("message", soon);
  document.addEventListener("visibilitychange", () => document.hidden || soon());
} else if (document.body.dataset.live) {
  // A job's own page is drawn anew while something may still happen.
  const live = new EventSource("/api/stream");
  live.addEventListener("job", (event) => {
    if (event.data.includes(document.body.dataset.live)) location.reload();
  });
}
