package import KedgeTransport

/// A failure of an exchange made with ``CurlClient``, in libcurl's terms. Callers get it as the
/// cause of a ``TransportError``.
///
/// An HTTP status is never an error here: a 404 is a response. Two errors are equal when their
/// codes are equal, so callers and tests compare kinds instead of wording.
package struct CurlError: Error, Sendable {
    /// The kind of failure, for decisions of the caller.
    package let code: Code
    /// The method of the request, for example `PUT`.
    package let operation: String
    /// The host of the request's URL; never its path, query or credentials.
    package let host: String?
    /// The port of the request's URL.
    package let port: Int?
    /// The cause, in more detail than ``code``.
    package let reason: ConnectionCause
    /// The `CURLcode` that libcurl reported, or 0 if this module's own code found the failure.
    package let curlCode: Int32
    /// libcurl's text or ours. For logs; not safe to send to a client.
    package let detail: String
    /// The underlying error: for ``Code/bodyReadFailed``, the error of the body source.
    package let cause: (any Error)?

    package init(
        _ code: Code, for subject: Subject, reason: ConnectionCause? = nil, curlCode: Int32 = 0,
        detail: String, cause: (any Error)? = nil
    ) {
        self.code = code
        self.operation = subject.operation
        self.host = subject.host
        self.port = subject.port
        self.reason = reason ?? ConnectionCause(code)
        self.curlCode = curlCode
        self.detail = detail
        self.cause = cause
    }

    /// Whether the same request may succeed later without any change.
    ///
    /// It does not mean that repeating the request is safe: after ``Code/closedEarly`` the server
    /// may have acted on it.
    package var isTransient: Bool {
        switch code.kind {
        case .couldNotResolve, .couldNotConnect, .timedOut, .stalled, .closedEarly, .sendFailed,
            .receiveFailed:
            true
        case .tlsFailed:
            // This is a connection cut during the handshake, not a bad certificate.
            curlCode == CurlFailure.handshakeFailed
        case .invalidURL, .protocolError, .responseTooLarge, .bodyReadFailed, .cancelled,
            .internalError:
            false
        }
    }

    /// The request that an error is about. A type of its own, so that all errors name it alike.
    package struct Subject: Sendable {
        let operation: String
        let host: String?
        var port: Int?

        package init(
            operation: String,
            host: String?,
            port: Int? = nil
        ) {
            self.operation = operation
            self.host = host
            self.port = port
        }
    }
}

extension CurlError: Equatable {
    /// Compares the codes only.
    package static func == (left: CurlError, right: CurlError) -> Bool {
        left.code == right.code
    }
}

extension CurlError: CustomStringConvertible, CustomDebugStringConvertible {
    /// The code alone. Safe to show to any client.
    package var description: String { code.description }

    /// All known details, for the log.
    package var debugDescription: String {
        let causeText = cause.map { ", cause: \(String(reflecting: $0))" } ?? ""
        let subject = "\(operation) \(host ?? "-"), \(reason), curl \(curlCode)"
        return "\(code) (\(subject)): \(detail)\(causeText)"
    }
}
