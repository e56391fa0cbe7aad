package import HTTPTypes
internal import KedgeModel

/// A validator that ties ranges to one version of a file (RFC 9110 section 13.1.5).
package enum RangeValidator: Sendable, Equatable {
    /// A strong entity tag, with its quotes.
    case tag(String)
    /// A modification date that was at least a second old when it was served, so that a later
    /// change gets another date (RFC 9110 section 8.8.2.2).
    case date(String)
    /// A weak tag, a date that is too recent, or nothing. A difference proves a change; equality
    /// proves nothing.
    case weak(String)

    /// Restores a validator from a record.
    package init(text: String, isWeak: Bool) {
        self = isWeak ? .weak(text) : text.hasPrefix("\"") ? .tag(text) : .date(text)
    }

    /// Reads the validator from the head of an answer.
    package init(_ fields: HTTPFields) {
        if let tag = fields[.eTag] {
            // A date must not replace a tag, not even a weak one.
            self = RemoteFile.strongETag(tag).map { .tag($0) } ?? .weak(Self.weakTag(tag) ?? "")
            return
        }
        guard let text = fields[.lastModified], let modified = Timestamp(httpDate: text) else {
            self = .weak("")
            return
        }
        let served = fields[.date].flatMap { Timestamp(httpDate: $0) }
        let age = served.map { $0.duration(since: modified) } ?? .zero
        self = age >= .seconds(1) ? .date(text) : .weak(text)
    }

    package var text: String {
        switch self {
        case .tag(let text), .date(let text), .weak(let text): text
        }
    }

    package var isWeak: Bool { self == .weak(text) }

    /// The validator with the same text, marked as weak.
    var weakened: Self { .weak(text) }

    /// Compares the version with the head of a later answer.
    func comparison(with fields: HTTPFields) -> Comparison {
        let named: String? =
            switch self {
            case .tag: RemoteFile.strongETag(fields[.eTag])
            case .date: fields[.lastModified]
            case .weak(""): nil
            case .weak(let text):
                text.hasPrefix("W/") ? Self.weakTag(fields[.eTag]) : fields[.lastModified]
            }
        guard let named else { return .silent }
        return named == text ? .same : .other
    }

    /// The result of comparing an answer's version with the one being downloaded.
    enum Comparison: Sendable, Equatable {
        case same
        case other
        /// The answer has nothing to compare.
        case silent
    }

    private static func weakTag(_ value: String?) -> String? {
        guard let value, value.hasPrefix("W/"),
            RemoteFile.strongETag(String(value.dropFirst(2))) != nil
        else { return nil }
        return value
    }
}
