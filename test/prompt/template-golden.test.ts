/** Real templates on many conversations: what the reference made of them, and the package's own interpreter beside us. */
import { describe, expect, test } from "bun:test"
import { Template } from "@huggingface/jinja"
import golden from "../golden/templates/hashes.json"
import probes from "../golden/templates/probes.json"
import { triedConversations } from "./conversations"
import { realTemplates } from "./template-corpus"
import { type GoldenTemplates, hashOf, hashOfRendering } from "./template-golden"
import { renderOurselves } from "./template-oracle"
import { templateProbes } from "./template-probes"

interface Probe {
  readonly template: string
  readonly context: string
  readonly text?: string
  readonly error?: string
}

const { conversations, templates, reference }: GoldenTemplates = golden
const here = new Map(realTemplates().map(({ name, text }) => [name, text]))
const contexts = triedConversations.map((each) => each.context)

test("the conversations are those that the hashes were made with, at least 25", () => {
  expect(triedConversations.map(({ name, context }) => `${name} ${hashOf(context)}`)).toEqual([...conversations])
  expect(conversations.length).toBeGreaterThanOrEqual(25)
})

describe(`rendered as by ${reference}`, () => {
  for (const [name, made] of Object.entries(templates)) {
    const text = here.get(name)
    test.skipIf(text === undefined)(`${name}: all conversations`, () => {
      if (text === undefined) return
      expect(hashOf(text)).toBe(made.template)
      const ours = renderOurselves({ template: text, contexts })
      const differing = made.rendered.split(" ").flatMap((hash, i) => {
        const ourHash = hashOfRendering(ours[i]!)
        return ourHash === hash ? [] : [{ conversation: triedConversations[i]!.name, hash, ours: ours[i] }]
      })
      expect(differing).toEqual([])
    })
  }
})

describe("probes have the reference's answer", () => {
  test("and are those that it was asked", () => {
    expect(probes.answered.map(({ template, context }) => [template, context])).toEqual(
      templateProbes.map((each) => [...each]),
    )
  })
  for (const { template, context, ...answer } of probes.answered as readonly Probe[]) {
    test(JSON.stringify(template), () => {
      const [ours] = renderOurselves({ template, contexts: [context] })
      if ("text" in answer && answer.text !== undefined) expect(ours).toEqual({ text: answer.text })
      else expect(ours).toEqual({ error: expect.any(String) })
    })
  }
})

/** Elsewhere the package differs from the reference: null contents, floats, and keys that look like integers. */
const plain = ["user", "system and user", "turns", "no generation prompt", "white space", "other scripts", "markup"]

describe("a second opinion, npm @huggingface/jinja's own interpreter,", () => {
  // Its clock cannot be stopped.
  const timeless = realTemplates().filter(({ text }) => !text.includes("strftime_now"))
  const opinions = timeless.flatMap(({ name, text }) => {
    const chosen = triedConversations.filter((each) => plain.includes(each.name))
    const ours = renderOurselves({ template: text, contexts: chosen.map((each) => each.context) })
    return chosen.map((each, i) => ({
      name,
      conversation: each.name,
      ours: ours[i]!,
      theirs: packageSays(text, each.context),
    }))
  })

  test("is the same on plain conversations wherever it has one", () => {
    const both = opinions.filter(({ ours, theirs }) => "text" in ours && theirs !== null)
    expect(both.length).toBeGreaterThan(opinions.length / 2)
    expect(both.filter(({ ours, theirs }) => "text" in ours && ours.text !== theirs)).toEqual([])
  })
})

function packageSays(template: string, context: string): string | null {
  try {
    return new Template(template).render(JSON.parse(context) as Record<string, unknown>)
  } catch {
    return null
  }
}
