/** Templates that nobody can trust: what they must not reach, and what they must not use up. */
import { describe, expect, test } from "bun:test"
import { type TemplateLimits, templateLimits } from "../../src/prompt/jinja/run"
import { compileTemplate, type TemplateVariables } from "../../src/prompt/template"

const variables: TemplateVariables = {
  s: "text",
  n: 1,
  l: [1, "a"],
  d: { k: "v", constructor: "own", __proto__: "never" },
  messages: [{ role: "user", content: "hi" }],
}

function outcome(text: string, limits: Partial<TemplateLimits> = {}, elapsed = (): number => 0): string {
  const clock = { now: () => new Date(0), elapsed }
  const template = compileTemplate(text, { clock, limits: { ...templateLimits, ...limits } })
  if (!template.ok) return `unreadable: ${template.error.message}`
  const rendered = template.value.render(variables)
  return rendered.ok ? `rendered: ${rendered.value}` : `refused: ${rendered.error.message}`
}

describe("nothing of JavaScript is reached", () => {
  const objects = [
    "s",
    "n",
    "l",
    "d",
    "messages",
    "s.upper",
    "d.items",
    "namespace",
    "range",
    "dict",
    "cycler('a')",
    "l[0]",
  ]
  const names = [
    "constructor",
    "__proto__",
    "prototype",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "call",
    "apply",
    "bind",
    "map",
    "push",
    "length",
  ]

  for (const object of objects) {
    test(`from ${object}: no property of its object is an attribute or an item`, () => {
      for (const name of names) {
        if (object === "d" && name === "constructor") continue
        expect([
          name,
          outcome(`{{ (${object}).${name} is undefined }}{{ (${object})['${name}'] is undefined }}`),
        ]).toEqual([name, "rendered: TrueTrue"])
      }
    })
  }

  test("a key of that name is only the client's value", () => {
    expect(outcome("{{ d.constructor }}{{ d['constructor'] }}")).toBe("rendered: ownown")
    expect(outcome("{{ d.constructor.constructor is undefined }}")).toBe("rendered: True")
    expect(outcome("{{ d.constructor('return 1')() }}")).toBe("refused: 'str' object is not callable")
  })

  test("names are the template's variables and globals, not the runtime's", () => {
    for (const name of [
      "globalThis",
      "process",
      "Bun",
      "require",
      "console",
      "Function",
      "eval",
      "undefined",
      "this",
    ]) {
      expect([name, outcome(`{{ ${name} is defined }}`)]).toEqual([name, "rendered: False"])
    }
  })

  test("formats, filters and keyword arguments take no other way in", () => {
    expect(outcome("{{ '{0.constructor}'.format(s) }}")).toBe("rendered: ")
    expect(outcome("{{ '{0[constructor]}'.format(l) }}")).toBe("rendered: ")
    expect(outcome("{{ s | attr('constructor') is undefined }}")).toBe("rendered: True")
    expect(outcome("{{ messages | map(attribute='constructor.name') | list }}")).toBe("refused: a value is undefined")
    expect(outcome("{{ [s] | map('constructor') | list }}")).toBe("refused: No filter named 'constructor'.")
    expect(outcome("{{ [s] | select('__proto__') | list }}")).toBe("refused: No test named '__proto__'.")
    expect(outcome("{{ dict(__proto__=1).__proto__ is undefined }}{{ dict(__proto__=1)['__proto__'] }}")).toBe(
      "rendered: True1",
    )
    expect(
      outcome("{% set ns = namespace() %}{% set ns.toString = 1 %}{{ ns.toString }}{{ ns.valueOf is undefined }}"),
    ).toBe("rendered: 1True")
  })
})

describe("the classic ways out of Python's sandboxes end as there", () => {
  const escapes = {
    "classes of a literal": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "classes by item": "{{ ''['__class__']['__mro__'] }}",
    "classes by filter": "{{ (() | attr('__class__')).__base__ }}",
    "classes in a format": "{{ '{0.__class__.__mro__}'.format('') }}",
    "classes in a mapped format": "{{ '{x.__class__.__init__}'.format_map({'x': ''}) }}",
    "globals of a function": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "globals of a global": "{{ namespace.__init__.__globals__ }}",
    "globals of a macro": "{% macro m() %}{% endmacro %}{{ m.__globals__.x }}",
    "the loop's frame": "{% for i in [1] %}{{ loop.__class__.__init__ }}{% endfor %}",
    "a generator's frame": "{{ ([1] | map('int')).gi_frame.f_globals }}",
    "the environment": "{{ self.__init__.__globals__ }}",
    "a changed list": "{{ l.append(1) }}",
    "a changed dictionary": "{{ d.update({'k': 1}) }}",
    "an inner name on a namespace": "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
    "another template": "{% include '/etc/passwd' %}",
    "an import": "{% from 'os' import system %}{{ system('id') }}",
    "an undefined call": "{{ lipsum.__globals__['os'].popen('id') }}",
  }
  for (const [way, text] of Object.entries(escapes)) {
    test(way, () => {
      expect(outcome(text)).toStartWith("refused: ")
      expect(variables).toMatchObject({ l: [1, "a"], d: { k: "v" } })
    })
  }
})

