import { describe, expect, test } from "bun:test"
import { allowedSkips, closingCounts, closingLine, skippedTests, skipReason } from "../../scripts/test-report"

describe("closing lines", () => {
  test("are summed with todo as skipped and errors as failed", () => {
    const output =
      "(pass) a\n\n 2 pass\n 3 skip\n 1 todo\n 2 fail\n 1 error\n 7 expect() calls\nRan 8 tests across 2 files. [9.00ms]\n"
    expect(closingCounts(output)).toEqual({ passed: 2, failed: 2, skipped: 4 })
  })

  test("printed by a test are not taken for the runner's own", () => {
    const output =
      " 9 skip\nRan 9 tests across 1 file. [1ms]\nnoise\n\n 2 pass\n 0 fail\nRan 2 tests across 1 file. [9.00ms]\n"
    expect(closingCounts(output)).toEqual({ passed: 2, failed: 0, skipped: 0 })
  })

  test("missing from a run that died give no counts", () => {
    expect(closingCounts("(pass) a\n 2 pass\n")).toBeNull()
  })

  test("of a whole run name the three outcomes", () => {
    expect(closingLine({ passed: 12, failed: 0, skipped: 3 })).toBe("12 passed, 0 failed, 3 skipped")
  })
})

describe("skipped tests", () => {
  test("are named by file, groups from the outside in, and name", () => {
    const junit = `<testsuite name="a.test.ts">
      <testcase name="ran &lt; here" classname="" time="0" file="test/a.test.ts" line="1" assertions="1" />
      <testcase name="x &amp; &#34;y&quot;" classname="inner &gt; group" time="0" file="test/a.test.ts" line="6">
        <skipped />
      </testcase>
      <testcase name="later" classname="" time="0" file="test/b.test.ts" line="7">
        <skipped message="TODO" />
      </testcase></testsuite>`
    expect(skippedTests(junit)).toEqual(['test/a.test.ts: group > inner > x & "y"', "test/b.test.ts: later"])
  })

  test("may occur only where a pattern with a reason allows them", () => {
    const allowed = allowedSkips("# comment\n\ntest/a.test.ts: group > * # needs (a) thing\n")
    expect(allowed).toEqual([{ pattern: "test/a.test.ts: group > *", reason: "needs (a) thing" }])
    expect(skipReason("test/a.test.ts: group > one", allowed)).toBe("needs (a) thing")
    expect(skipReason("test/aXtest.ts: group > one", allowed)).toBeNull()
    expect(skipReason("test/a.test.ts: other", allowed)).toBeNull()
  })

  test("cannot be allowed without a reason", () => {
    expect(() => allowedSkips("test/a.test.ts: x\n")).toThrow("no reason")
  })
})
