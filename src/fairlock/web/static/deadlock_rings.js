// A ring of owners that wait for each other: owners and locks in turn, the youngest marked.
import { plain, shortened } from "./format.js";
import { html } from "./preact_html.js";
import { select, state } from "./page_state.js";

const DRAWN = 3;
const BOX = { width: 112, height: 28 };

export function Rings() {
  const more = state.deadlocks - DRAWN;
  return html`${state.rings.slice(0, DRAWN).map((ring) => html`<${Ring} key=${ring.links.map((link) => link.ticket).join()} ring=${ring} />`)}${more > 0 && html`<p class="soft">and ${more} more: <code>fairlock doctor --deadlocks</code> lists them</p>`}`;
}

function Ring({ ring }) {
  const { links } = ring;
  const youngest = links[ring.youngest];
  const nodes = links.flatMap((link, at) => [
    { kind: "owner", text: link.owner, youngest: at === ring.youngest },
    { kind: "lock", text: link.waits_for },
  ]);
  const [middle, radius, tall] = [160, 104, Math.max(58, 30 * links.length)];
  const height = 2 * tall + BOX.height + 26;
  nodes.forEach((node, at) => {
    const angle = (2 * Math.PI * at) / nodes.length - Math.PI / 2;
    node.x = middle + radius * Math.cos(angle);
    node.y = height / 2 + tall * Math.sin(angle);
  });
  const title = ring.possible ? "Possible deadlock" : "Deadlock";
  const sentence = links.map((link) => `${plain(link.owner)} holds ${plain(link.holds)} and waits for ${plain(link.waits_for)}`).join("; ");
  return html`<section class="card ring bad-edge" aria-label=${`${title} of ${links.map((link) => plain(link.owner)).join(", ")}`}>
    <h2 class="bad">${title}: ${links.length} wait for each other</h2>
    <svg viewBox=${`0 0 320 ${height}`} role="img" aria-label=${sentence}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0l8 4-8 4z" /></marker></defs>
      ${nodes.map((node, at) => edge(node, nodes[(at + 1) % nodes.length]))}
      ${nodes.map((node) => html`<g class=${`node ${node.kind} ${node.youngest ? "youngest" : ""}`} onClick=${() => node.kind === "lock" && select(node.text)}>
        <rect x=${node.x - BOX.width / 2} y=${node.y - BOX.height / 2} width=${BOX.width} height=${BOX.height} rx=${node.kind === "owner" ? 14 : 5} />
        <text x=${node.x} y=${node.y + 4} text-anchor="middle">${shortened(plain(node.text), 17)}<title>${plain(node.text)}</title></text>
        ${node.youngest && html`<text class="mark" ...${markAt(node, middle, height / 2)}>youngest</text>`}</g>`)}
    </svg>
    <ul class="links">${links.map((link) => html`<li key=${link.ticket}><b>${plain(link.owner)}</b> holds <button type="button" class="link" onClick=${() => select(link.holds)}>${plain(link.holds)}</button>${" "}and waits for <button type="button" class="link" onClick=${() => select(link.waits_for)}>${plain(link.waits_for)}</button></li>`)}</ul>
    <p class="soft">${ring.possible ? "Not certain: threads of one process share an owner, and a semaphore may have other slots. " : ""}It ends when one of them gives up. The youngest, ${plain(youngest.owner)}, loses the least: ask it to release ${plain(youngest.holds)}, or evict it.</p>
  </section>`;
}

// Outside, where no arrow goes.
function markAt(node, middle, centre) {
  const side = Math.abs(node.x - middle) < 1 ? 0 : Math.sign(node.x - middle);
  const y = node.y + (node.y > centre ? BOX.height / 2 + 12 : -BOX.height / 2 - 5);
  return { x: node.x + (side * BOX.width) / 2, y, "text-anchor": ["start", "middle", "end"][side + 1] };
}

function edge(from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  // From edge to edge of the boxes, not from centre to centre.
  const cut = Math.min((BOX.width / 2 + 3) / Math.abs(dx || 1e-9), (BOX.height / 2 + 3) / Math.abs(dy || 1e-9));
  const [x1, y1, x2, y2] = [from.x + dx * cut, from.y + dy * cut, to.x - dx * cut, to.y - dy * cut];
  const waits = from.kind === "owner";
  return html`<line class=${waits ? "waits" : "held"} x1=${x1} y1=${y1} x2=${x2} y2=${y2} marker-end="url(#arrow)"><title>${waits ? "waits for" : "is held by"}</title></line>`;
}

