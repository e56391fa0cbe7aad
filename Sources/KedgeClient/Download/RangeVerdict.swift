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
    ///   - validator: Names the version being downloaded.
    init(
        status: Int, fields: HTTPFields, asked: ByteRange, total: Int64, validator: RangeValidator
    ) {
        let version = validator.verdict(on: fields)
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

    /// A whole file in answer to a range.
    private init(
        whole version: RangeValidator.Verdict, of validator: RangeValidator, hasTag: Bool
    ) {
        switch version {
        case .same: self = .rangesIgnored
        case .other: self = .changed
        case .silent where validator == .weak(""): self = .rangesIgnored
        // A version has a tag or a date, for it had one before: a page without is somebody else's answer.
        case .silent: self = hasTag ? .changed : .violation
        }
    }
}

extension RangeValidator {
    /// True when a part need not name its version: dates are not among the fields that an answer to
    /// `If-Range` must repeat (RFC 9110 section 15.3.7), tags are (R136).
    fileprivate var maySilentlyHold: Bool {
        if case .tag = self { false } else { true }
    }
}
