internal import KedgeLocks

/// The recorded series of one metric, behind a lock of their own: threads that record different
/// metrics do not wait for each other.
final class MetricFamily: Sendable {
    let definition: MetricDefinition
    private let table: Mutex<SeriesTable>

    init(_ definition: MetricDefinition) {
        self.definition = definition
        table = Mutex(SeriesTable(definition))
    }

    /// All series as they are at one moment: the sum, count and buckets of a histogram agree.
    var series: [MetricSeries] { table.withLock { $0.series } }

    /// - Returns: True for the first change that the overflow series took.
    func update(_ labels: [String], _ change: (inout MetricSeries) -> Void) -> Bool {
        precondition(
            labels.count == definition.labelNames.count,
            "a metric was recorded with the wrong number of labels")
        return table.withLock { $0.update(labels, change) }
    }
}
