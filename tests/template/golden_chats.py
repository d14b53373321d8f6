"""Chat templates in the style of public ones (self-written, in chats/) and the conversations each is rendered with."""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "chats"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, id="abcdefghi"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a city",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name, e.g. \"São Paulo\""},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "integer", "minimum": 1, "default": 3}}, "required": ["city"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Finds <things> & 'more', over several lines of description that are long enough to be wrapped",
    "parameters": {"type": "object", "properties": {
        "query": {"type": ["string", "null"]}, "tags": {"type": "array", "items": {"type": "string"}, "description": "Any of these\nwill do"},
        "where": {"type": "object", "properties": {"lang": {"type": "string"}, "year": {"type": "number"}}, "required": ["lang"]},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "one": {"oneOf": [{"type": "string"}, {"type": "integer"}], "default": 5}}}}}
NOTHING = {"type": "function", "function": {"name": "ping", "description": "No arguments", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [WEATHER, SEARCH, NOTHING]

CALLED = [turn("user", "Rain in Oslo?"), turn("assistant", "", tool_calls=[call("get_weather", {"city": "Oslo", "days": 2})]),
          turn("tool", "{\"rain\": true}", tool_call_id="abcdefghi", name="get_weather")]

CONVERSATIONS = {
    "one": {"messages": [turn("user", "Hi")]},
    "system": {"messages": [turn("system", "Be brief."), turn("user", "Name a colour.")]},
    "turns": {"messages": [turn("system", " Be brief. \n"), turn("user", "A"), turn("assistant", "B"), turn("user", "  C\n"), turn("assistant", "D\n\n"), turn("user", "E")]},
    "finished": {"messages": [turn("user", "Hi"), turn("assistant", "Hello!")], "add_generation_prompt": False},
    "text": {"messages": [turn("user", "é 😀 \u200b {{ x }} {% y %} <b>\"q\" 'p' &</b> \\n </s>\t|"), turn("assistant", "{# no #}"), turn("user", "")]},
    "tools": {"messages": [turn("user", "Weather in Rome?")], "tools": TOOLS},
    "tools system": {"messages": [turn("system", "Use tools."), turn("user", "Weather in Rome?")], "tools": [WEATHER]},
    "called": {"messages": CALLED, "tools": TOOLS},
    "answered": {"messages": CALLED + [turn("assistant", "Yes."), turn("user", "Thanks")], "tools": [WEATHER]},
    "parallel": {"messages": [turn("user", "Both?"), turn("assistant", "Let me see.", tool_calls=[call("get_weather", {"city": "Oslo"}), call("search", {"query": None, "tags": ["a", "b\""], "where": {"lang": "nb"}, "n": 1.5, "deep": True}, "jklmnopqr")]),
                              turn("tool", "rain", tool_call_id="abcdefghi"), turn("tool", "[1, 2]", tool_call_id="jklmnopqr"), turn("assistant", "Done.")], "tools": [WEATHER, SEARCH]},
    "thought": {"messages": [turn("user", "1+1?"), turn("assistant", "<think>\nsum\n</think>\n\n2"), turn("user", "2+2?"), turn("assistant", "<think>\nagain\n</think>\n\n4")]},
    "reasoning field": {"messages": [turn("user", "1+1?"), turn("assistant", "2", reasoning_content="sum", thinking="sum")], "add_generation_prompt": False},
    "no thinking": {"messages": [turn("system", "Fast /no_think"), turn("user", "Hi")], "enable_thinking": False, "reasoning_effort": "low"},
    "thinking": {"messages": [turn("user", "Hi")], "enable_thinking": True, "thinking": True},
    "parts": {"messages": [turn("user", [{"type": "text", "text": "See "}, {"type": "image"}, {"type": "text", "text": " this"}]), turn("assistant", "Nice")], "add_vision_id": True},
    "null content": {"messages": [turn("user", "Go"), turn("assistant", None, tool_calls=[call("ping", {})]), turn("tool", "pong", tool_call_id="abcdefghi")]},
    "assistant first": {"messages": [turn("assistant", "I begin."), turn("user", "Odd.")]},
    "bad role": {"messages": [turn("wizard", "?"), turn("user", "x")]},
    "empty": {"messages": []},
    "documents": {"messages": [turn("user", "Cite.")], "documents": [{"doc_id": 1, "title": "T", "text": "Text \"one\""}, {"doc_id": "b", "text": "Zwei"}], "controls": {"citations": True, "length": "short"}},
    "options": {"messages": [turn("system", "S /system_override"), turn("user", "U")], "builtin_tools": ["interpreter", "web", "maths"], "tools_in_user_message": False, "custom_tools": [NOTHING], "date_string": "1 May 2025",
                "xml_tools": ["def f(): pass"], "python_tools": ["g(x)"], "USE_DEFAULT_PROMPT": True, "model_identity": "I am a test."},
}


def templates():
    return sorted((p.stem, p) for p in FOLDER.glob("*.jinja"))


def conversations():
    """Every conversation with what it leaves open: it asks for an answer, and has the usual special tokens."""
    return {label: {"add_generation_prompt": True, **TOKENS, **variables} for label, variables in CONVERSATIONS.items()}
