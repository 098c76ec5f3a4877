/**
 * Random templates by Jinja's grammar, mostly with the kinds of values that an operation takes, so that most of them
 * render; now and then with any, so that errors are compared as well. A seed decides everything.
 */
import { RandomChoices, seededRandom } from "../support/random"

/** One template with the JSON text of its variables. */
export interface RandomTemplate {
  readonly template: string
  readonly context: string
}

/** The template of a seed. */
export function randomTemplate(seed: number): RandomTemplate {
  return new Author(seededRandom(seed)).write()
}

type Kind = "text" | "integer" | "float" | "boolean" | "list" | "texts" | "dictionary" | "any"

const kinds: readonly Kind[] = ["text", "integer", "float", "boolean", "list", "texts", "dictionary"]

/** Variables and the kinds of their values; `context` gives them. */
const names: { readonly [kind in Kind]: readonly string[] } = {
  text: ["s", "t", "d.s", "messages[0].role", "messages[1]['content']"],
  integer: ["n", "m", "d.n", "big"],
  float: ["f", "d['f']"],
  boolean: ["b", "d.b"],
  list: ["l", "messages", "d.l"],
  texts: ["ts", "d['ts']"],
  dictionary: ["d", "e", "messages[0]", "messages | last"],
  any: ["x", "none", "nope", "d.nope", "d.none", "loop.index", "loop.last", "messages[-1].tool_calls", "range(3)"],
}

const texts = [
  "'a'",
  "'Ab c'",
  "''",
  "'  x y '",
  "'a,b,,c'",
  "'é漢🚀z'",
  "'one\\ntwo\\r\\nthree'",
  "'<b>&\"q\"'",
  "'12'",
  "'-3.5'",
  "'straße'",
  "'%s-%d'",
  "'{}:{0}'",
  '"it\'s"',
  "'x=1'",
]

class Author extends RandomChoices {
  private loops = 0
  private made = 0

  write(): RandomTemplate {
    const statements = Array.from({ length: 1 + this.below(4) }, () => this.statement(3))
    return { template: statements.join(""), context: this.context() }
  }

  private context(): string {
    const value = (): string =>
      this.pick(["1", "0", "-7", "14.0", "2.50", '"q"', '""', "null", "true", "[]", "{}", "[1,2]"])
    const entry = (key: string, json: string): string => `${JSON.stringify(key)}: ${json}`
    const text = (): string =>
      this.pick(['"ab cd"', '"Ünï 漢🚀"', '"  pad\\n"', '"<x>&\'"', '""', '"a.b.c"', '"UPPER"', '"1e3"'])
    const list = (): string => `[${Array.from({ length: this.below(4) }, value).join(", ")}]`
    const listOfTexts = (): string => `[${Array.from({ length: this.below(4) }, text).join(", ")}]`
    const keys = ["k", "2", "1", "get", "items", "a b", "é"]
    const dictionary = (...extra: readonly string[]): string =>
      `{${[...extra, ...keys.filter(() => this.chance(0.4)).map((key) => entry(key, value()))].join(", ")}}`
    const message = (role: string): string =>
      dictionary(entry("role", JSON.stringify(role)), entry("content", this.chance(0.8) ? text() : "null"))
    return `{${[
      entry("s", text()),
      entry("t", text()),
      entry("n", String(this.below(20) - 5)),
      entry("m", String(this.below(4))),
      entry("big", this.pick(["9007199254740993", "-12345678901234567890", "3"])),
      entry("f", this.pick(["1.5", "14.0", "-0.25", "1e22", "2.675", "1e-7", "-0.0"])),
      entry("b", this.pick(["true", "false"])),
      entry("l", list()),
      entry("ts", listOfTexts()),
      entry("x", value()),
      entry("e", dictionary()),
      entry(
        "d",
        dictionary(
          entry("s", text()),
          entry("n", "3"),
          entry("f", "0.1"),
          entry("b", "true"),
          entry("l", list()),
          entry("ts", listOfTexts()),
          entry("none", "null"),
        ),
      ),
      entry("messages", `[${["system", "user", "assistant"].map(message).join(", ")}]`),
    ].join(", ")}}`
  }

