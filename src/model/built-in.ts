import type { ModelProfile } from "./profile"

/**
 * The chat template of the built-in profile: ChatML with tools in the system turn, calls and their results in Hermes
 * style, and reasoning shown only since the last question. It never opens `<think>` itself; with `enable_thinking`
 * false it adds an empty block, which tells the model that thinking is over.
 */
const chatTemplate = `{#- The system turn: the client's own text, then the tools. -#}
{%- set system = messages[0].content if messages and messages[0].role == 'system' else '' %}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if system %}
        {{- system ~ '\\n\\n' }}
    {%- endif %}
    {{- 'You can call functions. These are the ones you have, each as a JSON schema:\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' ~ tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools>\\n\\nTo call one, write its name and its arguments as a JSON object between these tags, one pair of tags for each call:\\n' }}
    {{- '<tool_call>\\n{"name": "the function", "arguments": {"parameter": "value"}}\\n</tool_call><|im_end|>\\n' }}
{%- elif system %}
    {{- '<|im_start|>system\\n' ~ system ~ '<|im_end|>\\n' }}
{%- endif %}
{#- Where the last question stands: reasoning before it is not repeated. -#}
{%- set question = namespace(index=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- set question.index = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if loop.first and message.role == 'system' %}
        {%- continue %}
    {%- endif %}
    {%- set content = '' if message.content is none else message.content %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content and loop.index0 > question.index %}
            {{- '<think>\\n' ~ message.reasoning_content ~ '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- content }}
        {%- for call in message.tool_calls %}
            {%- if content or not loop.first %}
                {{- '\\n' }}
            {%- endif %}
            {{- '<tool_call>\\n{"name": ' ~ call.function.name | tojson ~ ', "arguments": ' ~ call.function.arguments | tojson ~ '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {#- Results that follow each other share one turn of the user. -#}
        {%- if loop.first or loop.previtem.role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' ~ content ~ '\\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' ~ message.role ~ '\\n' ~ content ~ '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
`

/** Name of the model that is served when the user names none. */
export const builtInModelName = "sluice-simulator"

/**
 * The profile served when no model is given: o200k_base ranks with ChatML tokens beside them. `<think>` and
 * `<tool_call>` are not special, so that they reach clients' text where no parser takes them out.
 */
export function builtInProfile(): ModelProfile {
  return {
    name: builtInModelName,
    root: builtInModelName,
    tokenizer: {
      kind: "o200k",
      specialTokens: { "<|endoftext|>": 199_999, "<|im_start|>": 200_019, "<|im_end|>": 200_020 },
      addedTokens: { "<think>": 200_021, "</think>": 200_022, "<tool_call>": 200_023, "</tool_call>": 200_024 },
    },
    tokenizerMode: "hf",
    chatTemplates: { default: chatTemplate },
    specialTokens: { eos_token: "<|im_end|>", pad_token: "<|endoftext|>" },
    eosToken: "<|im_end|>",
    eosTokenIds: [200_020, 199_999],
    contextTokensMax: 131_072,
    samplingDefaults: {},
    modelType: "sluice_simulator",
    architectures: [],
    isMixtureOfExperts: false,
  }
}
