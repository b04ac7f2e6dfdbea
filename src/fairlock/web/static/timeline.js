// The timeline: a lane for each name or owner. Solid: a hold. Hatched: a wait. A red edge: the lease was lost or evicted.
// Or its summary, the contention of each name: contention_heat_map.js.
import { clock, distinct, duration, plain } from "./format.js";
import { Heat, heatLanes } from "./contention_heat_map.js";
import { html, useEffect, useRef, useState } from "./preact_html.js";
import { SPANS, choose, chosenNames, redraw, seconds, select, serverNow, state, view } from "./page_state.js";
import { get } from "./server_requests.js";

const LANES = 14;
const TALL = 9; // of a bar
const DEEP = 5; // bars of a lane that lie above each other
const TOP = 20;
const LOOKED_AT = { name: 60, heat: 300, owner: 300 }; // names, in the order of the table, of which lanes are made
const TITLES = { name: "by name", owner: "by owner", heat: "contention" };
const HANDOVER = 4; // pixels
const REFRESH = 2; // seconds

const LATE = 10; // seconds by which a program may write an event late
const WHOLE = 60; // seconds after which all of it is read again

const past = { spans: [], from: 0, to: 0, asked: -Infinity, whole: -Infinity, completeFrom: 0 };
let asking = false;

// What ended in the time that is shown. What still lasts comes from the rows.
export async function refreshHistory() {
  const [from, to] = range();
  const fresh = view.end ? past.from <= from && past.to >= to : seconds() - past.asked < REFRESH && past.from <= from;
  if (fresh || asking || !state.hello || state.status !== "live") return;
  asking = true;
  past.asked = seconds();
  try {
    const margin = view.end ? 0 : Math.min(0.2 * view.span, 7 * 86400 - view.span);
    // Only what is new, if the rest is known: thousands of spans every two seconds would be most of the work.
    const more = !view.end && past.from <= from && past.to > from && seconds() - past.whole < WHOLE;
    const begin = more ? past.to - LATE : from - margin;
    const found = await get(`./api/history?from=${begin.toFixed(3)}&to=${to.toFixed(3)}`);
    const spans = found.spans.map(asSpan);
    if (more) {
      const ids = new Set(spans.map((span) => span.id));
      for (const span of past.spans) if (span.end >= from && !ids.has(span.id)) spans.push(span);
      Object.assign(past, { spans, to, completeFrom: found.complete_from ?? past.completeFrom });
    } else {
      Object.assign(past, { spans, from: from - margin, to, whole: seconds(), completeFrom: found.complete_from ?? 0 });
    }
    redraw();
  } catch {
    // The stream shows that the connection is gone.
  } finally {
    asking = false;
  }
}

function asSpan(one) {
  const wait = one.kind === "acquired" || one.kind === "given_up";
  return { ...one, wait, begin: one.at - one.seconds, end: one.at, bad: one.kind === "lost" || one.kind === "evicted" };
}

function range() {
  const to = view.end || serverNow();
  return [to - view.span, to];
}

function* current(names) {
  const now = serverNow();
  for (const name of names) {
    const row = state.rows.get(name);
    if (!row) continue;
    const since = seconds() - row.base;
    for (const one of row.holders) {
      if (one.owner) yield { ...one, name: row.name, wait: false, kind: "holds", seconds: one.held_for + since, begin: now - since - one.held_for, end: now, open: true };
    }
    for (const one of row.queue) {
      yield { ...one, name: row.name, wait: true, kind: "waits", seconds: one.waited + since, begin: now - since - one.waited, end: now, open: true };
    }
  }
}

function lanes(from, to) {
  const found = new Map();
  const add = (span) => {
    if (span.end < from || span.begin > to) return;
    const key = view.lanes === "owner" ? span.owner : span.name;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(span);
  };
  const all = chosenNames();
  const wanted = all.slice(0, LOOKED_AT[view.lanes]);
  past.spans.forEach(add);
  for (const span of current(view.name && !wanted.includes(view.name) ? [...wanted, view.name] : wanted)) add(span);
  const filtered = Boolean(view.filter || view.only);
  let keys = [...found.keys()];
  if (view.lanes !== "owner") {
    const place = new Map(wanted.map((name, at) => [name, at]));
    keys = keys.filter((key) => !filtered || place.has(key) || key === view.name);
    keys.sort((a, b) => (place.get(a) ?? Infinity) - (place.get(b) ?? Infinity) || (a < b ? -1 : 1));
    if (view.name && found.has(view.name)) keys = [view.name, ...keys.filter((key) => key !== view.name)];
  } else {
    keys.sort();
  }
  if (view.lanes === "heat") {
    const waited = heatLanes(keys.map((key) => ({ key, spans: found.get(key) })), from, to, TOP);
    return [waited.slice(0, LANES), waited.length];
  }
  const more = view.lanes === "name" && !view.end ? all.length - wanted.length : 0;
  return [keys.slice(0, LANES).map((key) => ({ key, spans: found.get(key) })), keys.length + more];
}

