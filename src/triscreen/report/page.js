"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement, slider = document.getElementById("lambda");
const share = D.lambdas.map((lam) => lam / D.lambdas[0]);
const frameShare = D.frames.map((t) => share[t]);
const colours = ["#3b82c4", "#d9730d", "#2f9e6e", "#c2458f", "#8a6fd1", "#b08900", "#1f9bb0", "#d1495b", "#6b8f23", "#8c6d5a"];
const symbols = ["circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star", "triangle-down", "hexagon"];
const percent = (value, digits = 1) => (100 * value).toFixed(digits) + " %";
// Plotly takes texts for markup: names from the data are shown as they are.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const narrow = window.matchMedia("(max-width: 40rem)");  // a telephone: before above after
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

// Ticks of a logarithmic axis: at most some five, however many decades there are, or four within one of them.
const ticks = (values) => {
  const low = Math.min(...values), decades = Math.log10(Math.max(...values) / low);
  if (decades >= 1) return { dtick: Math.ceil(decades / 5) };
  const some = [0, 1, 2, 3].map((k) => Number((low * 10 ** (k / 3 * decades)).toPrecision(2)));
  const tickvals = some.filter((v, k) => k === 0 || v > 1.05 * some[k - 1]);
  return { tickvals, ticktext: tickvals.map((v) => v < 0.01 ? v.toExponential(1) : String(v)) };
};
const lambdaAxis = { title: { text: "lambda / its first value" }, type: "log", autorange: "reversed", exponentformat: "power", ...ticks(share) };
const line = (x, y, name, more = {}) => ({ x, y, name, mode: "lines", type: "scatter", ...more });
const dot = (x, y) => ({ x: [x], y: [y], name: "now", mode: "markers", type: "scatter", showlegend: false, hoverinfo: "skip", cliponaxis: false,
  marker: { size: 13, color: css("--mark"), symbol: "circle-open", line: { width: 3 } } });
const upright = (x, low, high) => ({ x: [x, x], y: [low, high], name: "now", mode: "lines", type: "scatter", showlegend: false,
  hoverinfo: "skip", line: { color: css("--mark"), width: 2.5 } });

// Of how many points the five nearest were looked at, and the share of those that are of the point's own class.
const sum = (counts) => counts.reduce((a, b) => a + b, 0);
const alike = (counts) => counts.reduce((all, count, i) => all + i * count, 0) / (Math.min(5, D.n_points - (D.alike_of !== "held-out")) * sum(counts));
const asked = D.alike && `${sum(D.alike_before).toLocaleString("en")} points ` + (D.alike_of === "held-out" ? "not learned from, among those learned from" : "learned from, among the others");

// A panel: where it is, what it says, its traces and layout, and what a frame f changes.
const panels = [];
const add = (section, id, title, caption, draw, move, wide = false) => panels.push({ section, id, title, caption, draw, move, wide });

