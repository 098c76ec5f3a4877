/**
 * Random templates that `random-template` never makes: chains of operators without brackets, filters and tests with odd
 * arguments, random format specifications and clock codes, calls with callers, white space of all kinds around tags,
 * and templates with a few characters changed, most of which Jinja cannot read. A seed decides everything.
 */
import { RandomChoices, seededRandom } from "../support/random"
import { type RandomTemplate, randomTemplate } from "./random-template"

/** The odd template of a seed. Its variables are those of `randomTemplate`. */
export function oddTemplate(seed: number): RandomTemplate {
  const { template, context } = randomTemplate(seed)
  const author = new OddAuthor(seededRandom(seed ^ 0x5eed))
  return { template: author.write(template), context }
}

const leaves = [
  ..."s t n m f b l ts d e x none nope big messages true 1 0 2 -1 0.5 'a' '' 'ab cd' 'é🚀' 'a' 'b' [] {} () (1,) [1,2] {'a':1}".split(
    " ",
  ),
  "'a' 'b'",
  "d.s",
  "d.nope",
  "l[0]",
  "messages[0].role",
  "loop.index",
  "loop",
  "range(3)",
  "s.upper()",
  "ts[0]",
  "d['k']",

  "10 ** 20",
  "namespace(a=1)",
  "loop.previtem",
  "loop.nextitem",
]

const operators = [
  ..."+ - * / // % ** ~ == != < <= > >= and or in".split(" "),
  "not in",
  "is",
  "is not",
  "if",
  "else",
  "|",
  ",",
  ".",
]
const testNames = [
  ..."defined undefined none string number odd even sequence mapping iterable callable boolean integer float true false lower upper filter test escaped".split(
    " ",
  ),
  "divisibleby 2",
  "divisibleby(2)",
  "eq 1",
  "in [1]",
  "sameas none",
  "gt 0",
  "ne('a')",
  "==(1)",
]
const filterNames = [
  ..."abs capitalize center count d default dictsort e escape first float forceescape format groupby indent int items join last length list lower map max min pprint reject rejectattr replace reverse round safe select selectattr slice batch sort string striptags sum title tojson trim truncate unique upper urlencode urlize wordcount wordwrap xmlattr filesizeformat attr".split(
    " ",
  ),
]
const names =
  "attribute default case_sensitive reverse by width end killwords leeway first blank method precision base count start indent wrapstring boolean fill_with linecount slices sort_keys chars d old new".split(
    " ",
  )
const spaces = ["", "", " ", "\n", "\r\n", "\t", "  ", "\n  ", "\u00a0", "\u2028", "\u3000", "\v", "\f", "\u0085", "\r"]

class OddAuthor extends RandomChoices {
  write(plain: string): string {
    const kind = this.below(10)
    if (kind < 2) return this.changed(plain)
    return Array.from({ length: 1 + this.below(3) }, () => this.statement()).join(this.pick(spaces))
  }

  /** A template with one or two places deleted, doubled, swapped or written over. */
  private changed(template: string): string {
    let text = template
    for (let times = 1 + this.below(2); times > 0; times--) {
      const at = this.below(text.length)
      const end = at + 1 + this.below(3)
      const put = this.pick([
        "",
        "",
        text.slice(at, end).repeat(2),
        ..."{}%#-+|'\"()[],.~=:".split(""),
        " ",
        "\n",
        "\\",
        "{%",
        "%}",
        "{{",
        "}}",
        "not ",
        " in ",
        "if ",
        "9",
        "_",
        "é",
      ])
      text = text.slice(0, at) + put + text.slice(this.chance(0.5) ? at : end)
    }
    return text
  }

