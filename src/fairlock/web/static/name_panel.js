// The chosen name: holders, queue, pool, last events, what operators did, and the forms that ask or evict a holder.
import { EventLine } from "./event_list.js";
import { moment, plain, plural, quoted } from "./format.js";
import { html, useLayoutEffect, useRef, useState } from "./preact_html.js";
import { choose, drawNow, label, redraw, seconds, state, view } from "./page_state.js";
import { get, post } from "./server_requests.js";
import { HolderLine, Spark, badges } from "./lock_table.js";
import { Counter } from "./live_counters.js";

let asked = ""; // the name and the look that the last question was about
let asking = false;

// Ask for the details when another name is chosen, and again when something of it changed.
export async function refreshDetail() {
  const name = view.name;
  if (!name || !state.hello || asking) return;
  if (state.detail?.name === name && !state.touched?.has(name)) return;
  state.touched?.delete(name);
  asking = true;
  try {
    const found = await get(`./api/name?name=${encodeURIComponent(name)}`);
    if (found.row) found.row.base = seconds();
    if (view.name === name) state.detail = { ...found, name };
  } catch (error) {
    // What was known stays: a form that is being filled in must not go because one reply did not come.
    const before = state.detail?.name === name ? state.detail : { name, row: null, events: [], pool: null, audit: [], ask: false, evict: false };
    if (view.name === name) state.detail = { ...before, error: error.message };
  } finally {
    asking = false;
    redraw();
  }
}

export function Panel() {
  const name = view.name;
  if (!name) return null;
  const row = state.rows.get(name);
  const detail = state.detail?.name === name ? state.detail : null;
  const full = row && detail?.row ? { ...row, queue: row.queue.length < row.waiting ? detail.row.queue : row.queue } : row;
  return html`<section class="card panel" id="panel" tabindex="-1" aria-label=${`Details of ${plain(name)}`}>
    <h2><span class="title">${plain(name)}</span> ${badges(row)}
      <button type="button" class="quiet close" aria-label="Close the details" title="close (Esc)" onClick=${() => choose({ name: "" })}>✕</button></h2>
    ${detail?.error && html`<p class="bad">${detail.error}</p>`}
    ${row?.kind === "damaged" && html`<p class="bad">The record of this name is damaged: it cannot be acquired. <${CommandLine} words=${["fairlock", "doctor", "--repair", name]} /></p>`}
    ${!row && html`<p class="soft">${detail?.pool ? "A pool." : "It is free: no client holds it and none waits."}</p>`}
    ${row && row.kind !== "damaged" && html`<p class="soft">last fence <code>${row.fence}</code> · ${plural(row.held, "holder")} · ${plural(row.waiting, "waiter")}</p>`}
    ${full?.holders.map((one) => html`<${HolderCard} key=${one.ticket} one=${one} row=${full} detail=${detail} />`)}
    ${full?.expired.map((one) => html`<${HolderCard} key=${one.ticket} one=${one} row=${full} detail=${null} />`)}
    ${row?.spark.length ? html`<div class="wide-spark"><${Spark} row=${row} /><span class="soft">waiting, last 10 minutes</span></div>` : null}
    ${full?.waiting > 0 && html`<h3>Queue</h3><ol class="queue">${full.queue.map((one) => html`<li key=${one.ticket}>
      <b>${label(one)}</b> <span class="soft">${plain(one.note)}${one.note && " · "}<${Counter} value=${one.waited} base=${row.base} />${mode(row, one)}</span></li>`)}</ol>`}
    ${detail?.pool && html`<${PoolItems} pool=${detail.pool} />`}
    <h3>Last events</h3>
    ${detail?.events.length ? html`<ul class="history" tabindex="0" aria-label="Last events">${detail.events.map((one) => html`<${EventLine} key=${one.id} one=${one} named=${false} />`)}</ul>`
      : html`<p class="soft">None was recorded.</p>`}
    ${detail?.audit.length ? html`<h3>What operators did</h3><ul class="audit" tabindex="0" aria-label="What operators did">${detail.audit.map((one) => html`<${AuditLine} one=${one} />`)}</ul>` : null}
  </section>`;
}

function mode(row, one) {
  if (row.kind === "rwlock") return one.weight === state.hello?.exclusive ? " · writes" : " · reads";
  return row.kind === "semaphore" && one.weight > 1 ? ` · ${one.weight} slots` : "";
}

function AuditLine({ one }) {
  const about = one.owner ? ` ${plain(one.owner)}` : "";
  return html`<li><time>${moment(one.at)}</time> <b class=${{ asked: "warn", evicted: "bad", repaired: "bad" }[one.kind] ?? ""}>${one.kind}</b>${about} <span class="soft">by ${plain(one.by)} · ${plain(one.reason)}</span></li>`;
}

function HolderCard({ one, row, detail }) {
  const open = (form) => state.form === `${form} ${one.ticket}`;
  const show = (form) => () => { state.form = `${form} ${one.ticket}`; drawNow(); };
  const may = one.owner && !open("ask") && !open("evict");
  return html`<div class="holder"><div class="line"><${HolderLine} one=${one} row=${row} /></div>
    <p class="soft">held for <${Counter} value=${one.held_for} base=${row.base} /> · fence <code>${one.fence}</code> · ticket <code>${plain(one.ticket)}</code></p>
    ${one.asked && html`<p class="asked"><b class="warn">asked to release</b> by ${plain(one.asked.by)}: ${plain(one.asked.reason)}</p>`}
    ${may && row.kind !== "pool" && (detail?.ask || detail?.evict) ? html`<p class="buttons">
      ${detail.ask && html`<button type="button" class="polite" onClick=${show("ask")}>Ask to release…</button>`}
      ${detail.evict && html`<button type="button" class="danger" onClick=${show("evict")}>Evict…</button>`}</p>` : null}
    ${one.item && row.kind === "pool" && (detail?.ask || detail?.evict) ? html`<p class="soft">An item cannot be asked for or evicted; a worker that holds a lock of its own, too, can be asked for that one. This takes it from its owner <em>and deletes it</em>; <code>pool add</code> adds it again: <${CommandLine} words=${["fairlock", "pool", "rm", row.name, one.item, "--force"]} /></p>` : null}
    ${detail?.ask && open("ask") ? html`<${AskForm} one=${one} row=${row} />` : null}
    ${detail?.evict && open("evict") ? html`<${EvictForm} one=${one} row=${row} />` : null}
  </div>`;
}

