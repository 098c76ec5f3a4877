import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseJsonText } from "../../src/http/json-text"
import {
  type ChatTemplate,
  chooseTemplate,
  compileTemplate,
  type TemplateRefused,
  type TemplateVariables,
} from "../../src/prompt/template"
import type { Result } from "../../src/result"

/** 2026-03-05, 14:07:09, whatever the time zone: templates see local time. */
const now = (): Date => new Date(2026, 2, 5, 14, 7, 9)

function compiled(text: string): ChatTemplate {
  const template = compileTemplate(text, { clock: { now, elapsed: () => 0 } })
  if (!template.ok) throw new Error(template.error.message)
  return template.value
}

function rendered(text: string, variables: TemplateVariables = {}): Result<string, TemplateRefused> {
  return compiled(text).render(variables)
}

function refusal(text: string, variables: TemplateVariables = {}): string {
  const result = rendered(text, variables)
  return result.ok ? `rendered ${result.value}` : result.error.message
}

describe("rendering", () => {
  test("follows trim_blocks and lstrip_blocks, whatever the line ends", () => {
    const text = "a\r\n  {% if true %}\r\nb\r\n  {% endif %}\r\n {# c #}\nd {% generation %}\ne{% endgeneration %}\n"
    expect(rendered(text)).toEqual({ ok: true, value: "a\nb\nd e" })
  })

  test("writes JSON as the reference does", () => {
    const variables = { x: { ü: "<b>&'\"</b>", n: [1, 2.5, 1e-7, 1e16, 2n ** 60n, null, true, {}], z: { a: [] } } }
    expect(rendered("{{ x | tojson }}", variables)).toEqual({
      ok: true,
      value: `{"ü": "<b>&'\\"</b>", "n": [1, 2.5, 1e-07, 10000000000000000, 1152921504606846976, null, true, {}], "z": {"a": []}}`,
    })
    expect(rendered("{{ {'b': 1, 'a': [1, 'ü']} | tojson(indent=2, sort_keys=true, ensure_ascii=true) }}")).toEqual({
      ok: true,
      value: '{\n  "a": [\n    1,\n    "\\u00fc"\n  ],\n  "b": 1\n}',
    })
    expect(rendered("{{ [1, {'a': 2}] | tojson(separators=(',', ':')) }}")).toEqual({ ok: true, value: '[1,{"a":2}]' })
  })

  test("prints values as Python does", () => {
    const variables = { x: ["it's", 'q"', null, true, 1.5, "\n"], n: 2n ** 60n }
    expect(
      rendered("{{ x }} {{ none }} {{ 3 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ n + 1 }} {{ 2 ** 70 }}", variables),
    ).toEqual({
      ok: true,
      value: `["it's", 'q"', None, True, 1.5, '\\n'] None 1.5 -4 2 1152921504606846977 1180591620717411303424`,
    })
  })

  test("keeps what a loop sets inside the round, and stops where it is told", () => {
    const text =
      "{% set n = namespace(x=0) %}{% set y = 1 %}{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{% set n.x = n.x + i %}{% set y = i %}{{ loop.index }},{% endfor %}{{ n.x }} {{ y }}"
    expect(rendered(text)).toEqual({ ok: true, value: "1,3,4,5 1" })
  })

  test("tells the time of the server", () => {
    expect(rendered("{{ strftime_now('%d %b %Y %H:%M:%S %A %j %-d %I %p %q') }}")).toEqual({
      ok: true,
      value: "05 Mar 2026 14:07:09 Thursday 064 5 02 PM %q",
    })
  })
})

