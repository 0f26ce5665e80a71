// Shows what a mark says at once and beside the pointer. Without this script browsers show the same after a while.
(function () {
  "use strict";
  var marks = document.querySelectorAll("svg.chart :is(g, rect, circle, text) > title");
  if (marks.length === 0) { return; }
  var tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.appendChild(tip);
  function move(event) {
    var room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, room)) + "px";
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + "px";
  }
  marks.forEach(function (title) {
    var mark = title.parentNode;
    var text = title.textContent;
    mark.removeChild(title);
    mark.addEventListener("pointerenter", function (event) {
      tip.textContent = text;
      tip.hidden = false;
      move(event);
    });
    mark.addEventListener("pointermove", move);
    mark.addEventListener("pointerleave", function () { tip.hidden = true; });
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (box) { box.open = true; });
  });
})();
