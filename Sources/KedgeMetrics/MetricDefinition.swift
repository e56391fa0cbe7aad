/// The facts of one metric: a row of the table in ``MetricName``.
package struct MetricDefinition: Sendable {
    package let metric: MetricName
    /// Full name in Prometheus, with its unit and, for counters, `_total`.
    package let name: String
    package let type: MetricType
    package let unit: MetricUnit?
    package let labelNames: [String]
    /// A sentence about the value.
    package let help: String
    /// Upper bounds of a histogram's buckets in ascending order, without infinity; empty for other
    /// types.
    package let buckets: [Double]

    static func counter(
        _ metric: MetricName, _ name: String, labels labelNames: [String] = [],
        unit: MetricUnit? = nil, _ help: String
    ) -> MetricDefinition {
        MetricDefinition(
            metric: metric, name: name, type: .counter, unit: unit, labelNames: labelNames,
            help: help, buckets: [])
    }

    static func gauge(
        _ metric: MetricName, _ name: String, labels labelNames: [String] = [],
        unit: MetricUnit? = nil, _ help: String
    ) -> MetricDefinition {
        MetricDefinition(
            metric: metric, name: name, type: .gauge, unit: unit, labelNames: labelNames,
            help: help, buckets: [])
    }

    /// A histogram of durations.
    static func histogram(
        _ metric: MetricName, _ name: String, labels labelNames: [String] = [], buckets: [Double],
        _ help: String
    ) -> MetricDefinition {
        MetricDefinition(
            metric: metric, name: name, type: .histogram, unit: .seconds, labelNames: labelNames,
            help: help, buckets: buckets)
    }
}

/// The type of a metric; the raw value is its name in Prometheus.
package enum MetricType: String, Sendable {
    /// A sum that only grows until the process ends.
    case counter
    /// A value of this moment.
    case gauge
    /// Counts of values by size.
    case histogram
}

/// The unit of a metric, which its name ends in.
package enum MetricUnit: String, Sendable {
    case bytes
    case seconds
}

/// Bounds of histograms, in seconds. None is below 0.0001: Swift writes smaller numbers with an
/// exponent, and a bound is a text to Prometheus.
enum HistogramBuckets {
    /// Requests, of which some transfer whole files.
    static let request = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
    ]
    /// Operations of the stores.
    static let operation = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]
    /// Uploads, which may be interrupted for days.
    static let upload: [Double] = [
        0.1, 1, 5, 15, 60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200, 604_800,
    ]
    /// Credentials. Most are in memory; some wait for the keys of an issuer.
    static let authentication = [0.0001, 0.001, 0.01, 0.1, 1, 10]
}
