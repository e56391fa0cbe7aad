/// A failure of an exchange made with ``CurlClient``.
///
/// An HTTP status is never an error here: a 404 is a response. Two errors are equal when their
/// codes are, so that callers and tests compare kinds and not wording.
package struct CurlError: Error, Sendable {
    /// What went wrong, as a caller may act on it.
    package let code: Code
    /// The method of the request, for example `PUT`.
    package let operation: String
    /// The host of the request's URL; never its path, query or credentials.
    package let host: String?
    /// The port of the request's URL.
    package let port: Int?
    /// Why, in more detail than ``code``.
    package let reason: Reason
    /// The `CURLcode` libcurl reported, or 0 where the failure was found by our own code.
    package let curlCode: Int32
    /// libcurl's own words or ours, for logs and never for strangers.
    package let detail: String
    /// The error that led to this one: for ``Code/bodyReadFailed`` what the body source threw.
    package let cause: (any Error)?

    init(
        _ code: Code, for subject: Subject, reason: Reason? = nil, curlCode: Int32 = 0,
        detail: String, cause: (any Error)? = nil
    ) {
        self.code = code
        self.operation = subject.operation
        self.host = subject.host
        self.port = subject.port
        self.reason = reason ?? Reason(code)
        self.curlCode = curlCode
        self.detail = detail
        self.cause = cause
    }

    /// Whether the same request may well succeed later without anybody changing anything.
    ///
    /// It says nothing about whether repeating the request is safe: after ``Code/closedEarly`` the
    /// server may have acted on it.
    package var isTransient: Bool {
        switch code.kind {
        case .couldNotResolve, .couldNotConnect, .timedOut, .stalled, .closedEarly, .sendFailed,
            .receiveFailed:
            true
        case .tlsFailed:
            // A connection cut during the handshake looks like this; a bad certificate does not.
            curlCode == CurlFailure.handshakeFailed
        case .invalidURL, .protocolError, .responseTooLarge, .bodyReadFailed, .cancelled,
            .internalError:
            false
        }
    }

    /// What an error is about; kept apart so that every place that makes an error names it alike.
    struct Subject: Sendable {
        let operation: String
        let host: String?
        var port: Int?
    }
}

extension CurlError: Equatable {
    /// Compares the codes only.
    package static func == (left: CurlError, right: CurlError) -> Bool {
        left.code == right.code
    }
}

extension CurlError: CustomStringConvertible, CustomDebugStringConvertible {
    /// The code alone, which is safe to show to anybody.
    package var description: String { code.description }

    /// Everything that is known, for the log.
    package var debugDescription: String {
        let causeText = cause.map { ", cause: \(String(reflecting: $0))" } ?? ""
        let subject = "\(operation) \(host ?? "-"), \(reason), curl \(curlCode)"
        return "\(code) (\(subject)): \(detail)\(causeText)"
    }
}
