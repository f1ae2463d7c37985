// How values look. Money comes as text, so that no digit is lost on the way; it is only shown here, never added up.

const WHOLE = new Intl.NumberFormat("en-US");
const MONEY = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const TONES = {
  healthy: "good", degraded: "warn", failed: "bad", unknown: "unknown",
  active: "good", initialized: "good", succeeded: "good",
  unattended: "warn", unreachable: "bad", lost: "bad", expired: "warn", draining: "warn", terminating: "warn",
  cordoned: "warn", "leak suspected": "bad", "not proven": "unknown",
};

export const count = (value) => WHOLE.format(value);
export const money = (text) => (text === null ? "–" : MONEY.format(Number(text)));

/** Returns a length of time in its two largest units. */
export function span(seconds) {
  for (const [size, big, part, small] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"]]) {
    if (seconds >= size) {
      return `${Math.floor(seconds / size)}${big} ${String(Math.floor((seconds % size) / part)).padStart(2, "0")}${small}`;
    }
  }
  return seconds >= 60 ? `${Math.floor(seconds / 60)}m` : "< 1m";
}

export const clock = (iso) => (iso === null ? "–" : `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`);

/** Makes an element; texts among the children become text, never markup. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function badge(word, text = word) {
  return make("span", { class: "badge", "data-tone": TONES[word] ?? "calm" }, text);
}

/** Makes a bar of what is used of a limit; the figures stand beside it as text, so it is nothing to a screen reader. */
export function meter(used, limit) {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  const fill = make("span");
  fill.style.width = `${(share * 100).toFixed(1)}%`;
  const tone = share >= 0.95 ? "bad" : share >= 0.8 ? "warn" : "calm";
  return make("span", { class: "meter", "data-tone": tone, "aria-hidden": "true" }, fill);
}

export function links(row) {
  const one = (href, text) => (href ? make("a", { href, "data-out": true, "aria-label": `${text} of ${row.lease_id}` }, text) : null);
  const found = [one(row.run_url, "run"), one(row.log_url, "log")].filter(Boolean);
  return found.length ? found.flatMap((link, index) => (index ? [" · ", link] : [link])) : ["–"];
}
