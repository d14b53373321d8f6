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

/* ---- markdown, as much as answers use: code blocks, headings, lists, code, bold, italics ---- */

function inline(text, into) {
  const parts = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*/g;
  let at = 0;
  for (const m of text.matchAll(parts)) {
    into.append(text.slice(at, m.index));
    if (m[1]) into.append(element("code", "", m[2]));
    else into.append(element(m[3] ? "strong" : "em", "", m[3] || m[4]));
    at = m.index + m[0].length;
  }
  into.append(text.slice(at));
}

function block(text, into) {
  let list = null;
  for (const part of text.split(/\n{2,}|\n(?=\s*(?:[-*+]|\d+\.)\s|#{1,6}\s)/)) {
    const head = /^(#{1,6})\s+(.*)/.exec(part), item = /^\s*(?:([-*+])|(\d+)\.)\s+([\s\S]*)/.exec(part);
    if (!part.trim()) continue;
    if (item) {
      const tag = item[1] ? "UL" : "OL";
      if (!list || list.tagName !== tag) {
        list = element(tag);
        if (item[2]) list.start = Number(item[2]);
        into.append(list);
      }
      const li = element("li");
      inline(item[3], li);
      list.append(li);
      continue;
    }
    list = null;
    const e = element(head ? "h" + Math.min(6, head[1].length + 2) : "p");
    inline(head ? head[2] : part, e);
    into.append(e);
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
  into.replaceChildren(fresh);
}

/* ---- the log ---- */

function stick(change) {
  const log = $("log"), low = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  change();
  if (low) log.scrollTop = log.scrollHeight;
}

function add(name, text) {
  const e = element("div", "turn " + name, text);
  stick(() => $("log").append(e));
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

/* The events of a stream, parsed; comments and [DONE] are passed over. */
async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const frames = rest.split("\n\n");
    rest = frames.pop();
    for (const f of frames)
      if (f.startsWith("data: ") && f !== "data: [DONE]") yield JSON.parse(f.slice(6));
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
  messages.push({ role: "user", content: text });
  running = mine;
  busy(true);
  try {
    view.end(await answer(view, mine.signal));
  } catch (e) {
    const stopped = e.name === "AbortError";
    view.end(stopped ? "stopped" : e.message, !stopped);
  }
  if (running !== mine) return; /* a new chat was begun meanwhile */
  running = null;
  busy(false);
  if (view.state.content) messages.push({ role: "assistant", content: view.state.content });
  else messages.pop();
  $("text").focus();
}

function fresh() {
  if (running) running.abort();
  running = null;
  busy(false);
  messages.length = 0;
  $("log").replaceChildren();
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
$("stop").addEventListener("click", () => { if (running) running.abort(); });
$("new").addEventListener("click", fresh);
$("key").addEventListener("change", greet);
greet();
$("text").focus();
