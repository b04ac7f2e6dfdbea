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

// The begin, the middle and the end of a text. Where there is no room the middle is left out: long names often differ
// only at their ends. It is "" if the text is short enough.
export function inParts(text, most) {
  const letters = [...text];
  if (letters.length <= most) return [text, "", ""];
  const end = Math.floor((most - 1) / 2);
  const begin = most - 1 - end;
  return [letters.slice(0, begin).join(""), letters.slice(begin, -end).join(""), letters.slice(-end).join("")];
}

export function shortened(text, most) {
  const [begin, middle, end] = inParts(text, most);
  return middle ? `${begin}…${end}` : text;
}

// Return what to show of each of these names where there is no room for a long one: of the long ones, what differs.
export function distinct(names, most) {
  const long = [...new Set(names.filter((name) => name.length > most))];
  let [begin, end] = [0, 0];
  if (long.length > 1) {
    while (long.every((name) => name[begin] === long[0][begin])) begin += 1;
    while (long.every((name) => name.length - end > begin && name.at(-1 - end) === long[0].at(-1 - end))) end += 1;
    const room = most - 2 - (Math.max(...long.map((name) => name.length)) - begin - end);
    const kept = Math.max(Math.floor(room / 2), 4); // letters of what all of them begin and end with
    [begin, end] = [Math.max(begin - kept, 0), Math.max(end - kept, 0)];
  }
  const differing = (name) => `${begin ? "…" : ""}${name.slice(begin, name.length - end)}${end ? "…" : ""}`;
  return new Map(names.map((name) => [name, name.length > most ? shortened(differing(name), most) : name]));
}

// Control characters and marks that reorder text are shown as escapes: a name must not look like another one.
export function plain(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}
