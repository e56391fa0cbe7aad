internal import Foundation
internal import HTTPTypes
internal import KedgeTransport
internal import Logging

/// Logs each request with its result, without secrets.
struct LoggingTransport: HTTPTransport {
    let inner: any HTTPTransport
    let logger: Logger

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let began = ContinuousClock.now
        var facts: Logger.Metadata = [
            "method": "\(request.method)", "url": "\(Self.withoutSecrets(request.url))",
        ]
        if let body = request.body { facts["sent.bytes"] = "\(body.byteCount)" }
        if let range = request.headerFields[.range] { facts["range"] = "\(range)" }
        do {
            let response = try await inner.send(request)
            let fields = response.headerFields
            facts["status"] = "\(response.status)"
            facts["received.bytes"] = fields[.contentLength].map { "\($0)" }
            facts["request.id"] = fields[.xRequestID].map { "\($0)" }
            facts["ms"] = "\(Self.milliseconds(since: began))"
            logger.debug("request", metadata: facts)
            if logger.logLevel <= .trace {
                let names = fields.filter { $0.name != .setCookie }
                    .map { "\($0.name): \(Self.withoutSecrets($0.value))" }
                logger.trace("answer", metadata: ["fields": "\(names.joined(separator: "; "))"])
            }
            return response
        } catch {
            facts["ms"] = "\(Self.milliseconds(since: began))"
            facts["error"] = "\(error.connection?.text ?? error.kind.rawValue)"
            if !error.detail.isEmpty { facts["detail"] = "\(error.detail)" }
            logger.debug("request failed", metadata: facts)
            throw error
        }
    }

    func shutdown() async { await inner.shutdown() }

    private static func milliseconds(since began: ContinuousClock.Instant) -> String {
        String(format: "%.1f", began.duration(to: .now) / .milliseconds(1))
    }

    /// The URL without user, password and query: they may be a signature.
    private static func withoutSecrets(_ url: String) -> String {
        let plain = URLText.withoutUserInfo(url)
        guard let query = plain.firstIndex(of: "?") else { return plain }
        let names = plain[query...].dropFirst().split(separator: "&").map { pair in
            pair.prefix { $0 != "=" } + "=***"
        }
        return plain[..<query] + "?" + names.joined(separator: "&")
    }
}