  private statement(): string {
    const [x, y] = [this.pick(["x", "i", "s"]), this.pick(["y", "t", "loop", "ns.a", "(p, q)", "p, q", "p,"])]
    return this.pick<() => string>([
      () => this.print(),
      () => this.print(),
      () => this.print(),
      () => this.print(),
      () =>
        `${this.tag(`for ${this.pick([x, x, y])} in ${this.chain(1)}${this.pick(["", "", ` if ${this.chain(1)}`, " recursive", ` if ${x} recursive`])}`)}${this.print()}${this.pick(["", `${this.tag("else")}E`])}${this.tag("endfor")}`,
      () =>
        `${this.tag("for i in [1, [2, 3], 1]")}{{ loop.changed(${this.arguments()}) }}{{ loop.cycle(${this.arguments()}) }}${this.print()}${this.tag("endfor")}`,
      () => `${this.tag(`set ${this.pick([x, y])} = ${this.chain(2)}`)}{{ ${x} }}`,
      () =>
        `${this.tag("set ns = namespace(a=1)")}${this.tag(`set ${this.pick([x, y])}${this.pick(["", " | upper", " | trim", " | replace('a', n)"])}`)}${this.print()}${this.tag("endset")}{{ ns.a }}{{ ${x} }}`,
      () =>
        `${this.tag(`macro f(${this.pick(["", "p", "p, q=1", "p=s, q=p", "caller", "p, caller=none", "p=1, q"])})`)}${this.pick(["", "{{ p }}", "{{ q }}", "{{ varargs }}", "{{ kwargs }}"])}{{ caller(${this.arguments()}) }}${this.tag("endmacro")}${this.tag(`call${this.pick(["", "(c)", "(c, d=2)", "(c=s)"])} f(${this.arguments()})`)}{{ c }}{{ d }}${this.print()}${this.tag("endcall")}`,
      () => `${this.tag("macro g(p)")}${this.print()}{{ p }}${this.tag("endmacro")}{{ g(${this.arguments()}) }}`,
      () => `${this.tag(`with ${x} = ${this.chain(1)}, w = ${x}`)}{{ w }}${this.tag("endwith")}`,
      () => `${this.tag(`if ${this.chain(2)}`)}A${this.tag(`elif ${this.chain(1)}`)}B${this.tag("endif")}`,
      () =>
        `{{ '${this.pick(["", "a", "é"])}{${this.pick(["", "0", "a"])}${this.pick(["", "!r", "!s", "!a"])}:${this.specification()}}'.format(${this.number()}, a=${this.number()}) }}`,
      () => `{{ '${this.percent()}|${this.percent()}' % (${this.number()}, ${this.number()}) }}`,
      () =>
        `{{ strftime_now('${Array.from({ length: 3 }, () => `%${this.pick(["", "", "", "-"])}${this.pick("aAbBcCdDeFgGhHIjklmMnpPrRSstTuUVwWxXyYzZ%".split(""))}`).join("|")}') }}`,
      () =>
        `{{ ${this.pick(["s", "l", "ts", "'a🚀é漢z'", "range(7)", "(1, 2, 3)"])}[${this.bound()}:${this.bound()}${this.pick(["", ":", `:${this.bound()}`])}] }}`,
      () =>
        `{{ '${this.pick(["\\x41", "\\u00e9", "\\101", "\\q", "\\n", "\\\\", "\\'", "\\0", "\\U0001F680", "\\x4", "\\8", "\\a"])}${this.pick(["", "\\t", "b"])}' | ${this.pick(["length", "tojson", "list", "pprint", "e"])} }}`,
      () =>
        this.tag(
          this.pick([
            "raw",
            "endraw",
            "generation",
            "break",
            "do x",
            "include s",
            "extends s",
            "import s as q",
            "block k",
          ]),
        ),
    ])()
  }

  private bound(): string {
    return this.pick(["", "", "0", "1", "-1", "2", "-3", "9", "-9", "n", "none", "big"])
  }

  private number(): string {
    return this.pick([
      "n",
      "f",
      "big",
      "0",
      "-7",
      "255",
      "1234567.891",
      "0.00012345",
      "-0.0",
      "1e22",
      "12345678901234567890",
      "true",
      "2.5",
      "s",
      "none",
      "l",
    ])
  }

  private specification(): string {
    return `${this.pick(["", "", "*", "é"])}${this.pick(["<", ">", "^", "=", ""])}${this.pick(["", "", "+", " ", "-"])}${this.pick(["", "", "", "z"])}${this.pick(["", "", "#"])}${this.pick(["", "", "0"])}${this.pick(["", "", "5", "12"])}${this.pick(["", "", ",", "_"])}${this.pick(["", "", ".0", ".2", ".6"])}${this.pick(["", "", ..."bcdeEfFgGnosxX%".split("")])}`
  }

  private percent(): string {
    return `%${this.pick(["", "", "-", "+", " ", "0", "#"])}${this.pick(["", "", "5", "12"])}${this.pick(["", "", ".0", ".2", "."])}${this.pick("diouxXeEfFgGcrsa".split(""))}`
  }

  private print(): string {
    return `${this.pick(spaces)}{{${this.pick(["", " ", "-", "- ", "+"])}${this.chain(3)}${this.pick(["", " ", " -", " +"])}}}${this.pick(spaces)}`
  }

  private tag(inside: string): string {
    const blank = (): string => this.pick([" ", " ", "\n", "", "\t"])
    return `${this.pick(spaces)}{%${this.pick(["", "", "", "-", "+"])}${blank()}${inside}${blank()}${this.pick(["", "", "", "-", "+"])}%}${this.pick(spaces)}`
  }

  /** Leaves and operators in a row: what binds to what is the point. */
  private chain(length: number): string {
    let text = this.operand()
    for (let more = this.below(length + 1); more > 0; more--) {
      const operator = this.pick(operators)
      if (operator === "is" || operator === "is not") text += ` ${operator} ${this.pick(testNames)}`
      else if (operator === "|") text += ` | ${this.filter()}`
      else if (operator === ".") text += this.pick([".upper()", ".items()", ".k", "[0]", ".0", "()", ".split()"])
      else text += ` ${operator} ${this.operand()}`
    }
    return text
  }

  private operand(): string {
    const prefix = this.pick(["", "", "", "", "", "", "-", "not ", "+"])
    const inside = this.chance(0.1) ? `(${this.chain(2)})` : this.pick(leaves)
    return `${prefix}${inside}${this.chance(0.25) ? ` | ${this.filter()}` : ""}`
  }

  private filter(): string {
    return `${this.pick(filterNames)}${this.chance(0.5) ? `(${this.arguments()})` : ""}`
  }

  private arguments(): string {
    return Array.from({ length: this.below(3) }, () => {
      const value = this.chance(0.2)
        ? this.pick(["'role'", "'upper'", "'string'", "'k'", "'content'", "'a.b'", "'odd'", "'in'"])
        : this.pick(leaves)
      const kind = this.below(10)
      if (kind === 0) return `*${value}`
      if (kind === 1) return `**${value}`
      return kind < 5 ? `${this.pick(names)}=${value}` : value
    }).join(", ")
  }
}
