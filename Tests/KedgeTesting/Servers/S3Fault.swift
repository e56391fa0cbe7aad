/// An operation of S3, as its documentation calls it.
package enum S3Operation: String, Encodable, Sendable {
    case all = "*"
    case listObjects = "ListObjectsV2"
    case headBucket = "HeadBucket"
    case putObject = "PutObject"
    case getObject = "GetObject"
    case headObject = "HeadObject"
    case deleteObject = "DeleteObject"
    case deleteObjects = "DeleteObjects"
    case createMultipartUpload = "CreateMultipartUpload"
    case uploadPart = "UploadPart"
    case uploadPartCopy = "UploadPartCopy"
    case listParts = "ListParts"
    case completeMultipartUpload = "CompleteMultipartUpload"
    case abortMultipartUpload = "AbortMultipartUpload"
    case listMultipartUploads = "ListMultipartUploads"
}

/// A rule that makes the stand-in misbehave.
package struct S3Fault: Encodable, Sendable {
    /// The effect on a request. Signatures are always checked first.
    package enum Action: Sendable {
        /// The body is read and nothing is done. The answer is this one, such as 503 `SlowDown` or
        /// 404 `NoSuchUpload`.
        case status(Int, String)
        /// The request waits for that long, and is then done as usual.
        case hang(Duration)
        /// The connection ends before the body is read.
        case dropUnread
        /// The body is read, and the connection ends without anything done.
        case dropUndone
        /// The request is done, and the connection ends: the answer is lost.
        case dropDone
        /// Status 200 with an error document of this code, and nothing is done.
        case errorInOK(String)
        /// The request is done, and the answer has a wrong checksum.
        case wrongChecksum
        /// The server's clock is ahead, as its `Date` header shows. A request that is signed for
        /// the time of that clock is accepted.
        case skewedClock(ahead: Duration)
        /// The connection ends after this number of bytes of the answer's body.
        case cut(afterByteCount: Int)
    }

    var operation: S3Operation
    var times: Int?
    var after: Int
    var duration: Duration?
    var key: String
    var action: Action

    private enum Names: String, CodingKey {
        case operation, times, after, seconds, key, action, status, code
        case secondsEach = "seconds_each"
        case byteCount = "byte_count"
    }

    package func encode(to encoder: any Encoder) throws {
        var rule = encoder.container(keyedBy: Names.self)
        try rule.encode(operation, forKey: .operation)
        try rule.encode(times, forKey: .times)
        try rule.encode(after, forKey: .after)
        try rule.encode(duration.map { $0 / .seconds(1) }, forKey: .seconds)
        try rule.encode(key, forKey: .key)
        try rule.encode(action.name, forKey: .action)
        switch action {
        case .status(let status, let code):
            try rule.encode(status, forKey: .status)
            try rule.encode(code, forKey: .code)
        case .errorInOK(let code):
            try rule.encode(code, forKey: .code)
        case .hang(let duration), .skewedClock(let duration):
            try rule.encode(duration / .seconds(1), forKey: .secondsEach)
        case .cut(let byteCount):
            try rule.encode(byteCount, forKey: .byteCount)
        case .dropUnread, .dropUndone, .dropDone, .wrongChecksum:
            break
        }
    }
}

extension S3Fault.Action {
    /// The action's name in the stand-in's rules.
    fileprivate var name: String {
        switch self {
        case .status: "status"
        case .hang: "hang"
        case .dropUnread: "dropUnread"
        case .dropUndone: "dropUndone"
        case .dropDone: "dropDone"
        case .errorInOK: "errorInOK"
        case .wrongChecksum: "wrongChecksum"
        case .skewedClock: "skewedClock"
        case .cut: "cut"
        }
    }
}
