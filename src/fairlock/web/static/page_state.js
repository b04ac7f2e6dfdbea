// All that the page knows: what the server sent, and what the user chose. The choice is in the address.
import { plain } from "./format.js";

export const state = {
  hello: null,
  rows: new Map(),
  figures: null,
  rings: [],
  deadlocks: 0,
  events: [],
  missed: 0, // events that came too quickly for this page
  error: "",
  status: "connecting", // connecting, live, late, offline, refused, hidden
  refusal: "",
  readAt: null, // seconds() of the last look at the store
  detail: null, // of the chosen name
  paused: null, // the events that are shown while the tail is paused
  help: false,
  form: "", // the form that is open: "ask" or "evict", a space, the ticket of the holder
  limit: 60,
};

const KEPT_EVENTS = 300;
const DEFAULTS = { filter: "", only: "", sort: "pain", name: "", lanes: "name", span: 300, end: 0 };
const NUMBERS = new Set(["span", "end"]);
export const SPANS = [60, 300, 900, 3600, 6 * 3600, 24 * 3600, 7 * 86400];
export const SORTS = { pain: "waiting caused", name: "name", held: "held for", waiting: "waiters" };

export const view = readView();

function readView() {
  const given = new URLSearchParams(location.search);
  const found = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    if (given.has(key)) found[key] = NUMBERS.has(key) ? Number(given.get(key)) || DEFAULTS[key] : given.get(key);
  }
  if (!Object.hasOwn(SORTS, found.sort)) found.sort = DEFAULTS.sort; // not `in`: the address may say __proto__
  found.span = Math.min(Math.max(found.span, 5), 7 * 86400);
  if (!(found.end > 0 && found.end < 4e9)) found.end = 0;
  if (!["name", "owner", "heat"].includes(found.lanes)) found.lanes = "name";
  return found;
}

export function choose(changes, { push = false } = {}) {
  Object.assign(view, changes);
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(view)) if (value !== DEFAULTS[key]) given.set(key, value);
  const query = given.toString();
  const address = location.pathname + (query ? `?${query}` : "") + location.hash;
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  if ("filter" in changes || "sort" in changes || "only" in changes) {
    state.limit = 60;
    arranged = -Infinity;
  }
  redraw();
}

window.addEventListener("popstate", () => {
  Object.assign(view, readView());
  arranged = -Infinity;
  redraw();
});

// Drawing: at most once a frame, by whatever app.js registers.
let draw = () => {};
let asked = false;
export function onDraw(function_) {
  draw = function_;
}
export function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    if (asked) drawNow();
  });
}

// Not in the next frame: the next key that is pressed belongs to what is drawn here.
export function drawNow() {
  asked = false;
  draw();
}

export function seconds() {
  return performance.now() / 1000;
}

// The wall clock of the server, which events and the timeline use.
let offset = Date.now() / 1000 - seconds();
export function serverNow() {
  return seconds() + offset;
}

// What a row of another version of the server may lack.
const UNKNOWN = { kind: "unknown", capacity: 1, fence: 0, holders: [], held: 0, queue: [], waiting: 0, pain: 0, expired: [], stale: 0, others: null, spark: [] };

export function receive(message) {
  const base = seconds() - message.age;
  offset = message.at - seconds();
  if (message.whole) {
    state.rows = new Map();
    state.events = [];
    state.missed = 0;
  }
  for (const row of message.rows) state.rows.set(row.name, { ...UNKNOWN, ...row, base });
  for (const name of message.gone) state.rows.delete(name);
  state.figures = message.figures;
  state.figures.base = base;
  state.rings = message.rings;
  state.deadlocks = message.deadlocks;
  state.error = message.error;
  state.readAt = message.age === null ? null : base;
  if (message.events.length && state.events.length) state.missed += message.events[0].id - state.events.at(-1).id - 1;
  if (message.events.length) state.events = [...state.events, ...message.events].slice(-KEPT_EVENTS);
  state.touched = new Set([...message.rows.map((row) => row.name), ...message.gone, ...message.events.map((e) => e.name)]);
  arrange(message.rows);
  redraw();
}

