/// A value of a gauge or counter that a collector read.
package struct MetricSample: Hashable, Sendable {
    package let name: MetricName
    package let value: Double
    /// Label values in the order of the table.
    package let labels: [String]

    package init(_ name: MetricName, _ value: Double, _ labels: [String] = []) {
        self.name = name
        self.value = value
        self.labels = labels
    }
}
