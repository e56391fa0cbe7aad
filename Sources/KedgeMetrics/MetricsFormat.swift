/// The text formats in which the service shows its metrics.
package enum MetricsFormat: CaseIterable, Sendable {
    /// Prometheus text format 0.0.4.
    case prometheusText
    /// OpenMetrics 1.0.0.
    case openMetrics

    /// Chooses the format for an `Accept` field. Only a client that names OpenMetrics gets it, and
    /// only if it does not prefer the older format: people read that one, by `*/*`. An unknown
    /// media type is no error; its client gets the older format, too.
    package init(accept: String?) {
        // No name or number in the field has a space inside.
        let field = (accept ?? "").lowercased().filter { $0 != " " && $0 != "\t" }
        var openMetricsQuality = 0.0
        var textQuality = 0.0
        for range in field.split(separator: ",") {
            let parts = range.split(separator: ";").map(String.init)
            let version = parts.first { $0.hasPrefix("version=") }
            let quality = Self.quality(parts)
            switch parts.first ?? "" {
            case "application/openmetrics-text"
            where version ?? Self.openVersion == Self.openVersion:
                openMetricsQuality = max(openMetricsQuality, quality)
            case "text/plain" where version ?? Self.textVersion == Self.textVersion:
                textQuality = max(textQuality, quality)
            case "text/*", "*/*":
                textQuality = max(textQuality, quality)
            default:
                break
            }
        }
        let isOpen = openMetricsQuality > 0 && openMetricsQuality >= textQuality
        self = isOpen ? .openMetrics : .prometheusText
    }

    /// Value of `Content-Type` for this format.
    package var contentType: String {
        switch self {
        case .prometheusText: "text/plain; \(Self.textVersion); charset=utf-8"
        case .openMetrics: "application/openmetrics-text; \(Self.openVersion); charset=utf-8"
        }
    }

    private static let textVersion = "version=0.0.4"
    private static let openVersion = "version=1.0.0"

    /// The weight of a media range: 1 by default, 0 if it is malformed.
    private static func quality(_ parts: [String]) -> Double {
        guard let parameter = parts.first(where: { $0.hasPrefix("q=") }) else { return 1 }
        guard let value = Double(parameter.dropFirst(2)), (0...1).contains(value) else { return 0 }
        return value
    }
}
