// What happened, newest first, and the same for one name.
import { clock, duration, plain, plural } from "./format.js";
import { html, memo } from "./preact_html.js";
import { redraw, select, state, view } from "./page_state.js";

const WORDS = {
  waiting: "waits", acquired: "acquired", released: "released", lost: "lost", evicted: "evicted",
  evicting: "eviction", asked: "asked to release", given_up: "gave up", attached: "attached", detached: "detached", place_lost: "lost its place", store_down: "store down",
  store_up: "store up",
};
const MARKS = { lost: "warn", evicted: "bad", evicting: "bad", asked: "warn", store_down: "bad", place_lost: "warn" };
const SHOWN = 60;

// Not by [] alone: a kind of a newer version may be any text.
const known = (table, kind) => (Object.hasOwn(table, kind) ? table[kind] : null);

export const EventLine = memo(({ one, named = true }) => {
  const length = one.seconds === null || (one.seconds < 0.05 && one.kind === "acquired") ? "" : one.kind === "acquired" || one.kind === "given_up"
    ? `after ${duration(one.seconds)}` : `held ${duration(one.seconds)}`;
  return html`<li><time>${clock(one.at)}</time> <b class=${known(MARKS, one.kind) ?? ""}>${known(WORDS, one.kind) ?? plain(one.kind)}</b>
    ${named && one.name && html` <button type="button" class="link" onClick=${() => select(one.name)}>${plain(one.name)}</button>`}
    ${" "}<span class="soft">${[one.owner, one.note, length, one.detail].filter(Boolean).map(plain).join(" · ")}</span></li>`;
}, "one", "named");

export function Events() {
  const all = state.paused ?? state.events;
  const wanted = view.only === "lost" ? all.filter((one) => one.kind === "lost" || one.kind === "evicted") : all;
  const missed = state.paused ? state.events.length && state.events.at(-1).id - (state.paused.at(-1)?.id ?? 0) : 0;
  return html`<section class="card events" aria-label="Events">
    <h2>Events <button type="button" id="pause" class="small" aria-pressed=${state.paused !== null} title="pause (p)" onClick=${pause}>
      ${state.paused ? `Resume${missed > 0 ? ` · ${missed} new` : ""}` : "Pause"}</button></h2>
    <ul aria-label="Newest first" tabindex="0">
      ${wanted.slice(-SHOWN).reverse().map((one) => html`<${EventLine} key=${one.id} one=${one} />`)}</ul>
    ${wanted.length > SHOWN && html`<p class="soft">The newest ${SHOWN}; the details of a name list its own.</p>`}
    ${state.missed > 0 && html`<p class="soft">${plural(state.missed, "more event")} came too quickly to be listed here.</p>`}
    ${!wanted.length && html`<p class="soft">Nothing happened yet.</p>`}
  </section>`;
}

export function pause() {
  state.paused = state.paused ? null : state.events;
  redraw();
}
