import { expect, test } from "bun:test"
import { Admission } from "../../src/http/admission"

test("as many may be inside as the limit says, and each that leaves makes room", () => {
  const admission = new Admission(2)
  expect([admission.enter(), admission.enter(), admission.enter(), admission.inside]).toEqual([true, true, false, 2])
  admission.leave()
  expect([admission.inside, admission.enter(), admission.enter()]).toEqual([1, true, false])
})

test("leaving without having entered is a bug", () => {
  expect(() => new Admission(1).leave()).toThrow("had not entered")
})