if (D.after) {
  // With many classes a few have a colour; all others are grey, and drawn first.
  const picked = D.coloured || (D.classes || ["points"]).map((_, c) => c);
  const of = (test) => D.before.flatMap((_, i) => (test(D.sample_classes ? D.sample_classes[i] : 0) ? [i] : []));
  const groups = picked.map((c, place) => ({ points: of((code) => code === c), name: D.classes ? plain(D.classes[c]) : "points",
    marker: { size: 6, opacity: 0.8, color: colours[place % 10], symbol: symbols[place % 10] } }));
  if (D.coloured) groups.unshift({ points: of((code) => !picked.includes(code)), name: `${D.classes.length - picked.length} other classes`,
    marker: { size: 4, opacity: 0.45, color: "#8a8f98", symbol: "circle" } });
  const part = (points, group, axis) => group.points.map((i) => points[i][axis]);
  const scatter = (points, axes, legend) => groups.map((group, c) => ({ x: part(points, group, 0), y: part(points, group, 1), xaxis: axes[0],
    yaxis: axes[1], name: group.name, legendgroup: String(c), showlegend: legend && D.classes !== null,
    mode: "markers", type: "scatter", hoverinfo: "name", hoverlabel: { namelength: -1 }, marker: group.marker }));
  const bare = { showticklabels: false, zeroline: false };
  const named = (when, counts) => ({ title: { text: counts ? `${when}: ${percent(alike(counts))} alike` : when } });
  const plane = D.classes && D.classes.length > 1 ? "Each point in the plane in which the means of the classes lie farthest apart: left for plain Euclidean distance, right for the learned " +
    "metric, each seen at right angles, so that nothing is stretched. The planes are chosen with the labels of points learned from, so both " +
    "sides look a little better than new points would; and a plane shows a part only of what many directions do." +
    (D.alike ? ` Below: the share of neighbours of the same class, in all directions, of ${asked}.` : "") :
    "Each point along the two directions in which the points spread most: left by plain Euclidean distance, right by the learned metric.";
  add("learned", "points", "The points, before and after",
    plane + (D.coloured ? ` The ${picked.length} largest of ${D.classes.length} classes are coloured.` : "") +
      (D.n_points > D.before.length ? ` A sample of ${D.before.length} points.` : ""),
    (f) => [[...scatter(D.before, ["x", "y"], true), ...scatter(D.after[f], ["x2", "y2"], false)], {
      grid: { ...(narrow.matches ? { rows: 2, columns: 1 } : { rows: 1, columns: 2 }), pattern: "independent" }, xaxis: { ...bare, ...named("before", D.alike && D.alike_before) }, yaxis: bare,
      xaxis2: { ...bare, ...named("after", D.alike && D.alike[f]) }, yaxis2: bare, legend: { orientation: "h", y: 1.02, yanchor: "bottom" } }],
    (f) => [{ x: groups.map((g) => part(D.after[f], g, 0)), y: groups.map((g) => part(D.after[f], g, 1)) }, groups.map((_, c) => groups.length + c),
      D.alike ? { "xaxis2.title.text": named("after", D.alike[f]).title.text } : {}],
    true);
}
if (D.alike) {
  const bars = (counts) => counts.map((count) => count / sum(counts));
  const bar = (counts, name, color) => ({ x: counts.map((_, i) => i), y: bars(counts), customdata: counts, name, type: "bar",
    marker: { color }, hovertemplate: "%{customdata} points: %{y:.1%}<extra>" + name + "</extra>" });
  add("learned", "alike", "Neighbours of the same class",
    `How many of the five nearest are of a point's own class: ${asked}. Better are more points at the right, and fewer at the left` +
      (D.alike_of === "held-out" ? "." : "; points learned from look better than new ones would."),
    (f) => [[bar(D.alike_before, "before", css("--soft")), bar(D.alike[f], "after", css("--accent"))],
      { xaxis: { title: { text: "of the five nearest" }, dtick: 1 }, yaxis: { title: { text: "share of the points" }, tickformat: ".0%", rangemode: "tozero" },
        legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, barmode: "group" }],
    (f) => [{ y: [bars(D.alike[f])], customdata: [D.alike[f]] }, [1]]);
}
const ranks = (f) => D.spectrum[f].map((_, i) => i + 1);
add("learned", "spectrum", "How many directions the metric uses",
  "Shares of the eigenvalues of the metric, the largest first: a few tall bars mean that a few combinations of features decide.",
  (f) => [[{ x: ranks(f), y: D.spectrum[f], type: "bar", marker: { color: css("--accent") }, hovertemplate: "%{x}: %{y:.1%}<extra></extra>" }],
    { xaxis: { title: { text: "direction" } }, yaxis: { title: { text: "share" }, tickformat: ".3~p", rangemode: "tozero" } }],
  (f) => [{ x: [ranks(f)], y: [D.spectrum[f]] }, [0]]);
