// The page: puts the parts together, and gives each key its meaning.
import { Events, pause } from "./event_list.js";
import { html, render, useLayoutEffect, useRef } from "./preact_html.js";
import { Panel, refreshDetail } from "./name_panel.js";
import { Rings } from "./deadlock_rings.js";
import { choose, drawNow, isOld, onDraw, redraw, state } from "./page_state.js";
import { start } from "./server_requests.js";
import { Strip } from "./summary_figures.js";
import { Table, move } from "./lock_table.js";
import { Age } from "./live_counters.js";
import { nextTheme } from "./theme_switch.js";
import { Timeline, refreshHistory, zoom } from "./timeline.js";

const KEYS = [
  ["/", "filter"], ["j k", "next and previous name"], ["Enter", "go to the details"], ["Esc", "back, close"],
  ["+ −", "zoom the timeline"], ["p", "pause the events"], ["t", "theme: system, light, dark"], ["?", "these keys"],
];

const NO_SERVER = "The server of this page does not reply. Has it ended? The page tries again.";

function Help() {
  const dialog = useRef();
  useLayoutEffect(() => {
    if (state.help && !dialog.current.open) dialog.current.showModal();
    if (!state.help && dialog.current.open) dialog.current.close();
  });
  return html`<dialog ref=${dialog} aria-label="Keys" onClose=${() => { state.help = false; }}>
    <h2>Keys</h2><dl>${KEYS.map(([key, does]) => html`<div key=${key}><dt>${key.split(" ").map((each) => html`<kbd>${each}</kbd> `)}</dt><dd>${does}</dd></div>`)}</dl>
    <p class="soft">Rows are sorted by the waiting that a lock causes, and move at most every five seconds. What you choose is in the address: a link shows the same.</p>
    <form method="dialog"><button type="button" onClick=${() => { state.help = false; redraw(); }}>Close</button></form></dialog>`;
}

function Page() {
  return html`<${Strip} />
    ${state.status === "refused" && html`<p class="banner bad-edge" role="alert">${state.refusal}</p>`}
    ${isOld() && html`<p class="banner bad-edge" role="alert">${["offline", "late"].includes(state.status) ? NO_SERVER : state.error}
      ${state.readAt !== null && html` The rows show what was read <${Age} since=${state.readAt} /> ago; leases and waits are not counted on.`}</p>`}
    ${state.status !== "refused" && html`<div class=${isOld() ? "columns old" : "columns"}>
      <main><${Table} /><${Timeline} /></main>
      <aside aria-label="Details and events"><${Panel} /><${Rings} /><${Events} /></aside>
    </div>`}
    <${Help} />`;
}

const root = document.getElementById("page");
let drawn = false;
onDraw(() => {
  if (!drawn) root.textContent = "";
  drawn = true;
  render(html`<${Page} />`, root);
  refreshDetail();
  refreshHistory();
});

const ACTIONS = {
  "/": () => document.getElementById("filter").select(), // at once: the next key belongs to it
  j: () => move(1),
  k: () => move(-1),
  t: nextTheme,
  p: pause,
  "+": () => zoom(-1),
  "-": () => zoom(1),
  "?": () => { state.help = true; drawNow(); },
  Enter: () => { drawNow(); document.getElementById("panel")?.focus(); },
  Escape: () => (state.form ? (state.form = "", redraw()) : choose({ name: "" })),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || state.help) return;
  const typing = event.target.closest("input, textarea, select");
  const pressing = event.target.closest("button, a") && event.key === "Enter";
  if (typing || pressing || !(event.key in ACTIONS)) return;
  event.preventDefault();
  ACTIONS[event.key]();
});

start();
redraw();
