"""The Python client against a running server: `python openai_cases.py BASE_URL MODEL`."""

import asyncio

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from casebook import BASE_URL, CALL, MODEL, SENTENCE, Fault, case, check, equal, run_cases, script
from wire import ABORTED, FIRST_TOKEN, REPEATED, Wire

wire = Wire(BASE_URL, MODEL)
client = OpenAI(base_url=BASE_URL, api_key="unused", max_retries=0)

MESSAGES = [{"role": "user", "content": "How is the weather?"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": PARAMETERS}}
TOOL = {"type": "function", "name": "get_weather", "parameters": PARAMETERS, "strict": False}
MIXED = f"<think>Let me see.</think>{SENTENCE}{CALL}{CALL}"


class Weather(BaseModel):
    city: str
    celsius: int


def chat(**more):
    return {"messages": MESSAGES, **more}


def respond(**more):
    return {"input": "How is the weather?", **more}


# Objects and events, validated strictly


@case
def chat_objects():
    """chat objects are valid: text, reasoning, calls, logprobs, choices, the limit"""
    wire.chat(chat())
    answer = wire.chat(chat(tools=[CHAT_TOOL], **script(MIXED)))
    equal(len(answer.choices[0].message.tool_calls), 2, "calls")
    wire.chat(chat(logprobs=True, top_logprobs=3, **script(SENTENCE)))
    wire.chat(chat(n=2, **script("Two.")))
    equal(wire.chat(chat(max_tokens=2, **script("a b c d"))).choices[0].finish_reason, "length", "finish")
    wire.chat(chat(return_token_ids=True, **script("ids")))
    wire.chat(chat(stop=["c"], **script("a b c d")))


@case
def chat_chunk_objects():
    """chat chunks are valid: text, reasoning, calls, logprobs, choices, usage"""
    answer = wire.chat_chunks(chat(tools=[CHAT_TOOL], stream_options={"include_usage": True}, **script(MIXED)))
    check(answer[-1].usage is not None, "the last chunk has no usage")
    wire.chat_chunks(chat())
    wire.chat_chunks(chat(logprobs=True, top_logprobs=3, **script(SENTENCE)))
    wire.chat_chunks(chat(n=2, **script("Two.")))
    wire.chat_chunks(chat(stream_options={"include_usage": True, "continuous_usage_stats": True}, **script(SENTENCE)))
    wire.chat_chunks(chat(return_token_ids=True, **script(SENTENCE, sim_tokens_per_step=[2, 5, 1])))


@case
def completion_objects():
    """completion objects are valid: text, echo, logprobs, several prompts"""
    wire.completion({"prompt": "Once", **script(" upon.")})
    wire.completion({"prompt": "Once", "echo": True, "logprobs": 2, **script(" upon.")}, FIRST_TOKEN)
    equal(len(wire.completion({"prompt": ["a", "b"], "n": 2, **script("x")}).choices), 4, "choices")


@case
def completion_chunk_objects():
    """completion chunks are valid but for the finish reason null, which the types do not know"""
    wire.completion_chunks({"prompt": "Once", **script(" upon a time.")})
    wire.completion_chunks({"prompt": "Once", "logprobs": 1, **script(" upon a time.")})
    wire.completion_chunks({"prompt": ["a", "b"], "stream_options": {"include_usage": True}, **script("x y")})


@case
def finishes_beyond_the_types():
    """finish reasons abort and repetition, which the types do not know, are the only thing they refuse"""
    for finish, beyond in [("abort", ABORTED), ("repetition", REPEATED)]:
        wire.chat(chat(**script("a b", sim_finish=finish)), (beyond,))
        wire.chat_chunks(chat(**script("a b", sim_finish=finish)), (beyond,))
        wire.completion({"prompt": "a", **script("a b", sim_finish=finish)}, (beyond,))
        wire.completion_chunks({"prompt": "a", **script("a b", sim_finish=finish)}, (beyond,))


@case
def response_objects():
    """response objects are valid: text, reasoning, calls, the limit, an abort, a format"""
    answer = wire.response(respond())
    equal(answer.status, "completed", "status")
    answer = wire.response(respond(tools=[TOOL], instructions="Be brief.", **script(MIXED)))
    equal([item.type for item in answer.output], ["reasoning", "message", "function_call", "function_call"], "items")
    equal(wire.response(respond(max_output_tokens=2, **script("a b c d"))).status, "incomplete", "status")
    equal(wire.response(respond(**script("a b", sim_finish="abort"))).status, "cancelled", "status")
    schema = {"type": "json_schema", "name": "w", "schema": PARAMETERS, "strict": True}
    wire.response(respond(text={"format": schema, "verbosity": "low"}, reasoning={"effort": "low"}, **script("{}")))
    wire.response(respond(metadata={"a": "b"}, tool_choice="none", tools=[TOOL], truncation="auto", **script("x")))


@case
def response_events():
    """response events are valid, numbered, and end with the response that create gives"""
    events = wire.events(respond(tools=[TOOL], **script(MIXED)))
    final = events[-1].response
    whole = wire.response(respond(tools=[TOOL], **script(MIXED)))
    equal([item.type for item in final.output], [item.type for item in whole.output], "items")
    equal(final.output_text, whole.output_text, "text")
    equal(final.usage, whole.usage, "usage")
    done = [event.item for event in events if event.type == "response.output_item.done"]
    equal(done, final.output, "finished items")
    for kind, field in [("output_text", "text"), ("reasoning_text", "text"), ("function_call_arguments", "arguments")]:
        pieces = "".join(e.delta for e in events if e.type == f"response.{kind}.delta")
        ends = "".join(getattr(e, field) for e in events if e.type == f"response.{kind}.done")
        equal(pieces, ends, f"{kind} pieces")


@case
def response_event_endings():
    """response events are valid when the limit, an abort or a failure ends the stream"""
    events = wire.events(respond(max_output_tokens=2, **script("a b c d")))
    equal(events[-1].type, "response.incomplete", "last event")
    equal(events[-1].response.output[0].status, "incomplete", "status of the cut item")
    events = wire.events(respond(**script("a b", sim_finish="abort")))
    equal((events[-1].type, events[-1].response.status), ("response.completed", "cancelled"), "last event")
    for more in [{"sim_finish": "error"}, {"sim_fail_after_tokens": 1, "sim_error": "disconnect"}]:
        events = wire.events(respond(**script("a b c", **more)))
        equal((events[-1].type, events[-1].response.status), ("response.failed", "failed"), "last event")
        equal(events[-1].response.error.code, "server_error", "error code")


# The client's own helpers


@case
def chat_helpers():
    """chat create, stream, parse and the stream helper work"""
    answer = client.chat.completions.create(model=MODEL, messages=MESSAGES, extra_body=script(SENTENCE))
    equal(answer.choices[0].message.content, SENTENCE, "text")
    chunks = client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, extra_body=script(SENTENCE))
    equal("".join(c.choices[0].delta.content or "" for c in chunks), SENTENCE, "text of the stream")
    parsed = client.chat.completions.parse(
        model=MODEL, messages=MESSAGES, response_format=Weather, extra_body=script('{"city": "Bern", "celsius": 3}')
    )
    equal(parsed.choices[0].message.parsed, Weather(city="Bern", celsius=3), "parsed object")
    with client.chat.completions.stream(
        model=MODEL,
        messages=MESSAGES,
        tools=[openai.pydantic_function_tool(Weather)],
        extra_body=script('<tool_call>\n{"name": "Weather", "arguments": {"city": "Bern", "celsius": 3}}\n</tool_call>'),
    ) as stream:
        kinds = {event.type for event in stream}
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    check("tool_calls.function.arguments.delta" in kinds, f"no fragments among {kinds}")
    equal(call.function.parsed_arguments, Weather(city="Bern", celsius=3), "parsed arguments")


@case
def response_helpers():
    """responses create, stream, parse and the stream helper work"""
    answer = client.responses.create(model=MODEL, input="Hello", extra_body=script(SENTENCE))
    equal(answer.output_text, SENTENCE, "text")
    parsed = client.responses.parse(
        model=MODEL, input="Hello", text_format=Weather, extra_body=script('{"city": "Bern", "celsius": 3}')
    )
    equal(parsed.output_parsed, Weather(city="Bern", celsius=3), "parsed object")
    with client.responses.stream(model=MODEL, input="Hello", tools=[TOOL], extra_body=script(MIXED)) as stream:
        told = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    equal(told, SENTENCE, "text of the stream")
    equal(final.output_text, SENTENCE, "text of the final response")
    equal(final.status, "completed", "status")


@case
def tool_round_trip():
    """a function call and its result go round, on chat and on responses"""
    first = client.responses.create(model=MODEL, input="Weather?", tools=[TOOL], extra_body=script(MIXED))
    calls = [item for item in first.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": c.call_id, "output": "3 °C"} for c in calls]
    history = [{"role": "user", "content": "Weather?"}, *first.output, *results]
    second = client.responses.create(model=MODEL, input=history, tools=[TOOL], extra_body=script("Cold."))
    equal(second.output_text, "Cold.", "text")

    first = client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=[CHAT_TOOL], extra_body=script(MIXED))
    message = first.choices[0].message
    results = [{"role": "tool", "tool_call_id": c.id, "content": "3 °C"} for c in message.tool_calls]
    second = client.chat.completions.create(
        model=MODEL, messages=[*MESSAGES, message, *results], tools=[CHAT_TOOL], extra_body=script("Cold.")
    )
    equal(second.choices[0].message.content, "Cold.", "text")


@case
def asynchronous_client():
    """the asynchronous client reads many streams at once"""

    async def one(asynchronous, number):
        text = f"{number}: {SENTENCE}"
        stream = await asynchronous.responses.create(
            model=MODEL, input="Hello", stream=True, extra_body=script(text)
        )
        told = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        equal("".join(told), text, "text of the stream")

    async def all_of_them():
        async with AsyncOpenAI(base_url=BASE_URL, api_key="unused", max_retries=0) as asynchronous:
            await asyncio.gather(*(one(asynchronous, number) for number in range(16)))

    asyncio.run(all_of_them())


@case
def errors():
    """errors have their classes, with param and code"""
    for kind, param, call in [
        (openai.NotFoundError, "model", lambda: client.responses.create(model="none", input="Hello")),
        (openai.BadRequestError, "temperature", lambda: client.responses.create(model=MODEL, input="a", temperature=9)),
        (openai.BadRequestError, "tools", lambda: client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=[])),
        (openai.NotFoundError, "response_id", lambda: client.responses.retrieve("resp_none")),
    ]:
        try:
            call()
        except kind as error:
            equal((error.param, error.code), (param, str(error.status_code)), "param and code")
        else:
            raise Fault(f"no {kind.__name__} for {param}")


@case
def models():
    """models are listed"""
    equal([card.id for card in client.models.list()], [MODEL], "models")


run_cases()
