// The table: one row for each name that is held, waited for or stale.
import { plain, plural } from "./format.js";
import { html, memo, useEffect, useRef } from "./preact_html.js";
import { SORTS, choose, chosenNames, label, namesInRings, redraw, seconds, select, state, view } from "./page_state.js";
import { Counter, LeaseBar, useTens } from "./live_counters.js";

const MORE = 60;
const CHIPS = 8; // of a row: a long queue must not push the other locks out of sight

export function Table() {
  const names = chosenNames();
  const listed = names.slice(0, state.limit);
  const end = useRef();
  const longer = names.length > listed.length;
  const inRings = namesInRings();
  useEffect(() => {
    if (!end.current) return undefined;
    const seen = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        state.limit += MORE;
        redraw();
      }
    });
    seen.observe(end.current);
    return () => seen.disconnect();
  }, [longer, state.limit]);
  return html`<section class="card table" aria-label="Locks">
    <div class="scroll" tabindex="0" role="region" aria-label="Table of locks">
    <table role="table" aria-rowcount=${names.length}>
      <thead role="rowgroup"><tr role="row">
        <${Head} sort="name">lock<//>
        <${Head} sort="held">holders · held for · lease left<//>
        <${Head} sort="waiting">waiters, next first<//>
        <${Head} sort="pain" title="sort by the waiting that a lock causes">waiting, 10 min<//>
      </tr></thead>
      <tbody role="rowgroup">${listed.map((name) => html`<${Row} key=${name} name=${name} row=${state.rows.get(name)}
        chosen=${view.name === name} exclusive=${state.hello?.exclusive} ring=${inRings.has(name)} />`)}</tbody>
    </table>
    ${longer && html`<p class="soft more" ref=${end}>${names.length - listed.length} more…</p>`}
    ${!names.length && html`<p class="empty">${emptyText()}</p>`}
    </div>
    <p class="foot soft">${plural(names.length, "name")}${view.only ? ` · only ${view.only}` : ""}${view.filter ? " · filtered" : ""} · sorted by ${SORTS[view.sort]}</p>
  </section>`;
}

function emptyText() {
  if (state.status !== "live" && !state.rows.size) return "Waiting for the store…";
  if (view.filter || view.only) return "No name matches. Press / to change the filter, or click the pressed figure.";
  return "Nothing is held and no client waits.";
}

function Head({ sort, title, children }) {
  const chosen = view.sort === sort;
  return html`<th role="columnheader" scope="col" class=${`of-${sort}`} aria-sort=${chosen ? (sort === "name" ? "ascending" : "descending") : "none"}>
    <button type="button" title=${title ?? `sort by ${SORTS[sort]}`} onClick=${() => choose({ sort })}>${children}<span aria-hidden="true">${chosen ? " ▾" : ""}</span></button></th>`;
}

const Row = memo(({ name, row, chosen, exclusive, ring }) => {
  const classes = [chosen && "chosen", !row && "free", row?.expired.length && "stale", row?.kind === "damaged" && "stale"];
  return html`<tr role="row" class=${classes.filter(Boolean).join(" ")} data-name=${name} onClick=${() => select(name)}>
    <th role="rowheader" scope="row"><button type="button" class="name" aria-pressed=${chosen} title=${plain(name)} onClick=${(event) => {
      event.stopPropagation();
      select(name);
    }}>${plain(name)}</button>
      <div class="badges">${badges(row)}${ring && html`<span class="badge bad">deadlock</span>`}</div></th>
    <td role="cell">${row ? holders(row) : html`<span class="soft">free</span>`}</td>
    <td role="cell">${row ? queue(row, exclusive) : null}</td>
    <td role="cell" class="spark">${row?.spark.length ? html`<${Spark} row=${row} />` : null}</td>
  </tr>`;
}, "name", "row", "chosen", "exclusive", "ring");

export function badges(row) {
  if (!row) return null;
  const kind = row.kind === "semaphore" || row.kind === "pool" ? `${row.kind} ${row.held}/${row.capacity}` : row.kind;
  return html`<span class="badge">${kind}</span>${row.expired.length ? html`<span class="badge bad">stale</span>` : null}`;
}

