extension MetricName {
    /// The tables of `docs/METRICS.md`: all metrics, then the buckets of the histograms.
    package static var markdown: String {
        let definitions = allCases.map(\.definition)
        let metrics = definitions.map { definition in
            let labels = definition.labelNames.map { "`\($0)`" }.joined(separator: ", ")
            return "| `\(definition.name)` | \(definition.type.rawValue) "
                + "| \(definition.unit?.rawValue ?? "–") | \(labels.isEmpty ? "–" : labels) "
                + "| \(definition.help) |"
        }
        let histograms = definitions.filter { $0.type == .histogram }.map { definition in
            let bounds = definition.buckets.map { "\($0)" }.joined(separator: " ")
            return "| `\(definition.name)` | \(bounds) |"
        }
        let lines =
            ["| Metric | Type | Unit | Labels | Meaning |", "|---|---|---|---|---|"] + metrics
            + ["", "| Histogram | Values of `le` below `+Inf` |", "|---|---|"] + histograms
        return lines.joined(separator: "\n") + "\n"
    }
}
