// Durations, times and shell words as text.

export function duration(seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  for (const [size, unit, small, below] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]]) {
    if (whole >= size) return `${Math.floor(whole / size)}${unit}${String(Math.floor((whole % size) / small)).padStart(2, "0")}${below}`;
  }
  return `${whole}s`;
}

// Without tenths: for numbers that count every second.
export function ticking(seconds) {
  return seconds < 60 ? `${Math.max(0, Math.floor(seconds))}s` : duration(Math.floor(seconds));
}

// The time of day. Not toLocaleTimeString, which takes most of the time of a drawing.
export function clock(at, withSeconds = true) {
  const time = new Date(at * 1000);
  const parts = [time.getHours(), time.getMinutes(), ...(withSeconds ? [time.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// The time of day, with the date if it is not today.
export function moment(at) {
  const time = new Date(at * 1000);
  const date = [time.getFullYear(), time.getMonth() + 1, time.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
  return time.toDateString() === new Date().toDateString() ? clock(at) : `${date} ${clock(at, false)}`;
}

// A word for a POSIX shell. Names are text of others: in single quotes nothing has a meaning.
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function plural(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

export function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// Control characters and marks that reorder text are shown as escapes: a name must not look like another one.
export function plain(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