  private open(): string {
    return this.pick(["{%", "{%", "{%", "{%-", "{%+"])
  }

  private close(): string {
    return this.pick(["%}", "%}", "%}", "-%}", "+%}"])
  }

  private tag(inside: string): string {
    return `${this.open()} ${inside} ${this.close()}`
  }

  private data(): string {
    return this.pick(["\n", " ", "a", "  b\n", "\n\n", "<|x|>", "\t", "{", "}", "c \n  ", "é\r\n", "", " %} ", "# "])
  }

  private body(depth: number): string {
    return Array.from({ length: 1 + this.below(3) }, () => this.statement(depth - 1)).join("")
  }

  private freshName(): string {
    return this.pick(["s", "t", "n", "x", "y", "z", "l", `v${this.made++ % 3}`])
  }

  private statement(depth: number): string {
    if (depth <= 0 || this.chance(0.3)) return this.chance(0.3) ? this.data() : this.print(depth)
    switch (this.below(16)) {
      case 0:
      case 1: {
        const more = this.chance(0.3) ? `${this.tag(`elif ${this.expression("boolean", 2)}`)}${this.body(depth)}` : ""
        const otherwise = this.chance(0.5) ? `${this.tag("else")}${this.body(depth)}` : ""
        return `${this.tag(`if ${this.expression("any", 2)}`)}${this.body(depth)}${more}${otherwise}${this.tag("endif")}`
      }
      case 2:
      case 3:
      case 4:
        return this.loop(depth)
      case 5:
      case 6:
        return this.tag(`set ${this.freshName()} = ${this.expression(this.pick(kinds), 2)}`)
      case 7:
        return `${this.tag(`set ${this.freshName()}${this.chance(0.4) ? " | upper" : ""}`)}${this.body(depth)}${this.tag("endset")}`
      case 8:
        return `${this.tag("set ns = namespace(a=1, b='q')")}${this.tag(`for i in ${this.expression("list", 1)}`)}${this.tag(`set ns.a = ${this.pick(["ns.a + 1", "i", "loop.index", "[ns.a]"])}`)}${this.tag("endfor")}{{ ns.a }}{{ ns.b }}{{ ns.nope }}`
      case 9: {
        const name = this.freshName()
        return `${this.tag(`with ${name} = ${this.expression(this.pick(kinds), 1)}, w = ${name}`)}${this.body(depth)}{{ w }}${this.tag("endwith")}`
      }
      case 10:
        return this.macro(depth)
      case 11:
        return `${this.tag(`filter ${this.pick(["upper", "trim", "indent(2)", "replace('a', 'b')", "length", "e", "upper | lower"])}`)}${this.body(depth)}${this.tag("endfilter")}`
      case 12:
        return this.pick([
          `${this.tag("raw")}{{ x }}{% y %}${this.open()} endraw ${this.close()}`,
          "{# note #}",
          "{#- note -#}\n",
          "  {# note #}\n",
          "{#+ n +#}",
        ])
      case 13:
        return this.loops > 0
          ? this.tag(`if ${this.expression("boolean", 1)}`) +
              this.tag(this.pick(["break", "continue"])) +
              this.tag("endif")
          : this.print(depth)
      case 14:
        return `${this.tag("generation")}${this.body(depth)}${this.tag("endgeneration")}`.replace(
          /\{%[-+]? (?:break|continue) [-+]?%\}/g,
          "",
        )
      default:
        return this.tag(`print ${this.expression("any", 2)}, ${this.expression("text", 1)}`)
    }
  }

