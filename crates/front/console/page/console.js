// The console: which page is shown, and the events that keep it up to date.

import { apiPage } from "./api.js";
import { isLive, isLost, isRefused } from "./connection.js";
import { follow } from "./events.js";
import { failuresPage } from "./failures.js";
import { modelPage } from "./model.js";
import { overviewPage } from "./overview.js";
import { headers } from "./restricted.js";
import { serverPage } from "./server.js";
import { known, take } from "./store.js";

const main = document.getElementById("main");
const isDocs = location.pathname.endsWith("/docs");
let page = null;
let shownHash = null;

/** The page of an address: its name in the menu, and what makes it. */
function pageOfHash(hash) {
  const [name, ...parts] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (isDocs) return ["docs", apiPage];
  if (name === "failures") return ["failures", () => failuresPage(parts[0] ?? "")];
  if (name === "server") return ["server", serverPage];
  if (name === "models" && parts[0]) return ["models", () => modelPage(parts)];
  return ["models", overviewPage];
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function route() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  if (!known.server && !isDocs) return;
  const isMove = shownHash !== null && shownHash !== location.hash;
  if (shownHash === location.hash) return;
  shownHash = location.hash;
  const [name, make] = pageOfHash(location.hash);
  page?.close?.();
  page = make();
  main.replaceChildren(page.node);
  document.title = `${page.title} – Galatea`;
  document.querySelectorAll("[data-page]").forEach((link) => {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  page.update?.();
  if (isMove) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function took(name, message) {
  take(name === "state", message);
  isLive();
  if (page) page.update?.();
  else route();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", route);
main.append(document.createElement("p"));
main.firstChild.textContent = "Waiting for the server.";
if (isDocs) route();
follow("console/events", { headers, took, lost: isLost, refused: isRefused });
