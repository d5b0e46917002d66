"use strict";
// Keys only: the pages work without this file.
const help = document.getElementById("help");
const movable = () => [...document.querySelectorAll("[data-move]")];
const follow = (selector) => document.querySelector(selector)?.click();

function move(step) {
  const all = movable();
  const at = all.findIndex((one) => one === document.activeElement || one.contains(document.activeElement));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function open() {
  const here = document.activeElement;
  if (here?.tagName === "DETAILS") here.open = !here.open;
}

const keys = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), Enter: open,
  n: () => follow("a[rel=next]"), p: () => follow("a[rel=prev]"), g: () => location.assign("/"),
  "/": () => document.getElementById("search")?.focus(), "?": () => help.showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing || help.open || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  if (event.key === "Enter" && document.activeElement?.tagName !== "DETAILS") return;
  event.preventDefault();
  keys[event.key]();
});
document.getElementById("help-button").addEventListener("click", () => help.showModal());