const bars = (f) => D.features[f].map(([name, share]) => [plain(name), share]).reverse();
add("learned", "features", "Which features weigh most",
  "Share of the squared distance between two points that a feature brings by itself, the largest fifteen.",
  (f) => [[{ y: bars(f).map((b) => b[0]), x: bars(f).map((b) => b[1]), type: "bar", orientation: "h", marker: { color: css("--accent") },
    hovertemplate: "%{y}: %{x:.2p}<extra></extra>" }], { xaxis: { title: { text: "share" }, tickformat: ".3~p" }, yaxis: { automargin: true, type: "category", dtick: 1 } }],
  (f) => [{ x: [bars(f).map((b) => b[1])], y: [bars(f).map((b) => b[0])] }, [0]]);

add("proven", "gaps", "How close to the optimum, at most",
  "The relative duality gap: no metric at all can have an objective lower by more than this share. Dashed: what was asked for.",
  (f) => [[line(share, D.rel_gaps, "gap", { mode: "lines+markers", marker: { size: 4 }, line: { color: css("--accent") } }),
    line([share[0], share[share.length - 1]], [D.tol, D.tol], "asked for", { line: { dash: "dash", color: css("--soft") } }),
    dot(frameShare[f], D.rel_gaps[D.frames[f]])],
  { xaxis: lambdaAxis, yaxis: { title: { text: "relative gap" }, type: "log", exponentformat: "power", ...ticks([...D.rel_gaps, D.tol]) }, showlegend: false }],
  (f) => [{ x: [[frameShare[f]]], y: [[D.rel_gaps[D.frames[f]]]] }, [2]]);
const tried = Object.entries(D.rates);
const stopShare = (D.stops || []).map((t) => share[t]);
add("proven", "decided", "Comparisons left out",
  "Thick: the share that was left out on this path. Dotted: the part of it that was safe beforehand, decided by spheres and ranges before the " +
    "solve; the rest was not in the working set, and was proven afterwards, by the final gap, not to matter." + (tried.length ? " Thin: what each " +
    "sphere and rule of the theory proves beforehand, at once, from the solution before; measured at some lambdas." : ""),
  (f) => [[line(share, D.decided, "left out", { line: { width: 4, color: css("--ink") } }),
    line(share, D.safe, "safe beforehand", { line: { width: 4, dash: "dot", color: css("--soft") } }),
    ...tried.map(([name, rates], i) => line(stopShare, rates, name, { line: { width: 1.5, color: colours[i % 10] } })),
    dot(frameShare[f], D.decided[D.frames[f]])],
  { xaxis: lambdaAxis, yaxis: { title: { text: "share left out" }, tickformat: ".0%", range: [0, 1.02] }, legend: { orientation: "h", y: 1.02, yanchor: "bottom", font: { size: narrow.matches ? 9 : 11 } } }],
  (f) => [{ x: [[frameShare[f]]], y: [[D.decided[D.frames[f]]]] }, [2 + tried.length]]);
const heat = (z, x, y, what) => ({ z, x, y, type: "heatmap", zmin: 0, zmax: 1, colorscale: "Viridis", hoverongaps: false,
  colorbar: { tickformat: ".0%", thickness: 12 }, hovertemplate: what + "<extra></extra>" });