describe("a template that refuses", () => {
  test("says why in its own words", () => {
    expect(rendered("{{ raise_exception('Roles must alternate!') }}")).toEqual({
      ok: false,
      error: { kind: "template_refused", message: "Roles must alternate!" },
    })
  })

  test("fails where Python fails", () => {
    expect(refusal("{{ 'a' + 1 }}")).toBe('can only concatenate str (not "int") to str')
    expect(refusal("{{ 'a' + x }}", { x: [] })).toBe('can only concatenate str (not "list") to str')
    expect(refusal("{{ x.y.z }}", { x: {} })).toBe("'dict object' has no attribute 'y'")
    expect(refusal("{{ x.y }}")).toBe("'x' is undefined")
    expect(refusal("{{ x() }}")).toBe("'x' is undefined")
    expect(refusal("{% for i in 3 %}{% endfor %}")).toBe("'int' object is not iterable")
    expect(refusal("{{ nope | tojson }}")).toBe("Object of type Undefined is not JSON serializable")
    expect(refusal("{% if x is defined %}{{ 1 | nope }}{% endif %}", { x: 1 })).toBe("No filter named 'nope' found.")
    expect(refusal("{{ 1 / 0 }}")).toBe("division by zero")
  })

  test("cannot fill the memory or run for ever", () => {
    expect(refusal("{{ 'x' * 10 ** 10 }}")).toBe("the template builds too much text")
    expect(refusal("{{ range(10 ** 9) }}")).toContain("Range too big")
    expect(refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")).not.toStartWith("rendered")
    const loops = "{% for i in range(100000) %}".repeat(3) + "{% endfor %}".repeat(3)
    expect(refusal(loops)).toBe("the template takes too many steps")
  }, 60_000)

  test("that cannot be read is known at once", () => {
    const template = compileTemplate("{% if x %}")
    expect(template.ok ? "read" : template.error.kind).toBe("template_unusable")
  })
})

describe("what a template wants", () => {
  test("is its parts where it loops over a message's content, else one text", () => {
    // Answers of vLLM 0.32.0's `_detect_content_format`.
    const cases: readonly (readonly [string, "openai" | "string"])[] = [
      ["{% for m in messages %}{{ m.content }}{% endfor %}", "string"],
      ["{% for m in messages %}{% for p in m['content'] %}{% endfor %}{% endfor %}", "openai"],
      ["{% set l = messages[1:] %}{% for m in l %}{% for p in m.content | list %}{% endfor %}{% endfor %}", "openai"],
      ["{% for m in messages %}{% set c = m.content %}{% for p in c %}{% endfor %}{% endfor %}", "string"],
      ["{% for m in messages %}{% set content = m.content %}{% for p in content %}{% endfor %}{% endfor %}", "openai"],
      ["{% for p in content %}{% endfor %}", "openai"],
      ["{% for p in messages[0].content %}{% endfor %}", "string"],
      ["{% for t in tools %}{% for p in t.content %}{% endfor %}{% endfor %}", "string"],
      [
        "{% macro f(x) %}{% for p in x %}{% endfor %}{% endmacro %}{% for m in messages %}{{ f(m.content) }}{% endfor %}",
        "openai",
      ],
      [
        "{% macro f(y, x) %}{% for p in x %}{% endfor %}{% endmacro %}{% for m in messages %}{{ f(1, x=m.content | trim) }}{% endfor %}",
        "openai",
      ],
      [
        "{% macro f(y, x) %}{% for p in x %}{% endfor %}{% endmacro %}{% for m in messages %}{{ f(m.content, 1) }}{% endfor %}",
        "string",
      ],
      ["{% macro f(content) %}{% for p in content %}{% endfor %}{% endmacro %}{{ f(messages[0].content) }}", "string"],
    ]
    for (const [text, format] of cases) expect([text, compiled(text).contentFormat]).toEqual([text, format])
  })

  test("is told by the names it reads", () => {
    const template = compiled("{% if enable_thinking is defined %}{{ x.tools }}{{ f(y=z) }}{% endif %}")
    expect(["enable_thinking", "x", "z", "tools", "messages"].map((name) => template.reads(name))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
  })

  test("is the developer role only where its text quotes it", () => {
    expect(compiled("{{ 'developer' }}").knowsDeveloper).toBe(true)
    expect(compiled("developer").knowsDeveloper).toBe(false)
  })
})

test("the request's template wins, then tool_use when there are tools, then default, then the only one", () => {
  const both = { default: "d", tool_use: "t" }
  expect(chooseTemplate(both, "r", true)).toBe("r")
  expect(chooseTemplate(both, null, true)).toBe("t")
  expect(chooseTemplate(both, null, false)).toBe("d")
  expect(chooseTemplate({ rag: "g" }, null, true)).toBe("g")
  expect(chooseTemplate({}, null, false)).toBeNull()
})

/** Cases made with the reference itself: exact texts, or that it fails. */
const root = join(import.meta.dir, "../../../shared/cases")
const files = ["template-probes.jsonl", "templates.jsonl"]
const present = files.every((file) => existsSync(join(root, file)))

interface Case {
  readonly id: string
  readonly input: {
    readonly template?: string
    readonly template_file?: string
    readonly context_json?: string
    readonly context_file?: string
  }
  readonly expected: { readonly output?: string }
}

function readCase(line: string): Case {
  // The files are made by a script and have this shape.
  return JSON.parse(line) as Case
}

/** A context with all that JSON can tell: exact integers, 14.0 as a float, keys in their order. */
function exactContext(text: string): TemplateVariables {
  const parsed = parseJsonText(text, 64)
  if (!parsed.ok) throw new Error(parsed.error.message)
  // The files hold objects.
  return parsed.value as TemplateVariables
}

describe.skipIf(!present)("the reference's own output", () => {
  test("is there to compare with", () => {
    expect(present).toBe(true)
  })
  const cases = present
    ? files.flatMap((file) => readFileSync(join(root, file), "utf8").trim().split("\n")).map(readCase)
    : []
  for (const { id, input, expected } of cases) {
    test(id, () => {
      const text = input.template ?? readFileSync(join(root, input.template_file ?? ""), "utf8")
      const context = input.context_json ?? readFileSync(join(root, input.context_file ?? ""), "utf8")
      const template = compileTemplate(text, { clock: { now, elapsed: () => 0 } })
      const result = template.ok ? template.value.render(exactContext(context)) : template
      if (expected.output === undefined) expect(result.ok).toBe(false)
      else expect(result).toEqual({ ok: true, value: expected.output })
    })
  }
})
