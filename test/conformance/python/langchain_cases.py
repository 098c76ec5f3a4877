"""LangChain's chat model for OpenAI, on /v1/responses and on /v1/chat/completions."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import BadRequestError
from pydantic import BaseModel

from casebook import BASE_URL, MODEL, SENTENCE, Fault, call_text, case, check, equal, run_cases, script

QUESTION = HumanMessage("How cold is it?")


class Weather(BaseModel):
    """The weather of a city"""

    city: str
    celsius: int


@tool
def get_celsius(city: str) -> str:
    """Temperature of a city"""
    return f"3 °C in {city}"


def chat_model(responses):
    # Streams of chat have usage when it is asked for; on responses it is always there.
    return ChatOpenAI(
        model=MODEL, base_url=BASE_URL, api_key="unused", max_retries=0, use_responses_api=responses, stream_usage=True
    )


def streamed(model, history, **more):
    whole, pieces = None, []
    for chunk in model.stream(history, **more):
        whole = chunk if whole is None else whole + chunk
        if chunk.text:
            pieces.append(chunk.text)
    return whole, pieces


def words(responses):
    answer = chat_model(responses).invoke([QUESTION], extra_body=script(f"<think>Let me see.</think>{SENTENCE}"))
    equal(answer.text, SENTENCE, "text")
    usage = answer.usage_metadata
    equal(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"], "tokens")
    equal(usage["output_token_details"]["reasoning"], 4, "reasoning tokens")
    whole, pieces = streamed(chat_model(responses), [QUESTION], extra_body=script(f"<think>Let me see.</think>{SENTENCE}"))
    equal((whole.text, "".join(pieces)), (SENTENCE, SENTENCE), "text of the stream")
    check(len(pieces) > 3, f"only {len(pieces)} pieces")
    equal(whole.usage_metadata["output_tokens"], usage["output_tokens"], "tokens of the stream")


def loop(ask):
    """Asks and runs the tools that were called, until the model calls none."""
    steps = iter([
        "<think>Two.</think>" + call_text("get_celsius", {"city": "Bern"}) + call_text("get_celsius", {"city": "Zürich"}),
        "A moment." + call_text("get_celsius", {"city": "Zug"}),
        f"<think>All there.</think>{SENTENCE}",
    ])
    history, asked = [QUESTION], []
    while True:
        answer = ask(history, extra_body=script(next(steps)))
        history.append(answer)
        if not answer.tool_calls:
            break
        for call in answer.tool_calls:
            asked.append(call["args"]["city"])
            history.append(get_celsius.invoke(call))
    equal(answer.text, SENTENCE, "text")
    equal(asked, ["Bern", "Zürich", "Zug"], "calls of the tool")


def tool_loops(responses):
    model = chat_model(responses).bind_tools([get_celsius])
    loop(model.invoke)
    loop(lambda history, **more: streamed(model, history, **more)[0])


def structured(responses):
    text = '{"city": "Bern", "celsius": 3}'
    # What is bound here belongs to the request; the parser comes behind it.
    model = chat_model(responses).model_copy(update={"extra_body": script(f"<think>JSON.</think>{text}")})
    answer = model.with_structured_output(Weather, method="json_schema").invoke([QUESTION])
    equal(answer, Weather(city="Bern", celsius=3), "parsed object")


def fails(responses):
    try:
        chat_model(responses).invoke([QUESTION], extra_body=script("x", sim_finish="none of the known"))
    except BadRequestError as error:
        equal(error.status_code, 400, "status")
        check("sim_finish" in str(error), f"message {error}")
    else:
        raise Fault("no error")


@case
def responses_words():
    """ChatOpenAI over responses answers in words with usage, streamed and not"""
    words(True)


@case
def responses_tools():
    """ChatOpenAI over responses calls tools over several steps, streamed and not"""
    tool_loops(True)


@case
def responses_structured():
    """ChatOpenAI over responses gives an object by its schema"""
    structured(True)


@case
def responses_error():
    """ChatOpenAI over responses gets an error with its status"""
    fails(True)


@case
def chat_words():
    """ChatOpenAI over chat answers in words with usage, streamed and not"""
    words(False)


@case
def chat_tools():
    """ChatOpenAI over chat calls tools over several steps, streamed and not"""
    tool_loops(False)


@case
def chat_structured():
    """ChatOpenAI over chat gives an object by its schema"""
    structured(False)


@case
def chat_error():
    """ChatOpenAI over chat gets an error with its status"""
    fails(False)


run_cases()