// Holders and waiters of a name that its row leaves out: they are not drawn.
function notSent(name) {
  const row = view.lanes === "name" ? state.rows.get(name) : null;
  return row ? row.held - row.holders.length + row.waiting - row.queue.length : 0;
}

// Bars of one lane that overlap lie above each other.
function packed(spans, x) {
  const ends = [];
  const bars = [];
  const order = [...spans].sort((a, b) => a.wait - b.wait || a.begin - b.begin);
  let holds = 0;
  let hidden = 0;
  for (const span of order) {
    let left = x(span.begin);
    const right = Math.max(x(span.end), left + 1.5);
    let level = span.wait ? holds : 0;
    // A release is seen a moment late, so a hand-over may overlap by a little.
    while (level < DEEP && ends[level] > left + HANDOVER) level += 1;
    if (level >= DEEP) {
      hidden += 1;
      continue;
    }
    left = Math.max(left, Math.min(ends[level] ?? left, right - 1.5));
    ends[level] = right;
    if (!span.wait) holds = Math.max(holds, level + 1);
    bars.push({ span, left, right, level });
  }
  return [bars, Math.max(ends.length, 1), hidden];
}

export function Timeline() {
  const box = useRef();
  const [width, setWidth] = useState(900);
  const [hover, setHover] = useState(null);
  const [drag, setDrag] = useState(null);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.floor(entry.contentRect.width))));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  const [from, to] = range();
  const [left, right] = [width < 600 ? 96 : 150, width - 8];
  const letters = width < 600 ? 13 : 19; // of a label
  const x = (at) => left + Math.max(0, Math.min(1, (at - from) / (to - from))) * (right - left);
  const time = (pixel) => from + ((pixel - left) / (right - left)) * (to - from);
  const [shown, total] = lanes(from, to);
  const names = chosenNames().length;
  const labels = distinct(shown.map((lane) => plain(lane.key)), letters);
  const heat = view.lanes === "heat";
  let y = heat && shown.length ? shown.at(-1).y + shown.at(-1).height : TOP;
  const drawn = heat ? [] : shown.map((lane) => {
    const [bars, levels, hidden] = packed(lane.spans, x);
    const made = { ...lane, bars, y, height: levels * (TALL + 2) + 7, hidden: hidden + notSent(lane.key) };
    y += made.height;
    return made;
  });
  const pixel = (event) => event.clientX - box.current.getBoundingClientRect().left;
  return html`<section class="card timeline" aria-label="Timeline">
    <h2>Timeline <span class="soft">${view.end ? `${clock(from)} – ${clock(to)}` : `last ${duration(view.span)}`}</span>
      <span class="tools" role="group" aria-label="Timeline settings">
        ${Object.entries(TITLES).map(([each, title]) => html`<button type="button" class="small" key=${each} aria-pressed=${view.lanes === each} onClick=${() => choose({ lanes: each })}>${title}</button>`)}
        <button type="button" class="small" aria-label="Earlier" title="earlier" onClick=${() => shift(-0.5)}>◀</button>
        <button type="button" class="small" aria-label="Later" title="later" onClick=${() => shift(0.5)}>▶</button>
        <button type="button" class="small" aria-label="Zoom out" title="zoom out (-)" onClick=${() => zoom(1)}>−</button>
        <button type="button" class="small" aria-label="Zoom in" title="zoom in (+)" onClick=${() => zoom(-1)}>+</button>
        <button type="button" class="small" aria-pressed=${!view.end} onClick=${() => choose({ end: 0 })}>live</button>
      </span></h2>
    <div class="chart" ref=${box}>
      <svg width=${width} height=${y + 4} role="img" aria-label=${`${heat ? "Contention" : "Holds and waits"} of ${shown.length} lanes between ${clock(from)} and ${clock(to)}`}
        onPointerDown=${(event) => pixel(event) > left && setDrag([pixel(event), pixel(event)])}
        onPointerMove=${(event) => drag && setDrag([drag[0], pixel(event)])}
        onPointerUp=${() => {
          if (drag && Math.abs(drag[1] - drag[0]) > 8) {
            const [a, b] = [...drag].sort((p, q) => p - q).map(time);
            choose({ span: Math.max(5, b - a), end: Math.round(b * 10) / 10 }, { push: true });
          }
          setDrag(null);
        }}
        onPointerLeave=${() => { setHover(null); setDrag(null); }}>
        <defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" class="hatch-ground" /><line y2="5" class="hatch-line" /></pattern></defs>
        ${ticks(from, to, Math.min(8, Math.max(2, Math.floor((right - left) / 70)))).map((at) => html`<g class="tick" key=${at}><line x1=${x(at)} x2=${x(at)} y1=${TOP - 4} y2=${y} /><text x=${x(at)} y="11" text-anchor="middle">${clock(at, view.span < 1800)}</text></g>`)}
        ${drawn.map((lane) => html`<g key=${lane.key} class="lane">
          <line class="rule" x1="0" x2=${width} y1=${lane.y + lane.height - 2} y2=${lane.y + lane.height - 2} />
          <text class=${view.name === lane.key ? "label chosen" : "label"} x="4" y=${lane.y + TALL + 1} onClick=${() => view.lanes === "name" && select(lane.key)}>${labels.get(plain(lane.key))}<title>${plain(lane.key)}</title></text>
          ${lane.hidden > 0 && lane.height > 2 * TALL + 7 && html`<text class="hidden-bars" x="4" y=${lane.y + 2 * TALL + 5}>and ${lane.hidden} more</text>`}
          ${lane.bars.map(({ span, left, right, level }) => {
            const at = { x: left, y: lane.y + 1 + level * (TALL + 2), width: right - left, height: TALL };
            return html`<g key=${`${span.name}${span.ticket}${span.wait}`} onPointerEnter=${(event) => setHover({ span, x: event.clientX, y: event.clientY })} onPointerLeave=${() => setHover(null)}>
              <rect ...${at} rx="2" class=${span.wait ? "wait" : span.open ? "hold open" : "hold"} />${span.bad && html`<rect class="edge" x=${right - 3} y=${at.y - 1} width="3" height=${TALL + 2} />`}</g>`;
          })}</g>`)}
        ${heat && html`<${Heat} lanes=${shown} from=${from} to=${to} left=${left} right=${right} labels=${labels} onHover=${setHover} />`}
        ${drag && html`<rect class="brush" x=${Math.min(...drag)} y=${TOP - 4} width=${Math.abs(drag[1] - drag[0])} height=${y - TOP + 4} />`}
      </svg>
      ${!shown.length && html`<p class="soft empty">${heat ? "Nobody waited in this time." : "Nothing was held in this time."}</p>`}
      ${hover && html`<${Tip} ...${hover} />`}
    </div>
    <p class="foot soft">${heat ? html`<span class="key warm"></span> share of the time in which a client waited` : html`<span class="key hold"></span> held <span class="key wait"></span> waited <span class="key edge"></span> lost or evicted`}
      ${total > shown.length ? ` · ${total - shown.length} more lanes: use the filter` : ""}
      ${view.lanes !== "name" && names > LOOKED_AT[view.lanes] ? ` · only the first ${LOOKED_AT[view.lanes]} of ${names} names` : ""}
      ${past.completeFrom > from ? html` · <b class="warn">before ${clock(past.completeFrom)} not all is shown: zoom in</b>` : ""} ·
      ${state.hello?.journal ? " from programs with on_event=fairlock.web.journal(FILE) every hold is here; of others, holds shorter than a second may be missing"
        : " holds shorter than a second are not seen; programs with on_event=fairlock.web.journal(FILE) and `fairlock ui --journal FILE` record them"}</p>
  </section>`;
}