  private loop(depth: number): string {
    const target = this.pick(["i", "i", "x", "s"])
    const heads = [
      `for ${target} in ${this.expression("list", 2)}`,
      `for ${target} in ${this.expression("list", 1)} if ${this.pick([target, `${target} is string`, `${target} == 1`, "b", `${target} != x`])}`,
      `for ${target} in ${this.expression("texts", 2)}`,
      "for k, v in d.items()",
      "for k, v in e | dictsort",
      "for k in e",
      "for a, b in [(1, 2), ('x', 'y')]",
      `for ${target} in range(${this.below(4)})`,
      "for m in messages",
      "for m in messages[1:] if m.content",
    ]
    if (this.chance(0.1)) {
      return `${this.tag("for i in [1, [2, [3]], []] recursive")}${this.tag("if i is iterable")}({{ loop(i) }})${this.tag("else")}{{ i }}:{{ loop.depth }}${this.tag("endif")}${this.chance(0.5) ? `${this.tag("else")}none` : ""}${this.tag("endfor")}`
    }
    this.loops += 1
    const body = this.body(depth)
    this.loops -= 1
    const tell = this.chance(0.4)
      ? `{{ loop.${this.pick(["index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem", "depth", "cycle('p', 'q')", "changed(x)"])} }}`
      : ""
    const otherwise = this.chance(0.3) ? `${this.tag("else")}${this.data()}none` : ""
    return `${this.tag(this.pick(heads))}${tell}${body}${otherwise}${this.tag("endfor")}`
  }

  private macro(depth: number): string {
    const name = `f${this.below(2)}`
    const [loops] = [this.loops]
    this.loops = 0
    const inner = this.body(depth)
    this.loops = loops
    const extra = this.pick(["", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ caller is defined }}"])
    const call = this.pick([
      `{{ ${name}(${this.expression("any", 1)}) }}`,
      `{{ ${name}(q=${this.expression("any", 1)}) }}`,
      `{{ ${name}(1, 2, 3) }}`,
      `{{ ${name}(*l) }}`,
      `{{ ${name}(**{'p': 1, 'z': 2}) }}`,
      `${this.tag(`call ${name}(1)`)}in{{ x }}${this.tag("endcall")}`,
      `{{ ${name} is callable }}{{ ${name}.arguments }}`,
    ])
    return `${this.tag(`macro ${name}(p, q=${this.expression("any", 1)})`)}{{ p }}|{{ q }}${extra}${inner}${this.tag("endmacro")}${call}`
  }

  private print(depth: number): string {
    const [begin, end] = [this.pick(["{{", "{{", "{{-"]), this.pick(["}}", "}}", "-}}"])]
    return `${begin} ${this.expression(this.chance(0.3) ? "any" : this.pick(kinds), Math.max(1, depth))} ${end}`
  }

  /** An expression of a kind, and rarely one of another. */
  private expression(kind: Kind, depth: number): string {
    if (kind === "any" || this.chance(0.04)) return this.expressionOf(this.pick(kinds), depth)
    return this.expressionOf(kind, depth)
  }

  private expressionOf(kind: Kind, depth: number): string {
    if (depth <= 0 || this.chance(0.25)) return this.leaf(kind)
    if (this.chance(0.06))
      return `(${this.expression(kind, depth - 1)} if ${this.expression("boolean", depth - 1)}${this.chance(0.8) ? ` else ${this.expression(kind, depth - 1)}` : ""})`
    if (this.chance(0.05))
      return `(${this.leaf("any")} | default(${this.leaf(kind)}${this.chance(0.5) ? ", true" : ""}))`
    switch (kind) {
      case "text":
        return this.text(depth)
      case "integer":
        return this.integer(depth)
      case "float":
        return this.float(depth)
      case "boolean":
        return this.boolean(depth)
      case "list":
        return this.list(depth)
      case "texts":
        return this.listOfTexts(depth)
      default:
        return this.dictionary(depth)
    }
  }

  private leaf(kind: Kind): string {
    if (kind === "any" || this.chance(0.03)) return this.pick(names.any)
    if (this.chance(0.5)) return this.pick(names[kind])
    switch (kind) {
      case "text":
        return this.pick(texts)
      case "integer":
        return this.pick(["0", "1", "2", "7", "10", "1_000", "0x1f", "-3", "0b101"])
      case "float":
        return this.pick(["0.5", "1.0", "2.50", "1e3", "3.14159", "1e-5", "12345.678"])
      case "boolean":
        return this.pick(["true", "false", "True"])
      case "list":
        return this.pick([
          "[]",
          "[1, 2, 3]",
          "[1, 'a', none]",
          "(1, 2)",
          "[[1], [2, 3]]",
          "range(4)",
          "[3, 1, 2]",
          "[0.5, 1, true]",
        ])
      case "texts":
        return this.pick(["['a', 'B', 'c']", "['x']", "('é', 'z')", "[]", "['b', 'a', 'b']"])
      default:
        return this.pick(["{}", "{'a': 1}", "{'b': 'x', 'a': [1]}", "{1: 'i', 'two': 2}", "dict(k=1)"])
    }
  }