if (D.dynamic) {
  const last = D.dynamic_iterations[D.dynamic_iterations.length - 1];
  const turned = D.dynamic_iterations.map((_, i) => D.dynamic.map((row) => row[i]));
  add("proven", "dynamic", "While the solver runs",
    "Dynamic screening: the closer to the optimum, the more is decided. From below: iterations of a plain gradient solver with the spheres RRPB and PGB; empty once it is done.",
    (f) => [[heat(turned, stopShare, D.dynamic_iterations, "iteration %{y}: %{z:.1%} decided"), upright(frameShare[f], 0, last)],
      { xaxis: lambdaAxis, yaxis: { title: { text: "iteration" } } }],
    (f) => [{ x: [[frameShare[f], frameShare[f]]] }, [1]]);
}
if (D.ranges) {
  add("proven", "ranges", "How far one proof reaches",
    "Range screening: from the solution at one lambda (upwards), the share of comparisons decided at other lambdas (across) without looking at them again.",
    (f) => [[heat(D.ranges, frameShare, stopShare, "%{z:.1%} decided"), upright(frameShare[f], Math.min(...stopShare), Math.max(...stopShare))],
      { xaxis: lambdaAxis, yaxis: { ...lambdaAxis, title: { text: "lambda of the solution" }, autorange: true } }],
    (f) => [{ x: [[frameShare[f], frameShare[f]]] }, [1]]);
}
if (D.errors) {
  // The band: what is proven of the error for every lambda, also between those that were solved.
  const band = (D.band || []).map((run) => line([...run.x, ...run.x.slice().reverse()], [...run.upper, ...run.lower.slice().reverse()],
    run.worse ? "worse for sure" : "proven", { fill: "toself", line: { width: 0 }, hoverinfo: "skip",
      fillcolor: run.worse ? "rgba(128,128,128,0.28)" : "rgba(59,130,196,0.28)" }));
  add("chosen", "errors", "Error on what was not learned from",
    D.error_said[0].toUpperCase() + D.error_said.slice(1) + ". Dashed: plain Euclidean distance." + (D.band ? " The band is proven: there lies the " +
      "error of the optimal metric for every lambda, solved or not; grey where none can be as good as the best." : ""),
    (f) => [[...band, line(frameShare, D.errors, "learned", { mode: "lines+markers", line: { color: css("--accent") } }),
      line([frameShare[0], frameShare[frameShare.length - 1]], [D.error_before, D.error_before], "Euclid", { line: { dash: "dash", color: css("--soft") } }),
      dot(frameShare[f], D.errors[f])],
    { xaxis: lambdaAxis, yaxis: { title: { text: "error" }, tickformat: ".1%", range: [0, 1.25 * Math.max(0.01, D.error_before, ...D.errors)] },
      showlegend: false }],
    (f) => [{ x: [[frameShare[f]]], y: [[D.errors[f]]] }, [2 + band.length]], D.band !== null);
}
add("chosen", "loss", "What is left of the loss",
  "Loss of the comparisons themselves. Where it no longer falls, a smaller lambda can only fit what is accidental.",
  (f) => [[line(share, D.losses, "loss", { line: { color: css("--accent") } }), dot(frameShare[f], D.losses[D.frames[f]])],
    { xaxis: lambdaAxis, yaxis: { title: { text: "loss" }, rangemode: "tozero" }, showlegend: false }],
  (f) => [{ x: [[frameShare[f]]], y: [[D.losses[D.frames[f]]]] }, [1]]);
const work = D.passes.reduce((sums, value) => [...sums, (sums[sums.length - 1] || 0) + value], []);
add("chosen", "work", "Work until here",
  "Passes so far: one pass looks at every pair of points that occurs in a comparison once.",
  (f) => [[line(share, work, "passes", { line: { color: css("--accent") } }), dot(frameShare[f], work[D.frames[f]])],
    { xaxis: lambdaAxis, yaxis: { title: { text: "passes" }, rangemode: "tozero" }, showlegend: false }],
  (f) => [{ x: [[frameShare[f]]], y: [[work[D.frames[f]]]] }, [1]]);