function Tip({ span, text, x, y }) {
  const node = useRef();
  useEffect(() => {
    const width = node.current.offsetWidth;
    node.current.style.left = `${Math.min(x + 12, window.innerWidth - width - 8)}px`;
    node.current.style.top = `${y + 14}px`;
  });
  if (text) return html`<div class="tip" ref=${node} role="tooltip"><b>${plain(text.name)}</b><br />a client waited ${text.share} % of the time<br /><span class="soft">${text.when}</span></div>`;
  return html`<div class="tip" ref=${node} role="tooltip"><b>${plain(span.name)}</b><br />${span.owner ? plain(span.owner) : "–"} <span class="soft">${plain(span.note ?? "")}</span><br />
    ${span.wait ? "waited" : "held"} ${duration(span.seconds)}${span.open ? " so far" : ""}${span.bad ? html`, <b class="bad">${span.kind}</b>` : ""}${span.kind === "given_up" ? ", then gave up" : ""}
    <br /><span class="soft">${clock(span.begin)} – ${span.open ? "now" : clock(span.end)}${span.fence ? ` · fence ${span.fence}` : ""}</span>${span.detail && html`<br /><span class="soft">${plain(span.detail)}</span>`}</div>`;
}

function ticks(from, to, most) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400].find((each) => (to - from) / each <= most) ?? 86400;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at < to - step / 4; at += step) found.push(at);
  return found;
}

export function zoom(direction) {
  const nearest = direction > 0 ? SPANS.find((each) => each > view.span) : SPANS.findLast((each) => each < view.span);
  if (nearest) choose({ span: nearest });
}

function shift(part) {
  const end = (view.end || serverNow()) + part * view.span;
  choose({ end: end >= serverNow() - 1 ? 0 : Math.round(end * 10) / 10 });
}
