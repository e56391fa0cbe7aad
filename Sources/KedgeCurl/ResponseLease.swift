import KedgeTransport

/// The right to read the body of one response, shared by its readers. Its release ends the
/// exchange: a short rest is still received to keep the connection, a longer one is cut off.
///
/// Backpressure: when about a megabyte waits to be read, the transfer pauses until the reader has
/// caught up.
final class ResponseLease: Sendable {
    private let exchange: Exchange
    /// Kept so that a body outlives the caller's reference to the client.
    private let client: CurlClient
    private let url: String

    init(_ exchange: Exchange, of client: CurlClient, url: String) {
        self.exchange = exchange
        self.client = client
        self.url = url
    }

    deinit {
        exchange.discardBody()
    }

    /// Returns the next piece, or nil after the last. Every call after an error throws it again.
    /// Only one call may wait at a time.
    func next() async throws(TransportError) -> [UInt8]? {
        do throws(CurlError) {
            return try await exchange.next()
        } catch {
            throw client.transportError(error, url: url)
        }
    }
}

extension TransportResponseBody {
    /// Creates a body that holds the lease.
    init(holding lease: ResponseLease) {
        self.init { () async throws(TransportError) -> [UInt8]? in try await lease.next() }
    }
}