// What both forms have: the reason, the request, and the sentence if it fails.
function useForm(path, one, row) {
  const [reason, setReason] = useState("");
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const first = useRef();
  useLayoutEffect(() => first.current.focus(), []); // at once: the next key belongs to it
  const close = () => {
    state.form = "";
    drawNow();
    document.getElementById("panel")?.focus();
  };
  const send = async (event, ready, more) => {
    event.preventDefault();
    if (!ready || busy) return;
    setBusy(true);
    try {
      const done = await post(path, { name: row.name, ticket: one.ticket, reason, ...more });
      if (done.count) close();
      else setFailure("It had ended already; nothing was changed.");
    } catch (error) {
      setFailure(error.message);
    }
    setBusy(false);
  };
  const escape = (event) => event.key === "Escape" && (event.stopPropagation(), close());
  const field = html`<label>Reason, which the holder reads<input ref=${first} name="reason" maxlength="200" autocomplete="off" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>`;
  const bad = failure && html`<p class="bad" role="alert">${failure}</p>`;
  const words = (command, more = []) => ["fairlock", command, row.name, "--ticket", one.ticket, "--reason", reason.trim() || "…", ...more];
  return { ready: Boolean(reason.trim()) && !busy, close, send, escape, field, bad, words };
}

function AskForm({ one, row }) {
  const { ready, close, send, escape, field, bad, words } = useForm("./api/ask", one, row);
  return html`<form class="evict" onSubmit=${(event) => send(event, ready, {})} onKeyDown=${escape} aria-label=${`Ask ${label(one)} to release`}>
    ${field}
    <p class="soft">${label(one)} is notified within about a second and decides for itself. It holds the name as before: nothing is taken from it.
      A command of <code>fairlock run</code> prints the request, or gets the signal that its <code>--on-asked</code> names.</p>
    ${bad}
    <p class="buttons"><button type="submit" class="polite" disabled=${!ready}>Ask ${label(one)}</button> <button type="button" onClick=${close}>Cancel</button></p>
    <p class="soft">The same in a terminal: <${CommandLine} words=${words("ask")} /></p>
  </form>`;
}

function EvictForm({ one, row }) {
  const [atOnce, setAtOnce] = useState(false);
  const [typed, setTyped] = useState("");
  const form = useForm("./api/evict", one, row);
  const ready = form.ready && (!atOnce || typed === row.name);
  const next = row.waiting ? `${label(row.queue[0])} is next.` : "Nobody waits for it.";
  return html`<form class="evict" onSubmit=${(event) => form.send(event, ready, { at_once: atOnce, typed })} onKeyDown=${form.escape} aria-label=${`Evict ${label(one)}`}>
    ${form.field}
    <fieldset><legend class="sr">When</legend>
      <label class="choice"><input type="radio" name="when" checked=${!atOnce} onChange=${() => setAtOnce(false)} />
        <span><b>At the end of the lease</b><br /><span class="soft">Its lease is not renewed any more. ${label(one)} is notified; the name is free in${" "}<${Counter} value=${one.expires_in} base=${row.base} step=${-1} ended="no time" />${" "}at most. ${next}</span></span></label>
      <label class="choice"><input type="radio" name="when" checked=${atOnce} onChange=${() => setAtOnce(true)} />
        <span><b>At once</b><br /><span class="soft">The name is free now. ${label(one)} is <em>not</em> stopped: it may still be working, so two may
        work at the same time until it notices. Its fence ${one.fence} becomes stale. ${next}</span></span></label>
    </fieldset>
    ${atOnce && html`<label>Type the name to confirm<input name="typed" autocomplete="off" spellcheck=${false} placeholder=${row.name} value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>`}
    ${form.bad}
    <p class="buttons"><button type="submit" class="danger" disabled=${!ready}>Evict ${label(one)}</button> <button type="button" onClick=${form.close}>Cancel</button></p>
    <p class="soft">The same in a terminal: <${CommandLine} words=${form.words("evict", atOnce ? ["--at-once"] : [])} /></p>
  </form>`;
}

function CommandLine({ words }) {
  const [copied, setCopied] = useState(false);
  const text = words.map(quoted).join(" ");
  return html`<span class="command"><code>${plain(text)}</code> <button type="button" class="small" onClick=${async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      setCopied(false);
    }
  }}>${copied ? "Copied" : "Copy"}</button></span>`;
}

function PoolItems({ pool }) {
  return html`<h3>Pool: ${plural(pool.total, "item")}</h3><table class="items"><thead><tr><th scope="col">item</th><th scope="col">state</th><th scope="col">owner</th><th scope="col">body</th></tr></thead>
    <tbody>${pool.items.map((one) => html`<tr key=${one.key}><td>${plain(one.key)}</td><td>${one.state}</td><td>${plain(one.owner)}</td>
      <td><code>${one.body === null ? "" : plain(JSON.stringify(one.body)).slice(0, 200)}</code></td></tr>`)}</tbody></table>
    ${pool.total > pool.items.length && html`<p class="soft">and ${pool.total - pool.items.length} more</p>`}`;
}