  private text(depth: number): string {
    const [s, o, i] = [() => this.expression("text", depth - 1), () => this.leaf("text"), () => this.leaf("integer")]
    return this.pick<() => string>([
      () => `(${s()} + ${s()})`,
      () => `(${s()} ~ ${this.expression("any", depth - 1)})`,
      () => `(${s()} ~ ${this.expression("any", depth - 1)} ~ ${o()})`,
      () => `(${s()} * ${this.below(3)})`,
      () => `${s()}[${i()}]`,
      () => `${s()}[${this.pick(["1:", ":2", "::-1", "-3:-1", "1:4:2", ":"])}]`,
      () =>
        `${s()}.${this.pick(["upper", "lower", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "casefold"])}()`,
      () => `${s()}.${this.pick(["strip", "lstrip", "rstrip", "removeprefix", "removesuffix"])}(${o()})`,
      () => `${s()}.replace(${o()}, ${o()}${this.chance(0.3) ? `, ${this.below(3)}` : ""})`,
      () => `${s()}.${this.pick(["center", "ljust", "rjust", "zfill"])}(${this.below(12)})`,
      () => `${s()}.join(${this.expression("texts", depth - 1)})`,
      () => `(${this.expression("any", depth - 1)} | string)`,
      () =>
        `(${this.expression(this.pick(["dictionary", "list", "text", "float", "integer"]), depth - 1)} | tojson${this.pick(["", "", "(indent=2)", "(ensure_ascii=true)", "(sort_keys=true)", "(separators=(',', ':'))", "(indent=0)"])})`,
      () =>
        `(${s()} | ${this.pick(["upper", "lower", "title", "capitalize", "trim", "e", "escape", "safe", "striptags", "string", "reverse", "urlencode", "forceescape"])})`,
      () =>
        `(${s()} | ${this.pick(["indent", "indent(2)", "indent(3, true)", "indent('> ', blank=true)", "center(9)", "truncate(5)", "truncate(4, true, '')", "truncate(6, leeway=0)", "wordwrap(4)", "trim('a ')"])})`,
      () => `(${s()} | replace(${o()}, ${o()}))`,
      () => `(${this.expression(this.pick(["texts", "list"]), depth - 1)} | join(${this.pick(["", o(), "'-'"])}))`,
      () => `(${this.expression("texts", depth - 1)} | ${this.pick(["first", "last", "min", "max"])})`,
      () =>
        `${this.pick(["'%s|%r'", "'%5s|%-4s'", "'%s %s'"])} % (${this.expression("any", depth - 1)}, ${this.expression("any", depth - 1)})`,
      () =>
        `('${this.pick(["%d", "%5.1f", "%x", "%e", "%g", "%+d", "%05d", "%.3f", "%o", "%i"])}' % ${this.expression(this.pick(["integer", "float"]), depth - 1)})`,
      () =>
        `'${this.pick(["{} {}", "{1}{0}", "{0!r} {1:>6}", "{:<5}|{:^7}", "{{}} {}{}"])}'.format(${this.expression(this.pick(["text", "integer"]), depth - 1)}, ${s()})`,
      () =>
        `'${this.pick(["{:d}", "{:+,}", "{:08.2f}", "{:e}", "{:.3g}", "{:x}", "{:#b}", "{:%}", "{:>8}", "{:_}", "{:g}", "{:.1f}", "{:n}"])}'.format(${this.expression(this.pick(["integer", "float"]), depth - 1)})`,
      () => `${s()}.partition(${o()})[${this.below(3)}]`,
      () => `(${s()} | format(${s()}))`,
      () => `(${this.expression("dictionary", depth - 1)} | ${this.pick(["xmlattr", "pprint", "urlencode"])})`,
      () =>
        `strftime_now('${this.pick(["%Y-%m-%d", "%d %b %Y", "%H:%M:%S", "%A %B %j %y %-d %I %p", "%e %u %w %%"])}')`,
      () => `${s()}.expandtabs(${this.below(5)})`,
      () => `(${this.expression("integer", depth - 1)} | filesizeformat)`,
    ])()
  }