// The text in which a filter looks; made when it is first needed.
function searchable(row) {
  if (row.text === undefined) {
    const people = [...row.holders, ...row.queue, ...row.expired].flatMap((one) => [one.owner, one.note]);
    row.text = [row.name, ...people, ...Object.values(row.others ?? {})].join("\n").toLowerCase();
  }
  return row.text;
}

export function pain(row, now) {
  return row.pain + row.waiting * (now - row.base);
}

// The order of the rows. It changes at most every five seconds, so that nobody clicks the wrong one: until then a new
// row is last, and a row that became free keeps its place.
const STEADY = 5;
let arranged = -Infinity;
let order = [];
let known = new Set();

export function arrange(changed = []) {
  const now = seconds();
  if (order.length && now - arranged < STEADY) {
    for (const { name } of changed) {
      if (!known.has(name)) {
        known.add(name);
        order.push(name);
      }
    }
    return;
  }
  arranged = now;
  const by = {
    pain: (row) => -pain(row, now),
    waiting: (row) => -row.waiting,
    held: (row) => -Math.max(0, ...row.holders.map((one) => one.held_for + now - row.base)),
  }[view.sort];
  // From the order before: what is nearly sorted is sorted in one pass.
  const rows = [];
  for (const name of order) {
    const row = state.rows.get(name);
    if (row) rows.push(row);
    else known.delete(name);
  }
  for (const row of state.rows.values()) {
    if (!known.has(row.name)) {
      known.add(row.name);
      rows.push(row);
    }
    row.rank = by ? by(row) : 0;
  }
  rows.sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  order = rows.map((row) => row.name);
}

function* owners(row) {
  for (const one of [...row.holders, ...row.queue, ...row.expired]) yield one.owner;
  if (row.others) yield row.others.owners;
}

// The names that the table shows, in order.
export function chosenNames() {
  if (arranged === -Infinity) arrange();
  const wanted = matcher(view.filter);
  let names = order;
  if (view.only === "lost") {
    const lost = Object.keys(state.figures?.lost ?? {});
    names = [...names.filter((name) => lost.includes(name)), ...lost.filter((name) => !known.has(name))];
  } else if (view.only) {
    const wants = Object.hasOwn(ONLY, view.only) ? ONLY[view.only] : () => true;
    names = names.filter((name) => wants(state.rows.get(name), name));
  }
  return wanted ? names.filter((name) => wanted(state.rows.get(name), name)) : names;
}

export function namesInRings() {
  return new Set(state.rings.flatMap((ring) => ring.links.flatMap((link) => [link.holds, link.waits_for])));
}

// What is shown is not what the store has now: it cannot be read, or its server does not reply.
export function isOld() {
  return Boolean(state.error) || ["offline", "late"].includes(state.status);
}

const ONLY = {
  held: (row) => row?.holders.length > 0,
  waiting: (row) => row?.waiting > 0,
  stale: (row) => row?.expired.length > 0,
  damaged: (row) => row?.kind === "damaged",
  deadlock: (row, name) => namesInRings().has(name),
};

// Words that all must match: text in name, owner or note; or name:…, owner:…, kind:….
function matcher(filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  return (row, name) => words.every((word) => {
    const [, key, rest] = word.match(/^(name|owner|kind):(.*)$/) ?? [null, "", word];
    if (key === "name") return name.toLowerCase().includes(rest);
    if (key === "kind") return row?.kind.startsWith(rest);
    if (key === "owner") return row && [...owners(row)].some((owner) => owner.toLowerCase().includes(rest));
    return (row ? searchable(row) : name.toLowerCase()).includes(rest);
  });
}

export function select(name) {
  state.form = "";
  if (state.detail?.name !== name) state.detail = null;
  choose({ name }, { push: true });
}

export function label(one) {
  return one.owner ? plain(one.owner) : "kept closed";
}
