/// The bytes of a response as they arrive, for one reader.
///
/// When about a megabyte waits to be read, the transfer pauses until the reader has caught up, and
/// so does the peer. Dropping the sequence and its iterators before the end gives the exchange up:
/// a short rest is received for the sake of the connection, a longer one cut off. Cancelling the
/// reading task ends the exchange with ``CurlError/Code/cancelled``.
///
/// A body that ends before its announced length throws ``CurlError/Code/closedEarly`` after every
/// byte that arrived has been delivered.
package struct CurlResponseBody: AsyncSequence, Sendable {
    /// One piece of the body, never empty, of no particular size.
    package typealias Element = [UInt8]
    /// What reading throws.
    package typealias Failure = CurlError

    private let lease: Lease

    init(of exchange: Exchange, from client: CurlClient) {
        self.lease = Lease(exchange: exchange, client: client)
    }

    /// Begins or continues reading: iterators share one position, and only one may wait at a time.
    package func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease: lease)
    }

    /// Reads the body to its end.
    ///
    /// - Parameter maxBytes: how much to accept.
    /// - Throws: ``CurlError/Code/responseTooLarge`` once more arrives, and what reading throws.
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

        /// The next piece, or `nil` after the last; an error is thrown again by every later call.
        package mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CurlError) -> [UInt8]? {
            try await lease.exchange.next()
        }
    }

    /// Shared by everything that can still read the body; its end is the end of the interest in it.
    fileprivate final class Lease: Sendable {
        let exchange: Exchange
        /// Kept so that a body outlives the caller's own reference to the client.
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
