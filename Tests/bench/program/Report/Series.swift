/// Repeated measurements of one thing.
struct Series: Encodable, Sendable {
    /// The measured program.
    let name: String
    let values: [Double]

    /// The median; of an even number of values, the mean of the two in the middle.
    var median: Double { Self.median(of: values) }

    static func median(of values: [Double]) -> Double {
        let sorted = values.sorted()
        let middle = sorted.count / 2
        guard !sorted.isEmpty else { return .nan }
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// Returns the value that this share of all values does not exceed.
    static func percentile(_ share: Double, of values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        return sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }
}
