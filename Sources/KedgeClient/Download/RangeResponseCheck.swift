package import HTTPTypes
package import KedgeModel

/// The meaning of the head of an answer to a range request, decided before a byte is written.
package enum RangeResponseCheck: Sendable, Equatable {
    /// The body is exactly the range asked for, of the version asked for.
    case accepted
    /// The server has another version now.
    case changed
    /// The whole file in the same version: the server does not serve ranges. Its bytes must not be
    /// written at an offset.
    case rangesIgnored
    /// An invalid answer: a wrong range or length, a content coding, or a missing validator.
    case violation
    /// An error status; its body has the details.
    case refused

    /// - Parameters:
    ///   - asked: The range of the request.
    ///   - total: Size of the file.
    ///   - validator: Names the version being downloaded.
    package init(
        status: Int, fields: HTTPFields, asked: ByteRange, total: Int64, validator: RangeValidator
    ) {
        let version = validator.comparison(with: fields)
        let range = fields[.contentRange].flatMap { ContentRange($0) }
        switch status {
        case 206:
            if version == .other {
                self = .changed
            } else if version == .same || validator.maySilentlyHold,
                range == ContentRange(range: asked, total: total),
                (fields[.contentEncoding] ?? "identity").lowercased() == "identity",
                fields[.contentLength].map({ WireInteger.parse($0) == asked.byteCount }) ?? true
            {
                self = .accepted
            } else {
                self = .violation
            }
        case 200:
            self = Self(whole: version, of: validator, hasTag: fields[.eTag] != nil)
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

    private init(
        whole version: RangeValidator.Comparison, of validator: RangeValidator, hasTag: Bool
    ) {
        switch version {
        case .same: self = .rangesIgnored
        case .other: self = .changed
        case .silent where validator == .weak(""): self = .rangesIgnored
        // The known version had a tag or a date. An answer without one comes from another server.
        case .silent: self = hasTag ? .changed : .violation
        }
    }
}

extension RangeValidator {
    /// Whether an answer may omit the version. The answer to `If-Range` must repeat a tag but need
    /// not repeat a date (RFC 9110 section 15.3.7).
    fileprivate var maySilentlyHold: Bool {
        if case .tag = self { false } else { true }
    }
}
