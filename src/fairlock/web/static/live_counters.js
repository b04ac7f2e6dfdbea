// Numbers and bars that change by themselves: no row is drawn again because time passes.
import { ticking } from "./format.js";
import { html, useLayoutEffect, useRef } from "./preact_html.js";
import { seconds } from "./page_state.js";

const shown = new Set();
setInterval(() => {
  for (const show of shown) show();
}, 250);

// Seconds that count up (step 1) or down (step -1) from `value` at the time `base`.
export function Counter({ value, base, step = 1, ended = "", format = ticking }) {
  const node = useRef();
  useLayoutEffect(() => {
    const show = () => {
      const now = value + step * (seconds() - base);
      const text = ended && now <= 0 ? ended : format(now);
      if (node.current.textContent !== text) node.current.textContent = text;
    };
    show();
    shown.add(show);
    return () => shown.delete(show);
  });
  return html`<span class="counter" ref=${node}></span>`;
}

// The bar of a lease: full when it was renewed, empty when it ends. The browser moves it without our help.
export function LeaseBar({ left, lease, base }) {
  const node = useRef();
  useLayoutEffect(() => {
    const bar = node.current;
    const now = left - (seconds() - base);
    const part = Math.max(0, Math.min(1, now / lease));
    bar.parentNode.classList.toggle("low", now < Math.min(lease / 4, 5));
    const moving = bar.animate(
      [{ transform: `scaleX(${part})` }, { transform: "scaleX(0)" }],
      { duration: Math.max(now, 0.001) * 1000, fill: "forwards", easing: "linear" },
    );
    const low = setTimeout(() => bar.parentNode.classList.add("low"), Math.max(0, now - Math.min(lease / 4, 5)) * 1000);
    return () => {
      clearTimeout(low);
      moving.cancel();
    };
  }, [left, lease, base]);
  return html`<span class="bar" aria-hidden="true"><span ref=${node}></span></span>`;
}
