public import HTTPTypes

/// A response whose head has arrived.
public struct TransportResponse: Sendable {
    /// The HTTP status.
    public let status: Int
    /// Header fields of the final response.
    public let headerFields: HTTPFields
    /// The body, which is still arriving.
    public let body: TransportResponseBody

    /// Creates a response.
    public init(status: Int, headerFields: HTTPFields, body: TransportResponseBody) {
        self.status = status
        self.headerFields = headerFields
        self.body = body
    }
}

/// The body of a response, pulled by one reader as it arrives. Dropping it cancels the exchange.
public struct TransportResponseBody: Sendable {
    private let pull: @Sendable () async throws(TransportError) -> [UInt8]?

    /// Wraps a function that returns the next bytes, or nil after the last. A body that ends before
    /// its announced length must throw, after every byte that arrived was returned.
    public init(_ pull: @escaping @Sendable () async throws(TransportError) -> [UInt8]?) {
        self.pull = pull
    }

    /// Returns the next bytes, or nil after the last.
    public func next() async throws(TransportError) -> [UInt8]? { try await pull() }

    /// Reads to the end; throws ``TransportError/Kind/other`` after more than `maxBytes`.
    public func collect(upTo maxBytes: Int) async throws(TransportError) -> [UInt8] {
        var collected: [UInt8] = []
        while let piece = try await next() {
            guard collected.count + piece.count <= maxBytes else {
                throw TransportError(.other, detail: "the answer is larger than \(maxBytes) bytes")
            }
            collected.append(contentsOf: piece)
        }
        return collected
    }
}
