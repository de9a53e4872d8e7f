// What the pages of the admin do by themselves: rows of options, tabs, and the progress of an import.
"use strict";

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});

const options = document.getElementById("options");
if (options) {
  const add = () => {
    const row = document.getElementById("option").content.firstElementChild.cloneNode(true);
    row.setAttribute("aria-label", `Option ${options.children.length + 1}`);
    options.append(row);
    return row;
  };
  add();
  document.getElementById("add-option").addEventListener("click", () => add().querySelector("input").focus());
}

const tabs = [...document.querySelectorAll("[role=tab]")];
const choose = (chosen) => {
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
};
tabs.forEach((tab) => tab.addEventListener("click", () => choose(tab)));
if (tabs.length) choose(tabs[0]);

const progress = document.querySelector("[data-import]");
const follow = async () => {
  // Whoever is signed out meanwhile gets a page and no JSON; it is asked again until they are back.
  const told = await fetch(progress.dataset.import)
    .then((answer) => answer.json())
    .catch(() => null);
  if (told) progress.value = told.seen;
  if (told?.done) location.reload();
  else setTimeout(follow, 200);
};
if (progress) follow();
