internal import HTTPTypes
internal import KedgeCurl
internal import KedgeTransport

/// Requests credentials from the endpoints that issue them.
struct CredentialsEndpointClient: Sendable {
    /// These services are near, and without one the start must not be delayed for long.
    private static let timeout = Duration.seconds(5)
    private static let maxByteCount = 256 << 10

    let http: CurlClient

    /// Sends a request and returns the text of a successful answer.
    ///
    /// - Throws: ``S3SetupError`` otherwise; it only names the host.
    func text(
        _ method: HTTPRequest.Method, _ url: String, fields: [(String, String)] = [],
        body: String? = nil, timeout: Duration = timeout
    ) async throws -> String {
        var request = TransportRequest(method: method, url: url)
        request.timeout = timeout
        for (name, value) in fields { request.headerFields[.named(name)] = value }
        request.body = body.map { .bytes(Array($0.utf8)) }
        do {
            let response = try await http.send(request)
            let bytes = try await response.body.collect(upTo: Self.maxByteCount)
            guard response.status == 200 else {
                let host = url.split(separator: "/").dropFirst().first ?? ""
                throw S3SetupError(
                    "\(host) answered \(response.status) to a request for credentials")
            }
            return String(decoding: bytes, as: UTF8.self)
        } catch let error as TransportError {
            let host = error.curl?.host ?? "a service"
            throw S3SetupError("no credentials from \(host): \(error.code)")
        }
    }
}

extension HTTPField.Name {
    /// Makes a field's name from a literal, which must be a token.
    static func named(_ name: String) -> HTTPField.Name {
        guard let field = HTTPField.Name(name) else {
            preconditionFailure("\(name) is not a field name")
        }
        return field
    }
}
