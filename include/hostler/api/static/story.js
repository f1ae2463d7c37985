// The story of one lease, in a dialog: what it is, what it costs, what happened. Escape closes it.

import { badge, clock, links, make, money } from "./format.js";

const dialog = document.getElementById("story");
const body = document.getElementById("story-body");
const title = document.getElementById("story-title");

document.getElementById("story-close").addEventListener("click", () => dialog.close());

/** Shows a lease. `get` asks a route and resolves to its document. */
export async function openStory(leaseId, get) {
  title.replaceChildren("Lease ", make("code", {}, leaseId));
  body.replaceChildren(make("p", { class: "quiet" }, "reading…"));
  dialog.showModal();
  try {
    const story = await get(`api/leases/${encodeURIComponent(leaseId)}`);
    body.replaceChildren(facts(story), make("h3", {}, "What happened, the newest first"), events(story.events));
  } catch (error) {
    body.replaceChildren(make("p", { class: "bad" }, error.message));
  }
}

function facts({ lease, nodes, release_reason: reason, is_backed_up: isBackedUp, receipt }) {
  const pairs = [
    ["state", [badge(lease.state), ` in ${lease.phase}`]],
    ["run", [make("span", { class: "mono" }, `${lease.dag_id} ${lease.run_id}`)]],
    ["gang", [`${lease.nodes_asked} nodes of ${lease.accelerators}, tenant ${lease.tenant}; ${nodes.length} machines so far`]],
    ["cost", [`${money(lease.cost_usd)} of ${money(lease.max_cost_usd)} USD, ${money(lease.usd_per_hour)} an hour now`]],
    ["asked for", [clock(lease.created_at)]],
    [lease.is_failed ? "failed by" : "waits for", lease.note ? [lease.note] : null],
    ["release", reason ? [reason] : null],
    ["backup", [isBackedUp ? "sealed and verified" : "none verified yet"]],
    ["receipt", receipt ? [receipt.is_complete ? "complete" : `not complete: ${receipt.reasons.join("; ")}`] : null],
    ["Airflow", links(lease)],
    ["by hand", [make("code", {}, `hostler why ${lease.lease_id}`), " · ", make("code", {}, `hostler logs ${lease.lease_id}`)]],
  ];
  const shown = pairs.filter(([, value]) => value !== null);
  return make("dl", {}, ...shown.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...value)]));
}

function events(found) {
  const head = ["When", "What", "Slot", "Why", "By"].map((name) => make("th", { scope: "col" }, name));
  const lines = found.map((event) =>
    make("tr", {},
      make("td", {}, clock(event.at)),
      make("td", { class: "mono" }, event.what),
      make("td", { class: "number" }, event.slot ?? "–"),
      make("td", { class: "words" }, event.why),
      make("td", { class: "mono words" }, event.who)));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" }, table);
}
