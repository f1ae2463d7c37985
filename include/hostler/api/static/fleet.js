// The page: asks every few seconds, shows what has changed. It only reads.

import { leaseColumns, nodeColumns } from "./columns.js";
import { badge, clock, count, make, meter, money } from "./format.js";
import { followLinksOutside, takeColours } from "./frame.js";
import { openStory } from "./story.js";
import { Table } from "./table.js";

const EVERY_MS = 5000;
const TYPING_MS = 150;
const CHIPS = ["failed", "unknown", "degraded", "healthy", "unreachable", "terminating"];
const at = (id) => document.getElementById(id);

// Without login names that the address may carry: a request from such an address is refused by browsers.
const HERE = new URL(location.pathname, location.origin);
const answers = new Map();
let isPaused = false;
let timer = 0;
let asked = 0;

class SignedOutError extends Error {}

/** Asks a route; what has not changed comes from memory. */
async function get(path) {
  const kept = answers.get(path);
  const headers = kept ? { "If-None-Match": kept.tag } : {};
  const answer = await fetch(new URL(path, HERE), { headers, cache: "no-store" });
  if (answer.status === 304) return { ...kept, readAt: answer.headers.get("X-Hostler-Read-At"), isNew: false };
  if (answer.status === 401) throw new SignedOutError("You are signed out. Reload the page to sign in again.");
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(`${body.detail ?? `HTTP ${answer.status}`}`);
  if (answers.size > 50) answers.clear();
  const fresh = { tag: answer.headers.get("ETag"), body, readAt: answer.headers.get("X-Hostler-Read-At"), isNew: true };
  answers.set(path, fresh);
  return fresh;
}

const story = (leaseId) => openStory(leaseId, async (path) => (await get(path)).body);
const tables = {
  leases: new Table({
    element: at("leases"), pager: at("leases-pager"), columns: leaseColumns(story), key: "lease_id", limit: 10,
    sort: "created_at", descending: true, onWish: () => refresh({ isAsked: true }),
    empty: "No lease is open. Start the Dag hostler_node_lifecycle to ask for nodes.",
  }),
  nodes: new Table({
    element: at("nodes"), pager: at("nodes-pager"), columns: nodeColumns(), key: "node_name", limit: 50,
    sort: "verdict", descending: false, onWish: () => refresh({ isAsked: true }), empty: "No node is there.",
  }),
};

function pathOf(name) {
  const wish = { q: at("filter").value.trim(), ended: at("ended").checked, ...tables[name].wish };
  return `api/${name}?${new URLSearchParams(wish)}`;
}

/** Asks all three routes and shows them. `isAsked`: a person is waiting, and is told what was found. */
async function refresh({ isAsked = false } = {}) {
  clearTimeout(timer);
  const began = performance.now();
  const mine = ++asked;
  try {
    const [summary, leases, nodes] = await Promise.all([get("api/summary"), get(pathOf("leases")), get(pathOf("nodes"))]);
    // A later question has overtaken this one.
    if (mine !== asked) return;
    showSummary(summary.body);
    tables.leases.show(leases.body);
    tables.nodes.show(nodes.body);
    at("read-at").textContent = `${isPaused ? "paused at" : "as of"} ${clock(nodes.readAt)}`;
    at("trouble").hidden = true;
    if (isAsked) at("found").textContent = `${count(leases.body.total)} leases and ${count(nodes.body.total)} nodes found`;
    performance.measure("fleet:refresh", { start: began, end: performance.now() });
    if (!performance.getEntriesByName("fleet:first").length) performance.mark("fleet:first");
  } catch (error) {
    if (mine !== asked) return;
    showTrouble(error);
    if (error instanceof SignedOutError) return;
  }
  plan();
}

function plan() {
  clearTimeout(timer);
  if (!isPaused && !document.hidden) timer = setTimeout(refresh, EVERY_MS);
}

function showTrouble(error) {
  const text = error instanceof TypeError ? "No answer from the server; what is shown may be old." : error.message;
  if (at("trouble").textContent !== text) at("trouble").textContent = text;
  at("trouble").hidden = false;
}

function showSummary(summary) {
  at("deployment").textContent = summary.deployment;
  at("flags").replaceChildren(
    ...(summary.mode === "enforce" ? [] : [badge("unknown", `mode ${summary.mode}: nothing is bought or ended`)]),
    ...(summary.is_spending_stopped ? [badge("failed", "spending is stopped (hostler resume)")] : []));
  const { spending } = summary;
  const tenants = summary.tenants.filter((tenant) => tenant.max_usd_per_hour !== null || summary.tenants.length > 1);
  at("spending").replaceChildren(
    card("Spending, USD an hour", money(spending.usd_per_hour), money(spending.max_usd_per_hour), spending.usd_per_hour,
      spending.max_usd_per_hour),
    card("Nodes bought", count(spending.nodes), count(spending.max_nodes), spending.nodes, spending.max_nodes),
    card("Cost of open leases, USD", money(summary.cost_usd)),
    ...tenants.map((tenant) => card(`Tenant ${tenant.tenant}, USD an hour`, money(tenant.usd_per_hour),
      tenant.max_usd_per_hour === null ? null : money(tenant.max_usd_per_hour), tenant.usd_per_hour, tenant.max_usd_per_hour)));
  showChips({ ...summary.nodes, ...summary.verdicts });
}

function card(name, figure, limit = null, used = 0, most = null) {
  const beside = limit === null ? null : make("small", {}, ` of ${limit}`);
  const bar = most === null ? null : meter(Number(used), Number(most));
  return make("li", {}, make("div", { class: "name" }, name), make("div", { class: "figure" }, figure, beside), bar);
}

function showChips(counts) {
  const words = at("filter").value.toLowerCase().split(/\s+/);
  for (const word of CHIPS) {
    let chip = at(`chip-${word}`);
    if (!chip) {
      chip = make("button", { type: "button", id: `chip-${word}` });
      chip.addEventListener("click", () => toggleWord(word));
      at("chips").append(chip);
    }
    const text = `${count(counts[word] ?? 0)} ${word}`;
    if (chip.textContent !== text) chip.textContent = text;
    chip.setAttribute("aria-pressed", String(words.includes(word)));
    chip.hidden = !counts[word] && !words.includes(word);
  }
}

function toggleWord(word) {
  const words = at("filter").value.split(/\s+/).filter(Boolean);
  const isThere = words.some((other) => other.toLowerCase() === word);
  at("filter").value = (isThere ? words.filter((other) => other.toLowerCase() !== word) : [...words, word]).join(" ");
  search();
}

/** Shows the first pages of what the filter finds, and keeps the filter in the address, so that it can be sent on. */
function search() {
  tables.leases.offset = 0;
  tables.nodes.offset = 0;
  const words = at("filter").value.trim();
  location.replace(`#${encodeURIComponent(words)}`);
  refresh({ isAsked: true });
}

let typing = 0;
at("filter").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, TYPING_MS);
});
at("ended").addEventListener("change", search);
at("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  at("pause").setAttribute("aria-pressed", String(isPaused));
  refresh();
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : !isPaused && refresh()));

try {
  at("filter").value = decodeURIComponent(location.hash.slice(1));
} catch {
  // Somebody's own address: not one of ours.
}
takeColours();
followLinksOutside();
refresh();
