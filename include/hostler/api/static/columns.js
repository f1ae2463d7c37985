// What the two tables show. `sign` is what a cell depends on, where its elements cannot be compared.

import { badge, links, make, meter, money, span } from "./format.js";

const text = (field) => ({ cells: (row) => [row[field] ?? "–"] });
const amount = (field) => ({ number: true, cells: (row) => [money(row[field])] });
const mono = (field) => ({ cells: (row) => [make("span", { class: "mono" }, row[field] ?? "–")], sign: (row) => row[field] });

export function leaseColumns(openStory) {
  return [
    { title: "Lease", sort: "lease_id", header: true, cells: (row) => [storyButton(row, openStory)], sign: (row) => row.lease_id },
    { title: "Airflow", cells: links, sign: (row) => [row.run_url, row.log_url] },
    { title: "Tenant", sort: "tenant", ...text("tenant") },
    { title: "State", sort: "state", cells: (row) => [badge(row.state)], sign: (row) => row.state },
    { title: "Step", sort: "phase", cells: (row) => [jobText(row)] },
    { title: "Nodes", sort: "nodes", cells: (row) => [`${row.nodes}/${row.nodes_asked} · ${row.accelerators}`] },
    { title: "Verdicts", cells: verdicts, sign: (row) => row.verdicts },
    { title: "USD/h", sort: "usd_per_hour", ...amount("usd_per_hour") },
    {
      title: "Cost USD, of cap", sort: "cost_usd", number: true, sign: (row) => [row.cost_usd, row.max_cost_usd],
      cells: (row) => [`${money(row.cost_usd)} of ${money(row.max_cost_usd)}`, meter(Number(row.cost_usd), Number(row.max_cost_usd))],
    },
    { title: "Waits for, or failed by", words: true, cells: note, sign: (row) => [row.note, row.is_failed] },
    { title: "Asked for", sort: "created_at", cells: (row) => [row.created_at.slice(5, 16).replace("T", " ")] },
  ];
}

export function nodeColumns() {
  return [
    { title: "Node", sort: "node_name", header: true, ...mono("node_name") },
    { title: "Airflow", cells: links, sign: (row) => [row.run_url, row.log_url] },
    { title: "Verdict", sort: "verdict", cells: (row) => [badge(row.verdict)], sign: (row) => row.verdict },
    { title: "State", sort: "state", cells: nodeState, sign: (row) => [row.state, row.is_cordoned, row.is_leak_suspected] },
    { title: "Why", words: true, cells: (row) => [why(row)] },
    { title: "Accelerators", ...text("accelerators") },
    { title: "Instance type", sort: "instance_type", ...text("instance_type") },
    { title: "Zone", sort: "zone", ...text("zone") },
    { title: "Capacity", ...text("capacity_type") },
    { title: "Provider id", sort: "provider_id", ...mono("provider_id") },
    { title: "Up", sort: "up_s", number: true, cells: (row) => [span(row.up_s)] },
    { title: "USD/h", sort: "usd_per_hour", ...amount("usd_per_hour") },
    { title: "Cost USD", sort: "cost_usd", ...amount("cost_usd") },
  ];
}

function storyButton(row, openStory) {
  const button = make("button", { type: "button", class: "plain", "aria-haspopup": "dialog" }, row.lease_id);
  button.addEventListener("click", () => openStory(row.lease_id));
  return button;
}

function jobText(row) {
  if (row.job === null || row.phase !== "run") return row.phase;
  return row.job === "running" ? `run, step ${row.step}` : `run, job ${row.job} at step ${row.step}`;
}

function verdicts(row) {
  const found = Object.entries(row.verdicts).map(([word, number]) => badge(word, `${number} ${word}`));
  return found.length ? found : ["–"];
}

function note(row) {
  return row.note ? [make("span", { class: row.is_failed ? "bad" : null }, row.note)] : ["–"];
}

function nodeState(row) {
  const marks = [row.is_cordoned ? badge("cordoned") : null, row.is_leak_suspected ? badge("leak suspected") : null];
  return [badge(row.state), ...marks.filter(Boolean)];
}

function why(row) {
  const action = row.action === "none" ? [] : [`→ ${row.action.replaceAll("_", " ")}${row.is_proven ? "" : " (not proven yet)"}`];
  const ending = row.ending_reason ? [`ending: ${row.ending_reason}`] : [];
  return [...ending, ...row.reasons, ...action].join("; ") || "–";
}