function holders(row) {
  const more = row.held - row.holders.length;
  return html`<ul class="holders">
    ${row.holders.map((one) => html`<li key=${one.ticket}><${HolderLine} one=${one} row=${row} held=${true} /></li>`)}
    ${row.expired.map((one) => html`<li key=${one.ticket}><${HolderLine} one=${one} row=${row} /></li>`)}
    ${more > 0 && html`<li class="soft">+${more} more</li>`}
    ${!row.holders.length && !row.expired.length && html`<li class="soft">${row.kind === "damaged" ? "cannot be read" : "nobody"}</li>`}
  </ul>`;
}

// held: show how long it has been held.
export function HolderLine({ one, row, held = false }) {
  const reader = row.kind === "rwlock" && one.weight === 1;
  const late = one.expires_in <= 0;
  return html`<span class="who" title=${plain(`${label(one)} ${one.note}`)}><b>${label(one)}</b>${one.asked && html` <span class="badge warn" title=${`asked to release: ${plain(one.asked.reason)}`}>asked</span>`}${one.item && html` has <code>${plain(one.item)}</code>`}${one.note && html` <span class="soft">${plain(one.note)}</span>`}${reader && html` <span class="soft">· read</span>`}</span>
    ${held && html`<span class="soft for"><span class="sr">held for </span><${Counter} value=${one.held_for} base=${row.base} /></span>`}
    <${LeaseBar} left=${one.expires_in} lease=${one.lease || 1} base=${row.base} />
    <span class=${late ? "left bad" : "left"}><span class="sr">lease left </span>${late
      ? html`expired <${Counter} value=${-one.expires_in} base=${row.base} /> ago`
      : html`<${Counter} value=${one.expires_in} base=${row.base} step=${-1} ended="expired" />`}</span>`;
}

function queue(row, exclusive) {
  if (!row.waiting) return html`<span class="soft"><span aria-hidden="true">–</span><span class="sr">no client waits</span></span>`;
  const more = row.waiting - Math.min(row.queue.length, CHIPS);
  return html`<ol class="chips">${row.queue.slice(0, CHIPS).map((one, place) => {
    const writer = row.kind === "rwlock" && one.weight === exclusive;
    return html`<li key=${one.ticket} class=${writer ? "chip writer" : "chip"} title=${[plain(one.owner), writer && "writer", plain(one.note)].filter(Boolean).join(" · ")}>
      <span class="chip-owner">${place + 1}. ${plain(one.owner)}</span>${writer && html` <abbr title="writer">W</abbr>`} <span class="soft"><${Counter} value=${one.waited} base=${row.base} /></span></li>`;
  })}${more > 0 && html`<li class="soft" title="the details list all of them">+${more}</li>`}</ol>`;
}

// Sixty values of ten seconds each. Zeros at the beginning are not sent, and since a row was sent nothing has changed.
const VALUES = 60;
export function Spark({ row }) {
  useTens();
  const since = Array(Math.min(Math.floor((seconds() - row.base) / 10), VALUES)).fill(row.waiting);
  const sent = [...row.spark, ...since];
  const values = [...Array(VALUES).fill(0), ...sent].slice(-VALUES);
  const [width, height] = [110, 24];
  const top = Math.max(...values, 1);
  const x = (at) => (at * width) / (values.length - 1);
  const y = (value) => height - 2 - (value * (height - 4)) / top;
  const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return html`<svg viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label=${`${values.at(-1)} waiting now, at most ${top} in ten minutes`}>
    <polygon points=${`0,${height} ${points} ${width},${height}`} /><polyline points=${points} /></svg>`;
}

// j and k: choose the next name, and scroll to it.
export function move(step) {
  const names = chosenNames();
  if (!names.length) return;
  const at = names.indexOf(view.name);
  const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), names.length - 1);
  state.limit = Math.max(state.limit, next + 20);
  select(names[next]);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    for (const row of document.querySelectorAll("tr.chosen")) row.scrollIntoView({ block: "nearest" });
  }));
}

