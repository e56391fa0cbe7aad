/// Records the metrics of this process and writes them as text for Prometheus.
///
/// Label values are given in the order of the table in ``MetricName``. A call with a type or a
/// number of labels that the table does not have is a mistake of the caller, and traps.
package final class Metrics: Sendable {
    /// In the order of the table.
    private let families: [MetricFamily]
    private let collectors = MetricCollectors()
    private let now: @Sendable () -> ContinuousClock.Instant
    private let onOverflow: @Sendable (MetricName) -> Void

    /// Creates a recorder without values.
    ///
    /// - Parameters:
    ///   - now: The time, which decides how long collected samples count.
    ///   - onOverflow: Called once for each metric that has too many label combinations. All
    ///     further combinations count under the label value `other`.
    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        onOverflow: @escaping @Sendable (MetricName) -> Void = { _ in }
    ) {
        families = MetricName.allCases.map { MetricFamily($0.definition) }
        self.now = now
        self.onOverflow = onOverflow
    }

    /// Adds to a counter or a gauge. Only a gauge takes a negative amount. Zero creates the series,
    /// so that Prometheus sees the first change of a counter.
    package func increment(
        _ name: MetricName, by amount: Int64 = 1, _ labels: [String] = []
    ) {
        let type = families[name.rawValue].definition.type
        precondition(type != .histogram, "a histogram observes values")
        precondition(amount >= 0 || type == .gauge, "a counter only grows")
        update(name, labels) { $0.value += Double(amount) }
    }

    /// Sets a gauge.
    package func set(_ name: MetricName, to value: Double, _ labels: [String] = []) {
        precondition(families[name.rawValue].definition.type == .gauge, "only a gauge is set")
        update(name, labels) { $0.value = value }
    }

    /// Counts a duration in a histogram. A negative one counts as zero, because a wall clock can be
    /// set back.
    package func observe(_ name: MetricName, seconds: Double, _ labels: [String] = []) {
        let family = families[name.rawValue]
        precondition(family.definition.type == .histogram, "only a histogram observes values")
        let seconds = seconds > 0 ? seconds : 0
        let bounds = family.definition.buckets
        let bucket = bounds.firstIndex { seconds <= $0 } ?? bounds.count
        update(name, labels) { series in
            series.value += seconds
            series.counts[bucket] += 1
        }
    }

    /// Counts the time since an instant in a histogram.
    package func observe(
        _ name: MetricName, since start: ContinuousClock.Instant, _ labels: [String] = []
    ) {
        observe(name, seconds: start.duration(to: .now) / .seconds(1), labels)
    }

    /// Adds a collector, which ``text(_:)`` asks for gauges and counters at most every ten seconds.
    ///
    /// A collector has a time limit of its own, and leaves out values that it cannot read. Samples
    /// of a metric replace the recorded values of that metric.
    package func addCollector(_ collector: @escaping @Sendable () async -> [MetricSample]) {
        collectors.add(collector)
    }

    /// All metrics that have a value, in the order of the table, each with its series in the order
    /// of their labels.
    package func text(_ format: MetricsFormat) async -> String {
        let collected = tables(of: await collectors.samples(at: now()))
        var writer = MetricsWriter(format)
        for family in families {
            let series = collected[family.definition.metric]?.series ?? family.series
            writer.write(family.definition, series)
        }
        return writer.finish()
    }

    /// The samples as series, by metric.
    private func tables(of samples: [MetricSample]) -> [MetricName: SeriesTable] {
        var tables: [MetricName: SeriesTable] = [:]
        for sample in samples {
            let definition = sample.name.definition
            precondition(
                definition.type != .histogram
                    && sample.labels.count == definition.labelNames.count,
                "a collected sample does not fit its metric")
            // A collector has a fixed set of labels, so an overflow needs no warning of its own.
            _ = tables[sample.name, default: SeriesTable(definition)].update(sample.labels) {
                $0.value = sample.value
            }
        }
        return tables
    }

    private func update(
        _ name: MetricName, _ labels: [String], _ change: (inout MetricSeries) -> Void
    ) {
        let isFirstOverflow = families[name.rawValue].update(labels, change)
        // Outside the lock: the receiver may record metrics.
        if isFirstOverflow { onOverflow(name) }
    }
}
