"""The Agents SDK for Python: its loop over function tools, on /v1/responses and on /v1/chat/completions."""

import asyncio

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)
from openai import AsyncOpenAI

from casebook import BASE_URL, MODEL, SENTENCE, call_text, case, check, equal, run_cases, script

QUESTION = "How cold is it?"
# Two calls at once, one more, then words.
STEPS = [
    "<think>Two cities.</think>" + call_text("get_celsius", {"city": "Bern"}) + call_text("get_celsius", {"city": "Zürich"}),
    "<think>One is missing.</think>A moment." + call_text("get_celsius", {"city": "Zug"}),
    f"<think>All there.</think>{SENTENCE}",
]


class Scripted:
    """Goes before a model of the SDK: the settings of each request carry the next script."""

    def __init__(self, client):
        super().__init__(model=MODEL, openai_client=client)
        self.inputs = []

    def _scripted(self, input, model_settings):
        more = ModelSettings(extra_body=script(STEPS[len(self.inputs)]))
        self.inputs.append(input)
        return model_settings.resolve(more)

    async def get_response(self, system_instructions, input, model_settings, *rest, **named):
        settings = self._scripted(input, model_settings)
        return await super().get_response(system_instructions, input, settings, *rest, **named)

    async def stream_response(self, system_instructions, input, model_settings, *rest, **named):
        settings = self._scripted(input, model_settings)
        async for event in super().stream_response(system_instructions, input, settings, *rest, **named):
            yield event


class ScriptedResponses(Scripted, OpenAIResponsesModel):
    pass


class ScriptedChat(Scripted, OpenAIChatCompletionsModel):
    pass


def weather_agent(model, asked):
    @function_tool
    def get_celsius(city: str) -> str:
        """Temperature of a city"""
        asked.append(city)
        return f"3 °C in {city}"

    return Agent(name="Weather", instructions="Be brief.", model=model, tools=[get_celsius])


# The SDK reports each run to a service of its own unless tracing is off.
SETTINGS = RunConfig(tracing_disabled=True)


async def runs(kind):
    async with AsyncOpenAI(base_url=BASE_URL, api_key="unused", max_retries=0) as client:
        model, asked = kind(client), []
        run = await Runner.run(weather_agent(model, asked), QUESTION, run_config=SETTINGS)
        equal(run.final_output, SENTENCE, "final output")
        equal(sorted(asked), ["Bern", "Zug", "Zürich"], "calls of the tool")
        equal(len(model.inputs), 3, "requests")
        outputs = [item["output"] for item in model.inputs[2] if item.get("type") == "function_call_output"]
        equal(sorted(outputs), [f"3 °C in {city}" for city in sorted(asked)], "outputs that went back")
        usage = run.context_wrapper.usage
        equal((usage.requests, usage.total_tokens), (3, usage.input_tokens + usage.output_tokens), "usage")


async def streams(kind):
    async with AsyncOpenAI(base_url=BASE_URL, api_key="unused", max_retries=0) as client:
        model, asked = kind(client), []
        run = Runner.run_streamed(weather_agent(model, asked), QUESTION, run_config=SETTINGS)
        told, items = [], []
        async for event in run.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                told.append(event.data.delta)
            if event.type == "run_item_stream_event":
                items.append(event.name)
        equal(run.final_output, SENTENCE, "final output")
        equal("".join(told), f"A moment.{SENTENCE}", "text of the stream")
        check(len(told) > 5, f"only {len(told)} pieces")
        equal((items.count("tool_called"), items.count("tool_output")), (3, 3), "calls and outputs told")
        equal(sorted(asked), ["Bern", "Zug", "Zürich"], "calls of the tool")


@case
def responses_loop():
    """an agent over responses calls its tools until the model answers in words"""
    asyncio.run(runs(ScriptedResponses))


@case
def responses_streamed_loop():
    """an agent over responses does the same streamed"""
    asyncio.run(streams(ScriptedResponses))


@case
def chat_loop():
    """an agent over chat calls its tools until the model answers in words"""
    asyncio.run(runs(ScriptedChat))


@case
def chat_streamed_loop():
    """an agent over chat does the same streamed"""
    asyncio.run(streams(ScriptedChat))


run_cases()
