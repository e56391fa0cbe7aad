internal import Foundation
internal import HTTPTypes
internal import KedgeCurl
public import KedgeTransport

/// The transport over libcurl, and the only file of this module that uses it.
public struct CurlTransport: HTTPTransport {
    private let client: CurlClient

    /// Starts a transport with its own thread and connections.
    ///
    /// - Parameters:
    ///   - userAgent: Value of `User-Agent`.
    ///   - stallTimeout: Time without a byte after which an exchange fails.
    ///   - connectTimeout: Timeout for connecting.
    ///   - maxConnectionsPerHost: Further requests wait for a connection.
    ///   - caFile: PEM file of the certificate authorities to trust instead of the system's. Nil
    ///     uses the file named by the environment's `SSL_CERT_FILE`, or else the system's.
    public init(
        userAgent: String = "kedge", stallTimeout: Duration = .seconds(30),
        connectTimeout: Duration = .seconds(10), maxConnectionsPerHost: Int = 20,
        caFile: String? = nil
    ) {
        var configuration = CurlClient.Configuration()
        configuration.userAgent = userAgent
        configuration.stallTimeout = stallTimeout
        configuration.connectTimeout = connectTimeout
        configuration.maxConnectionsPerHost = maxConnectionsPerHost
        configuration.caFile = caFile ?? Self.environmentCAFile
        self.client = CurlClient(configuration: configuration)
    }

    /// The file that the environment names; nil for an empty name.
    static var environmentCAFile: String? {
        ProcessInfo.processInfo.environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Sends a request on curl's own thread.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse
    {
        let body: CurlRequestBody? =
            switch request.body {
            case nil: nil
            case .bytes(let bytes): .bytes(bytes)
            case .source(let source): .source(CurlSource(source: source))
            }
        let curlRequest = CurlRequest(
            method: request.method, url: request.url, headerFields: request.headerFields,
            body: body,
            timeout: nil, stallTimeout: request.stallTimeout, onBytesSent: request.onBytesSent)
        do {
            let response = try await client.send(curlRequest)
            let content = response.body
            return TransportResponse(
                status: response.head.status.code, headerFields: response.head.headerFields,
                body: TransportResponseBody { () async throws(TransportError) -> [UInt8]? in
                    // Iterators share one position, so a new one continues there.
                    var iterator = content.makeAsyncIterator()
                    do throws(CurlError) {
                        return try await iterator.next(isolation: nil)
                    } catch {
                        throw TransportError(error, url: curlRequest.url)
                    }
                })
        } catch {
            throw TransportError(error, url: request.url)
        }
    }

    /// Stops curl's thread; running exchanges end as canceled.
    public func shutdown() async { await client.shutdown() }
}

/// Adapts a body source to curl.
private struct CurlSource: CurlRequestBodySource {
    let source: any TransportBodySource

    var byteCount: Int64 { source.byteCount }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        try source.read(into: buffer, at: offset)
    }
}

extension TransportError {
    /// Translates a curl error of a request to a URL.
    fileprivate init(_ error: CurlError, url: String) {
        let kind: Kind =
            switch error.code {
            case .couldNotResolve, .couldNotConnect: .offline
            case .closedEarly, .sendFailed, .receiveFailed: .dropped
            case .stalled: .stalled
            case .timedOut: .timedOut
            // The connection was cut before it was secure.
            case .tlsFailed: error.reason == .reset ? .offline : .tls
            case .cancelled: .canceled
            case .bodyReadFailed: .bodyUnreadable
            default: .other
            }
        self.init(
            kind, isTransient: error.isTransient, connection: ConnectionFailure(error, url: url),
            detail: error.debugDescription, cause: error.cause ?? error)
    }
}

extension ConnectionFailure {
    /// Translates curl's facts about the connection; nil if the connection did not fail.
    fileprivate init?(_ error: CurlError, url: String) {
        guard let host = error.host, let port = error.port, error.reason != .other else {
            return nil
        }
        let proxy = EnvironmentProxy.named(
            for: url, in: ProcessInfo.processInfo.environment)
        self.init(error.reason, host: host, port: port, proxy: proxy?.address)
    }
}
