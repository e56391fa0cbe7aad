import HTTPTypes
import KedgeCurl
import KedgeTransport

/// A request without credentials.
enum PlainRequest {
    static func get(_ url: String) async throws -> (fields: [String: String], body: [UInt8]) {
        let response = try await CurlClient().send(TransportRequest(method: .get, url: url))
        let fields = response.headerFields.map { ($0.name.canonicalName, $0.value) }
        return (
            Dictionary(fields) { first, _ in first },
            try await response.body.collect(upTo: 1 << 20)
        )
    }
}