  private integer(depth: number): string {
    const [n, s, o] = [
      () => this.expression("integer", depth - 1),
      () => this.expression("text", depth - 1),
      () => this.leaf("text"),
    ]
    return this.pick<() => string>([
      () => `(${n()} ${this.pick(["+", "-", "*", "//", "%"])} ${n()})`,
      () => `(${this.leaf("integer")} ** ${this.below(4)})`,
      () => `(${this.pick(["-", "+"])}${n()})`,
      () =>
        `(${this.expression(this.pick(["text", "list", "texts", "dictionary"]), depth - 1)} | ${this.pick(["length", "count"])})`,
      () =>
        `(${this.expression(this.pick(["text", "float", "integer", "boolean"]), depth - 1)} | int${this.pick(["", "(7)", "(0, 16)", "(default=-1)"])})`,
      () =>
        `${s()}.${this.pick(["find", "rfind", "count", "index", "rindex"])}(${o()}${this.chance(0.3) ? `, ${this.below(3)}` : ""}${this.chance(0.1) ? ", 4" : ""})`,
      () => `(${n()} | abs)`,
      () => `(${n()} | round(${this.pick(["", "1", "-1"])}))`,
      () => `([${n()}, ${n()}, 2] | ${this.pick(["sum", "min", "max", "first", "last"])})`,
      () => `(${s()} | wordcount)`,
      () => `[1, 2, 1].${this.pick(["count", "index"])}(${this.pick(["1", "2", "1.0", "true", "5"])})`,
      () => `(${this.expression("list", depth - 1)} | ${this.pick(["sum", "max", "min"])})`,
    ])()
  }

  private float(depth: number): string {
    const [f, n] = [() => this.expression("float", depth - 1), () => this.expression("integer", depth - 1)]
    return this.pick<() => string>([
      () => `(${f()} ${this.pick(["+", "-", "*", "/", "//", "%"])} ${this.pick([f, n])()})`,
      () => `(${n()} / ${n()})`,
      () =>
        `(${this.expression(this.pick(["text", "integer", "float"]), depth - 1)} | float${this.pick(["", "(1.5)"])})`,
      () => `(${f()} | round${this.pick(["", "(1)", "(2)", "(-1)", "(1, 'ceil')", "(0, 'floor')", "(precision=3)"])})`,
      () => `(${f()} | abs)`,
      () => `(${f()} ** ${this.pick(["2", "0.5", "-1", "0"])})`,
      () => `(-${f()})`,
    ])()
  }

  private boolean(depth: number): string {
    const any = () => this.expression("any", depth - 1)
    const same = () => {
      const kind = this.pick<Kind>(["text", "integer", "float", "list", "texts"])
      return [this.expression(kind, depth - 1), this.expression(kind, depth - 1)] as const
    }
    return this.pick<() => string>([
      () => `(${any()} ${this.pick(["==", "!="])} ${any()})`,
      () => `(${same().join(` ${this.pick(["<", "<=", ">", ">=", "==", "!="])} `)})`,
      () =>
        `(${this.expression("integer", depth - 1)} < ${this.expression("integer", depth - 1)} ${this.pick(["<", "<=", "==", "!=", ">"])} ${this.expression("float", depth - 1)})`,
      () => `(${any()} ${this.pick(["and", "or"])} ${any()})`,
      () => `(not ${any()})`,
      () =>
        `(${this.leaf("text")} ${this.pick(["in", "not in"])} ${this.expression(this.pick(["text", "texts", "dictionary"]), depth - 1)})`,
      () => `(${any()} ${this.pick(["in", "not in"])} ${this.expression("list", depth - 1)})`,
      () =>
        `(${any()} is ${this.pick(["", "not "])}${this.pick(["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "true", "false", "callable", "escaped", "lower", "upper"])})`,
      () =>
        `(${this.expression("integer", depth - 1)} is ${this.pick(["odd", "even", "divisibleby 3", "divisibleby(2)"])})`,
      () => `(${any()} is ${this.pick(["eq", "ne", "equalto", "sameas"])}(${any()}))`,
      () =>
        `(${this.expression("integer", depth - 1)} is ${this.pick(["gt", "lt", "ge", "le", "greaterthan", "lessthan"])} ${this.pick(["3", "n", "f"])})`,
      () => `(${this.leaf("any")} is in ${this.leaf("list")})`,
      () =>
        `${this.expression("text", depth - 1)}.${this.pick(["isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "istitle", "isnumeric", "isdecimal", "isidentifier", "isascii", "isprintable"])}()`,
      () =>
        `${this.expression("text", depth - 1)}.${this.pick(["startswith", "endswith"])}(${this.pick([this.leaf("text"), `(${this.leaf("text")}, 'a')`])})`,
    ])()
  }

