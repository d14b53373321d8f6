"use strict";
/* The chat page: one conversation, kept by the page alone. Text of the model is only ever put into the page as text. */
const $ = (id) => document.getElementById(id);
const messages = [];
let running = null; /* the AbortController of the answer that is being made */

function element(tag, name, text) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  return e;
}

/* ---- markdown, as much as answers use: code blocks, headings, lists, tables, quotes, links, code, bold, italics ---- */

function link(text, url) {
  const a = element("a", "", text);
  a.href = url;
  a.target = "_blank";
  a.rel = "noopener noreferrer";
  return a;
}

function inline(text, into) {
  const parts = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/g;
  let at = 0;
  for (const m of text.matchAll(parts)) {
    into.append(text.slice(at, m.index));
    if (m[1]) into.append(element("code", "", m[2]));
    else if (m[6]) into.append(link(m[5], m[6]));
    else into.append(element(m[3] ? "strong" : "em", "", m[3] || m[4]));
    at = m.index + m[0].length;
  }
  into.append(text.slice(at));
}

/* What a line is by its beginning. */
function kind(line) {
  if (!line.trim()) return "blank";
  if (/^#{1,6}\s/.test(line)) return "head";
  if (/^\s*([-*_])(?:\s*\1){2,}\s*$/.test(line)) return "rule";
  if (/^\s*(?:[-*+]|\d+\.)\s/.test(line)) return "item";
  if (/^\s*\|/.test(line)) return "row";
  return /^\s*>/.test(line) ? "quote" : "text";
}

/* Lines that belong together. */
function parts(text) {
  const out = [];
  let last = null;
  for (const line of text.split("\n")) {
    const k = kind(line);
    const joins = last && ((k === last.kind && /row|quote|text/.test(k)) || (k === "text" && last.kind === "item"));
    if (k === "blank") last = null;
    else if (joins) last.text += "\n" + line;
    else out.push(last = { kind: k, text: line });
  }
  return out;
}

function paragraph(text) {
  const p = element("p");
  inline(text, p);
  return p;
}

function heading(text) {
  const [, marks, title] = /^(#+)\s+(.*)/.exec(text), h = element("h" + Math.min(6, marks.length + 2));
  inline(title, h);
  return h;
}

/* The second row is of dashes, or it is no table. */
function table(text) {
  const rows = text.split("\n").map((row) => row.trim()), t = element("table"), box = element("div", "wide");
  if (rows.length < 2 || !/^\|[-:| ]*-[-:| ]*$/.test(rows[1])) return paragraph(text);
  rows.forEach((row, i) => {
    if (i === 1) return;
    const tr = element("tr");
    for (const cell of row.replace(/^\||\|$/g, "").split("|")) inline(cell.trim(), tr.appendChild(element(i ? "td" : "th")));
    t.append(tr);
  });
  box.append(t);
  return box;
}

function quote(text) {
  const q = element("blockquote");
  block(text.replace(/^\s*(?:>\s?)+/gm, ""), q);
  return q;
}

/* Adds an item to the list, or to a new one where that is of another kind or depth. */
function item(text, list, into) {
  const [, indent, bullet, number, said] = /^(\s*)(?:([-*+])|(\d+)\.)\s+([\s\S]*)/.exec(text);
  const tag = bullet ? "UL" : "OL", depth = "deep" + Math.min(4, indent.length >> 1), li = element("li");
  if (!list || list.tagName !== tag || list.className !== depth) {
    list = element(tag, depth);
    if (number) list.start = Number(number);
    into.append(list);
  }
  inline(said, li);
  list.append(li);
  return list;
}

function block(text, into) {
  const makers = { head: heading, rule: () => element("hr"), row: table, quote, text: paragraph };
  let list = null;
  for (const part of parts(text)) {
    list = part.kind === "item" ? item(part.text, list, into) : null;
    if (!list) into.append(makers[part.kind](part.text));
  }
}

function code(language, text) {
  const box = element("div", "code"), bar = element("div", "bar"), copy = element("button", "", "Copy"), pre = element("pre");
  copy.type = "button";
  copy.addEventListener("click", () => {
    navigator.clipboard.writeText(text).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "No access"; });
  });
  bar.append(element("span", "", language), copy);
  pre.append(element("code", "", text));
  box.append(bar, pre);
  return box;
}

