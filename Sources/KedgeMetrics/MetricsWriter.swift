/// Writes series in one of the text formats.
///
/// https://prometheus.io/docs/instrumenting/exposition_formats/ and
/// https://github.com/OpenObservability/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
struct MetricsWriter {
    private let format: MetricsFormat
    private var text = ""

    init(_ format: MetricsFormat) { self.format = format }

    /// Writes a metric, unless it has no series.
    mutating func write(_ definition: MetricDefinition, _ series: [MetricSeries]) {
        guard !series.isEmpty else { return }
        writeMetadata(of: definition)
        let sorted = series.sorted { $0.labels.lexicographicallyPrecedes($1.labels) }
        for one in sorted {
            let labels = zip(definition.labelNames, one.labels).map { Self.label($0, $1) }
                .joined(separator: ",")
            if definition.type == .histogram {
                writeHistogram(definition, one, labels)
            } else {
                writeLine(definition.name, labels, Self.number(one.value))
            }
        }
    }

    /// Ends the text.
    func finish() -> String {
        format == .openMetrics ? text + "# EOF\n" : text
    }

    private mutating func writeMetadata(of definition: MetricDefinition) {
        let (type, help) = (definition.type.rawValue, definition.help)
        switch format {
        case .prometheusText:
            text += "# HELP \(definition.name) \(Self.escaped(help, quotes: false))\n"
            text += "# TYPE \(definition.name) \(type)\n"
        case .openMetrics:
            // In OpenMetrics `_total` belongs to the sample, and not to the metric.
            let name =
                definition.type == .counter
                ? String(definition.name.dropLast("_total".count)) : definition.name
            text += "# TYPE \(name) \(type)\n"
            if let unit = definition.unit { text += "# UNIT \(name) \(unit.rawValue)\n" }
            text += "# HELP \(name) \(Self.escaped(help, quotes: true))\n"
        }
    }

    /// Writes a histogram. Each bucket counts all values up to its bound, so the last one has all.
    private mutating func writeHistogram(
        _ definition: MetricDefinition, _ series: MetricSeries, _ labels: String
    ) {
        // Both formats get `1.0` and not `1`, as OpenMetrics asks for: to Prometheus a bound is a
        // text, and a change of the format would otherwise change the series.
        let bounds = definition.buckets.map { "\($0)" } + ["+Inf"]
        let shared = labels.isEmpty ? "" : labels + ","
        let name = definition.name + "_bucket"
        var count: UInt64 = 0
        for (bound, bucket) in zip(bounds, series.counts) {
            count += bucket
            writeLine(name, shared + Self.label("le", bound), String(count))
        }
        writeLine(definition.name + "_sum", labels, Self.number(series.value))
        writeLine(definition.name + "_count", labels, String(count))
    }

    private mutating func writeLine(_ name: String, _ labels: String, _ value: String) {
        text += name
        if !labels.isEmpty {
            text += "{"
            text += labels
            text += "}"
        }
        text += " "
        text += value
        text += "\n"
    }

    private static func label(_ name: String, _ value: String) -> String {
        "\(name)=\"\(escaped(value, quotes: true))\""
    }

    /// A number as both formats write it. Whole numbers have no fraction and no exponent below
    /// 2^53, up to which a double has each of them.
    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        let isExact = abs(value) < 9_007_199_254_740_992 && value == value.rounded(.towardZero)
        return isExact ? String(Int64(value)) : value.description
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
