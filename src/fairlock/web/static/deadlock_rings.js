// A ring of owners that wait for each other: a row for each, with the lock that it waits for, the youngest first.
import { distinct, plain } from "./format.js";
import { html } from "./preact_html.js";
import { select, state } from "./page_state.js";

const DRAWN = 3;
const ROWS = 6; // of a drawing; of more members the middle ones are only listed
const [WIDE, TALL, STEP, TOP] = [136, 28, 58, 20]; // of a box, of a row, and the room for the mark
const LETTERS = 17; // of a name in its box
const [OWNER, LOCK] = [18, 182]; // where the boxes begin; the last arrow comes back on their left

export function Rings() {
  const more = state.deadlocks - DRAWN;
  return html`${state.rings.slice(0, DRAWN).map((ring) => html`<${Ring} key=${ring.links.map((link) => link.ticket).join()} ring=${ring} />`)}${more > 0 && html`<p class="soft">and ${more} more: <code>fairlock doctor --deadlocks</code> lists them</p>`}`;
}

function Ring({ ring }) {
  const links = [...ring.links.slice(ring.youngest), ...ring.links.slice(0, ring.youngest)];
  const [youngest] = links;
  const rows = links.length > ROWS ? [...links.slice(0, ROWS - 2), null, links.at(-1)] : links;
  const y = (at) => TOP + at * STEP;
  const bottom = y(rows.length - 1) + TALL + 12;
  const title = ring.possible ? "Possible deadlock" : "Deadlock";
  const sentence = links.map((link) => `${plain(link.owner)} ${link.holds && `holds ${plain(link.holds)} and `}waits for ${plain(link.waits_for)}`).join("; ");
  const owners = distinct(links.map((link) => plain(link.owner)), LETTERS);
  const locks = distinct(links.map((link) => plain(link.waits_for)), LETTERS);
  const cure = links.find((link) => link.holds); // one that only stands in a queue has nothing to release
  return html`<section class="card ring bad-edge" aria-label=${`${title} of ${links.map((link) => plain(link.owner)).join(", ")}`}>
    <h2 class="bad">${title}: ${links.length} wait for each other</h2>
    <svg viewBox=${`0 0 320 ${bottom + 8}`} role="img" aria-label=${sentence}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0l8 4-8 4z" /></marker></defs>
      <text class="mark" x=${OWNER + 6} y=${TOP - 6}>youngest</text>
      ${rows.map((link, at) => (link ? html`
        <${Arrow} kind="waits" title="waits for" d=${`M${OWNER + WIDE} ${y(at) + TALL / 2}H${LOCK - 2}`} />
        <${Node} kind="owner" x=${OWNER} y=${y(at)} text=${link.owner} shown=${owners.get(plain(link.owner))} youngest=${at === 0} />
        <${Node} kind="lock" x=${LOCK} y=${y(at)} text=${link.waits_for} shown=${locks.get(plain(link.waits_for))} />`
        : html`<text class="between" x=${(OWNER + LOCK + WIDE) / 2} y=${y(at) + TALL / 2 + 4} text-anchor="middle">… ${links.length - rows.length + 1} more …</text>`))}
      ${rows.slice(1).map((link, at) => html`<${Arrow} kind="held" title=${link && !link.holds ? "waits behind" : "is held by"}
        d=${`M${LOCK + 18} ${y(at) + TALL}L${OWNER + WIDE - 18} ${y(at + 1) - 2}`} />`)}
      <${Arrow} kind="held" title=${youngest.holds ? "is held by" : "waits behind"} d=${`M${LOCK + WIDE / 2} ${bottom - 12}V${bottom}H6V${y(0) + TALL / 2}H${OWNER - 2}`} />
    </svg>
    <ul class="links" tabindex="0" aria-label="Members">${links.map((link) => html`<li key=${link.ticket}><b>${plain(link.owner)}</b>${link.holds && html` holds <${Name} name=${link.holds} /> and`} waits for <${Name} name=${link.waits_for} /></li>`)}</ul>
    <p class="soft">${ring.possible ? "Not certain: threads of one process share an owner, and a semaphore may have other slots. " : ""}It ends when one of them gives up. ${cure && `${cure === youngest ? `The youngest, ${plain(cure.owner)}, loses the least` : `${plain(cure.owner)} can end it`}: ask it to release ${plain(cure.holds)}, or evict it.`}</p>
  </section>`;
}

function Node({ kind, x, y, text, shown, youngest = false }) {
  return html`<g class=${`node ${kind} ${youngest ? "youngest" : ""}`} onClick=${() => kind === "lock" && select(text)}>
    <rect x=${x} y=${y} width=${WIDE} height=${TALL} rx=${kind === "owner" ? TALL / 2 : 5} />
    <text x=${x + WIDE / 2} y=${y + TALL / 2 + 4} text-anchor="middle">${shown}<title>${plain(text)}</title></text></g>`;
}

function Arrow({ kind, title, d }) {
  return html`<path class=${`edge ${kind}`} d=${d} marker-end="url(#arrow)"><title>${title}</title></path>`;
}

function Name({ name }) {
  return html`<button type="button" class="link" onClick=${() => select(name)}>${plain(name)}</button>`;
}