/* An unclosed block is code up to the end, so that it looks right while it comes. */
function markdown(text, into) {
  const fence = /^( {0,3})(`{3,}|~{3,})[ \t]*([^\n`]*)\n([\s\S]*?)(?:^ {0,3}\2[`~]*[ \t]*$\n?|(?![\s\S]))/gm;
  const fresh = document.createDocumentFragment();
  let at = 0;
  for (const m of text.matchAll(fence)) {
    block(text.slice(at, m.index), fresh);
    fresh.append(code(m[3].trim(), m[4]));
    at = m.index + m[0].length;
  }
  block(text.slice(at), fresh);
  replaceChanged(into, fresh);
}

/* What is there already stays, so that it can be selected and copied while the rest comes. */
function replaceChanged(into, fresh) {
  const before = [...into.childNodes], after = [...fresh.childNodes];
  let same = 0;
  while (same < before.length && same < after.length && before[same].isEqualNode(after[same])) same++;
  for (const e of before.slice(same)) e.remove();
  into.append(...after.slice(same));
}

/* ---- the log ---- */

function stick(change, always) {
  const log = $("log"), low = always || log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  change();
  if (low) log.scrollTop = log.scrollHeight;
}

function add(name, text) {
  const e = element("div", "turn " + name, text);
  stick(() => $("log").append(e), true);
  return e;
}

function answerView() {
  const turn = add("assistant"), body = element("div", "body"), note = element("div", "note");
  let thoughts = null, due = false;
  const state = { content: "", reasoning: "" };
  turn.append(body, note);
  const draw = () => {
    due = false;
    stick(() => {
      if (state.reasoning && !thoughts) {
        thoughts = element("details", "thoughts");
        thoughts.append(element("summary", "", "Thoughts"), element("div"));
        turn.prepend(thoughts);
      }
      if (thoughts) thoughts.lastChild.textContent = state.reasoning;
      markdown(state.content, body);
    });
  };
  return {
    state,
    show() { if (!due) { due = true; requestAnimationFrame(draw); } },
    end(text, bad) { draw(); stick(() => { note.textContent = text; note.classList.toggle("error", Boolean(bad)); }); },
  };
}

/* ---- the server ---- */

function headers() {
  const key = $("key").value.trim();
  return { "Content-Type": "application/json", ...(key ? { Authorization: "Bearer " + key } : {}) };
}

function body() {
  const system = $("system").value.trim(), temperature = $("temperature").value, max = $("max").value;
  return {
    messages: (system ? [{ role: "system", content: system }] : []).concat(messages),
    stream: true,
    stream_options: { include_usage: true },
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    ...(max === "" ? {} : { max_tokens: Number(max) }),
  };
}

async function problem(reply) {
  try {
    return (await reply.json()).error.message;
  } catch {
    return "the server answers " + reply.status;
  }
}

/* The events of a stream, parsed, without comments. One that ends without [DONE] was broken off. */
async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new TypeError("the stream has no end");
    rest += value;
    const frames = rest.split("\n\n");
    rest = frames.pop();
    for (const f of frames) {
      if (f === "data: [DONE]") return;
      if (f.startsWith("data: ")) yield JSON.parse(f.slice(6));
    }
  }
}

async function answer(view, signal) {
  let why = "", usage = null, first = 0;
  const reply = await fetch("v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(body()), signal });
  if (!reply.ok) throw new Error(await problem(reply));
  for await (const e of events(reply)) {
    if (e.error) throw new Error(e.error.message);
    usage = e.usage || usage;
    for (const c of e.choices || []) {
      view.state.content += c.delta.content || "";
      view.state.reasoning += c.delta.reasoning_content || "";
      why = c.finish_reason || why;
      if (!first && (c.delta.content || c.delta.reasoning_content)) first = performance.now();
    }
    view.show();
  }
  const n = usage ? usage.completion_tokens : 0, s = (performance.now() - first) / 1000;
  return `${n} tokens${n > 1 && s > 0 ? `, ${((n - 1) / s).toFixed(1)} tokens/s` : ""}${why === "length" ? ", cut at the limit" : ""}`;
}

/* ---- turns ---- */

function busy(on) {
  $("send").hidden = on;
  $("stop").hidden = !on;
}

async function send(text) {
  const view = (add("user", text), answerView()), mine = new AbortController();
  let failed = false;
  messages.push({ role: "user", content: text });
  running = mine;
  busy(true);
  try {
    view.end(await answer(view, mine.signal));
  } catch (e) {
    const stopped = e.name === "AbortError", lost = view.state.content ? "the connection broke off" : "the server does not answer";
    view.end(stopped ? "stopped" : e instanceof TypeError ? lost : e.message, !stopped);
    failed = !stopped;
  }
  if (running !== mine) return; /* a new chat was begun meanwhile */
  running = null;
  busy(false);
  if (view.state.content) messages.push({ role: "assistant", content: view.state.content });
  else messages.pop();
  if (failed && !view.state.content && !$("text").value) $("text").value = text; /* to be sent again */
  $("text").focus();
}

function fresh() {
  stop();
  running = null;
  busy(false);
  messages.length = 0;
  $("log").replaceChildren();
  $("text").focus();
}

function stop() {
  if (running) running.abort();
}

function closeSettings() {
  $("settings").open = false;
  $("text").focus();
}

async function greet() {
  try {
    const reply = await fetch("v1/models", { headers: headers() });
    $("model").textContent = reply.ok ? (await reply.json()).data[0].id : await problem(reply);
    if (reply.status === 503) setTimeout(greet, 1000);
  } catch {
    $("model").textContent = "the server does not answer";
    setTimeout(greet, 3000);
  }
}

$("ask").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("text").value.trim();
  if (!text || running) return;
  $("text").value = "";
  send(text);
});
$("text").addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  $("ask").requestSubmit();
});
$("stop").addEventListener("click", stop);
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.isComposing) return;
  if ($("settings").open) closeSettings();
  else stop();
});
document.addEventListener("pointerdown", (e) => { if (!$("settings").contains(e.target)) $("settings").open = false; });
$("new").addEventListener("click", fresh);
$("key").addEventListener("change", greet);
greet();
$("text").focus();
