internal import HTTPTypes
internal import KedgeCurl
internal import KedgeEngine
internal import KedgeModel

/// A request that failed, with what matters for trying again.
struct S3Failure: Error, Sendable {
    /// The store's own code, for example `SlowDown`; where the answer has none, `HTTP503`, or what the
    /// connection failed with.
    let code: String
    /// 0 when there was no answer.
    var status = 0
    /// For logs: the operation and what the store said.
    let detail: String
    var isTransient = false
    /// How long the store asked to be left alone.
    var retryAfter: Duration?
    /// Where the bucket is, in an answer that says so.
    var region: String?
    /// The store's time of day.
    var date: Timestamp?

    /// There is no such object, or no such upload: the store itself says so. A 404 without its words may come
    /// from anything on the way, and is no proof that bytes are gone.
    var isAbsence: Bool { ["NoSuchKey", "NoSuchUpload"].contains(code) }
    /// Absent, perhaps: what an answer without a body can say.
    var isUnexplainedAbsence: Bool { ["HTTP404", "NotFound"].contains(code) }
    var isMissingUpload: Bool { code == "NoSuchUpload" }
    /// The store does not know the operation.
    var isUnsupported: Bool { status == 501 || code == "NotImplemented" || status == 405 }
    /// Bytes were not those that were announced.
    var isDamage: Bool {
        ["BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "InvalidDigest"].contains(code)
    }
    var isSkew: Bool { code == "RequestTimeTooSkewed" }
    var isBadCredentials: Bool {
        ["ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "TokenRefreshRequired"]
            .contains(code)
    }
    /// A refusal without a code, as answers to HEAD are: it may be the clock or the credentials.
    var isUnexplained: Bool { code == "HTTP400" || code == "HTTP403" }
    var isElsewhere: Bool {
        [301, 307].contains(status) || code == "AuthorizationHeaderMalformed"
    }
}

extension S3Failure {
    init(_ error: CurlError, _ operation: String) {
        self.init(
            code: error.code.description, detail: "\(operation): \(error.debugDescription)",
            isTransient: error.isTransient)
    }

    /// A failure in the words of the answer.
    init(_ head: HTTPResponse, body: [UInt8], _ operation: String) {
        let error = XMLElement(document: body)?.first("Error")
        let code = error?.text(of: "Code") ?? "HTTP\(head.status.code)"
        let message = error?.text(of: "Message")?.prefix(300) ?? ""
        self.init(
            code: code, status: head.status.code,
            detail: "\(operation): \(head.status.code) \(code) \(message)",
            isTransient: Self.isTransient(head.status.code, code, operation),
            retryAfter: head.headerFields[.retryAfter].flatMap { WireInteger.parse($0) }
                .map { .seconds(min($0, 3600)) },
            region: error?.text(of: "Region") ?? head.headerFields[.named("x-amz-bucket-region")],
            date: head.headerFields[.date].flatMap { Timestamp(httpDate: $0) })
    }

    private static func isTransient(_ status: Int, _ code: String, _ operation: String) -> Bool {
        switch code {
        case "RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling",
            "OperationAborted":
            true
        // Without the store's words it comes from something on the way. Answers to HEAD never have any.
        case "HTTP404": operation != "HeadObject"
        default: [408, 429, 500, 502, 503, 504].contains(status)
        }
    }
}

extension S3Failure: CustomStringConvertible {
    var description: String { detail }
}

extension ByteStoreError {
    /// Translates what a request failed with. The text is for logs.
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
