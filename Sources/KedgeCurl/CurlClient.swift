import HTTPTypes
import KedgeTransport

/// A small HTTP/1.1 client over libcurl, with one thread per client.
///
/// The thread runs libcurl's multi interface. Callers only wait on continuations and never block
/// Swift's cooperative pool. Connections are kept and reused. The client supports only `http` and
/// `https`, follows no redirects and undoes no content codings.
///
/// ```swift
/// let client = CurlClient()
/// let response = try await client.send(.init(method: .get, url: "https://example.org/"))
/// let bytes = try await response.body.collect(upTo: 65_536)
/// ```
package final class CurlClient: Sendable {
    private let loop: CurlLoop

    /// Starts the client's thread.
    package init(configuration: Configuration = .init()) {
        self.loop = CurlLoop(configuration: configuration)
        loop.start()
    }

    /// Stops the thread without waiting for it. A response body keeps its client, so a body that is
    /// still being read is not cut off.
    deinit {
        loop.stop()
    }

    /// Sends a request and returns when the final response head has arrived.
    ///
    /// An answer that arrives before the request body is sent completely is returned all the same.
    /// Cancelling the task ends the transfer and throws ``CurlError/Code/cancelled``.
    ///
    /// - Throws: a ``CurlError``; statuses of 4xx and 5xx are responses and do not throw.
    package func send(_ request: CurlRequest) async throws(CurlError) -> CurlResponse {
        let operation = request.method.rawValue
        guard let origin = URLOrigin(request.url) else {
            throw CurlError(
                .invalidURL, for: .init(operation: operation, host: nil),
                detail: "not an absolute URL of \(request.url.utf8.count) bytes")
        }
        let exchange = Exchange(operation: operation, origin: origin, loop: loop)
        do throws(CurlError) {
            let head = try await exchange.start(request)
            return CurlResponse(head: head, body: CurlResponseBody(of: exchange, from: self))
        } catch {
            guard error.reason == .nameUnresolved, await NameLookup.isMissing(origin.host) else {
                throw error
            }
            throw CurlError(
                error.code, for: exchange.subject, reason: .nameNotFound,
                curlCode: error.curlCode, detail: error.detail)
        }
    }

    /// Stops the thread and returns when it has ended. Idempotent. Exchanges under way and every
    /// later ``send(_:)`` fail with ``CurlError/Code/cancelled``.
    package func shutdown() async {
        loop.stop()
        await loop.waitUntilStopped()
    }
}
