public import HTTPTypes

/// Carries requests of a ``TransferClient`` to a server.
///
/// The client's one seam to the network. ``CurlTransport`` is the default; a host application may
/// provide its own, for example over a background session.
///
/// A transport follows no redirect, decodes no content coding and adds no `Accept-Encoding`. It
/// reports a link on which no byte moves as ``TransportError/Kind/stalled``.
public protocol HTTPTransport: Sendable {
    /// Sends a request and returns when the head of the final response has arrived.
    ///
    /// A status of 4xx or 5xx is a response, not an error. Canceling the task ends the exchange and
    /// throws an error of kind ``TransportError/Kind/canceled``.
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

    /// Ends every exchange and releases connections; called once, when the client closes.
    func shutdown() async
}

/// One HTTP request.
public struct TransportRequest: Sendable {
    /// The method; `HEAD` and `GET` send no body.
    public var method: HTTPRequest.Method
    /// An absolute `http` or `https` URL, percent-encoded.
    public var url: String
    /// Header fields to send; the transport adds `Content-Length` from the body.
    public var headerFields: HTTPFields
    /// The body; nil for none.
    public var body: TransportBody?
    /// Longest time without a byte in either direction; nil for the transport's default. Calls that
    /// may take long on the server set a larger one.
    public var stallTimeout: Duration?
    /// Called with the number of body bytes handed to the connection so far; must return at once.
    /// The server may have kept fewer.
    public var onBytesSent: (@Sendable (Int64) -> Void)?

    /// Creates a request.
    public init(
        method: HTTPRequest.Method, url: String, headerFields: HTTPFields = [:],
        body: TransportBody? = nil, stallTimeout: Duration? = nil,
        onBytesSent: (@Sendable (Int64) -> Void)? = nil
    ) {
        self.method = method
        self.url = url
        self.headerFields = headerFields
        self.body = body
        self.stallTimeout = stallTimeout
        self.onBytesSent = onBytesSent
    }
}

/// The body of a request; its size is always known.
public enum TransportBody: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes that are read in pieces while they are sent.
    case source(any TransportBodySource)

    /// Number of bytes that will be sent.
    public var byteCount: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .source(let source): source.byteCount
        }
    }
}

/// A request body that is read while it is sent, so that memory use does not grow with its size.
public protocol TransportBodySource: Sendable {
    /// Number of bytes; constant during a request.
    var byteCount: Int64 { get }
    /// Fills the buffer's front with bytes from `offset` on; returns their number, at least one.
    ///
    /// Called on a thread of the transport; it may request the same offset again.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int
}

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

/// The body of a response, pulled in pieces by one reader. Dropping it cancels the exchange.
public struct TransportResponseBody: Sendable {
    private let pull: @Sendable () async throws(TransportError) -> [UInt8]?

    /// Wraps a function that returns the next piece, or nil after the last. A body that ends before
    /// its announced length must throw, after every byte that arrived was returned.
    public init(_ pull: @escaping @Sendable () async throws(TransportError) -> [UInt8]?) {
        self.pull = pull
    }

    /// Returns the next piece, or nil after the last.
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
