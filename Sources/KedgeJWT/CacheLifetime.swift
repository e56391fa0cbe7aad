internal import Foundation
internal import KedgeModel

/// The time for which the keys of an issuer are not fetched again.
package enum CacheLifetime {
    /// Without a statement of the issuer.
    package static let usual: Duration = .seconds(600)
    private static let limits: ClosedRange<Int64> = 60...3600

    /// Reads `max-age` of `Cache-Control`, within a minute and an hour: a short time would load the
    /// issuer, and a removed key counts until the next fetch.
    package static func read(_ field: String) -> Duration {
        for directive in field.split(separator: ",") {
            let words = directive.trimmingCharacters(in: .whitespaces).lowercased()
            guard words.hasPrefix("max-age=") else { continue }
            let seconds = WireInteger.parse(words.dropFirst("max-age=".count))
            guard let seconds else { return usual }
            return .seconds(min(max(seconds, limits.lowerBound), limits.upperBound))
        }
        return usual
    }
}
