// Light, dark, or what the system prefers.
import { redraw } from "./page_state.js";

const NAMES = ["auto", "light", "dark"];

export function themeName() {
  return document.documentElement.dataset.theme ?? "auto";
}

export function nextTheme() {
  const next = NAMES[(NAMES.indexOf(themeName()) + 1) % NAMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("fairlock-theme", next);
  } catch {
    // It is the theme until the page is closed.
  }
  redraw();
}