  private list(depth: number): string {
    const l = () => this.expression("list", depth - 1)
    return this.pick<() => string>([
      () => `(${l()} + ${l()})`,
      () => `(${l()} * ${this.below(3)})`,
      () => `${l()}[${this.pick(["1:", ":2", "::-1", "-2:", "1:4:2", ":"])}]`,
      () => `[${Array.from({ length: this.below(4) }, () => this.expression("any", depth - 1)).join(", ")}]`,
      () => `(${this.expression("any", depth - 1)}, ${this.expression("any", depth - 1)})`,
      () =>
        `(${l()} | ${this.pick(["sort", "reverse | list", "list", "unique | list", "sort(reverse=true)", "batch(2) | list", "batch(2, 'z') | list", "slice(2) | list", "slice(3, 0) | list", "select | list", "reject('none') | list", "select('string') | list", "reject('in', [1]) | list", "map('string') | list"])})`,
      () =>
        `(messages | ${this.pick(["map(attribute='role') | list", "selectattr('role', 'equalto', 'user') | list", "rejectattr('content') | list", "map(attribute='nope', default=1) | list", "groupby('role')", "sort(attribute='role')", "selectattr('content', 'defined') | map(attribute='content') | list"])})`,
      () =>
        `${this.expression("dictionary", depth - 1)}.${this.pick(["items", "keys", "values"])}()${this.pick([" | list", ""])}`,
      () =>
        `(${this.expression("dictionary", depth - 1)} | ${this.pick(["items | list", "list", "dictsort", "dictsort(by='value')", "dictsort(reverse=true)"])})`,
      () => `range(${this.pick([String(this.below(7)), `${this.below(4)}, 5`, "5, 0, -2", "0"])})`,
      () =>
        `${this.expression("text", depth - 1)}.${this.pick(["split", "rsplit", "splitlines", "partition", "rpartition"])}(${this.pick(["", this.leaf("text"), "' '", "','", "',', 1"])})`,
      () => `(${this.expression("text", depth - 1)} | list)`,
    ])()
  }

  private listOfTexts(depth: number): string {
    const t = () => this.expression("texts", depth - 1)
    return this.pick<() => string>([
      () =>
        `(${t()} | ${this.pick(["sort", "list", "unique | list", "map('upper') | list", "map('trim') | list", "reverse | list", "select('string') | list", "map('length') | map('string') | list", "sort(case_sensitive=true)", "map('replace', 'a', 'b') | list", "select('in', 'abc') | list"])})`,
      () => `${this.expression("text", depth - 1)}.split(${this.pick(["", "','", "' '", "'a', 1", "none, 1"])})`,
      () => `${this.expression("text", depth - 1)}.splitlines(${this.pick(["", "true"])})`,
      () => `[${this.expression("text", depth - 1)}, ${this.expression("text", depth - 1)}]`,
    ])()
  }

  private dictionary(depth: number): string {
    return this.pick<() => string>([
      () => `{${this.leaf("text")}: ${this.expression("any", depth - 1)}, 'z': ${this.expression("any", depth - 1)}}`,
      () => `{${this.pick(["1", "1.0", "true", "(1, 2)", "none", "'k'"])}: ${this.expression("any", depth - 1)}}`,
      () => `dict(${this.expression("dictionary", depth - 1)}, q=${this.expression("any", depth - 1)})`,
      () => `dict(${this.leaf("list")} | map('string') | batch(2))`,
      () => this.leaf("dictionary"),
      () => `dict.fromkeys(${this.expression("texts", depth - 1)}, 1)`,
    ])()
  }
}
