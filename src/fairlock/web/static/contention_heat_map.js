// The contention of each name: a cell for each part of the time, the darker the longer a client waited in it.
import { clock, plain } from "./format.js";
import { html } from "./preact_html.js";
import { select, view } from "./page_state.js";

export const CELLS = 60;
const TALL = 14;
const GAP = 2;
const LEVELS = 10; // one path for each: thousands of elements would take longer than all the rest of the page

// Return for each cell which share of it a client waited.
export function shares(spans, from, to) {
  const size = (to - from) / CELLS;
  const found = Array(CELLS).fill(0);
  let reached = from;
  for (const span of [...spans].sort((a, b) => a.begin - b.begin)) {
    const [begin, end] = [Math.max(span.begin, reached), Math.min(span.end, to)];
    for (let at = Math.floor((begin - from) / size); at < CELLS && from + at * size < end; at += 1) {
      found[at] += Math.max(0, Math.min(end, from + (at + 1) * size) - Math.max(begin, from + at * size)) / size;
    }
    reached = Math.max(reached, end);
  }
  return found;
}

export function heatLanes(lanes, from, to, top) {
  const found = lanes.map((lane) => ({ key: lane.key, shares: shares(lane.spans.filter((span) => span.wait), from, to) }));
  for (const lane of found) lane.sum = lane.shares.reduce((sum, share) => sum + share, 0);
  const waited = found.filter((lane) => lane.sum > 0).sort((a, b) => b.sum - a.sum || (a.key < b.key ? -1 : 1));
  return waited.map((lane, at) => ({ ...lane, y: top + at * (TALL + GAP + 4), height: TALL + GAP + 4 }));
}

export function Heat({ lanes, from, to, left, right, labels, onHover }) {
  const wide = (right - left) / CELLS;
  const paths = Array(LEVELS).fill("");
  for (const lane of lanes) {
    lane.shares.forEach((share, at) => {
      if (!share) return;
      const level = Math.min(LEVELS - 1, Math.floor(share * LEVELS));
      paths[level] += `M${(left + at * wide).toFixed(1)} ${lane.y}h${Math.max(wide - GAP, 1).toFixed(1)}v${TALL}H${(left + at * wide).toFixed(1)}z`;
    });
  }
  const find = (event) => {
    const box = event.currentTarget.ownerSVGElement.getBoundingClientRect();
    const lane = lanes.find((each) => event.clientY - box.top < each.y + each.height);
    const at = Math.floor((event.clientX - box.left - left) / wide);
    onHover(lane && at >= 0 && at < CELLS ? { text: sentence(lane, at, from, to), x: event.clientX, y: event.clientY } : null);
  };
  return html`${paths.map((path, level) => html`<path key=${level} class="heat" d=${path} style=${{ fillOpacity: (0.12 + (0.88 * (level + 1)) / LEVELS).toFixed(2) }} />`)}
    ${lanes.map((lane) => html`<text key=${lane.key} class=${view.name === lane.key ? "label chosen" : "label"} x="4" y=${lane.y + TALL - 3} onClick=${() => select(lane.key)}>${labels.get(plain(lane.key))}<title>${plain(lane.key)}</title></text>`)}
    ${lanes.length > 0 && html`<rect class="cover" x=${left} y=${lanes[0].y} width=${right - left} height=${lanes.length * lanes[0].height} onPointerMove=${find} onPointerLeave=${() => onHover(null)} />`}`;
}

function sentence(lane, at, from, to) {
  const size = (to - from) / CELLS;
  const [begin, end] = [from + at * size, from + (at + 1) * size];
  return { name: lane.key, when: `${clock(begin)} – ${clock(end)}`, share: Math.round(100 * Math.min(1, lane.shares[at])) };
}