describe("a rendering is bounded", () => {
  const manyLoops = `${"{% for i in range(100) %}".repeat(5)}${"{% endfor %}".repeat(5)}`

  test("in steps: loops, recursion through filters and shared lists", () => {
    expect(outcome(manyLoops, { stepsMax: 10_000 })).toBe("refused: the template takes too many steps")
    expect(outcome("{{ range(100000) | map('string') | list | length }}", { stepsMax: 10_000 })).toBe(
      "refused: the template takes too many steps",
    )
    expect(outcome("{{ s | length }}".repeat(6_000), { stepsMax: 10_000 })).toBe(
      "refused: the template takes too many steps",
    )
    expect(outcome(`{{ ${"s.upper() ~ ".repeat(600)} s }}`, { stepsMax: 500 })).toBe(
      "refused: the template takes too many steps",
    )
    const doubling =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}"
    for (const use of [
      "{{ ns.a }}",
      "{{ ns.a | tojson }}",
      "{{ ns.a == ns.b }}",
      "{{ ns.a in [ns.b] }}",
      "{{ [ns.a, ns.b] | sort }}",
      "{{ ns.a | string }}",
    ]) {
      expect([use, outcome(doubling + use, { stepsMax: 100_000 })]).toEqual([use, expect.stringContaining("refused: ")])
    }
  })

  test("in time, which is looked at while it works", () => {
    let now = 0
    const elapsed = (): number => {
      now += 100
      return now
    }
    expect(outcome(manyLoops, { millisecondsMax: 1_000 }, elapsed)).toBe("refused: the template takes too long")
  })

  test("in text: what it prints, joins, pads, repeats and replaces", () => {
    const limits = { textUnitsMax: 100_000, builtUnitsMax: 1_000_000 }
    const much = "refused: the template builds too much text"
    for (const text of [
      "{% for i in range(90000) %}{{ s }}{% endfor %}",
      "{{ s * 100000 }}",
      "{{ [s] * 10000000 }}",
      "{{ s.center(1000000) }}",
      "{{ s.ljust(10 ** 12) }}",
      "{{ '%1000000d' % 1 }}",
      "{{ '{:>1000000}'.format(1) }}",
      "{{ s | indent(1000000) }}",
      "{{ ('a' * 9000).replace('a', 'b' * 90) }}",
      "{{ (['a' * 9000] * 90) | join('-') }}",
      "{% set ns = namespace(t='ab') %}{% for i in range(40) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
      "{% set ns = namespace(t='ab') %}{% for i in range(40) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
      "{{ (['a' * 9000] * 900) | tojson }}",
      "{{ ['a' * 9000] * 900 }}",
    ]) {
      expect([text, outcome(text, limits)]).toEqual([text, much])
    }
    expect(outcome("{{ 10 ** (10 ** 10) }}", limits)).toBe("refused: the exponent is too large")
    expect(outcome("{{ range(100001) }}", limits)).toContain("refused: Range too big")
  })

  test("in what one operation goes through: nothing looks at the clock inside it", () => {
    const doubling = (from: string, step: string): string =>
      `{% set ns = namespace(a=${from}) %}{% for i in range(60) %}{% set ns.a = ${step} %}{% endfor %}`
    const cases: readonly (readonly [string, string])[] = [
      ["{{ ('a' * 1000000) | wordwrap(1) | length }}", "rendered: 1999999"],
      ["{{ ('a-' * 500000) | wordwrap(3) | length }}", "rendered: 1499998"],
      ["{{ ('-' * 1000000) | wordwrap(5) | length }}", "rendered: 1199999"],
      ["{{ '{:010000000,}'.format(1) | length }}", "rendered: 10000001"],
      [`${doubling("[1]", "[ns.a, ns.a]")}{{ ns.a | pprint }}`, "refused: the template takes too many steps"],
      [`${doubling("(1,)", "(ns.a, ns.a)")}{{ ns.a | pprint }}`, "refused: the template takes too many steps"],
      [
        "{{ ('a' * 4000000).find('a' * 2000000 ~ 'b`') }}",
        "refused: the template searches too long a text for too long a text",
      ],
      [
        "{{ 'a' * 2000000 ~ 'b`' in 'a' * 4000000 }}",
        "refused: the template searches too long a text for too long a text",
      ],
      [
        "{{ ('a' * 4000000) | replace('a' * 2000000 ~ 'b`', '') }}",
        "refused: the template searches too long a text for too long a text",
      ],
      ["{{ ('1' * 500000 ~ 'x') | float }}", "rendered: 0.0"],
      ["{{ ('9' * 2000000) | int }}", "rendered: 0"],
      ["{{ '{:.1000000f}'.format(0.1) | length }}", "rendered: 1000002"],
      [`${doubling("10 ** 4000", "ns.a * ns.a")}{{ ns.a % 7 }}`, "refused: the integer is too large"],
      ["{{ 10 ** 20000 % 7 }}", "refused: the exponent is too large"],
      [
        "{% set a = dict.fromkeys(range(40000)) %}{% set b = dict.fromkeys(range(40001, 80001)) %}{{ a.items() == b.items() }}",
        "rendered: False",
      ],
    ]
    for (const [text, expected] of cases)
      expect([text, outcome(text, { stepsMax: 2_000_000 })]).toEqual([text, expected])
  })

  test("in time also where each step is long", () => {
    let looks = 0
    const elapsed = (): number => {
      looks += 1
      return looks * 100
    }
    for (const long of [
      "{% set x = s | trim %}",
      "{% set x = s.upper() %}",
      "{% set x = s[::-1] %}",
      "{% set x = 'b' in s %}",
      "{% set x = s == s ~ '' %}",
      "{% set x = s < s ~ 'b' %}",
      "{% set x = s is upper %}",
      "{% set x = 'x' in l %}",
      "{% set x = l.index(1) %}",
      "{% set x = l[1:] %}",
      "{% set x = d.copy() %}",
      "{% set x = d.items() | list %}",
      "{% set x = s[0] %}",
    ]) {
      looks = 0
      const made = `{% set s = '🚀' * 50000 %}{% set l = [0] * 70000 + [1] %}{% set d = dict.fromkeys(range(70000)) %}`
      const text = `${made}{% for i in range(200) %}${long}{% endfor %}`
      const outcomeOf = outcome(text, { millisecondsMax: 10_000, builtUnitsMax: 2 ** 40 }, elapsed)
      expect([long, outcomeOf]).toEqual([long, "refused: the template takes too long"])
    }
  })

  test("in lists: copies, and texts and dictionaries taken apart", () => {
    const much = "refused: the template builds too much text"
    for (const text of [
      "{% set l = [0] * 20000 %}{% for i in range(50) %}{% set x = l | list %}{% endfor %}",
      "{% set l = [0] * 20000 %}{% for i in range(50) %}{% set x = l.copy() %}{% endfor %}",
      "{% set d = dict.fromkeys(range(20000)) %}{% for i in range(50) %}{% set x = dict(d, a=i) %}{% endfor %}",
      "{% set s = 'a' * 20000 %}{% for i in range(50) %}{% set x = s | list %}{% endfor %}",
      "{% set s = 'a ' * 20000 %}{% for i in range(50) %}{% set x = s.split() %}{% endfor %}",
      "{% set s = 'a' * 90000 %}{% for i in range(50) %}{% set x = s | upper %}{% endfor %}",
      "{% set s = 'a' * 30000 %}{{ s | reverse }}",
    ]) {
      expect([text, outcome(text, { textUnitsMax: 100_000, builtUnitsMax: 1_000_000 })]).toEqual([text, much])
    }
  })

  test("in depth: macros, callers, loops, and the template itself", () => {
    const deep = "refused: the template's calls nest too deeply"
    expect(outcome("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")).toBe(deep)
    expect(
      outcome(
        "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
      ),
    ).toBe(deep)
    expect(outcome("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}")).toBe(deep)
    expect(outcome("{% block b %}{{ self.b() }}{% endblock %}")).toBe(deep)
    const nested =
      "{% set ns = namespace(a=1) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}"
    expect(outcome(nested)).toStartWith("refused: ")
    for (const text of [
      `{{ ${"(".repeat(5_000)}1${")".repeat(5_000)} }}`,
      `${"{% if 1 %}".repeat(5_000)}`,
      `{{ ${"not ".repeat(5_000)}1 }}`,
      `{{ ${"-".repeat(5_000)}1 }}`,
      `{{ ${"[".repeat(5_000)} }}`,
    ]) {
      expect(outcome(text)).toStartWith("unreadable: ")
    }
  })

  test("in what reading it costs: nothing grows with the square of its length", () => {
    const branches = Array.from({ length: 3_000 }, (_, i) => `{% if a %}{% set v${i} = 1 %}{% endif %}`).join("")
    expect(outcome(branches)).toBe("rendered: ")
    expect(outcome("x".repeat(256 * 1024 + 1))).toContain("the template is too long")
    expect(outcome(`{{ 1${" + 1".repeat(60_000)} }}`)).toStartWith("unreadable: ")
    expect(outcome("{{ '%(' * 500000 % {} }}")).toBe("refused: incomplete format key")
    expect(outcome(`{{ '${"a".repeat(250_000)}' | length }}`)).toBe("rendered: 250000")
  })

  test("and what real templates need is far below", () => {
    const long = `{% for i in range(2000) %}{{ i }} {{ s | upper }} {{ d | tojson }}{% endfor %}`
    expect(outcome(long, { stepsMax: 20_000 })).toStartWith("rendered: ")
  })
})
