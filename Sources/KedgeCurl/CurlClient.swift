import Foundation
import HTTPTypes
package import KedgeTransport

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
package final class CurlClient: HTTPTransport {
    private let loop: CurlLoop
    private let configuration: Configuration

    /// Starts the client's thread.
    package init(configuration: Configuration = .init()) {
        self.loop = CurlLoop(configuration: configuration)
        self.configuration = configuration
        loop.start()
    }

    /// Stops the thread without waiting for it. A response body keeps its client, so a body that is
    /// still being read is not cut off.
    deinit {
        loop.stop()
    }

    /// Sends a request and returns when the final response head has arrived.
    ///
    /// Dot segments of the URL's path stay. `Content-Length` and `Transfer-Encoding` among the
    /// header fields are left out: the body decides them. `HEAD` never sends a body; `POST`, `PUT`
    /// and `PATCH` without one send an empty one.
    ///
    /// An answer that arrives before the request body is sent completely is returned all the same.
    /// A body that was begun is never sent again automatically, not even after a kept connection
    /// turns out to be dead; only the server knows which bytes it kept.
    ///
    /// Cancelling the task, or a task that reads the body, ends the transfer and throws
    /// ``TransportError/Kind/canceled``. A body that ends before its announced length throws
    /// ``TransportError/Kind/dropped`` after all received bytes were delivered.
    ///
    /// - Throws: ``TransportError``; its ``TransportError/curl`` has the details.
    package func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        do throws(CurlError) {
            let (head, exchange) = try await begin(request)
            let lease = ResponseLease(exchange, of: self, url: request.url)
            return TransportResponse(
                status: head.status.code, headerFields: head.headerFields,
                body: TransportResponseBody(holding: lease))
        } catch {
            throw transportError(error, url: request.url)
        }
    }

    /// Stops the thread and returns when it has ended. Idempotent. Exchanges under way and every
    /// later ``send(_:)`` fail with ``TransportError/Kind/canceled``.
    package func shutdown() async {
        loop.stop()
        await loop.waitUntilStopped()
    }

    /// Translates a failed exchange with a URL.
    func transportError(_ error: CurlError, url: String) -> TransportError {
        let own = URLText.origin(of: url).flatMap { configuration.origins[$0] }
        let configured =
            own?.proxy ?? configuration.proxy
            ?? (configuration.usesEnvironmentProxy ? nil : "")
        let proxy = EnvironmentProxy.used(
            for: url, configured: configured, in: ProcessInfo.processInfo.environment)
        return TransportError(
            error, proxy: proxy?.address, caFile: own?.caFile ?? configuration.caFile)
    }

    /// Starts an exchange and waits for the head of its response.
    private func begin(
        _ request: TransportRequest
    ) async throws(CurlError) -> (head: HTTPResponse, exchange: Exchange) {
        let operation = request.method.rawValue
        guard let origin = URLOrigin(request.url) else {
            throw CurlError(
                .invalidURL, for: .init(operation: operation, host: nil),
                detail: "not an absolute URL of \(request.url.utf8.count) bytes")
        }
        let exchange = Exchange(operation: operation, origin: origin, loop: loop)
        do throws(CurlError) {
            return (try await exchange.start(request), exchange)
        } catch {
            guard error.reason == .nameUnresolved, await NameLookup.isMissing(origin.host) else {
                throw error
            }
            throw CurlError(
                error.code, for: exchange.subject, reason: .nameNotFound,
                curlCode: error.curlCode, detail: error.detail)
        }
    }
}
