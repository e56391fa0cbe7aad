internal import HTTPTypes
internal import KedgeCurl
internal import KedgeEngine
internal import KedgeModel
internal import KedgeTransport

/// A failed request, with the details that decide about a retry.
package struct S3Failure: Error, Sendable {
    /// The store's own code, for example `SlowDown`. Without one, `HTTP503` or similar, or the code
    /// of the connection's failure.
    let code: String
    /// The status; 0 without an answer.
    var status = 0
    /// For logs: the operation and the store's message.
    let detail: String
    var isTransient = false
    /// The pause that the store requested.
    var retryAfter: Duration?
    /// The bucket's region, if the answer names it.
    var region: String?
    /// The store's clock.
    var date: Timestamp?

    /// Whether the store itself reports that the object or upload does not exist. A 404 without the
    /// store's code may come from any intermediary and proves nothing.
    var isAbsence: Bool { ["NoSuchKey", "NoSuchUpload"].contains(code) }
    /// Whether the object may be absent: an answer without a body cannot prove it.
    var isUnexplainedAbsence: Bool { ["HTTP404", "NotFound"].contains(code) }
    var isMissingUpload: Bool { code == "NoSuchUpload" }
    /// Whether the store does not support the operation.
    var isUnsupported: Bool { status == 501 || code == "NotImplemented" || status == 405 }
    /// Whether the store received other bytes than announced.
    var isDamage: Bool {
        ["BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "InvalidDigest"].contains(code)
    }
    var isSkew: Bool { code == "RequestTimeTooSkewed" }
    var isBadCredentials: Bool {
        ["ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "TokenRefreshRequired"]
            .contains(code)
    }
    /// A refusal without a code, as in answers to HEAD. The clock or the credentials may be the
    /// reason.
    var isUnexplained: Bool { code == "HTTP400" || code == "HTTP403" }
    var isElsewhere: Bool {
        [301, 307].contains(status) || code == "AuthorizationHeaderMalformed"
    }
}

extension S3Failure {
    init(_ error: TransportError, _ operation: String) {
        self.init(
            code: error.code, detail: "\(operation): \(error.detail)",
            isTransient: error.isTransient)
    }

    /// Reads the failure from an answer.
    init(_ response: TransportResponse, body: [UInt8], _ operation: String) {
        let (status, fields) = (response.status, response.headerFields)
        let error = XMLElement(document: body)?.first("Error")
        let code = error?.text(of: "Code") ?? "HTTP\(status)"
        let message = error?.text(of: "Message")?.prefix(300) ?? ""
        self.init(
            code: code, status: status,
            detail: "\(operation): \(status) \(code) \(message)",
            isTransient: Self.isTransient(status, code, operation),
            retryAfter: fields[.retryAfter].flatMap { WireInteger.parse($0) }
                .map { .seconds(min($0, 3600)) },
            region: error?.text(of: "Region") ?? fields[.named("x-amz-bucket-region")],
            date: fields[.date].flatMap { Timestamp(httpDate: $0) })
    }

    private static func isTransient(_ status: Int, _ code: String, _ operation: String) -> Bool {
        switch code {
        case "RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling",
            "OperationAborted":
            true
        // Without the store's code, an intermediary has sent it. Answers to HEAD never have a code.
        case "HTTP404": operation != "HeadObject"
        default: [408, 429, 500, 502, 503, 504].contains(status)
        }
    }
}

extension S3Failure: CustomStringConvertible {
    package var description: String { detail }
}

extension ByteStoreError {
    /// Translates a failed request. The text is for logs.
    init(_ failure: S3Failure) {
        if failure.isAbsence {
            self = .notFound
        } else if failure.status == 507 || failure.code == "QuotaExceeded" {
            self = .full(failure.detail)
        } else if failure.isTransient || failure.isBadCredentials || failure.status == 403 {
            self = .unavailable(failure.detail)
        } else {
            self = .failed(failure.detail)
        }
    }
}
