"use strict";
(() => {
  const $ = (selector, root = document) => [...root.querySelectorAll(selector)];
  // Numbers that JSON cannot represent are text in the lists.
  const ODD = { inf: Infinity, "-inf": -Infinity, nan: NaN };
  const plan = JSON.parse(document.getElementById("numbers").textContent,
    (key, item) => (typeof item === "string" && item in ODD && /^\d+$/.test(key) ? ODD[item] : item));

  // -- numbers as text: the same rules as the tables in the markup --------------------------------------------------
  function decimals(numbers) {
    let wanted = 0;
    for (const item of numbers) {
      if (!Number.isFinite(item)) continue;
      while (wanted < 4 && Math.abs(Number(item.toFixed(wanted)) - item) > 3e-8 * Math.abs(item)) wanted++;
    }
    return wanted;
  }

  function written(item, places, single = false) {
    if (Number.isNaN(item)) return "nan";
    if (!Number.isFinite(item)) return item > 0 ? "inf" : "−inf";
    const size = Math.abs(item);
    const known = single ? Math.min(places, Math.max(8 - String(Math.trunc(size)).length, 0)) : places;
    let text = size >= 1e9 || (size < 10 ** (2 - known) && Math.abs(Number(item.toFixed(known)) - item) > 3e-8 * size)
      ? item.toExponential(3).replace("e+", "e")
      : item.toFixed(known) + "\u2007".repeat(places - known) + (places > known && !known ? "\u2008" : "");
    if (Number(text) === 0) text = text.replace("-", "");
    return text.replaceAll("-", "−");
  }

  const short = (item) => written(item, decimals([item]));
  const factor = (item) => (item < 0 ? `(${short(item)})` : short(item));
  const count = (shape) => shape.reduce((n, m) => n * m, 1);

  function index(at, shape) {
    const parts = [];
    for (const n of [...shape].reverse()) { parts.unshift(at % n); at = Math.floor(at / n); }
    return parts.length ? `[${parts.join(", ")}]` : "";
  }

  // -- the pass ------------------------------------------------------------------------------------------------------
  // Every number is the recorded number plus the contribution of the change of the gradient, so numbers that do not depend
  // on an edit keep every digit. If the recorded number is not finite, the sum is recomputed.
  // A change of 0 changes nothing, but a gradient of 0 times an infinite slope is nan, as in the rule.
  function pull(map, g, { whole = false } = {}) {
    const result = new Float64Array(map.n[1]);
    for (let k = 0; k < map.v.length; k++) if (whole || g[map.o[k]] !== 0) result[map.i[k]] += g[map.o[k]] * map.v[k];
    return result;
  }

  function moved(base, change, whole, single) {
    return base.map((was, k) => {
      const now = Number.isFinite(was) ? (change[k] === 0 ? was : was + change[k]) : whole[k];
      return single ? Math.fround(now) : now;
    });
  }

  /** All numbers of the page for a gradient: key -> array. */
  function pass(seed) {
    const change = {}, whole = {}, numbers = {};
    const add = (sums, key, part) => {
      if (!sums[key]) sums[key] = new Float64Array(part.length);
      part.forEach((item, k) => { sums[key][k] += item; });
    };
    for (const key in seed) {
      add(change, key, seed[key].map((now, k) => (Object.is(now, plan.seed[key][k]) ? 0 : now - plan.seed[key][k])));
      add(whole, key, seed[key]);
      numbers[`s.${key}`] = seed[key];
    }
    for (const step of plan.steps) {
      const value = plan.values[step.out];
      if (value.stale || !change[step.out] || !step.base) continue;
      numbers[`u${step.index}`] = moved(step.base, change[step.out], whole[step.out], value.single);
      step.arrows.forEach((arrow, j) => {
        if (!arrow.map) return;
        const into = plan.values[arrow.in];
        const delta = pull(arrow.map, change[step.out]), all = pull(arrow.map, whole[step.out], { whole: true });
        numbers[`a${step.index}.${j}`] = moved(arrow.base, delta, all, into.single);
        add(change, arrow.in, delta);
        add(whole, arrow.in, all);
      });
    }
    for (const key in plan.values) {
      const value = plan.values[key];
      const base = plan.gradients[key] || (plan.steps.find((s) => s.out === key) || {}).base || plan.seed[key];
      if (!value.stale && change[key] && base) numbers[`g.${key}`] = moved(base, change[key], whole[key], value.single);
    }
    return numbers;
  }

  // -- showing -------------------------------------------------------------------------------------------------------
  let now = {}, first = {};

  const cells = (table) => $("td:not(.more)", table.tBodies[0]);

  function show(key) {
    const numbers = now[key], before = first[key];
    for (const place of $(`[data-key="${CSS.escape(key)}"]`)) {
      const stale = !numbers && edited();
      place.classList.toggle("stale", stale);
      if (!numbers) continue;
      const places = decimals(numbers);
      const changed = numbers.some((item, k) => !Object.is(item, before[k]));
      if (place.dataset.first === undefined) place.dataset.first = place.innerHTML;
      if (place.hasAttribute("data-edit")) continue;
      if (!changed) { if (place.dataset.dirty) { place.innerHTML = place.dataset.first; delete place.dataset.dirty; } place.classList.remove("changed"); continue; }
      place.dataset.dirty = "1";
      const texts = Array.from(numbers, (item) => written(item, places, place.hasAttribute("data-single")));
      if (place.hasAttribute("data-inline")) {
        const text = Array.from(numbers, short).join(", ");
        place.textContent = place.dataset.first.startsWith("[") ? `[${text}]` : text;
        place.classList.add("changed");
      } else if (place.hasAttribute("data-lines")) {
        const rows = $("text", place), width = texts.length / rows.length;
        const wide = Array.from({ length: width }, (_, j) => Math.max(...rows.map((_, i) => texts[i * width + j].length)));
        rows.forEach((row, i) => {
          row.textContent = texts.slice(i * width, (i + 1) * width).map((t, j) => t.padStart(wide[j])).join("  ").replace(/[\u2007\u2008]/g, " ");
        });
        place.classList.add("changed");
      } else {
        cells(place).forEach((cell, k) => {
          cell.textContent = texts[k];
          cell.classList.toggle("changed", !Object.is(numbers[k], before[k]));
        });
      }
    }
  }

  const edited = () => Object.keys(plan.seed).some((key) => current[key].some((n, k) => !Object.is(n, plan.seed[key][k])));
  let current = {};

  function recompute(speak = true) {
    now = pass(current);
    for (const key of new Set($("[data-key]").map((place) => place.dataset.key))) show(key);
    $("[data-one]").forEach(one);
    $("[data-picker]").forEach(slice);
    $("[data-norm]").forEach(norm);
    $("[data-check]").forEach(check);
    const reset = document.getElementById("reset");
    if (reset) reset.disabled = !edited();
    if (speak) say();
  }

  function say() {
    const key = Object.keys(plan.gradients).find((name) => now[`g.${name}`]);
    if (!key) return;
    const numbers = now[`g.${key}`], { bar, shape } = plan.values[key];
    const some = Array.from(numbers.slice(0, 6), (n, k) => `${bar}${index(k, shape)} = ${short(n)}`).join("; ");
    document.getElementById("said").textContent = `Computed again. ${some}${numbers.length > 6 ? " and so on" : ""}`;
  }

  /** The norm of a step's incoming gradient. */
  function norm(place) {
    const numbers = now[place.dataset.norm], before = first[place.dataset.norm];
    if (!numbers) return;
    const changed = numbers.some((item, k) => !Object.is(item, before[k]));
    if (place.dataset.first === undefined) place.dataset.first = place.textContent;
    place.textContent = changed ? Number(Math.hypot(...numbers).toPrecision(3)).toString() : place.dataset.first;
    place.classList.toggle("changed", changed);
  }

  function check(mark) {
    const key = mark.dataset.check, result = now[`g.${key}`];
    if (!result) return;
    const sum = new Float64Array(result.length);
    for (const total of plan.totals) if (total.in === key && current[total.out]) pull(total.map, current[total.out]).forEach((n, k) => { sum[k] += n; });
    const scale = result.reduce((most, n) => (Number.isFinite(n) ? Math.max(most, Math.abs(n)) : most), 1e-30);
    const ok = sum.every((n, k) => Math.abs(n - result[k]) <= 1e-4 * scale || !Number.isFinite(result[k]));
    mark.textContent = ok ? "✓" : "✗";
    mark.className = ok ? "ok" : "bad";
  }

  // -- editing -------------------------------------------------------------------------------------------------------
  function editable(table) {
    const key = table.dataset.key.slice(2), value = plan.values[key];
    cells(table).forEach((cell, k) => {
      const input = document.createElement("input");
      const was = plan.seed[key][k];
      input.value = String(was);
      input.inputMode = "text";
      input.autocomplete = "off";
      input.spellcheck = false;
      input.setAttribute("aria-label", `${value.bar}${index(k, value.shape)}`);
      input.addEventListener("input", () => {
        const text = input.value.trim().replace("−", "-");
        const item = text === "" ? NaN : Number(text);
        const ok = Number.isFinite(item);
        input.setAttribute("aria-invalid", String(!ok));
        if (!ok) return;
        current[key][k] = item;
        cell.classList.toggle("changed", !Object.is(item, was));
        recompute();
      });
      cell.replaceChildren(input);
    });
  }

  function addReset() {
    const hint = document.querySelector(".hint");
    hint.hidden = false;
    const button = document.createElement("button");
    button.type = "button";
    button.id = "reset";
    button.textContent = "Put back";
    button.disabled = true;
    button.addEventListener("click", () => {
      for (const key in plan.seed) current[key] = plan.seed[key].slice();
      $("table[data-edit]").forEach(editable);
      $("table[data-edit] td").forEach((cell) => cell.classList.remove("changed"));
      recompute();
      button.closest(".given").querySelector("input").focus();
    });
    hint.append(" ", button);
  }

  // -- looking at one element, at one slice ----------------------------------------------------------------------------
  function part(key) {
    if (key.startsWith("w.")) {
      const total = plan.totals.find((t) => `w.${t.out}.${t.in}` === key);
      return { map: total.map, out: total.out, into: total.in, upstream: now[`s.${total.out}`] };
    }
    const [at, j] = key.slice(1).split(".").map(Number);
    const step = plan.steps.find((s) => s.index === at);
    return { map: step.arrows[j].map, out: step.out, into: step.arrows[j].in, upstream: now[`u${at}`] || step.base };
  }

  function choice(label, shape, name, changed) {
    const box = document.createElement("label"), select = document.createElement("select");
    for (let k = 0; k < count(shape); k++) select.add(new Option(`${name}${index(k, shape)}`, k));
    select.addEventListener("change", changed);
    box.append(label, " ", select);
    return box;
  }

  /** Text in which the bar of a name is drawn over the whole name, as in the markup. */
  function barred(place, text) {
    const parts = text.split(/([\p{L}\p{N}_]+)(ˉ)/u);
    place.replaceChildren(parts[0]);
    for (let k = 1; k < parts.length; k += 3) {
      const name = document.createElement("span"), bar = document.createElement("i");
      name.className = "bar";
      bar.textContent = parts[k + 1];
      name.append(parts[k], bar);
      place.append(name, parts[k + 2]);
    }
  }

  function one(line) {
    const { map, out, into, upstream } = part(line.dataset.one);
    const value = plan.values[into], picked = Number((line.querySelector("select") || { value: 0 }).value);
    const products = [];
    let total = 0;
    map.i.forEach((i, k) => {
      if (i !== picked) return;
      products.push(`${factor(upstream[map.o[k]])} · ${factor(map.v[k])}`);
      total += upstream[map.o[k]] * map.v[k];
    });
    const more = products.length > 6 ? ` + … (${products.length - 6} more)` : "";
    barred(line.querySelector("output"),
      `${value.bar}${index(picked, value.shape)} = ${products.slice(0, 6).join(" + ") || "0"}${more} = ${short(total)}`);
  }

  function slice(box) {
    const key = box.dataset.picker, { map, out, into, upstream } = part(key);
    const picked = Number((box.querySelector("select") || { value: 0 }).value);
    const row = new Float64Array(map.n[1]);
    map.o.forEach((o, k) => { if (o === picked) row[map.i[k]] = map.v[k]; });
    const places = decimals(row), table = box.querySelector("table");
    cells(table).forEach((cell, k) => { cell.textContent = written(row[k], places); cell.classList.toggle("zero", row[k] === 0); });
    const name = plan.values[out].name + index(picked, plan.values[out].shape);
    table.caption.firstElementChild.querySelector("mfrac > :first-child").lastElementChild.textContent = name;
    const weight = box.querySelector("output");
    if (weight) barred(weight, `In the sum this slice is multiplied by ${plan.values[out].bar}${index(picked, plan.values[out].shape)} = ${short(upstream[picked])}.`);
    for (const given of $(`[data-key="${key.startsWith("w.") ? `s.${out}` : `u${key.slice(1).split(".")[0]}`}"]`)) {
      if (given.tagName === "TABLE" && (key.startsWith("w.") || given.closest(".arrow") === box.closest(".arrow"))) {
        cells(given).forEach((cell, k) => cell.classList.toggle("picked", Boolean(box.querySelector("select")?.dataset.used) && k === picked));
      }
    }
  }

  function addChoices() {
    for (const line of $("[data-one]")) {
      const { into } = part(line.dataset.one), value = plan.values[into];
      if (count(value.shape) < 2 || count(value.shape) > 512) continue;
      line.firstElementChild.replaceWith(choice("One element:", value.shape, "", () => one(line)));
      line.firstElementChild.style.fontWeight = "600";
    }
    for (const box of $("[data-picker]")) {
      const { out } = part(box.dataset.picker), value = plan.values[out];
      const weight = document.createElement("output");
      weight.className = "note";
      weight.style.display = "block";
      if (count(value.shape) > 1 && count(value.shape) <= 512) {
        const label = choice("Output element", value.shape, value.name, (event) => { event.target.dataset.used = "1"; slice(box); });
        box.prepend(label);
      }
      box.append(weight);
    }
  }

  /** Boxes that can scroll, formulas among them, are tab stops while their content is wider than they are. */
  function tabStops() {
    for (const box of $(".scroll, .eq, .formula, dl.forms dd")) {
      if (box.scrollWidth > box.clientWidth + 1) {
        box.tabIndex = 0;
        if (!box.matches("dd, [role]")) {
          box.setAttribute("role", "group");
          box.setAttribute("aria-label", "Formula");
        }
      } else box.removeAttribute("tabindex");
    }
  }

  /** Open the target of a link. */
  function opened() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const inside = target.querySelector(":scope > details");
    if (inside) inside.open = true;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    target.scrollIntoView();
  }

  // -- a graph that is larger than its box -----------------------------------------------------------------------------
  function addZoom() {
    const box = document.querySelector(".graph-box"), svg = box && box.querySelector("svg");
    if (!svg) return;
    const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
    if (width <= box.clientWidth && height <= 0.8 * innerHeight) return;
    const fit = () => Math.min(1, box.clientWidth / width, (0.8 * innerHeight) / height);
    let scale = 1;
    const zoom = (to) => {
      const middle = [box.scrollLeft + box.clientWidth / 2, box.scrollTop + box.clientHeight / 2].map((at) => at / scale);
      scale = Math.min(3, Math.max(0.1, to));
      svg.setAttribute("width", width * scale);
      svg.setAttribute("height", height * scale);
      box.scrollTo(middle[0] * scale - box.clientWidth / 2, middle[1] * scale - box.clientHeight / 2);
      tabStops();
    };
    const tools = document.createElement("p");
    tools.className = "zoom";
    const ways = [["−", "Smaller", () => zoom(scale / 1.25)], ["+", "Larger", () => zoom(scale * 1.25)],
      ["Fit", "The whole graph", () => zoom(fit())], ["100 %", "Its own size", () => zoom(1)]];
    for (const [text, label, click] of ways) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", click);
      tools.append(button, " ");
    }
    box.before(tools);
    box.classList.add("bounded");
    zoom(Math.max(fit(), 0.55));
    if (height > width) box.scrollTo((box.scrollWidth - box.clientWidth) / 2, 0);
  }

  // -- light and dark ----------------------------------------------------------------------------------------------------
  function addToggle() {
    const root = document.documentElement, button = document.createElement("button");
    const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
    button.type = "button";
    button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    label();
    document.querySelector("header").append(button);
  }

  addToggle();
  if (plan.seed) {
    for (const key in plan.seed) current[key] = plan.seed[key].slice();
    first = pass(current);
    now = first;
    $("table[data-edit]").forEach(editable);
    addReset();
    addChoices();
    recompute(false);
  }
  addZoom();
  tabStops();
  addEventListener("resize", tabStops);
  addEventListener("hashchange", opened);
  opened();
  document.addEventListener("toggle", tabStops, true);
})();
