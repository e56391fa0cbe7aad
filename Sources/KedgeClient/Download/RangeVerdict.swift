internal import HTTPTypes
internal import KedgeModel

/// What the head of an answer to a range request means, decided before any byte is written (R91).
enum RangeVerdict: Sendable, Equatable {
    /// The body is exactly the range asked for, of the version asked for.
    case accepted
    /// The server has another version now (R103).
    case changed
    /// The same version, but whole: ranges are not served. Its bytes must not go to an offset.
    case rangesIgnored
    /// Not an answer to the request: a wrong range or length, a coding, a missing validator (R136).
    case violation
    /// An error status; its body says more.
    case refused

    /// - Parameters:
    ///   - asked: The range of the request.
    ///   - total: Size of the file.
    ///   - etag: The strong entity tag of the version being downloaded.
    init(status: Int, fields: HTTPFields, asked: ByteRange, total: Int64, etag: String) {
        let answered = RemoteFile.strongETag(fields[.eTag])
        let range = fields[.contentRange].flatMap { ContentRange($0) }
        switch status {
        case 206:
            if let answered, answered != etag {
                self = .changed
            } else if answered == etag, range == ContentRange(range: asked, total: total),
                (fields[.contentEncoding] ?? "identity").lowercased() == "identity",
                fields[.contentLength].map({ WireInteger.parse($0) == asked.byteCount }) ?? true
            {
                self = .accepted
            } else {
                self = .violation
            }
        case 200:
            // A version has a tag, for it had one before: a page without is somebody else's answer.
            self =
                answered == etag ? .rangesIgnored : fields[.eTag] == nil ? .violation : .changed
        case 412:
            self = .changed
        case 416:
            self = range?.total == total ? .violation : .changed
        case 300...399:
            self = .violation
        default:
            self = .refused
        }
    }
}
