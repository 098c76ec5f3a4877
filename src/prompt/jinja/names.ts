/** All of Jinja's filters and tests by name. */
import { attributeOf } from "./attribute"
import { choiceFilters } from "./choice-filters"
import { isDictionaryMethod } from "./container-methods"
import { type Filter, filterEntry, type Test } from "./filter"
import { numberFilters } from "./number-filters"
import { TemplateError } from "./run"
import { sequenceFilters } from "./sequence-filters"
import { textFilters } from "./text-filters"
import { Dictionary, isText, plainText, truthy, typeName, type Value } from "./value"
import { testTable } from "./value-tests"

function fallback(value: Value, [other, boolean]: readonly Value[]): Value {
  return value === undefined || (truthy(boolean) && !truthy(value)) ? other : value
}

const fallbackParameters = [
  ["default_value", ""],
  ["boolean", false],
] as const

const filters: ReadonlyMap<string, Filter> = new Map([
  ...numberFilters,
  ...sequenceFilters,
  ...textFilters,
  ...choiceFilters({ filter: filterNamed, test: testNamed }),
  filterEntry("attr", [["name"]], (value, [name], run) => {
    if (!isText(name)) throw new TemplateError(`attribute name must be string, not '${typeName(name)}'`)
    const attribute = plainText(name)
    // Unlike a dot, it does not look at a dictionary's items.
    return value instanceof Dictionary && !isDictionaryMethod(attribute)
      ? undefined
      : attributeOf(value, attribute, run)
  }),
  filterEntry("d", fallbackParameters, fallback),
  filterEntry("default", fallbackParameters, fallback),
])

const tests: ReadonlyMap<string, Test> = testTable((name) => filters.has(name))

/** The filter of that name, or undefined. */
export function findFilter(name: string): Filter | undefined {
  return filters.get(name)
}

/** The test of that name, or undefined. */
export function findTest(name: string): Test | undefined {
  return tests.get(name)
}

/** The filter of that name; an unknown one is the template's error. */
export function filterNamed(name: string): Filter {
  const found = filters.get(name)
  if (found === undefined) throw new TemplateError(`No filter named '${name}'.`)
  return found
}

/** The test of that name; an unknown one is the template's error. */
export function testNamed(name: string): Test {
  const found = tests.get(name)
  if (found === undefined) throw new TemplateError(`No test named '${name}'.`)
  return found
}
