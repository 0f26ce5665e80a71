// The colours a person has chosen, before anything is drawn. "Auto" follows the system.

(() => {
  const KEY = "galatea-colours";
  const CHOICES = { auto: "Auto", light: "Light", dark: "Dark" };
  const kept = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const keep = (choice) => {
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // A browser that keeps nothing for this page: the choice holds until it is closed.
    }
  };
  let choice = kept() in CHOICES ? kept() : "auto";
  const button = () => document.getElementById("theme");

  function apply() {
    document.documentElement.dataset.theme = choice;
    if (!button()) return;
    button().dataset.choice = choice;
    button().textContent = CHOICES[choice];
    button().setAttribute("aria-label", `Colours: ${CHOICES[choice]}. Press to change them.`);
  }

  apply();
  addEventListener("DOMContentLoaded", () => {
    apply();
    button().addEventListener("click", () => {
      const names = Object.keys(CHOICES);
      choice = names[(names.indexOf(choice) + 1) % names.length];
      keep(choice);
      apply();
    });
  });
})();
