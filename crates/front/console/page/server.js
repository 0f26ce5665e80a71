// The page of the server itself.

import { element, region, setChildren, setText, table, text } from "./dom.js";
import { counted, figure, loadText, percent, size, span } from "./format.js";
import { chart } from "./live.js";
import { countKinds, known } from "./store.js";

const STATES = { ready: "Ready", not_ready: "Live, not ready", starting: "Starting", draining: "Draining", exiting: "Exiting" };
const REPOSITORY = /^model_repository_path\[\d+\]$/;

function facts(server) {
  const { memory, connections, cpu } = server;
  const counts = countKinds();
  const all = [
    ["Program", server.product],
    ["Name", server.name],
    ["Compatible with", `Triton ${server.contract}`],
    ["State", STATES[server.state] ?? server.state],
    ["Running for", span(server.uptime_s)],
    ["Models", `${counts.ready} ready, ${counts.failed} failed, ${counts.off} not loaded`],
    ["CPU of the machine", cpu ? `${percent(cpu.utilization)} of ${counted(cpu.cores, "core")}` : "not measured"],
    ["Memory of the machine", cpu ? `${size(cpu.memory_used_bytes)} of ${size(cpu.memory_total_bytes)}` : "not measured"],
    ["Memory of the process", size(memory.resident_bytes)],
    ["Memory for requests", `${size(memory.budget_used_bytes)} of ${memory.budget_limit_bytes === null ? "any" : size(memory.budget_limit_bytes)}; ${figure(memory.budget_refused, 0)} refused for it`],
    ["Connections", `${figure(connections.open, 0)} of ${figure(connections.limit, 0)}; ${figure(connections.refused, 0)} refused`],
    ["Load and unload", server.may_load ? "allowed" : server.may_load_reason],
    ["Restricted calls", server.restricted.join(", ") || "none"],
    ["Consoles open", figure(server.watchers, 0)],
  ];
  if (server.repositories_away > 0) all.push(["Unreachable repositories", `${figure(server.repositories_away, 0)} cannot be read now; the log says why`]);
  if (server.load !== null) all.push(["Load", loadText(server.load).join(" ")]);
  server.gpus.forEach((gpu, at) => {
    const power = gpu.power_watts === null ? "" : `, ${figure(gpu.power_watts, 0)} W`;
    all.push([`GPU ${at}`, `${percent(gpu.utilization)} busy, ${size(gpu.memory_used_bytes)} of ${size(gpu.memory_total_bytes)}${power} (${gpu.uuid})`]);
  });
  return all;
}

/** What the server was started with, and what it has opened. */
function sections({ ports, options, runtimes }) {
  const one = (title, columns, rows) => (rows.length ? [element("section", {}, element("h2", {}, title), region(title, table("", columns, rows)))] : []);
  const repositories = options.filter(([name]) => REPOSITORY.test(name)).map(([, path]) => [text(path, "reason")]);
  const others = options.filter(([name]) => !REPOSITORY.test(name)).map(([name, value]) => [text(name), text(value || "–", "reason")]);
  const opened = Object.entries(runtimes).map(([backend, { version, path }]) => [text(backend), text(version || (path === "built-in" ? "built in" : "unknown")), text(path === "built-in" ? "in the program" : path, "reason")]);
  return [
    ...one("Ports", ["*Service", "*Address", "*Encrypted"], ports.map(({ service, address, is_encrypted: isEncrypted }) => [text(service), text(address), text(isEncrypted ? "TLS" : "no")])),
    ...one("Repositories", ["*Path"], repositories),
    ...one("Runtimes", ["*Backend", "*Version", "*Library"], opened),
    ...one("Options", ["*Option", "*Value"], others),
  ];
}

export function serverPage() {
  const list = element("dl", { class: "facts" });
  const more = element("div", { class: "sections" });
  const charts = [
    chart("Requests per second", [{ name: "requests", of: (point) => point.requests }], (value) => figure(value)),
    chart("Memory of the process", [{ name: "resident", of: (point) => point.memory }], size),
  ];
  const values = new Map();
  let shown = null;
  function update() {
    const rows = facts(known.server).map(([name, value]) => {
      if (!values.has(name)) {
        const made = element("dd", {});
        values.set(name, { made, row: element("div", {}, element("dt", {}, name), made) });
      }
      setText(values.get(name).made, value);
      return values.get(name).row;
    });
    setChildren(list, rows);
    if (known.about !== shown) {
      shown = known.about;
      more.replaceChildren(...sections(shown));
    }
    charts.forEach((one) => one.update(known.history.total, known.time));
  }
  const grid = element("div", { class: "charts" }, ...charts.map((one) => one.node));
  return { node: element("div", {}, element("h1", {}, "Server"), list, grid, more), update, title: "Server" };
}