const now = () => Number(slider.value);
function say(f) {
  const t = D.frames[f];
  const parts = [`lambda ${D.lambdas[t].toPrecision(4)}, ${share[t].toPrecision(2)} of the first (${f + 1} of ${D.frames.length})`,
    `relative gap ${D.rel_gaps[t].toExponential(1)}`, `left out: ${percent(D.safe[t])} safe beforehand + ${percent(D.proven[t])} proven afterwards`, `${D.ranks[f]} directions`];
  if (D.errors) parts.push(`error ${percent(D.errors[f])}`);
  const text = parts.join(" · ");
  document.getElementById("now").textContent = text;
  slider.setAttribute("aria-valuetext", text);
  document.querySelector("#python .number").textContent = String(t);
}
function themed(layout) {
  const axis = { gridcolor: css("--line"), linecolor: css("--line"), zerolinecolor: css("--line") };
  const out = { margin: { l: 60, r: 15, t: 15, b: 50 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: css("--ink"), family: "system-ui, sans-serif", size: 12 }, ...layout };
  for (const name of ["xaxis", "yaxis", "xaxis2", "yaxis2"]) if (out[name]) out[name] = { ...axis, ticklabelstandoff: name[0] === "x" ? 5 : 2, ...out[name] };
  // Labels such as 10 to the -16 are as wide as the margin: the title goes to their left, whatever their width.
  if (out.yaxis?.title) out.yaxis = { ...out.yaxis, automargin: true, title: { standoff: 4, ...out.yaxis.title } };
  return out;
}
function draw() {
  for (const p of panels) {
    const [traces, layout] = p.draw(now());
    Plotly.react(p.id, traces, themed(layout), { displaylogo: false, responsive: true, displayModeBar: false });
  }
  say(now());
}
function move() {
  for (const p of panels) {
    const [traces, which, layout = {}] = p.move(now());
    Plotly.update(p.id, traces, layout, which);
  }
  say(now());
}
for (const p of panels) {
  const figure = document.createElement("figure");
  const title = Object.assign(document.createElement("h3"), { id: p.id + "-title", textContent: p.title });
  const chart = Object.assign(document.createElement("div"), { id: p.id, className: p.id === "decided" && tried.length ? "chart tall" : "chart" });
  const caption = Object.assign(document.createElement("figcaption"), { id: p.id + "-text", textContent: p.caption });
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-labelledby", title.id);
  chart.setAttribute("aria-describedby", caption.id);
  figure.className = p.wide ? "wide" : "";
  figure.append(title, caption, chart);
  document.getElementById(p.section).append(figure);
}
for (const grid of document.querySelectorAll(".grid")) grid.classList.toggle("three", grid.querySelectorAll("figure:not(.wide)").length % 3 === 0);
const button = document.getElementById("theme");
function theme(name) {
  root.dataset.theme = name;
  button.textContent = name === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(name === "dark"));
  draw();
}
const dark = window.matchMedia("(prefers-color-scheme: dark)");
button.addEventListener("click", () => theme(root.dataset.theme === "dark" ? "light" : "dark"));
// Margins were made for the legend at the old width: they are made anew, once the new one is there.
narrow.addEventListener("change", () => setTimeout(() => { for (const p of panels) Plotly.purge(p.id); draw(); }, 100));
dark.addEventListener("change", (event) => theme(event.matches ? "dark" : "light"));
let wasDark = false;
window.addEventListener("beforeprint", () => { wasDark = root.dataset.theme === "dark"; if (wasDark) theme("light"); });
window.addEventListener("afterprint", () => { if (wasDark) theme("dark"); });
let waiting = false;
slider.addEventListener("input", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; move(); });
});
const go = (f) => { slider.value = f; move(); };
document.getElementById("back").addEventListener("click", () => go(now() - 1));
document.getElementById("on").addEventListener("click", () => go(now() + 1));
if (D.best !== null) {
  const best = document.getElementById("best");
  best.hidden = false;
  best.addEventListener("click", () => go(D.best));
}
// Where a page may not write to the clipboard, the text is selected, ready for Ctrl-C.
for (const copy of document.querySelectorAll(".copy")) copy.addEventListener("click", async () => {
  const text = document.getElementById(copy.dataset.of);
  getSelection().selectAllChildren(text);
  let done = false;
  try { await navigator.clipboard.writeText(text.textContent); done = true; } catch { done = document.execCommand("copy"); }
  copy.textContent = done ? "Copied" : "Selected";
  setTimeout(() => { copy.textContent = "Copy"; }, 2000);
});
const saved = document.getElementById("suspects-file");
if (saved) saved.addEventListener("click", () => {
  const link = Object.assign(document.createElement("a"), { download: saved.dataset.name,
    href: URL.createObjectURL(new Blob([D.suspects_csv], { type: "text/csv" })) });
  link.click();
  URL.revokeObjectURL(link.href);
});
theme(dark.matches ? "dark" : "light");
