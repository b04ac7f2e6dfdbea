// The strip of figures. Each is a filter; it is red or amber only above zero.
import { plain } from "./format.js";
import { html } from "./preact_html.js";
import { choose, state, view } from "./page_state.js";
import { Counter } from "./live_counters.js";
import { nextTheme, themeName } from "./theme_switch.js";

const STATUS = {
  connecting: "connecting…", live: "live", late: "no news for a while", offline: "no connection, trying again",
  refused: "not allowed", hidden: "paused",
};

function Figure({ only, title, value, mark = "", help }) {
  const chosen = view.only === only;
  return html`<button type="button" class=${`figure ${mark}`} aria-pressed=${chosen} title=${help}
    onClick=${() => choose({ only: chosen ? "" : only })} id=${`figure-${only}`}>
    <span class="soft">${title}</span> <b>${value}</b></button>`;
}

export function Strip() {
  const figures = state.figures ?? { held: 0, waiting: 0, longest: 0, stale: 0, damaged: 0, lost: {}, base: 0 };
  const lost = Object.values(figures.lost).reduce((sum, times) => sum + times, 0);
  const certain = state.rings.some((ring) => !ring.possible);
  const longest = figures.waiting ? html`<${Counter} value=${figures.longest} base=${figures.base} />` : "–";
  return html`<header class="strip">
    <h1><${Lock} /> fairlock</h1>
    <div class="figures" role="group" aria-label="Figures, each a filter">
      <${Figure} only="held" title="held" value=${figures.held} help="names that are held" />
      <${Figure} only="waiting" title="waiting" value=${figures.waiting} help="waiters of all names" />
      <button type="button" class="figure" title="sort by the waiting that a lock causes" id="figure-longest"
        aria-pressed=${false} onClick=${() => choose({ sort: "pain", only: "waiting" })}>
        <span class="soft">longest wait</span> <b>${longest}</b></button>
      <${Figure} only="lost" title="lost 1h" value=${lost} mark=${lost ? "warn" : ""}
        help="leases that were lost or evicted in the last hour" />
      <${Figure} only="stale" title="stale" value=${figures.stale} mark=${figures.stale ? "bad" : ""}
        help="names with a lease that has ended and was taken by nobody since" />
      <${Figure} only="deadlock" title="deadlock" mark=${state.rings.length ? "bad" : ""}
        value=${state.rings.length ? `${certain ? "" : "possible "}${state.deadlocks}` : 0}
        help="rings of owners that wait for each other" />
      ${figures.damaged ? html`<${Figure} only="damaged" title="damaged" value=${figures.damaged} mark="bad"
        help="records that cannot be read" />` : null}
    </div>
    <div class="right">
      <input id="filter" type="search" placeholder="/ filter: text, owner:…, kind:rw" aria-label="Filter"
        autocomplete="off" spellcheck=${false} value=${view.filter}
        onInput=${(event) => choose({ filter: event.target.value })}
        onKeyDown=${(event) => {
          if (event.key === "Escape" || event.key === "Enter") event.target.blur();
        }} />
      <button type="button" class="quiet" onClick=${nextTheme} title="theme (t)" aria-label=${`Theme: ${themeName()}. Change it`}>
        <${Theme} name=${themeName()} /></button>
      <button type="button" class="quiet" id="help-button" title="keys (?)" aria-label="Show the keys"
        onClick=${() => { state.help = true; choose({}); }}>?</button>
    </div>
    <p class="where" role="status">
      <span class=${`dot ${state.error && state.status === "live" ? "offline" : state.status}`} aria-hidden="true"></span>${state.error && state.status === "live" ? "the store cannot be read" : STATUS[state.status]}
      <span class="soft"> · <span class="store" title=${state.hello?.store}>${plain(state.hello?.store ?? "")}</span> · ${state.hello?.admin ? "may ask and evict" : "read-only"}</span></p>
  </header>`;
}

function Lock() {
  return html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" />
    <path d="M11 15v-3a5 5 0 0 1 10 0v3" /><rect class="body" x="8" y="15" width="16" height="10.5" rx="2.5" /></svg>`;
}

function Theme({ name }) {
  const half = { light: "M8 2a6 6 0 0 0 0 0z", dark: "M8 2a6 6 0 0 1 0 12 6 6 0 0 1 0-12z", auto: "M8 2a6 6 0 0 1 0 12z" }[name];
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6" /><path d=${half} /></svg>`;
}
