"""What openai-harmony says: one JSON question a line on standard input, one JSON answer a line on standard output.

{"ask": "version"}                                  -> the package's version
{"ask": "render", "conversation": {...}, "date"}    -> ids of a conversation (src/ir/conversation.ts) for completion
{"ask": "message", "message": {...}}                -> ids of one message (src/prompt/harmony/message.ts)
{"ask": "schema", "schema": ...}                    -> text of a tool whose parameters have this schema
{"ask": "parse", "ids": [...], "role": "assistant"} -> messages of a reply, up to the first error
{"ask": "header", "text": "...", "role": ...}       -> the header that this text is, or its error

TIKTOKEN_ENCODINGS_BASE names a folder with o200k_base.tiktoken; the package would fetch it otherwise. How the turns of a
conversation become messages follows vLLM 0.33.0's `harmony_utils.py`.
"""

import json
import sys
from importlib.metadata import version

from openai_harmony import (
    Author,
    Conversation,
    DeveloperContent,
    HarmonyError,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    Role,
    StreamableParser,
    SystemContent,
    TextContent,
    ToolDescription,
    load_harmony_encoding,
)

ENCODING = load_harmony_encoding("HarmonyGptOss")
EFFORTS = {"low": ReasoningEffort.LOW, "medium": ReasoningEffort.MEDIUM, "high": ReasoningEffort.HIGH}


def joined(content):
    if content is None or isinstance(content, str):
        return content
    return "".join(part["text"] for part in content) if content else None


def texts(content):
    if content is None or isinstance(content, str):
        return [TextContent(text=content or "")]
    return [TextContent(text=part["text"]) for part in content]


def assistant(channel, contents):
    return Message.from_role_and_contents(Role.ASSISTANT, contents).with_channel(channel)


def system(kwargs, date):
    content = SystemContent.new().with_conversation_start_date(kwargs.get("conversation_start_date", date))
    if "reasoning_effort" in kwargs:
        content = content.with_reasoning_effort(EFFORTS[kwargs["reasoning_effort"]])
    if "model_identity" in kwargs:
        content = content.with_model_identity(kwargs["model_identity"])
    if "knowledge_cutoff" in kwargs:
        content = content.with_knowledge_cutoff(kwargs["knowledge_cutoff"])
    for tool in kwargs.get("builtin_tools", []):
        content = content.with_browser_tool() if tool == "browser" else content.with_python_tool()
    return Message.from_role_and_content(Role.SYSTEM, content)


def developer(instructions, tools):
    content = DeveloperContent.new()
    if instructions is not None:
        content = content.with_instructions(instructions)
    if tools:
        content = content.with_function_tools(
            [ToolDescription.new(tool["name"], tool["description"] or "", tool["parameters"]) for tool in tools]
        )
    return Message.from_role_and_content(Role.DEVELOPER, content)


def turn_messages(turn, names):
    role, content = turn["role"], turn["content"]
    if role == "assistant":
        made = []
        calls, text = turn["toolCalls"], joined(content)
        if calls and text:
            made.append(assistant("commentary", [TextContent(text=text)]))
        if turn["reasoning"]:
            made.append(assistant("analysis", [TextContent(text=turn["reasoning"])]))
        for call in calls:
            message = assistant("commentary", [TextContent(text=call["argumentsText"])])
            made.append(message.with_recipient("functions." + call["name"]).with_content_type("json"))
        if not calls and text:
            made.append(assistant("final", texts(content)))
        return made
    if role == "tool":
        author = Author.new(Role.TOOL, "functions." + names[turn["toolCallId"]])
        message = Message.from_author_and_content(author, joined(content) or "")
        return [message.with_channel("commentary").with_recipient("assistant")]
    if role in ("system", "developer"):
        instructions = joined(content)
        return [] if instructions is None else [developer(instructions, [])]
    return [Message.from_role_and_contents(Role.USER, texts(content))]


def without_old_analysis(messages):
    finals = [i for i, m in enumerate(messages) if m.author.role == Role.ASSISTANT and m.channel == "final"]
    last = finals[-1] if finals else -1
    return [m for i, m in enumerate(messages) if i >= last or m.channel != "analysis"]


def render(conversation, date):
    turns, tools = conversation["messages"], conversation["tools"]
    instructions = None
    if turns and turns[0]["role"] in ("system", "developer"):
        instructions, turns = joined(turns[0]["content"]), turns[1:]
    messages = [system(conversation["templateKwargs"], date)]
    if instructions or tools:
        messages.append(developer(instructions, tools))
    names = {call["id"]: call["name"] for turn in turns for call in turn["toolCalls"]}
    for turn in turns:
        messages.extend(turn_messages(turn, names))
    whole = Conversation.from_messages(without_old_analysis(messages))
    config = RenderConversationConfig(auto_drop_analysis=False)
    if conversation["addGenerationPrompt"]:
        return ENCODING.render_conversation_for_completion(whole, Role.ASSISTANT, config=config)
    return ENCODING.render_conversation(whole, config=config)


def message(given):
    author = Author(role=Role(given["role"]), name=given["name"])
    made = Message(author=author, content=[TextContent(text=text) for text in given["texts"]])
    made.channel, made.recipient, made.content_type = given["channel"], given["recipient"], given["contentType"]
    return ENCODING.render(made)


def schema(given):
    content = DeveloperContent.new().with_function_tools([ToolDescription.new("f", "", given)])
    return ENCODING.decode(ENCODING.render(Message.from_role_and_content(Role.DEVELOPER, content)))


def parsed(messages):
    return [
        {
            "role": m.author.role.value,
            "name": m.author.name,
            "channel": m.channel,
            "recipient": m.recipient,
            "contentType": m.content_type,
            "text": "".join(content.text for content in m.content),
        }
        for m in messages
    ]


def parse(ids, role):
    parser = StreamableParser(ENCODING, None if role is None else Role(role))
    try:
        for token in ids:
            parser.process(token)
        parser.process_eos()
    except HarmonyError as error:
        return {"messages": parsed(parser.messages), "error": str(error)}
    return {"messages": parsed(parser.messages), "error": None}


def header(text, role):
    ids = ENCODING.encode(text + "<|message|>", allowed_special="all")
    answer = parse(ids, role)
    return {"header": answer["messages"][0]} if answer["error"] is None else {"error": answer["error"]}


for line in sys.stdin:
    question = json.loads(line)
    match question["ask"]:
        case "version":
            answer = version("openai-harmony")
        case "render":
            answer = render(question["conversation"], question["date"])
        case "message":
            answer = message(question["message"])
        case "schema":
            answer = schema(question["schema"])
        case "parse":
            answer = parse(question["ids"], question["role"])
        case "header":
            answer = header(question["text"], question["role"])
    print(json.dumps(answer), flush=True)
