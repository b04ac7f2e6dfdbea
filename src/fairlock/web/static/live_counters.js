// Numbers and bars that change by themselves: no row is drawn again because time passes.
import { ticking } from "./format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact_html.js";
import { isOld, seconds } from "./page_state.js";

// They stand still while nothing new can be read: a lease that is renewed meanwhile must not be shown as expired.
const shown = new Set();
setInterval(() => {
  if (isOld()) return;
  const now = seconds();
  for (const show of shown) show(now);
}, 250);

// Draw this component, and nothing around it, again every ten seconds.
const slow = new Set();
setInterval(() => {
  for (const draw of slow) draw();
}, 10_000);
export function useTens() {
  const [, count] = useState(0);
  useEffect(() => {
    const draw = () => count((before) => before + 1);
    slow.add(draw);
    return () => slow.delete(draw);
  }, []);
}

// Seconds that count up (step 1) or down (step -1) from `value` at the time `base`.
export function Counter({ value, base, step = 1, ended = "", format = ticking }) {
  const node = useRef();
  useLayoutEffect(() => {
    let last = null;
    const show = (at) => {
      const now = value + step * (at - base);
      if (last === Math.floor(now)) return;
      last = Math.floor(now);
      const text = ended && now <= 0 ? ended : format(now);
      if (node.current.textContent !== text) node.current.textContent = text;
    };
    show(seconds());
    shown.add(show);
    return () => shown.delete(show);
  }, [value, base, step, ended]);
  return html`<span class="counter" ref=${node}></span>`;
}

// How long ago that was; it counts also while the others stand still.
export function Age({ since }) {
  const [, count] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => count((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<span class="counter">${ticking(seconds() - since)}</span>`;
}

// The bar of a lease: full when it was renewed, empty when it ends. It moves by whole pixels: an animation of each bar
// would let the browser work in every frame, also for those that nobody sees.
const PIXELS = 72;
export function LeaseBar({ left, lease, base }) {
  const node = useRef();
  useLayoutEffect(() => {
    const bar = node.current;
    let last = null;
    const show = (at) => {
      const now = left - (at - base);
      const part = Math.round(Math.max(0, Math.min(1, now / lease)) * PIXELS);
      const low = now < Math.min(lease / 4, 5);
      if (last === part + low * 1000) return;
      last = part + low * 1000;
      bar.style.transform = `scaleX(${part / PIXELS})`;
      bar.parentNode.classList.toggle("low", low);
    };
    show(seconds());
    shown.add(show);
    return () => shown.delete(show);
  }, [left, lease, base]);
  return html`<span class="bar" aria-hidden="true"><span ref=${node}></span></span>`;
}
