// The page of the server itself.

import { chart } from "./charts.js";
import { element, setText } from "./dom.js";
import { figure, percent, size, span } from "./format.js";
import { countKinds, known } from "./store.js";

const STATES = { ready: "Ready", not_ready: "Live, not ready", starting: "Starting", draining: "Draining", exiting: "Exiting" };

function facts(server) {
  const { memory, connections } = server;
  const counts = countKinds();
  const all = [
    ["Program", server.product],
    ["Name", server.name],
    ["Like Triton", server.contract],
    ["State", STATES[server.state] ?? server.state],
    ["Running for", span(server.uptime_s)],
    ["Versions of models", `${counts.ready} ready, ${counts.failed} failed, ${counts.off} not loaded`],
    ["Connections", `${figure(connections.open, 0)} of ${figure(connections.limit, 0)}; ${figure(connections.refused, 0)} refused`],
    ["Memory of the process", size(memory.resident_bytes)],
    ["Memory for requests", `${size(memory.budget_used_bytes)} of ${memory.budget_limit_bytes === null ? "any" : size(memory.budget_limit_bytes)}; ${figure(memory.budget_refused, 0)} refused for it`],
    ["Load and unload", server.may_load ? "allowed" : server.may_load_reason],
    ["Restricted calls", server.restricted.join(", ") || "none"],
    ["Consoles open", figure(server.watchers, 0)],
  ];
  if (server.repositories_away > 0) all.push(["Repositories", `${figure(server.repositories_away, 0)} cannot be read now; the log says why`]);
  if (server.load !== null) all.push(["Load", figure(server.load, 2)]);
  server.gpus.forEach((gpu, at) => {
    const power = gpu.power_watts === null ? "" : `, ${figure(gpu.power_watts, 0)} W`;
    all.push([`GPU ${at}`, `${percent(gpu.utilization)} busy, ${size(gpu.memory_used_bytes)} of ${size(gpu.memory_total_bytes)}${power} (${gpu.uuid})`]);
  });
  return all;
}

export function serverPage() {
  const list = element("dl", { class: "facts" });
  const charts = [
    chart("Requests per second", [{ name: "requests", of: (point) => point.requests }], (value) => figure(value)),
    chart("Memory of the process", [{ name: "resident", of: (point) => point.memory }], size),
  ];
  const values = new Map();
  function update() {
    for (const [name, value] of facts(known.server)) {
      if (!values.has(name)) {
        values.set(name, element("dd", {}));
        list.append(element("div", {}, element("dt", {}, name), values.get(name)));
      }
      setText(values.get(name), value);
    }
    charts.forEach((one) => one.update(known.total, known.time));
  }
  const grid = element("div", { class: "charts" }, ...charts.map((one) => one.node));
  return { node: element("div", {}, element("h1", {}, "Server"), list, grid), update, title: "Server" };
}
