/**
 * Counters, gauges and histograms in Prometheus' text format 0.0.4. Small on purpose: label sets are made up front or
 * looked up by the caller, and counting allocates nothing.
 */

/** Label names and values of one series. */
export type Labels = { readonly [name: string]: string }

/** The content type of `render`'s text. */
export const prometheusContentType = "text/plain; version=0.0.4; charset=utf-8"

/** One growing number. */
export class Counter {
  private value = 0

  /** Hot. Adds `by`, which is not negative. */
  add(by: number): void {
    this.value += by
  }

  /** Lines of this series. */
  lines(name: string, labels: Labels): string {
    return `${name}${labelText(labels)} ${numberText(this.value)}\n`
  }
}

/** One number that goes up and down; it is set when it is read. */
export class Gauge {
  private value = 0

  set(value: number): void {
    this.value = value
  }

  /** Lines of this series. */
  lines(name: string, labels: Labels): string {
    return `${name}${labelText(labels)} ${numberText(this.value)}\n`
  }
}

/** Observations in buckets; a bucket holds what is at most its bound. */
export class Histogram {
  private readonly bounds: readonly number[]
  /** Of each bucket by itself; the last one has no bound. */
  private readonly counts: Float64Array
  private sum = 0

  /** `bounds` rise; the unbounded bucket is added here. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** Hot. */
  observe(value: number): void {
    this.observeMany(value, 1)
  }

  /** `times` observations of one value. */
  observeMany(value: number, times: number): void {
    const { bounds } = this
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1
    this.counts[bucket]! += times
    this.sum += value * times
  }

  /** Lines of this series: buckets with all below them, sum, count. */
  lines(name: string, labels: Labels): string {
    let text = ""
    let total = 0
    for (const [i, count] of this.counts.entries()) {
      total += count
      const le = i < this.bounds.length ? numberText(this.bounds[i]!) : "+Inf"
      text += `${name}_bucket${labelText({ ...labels, le })} ${numberText(total)}\n`
    }
    const suffix = labelText(labels)
    return `${text}${name}_sum${suffix} ${numberText(this.sum)}\n${name}_count${suffix} ${numberText(total)}\n`
  }
}

type Series = Counter | Gauge | Histogram

/** All series of one name; made by `Registry`. */
export class Family<Kind extends Series> {
  private readonly name: string
  private readonly type: string
  private readonly help: string
  private readonly create: () => Kind
  private readonly series = new Map<string, { readonly labels: Labels; readonly series: Kind }>()

  constructor(name: string, type: string, help: string, create: () => Kind) {
    this.name = name
    this.type = type
    this.help = help
    this.create = create
  }

  /** The series of these labels, made on first use. Values must come from a bounded set. */
  with(labels: Labels): Kind {
    const key = labelText(labels)
    const known = this.series.get(key)
    if (known !== undefined) return known.series
    const series = this.create()
    this.series.set(key, { labels, series })
    return series
  }

  render(): string {
    let text = `# HELP ${this.name} ${this.help}\n# TYPE ${this.name} ${this.type}\n`
    for (const { labels, series } of this.series.values()) text += series.lines(this.name, labels)
    return text
  }
}

/** Families in the order they were made, and their text. Names and help texts are ours and need no escaping. */
export class Registry {
  private readonly families: { render(): string }[] = []

  /** Names of counters end with `_total`. */
  counter(name: string, help: string): Family<Counter> {
    return this.add(new Family(name, "counter", help, () => new Counter()))
  }

  gauge(name: string, help: string): Family<Gauge> {
    return this.add(new Family(name, "gauge", help, () => new Gauge()))
  }

  histogram(name: string, help: string, bounds: readonly number[]): Family<Histogram> {
    return this.add(new Family(name, "histogram", help, () => new Histogram(bounds)))
  }

  /** The text of /metrics. */
  render(): string {
    return this.families.map((family) => family.render()).join("")
  }

  private add<Kind extends Series>(family: Family<Kind>): Family<Kind> {
    this.families.push(family)
    return family
  }
}

/** Labels by name, as the reference's exporter writes them. */
function labelText(labels: Labels): string {
  const names = Object.keys(labels).sort()
  if (names.length === 0) return ""
  return `{${names.map((name) => `${name}="${escapeLabel(labels[name]!)}"`).join(",")}}`
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"')
}

/** Whole numbers get `.0`, and from a million on an exponent, so that `le` reads as in the reference's exporter. */
function numberText(value: number): string {
  if (!Number.isInteger(value)) return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf"
  if (Math.abs(value) < 1e6) return `${value}.0`
  const [digits, exponent] = value.toExponential().split("e+")
  return `${digits}e+${exponent!.padStart(2, "0")}`
}
