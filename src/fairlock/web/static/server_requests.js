// Requests to the server. The token comes in the fragment of the address, is kept for this origin, and goes into a
// header: unlike a cookie it reaches no other server on this machine. EventSource cannot send a header, so the stream
// of server-sent events is read with fetch.
import { receive, redraw, seconds, state } from "./page_state.js";

const KEY = "fairlock-token";
const LATE = 8; // seconds without a message
let lastId = "";
let running = null;

function takeToken() {
  const given = location.hash.match(/^#token=([\w-]+)$/);
  if (given) {
    try {
      localStorage.setItem(KEY, given[1]);
    } catch {
      // Without storage a reload needs the printed address again.
    }
    history.replaceState(null, "", location.pathname + location.search);
    return given[1];
  }
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

let token = takeToken();
window.addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#token=")) return;
  token = takeToken();
  restart();
});

function headers(more) {
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

export async function get(path) {
  const reply = await fetch(path, { headers: headers() });
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}

export async function post(path, body) {
  const more = { "Content-Type": "application/json", "X-Fairlock-CSRF": state.hello.csrf };
  const reply = await fetch(path, { method: "POST", headers: headers(more), body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}

function become(status, refusal = "") {
  if (state.status === status && state.refusal === refusal) return;
  state.status = status;
  state.refusal = refusal;
  redraw();
}

async function read(signal) {
  const more = lastId ? { "Last-Event-ID": lastId } : {};
  const reply = await fetch("./api/stream", { headers: headers(more), signal, cache: "no-store" });
  if (reply.status === 401 || reply.status === 403) {
    become("refused", await reply.text());
    return false;
  }
  if (!reply.ok) throw new Error(await reply.text());
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  while (true) {
    const { value, done } = await reader.read();
    if (done) return true;
    // A whole message ends with an empty line. Parts are joined once, so that a large message costs no copies.
    parts.push(value);
    if (!value.includes("\n\n") && !(value.startsWith("\n") && parts.at(-2)?.endsWith("\n"))) continue;
    const blocks = parts.join("").split("\n\n");
    parts = [blocks.pop()];
    for (const block of blocks) take(block);
  }
}

let heard = seconds();
function take(block) {
  heard = seconds();
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (fields.event === "hello") {
    state.hello = JSON.parse(fields.data);
    return;
  }
  lastId = fields.id ?? lastId;
  become("live");
  receive(JSON.parse(fields.data));
}

async function run(signal) {
  let pause = 0.5;
  while (!signal.aborted) {
    try {
      heard = seconds();
      if (!(await read(signal))) return;
      pause = 0.5;
    } catch {
      if (signal.aborted) return;
      pause = Math.min(pause * 2, 8);
    }
    become("offline");
    await new Promise((done) => setTimeout(done, pause * 1000));
  }
}

function restart() {
  running?.abort();
  running = new AbortController();
  run(running.signal);
}

// A hidden tab reads nothing, and catches up when it is looked at again.
export function start() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      running?.abort();
      become("hidden");
    } else if (state.status === "hidden") {
      become("connecting");
      restart();
    }
  });
  setInterval(() => {
    if (state.status === "live" && seconds() - heard > LATE) become("late");
  }, 1000);
  if (!document.hidden) restart();
  else become("hidden");
}
