/// The value of one metric for one combination of label values.
struct MetricSeries: Sendable {
    let labels: [String]
    /// The value; for a histogram, the sum of the observed values.
    var value: Double = 0
    /// For a histogram: the number of values in each bucket, without those of smaller buckets. The
    /// last bucket has no upper bound.
    var counts: [UInt64]
}

/// The series of one metric, of which there are at most ``maxSeriesCount``.
struct SeriesTable: Sendable {
    /// Prometheus keeps each series in memory, and clients may choose label values that this
    /// program does not foresee.
    static let maxSeriesCount = 1000
    /// Value of every label of the series that takes the values of all further combinations.
    static let overflowLabel = "other"

    private(set) var series: [MetricSeries] = []
    private var indexes: [[String]: Int] = [:]
    private var hasOverflowed = false
    private let bucketCount: Int

    /// Creates a table without values. A counter or histogram without labels is zero from the
    /// start, so that Prometheus sees its first change. A gauge has no value before it is set.
    init(_ definition: MetricDefinition) {
        bucketCount = definition.type == .histogram ? definition.buckets.count + 1 : 0
        if definition.labelNames.isEmpty, definition.type != .gauge { _ = place(of: []) }
    }

    /// Changes the series with these labels; creates it if needed.
    ///
    /// - Returns: True for the first change that the overflow series took.
    mutating func update(_ labels: [String], _ change: (inout MetricSeries) -> Void) -> Bool {
        if let index = indexes[labels] {
            change(&series[index])
            return false
        }
        // The last place belongs to the overflow series.
        let isFull = series.count >= Self.maxSeriesCount - 1
        let counted =
            isFull ? Array(repeating: Self.overflowLabel, count: labels.count) : labels
        let index = place(of: counted)
        change(&series[index])
        let isFirst = isFull && !hasOverflowed
        hasOverflowed = isFull
        return isFirst
    }

    /// The index of the series with these labels, which is created if needed.
    private mutating func place(of labels: [String]) -> Int {
        if let index = indexes[labels] { return index }
        series.append(
            MetricSeries(labels: labels, counts: Array(repeating: 0, count: bucketCount)))
        indexes[labels] = series.count - 1
        return series.count - 1
    }
}
