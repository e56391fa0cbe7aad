/// The bytes of a response as they arrive, for one reader.
///
/// Backpressure: when about a megabyte waits to be read, the transfer pauses until the reader has
/// caught up. Dropping the sequence and its iterators before the end cancels the exchange: a short
/// rest is still received to keep the connection, a longer one is cut off. Cancelling the reading
/// task ends the exchange with ``CurlError/Code/cancelled``.
///
/// A body that ends before its announced length throws ``CurlError/Code/closedEarly`` after all
/// received bytes were delivered.
package struct CurlResponseBody: AsyncSequence, Sendable {
    /// One piece of the body; never empty, of no particular size.
    package typealias Element = [UInt8]
    /// The error that reading throws.
    package typealias Failure = CurlError

    private let lease: Lease

    init(of exchange: Exchange, from client: CurlClient) {
        self.lease = Lease(exchange: exchange, client: client)
    }

    /// Begins or continues reading. Iterators share one position; only one may wait at a time.
    package func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: lease)
    }

    /// Reads the body to its end.
    ///
    /// - Parameter maxBytes: The largest body to accept.
    /// - Throws: ``CurlError/Code/responseTooLarge`` when the body is larger, and the errors of
    ///   reading.
    package func collect(upTo maxBytes: Int) async throws(CurlError) -> [UInt8] {
        var collected: [UInt8] = []
        var iterator = makeAsyncIterator()
        while let chunk = try await iterator.next(isolation: #isolation) {
            guard collected.count + chunk.count <= maxBytes else {
                throw lease.exchange.error(.responseTooLarge, "the limit is \(maxBytes) bytes")
            }
            if collected.isEmpty { collected = chunk } else { collected += chunk }
        }
        return collected
    }

    /// Reads one body.
    package struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let lease: Lease

        /// Returns the next piece, or `nil` after the last. Every call after an error throws it
        /// again.
        package mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CurlError) -> [UInt8]? {
            try await lease.exchange.next()
        }
    }

    /// A reference shared by all readers of the body. Its release abandons the exchange.
    fileprivate final class Lease: Sendable {
        let exchange: Exchange
        /// Kept so that a body outlives the caller's reference to the client.
        private let client: CurlClient

        init(exchange: Exchange, client: CurlClient) {
            self.exchange = exchange
            self.client = client
        }

        deinit {
            exchange.abandon()
        }
    }
}
